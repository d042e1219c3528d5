/* pages.c: takes pages away and puts them back. */
#include "agent.h"

/* A page that is not touched is put back after this, in ns. */
#define TIME_AWAY 300000000ull
/* A page that could not be put back for so long, and so often, has no mapping any more. */
#define TIME_DUE 5000000000ull
enum { TRIES_DUE = 100 };

static u64 place(const struct agent *a, const struct slot *slot) { return a->stash + (u64)(slot - a->slots) * PAGE; }

static long move(const struct agent *a, u64 to, u64 from) {
  struct uffdio_move m = {.dst = to, .src = from, .len = PAGE};
  return call3(__NR_ioctl, (u64)a->faults, UFFDIO_MOVE, (u64)&m);
}

static void wake(const struct agent *a, u64 page) {
  struct uffdio_range range = {page, PAGE};
  call3(__NR_ioctl, (u64)a->faults, UFFDIO_WAKE, (u64)&range);
}

struct slot *pages_find(struct agent *a, u64 page) {
  if (!a->away) return 0;
  for (struct slot *s = a->slots; s < a->slots + HI_AGENT_OUT; s++)
    if (s->page == page && (s->state == AWAY || s->state == DUE)) return s;
  return 0;
}

/* A slot without a page, made empty if need be. */
static struct slot *free_slot(struct agent *a) {
  for (u32 i = 0; i < HI_AGENT_OUT; i++) {
    struct slot *s = &a->slots[(a->next + i) % HI_AGENT_OUT];
    if (s->state == SPOILT) {
      /* Unregister first: MADV_DONTNEED on registered memory would wait until the agent itself
       * has read the event. */
      u64 at = place(a, s);
      if (regions_unregister(a, at, PAGE) == 0 && call3(__NR_madvise, at, PAGE, MADV_DONTNEED) == 0 &&
          regions_register(a, at, PAGE) == 0)
        s->state = FREE;
    }
    if (s->state == FREE) {
      a->next = (u32)(s - a->slots) + 1;
      return s;
    }
  }
  return 0;
}

static void leave_slot(struct agent *a, struct slot *slot, u32 state) {
  if (slot->state == DUE) a->due--;
  a->away--;
  slot->state = state;
  slot->page = 0;
  slot->moved = 0;
}

void pages_drop(struct agent *a, struct slot *slot) { leave_slot(a, slot, SPOILT); }

static void mark_due(struct agent *a, struct slot *slot) {
  if (slot->state != AWAY) return;
  slot->state = DUE;
  slot->failed = 0;
  slot->since = a->now;
  a->due++;
}

void pages_mark_due(struct agent *a, u64 start, u64 end) {
  for (struct slot *s = a->slots; s < a->slots + HI_AGENT_OUT; s++)
    if (s->state == AWAY && s->page >= start && s->page < end) mark_due(a, s);
}

/* Whether there is a page in an empty slot. */
static int is_filled(const struct agent *a, const struct slot *slot) {
  unsigned char resident = 0;
  return call3(__NR_mincore, place(a, slot), PAGE, (u64)&resident) == 0 && resident & 1;
}

/* The offset in each list of robust locks of the GNU C library, from a lock's link to its
 * word; what a mutex's kind has if it is robust, and all that it may have. */
#define FUTEX_OFFSET (-32ull)
enum { ROBUST = 16, KIND = 0xff, FUTEX_TID = 0x3fffffff };

static int is_address(u64 word) { return word >= PAGE && word < 1ull << 47; }

/* Whether the kernel itself may need the page when a thread exits, for which it does not wait:
 * there is a thread control block in it, or a robust lock that somebody holds. hither has
 * looked before it gave the order (exit_pages.rs, also for locks that cross two pages);
 * since then a lock may have been taken. */
