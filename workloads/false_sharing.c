/* false_sharing [THREADS=8 [ADDITIONS=2000000 [packed|padded]]]
 *
 * Each thread adds to its own counter and to no other. Packed, eight counters lie in
 * one line of `packed`; padded, each has a page of its own in `padded`.
 *
 * Expected, with N = THREADS and 8 counters to a line:
 *   packed: M[i][j] > 0 exactly for i/8 == j/8: blocks of eight, at most two events
 *        per addition and direction (reads and writes each count);
 *        N*8/4096 pages rounded up, page 0 first touched by any thread
 *   padded: matrix 0, N pages, page i touched by i alone
 *   both: each thread reads and writes its counter ADDITIONS times (reads it once
 *        more at the end)
 * Each is at most 512 additions ahead of the one before it: all meet in each slice. */
#include "team.h"
#include <string.h>

static cell packed[TEAM_MAX] __attribute__((aligned(PAGE)));
static cell padded[TEAM_MAX][PAGE_CELLS] __attribute__((aligned(PAGE)));
static int threads, apart;
static long additions, wrong[TEAM_MAX];

static void body(int me) {
  long n = additions;
  int my_turn = turns[me], next_turn = turns[(me + 1) % threads];
  cell *counter = apart ? &padded[me][0] : &packed[me];
  for (long k = 0; k < n; k++) {
    *counter += 1;
    if (k % 512 == 0) end_turn(my_turn, next_turn);
  }
  wrong[me] = *counter != n;
}

int main(int argc, char **argv) {
  threads = (int)number(argc, argv, 1, 8, 1, TEAM_MAX);
  additions = number(argc, argv, 2, 2000000, 1, 1000000000000);
  apart = argc > 3 && strcmp(argv[3], "padded") == 0;
  new_turns(threads);
  run_team(threads, body);
  long bad = 0;
  for (int i = 0; i < threads; i++) bad += wrong[i];
  printf("false_sharing: %s\n", bad ? "WRONG" : "correct");
  return bad != 0;
}
