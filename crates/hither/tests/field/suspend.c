/* suspend: two threads that take turns by signals, as garbage collectors stop and restart threads: blocked until the
 * thread suspends itself. Says how often a signal came too late or a mask was not as it was. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUNDS = 3000, SECONDS = 30 };

static atomic_int ready, came, wrong;
static sigset_t all_but_usr1;

static void on_signal(int signal) {
  (void)signal;
  came++;
}

static void *send_signals(void *thread) {
  for (int round = 1; round <= ROUNDS; round++) {
    while (ready < round)
      ;
    for (volatile int wait = 0; wait < round % 500; wait++)
      ;
    pthread_kill(*(pthread_t *)thread, SIGUSR1);
  }
  return NULL;
}

/* Where the signal is lost the program waits for ever. */
static void *watch(void *unused) {
  sleep(SECONDS);
  printf("stopped in round %d\n", ready);
  exit(1);
  return unused;
}

int main(void) {
  pthread_t self = pthread_self(), sender, watcher;
  sigset_t usr1;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  sigaddset(&usr1, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &usr1, NULL);
  sigfillset(&all_but_usr1);
  sigdelset(&all_but_usr1, SIGUSR1);
  struct sigaction action = {.sa_handler = on_signal};
  sigaction(SIGUSR1, &action, NULL);
  pthread_create(&sender, NULL, send_signals, &self);
  pthread_create(&watcher, NULL, watch, NULL);
  for (int round = 1; round <= ROUNDS; round++) {
    ready = round;
    sigsuspend(&all_but_usr1);
    wrong += came != round;
    wrong += !sigismember(&all_but_usr1, SIGUSR2) || sigismember(&all_but_usr1, SIGUSR1);
  }
  pthread_join(sender, NULL);
  printf("%d came, %d wrong\n", came, wrong);
}
