/* stencil2d [SIZE=256 [STEPS=4000]]        (OpenMP; OMP_NUM_THREADS)
 *
 * Jacobi steps on two grids of SIZE x SIZE doubles, cut into row blocks: thread i owns
 * rows i*SIZE/N .. (i+1)*SIZE/N - 1, touches them first and computes them.
 *
 * Expected, with N threads, rows = SIZE - 2 computed per step, cells = SIZE - 2:
 *   accesses: 4 reads and 1 write per cell and step: 4*STEPS*(SIZE-2)^2 reads,
 *        STEPS*(SIZE-2)^2 writes over both grids, after 2*SIZE^2 writes at the start
 *   matrix: only M[i][i+1], all alike, at most 5*STEPS*2*(SIZE-2): each step, on each
 *        side of a border, the neighbour reads each cell of the row once and the owner
 *        reads it at most four times; beyond that libgomp's barriers (a few per step)
 *   pages: of `now` and `then`, first touched by their rows' owners; only a page with
 *        a border row is touched by two threads
 *   time: one phase */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static double *grid(long n) {
  double *cells = aligned_alloc(4096, (size_t)(n * n) * sizeof(double));
  if (!cells) exit(2);
  return cells;
}

/* First row of a thread's block. */
static long start(long n, long thread, long threads) { return n * thread / threads; }

int main(int argc, char **argv) {
  long n = argc > 1 ? atol(argv[1]) : 256, steps = argc > 2 ? atol(argv[2]) : 4000;
  if (n < 3 || n % 8 || steps < 1)
    return fprintf(stderr, "stencil2d: SIZE must be a multiple of 8, STEPS at least 1\n"), 2;
  double *now = grid(n), *then = grid(n);
#pragma omp parallel firstprivate(now, then, n, steps)
  {
    long me = omp_get_thread_num(), threads = omp_get_num_threads();
    long low = start(n, me, threads), high = start(n, me + 1, threads);
    for (long r = low; r < high; r++)
      for (long c = 0; c < n; c++) now[r * n + c] = then[r * n + c] = r == 0 ? 1.0 : 0.0;
    if (low == 0) low = 1;
    if (high == n) high = n - 1;
#pragma omp barrier
    for (long step = 0; step < steps; step++) {
      for (long r = low; r < high; r++)
        for (long c = 1; c < n - 1; c++)
          then[r * n + c] =
              0.25 * (now[(r - 1) * n + c] + now[(r + 1) * n + c] + now[r * n + c - 1] + now[r * n + c + 1]);
      double *swap = now;
      now = then;
      then = swap;
#pragma omp barrier
    }
  }
  double sum = 0;
  for (long i = 0; i < n * n; i++) sum += now[i] + then[i];
  printf("stencil2d: %ld x %ld, sum %.6f\n", n, n, sum);
  return 0;
}
