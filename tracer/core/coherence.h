/* coherence.h: the coherence events of two threads, see docs/metrics.md. A thread's uses of a line in a
 * slice are in its line cache, and in its left lines where the line has left the cache before the slice
 * ended. The first of two threads that ends the slice credits both. */
#ifndef HITHER_COHERENCE_H
#define HITHER_COHERENCE_H
#include "credit.h"
#include "page_users.h"

/* Where a line is among left lines, if it is; another may be there. */
static inline struct hi_left_line *hi_left_slot(struct hi_left_line *left, uint64_t line) {
  return &left[(line >> hi_run.line_log2) * 0x9E3779B97F4A7C15u >> (64 - HI_LEFT_LOG2)];
}

static inline uint64_t hi_left_key(uint64_t line, uint32_t epoch) { return line << 16 | (epoch & 0xffff); }

/* All that `other` has done with the line in this slice; nothing once it has credited that. */
static inline struct hi_line_use hi_uses_of(const struct hi_local *t, uint32_t other, uint32_t page, uint64_t line) {
  struct hi_line_use uses = {0, 0};
  if (other == 0 || other >= HI_MAX_THREADS) return uses;
  const struct hi_thread *o = &hi_run.threads[other];
  if (__atomic_load_n(&o->epoch, __ATOMIC_ACQUIRE) != t->epoch || o->arena >= HI_MAX_THREADS) return uses;
  char *arena = hi_run.arenas + hi_run.header->arena_size * o->arena;
  struct hi_left_line *left_lines = (struct hi_left_line *)(arena + hi_run.header->left_in_arena);
  struct hi_found_entry f = hi_count_of(t, other, page, line);
  if (f.entry) uses = hi_use_of(hi_continued_uses(left_lines), f.entry, f.side);
  line = hi_line_in(o, page, line);
  const struct hi_left_line *left = hi_left_slot(left_lines, line);
  return line && left->key == hi_left_key(line, t->epoch) && left->page == page ? hi_both(uses, left->uses) : uses;
}

static inline void hi_settle_with(struct hi_local *t, struct hi_line_use own, uint32_t page, uint64_t line,
                                  uint32_t other) {
  if (other == t->index) return;
  uint32_t events = hi_coherence(own, hi_uses_of(t, other, page, line));
  struct hi_comm *cell = events ? hi_cell(t, other) : NULL;
  if (cell) cell->coherence += events;
}

/* The same with all users of the line that are known, but for those that have settled with all. Where there are
 * many, the thread is marked as one of those if the line is not in its line cache anew, as `entry` says. */
static inline bool hi_settle_with_users(struct hi_local *t, struct hi_line_use own, uint32_t page, uint64_t line,
                                        const struct hi_entry *entry) {
  struct hi_user_walk users = hi_walk_users(hi_line_users(hi_mapped_as(page, line), line)), me = users;
  if (!hi_in_slice(t, users.word)) return false; /* a thread has used it in the next one */
  for (uint32_t other; (other = hi_next_user(&users));)
    if (other == t->index) me = users;
    else if (!(users.found & HI_USER_SETTLED)) hi_settle_with(t, own, page, line, other);
  if (users.nodes >= HI_MANY_OTHERS / HI_NODE_USERS && me.at && !(entry && (entry->tag & HI_TAG_LINE) == line))
    hi_mark_user(&me, HI_USER_SETTLED);
  return true;
}

/* Credits a left line, which is one no longer. */
static inline void hi_settle_left(struct hi_local *t, struct hi_left_line *l) {
  uint64_t line = l->key >> 16;
  bool known = (l->key & 0xffff) == (t->epoch & 0xffff);
  l->key = 0;
  if (!known || hi_settle_with_users(t, l->uses, l->page, line, &t->current[hi_index(t, line)])) return;
  for (int i = 0; i < 2; i++)
    if (l->others[i]) hi_settle_with(t, l->uses, l->page, line, l->others[i]);
}

/* A shared line leaves the line cache before the slice ends. */
static __attribute__((noinline)) void hi_leave(struct hi_local *t, const struct hi_entry *e, const struct hi_side *s) {
  uint64_t line = e->tag & HI_TAG_LINE, key = hi_left_key(line, t->epoch);
  struct hi_left_line *l = hi_left_slot(t->left, line);
  uint32_t page = hi_side_page(s);
  if (l->key != key || l->page != page) {
    if (l->key) hi_settle_left(t, l);
    uint16_t first = (uint16_t)hi_other(t, s, 0);
    *l = (struct hi_left_line){key, {0, 0}, page, {first ? first : s->z2, s->z1}};
  }
  l->uses = hi_both(l->uses, hi_use_of(t->continued, e, s));
}

/* An entry will go on counting with an empty side record. Returns the `continued` of that one. */
static inline uint16_t hi_continue(struct hi_local *t, const struct hi_entry *e, const struct hi_side *s) {
  uint32_t at = s->continued ? s->continued : t->continued_end + 1;
  if (HI_UNLIKELY(at == HI_CONTINUED_USES)) {
    hi_leave(t, e, s);
    return 0;
  }
  t->continued[at] = hi_use_of(t->continued, e, s);
  if (at > t->continued_end) t->continued_end = at;
  return (uint16_t)at;
}

/* The slice ends with the line in the line cache. */
static __attribute__((noinline)) void hi_settle(struct hi_local *t, const struct hi_entry *e, const struct hi_side *s) {
  uint64_t line = e->tag & HI_TAG_LINE;
  uint32_t page = hi_side_page(s);
  struct hi_line_use own = hi_use_of(t->continued, e, s);
  struct hi_left_line *l = hi_left_slot(t->left, line);
  if (l->key == hi_left_key(line, t->epoch) && l->page == page) {
    own = hi_both(own, l->uses);
    l->key = 0;
  }
  /* Where the entry is stale, more may have joined than are listed. */
  if ((e->tag & HI_STALE || hi_many_others(t, s)) && hi_settle_with_users(t, own, page, line, NULL)) return;
  for (uint32_t other, i = 0; (other = hi_other(t, s, i)); i++) hi_settle_with(t, own, page, line, other);
  if (s->z1) hi_settle_with(t, own, page, line, s->z1);
  if (s->z2) hi_settle_with(t, own, page, line, s->z2);
}

/* The slice ends with these lines out of it. */
static inline void hi_settle_all_left(struct hi_local *t) {
  for (uint32_t i = 0; i < 1u << HI_LEFT_LOG2; i++)
    if (t->left[i].key) hi_settle_left(t, &t->left[i]);
}
#endif
