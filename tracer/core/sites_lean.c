/* sites_lean.c: code sites, and those of library code by the program's call that led there.
 *
 * What memset, a BLAS or an allocator of the system accesses is of interest by the line of the
 * program that called it. The host keeps, for each thread, the return address of the last call that
 * left the program's own files; an access of library code gets a site of its own for each such
 * caller. */
#include "state.h"

#define CALLED_SITES (1u << 16)
#define TRIES 16 /* slots that are searched */

/* The site of library code when called from `caller`; `site` is written last. */
struct called_site {
  uint64_t caller;
  uint32_t code, site;
};
static struct called_site called_sites[CALLED_SITES];

/* Enters a site of this process; HI_SITE_NONE when there is no room. */
uint32_t hi_site_new(struct hi_site site) {
  uint32_t n = __atomic_fetch_add(&hi_run.header->next_site, 1, __ATOMIC_RELAXED);
  if (n >= HI_MAX_SITES) {
    __atomic_store_n(&hi_run.header->next_site, HI_MAX_SITES, __ATOMIC_RELAXED);
    __atomic_add_fetch(&hi_run.header->lost_sites, 1, __ATOMIC_RELAXED);
    return HI_SITE_NONE;
  }
  site.process = hi_run.process;
  site.generation = hi_run.processes[hi_run.process].generation;
  hi_run.sites[n] = site;
  return n;
}

/* The site of library code as called by the program last; the code's own where that is not known,
 * or there is no room. */
uint32_t hi_site_called(const struct hi_local *t, uint32_t code) {
  uint64_t caller = *t->program_call;
  if (!caller || code == HI_SITE_NONE) return code;
  uint64_t hash = (caller * 31 + code) * HI_HASH_MULTIPLIER >> 32;
  for (uint32_t i = 0; i < TRIES; i++) {
    struct called_site *s = &called_sites[(hash + i) & (CALLED_SITES - 1)];
    uint64_t found = __atomic_load_n(&s->caller, __ATOMIC_RELAXED);
    if (!found && __atomic_compare_exchange_n(&s->caller, &found, caller, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      struct hi_site site = hi_run.sites[code];
      site.caller = caller;
      uint32_t n = hi_site_new(site);
      s->code = code;
      __atomic_store_n(&s->site, n ? n : code, __ATOMIC_RELEASE);
      return n ? n : code;
    }
    if (found != caller) continue;
    uint32_t n = __atomic_load_n(&s->site, __ATOMIC_ACQUIRE);
    if (!n) return code; /* another thread is about to enter it */
    if (s->code == code) return n;
  }
  return code;
}
