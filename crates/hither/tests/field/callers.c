/* callers: allocates in 80 functions that 500 others call each, more call paths than structures are told apart, and
 * then writes every word of a block. */
#include <stdio.h>
#include <stdlib.h>

#define WORDS 100000
#define TEN(f, n) f(n##0) f(n##1) f(n##2) f(n##3) f(n##4) f(n##5) f(n##6) f(n##7) f(n##8) f(n##9)
#define APART __attribute__((noinline, noclone))

typedef char *allocator(void);
char *volatile last;

#define ALLOCATOR(n)                                                                                                   \
  APART static char *allocate##n(void) {                                                                               \
    last = malloc(24);                                                                                                 \
    if (last) *last = 1;                                                                                               \
    return last;                                                                                                       \
  }
#define CALLER(n)                                                                                                      \
  APART static void call##n(allocator *a) {                                                                            \
    free(a());                                                                                                         \
    last = NULL;                                                                                                       \
  }
#define EIGHTY(f) TEN(f, 1) TEN(f, 2) TEN(f, 3) TEN(f, 4) TEN(f, 5) TEN(f, 6) TEN(f, 7) TEN(f, 8)
#define FIFTY(f, n) TEN(f, n##1) TEN(f, n##2) TEN(f, n##3) TEN(f, n##4) TEN(f, n##5)
#define FIVE_HUNDRED(f)                                                                                                \
  FIFTY(f, 1)                                                                                                          \
  FIFTY(f, 2) FIFTY(f, 3) FIFTY(f, 4) FIFTY(f, 5) FIFTY(f, 6) FIFTY(f, 7) FIFTY(f, 8) FIFTY(f, 9) FIFTY(f, 10)
EIGHTY(ALLOCATOR)
FIVE_HUNDRED(CALLER)
#define NAME_OF_ALLOCATOR(n) allocate##n,
#define NAME_OF_CALLER(n) call##n,

int main(void) {
  static allocator *const allocators[] = {EIGHTY(NAME_OF_ALLOCATOR)};
  static void (*const callers[])(allocator *) = {FIVE_HUNDRED(NAME_OF_CALLER)};
  for (size_t c = 0; c < sizeof callers / sizeof *callers; c++)
    for (size_t a = 0; a < sizeof allocators / sizeof *allocators; a++) callers[c](allocators[a]);
  volatile long *block = malloc(WORDS * sizeof *block);
  if (!block) return 2;
  for (long i = 0; i < WORDS; i++) block[i] = i;
  return printf("callers: %zu, %zu\n", sizeof callers / sizeof *callers, sizeof allocators / sizeof *allocators) < 0;
}
