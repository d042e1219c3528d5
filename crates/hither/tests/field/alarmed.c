/* alarmed: a program that a timer interrupts all the time, and to which its child sends signals, the next one
 * when one was handled. Says how many were not. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SIGNALS = 1500, ALARM_US = 100, PATIENCE_US = 500000 };

static atomic_int *handled;

static void on_signal(int signal) { handled[signal == SIGALRM]++; }

static long now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void send_signals(int parent) {
  int lost = 0;
  for (int i = 0; i < SIGNALS; i++) {
    const int before = handled[0];
    kill(parent, SIGUSR1);
    const long sent = now_us();
    while (handled[0] == before && now_us() < sent + PATIENCE_US)
      ;
    lost += handled[0] == before;
  }
  printf("%d lost\n", lost);
}

int main(void) {
  handled = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &action, NULL);
  sigaction(SIGALRM, &action, NULL);
  const int parent = getpid(), child = fork();
  if (child == 0) {
    send_signals(parent);
    return 0;
  }
  const struct itimerval often = {{0, ALARM_US}, {0, ALARM_US}};
  setitimer(ITIMER_REAL, &often, NULL);
  volatile long work = 0;
  while (waitpid(child, NULL, WNOHANG) != child)
    for (int i = 0; i < 1000; i++) work += i;
  return handled[1] == 0;
}
