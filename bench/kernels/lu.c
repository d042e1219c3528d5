/* lu [SIZE=80 [STEPS=70]]: SSOR with 5x5 blocks, swept as a pipelined wavefront.
 *
 * As NAS LU: five coupled fields on a cube. Each step computes a residual from the six
 * neighbours, then a lower sweep (x, y, z ascending) and an upper sweep (descending),
 * forming a diagonal and three off-diagonal 5x5 blocks at each point and solving the
 * diagonal one by elimination. A thread owns some y and starts plane z when the thread
 * before it has finished its part of it. */
#include "kernel.h"
#include <sched.h>
#include <stdatomic.h>

enum { FIELDS = 5 };
typedef double point[FIELDS];
typedef double block[FIELDS][FIELDS];

static long n, stride[3];
static point *state, *u, *force, *rsd;
static const double omega = 1.2, coupling = 0.05, shift = 0.3;
static const point mix = {0.3, -0.2, 0.25, -0.15, 0.1};

/* How far each thread has come, in planes, on lines of their own. */
static struct { _Alignas(64) atomic_long planes; } progress[1024];

/* The operator: diagonal (6 + shift) I + C, each neighbour -(I + C / 6), where
 * C = coupling * state * mix^T, different at every point. */
static void diagonal(block b, const double *s) {
  for (int r = 0; r < FIELDS; r++)
    for (int c = 0; c < FIELDS; c++) b[r][c] = coupling * s[r] * mix[c] + (r == c ? 6.0 + shift : 0.0);
}
static void neighbour(block b, const double *s) {
  for (int r = 0; r < FIELDS; r++)
    for (int c = 0; c < FIELDS; c++) b[r][c] = -coupling / 6.0 * s[r] * mix[c] - (r == c ? 1.0 : 0.0);
}

static void multiply_add(double *out, double factor, const block b, const double *in) {
  for (int r = 0; r < FIELDS; r++)
    for (int c = 0; c < FIELDS; c++) out[r] += factor * b[r][c] * in[c];
}

static void eliminate(block b, double *x) {
  for (int p = 0; p < FIELDS; p++) {
    double f = 1.0 / b[p][p];
    for (int c = p + 1; c < FIELDS; c++) b[p][c] *= f;
    x[p] *= f;
    for (int r = p + 1; r < FIELDS; r++) {
      double g = b[r][p];
      for (int c = p + 1; c < FIELDS; c++) b[r][c] -= g * b[p][c];
      x[r] -= g * x[p];
    }
  }
  for (int p = FIELDS - 2; p >= 0; p--)
    for (int c = p + 1; c < FIELDS; c++) x[p] -= b[p][c] * x[c];
}

/* rsd = force - A u; returns its norm. */
static double residual(void) {
  double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
  for (long z = 1; z < n - 1; z++)
    for (long y = 1; y < n - 1; y++)
      for (long x = 1; x < n - 1; x++) {
        long k = x * stride[0] + y * stride[1] + z * stride[2];
        point difference;
        double weight = 0;
        for (int m = 0; m < FIELDS; m++) {
          double around = 0;
          for (int d = 0; d < 3; d++) around += u[k - stride[d]][m] + u[k + stride[d]][m];
          difference[m] = around - (6.0 + shift) * u[k][m];
          weight += mix[m] * (around / 6.0 - u[k][m]);
        }
        for (int m = 0; m < FIELDS; m++) {
          rsd[k][m] = force[k][m] + difference[m] + coupling * state[k][m] * weight;
          sum += rsd[k][m] * rsd[k][m];
        }
      }
  return sqrt(sum / (double)(n * n * n));
}

/* One row of a sweep: forms the row's blocks, then solves point after point. `back` is
 * the way to the neighbours already done: -1 in the lower sweep, 1 in the upper one. */
static void solve_row(long y, long z, long back, block (*blocks)[2]) {
  long row = y * stride[1] + z * stride[2];
  for (long x = 1; x < n - 1; x++) {
    diagonal(blocks[x][0], state[row + x]);
    neighbour(blocks[x][1], state[row + x]);
  }
  for (long step = 1; step < n - 1; step++) {
    long x = back < 0 ? step : n - 1 - step, k = row + x;
    point t;
    for (int m = 0; m < FIELDS; m++) t[m] = back < 0 ? rsd[k][m] : 0.0;
    for (int d = 2; d >= 0; d--) multiply_add(t, back < 0 ? -omega : omega, blocks[x][1], rsd[k + back * stride[d]]);
    eliminate(blocks[x][0], t);
    for (int m = 0; m < FIELDS; m++) rsd[k][m] = back < 0 ? t[m] : rsd[k][m] - t[m];
  }
}

static void sweep(long back) {
#pragma omp parallel
  {
    long me = omp_get_thread_num(), threads = omp_get_num_threads(), inner = n - 2;
    long low = 1 + inner * me / threads, high = 1 + inner * (me + 1) / threads;
    long before = back < 0 ? me - 1 : me + 1;
    block(*blocks)[2] = array((size_t)n, sizeof *blocks);
    atomic_store(&progress[me].planes, 0);
#pragma omp barrier
    for (long plane = 1; plane < n - 1; plane++) {
      while (before >= 0 && before < threads && atomic_load(&progress[before].planes) < plane) sched_yield();
      long z = back < 0 ? plane : n - 1 - plane;
      for (long j = low; j < high; j++) solve_row(back < 0 ? j : low + high - 1 - j, z, back, blocks);
      atomic_store(&progress[me].planes, plane);
    }
    free(blocks);
  }
}

static void advance(void) {
  sweep(-1);
  sweep(1);
  double factor = omega * (2.0 - omega);
#pragma omp parallel for schedule(static)
  for (long z = 1; z < n - 1; z++)
    for (long k = z * stride[2]; k < (z + 1) * stride[2]; k++)
      for (int m = 0; m < FIELDS; m++) u[k][m] += factor * rsd[k][m];
}

int main(int argc, char **argv) {
  n = argument(argc, argv, 1, 80);
  long steps = argument(argc, argv, 2, 70);
  if (n < 4 || omp_get_max_threads() > 1024) return fprintf(stderr, "lu: SIZE from 4, at most 1024 threads\n"), 2;
  stride[0] = 1, stride[1] = n, stride[2] = n * n;
  point **fields[] = {&state, &u, &force, &rsd};
  for (int i = 0; i < 4; i++) *fields[i] = array((size_t)(n * n * n), sizeof(point));
#pragma omp parallel for schedule(static)
  for (long z = 0; z < n; z++)
    for (long k = z * n * n; k < (z + 1) * n * n; k++)
      for (int m = 0; m < FIELDS; m++) {
        state[k][m] = random_unit((uint64_t)(k * FIELDS + m));
        force[k][m] = random_unit((uint64_t)((k + n * n * n) * FIELDS + m)) - 0.5;
        u[k][m] = rsd[k][m] = 0;
      }
  double first = residual(), last = first;
  for (long step = 0; step < steps; step++) {
    advance();
    last = residual();
  }
  return verdict("lu", last + u[(n / 2) * (stride[2] + stride[1] + 1)][0], last < 0.1 * first);
}
