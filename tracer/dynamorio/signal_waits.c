/* signal_waits.c: signals that the program waits for (sigwait, sigtimedwait) come out there.
 *
 * A program blocks such signals in all threads. The kernel then gives one for the process to a
 * thread that waits, or keeps it until one does. DynamoRIO blocks no signal in the kernel, so any
 * thread gets it, and keeps it for that thread until it unblocks it, which it never does. So the
 * handler in front of DynamoRIO's keeps such a signal here, for a thread that waits now, or for
 * the next that waits for it or unblocks it.
 *
 * While a signal is kept another one of its kind is lost, as in the kernel, but there not of real-time
 * signals. One that arrives before the program has ever waited for it goes DynamoRIO's way.
 *
 * A program that waits for all signals would take the one by which DynamoRIO suspends a thread, and DynamoRIO would
 * wait for ever that the thread stops: that one is left out of what the kernel is asked for. */
#include "host.h"
#include <signal.h>
#include <sys/syscall.h>

enum { EMPTY, BUSY, PENDING };
enum { SUSPENDS = SIGILL }; /* DynamoRIO's signal that stops a thread */

static struct {
  uint32_t state;
  int tid; /* of the thread that it is for, 0: any */
  siginfo_t info;
} pending[SIGNALS + 1];

/* What each thread waits for, by the thread's index. */
static struct {
  uint64_t signals;   /* a bit per signal, signal 1 the lowest; read by the kernel, in the place of: */
  reg_t programs_own; /* where the program has them */
  int tid;
  int woken; /* the signal by which it was woken last */
} waiting[HI_MAX_THREADS];

static uint64_t waited; /* what was ever waited for */
static int info_slot;   /* where the call in progress wants to know more of the signal */

static long process; /* whose signals these are */

static uint64_t bit(int signal) { return 1ull << (signal - 1); }

/* Not syscall(): in a handler the C library's errno may be the program's. */
static long call4(long number, long a, long b, long c, long d) {
  register long fourth __asm__("r10") = d;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "0"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                   : "rcx", "r11", "memory");
  return result;
}

/* A vfork'ed child shares this memory, but has signals of its own. */
static bool is_own(void) { return call4(SYS_getpid, 0, 0, 0, 0) == process; }

