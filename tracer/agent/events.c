/* events.c: messages of the userfaultfd: page faults, and changes of registered memory. A thread
 * that unmaps, discards or moves memory, or forks, waits in the kernel until the agent has read the
 * event, and until then the kernel lets the agent move no page (EAGAIN). */
#include "agent.h"

/* Discarded memory (madvise): its pages are not put back. */
static void removed(struct agent *a, u64 start, u64 end) {
  for (struct slot *s = a->slots; a->away && s < a->slots + HI_AGENT_OUT; s++)
    if ((s->state == AWAY || s->state == DUE) && s->page >= start && s->page < end) pages_drop(a, s);
}

static void unmapped(struct agent *a, u64 start, u64 end) {
  for (struct slot *s = a->slots; a->away && s < a->slots + HI_AGENT_OUT; s++) {
    if ((s->state != AWAY && s->state != DUE) || s->page < start || s->page >= end) continue;
    /* A page that mremap has moved here may belong to a mapping made after this unmap: putting it
     * back shows whether it has a mapping. */
    if (!s->moved) pages_drop(a, s);
  }
  pages_mark_due(a, start, end);
  regions_cut(a, start, end);
}

static void remapped(struct agent *a, u64 from, u64 to, u64 length) {
  /* The old mapping at the new address was unmapped before, though its event may come later. */
  removed(a, to, to + length);
  regions_cut(a, to, to + length);
  for (struct slot *s = a->slots; a->away && s < a->slots + HI_AGENT_OUT; s++) {
    if ((s->state != AWAY && s->state != DUE) || s->page < from || s->page >= from + length) continue;
    s->page = s->page - from + to;
    s->moved = 1;
  }
  regions_cut(a, from, from + length);
  /* The memory stays registered; the region is closed, and hither may open it again. */
  if (regions_add(a, to, to + length, 1)) pages_mark_due(a, to, to + length);
  pages_mark_due(a, to, to + length);
}

static void event(struct agent *a, const struct uffd_msg *m) {
  switch (m->event) {
  case UFFD_EVENT_REMOVE:
    removed(a, m->arg.remove.start, m->arg.remove.end);
    /* The kernel discards the memory only after this event was read, without a message when it has
     * done so: no page of the region may be taken any more. */
    regions_close(a, m->arg.remove.start, m->arg.remove.end, HI_CLOSED_REMOVED);
    break;
  case UFFD_EVENT_UNMAP: unmapped(a, m->arg.remove.start, m->arg.remove.end); break;
  case UFFD_EVENT_REMAP: remapped(a, m->arg.remap.from, m->arg.remap.to, m->arg.remap.len); break;
  case UFFD_EVENT_FORK: fork_complete(a, (int)m->arg.fork.ufd); break;
  default: break;
  }
}

static void fault(struct agent *a, u64 page) {
  if (pages_answer(a, page) == 0) return;
  if (a->waiting < WAITING) {
    a->waits[a->waiting++] = page;
    return;
  }
  /* No room to remember it: the thread faults again. */
  struct uffdio_range range = {page, PAGE};
  call3(__NR_ioctl, (u64)a->faults, UFFDIO_WAKE, (u64)&range);
}

/* Reads and handles messages. Returns whether there may be more. */
int events_read(struct agent *a) {
  long got = call3(__NR_read, (u64)a->faults, (u64)a->message, sizeof a->message);
  if (got <= 0) return 0;
  long count = got / (long)sizeof a->message[0];
  /* The kernel delivers faults before events, but a fault may be in memory that an event before it
   * has moved there. */
  for (long i = 0; i < count; i++)
    if (a->message[i].event != UFFD_EVENT_PAGEFAULT) event(a, &a->message[i]);
  /* Pages that were taken and first touches come together: of their time each has its share. */
  const u64 began = a->away ? own_time() : 0, back = a->report.back, natural = a->report.natural;
  for (long i = 0; i < count; i++)
    if (a->message[i].event == UFFD_EVENT_PAGEFAULT) fault(a, a->message[i].arg.pagefault.address & ~(u64)(PAGE - 1));
  const u64 ours = a->report.back - back, all = ours + a->report.natural - natural;
  if (ours) a->report.taking += (own_time() - began) * ours / all;
  return count == MESSAGES;
}

void events_retry(struct agent *a) {
  u32 kept = 0;
  for (u32 i = 0; i < a->waiting; i++)
    if (pages_answer(a, a->waits[i])) a->waits[kept++] = a->waits[i];
  a->waiting = kept;
  for (struct slot *s = a->slots; a->due && s < a->slots + HI_AGENT_OUT; s++)
    if (s->state == DUE) pages_put_back(a, s);
}
