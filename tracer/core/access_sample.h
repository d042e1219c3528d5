/* access_sample.h: which code accesses which data, see struct hi_sample.
 *
 * A hit is counted without its code site. So now and then a thread looks at its accesses: for a while the
 * inline code is given a line cache in which there is nothing, so that each access misses, and hi_miss
 * counts it where it belongs. Some of the accesses of a look are drawn. They stand for all of the
 * instructions that the thread has executed since the look before.
 *
 * When a look is due, the inline code takes the line cache away by itself (dynamorio/insert.c): it begins after
 * so many instructions, wherever these are. */
#ifndef HITHER_ACCESS_SAMPLE_H
#define HITHER_ACCESS_SAMPLE_H
#include "object_map.h"

/* All in instructions of the thread. */
#define HI_LOOK_PERIOD 200000u     /* from look to look, in the mean... */
#define HI_LOOK_PERIOD_SHORT 8000u /* ...and at first, so that short runs have enough... */
#define HI_LOOK_GROWTH 256u        /* ...and which part of it the next is longer */
#define HI_LOOK_SHARE 400u         /* of so many instructions one is in a look... */
#define HI_LOOK_SHORTEST 64u       /* ...and how many are at least: a basic block has few more */
#define HI_LOOK_DRAWN 8u           /* accesses that are drawn in a look, if each instruction has one */
#define HI_LOOK_MOST (1u << 22)    /* accesses that one stands for; a site may have a hundred */

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
  if (same && sum->weight && !(sum->reads >> 31) && !(sum->writes >> 31)) {
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

static inline uint64_t hi_executed(const struct hi_local *t) { return t->instructions[0] & ~HI_COUNT_RECORDING; }

/* Another thread may move this one on to the next slice at any time: then there is no look. */
static inline bool hi_change_base(struct hi_local *t, const void *from, const void *to) {
  uint64_t base = (uint64_t)from;
  return __atomic_compare_exchange_n(t->base_slot, &base, (uint64_t)to, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static inline bool hi_is_looking(const struct hi_local *t) { return *t->base_slot == (uint64_t)hi_run.nothing; }

static inline void hi_end_look(struct hi_local *t) {
  t->looks = false;
  hi_change_base(t, hi_run.nothing, t->current);
}

/* A look is due. */
static inline void hi_begin_look(struct hi_local *t) {
  uint64_t executed = hi_executed(t), weight = 1 + (executed - t->looked) / HI_LOOK_DRAWN;
  uint64_t wait = t->look_period / 2 + ((uint64_t)t->look_period * hi_random(t) >> 16);
  t->instructions[HI_LOOK_COUNTER] = t->index ? -wait : HI_NO_LOOK;
  if (t->shared->flipped) { /* to which the inline code paid no heed */
    hi_change_base(t, hi_run.nothing, t->current == t->entries[0] ? t->entries[1] : t->entries[0]);
    return;
  }
  if (!hi_counting(t)) {
    hi_end_look(t);
    return;
  }
  t->look_weight = weight < HI_LOOK_MOST ? (uint32_t)weight : HI_LOOK_MOST;
  t->look_length = HI_LOOK_SHORTEST + t->look_period / HI_LOOK_SHARE;
  t->looks = true;
  t->looked = executed;
  if (t->look_period < HI_LOOK_PERIOD) t->look_period += t->look_period / HI_LOOK_GROWTH;
}

/* A slice begins. What was executed outside of traced slices counts for nothing. */
static inline void hi_look_in_slice(struct hi_local *t) {
  hi_end_look(t);
  t->looked = hi_executed(t);
}
#endif
