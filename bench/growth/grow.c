/* grow SIZE N: a program that grows in one size and in nothing else, and prints the clock at its end
 * in nanoseconds. For bench/growth.py.
 *
 *   length N      passes over 16 MiB, 100 N times
 *   footprint N   touches N MiB
 *   freed N       N times: allocates 40 MiB, touches it, frees it
 *   blocks N      N blocks of 1 KiB that live until the end, each touched
 *   mappings N    N times: maps 16 KiB, touches it, unmaps it
 *   threads N     N threads that live at once, each touches 16 KiB
 *   sharing N     N threads that live at once, each touches the same 64 MiB
 *   in-turn N     N threads, one after the other
 *   processes N   N processes, one after the other
 *   forks N       N forks of a process with 1000 blocks of 4 KiB */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define MIB ((size_t)1 << 20)
#define FREED (40 * MIB)
#define WORKED (16 * MIB)
#define MAPPED ((size_t)16 << 10)
#define SHARED (64 * MIB)

static pthread_barrier_t together;
static char *shared; /* by all threads; NULL: they have nothing in common */

static void *must(void *memory) {
  if (memory && memory != MAP_FAILED) return memory;
  perror("grow");
  exit(2);
}

static void touch(volatile char *memory, size_t bytes) {
  for (size_t i = 0; i < bytes; i += PAGE) memory[i] = 1;
}

static void length(long n) {
  volatile long *memory = must(calloc(WORKED, 1));
  for (long pass = 0; pass < 100 * n; pass++)
    for (size_t i = 0; i < WORKED / sizeof *memory; i++) memory[i]++;
}

static void footprint(long n) { touch(must(malloc((size_t)n * MIB)), (size_t)n * MIB); }

static void freed(long n) {
  for (long i = 0; i < n; i++) {
    char *memory = must(malloc(FREED));
    touch(memory, FREED);
    free(memory);
  }
}

static void blocks(long n, size_t bytes) {
  for (long i = 0; i < n; i++) touch(must(malloc(bytes)), bytes);
}

static void mappings(long n) {
  for (long i = 0; i < n; i++) {
    char *memory = must(mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    touch(memory, MAPPED);
    munmap(memory, MAPPED);
  }
}

static void *work(void *wait) {
  char memory[MAPPED];
  touch(memory, sizeof memory);
  if (shared) touch(shared, SHARED);
  if (wait) pthread_barrier_wait(&together);
  return NULL;
}

static void threads(long n, long at_once) {
  pthread_t *all = must(malloc((size_t)at_once * sizeof *all));
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 256 << 10);
  pthread_barrier_init(&together, NULL, (unsigned)at_once);
  for (long done = 0; done < n; done += at_once) {
    for (long i = 0; i < at_once; i++)
      if (pthread_create(&all[i], &small, work, at_once > 1 ? all : NULL) != 0) exit(2);
    for (long i = 0; i < at_once; i++) pthread_join(all[i], NULL);
  }
}

/* `program`: starts itself anew, else the child goes on in a copy. */
static void processes(long n, const char *program) {
  for (long i = 0; i < n; i++) {
    pid_t child = fork();
    if (child == 0) {
      if (program) execl(program, program, "blocks", "1", (char *)NULL);
      blocks(1, MAPPED);
      _exit(program != NULL);
    }
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0) exit(2);
  }
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  const char *size = argv[1];
  long n = atol(argv[2]);
  if (strcmp(size, "length") == 0) length(n);
  else if (strcmp(size, "footprint") == 0) footprint(n);
  else if (strcmp(size, "freed") == 0) freed(n);
  else if (strcmp(size, "blocks") == 0) blocks(n, 1024);
  else if (strcmp(size, "mappings") == 0) mappings(n);
  else if (strcmp(size, "threads") == 0) threads(n, n);
  else if (strcmp(size, "sharing") == 0) {
    shared = must(malloc(SHARED));
    threads(n, n);
  } else if (strcmp(size, "in-turn") == 0) threads(n, 1);
  else if (strcmp(size, "processes") == 0) processes(n, "/proc/self/exe");
  else if (strcmp(size, "forks") == 0) {
    blocks(1000, PAGE);
    processes(n, NULL);
  } else return 2;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  printf("%lld\n", now.tv_sec * 1000000000LL + now.tv_nsec);
  return 0;
}
