/* orders.h: what hither and its agent inside a program say to each other.
 *
 * The agent is a thread that hither puts into a running program. It makes two pipes in a
 * table of descriptors of its own; hither opens the other ends through /proc. A message is
 * one write of whole structs below, less than a pipe takes at once.
 *
 * The Rust mirror is crates/hither/src/auto/sampler/agent/protocol.rs; a test reads
 * the numbers there against these. Raise HI_AGENT_VERSION on any change. */
#ifndef HITHER_ORDERS_H
#define HITHER_ORDERS_H
#include <stddef.h>
#include <stdint.h>

#define HI_AGENT_MAGIC 0x544e474148ull /* "HAGNT" */
#define HI_AGENT_VERSION 2u

/* Descriptors in the agent's own table: the ends that hither opens, and the userfaultfd. */
#define HI_AGENT_ORDERS 1
#define HI_AGENT_REPORTS 2
#define HI_AGENT_FAULTS 4

/* Its features where it moves pages. */
#define HI_AGENT_FEATURES 0x1004eu /* MOVE; EVENT_FORK, _REMAP, _REMOVE, _UNMAP */

/* Limits of one agent. */
#define HI_AGENT_OUT 512u     /* pages away at a time */
#define HI_AGENT_REGIONS 128u /* ranges that pages may be taken of */

/* The agent's memory as hither maps it: the blob, then from its next whole page on what is
 * written, with `struct hi_agent_begin` first, then the stack. */
#define HI_AGENT_DATA (1u << 16)
#define HI_AGENT_STACK (1u << 15)

/* struct hi_agent_begin.purpose */
#define HI_AGENT_MOVES 0u
/* It makes a userfaultfd that hither takes a copy of, to protect pages from outside, and
 * leaves when hither has it. */
#define HI_AGENT_LENDS 1u

/* struct hi_agent_begin.asks */
/* HI_AGENT_FAULTS is a socket: /dev/userfaultfd is to be sent by it, opened. */
#define HI_AGENT_ASKS_DEVICE 1u
/* HI_AGENT_FAULTS is the userfaultfd: it is to be told what it is for (UFFDIO_API). */
#define HI_AGENT_ASKS_FEATURES 2u

/* Where hither, which may not open the pipes before, sees that they are there. */
struct hi_agent_begin {
  uint32_t step;  /* what was begun last */
  int32_t error;  /* 0, or the errno that ended it there */
  uint32_t ready; /* the pipes can be opened */
  uint32_t tid;
  uint32_t purpose; /* from hither, before it begins */
  uint32_t asks;    /* HI_AGENT_ASKS_* for what the program's user may not have */
  uint32_t granted; /* by hither: the last that it did */
  uint32_t pad;
};

/* struct hi_order.kind */
#define HI_ORDER_GO 1u    /* first of all: address is the magic, length the version */
#define HI_ORDER_OPEN 2u  /* pages of this range may be taken; whole mappings only */
#define HI_ORDER_CLOSE 3u /* no more; what was taken is put back */
#define HI_ORDER_TAKE 4u  /* take the page at address, of this length */

struct hi_order {
  uint32_t kind;
  uint32_t pad;
  uint64_t address;
  uint64_t length; /* bytes */
  uint64_t at;     /* CLOCK_MONOTONIC when it was given, in ns: late ones are not obeyed */
};

/* struct hi_report.kind */
#define HI_REPORT_HELLO 1u  /* first of all: address is the magic, length the version */
#define HI_REPORT_OPENED 2u /* of an order to open; error is an errno or 0 */
#define HI_REPORT_CLOSED 3u /* the range is no longer open; why: HI_CLOSED_* */
#define HI_REPORT_COUNTS 4u /* address: struct in order below, as much as fits */

#define HI_CLOSED_ORDERED 0
#define HI_CLOSED_REMOVED 1 /* the program gave pages of it back (madvise) */
#define HI_CLOSED_GONE 2    /* it was unmapped or moved */
#define HI_CLOSED_FILLING 3 /* the program touches too much of it for the first time */

struct hi_report {
  uint32_t kind;
  int32_t error;
  uint64_t address;
  uint64_t length;
  /* With every report, all since the start: */
  uint64_t taken;   /* pages taken away */
  uint64_t back;    /* pages put back since they were touched */
  uint64_t unused;  /* pages put back since nobody touched them in time */
  uint64_t refused; /* orders to take a page that the kernel or caution forbade */
  uint64_t natural; /* first touches that the agent had to answer */
  uint64_t time;    /* processor time of the agent, in ns */
};

#ifdef __STDC_VERSION__
_Static_assert(sizeof(struct hi_agent_begin) == 32, "layout");
_Static_assert(offsetof(struct hi_agent_begin, purpose) == 16, "layout");
_Static_assert(offsetof(struct hi_agent_begin, asks) == 20, "layout");
_Static_assert(offsetof(struct hi_agent_begin, granted) == 24, "layout");
_Static_assert(sizeof(struct hi_order) == 32, "layout");
_Static_assert(sizeof(struct hi_report) == 72, "layout");
#endif
#endif
