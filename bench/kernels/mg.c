/* mg [LOG2_SIZE=7 [SOLVES=100]]: Poisson's equation by multigrid on a periodic cube.
 *
 * As NAS MG: V-cycles with 27-point operators on levels 2^LOG2_SIZE .. 2, four cycles a
 * solve, twenty point charges of +1 and -1. Each row first sums its four face and its
 * four edge neighbours into private buffers; strides of a row, a plane and a level. */
#include "kernel.h"

enum { MOST = 514, CYCLES = 4 };
/* Weights of the centre, 6 faces, 12 edges and 8 corners (Bailey et al., NPB, 1994). */
static const double laplace[4] = {-8.0 / 3.0, 0.0, 1.0 / 6.0, 1.0 / 12.0};
static const double smoother[4] = {-3.0 / 8.0, 1.0 / 32.0, -1.0 / 64.0, 0.0};

static long top;
static double *u[10], *r[10], *v; /* per level; ghost cells around */

static long width(long level) { return (1l << level) + 2; }

/* Copies the opposite inner faces to the ghost faces. */
static void wrap(double *a, long level) {
  long w = width(level), p = w * w;
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (long z = 1; z < w - 1; z++) {
      for (long y = 1; y < w - 1; y++) {
        a[z * p + y * w] = a[z * p + y * w + w - 2];
        a[z * p + y * w + w - 1] = a[z * p + y * w + 1];
      }
      for (long x = 0; x < w; x++) {
        a[z * p + x] = a[z * p + (w - 2) * w + x];
        a[z * p + (w - 1) * w + x] = a[z * p + w + x];
      }
    }
#pragma omp for schedule(static)
    for (long k = 0; k < p; k++) {
      a[k] = a[(w - 2) * p + k];
      a[(w - 1) * p + k] = a[p + k];
    }
  }
}

/* out = base + sign * (weights applied to in); base may be out. */
static void apply(double *out, const double *base, double sign, const double weight[4], const double *in, long level) {
  long w = width(level), p = w * w;
  double w0 = sign * weight[0], w1 = sign * weight[1], w2 = sign * weight[2], w3 = sign * weight[3];
#pragma omp parallel for schedule(static)
  for (long z = 1; z < w - 1; z++) {
    double face[MOST], edge[MOST];
    for (long y = 1; y < w - 1; y++) {
      const double *c = in + z * p + y * w;
      for (long x = 0; x < w; x++) {
        face[x] = c[x - w] + c[x + w] + c[x - p] + c[x + p];
        edge[x] = c[x - p - w] + c[x - p + w] + c[x + p - w] + c[x + p + w];
      }
      const double *b = base + z * p + y * w;
      double *o = out + z * p + y * w;
      for (long x = 1; x < w - 1; x++)
        o[x] = b[x] + w0 * c[x] + w1 * (c[x - 1] + c[x + 1] + face[x]) + w2 * (edge[x] + face[x - 1] + face[x + 1]) +
               w3 * (edge[x - 1] + edge[x + 1]);
    }
  }
  wrap(out, level);
}

/* r of the level below from r of this one: full weighting around every second cell. */
static void restrict_to(long level) {
  long w = width(level), p = w * w, cw = width(level - 1);
  double *fine = r[level], *coarse = r[level - 1];
#pragma omp parallel for schedule(static)
  for (long z = 1; z < cw - 1; z++) {
    double face[MOST], edge[MOST];
    for (long y = 1; y < cw - 1; y++) {
      const double *c = fine + 2 * z * p + 2 * y * w;
      for (long x = 1; x < w; x++) {
        face[x] = c[x - w] + c[x + w] + c[x - p] + c[x + p];
        edge[x] = c[x - p - w] + c[x - p + w] + c[x + p - w] + c[x + p + w];
      }
      double *o = coarse + z * cw * cw + y * cw;
      for (long x = 1; x < cw - 1; x++) {
        long f = 2 * x;
        o[x] = 0.5 * c[f] + 0.25 * (c[f - 1] + c[f + 1] + face[f]) + 0.125 * (edge[f] + face[f - 1] + face[f + 1]) +
               0.0625 * (edge[f - 1] + edge[f + 1]);
      }
    }
  }
  wrap(coarse, level - 1);
}

