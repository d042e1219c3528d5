/* orders.c: orders from hither and reports to it. */
#include "agent.h"

/* Orders to take a page are refused after this, in ns: the mapping may have changed since. */
#define LATE 50000000ull

void orders_report(struct agent *a, u32 kind, int error, u64 address, u64 length) {
  if (!a->going && kind != HI_REPORT_HELLO) return;
  a->report.kind = kind;
  a->report.error = error;
  a->report.address = address;
  a->report.length = length;
  a->report.time = own_time();
  a->last_report = a->now;
  /* If the pipe is full the report is lost: the agent does not wait for hither. */
  call3(__NR_write, (u64)a->reports, (u64)&a->report, sizeof a->report);
}

static void obey(struct agent *a, const struct hi_order *order) {
  switch (order->kind) {
  case HI_ORDER_GO:
    if (order->address != HI_AGENT_MAGIC || order->length != HI_AGENT_VERSION) {
      a->leaving = 1;
      return;
    }
    /* Closes the agent's copies of hither's ends, so that the pipes hang up when hither ends. */
    call3(__NR_close, HI_AGENT_ORDERS, 0, 0);
    call3(__NR_close, HI_AGENT_REPORTS, 0, 0);
    a->going = 1;
    break;
  case HI_ORDER_OPEN:
    orders_report(a, HI_REPORT_OPENED, regions_open(a, order->address, order->length), order->address, order->length);
    break;
  case HI_ORDER_CLOSE: regions_close(a, order->address, order->address + order->length, HI_CLOSED_ORDERED); break;
  case HI_ORDER_TAKE:
    if (a->now - order->at < LATE && order->length == PAGE) pages_take(a, order->address);
    else a->report.refused++;
    break;
  default: break;
  }
}

/* Executes up to BATCH orders, so that threads that wait for a page do not wait for long. */
void orders_obey(struct agent *a) {
  if (a->obeyed == a->given) {
    a->obeyed = a->given = 0;
    long got = call3(__NR_read, (u64)a->orders, (u64)a->order, sizeof a->order);
    if (got > 0) a->given = (u32)((u64)got / sizeof a->order[0]);
    else if (got == 0) a->leaving = 1;
    if (a->given) a->now = clock_ns(CLOCK_MONOTONIC);
  }
  const u64 began = own_time(), taken = a->report.taken;
  for (u32 i = 0; i < BATCH && a->obeyed < a->given && !a->leaving; i++) obey(a, &a->order[a->obeyed++]);
  if (a->report.taken != taken) a->report.taking += own_time() - began;
  if (a->given && a->obeyed == a->given) orders_report(a, HI_REPORT_COUNTS, 0, 0, 0);
}
