/* generations [WORKERS=4 [GENERATIONS=100 [ROUNDS=20 [WORDS=512]]]]
 *
 * A pool of workers that is made anew in every iteration: main creates WORKERS threads at one place
 * and waits for all of them, GENERATIONS times. WORKERS must be even. In each round worker 2p of a
 * generation writes WORDS words of page p of `box`, then worker 2p+1 reads them.
 *
 * Expected, worker i of generation g being thread 1 + g*WORKERS + i:
 *   1 + WORKERS*GENERATIONS threads in 1 + WORKERS roles: that of worker i is thread 1+i's
 *   box: page p first touched by worker 2p, by whose role written GENERATIONS*ROUNDS*WORDS times; by that
 *        of worker 2p+1 read as often, nobody else touches it
 *   matrix of roles: M[1+2p][2+2p] = 2*GENERATIONS*ROUNDS*WORDS less at most one round per slice and
 *        generation; 0 elsewhere but for creation */
#include "team.h"

static cell box[TEAM_MAX / 2][PAGE_CELLS] __attribute__((aligned(PAGE)));
static int batons[TEAM_MAX];
static long rounds, words, sums[TEAM_MAX][PAGE_CELLS] __attribute__((aligned(PAGE)));

static void *worker(void *argument) {
  long me = (long)argument, turns = rounds, count = words, sum = 0;
  int mine = batons[me], other = batons[me ^ 1];
  cell *page = box[me / 2];
  for (long round = 0; round < turns; round++) {
    if (me % 2) take(mine);
    for (long k = 0; k < count; k++) {
      if (me % 2) sum += page[k];
      else page[k] = round + k;
    }
    give(other, 1);
    if (me % 2 == 0) take(mine);
  }
  sums[me][0] += sum;
  return NULL;
}

int main(int argc, char **argv) {
  long workers = number(argc, argv, 1, 4, 2, TEAM_MAX), generations = number(argc, argv, 2, 100, 1, 100000), sum = 0;
  static pthread_t thread[TEAM_MAX];
  rounds = number(argc, argv, 3, 20, 1, 1000000);
  words = number(argc, argv, 4, PAGE_CELLS, 1, PAGE_CELLS);
  if (workers % 2) return fprintf(stderr, "generations: WORKERS must be even\n"), 2;
  for (long i = 0; i < workers; i++) batons[i] = new_baton();
  for (long generation = 0; generation < generations; generation++) {
    for (long i = 0; i < workers; i++)
      if (pthread_create(&thread[i], NULL, worker, (void *)i) != 0)
        return fprintf(stderr, "generations: cannot create thread %ld\n", i), 2;
    for (long i = 0; i < workers; i++) pthread_join(thread[i], NULL);
  }
  for (long i = 0; i < workers; i++) sum += sums[i][0];
  long one = rounds * (rounds - 1) / 2 * words + words * (words - 1) / 2 * rounds;
  int correct = sum == one * generations * (workers / 2);
  printf("generations: %s\n", correct ? "correct" : "WRONG");
  return !correct;
}
