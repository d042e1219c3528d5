/* gathers.c: gathers and scatters of AVX2 and AVX-512, of which a mask says which elements they access.
 *
 * They stay as they are. DynamoRIO's expansion of them into scalar accesses (drx) takes the base register for restored
 * where it is restored only for an element that the mask chooses: with the flags live, a base in rax and a first
 * element that is not chosen, programs crashed, and OpenBLAS's products of small matrices came out as NaN. Before the
 * instruction a call counts each element as an access. */
#include "host.h"

enum { NO_BASE = 16 };

bool gathers_is_gather(instr_t *in) { return instr_is_gather(in) || instr_is_scatter(in); }

static uint32_t vector_number(reg_id_t reg) { return (uint32_t)(reg_resize_to_opsz(reg, OPSZ_16) - DR_REG_START_XMM); }

/* AVX-512 has a register for masks; of AVX2 the mask is the second register that is written, since it is cleared. */
static void set_mask(union host_gather *form, instr_t *in) {
  for (int i = 0; i < instr_num_srcs(in); i++) {
    opnd_t o = instr_get_src(in, i);
    if (!opnd_is_reg(o) || !reg_is_opmask(opnd_get_reg(o))) continue;
    form->mask = (uint32_t)(opnd_get_reg(o) - DR_REG_START_OPMASK);
    return;
  }
  form->mask = vector_number(opnd_get_reg(instr_get_dst(in, 1)));
  form->in_vector = true;
}

static bool index_is_64(int opcode) {
  switch (opcode) {
  case OP_vpgatherqd:
  case OP_vpgatherqq:
  case OP_vgatherqps:
  case OP_vgatherqpd:
  case OP_vpscatterqd:
  case OP_vpscatterqq:
  case OP_vscatterqps:
  case OP_vscatterqpd: return true;
  default: return false;
  }
}

static bool value_is_64(int opcode) {
  switch (opcode) {
  case OP_vpgatherdq:
  case OP_vpgatherqq:
  case OP_vgatherdpd:
  case OP_vgatherqpd:
  case OP_vpscatterdq:
  case OP_vpscatterqq:
  case OP_vscatterdpd:
  case OP_vscatterqpd: return true;
  default: return false;
  }
}

static bool is_chosen(const dr_mcontext_t *mc, union host_gather form, uint32_t element) {
  const dr_zmm_t *mask = &mc->simd[form.mask];
  if (!form.in_vector) return mc->opmask[form.mask] >> element & 1;
  return form.value_bytes == 8 ? mask->u64[element] >> 63 : mask->u32[element] >> 31;
}

/* For --oracle, which may use vector registers. */
static void on_gather(uint32_t word, int displacement, uint32_t site) {
  union host_gather form = {.word = word};
  void *dc = dr_get_current_drcontext();
  dr_mcontext_t mc = {.size = sizeof mc, .flags = DR_MC_ALL};
  if (!form.in_vector && !dr_mcontext_zmm_fields_valid()) return;
  if (!dr_get_mcontext(dc, &mc)) return;
  uint64_t base = form.base == NO_BASE ? 0 : reg_get_value((reg_id_t)(DR_REG_START_64 + form.base), &mc);
  const dr_zmm_t *index = &mc.simd[form.index];
  for (uint32_t i = 0; i < form.elements; i++) {
    if (!is_chosen(&mc, form, i)) continue;
    int64_t at = form.index_is_64 ? (int64_t)index->u64[i] : (int32_t)index->u32[i];
    strings_count(host_local(dc), base + (uint64_t)(at * form.scale + displacement), form.value_bytes, form.writes,
                  site);
  }
}

static opnd_t memory_of(instr_t *in) {
  bool writes = instr_is_scatter(in);
  for (int i = 0; i < (writes ? instr_num_dsts(in) : instr_num_srcs(in)); i++) {
    opnd_t o = writes ? instr_get_dst(in, i) : instr_get_src(in, i);
    if (opnd_is_memory_reference(o)) return o;
  }
  return opnd_create_null();
}

/* The register with the values, all of which together with the index says how many there are. */
static uint32_t value_register_bytes(instr_t *in) {
  bool reads = instr_is_gather(in);
  for (int i = 0; i < (reads ? instr_num_dsts(in) : instr_num_srcs(in)); i++) {
    opnd_t o = reads ? instr_get_dst(in, i) : instr_get_src(in, i);
    if (opnd_is_reg(o) && reg_is_simd(opnd_get_reg(o))) return opnd_size_in_bytes(reg_get_size(opnd_get_reg(o)));
  }
  return 0;
}

