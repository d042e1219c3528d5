/* agent.h: the agent's memory, and who does what with it. One thread, no locks.
 *
 *   orders.c   hither <-> agent           regions.c  ranges that pages may be taken of
 *   events.c   what the program does      pages.c    taking pages away and putting them back
 *   fork.c     a child's copies           agent.c    start, loop, end
 *
 * Invariant: what a page that is away held lies in its slot of the stash and nowhere else.
 * The slot is given up only after the kernel has put the page back or the program itself
 * has given it up. */
#ifndef HITHER_AGENT_AGENT_H
#define HITHER_AGENT_AGENT_H
#include "kernel.h"

enum { BATCH = 16, WAITING = 256, MESSAGES = 16, ORDERS = 64 };
/* struct slot.state */
enum {
  FREE,
  AWAY,
  DUE,    /* to be put back as soon as the kernel lets us */
  SPOILT, /* holds what nobody needs; to be emptied */
};

struct slot {
  u64 page;
  u64 since;
  u32 state;
  uint16_t moved;  /* came here by mremap */
  uint16_t failed; /* times in a row that there was no place for it */
};

struct region {
  u64 start, end;
  u64 natural; /* first touches in this window */
  u32 closing;
  int32_t why;
};

struct agent {
  struct hi_agent_begin begin; /* where hither looks for it */
  u64 memory, length;          /* all of it but the code, to be unmapped at the end */
  u64 stash;
  int faults, orders, reports;
  int mappings; /* negative: cannot be asked for */
  u32 going;    /* hither has the other ends */
  u32 leaving;  /* no more orders */
  u32 away, due, next;
  u32 regions, waiting, given, obeyed;
  u64 now, looked, told;
  struct hi_report report;
  u64 waits[WAITING]; /* faults to be answered later */
  struct slot slots[HI_AGENT_OUT];
  struct region region[HI_AGENT_REGIONS];
  struct uffd_msg message[MESSAGES];
  struct hi_order order[ORDERS];
};
_Static_assert(sizeof(struct agent) <= HI_AGENT_DATA, "the agent's memory");

/* pages.c. They return 0, or EAGAIN where it is to be tried again. */
void pages_take(struct agent *a, u64 page);
int pages_answer(struct agent *a, u64 page);
int pages_put_back(struct agent *a, struct slot *slot);
struct slot *pages_find(struct agent *a, u64 page);
void pages_mark_due(struct agent *a, u64 start, u64 end);
void pages_drop(struct agent *a, struct slot *slot);
void pages_look(struct agent *a);

/* regions.c */
struct region *regions_find(struct agent *a, u64 page);
void regions_touch(struct agent *a, u64 page);
int regions_add(struct agent *a, u64 start, u64 end, int closing);
int regions_open(struct agent *a, u64 start, u64 length);
void regions_close(struct agent *a, u64 start, u64 end, int why);
void regions_cut(struct agent *a, u64 start, u64 end);
void regions_look(struct agent *a);
long regions_register(struct agent *a, u64 start, u64 length);
long regions_unregister(struct agent *a, u64 start, u64 length);

/* events.c */
int events_take_in(struct agent *a);
void events_retry(struct agent *a);

/* fork.c */
void fork_complete(struct agent *a, int faults);

/* orders.c */
void orders_obey(struct agent *a);
void orders_tell(struct agent *a, u32 kind, int error, u64 address, u64 length);

#endif
