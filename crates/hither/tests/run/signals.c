/* signals.c: what comes to a program by signals, and what its parent sees of its end. */
#include "notice.h"
#include <sys/resource.h>
#include <sys/signalfd.h>

static int stops(int signal) {
  return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

static int does_nothing(int signal) {
  return signal == SIGCHLD || signal == SIGURG || signal == SIGWINCH || signal == SIGCONT;
}

static void fault(int signal) {
  volatile int zero = 0;
  switch (signal) {
  case SIGSEGV: *(volatile int *)64 = 1; break;
  case SIGILL: __asm__ volatile("ud2"); break;
  case SIGTRAP: __asm__ volatile("int3"); break;
  case SIGFPE: zero = 1 / zero; break;
  case SIGBUS: *(volatile int *)mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, memfd_create("empty", 0), 0) = 1; break;
  default: raise(signal);
  }
}

static void show_end(const char *how, int signal, pid_t child) {
  siginfo_t info;
  int status;
  waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
  waitpid(child, &status, 0);
  printf("%s %d: %d %d code %d status %d exited %d\n", how, signal, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
         WCOREDUMP(status), info.si_code, info.si_status, WIFEXITED(status));
}

/* Ends of children by every signal, their own or ours. */
int run_fatal(void) {
  struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
  setrlimit(RLIMIT_CORE, &all);
  setbuf(stdout, NULL);
  for (int signal = 1; signal <= SIGRTMAX; signal++) {
    /* 32 and 33 are glibc's own; posix_spawn has them ignored in what it starts. */
    if (stops(signal) || does_nothing(signal) || signal == 32 || signal == 33) continue;
    pid_t child = fork();
    if (child == 0) {
      fault(signal);
      _exit(7);
    }
    show_end("own", signal, child);
    if ((child = fork()) == 0)
      for (;;) pause();
    kill(child, signal);
    show_end("sent", signal, child);
  }
  return 0;
}

static pid_t first, child_of_first;
static volatile sig_atomic_t seen;

static const char *whose(pid_t pid) {
  return pid == first ? "own" : pid == child_of_first ? "child" : pid == 0 ? "none" : "other";
}

static void on_info(int signal, siginfo_t *info, void *context) {
  (void)context;
  char line[160];
  int code = info->si_code, faults = signal == SIGSEGV || signal == SIGTRAP || signal == SIGALRM;
  int valued = code == SI_QUEUE || code == SI_TIMER;
  int n = snprintf(line, sizeof line, "signal %d code %d pid %s value %d status %d\n", signal, code,
                   faults ? "-" : whose(info->si_pid), valued ? info->si_value.sival_int : 0,
                   signal == SIGCHLD ? info->si_status : 0);
  if (write(1, line, (size_t)n) == n) seen++;
  if (signal == SIGSEGV) mprotect(info->si_addr, PAGE, PROT_READ | PROT_WRITE);
}

static void wait_seen(int count) {
  while (seen < count) usleep(1000);
}

static void *send_to_own(void *nothing) {
  pthread_kill(pthread_self(), SIGUSR1);
  return nothing;
}

/* A child that sends two signals to its parent and ends. */
static void signals_of_a_child(void) {
  child_of_first = fork();
  if (child_of_first != 0) return;
  kill(first, SIGUSR1);
  sigqueue(first, SIGUSR2, (union sigval){.sival_int = 42});
  _exit(3);
}

static void start_timer(void) {
  timer_t timer;
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM, .sigev_value.sival_int = 17};
  struct itimerspec soon = {.it_value.tv_nsec = 1000000};
  timer_create(CLOCK_MONOTONIC, &event, &timer);
  timer_settime(timer, 0, &soon, NULL);
}

