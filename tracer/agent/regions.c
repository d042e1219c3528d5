/* regions.c: ranges of the program that pages may be taken from: whole mappings, registered with
 * the userfaultfd. */
#include "agent.h"

/* First touches in a region per TICK, above which the region is closed: the agent has to answer
 * each of them, which slows the program down. */
enum { FILLING = 64 };

long regions_register(struct agent *a, u64 start, u64 length) {
  struct uffdio_register r = {.range = {start, length}, .mode = UFFDIO_REGISTER_MODE_MISSING};
  return call3(__NR_ioctl, (u64)a->faults, UFFDIO_REGISTER, (u64)&r);
}

long regions_unregister(struct agent *a, u64 start, u64 length) {
  struct uffdio_range range = {start, length};
  return call3(__NR_ioctl, (u64)a->faults, UFFDIO_UNREGISTER, (u64)&range);
}

/* Start of the next region, or of the stash, above `end`. */
static u64 limit(const struct agent *a, u64 end) {
  u64 next = a->stash >= end ? a->stash : ~0ull << 12;
  for (u32 i = 0; i < a->regions; i++)
    if (a->region[i].start >= end && a->region[i].start < next) next = a->region[i].start;
  return next;
}

/* The mapping at an address; false if there is none or the kernel has no PROCMAP_QUERY. */
static int find_mapping(const struct agent *a, u64 address, struct procmap_query *q) {
  *q = (struct procmap_query){.size = sizeof *q, .query_addr = address};
  return call3(__NR_ioctl, (u64)a->mappings, PROCMAP_QUERY, (u64)q) == 0;
}

/* Unregisters the memory from `at` up to the next unmapped page, whose address is not known. */
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

/* Mappings grow at their ends, and the kernel registers the new part too. If only the region of a
 * grown mapping were unregistered, the mapping would be split in two, and calls on the whole of it
 * would fail (mremap): so it is unregistered as a whole, as far as its end is known. */
static void release(struct agent *a, u64 start, u64 end) {
  const u64 last = limit(a, end);
  struct procmap_query q;
  if (!find_mapping(a, end - PAGE, &q)) {
    regions_unregister(a, start, end - start);
    sweep(a, end, last);
    return;
  }
  u64 to = q.vma_end < end ? end : q.vma_end < last ? q.vma_end : last;
  regions_unregister(a, start, to - start);
  /* It may have grown since. */
  if (to < last && find_mapping(a, to, &q) && q.vma_start == to)
    regions_unregister(a, to, (q.vma_end < last ? q.vma_end : last) - to);
}

struct region *regions_find(struct agent *a, u64 page) {
  for (u32 i = 0; i < a->regions; i++)
    if (page >= a->region[i].start && page < a->region[i].end) return &a->region[i];
  return 0;
}

/* Counts a first touch of a page of a region, or of memory by which its mapping has grown. */
void regions_touch(struct agent *a, u64 page) {
  struct region *nearest = 0;
  for (struct region *r = a->region; r < a->region + a->regions; r++)
    if (r->start <= page && (!nearest || r->start > nearest->start)) nearest = r;
  if (nearest) nearest->natural++;
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

/* Whether the range is not exactly one mapping, which has grown since hither read it. */
static int is_other(const struct agent *a, u64 start, u64 length) {
  struct procmap_query q;
  return find_mapping(a, start, &q) && (q.vma_start != start || q.vma_end != start + length);
}

int regions_open(struct agent *a, u64 start, u64 length) {
  /* Regions must not overlap: each is closed separately. */
  for (u32 i = 0; i < a->regions; i++)
    if (start < a->region[i].end && a->region[i].start < start + length) return EEXIST;
  /* The agent's own memory must not be away, since it has to answer the fault. */
  if (start < a->memory + a->length && a->memory < start + length) return EINVAL;
  if (start < a->stash + HI_AGENT_OUT * (u64)PAGE && a->stash < start + length) return EINVAL;
  /* One entry is kept free for a region that an event splits in two. */
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

/* Removes a range that was unmapped or moved from the regions. */
void regions_cut(struct agent *a, u64 start, u64 end) {
  for (u32 i = 0; i < a->regions;) {
    struct region *r = &a->region[i];
    if (start >= r->end || r->start >= end) {
      i++;
      continue;
    }
    struct region old = *r;
    orders_report(a, HI_REPORT_CLOSED, HI_CLOSED_GONE, start > old.start ? start : old.start,
                  (end < old.end ? end : old.end) - (start > old.start ? start : old.start));
    if (old.start < start) {
      r->end = start;
      /* Without room for the rest, it stays registered, which costs time but does no harm. */
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

/* Whether no event is pending in the kernel: until the agent has read it, a page may be at another
 * address than its slot says. */
static int is_settled(const struct agent *a) {
  struct uffdio_move nothing = {.dst = a->stash, .src = a->stash, .len = PAGE};
  return call3(__NR_ioctl, (u64)a->faults, UFFDIO_MOVE, (u64)&nothing) != -EAGAIN;
}

/* Every TICK: unregisters the closing regions of which no page is away any more. */
void regions_check(struct agent *a) {
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
    orders_report(a, HI_REPORT_CLOSED, old.why, old.start, old.end - old.start);
  }
}