/* u of this level += the trilinear interpolation of u of the level below. */
static void interpolate(long level) {
  long w = width(level), p = w * w, cw = width(level - 1);
#pragma omp parallel for schedule(static)
  for (long z = 1; z < w - 1; z++)
    for (long y = 1; y < w - 1; y++) {
      /* the coarse rows on either side of this fine one; the same one twice if on it */
      long z0 = z / 2, z1 = (z + 1) / 2, y0 = y / 2, y1 = (y + 1) / 2;
      const double *a = u[level - 1] + (z0 * cw + y0) * cw, *b = u[level - 1] + (z0 * cw + y1) * cw;
      const double *c = u[level - 1] + (z1 * cw + y0) * cw, *d = u[level - 1] + (z1 * cw + y1) * cw;
      double sum[MOST / 2 + 1], *o = u[level] + z * p + y * w;
      for (long x = 0; x < cw - 1; x++) sum[x] = 0.25 * (a[x] + b[x] + c[x] + d[x]);
      for (long x = 1; x < cw - 1; x++) {
        o[2 * x - 1] += 0.5 * (sum[x - 1] + sum[x]);
        o[2 * x] += sum[x];
      }
    }
  wrap(u[level], level);
}

static void clear(double *a, long level) {
  long w = width(level);
#pragma omp parallel for schedule(static)
  for (long z = 0; z < w; z++)
    for (long k = z * w * w; k < (z + 1) * w * w; k++) a[k] = 0;
}

static void cycle(void) {
  for (long level = top; level > 1; level--) restrict_to(level);
  clear(u[1], 1);
  apply(u[1], u[1], 1, smoother, r[1], 1);
  for (long level = 2; level < top; level++) {
    clear(u[level], level);
    interpolate(level);
    apply(r[level], r[level], -1, laplace, u[level], level);
    apply(u[level], u[level], 1, smoother, r[level], level);
  }
  interpolate(top);
  apply(r[top], v, -1, laplace, u[top], top);
  apply(u[top], u[top], 1, smoother, r[top], top);
  apply(r[top], v, -1, laplace, u[top], top);
}

static double norm(const double *a) {
  long w = width(top);
  double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
  for (long z = 1; z < w - 1; z++)
    for (long y = 1; y < w - 1; y++)
      for (long x = 1; x < w - 1; x++) sum += a[(z * w + y) * w + x] * a[(z * w + y) * w + x];
  return sqrt(sum / (double)(1l << 3 * top));
}

int main(int argc, char **argv) {
  top = argument(argc, argv, 1, 7);
  long solves = argument(argc, argv, 2, 100);
  if (top < 3 || top > 9) return fprintf(stderr, "mg: LOG2_SIZE is 3 to 9\n"), 2;
  for (long level = 1; level <= top; level++) {
    size_t cells = (size_t)(width(level) * width(level) * width(level));
    u[level] = array(cells, sizeof(double));
    r[level] = array(cells, sizeof(double));
    clear(u[level], level);
    clear(r[level], level);
  }
  long w = width(top), n = w - 2;
  v = array((size_t)(w * w * w), sizeof(double));
  clear(v, top);
  for (uint64_t i = 0; i < 20; i++) {
    long place[3];
    for (uint64_t d = 0; d < 3; d++) place[d] = 1 + (long)(random_bits(3 * i + d) % (uint64_t)n);
    v[(place[2] * w + place[1]) * w + place[0]] += i % 2 ? -1.0 : 1.0;
  }
  wrap(v, top);
  double first = norm(v), last = 0;
  for (long solve = 0; solve < solves; solve++) {
    clear(u[top], top);
    apply(r[top], v, 0, laplace, u[top], top);
    for (int i = 0; i < CYCLES; i++) cycle();
    last = norm(r[top]);
  }
  return verdict("mg", norm(u[top]), last < 1e-2 * first);
}
