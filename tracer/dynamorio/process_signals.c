/* process_signals.c: signals for the process reach a thread that can take them.
 *
 * The kernel gives one to a thread that does not block it or waits for it (sigwait, sigtimedwait), else keeps it
 * until there is one. DynamoRIO blocks no signal in the kernel, so any thread gets it, and keeps it for that thread
 * until it unblocks it: which never happens where a program waits for its signals, nor in a thread that ends. What
 * arrives in a thread that starts or ends DynamoRIO drops. So the handler in front of DynamoRIO's keeps a signal
 * that the thread blocks here and wakes a thread that takes it, by a signal that the program does not see; else the
 * next one that waits for it or unblocks it takes it.
 *
 * While a signal is kept another one of its kind is lost, as in the kernel; of real-time signals it is left to
 * DynamoRIO. What a thread unblocks for one call (sigsuspend, ppoll and the like) is handed to DynamoRIO for it; so
 * is what a signalfd reads.
 *
 * A program that waits for all signals would take the one by which DynamoRIO suspends a thread, and DynamoRIO would
 * wait for ever that the thread stops: that one is left out of what the kernel is asked for. */
#include "host.h"
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441 /* Linux 5.11 */
#endif

enum { EMPTY, BUSY, PENDING };
#define ALL (~0ull)         /* what a thread blocks that starts or ends */
enum { SUSPENDS = SIGILL }; /* DynamoRIO's signal that stops a thread */
enum { FIRST_REAL_TIME = 32 };

static struct {
  uint32_t state;
  int tid; /* of the thread that it is for, 0: any */
  siginfo_t info;
} pending[SIGNALS + 1];

/* What each thread blocks and waits for, by the thread's index: a bit per signal, signal 1 the lowest. */
static struct {
  int tid;   /* 0: not started yet, or it ends */
  int woken; /* the signal by which it was woken last, while it waits */
  uint64_t blocked;
  uint64_t opened;    /* what it unblocks for the call in progress */
  uint64_t waits;     /* read by the kernel, in the place of: */
  reg_t programs_own; /* where the program has them */
} threads[HI_MAX_THREADS];

static uint64_t waited;   /* what was ever waited for, */
static uint64_t kept;     /* ever kept here, */
static uint64_t readable; /* what any signalfd of this process was made for, */
static uint64_t directed; /* and ever sent to one thread by another of this process */
static int mask_slot;     /* what the thread blocks after the call in progress */
static int info_slot;     /* where the call in progress wants to know more of the signal */

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

/* False if another one of its kind is kept. */
static bool add_pending(int signal, const siginfo_t *info, int tid) {
  if (!change(signal, EMPTY, BUSY)) return false;
  pending[signal].tid = tid;
  pending[signal].info = *info;
  __atomic_fetch_or(&kept, bit(signal), __ATOMIC_SEQ_CST);
  change(signal, BUSY, PENDING);
  return true;
}

/* Takes out what is kept for this thread. */
static bool dequeue(int signal, int tid, siginfo_t *info) {
  if (!change(signal, PENDING, BUSY)) return false;
  bool is_for_it = !pending[signal].tid || pending[signal].tid == tid;
  if (is_for_it) *info = pending[signal].info;
  change(signal, BUSY, is_for_it ? EMPTY : PENDING);
  return is_for_it;
}

/* Sends a thread the signal as one that only says that the real one is kept here: who sent that the kernel lets
 * nobody else say. */
static bool send_wake(int signal, int tid) {
  siginfo_t info = {.si_signo = signal, .si_code = SI_QUEUE, .si_value.sival_ptr = pending};
  return call4(SYS_rt_tgsigqueueinfo, process, tid, signal, (long)&info) != -ESRCH;
}

static bool is_wake(const siginfo_t *info) { return info->si_code == SI_QUEUE && info->si_value.sival_ptr == pending; }

static uint64_t opened(uint32_t i) { return __atomic_load_n(&threads[i].opened, __ATOMIC_SEQ_CST); }

static bool waits(uint32_t i, int signal) { return __atomic_load_n(&threads[i].waits, __ATOMIC_SEQ_CST) & bit(signal); }

