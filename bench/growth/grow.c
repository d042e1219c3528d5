/* grow SIZE N: a program that grows in one size and in nothing else, and prints the clock at its end
 * in nanoseconds, after its own processor time where it goes on for a minute. For bench/growth.py.
 *
 *   length N      passes over 16 MiB, 100 N times
 *   footprint N   touches N MiB
 *   freed N       N times: allocates 40 MiB, touches it, frees it
 *   blocks N      N blocks of 1 KiB that live until the end, each touched
 *   mappings N    N times: maps 16 KiB, touches it, unmaps it
 *   threads N     N threads that live at once, each touches 16 KiB
 *   apart N       the same, and share lines of the C library only (all with all)
 *   working N     the same as threads, each goes through its 16 KiB 100 times before it waits
 *   sharing N     N threads that live at once, each touches the same 64 MiB
 *   in-turn N     N threads, one after the other
 *   processes N   N processes, one after the other
 *   forks N       N forks of a process with 1000 blocks of 4 KiB
 *   mapped N      N mappings of 64 KiB that live until the end, each touched
 *   copies N      as many, by a process that then forks 300 times
 *   reserved N    a mapping of N pages, each read and none written
 *   swept N       8 threads touch N MiB at once, each its own part, and go through it for a minute
 *   sweepers N    N threads do so with 512 MiB */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
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
#define BOUND ((size_t)64 << 10)
#define SHARED (64 * MIB)
#define SWEPT (512 * MIB)
#define SECONDS 60

static pthread_barrier_t together;
static char *shared; /* by all threads; NULL: they have nothing in common */
static long passes;  /* of each thread through its own memory */

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

/* Each has its own, so that it meets none but the first thread. */
struct gate {
  _Alignas(PAGE) sem_t here, on;
};

static void *work_apart(void *own) {
  struct gate *gate = own;
  char memory[MAPPED];
  touch(memory, sizeof memory);
  sem_post(&gate->here);
  sem_wait(&gate->on);
  return NULL;
}

static void apart(long n) {
  pthread_t *all = must(malloc((size_t)n * sizeof *all));
  struct gate *gates = must(aligned_alloc(PAGE, (size_t)n * sizeof *gates));
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 256 << 10);
  for (long i = 0; i < n; i++) {
    sem_init(&gates[i].here, 0, 0);
    sem_init(&gates[i].on, 0, 0);
    if (pthread_create(&all[i], &small, work_apart, &gates[i]) != 0) exit(2);
    sem_wait(&gates[i].here);
  }
  for (long i = 0; i < n; i++) {
    sem_post(&gates[i].on);
    pthread_join(all[i], NULL);
  }
}

struct part {
  volatile char *memory;
  size_t bytes;
};

static void *sweep(void *own) {
  struct part *part = own;
  pthread_barrier_wait(&together);
  time_t until = time(NULL) + SECONDS;
  do
    for (size_t i = 0; i < part->bytes; i += 64) part->memory[i]++;
  while (time(NULL) < until);
  return NULL;
}

static void swept(size_t bytes, long at_once) {
  pthread_t *all = must(malloc((size_t)at_once * sizeof *all));
  struct part *parts = must(malloc((size_t)at_once * sizeof *parts));
  size_t each = bytes / (size_t)at_once / PAGE * PAGE;
  char *memory = must(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  pthread_barrier_init(&together, NULL, (unsigned)at_once);
  for (long i = 0; i < at_once; i++) {
    parts[i] = (struct part){memory + (size_t)i * each, each};
    if (pthread_create(&all[i], NULL, sweep, &parts[i]) != 0) exit(2);
  }
  for (long i = 0; i < at_once; i++) pthread_join(all[i], NULL);
  struct timespec spent;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  printf("%lld\n", spent.tv_sec * 1000000000LL + spent.tv_nsec);
}

static void mapped(long n) {
  for (long i = 0; i < n; i++) {
    char *memory = must(mmap(NULL, BOUND, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    touch(memory, PAGE);
  }
}

static void reserved(size_t pages) {
  volatile char *memory =
      must(mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  madvise((void *)memory, pages * PAGE, MADV_NOHUGEPAGE);
  for (size_t i = 0; i < pages; i++) (void)memory[i * PAGE];
}

static void *work(void *wait) {
  _Alignas(long) char memory[MAPPED];
  touch(memory, sizeof memory);
  for (long pass = 0; pass < passes; pass++)
    for (size_t i = 0; i < sizeof memory; i += sizeof(long)) (*(volatile long *)(memory + i))++;
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
  else if (strcmp(size, "working") == 0) {
    passes = 100;
    threads(n, n);
  } else if (strcmp(size, "sharing") == 0) {
    shared = must(malloc(SHARED));
    threads(n, n);
  } else if (strcmp(size, "apart") == 0) apart(n);
  else if (strcmp(size, "mapped") == 0) mapped(n);
  else if (strcmp(size, "copies") == 0) {
    mapped(n);
    processes(300, NULL);
  } else if (strcmp(size, "reserved") == 0) reserved((size_t)n);
  else if (strcmp(size, "swept") == 0) swept((size_t)n * MIB, 8);
  else if (strcmp(size, "sweepers") == 0) swept(SWEPT, n);
  else if (strcmp(size, "in-turn") == 0) threads(n, 1);
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
