/* access_window_lean.c: which instructions the accesses of a window are of.
 *
 * One probe counts all accesses of a window (dynamorio/block.c) and passes one site for them, that of the first.
 * Of a sample the accesses are to be on their own lines of source: one is drawn, and stands for all. */
#include "state.h"

#define ACCESSES (1u << 21)

/* Of this process; pages of these that are not used take no memory. */
static struct hi_window_access accesses[ACCESSES];
static uint32_t next_access = 1;
static uint32_t window_at[HI_MAX_SITES]; /* by site: its first access, 0: there is only one */

/* Keeps the n accesses of the window that a site stands for. Where there is no room they are on the line of the first. */
void hi_window_new(uint32_t site, const struct hi_window_access *window, uint32_t n) {
  if (site == HI_SITE_NONE || !n || __atomic_load_n(&window_at[site], __ATOMIC_RELAXED)) return;
  uint32_t at = __atomic_load_n(&next_access, __ATOMIC_RELAXED);
  do
    if (at + n > ACCESSES) return;
  while (!__atomic_compare_exchange_n(&next_access, &at, at + n, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  for (uint32_t i = 0; i < n; i++) accesses[at + i] = window[i];
  accesses[at + n - 1].last = true;
  __atomic_store_n(&window_at[site], at, __ATOMIC_RELEASE);
}

/* Draws one of the accesses that a probe counts with what it passed; where nothing is known of them, all are one. */
struct hi_drawn hi_window_draw(struct hi_local *t, uint64_t address, hi_counts counts, uint32_t passed) {
  struct hi_drawn all = {hi_site_of(t, passed), 0, counts};
  uint32_t site = passed & ~HI_SITE_FLAGS, first = __atomic_load_n(&window_at[site], __ATOMIC_ACQUIRE);
  if (!first) return all;
  /* A window that lies in two lines is counted in each with the accesses that start there. */
  uint64_t low = address - (passed & HI_SITE_UPPER ? hi_run.sites[site].span : 0);
  uint32_t n = 0;
  struct hi_window_access *drawn = NULL;
  for (struct hi_window_access *a = &accesses[first];; a++) {
    bool here = hi_line_of(low + a->offset) == hi_line_of(address);
    if (here && hi_random(t) % ++n == 0) drawn = a;
    if (a->last) break;
  }
  if (!drawn) return all;
  return (struct hi_drawn){all.site, drawn->after, drawn->write ? (uint64_t)n << 32 : n};
}
