/* reserved: address space that is taken for later use, most of which never is: touched here and there, moved and given
 * back. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>

#define TIB (1ul << 40)

enum { PIECES = 8, WORDS = 512 };

static char *reserve(unsigned long size) {
  char *at = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? NULL : at;
}

static long use(char *at, unsigned long size) {
  long sum = 0;
  for (int piece = 0; piece < PIECES; piece++) {
    volatile long *words = (volatile long *)(at + size / PIECES * piece);
    if (mprotect((void *)words, WORDS * sizeof *words, PROT_READ | PROT_WRITE)) return -1;
    for (int i = 0; i < WORDS; i++) words[i] += piece + i;
    for (int i = 0; i < WORDS; i++) sum += words[i];
  }
  return sum;
}

int main(void) {
  char *at = reserve(60 * TIB);
  if (!at) return 2;
  long once = use(at, 60 * TIB), again = use(at, 60 * TIB);
  if (munmap(at, 60 * TIB)) return 2;
  char *small = reserve(TIB), *other = reserve(TIB);
  if (!small || !other || use(small, TIB) != once) return 2;
  if (mremap(small, TIB, TIB, MREMAP_MAYMOVE | MREMAP_FIXED, other) != other) return 2;
  long moved = use(other, TIB);
  if (munmap(other, TIB)) return 2;
  printf("reserved: %ld %ld %ld\n", once, again, moved);
  return again != 2 * once || moved != again;
}
