/* What the kernels share: arguments, allocation, a generator of random numbers that
 * any element can start at, and the verdict. */
#ifndef KERNEL_H
#define KERNEL_H
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline long argument(int argc, char **argv, int i, long otherwise) {
  long value = i < argc ? atol(argv[i]) : otherwise;
  if (value < 1) {
    fprintf(stderr, "%s: argument %d must be at least 1\n", argv[0], i);
    exit(2);
  }
  return value;
}

static inline void *array(size_t count, size_t size) {
  void *memory = malloc(count * size);
  if (!memory) {
    fprintf(stderr, "out of memory: %zu bytes\n", count * size);
    exit(2);
  }
  return memory;
}

/* splitmix64: a good 64-bit number for every index. */
static inline uint64_t random_bits(uint64_t index) {
  uint64_t z = (index + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}
static inline double random_unit(uint64_t index) { return (double)(random_bits(index) >> 11) * 0x1p-53; }

/* The checksum does not depend on the number of threads but for rounding. */
static inline int verdict(const char *name, double checksum, int correct) {
  printf("%s: checksum %.9e, %s\n", name, checksum, correct ? "correct" : "WRONG");
  return !correct;
}
#endif
