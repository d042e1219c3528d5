/* Lines of a program that access the same memory one after the other, some of them through
 * functions of libraries.
 *
 *   lines ROUNDS
 *
 * Per round: the table, of 16,384 longs, is set by memset (its writes), read once in one line and
 * three times in another, and added to in a third (a read and a write of each element). In every
 * hundredth round it is sorted by qsort, which calls back. What is added puts it out of order, but not in
 * reverse: then sorting would compare one element with thousands, and a sample of few lines contain
 * one of these or not. One counter is written by two lines in
 * turn, one of them three times as often. Three lines after one another each change a member of the same
 * points: one reads and writes, one writes only, one reads twice and writes. At the end memmove, called this once,
 * moves 32 MiB. */
#include "team.h"
#include <string.h>

enum { LENGTH = 16384, COUNTS = 40000, POINTS = 4000 };

static volatile long table[LENGTH];
static volatile long large[1 << 22];
static volatile struct { long x, y, z; } points[POINTS];
static volatile long counter;
static volatile long sum;

static int ascending(const void *a, const void *b) {
  long x = *(const long *)a, y = *(const long *)b;
  return (x > y) - (x < y);
}

static void count_up(void) {
  for (long i = 0; i < COUNTS; i++) {
    counter = i;                  /* often */
    if (i % 3 == 0) counter = -i; /* seldom */
  }
}

static void move_points(long by) {
  for (long i = 0; i < POINTS; i++) {
    points[i].x += by;          /* across */
    points[i].y = by;           /* up */
    points[i].z += points[i].x; /* away */
  }
}

int main(int argc, char **argv) {
  long rounds = number(argc, argv, 1, 40, 1, 100000);
  for (long r = 0; r < rounds; r++) {
    memset((void *)table, (int)r, sizeof table);
    for (long i = 0; i < LENGTH; i++) sum = table[i]; /* once */
    for (long again = 0; again < 3; again++)
      for (long i = 0; i < LENGTH; i++) sum = table[i];               /* thrice */
    for (long i = 0; i < LENGTH; i++) table[i] += i * 40503 % LENGTH; /* adds */
    count_up();
    move_points(r);
    if (r % 100 == 0) qsort((void *)table, LENGTH, sizeof table[0], ascending);
  }
  memmove((void *)(large + 8), (const void *)large, sizeof large - 64);
  printf("%ld %ld %ld\n", table[0], counter, large[9]);
  return 0;
}
