/* uneven N PAGES: N threads read PAGES pages each, no two of them equally often.
 *
 * Expected, with thread 0 as the first:
 *   array (mmap, N * PAGES pages): page p is read by thread p/PAGES only, 1 + scatter(p) % 256 times,
 *        all in its first word, and never written
 *   matrix: nothing */
#include "team.h"
#include <sys/mman.h>

static cell *array;
static long pages;

/* Any number by p; made in registers. */
static uint64_t scatter(uint64_t p) {
  p *= 0x9e3779b97f4a7c15;
  p ^= p >> 32;
  p *= 0xd6e8feb86659fd93;
  return p >> 32;
}

static void body(int me) {
  long count = pages;
  cell *own = array + me * count * PAGE_CELLS;
  for (long p = 0; p < count; p++)
    for (uint64_t left = 1 + scatter((uint64_t)(me * count + p)) % 256; left; left--) (void)own[p * PAGE_CELLS];
}

int main(int argc, char **argv) {
  int threads = (int)number(argc, argv, 1, 4, 1, TEAM_MAX);
  pages = number(argc, argv, 2, 150000, 1, 1000000);
  size_t bytes = (size_t)threads * (size_t)pages * PAGE;
  array = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (array == MAP_FAILED) return perror("mmap"), 2;
  run_team(threads, body);
  return 0;
}
