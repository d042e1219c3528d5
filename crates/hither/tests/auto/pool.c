/* pool WORKERS GENERATIONS MS: workers that are created anew in each generation and live for so
 * long. Couples of them share memory, the same in all generations, and each has some of its own.
 * Says for each worker "GENERATION WORKER UNITS", and "N wrong" last. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { PAGE = 4096, PAGES = 64, MOST = 64 };
static long length;
/* [worker][page]: a couple uses those of its first. */
static atomic_long *memory;
static long rounds[MOST];
static char units[MOST][1024];

static long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void *body(void *argument) {
  long me = (long)argument;
  /* The processing units that it ran on in the second half of its life. */
  cpu_set_t ran;
  CPU_ZERO(&ran);
  for (long start = now(), age = 0; (age = now() - start) < length; rounds[me]++) {
    for (int page = 0; page < PAGES; page++)
      atomic_fetch_add(memory + ((me & ~1L) * PAGES + page) * (PAGE / (long)sizeof(long)), 1);
    if (age > length / 2) CPU_SET(sched_getcpu(), &ran);
  }
  char *text = units[me];
  for (int cpu = 0; cpu < CPU_SETSIZE && text < units[me] + 1000; cpu++)
    if (CPU_ISSET(cpu, &ran)) text += sprintf(text, "%s%d", text > units[me] ? "," : "", cpu);
  return NULL;
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  long workers = atol(argv[1]), generations = atol(argv[2]);
  length = atol(argv[3]);
  if (workers < 2 || workers > MOST || workers % 2) return 2;
  memory = mmap(NULL, (size_t)workers * PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 2;
  for (long generation = 0; generation < generations; generation++) {
    pthread_t others[MOST];
    for (long t = 0; t < workers; t++)
      if (pthread_create(&others[t], NULL, body, (void *)t)) return 2;
    for (long t = 0; t < workers; t++) pthread_join(others[t], NULL);
    for (long t = 0; t < workers; t++) printf("%ld %ld %s\n", generation, t, units[t]);
  }
  long wrong = 0;
  for (long t = 0; t < workers; t += 2)
    for (int page = 0; page < PAGES; page++)
      wrong += memory[(t * PAGES + page) * (PAGE / (long)sizeof(long))] != rounds[t] + rounds[t + 1];
  printf("%ld wrong\n", wrong);
  return wrong != 0;
}
