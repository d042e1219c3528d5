/* eviction_sample.h: which code accesses which data, see struct hi_sample.
 *
 * What an entry counts would all be credited to the code that entered the line, though other code
 * finds the line there, for a whole slice. So the accesses to some lines are looked at one by one
 * (an exact entry misses each time), for as long as they stay. That would be dear for lines with
 * very many: for these one access of the first is drawn, and its site stands for the rest. */
#ifndef HITHER_EVICTION_SAMPLE_H
#define HITHER_EVICTION_SAMPLE_H
#include "state.h"

#define HI_DRAW_MEAN 8u     /* accesses looked at until one is drawn */
#define HI_HOT_SLICES 16u   /* that a line counts as one with many accesses, in the mean */
#define HI_MEAN_PIECES 256u /* of a line that is followed: changes of its site */

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

/* Draws how many lines are entered until the next is followed. The distance is random, with the
 * period as its mean, so that a loop in step with the period is not sampled more often than
 * others. */
static inline void hi_next_sample(struct hi_local *t) {
  t->sample_left = 1 + hi_random(t) % (2 * HI_SAMPLE_PERIOD - 1);
}

static inline uint64_t *hi_hot_slot(struct hi_local *t, uint64_t line) {
  return &t->hot[line * HI_HASH_MULTIPLIER >> 58];
}

/* How the accesses to a line that is entered are credited to code sites: flags for its tag. */
static inline uint64_t hi_choose_sample(struct hi_local *t, uint64_t line) {
  uint64_t *hot = hi_hot_slot(t, line);
  if (HI_UNLIKELY(*hot == line)) {
    if (!(hi_random(t) % HI_HOT_SLICES)) *hot = 0; /* it need not be any more */
    else return hi_random(t) % HI_DRAW_MEAN ? HI_EXACT | HI_DRAW : 0;
  }
  if (HI_LIKELY(--t->sample_left)) return 0;
  hi_next_sample(t);
  return HI_EXACT | HI_FOLLOWED;
}

/* Whether an exact entry goes on at an access of `site` to `object`, or ends. */
static inline bool hi_sample_goes_on(struct hi_local *t, uint64_t tag, const struct hi_side *s, uint32_t site,
                                     uint32_t object) {
  if (tag & HI_FOLLOWED) return hi_side_site(s) == site && hi_side_object(s) == object;
  return !(tag & HI_DRAW) || hi_random(t) % HI_DRAW_MEAN;
}

/* The same flags for an entry that goes on under another site, or after it was stale. */
static inline uint64_t hi_continue_sample(struct hi_local *t, uint64_t tag) {
  return tag & HI_FOLLOWED && hi_random(t) % HI_MEAN_PIECES ? HI_EXACT | HI_FOLLOWED : 0;
}

/* Samples the n accesses of an entry that is evicted, if they are to be. A line that turns out to
 * have very many is known as such from now on; the code that entered it need not be that which made
 * them, so this time it is not sampled. One that is followed then has less weight, lest it outweigh
 * all others. */
static inline void hi_sample_evicted(struct hi_local *t, uint64_t tag, uint64_t n, struct hi_sample sample) {
  bool large = n >= HI_SAMPLE_LARGE;
  if (HI_LIKELY(!large && !(tag & HI_FOLLOWED))) return;
  uint64_t line = tag & HI_TAG_LINE, *hot = hi_hot_slot(t, line);
  bool known = *hot == line;
  if (large) *hot = line;
  if (tag & HI_FOLLOWED) sample.weight = large ? HI_SAMPLE_PERIOD * HI_SAMPLE_LARGE / n : HI_SAMPLE_PERIOD;
  else if (!known) return;
  if (sample.weight) hi_take_sample(t, sample);
}
#endif
