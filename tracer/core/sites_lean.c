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
static uint32_t enter(struct hi_site site) {
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

/* Where an address is in a file: what tells the file from others, and the offset. */
struct place {
  uint64_t file, offset;
};

static struct place place_of(uint64_t pc) {
  for (uint32_t i = 0; i < HI_CODE_RANGES && hi_code_ranges[i].start; i++) {
    uint64_t start = __atomic_load_n(&hi_code_ranges[i].start, __ATOMIC_RELAXED);
    if (pc < start || pc >= __atomic_load_n(&hi_code_ranges[i].end, __ATOMIC_ACQUIRE)) continue;
    return (struct place){hi_code_ranges[i].file, pc - hi_code_ranges[i].base};
  }
  return (struct place){0, 0};
}

static uint64_t mixed(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * HI_HASH_MULTIPLIER;
  return hash ^ hash >> 29;
}

/* The hash of an address by its place; false if it is in no file. There is nothing at 0. */
static bool mix_place(uint64_t *hash, uint64_t pc) {
  struct place place = place_of(pc);
  *hash = mixed(mixed(*hash, place.file), place.offset);
  return place.file || !pc;
}

/* A hash of all that a site is, but of its process; 0 if it is not of files only. */
static uint64_t identity(const struct hi_site *site) {
  const uint64_t masks[] = {site->reads[0], site->reads[1], site->writes[0], site->writes[1]};
  uint64_t hash = (uint64_t)site->kind << 32 | site->span;
  bool known = mix_place(&hash, site->pc) && mix_place(&hash, site->caller);
  for (uint32_t i = 0; i < 4 && known; i++)
    if (site->kind == HI_SITE_PATH) known = mix_place(&hash, masks[i]);
    else hash = mixed(hash, masks[i]);
  return known ? hash : 0;
}

/* A site as this: one that a process has entered, or else a new one; HI_SITE_NONE when there is no room. Words
 * of code that lies together lie together, so that they take memory as the code does. */
uint32_t hi_site_new(struct hi_site site) {
  uint64_t hash = identity(&site), tag = hash >> HI_SITE_BITS << HI_SITE_BITS;
  if (!tag) return enter(site);
  struct place place = place_of(site.pc);
  uint64_t at = mixed(place.file, 0) + place.offset / sizeof(uint64_t);
  uint32_t made = HI_SITE_NONE;
  for (uint32_t i = 0; i < TRIES; i++) {
    uint64_t *word = &hi_run.site_words[(at + i) % HI_SITE_WORDS];
    uint64_t found = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    if (!found && !made && !(made = enter(site))) return HI_SITE_NONE;
    if (!found && __atomic_compare_exchange_n(word, &found, tag | made, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
      return made;
    if (found >> HI_SITE_BITS == tag >> HI_SITE_BITS) return (uint32_t)found & (HI_MAX_SITES - 1);
  }
  return made ? made : enter(site);
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
