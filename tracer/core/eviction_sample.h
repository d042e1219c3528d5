/* eviction_sample.h: eviction samples: some evicted entries are kept with the code site that
 * entered the line, see struct hi_sample. */
#ifndef HITHER_EVICTION_SAMPLE_H
#define HITHER_EVICTION_SAMPLE_H
#include "state.h"

/* Appends to the thread's ring; if the ring is full the sample is counted as lost. */
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

/* Takes a sample that stands for HI_SAMPLE_PERIOD evictions and draws the distance to the next.
 * The distance is random, with the period as its mean, so that a loop in step with the period
 * is not sampled more often than others. */
static inline void hi_sample_due(struct hi_local *t, struct hi_sample sample) {
  t->sample_left = 1 + hi_random(t) % (2 * HI_SAMPLE_PERIOD - 1);
  sample.weight = HI_SAMPLE_PERIOD;
  hi_take_sample(t, sample);
}
#endif
