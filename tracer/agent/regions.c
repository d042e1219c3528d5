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

/* Where the next memory of ours begins. */
static u64 limit(const struct agent *a, u64 end) {
  u64 next = a->stash >= end ? a->stash : ~0ull << 12;
  for (u32 i = 0; i < a->regions; i++)
    if (a->region[i].start >= end && a->region[i].start < next) next = a->region[i].start;
  return next;
}

/* The mapping at an address. Not all kernels say. */
static int ask(const struct agent *a, u64 address, struct mapping_query *q) {
  *q = (struct mapping_query){.size = sizeof *q, .address = address};
  return call3(__NR_ioctl, (u64)a->mappings, IOCTL_MAPPING, (u64)q) == 0;
}

/* Lets go of what follows, up to the next hole, of which it is not known where it is. */
static void sweep(struct agent *a, u64 at, u64 last) {
  for (u64 step = PAGE; at < last;) {
    if (step > last - at) step = last - at;
    if (regions_unregister(a, at, step) == 0) {
      at += step;
      step *= 2;
    } else if (step > PAGE) {
      step = step / 2 & ~(u64)(PAGE - 1);
    } else {
      return;
    }
  }
}

/* Mappings grow at their ends, and the kernel watches what they grow by. If only a region of
 * such a one were let go of, it would be two, and calls on the whole of it would fail
 * (mremap): so it goes whole, and at once, as far as that can be known. */
static void release(struct agent *a, u64 start, u64 end) {
  const u64 last = limit(a, end);
  struct mapping_query q;
  if (!ask(a, end - PAGE, &q)) {
    regions_unregister(a, start, end - start);
    sweep(a, end, last);
    return;
  }
  u64 to = q.end < end ? end : q.end < last ? q.end : last;
  regions_unregister(a, start, to - start);
  /* It may have grown just now. */
  if (to < last && ask(a, to, &q) && q.start == to) regions_unregister(a, to, (q.end < last ? q.end : last) - to);
}

struct region *regions_find(struct agent *a, u64 page) {
  for (u32 i = 0; i < a->regions; i++)
    if (page >= a->region[i].start && page < a->region[i].end) return &a->region[i];
  return 0;
}

/* A page was touched for the first time, of a region or of what one has grown by. */
void regions_touch(struct agent *a, u64 page) {
  struct region *of = 0;
  for (struct region *r = a->region; r < a->region + a->regions; r++)
    if (r->start <= page && (!of || r->start > of->start)) of = r;
  if (of) of->natural++;
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

/* Whether the range is known to be no mapping: it has grown since hither looked. */
static int is_other(const struct agent *a, u64 start, u64 length) {
  struct mapping_query q;
  return ask(a, start, &q) && (q.start != start || q.end != start + length);
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
  if (is_other(a, start, length)) return EAGAIN;
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
    struct region old = *r;
    forget(a, r);
    release(a, old.start, old.end);
    orders_tell(a, HI_REPORT_CLOSED, old.why, old.start, old.end - old.start);
  }
}
