/* ring [THREADS=8 [ROUNDS=20000 [WORDS=512]]]
 *
 * Every round, each thread writes WORDS words of its own page `box[i]` and reads those
 * of the thread before it, all threads at once.
 *
 * Expected, with N = THREADS:
 *   box: N pages, page i first touched by i; i writes ROUNDS*WORDS, i+1 mod N reads as
 *        many, nobody else touches it
 *   matrix: M[i][i+1 mod N] = 2*ROUNDS*WORDS less at most one round per slice (twice
 *        that for N = 2); 0 elsewhere
 *   time: one phase */
#include "team.h"

static cell box[TEAM_MAX][PAGE_CELLS] __attribute__((aligned(PAGE)));
static int threads, filled[TEAM_MAX], emptied[TEAM_MAX];
static long rounds, words, sums[TEAM_MAX];

static void body(int me) {
  int n = threads, next = (me + 1) % n, before = (me + n - 1) % n;
  int full_here = filled[me], full_next = filled[next];
  int empty_here = emptied[me], empty_before = emptied[before];
  long turns = rounds, count = words, sum = 0;
  for (long round = 0; round < turns; round++) {
    for (long k = 0; k < count; k++) box[me][k] = round + k;
    give(full_next, 1);
    take(full_here);
    for (long k = 0; k < count; k++) sum += box[before][k];
    give(empty_before, 1);
    take(empty_here);
  }
  sums[me] = sum;
}

int main(int argc, char **argv) {
  threads = (int)number(argc, argv, 1, 8, 2, TEAM_MAX);
  rounds = number(argc, argv, 2, 20000, 1, 1000000000);
  words = number(argc, argv, 3, PAGE_CELLS, 1, PAGE_CELLS);
  for (int i = 0; i < threads; i++) filled[i] = new_baton(), emptied[i] = new_baton();
  run_team(threads, body);
  long one = rounds * (rounds - 1) / 2 * words + words * (words - 1) / 2 * rounds, wrong = 0;
  for (int i = 0; i < threads; i++) wrong += sums[i] != one;
  printf("ring: %s\n", wrong ? "WRONG" : "correct");
  return wrong != 0;
}
