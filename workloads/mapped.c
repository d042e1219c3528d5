/* mapped: memory that a program takes by mmap, without malloc.
 *
 * mapped ROUNDS [FILE]: each long of `grid`, 4 MiB, and of `small`, 16 KiB, is written ROUNDS times; ten `chunk`s of 1 MiB live side by side, each
 * of whose longs is written once; `turn`, 256 KiB, is mapped, written once and unmapped ROUNDS times; `grown`
 * has 64 KiB, then 512 KiB, each of whose longs is written once; of `heap`, 1 GiB taken without a promise of the
 * kernel to have it, the first 256 KiB are written ROUNDS times; a thread writes `on_stack`, 64 KiB of its
 * stack, ROUNDS times. Of FILE, 1 MiB, each half is mapped by itself and each of its longs read ROUNDS times. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { KIB = 1024, MIB = 1024 * KIB, CHUNKS = 10 };

static int rounds;

__attribute__((noinline)) static void *map(size_t bytes) {
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) abort();
  return memory;
}

static void fill(volatile long *memory, size_t bytes, int times) {
  for (int n = 0; n < times; n++)
    for (size_t i = 0; i < bytes / sizeof *memory; i++) memory[i] = n;
}

static void *work(void *none) {
  long on_stack[64 * KIB / sizeof(long)];
  fill(on_stack, sizeof on_stack, rounds);
  return none;
}

static void read_file(const char *path) {
  int fd = open(path, O_RDONLY);
  for (int half = 0; half < 2; half++) {
    volatile long *part = mmap(NULL, MIB / 2, PROT_READ, MAP_PRIVATE, fd, half * (MIB / 2));
    if (part == MAP_FAILED) abort();
    for (int n = 0; n < rounds; n++)
      for (size_t i = 0; i < MIB / 2 / sizeof *part; i++) (void)part[i];
  }
}

int main(int argc, char **argv) {
  rounds = argc > 1 ? atoi(argv[1]) : 10;
  long *grid = map(4 * MIB);
  fill(grid, 4 * MIB, rounds);
  long *small = map(16 * KIB);
  fill(small, 16 * KIB, rounds);
  for (int n = 0; n < CHUNKS; n++) {
    long *chunk = map(MIB);
    fill(chunk, MIB, 1);
  }
  for (int n = 0; n < rounds; n++) {
    long *turn = map(256 * KIB);
    fill(turn, 256 * KIB, 1);
    munmap(turn, 256 * KIB);
  }
  long *grown = map(64 * KIB);
  grown = mremap(grown, 64 * KIB, 512 * KIB, MREMAP_MAYMOVE);
  if (grown == MAP_FAILED) abort();
  fill(grown, 512 * KIB, 1);
  const int unpromised = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  long *heap = mmap(NULL, (size_t)KIB * MIB, PROT_READ | PROT_WRITE, unpromised, -1, 0);
  if (heap == MAP_FAILED) abort();
  fill(heap, 256 * KIB, rounds);
  pthread_t thread;
  if (pthread_create(&thread, NULL, work, NULL) || pthread_join(thread, NULL)) abort();
  if (argc > 2) read_file(argv[2]);
  printf("mapped\n");
  return 0;
}
