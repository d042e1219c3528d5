/* fork.c: gives a forked child copies of its parent's pages that are away. The child has a
 * userfaultfd of its own, on which its threads wait for missing pages; the agent closes it when all
 * are copied. */
#include "agent.h"

enum { DEPTH = 3 }; /* of forks in children that do not have all their pages yet */

static void forget(u64 *pages, u64 start, u64 end) {
  for (u32 i = 0; i < HI_AGENT_OUT; i++)
    if (pages[i] >= start && pages[i] < end) pages[i] = 0;
}

static void complete(struct agent *a, int faults, const u64 *of_parent, u32 depth);

/* An event of a child that does not have all its pages yet. */
static void event(struct agent *a, u64 *pages, const struct uffd_msg *m, u32 depth) {
  u64 from = m->arg.remap.from, to = m->arg.remap.to, length = m->arg.remap.len;
  switch (m->event) {
  case UFFD_EVENT_REMOVE:
  case UFFD_EVENT_UNMAP: forget(pages, m->arg.remove.start, m->arg.remove.end); break;
  case UFFD_EVENT_REMAP:
    forget(pages, to, to + length);
    for (u32 i = 0; i < HI_AGENT_OUT; i++)
      if (pages[i] >= from && pages[i] < from + length) pages[i] = pages[i] - from + to;
    break;
  case UFFD_EVENT_FORK: complete(a, (int)m->arg.fork.ufd, pages, depth + 1); break;
  default: break;
  }
}

/* Reads the child's events: until then the kernel refuses to copy pages (EAGAIN). */
static void take_in(struct agent *a, int faults, u64 *pages, u32 depth) {
  struct uffd_msg m;
  while (call3(__NR_read, (u64)faults, (u64)&m, sizeof m) == sizeof m) event(a, pages, &m, depth);
}

static void complete(struct agent *a, int faults, const u64 *of_parent, u32 depth) {
  u64 pages[HI_AGENT_OUT];
  for (u32 i = 0; i < HI_AGENT_OUT; i++) pages[i] = of_parent[i];
  for (u32 i = 0; i < HI_AGENT_OUT && depth < DEPTH; i++) {
    while (pages[i]) {
      struct uffdio_copy c = {.dst = pages[i], .src = a->stash + (u64)i * PAGE, .len = PAGE};
      if (call3(__NR_ioctl, (u64)faults, UFFDIO_COPY, (u64)&c) != -EAGAIN) break;
      take_in(a, faults, pages, depth);
    }
  }
  call3(__NR_close, (u64)faults, 0, 0);
}

void fork_complete(struct agent *a, int faults) {
  u64 pages[HI_AGENT_OUT];
  for (u32 i = 0; i < HI_AGENT_OUT; i++) {
    const struct slot *s = &a->slots[i];
    pages[i] = s->state == AWAY || s->state == DUE ? s->page : 0;
  }
  complete(a, faults, pages, 0);
}
