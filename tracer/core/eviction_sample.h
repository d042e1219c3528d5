/* eviction_sample.h: which code accesses which data, see struct hi_sample.
 *
 * What an entry counts would all be credited to the code that entered the line, though other code
 * finds the line there, for a whole slice. So the accesses to some lines are looked at one by one
 * (an exact entry misses each time), until the slice ends or the line leaves the line cache: what
 * runs late in a slice has the same weight as what runs early. Samples of one line, site and object
 * are summed before they go to the ring. For lines with very many accesses one of the first is drawn,
 * and its site stands for the rest. */
#ifndef HITHER_EVICTION_SAMPLE_H
#define HITHER_EVICTION_SAMPLE_H
#include "state.h"

#define HI_DRAW_MEAN 8u     /* accesses looked at until one is drawn */
#define HI_HOT_SLICES 16u   /* that a line counts as one with many accesses, in the mean */
#define HI_DENSE_SLICES 16u /* the first, in which more lines are followed */

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

/* Adds to what is summed of the same, or makes room for it. */
static inline void hi_sum_sample(struct hi_local *t, struct hi_sample sample) {
  uint64_t key = sample.address ^ (uint64_t)sample.site << 32 ^ sample.object;
  uint32_t at = (uint32_t)(key * HI_HASH_MULTIPLIER >> 32) % HI_SAMPLE_SUMS;
  struct hi_sample *sum = &t->sample_sums[at];
  bool same = sum->address == sample.address && sum->site == sample.site && sum->object == sample.object;
  if (same && sum->weight == sample.weight && !(sum->reads >> 31) && !(sum->writes >> 31)) {
    sum->reads += sample.reads;
    sum->writes += sample.writes;
    return;
  }
  if (sum->weight) hi_take_sample(t, *sum);
  *sum = sample;
  t->sums_used[at / 64] |= 1ull << at % 64;
}

/* The slice ends: what is summed goes to the ring. */
static inline void hi_take_sums(struct hi_local *t) {
  for (uint32_t word = 0; word < HI_SAMPLE_SUMS / 64; word++)
    for (; t->sums_used[word]; t->sums_used[word] &= t->sums_used[word] - 1) {
      struct hi_sample *sum = &t->sample_sums[word * 64 + (uint32_t)__builtin_ctzll(t->sums_used[word])];
      hi_take_sample(t, *sum);
      sum->weight = 0;
    }
}

static inline uint32_t hi_samples_waiting(const struct hi_local *t) {
  const struct hi_thread *shared = t->shared;
  return (uint32_t)(shared->sample_head - __atomic_load_n(&shared->sample_tail, __ATOMIC_RELAXED));
}

static inline uint32_t hi_at_density(uint32_t number, uint32_t density) { return number >> 2 * density; }

/* A short run would follow too few lines: in the first slices they are more, while the ring has room. */
static inline uint32_t hi_choose_density(const struct hi_local *t) {
  if (HI_LIKELY(t->epoch > HI_DENSE_SLICES)) return 0;
  uint32_t waiting = hi_samples_waiting(t);
  if (waiting >= HI_SAMPLES / 4 * 3) return 0;
  return t->epoch > HI_DENSE_SLICES / 4 || waiting >= HI_SAMPLES / 2 ? 1 : 2;
}

/* Draws how many lines are entered until the next is followed. The distance is random, with the
 * period as its mean, so that a loop in step with the period is not sampled more often than
 * others. */
static inline void hi_next_sample(struct hi_local *t) {
  t->sample_density = hi_choose_density(t);
  uint32_t period = hi_at_density(HI_SAMPLE_PERIOD, t->sample_density);
  t->sample_left = period / 2 + hi_random(t) % (period + 1);
}

/* The same as the thread starts, somewhere in such a distance: each line has the same chance, also
 * the first ones. The longer a distance is the more lines are in it. */
static inline void hi_first_sample(struct hi_local *t) {
  do hi_next_sample(t);
  while (hi_random(t) % (2 * HI_SAMPLE_PERIOD) >= t->sample_left);
  t->sample_left = 1 + hi_random(t) % t->sample_left;
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
  uint64_t density = t->sample_density;
  hi_next_sample(t);
  return HI_EXACT | HI_FOLLOWED | density << HI_DENSITY_SHIFT;
}

/* Whether an exact entry goes on at an access of `site` to `object`, or ends. */
static inline bool hi_sample_goes_on(struct hi_local *t, uint64_t tag, const struct hi_side *s, uint32_t site,
                                     uint32_t object) {
  if (tag & HI_FOLLOWED) return hi_side_site(s) == site && hi_side_object(s) == object;
  return !(tag & HI_DRAW) || hi_random(t) % HI_DRAW_MEAN;
}

static inline uint32_t hi_density(uint64_t tag) { return (tag & HI_DENSITY) >> HI_DENSITY_SHIFT; }

/* The same flags for an entry that goes on under another site, or after it was stale. Lines whose
 * sites are too many for the sums fill the ring: then they are given up, before samples are lost. */
static inline uint64_t hi_continue_sample(const struct hi_local *t, uint64_t tag) {
  if (!(tag & HI_FOLLOWED) || hi_samples_waiting(t) > HI_SAMPLES / 2) return 0;
  return tag & (HI_EXACT | HI_FOLLOWED | HI_DENSITY);
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
  if (tag & HI_FOLLOWED) {
    sample.weight = hi_at_density(HI_SAMPLE_PERIOD, hi_density(tag));
    if (large) sample.weight = sample.weight * HI_SAMPLE_LARGE / n;
  } else if (!known) return;
  if (sample.weight) hi_sum_sample(t, sample);
}
#endif
