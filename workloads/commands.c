/* commands [THREADS=2 [WORDS=512 [ROUNDS=50]]]
 *
 * Thread 0 tries to execute a program that is not there, then has the shell run one, which is
 * a child that shares its memory until it executes. Before, between and after that each thread
 * works on its page of `words`: WORDS words, written once and read ROUNDS times.
 *
 * Expected: thread i reads page i of `words` 3 * ROUNDS * WORDS times and writes it 3 * WORDS
 * times; matrix 0 but for creation. The shell and its command are processes of their own. */
#include "team.h"
#include <unistd.h>

static cell words[TEAM_MAX][PAGE_CELLS] __attribute__((aligned(PAGE)));
static long count, rounds, sums[TEAM_MAX][PAGE_CELLS];
static struct gate start;
static int failed;

/* Not inline, as is `command`: a run can be traced from the one until the other. */
static __attribute__((noinline)) void work(int me) {
  long sum = 0;
  for (long i = 0; i < count; i++) words[me][i] = i;
  for (long r = 0; r < rounds; r++)
    for (long i = 0; i < count; i++) sum += words[me][i];
  sums[me][0] += sum;
}

static __attribute__((noinline)) void command(int me, struct gate *gate, int here) {
  pass(gate);
  if (me == 0 && here && system("true") != 0) failed = 1;
  if (me == 0 && !here && execl("/no/such/program", "program", (char *)NULL) != -1) failed = 1;
  pass(gate);
}

static void body(int me) {
  struct gate gate = start;
  gate.member = me;
  work(me);
  command(me, &gate, 0);
  work(me);
  command(me, &gate, 1);
  work(me);
}

int main(int argc, char **argv) {
  int threads = (int)number(argc, argv, 1, 2, 1, TEAM_MAX);
  count = number(argc, argv, 2, PAGE_CELLS, 1, PAGE_CELLS);
  rounds = number(argc, argv, 3, 50, 1, 1000000);
  start = new_gate(threads);
  run_team(threads, body);
  for (int i = 0; i < threads; i++) failed |= sums[i][0] != 3 * rounds * (count * (count - 1) / 2);
  printf("commands: %s\n", failed ? "WRONG" : "correct");
  return failed;
}
