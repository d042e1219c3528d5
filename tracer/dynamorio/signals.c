/* signals.c: signals that the program ignores stay ignored across execve.
 *
 * DynamoRIO installs handlers of its own for all signals, also for those that the program
 * ignores, and execve resets signals with a handler to their default action. So this file keeps
 * the set of signals that the program ignores, and sets them to SIG_IGN in the kernel for the
 * duration of execve.
 *
 * SIGSEGV and SIGBUS are left out: DynamoRIO needs its handlers for them at all times, and a
 * program under it never inherits these two ignored. */
#include "host.h"
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The state of a thread. The set of ignored signals belongs to the process. A vfork'ed child has
 * dispositions of its own but shares this memory, as a thread does. */
struct signals {
  uint64_t *ignored; /* a bit per signal, signal 1 the lowest */
  uint64_t own;      /* where `ignored` points in a vfork'ed child */
  int changing;      /* the signal whose action the system call in progress sets; 0: none */
  bool ignoring;
  uint64_t replaced; /* signals whose action in the kernel execve has set aside */
  struct signal_action actions[SIGNALS];
};

static int slot;
static int process;        /* the one that `ignored` belongs to */
static uint64_t ignored;   /* what it ignores */
static uint64_t inherited; /* what the parent in the last vfork ignores */

static uint64_t bit(int signal) { return 1ull << (signal - 1); }

/* Not sigaction(): the C library keeps some signals for itself. */
bool signals_action(int signal, const struct signal_action *new, struct signal_action *old) {
  return syscall(SYS_rt_sigaction, signal, new, old, sizeof old->mask) == 0;
}

static bool kept_out(int signal) { return signal == SIGSEGV || signal == SIGBUS; }

static bool wanted(void *dc, int number) {
  (void)dc;
  switch (number) {
  case SYS_rt_sigaction:
  case SYS_clone:
  case SYS_clone3:
  case SYS_vfork:
  case SYS_execve:
  case SYS_execveat: return true;
  default: return false;
  }
}

/* Reads the new action before the call, which may overwrite it with the old one. */
static void note_change(void *dc, struct signals *s) {
  int signal = (int)dr_syscall_get_param(dc, 0);
  const void *new = (const void *)dr_syscall_get_param(dc, 1);
  void *handler;
  size_t got;
  s->changing = 0;
  if (signal < 1 || signal > SIGNALS || !new || !dr_safe_read(new, sizeof handler, &handler, &got)) return;
  s->changing = kept_out(signal) ? 0 : signal;
  s->ignoring = handler == (void *)SIG_IGN;
}

static void change(struct signals *s) {
  if (!s->changing) return;
  signal_delivery_watch(s->changing); /* DynamoRIO handles the stop signals only if the program does */
  if (s->ignoring) __atomic_fetch_or(s->ignored, bit(s->changing), __ATOMIC_RELAXED);
  else __atomic_fetch_and(s->ignored, ~bit(s->changing), __ATOMIC_RELAXED);
}

static void ignore_in_kernel(struct signals *s) {
  static const struct signal_action ignore = {.handler = (void *)SIG_IGN};
  s->replaced = 0;
  for (int signal = 1; signal <= SIGNALS; signal++) {
    struct signal_action *old = &s->actions[signal - 1];
    if (!(*s->ignored & bit(signal)) || !signals_action(signal, NULL, old) || old->handler == (void *)SIG_IGN) continue;
    if (signals_action(signal, &ignore, NULL)) s->replaced |= bit(signal);
  }
}

static void handle_in_kernel(struct signals *s) {
  for (int signal = 1; signal <= SIGNALS; signal++)
    if (s->replaced & bit(signal)) signals_action(signal, &s->actions[signal - 1], NULL);
  s->replaced = 0;
}

static bool before_syscall(void *dc, int number) {
  struct signals *s = drmgr_get_tls_field(dc, slot);
  if (seccomp_refused(dc)) return true;
  switch (number) {
  case SYS_rt_sigaction: note_change(dc, s); break;
  case SYS_clone:
  case SYS_clone3:
  case SYS_vfork: inherited = *s->ignored; break;
  case SYS_execve:
  case SYS_execveat: ignore_in_kernel(s); break;
  default: break;
  }
  return true;
}

void signals_exec_failed(void *dc) { handle_in_kernel(drmgr_get_tls_field(dc, slot)); }

static void after_syscall(void *dc, int number) {
  struct signals *s = drmgr_get_tls_field(dc, slot);
  if (number == SYS_rt_sigaction && dr_syscall_get_result(dc) == 0) change(s);
  if (number == SYS_execve || number == SYS_execveat) signals_exec_failed(dc);
}

static void on_thread_init(void *dc) {
  struct signals *s = dr_thread_alloc(dc, sizeof *s);
  s->own = inherited;
  s->ignored = getpid() == process ? &ignored : &s->own;
  s->changing = 0;
  s->replaced = 0;
  drmgr_set_tls_field(dc, slot, s);
}

static void on_thread_exit(void *dc) { dr_thread_free(dc, drmgr_get_tls_field(dc, slot), sizeof(struct signals)); }

static void on_fork(void *dc) {
  struct signals *s = drmgr_get_tls_field(dc, slot);
  ignored = *s->ignored;
  s->ignored = &ignored;
  process = getpid();
}

/* DynamoRIO installs its handlers when the program starts, after this: the kernel still has the
 * actions that the program inherits. */
void signals_init(void) {
  process = getpid();
  for (int signal = 1; signal <= SIGNALS; signal++) {
    struct signal_action now;
    if (signals_action(signal, NULL, &now) && now.handler == (void *)SIG_IGN) ignored |= bit(signal);
  }
  slot = drmgr_register_tls_field();
  dr_register_filter_syscall_event(wanted);
  drmgr_register_pre_syscall_event(before_syscall);
  drmgr_register_post_syscall_event(after_syscall);
  drmgr_register_thread_init_event(on_thread_init);
  drmgr_register_thread_exit_event(on_thread_exit);
  dr_register_fork_init_event(on_fork);
}
