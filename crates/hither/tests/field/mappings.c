/* mappings THREADS: says how many mappings of memory the process has while so many threads live. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_barrier_t started, counted;

static void *wait_for_count(void *unused) {
  pthread_barrier_wait(&started);
  pthread_barrier_wait(&counted);
  return unused;
}

static long count_mappings(void) {
  FILE *maps = fopen("/proc/self/maps", "r");
  if (!maps) exit(2);
  long lines = 0;
  for (int c; (c = fgetc(maps)) != EOF;) lines += c == '\n';
  fclose(maps);
  return lines;
}

int main(int argc, char **argv) {
  long threads = argc > 1 ? atol(argv[1]) : 1;
  pthread_barrier_init(&started, NULL, (unsigned)threads + 1);
  pthread_barrier_init(&counted, NULL, (unsigned)threads + 1);
  pthread_t thread;
  for (long i = 0; i < threads; i++)
    if (pthread_create(&thread, NULL, wait_for_count, NULL) != 0) return 2;
  pthread_barrier_wait(&started);
  printf("%ld\n", count_mappings());
  pthread_barrier_wait(&counted);
  return 0;
}
