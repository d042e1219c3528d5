/* phases [ROUNDS=400 [PHASES=2]]
 * Four threads in pairs whose partners change, with a barrier of libpthread every round:
 * even phases (0,1) (2,3), odd ones (0,2) (1,3). At the end of each phase each thread says
 * where it is: `PHASE THREAD PU`. Each round also spins for about a millisecond. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 4, CELLS = 512 };
static long pages[THREADS][CELLS] __attribute__((aligned(4096)));
static int where[64][THREADS];
static long rounds = 400, phases = 2;
static pthread_barrier_t barrier;

static void rest(void) {
  struct timespec t = {0, 1000000};
  nanosleep(&t, NULL);
}

static void *body(void *argument) {
  int me = (int)(long)argument;
  volatile long *mine = pages[me];
  for (long phase = 0; phase < phases; phase++) {
    volatile long *other = pages[phase % 2 ? me ^ 2 : me ^ 1];
    for (long round = 0; round < rounds; round++) {
      for (int k = 0; k < CELLS; k++) mine[k] = mine[k] + 1;
      rest();
      pthread_barrier_wait(&barrier);
      for (int k = 0; k < CELLS; k++) other[k] = other[k] + 1;
      pthread_barrier_wait(&barrier);
    }
    where[phase][me] = sched_getcpu();
  }
  return NULL;
}

int main(int argc, char **argv) {
  if (argc > 1) rounds = atol(argv[1]);
  if (argc > 2) phases = atol(argv[2]);
  pthread_t threads[THREADS];
  pthread_barrier_init(&barrier, NULL, THREADS);
  for (long i = 1; i < THREADS; i++) pthread_create(&threads[i], NULL, body, (void *)i);
  body(NULL);
  for (int i = 1; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (long phase = 0; phase < phases; phase++)
    for (int i = 0; i < THREADS; i++) printf("%ld %d %d\n", phase, i, where[phase][i]);
  return 0;
}
