/* access_sample.h: which code accesses which data, see struct hi_sample.
 *
 * A hit is counted without its code site. So now and then a basic block is sampled: for its length the inline code
 * is given a line cache in which there is nothing, so that each access misses, and hi_miss counts it where it
 * belongs. One of these accesses becomes a sample, and stands for as many as the block had, and for all of the
 * instructions that the thread has executed since the sampled block before.
 *
 * When one is due, the inline code takes the line cache away by itself (dynamorio/insert.c). It does so where the
 * block is counted, and what is executed until the next block is counted belongs to it: a block of n instructions is
 * n times as likely to be the one as a block of one, and each of its instructions stands for an n-th of them.
 *
 * String instructions access many lines, and are seldom executed: of these each line is as likely to be drawn. */
#ifndef HITHER_ACCESS_SAMPLE_H
#define HITHER_ACCESS_SAMPLE_H
#include "object_map.h"

/* All in instructions of the thread. */
#define HI_BLOCK_PERIOD 25000u      /* from one sampled block to the next, in the mean... */
#define HI_BLOCK_PERIOD_SHORT 1000u /* ...and at first, so that short runs have enough... */
#define HI_BLOCK_GROWTH 512u        /* ...and which part of it the next is longer */
#define HI_STRING_LINES 32u         /* of a string instruction, for which there are as many samples as for one more */
#define HI_WEIGHT_MOST (1u << 22)   /* accesses that one stands for; a site may have a hundred */

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
  uint64_t key = sample.address ^ (uint64_t)(sample.site + (uint32_t)sample.after) << 32 ^ sample.object;
  uint32_t at = (uint32_t)(key * HI_HASH_MULTIPLIER >> 32) % HI_SAMPLE_SUMS;
  struct hi_sample *sum = &t->sample_sums[at];
  bool used = t->sums_used[at / 64] >> at % 64 & 1, same = sum->address == sample.address && sum->site == sample.site &&
                                                           sum->after == sample.after && sum->object == sample.object;
  if (same && used && !(sum->reads >> 31) && !(sum->writes >> 31)) {
    sum->reads += sample.reads;
    sum->writes += sample.writes;
    return;
  }
  if (used) hi_take_sample(t, *sum);
  *sum = sample;
  t->sums_used[at / 64] |= 1ull << at % 64;
}

/* The slice ends: what is summed goes to the ring. */
static inline void hi_take_sums(struct hi_local *t) {
  for (uint32_t word = 0; word < HI_SAMPLE_SUMS / 64; word++)
    for (; t->sums_used[word]; t->sums_used[word] &= t->sums_used[word] - 1) {
      struct hi_sample *sum = &t->sample_sums[word * 64 + (uint32_t)__builtin_ctzll(t->sums_used[word])];
      hi_take_sample(t, *sum);
      sum->reads = sum->writes = 0;
    }
}

static inline uint64_t hi_executed(const struct hi_local *t) { return t->instructions[0] & ~HI_COUNT_RECORDING; }

static inline bool hi_in_sampled_block(const struct hi_local *t) { return *t->base_slot == (uint64_t)hi_run.nothing; }

/* Another thread may move this one on to the next slice at any time: then the sampled block is over. */
static inline void hi_leave_sampled_block(struct hi_local *t, const struct hi_entry *entries) {
  uint64_t base = (uint64_t)hi_run.nothing;
  __atomic_compare_exchange_n(t->base_slot, &base, (uint64_t)entries, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Keeps what was seen, if anything was, and says when the next block is to be sampled. */
static inline void hi_end_sampled_block(struct hi_local *t) {
  hi_leave_sampled_block(t, t->current);
  if ((int64_t)t->instructions[HI_BLOCK_COUNTER] < 0) return;
  uint64_t wait = t->block_period / 2 + ((uint64_t)t->block_period * hi_random(t) >> 16);
  t->instructions[HI_BLOCK_COUNTER] = -wait;
  if (!t->block_seen) return;
  uint64_t weight = (t->block_weight * t->block_seen + t->block_size / 2) / t->block_size;
  uint32_t kept = weight < HI_WEIGHT_MOST ? (uint32_t)weight : HI_WEIGHT_MOST;
  t->block_sample.reads *= kept;
  t->block_sample.writes *= kept;
  hi_sum_sample(t, t->block_sample);
  t->block_seen = 0;
}

/* An access of which the base says that it is one of a sampled block. */
static inline void hi_sample_access(struct hi_local *t, uint64_t address, hi_counts counts, uint32_t site) {
  uint64_t since = t->instructions[HI_BLOCK_COUNTER];
  if (t->shared->flipped) { /* to which the inline code paid no heed */
    hi_leave_sampled_block(t, t->entries[t->current == t->entries[0]]);
    return;
  }
  if (since % HI_BLOCK_UNIT || !hi_counting(t)) { /* the next block was counted */
    hi_end_sampled_block(t);
    return;
  }
  if (!t->block_seen) {
    uint64_t executed = hi_executed(t);
    t->block_size = since / HI_BLOCK_UNIT;
    t->block_weight = executed - t->block_begin;
    t->block_begin = executed;
    if (t->block_period < HI_BLOCK_PERIOD) t->block_period += 1 + t->block_period / HI_BLOCK_GROWTH;
  }
  if (hi_random(t) % ++t->block_seen) return;
  struct hi_drawn d = hi_window_draw(t, address, counts, site);
  uint16_t object = (uint16_t)(hi_object_at(address) & (HI_SPLIT - 1));
  t->block_sample =
      (struct hi_sample){hi_line_of(address), d.site, HI_READS(d.counts), HI_WRITES(d.counts), d.after, object};
}

/* A string instruction accesses so many lines. */
static inline void hi_sample_string(struct hi_local *t, uint64_t address, uint64_t lines, bool write, uint32_t site) {
  uint32_t each = t->block_period / HI_STRING_LINES;
  uint64_t at = t->string_left, step = 1ull << hi_run.line_log2;
  for (; at < lines; at += 1 + hi_random(t) % (2 * each - 1)) {
    uint64_t line = hi_line_of(address) + at * step;
    uint16_t object = (uint16_t)(hi_object_at(at ? line : address) & (HI_SPLIT - 1));
    uint32_t reads = write ? 0 : each, writes = write ? each : 0;
    hi_sum_sample(t, (struct hi_sample){line, hi_site_of(t, site), reads, writes, 0, object});
  }
  t->string_left = at - lines;
}

/* A slice begins. What was executed outside of traced slices counts for nothing. */
static inline void hi_sample_in_slice(struct hi_local *t) {
  hi_end_sampled_block(t);
  t->block_begin = hi_executed(t);
}
#endif
