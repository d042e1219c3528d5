/* private_cache.h: fetches: how often a thread has to bring a line into a private cache of a
 * stated size, because it is not there (any more) or another thread has written it.
 *
 * One line of each aligned group of HI_FETCH_PERIOD is sampled and stands for all of them. Of
 * these lines a thread keeps what would be in its cache, 1/HI_FETCH_PERIOD of the size: sets of
 * HI_FETCH_WAYS lines, last used first (set sampling: Qureshi et al., ISCA 2006). Accesses that hit
 * the line cache are not seen here; lest the order go wrong, a line that has sunk to place
 * HI_FETCH_UNSEEN of its set is made stale in the line cache: its next access misses there.
 *
 * Every line has a version, HI_VERSION_BITS of its shadow word, which a write changes. A thread
 * remembers the version that it used last. What it writes to a line that no other uses in the
 * slice becomes a version when its entry is evicted; while others use the line too, its accesses
 * are looked at one by one (HI_WATCHED), and a write makes the entries of the others stale. After
 * some accesses the line is left alone until that happens; early after a write or if the thread
 * only reads it, as no write of the thread can go unseen then, else late.
 *
 * A few lines can have most of the fetches, such as a lock. A write makes at most one fetch of each
 * other thread, so the lines that are written most while threads share them stand for themselves only
 * (`hi_contended_lines`): that which has most of the writes to shared lines of its slot (majority vote:
 * Boyer and Moore, 1981). A thread that writes one of them is never left alone when it reads. */
#ifndef HITHER_PRIVATE_CACHE_H
#define HITHER_PRIVATE_CACHE_H
#include "access_sample.h"
#include "object_map.h"

#define HI_FETCH_UNSEEN 2u        /* of HI_FETCH_WAYS: an eighth of the cache */
#define HI_CONTENDED_WRITES 1024u /* more than those of the other lines, that make a shared line contended */
#define HI_MOST_WRITES 16384u     /* that are remembered, so that a line is forgotten in time */
#define HI_WATCHED_MEAN 32u       /* accesses until a line is left alone */
#define HI_WRITER_MEAN 128u       /* reads until it is, of a thread that has written it */
/* A remembered line has its version in the low bits, and a flag: this thread has written it. */
#define HI_VERSION_MASK 63ull
#define HI_WROTE (1ull << 63)
#define HI_REMEMBERED_LINE (~(HI_VERSION_MASK | HI_WROTE))

/* Which line of a group depends on the group's place in the cache, so that lines of one set are in one
 * set here too and strides of a power of two evict as they do there; from 4 MiB to 4 MiB another. */
static inline bool hi_fetch_sampled(uint64_t line) {
  uint64_t n = line >> hi_run.line_log2, group = n >> HI_FETCH_PERIOD_LOG2;
  return !((n ^ (group & 15) << 2 ^ (group & 3) ^ group >> 10) & (HI_FETCH_PERIOD - 1));
}

static inline uint32_t hi_contended_slot(uint64_t line) {
  return (uint32_t)((line * HI_HASH_MULTIPLIER) >> (64 - HI_CONTENDED_LOG2));
}

static inline bool hi_contended(uint64_t line) {
  const struct hi_contended_line *known = &hi_contended_lines[hi_contended_slot(line)];
  return __atomic_load_n(&known->line, __ATOMIC_RELAXED) == line &&
         __atomic_load_n(&known->writes, __ATOMIC_RELAXED) >= HI_CONTENDED_WRITES;
}

static inline uint64_t hi_version(uint64_t shadow) {
  return (shadow >> HI_VERSION_HIGH & 7) << 3 | (shadow >> HI_VERSION_LOW & 7);
}

/* Where the thread remembers the line; NULL if it does not. */
static inline uint64_t *hi_remembered(struct hi_local *t, uint64_t line) {
  if (hi_contended(line)) return &t->contended[hi_contended_slot(line)];
  if (!hi_fetch_sampled(line)) return NULL;
  uint64_t *way = hi_cache_set(t, line);
  for (uint32_t i = 0; i < HI_FETCH_WAYS; i++)
    if ((way[i] & HI_REMEMBERED_LINE) == line) return &way[i];
  return NULL;
}

