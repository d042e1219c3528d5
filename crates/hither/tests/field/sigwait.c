/* sigwait: a program all of whose threads block some signals, and one waits for them, as in database
 * servers. Says what came, for the process, for a thread and from a child, and what became of signals that
 * nobody waited for. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static atomic_int waited_for, handled;
static void *wait_for_signals(void *set) {
  siginfo_t info = {0};
  while (info.si_signo != SIGTERM) {
    int got = sigwaitinfo(set, &info);
    if (got < 0) continue; /* DynamoRIO has a handler for SIGCHLD */
    printf("%d code %d from %s\n", got, info.si_code, info.si_pid == getpid() ? "itself" : "its child");
    atomic_fetch_add(&waited_for, 1);
  }
  return NULL;
}
static void until_waited_for(int signals) {
  while (atomic_load(&waited_for) != signals) usleep(1000);
}
static void count_signal(int signal) {
  (void)signal;
  atomic_fetch_add(&handled, 1);
}

/* As POV-Ray does until the process ends: also for the signal by which a tracer may stop threads. */
static void *wait_for_all(void *set) {
  for (;;) sigwaitinfo(set, NULL);
  return NULL;
}

/* Whether a call that times out leaves its arguments where they were. */
static int keeps_arguments(const sigset_t *set, const struct timespec *moment) {
  const sigset_t *first = set;
  register long size __asm__("r10") = sizeof(uint64_t);
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result), "+D"(first)
                   : "0"(SYS_rt_sigtimedwait), "S"(NULL), "d"(moment), "r"(size)
                   : "rcx", "r11", "memory");
  return result == -EAGAIN && first == set;
}

int main(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGHUP);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  pthread_t thread;
  pthread_create(&thread, NULL, wait_for_signals, &set);
  usleep(100000); /* one that comes before it waits for the first time is lost under DynamoRIO */
  for (int round = 0; round < 20; round++) {
    kill(getpid(), SIGHUP);
    until_waited_for(3 * round + 1);
    pthread_kill(thread, SIGUSR1);
    until_waited_for(3 * round + 2);
    pid_t child = fork();
    if (child == 0) _exit(kill(getppid(), SIGHUP));
    waitpid(child, NULL, 0);
    until_waited_for(3 * round + 3);
  }
  kill(getpid(), SIGTERM);
  pthread_join(thread, NULL);
  /* Nobody waits: it is there when it is unblocked, and once. */
  signal(SIGHUP, count_signal);
  kill(getpid(), SIGHUP);
  usleep(10000);
  printf("blocked %d\n", atomic_load(&handled));
  pthread_sigmask(SIG_UNBLOCK, &set, NULL);
  printf("unblocked %d\n", atomic_load(&handled));
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  /* Or when somebody waits. */
  kill(getpid(), SIGUSR1);
  usleep(10000);
  struct timespec moment = {.tv_nsec = 10000000};
  for (int i = 0; i < 2; i++) printf("%d\n", sigtimedwait(&set, NULL, &moment));
  printf("arguments kept: %d\n", keeps_arguments(&set, &moment));
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
  pthread_create(&thread, NULL, wait_for_all, &all);
  usleep(100000);
  return 0;
}
