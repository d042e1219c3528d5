/* regions.c: ranges of the program that pages may be taken of: whole mappings, watched by
 * the userfaultfd. */
#include "agent.h"

/* First touches in a region that we answer in a window, before we leave the region alone:
 * each costs the program a visit to us. */
enum { FILLING = 64 };

long regions_register(struct agent *a, u64 start, u64 length) {
  struct uffdio_register r = {.range = {start, length}, .mode = UFFDIO_REGISTER_MODE_MISSING};
  return call3(__NR_ioctl, (u64)a->faults, UFFDIO_REGISTER, (u64)&r);
}

long regions_unregister(struct agent *a, u64 start, u64 length) {
  struct uffdio_range range = {start, length};
  return call3(__NR_ioctl, (u64)a->faults, UFFDIO_UNREGISTER, (u64)&range);
}

struct region *regions_find(struct agent *a, u64 page) {
  for (u32 i = 0; i < a->regions; i++)
    if (page >= a->region[i].start && page < a->region[i].end) return &a->region[i];
  return 0;
}

static void forget(struct agent *a, struct region *region) { *region = a->region[--a->regions]; }

int regions_add(struct agent *a, u64 start, u64 end, int closing) {
  if (a->regions == HI_AGENT_REGIONS) return ENOSPC;
  struct region *r = &a->region[a->regions++];
  r->start = start;
  r->end = end;
  r->natural = 0;
  r->closing = (u32)closing;
  r->why = HI_CLOSED_GONE;
  return 0;
}

int regions_open(struct agent *a, u64 start, u64 length) {
  /* Twice the same would be two to close. */
  for (u32 i = 0; i < a->regions; i++)
    if (start < a->region[i].end && a->region[i].start < start + length) return EEXIST;
  /* What we need to answer the fault must not be what is away. */
  if (start < a->memory + a->length && a->memory < start + length) return EINVAL;
  if (start < a->stash + HI_AGENT_OUT * (u64)PAGE && a->stash < start + length) return EINVAL;
  /* One is kept for what events cut in two. */
  if (a->leaving || a->regions + 1 >= HI_AGENT_REGIONS) return ENOSPC;
  long got = regions_register(a, start, length);
  if (got) return (int)-got;
  return regions_add(a, start, start + length, 0);
}

void regions_close(struct agent *a, u64 start, u64 end, int why) {
  for (u32 i = 0; i < a->regions; i++) {
    struct region *r = &a->region[i];
    if (start >= r->end || r->start >= end || r->closing) continue;
    r->closing = 1;
    r->why = why;
    pages_mark_due(a, r->start, r->end);
  }
}

/* The range is no longer of the mappings that it was of. */
void regions_cut(struct agent *a, u64 start, u64 end) {
  for (u32 i = 0; i < a->regions;) {
    struct region *r = &a->region[i];
    if (start >= r->end || r->start >= end) {
      i++;
      continue;
    }
    struct region old = *r;
    orders_tell(a, HI_REPORT_CLOSED, HI_CLOSED_GONE, start > old.start ? start : old.start,
                (end < old.end ? end : old.end) - (start > old.start ? start : old.start));
    if (old.start < start) {
      r->end = start;
      /* Without room for the rest it stays watched, which costs and harms not. */
      if (end < old.end && regions_add(a, end, old.end, (int)old.closing) == 0) a->region[a->regions - 1].why = old.why;
      i++;
    } else if (end < old.end) {
      r->start = end;
      i++;
    } else {
      forget(a, r);
    }
  }
}

static int holds_pages(struct agent *a, const struct region *r) {
  for (struct slot *s = a->slots; a->away && s < a->slots + HI_AGENT_OUT; s++)
    if ((s->state == AWAY || s->state == DUE) && s->page >= r->start && s->page < r->end) return 1;
  return 0;
}

/* Whether the kernel is telling of no change just now: until it has, a range may hold what
 * we know by another address. */
static int is_settled(const struct agent *a) {
  struct move nothing = {a->stash, a->stash, PAGE, 0, 0};
  return call3(__NR_ioctl, (u64)a->faults, IOCTL_MOVE, (u64)&nothing) != -EAGAIN;
}

/* Now and then: lets go of those that close and hold nothing of ours any more. */
void regions_look(struct agent *a) {
  for (u32 i = 0; i < a->regions;) {
    struct region *r = &a->region[i];
    if (r->natural > FILLING) regions_close(a, r->start, r->end, HI_CLOSED_FILLING);
    r->natural = 0;
    if (!r->closing || holds_pages(a, r) || !is_settled(a)) {
      i++;
      continue;
    }
    regions_unregister(a, r->start, r->end - r->start);
    struct region old = *r;
    forget(a, r);
    orders_tell(a, HI_REPORT_CLOSED, old.why, old.start, old.end - old.start);
  }
}
