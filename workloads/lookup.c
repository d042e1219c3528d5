/* lookup [THREADS=2 [LOOKUPS=2500000]]
 *
 * The main thread fills a small table, and each thread looks up in it as often. Beside it lie small
 * variables that other threads use.
 *
 * Expected, with N = THREADS:
 *   `table`: 1024 words, written once each; N*LOOKUPS reads, by all threads
 *   `ends`: each thread writes its word; `mains` is used by thread 0 alone */
#include "team.h"

enum { LENGTH = 1024 };

static volatile unsigned table[LENGTH];
static volatile unsigned ends[TEAM_MAX];
static volatile unsigned mains[16];
static long lookups;

static void body(int me) {
  unsigned x = (unsigned)me;
  long n = lookups;
  for (long k = 0; k < n; k++) x = x * 1103515245u + table[x >> 22]; /* looks up */
  ends[me] = x;
}

int main(int argc, char **argv) {
  int threads = (int)number(argc, argv, 1, 2, 1, TEAM_MAX);
  lookups = number(argc, argv, 2, 2500000, 1, 1000000000);
  for (unsigned i = 0; i < LENGTH; i++) table[i] = i * 2654435761u; /* fills */
  mains[0] = table[1];
  run_team(threads, body);
  printf("%u %u\n", ends[0], mains[0]);
  return 0;
}
