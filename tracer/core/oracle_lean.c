/* oracle_lean.c: the definition itself, one call per access, as the reference for the
 * line cache. An access counts one event with each other thread among the last K that
 * touched the line in this slice.
 *
 * shadow word = (slice mod 2^16) << 48 | up to four threads, 12 bits each, latest first */
#include "credit.h"
#include "reveal.h"
#include "sample.h"

#define MAX_SHARERS 4
#define THREAD_BITS 12

static uint64_t touch(struct hi_local *t, uint64_t v, uint64_t slice, uint32_t sharers, bool count) {
  uint64_t list = (v >> 48) == slice ? v & ((1ull << 48) - 1) : 0;
  uint64_t next = t->index;
  uint32_t kept = 1;
  for (uint32_t i = 0; i < sharers; i++) {
    uint32_t other = (list >> (THREAD_BITS * i)) & ((1u << THREAD_BITS) - 1);
    if (other == 0) break;
    if (other == t->index) continue;
    if (count) hi_owe(t, other, HI_COMM_UNIT);
    if (kept < sharers) next |= (uint64_t)other << (THREAD_BITS * kept++);
  }
  return slice << 48 | next;
}

/* What the line cache reveals now and then is known here of every access. */
static void see(struct hi_local *t, uint32_t page, uint64_t address, uint32_t site) {
  struct hi_seen seen = {page, site, (uint16_t)(address & (HI_PAGE_BYTES - 1)), HI_SEEN_LOW, 0};
  if (t->reveals_left) hi_reveal(t, seen);
  hi_see_shared(t, page, hi_line_of(address), 1);
}

void hi_oracle_access(struct hi_local *t, uint64_t address, bool write, uint32_t site) {
  address &= HI_ADDRESS_MASK;
  uint32_t epoch = __atomic_load_n(&hi_run.header->epoch, __ATOMIC_RELAXED);
  if (epoch != t->epoch) {
    t->epoch = epoch;
    t->comm = &hi_run.comm[HI_COMM_ROW(t->index, epoch & 1)];
    hi_reveal_slice(t);
    hi_publish_instructions(t);
  }
  if (!hi_counting(t) || t->index >> THREAD_BITS) return;
  uint32_t page = hi_page_of(t, address);
  if (!page) return;
  hi_add_counts(t, page, !write, write);
  uint64_t *word = hi_shadow_word(page, address);
  uint64_t slice = epoch & 0xffff, v = __atomic_load_n(word, __ATOMIC_RELAXED);
  uint32_t sharers = hi_run.header->sharers < MAX_SHARERS ? hi_run.header->sharers : MAX_SHARERS;
  for (;;) {
    uint64_t next = touch(t, v, slice, sharers, false);
    if (next == v) break;
    uint64_t seen = v;
    if (__atomic_compare_exchange_n(word, &seen, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) break;
    v = seen;
  }
  touch(t, v, slice, sharers, true);
  bool shared = (v >> 48) == slice && (v & ((1ull << 48) - 1)) != t->index && (v & ((1ull << 48) - 1));
  if (shared) see(t, page, address, site);
  if (--t->sample_left == 0) hi_sample_due(t, (struct hi_sample){hi_line_of(address), site, !write, write, 1});
}
