/* Says on which PUs its threads may run: a line "thread PU,PU,..." for each, in order of
 * creation.
 *   places omp          the threads of an OpenMP parallel region
 *   places threads N    N threads in all
 *   places wait N       the same, after a line on standard input; "ready" comes first
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };

static char lines[MOST][4096];
static pthread_barrier_t all_there, go;

static void note(int thread) {
  cpu_set_t set;
  char *end = lines[thread];
  sched_getaffinity(0, sizeof set, &set);
  end += sprintf(end, "%d ", thread);
  const char *comma = "";
  for (int pu = 0; pu < CPU_SETSIZE; pu++) {
    if (CPU_ISSET(pu, &set) && end < lines[thread] + 4000) {
      end += sprintf(end, "%s%d", comma, pu);
      comma = ",";
    }
  }
}

static void *wait_and_note(void *arg) {
  pthread_barrier_wait(&all_there);
  pthread_barrier_wait(&go);
  note((int)(long)arg);
  return NULL;
}

static int with_pthreads(int count, int wait) {
  pthread_t threads[MOST];
  pthread_barrier_init(&all_there, NULL, (unsigned)count);
  pthread_barrier_init(&go, NULL, (unsigned)count);
  for (long n = 1; n < count; n++) pthread_create(&threads[n], NULL, wait_and_note, (void *)n);
  pthread_barrier_wait(&all_there);
  if (wait) {
    char line[16];
    puts("ready");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) return 1;
  }
  pthread_barrier_wait(&go);
  note(0);
  for (int n = 1; n < count; n++) pthread_join(threads[n], NULL);
  return 0;
}

int main(int argc, char **argv) {
  int count = argc > 2 ? atoi(argv[2]) : MOST;
  if (argc < 2 || count < 1 || count > MOST) return 2;
  if (strcmp(argv[1], "omp") == 0) {
#pragma omp parallel
    {
      extern int omp_get_thread_num(void);
      if (omp_get_thread_num() < MOST) note(omp_get_thread_num());
    }
  } else if (with_pthreads(count, strcmp(argv[1], "wait") == 0)) {
    return 1;
  }
  for (int n = 0; n < MOST; n++)
    if (lines[n][0]) puts(lines[n]);
  return 0;
}
