/* touch_path_lean.c: the calls that led to the first touch of a page.
 *
 * The words on the stack that look like return addresses are taken for the callers, as for heap
 * blocks (dynamorio/alloc.c). A loop touches page after page from one place: the stack is searched
 * when a place is new, afterwards only the words that were found are compared. */
#include "state.h"

#define STACK_WORDS 512 /* searched for return addresses: 4 KiB */
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
static bool follows_call(uint64_t pc) {
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

/* How many words may be read from the stack pointer on: to the end of its page, and further where
 * its stack is known and the pages have been used. */
static uint32_t readable_words(const struct hi_local *t, uint64_t stack_pointer) {
  uint64_t end = (stack_pointer | (HI_PAGE_BYTES - 1)) + 1;
  uint64_t top = end_of_stack(t, stack_pointer);
  uint64_t most = stack_pointer + STACK_WORDS * sizeof(uint64_t);
  while (end < most && end < top && hi_run.pagemap[end >> HI_PAGE_SHIFT]) end += HI_PAGE_BYTES;
  return (uint32_t)(((end < most ? end : most) - stack_pointer) / sizeof(uint64_t));
}

static bool matches(const struct path *p, const uint64_t *words, uint32_t n) {
  for (uint32_t i = 0; i < HI_TOUCH_FRAMES && p->at[i]; i++)
    if (p->at[i] > n || words[p->at[i] - 1] != p->frames[i]) return false;
  return true;
}

/* Enters the path in a slot that the caller has claimed. */
static uint32_t enter(struct path *p, uint32_t site, const uint64_t *words, uint32_t n) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < n && found < HI_TOUCH_FRAMES; i++)
    if (follows_call(words[i])) {
      p->frames[found] = words[i];
      p->at[found++] = (uint16_t)(i + 1);
    }
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
  uint64_t stack_pointer = (*t->stack_pointer + HI_STUB_STACK + 7) & ~7ull;
  if (!*t->stack_pointer || site == HI_SITE_NONE) return HI_SITE_NONE;
  const uint64_t *words = (const uint64_t *)stack_pointer;
  uint32_t n = readable_words(t, stack_pointer);
  uint64_t hash = site * HI_HASH_MULTIPLIER >> 32;
  for (uint32_t i = 0; i < TRIES; i++) {
    struct path *p = &paths[(hash + i) & (PATHS - 1)];
    uint32_t state = __atomic_load_n(&p->state, __ATOMIC_ACQUIRE);
    if (state == PATH_FREE &&
        __atomic_compare_exchange_n(&p->state, &state, PATH_WRITING, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
      return enter(p, site, words, n);
    if (state == PATH_VALID && p->site == site && matches(p, words, n)) return p->number;
  }
  return HI_SITE_NONE;
}
