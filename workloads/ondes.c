/* ondes [-p] [SIZE=96 [STEPS=200]]        (OpenMP; OMP_NUM_THREADS)
 *
 * A wave equation on cubes of SIZE^3 doubles, as Ondes3D computes it: all threads
 * compute, each a block of planes, but thread 0 has initialised everything alone, so
 * that on a NUMA machine every page is on its node. -p initialises in parallel: the
 * usual repair.
 *
 * Expected, with N threads and plane z owned by thread z*N/SIZE (N divides SIZE):
 *   first touch: without -p, every page of `past`, `present`, `future` and `speed` by
 *        thread 0; with -p, by the owner of its plane
 *   pages: nearly all accesses to a page come from its owner alone (the initial write
 *        apart); planes at a border are read by the neighbour too
 *   matrix: chain M[i][i+1], as for stencil2d
 *   accesses: per inner cell and step 9 reads (7 of present, past, speed), 1 write
 *   verdict: unbalanced first touch, page placement gains without -p and not with it */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double *past, *present, *future, *speed;

static double *cube(long n) {
  double *cells = aligned_alloc(4096, (size_t)(n * n * n) * sizeof(double));
  if (!cells) exit(2);
  return cells;
}

static void set_plane(long z, long n) {
  for (long k = z * n * n; k < (z + 1) * n * n; k++) {
    past[k] = present[k] = future[k] = 0.0;
    speed[k] = 0.1;
  }
  if (z == n / 2) present[z * n * n + n / 2 * n + n / 2] = 1.0;
}

static void step_plane(long z, long n) {
  long p = n * n;
  for (long y = 1; y < n - 1; y++)
    for (long x = 1; x < n - 1; x++) {
      long k = z * p + y * n + x;
      double around =
          present[k - 1] + present[k + 1] + present[k - n] + present[k + n] + present[k - p] + present[k + p];
      future[k] = 2.0 * present[k] - past[k] + speed[k] * (around - 6.0 * present[k]);
    }
}

int main(int argc, char **argv) {
  int parallel = argc > 1 && strcmp(argv[1], "-p") == 0;
  argc -= parallel;
  argv += parallel;
  long n = argc > 1 ? atol(argv[1]) : 96, steps = argc > 2 ? atol(argv[2]) : 200;
  if (n < 8 || n % 8 || steps < 1) return fprintf(stderr, "ondes: SIZE must be a multiple of 8, STEPS at least 1\n"), 2;
  past = cube(n), present = cube(n), future = cube(n), speed = cube(n);
#pragma omp parallel for schedule(static) if (parallel)
  for (long z = 0; z < n; z++) set_plane(z, n);
  for (long step = 0; step < steps; step++) {
    /* Over all planes, so that the blocks are those of the initialisation. */
#pragma omp parallel for schedule(static)
    for (long z = 0; z < n; z++)
      if (z > 0 && z < n - 1) step_plane(z, n);
    double *oldest = past;
    past = present;
    present = future;
    future = oldest;
  }
  double sum = 0;
  for (long k = 0; k < n * n * n; k++) sum += present[k] * present[k];
  printf("ondes: %ld^3, first touch %s, energy %.9f\n", n, parallel ? "parallel" : "by thread 0", sum);
  return 0;
}
