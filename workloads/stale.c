/* stale [DEPTH=20 [WORDS=8192]]
 *
 * Calls leave their return addresses on the stack, where functions that allocate and that touch first have a buffer
 * that they do not fill; `kept` is what is allocated, of which every word is written once. `stale-frames` is the same
 * with frame pointers.
 *
 * Expected:
 *   kept: WORDS words, allocated in `quiet` and touched first in `fill`, which main calls; `deep` is in no call path */
#include "team.h"

static long *kept;

__attribute__((noinline)) static long deep(long n) {
  volatile long here[3] = {n, n, n};
  if (n > 0) here[1] = deep(n - 1) + 1;
  return here[1] + here[2];
}

__attribute__((noinline)) static long *quiet(long words) {
  volatile char unused[640];
  unused[words & 1] = 1;
  long *made = malloc((size_t)words * sizeof *made);
  if (!made || !unused[words & 1]) perror("malloc"), exit(2);
  return made;
}

__attribute__((noinline)) static long fill(long words) {
  volatile char unused[640];
  unused[words & 1] = 1;
  for (long i = 0; i < words; i++) ((cell *)kept)[i] = i;
  return unused[words & 1];
}

int main(int argc, char **argv) {
  long depth = number(argc, argv, 1, 20, 1, 1000), words = number(argc, argv, 2, 8192, 1, 100000000);
  long sum = deep(depth);
  kept = quiet(words);
  sum += deep(depth) + fill(words);
  printf("stale: %ld\n", sum);
  return 0;
}
