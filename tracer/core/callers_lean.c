/* callers_lean.c: the calls that led to a place in the program.
 *
 * By the unwind tables of the program's files; where there are none, words on the stack that look like return
 * addresses are taken for them. */
#include "state.h"

/* Call instructions, by their first byte, and by the reg field of the second for CALL_INDIRECT. */
enum { CALL_NEAR = 0xe8, CALL_NEAR_BYTES = 5, CALL_INDIRECT = 0xff, CALL_INDIRECT_REG = 2, LONGEST_CALL = 7 };

struct hi_code_range hi_code_ranges[HI_CODE_RANGES];

/* Whether there is a call instruction just before `pc`, in the code of a file that is loaded. */
bool hi_follows_call(uint64_t pc) {
  for (uint32_t i = 0; i < HI_CODE_RANGES && hi_code_ranges[i].start; i++) {
    uint64_t start = __atomic_load_n(&hi_code_ranges[i].start, __ATOMIC_RELAXED);
    if (pc < start + LONGEST_CALL || pc >= __atomic_load_n(&hi_code_ranges[i].end, __ATOMIC_ACQUIRE)) continue;
    const uint8_t *code = (const uint8_t *)(pc - LONGEST_CALL);
    if (code[LONGEST_CALL - CALL_NEAR_BYTES] == CALL_NEAR) return true;
    for (int at = 0; at + 2 <= LONGEST_CALL; at++)
      if (code[at] == CALL_INDIRECT && ((code[at + 1] >> 3) & 7) == CALL_INDIRECT_REG) return true;
    return false;
  }
  return false;
}

/* Makes a frame without tables its caller: that of the next word that looks like a return address. It may have been
 * left there by an earlier call. */
static bool find_return_address(struct hi_frame *f, const struct hi_stack *s) {
  uint64_t word;
  for (uint64_t at = f->sp; at < s->search_end && s->read(s->of, at, &word); at += sizeof word)
    if (hi_follows_call(word)) {
      *f = (struct hi_frame){.pc = word, .sp = at + sizeof word};
      return true;
    }
  return false;
}

/* Up to `most` callers of a frame, innermost first: their return addresses, and where these lie, in words above the
 * frame's stack pointer, from 1. What is not found stays as it was. */
void hi_find_callers(struct hi_frame f, const struct hi_stack *s, uint32_t most, uint64_t *pc, uint16_t *at) {
  uint64_t base = f.sp;
  for (uint32_t found = 0; found < most; found++) {
    enum hi_unwound to = hi_unwind(&f, s->read, s->of);
    if (to == HI_UNWIND_OUTERMOST || (to == HI_UNWIND_CALLER && !hi_follows_call(f.pc))) return;
    if (to == HI_UNWIND_UNKNOWN && !find_return_address(&f, s)) return;
    uint64_t words = (f.sp - base) / sizeof(uint64_t);
    if (words > UINT16_MAX) return;
    pc[found] = f.pc;
    at[found] = (uint16_t)words;
  }
}
