/* pairs [THREADS=8 [PHASES=4 [ROUNDS=20000 [WORDS=512]]]]
 *
 * Producer/consumer pairs whose partners change, after SPCD (IPDPS 2013), V.B and
 * figure 5. THREADS must be even, N below.
 *   even phases: (0,1) (2,3) (4,5) ...       through `near`, page i/2
 *   odd phases:  (0,N/2) (1,N/2+1) ...       through `far`, page i
 * In each round the producer (lower number) writes WORDS words of the pair's page,
 * then the consumer reads them.
 *
 * Expected, with E even and O odd phases (E + O = PHASES, E - O is 0 or 1):
 *   near: N/2 pages, page p first touched by 2p;  2p writes E*ROUNDS*WORDS, 2p+1 reads
 *         as many, nobody else touches it
 *   far:  N/2 pages, page p first touched by p;   p writes O*ROUNDS*WORDS, p+N/2 reads
 *         as many, nobody else touches it
 *   matrix: M[2p][2p+1] = 2*E*ROUNDS*WORDS and M[p][p+N/2] = 2*O*ROUNDS*WORDS, each
 *         less at most one round per slice (for N = 2 that is one cell: they add up);
 *         0 elsewhere
 *   time: PHASES phases of equal length, two alternating matrices */
#include "team.h"

static cell near[TEAM_MAX / 2][PAGE_CELLS] __attribute__((aligned(PAGE)));
static cell far[TEAM_MAX / 2][PAGE_CELLS] __attribute__((aligned(PAGE)));
static int threads, batons[TEAM_MAX];
static long phases, rounds, words, sums[TEAM_MAX];
static struct gate gate;

static void body(int me) {
  struct gate g = gate;
  g.member = me;
  long n = threads, turns = rounds, count = words, last = phases, sum = 0;
  int mine = batons[me], half = (int)n / 2;
  int other[2] = {me ^ 1, me < half ? me + half : me - half};
  int baton[2] = {batons[other[0]], batons[other[1]]};
  for (long phase = 0; phase < last; phase++) {
    int odd = phase & 1, partner = other[odd], first = me < partner;
    cell *box = odd ? far[first ? me : partner] : near[me / 2];
    for (long round = 0; round < turns; round++) {
      if (first) {
        for (long k = 0; k < count; k++) box[k] = round + k;
        give(baton[odd], 1);
        take(mine);
      } else {
        take(mine);
        for (long k = 0; k < count; k++) sum += box[k];
        give(baton[odd], 1);
      }
    }
    pass(&g);
  }
  sums[me] = sum;
}

int main(int argc, char **argv) {
  threads = (int)number(argc, argv, 1, 8, 2, TEAM_MAX);
  phases = number(argc, argv, 2, 4, 1, 1000000);
  rounds = number(argc, argv, 3, 20000, 1, 1000000000);
  words = number(argc, argv, 4, PAGE_CELLS, 1, PAGE_CELLS);
  if (threads % 2) return fprintf(stderr, "pairs: THREADS must be even\n"), 2;
  for (int i = 0; i < threads; i++) batons[i] = new_baton();
  gate = new_gate(threads);
  run_team(threads, body);
  long sum = 0;
  for (int i = 0; i < threads; i++) sum += sums[i];
  /* every pair reads round + k once per round and phase */
  long one = rounds * (rounds - 1) / 2 * words + words * (words - 1) / 2 * rounds;
  printf("pairs: %s\n", sum == one * phases * (threads / 2) ? "correct" : "WRONG");
  return sum != one * phases * (threads / 2);
}
