/* stub.c: out-of-line code that is shared by all probes and calls hi_miss on a private stack.
 *
 * Inline, a probe that misses runs
 *     lea  rsp, [rsp-128]         skip the application's red zone
 *     call stub
 *     test eax, SITE              no effect, since the flags are dead; its operand is the site
 * and the stub returns with `ret 128`. There is one stub per (registers, counts), so that
 * the inline code passes no arguments. The stubs of split.c, which are called so too, call nested
 * ones, which work for the site of who called the outer one. */
#include "host.h"

#define STUB_AREA (8u << 20)
#define MISS_AREA (2u << 20) /* of it, for stubs that there must be */
#define STUB_BYTES 1024      /* most that a stub takes */
#define STUB_ALIGN 16
#define STUBS 16384
#define TEST_EAX_SITE 1 /* offset of the site in `test eax, SITE` */

static byte *area, *next_stub;
static struct {
  uint64_t key;
  byte *code;
} stubs[STUBS];
static void *stub_lock;

static const reg_id_t saved[] = {DR_REG_RAX, DR_REG_RCX, DR_REG_RDX, DR_REG_RSI, DR_REG_RDI,
                                 DR_REG_R8,  DR_REG_R9,  DR_REG_R10, DR_REG_R11};
#define SAVED (sizeof saved / sizeof saved[0])

void stub_exit(void) {
  dr_nonheap_free(area, STUB_AREA);
  dr_mutex_destroy(stub_lock);
}

/* In the child of a fork: the thread that may have held the lock does not exist here. */
void stub_forget_lock(void) { stub_lock = dr_mutex_create(); }

static void append_move(void *dc, instrlist_t *il, reg_id_t to, reg_id_t from) {
  if (to != from) instrlist_meta_append(il, INSTR_CREATE_mov_ld(dc, opnd_create_reg(to), opnd_create_reg(from)));
}

#define ADD(i) instrlist_meta_append(il, (i))
#define REG(r) opnd_create_reg(r)

enum nesting { OUTER, NESTED, NESTED_UPPER };

/* A nested stub steps over its own return address: core finds that of the outer one. Nobody writes
 * below the stack pointer meanwhile, as signals have a stack of their own. */
static void append_step(void *dc, instrlist_t *il, int by) {
  opnd_t to = opnd_create_base_disp(DR_REG_RSP, DR_REG_NULL, 0, by, OPSZ_lea);
  ADD(INSTR_CREATE_lea(dc, REG(DR_REG_RSP), to));
}

/* Switches to the private stack and saves the registers that a call may change. */
static instrlist_t *begin_stub(void *dc, enum nesting nesting) {
  instrlist_t *il = instrlist_create(dc);
  if (nesting != OUTER) append_step(dc, il, sizeof(void *));
  ADD(XINST_CREATE_store(dc, host_slot(dc, SLOT_STACK_APP), REG(DR_REG_RSP)));
  ADD(XINST_CREATE_store(dc, host_slot(dc, SLOT_FRAME_APP), REG(DR_REG_RBP)));
  ADD(XINST_CREATE_load(dc, REG(DR_REG_RSP), host_slot(dc, SLOT_STACK)));
  for (size_t i = 0; i < SAVED; i++) ADD(INSTR_CREATE_push(dc, REG(saved[i])));
  return il;
}

/* Calls `function` with the thread as its first argument. */
static void append_call(void *dc, instrlist_t *il, ptr_int_t function) {
  ADD(XINST_CREATE_load(dc, REG(DR_REG_RDI), host_slot(dc, SLOT_LOCAL)));
  ADD(INSTR_CREATE_mov_imm(dc, REG(DR_REG_RAX), OPND_CREATE_INT64(function)));
  ADD(INSTR_CREATE_call_ind(dc, REG(DR_REG_RAX)));
}

