/* probe.c: the inline code that counts a window of accesses in the thread's line cache.
 *
 *     lea  r1, [lowest address]
 *     rorx r2, r1, fold ; xor r2, r1 ; shr r2, line_log2 - 4
 *     and  r2d, mask ; or r2, gs:[base]                                  r2 = entry
 *     sub  r1, [r2]              ; cmp r1, line - 1 - span               all of the window in this line?
 *     jbe  hit
 *     (miss or straddle: the slow path)
 *   hit:
 *     add  dword [r2+8], reads   ; add dword [r2+12], writes
 *
 * The counts of a window that straddles two lines are split: bit n of a constant bitmap says
 * that an access starts n bytes above the lowest. The bitmap is shifted left by the offset of
 * the lowest address in its line; the bits that remain among the 64 belong to the first line. */
#include "host.h"

enum { CPUID_EXTENDED_FEATURES = 7, CPUID_EBX_BMI2 = 8 }; /* leaf, bit */
enum { ENTRY_LOG2 = 4, READS_AT = offsetof(struct hi_entry, reads), WRITES_AT = offsetof(struct hi_entry, writes) };
_Static_assert(sizeof(struct hi_entry) == 1 << ENTRY_LOG2, "size of an entry");

static bool has_bmi2;

void probe_init(void) {
  uint32_t a = CPUID_EXTENDED_FEATURES, b, c = 0, d;
  __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  has_bmi2 = b >> CPUID_EBX_BMI2 & 1;
}

/* Splitting needs shlx; without it every access gets a probe of its own. */
bool probe_can_split(void) { return has_bmi2; }

#define PUT(i) instrlist_meta_preinsert(bb, where, (i))
#define REG(r) opnd_create_reg(r)

static opnd_t shifted(opnd_t o, int64_t by) {
  if (opnd_is_near_rel_addr(o)) return opnd_create_rel_addr((byte *)opnd_get_addr(o) + by, OPSZ_lea);
  if (opnd_is_near_abs_addr(o)) return opnd_create_abs_addr((byte *)opnd_get_addr(o) + by, OPSZ_lea);
  return opnd_create_base_disp(opnd_get_base(o), opnd_get_index(o), opnd_get_scale(o), opnd_get_disp(o) + (int)by,
                               OPSZ_lea);
}

/* r1 = address of the operand + shift; r2 is scratch. */
bool probe_address(void *dc, instrlist_t *bb, instr_t *where, opnd_t o, int64_t shift, reg_id_t r1, reg_id_t r2) {
  if (shift != 0) o = shifted(o, shift);
  if (opnd_is_base_disp(o)) drreg_restore_app_values(dc, bb, where, o, NULL);
  return drutil_insert_get_mem_addr(dc, bb, where, o, r1, r2);
}

/* r2 = entry of the line of r1 */
static void find_entry(void *dc, instrlist_t *bb, instr_t *where, reg_id_t r1, reg_id_t r2) {
  if (has_bmi2) {
    PUT(INSTR_CREATE_rorx(dc, REG(r2), REG(r1), OPND_CREATE_INT8(HI_FOLD)));
  } else {
    PUT(INSTR_CREATE_mov_ld(dc, REG(r2), REG(r1)));
    PUT(INSTR_CREATE_shr(dc, REG(r2), OPND_CREATE_INT8(HI_FOLD)));
  }
  PUT(INSTR_CREATE_xor(dc, REG(r2), REG(r1)));
  PUT(INSTR_CREATE_shr(dc, REG(r2), OPND_CREATE_INT8((int)hi_run.line_log2 - ENTRY_LOG2)));
  PUT(INSTR_CREATE_and(dc, REG(reg_64_to_32(r2)), OPND_CREATE_INT32((int)(hi_run.index_mask << ENTRY_LOG2))));
  PUT(INSTR_CREATE_or(dc, REG(r2), host_slot(dc, SLOT_BASE))); /* which may have bits of the mask set: hi_window */
}

