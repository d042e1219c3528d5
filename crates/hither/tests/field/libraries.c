/* libraries FILE...: loads libraries with 4800 variables each, and then writes every word of a block and of a
 * variable of its own. */
#ifdef LIBRARY
#define ONE(n) int v##n[4];
#define TEN(n) ONE(n##0) ONE(n##1) ONE(n##2) ONE(n##3) ONE(n##4) ONE(n##5) ONE(n##6) ONE(n##7) ONE(n##8) ONE(n##9)
#define HUNDRED(n) TEN(n##0) TEN(n##1) TEN(n##2) TEN(n##3) TEN(n##4) TEN(n##5) TEN(n##6) TEN(n##7) TEN(n##8) TEN(n##9)
#define THOUSAND(n) HUNDRED(n##0) HUNDRED(n##1) HUNDRED(n##2) HUNDRED(n##3) HUNDRED(n##4) HUNDRED(n##5)
THOUSAND(1)
THOUSAND(2) THOUSAND(3) THOUSAND(4) THOUSAND(5) THOUSAND(6) THOUSAND(7) THOUSAND(8)
#else
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define WORDS 100000

volatile long of_the_program[WORDS];

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (!dlopen(argv[i], RTLD_NOW)) return fprintf(stderr, "%s\n", dlerror()), 2;
  volatile long *block = malloc(WORDS * sizeof *block);
  if (!block) return 2;
  for (long i = 0; i < WORDS; i++) block[i] = of_the_program[i] = i;
  return puts("libraries: done") < 0;
}
#endif