static bool takes(uint32_t i, int signal) {
  return (~__atomic_load_n(&threads[i].blocked, __ATOMIC_SEQ_CST) | opened(i)) & bit(signal);
}

/* Wakes a thread, other than the calling one, that waits for what is kept or does not block it. */
static void wake(int signal, int own) {
  for (uint32_t i = 1; i < HI_MAX_THREADS; i++) {
    int tid = __atomic_load_n(&threads[i].tid, __ATOMIC_SEQ_CST);
    if (!tid || tid == own || (pending[signal].tid && pending[signal].tid != tid)) continue;
    if (!waits(i, signal) && !takes(i, signal)) continue;
    if (waits(i, signal)) __atomic_store_n(&threads[i].woken, signal, __ATOMIC_SEQ_CST);
    if (send_wake(signal, tid)) return;
  }
}

static bool is_taken_elsewhere(int signal, int own) {
  for (uint32_t i = 1; i < HI_MAX_THREADS; i++) {
    int tid = __atomic_load_n(&threads[i].tid, __ATOMIC_SEQ_CST);
    if (tid && tid != own && (waits(i, signal) || takes(i, signal))) return true;
  }
  return false;
}

/* Where the calling thread takes what is kept of these. */
static void take_kept(int tid, uint64_t signals) {
  const uint64_t open = __atomic_load_n(&kept, __ATOMIC_SEQ_CST) & signals;
  if (!open || !is_own()) return;
  for (int signal = 1; signal <= SIGNALS; signal++)
    if (open & bit(signal) && __atomic_load_n(&pending[signal].state, __ATOMIC_SEQ_CST) == PENDING)
      send_wake(signal, tid);
}

/* DynamoRIO passes a signal for the process on as one for a thread, from this process. */
static bool is_for_thread(int signal, const siginfo_t *info) {
  if (info->si_code != SI_TKILL) return false;
  return info->si_pid != process || __atomic_load_n(&directed, __ATOMIC_SEQ_CST) & bit(signal);
}

static void note_directed(int signal) {
  if (signal >= 1 && signal <= SIGNALS) __atomic_fetch_or(&directed, bit(signal), __ATOMIC_SEQ_CST);
}

/* Called by the handler in front of DynamoRIO's, in the thread `index` that blocks these signals; 0: not known.
 * Whether the signal is kept here; else `info` is that of the signal as it was sent. */
bool process_signals_hold(int signal, siginfo_t *info, uint64_t blocked, uint32_t index) {
  const bool is_blocked = blocked & bit(signal);
  if ((!is_blocked && !is_wake(info)) || !is_own()) return false;
  const int tid = (int)call4(SYS_gettid, 0, 0, 0, 0);
  const uint64_t handed_over = opened(index) | __atomic_load_n(&readable, __ATOMIC_SEQ_CST);
  const bool is_handed_over = blocked != ALL && (!index || handed_over & bit(signal));
  if (is_wake(info)) {
    if (!is_blocked || is_handed_over) return !dequeue(signal, tid, info);
    wake(signal, tid); /* this thread takes it no more */
    return true;
  }
  const bool one_thread = is_for_thread(signal, info);
  if (one_thread && !(__atomic_load_n(&waited, __ATOMIC_SEQ_CST) & bit(signal))) return false;
  if (is_handed_over && (one_thread || !is_taken_elsewhere(signal, tid))) return false;
  if (!add_pending(signal, info, one_thread ? tid : 0)) return signal < FIRST_REAL_TIME || blocked == ALL;
  wake(signal, tid);
  return true;
}

/* The mask of a thread that the calling one is about to create. */
void process_signals_inherit(uint32_t index) {
  if (index) threads[index].blocked = host_blocked();
}

void process_signals_thread_starts(uint32_t index, int tid) {
  const uint64_t blocked = index ? threads[index].blocked : 0;
  host_set_blocked(blocked);
  if (!index || !is_own()) return;
  threads[index].opened = 0;
  __atomic_store_n(&threads[index].tid, tid, __ATOMIC_SEQ_CST);
  take_kept(tid, ~blocked);
}

