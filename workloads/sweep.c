/* sweep [THREADS=4 [ROUNDS=4 [PAGES=16384]]]
 *
 * The threads write the first word of each page of `board` once in each round, all in the same order and
 * together: none goes on before all have written the same STEP pages.
 *
 * Expected, in one slice:
 *   board: PAGES pages, each written ROUNDS times by each thread, and read by thread 0 at the end
 *   matrix: M[i][j] = (2*ROUNDS-1)*PAGES: in the first round the second of two finds the first there, later both
 *        find each other; PAGES more for thread 0
 *   coherence: ROUNDS*PAGES for each pair, also for lines that leave a thread's line cache in each round */
#include "team.h"

#define PAGES_MAX 65536
#define STEP 256
static cell board[PAGES_MAX][PAGE_CELLS] __attribute__((aligned(PAGE)));
static int threads;
static struct gate gate;
static long rounds, pages;

static void body(int me) {
  struct gate all = gate;
  all.member = me;
  long n = rounds, count = pages;
  for (long round = 0; round < n; round++)
    for (long page = 0; page < count; page++) {
      board[page][0] = round;
      if (page % STEP == STEP - 1) pass(&all);
    }
}

int main(int argc, char **argv) {
  threads = (int)number(argc, argv, 1, 4, 2, TEAM_MAX);
  rounds = number(argc, argv, 2, 4, 1, 1000000);
  pages = number(argc, argv, 3, 16384, 1, PAGES_MAX);
  gate = new_gate(threads);
  run_team(threads, body);
  int wrong = 0;
  for (long page = 0; page < pages; page++) wrong += board[page][0] != rounds - 1;
  printf("sweep: %s\n", wrong ? "WRONG" : "correct");
  return wrong != 0;
}
