/* locals [THREADS=4 [TURNS=3 [ROUNDS=10]]]
 *
 * Thread-local variables, of the program and of a library that it is linked with (`locals-static`: both in one
 * file). TURNS times THREADS threads are created and waited for; in each, and once in main, ROUNDS times each
 * word of `grid`, `near_a`, `near_b` and `of_library` is read and written. `grid` is large and not initialised,
 * `first` is, and is read once a round.
 *
 * Expected, with N = 1 + THREADS * TURNS copies, of which 1 + THREADS live at once:
 *   grid         N * ROUNDS * GRID reads and as many writes, each copy used by its thread alone, and touched first
 *                by main, which creates the others
 *   near_a, b    N * ROUNDS reads and writes each, of one structure if both are in the same 16 bytes
 *   first        N * ROUNDS reads
 *   of_library   N * ROUNDS * SMALL reads and as many writes
 *   stacks       next to nothing */
#include "team.h"

#define GRID 8192
#define SMALL 100

void add_in_library(void);

#if defined LIBRARY || defined STATIC
static __thread cell of_library[SMALL];

__attribute__((noinline)) void add_in_library(void) {
  for (long i = 0; i < SMALL; i++) of_library[i] += i;
}
#endif

#ifndef LIBRARY
static __thread cell grid[GRID];
__thread cell near_a, near_b;
static __thread cell first = 7;
static long rounds;

static void *work(void *unused) {
  (void)unused;
  long turns = rounds;
  cell *mine = grid, *a = &near_a, *b = &near_b, *f = &first;
  for (long round = 0; round < turns; round++) {
    for (long i = 0; i < GRID; i++) mine[i] += i;
    *a += *f;
    *b += 1;
    add_in_library();
  }
  return NULL;
}

int main(int argc, char **argv) {
  long threads = number(argc, argv, 1, 4, 0, TEAM_MAX), turns = number(argc, argv, 2, 3, 0, 1000000);
  static pthread_t thread[TEAM_MAX];
  rounds = number(argc, argv, 3, 10, 1, 1000000);
  for (long turn = 0; turn < turns; turn++) {
    for (long i = 0; i < threads; i++)
      if (pthread_create(&thread[i], NULL, work, NULL) != 0)
        return fprintf(stderr, "locals: cannot create thread %ld\n", i), 2;
    for (long i = 0; i < threads; i++) pthread_join(thread[i], NULL);
  }
  work(NULL);
  printf("locals: %ld %ld %ld\n", grid[1], near_a, near_b);
  return 0;
}
#endif
