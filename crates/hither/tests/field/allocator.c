/* allocator: two blocks in turn at one place in a pool, from an allocator whose names begin as PREFIX says. */
#include <stddef.h>

#define JOIN(prefix, name) prefix##name
#define NAMED(prefix, name) JOIN(prefix, name)

void *NAMED(PREFIX, malloc)(size_t size);
void *NAMED(PREFIX, calloc)(size_t count, size_t size);
void NAMED(PREFIX, free)(void *block);

#ifdef ALLOCATOR
#include <sys/mman.h>

enum { POOL = 4 << 20 };

static void *take(size_t size) {
  static char *pool;
  if (size > POOL) return NULL;
  if (!pool) pool = mmap(NULL, POOL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pool == MAP_FAILED ? NULL : pool;
}

void *NAMED(PREFIX, malloc)(size_t size) { return take(size); }

void *NAMED(PREFIX, calloc)(size_t count, size_t size) { return take(count * size); }

void NAMED(PREFIX, free)(void *block) { (void)block; }
#else
#include <stdio.h>

#define WORDS 100000

int main(void) {
  volatile long *first = NAMED(PREFIX, malloc)(WORDS * sizeof *first);
  if (!first) return 2;
  for (long i = 0; i < WORDS; i++) first[i] = i;
  NAMED(PREFIX, free)((void *)first);
  volatile long *second = NAMED(PREFIX, calloc)(2 * WORDS, sizeof *second);
  if (!second) return 2;
  for (long i = 0; i < 2 * WORDS; i++) second[i] = i;
  return puts("allocator: done") < 0;
}
#endif