/* "Below or equal" if the bytes from r1 to r1 + span are in the line of entry r2. */
static void compare(void *dc, instrlist_t *bb, instr_t *where, reg_id_t r1, reg_id_t r2, int span) {
  int limit = (1 << hi_run.line_log2) - 1 - span;
  PUT(INSTR_CREATE_sub(dc, REG(r1), OPND_CREATE_MEMPTR(r2, 0)));
  if (limit <= INT8_MAX) PUT(INSTR_CREATE_cmp(dc, REG(r1), OPND_CREATE_INT8(limit)));
  else PUT(INSTR_CREATE_cmp(dc, REG(r1), OPND_CREATE_INT32(limit)));
}

static void call_stub(void *dc, instrlist_t *bb, instr_t *where, byte *stub, uint32_t site) {
  stub_insert_call(dc, bb, where, stub);
  PUT(INSTR_CREATE_test(dc, REG(DR_REG_EAX), OPND_CREATE_INT32((int)site)));
}

static void add_constant(void *dc, instrlist_t *bb, instr_t *where, reg_id_t entry, int offset, uint32_t by) {
  if (by == 0) return;
  opnd_t to = OPND_CREATE_MEM32(entry, offset);
  if (by <= INT8_MAX) PUT(INSTR_CREATE_add(dc, to, OPND_CREATE_INT8((int)by)));
  else PUT(INSTR_CREATE_add(dc, to, OPND_CREATE_INT32((int)by)));
}

/* One probe with constant counts, for accesses that all lie in the line of r1. */
static void probe_line(void *dc, instrlist_t *bb, instr_t *where, reg_id_t r1, reg_id_t r2, uint32_t reads,
                       uint32_t writes, uint32_t site) {
  instr_t *hit = INSTR_CREATE_label(dc), *done = INSTR_CREATE_label(dc);
  find_entry(dc, bb, where, r1, r2);
  compare(dc, bb, where, r1, r2, 0);
  PUT(INSTR_CREATE_jcc(dc, OP_jbe_short, opnd_create_instr(hit)));
  call_stub(dc, bb, where, stub_for(dc, r1, r2, DR_REG_NULL, reads, writes), site);
  PUT(INSTR_CREATE_jmp_short(dc, opnd_create_instr(done)));
  PUT(hit);
  add_constant(dc, bb, where, r2, READS_AT, reads);
  add_constant(dc, bb, where, r2, WRITES_AT, writes);
  PUT(done);
}

/* One probe with the counts in register r3. */
static void probe_counted(void *dc, instrlist_t *bb, instr_t *where, reg_id_t r1, reg_id_t r2, reg_id_t r3,
                          uint32_t site) {
  instr_t *hit = INSTR_CREATE_label(dc), *done = INSTR_CREATE_label(dc);
  compare(dc, bb, where, r1, r2, 0);
  PUT(INSTR_CREATE_jcc(dc, OP_jbe_short, opnd_create_instr(hit)));
  call_stub(dc, bb, where, stub_for(dc, r1, r2, r3, 0, 0), site);
  PUT(INSTR_CREATE_jmp_short(dc, opnd_create_instr(done)));
  PUT(hit);
  PUT(INSTR_CREATE_add(dc, OPND_CREATE_MEMPTR(r2, READS_AT), REG(r3))); /* hi_counts: writes are in the high half */
  PUT(done);
}

/* Displacements above the lowest at which there is a first, a second and a third access. */
struct bitmaps {
  uint64_t reads[SAME_PLACE], writes[SAME_PLACE];
};

static void fill_bitmaps(struct bitmaps *m, const struct host_block *b, int window) {
  memset(m, 0, sizeof *m);
  for (int i = 0; i < b->n; i++) {
    const struct host_access *a = &b->accesses[i];
    if (a->window != window) continue;
    uint64_t bit = 1ull << (a->disp - b->windows[window].low);
    uint64_t *level = a->write ? m->writes : m->reads;
    while (*level & bit) level++;
    *level |= bit;
  }
}

/* total += number of bits of each level that remain after a left shift by r1; `fresh`: total is
 * not set yet */
