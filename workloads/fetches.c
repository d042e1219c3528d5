/* fetches [SWEEPS=10 [ROUNDS=50]]
 *
 * What a private cache of 1 MiB keeps, and what a write of another thread takes out of it.
 *
 * Expected, in lines of 64 bytes:
 *   swept:  4 MiB, all of it read and written SWEEPS times by thread 0: 65,536 fetches a sweep
 *   kept:   256 KiB, the same: 4,096 fetches, all of the first sweep
 *   passed: 64 KiB, in each of ROUNDS written by thread 0, then read by thread 1: 1,024 fetches a
 *           round by thread 1, and 1,024 in all by thread 0, which still has what it wrote
 *   flag:   thread 1 reads it until thread 0 writes it: very many reads, a handful of fetches */
#include "team.h"
#include <time.h>

enum { SWEPT = (4 << 20) / sizeof(cell), KEPT = (256 << 10) / sizeof(cell), PASSED = (64 << 10) / sizeof(cell) };

static _Alignas(PAGE) cell swept[SWEPT];
static _Alignas(PAGE) cell kept[KEPT];
static _Alignas(PAGE) cell passed[PASSED];
static _Alignas(PAGE) cell flag[PAGE_CELLS];
static struct gate gate;
static long sweeps, rounds, total;

static void sweep(cell *array, long length) {
  for (long s = 0; s < sweeps; s++)
    for (long i = 0; i < length; i++) array[i] += s;
}

static void body(int me) {
  struct gate g = gate;
  g.member = me;
  long last = rounds, sum = 0;
  if (me == 0) {
    sweep(swept, SWEPT);
    sweep(kept, KEPT);
  }
  for (long r = 0; r < last; r++) {
    if (me == 0)
      for (long i = 0; i < PASSED; i++) passed[i] = r;
    pass(&g);
    if (me == 1)
      for (long i = 0; i < PASSED; i++) sum += passed[i];
    pass(&g);
  }
  if (me == 0) {
    struct timespec wait = {.tv_nsec = 50 * 1000 * 1000};
    nanosleep(&wait, NULL);
    flag[0] = 1;
  } else {
    while (!flag[0]) {}
    total = sum;
  }
}

int main(int argc, char **argv) {
  sweeps = number(argc, argv, 1, 10, 1, 100000);
  rounds = number(argc, argv, 2, 50, 1, 100000);
  gate = new_gate(2);
  run_team(2, body);
  printf("%ld %ld %ld\n", swept[0], kept[0], total);
  return 0;
}
