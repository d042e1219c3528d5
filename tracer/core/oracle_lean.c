/* oracle_lean.c: the oracle: the definition of a communication event, computed by a call per
 * access, as the reference that the line cache is tested against. An access counts one event
 * with each other thread that used the line before in this slice.
 *
 * With header.sharers = K it counts with those only that are among the last K users, as the papers'
 * authors' own tracer does. Then a shadow word is (slice mod 2^16) << 48 | up to four threads, 12 bits
 * each, latest first. */
#include "credit.h"
#include "line_observation.h"
#include "access_sample.h"
#include "object_map.h"

#define MAX_SHARERS 4
#define THREAD_BITS 12
#define LIST_BITS (MAX_SHARERS * THREAD_BITS)
#define LIST_MASK ((1ull << LIST_BITS) - 1)

/* The line's users are kept in nodes, also where they are less than three: counts are by node. */
static void begin_nodes(struct hi_local *t, uint64_t *word) {
  uint64_t v = __atomic_load_n(word, __ATOMIC_ACQUIRE);
  uint32_t node = hi_in_slice(t, v) ? 0 : hi_new_node(t->index, 0, 0);
  if (node) __atomic_compare_exchange_n(word, &v, hi_node_word(t, v, node), false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* What the user at which a walk is has done; NULL where that is not known. */
static struct hi_line_use *count_at(const struct hi_user_walk *w) {
  if (!w->node) return NULL;
  return &hi_run.user_counts[(uint64_t)(w->node - hi_run.user_nodes) * HI_NODE_USERS + w->at - 1];
}

/* Adds an access to the thread's own count. Returns what it was before, and is now. */
static struct hi_own_use {
  struct hi_line_use before, now;
} count_own(const struct hi_local *t, uint64_t word, bool write) {
  struct hi_user_walk users = hi_walk_users(word);
  for (uint32_t user; (user = hi_next_user(&users));) {
    struct hi_line_use *own = user == t->index ? count_at(&users) : NULL;
    if (!own) continue;
    struct hi_line_use before = *own;
    own->accesses++;
    own->writes += write;
    return (struct hi_own_use){before, *own};
  }
  return (struct hi_own_use){0};
}

/* Counts an access with all users of the line; whether there were others. */
static bool use(struct hi_local *t, uint64_t *word, bool write) {
  begin_nodes(t, word);
  hi_register_user(t, word);
  struct hi_user_walk users = hi_walk_users(__atomic_load_n(word, __ATOMIC_ACQUIRE));
  if (!hi_in_slice(t, users.word)) return false;
  struct hi_own_use own = count_own(t, users.word, write);
  bool shared = false;
  for (uint32_t user; (user = hi_next_user(&users));) {
    if (user == t->index) continue;
    hi_add_credit(t, user, 1);
    struct hi_line_use *theirs = count_at(&users);
    if (theirs) t->comm[user].coherence += hi_coherence(own.now, *theirs) - hi_coherence(own.before, *theirs);
    shared = true;
  }
  return shared;
}

/* The shadow word `v` after an access of this thread; with `count`, counts its events. */
static uint64_t touch(struct hi_local *t, uint64_t v, uint64_t slice, uint32_t sharers, bool count) {
  uint64_t list = (v >> LIST_BITS) == slice ? v & LIST_MASK : 0;
  uint64_t next = t->index;
  uint32_t kept = 1;
  for (uint32_t i = 0; i < sharers; i++) {
    uint32_t other = (list >> (THREAD_BITS * i)) & ((1u << THREAD_BITS) - 1);
    if (other == 0) break;
    if (other == t->index) continue;
    if (count) hi_add_credit(t, other, 1);
    if (kept < sharers) next |= (uint64_t)other << (THREAD_BITS * kept++);
  }
  return slice << LIST_BITS | next;
}

/* The same with the last users of the line only. */
static bool use_last(struct hi_local *t, uint64_t *word) {
  uint64_t slice = t->epoch & 0xffff, v = __atomic_load_n(word, __ATOMIC_RELAXED);
  uint32_t sharers = hi_run.header->sharers < MAX_SHARERS ? hi_run.header->sharers : MAX_SHARERS;
  if (t->index >> THREAD_BITS) return false;
  for (;;) {
    uint64_t next = touch(t, v, slice, sharers, false);
    if (next == v) break;
    if (__atomic_compare_exchange_n(word, &v, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) break;
  }
  touch(t, v, slice, sharers, true);
  return (v >> LIST_BITS) == slice && (v & LIST_MASK) != t->index && (v & LIST_MASK);
}

/* Observes every access to a shared line, as far as the budget of the slice goes. */
static void observe(struct hi_local *t, uint32_t page, uint64_t address, uint32_t site, uint32_t object) {
  struct hi_observation bytes = {page, site, (uint16_t)(address & (HI_PAGE_BYTES - 1)), HI_OBSERVED_LOW, object};
  if (t->observations_left) hi_observe(t, bytes);
  hi_observe_shared(t, page, hi_line_of(address), 1);
}

void hi_oracle_access(struct hi_local *t, uint64_t address, bool write, uint32_t site) {
  address &= HI_ADDRESS_MASK;
  site = hi_site_of(t, site);
  uint32_t epoch = __atomic_load_n(&hi_run.header->epoch, __ATOMIC_RELAXED);
  if (epoch != t->epoch) {
    t->epoch = epoch;
    t->comm = &hi_run.comm[HI_COMM_ROW(t->index, epoch & 1)];
    hi_observe_slice(t);
    hi_publish_instructions(t);
  }
  if (!hi_counting(t)) return;
  uint32_t page = hi_page_id(hi_page_of(t, address, site));
  if (!page) return;
  hi_add_counts(t, page, !write, write);
  uint32_t object = hi_object_at(address) & (HI_SPLIT - 1);
  if (object) hi_count_object(t, object, (struct hi_object_count){.reads = !write, .writes = write});
  uint64_t *word = hi_shadow_word(page, address);
  if (hi_run.header->sharers ? use_last(t, word) : use(t, word, write)) observe(t, page, address, site, object);
  if (--t->sample_left == 0) {
    t->sample_left = HI_SAMPLE_PERIOD / 2 + hi_random(t) % (HI_SAMPLE_PERIOD + 1);
    uint32_t reads = write ? 0 : HI_SAMPLE_PERIOD, writes = write ? HI_SAMPLE_PERIOD : 0;
    hi_take_sample(t, (struct hi_sample){hi_line_of(address), site, reads, writes, 0, (uint16_t)object});
  }
}