/* The line has been written: a new version. Returns the one before. */
static inline uint64_t hi_new_version(uint64_t *word) {
  uint64_t next, v = __atomic_load_n(word, __ATOMIC_RELAXED);
  do {
    uint64_t version = hi_version(v) + 1;
    next = (v & ~HI_VERSION_BITS) | (version >> 3 & 7) << HI_VERSION_HIGH | (version & 7) << HI_VERSION_LOW;
  } while (!__atomic_compare_exchange_n(word, &v, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return hi_version(v);
}

/* The version behind `before` is this thread's own. If it has not used the one before, it remembers
 * an older one, and will notice that. */
static inline void hi_remember_own(struct hi_local *t, uint64_t line, uint64_t before) {
  uint64_t *slot = hi_remembered(t, line);
  if (!slot || (*slot & HI_REMEMBERED_LINE) != line) return;
  uint64_t version = *slot & HI_VERSION_MASK;
  *slot = line | HI_WROTE | (version == before ? (version + 1) & HI_VERSION_MASK : version);
}

/* Another thread has made a version of what this one wrote: the next after that which it used last. */
static inline void hi_own_published(struct hi_local *t, uint64_t line) {
  uint64_t *slot = hi_remembered(t, line);
  if (slot) hi_remember_own(t, line, *slot & HI_VERSION_MASK);
}

/* Counts the fetch of a line that stands for `lines`. */
static inline void hi_count_fetch(struct hi_local *t, const struct hi_side *s, uint64_t line, uint32_t lines) {
  uint32_t object = hi_side_object(s);
  hi_add_fetches(t, hi_side_page(s), lines);
  if (object) hi_count_object(t, object, (struct hi_object_count){.fetches = lines});
  t->fetches_left -= (int32_t)lines;
  if (HI_LIKELY(t->fetches_left > 0)) return;
  t->fetches_left = 1 + (int32_t)(hi_random(t) % (2 * HI_SAMPLE_PERIOD - 1));
  hi_take_sample(t, (struct hi_sample){line, hi_side_site(s), 0, 0, 0, (uint16_t)object});
}

/* The thread's next access to the line has to miss the line cache. */
static inline void hi_look_again(struct hi_local *t, uint64_t line) {
  uint64_t tag = line;
  __atomic_compare_exchange_n(&t->current[hi_index(t, line)].tag, &tag, line | HI_STALE, false, __ATOMIC_RELAXED,
                              __ATOMIC_RELAXED);
}

/* Puts a line in front of its set; whether it was there, in the same version. */
static inline bool hi_use_cached(struct hi_local *t, uint64_t line, uint64_t version) {
  uint64_t *way = hi_cache_set(t, line), moved = line | version;
  for (uint32_t i = 0; i < HI_FETCH_WAYS; i++) {
    uint64_t here = way[i];
    way[i] = moved;
    if ((here & HI_REMEMBERED_LINE) == line) {
      way[0] |= here & HI_WROTE;
      return (here & HI_VERSION_MASK) == version;
    }
    if (i + 1 == HI_FETCH_UNSEEN && here) hi_look_again(t, here & HI_REMEMBERED_LINE);
    moved = here;
  }
  return false;
}

/* The thread uses a line that it has just entered. */
static inline void hi_use_line(struct hi_local *t, const struct hi_side *s, uint64_t line, uint64_t shadow) {
  uint64_t version = hi_version(shadow);
  if (HI_UNLIKELY(hi_contended(line))) {
    uint64_t *slot = &t->contended[hi_contended_slot(line)], before = *slot;
    if ((before & ~HI_WROTE) != (line | version)) hi_count_fetch(t, s, line, 1);
    *slot = line | version | ((before & HI_REMEMBERED_LINE) == line ? before & HI_WROTE : 0);
  } else if (hi_fetch_sampled(line)) {
    if (!hi_use_cached(t, line, version)) hi_count_fetch(t, s, line, HI_FETCH_PERIOD);
  }
}

/* Whether a line need not be looked at any more at each access, at one that writes or does not. */
static inline bool hi_left_alone(struct hi_local *t, uint64_t line, bool write) {
  const uint64_t *slot = write ? NULL : hi_remembered(t, line);
  if (!slot || !(*slot & HI_WROTE)) return !(hi_random(t) % HI_WATCHED_MEAN);
  return !hi_contended(line) && !(hi_random(t) % HI_WRITER_MEAN);
}

/* An entry of a line that others use as well is evicted: its writes are votes for the line. Followed
 * lines have many short entries, the others one in a slice: all of their writes count, and it takes
 * many, as lines that are followed must not become contended more easily than others. */
static inline void hi_note_contended(uint64_t line, uint64_t writes) {
  struct hi_contended_line *known = &hi_contended_lines[hi_contended_slot(line)];
  uint64_t before = __atomic_load_n(&known->writes, __ATOMIC_RELAXED), after;
  if (__atomic_load_n(&known->line, __ATOMIC_RELAXED) == line) after = before + writes;
  else if (writes <= before) after = before - writes;
  else {
    after = writes - before;
    __atomic_store_n(&known->line, line, __ATOMIC_RELAXED);
  }
  __atomic_store_n(&known->writes, after < HI_MOST_WRITES ? after : HI_MOST_WRITES, __ATOMIC_RELAXED);
}
#endif
