/* ft [LOG2_SIZE=7 [STEPS=100]]: a diffusion equation solved by 3-D FFT.
 *
 * As NAS FT: transform a random field once, then per step multiply by a Gaussian factor
 * and transform back. Along each dimension lines are gathered 16 at a time into a
 * private buffer, transformed (Stockham, radix 2) and scattered back: long strides. */
#include "kernel.h"

enum { LINES = 16, MOST = 1024 };
typedef struct {
  double re, im;
} complex_t;

static long size, log2_size;
static complex_t *spectrum, *field, root[MOST];
static double *decay;

/* One radix-2 Stockham pass over LINES interleaved lines: from -> to. */
static void pass(long stage, int sign, complex_t (*from)[LINES], complex_t (*to)[LINES]) {
  long half = size / 2, run = 1l << stage, groups = half / run;
  for (long g = 0; g < groups; g++) {
    complex_t w = root[g * run];
    w.im *= sign;
    for (long k = 0; k < run; k++) {
      complex_t *a = from[g * run + k], *b = from[g * run + k + half];
      complex_t *sum = to[2 * g * run + k], *difference = to[(2 * g + 1) * run + k];
      for (int l = 0; l < LINES; l++) {
        double re = a[l].re - b[l].re, im = a[l].im - b[l].im;
        sum[l].re = a[l].re + b[l].re;
        sum[l].im = a[l].im + b[l].im;
        difference[l].re = re * w.re - im * w.im;
        difference[l].im = re * w.im + im * w.re;
      }
    }
  }
}

/* Transforms LINES lines that start at `first`, `apart` elements from one another, with
 * `stride` between the elements of a line. */
static void lines(complex_t *first, long apart, long stride, int sign, complex_t (*one)[LINES],
                  complex_t (*two)[LINES]) {
  for (long k = 0; k < size; k++)
    for (int l = 0; l < LINES; l++) one[k][l] = first[k * stride + l * apart];
  for (long stage = 0; stage < log2_size; stage++) {
    pass(stage, sign, one, two);
    complex_t(*swap)[LINES] = one;
    one = two;
    two = swap;
  }
  for (long k = 0; k < size; k++)
    for (int l = 0; l < LINES; l++) first[k * stride + l * apart] = one[k][l];
}

static void transform(complex_t *cube, int sign) {
  long plane = size * size;
#pragma omp parallel
  {
    complex_t(*one)[LINES] = array((size_t)size, sizeof *one);
    complex_t(*two)[LINES] = array((size_t)size, sizeof *two);
#pragma omp for schedule(static)
    for (long z = 0; z < size; z++)
      for (long y = 0; y < size; y += LINES) lines(cube + z * plane + y * size, size, 1, sign, one, two);
#pragma omp for schedule(static)
    for (long z = 0; z < size; z++)
      for (long x = 0; x < size; x += LINES) lines(cube + z * plane + x, 1, size, sign, one, two);
#pragma omp for schedule(static)
    for (long y = 0; y < size; y++)
      for (long x = 0; x < size; x += LINES) lines(cube + y * size + x, 1, plane, sign, one, two);
    free(one);
    free(two);
  }
}

/* Squared distance of a frequency from zero, with wrap-around. */
static double frequency(long k) {
  double f = k < size / 2 ? (double)k : (double)(k - size);
  return f * f;
}

/* Largest error of the forward transform at one frequency, against its definition, and
 * of the transform there and back. */
static double error_of_transform(long cells) {
  const long fx = 3, fy = 5, fz = 7;
  double re = 0, im = 0, worst = 0;
#pragma omp parallel for schedule(static) reduction(+ : re, im) reduction(max : worst)
  for (long k = 0; k < cells; k++) {
    double a = random_unit(2 * (uint64_t)k), b = random_unit(2 * (uint64_t)k + 1);
    long turns = fx * (k % size) + fy * (k / size % size) + fz * (k / size / size);
    double angle = -2.0 * M_PI * (double)(turns % size) / (double)size;
    re += a * cos(angle) - b * sin(angle);
    im += a * sin(angle) + b * cos(angle);
    worst = fmax(worst, fabs(field[k].re / (double)cells - a));
    worst = fmax(worst, fabs(field[k].im / (double)cells - b));
  }
  complex_t found = spectrum[(fz * size + fy) * size + fx];
  return fmax(worst, hypot(found.re - re, found.im - im) / (double)cells);
}

int main(int argc, char **argv) {
  log2_size = argument(argc, argv, 1, 7);
  long steps = argument(argc, argv, 2, 100);
  if (log2_size < 4 || log2_size > 10) return fprintf(stderr, "ft: LOG2_SIZE is 4 to 10\n"), 2;
  size = 1l << log2_size;
  long cells = size * size * size;
  spectrum = array((size_t)cells, sizeof *spectrum);
  field = array((size_t)cells, sizeof *field);
  decay = array((size_t)cells, sizeof *decay);
  for (long k = 0; k < size / 2; k++) {
    double angle = -2.0 * M_PI * (double)k / (double)size;
    root[k] = (complex_t){cos(angle), sin(angle)};
  }
#pragma omp parallel for schedule(static)
  for (long k = 0; k < cells; k++) {
    spectrum[k] = (complex_t){random_unit(2 * (uint64_t)k), random_unit(2 * (uint64_t)k + 1)};
    decay[k] = exp(-1e-4 * (frequency(k % size) + frequency(k / size % size) + frequency(k / size / size)));
  }
  double mean = 0;
#pragma omp parallel for schedule(static) reduction(+ : mean)
  for (long k = 0; k < cells; k++) mean += spectrum[k].re / (double)cells;
  transform(spectrum, 1);
#pragma omp parallel for schedule(static)
  for (long k = 0; k < cells; k++) field[k] = spectrum[k];
  transform(field, -1);
  double checksum = 0, drift = error_of_transform(cells);
  for (long step = 0; step < steps; step++) {
#pragma omp parallel for schedule(static)
    for (long k = 0; k < cells; k++) {
      spectrum[k].re *= decay[k];
      spectrum[k].im *= decay[k];
      field[k] = spectrum[k];
    }
    transform(field, -1);
    double now = 0;
#pragma omp parallel for schedule(static) reduction(+ : now)
    for (long k = 0; k < cells; k++) now += field[k].re / (double)cells / (double)cells;
    drift = fmax(drift, fabs(now - mean)); /* diffusion keeps the mean */
    for (long j = 1; j <= 1024; j++) checksum += field[j * 7919 % cells].re / (double)cells;
  }
  return verdict("ft", checksum, drift < 1e-9);
}
