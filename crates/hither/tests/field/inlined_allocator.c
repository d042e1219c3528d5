/* inlined_allocator: blocks in turn at one place in a pool, from a jemalloc that is partly in the code that calls it, as
 * optimisation when linking leaves it: small blocks are taken and given back without a call where that is possible. */
#include <stddef.h>

void *je_malloc_default(size_t size);
void je_free_default(void *block);

#ifdef ALLOCATOR
#include <sys/mman.h>

enum { POOL = 4 << 20 };

void *je_malloc_default(size_t size) {
  static char *pool;
  if (size > POOL) return NULL;
  if (!pool) pool = mmap(NULL, POOL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pool == MAP_FAILED ? NULL : pool;
}

void je_free_default(void *block) { (void)block; }
#else
#include <stdio.h>

enum { WORDS = 100000, FEW = 8 };

static void *cached;

static inline __attribute__((always_inline)) void *take(size_t size) {
  void *block = cached;
  if (size > FEW * sizeof(long) || !block) return je_malloc_default(size);
  cached = NULL;
  return block;
}

static inline __attribute__((always_inline)) void give_back(void *block, size_t size) {
  if (size > FEW * sizeof(long)) je_free_default(block);
  else cached = block;
}

static void fill(volatile long *block, long words, long times) {
  for (long i = 0; i < words * times; i++) block[i % words] = i;
}

int main(void) {
  long *first = take(WORDS * sizeof *first);
  if (!first) return 2;
  fill(first, WORDS, 1);
  give_back(first, WORDS * sizeof *first);
  long *second = take(2 * WORDS * sizeof *second);
  if (!second) return 2;
  fill(second, 2 * WORDS, 1);
  give_back(second, 2 * WORDS * sizeof *second);
  long *small = take(FEW * sizeof *small);
  if (!small) return 2;
  fill(small, FEW, 1);
  give_back(small, FEW * sizeof *small);
  long *cheap = take(FEW * sizeof *cheap);
  fill(cheap, FEW, 10000);
  give_back(cheap, FEW * sizeof *cheap);
  return puts("inlined_allocator: done") < 0;
}
#endif
