/* reveal.h: which bytes of shared lines a thread touches, and how often it touches them.
 *
 * A hit is counted without its address. To see more of a line that is shared, its entry is
 * made stale, so that the thread's next access misses and tells its address: it leaves the
 * line and enters it again, which owes the same events and counts the same accesses. An
 * access revealed is followed by another in all but one of HI_REVEAL_CHAIN cases. A thread
 * may reveal so many in a slice that all together keep the collector little busy. */
#ifndef HITHER_REVEAL_H
#define HITHER_REVEAL_H
#include "state.h"

#define HI_REVEAL_CHAIN 16u
#define HI_REVEAL_ALL 512u  /* of all threads in a slice... */
#define HI_REVEAL_MOST 128u /* ...but so many at most of each */
#define HI_REVEAL_LEAST 16u

static inline void hi_reveal_slice(struct hi_local *t) {
  uint32_t threads = __atomic_load_n(&hi_run.header->next_thread, __ATOMIC_RELAXED);
  uint32_t each = HI_REVEAL_ALL / (threads | 1);
  t->reveals_left = each > HI_REVEAL_MOST ? HI_REVEAL_MOST : each < HI_REVEAL_LEAST ? HI_REVEAL_LEAST : each;
}

/* Appends to the thread's ring; false when the collector is behind. */
static inline bool hi_see(struct hi_local *t, struct hi_seen seen) {
  struct hi_thread *shared = t->shared;
  uint32_t head = shared->seen_head;
  if (head - __atomic_load_n(&shared->seen_tail, __ATOMIC_ACQUIRE) >= HI_SEEN) return false;
  hi_run.seen[(uint64_t)t->index * HI_SEEN + (head & (HI_SEEN - 1))] = seen;
  __atomic_store_n(&shared->seen_head, head + 1, __ATOMIC_RELEASE);
  return true;
}

/* Keeps an access; true when the thread's next one to the line is wanted too. */
static inline bool hi_reveal(struct hi_local *t, struct hi_seen seen) {
  t->reveals_left--;
  hi_see(t, seen);
  t->random = t->random * 1664525u + 1013904223u;
  return (t->random >> 16) % HI_REVEAL_CHAIN != 0;
}

/* n accesses to a line while others used it: keeps every HI_SHARED_PERIOD-th. One that
 * finds no room waits for the next. */
static inline void hi_see_shared(struct hi_local *t, uint32_t page, uint64_t line, uint64_t n) {
  t->shared_left -= (int64_t)n;
  if (HI_LIKELY(t->shared_left > 0)) return;
  uint64_t periods = 1 + (uint64_t)-t->shared_left / HI_SHARED_PERIOD;
  uint64_t kept = periods * HI_SHARED_PERIOD;
  uint32_t most = UINT32_MAX - (UINT32_MAX & (HI_SHARED_PERIOD - 1));
  if (kept > most) kept = most;
  struct hi_seen seen = {page, HI_SITE_NONE, (uint16_t)(line & (HI_PAGE_BYTES - 1)), HI_SEEN_COUNT, (uint32_t)kept};
  if (hi_see(t, seen)) t->shared_left += (int64_t)kept;
}
#endif
