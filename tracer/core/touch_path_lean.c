/* touch_path_lean.c: the calls that led to the first touch of a page.
 *
 * A loop touches page after page from one place: callers are looked for when a place is new, afterwards only the
 * words that were found are compared. */
#include "state.h"

#define STACK_WORDS 512 /* searched for return addresses where there are no tables: 4 KiB */
#define PATHS 4096u
#define TRIES 32 /* paths that are told apart for one site */
#define LARGEST_STACK (1ull << 30)

/* A path from `site`. state is written last. */
enum { PATH_FREE, PATH_WRITING, PATH_VALID };
static struct path {
  uint32_t state, site, number;
  uint16_t at[HI_TOUCH_FRAMES]; /* words above the stack pointer, from 1; 0: none */
  uint64_t frames[HI_TOUCH_FRAMES];
} paths[PATHS];

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

/* Enters the path in a slot that the caller has claimed. */
static uint32_t enter(const struct hi_local *t, struct path *p, uint32_t site, const struct stack *s) {
  /* That of another process, whose file may lie elsewhere, is in no code here. The access has not been made. */
  uint64_t pc = hi_run.sites[site].pc + 1;
  struct hi_frame frame = {pc, s->pointer, *t->frame_pointer, true};
  struct hi_stack stack = {read_word, s, s->pointer + STACK_WORDS * sizeof(uint64_t)};
  hi_find_callers(frame, &stack, HI_TOUCH_FRAMES, p->frames, p->at);
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
