/* gathers [ROUNDS=1000]     (x86-64)
 *
 * One thread gathers elements of `table` and scatters them into `grid`, both of one line for each index. In each round
 * all forms: 32 and 64 bits of index, 4 and 8 bytes of value, registers of 128, 256 and 512 bits; of AVX-512 with masks
 * that choose every other element. Prints WRONG and ends with 1 if an element is not what it should be, or the
 * mask is not spent; and what the processor cannot do.
 *
 * Expected: in each round, with AVX2 26 reads of `table`, with AVX-512 (F and VL) 17 more and 21 writes of `grid`, beside
 * 80 that clear it and 80 reads that look at it; matrix 0. */
#include "team.h"
#include <immintrin.h>

enum { LINES = 16, IN_LINE_LOG2 = 3, IN_LINE = 1 << IN_LINE_LOG2, WORDS = LINES * IN_LINE };

static volatile long table[WORDS] __attribute__((aligned(PAGE)));
static volatile long grid[WORDS] __attribute__((aligned(PAGE)));
static int wrong;

#define AVX2 __attribute__((target("avx2"), noinline))
#define AVX512 __attribute__((target("avx512f,avx512vl"), noinline))

/* Values of the lines 0, 1, .. that `mask` chooses, else what was in the register. */
static void expect(const void *got, int elements, int bytes, unsigned mask, const char *form) {
  for (int i = 0; i < elements; i++) {
    long value = bytes == 8 ? ((const long *)got)[i] : ((const int *)got)[i];
    if (value == (mask >> i & 1 ? i + 1 : -1)) continue;
    wrong = 1;
    printf("WRONG: %s, element %d is %ld\n", form, i, value);
  }
}

static void expect_written(int elements, unsigned mask, const char *form) {
  for (int i = 0; i < LINES; i++) {
    long wanted = i < elements && mask >> i & 1 ? i + 1 : 0;
    if ((int)grid[i * IN_LINE] == wanted) continue;
    wrong = 1;
    printf("WRONG: %s, line %d has %ld\n", form, i, grid[i * IN_LINE]);
  }
}

static void clear(void) {
  for (int i = 0; i < WORDS; i += IN_LINE) grid[i] = 0;
}

AVX2 static void gather_avx2(void) {
  const long long *longs = (const long long *)table;
  const int *ints = (const int *)table;
  long out[4];
  __m256i narrow = _mm256_slli_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), IN_LINE_LOG2);
  __m256i wide = _mm256_setr_epi64x(0, IN_LINE, 2 * IN_LINE, 3 * IN_LINE), none = _mm256_set1_epi32(-1);
  __m256i odd = _mm256_setr_epi64x(0, -1, 0, -1);
  _mm256_storeu_si256((__m256i *)out, _mm256_i64gather_epi64(longs, wide, 8));
  expect(out, 4, 8, 15, "vpgatherqq");
  _mm256_storeu_si256((__m256i *)out, _mm256_mask_i64gather_epi64(none, longs, wide, odd, 8));
  expect(out, 4, 8, 10, "vpgatherqq of some");
  _mm256_storeu_si256((__m256i *)out, _mm256_i32gather_epi64(longs, _mm256_castsi256_si128(narrow), 8));
  expect(out, 4, 8, 15, "vpgatherdq");
  _mm256_storeu_si256((__m256i *)out, _mm256_i32gather_epi32(ints, _mm256_slli_epi32(narrow, 1), 4));
  expect(out, 8, 4, 255, "vpgatherdd");
  _mm_storeu_si128((__m128i *)out, _mm256_i64gather_epi32(ints, wide, 8));
  expect(out, 4, 4, 15, "vpgatherqd");
  _mm_storeu_si128((__m128i *)out, _mm_i64gather_epi64(longs, _mm256_castsi256_si128(wide), 8));
  expect(out, 2, 8, 3, "vpgatherqq of 128 bits");
}

