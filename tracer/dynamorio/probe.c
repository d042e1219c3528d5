/* probe.c: the inline code that counts a window of accesses in the thread's line cache.
 *
 *     lea  r1, [lowest address]
 *     rorx r2, r1, fold ; xor r2, r1 ; shr r2, line_log2 - 4
 *     and  r2d, mask ; or r2, gs:[base]                                  r2 = entry
 *     sub  r1, [r2]              ; cmp r1, line - 1 - span               all of the window in this line?
 *     jbe  hit
 *     (miss or straddle: calls a stub, of stub.c or split.c)
 *   hit:
 *     add  dword [r2+8], reads   ; add dword [r2+12], writes */
#include "host.h"

enum { CPUID_EXTENDED_FEATURES = 7, CPUID_EBX_BMI2 = 8 }; /* leaf, bit */
enum { ENTRY_LOG2 = 4, READS_AT = offsetof(struct hi_entry, reads), WRITES_AT = offsetof(struct hi_entry, writes) };
enum { CALL_BYTES = 5 + 5 + 5 + 2 }; /* of the call of a stub: lea, call, test, jmp */
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
void probe_find_entry(struct raw_code *c, reg_id_t r1, reg_id_t r2) {
  if (has_bmi2) {
    raw_rorx(c, r2, r1, HI_FOLD);
  } else {
    raw_registers(c, RAW_MOV, r2, r1);
    raw_shr(c, r2, HI_FOLD);
  }
  raw_registers(c, RAW_XOR, r2, r1);
  raw_shr(c, r2, (uint8_t)(hi_run.line_log2 - ENTRY_LOG2));
  raw_and_32(c, r2, hi_run.index_mask << ENTRY_LOG2);
  raw_or_slot(c, r2, SLOT_BASE); /* which may have bits of the mask set: hi_window */
}

/* "Below or equal" if the bytes from r1 to r1 + span are in the line of entry r2. */
void probe_compare(struct raw_code *c, reg_id_t r1, reg_id_t r2, int span) {
  raw_sub_memory(c, r1, r2);
  raw_cmp(c, r1, (1 << hi_run.line_log2) - 1 - span);
}

/* Calls a stub for a site. */
void probe_call(void *dc, instrlist_t *bb, instr_t *where, byte *stub, uint32_t site) {
  struct raw_code test = {.n = 0};
  stub_insert_call(dc, bb, where, stub);
  raw_test_eax(&test, site);
  PUT(raw_instruction(dc, &test));
}

/* The whole probe; r1 = lowest address. */
static void insert_probe(void *dc, instrlist_t *bb, instr_t *where, struct host_block *b, int window, int span,
                         reg_id_t r1, reg_id_t r2, uint32_t site) {
  const struct host_window *w = &b->windows[window];
  struct raw_code find = {.n = 0}, count = {.n = 0}, slow = {.n = 0};
  probe_find_entry(&find, r1, r2);
  probe_compare(&find, r1, r2, span);
  if (w->reads) raw_add_to_memory(&count, r2, READS_AT, w->reads);
  if (w->writes) raw_add_to_memory(&count, r2, WRITES_AT, w->writes);
  byte *stub = span == 0 ? stub_for(dc, r1, r2, DR_REG_NULL, w->reads, w->writes) : split_stub(dc, b, window, r1, r2);
  if (stub) {
    raw_jump(&find, RAW_JBE, CALL_BYTES);
    raw_lower_stack_pointer(&find);
    PUT(raw_instruction(dc, &find));
    PUT(INSTR_CREATE_call(dc, opnd_create_pc(stub)));
    raw_test_eax(&slow, site);
    raw_jump(&slow, RAW_JMP, count.n);
    for (uint32_t i = 0; i < count.n; i++) raw_byte(&slow, count.bytes[i]);
    PUT(raw_instruction(dc, &slow));
  } else {
    instr_t *hit = INSTR_CREATE_label(dc), *done = INSTR_CREATE_label(dc);
    PUT(raw_instruction(dc, &find));
    PUT(INSTR_CREATE_jcc(dc, OP_jbe, opnd_create_instr(hit)));
    split_insert(dc, bb, where, b, window, r1, r2, site);
    PUT(INSTR_CREATE_jmp_short(dc, opnd_create_instr(done)));
    PUT(hit);
    PUT(raw_instruction(dc, &count));
    PUT(done);
  }
}

/* Counts all accesses of a window, just before its leader. */
void probe_window(void *dc, instrlist_t *bb, instr_t *where, struct host_block *b, int window, uint32_t site) {
  const struct host_window *w = &b->windows[window];
  const struct host_access *leader = &b->accesses[w->leader];
  reg_id_t r1, r2;
  if (drreg_reserve_aflags(dc, bb, where) != DRREG_SUCCESS ||
      drreg_reserve_register(dc, bb, where, &host_registers, &r1) != DRREG_SUCCESS ||
      drreg_reserve_register(dc, bb, where, &host_registers, &r2) != DRREG_SUCCESS)
    dr_abort();
  int span = leader->key == KEY_ABSOLUTE ? 0 : (int)(w->high - w->low); /* one line, if the addresses are known */
  int64_t shift = leader->key == KEY_ALONE ? 0 : w->low - leader->disp;
  if (probe_address(dc, bb, where, leader->operand, shift, r1, r2))
    insert_probe(dc, bb, where, b, window, span, r1, r2, site);
  drreg_unreserve_register(dc, bb, where, r1);
  drreg_unreserve_register(dc, bb, where, r2);
  drreg_unreserve_aflags(dc, bb, where);
}
