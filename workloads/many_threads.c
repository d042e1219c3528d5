/* many_threads at-once|in-sequence [THREADS=64 [WORDS=512]]
 *
 * at-once: THREADS threads besides main, all alive together; they leave when the last
 * has arrived. in-sequence: one after another, each joined before the next is created.
 * Each thread writes and then reads WORDS words of its own page of `page_of`.
 *
 * Expected, thread i of the run being the i-th created, main 0:
 *   THREADS + 1 threads in the profile, creator of all: 0
 *   page_of: page i touched by thread i alone, WORDS writes and WORDS reads; page 0 by none
 *   matrix: 0 but for creation (in sequence, successive threads reuse one stack, so
 *        within a slice neighbours i, i+1 share its lines) */
#include "team.h"
#include <string.h>

#define MOST 4200
static cell page_of[MOST][PAGE_CELLS] __attribute__((aligned(PAGE)));
static pthread_t thread[MOST];
static int arrived, leave;
static long words, wrong;

static void *worker(void *argument) {
  long me = (long)argument, sum = 0, count = words;
  for (long k = 0; k < count; k++) page_of[me][k] = me;
  for (long k = 0; k < count; k++) sum += page_of[me][k];
  if (sum != me * count) __atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
  give(arrived, 1);
  take(leave);
  return NULL;
}

int main(int argc, char **argv) {
  int once = argc < 2 || strcmp(argv[1], "at-once") == 0;
  if (!once && strcmp(argv[1], "in-sequence") != 0)
    return fprintf(stderr, "many_threads: the first argument is at-once or in-sequence\n"), 2;
  long threads = number(argc, argv, 2, 64, 1, MOST - 1);
  words = number(argc, argv, 3, PAGE_CELLS, 1, PAGE_CELLS);
  arrived = new_baton();
  leave = new_baton();
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 256 * 1024);
  for (long i = 1; i <= threads; i++) {
    if (pthread_create(&thread[i], &small, worker, (void *)i) != 0)
      return fprintf(stderr, "many_threads: cannot create thread %ld\n", i), 2;
    take(arrived); /* so that threads start in order */
    if (once) continue;
    give(leave, 1);
    pthread_join(thread[i], NULL);
  }
  if (once) {
    give(leave, (uint64_t)threads);
    for (long i = 1; i <= threads; i++) pthread_join(thread[i], NULL);
  }
  printf("many_threads: %ld threads, %s\n", threads, wrong ? "WRONG" : "correct");
  return wrong != 0;
}
