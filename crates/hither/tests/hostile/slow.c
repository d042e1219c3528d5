/* Uses memory so that naming it takes long: each page lies in a mapping of its own, which has
   ended. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

int main(int argc, char **argv) {
  long maps = argc > 1 ? atol(argv[1]) : 60000;
  for (long n = 0; n < maps; n++) {
    char *at = mmap(NULL, 4096 * (1 + n % 3), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return 1;
    at[0] = 1;
    munmap(at, 4096 * (1 + n % 3));
  }
  puts("done");
  return 0;
}