int run_siginfo(void) {
  struct sigaction action = {.sa_sigaction = on_info, .sa_flags = SA_SIGINFO | SA_RESTART};
  int signals[] = {SIGUSR1, SIGUSR2, SIGCHLD, SIGALRM, SIGSEGV, SIGTRAP, SIGRTMIN + 2, SIGCONT};
  sigset_t blocked, before;
  first = getpid();
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) sigaction(signals[i], &action, NULL);
  kill(first, SIGUSR1);
  raise(SIGUSR1);
  sigqueue(first, SIGRTMIN + 2, (union sigval){.sival_int = -5});
  pthread_t thread;
  pthread_create(&thread, NULL, send_to_own, NULL);
  pthread_join(thread, NULL);
  start_timer();
  wait_seen(5);
  volatile int *guarded = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *guarded = 1;
  __asm__ volatile("int3");
  kill(first, SIGCONT);
  wait_seen(8);
  /* All at once, once the child is known and has ended. */
  sigfillset(&blocked);
  sigprocmask(SIG_SETMASK, &blocked, &before);
  signals_of_a_child();
  waitid(P_PID, (id_t)child_of_first, &(siginfo_t){0}, WEXITED | WNOWAIT);
  sigprocmask(SIG_SETMASK, &before, NULL);
  wait_seen(11);
  return 0;
}

/* Signals of a child are waited for without handlers. */
int run_sigwait(void) {
  sigset_t all;
  sigemptyset(&all);
  sigaddset(&all, SIGUSR1);
  sigaddset(&all, SIGUSR2);
  sigaddset(&all, SIGCHLD);
  sigprocmask(SIG_BLOCK, &all, NULL);
  siginfo_t info;
  struct timespec wait = {.tv_nsec = 50000000};
  int got = sigtimedwait(&all, &info, &wait);
  printf("nothing: %d %d\n", got, errno == EAGAIN);
  fflush(stdout);
  first = getpid();
  signals_of_a_child();
  waitid(P_PID, (id_t)child_of_first, &info, WEXITED | WNOWAIT);
  for (int i = 0; i < 3; i++) {
    got = sigwaitinfo(&all, &info);
    printf("%d code %d status %d %s\n", got, info.si_code, got == SIGCHLD ? info.si_status : 0, whose(info.si_pid));
  }
  int fd = signalfd(-1, &all, 0);
  sigqueue(first, SIGUSR2, (union sigval){.sival_int = 9});
  kill(first, SIGUSR1);
  for (int i = 0; i < 2; i++) {
    struct signalfd_siginfo read_info;
    if (read(fd, &read_info, sizeof read_info) != sizeof read_info) return 1;
    printf("%u code %d value %d %s\n", read_info.ssi_signo, read_info.ssi_code, read_info.ssi_int,
           whose((pid_t)read_info.ssi_pid));
  }
  return 0;
}

static void on_child(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)context;
  char line[64];
  int n = snprintf(line, sizeof line, "SIGCHLD code %d status %d\n", info->si_code, info->si_status);
  if (write(1, line, (size_t)n) == n) seen++;
}

static long all_beats(void) {
  long sum = 0;
  for (int i = 0; i < 3; i++) {
    while (atomic_load(&beats[i]) == 0) usleep(1000);
    sum += atomic_load(&beats[i]);
  }
  return sum;
}

static void stop_and_go(pid_t child, int signal) {
  int status, count = seen;
  kill(child, signal);
  pid_t got = waitpid(child, &status, WUNTRACED);
  printf("%d %d by %d\n", got == child, WIFSTOPPED(status), WSTOPSIG(status));
  long before = all_beats();
  usleep(50000);
  printf("still %d\n", all_beats() == before);
  kill(child, SIGCONT);
  got = waitpid(child, &status, WCONTINUED);
  while (all_beats() == before) usleep(1000);
  wait_seen(count + 2);
  printf("%d %d\n", got == child, WIFCONTINUED(status));
}

/* A child with several threads stops and goes on as its parent tells it to, and sees. */
int run_stops(void) {
  int signals[] = {SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU}, status;
  setbuf(stdout, NULL);
  beats = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  struct sigaction action = {.sa_sigaction = on_child, .sa_flags = SA_SIGINFO | SA_RESTART};
  sigaction(SIGCHLD, &action, NULL);
  pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    for (intptr_t i = 0; i < 2; i++) pthread_create(&(pthread_t){0}, NULL, beat, (void *)i);
    beat((void *)2);
  }
  all_beats();
  for (int i = 0; i < 4; i++) stop_and_go(child, signals[i]);
  int count = seen;
  kill(child, SIGSTOP);
  waitpid(child, &status, WUNTRACED);
  wait_seen(count + 1);
  signal(SIGCHLD, SIG_DFL); /* of going on and ending at once one or two are seen, by chance */
  kill(child, SIGTERM);
  kill(child, SIGCONT);
  waitpid(child, &status, 0);
  printf("ended by %d\n", WTERMSIG(status));
  return 0;
}
