/* list [NODES=4096 [ROUNDS=20]]
 *
 * One thread walks a list of NODES nodes, a cache line each, whose order is a permutation,
 * ROUNDS times; then it sweeps over an array of as many words, ROUNDS times. A step of the
 * walk needs what the step before read, one of the sweep needs nothing.
 *
 * Expected: thread 0 writes each word of `node` and `sweep` once, then reads both
 * ROUNDS*NODES times; matrix empty. */
#include "team.h"

#define MOST 65536

static struct {
  void *volatile next;
  long pad[7];
} node[MOST] __attribute__((aligned(PAGE)));
static cell sweep[MOST] __attribute__((aligned(PAGE)));

int main(int argc, char **argv) {
  long nodes = number(argc, argv, 1, 4096, 2, MOST), rounds = number(argc, argv, 2, 20, 1, 1000000);
  /* 5 is prime to all powers of two, and to what else is allowed unless it divides it. */
  if (nodes % 5 == 0) nodes--;
  for (long i = 0, at = 0; i < nodes; i++) {
    long to = (at + 5) % nodes;
    node[at].next = &node[to];
    at = to;
  }
  for (long i = 0; i < nodes; i++) sweep[i] = i;
  void *volatile *step = &node[0].next;
  for (long i = 0; i < rounds * nodes; i++) step = *step;
  long sum = 0;
  for (long round = 0; round < rounds; round++)
    for (long i = 0; i < nodes; i++) sum += sweep[i];
  int right = step == &node[0].next && sum == rounds * (nodes * (nodes - 1) / 2);
  printf("list: %s\n", right ? "correct" : "WRONG");
  return !right;
}
