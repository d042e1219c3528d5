/* waits.c: burst recording: the time that a recorded thread waits in the kernel. A piece ends where
 * a wait begins, because later accesses come after those of other threads during the wait. */
#include "host.h"
#include <sys/syscall.h>

/* A shorter system call counts as no wait. */
#define WAIT_NS 20000u

static int slot;

static bool wanted(void *dc, int number) {
  (void)dc;
  switch (number) {
  case SYS_futex:
  case SYS_poll:
  case SYS_ppoll:
  case SYS_select:
  case SYS_pselect6:
  case SYS_epoll_wait:
  case SYS_epoll_pwait:
  case SYS_nanosleep:
  case SYS_clock_nanosleep:
  case SYS_sched_yield:
  case SYS_pause:
  case SYS_wait4:
  case SYS_waitid:
  case SYS_rt_sigsuspend:
  case SYS_rt_sigtimedwait:
  case SYS_read:
  case SYS_readv:
  case SYS_pread64:
  case SYS_preadv:
  case SYS_write:
  case SYS_writev:
  case SYS_pwrite64:
  case SYS_pwritev:
  case SYS_fsync:
  case SYS_fdatasync:
  case SYS_accept:
  case SYS_accept4:
  case SYS_connect:
  case SYS_recvfrom:
  case SYS_recvmsg:
  case SYS_sendto:
  case SYS_sendmsg:
  case SYS_semop:
  case SYS_semtimedop:
  case SYS_msgrcv:
  case SYS_msgsnd:
  case SYS_flock:
  case SYS_fcntl: return true;
  default: return false;
  }
}

/* Start of the system call in progress, 0: none. */
static void note(void *dc, uint64_t since) { drmgr_set_tls_field(dc, slot, (void *)since); }

/* Encodes the raw buffer first: a thread may never return from these calls. */
static bool before_syscall(void *dc, int number) {
  struct hi_local *t = host_local(dc);
  if (!wanted(dc, number) || seccomp_refused(dc)) return true;
  hi_record_encode(t);
  if (hi_recording(t)) note(dc, hi_record_now());
  return true;
}

static void after_syscall(void *dc, int number) {
  uint64_t since = (uint64_t)drmgr_get_tls_field(dc, slot);
  if (!since || !wanted(dc, number)) return;
  note(dc, 0);
  struct hi_local *t = host_local(dc);
  if (!hi_recording(t)) return;
  uint64_t now = hi_record_now();
  if (now - since >= WAIT_NS) hi_record_waited(t, since, now);
}

void waits_init(void) {
  slot = drmgr_register_tls_field();
  dr_register_filter_syscall_event(wanted);
  drmgr_register_pre_syscall_event(before_syscall);
  drmgr_register_post_syscall_event(after_syscall);
}
