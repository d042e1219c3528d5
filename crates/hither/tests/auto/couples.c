/* couples THREADS PHASES SECONDS PAGES shared|private [NAP]
 *
 * SPCD's producer/consumer program (IPDPS 2013, V.B) without a barrier in each round: couples
 * of threads whose partners change with the clock. Even phases: (0,1) (2,3) ...; odd ones:
 * (0,N/2) (1,N/2+1) ... The lower of the two writes the couple's pages again and again, the
 * other reads them. Near couples and far couples have pages of their own.
 *
 * After each round a thread sleeps for NAP microseconds (0): in an emulator that runs one
 * unit at a time, a unit that is busy answers the others only after milliseconds.
 *
 * SIGUSR1 ends it, which is for a single phase: the last writers are those of the last one.
 *
 * Shortly before the end of each phase it says what the kernel says: the units that each
 * thread may run on, and how many of each couple's pages are on which node. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, MOST = 64, NODES = 8 };
static int threads, phases, pages, nap;
static double seconds, start;
static volatile char *memory;
static pid_t tids[MOST];

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
static volatile sig_atomic_t told;
static void end(int signal) { told = signal; }
static int phase_now(void) { return told ? phases : (int)((now() - start) / seconds); }

/* The pages of the couple that thread `me` is one of. */
static volatile char *vector(int me, int phase, int *first) {
  int half = threads / 2;
  int near = me / 2, far = me % half;
  *first = phase % 2 ? me < half : me % 2 == 0;
  int couple = phase % 2 ? half + far : near;
  return memory + (size_t)couple * (size_t)pages * PAGE;
}

/* The units that a thread may run on as the kernel's own file has them: to the program itself
 * hither tells the mask that it would have without hither. */
static void masks(pid_t tid) {
  char name[64], line[4096];
  snprintf(name, sizeof name, "/proc/self/task/%d/status", (int)tid);
  FILE *file = fopen(name, "r");
  while (file && fgets(line, sizeof line, file)) {
    if (strncmp(line, "Cpus_allowed_list:", 18)) continue;
    for (char *part = strtok(line + 18, ", \t\n"); part; part = strtok(NULL, ", \t\n")) {
      int first, last;
      if (sscanf(part, "%d-%d", &first, &last) < 2) last = first;
      for (; first <= last; first++) printf(" %d", first);
    }
  }
  if (file) fclose(file);
}

static void report(int phase) {
  printf("phase %d\n", phase);
  for (int t = 0; t < threads; t++) {
    printf("thread %d %d on", t, tids[t]);
    masks(tids[t]);
    printf("\n");
  }
  for (int t = 0; t < threads; t++) {
    int first, count[NODES] = {0};
    volatile char *at = vector(t, phase, &first);
    if (!first) continue;
    for (int p = 0; p < pages; p++) {
      void *page = (void *)(at + (size_t)p * PAGE);
      int node = -1;
      syscall(SYS_move_pages, 0, 1L, &page, NULL, &node, 0);
      if (node >= 0 && node < NODES) count[node]++;
    }
    printf("pages %d", t);
    for (int n = 0; n < NODES; n++) printf(" %d", count[n]);
    printf("\n");
  }
  fflush(stdout);
}

static void *body(void *argument) {
  int me = (int)(long)argument, said = -1;
  unsigned random = (unsigned)me;
  long sum = 0;
  tids[me] = (pid_t)syscall(SYS_gettid);
  for (int phase; (phase = phase_now()) < phases;) {
    int first;
    volatile char *at = vector(me, phase, &first);
    for (int p = 0; p < pages; p++)
      for (int k = 0; k < PAGE; k += 64) {
        volatile char *byte = at + (size_t)p * PAGE + k;
        if (first) *byte = (char)(phase + k);
        else sum += *byte;
      }
    /* Not in step with whoever looks on: half of it to one and a half. */
    random = random * 1103515245u + 12345u;
    if (nap) usleep((useconds_t)(nap / 2) + (random >> 8) % (useconds_t)nap);
    if (me == 0 && said < phase && now() - start > (phase + 0.9) * seconds) report(said = phase);
  }
  return (void *)sum;
}

int main(int argc, char **argv) {
  if (argc < 6 || argc > 7) return 2;
  threads = atoi(argv[1]), phases = atoi(argv[2]), pages = atoi(argv[4]);
  seconds = atof(argv[3]);
  nap = argc > 6 ? atoi(argv[6]) : 0;
  if (threads < 2 || threads > MOST || threads % 2) return 2;
  int flags = strcmp(argv[5], "shared") ? MAP_PRIVATE : MAP_SHARED;
  size_t bytes = (size_t)threads * (size_t)pages * PAGE;
  memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 2;
  signal(SIGUSR1, end);
  start = now();
  pthread_t other[MOST];
  for (long t = 1; t < threads; t++) pthread_create(&other[t], NULL, body, (void *)t);
  body(NULL);
  for (int t = 1; t < threads; t++) pthread_join(other[t], NULL);
  /* The last word of every page is what its writers left. */
  long wrong = 0;
  for (size_t i = 0; i < bytes; i += 64) {
    int near = i / PAGE / (size_t)pages < (size_t)threads / 2;
    int last = phases - 1, phase = near == (last % 2 == 0) ? last : last - 1;
    if (phase >= 0) wrong += memory[i] != (char)(phase + (int)(i % PAGE));
  }
  printf("%ld wrong\n", wrong);
  return wrong != 0;
}
