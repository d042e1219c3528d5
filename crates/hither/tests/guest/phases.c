/* phases REST STAGE:ROUNDS...: four threads in step (two barriers a round), which exchange data with other
 * partners in each stage; a round begins REST milliseconds after the one before, if that is over.
 *   near   0 with 1, 2 with 3
 *   far    0 with 2, 1 with 3, and a third of that with the others, so that heterogeneity (OPT eq. 2)
 *          is another one: pairs alone have the same whoever they are
 * A thread writes its block of eight pages, and its partners read it. When a stage is three quarters over, each thread
 * notes where it is and where the end of its block is (the beginning is read by all in far stages), and prints so at
 * the end: `STAGE THREAD PU NODE`. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, WORDS = 4096, STAGES = 64, NODE_OF_ADDRESS = 3 };

static volatile long blocks[THREADS][WORDS] __attribute__((aligned(4096)));
static long sums[THREADS];
static struct { int cpu, node; } seen[STAGES][THREADS];
static pthread_barrier_t barrier;
static char **stages;
static long rest;
static struct timespec begin;

static void read_block(int from, int words, int me) {
  long sum = 0;
  for (int word = 0; word < words; word++) sum += blocks[from][word];
  sums[me] += sum;
}

/* Until REST milliseconds for each round so far are over. */
static void wait_for_round(long rounds) {
  long after = begin.tv_nsec / 1000000 + rest * rounds;
  struct timespec time = {begin.tv_sec + after / 1000, after % 1000 * 1000000};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

static void round_of(int near, int me, long round) {
  for (int word = 0; word < WORDS; word++) blocks[me][word] = round + word + me;
  pthread_barrier_wait(&barrier);
  for (int other = 0; other < THREADS; other++) {
    if (other == (me ^ (near ? 1 : 2))) read_block(other, WORDS, me);
    else if (other != me && !near) read_block(other, WORDS / 3, me);
  }
  pthread_barrier_wait(&barrier);
}

static void *work(void *argument) {
  int me = (int)(long)argument;
  long all = 0;
  for (int stage = 0; stages[stage]; stage++) {
    long rounds = atol(strchr(stages[stage], ':') + 1);
    for (long round = 0; round < rounds; round++) {
      wait_for_round(++all);
      round_of(stages[stage][0] == 'n', me, round);
      if (round != rounds * 3 / 4) continue;
      seen[stage][me].cpu = sched_getcpu();
      seen[stage][me].node = -1;
      syscall(SYS_get_mempolicy, &seen[stage][me].node, NULL, 0, &blocks[me][WORDS - 1], NODE_OF_ADDRESS);
    }
  }
  return NULL;
}

int main(int count, char **arguments) {
  pthread_t threads[THREADS];
  if (count < 3 || count > STAGES + 2) return 2;
  rest = atol(arguments[1]);
  stages = arguments + 2;
  for (int at = 0; stages[at]; at++)
    if (!strchr(stages[at], ':')) return 2;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  pthread_barrier_init(&barrier, NULL, THREADS);
  for (long t = 1; t < THREADS; t++) pthread_create(&threads[t], NULL, work, (void *)t);
  work((void *)0);
  for (long t = 1; t < THREADS; t++) pthread_join(threads[t], NULL);
  for (int stage = 0; stages[stage]; stage++)
    for (int t = 0; t < THREADS; t++) printf("%d %d %d %d\n", stage, t, seen[stage][t].cpu, seen[stage][t].node);
  return 0;
}
