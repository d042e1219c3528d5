/* credit.h: credits communication events to the threads with which the accesses of an evicted
 * entry shared the line, see struct hi_side. */
#ifndef HITHER_CREDIT_H
#define HITHER_CREDIT_H
#include "state.h"

/* Adds sixths of an event to the cell of thread `other`; marks the cell's group as changed. */
static inline void hi_owe(struct hi_local *t, uint32_t other, uint64_t sixths) {
  if (other == 0 || other >= HI_MAX_THREADS || sixths == 0) return;
  t->comm[other] += sixths;
  uint64_t *dirty = &t->shared->comm_dirty[t->epoch & 1];
  uint64_t bit = 1ull << (other / 64 % 64);
  if (!(*dirty & bit)) __atomic_or_fetch(dirty, bit, __ATOMIC_RELAXED);
}

/* The accesses from the second on, where other threads joined the line in between. */
static inline void hi_credit_joined(struct hi_local *t, const struct hi_side *s, uint64_t n) {
  uint32_t x = s->x, z1 = s->z1, z2 = s->z2;
  uint64_t p1 = s->s1 < 1 ? 1 : s->s1 > n ? n : s->s1;
  uint64_t p2 = n;
  if (z2) p2 = s->s2 < p1 ? p1 : s->s2 > n ? n : s->s2;
  uint64_t second = (p2 - p1) * HI_COMM_UNIT, third = (n - p2) * HI_COMM_UNIT;
  hi_owe(t, x, (p1 - 1) * HI_COMM_UNIT);
  hi_owe(t, z1, second);
  hi_owe(t, z2, third);
}

/* Credits the n accesses that an entry counted. */
static inline void hi_credit(struct hi_local *t, const struct hi_side *s, uint64_t n) {
  if (HI_LIKELY(!(s->x | s->y | s->z1))) return;
  hi_owe(t, s->x, HI_COMM_UNIT);
  hi_owe(t, s->y, HI_COMM_UNIT);
  if (n <= 1) return;
  if (s->z1) hi_credit_joined(t, s, n);
  else hi_owe(t, s->x, (n - 1) * HI_COMM_UNIT);
}
#endif
