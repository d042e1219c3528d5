/* crash exit|exit-group-from-thread|abort|segv|kill|main-returns [THREADS=4 [SECONDS=1]]
 *
 * Ends in the way named after SECONDS, but not before each of THREADS - 1 further threads
 * has done ROUNDS. They are still at work then, each adding to the words of its own page of
 * `work`.
 *
 * Expected: a profile of all THREADS threads up to the last slice; page i of `work`
 * touched by thread i alone, i = 1..; matrix 0. It ended by
 *   exit                    status 3, exit() called by main
 *   exit-group-from-thread  status 4, exit() called by thread 1
 *   main-returns            status 5
 *   abort                   signal 6 in main
 *   segv                    signal 11 in thread 1 (a write to address 8)
 *   kill                    signal 9 */
#include "team.h"
#include <signal.h>
#include <string.h>
#include <unistd.h>

static cell work[TEAM_MAX][PAGE_CELLS] __attribute__((aligned(PAGE)));
static const char *how;
static double seconds;
static long threads;
static volatile int *volatile nowhere = (int *)8;
static int done; /* given once by each thread that has done ROUNDS */
#define ROUNDS 1024

/* However busy the machine is, all have worked by then. */
static void wait_for_all(void) {
  for (long i = 1; i < threads; i++) take(done);
}

static void *worker(void *argument) {
  long me = (long)argument;
  long limit = me == 1 && strcmp(how, "segv") == 0 ? 11 : me == 1 && strcmp(how, "exit-group-from-thread") == 0 ? 4 : 0;
  struct timespec start, now;
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (long rounds = 1;; rounds++) {
    for (long k = 0; k < PAGE_CELLS; k++) work[me][k] += 1;
    if (rounds == ROUNDS) give(done, 1);
    if (limit == 0 || rounds % ROUNDS) continue;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if ((double)(now.tv_sec - start.tv_sec) + 1e-9 * (double)(now.tv_nsec - start.tv_nsec) < seconds) continue;
    wait_for_all();
    if (limit == 4) exit(4);
    *nowhere = 1;
  }
  return NULL;
}

int main(int argc, char **argv) {
  how = argc > 1 ? argv[1] : "exit";
  threads = number(argc, argv, 2, 4, 2, TEAM_MAX);
  seconds = argc > 3 ? atof(argv[3]) : 1;
  done = new_baton();
  for (long i = 1; i < threads; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, worker, (void *)i) != 0) return perror("pthread_create"), 2;
  }
  if (strcmp(how, "segv") == 0 || strcmp(how, "exit-group-from-thread") == 0)
    for (;;) pause();
  usleep((useconds_t)(seconds * 1e6));
  wait_for_all();
  if (strcmp(how, "exit") == 0) exit(3);
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "kill") == 0) kill(getpid(), SIGKILL);
  if (strcmp(how, "main-returns") == 0) return 5;
  fprintf(stderr, "crash: unknown way to end `%s`; see the head of crash.c\n", how);
  return 2;
}
