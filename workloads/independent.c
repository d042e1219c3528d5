/* independent [THREADS=8 [ROUNDS=4000 [PAGES=64]]]
 *
 * Each thread adds to the words of its own pages `block[i]`, allocated and first
 * touched by itself, and shares nothing.
 *
 * Expected, with N = THREADS:
 *   block: N heap blocks of PAGES pages; every page touched by one thread only, which
 *        reads and writes each of its 512 words ROUNDS times, writes it once more at the
 *        start, and reads the block's first word once more at the end
 *   matrix: 0, but for a few events between thread 0 and the others at creation
 *   load: all threads alike
 *   time: one phase; exclusivity 100 %, nothing to gain from thread placement, all to
 *        gain from page placement if thread 0 had touched the pages first */
#include "team.h"

static int threads;
static long rounds, pages, wrong[TEAM_MAX];
static struct gate gate;

static void body(int me) {
  struct gate g = gate;
  g.member = me;
  long turns = rounds, count = pages * PAGE_CELLS;
  cell *block = aligned_alloc(PAGE, (size_t)count * sizeof(cell));
  for (long k = 0; k < count; k++) block[k] = me;
  for (long round = 0; round < turns; round++)
    for (long k = 0; k < count; k++) block[k] += 1;
  wrong[me] = block[0] != me + turns;
  /* None is freed before all are there: on a busy machine one thread may be done before
     the next begins, and then the blocks would never all be live at once. */
  pass(&g);
  free((void *)block);
}

int main(int argc, char **argv) {
  threads = (int)number(argc, argv, 1, 8, 1, TEAM_MAX);
  rounds = number(argc, argv, 2, 4000, 1, 1000000000);
  pages = number(argc, argv, 3, 64, 1, 1000000);
  gate = new_gate(threads);
  run_team(threads, body);
  long bad = 0;
  for (int i = 0; i < threads; i++) bad += wrong[i];
  printf("independent: %s\n", bad ? "WRONG" : "correct");
  return bad != 0;
}
