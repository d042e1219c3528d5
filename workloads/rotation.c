/* rotation [THREADS=8 [ROUNDS=100 [WORDS=64]]]
 *
 * The threads read the WORDS words of `shared` one after the other, in order, ROUNDS times.
 *
 * Expected, with N = THREADS, in one slice:
 *   shared: one page, first touched by thread 0, which writes WORDS words; all read ROUNDS*WORDS
 *   matrix: thread j reads WORDS words ROUNDS times after thread i < j has used them, i one time less
 *        after j: M[i][j] = (2*ROUNDS-1)*WORDS, exactly but for what libc shares; no structure
 *   time: one phase; a change of thread placement can gain nothing */
#include "team.h"

static cell shared[PAGE_CELLS] __attribute__((aligned(PAGE)));
static int threads, turn[TEAM_MAX];
static long rounds, words, sums[TEAM_MAX][8];

static void body(int me) {
  int mine = turn[me], next = turn[(me + 1) % threads], last = me == threads - 1;
  long n = rounds, count = words, sum = 0;
  for (long round = 0; round < n; round++) {
    take(mine);
    for (long k = 0; k < count; k++) sum += shared[k];
    if (!last || round + 1 < n) give(next, 1);
  }
  sums[me][0] = sum;
}

int main(int argc, char **argv) {
  threads = (int)number(argc, argv, 1, 8, 2, TEAM_MAX);
  rounds = number(argc, argv, 2, 100, 1, 1000000000);
  words = number(argc, argv, 3, 64, 1, PAGE_CELLS);
  for (int i = 0; i < threads; i++) turn[i] = new_baton();
  for (long k = 0; k < words; k++) shared[k] = k;
  give(turn[0], 1);
  run_team(threads, body);
  int wrong = 0;
  for (int i = 0; i < threads; i++) wrong += sums[i][0] != rounds * (words * (words - 1) / 2);
  printf("rotation: %s\n", wrong ? "WRONG" : "correct");
  return wrong != 0;
}
