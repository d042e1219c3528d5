/* credit.h: credits communication events to the threads with which the accesses of an evicted
 * entry shared the line, see struct hi_side. */
#ifndef HITHER_CREDIT_H
#define HITHER_CREDIT_H
#include "line_users.h"

/* Adds events to the cell of thread `other`; marks the cell's group as changed. */
static inline void hi_owe(struct hi_local *t, uint32_t other, uint64_t events) {
  if (other == 0 || other >= HI_MAX_THREADS || events == 0) return;
  t->comm[other] += events;
  uint64_t *dirty = &t->shared->comm_dirty[t->epoch & 1];
  uint64_t bit = 1ull << (other / 64 % 64);
  if (!(*dirty & bit)) __atomic_or_fetch(dirty, bit, __ATOMIC_RELAXED);
}

/* Credits the n accesses that an entry counted. */
static inline void hi_credit(struct hi_local *t, const struct hi_side *s, uint64_t n) {
  if (HI_LIKELY(!(s->others | s->z1))) return;
  for (uint32_t other, i = 0; (other = hi_other(t, s, i)); i++) hi_owe(t, other, n);
  if (s->z1 && s->s1 < n) hi_owe(t, s->z1, n - s->s1);
  if (s->z2 && s->s2 < n) hi_owe(t, s->z2, n - s->s2);
}
#endif
