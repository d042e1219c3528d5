/* Random numbers, and the time, of programs that are called with SEED MILLISECONDS MODE. */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static uint64_t state;

static uint64_t draw(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

struct arguments {
  double milliseconds;
  int mode;
};

static struct arguments seeded(int argc, char **argv) {
  state = argc > 1 ? strtoull(argv[1], NULL, 0) * 2654435761u + 1 : 1;
  return (struct arguments){argc > 2 ? atof(argv[2]) : 100, argc > 3 ? atoi(argv[3]) : 0};
}
