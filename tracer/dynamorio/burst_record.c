/* burst_record.c: burst recording (--bursts, --full). Each block has two copies: both count its
 * accesses, and one also appends a record to the thread's raw buffer:
 *
 *     raw[0] = number of the block     raw[1 + n] = value of its site n
 *
 * SLOT_IDLE selects the copy at the head of a block, for each thread separately. */
#include "copies.h"

enum { CASE_RECORDED = 0, CASE_COUNTED = 1 }; /* drbbdup's jump to a case that is not 0 is shorter */

/* A copy being instrumented. */
struct copy {
  struct host_block *block;
  struct plan *plan; /* NULL unless it records */
  bool begun;
};

#define PUT(i) instrlist_meta_preinsert(bb, where, (i))
#define REG(r) opnd_create_reg(r)

static uintptr_t set_up(void *context, void *dc, void *tag, instrlist_t *bb, bool *duplicate, bool *dynamic,
                        void *data) {
  (void)dc, (void)tag, (void)bb, (void)data;
  *duplicate = true;
  *dynamic = false;
  drbbdup_register_case_encoding(context, CASE_RECORDED);
  return CASE_COUNTED;
}

static void analyse(void *dc, void *tag, instrlist_t *bb, uintptr_t which, void *data, void *block, void **out) {
  (void)tag, (void)data, (void)block;
  bool loops = block_has_loop(bb);
  struct copy *copy = dr_thread_alloc(dc, sizeof *copy);
  copy->block = block_analyse(dc, bb, probe_can_split() && !loops);
  copy->plan = which == CASE_RECORDED ? plan_make(dc, bb, copy->block, loops) : NULL;
  copy->begun = false;
  *out = copy;
}

static void forget(void *dc, uintptr_t which, void *data, void *block, void *analysis) {
  (void)which, (void)data, (void)block;
  struct copy *copy = analysis;
  if (!copy) return;
  if (copy->plan) plan_free(dc, copy->plan);
  block_free(dc, copy->block);
  dr_thread_free(dc, copy, sizeof *copy);
}

static void reserve(void *dc, instrlist_t *bb, instr_t *where, reg_id_t *reg) {
  if (drreg_reserve_register(dc, bb, where, &host_registers, reg) != DRREG_SUCCESS) dr_abort();
}

static opnd_t word(reg_id_t raw, int site) { return OPND_CREATE_MEMPTR(raw, 8 * (1 + site)); }

/* Sets the lengths to 0: they stay 0 for accesses that are not made. */
static void insert_begin(void *dc, instrlist_t *bb, instr_t *where, const struct plan *p) {
  if (!p->lengths) return;
  reg_id_t raw;
  reserve(dc, bb, where, &raw);
  PUT(XINST_CREATE_load(dc, REG(raw), host_slot(dc, SLOT_RAW)));
  for (int i = 0; i < p->lengths; i++) PUT(INSTR_CREATE_mov_imm(dc, word(raw, p->sites + i), OPND_CREATE_INT32(0)));
  drreg_unreserve_register(dc, bb, where, raw);
}

static void insert_site(void *dc, instrlist_t *bb, instr_t *where, const struct plan_access *a) {
  reg_id_t address, raw;
  reserve(dc, bb, where, &address);
  reserve(dc, bb, where, &raw);
  if (probe_address(dc, bb, where, a->operand, 0, address, raw)) {
    PUT(XINST_CREATE_load(dc, REG(raw), host_slot(dc, SLOT_RAW)));
    PUT(XINST_CREATE_store(dc, word(raw, a->site), REG(address)));
    if (!a->bytes) PUT(INSTR_CREATE_mov_imm(dc, word(raw, a->length), OPND_CREATE_INT32((int)a->same->bytes)));
  }
  drreg_unreserve_register(dc, bb, where, address);
  drreg_unreserve_register(dc, bb, where, raw);
}

/* Called before a string instruction: records the start and the length of its range. */
static void on_string(uint32_t element, uint32_t write, uint32_t site, uint32_t length) {
  void *dc = dr_get_current_drcontext();
  dr_mcontext_t mc = {.size = sizeof mc, .flags = DR_MC_INTEGER | DR_MC_CONTROL};
  struct hi_local *t = host_local(dc);
  if (!dr_get_mcontext(dc, &mc) || !hi_recording(t)) return;
  uint64_t bytes = mc.xcx * element;
  uint64_t back = mc.xflags & EFLAGS_DF && bytes ? bytes - element : 0;
  uint64_t *raw = (uint64_t *)*t->recorder->slots.head;
  raw[1 + site] = (write ? mc.xdi : mc.xsi) - back;
  raw[1 + length] = bytes;
}

