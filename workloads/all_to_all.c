/* all_to_all [THREADS=8 [ROUNDS=2000 [WORDS=64]]]
 *
 * Every round, each thread writes WORDS words of its own page `box[i]`; when all have,
 * each reads the words of all the others.
 *
 * Expected, with N = THREADS:
 *   box: N pages, page i first touched by i; i writes ROUNDS*WORDS, each other thread
 *        reads as many
 *   matrix: no structure: an access counts with all other threads, so M[i][j] = 2*N*ROUNDS*WORDS
 *        less at most the first round of each slice
 *   time: one phase; a change of thread placement can gain nothing */
#include "team.h"

static cell box[TEAM_MAX][PAGE_CELLS] __attribute__((aligned(PAGE)));
static int threads;
static long rounds, words, sums[TEAM_MAX];
static struct gate gate;

static void body(int me) {
  struct gate g = gate;
  g.member = me;
  long n = threads, turns = rounds, count = words, sum = 0;
  for (long round = 0; round < turns; round++) {
    for (long k = 0; k < count; k++) box[me][k] = round + k;
    pass(&g);
    for (long step = 1; step < n; step++) {
      cell *from = box[(me + step) % n];
      for (long k = 0; k < count; k++) sum += from[k];
    }
    pass(&g);
  }
  sums[me] = sum;
}

int main(int argc, char **argv) {
  threads = (int)number(argc, argv, 1, 8, 2, TEAM_MAX);
  rounds = number(argc, argv, 2, 2000, 1, 1000000000);
  words = number(argc, argv, 3, 64, 1, PAGE_CELLS);
  gate = new_gate(threads);
  run_team(threads, body);
  long one = rounds * (rounds - 1) / 2 * words + words * (words - 1) / 2 * rounds, wrong = 0;
  for (int i = 0; i < threads; i++) wrong += sums[i] != one * (threads - 1);
  printf("all_to_all: %s\n", wrong ? "WRONG" : "correct");
  return wrong != 0;
}