/* Calls `function`, restores the registers and returns. */
static instrlist_t *end_stub(void *dc, instrlist_t *il, ptr_int_t function, enum nesting nesting) {
  append_call(dc, il, function);
  instr_t *delivered = INSTR_CREATE_label(dc);
  ADD(INSTR_CREATE_cmp(dc, host_slot(dc, SLOT_UNDELIVERED), OPND_CREATE_INT8(0)));
  ADD(INSTR_CREATE_jcc(dc, OP_jz_short, opnd_create_instr(delivered)));
  append_call(dc, il, (ptr_int_t)signal_delivery_remind);
  ADD(delivered);
  for (size_t i = SAVED; i-- > 0;) ADD(INSTR_CREATE_pop(dc, REG(saved[i])));
  ADD(XINST_CREATE_load(dc, REG(DR_REG_RSP), host_slot(dc, SLOT_STACK_APP)));
  if (nesting != OUTER) append_step(dc, il, -(int)sizeof(void *));
  ADD(nesting == OUTER ? INSTR_CREATE_ret_imm(dc, OPND_CREATE_INT16(HI_RED_ZONE)) : INSTR_CREATE_ret(dc));
  return il;
}

static instrlist_t *miss(void *dc, reg_id_t address, reg_id_t entry, reg_id_t counts, uint32_t reads, uint32_t writes,
                         enum nesting nesting) {
  instrlist_t *il = begin_stub(dc, nesting);
  /* The probe subtracted the entry's tag from the address. */
  ADD(INSTR_CREATE_add(dc, REG(address), OPND_CREATE_MEMPTR(entry, 0)));
  append_move(dc, il, DR_REG_RSI, address);
  if (counts != DR_REG_NULL) append_move(dc, il, DR_REG_RDX, counts);
  else ADD(INSTR_CREATE_mov_imm(dc, REG(DR_REG_RDX), OPND_CREATE_INT64((uint64_t)writes << 32 | reads)));
  ADD(XINST_CREATE_load(dc, REG(DR_REG_RCX), host_slot(dc, SLOT_STACK_APP)));
  ADD(XINST_CREATE_load(dc, REG(DR_REG_RCX), OPND_CREATE_MEMPTR(DR_REG_RCX, 0)));
  ADD(INSTR_CREATE_mov_ld(dc, REG(DR_REG_ECX), OPND_CREATE_MEM32(DR_REG_RCX, TEST_EAX_SITE)));
  if (nesting == NESTED_UPPER) ADD(INSTR_CREATE_or(dc, REG(DR_REG_ECX), OPND_CREATE_INT32((int)HI_SITE_UPPER)));
  return end_stub(dc, il, (ptr_int_t)hi_miss, nesting);
}

#undef REG
#undef ADD

static byte *record_stub;

/* The stub that calls hi_record_flush. It saves no flags. */
byte *stub_record(void) { return record_stub; }

bool stub_contains(const byte *pc) { return pc >= area && pc < next_stub; }

void stub_insert_call(void *dc, instrlist_t *bb, instr_t *where, byte *stub) {
  opnd_t rsp = opnd_create_reg(DR_REG_RSP);
  opnd_t below = opnd_create_base_disp(DR_REG_RSP, DR_REG_NULL, 0, -HI_RED_ZONE, OPSZ_lea);
  instrlist_meta_preinsert(bb, where, INSTR_CREATE_lea(dc, rsp, below));
  instrlist_meta_preinsert(bb, where, INSTR_CREATE_call(dc, opnd_create_pc(stub)));
}

