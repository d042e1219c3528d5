/* page_users_lean.c: gives the lines of a page their own words. */
#include "page_users.h"
#include "private_cache.h"

/* The words of lines that the user of the page has accessed, and the version of the line that has one. */
static void fill_words(const struct hi_local *t, const struct hi_page_users *p, uint64_t *words, uint64_t address) {
  uint64_t v = __atomic_load_n(&p->word, __ATOMIC_ACQUIRE), lines = __atomic_load_n(&p->lines, __ATOMIC_RELAXED);
  for (uint32_t i = 0; i < HI_PAGE_BYTES >> hi_run.line_log2; i++) {
    uint64_t line = address + ((uint64_t)i << hi_run.line_log2), word = lines >> i & 1 ? v & ~HI_VERSION_BITS : 0;
    if (hi_fetch_sampled(line)) word |= v & HI_VERSION_BITS;
    uint64_t before = __atomic_load_n(&words[i], __ATOMIC_RELAXED);
    if (word && !hi_in_slice(t, before))
      __atomic_compare_exchange_n(&words[i], &before, word, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
  }
}

/* Splits the page in which a line is. */
void hi_split_page(const struct hi_local *t, uint32_t page, uint64_t line) {
  const struct hi_page_users *p = hi_users_of(page);
  uint64_t address = line & ~(HI_PAGE_BYTES - 1), *words = hi_shadow_word(page, address);
  uint32_t mapped = page;
  fill_words(t, p, words, address);
  __atomic_compare_exchange_n(&hi_run.pagemap[line >> HI_PAGE_SHIFT], &mapped, page | HI_PAGE_SPLIT, false,
                              __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  /* Lines that its user has accessed meanwhile. */
  fill_words(t, p, words, address);
}
