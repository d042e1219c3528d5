/* fork_at_work [THREADS=4 [CHILDREN=20 [ROUNDS=20000]]]
 *
 * THREADS - 1 threads add to the words of their own page of `work` while thread 0 forks
 * CHILDREN processes, one after the other; each writes and reads its own copy of `mine`.
 * What a child does must not disturb what its parent's threads count.
 *
 * Expected, with N = THREADS:
 *   threads: N, and one in each of CHILDREN further processes
 *   work: page i = 1..N-1 read and written 512*ROUNDS times each by thread i, used by
 *        nobody else
 *   mine: one page in each child, written and read 512 times by its only thread
 *   matrix: 0 but for creation */
#include "team.h"
#include <sys/wait.h>
#include <unistd.h>

static cell work[TEAM_MAX][PAGE_CELLS] __attribute__((aligned(PAGE)));
static cell mine[PAGE_CELLS] __attribute__((aligned(PAGE)));
static long children, rounds, failed;

static void child(void) {
  long sum = 0;
  for (long k = 0; k < PAGE_CELLS; k++) mine[k] = k;
  for (long k = 0; k < PAGE_CELLS; k++) sum += mine[k];
  _exit(sum != PAGE_CELLS * (PAGE_CELLS - 1) / 2);
}

static void body(int me) {
  long turns = rounds;
  for (long round = 0; me > 0 && round < turns; round++)
    for (long k = 0; k < PAGE_CELLS; k++) work[me][k] += 1;
  for (long c = 0; me == 0 && c < children; c++) {
    pid_t pid = fork();
    if (pid == 0) child();
    int status = 1;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) failed++;
  }
}

int main(int argc, char **argv) {
  int threads = (int)number(argc, argv, 1, 4, 2, TEAM_MAX);
  children = number(argc, argv, 2, 20, 0, 1000);
  rounds = number(argc, argv, 3, 20000, 1, 1000000000);
  run_team(threads, body);
  printf("fork_at_work: %s\n", failed ? "WRONG" : "correct");
  return failed != 0;
}
