/* registers [ROUNDS=1000]     (x86-64)
 *
 * One thread saves register state and restores it, in three pages of `saved`:
 *   page 0   fxsave, fxrstor: 512 bytes
 *   page 1   xsave, xrstor of x87 and SSE state: 576 bytes
 *   page 2   xsavec, xrstor of the same and AVX, where there are: 832 bytes, or 576; 1024 before its end,
 *            so that an area for all state that processors with AVX-512 have would reach into page 3
 *
 * Expected: one access per line and instruction: ROUNDS reads and writes of 8 lines of page 0, 9 of
 * page 1, and 13 of page 2, without AVX or xsavec 9; of page 3 one write; matrix 0. */
#include "team.h"

enum { LEGACY = 3, WITH_AVX = 7 };

static unsigned char saved[4][PAGE] __attribute__((aligned(PAGE)));

#define STATE(instruction, area, mask) __asm__ volatile(instruction " (%0)" ::"r"(area), "a"(mask), "d"(0) : "memory")

int main(int argc, char **argv) {
  long rounds = number(argc, argv, 1, 1000, 1, 1000000);
  unsigned char *near_end = saved[2] + PAGE - 16 * 64;
  int compacts = __builtin_cpu_supports("xsavec"), chosen = compacts ? WITH_AVX : LEGACY;
  saved[3][0] = 1;
  for (long i = 0; i < rounds; i++) {
    STATE("fxsave64", saved[0], 0);
    STATE("fxrstor64", saved[0], 0);
    STATE("xsave64", saved[1], LEGACY);
    STATE("xrstor64", saved[1], LEGACY);
    if (compacts) STATE("xsavec64", near_end, chosen);
    else STATE("xsave64", near_end, chosen);
    STATE("xrstor64", near_end, chosen);
  }
  printf("registers: %ld rounds\n", rounds);
  return 0;
}
