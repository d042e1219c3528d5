/* orders.h: the protocol between hither and its agent inside a program.
 *
 * The agent is a thread that hither puts into a running program. It creates two pipes in a
 * descriptor table of its own; hither opens the other ends through /proc. A message is one
 * write of whole structs below, of at most PIPE_BUF bytes.
 *
 * The Rust mirror is crates/hither/src/auto/sampler/agent/protocol.rs; a test reads
 * the numbers there against these. Raise HI_AGENT_VERSION on any change. */
#ifndef HITHER_ORDERS_H
#define HITHER_ORDERS_H
#include <stddef.h>
#include <stdint.h>

#define HI_AGENT_MAGIC 0x544e474148ull /* "HAGNT" */
#define HI_AGENT_VERSION 4u

/* Descriptors in the agent's own table: the ends that hither opens, and the userfaultfd. */
#define HI_AGENT_ORDERS 1
#define HI_AGENT_REPORTS 2
#define HI_AGENT_FAULTS 4

/* Features of the userfaultfd of an agent that moves pages. */
#define HI_AGENT_FEATURES 0x1004eu /* MOVE; EVENT_FORK, _REMAP, _REMOVE, _UNMAP */

/* Limits of one agent. */
#define HI_AGENT_OUT 512u     /* pages away at a time */
#define HI_AGENT_REGIONS 128u /* ranges that pages may be taken from */

/* The agent's memory as hither maps it: the code; from the next page boundary on HI_AGENT_DATA
 * bytes of data, with `struct hi_agent_begin` first; then the stack. */
#define HI_AGENT_DATA (1u << 16)
#define HI_AGENT_STACK (1u << 15)

/* struct hi_agent_begin.purpose */
#define HI_AGENT_MOVES 0u
/* The agent creates a userfaultfd, which hither duplicates to write-protect pages from outside,
 * and exits when hither has it. */
#define HI_AGENT_LENDS 1u

/* The state of the agent's start, which hither polls: it can open the pipes only when `ready`. */
struct hi_agent_begin {
  uint32_t step;  /* where `error` occurred */
  int32_t error;  /* 0, or the errno that ended the agent */
  uint32_t ready; /* the pipes can be opened */
  uint32_t tid;
  uint32_t purpose; /* HI_AGENT_MOVES or _LENDS, written by hither before the start */
  uint32_t pad;
};

/* struct hi_order.kind */
#define HI_ORDER_GO 1u    /* the first order: address is the magic, length the version */
#define HI_ORDER_OPEN 2u  /* pages of this range, a whole mapping, may be taken */
#define HI_ORDER_CLOSE 3u /* ends that; pages that are away are put back */
#define HI_ORDER_TAKE 4u  /* take the page at address, of this length */

struct hi_order {
  uint32_t kind;
  uint32_t pad;
  uint64_t address;
  uint64_t length; /* bytes */
  uint64_t at;     /* CLOCK_MONOTONIC of the order, in ns: orders to take pages expire */
};

/* struct hi_report.kind */
#define HI_REPORT_HELLO 1u  /* the first report: address is the magic, length the version */
#define HI_REPORT_OPENED 2u /* answers an order to open; error is an errno or 0 */
#define HI_REPORT_CLOSED 3u /* the range is no longer open; error: HI_CLOSED_* */
#define HI_REPORT_COUNTS 4u /* only the counts below */

#define HI_CLOSED_ORDERED 0
#define HI_CLOSED_REMOVED 1 /* the program has discarded pages of it (madvise) */
#define HI_CLOSED_GONE 2    /* it was unmapped or moved */
#define HI_CLOSED_FILLING 3 /* the program touches too many of its pages for the first time */

struct hi_report {
  uint32_t kind;
  int32_t error;
  uint64_t address;
  uint64_t length;
  /* In every report, counted from the start: */
  uint64_t taken;   /* pages taken away */
  uint64_t back;    /* pages put back because they were touched */
  uint64_t unused;  /* pages put back because they were not touched in time */
  uint64_t refused; /* orders to take a page that the kernel or the agent refused */
  uint64_t natural; /* first touches that the agent had to answer */
  uint64_t time;    /* processor time of the agent, in ns */
  uint64_t taking;  /* that of it in which pages were taken and put back */
};

#ifdef __STDC_VERSION__
_Static_assert(sizeof(struct hi_agent_begin) == 24, "layout");
_Static_assert(offsetof(struct hi_agent_begin, purpose) == 16, "layout");
_Static_assert(sizeof(struct hi_order) == 32, "layout");
_Static_assert(sizeof(struct hi_report) == 80, "layout");
#endif
#endif
