/* cache_lean.c: a thread's line cache: misses, evictions and sharers.
 *
 * Inline code counts a hit in the entry. A miss evicts the entry's old line (its counts are
 * added to the page, its communication events to the threads that shared the line) and
 * registers the thread as a user of the new line, see line_users.h.
 *
 * An access credits one event to each other thread that used the line before in this slice (OPT 6.1,
 * Locality and Balance 3.1). Those that did so before the line was entered are in the side record; a
 * thread that joins later writes its index into the side records of those that it finds. */
#include "coherence.h"
#include "burst_record.h"
#include "line_observation.h"
#include "access_sample.h"
#include "private_cache.h"

struct hi_contended_line hi_contended_lines[1u << HI_CONTENDED_LOG2];

#define STREAM_LINES 8 /* lines entered ahead of a thread with ascending accesses */

/* An entry that stream() made ahead and that was never accessed: the thread is no user. */
static void evict_unused(struct hi_local *t, const struct hi_entry *e, const struct hi_side *s) {
  if (!hi_side_page(s)) return;
  uint64_t line = e->tag & HI_TAG_LINE;
  uint32_t mapped = hi_mapped_as(hi_side_page(s), line);
  uint64_t *word = hi_version_word(mapped, line), v = __atomic_load_n(word, __ATOMIC_RELAXED);
  if (v != hi_users_word(t, v, t->index)) return;
  if (!(mapped & HI_PAGE_SPLIT)) hi_users_of(mapped)->lines &= ~hi_line_bit(line);
  else __atomic_compare_exchange_n(word, &v, v & HI_VERSION_BITS, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* The thread's counts of a page and those around it, which are about to change; 0: no room. */
static inline uint32_t changed_block(struct hi_local *t, uint32_t page) {
  uint32_t block = t->directory[page / HI_BLOCK_PAGES];
  if (HI_UNLIKELY(!block)) {
    if (!hi_new_block(t, page)) return 0;
    block = t->directory[page / HI_BLOCK_PAGES];
  }
  if (!hi_run.dirty[block]) hi_run.dirty[block] = 1;
  return block;
}

void hi_add_counts(struct hi_local *t, uint32_t page, uint32_t reads, uint32_t writes) {
  uint32_t block = changed_block(t, page);
  if (HI_UNLIKELY(!block)) return;
  struct hi_count *c = &hi_run.blocks[block].page[page % HI_BLOCK_PAGES];
  c->reads += reads;
  c->writes += writes;
}

void hi_add_fetches(struct hi_local *t, uint32_t page, uint32_t fetches) {
  uint32_t block = changed_block(t, page);
  if (HI_LIKELY(block)) hi_run.blocks[block].fetches[page % HI_BLOCK_PAGES] += fetches;
}

static uint64_t *version_word(const struct hi_side *s, uint64_t line) {
  return hi_version_word(hi_mapped_as(hi_side_page(s), line), line);
}

/* What an entry leaves behind for the count of fetches. */
static inline void evict_fetched(struct hi_local *t, const struct hi_entry *e, const struct hi_side *s) {
  uint64_t line = e->tag & HI_TAG_LINE;
  bool shared = s->others | s->z1;
  if (HI_LIKELY(!shared && (!e->writes || !hi_fetch_sampled(line)))) return;
  if (shared && e->writes) hi_note_contended(line, e->writes);
  if (!e->writes || e->tag & HI_WATCHED) return;
  if (!hi_contended(line) && !hi_fetch_sampled(line)) return;
  if (!(e->tag & HI_PUBLISHED)) hi_remember_own(t, line, hi_new_version(version_word(s, line)));
  else hi_own_published(t, line);
}

/* What an entry has counted is added where it belongs. */
static inline void count_entry(struct hi_local *t, const struct hi_entry *e, const struct hi_side *s) {
  uint64_t n = (uint64_t)e->reads + e->writes;
  if (HI_UNLIKELY(n == 0)) {
    evict_unused(t, e, s);
    return;
  }
  uint32_t page = hi_side_page(s), object = hi_side_object(s);
  if (HI_UNLIKELY(!page)) return; /* entered while tracing was switched off */
  hi_add_counts(t, page, e->reads, e->writes);
  if (object && !(e->tag & HI_EXACT)) hi_count_object(t, object, (struct hi_object_count){e->reads, e->writes, 0});
  hi_credit(t, s, n);
  if (s->others | s->z1) hi_observe_shared(t, page, e->tag & HI_TAG_LINE, s->others ? n : n - (s->s1 < n ? s->s1 : n));
  evict_fetched(t, e, s);
}

/* The same as the line leaves the line cache. Most lines are shared with none. */
static inline void evict(struct hi_local *t, const struct hi_entry *e, const struct hi_side *s) {
  count_entry(t, e, s);
  if (HI_UNLIKELY(s->others | s->z1)) hi_leave(t, e, s);
}

static void flush_group(struct hi_local *t, uint32_t group) {
  uint64_t at = group * HI_GROUP - hi_window(t->index_mask);
  struct hi_entry *e = &t->current[at];
  struct hi_side *s = &t->current_side[at];
  for (uint32_t i = 0; i < HI_GROUP; i++)
    if (e[i].tag) {
      count_entry(t, &e[i], &s[i]);
      if (HI_UNLIKELY(s[i].others | s[i].z1)) hi_settle(t, &e[i], &s[i]);
      e[i].tag = 0;
    }
}

/* Empties the current line cache. */
void hi_flush(struct hi_local *t) {
  uint64_t *used = t->shared->used;
  for (uint32_t word = 0; word < sizeof t->shared->used / sizeof *used; word++)
    for (; used[word]; used[word] &= used[word] - 1) flush_group(t, word * 64 + (uint32_t)__builtin_ctzll(used[word]));
  hi_settle_all_left(t);
  hi_forget_lists(t);
  hi_take_sums(t);
}

/* Evicts the lines of a page that is being unmapped, so that the next mapping there starts
 * with no counts. */
void hi_forget_page(struct hi_local *t, uint64_t page) {
  uint64_t step = 1ull << hi_run.line_log2;
  for (uint64_t line = page << HI_PAGE_SHIFT; line < (page + 1) << HI_PAGE_SHIFT; line += step) {
    struct hi_entry *e = &t->current[hi_index(t, line)];
    if ((e->tag & HI_TAG_LINE) != line) continue;
    evict(t, e, &t->current_side[hi_index(t, line)]);
    e->tag = 0;
  }
}

static inline void mark_used(struct hi_local *t, uint64_t at) {
  at += hi_window(t->index_mask);
  t->shared->used[at / HI_GROUP / 64] |= 1ull << (at / HI_GROUP % 64);
}

/* Moves the thread to the current slice and to the line cache that base_slot points to. */
void hi_switch(struct hi_local *t) {
  hi_sample_in_slice(t);
  uint32_t which = (struct hi_entry *)*t->base_slot == t->entries[1];
  if (t->current != t->entries[which]) hi_flush(t);
  struct hi_thread *shared = t->shared;
  __atomic_store_n(&shared->epoch, 0, __ATOMIC_RELEASE); /* keeps joining threads out meanwhile */
  t->current = t->entries[which];
  t->current_side = t->side[which];
  t->epoch = __atomic_load_n(&hi_run.header->epoch, __ATOMIC_RELAXED);
  t->comm = &hi_run.comm[HI_COMM_ROW(t->index, t->epoch & 1)];
  hi_observe_slice(t);
  shared->cache = which;
  hi_publish_instructions(t);
  __atomic_store_n(&shared->epoch, t->epoch, __ATOMIC_RELEASE);
  __atomic_store_n(&shared->flipped, 0, __ATOMIC_RELEASE);
  if (t->recorder) hi_record_update(t);
}

/* Moves on a thread that waits. */
void hi_catch_up(struct hi_local *t) {
  uint32_t epoch = __atomic_load_n(&hi_run.header->epoch, __ATOMIC_RELAXED);
  hi_end_sampled_block(t);
  if (epoch != t->epoch) hi_tick(t, epoch);
  if ((uint64_t)t->current != *t->base_slot) hi_switch(t);
}

/* As hi_count_of, if accesses hit the entry. */
static struct hi_found_entry entry_of(const struct hi_local *t, uint32_t other, uint32_t page, uint64_t line) {
  struct hi_found_entry f = hi_count_of(t, other, page, line);
  if (f.tag & HI_STALE) f.entry = NULL;
  return f;
}

/* Makes the owner's next access to the line miss; false if the entry has changed. One that has been
 * evicted must stay so, or its counts would be evicted a second time. */
static bool make_stale(struct hi_found_entry f, uint64_t flags) {
  return __atomic_compare_exchange_n(&f.entry->tag, &f.tag, f.tag | HI_STALE | flags, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED);
}

/* The next access of `other` to the line has to miss. */
static void recall_entry(struct hi_local *t, uint32_t other, uint32_t page, uint64_t line) {
  struct hi_found_entry f = entry_of(t, other, page, line);
  if (f.entry) make_stale(f, 0);
}

/* Notes in the side record of another user that this thread joined the line, and after how many of
 * that user's accesses. False if that user's next access misses instead. */
static bool join(struct hi_local *t, uint32_t other, uint32_t page, uint64_t line) {
  struct hi_found_entry f = entry_of(t, other, page, line);
  if (!f.entry) return false;
  struct hi_side *s = f.side;
  uint32_t n = f.entry->reads + f.entry->writes;
  if (!s->z1) {
    s->s1 = n;
    s->z1 = (uint16_t)t->index;
  } else if (!s->z2) {
    s->s2 = n;
    s->z2 = (uint16_t)t->index;
  } else {
    make_stale(f, 0);
    return false;
  }
  return true;
}

/* Tells those who used the line before that this thread has joined it. Where they are many, those whose next
 * access misses are marked, so that the next who join need not look at their entries. */
static void tell_others(struct hi_local *t, const struct hi_side *s, uint64_t word, uint64_t line, enum hi_came came) {
  uint32_t page = hi_side_page(s);
  if (HI_LIKELY(!hi_many_others(t, s))) {
    for (uint32_t other, i = 0; (other = hi_other(t, s, i)); i++) join(t, other, page, line);
    return;
  }
  struct hi_user_walk users = hi_walk_users(word);
  for (uint32_t other; (other = hi_next_user(&users));) {
    if (other == t->index && came == HI_CAME_LAST) return;
    if (other == t->index) continue;
    if (users.found & HI_USER_MISSES || join(t, other, page, line)) continue;
    hi_mark_user(&users, HI_USER_MISSES);
    recall_entry(t, other, page, line);
  }
}

/* The objects in a range change: further accesses to its lines have to miss and find the new
 * ones. Entries of this thread are evicted, those of the other threads that used a line in this
 * slice are made stale. */
void hi_forget_lines(struct hi_local *t, uint64_t address, uint64_t bytes) {
  uint64_t step = 1ull << hi_run.line_log2, end = (address + bytes) & HI_ADDRESS_MASK;
  uint32_t mapped = HI_PAGE_NONE;
  uint64_t line = hi_line_of(address & HI_ADDRESS_MASK);
  for (uint64_t next = 0; line < end; line += step) {
    if (line >= next) {
      mapped = hi_run.pagemap[line >> HI_PAGE_SHIFT];
      next = ((line >> HI_PAGE_SHIFT) + 1) << HI_PAGE_SHIFT;
    }
    if (mapped == HI_PAGE_NONE) {
      line = next - step; /* never touched */
      continue;
    }
    struct hi_entry *e = &t->current[hi_index(t, line)];
    if ((e->tag & HI_TAG_LINE) == line) {
      evict(t, e, &t->current_side[hi_index(t, line)]);
      e->tag = 0;
    }
    uint64_t v = hi_line_users(mapped, line);
    if (!hi_in_slice(t, v)) continue;
    struct hi_user_walk users = hi_walk_users(v);
    for (uint32_t user; (user = hi_next_user(&users));)
      if (user != t->index) recall_entry(t, user, hi_page_id(mapped), line);
  }
}

/* If stream() entered the line ahead for `other`, which has not accessed it yet, the line is
 * not shared with `other`: makes the entry stale, so that an access misses and joins. */
static bool withdraw(struct hi_local *t, uint32_t other, uint32_t page, uint64_t line) {
  struct hi_found_entry f = entry_of(t, other, page, line);
  return f.entry && !(f.entry->reads + f.entry->writes) && make_stale(f, 0);
}

/* A line that a thread used in this slice: registers this thread as well, lists the others in the side
 * record, and tells them if it is new. */
static void share_used(struct hi_local *t, struct hi_side *s, uint64_t *word, uint64_t line) {
  uint64_t v = __atomic_load_n(word, __ATOMIC_RELAXED);
  uint32_t page = hi_side_page(s), first = hi_first_user(v);
  if (v == hi_users_word(t, v, first) && first != t->index && withdraw(t, first, page, line)) {
    __atomic_store_n(word, hi_users_word(t, v, t->index), __ATOMIC_RELAXED);
    return;
  }
  enum hi_came came = hi_register_user(t, word);
  v = __atomic_load_n(word, __ATOMIC_ACQUIRE);
  hi_list_others(t, s, v, came == HI_CAME_LAST);
  if (came != HI_CAME_BEFORE) tell_others(t, s, v, line, came);
}

static inline void share(struct hi_local *t, struct hi_side *s, uint32_t mapped, uint64_t line) {
  uint32_t page = hi_page_id(mapped);
  if (HI_LIKELY(!(mapped & HI_PAGE_SPLIT))) {
    if (HI_LIKELY(hi_use_lines(t, hi_users_of(mapped), hi_line_bit(line)))) return;
    hi_split_page(t, page, line);
  }
  uint64_t *word = hi_shadow_word(page, line);
  uint64_t v = __atomic_load_n(word, __ATOMIC_RELAXED), mine = hi_users_word(t, v, t->index);
  if (HI_LIKELY(!hi_in_slice(t, v))) __atomic_store_n(word, mine, __ATOMIC_RELAXED);
  else if (v != mine) share_used(t, s, word, line);
}

/* A thread with ascending accesses misses on every line. The next lines are entered ahead if no
 * thread has touched them in this slice, so that one line in STREAM_LINES misses. A line that
 * another thread touched is left to a miss of its own, so that sharing stays exact. */
static void stream(struct hi_local *t, uint64_t line, uint32_t page, uint32_t site) {
  uint64_t step = 1ull << hi_run.line_log2;
  uint64_t left = (HI_PAGE_BYTES - 1 - (line & (HI_PAGE_BYTES - 1))) >> hi_run.line_log2;
  if (left > STREAM_LINES) left = STREAM_LINES;
  uint32_t mapped = hi_mapped_as(page, line);
  /* If the page is not split the thread is its user. */
  struct hi_page_users *own = mapped & HI_PAGE_SPLIT ? NULL : hi_users_of(mapped);
  uint64_t *word = hi_shadow_word(page, line), v = 0;
  uint64_t used = own ? own->lines : 0, bit = hi_line_bit(line);
  for (uint64_t i = 1; i <= left; i++) {
    line += step;
    bit <<= 1;
    if (!own) v = __atomic_load_n(&word[i], __ATOMIC_RELAXED);
    if (used & bit || hi_in_slice(t, v)) return;
    uint32_t object = hi_object_at(line);
    if (HI_UNLIKELY(object & HI_SPLIT)) return; /* which of them is known by a miss only */
    uint64_t at = hi_index(t, line);
    struct hi_entry *e = &t->current[at];
    struct hi_side *s = &t->current_side[at];
    if (e->tag) evict(t, e, s);
    mark_used(t, at);
    *s = (struct hi_side){.line = hi_side_line(page, site, object)};
    e->reads = e->writes = 0;
    e->tag = line;
    if (own) __atomic_store_n(&own->lines, used |= bit, __ATOMIC_RELAXED);
    else __atomic_store_n(&word[i], hi_users_word(t, v, t->index), __ATOMIC_RELAXED);
    if (HI_UNLIKELY(hi_fetch_sampled(line))) hi_use_line(t, s, line, own ? own->word : v);
  }
}

static inline bool walks_up(const struct hi_local *t, uint64_t line) {
  uint64_t one = line - (1ull << hi_run.line_log2), two = line - (2ull << hi_run.line_log2);
  return t->current[hi_index(t, one)].tag == one && t->current[hi_index(t, two)].tag == two;
}

/* Observes an access that found another user of its line. Most often the next accesses to the
 * line are observed too, of this thread and, if it has just joined, of the others: their
 * entries are made stale. */
static void observe(struct hi_local *t, struct hi_entry *e, const struct hi_side *s, uint64_t line, bool again,
                    struct hi_observation observation) {
  if (!hi_observe(t, observation)) return;
  uint64_t tag = line;
  __atomic_compare_exchange_n(&e->tag, &tag, line | HI_STALE, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  if (again) return;
  for (uint32_t other, i = 0; (other = hi_other(t, s, i)); i++) recall_entry(t, other, hi_side_page(s), line);
}

/* Makes entries of the other threads that use a line in this slice miss at their next access: all
 * of them, or those that have written it without a new version, which is made here. */
static void recall(struct hi_local *t, const struct hi_side *s, uint64_t line, bool all) {
  for (uint32_t other, i = 0; (other = hi_other(t, s, i)); i++) {
    struct hi_found_entry f = entry_of(t, other, hi_side_page(s), line);
    if (!f.entry) continue;
    bool writer = f.entry->writes && !(f.tag & HI_WATCHED);
    if (writer && make_stale(f, HI_PUBLISHED)) hi_new_version(version_word(s, line));
    else if (all) make_stale(f, 0);
  }
}

/* An access to a line that the thread has entered, `joined`: for the first time in this slice.
 * Whether the next ones are to be looked at one by one. */
static inline bool fetch(struct hi_local *t, const struct hi_side *s, uint64_t line, bool write, bool joined) {
  bool sampled = hi_fetch_sampled(line), shared = s->others;
  if (HI_LIKELY(!sampled && !shared)) return false;
  if (!sampled && !hi_contended(line)) return false;
  uint64_t *word = version_word(s, line);
  if (shared) recall(t, s, line, write || joined);
  hi_use_line(t, s, line, __atomic_load_n(word, __ATOMIC_RELAXED));
  if (shared && write) hi_remember_own(t, line, hi_new_version(word));
  return shared;
}

/* A further access to such a line; whether the next ones are to be looked at as well. */
static bool watch_access(struct hi_local *t, uint64_t line, const struct hi_side *s, bool write) {
  if (write) {
    recall(t, s, line, true);
    hi_remember_own(t, line, hi_new_version(version_word(s, line)));
  }
  return !hi_left_alone(t, line, write);
}

/* An exact entry: the inline code misses on every access, which costs some ten times as much as a
 * hit, and less than entering the line. False if the line has to be entered anew; `*watch` is
 * cleared if its fetches need not be looked at any more. */
static inline bool count_exact(struct hi_local *t, struct hi_entry *e, const struct hi_side *s, uint64_t address,
                               hi_counts counts, bool *watch) {
  uint32_t object = hi_object_at(address) & (HI_SPLIT - 1);
  if (e->tag & HI_WATCHED && !watch_access(t, e->tag & HI_TAG_LINE, s, HI_WRITES(counts))) {
    *watch = false;
    return false;
  }
  e->reads += HI_READS(counts);
  e->writes += HI_WRITES(counts);
  hi_count_object(t, object, (struct hi_object_count){HI_READS(counts), HI_WRITES(counts), 0});
  return true;
}

/* Out of line: few misses are of sampled blocks. */
static __attribute__((noinline)) void sample(struct hi_local *t, uint64_t address, hi_counts counts, uint32_t site) {
  hi_sample_access(t, address, counts, site);
}

/* An access whose line was not in the current line cache. `what` describes it, without page and
 * offset; its site is as the probe passed it. `string`: it is one of a string instruction. */
static inline void miss(struct hi_local *t, uint64_t address, hi_counts counts, struct hi_observation what,
                        bool string) {
  address &= HI_ADDRESS_MASK;
  uint32_t epoch = __atomic_load_n(&hi_run.header->epoch, __ATOMIC_RELAXED);
  if (HI_UNLIKELY(hi_in_sampled_block(t)) && !string) sample(t, address, counts, what.site);
  if (HI_UNLIKELY(epoch != t->epoch && t->index)) {
    hi_end_sampled_block(t);
    hi_tick(t, epoch);
  }
  if (HI_UNLIKELY((uint64_t)t->current != *t->base_slot && !hi_in_sampled_block(t))) hi_switch(t);
  uint64_t line = hi_line_of(address);
  uint64_t at = hi_index(t, line);
  struct hi_entry *e = &t->current[at];
  if (HI_UNLIKELY(e->tag ==
                  line)) { /* its block is sampled, or the base was flipped after the inline code had read it */
    e->reads += HI_READS(counts);
    e->writes += HI_WRITES(counts);
    return;
  }
  if (HI_UNLIKELY(t->lists_end >= HI_LIST_WORDS - HI_MAX_THREADS - 2)) hi_flush(t);
  struct hi_side *s = &t->current_side[at];
  what.site = hi_site_of(t, what.site);
  bool here = (e->tag & HI_TAG_LINE) == line;
  bool watch = true;
  if (HI_UNLIKELY(here && !(e->tag & HI_STALE) && count_exact(t, e, s, address, counts, &watch))) return;
  t->shared->misses++;
  uint32_t mapped = HI_LIKELY(hi_counting(t)) ? hi_page_of(t, address, what.site) : HI_PAGE_NONE;
  uint32_t page = hi_page_id(mapped);
  /* The word is often in another processor's cache: it is fetched while the old line is evicted. */
  __builtin_prefetch(hi_version_word(mapped, address), 1);
  bool again = here && e->tag & HI_STALE;
  uint64_t flags = 0;
  uint16_t continued = 0;
  if (HI_UNLIKELY(here)) {
    count_entry(t, e, s);
    continued = hi_continue(t, e, s);
  } else if (e->tag) evict(t, e, s);
  else mark_used(t, at);
  uint32_t object = hi_object_at(address);
  *s = (struct hi_side){.line = hi_side_line(page, what.site, object & (HI_SPLIT - 1)), .continued = continued};
  e->reads = HI_READS(counts);
  e->writes = HI_WRITES(counts);
  e->tag = line;
  if (HI_UNLIKELY(!page)) return;
  share(t, s, mapped, line);
  if (HI_UNLIKELY(s->others) && t->observations_left) {
    what.page = page;
    what.at = (uint16_t)(address & (HI_PAGE_BYTES - 1));
    if (what.kind <= HI_OBSERVED_UPPER) what.n = object & (HI_SPLIT - 1);
    observe(t, e, s, line, again, what);
  }
  if (HI_LIKELY(watch) && HI_UNLIKELY(fetch(t, s, line, HI_WRITES(counts), !here))) flags |= HI_EXACT | HI_WATCHED;
  if (HI_UNLIKELY(object & HI_SPLIT)) flags |= HI_EXACT;
  uint64_t tag = line; /* another thread may make the entry stale meanwhile */
  if (HI_UNLIKELY(flags) &&
      __atomic_compare_exchange_n(&e->tag, &tag, line | flags, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    hi_count_object(t, object & (HI_SPLIT - 1), (struct hi_object_count){e->reads, e->writes, 0});
  if (walks_up(t, line)) stream(t, line, page, what.site);
}

/* Called by stub.c with an address whose line was not in the current line cache. */
void hi_miss(struct hi_local *t, uint64_t address, hi_counts counts, uint32_t site) {
  uint16_t kind = site & HI_SITE_UPPER ? HI_OBSERVED_UPPER : HI_OBSERVED_LOW;
  miss(t, address, counts, (struct hi_observation){.site = site, .kind = kind}, false);
}

/* One access to every line of [address, address + bytes). */
static inline void range(struct hi_local *t, uint64_t address, uint64_t bytes, bool write, uint32_t site, bool string) {
  if (bytes == 0) return;
  uint64_t step = 1ull << hi_run.line_log2;
  uint64_t end = address + bytes;
  for (uint64_t line = hi_line_of(address); line < end; line += step) {
    uint64_t from = line < address ? address : line, to = line + step < end ? line + step : end;
    struct hi_observation what = {
        .site = site, .kind = write ? HI_OBSERVED_WRITE : HI_OBSERVED_READ, .n = (uint32_t)(to - from)};
    miss(t, from, write ? 1ull << 32 : 1, what, string);
  }
}

void hi_range(struct hi_local *t, uint64_t address, uint64_t bytes, bool write, uint32_t site) {
  range(t, address, bytes, write, site, false);
}

/* The same by an instruction that moves many lines. */
void hi_string(struct hi_local *t, uint64_t address, uint64_t bytes, bool write, uint32_t site) {
  range(t, address, bytes, write, site, true);
  if (bytes == 0 || !hi_run.nothing || !hi_counting(t)) return;
  uint64_t lines = (hi_line_of(address + bytes - 1) - hi_line_of(address)) / (1ull << hi_run.line_log2) + 1;
  hi_sample_string(t, address, lines, write, site);
}
