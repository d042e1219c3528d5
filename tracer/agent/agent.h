/* agent.h: the agent's memory, and the functions of its files. One thread, no locks.
 *
 *   orders.c   orders and reports               regions.c  ranges that pages may be taken from
 *   events.c   messages of the userfaultfd      pages.c    takes pages away and puts them back
 *   fork.c     the pages of forked children     agent.c    start, loop, end
 *
 * Invariant: the contents of a page that is away are in its slot of the stash and nowhere else.
 * The slot is freed only after the kernel has put the page back or the program itself has
 * unmapped or discarded the page. */
#ifndef HITHER_AGENT_AGENT_H
#define HITHER_AGENT_AGENT_H
#include "kernel.h"

enum { BATCH = 16, WAITING = 256, MESSAGES = 16, ORDERS = 64 };
/* struct slot.state */
enum {
  FREE,
  AWAY,
  DUE,    /* to be put back as soon as the kernel allows it */
  SPOILT, /* holds a page that is not needed any more; to be emptied */
};

struct slot {
  u64 page;
  u64 since;
  u32 state;
  uint16_t moved;  /* the program has moved the page by mremap */
  uint16_t failed; /* attempts in a row that found no mapping to put it back to */
};

struct region {
  u64 start, end;
  u64 natural; /* first touches since the last check */
  u32 closing;
  int32_t why;
};

struct agent {
  struct hi_agent_begin begin; /* first, where hither reads it */
  u64 memory, length;          /* of this struct and the stack, to be unmapped at the end */
  u64 stash;
  int faults, orders, reports;
  int mappings; /* /proc/self/maps, for PROCMAP_QUERY; negative: not available */
  u32 going;    /* hither has opened the other ends of the pipes */
  u32 leaving;  /* takes no more orders: puts all pages back and exits */
  u32 away, due, next;
  u32 regions, waiting, given, obeyed;
  u64 now, last_check, last_report;
  struct hi_report report;
  u64 waits[WAITING]; /* faults to be answered later */
  struct slot slots[HI_AGENT_OUT];
  struct region region[HI_AGENT_REGIONS];
  struct uffd_msg message[MESSAGES];
  struct hi_order order[ORDERS];
};
_Static_assert(sizeof(struct agent) <= HI_AGENT_DATA, "the agent's memory");

/* Processor time of the agent, in ns. */
static inline u64 own_time(void) { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

/* pages.c. Those with a result return 0, or EAGAIN if the call is to be repeated later. */
void pages_take(struct agent *a, u64 page);
int pages_answer(struct agent *a, u64 page);
int pages_put_back(struct agent *a, struct slot *slot);
struct slot *pages_find(struct agent *a, u64 page);
void pages_mark_due(struct agent *a, u64 start, u64 end);
void pages_drop(struct agent *a, struct slot *slot);
void pages_check(struct agent *a);

/* regions.c */
struct region *regions_find(struct agent *a, u64 page);
void regions_touch(struct agent *a, u64 page);
int regions_add(struct agent *a, u64 start, u64 end, int closing);
int regions_open(struct agent *a, u64 start, u64 length);
void regions_close(struct agent *a, u64 start, u64 end, int why);
void regions_cut(struct agent *a, u64 start, u64 end);
void regions_check(struct agent *a);
long regions_register(struct agent *a, u64 start, u64 length);
long regions_unregister(struct agent *a, u64 start, u64 length);

/* events.c */
int events_read(struct agent *a);
void events_retry(struct agent *a);

/* fork.c */
void fork_complete(struct agent *a, int faults);

/* orders.c */
void orders_obey(struct agent *a);
void orders_report(struct agent *a, u32 kind, int error, u64 address, u64 length);

#endif
