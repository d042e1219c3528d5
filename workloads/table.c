/* table blocks|pages|read|update [PAGES=8192 [ROUNDS=4]]      (OpenMP; OMP_NUM_THREADS)
 *
 * One array of pages of 512 words, dealt out to the threads in four ways.
 *
 * Expected, with N threads and P pages (N divides P and 512):
 *   table (aligned_alloc to 2 MiB), P pages; every word is written once, in parallel:
 *        page p by thread p*N/P, but with `pages` by thread p mod N
 *   then, in each round,
 *        blocks  thread p*N/P reads and writes all 512 words of page p: P/N pages in a
 *                row belong to a thread, and so do pages of 2 MiB
 *        pages   thread p mod N does so: pages of 4 KiB belong to a thread, larger ones
 *                to nobody
 *        read    every thread reads all words, nobody writes
 *        update  every thread reads and writes its 512/N words of every page, which
 *                are those it wrote at first in its own pages only
 *   matrix: nothing with `blocks` and `pages`; otherwise what is written at first and
 *        read by others */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 512, LARGE = 2 << 20 };
enum how { BLOCKS, PAGES, READ, UPDATE };

static volatile long *table;

static void change(long page, long from, long to) {
  for (long k = page * WORDS + from; k < page * WORDS + to; k++) table[k] = table[k] + 1;
}

/* One thread's part of a round; the sum of what it read where it only reads. */
static long go_over(enum how how, long pages, long me, long threads) {
  long sum = 0, words = WORDS / threads;
  for (long p = 0; p < pages; p++) {
    int mine = how == PAGES ? p % threads == me : p * threads / pages == me;
    if (how == READ)
      for (long k = p * WORDS; k < (p + 1) * WORDS; k++) sum += table[k];
    else if (how == UPDATE) change(p, me * words, (me + 1) * words);
    else if (mine) change(p, 0, WORDS);
  }
  return sum;
}

int main(int argc, char **argv) {
  const char *names[] = {"blocks", "pages", "read", "update"}, *name = argc > 1 ? argv[1] : "blocks";
  int how = 0;
  while (how < 4 && strcmp(name, names[how]) != 0) how++;
  long pages = argc > 2 ? atol(argv[2]) : 8192, rounds = argc > 3 ? atol(argv[3]) : 4;
  long threads = omp_get_max_threads();
  if (how == 4 || rounds < 1 || pages < threads || pages % threads || WORDS % threads)
    return fprintf(stderr, "table: blocks|pages|read|update, PAGES and 512 multiples of the threads, ROUNDS\n"), 2;
  long bytes = pages * WORDS * (long)sizeof(long);
  table = aligned_alloc(LARGE, (size_t)((bytes + LARGE - 1) / LARGE * LARGE));
  if (!table) return 2;
  long sum = 0;
#pragma omp parallel reduction(+ : sum)
  {
    long me = omp_get_thread_num();
    for (long p = 0; p < pages; p++)
      if ((how == PAGES ? p % threads : p * threads / pages) == me)
        for (long k = p * WORDS; k < (p + 1) * WORDS; k++) table[k] = 1;
    for (long r = 0; r < rounds; r++) {
#pragma omp barrier
      sum += go_over(how, pages, me, threads);
    }
  }
  long want = how == READ ? threads * rounds * pages * WORDS : 0, wrong = sum != want;
  for (long p = 0; p < pages; p++) wrong += table[p * WORDS] != (how == READ ? 1 : 1 + rounds);
  printf("table: %s, %s\n", name, wrong ? "WRONG" : "correct");
  return wrong != 0;
}