static void store_vector(void *dc, instrlist_t *bb, instr_t *where, reg_id_t to, size_t at, reg_id_t vector,
                         bool evex) {
  opnd_t memory = opnd_create_base_disp(to, DR_REG_NULL, 0, (int)(HOST_VECTORS + at), reg_get_size(vector));
  opnd_t from = opnd_create_reg(vector);
  instrlist_meta_preinsert(bb, where,
                           evex ? INSTR_CREATE_vmovdqu64_mask(dc, memory, opnd_create_reg(DR_REG_K0), from)
                                : INSTR_CREATE_vmovdqu(dc, memory, from));
}

/* Saves the two vectors and calls gathers_count, which leaves vector registers alone: to save them all, and to look up
 * two, takes ten times as long as to count. */
static void insert_lean_call(void *dc, instrlist_t *bb, instr_t *where, opnd_t memory, union host_gather form,
                             uint32_t site) {
  reg_id_t local, start, base = opnd_get_base(memory), index = opnd_get_index(memory);
  if (drreg_reserve_register(dc, bb, where, &host_registers, &local) != DRREG_SUCCESS ||
      drreg_reserve_register(dc, bb, where, &host_registers, &start) != DRREG_SUCCESS)
    dr_abort();
  instrlist_meta_preinsert(bb, where, XINST_CREATE_load(dc, opnd_create_reg(local), host_slot(dc, SLOT_LOCAL)));
  store_vector(dc, bb, where, local, offsetof(struct host_vectors, index), index, !form.in_vector);
  size_t at = offsetof(struct host_vectors, mask);
  if (form.in_vector) {
    reg_id_t whole = (reg_id_t)(DR_REG_START_XMM + form.mask);
    store_vector(dc, bb, where, local, at, reg_resize_to_opsz(whole, OPSZ_32), false);
  } else {
    opnd_t to = opnd_create_base_disp(local, DR_REG_NULL, 0, (int)(HOST_VECTORS + at), OPSZ_2);
    reg_id_t mask = (reg_id_t)(DR_REG_START_OPMASK + form.mask);
    instrlist_meta_preinsert(bb, where, INSTR_CREATE_kmovw(dc, to, opnd_create_reg(mask)));
  }
  if (base == DR_REG_NULL)
    instrlist_meta_preinsert(bb, where, XINST_CREATE_load_int(dc, opnd_create_reg(start), OPND_CREATE_INT32(0)));
  else if (drreg_get_app_value(dc, bb, where, base, start) != DRREG_SUCCESS) dr_abort();
  stub_insert_stack_pointer(dc, bb, where);
  dr_insert_clean_call_ex(dc, bb, where, (void *)gathers_count, DR_CLEANCALL_NOSAVE_XMM, 5, opnd_create_reg(local),
                          opnd_create_reg(start), OPND_CREATE_INT32((int)form.word),
                          OPND_CREATE_INT32(opnd_get_disp(memory)), OPND_CREATE_INT32((int)site));
  drreg_unreserve_register(dc, bb, where, local);
  drreg_unreserve_register(dc, bb, where, start);
}

void gathers_insert(void *dc, instrlist_t *bb, instr_t *in, instr_t *where, uint32_t site) {
  opnd_t memory = memory_of(in);
  if (!opnd_is_near_base_disp(memory)) return; /* of a segment */
  reg_id_t base = opnd_get_base(memory), index = opnd_get_index(memory);
  if (base != DR_REG_NULL && !reg_is_64bit(base)) return;
  int opcode = instr_get_opcode(in);
  uint32_t index_bytes = index_is_64(opcode) ? 8 : 4, value_bytes = value_is_64(opcode) ? 8 : 4;
  uint32_t indices = opnd_size_in_bytes(reg_get_size(index)) / index_bytes;
  uint32_t values = value_register_bytes(in) / value_bytes;
  union host_gather form = {{.index = vector_number(index),
                             .base = base == DR_REG_NULL ? NO_BASE : (uint32_t)(base - DR_REG_START_64),
                             .scale = (uint32_t)opnd_get_scale(memory),
                             .elements = indices < values ? indices : values,
                             .index_is_64 = index_bytes == 8,
                             .value_bytes = value_bytes,
                             .writes = instr_is_scatter(in)}};
  set_mask(&form, in);
  if (!(hi_run.header->flags & HI_FLAG_ORACLE)) {
    insert_lean_call(dc, bb, where, memory, form, site);
    return;
  }
  stub_insert_stack_pointer(dc, bb, where);
  dr_insert_clean_call_ex(dc, bb, where, (void *)on_gather, DR_CLEANCALL_READS_APP_CONTEXT, 3,
                          OPND_CREATE_INT32((int)form.word), OPND_CREATE_INT32(opnd_get_disp(memory)),
                          OPND_CREATE_INT32((int)site));
}
