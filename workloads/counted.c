/* counted [THREADS=4 [LOOPS=1000000]]     (x86-64)
 *
 * Thread i runs (i + 1) * LOOPS times a loop of exactly eight instructions, one of which
 * reads and writes its own page of `tally`.
 *
 * Expected: thread i executes 8 * (i + 1) * LOOPS instructions, and at most some 10^5 at
 * the program's and some 10^4 at a thread's start and end; page i of `tally` read and
 * written (i + 1) * LOOPS times by thread i; matrix 0 but for creation. */
#include "team.h"

static cell tally[TEAM_MAX][PAGE_CELLS] __attribute__((aligned(PAGE)));
static long loops;

static void body(int me) {
  long left = loops * (me + 1);
  __asm__ volatile("1: addq $1, (%1)\n\t"
                   "nop\n\tnop\n\tnop\n\tnop\n\tnop\n\t"
                   "subq $1, %0\n\t"
                   "jnz 1b"
                   : "+r"(left)
                   : "r"(&tally[me][0])
                   : "memory", "cc");
}

int main(int argc, char **argv) {
  int threads = (int)number(argc, argv, 1, 4, 1, TEAM_MAX);
  loops = number(argc, argv, 2, 1000000, 1, 1000000000);
  run_team(threads, body);
  long wrong = 0;
  for (int i = 0; i < threads; i++) wrong += tally[i][0] != loops * (i + 1);
  printf("counted: %s\n", wrong ? "WRONG" : "correct");
  return wrong != 0;
}
