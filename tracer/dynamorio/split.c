/* split.c: counts a window that straddles two lines, or whose line is not in the cache: the
 * accesses to the first line, then the others.
 *
 * Bit n of a constant bitmap says that an access starts n bytes above the lowest. The bitmap is
 * shifted left by the offset of the lowest address in its line; the bits that remain among the
 * 64 belong to the first line.
 *
 * This code is long and most windows look alike (what functions push and pop), so windows of one
 * shape share a stub. Past the room for stubs it is part of the block. */
#include "host.h"

#define SHAPES 16384
#define SLOTS (2 * SHAPES) /* power of two */
#define PUT(i) instrlist_meta_preinsert(il, where, (i))
#define REG(r) opnd_create_reg(r)

/* The shape of a window: what the code depends on, but for the site. */
struct shape {
  /* displacements above the lowest at which there is a first, a second and a third access */
  uint64_t reads[SAME_PLACE], writes[SAME_PLACE];
  uint32_t all_reads, all_writes, span;
  reg_id_t r1, r2;
};

struct known_shape {
  struct shape shape;
  byte *code;
};
static struct known_shape *known;
static uint32_t shapes;
static uint16_t slots[SLOTS]; /* by hash: 1 + where a shape is in `known` */
static void *lock;

void split_init(void) {
  lock = dr_mutex_create();
  known = dr_raw_mem_alloc(SHAPES * sizeof *known, DR_MEMPROT_READ | DR_MEMPROT_WRITE, NULL);
  if (!known) dr_abort();
}

/* In the child of a fork: the thread that may have held the lock does not exist here. */
void split_forget_lock(void) { lock = dr_mutex_create(); }

static struct shape shape_of(const struct host_block *b, int window, reg_id_t r1, reg_id_t r2) {
  const struct host_window *w = &b->windows[window];
  struct shape s;
  memset(&s, 0, sizeof s); /* compared as bytes */
  s.all_reads = w->reads, s.all_writes = w->writes, s.span = (uint32_t)(w->high - w->low);
  s.r1 = r1, s.r2 = r2;
  for (int i = 0; i < b->n; i++) {
    const struct host_access *a = &b->accesses[i];
    if (a->window != window) continue;
    uint64_t bit = 1ull << (a->disp - w->low);
    uint64_t *level = a->write ? s.writes : s.reads;
    while (*level & bit) level++;
    *level |= bit;
  }
  return s;
}

/* total += number of bits of each level that remain after a left shift by r1; `fresh`: total is
 * not set yet */
static bool add_levels(void *dc, instrlist_t *il, instr_t *where, const uint64_t *levels, reg_id_t r1, reg_id_t total,
                       reg_id_t scratch, bool fresh) {
  for (int i = 0; i < SAME_PLACE && levels[i]; i++) {
    reg_id_t to = fresh ? total : scratch;
    PUT(INSTR_CREATE_mov_imm(dc, REG(to), OPND_CREATE_INT64(levels[i])));
    PUT(INSTR_CREATE_shlx(dc, REG(to), REG(to), REG(r1)));
    PUT(INSTR_CREATE_popcnt(dc, REG(to), REG(to)));
    if (!fresh) PUT(INSTR_CREATE_add(dc, REG(total), REG(scratch)));
    fresh = false;
  }
  return fresh;
}

static reg_id_t other_register(reg_id_t a, reg_id_t b, reg_id_t c) {
  static const reg_id_t candidates[] = {DR_REG_RAX, DR_REG_RCX, DR_REG_RDX, DR_REG_RBX};
  for (int i = 0;; i++)
    if (candidates[i] != a && candidates[i] != b && candidates[i] != c) return candidates[i];
}

/* One probe with the counts in register r3. In a stub the site is that of who called it. */
static void probe_counted(void *dc, instrlist_t *il, instr_t *where, reg_id_t r1, reg_id_t r2, reg_id_t r3,
                          const uint32_t *site, bool upper) {
  instr_t *hit = INSTR_CREATE_label(dc), *done = INSTR_CREATE_label(dc);
  struct raw_code compare = {.n = 0};
  probe_compare(&compare, r1, r2, 0);
  PUT(raw_instruction(dc, &compare));
  PUT(INSTR_CREATE_jcc(dc, OP_jbe_short, opnd_create_instr(hit)));
  if (site) probe_call(dc, il, where, stub_for(dc, r1, r2, r3, 0, 0), *site | (upper ? HI_SITE_UPPER : 0));
  else PUT(INSTR_CREATE_call(dc, opnd_create_pc(stub_nested(dc, r1, r2, r3, upper))));
  PUT(INSTR_CREATE_jmp_short(dc, opnd_create_instr(done)));
  PUT(hit);
  /* hi_counts: writes are in the high half */
  PUT(INSTR_CREATE_add(dc, OPND_CREATE_MEMPTR(r2, offsetof(struct hi_entry, reads)), REG(r3)));
  PUT(done);
}

