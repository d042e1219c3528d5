/* insert.c: instruments a basic block with probes or oracle calls, and the instruction count. */
#include "host.h"

#define PUT(i) instrlist_meta_preinsert(bb, where, (i))

/* Passed by drmgr from phase to phase of a block's instrumentation. */
struct block_box {
  struct host_block *block;
  bool loops;
};

static bool stops_early(instr_t *in) {
  int op = instr_get_opcode(in);
  return op == OP_rep_cmps || op == OP_repne_cmps || op == OP_rep_scas || op == OP_repne_scas;
}

/* A trap leaves the thread behind its instruction, where the program's registers must be in place: no code of
 * ours may follow there. */
static void end_after_trap(void *dc, instrlist_t *bb) {
  instr_t *in = instrlist_first_app(bb);
  while (in && instr_get_opcode(in) != OP_int3) in = instr_get_next_app(in);
  for (instr_t *next = in ? instr_get_next(in) : NULL; next; next = instr_get_next(in)) {
    instrlist_remove(bb, next);
    instr_destroy(dc, next);
  }
}

/* String instructions that end on a condition become loops, since their length is not known
 * before. True if the block has changed. */
bool insert_expand(void *dc, instrlist_t *bb) {
  bool expanded = false, early = false;
  end_after_trap(dc, bb);
  for (instr_t *in = instrlist_first_app(bb); in && !early; in = instr_get_next_app(in)) early = stops_early(in);
  if (early) drutil_expand_rep_string_ex(dc, bb, &expanded, NULL);
  return expanded;
}

dr_emit_flags_t insert_app2app(void *dc, void *tag, instrlist_t *bb, bool for_trace, bool translating, void **data) {
  (void)tag, (void)for_trace, (void)translating;
  struct block_box *box = dr_thread_alloc(dc, sizeof *box);
  *box = (struct block_box){NULL, insert_expand(dc, bb)};
  *data = box;
  return DR_EMIT_DEFAULT;
}

/* The site to pass to probes. `masks`: the bytes that its accesses cover. */
static uint32_t new_site(app_pc pc, const struct hi_site *masks) {
  struct hi_site site = *masks;
  site.pc = (uint64_t)pc;
  uint32_t number = hi_site_new(site);
  return number && modules_system(site.pc) ? number | HI_SITE_LIBRARY : number;
}

static void oracle_call(uint64_t address, uint32_t write, uint32_t site) {
  hi_oracle_access(host_local(dr_get_current_drcontext()), address, write, site);
}

static void insert_oracle(void *dc, instrlist_t *bb, instr_t *where, const struct host_access *a, uint32_t site) {
  reg_id_t r1, r2;
  if (drreg_reserve_register(dc, bb, where, &host_registers, &r1) != DRREG_SUCCESS ||
      drreg_reserve_register(dc, bb, where, &host_registers, &r2) != DRREG_SUCCESS)
    dr_abort();
  stub_insert_stack_pointer(dc, bb, where);
  if (probe_address(dc, bb, where, a->operand, 0, r1, r2))
    dr_insert_clean_call(dc, bb, where, (void *)oracle_call, false, 3, opnd_create_reg(r1), OPND_CREATE_INT32(a->write),
                         OPND_CREATE_INT32((int)site));
  drreg_unreserve_register(dc, bb, where, r1);
  drreg_unreserve_register(dc, bb, where, r2);
}

/* Where a block is to be sampled, takes the thread's line cache away: its next access misses. */
static void insert_sampled_block(void *dc, instrlist_t *bb, instr_t *where, const struct host_block *b) {
  if (!hi_run.nothing || hi_run.header->flags & HI_FLAG_ORACLE) return;
  instr_t *not_due = INSTR_CREATE_label(dc);
  PUT(INSTR_CREATE_add(dc, host_slot(dc, SLOT_BLOCK), OPND_CREATE_INT32((int)b->instructions)));
  PUT(INSTR_CREATE_jcc(dc, OP_jnb_short, opnd_create_instr(not_due)));
  PUT(INSTR_CREATE_mov_st(dc, host_slot(dc, SLOT_BASE), OPND_CREATE_INT32((int)(uint64_t)hi_run.nothing)));
  PUT(INSTR_CREATE_mov_st(dc, host_slot(dc, SLOT_BLOCK), OPND_CREATE_INT32((int)(b->instructions * HI_BLOCK_UNIT))));
  PUT(not_due);
}

/* Adds the block's instructions to their counter and its accesses to that of slot `accesses`, if
 * not 0, at the first place where the flags are dead or else at the end of the block. */
void insert_count(void *dc, instrlist_t *bb, instr_t *where, struct host_block *b, int accesses, bool last) {
  bool dead = false;
  if (b->counted) return;
  if (drreg_are_aflags_dead(dc, where, &dead) != DRREG_SUCCESS) dead = false;
  if (!dead && !last) return;
  if (drreg_reserve_aflags(dc, bb, where) != DRREG_SUCCESS) dr_abort();
  PUT(INSTR_CREATE_add(dc, host_slot(dc, SLOT_INSTRUCTIONS), OPND_CREATE_INT32((int)b->instructions)));
  insert_sampled_block(dc, bb, where, b);
  if (accesses && b->n) PUT(INSTR_CREATE_add(dc, host_slot(dc, accesses), OPND_CREATE_INT32(b->n)));
  drreg_unreserve_aflags(dc, bb, where);
  b->counted = true;
}

