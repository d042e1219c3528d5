/* line_cache.h: the line cache of a thread, a part of its arena in the segment, see wire.h. */
#ifndef HITHER_LINE_CACHE_H
#define HITHER_LINE_CACHE_H
#include <stdint.h>

/* One entry of a thread's line cache; tag is the line's address, 0 when empty.
 * A thread that only hits never reads the epoch. If no thread of its process has flipped its
 * base half a millisecond into a slice, the collector sets HI_STALE in its tags (compare-and-
 * swap, once per epoch that the thread lags behind): its next access then misses, and the
 * thread notices the new slice. */
#define HI_STALE (1ull << 63)
/* In a tag: several objects lie on the line, so that each access has to miss and counts for the
 * object at its address; what the entry counts has been added to those already. */
#define HI_EXACT (1ull << 62)
/* More flags. WATCHED: of a sampled line that other threads use as well, see core/private_cache.h. PUBLISHED: what
 * the entry wrote is a version already, which another thread made of it. */
#define HI_WATCHED (1ull << 61)
#define HI_PUBLISHED (1ull << 60)
#define HI_TAG_FLAGS (HI_STALE | HI_EXACT | HI_WATCHED | HI_PUBLISHED)
#define HI_TAG_LINE (~HI_TAG_FLAGS)
struct hi_entry {
  uint64_t tag;
  uint32_t reads, writes;
};

/* The side record of an entry: whom its accesses credit with communication events, filled at
 * insertion and read at eviction. Each access credits one event to every thread in `others`,
 * which used the line in this slice before; those from s1 on credit one to thread z1 as well, which
 * joined the line later, those from s2 on one to z2. When a third thread joins, the owner's next access
 * misses and enters the line anew, with all of them in `others`. The joining thread writes z1, z2, s1
 * and s2.
 * others: 0 nobody, below HI_OTHERS a thread, else HI_OTHERS + half of where in the thread's lists there
 * is one: its length, then the threads.
 * line: page id, code site and object of the access that entered the line, see hi_side_line.
 * continued: where among the thread's continued uses is what the entries of this slice have counted that
 * this one continues; 0: none. */
struct hi_line_use {
  uint32_t accesses, writes;
};
#define HI_OTHERS (1u << 15) /* half of HI_LIST_WORDS */
struct hi_side {
  uint64_t line;
  uint16_t others, continued;
  uint16_t z1, z2;
  uint32_t s1, s2;
};
#define HI_CONTINUED_USES (1u << 16) /* of a thread in a slice, behind its left lines */

/* What a thread had done with a shared line in a slice when the line left its line cache; these lie in
 * an arena behind the lists, by hash. */
#define HI_LEFT_LOG2 12u
struct hi_left_line {
  uint64_t key; /* the line << 16, low bits of the epoch; 0: none */
  struct hi_line_use uses;
  uint32_t page;
  uint16_t others[2]; /* of the other users two */
};

#define HI_SIDE_SITE 26u   /* bits of hi_side.line below the code site: the page id */
#define HI_SIDE_OBJECT 48u /* below the object's id */

static inline uint64_t hi_side_line(uint32_t page, uint32_t site, uint32_t object) {
  return (uint64_t)object << HI_SIDE_OBJECT | (uint64_t)site << HI_SIDE_SITE | page;
}

static inline struct hi_line_use *hi_continued_uses(struct hi_left_line *left) {
  return (struct hi_line_use *)(left + (1u << HI_LEFT_LOG2));
}
#endif