AVX512 static void gather_avx512(void) {
  const long long *longs = (const long long *)table;
  long out[8];
  __m512i wide = _mm512_slli_epi64(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7), IN_LINE_LOG2);
  __m512i none = _mm512_set1_epi32(-1);
  __m512i narrow =
      _mm512_slli_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), IN_LINE_LOG2);
  _mm512_storeu_si512(out, _mm512_mask_i64gather_epi64(none, 0x55, wide, longs, 8));
  expect(out, 8, 8, 0x55, "masked vpgatherqq");
  _mm512_storeu_si512(out, _mm512_mask_i32gather_epi32(none, 0x5555, narrow, longs, 8));
  expect(out, 16, 4, 0x5555, "masked vpgatherdd");
  _mm256_storeu_si256((__m256i *)out, _mm512_mask_i64gather_epi32(_mm512_castsi512_si256(none), 0xaa, wide, longs, 8));
  expect(out, 8, 4, 0xaa, "masked vpgatherqd");
  _mm_storeu_si128((__m128i *)out,
                   _mm_mmask_i64gather_epi64(_mm512_castsi512_si128(none), 2, _mm512_castsi512_si128(wide), longs, 8));
  expect(out, 2, 8, 2, "masked vpgatherqq of 128 bits");
}

AVX512 static void scatter_avx512(void) {
  __m512i wide = _mm512_slli_epi64(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7), IN_LINE_LOG2);
  __m512i narrow =
      _mm512_slli_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), IN_LINE_LOG2);
  __m512i longs = _mm512_setr_epi64(1, 2, 3, 4, 5, 6, 7, 8);
  __m512i ints = _mm512_setr_epi32(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
  void *to = (void *)grid;
  clear();
  _mm512_mask_i64scatter_epi64(to, 0x55, wide, longs, 8);
  expect_written(8, 0x55, "vpscatterqq");
  clear();
  _mm512_mask_i32scatter_epi32(to, 0x5555, narrow, ints, 8);
  expect_written(16, 0x5555, "vpscatterdd");
  clear();
  _mm512_mask_i64scatter_epi32(to, 0xaa, wide, _mm512_castsi512_si256(ints), 8);
  expect_written(8, 0xaa, "vpscatterqd");
  clear();
  _mm_mask_i64scatter_epi64(to, 2, _mm512_castsi512_si128(wide), _mm512_castsi512_si128(longs), 8);
  expect_written(2, 2, "vpscatterqq of 128 bits");
}

/* The base is in rax, where a tool may keep the flags, which are used after, and the first element is not chosen. */
AVX2 static void gather_at_rax(void) {
  long out[4], equal = 0;
  __m256i wide = _mm256_setr_epi64x(0, IN_LINE, 2 * IN_LINE, 3 * IN_LINE), odd = _mm256_setr_epi64x(0, -1, 0, -1);
  __m256i got = _mm256_set1_epi32(-1);
  __asm__ volatile("cmp %%rax, %%rax\n\tvpgatherqq %1, (%%rax,%3,8), %0\n\tsete %b2"
                   : "+x"(got), "+x"(odd), "+r"(equal)
                   : "x"(wide), "a"(table)
                   : "cc", "memory");
  _mm256_storeu_si256((__m256i *)out, got);
  expect(out, 4, 8, 10, "vpgatherqq at rax");
  if (equal != 1) wrong = 1, printf("WRONG: flags after vpgatherqq\n");
}

AVX512 static void scatter_at_rax(void) {
  long equal = 0;
  __m512i wide = _mm512_slli_epi64(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7), IN_LINE_LOG2);
  __m512i longs = _mm512_setr_epi64(1, 2, 3, 4, 5, 6, 7, 8);
  clear();
  __asm__ volatile("kmovw %k4, %%k1\n\tcmp %%rax, %%rax\n\tvpscatterqq %1, (%%rax,%2,8)%{%%k1%}\n\tsete %b0"
                   : "+r"(equal)
                   : "v"(longs), "v"(wide), "a"(grid), "r"(0xaa)
                   : "k1", "cc", "memory");
  expect_written(8, 0xaa, "vpscatterqq at rax");
  if (equal != 1) wrong = 1, printf("WRONG: flags after vpscatterqq\n");
}

int main(int argc, char **argv) {
  long rounds = number(argc, argv, 1, 1000, 1, 1000000);
  int avx2 = __builtin_cpu_supports("avx2");
  int avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
  for (int i = 0; i < LINES; i++) table[i * IN_LINE] = i + 1;
  for (long i = 0; i < rounds; i++) {
    if (avx2) gather_avx2();
    if (avx2) gather_at_rax();
    if (avx512) gather_avx512();
    if (avx512) scatter_avx512();
    if (avx512) scatter_at_rax();
  }
  printf("gathers: %ld rounds%s%s\n", rounds, avx2 ? "" : " without AVX2", avx512 ? "" : " without AVX-512");
  return wrong;
}
