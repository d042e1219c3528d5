/* line_observation.h: line observations: which bytes of shared lines a thread accesses, and how
 * often.
 *
 * A hit is counted without its address. To observe further accesses to a shared line, its entry
 * is made stale: the thread's next access misses, so that its address is known. The line is
 * evicted and entered again, which credits the same communication events and counts the same
 * accesses. After an observed access the next one to the line is observed too, except in one of
 * HI_OBSERVE_CHAIN cases. The number of observations per slice is limited, for all threads
 * together, to keep the collector's work small. */
#ifndef HITHER_LINE_OBSERVATION_H
#define HITHER_LINE_OBSERVATION_H
#include "state.h"

#define HI_OBSERVE_CHAIN 16u
#define HI_OBSERVE_ALL 2048u /* per slice, divided among the threads */
#define HI_OBSERVE_MAX 512u  /* per slice and thread */
#define HI_OBSERVE_MIN 64u

/* Sets the thread's budget for a new slice. */
static inline void hi_observe_slice(struct hi_local *t) {
  uint32_t threads = __atomic_load_n(&hi_run.header->next_thread, __ATOMIC_RELAXED);
  uint32_t each = HI_OBSERVE_ALL / (threads | 1);
  t->observations_left = each > HI_OBSERVE_MAX ? HI_OBSERVE_MAX : each < HI_OBSERVE_MIN ? HI_OBSERVE_MIN : each;
}

/* Appends to the thread's ring; false when the ring is full. */
static inline bool hi_append_observation(struct hi_local *t, struct hi_observation observation) {
  struct hi_thread *shared = t->shared;
  uint32_t head = shared->observation_head;
  if (head - __atomic_load_n(&shared->observation_tail, __ATOMIC_ACQUIRE) >= HI_OBSERVATIONS) return false;
  hi_run.observations[(uint64_t)t->index * HI_OBSERVATIONS + (head & (HI_OBSERVATIONS - 1))] = observation;
  __atomic_store_n(&shared->observation_head, head + 1, __ATOMIC_RELEASE);
  return true;
}

/* Reports an access; true when the thread's next access to the line is to be observed too. */
static inline bool hi_observe(struct hi_local *t, struct hi_observation observation) {
  t->observations_left--;
  hi_append_observation(t, observation);
  return hi_random(t) % HI_OBSERVE_CHAIN != 0;
}

/* n accesses to a line that other threads used in the same slice. One in HI_SHARED_PERIOD is
 * reported, for a whole period; if the ring is full, with the next. The distance is random, with
 * the period as its mean: a program whose threads take turns evicts its lines in step, with as
 * many accesses each time, and one line would be credited with what another counted. */
static inline void hi_observe_shared(struct hi_local *t, uint32_t page, uint64_t line, uint64_t n) {
  t->shared_left -= (int64_t)n;
  if (HI_LIKELY(t->shared_left > 0)) return;
  int64_t left = t->shared_left;
  uint32_t kept = 0, most = UINT32_MAX - HI_SHARED_PERIOD;
  while (left <= 0 && kept < most) {
    left += 1 + hi_random(t) % (2 * HI_SHARED_PERIOD - 1);
    kept += HI_SHARED_PERIOD;
  }
  struct hi_observation count = {page, HI_SITE_NONE, (uint16_t)(line & (HI_PAGE_BYTES - 1)), HI_OBSERVED_COUNT, kept};
  if (hi_append_observation(t, count)) t->shared_left = left;
}
#endif
