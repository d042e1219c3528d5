/* is [static|cyclic|split|dynamic [LOG2_KEYS=20 [ROUNDS=50 [bell|even]]]]
 *                                                           (OpenMP; OMP_NUM_THREADS)
 *
 * Bucket sort of integers in the manner of the NAS benchmark IS, whose loop over the
 * buckets decides which thread touches which page (TABARNAC, Locality and Balance).
 * 512 buckets of 1024 key values: bucket b counts in page b of `key_buff1` exactly.
 *
 * Expected, with N threads:
 *   key_buff1 (aligned_alloc), 512 pages; page b is touched by the thread of bucket b:
 *        static   b*N/512      N blocks of consecutive pages, one thread each
 *        cyclic   b mod N      schedule(static,1): neighbouring pages, different threads
 *        split    b*2N/512 mod N   two blocks each, one of either half (TABARNAC 5.2)
 *        dynamic  any          another thread each round: pages shared by all
 *      and by thread 0 once in the end, to verify. Per page and round: 2048 writes
 *      (clear, accumulate) and one more per key, 1024 reads (accumulate) and one more
 *      per key.
 *   key_array (malloc), 2^LOG2_KEYS ints: thread i reads and first touches the i-th
 *        N-th of it; twice per round, exclusively
 *   key_buff2 (malloc), as large: written by all (each scatters its keys into every
 *        bucket), read by the bucket's thread: pages follow key_buff1's pattern
 *   bucket_count (calloc), 512 counters per thread: each written by its thread, read by all
 *   matrix: all-to-all, no structure
 *   load: with `bell` keys are the mean of four random numbers, so the middle buckets
 *        are the fullest: uneven with static, even with cyclic, split and dynamic;
 *        with `even` all buckets are about as full */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 512, SPAN = 1024 };

static int *key_array, *key_buff1, *key_buff2;
static long *bucket_count, *bucket_start; /* [thread][bucket]; [bucket] */

static unsigned random20(unsigned long long *state) {
  *state = *state * 6364136223846793005ull + 1442695040888963407ull;
  return (unsigned)(*state >> 44);
}

/* Sorts the keys of bucket b within key_buff2 by counting. */
static void rank_bucket(long b, long keys_before) {
  int *count = key_buff1 + b * SPAN;
  for (long k = 0; k < SPAN; k++) count[k] = 0;
  for (long k = keys_before; k < bucket_start[b + 1]; k++) count[key_buff2[k] - b * SPAN]++;
  int sum = 0;
  for (long k = 0; k < SPAN; k++) count[k] = sum += count[k];
}

static void sort_round(long keys) {
#pragma omp parallel
  {
    long me = omp_get_thread_num(), threads = omp_get_num_threads();
    long low = keys * me / threads, high = keys * (me + 1) / threads;
    long *mine = bucket_count + me * BUCKETS, next[BUCKETS];
    for (long b = 0; b < BUCKETS; b++) mine[b] = 0;
    for (long k = low; k < high; k++) mine[key_array[k] / SPAN]++;
#pragma omp barrier
    long before = 0;
    for (long b = 0; b < BUCKETS; b++) {
      if (me == 0) bucket_start[b] = before;
      for (long t = 0; t < threads; t++) {
        if (t == me) next[b] = before;
        before += bucket_count[t * BUCKETS + b];
      }
    }
    if (me == 0) bucket_start[BUCKETS] = before;
    for (long k = low; k < high; k++) key_buff2[next[key_array[k] / SPAN]++] = key_array[k];
#pragma omp barrier
#pragma omp for schedule(runtime)
    for (long b = 0; b < BUCKETS; b++) rank_bucket(b, bucket_start[b]);
  }
}

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "static";
  long log2 = argc > 2 ? atol(argv[2]) : 20, rounds = argc > 3 ? atol(argv[3]) : 50;
  if (strcmp(how, "static") == 0) omp_set_schedule(omp_sched_static, 0);
  else if (strcmp(how, "cyclic") == 0) omp_set_schedule(omp_sched_static, 1);
  else if (strcmp(how, "split") == 0) omp_set_schedule(omp_sched_static, BUCKETS / (2 * omp_get_max_threads()));
  else if (strcmp(how, "dynamic") == 0) omp_set_schedule(omp_sched_dynamic, 1);
  else return fprintf(stderr, "is: the schedule is static, cyclic, split or dynamic\n"), 2;
  if (log2 < 10 || log2 > 28) return fprintf(stderr, "is: LOG2_KEYS is 10 to 28\n"), 2;
  int dice = argc > 4 && strcmp(argv[4], "even") == 0 ? 1 : 4;
  long keys = 1l << log2;
  key_array = malloc((size_t)keys * sizeof(int));
  key_buff2 = malloc((size_t)keys * sizeof(int));
  key_buff1 = aligned_alloc(4096, BUCKETS * SPAN * sizeof(int));
  bucket_count = calloc((size_t)omp_get_max_threads() * BUCKETS, sizeof(long));
  bucket_start = calloc(BUCKETS + 1, sizeof(long));
  if (!key_array || !key_buff1 || !key_buff2 || !bucket_count || !bucket_start) return 2;
#pragma omp parallel
  {
    long me = omp_get_thread_num(), threads = omp_get_num_threads();
    for (long k = keys * me / threads; k < keys * (me + 1) / threads; k++) {
      unsigned long long state = (unsigned long long)k * 0x9e3779b97f4a7c15ull;
      unsigned sum = 0;
      for (int i = 0; i < dice; i++) sum += random20(&state) / 2;
      key_array[k] = (int)(sum / (unsigned)dice);
    }
  }
  for (long r = 0; r < rounds; r++) sort_round(keys);
  /* the last value of each bucket counts all its keys */
  long counted = 0;
  for (long b = 0; b < BUCKETS; b++) counted += key_buff1[b * SPAN + SPAN - 1];
  printf("is: %ld keys, %s, %s\n", keys, how, counted == keys ? "correct" : "WRONG");
  return counted != keys;
}
