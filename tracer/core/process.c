/* process.c: the process image in the segment. */
#include "object_map.h"
#include <time.h>

uint64_t hi_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* Enters this process in the segment. False when the run has HI_MAX_PROCESSES already. */
bool hi_process_start(int pid, int parent_pid, uint32_t parent, bool forked, const char *executable, uint64_t stack_top,
                      uint64_t stack_limit) {
  struct hi_header *h = hi_run.header;
  uint32_t ordinal = __atomic_fetch_add(&h->next_process, 1, __ATOMIC_SEQ_CST);
  hi_run.process = 0;
  if (ordinal >= HI_MAX_PROCESSES) {
    __atomic_store_n(&h->next_process, HI_MAX_PROCESSES, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&h->lost_processes, 1, __ATOMIC_RELAXED);
    return false;
  }
  struct hi_process *p = &hi_run.processes[ordinal];
  p->pid = pid;
  p->parent_pid = parent_pid;
  p->parent = parent;
  p->start_ns = hi_now();
  p->inherited_objects = forked ? hi_objects.next_id : 0;
  hi_run.process = ordinal;
  __atomic_store_n(&p->state, HI_PROCESS_LIVE, __ATOMIC_RELEASE);
  hi_run.stack_top = stack_top;
  hi_run.stack_limit = stack_limit;
  uint64_t a[] = {(uint64_t)pid, parent, forked, stack_top, stack_limit};
  hi_emit(NULL, HI_EV_PROCESS, 0, a, 5, executable);
  return true;
}

void hi_process_end(uint32_t state) {
  struct hi_process *p = &hi_run.processes[hi_run.process];
  p->end_ns = hi_now();
  __atomic_store_n(&p->state, state, __ATOMIC_RELEASE);
}