static void thread_ends(uint32_t index) {
  if (index && is_own()) __atomic_store_n(&threads[index].tid, 0, __ATOMIC_SEQ_CST);
  host_set_blocked(ALL);
}

static bool wanted(void *dc, int number) {
  (void)dc;
  switch (number) {
  case SYS_rt_sigprocmask:
  case SYS_rt_sigtimedwait:
  case SYS_rt_sigsuspend:
  case SYS_rt_sigpending:
  case SYS_ppoll:
  case SYS_pselect6:
  case SYS_epoll_pwait:
  case SYS_epoll_pwait2:
  case SYS_signalfd:
  case SYS_signalfd4:
  case SYS_tkill:
  case SYS_tgkill:
  case SYS_exit: return true;
  default: return false;
  }
}

static bool read_set(void *dc, int parameter, uint64_t *set) {
  const void *from = (const void *)dr_syscall_get_param(dc, parameter);
  size_t got;
  return from && dr_safe_read(from, sizeof *set, set, &got) && got == sizeof *set;
}

static void set_blocked(uint32_t index, uint64_t blocked) {
  if (index && is_own()) __atomic_store_n(&threads[index].blocked, blocked, __ATOMIC_SEQ_CST);
  host_set_blocked(blocked);
}

/* Until the call is done, what it unblocks is blocked for DynamoRIO still. */
static void note_mask(void *dc, uint32_t index) {
  const uint64_t old = host_blocked();
  uint64_t set, blocked = old;
  if (read_set(dc, 1, &set)) {
    switch ((int)dr_syscall_get_param(dc, 0)) {
    case SIG_BLOCK: blocked |= set; break;
    case SIG_UNBLOCK: blocked &= ~set; break;
    case SIG_SETMASK: blocked = set; break;
    default: break;
    }
  }
  drmgr_set_tls_field(dc, mask_slot, (void *)blocked);
  set_blocked(index, old | blocked);
}

static void mask_changed(void *dc, uint32_t index) {
  const uint64_t blocked = (uint64_t)drmgr_get_tls_field(dc, mask_slot);
  set_blocked(index, blocked);
  take_kept((int)dr_get_thread_id(dc), ~blocked);
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
  __atomic_store_n(&threads[t->index].waits, set, __ATOMIC_SEQ_CST);
  for (int signal = 1; signal <= SIGNALS; signal++) {
    if (!(set & bit(signal)) || !dequeue(signal, tid, &info)) continue;
    __atomic_store_n(&threads[t->index].waits, 0, __ATOMIC_SEQ_CST);
    give(dc, signal, &info);
    return false;
  }
  threads[t->index].programs_own = dr_syscall_get_param(dc, 0);
  dr_syscall_set_param(dc, 0, (reg_t)&threads[t->index].waits);
  return true;
}

/* The mask that the program gives a call for its duration; false: none. */
static bool mask_of_call(void *dc, int number, uint64_t *mask) {
  reg_t at;
  size_t got;
  switch (number) {
  case SYS_rt_sigsuspend: return read_set(dc, 0, mask);
  case SYS_ppoll: return read_set(dc, 3, mask);
  case SYS_epoll_pwait:
  case SYS_epoll_pwait2: return read_set(dc, 4, mask);
  case SYS_pselect6: /* its last argument points to that of the mask */
    return dr_syscall_get_param(dc, 5) &&
           dr_safe_read((const void *)dr_syscall_get_param(dc, 5), sizeof at, &at, &got) && at &&
           dr_safe_read((const void *)at, sizeof *mask, mask, &got);
  default: return false;
  }
}

/* Until the descriptor exists they are kept here. */
static void note_readable(void *dc) {
  uint64_t set;
  drmgr_set_tls_field(dc, mask_slot, (void *)(read_set(dc, 1, &set) ? set : 0));
}

static void descriptor_made(void *dc) {
  const uint64_t set = (uint64_t)drmgr_get_tls_field(dc, mask_slot);
  if ((int64_t)dr_syscall_get_result(dc) < 0 || !is_own()) return;
  __atomic_fetch_or(&readable, set, __ATOMIC_SEQ_CST);
  take_kept((int)dr_get_thread_id(dc), set);
}

