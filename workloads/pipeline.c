/* pipeline [THREADS=8 [ITEMS=20000 [WORDS=512]]]
 *
 * Thread i takes an item of WORDS words from `link[i-1]`, adds one to each word and
 * hands it on through `link[i]`; thread 0 makes the items, the last one adds them up.
 *
 * Expected, with N = THREADS:
 *   link: N-1 pages, page i first touched by i; i writes ITEMS*WORDS, i+1 reads as
 *        many, nobody else touches it
 *   matrix: M[i][i+1] = 2*ITEMS*WORDS less at most one item per slice, for i < N-1;
 *        0 elsewhere (no edge from the last thread back to the first)
 *   load: threads 0 and N-1 make half the accesses of the others
 *   time: one phase */
#include "team.h"

static cell link[TEAM_MAX][PAGE_CELLS] __attribute__((aligned(PAGE)));
static int threads, filled[TEAM_MAX], emptied[TEAM_MAX];
static long items, words, result;

static void body(int me) {
  int last = me == threads - 1;
  int in_full = me ? filled[me - 1] : -1, in_empty = me ? emptied[me - 1] : -1;
  int out_full = filled[me], out_empty = emptied[me];
  long n = items, count = words, sum = 0;
  for (long item = 0; item < n; item++) {
    if (me) take(in_full);
    if (!last) take(out_empty);
    if (me == 0) {
      for (long k = 0; k < count; k++) link[me][k] = item + k;
    } else if (last) {
      for (long k = 0; k < count; k++) sum += link[me - 1][k];
    } else {
      for (long k = 0; k < count; k++) link[me][k] = link[me - 1][k] + 1;
    }
    if (me) give(in_empty, 1);
    if (!last) give(out_full, 1);
  }
  if (last) result = sum;
}

int main(int argc, char **argv) {
  threads = (int)number(argc, argv, 1, 8, 2, TEAM_MAX);
  items = number(argc, argv, 2, 20000, 1, 1000000000);
  words = number(argc, argv, 3, PAGE_CELLS, 1, PAGE_CELLS);
  for (int i = 0; i < threads; i++) {
    filled[i] = new_baton(), emptied[i] = new_baton();
    give(emptied[i], 1);
  }
  run_team(threads, body);
  long expected = items * (items - 1) / 2 * words + words * (words - 1) / 2 * items + items * words * (threads - 2);
  printf("pipeline: %s\n", result == expected ? "correct" : "WRONG");
  return result != expected;
}
