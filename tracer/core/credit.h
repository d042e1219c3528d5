/* credit.h: credits communication events to the threads with which the accesses of an evicted
 * entry shared the line, see struct hi_side. */
#ifndef HITHER_CREDIT_H
#define HITHER_CREDIT_H
#include "line_users.h"

/* The cell of thread `other`, whose group is marked as changed; NULL if there is none. */
static inline struct hi_comm *hi_cell(struct hi_local *t, uint32_t other) {
  if (other == 0 || other >= HI_MAX_THREADS) return NULL;
  uint64_t *dirty = &t->shared->comm_dirty[t->epoch & 1];
  uint64_t bit = 1ull << (other / 64 % 64);
  if (!(*dirty & bit)) __atomic_or_fetch(dirty, bit, __ATOMIC_RELAXED);
  return &t->comm[other];
}

/* Adds events to the cell of thread `other`. */
static inline void hi_add_credit(struct hi_local *t, uint32_t other, uint64_t events) {
  struct hi_comm *cell = events ? hi_cell(t, other) : NULL;
  if (cell) cell->events += events;
}

/* Credits the n accesses that an entry counted. */
static inline void hi_credit(struct hi_local *t, const struct hi_side *s, uint64_t n) {
  if (HI_LIKELY(!(s->others | s->z1))) return;
  for (uint32_t other, i = 0; (other = hi_other(t, s, i)); i++) hi_add_credit(t, other, n);
  if (s->z1 && s->s1 < n) hi_add_credit(t, s->z1, n - s->s1);
  if (s->z2 && s->s2 < n) hi_add_credit(t, s->z2, n - s->s2);
}

/* The coherence events of two threads on a line in a slice: a thread can find the line changed by another
 * at most as often as it accesses it, and as the other writes it. Lines that are only read have none,
 * and a wait for a flag has as many as the flag is written. */
static inline uint32_t hi_coherence(struct hi_line_use a, struct hi_line_use b) {
  uint32_t in = a.accesses < b.writes ? a.accesses : b.writes;
  uint32_t out = a.writes < b.accesses ? a.writes : b.accesses;
  return in > out ? in : out;
}

static inline struct hi_line_use hi_both(struct hi_line_use a, struct hi_line_use b) {
  return (struct hi_line_use){a.accesses + b.accesses, a.writes + b.writes};
}

/* What an entry and those that it continues have counted; `continued`: the uses of its thread. */
static inline struct hi_line_use hi_use_of(const struct hi_line_use *continued, const struct hi_entry *e,
                                           const struct hi_side *s) {
  struct hi_line_use own = {e->reads + e->writes, e->writes};
  return s->continued ? hi_both(own, continued[s->continued]) : own;
}

/* Address of the line in the address space of thread `other`, 0 if not known. */
static inline uint64_t hi_line_in(const struct hi_thread *other, uint32_t page, uint64_t line) {
  if (other->process == hi_run.process) return line;
  uint64_t shared = hi_run.pages[page].shared;
  if (!shared) return 0;
  uint64_t base = hi_alias_of(other->process, (uint32_t)((shared - 1) / HI_CHUNK_PAGES));
  if (!base) return 0;
  return ((base + (shared - 1) % HI_CHUNK_PAGES) << HI_PAGE_SHIFT) | (line & (HI_PAGE_BYTES - 1));
}

/* An entry of another thread, as it was found: its owner may evict it at any time. */
struct hi_found_entry {
  struct hi_entry *entry; /* NULL: none */
  struct hi_side *side;
  uint64_t tag;
};

/* The entry in which `other` counts the line in this slice, stale or not. */
static inline struct hi_found_entry hi_count_of(const struct hi_local *t, uint32_t other, uint32_t page,
                                                uint64_t line) {
  struct hi_found_entry none = {NULL, NULL, 0};
  if (other == 0 || other >= HI_MAX_THREADS) return none;
  const struct hi_thread *o = &hi_run.threads[other];
  if (__atomic_load_n(&o->epoch, __ATOMIC_ACQUIRE) != t->epoch || o->arena >= HI_MAX_THREADS) return none;
  line = hi_line_in(o, page, line);
  uint64_t entries = (uint64_t)hi_run.index_mask + 1;
  char *arena = hi_run.arenas + hi_run.header->arena_size * o->arena;
  uint32_t mask = hi_arena_mask(o->arena);
  uint64_t at = (o->cache & 1) * entries + hi_window(mask) + hi_index_of(mask, line);
  struct hi_entry *e = (struct hi_entry *)arena + at;
  uint64_t tag = __atomic_load_n(&e->tag, __ATOMIC_RELAXED);
  if ((tag & HI_TAG_LINE) != line || !line) return none;
  struct hi_side *side = (struct hi_side *)(arena + 2 * entries * sizeof *e) + at;
  return (struct hi_found_entry){e, side, tag};
}
#endif