/* On entry r1 = lowest address - tag of entry r2. */
static void split(void *dc, instrlist_t *il, instr_t *where, const struct shape *s, const uint32_t *site) {
  reg_id_t r1 = s->r1, r2 = s->r2, r3 = other_register(r1, r2, DR_REG_NULL), r4 = other_register(r1, r2, r3);
  instr_t *done = INSTR_CREATE_label(dc);
  struct raw_code find = {.n = 0};
  PUT(INSTR_CREATE_add(dc, REG(r1), OPND_CREATE_MEMPTR(r2, 0)));
  PUT(XINST_CREATE_store(dc, host_slot(dc, SLOT_SAVE1), REG(r3)));
  PUT(XINST_CREATE_store(dc, host_slot(dc, SLOT_SAVE2), REG(r4)));
  PUT(XINST_CREATE_store(dc, host_slot(dc, SLOT_ADDRESS), REG(r1)));
  bool fresh = add_levels(dc, il, where, s->writes, r1, r3, r4, true);
  if (!fresh) PUT(INSTR_CREATE_shl(dc, REG(r3), OPND_CREATE_INT8(32)));
  add_levels(dc, il, where, s->reads, r1, r3, r4, fresh);
  PUT(XINST_CREATE_store(dc, host_slot(dc, SLOT_COUNTS), REG(r3)));
  probe_counted(dc, il, where, r1, r2, r3, site, false);
  PUT(INSTR_CREATE_mov_imm(dc, REG(r3), OPND_CREATE_INT64((uint64_t)s->all_writes << 32 | s->all_reads)));
  PUT(INSTR_CREATE_sub(dc, REG(r3), host_slot(dc, SLOT_COUNTS)));
  PUT(INSTR_CREATE_jcc(dc, OP_jz, opnd_create_instr(done)));
  PUT(XINST_CREATE_load(dc, REG(r1), host_slot(dc, SLOT_ADDRESS)));
  PUT(INSTR_CREATE_add(dc, REG(r1), OPND_CREATE_INT8((int)s->span)));
  probe_find_entry(&find, r1, r2);
  PUT(raw_instruction(dc, &find));
  probe_counted(dc, il, where, r1, r2, r3, site, true);
  PUT(done);
  PUT(XINST_CREATE_load(dc, REG(r3), host_slot(dc, SLOT_SAVE1)));
  PUT(XINST_CREATE_load(dc, REG(r4), host_slot(dc, SLOT_SAVE2)));
}

static byte *emit(void *dc, const struct shape *s) {
  instrlist_t *il = instrlist_create(dc);
  instr_t *end = INSTR_CREATE_ret_imm(dc, OPND_CREATE_INT16(HI_RED_ZONE));
  instrlist_meta_append(il, end);
  split(dc, il, end, s, NULL);
  return stub_append(dc, il);
}

static uint32_t hash(const struct shape *s) {
  uint64_t h = 0, word;
  for (size_t i = 0; i + sizeof word <= sizeof *s; i += sizeof word) {
    memcpy(&word, (const char *)s + i, sizeof word);
    h = (h ^ word) * HI_HASH_MULTIPLIER;
    h ^= h >> 32;
  }
  return (uint32_t)h;
}

/* NULL: there is no room for another shape. */
byte *split_stub(void *dc, const struct host_block *b, int window, reg_id_t r1, reg_id_t r2) {
  struct shape s = shape_of(b, window, r1, r2);
  dr_mutex_lock(lock);
  uint32_t at = hash(&s) & (SLOTS - 1);
  while (slots[at] && memcmp(&known[slots[at] - 1].shape, &s, sizeof s) != 0) at = (at + 1) & (SLOTS - 1);
  byte *code = slots[at] ? known[slots[at] - 1].code : NULL;
  if (!code && shapes < SHAPES && (code = emit(dc, &s))) {
    known[shapes].shape = s, known[shapes].code = code;
    slots[at] = (uint16_t)++shapes;
  }
  dr_mutex_unlock(lock);
  return code;
}

/* Without a stub. On entry r1 = lowest address - tag of entry r2. */
void split_insert(void *dc, instrlist_t *bb, instr_t *where, const struct host_block *b, int window, reg_id_t r1,
                  reg_id_t r2, uint32_t site) {
  struct shape s = shape_of(b, window, r1, r2);
  split(dc, bb, where, &s, &site);
}
