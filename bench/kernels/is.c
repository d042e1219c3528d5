/* is [LOG2_KEYS=23 [ROUNDS=110]]: bucket sort of integers.
 *
 * As NAS IS: keys below 2^19, the mean of four random numbers each, are thrown into
 * 1024 buckets, then ranked by counting inside each; no floating point, scattered
 * writes. Two keys change every round. The end checks that the ranks sort the keys. */
#include "kernel.h"

enum { LOG2_RANGE = 19, BUCKETS = 1024, SPAN = (1 << LOG2_RANGE) / BUCKETS };

static long keys, bucket_start[BUCKETS + 1];
static int *key_array, *key_buff1, *key_buff2, (*bucket_size)[BUCKETS];

static void make_keys(void) {
#pragma omp parallel for schedule(static)
  for (long k = 0; k < keys; k++) {
    uint64_t bits = random_bits((uint64_t)k);
    unsigned sum = 0;
    for (int i = 0; i < 4; i++) sum += (unsigned)(bits >> (16 * i)) & 0xffff;
    key_array[k] = (int)((uint64_t)sum * (1 << LOG2_RANGE) / (4 * 0x10000ul));
  }
}

static void rank(void) {
#pragma omp parallel
  {
    int me = omp_get_thread_num(), threads = omp_get_num_threads();
    int *mine = bucket_size[me], next[BUCKETS];
    for (int b = 0; b < BUCKETS; b++) mine[b] = 0;
#pragma omp for schedule(static)
    for (long k = 0; k < keys; k++) mine[key_array[k] / SPAN]++;
    int before = 0;
    for (int b = 0; b < BUCKETS; b++) {
      if (me == 0) bucket_start[b] = before;
      for (int t = 0; t < threads; t++) {
        if (t == me) next[b] = before;
        before += bucket_size[t][b];
      }
    }
    if (me == 0) bucket_start[BUCKETS] = before;
#pragma omp for schedule(static)
    for (long k = 0; k < keys; k++) key_buff2[next[key_array[k] / SPAN]++] = key_array[k];
#pragma omp for schedule(static, 1)
    for (int b = 0; b < BUCKETS; b++) {
      int *count = key_buff1 + b * SPAN, sum = (int)bucket_start[b];
      for (int k = 0; k < SPAN; k++) count[k] = 0;
      for (long k = bucket_start[b]; k < bucket_start[b + 1]; k++) count[key_buff2[k] % SPAN]++;
      for (int k = 0; k < SPAN; k++) count[k] = sum += count[k];
    }
  }
}

/* Puts every key at its rank, in key_buff2, and counts those out of order. */
static long misplaced(void) {
  for (long k = 0; k < keys; k++) key_buff2[--key_buff1[key_array[k]]] = key_array[k];
  long wrong = 0;
  for (long k = 1; k < keys; k++) wrong += key_buff2[k - 1] > key_buff2[k];
  return wrong;
}

int main(int argc, char **argv) {
  long log2_keys = argument(argc, argv, 1, 23), rounds = argument(argc, argv, 2, 110);
  if (log2_keys > 30) return fprintf(stderr, "is: LOG2_KEYS is at most 30\n"), 2;
  keys = 1l << log2_keys;
  key_array = array((size_t)keys, sizeof(int));
  key_buff2 = array((size_t)keys, sizeof(int));
  key_buff1 = array(1 << LOG2_RANGE, sizeof(int));
  bucket_size = array((size_t)omp_get_max_threads(), sizeof *bucket_size);
  make_keys();
  double checksum = 0;
  for (long round = 0; round < rounds; round++) {
    key_array[round % keys] = (int)round % (1 << LOG2_RANGE);
    key_array[(keys / 2 + round) % keys] = (1 << LOG2_RANGE) - 1 - (int)round % (1 << LOG2_RANGE);
    rank();
    for (int i = 0; i < 5; i++) checksum += key_buff1[(i + 1) << (LOG2_RANGE - 3)];
  }
  return verdict("is", checksum, misplaced() == 0);
}
