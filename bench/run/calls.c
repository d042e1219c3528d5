/* calls threads N ROUNDS | map N | mapunmap N: does nothing but create N threads and join
 * them, ROUNDS times, or map N times 1 MiB (and unmap it again); prints the nanoseconds
 * that this took. For bench/run.py. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define MIB (1 << 20)

static pthread_barrier_t together;

static void *be_there(void *nothing) {
  pthread_barrier_wait(&together);
  return nothing;
}

static void threads(long n, long rounds) {
  pthread_t *all = malloc((size_t)n * sizeof *all);
  pthread_barrier_init(&together, NULL, (unsigned)n);
  for (long round = 0; round < rounds; round++) {
    for (long i = 0; i < n; i++)
      if (pthread_create(&all[i], NULL, be_there, NULL) != 0) exit(2);
    for (long i = 0; i < n; i++) pthread_join(all[i], NULL);
  }
}

static void map(long n, int unmap) {
  for (long i = 0; i < n; i++) {
    char *p = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) exit(2);
    if (unmap) munmap(p, MIB);
  }
}

int main(int argc, char **argv) {
  struct timespec from, to;
  if (argc < 3) return 2;
  clock_gettime(CLOCK_MONOTONIC, &from);
  if (strcmp(argv[1], "threads") == 0) threads(atol(argv[2]), argc > 3 ? atol(argv[3]) : 1);
  else map(atol(argv[2]), strcmp(argv[1], "mapunmap") == 0);
  clock_gettime(CLOCK_MONOTONIC, &to);
  printf("%lld\n", (to.tv_sec - from.tv_sec) * 1000000000LL + to.tv_nsec - from.tv_nsec);
  return 0;
}
