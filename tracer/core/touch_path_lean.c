/* touch_path_lean.c: the calls that led to the first touch of a page.
 *
 * Callers are found by the unwind tables of the program's files; where there are none, words on the stack that look
 * like return addresses are taken for them, as for heap blocks (dynamorio/alloc.c). A loop touches page after page
 * from one place: callers are looked for when a place is new, afterwards only the words that were found are
 * compared. */
#include "state.h"

#define STACK_WORDS 512       /* searched for return addresses where there are no tables: 4 KiB */
#define FARTHEST_FRAME 65535u /* words above the stack pointer */
#define PATHS 4096u
#define TRIES 32 /* paths that are told apart for one site */
#define LARGEST_STACK (1ull << 30)

/* Call instructions, by their first byte, and by the reg field of the second for CALL_INDIRECT. */
enum { CALL_NEAR = 0xe8, CALL_NEAR_BYTES = 5, CALL_INDIRECT = 0xff, CALL_INDIRECT_REG = 2, LONGEST_CALL = 7 };

struct hi_code_range hi_code_ranges[HI_CODE_RANGES];

/* A path from `site`. state is written last. */
enum { PATH_FREE, PATH_WRITING, PATH_VALID };
static struct path {
  uint32_t state, site, number;
  uint16_t at[HI_TOUCH_FRAMES]; /* words above the stack pointer, from 1; 0: none */
  uint64_t frames[HI_TOUCH_FRAMES];
} paths[PATHS];

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

/* Where the stack ends that the stack pointer is in: the main one, or that of the thread; 0: another one. */
static uint64_t end_of_stack(const struct hi_local *t, uint64_t stack_pointer) {
  if (stack_pointer < hi_run.stack_top && stack_pointer >= hi_run.stack_limit) return hi_run.stack_top;
  uint64_t top = t->shared->stack_pointer; /* when the thread began */
  return stack_pointer < top && top - stack_pointer < LARGEST_STACK ? top : 0;
}

/* The words above a stack pointer. */
struct stack {
  uint64_t pointer, page_end; /* that of its page */
  uint64_t top;               /* 0: not known */
};

/* Those on its page, and on others that have been used where its stack is known. */
static bool read_word(const void *stack, uint64_t address, uint64_t *word) {
  const struct stack *s = stack;
  bool near = address < s->page_end;
  if (address < s->pointer || address % sizeof *word) return false;
  if (!near && (address >= s->top || !hi_run.pagemap[address >> HI_PAGE_SHIFT])) return false;
  *word = *(const uint64_t *)address;
  return true;
}

static bool matches(const struct path *p, const struct stack *s) {
  uint64_t word;
  for (uint32_t i = 0; i < HI_TOUCH_FRAMES && p->at[i]; i++)
    if (!read_word(s, s->pointer + (p->at[i] - 1) * sizeof word, &word) || word != p->frames[i]) return false;
  return true;
}

/* Makes a frame without tables its caller. */
static bool find_return_address(const struct stack *s, struct hi_frame *f) {
  uint64_t word, end = s->pointer + STACK_WORDS * sizeof word;
  for (uint64_t at = f->sp; at < end && read_word(s, at, &word); at += sizeof word)
    if (hi_follows_call(word)) {
      *f = (struct hi_frame){.pc = word, .sp = at + sizeof word};
      return true;
    }
  return false;
}

static void find_frames(struct path *p, const struct stack *s, struct hi_frame f) {
  for (uint32_t found = 0; found < HI_TOUCH_FRAMES; found++) {
    enum hi_unwound to = hi_unwind(&f, read_word, s);
    if (to == HI_UNWIND_OUTERMOST || (to == HI_UNWIND_CALLER && !hi_follows_call(f.pc))) return;
    if (to == HI_UNWIND_UNKNOWN && !find_return_address(s, &f)) return;
    uint64_t at = (f.sp - s->pointer) / sizeof(uint64_t);
    if (at > FARTHEST_FRAME) return;
    p->frames[found] = f.pc;
    p->at[found] = (uint16_t)at;
  }
}

/* Enters the path in a slot that the caller has claimed. */
static uint32_t enter(const struct hi_local *t, struct path *p, uint32_t site, const struct stack *s) {
  /* That of another process, whose file may lie elsewhere, is in no code here. The access has not been made. */
  uint64_t pc = hi_run.sites[site].pc + 1;
  find_frames(p, s, (struct hi_frame){pc, s->pointer, *t->frame_pointer, true});
  const uint64_t *f = p->frames;
  p->site = site;
  p->number = hi_site_new((struct hi_site){
      .pc = f[0], .kind = HI_SITE_PATH, .reads = {f[1], f[2]}, .writes = {f[3], f[4]}, .caller = f[5]});
  __atomic_store_n(&p->state, PATH_VALID, __ATOMIC_RELEASE);
  return p->number;
}

/* The number of the calls that lead to an access of `site` now; HI_SITE_NONE when there is no room
 * for another path. */
uint32_t hi_touch_path(const struct hi_local *t, uint32_t site) {
  uint64_t pointer = *t->stack_pointer + HI_STUB_STACK;
  if (!*t->stack_pointer || pointer % sizeof(uint64_t) || site == HI_SITE_NONE) return HI_SITE_NONE;
  struct stack s = {pointer, (pointer | (HI_PAGE_BYTES - 1)) + 1, end_of_stack(t, pointer)};
  uint64_t hash = site * HI_HASH_MULTIPLIER >> 32;
  for (uint32_t i = 0; i < TRIES; i++) {
    struct path *p = &paths[(hash + i) & (PATHS - 1)];
    uint32_t state = __atomic_load_n(&p->state, __ATOMIC_ACQUIRE);
    if (state == PATH_FREE &&
        __atomic_compare_exchange_n(&p->state, &state, PATH_WRITING, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
      return enter(t, p, site, &s);
    if (state == PATH_VALID && p->site == site && matches(p, &s)) return p->number;
  }
  return HI_SITE_NONE;
}
