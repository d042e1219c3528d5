/* sp [SIZE=96 [STEPS=80]]: scalar pentadiagonal sweeps along x, y and z.
 *
 * As NAS SP: five fields on a cube, advanced by an alternating-direction implicit
 * scheme. Each step computes a right-hand side from 13 neighbours and solves one
 * pentadiagonal system per line and direction, whose coefficients follow the fields.
 * Threads share the planes of z, for the z sweep those of y, where a line's points lie
 * a plane apart. */
#include "kernel.h"

enum { FIELDS = 5, MOST = 512 };
typedef double point[FIELDS];

static long n, stride[3];
static point *u, *rhs;
static const double dt = 0.02, damping = 0.05;

/* rhs = dt * (diffusion - damping of the fourth difference + exchange between fields) */
static void right_hand_side(void) {
#pragma omp parallel for schedule(static)
  for (long z = 2; z < n - 2; z++)
    for (long y = 2; y < n - 2; y++)
      for (long x = 2; x < n - 2; x++) {
        long k = x * stride[0] + y * stride[1] + z * stride[2];
        for (int m = 0; m < FIELDS; m++) {
          double sum = 0.1 * (u[k][(m + 1) % FIELDS] - u[k][m]);
          for (int d = 0; d < 3; d++) {
            long s = stride[d];
            double near = u[k - s][m] + u[k + s][m], away = u[k - 2 * s][m] + u[k + 2 * s][m];
            sum += near - 2.0 * u[k][m] - damping * (away - 4.0 * near + 6.0 * u[k][m]);
          }
          rhs[k][m] = dt * sum;
        }
      }
}

/* Row of I + dt * (damping of the fourth difference - diffusion), diffusion growing
 * with the size of the fields. */
static void coefficients(double row[5], const double *state) {
  double speed = dt * (1.0 + 0.1 * (state[0] * state[0] + state[1] * state[1])), d = dt * damping;
  row[0] = row[4] = d;
  row[1] = row[3] = -speed - 4.0 * d;
  row[2] = 1.0 + 2.0 * speed + 6.0 * d;
}

/* Solves the systems of the five fields along one line, in place. */
static void solve_line(const point *state, point *b, long s) {
  double a[MOST][5];
  long last = n - 3;
  for (long k = 2; k <= last; k++) coefficients(a[k], state[k * s]);
  for (long k = 2; k <= last; k++) {
    double f = 1.0 / a[k][2];
    a[k][3] *= f;
    a[k][4] *= f;
    for (int m = 0; m < FIELDS; m++) b[k * s][m] *= f;
    for (int ahead = 1; ahead <= 2 && k + ahead <= last; ahead++) {
      double g = a[k + ahead][2 - ahead];
      a[k + ahead][3 - ahead] -= g * a[k][3];
      a[k + ahead][4 - ahead] -= g * a[k][4];
      for (int m = 0; m < FIELDS; m++) b[(k + ahead) * s][m] -= g * b[k * s][m];
    }
  }
  for (long k = last - 1; k >= 2; k--)
    for (int m = 0; m < FIELDS; m++) {
      b[k * s][m] -= a[k][3] * b[(k + 1) * s][m];
      if (k + 2 <= last) b[k * s][m] -= a[k][4] * b[(k + 2) * s][m];
    }
}

/* Solves all lines along direction d; `outer` is the direction shared among threads. */
static void sweep(int d, int outer) {
  int inner = 3 - d - outer;
#pragma omp parallel for schedule(static)
  for (long j = 2; j < n - 2; j++)
    for (long i = 2; i < n - 2; i++) {
      long first = j * stride[outer] + i * stride[inner];
      solve_line(u + first, rhs + first, stride[d]);
    }
}

static double advance(void) {
  right_hand_side();
  sweep(0, 2);
  sweep(1, 2);
  sweep(2, 1);
  double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
  for (long z = 2; z < n - 2; z++)
    for (long k = z * stride[2]; k < (z + 1) * stride[2]; k++)
      for (int m = 0; m < FIELDS; m++) {
        u[k][m] += rhs[k][m];
        sum += u[k][m] * u[k][m];
      }
  return sqrt(sum / (double)(n * n * n));
}

/* A line's right-hand side made from known values: do they come back? */
static int solver_correct(void) {
  point state[MOST], b[MOST];
  double a[5], wrong = 0;
  for (long k = 0; k < n; k++)
    for (int m = 0; m < FIELDS; m++) state[k][m] = random_unit((uint64_t)(k * FIELDS + m)), b[k][m] = 0;
  for (long k = 2; k < n - 2; k++)
    for (long other = k - 2; other <= k + 2; other++)
      for (int m = 0; m < FIELDS; m++) {
        coefficients(a, state[k]);
        if (other >= 2 && other < n - 2) b[k][m] += a[other - k + 2] * (double)(other + m);
      }
  solve_line(state, b, 1);
  for (long k = 2; k < n - 2; k++)
    for (int m = 0; m < FIELDS; m++) wrong = fmax(wrong, fabs(b[k][m] - (double)(k + m)));
  return wrong < 1e-9;
}

int main(int argc, char **argv) {
  n = argument(argc, argv, 1, 96);
  long steps = argument(argc, argv, 2, 80);
  if (n < 8 || n > MOST) return fprintf(stderr, "sp: SIZE is 8 to %d\n", MOST), 2;
  stride[0] = 1, stride[1] = n, stride[2] = n * n;
  u = array((size_t)(n * n * n), sizeof *u);
  rhs = array((size_t)(n * n * n), sizeof *rhs);
#pragma omp parallel for schedule(static)
  for (long z = 0; z < n; z++)
    for (long k = z * n * n; k < (z + 1) * n * n; k++) {
      long x = k % n, y = k / n % n;
      int inside = x > 1 && x < n - 2 && y > 1 && y < n - 2 && z > 1 && z < n - 2;
      for (int m = 0; m < FIELDS; m++) {
        u[k][m] = inside ? random_unit((uint64_t)(k * FIELDS + m)) : 0.0;
        rhs[k][m] = 0;
      }
    }
  int correct = solver_correct();
  double before = 1e300;
  for (long step = 0; step < steps; step++) {
    double now = advance();
    correct = correct && now < before; /* diffusion only lowers the norm */
    before = now;
  }
  return verdict("sp", before, correct);
}
