/* rows ROUNDS: a matrix with a block for each row, as many programs have it. The main thread
 * allocates all 8000 rows of 200 bytes, beside each an index of 8; the allocator writes its header
 * before each block, so all pages are first touched by the main thread. Then each of four threads
 * writes its quarter of the rows once and sums it ROUNDS times. */
#include "team.h"

enum { ROWS = 8000, COLUMNS = 25, THREADS = 4 };

static volatile double **row;
static volatile int **start;
static long rounds;

static void body(int me) {
  double sum = 0;
  int from = me * (ROWS / THREADS), to = from + ROWS / THREADS;
  for (int i = from; i < to; i++)
    for (int j = 0; j < COLUMNS; j++) row[i][j] = j;
  for (long round = 0; round < rounds; round++)
    for (int i = from; i < to; i++)
      for (int j = *start[i]; j < COLUMNS; j++) sum += row[i][j];
  if (sum < 0) abort();
}

int main(int argc, char **argv) {
  rounds = number(argc, argv, 1, 100, 1, 1000000);
  row = malloc(ROWS * sizeof *row);
  start = malloc(ROWS * sizeof *start);
  for (int i = 0; i < ROWS; i++) {
    row[i] = malloc(COLUMNS * sizeof(double));
    start[i] = malloc(sizeof(int));
    *start[i] = 0;
  }
  run_team(THREADS, body);
  return 0;
}
