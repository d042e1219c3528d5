/* reuse [ROUNDS=20 [PAGES=16]]
 *
 * Maps PAGES pages, writes each of their words once, unmaps them, ROUNDS times over. The
 * kernel hands out the same addresses again.
 *
 * Expected: ROUNDS mappings, every page of each written 512 times and first touched by
 * thread 0; matrix empty. */
#include "team.h"
#include <sys/mman.h>

int main(int argc, char **argv) {
  long rounds = number(argc, argv, 1, 20, 1, 100000);
  long pages = number(argc, argv, 2, 16, 1, 100000);
  for (long round = 0; round < rounds; round++) {
    cell *words = mmap(NULL, (size_t)(pages * PAGE), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (words == MAP_FAILED) {
      perror("mmap");
      return 2;
    }
    for (long k = 0; k < pages * PAGE_CELLS; k++) words[k] = round;
    munmap((void *)words, (size_t)(pages * PAGE));
  }
  puts("reuse: correct");
  return 0;
}
