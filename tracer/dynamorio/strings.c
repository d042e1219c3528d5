/* strings.c: instructions that access a range of memory: rep movs, stos and lods, and those that
 * save or restore register state. Such an instruction counts as one access to each line of its
 * range, since the hardware moves whole lines. */
#include "host.h"

struct range {
  bool reads_rsi, writes_rdi;
  int element;
};

static struct range range_of(int opcode, int element) {
  switch (opcode) {
  case OP_rep_movs: return (struct range){true, true, element};
  case OP_rep_stos: return (struct range){false, true, element};
  default: return (struct range){true, false, element};
  }
}

void strings_count(struct hi_local *t, uint64_t address, uint64_t bytes, bool write, uint32_t site) {
  if (!(hi_run.header->flags & HI_FLAG_ORACLE)) {
    hi_string(t, address, bytes, write, site);
    return;
  }
  uint64_t step = 1ull << hi_run.line_log2, end = address + bytes;
  for (uint64_t line = hi_line_of(address); bytes && line < end; line += step)
    hi_oracle_access(t, line < address ? address : line, write, site);
}

static void on_string(uint32_t opcode, uint32_t element, uint32_t site) {
  void *dc = dr_get_current_drcontext();
  dr_mcontext_t mc = {.size = sizeof mc, .flags = DR_MC_INTEGER | DR_MC_CONTROL};
  if (!dr_get_mcontext(dc, &mc)) return;
  struct range r = range_of((int)opcode, (int)element);
  uint64_t bytes = mc.xcx * element;
  bool down = mc.xflags & EFLAGS_DF;
  uint64_t back = down && bytes ? bytes - element : 0;
  struct hi_local *t = host_local(dc);
  if (r.reads_rsi) strings_count(t, mc.xsi - back, bytes, false, site);
  if (r.writes_rdi) strings_count(t, mc.xdi - back, bytes, true, site);
}

static void on_wide(uint64_t address, uint32_t low, uint32_t high, int opcode, uint32_t write, uint32_t site) {
  uint64_t bytes = register_state_bytes(opcode, address, (uint64_t)high << 32 | low);
  strings_count(host_local(dr_get_current_drcontext()), address, bytes, write, site);
}

static uint32_t element_of(instr_t *in) {
  opnd_t o = instr_num_dsts(in) && opnd_is_memory_reference(instr_get_dst(in, 0)) ? instr_get_dst(in, 0)
                                                                                  : instr_get_src(in, 0);
  uint32_t bytes = opnd_size_in_bytes(opnd_get_size(o));
  return bytes ? bytes : 1;
}

void strings_insert(void *dc, instrlist_t *bb, instr_t *in, instr_t *where, uint32_t site) {
  if (block_is_string(in)) {
    stub_insert_stack_pointer(dc, bb, where);
    dr_insert_clean_call(dc, bb, where, (void *)on_string, false, 3, OPND_CREATE_INT32(instr_get_opcode(in)),
                         OPND_CREATE_INT32((int)element_of(in)), OPND_CREATE_INT32((int)site));
    return;
  }
  for (int i = 0; i < instr_num_srcs(in); i++)
    if (opnd_is_memory_reference(instr_get_src(in, i)))
      register_state_insert_call(dc, bb, in, where, instr_get_src(in, i), (void *)on_wide, false, site);
  for (int i = 0; i < instr_num_dsts(in); i++)
    if (opnd_is_memory_reference(instr_get_dst(in, i)))
      register_state_insert_call(dc, bb, in, where, instr_get_dst(in, i), (void *)on_wide, true, site);
}
