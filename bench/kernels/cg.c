/* cg [ROWS=60000 [EDGES=80 [OUTER=24]]]: conjugate gradients on a random sparse matrix.
 *
 * As NAS CG: inverse power iteration, 25 CG steps each, on a symmetric matrix whose
 * columns are random, so that the vector p is read in no order. 2*EDGES non-zeros a row
 * in compressed rows: 12 bytes per non-zero, read once per step. */
#include "kernel.h"

static long rows, *row_start;
static int *column;
static double *value, *x, *z, *p, *q, *r;

/* Row and column of the e-th edge of row i; the matrix has both (i,j) and (j,i). */
static long edge_end(long i, long e, long edges) {
  return (long)(random_bits((uint64_t)(i * edges + e)) % (uint64_t)rows);
}

static void build(long edges) {
  row_start = array((size_t)rows + 1, sizeof *row_start);
  long *next = array((size_t)rows, sizeof *next);
  for (long i = 0; i < rows; i++) next[i] = 1 + edges;
  for (long i = 0; i < rows; i++)
    for (long e = 0; e < edges; e++) next[edge_end(i, e, edges)]++;
  row_start[0] = 0;
  for (long i = 0; i < rows; i++) row_start[i + 1] = row_start[i] + next[i];
  column = array((size_t)row_start[rows], sizeof *column);
  value = array((size_t)row_start[rows], sizeof *value);
#pragma omp parallel for
  for (long k = 0; k < row_start[rows]; k++) column[k] = 0, value[k] = 0;
  for (long i = 0; i < rows; i++) next[i] = row_start[i];
  for (long i = 0; i < rows; i++) {
    column[next[i]] = (int)i;
    value[next[i]++] = 4.0 * (double)edges; /* dominant diagonal: positive definite */
    for (long e = 0; e < edges; e++) {
      long j = edge_end(i, e, edges);
      double v = random_unit((uint64_t)(i ^ j)) - 0.5;
      column[next[i]] = (int)j, value[next[i]++] = v;
      column[next[j]] = (int)i, value[next[j]++] = v;
    }
  }
  free(next);
}

static double multiply(const double *in, double *out) {
  double dot = 0;
#pragma omp parallel for schedule(static) reduction(+ : dot)
  for (long i = 0; i < rows; i++) {
    double sum = 0;
    for (long k = row_start[i]; k < row_start[i + 1]; k++) sum += value[k] * in[column[k]];
    out[i] = sum;
    dot += sum * in[i];
  }
  return dot;
}

/* Solves A z = x in 25 steps; gives the norm of the residual. */
static double solve(void) {
  double rho = 0;
#pragma omp parallel for schedule(static) reduction(+ : rho)
  for (long i = 0; i < rows; i++) {
    z[i] = 0;
    r[i] = p[i] = x[i];
    rho += x[i] * x[i];
  }
  for (int step = 0; step < 25; step++) {
    double alpha = rho / multiply(p, q), old = rho;
    rho = 0;
#pragma omp parallel for schedule(static) reduction(+ : rho)
    for (long i = 0; i < rows; i++) {
      z[i] += alpha * p[i];
      r[i] -= alpha * q[i];
      rho += r[i] * r[i];
    }
    double beta = rho / old;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < rows; i++) p[i] = r[i] + beta * p[i];
  }
  multiply(z, q);
  double error = 0;
#pragma omp parallel for schedule(static) reduction(+ : error)
  for (long i = 0; i < rows; i++) error += (x[i] - q[i]) * (x[i] - q[i]);
  return sqrt(error);
}

int main(int argc, char **argv) {
  rows = argument(argc, argv, 1, 60000);
  long edges = argument(argc, argv, 2, 80), outer = argument(argc, argv, 3, 24);
  build(edges);
  double **vectors[] = {&x, &z, &p, &q, &r};
  for (int i = 0; i < 5; i++) *vectors[i] = array((size_t)rows, sizeof(double));
#pragma omp parallel for schedule(static)
  for (long i = 0; i < rows; i++) x[i] = 1.0;
  double zeta = 0, worst = 0;
  for (long it = 0; it < outer; it++) {
    double error = solve(), dot = 0, norm = 0;
    worst = fmax(worst, error / sqrt((double)rows));
#pragma omp parallel for schedule(static) reduction(+ : dot, norm)
    for (long i = 0; i < rows; i++) {
      dot += x[i] * z[i];
      norm += z[i] * z[i];
    }
    zeta = 1.0 / dot;
    norm = 1.0 / sqrt(norm);
#pragma omp parallel for schedule(static)
    for (long i = 0; i < rows; i++) x[i] = norm * z[i];
  }
  return verdict("cg", zeta, worst < 1e-8);
}