/* Called before an instruction that saves or restores register state. */
static void on_wide(uint64_t address, uint32_t low, uint32_t high, int opcode, uint32_t site, uint32_t length) {
  struct hi_local *t = host_local(dr_get_current_drcontext());
  if (!hi_recording(t)) return;
  uint64_t *raw = (uint64_t *)*t->recorder->slots.head;
  raw[1 + site] = address;
  raw[1 + length] = register_state_bytes(opcode, address, (uint64_t)high << 32 | low);
}

static void insert_sites(void *dc, instrlist_t *bb, instr_t *in, instr_t *where, const struct plan *p) {
  for (int i = 0; i < p->n; i++) {
    const struct plan_access *a = &p->accesses[i];
    if (a->instr != in || a->site == NO_SITE || p->leaders[a->site] != i) continue;
    uint32_t element = opnd_size_in_bytes(opnd_get_size(a->operand));
    if (a->string)
      dr_insert_clean_call(dc, bb, where, (void *)on_string, false, 4, OPND_CREATE_INT32((int)(element ? element : 1)),
                           OPND_CREATE_INT32(a->write), OPND_CREATE_INT32(a->site), OPND_CREATE_INT32(a->length));
    else if (a->wide)
      register_state_insert_call(dc, bb, in, where, a->operand, (void *)on_wide, (uint32_t)a->site,
                                 (uint32_t)a->length);
    else insert_site(dc, bb, where, a);
  }
}

/* Completes the record; calls hi_record_flush if the buffer is full then. */
static void insert_end(void *dc, instrlist_t *bb, instr_t *where, const struct plan *p, uint32_t number) {
  reg_id_t raw;
  instr_t *room = INSTR_CREATE_label(dc);
  int size = 8 * (1 + p->sites + p->lengths);
  if (drreg_reserve_aflags(dc, bb, where) != DRREG_SUCCESS) dr_abort();
  reserve(dc, bb, where, &raw);
  PUT(XINST_CREATE_load(dc, REG(raw), host_slot(dc, SLOT_RAW)));
  PUT(INSTR_CREATE_mov_imm(dc, OPND_CREATE_MEMPTR(raw, 0), OPND_CREATE_INT32((int)number)));
  PUT(INSTR_CREATE_lea(dc, REG(raw), opnd_create_base_disp(raw, DR_REG_NULL, 0, size, OPSZ_lea)));
  PUT(XINST_CREATE_store(dc, host_slot(dc, SLOT_RAW), REG(raw)));
  PUT(INSTR_CREATE_cmp(dc, REG(raw), host_slot(dc, SLOT_RAW_END)));
  PUT(INSTR_CREATE_jcc(dc, OP_jb, opnd_create_instr(room)));
  stub_insert_call(dc, bb, where, stub_record());
  PUT(room);
  drreg_unreserve_register(dc, bb, where, raw);
  drreg_unreserve_aflags(dc, bb, where);
}

/* See block_set_last. */
static void set_last(struct copy *copy, instr_t *last) {
  instr_t *before = copy->block->last;
  block_set_last(copy->block, last);
  for (int i = 0; copy->plan && i < copy->plan->n; i++)
    if (copy->plan->accesses[i].instr == before) copy->plan->accesses[i].instr = last;
}

static dr_emit_flags_t instrument(void *dc, void *tag, instrlist_t *bb, instr_t *in, instr_t *where, bool for_trace,
                                  bool translating, uintptr_t which, void *data, void *block, void *analysis) {
  (void)which, (void)data, (void)block;
  dr_emit_flags_t flags = drwrap_invoke_insert(dc, tag, bb, in, where, for_trace, translating, NULL);
  struct copy *copy = analysis;
  bool last = false;
  if (!instr_is_app(in) || !copy) return flags;
  drbbdup_is_last_instr(dc, in, &last);
  if (last) set_last(copy, in);
  insert_count(dc, bb, where, copy->block, 0, last);
  insert_probes(dc, bb, in, where, copy->block);
  insert_leave(dc, bb, in, where);
  struct plan *p = copy->plan;
  if (!p) return flags;
  if (!copy->begun) insert_begin(dc, bb, where, p);
  copy->begun = true;
  insert_sites(dc, bb, in, where, p);
  if (last) {
    /* A block that is only translated has a number already: 1 gives code of the same length. */
    uint32_t number = translating ? 1 : plan_publish(p);
    if (number) insert_end(dc, bb, where, p, number);
  }
  return flags;
}

void burst_record_init(void) {
  drbbdup_options_t options = {
      .set_up_bb_dups = set_up,
      .analyze_case = analyse,
      .destroy_case_analysis = forget,
      .instrument_instr_ex = instrument,
      .runtime_case_opnd = host_slot(GLOBAL_DCONTEXT, SLOT_IDLE),
  };
  copies_init(&options);
  dispatch_init();
}