static bool add_levels(void *dc, instrlist_t *bb, instr_t *where, const uint64_t *levels, reg_id_t r1, reg_id_t total,
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

/* The window misses or straddles two lines: counts the accesses to the first line, then the
 * others. On entry r1 = lowest address - tag of entry r2. */
static void split(void *dc, instrlist_t *bb, instr_t *where, const struct host_block *b, int window, reg_id_t r1,
                  reg_id_t r2, uint32_t site) {
  const struct host_window *w = &b->windows[window];
  struct bitmaps m;
  fill_bitmaps(&m, b, window);
  reg_id_t r3 = other_register(r1, r2, DR_REG_NULL), r4 = other_register(r1, r2, r3);
  instr_t *done = INSTR_CREATE_label(dc);
  PUT(INSTR_CREATE_add(dc, REG(r1), OPND_CREATE_MEMPTR(r2, 0)));
  PUT(XINST_CREATE_store(dc, host_slot(dc, SLOT_SAVE1), REG(r3)));
  PUT(XINST_CREATE_store(dc, host_slot(dc, SLOT_SAVE2), REG(r4)));
  PUT(XINST_CREATE_store(dc, host_slot(dc, SLOT_ADDRESS), REG(r1)));
  bool fresh = add_levels(dc, bb, where, m.writes, r1, r3, r4, true);
  if (!fresh) PUT(INSTR_CREATE_shl(dc, REG(r3), OPND_CREATE_INT8(32)));
  add_levels(dc, bb, where, m.reads, r1, r3, r4, fresh);
  PUT(XINST_CREATE_store(dc, host_slot(dc, SLOT_COUNTS), REG(r3)));
  probe_counted(dc, bb, where, r1, r2, r3, site);
  PUT(INSTR_CREATE_mov_imm(dc, REG(r3), OPND_CREATE_INT64((uint64_t)w->writes << 32 | w->reads)));
  PUT(INSTR_CREATE_sub(dc, REG(r3), host_slot(dc, SLOT_COUNTS)));
  PUT(INSTR_CREATE_jcc(dc, OP_jz, opnd_create_instr(done)));
  PUT(XINST_CREATE_load(dc, REG(r1), host_slot(dc, SLOT_ADDRESS)));
  PUT(INSTR_CREATE_add(dc, REG(r1), OPND_CREATE_INT8((int)(w->high - w->low))));
  find_entry(dc, bb, where, r1, r2);
  probe_counted(dc, bb, where, r1, r2, r3, site | HI_SITE_UPPER);
  PUT(done);
  PUT(XINST_CREATE_load(dc, REG(r3), host_slot(dc, SLOT_SAVE1)));
  PUT(XINST_CREATE_load(dc, REG(r4), host_slot(dc, SLOT_SAVE2)));
}

/* Counts all accesses of a window, just before its leader. */
void probe_window(void *dc, instrlist_t *bb, instr_t *where, struct host_block *b, int window, uint32_t site) {
  const struct host_window *w = &b->windows[window];
  const struct host_access *leader = &b->accesses[w->leader];
  reg_id_t r1, r2;
  if (drreg_reserve_aflags(dc, bb, where) != DRREG_SUCCESS ||
      drreg_reserve_register(dc, bb, where, NULL, &r1) != DRREG_SUCCESS ||
      drreg_reserve_register(dc, bb, where, NULL, &r2) != DRREG_SUCCESS)
    dr_abort();
  int span = (int)(w->high - w->low);
  int64_t shift = leader->key == KEY_ALONE ? 0 : w->low - leader->disp;
  if (probe_address(dc, bb, where, leader->operand, shift, r1, r2)) {
    if (span == 0 || leader->key == KEY_ABSOLUTE) {
      probe_line(dc, bb, where, r1, r2, w->reads, w->writes, site);
    } else {
      instr_t *apart = INSTR_CREATE_label(dc), *done = INSTR_CREATE_label(dc);
      find_entry(dc, bb, where, r1, r2);
      compare(dc, bb, where, r1, r2, span);
      PUT(INSTR_CREATE_jcc(dc, OP_ja, opnd_create_instr(apart)));
      add_constant(dc, bb, where, r2, READS_AT, w->reads);
      add_constant(dc, bb, where, r2, WRITES_AT, w->writes);
      PUT(INSTR_CREATE_jmp(dc, opnd_create_instr(done)));
      PUT(apart);
      split(dc, bb, where, b, window, r1, r2, site);
      PUT(done);
    }
  }
  drreg_unreserve_register(dc, bb, where, r1);
  drreg_unreserve_register(dc, bb, where, r2);
  drreg_unreserve_aflags(dc, bb, where);
}