static uint32_t window_site(instr_t *in, const struct host_block *b, int window) {
  struct hi_site masks = {0};
  block_masks(b, window, &masks);
  return new_site(instr_get_app_pc(in), &masks);
}

enum { WINDOW_ACCESSES = 64 }; /* that are told apart */

/* Says of a window of several instructions which these are. */
static void keep_window(const struct host_block *b, int window, uint32_t site) {
  struct hi_window_access accesses[WINDOW_ACCESSES];
  const struct host_window *w = &b->windows[window];
  app_pc first = instr_get_app_pc(b->accesses[w->leader].instr);
  uint32_t n = 0;
  bool several = false;
  for (int i = w->leader; i < b->n && n < WINDOW_ACCESSES; i++) {
    const struct host_access *a = &b->accesses[i];
    if (a->window != window) continue;
    int64_t after = instr_get_app_pc(a->instr) - first;
    if (after != (int16_t)after) return;
    several |= after != 0;
    accesses[n++] =
        (struct hi_window_access){.after = (int16_t)after, .offset = (uint8_t)(a->disp - w->low), .write = a->write};
  }
  if (several && n == w->reads + w->writes) hi_window_new(site & ~HI_SITE_FLAGS, accesses, n);
}

/* Inserts the probes of the windows whose leader is `in`, or oracle calls for its accesses. */
void insert_probes(void *dc, instrlist_t *bb, instr_t *in, instr_t *where, struct host_block *b) {
  if (hi_run.header->flags & HI_FLAG_ORACLE) {
    for (int i = 0; i < b->n; i++)
      if (b->accesses[i].instr == in)
        insert_oracle(dc, bb, where, &b->accesses[i], window_site(in, b, b->accesses[i].window));
  } else {
    for (int i = 0; i < b->nwindows; i++)
      if (b->accesses[b->windows[i].leader].instr == in) {
        uint32_t site = window_site(in, b, i);
        keep_window(b, i, site);
        probe_window(dc, bb, where, b, i, site);
      }
  }
  const struct hi_site none = {0};
  if (block_is_string(in) || block_is_wide(in))
    strings_insert(dc, bb, in, where, new_site(instr_get_app_pc(in), &none));
  if (gathers_is_gather(in)) gathers_insert(dc, bb, in, where, new_site(instr_get_app_pc(in), &none));
}

/* So the PLT calls the dynamic linker: the return address is not on top of the stack. */
static bool follows_push(instr_t *in) {
  instr_t *before = instr_get_prev_app(in);
  return before && (instr_get_opcode(before) == OP_push || instr_get_opcode(before) == OP_push_imm);
}

/* Where `in` calls from one of the program's own files into another file, or may: by a pointer, or by
 * an entry of the PLT. Keeps the return address for what the library accesses. */
void insert_leave(void *dc, instrlist_t *bb, instr_t *in, instr_t *where) {
  if (!instr_is_mbr(in) || instr_is_return(in)) return;
  app_pc pc = instr_get_app_pc(in);
  bool call = instr_is_call(in);
  if (!call && (!opnd_is_rel_addr(instr_get_target(in)) || follows_push(in))) return; /* a switch; the lazy linker */
  if (modules_system((uint64_t)pc)) return;
  reg_id_t reg;
  if (drreg_reserve_register(dc, bb, where, &host_registers, &reg) != DRREG_SUCCESS) dr_abort();
  opnd_t address = opnd_create_reg(reg);
  if (call) instrlist_insert_mov_immed_ptrsz(dc, (ptr_int_t)decode_next_pc(dc, pc), address, bb, where, NULL, NULL);
  else PUT(XINST_CREATE_load(dc, address, OPND_CREATE_MEMPTR(DR_REG_RSP, 0)));
  PUT(XINST_CREATE_store(dc, host_slot(dc, SLOT_PROGRAM_CALL), address));
  drreg_unreserve_register(dc, bb, where, reg);
}

dr_emit_flags_t insert_analysis(void *dc, void *tag, instrlist_t *bb, bool for_trace, bool translating, void *data) {
  (void)tag, (void)for_trace, (void)translating;
  struct block_box *box = data;
  bool merge = !box->loops && probe_can_split() && !(hi_run.header->flags & HI_FLAG_ORACLE);
  box->block = block_analyse(dc, bb, merge);
  return DR_EMIT_DEFAULT;
}

dr_emit_flags_t insert_instr(void *dc, void *tag, instrlist_t *bb, instr_t *in, bool for_trace, bool translating,
                             void *data) {
  (void)tag, (void)for_trace, (void)translating;
  struct host_block *b = ((struct block_box *)data)->block;
  if (!instr_is_app(in)) return DR_EMIT_DEFAULT;
  insert_count(dc, bb, in, b, 0, drmgr_is_last_instr(dc, in));
  insert_probes(dc, bb, in, in, b);
  insert_leave(dc, bb, in, in);
  return DR_EMIT_DEFAULT;
}

dr_emit_flags_t insert_done(void *dc, void *tag, instrlist_t *bb, bool for_trace, bool translating, void *data) {
  (void)tag, (void)bb, (void)for_trace, (void)translating;
  struct block_box *box = data;
  block_free(dc, box->block);
  dr_thread_free(dc, box, sizeof *box);
  return DR_EMIT_DEFAULT;
}