/* Adds what is kept here to what the kernel says is pending. */
static void add_to_pending_set(void *dc) {
  void *to = drmgr_get_tls_field(dc, info_slot);
  uint64_t set;
  size_t done;
  if (dr_syscall_get_result(dc) != 0 || !dr_safe_read(to, sizeof set, &set, &done)) return;
  for (int signal = 1; signal <= SIGNALS; signal++) {
    const int tid = pending[signal].tid;
    if (__atomic_load_n(&pending[signal].state, __ATOMIC_SEQ_CST) == PENDING &&
        (!tid || tid == (int)dr_get_thread_id(dc)))
      set |= bit(signal) & host_blocked();
  }
  dr_safe_write(to, sizeof set, &set, &done);
}

static void open_for_call(void *dc, uint32_t index, int number) {
  uint64_t mask;
  if (!index || !is_own() || !mask_of_call(dc, number, &mask)) return;
  __atomic_store_n(&threads[index].opened, ~mask, __ATOMIC_SEQ_CST);
  take_kept((int)dr_get_thread_id(dc), ~mask);
}

static bool before_syscall(void *dc, int number) {
  struct hi_local *t = host_local(dc);
  if (seccomp_refused(dc)) return true;
  switch (number) {
  case SYS_rt_sigprocmask: note_mask(dc, t->index); return true;
  case SYS_rt_sigtimedwait: return wait_for(dc, t);
  case SYS_tkill: note_directed((int)dr_syscall_get_param(dc, 1)); return true;
  case SYS_tgkill: note_directed((int)dr_syscall_get_param(dc, 2)); return true;
  case SYS_exit: thread_ends(t->index); return true;
  case SYS_rt_sigpending: drmgr_set_tls_field(dc, info_slot, (void *)dr_syscall_get_param(dc, 0)); return true;
  case SYS_signalfd:
  case SYS_signalfd4: note_readable(dc); return true;
  default: open_for_call(dc, t->index, number); return true;
  }
}

static void waited_for(void *dc, uint32_t index) {
  siginfo_t info;
  const int got = (int)dr_syscall_get_result(dc);
  const int woken = __atomic_exchange_n(&threads[index].woken, 0, __ATOMIC_SEQ_CST);
  const bool is_taken = got >= 1 && got <= SIGNALS && dequeue(got, (int)dr_get_thread_id(dc), &info);
  if (got == woken && got && !is_taken) {
    /* By now the signal was taken, by this thread before the call or by another one. */
    dr_syscall_set_sysnum(dc, SYS_rt_sigtimedwait);
    dr_syscall_invoke_another(dc);
    return;
  }
  __atomic_store_n(&threads[index].waits, 0, __ATOMIC_SEQ_CST);
  if (threads[index].programs_own) dr_syscall_set_param(dc, 0, threads[index].programs_own);
  threads[index].programs_own = 0;
  if (is_taken) give(dc, got, &info);
}

static void after_syscall(void *dc, int number) {
  const uint32_t index = host_local(dc)->index;
  switch (number) {
  case SYS_rt_sigtimedwait:
    if (index) waited_for(dc, index);
    return;
  case SYS_rt_sigprocmask: mask_changed(dc, index); return;
  case SYS_rt_sigpending: add_to_pending_set(dc); return;
  case SYS_signalfd:
  case SYS_signalfd4: descriptor_made(dc); return;
  default: __atomic_store_n(&threads[index].opened, 0, __ATOMIC_SEQ_CST);
  }
}

/* In the child of a fork nothing is pending, and there is one thread. */
void process_signals_after_fork(uint32_t index, int tid) {
  process = call4(SYS_getpid, 0, 0, 0, 0);
  memset(pending, 0, sizeof pending);
  memset(threads, 0, sizeof threads);
  if (!index) return;
  threads[index].tid = tid;
  threads[index].blocked = host_blocked();
}

void process_signals_init(void) {
  process = call4(SYS_getpid, 0, 0, 0, 0);
  mask_slot = drmgr_register_tls_field();
  info_slot = drmgr_register_tls_field();
  dr_register_filter_syscall_event(wanted);
  drmgr_register_pre_syscall_event(before_syscall);
  drmgr_register_post_syscall_event(after_syscall);
}
