/* paths: an allocator of the program's own that is called along very many call paths.
 *
 * paths ROUNDS: 4^DEPTH paths through descend() allocate 24 bytes each by xmalloc; after them
 * main() allocates `late` by xmalloc, 8 KiB, and writes each of its longs ROUNDS times. */
#include <stdio.h>
#include <stdlib.h>

enum { DEPTH = 5, LATE = 1024 };

static volatile long written;

__attribute__((noinline)) static void *xmalloc(size_t bytes) {
  void *block = malloc(bytes);
  if (!block) abort();
  written++;
  return block;
}

__attribute__((noinline)) static void descend(int depth) {
  if (depth == 0) {
    volatile long *node = xmalloc(24);
    node[0] = written;
    return;
  }
  descend(depth - 1);
  written++;
  descend(depth - 1);
  written++;
  descend(depth - 1);
  written++;
  descend(depth - 1);
  written++;
}

int main(int argc, char **argv) {
  long rounds = argc > 1 ? atol(argv[1]) : 10;
  descend(DEPTH);
  volatile long *late = xmalloc(LATE * sizeof *late);
  for (long round = 0; round < rounds; round++)
    for (int i = 0; i < LATE; i++) late[i] = round;
  printf("%ld\n", written);
}
