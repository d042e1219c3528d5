/* master [THREADS=8 [ROUNDS=2000 [WORDS=512]]]
 *
 * Thread 0 hands out work and gathers results, the others compute. In each round the
 * master writes WORDS words of every worker's page of `task`; worker i reads its page,
 * writes WORDS words of its page of `result`, and the master reads those.
 *
 * Expected, with N = THREADS:
 *   task:   pages 1 to N-1, all first touched by 0; page i written by 0, read by i
 *   result: pages 1 to N-1, page i first touched by i; page i written by i, read by 0
 *   matrix: M[0][i] = 4*ROUNDS*WORDS less at most two rounds per slice; 0 elsewhere
 *   load: the master makes N-1 times the accesses of a worker
 *   balance: B_comm = (N/2 - 1) * 100 %: the master has half of all communication
 *   time: one phase */
#include "team.h"

static cell task[TEAM_MAX][PAGE_CELLS] __attribute__((aligned(PAGE)));
static cell result[TEAM_MAX][PAGE_CELLS] __attribute__((aligned(PAGE)));
static int threads, handed[TEAM_MAX], done[TEAM_MAX];
static long rounds, words, total;

static void master(void) {
  long n = rounds, count = words, last = threads, sum = 0;
  for (long round = 0; round < n; round++) {
    for (long i = 1; i < last; i++) {
      for (long k = 0; k < count; k++) task[i][k] = round + k;
      give(handed[i], 1);
    }
    for (long i = 1; i < last; i++) {
      take(done[i]);
      for (long k = 0; k < count; k++) sum += result[i][k];
    }
  }
  total = sum;
}

static void body(int me) {
  if (me == 0) {
    master();
    return;
  }
  long n = rounds, count = words;
  int mine = handed[me], ready = done[me];
  for (long round = 0; round < n; round++) {
    take(mine);
    for (long k = 0; k < count; k++) result[me][k] = task[me][k] + 1;
    give(ready, 1);
  }
}

int main(int argc, char **argv) {
  threads = (int)number(argc, argv, 1, 8, 2, TEAM_MAX);
  rounds = number(argc, argv, 2, 2000, 1, 1000000000);
  words = number(argc, argv, 3, PAGE_CELLS, 1, PAGE_CELLS);
  for (int i = 1; i < threads; i++) handed[i] = new_baton(), done[i] = new_baton();
  run_team(threads, body);
  /* every worker returns round + k + 1 once per round */
  long one = rounds * (rounds - 1) / 2 * words + words * (words + 1) / 2 * rounds;
  printf("master: %s\n", total == one * (threads - 1) ? "correct" : "WRONG");
  return total != one * (threads - 1);
}
