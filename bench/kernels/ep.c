/* ep [LOG2_PAIRS=29]: Gaussian deviates from random pairs, counted by size.
 *
 * As NAS EP: nothing but arithmetic and a small private table; what tracing costs when
 * memory hardly matters. The check: the deviates' mean and variance. */
#include "kernel.h"

enum { BATCH = 4096 };

int main(int argc, char **argv) {
  long log2_pairs = argument(argc, argv, 1, 29);
  if (log2_pairs < 12 || log2_pairs > 40) return fprintf(stderr, "ep: LOG2_PAIRS is 12 to 40\n"), 2;
  long batches = (1l << log2_pairs) / BATCH, counts[10] = {0}, accepted = 0;
  double sum = 0, squares = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum, squares, accepted, counts[:10])
  for (long batch = 0; batch < batches; batch++) {
    double number[2 * BATCH];
    for (long k = 0; k < 2 * BATCH; k++) number[k] = 2.0 * random_unit((uint64_t)(batch * 2 * BATCH + k)) - 1.0;
    for (long k = 0; k < BATCH; k++) {
      double a = number[2 * k], b = number[2 * k + 1], t = a * a + b * b;
      if (t > 1.0 || t == 0.0) continue;
      double factor = sqrt(-2.0 * log(t) / t), x = a * factor, y = b * factor;
      double larger = fmax(fabs(x), fabs(y));
      counts[larger < 9.0 ? (int)larger : 9]++;
      accepted++;
      sum += x + y;
      squares += x * x + y * y;
    }
  }
  double n = 2.0 * (double)accepted, mean = sum / n, variance = squares / n - mean * mean;
  double checksum = squares;
  for (int i = 0; i < 10; i++) checksum += (double)(i * counts[i]);
  return verdict("ep", checksum, fabs(mean) < 6 / sqrt(n) && fabs(variance - 1) < 9 / sqrt(n));
}
