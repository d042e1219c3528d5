/* late_readers [THREADS=8 [ROUNDS=50 [WORDS=64]]]
 *
 * Thread 0 writes the WORDS words of `board` ROUNDS times, then thread 1 reads them, as often as they are
 * written in the whole run; then thread 0 writes them again and thread 2 reads them, up to the last.
 *
 * Expected, with N = THREADS and A = (N-1)*ROUNDS*WORDS, in one slice:
 *   board: one page, first touched by thread 0, which writes A times; every other thread reads A times
 *   matrix: reader j has A accesses with each thread that came before it; after it thread 0 writes
 *        (N-1-j)*ROUNDS*WORDS words: M[0][j] = A + that, and M[i][j] = A between readers
 *   coherence: thread 0 with each reader A, readers with each other none */
#include "team.h"

static cell board[PAGE_CELLS] __attribute__((aligned(PAGE)));
static int threads, turn[TEAM_MAX];
static struct gate gate;
static long rounds, words, sums[TEAM_MAX][8];

static void body(int me) {
  struct gate all = gate;
  all.member = me;
  int mine = turn[me], writer = turn[0], members = threads;
  long n = rounds, count = words, sum = 0;
  if (me == 0) {
    for (int reader = 1; reader < members; reader++) {
      for (long round = 0; round < n; round++)
        for (long k = 0; k < count; k++) board[k] = k;
      give(turn[reader], 1);
      take(mine);
    }
  } else {
    take(mine);
    for (long round = 0; round < n * (members - 1); round++)
      for (long k = 0; k < count; k++) sum += board[k];
    give(writer, 1);
  }
  sums[me][0] = sum;
  pass(&all); /* what a thread that has ended did counts no more with others */
}

int main(int argc, char **argv) {
  threads = (int)number(argc, argv, 1, 8, 2, TEAM_MAX);
  rounds = number(argc, argv, 2, 50, 1, 1000000);
  words = number(argc, argv, 3, 64, 1, PAGE_CELLS);
  for (int i = 0; i < threads; i++) turn[i] = new_baton();
  gate = new_gate(threads);
  run_team(threads, body);
  int wrong = 0;
  for (int i = 1; i < threads; i++) wrong += sums[i][0] != rounds * (threads - 1) * (words * (words - 1) / 2);
  printf("late_readers: %s\n", wrong ? "WRONG" : "correct");
  return wrong != 0;
}
