/* asks SECONDS
 *
 * Four threads that share pages in couples, so that hither auto puts them on units. All the
 * while it asks, as runtimes do, on how many units it may run: in the threads, in new threads
 * and in programs that they start. Prints the least and the most that it was told, and for
 * how many threads the kernel's own file showed a single unit. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, PAGES = 32, PAGE = 4096 };
static volatile char *memory;
static atomic_int least = 1 << 20, most, single;
static double end;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Seconds more, at most, until a thread was put on a unit. */
enum { PATIENCE = 300 };

static void told(int units) {
  int known = least;
  while (units < known && !atomic_compare_exchange_weak(&least, &known, units)) {}
  known = most;
  while (units > known && !atomic_compare_exchange_weak(&most, &known, units)) {}
}

static void ask(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set)) abort();
  told(CPU_COUNT(&set));
  if (pthread_getaffinity_np(pthread_self(), sizeof set, &set)) abort();
  told(CPU_COUNT(&set));
}

static void *new_thread(void *unused) {
  ask();
  return unused;
}

static void ask_nproc(void) {
  int units = 0;
  FILE *nproc = popen("nproc", "r");
  if (!nproc || fscanf(nproc, "%d", &units) != 1) abort();
  pclose(nproc);
  told(units);
}

static int is_single(void) {
  char name[64], line[4096];
  snprintf(name, sizeof name, "/proc/self/task/%ld/status", syscall(SYS_gettid));
  FILE *file = fopen(name, "r");
  int found = 0;
  while (file && fgets(line, sizeof line, file))
    if (!strncmp(line, "Cpus_allowed_list:", 18)) found = !strpbrk(line + 18, "-,");
  if (file) fclose(file);
  return found;
}

static void *work(void *argument) {
  int me = (int)(long)argument, pinned = 0;
  double next = 0, next_program = 0;
  volatile char *mine = memory + (size_t)(me / 2) * PAGES * PAGE;
  for (long round = 0; now() < end || (single == 0 && now() < end + PATIENCE); round++) {
    for (int page = 0; page < PAGES; page++) mine[page * PAGE + me]++;
    if (round % 2000 || now() < next) continue;
    next = now() + 0.1;
    ask();
    if (!pinned && is_single()) {
      pinned = 1;
      single++;
    }
    pthread_t thread;
    if (pthread_create(&thread, NULL, new_thread, NULL)) abort();
    pthread_join(thread, NULL);
    if (me || now() < next_program) continue;
    next_program = now() + 0.5;
    ask_nproc();
  }
  return NULL;
}

int main(int count, char **arguments) {
  end = now() + (count > 1 ? atof(arguments[1]) : 1);
  memory = mmap(NULL, (size_t)THREADS * PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_t threads[THREADS];
  for (long t = 0; t < THREADS; t++) pthread_create(threads + t, NULL, work, (void *)t);
  for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
  printf("least %d most %d single %d\n", least, most, single);
  return 0;
}
