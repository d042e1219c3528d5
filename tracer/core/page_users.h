/* page_users.h: who uses the lines of a page, see struct hi_page_users in wire.h.
 *
 * A page that one thread uses takes a bit per line, one that several use in a slice a word per line: it is split then,
 * as its entry in the page map says, and stays so. As with a line's word, what two threads do within a few nanoseconds
 * may be seen by one of them only: of the page that they split, the line at which they met. */
#ifndef HITHER_PAGE_USERS_H
#define HITHER_PAGE_USERS_H
#include "line_users.h"

static inline struct hi_page_users *hi_users_of(uint32_t mapped) { return &hi_run.page_users[hi_page_id(mapped)]; }

/* The entry of the page map for the page in which a line is; HI_PAGE_NONE, whose words nobody needs, if the page has
 * been unmapped. */
static inline uint32_t hi_mapped_as(uint32_t page, uint64_t line) {
  uint32_t mapped = __atomic_load_n(&hi_run.pagemap[line >> HI_PAGE_SHIFT], __ATOMIC_ACQUIRE);
  return HI_LIKELY(hi_page_id(mapped) == page) ? mapped : HI_PAGE_NONE;
}

/* Of a line in its page. */
static inline uint64_t hi_line_bit(uint64_t line) { return 1ull << ((line & (HI_PAGE_BYTES - 1)) >> hi_run.line_log2); }

/* The word that has the version of a line: its own, or that of the page, whose only one with a version it is. */
static inline uint64_t *hi_version_word(uint32_t mapped, uint64_t line) {
  return mapped & HI_PAGE_SPLIT ? hi_shadow_word(hi_page_id(mapped), line) : &hi_users_of(mapped)->word;
}

/* What the word of a line says or, if the page is not split, would say. */
static inline uint64_t hi_line_users(uint32_t mapped, uint64_t line) {
  uint64_t v = __atomic_load_n(hi_version_word(mapped, line), __ATOMIC_ACQUIRE);
  if (mapped & HI_PAGE_SPLIT) return v;
  return __atomic_load_n(&hi_users_of(mapped)->lines, __ATOMIC_RELAXED) & hi_line_bit(line) ? v : 0;
}

/* Makes the thread the user of a page that is not split, and of lines of it; false if another one is in this slice. */
static inline bool hi_use_lines(const struct hi_local *t, struct hi_page_users *p, uint64_t lines) {
  uint64_t v = __atomic_load_n(&p->word, __ATOMIC_RELAXED), mine = hi_users_word(t, v, t->index);
  if (HI_LIKELY(v == mine)) lines |= __atomic_load_n(&p->lines, __ATOMIC_RELAXED);
  else if (HI_UNLIKELY(hi_in_slice(t, v))) return false;
  __atomic_store_n(&p->lines, lines, __ATOMIC_RELAXED);
  /* Whoever finds the new word finds these lines. */
  if (v != mine) __atomic_store_n(&p->word, mine, __ATOMIC_RELEASE);
  return true;
}

/* page_users_lean.c */
void hi_split_page(const struct hi_local *t, uint32_t page, uint64_t line);
#endif
