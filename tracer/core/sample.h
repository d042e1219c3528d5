/* sample.h: evictions kept with the place in the code that caused them, see hi_sample. */
#ifndef HITHER_SAMPLE_H
#define HITHER_SAMPLE_H
#include "state.h"

/* Appends to the thread's ring, unless the collector is behind. */
static inline void hi_take_sample(struct hi_local *t, struct hi_sample sample) {
  struct hi_thread *shared = t->shared;
  uint64_t head = shared->sample_head;
  if (head - __atomic_load_n(&shared->sample_tail, __ATOMIC_ACQUIRE) >= HI_SAMPLES) {
    shared->lost_samples++;
    return;
  }
  hi_run.samples[(uint64_t)t->index * HI_SAMPLES + (head & (HI_SAMPLES - 1))] = sample;
  __atomic_store_n(&shared->sample_head, head + 1, __ATOMIC_RELEASE);
}

/* Takes one that stands for a period of others, and draws when the next is due: the mean
 * is the period, so that loops in step with it are not favoured. */
static inline void hi_sample_due(struct hi_local *t, struct hi_sample sample) {
  t->random = t->random * 1664525u + 1013904223u;
  t->sample_left = 1 + (t->random >> 16) % (2 * HI_SAMPLE_PERIOD - 1);
  sample.weight = HI_SAMPLE_PERIOD;
  hi_take_sample(t, sample);
}
#endif