static int is_exit_page(const u64 *word) {
  enum { WORDS = PAGE / sizeof *word };
  for (u32 i = 0; i + 8 <= WORDS; i += 8)
    if (word[i + 5] == FUTEX_OFFSET && is_address(word[i + 4])) return 1;
  for (u32 i = 0; i + 5 <= WORDS; i++) {
    const u64 kind = word[i + 2] & ~0u, owner = word[i] & FUTEX_TID;
    if (kind & ROBUST && kind <= KIND && owner && (word[i + 1] & ~0u) == owner && is_address(word[i + 3]) &&
        is_address(word[i + 4]))
      return 1;
  }
  return 0;
}

void pages_take(struct agent *a, u64 page) {
  struct region *region = regions_find(a, page);
  struct slot *slot = region && !region->closing ? free_slot(a) : 0;
  long got = slot ? move(a, place(a, slot), page) : -EINVAL;
  if (got) a->report.refused++;
  /* Linux 6.18 has moved a page that others copy at the time (fork) and says EEXIST: it
   * tries a second time and finds the first. */
  if (got && (!slot || !is_filled(a, slot))) return;
  slot->page = page;
  slot->since = a->now;
  slot->state = AWAY;
  slot->moved = 0;
  a->away++;
  if (got) mark_due(a, slot);
  else if (is_exit_page((const u64 *)place(a, slot))) {
    a->report.refused++;
    pages_put_back(a, slot);
  } else a->report.taken++;
}

/* For a page that cannot be moved back: the program has changed its protection or locked it, or
 * the kernel holds a reference to the agent's page. */
static long copy(const struct agent *a, u64 to, u64 from) {
  struct uffdio_copy c = {.dst = to, .src = from, .len = PAGE};
  return call3(__NR_ioctl, (u64)a->faults, UFFDIO_COPY, (u64)&c);
}

/* Whether the mapping that the page was taken from is gone: the address is occupied, or has been
 * unmapped for long. Other errors leave that open: the call is repeated. */
static int has_no_place(struct agent *a, struct slot *slot, long got) {
  if (got == -EEXIST) return 1;
  if (got != -ENOENT && got != -EINVAL) {
    slot->since = a->now;
    slot->failed = 0;
    return 0;
  }
  if (slot->failed < TRIES_DUE) slot->failed++;
  return slot->failed == TRIES_DUE && a->now - slot->since > TIME_DUE;
}

int pages_put_back(struct agent *a, struct slot *slot) {
  u64 page = slot->page;
  long got = move(a, page, place(a, slot));
  if (got == 0) {
    leave_slot(a, slot, FREE);
    return 0;
  }
  if (got != -EAGAIN && got != -EEXIST) got = copy(a, page, place(a, slot));
  if (got == 0) {
    leave_slot(a, slot, SPOILT);
    return 0;
  }
  mark_due(a, slot);
  if (!has_no_place(a, slot, got)) return EAGAIN;
  leave_slot(a, slot, SPOILT);
  wake(a, page);
  return 0;
}

int pages_answer(struct agent *a, u64 page) {
  struct slot *slot = pages_find(a, page);
  if (slot) {
    int again = pages_put_back(a, slot);
    if (!again) a->report.back++;
    return again;
  }
  struct uffdio_zeropage z = {.range = {page, PAGE}};
  long got = call3(__NR_ioctl, (u64)a->faults, UFFDIO_ZEROPAGE, (u64)&z);
  if (got == -EAGAIN) return EAGAIN;
  /* The page is there, or its mapping is gone: the thread repeats the access. */
  if (got) wake(a, page);
  if (got == 0) {
    a->report.natural++;
    regions_touch(a, page);
  }
  return 0;
}

/* Every TICK: puts back pages that have been away for long. */
void pages_check(struct agent *a) {
  for (struct slot *s = a->slots; a->away && s < a->slots + HI_AGENT_OUT; s++) {
    if (s->state == DUE) pages_put_back(a, s);
    if (s->state != AWAY || (!a->leaving && a->now - s->since < TIME_AWAY)) continue;
    if (pages_put_back(a, s) == 0) a->report.unused++;
  }
}
