/* program pthread|openmp|time ROUNDS [REST=10]
 * Four threads in pairs whose partners change half-way: (0,1) (2,3), then (0,2) (1,3). In
 * each round all rest for REST milliseconds and write to the page of their partner. Between
 * the halves they rest for 40 times as long, so that C_H tells them apart.
 *   pthread: two pthread barriers per round: 8 ROUNDS
 *   openmp:  a parallel region with a barrier per round: ROUNDS, 4 ROUNDS
 *   time:    no barrier that is counted
 * Built with mpicc and -DRANKS it is one of four ranks, with a barrier of MPI per round and
 * MPI_Init's and MPI_Finalize's own. In the middle of each half each thread (rank) notes
 * where it is and prints so at the end: `HALF THREAD PU`. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef RANKS
#include <mpi.h>
#endif

enum { THREADS = 4, CELLS = 512 };
static volatile long pages[THREADS][CELLS] __attribute__((aligned(4096)));
static int where[2][THREADS];
static long rounds, rest = 10;
static int counted;
static pthread_barrier_t barrier;

__attribute__((noinline)) static void milliseconds(long n) {
  struct timespec t = {n / 1000, n % 1000 * 1000000};
  nanosleep(&t, NULL);
}

static void work(int me, long round) {
  int half = round >= rounds / 2;
  volatile long *other = pages[half ? me ^ 2 : me ^ 1];
  milliseconds(round == rounds / 2 ? 40 * rest : rest);
  for (int k = 0; k < CELLS; k++) pages[me][k] = pages[me][k] + 1, other[k] = other[k] + 1;
  if (round == rounds / 4 || round == rounds * 3 / 4) where[half][me] = sched_getcpu();
}

static void *body(void *argument) {
  int me = (int)(long)argument;
  for (long round = 0; round < rounds; round++) {
    work(me, round);
    if (counted) pthread_barrier_wait(&barrier), pthread_barrier_wait(&barrier);
  }
  return NULL;
}

static void with_threads(void) {
  pthread_t threads[THREADS];
  pthread_barrier_init(&barrier, NULL, THREADS);
  for (long i = 1; i < THREADS; i++) pthread_create(&threads[i], NULL, body, (void *)i);
  body(NULL);
  for (int i = 1; i < THREADS; i++) pthread_join(threads[i], NULL);
}

#ifdef _OPENMP
#include <omp.h>
static void with_openmp(void) {
  for (long round = 0; round < rounds; round++) {
#pragma omp parallel num_threads(THREADS)
    {
      work(omp_get_thread_num(), round);
#pragma omp barrier
    }
  }
}
#endif

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  rounds = atol(argv[2]);
  if (argc > 3) rest = atol(argv[3]);
  counted = strcmp(argv[1], "pthread") == 0;
#ifdef RANKS
  int me;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  for (long round = 0; round < rounds; round++) work(me, round), MPI_Barrier(MPI_COMM_WORLD);
  milliseconds(200);
  for (int half = 0; half < 2; half++) printf("%d %d %d\n", half, me, where[half][me]);
  MPI_Finalize();
  return 0;
#elif defined _OPENMP
  with_openmp();
#else
  with_threads();
#endif
  /* Time to see the last of the barriers. */
  milliseconds(200);
  for (int half = 0; half < 2; half++)
    for (int i = 0; i < THREADS; i++) printf("%d %d %d\n", half, i, where[half][i]);
  return 0;
}