/* Before a clean call that leads to core: leaves the stack and frame pointer where a stub would. */
void stub_insert_stack_pointer(void *dc, instrlist_t *bb, instr_t *where) {
  opnd_t rsp = opnd_create_reg(DR_REG_RSP);
  opnd_t below = opnd_create_base_disp(DR_REG_RSP, DR_REG_NULL, 0, -HI_STUB_STACK, OPSZ_lea);
  opnd_t above = opnd_create_base_disp(DR_REG_RSP, DR_REG_NULL, 0, HI_STUB_STACK, OPSZ_lea);
  instrlist_meta_preinsert(bb, where, INSTR_CREATE_lea(dc, rsp, below));
  instrlist_meta_preinsert(bb, where, XINST_CREATE_store(dc, host_slot(dc, SLOT_STACK_APP), rsp));
  opnd_t rbp = opnd_create_reg(DR_REG_RBP);
  instrlist_meta_preinsert(bb, where, XINST_CREATE_store(dc, host_slot(dc, SLOT_FRAME_APP), rbp));
  instrlist_meta_preinsert(bb, where, INSTR_CREATE_lea(dc, rsp, above));
}

/* Encodes a stub, and destroys the list. Call it with the lock held. */
static byte *append(void *dc, instrlist_t *il) {
  byte *stub = next_stub, *end = instrlist_encode(dc, il, stub, true);
  next_stub = (byte *)(((ptr_uint_t)end + STUB_ALIGN - 1) & ~(ptr_uint_t)(STUB_ALIGN - 1));
  instrlist_clear_and_destroy(dc, il);
  return stub;
}

void stub_init(void) {
  stub_lock = dr_mutex_create();
  area = next_stub = dr_nonheap_alloc(STUB_AREA, DR_MEMPROT_READ | DR_MEMPROT_WRITE | DR_MEMPROT_EXEC);
  void *dc = GLOBAL_DCONTEXT;
  record_stub = append(dc, end_stub(dc, begin_stub(dc, OUTER), (ptr_int_t)hi_record_flush, OUTER));
}

/* A stub of somebody else's, whose list it destroys; NULL where there is no room left. */
byte *stub_append(void *dc, instrlist_t *il) {
  byte *stub = NULL;
  dr_mutex_lock(stub_lock);
  if (next_stub + STUB_BYTES <= area + (STUB_AREA - MISS_AREA)) stub = append(dc, il);
  else instrlist_clear_and_destroy(dc, il);
  dr_mutex_unlock(stub_lock);
  return stub;
}

/* The stub for these registers and counts, in which a register is 0 where there is none. */
static byte *find(void *dc, reg_id_t address, reg_id_t entry, reg_id_t counts, uint32_t reads, uint32_t writes,
                  enum nesting nesting) {
  uint64_t key = 1ull << 63 | (uint64_t)(address - DR_REG_START_64) << 56 | (uint64_t)(entry - DR_REG_START_64) << 48 |
                 (uint64_t)(counts == DR_REG_NULL ? 0 : 1 + counts - DR_REG_START_64) << 40 | (uint64_t)writes << 20 |
                 reads << 2 | nesting;
  dr_mutex_lock(stub_lock);
  uint32_t at = (uint32_t)(key * HI_HASH_MULTIPLIER >> 40) % STUBS;
  while (stubs[at].key && stubs[at].key != key) at = (at + 1) % STUBS;
  if (!stubs[at].key) {
    /* Counts are at most the accesses of a block, so in practice the area holds all stubs. A
     * program that needs more is aborted here rather than miscounted. */
    if (next_stub + STUB_BYTES > area + STUB_AREA) dr_abort();
    stubs[at].code = append(dc, miss(dc, address, entry, counts, reads, writes, nesting));
    stubs[at].key = key;
  }
  byte *code = stubs[at].code;
  dr_mutex_unlock(stub_lock);
  return code;
}

/* If `counts` is DR_REG_NULL the constants are used. */
byte *stub_for(void *dc, reg_id_t address, reg_id_t entry, reg_id_t counts, uint32_t reads, uint32_t writes) {
  return find(dc, address, entry, counts, reads, writes, OUTER);
}

/* The same for a stub to call. `upper`: the address is the one that HI_SITE_UPPER means. */
byte *stub_nested(void *dc, reg_id_t address, reg_id_t entry, reg_id_t counts, bool upper) {
  return find(dc, address, entry, counts, 0, 0, upper ? NESTED_UPPER : NESTED);
}