static bool change(int signal, uint32_t from, uint32_t to) {
  return __atomic_compare_exchange_n(&pending[signal].state, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static void add_pending(int signal, const siginfo_t *info, int tid) {
  if (!change(signal, EMPTY, BUSY)) return;
  pending[signal].tid = tid;
  pending[signal].info = *info;
  change(signal, BUSY, PENDING);
}

/* Takes out what is kept for this thread. */
static bool dequeue(int signal, int tid, siginfo_t *info) {
  if (!change(signal, PENDING, BUSY)) return false;
  bool is_for_it = !pending[signal].tid || pending[signal].tid == tid;
  if (is_for_it) *info = pending[signal].info;
  change(signal, BUSY, is_for_it ? EMPTY : PENDING);
  return is_for_it;
}

static void send(int signal, int tid, const siginfo_t *info) {
  call4(SYS_rt_tgsigqueueinfo, process, tid, signal, (long)info);
}

static bool is_wake(const siginfo_t *info) { return info->si_code == SI_QUEUE && info->si_value.sival_ptr == pending; }

/* Wakes a thread that waits for what is kept. It takes the signal itself, with who sent it, which the kernel
 * lets nobody else say. */
static void wake(int signal) {
  for (uint32_t i = 1; i < HI_MAX_THREADS; i++) {
    if (!(__atomic_load_n(&waiting[i].signals, __ATOMIC_SEQ_CST) & bit(signal))) continue;
    int tid = __atomic_load_n(&waiting[i].tid, __ATOMIC_SEQ_CST);
    if (pending[signal].tid && pending[signal].tid != tid) continue;
    siginfo_t info = {.si_signo = signal, .si_code = SI_QUEUE, .si_value.sival_ptr = pending};
    __atomic_store_n(&waiting[i].woken, signal, __ATOMIC_SEQ_CST);
    return send(signal, tid, &info);
  }
}

/* Called by the handler in front of DynamoRIO's in a thread that blocks these signals. Whether the
 * signal is kept here. */
bool signal_waits_hold(int signal, const siginfo_t *info, uint64_t blocked) {
  if (!(__atomic_load_n(&waited, __ATOMIC_SEQ_CST) & blocked & bit(signal)) || !is_own()) return false;
  if (is_wake(info)) return true; /* too late: it waits no more */
  add_pending(signal, info, info->si_code == SI_TKILL ? (int)call4(SYS_gettid, 0, 0, 0, 0) : 0);
  wake(signal);
  return true;
}

static bool wanted(void *dc, int number) {
  (void)dc;
  return number == SYS_rt_sigprocmask || number == SYS_rt_sigtimedwait;
}

static bool read_set(void *dc, int parameter, uint64_t *set) {
  const void *from = (const void *)dr_syscall_get_param(dc, parameter);
  size_t got;
  return from && dr_safe_read(from, sizeof *set, set, &got) && got == sizeof *set;
}

static void note_mask(void *dc) {
  uint64_t set, blocked = host_blocked();
  if (!read_set(dc, 1, &set)) return;
  switch ((int)dr_syscall_get_param(dc, 0)) {
  case SIG_BLOCK: blocked |= set; break;
  case SIG_UNBLOCK: blocked &= ~set; break;
  case SIG_SETMASK: blocked = set; break;
  default: break;
  }
  host_set_blocked(blocked);
}

/* The result of a call that takes what is kept. */
static void give(void *dc, int signal, const siginfo_t *info) {
  void *to = drmgr_get_tls_field(dc, info_slot);
  size_t done;
  if (to) dr_safe_write(to, sizeof *info, info, &done);
  dr_syscall_set_result(dc, (reg_t)signal);
}

/* False if a signal of these is kept: the call returns it. */
static bool wait_for(void *dc, struct hi_local *t) {
  uint64_t set;
  siginfo_t info;
  int tid = (int)dr_get_thread_id(dc);
  drmgr_set_tls_field(dc, info_slot, (void *)dr_syscall_get_param(dc, 1));
  if (!t->index || !read_set(dc, 0, &set) || !is_own()) return true;
  set &= ~bit(SUSPENDS);
  __atomic_fetch_or(&waited, set, __ATOMIC_SEQ_CST);
  __atomic_store_n(&waiting[t->index].tid, tid, __ATOMIC_SEQ_CST);
  __atomic_store_n(&waiting[t->index].signals, set, __ATOMIC_SEQ_CST);
  for (int signal = 1; signal <= SIGNALS; signal++) {
    if (!(set & bit(signal)) || !dequeue(signal, tid, &info)) continue;
    __atomic_store_n(&waiting[t->index].signals, 0, __ATOMIC_SEQ_CST);
    give(dc, signal, &info);
    return false;
  }
  waiting[t->index].programs_own = dr_syscall_get_param(dc, 0);
  dr_syscall_set_param(dc, 0, (reg_t)&waiting[t->index].signals);
  return true;
}

static bool before_syscall(void *dc, int number) {
  if (number == SYS_rt_sigprocmask) note_mask(dc);
  return number != SYS_rt_sigtimedwait || wait_for(dc, host_local(dc));
}

static void waited_for(void *dc, uint32_t index) {
  siginfo_t info;
  const int got = (int)dr_syscall_get_result(dc);
  const int woken = __atomic_exchange_n(&waiting[index].woken, 0, __ATOMIC_SEQ_CST);
  const bool is_taken = got >= 1 && got <= SIGNALS && dequeue(got, (int)dr_get_thread_id(dc), &info);
  if (got == woken && got && !is_taken) {
    /* By now the signal was taken, by this thread before the call or by another one. */
    dr_syscall_set_sysnum(dc, SYS_rt_sigtimedwait);
    dr_syscall_invoke_another(dc);
    return;
  }
  __atomic_store_n(&waiting[index].signals, 0, __ATOMIC_SEQ_CST);
  if (waiting[index].programs_own) dr_syscall_set_param(dc, 0, waiting[index].programs_own);
  waiting[index].programs_own = 0;
  if (is_taken) give(dc, got, &info);
}

static void after_syscall(void *dc, int number) {
  siginfo_t info;
  const uint32_t index = host_local(dc)->index;
  if (number == SYS_rt_sigtimedwait && index) waited_for(dc, index);
  if (number != SYS_rt_sigprocmask) return;
  const uint64_t open = __atomic_load_n(&waited, __ATOMIC_SEQ_CST) & ~host_blocked();
  const int tid = (int)dr_get_thread_id(dc);
  if (!open || !is_own()) return;
  for (int signal = 1; signal <= SIGNALS; signal++)
    if (open & bit(signal) && dequeue(signal, tid, &info)) send(signal, tid, &info);
}

/* In the child of a fork nothing is pending, and nobody waits. */
void signal_waits_forget(void) {
  process = call4(SYS_getpid, 0, 0, 0, 0);
  memset(pending, 0, sizeof pending);
  memset(waiting, 0, sizeof waiting);
}

void signal_waits_init(void) {
  process = call4(SYS_getpid, 0, 0, 0, 0);
  info_slot = drmgr_register_tls_field();
  dr_register_filter_syscall_event(wanted);
  drmgr_register_pre_syscall_event(before_syscall);
  drmgr_register_post_syscall_event(after_syscall);
}
