/* bytes masks|members|neighbours|same [ROUNDS=200000]
 *
 * Two threads in the same lines. Every round:
 *   masks       thread 0 in `mixed`, two lines: writes bytes 0, 2-3, adds to 4-7; in the
 *               second line writes 32-35, reads 62-63 (and two bytes of what follows);
 *               thread 1 reads 8-15, writes 16-31 at once, fills 40-49 (rep stos), reads
 *               56-63 and 0-7 of the second line through one pointer
 *   members     thread 0 adds to `tally.hits`, thread 1 to `tally.misses`
 *   neighbours  thread 0 adds to `left`, thread 1 to `right`, the next variable
 *   same        both add to `common` and to nothing else
 *
 * Expected: false sharing of `mixed`, of `tally`, of `left` and `right`; `same` is true
 * sharing. masks: thread 0 reads 2R times and writes 4R times, thread 1 reads 3R and
 * writes 2R times (a rep stos is one access); at the end thread 0 reads 4-7 once more. Both pages first touched by either.
 * Neither is ever more than 512 rounds ahead of the other, so that they meet in each slice. */
#include "team.h"
#include <string.h>

/* In one line, in this order. */
#define NEXT __attribute__((no_reorder))
NEXT static _Alignas(64) cell left;
NEXT static cell right;
NEXT static _Alignas(64) cell after; /* begins the next line */
static struct { cell hits, misses; } tally __attribute__((aligned(64)));
static cell common __attribute__((aligned(64)));
static _Alignas(PAGE) unsigned char mixed[PAGE];
static const char *mode;
static long rounds;

#define AT(type, n) (*(volatile type *)(m + (n)))

static void first(unsigned char *m) {
  AT(uint8_t, 0) = 1;
  AT(uint16_t, 2) = 2;
  AT(uint32_t, 4) += 1;
  AT(uint32_t, 96) = 3;
  (void)AT(uint32_t, 126);
}

static void second(unsigned char *m) {
  (void)AT(uint64_t, 8);
  __asm__ volatile("movups %%xmm0, 16(%0)" ::"r"(m) : "memory");
  void *to = m + 40;
  long count = 10;
  __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(0) : "memory");
  (void)AT(uint64_t, 56);
  (void)AT(uint64_t, 64);
}

static void body(int me) {
  unsigned char *m = mixed;
  long n = rounds;
  int my_turn = turns[me], next_turn = turns[1 - me];
  char how = mode[0] == 'm' ? mode[1] : mode[0];
  cell *mine = how == 'e' ? (me ? &tally.misses : &tally.hits) : how == 'n' ? (me ? &right : &left) : &common;
  for (long k = 0; k < n; k++) {
    __asm__ volatile("" : "+r"(m)); /* an address of which nothing is known */
    if (how != 'a') *mine += 1;
    else if (me) second(m);
    else first(m);
    if (k % 512 == 0) end_turn(my_turn, next_turn);
  }
}

int main(int argc, char **argv) {
  mode = argc > 1 ? argv[1] : "masks";
  rounds = number(argc, argv, 2, 200000, 1, 1000000000000);
  new_turns(2);
  run_team(2, body);
  unsigned char *m = mixed;
  int correct = mode[0] != 'm' || mode[1] != 'a' || AT(uint32_t, 4) == (uint32_t)rounds;
  printf("bytes: %s\n", correct ? "correct" : "WRONG");
  return (int)after;
}
