// cpp_structs [ITEMS=65536 [STEPS=1000]]        (C++, OpenMP; OMP_NUM_THREADS)
//
// Data structures as C++ programs have them, each with its own sharing:
//   particles  std::vector<Particle>, Particle = {position[3], velocity[3], mass, charge}:
//              64 bytes, one line each; thread i owns the i-th N-th, exclusively; per
//              step 6 reads and 3 writes of each (mass and charge are never touched
//              after the start)
//   Mesh::cells  new double[ITEMS], a class member; chain: cell k reads cell k+1 of the
//              next owner at the border (per step 2 reads, 1 write per cell)
//   Mesh::edge   a member array inside the static object `mesh`, read by all (4 reads
//              per step and thread), written by nobody after the start
//   histogram  static std::vector<long>[64] objects, one vector of 512 longs per thread
//              (N <= 64), written by its thread only: 1 read and 1 write per item and step
//
// Expected: matrix nearly 0 apart from the chain of Mesh::cells (one line per border
// and step), the reads of `edge` by all and libgomp's barriers; names `particles`,
// `mesh`, `mesh.cells` or the allocating line in Mesh::Mesh, `histogram`; first touch of
// `particles` by thread 0 (std::vector initialises), of Mesh::cells by the owners.
#include <cstdio>
#include <cstdlib>
#include <omp.h>
#include <vector>

struct Particle {
  double position[3], velocity[3], mass, charge;
};

class Mesh {
public:
  explicit Mesh(long n) : count(n), cells(new double[static_cast<size_t>(n)]) {
    for (double &e : edge) e = 0.25;
  }
  ~Mesh() { delete[] cells; }
  Mesh(const Mesh &) = delete;
  Mesh &operator=(const Mesh &) = delete;
  void clear(long low, long high) {
    for (long k = low; k < high; k++) cells[k] = 1.0;
  }
  double boundary() const {
    const volatile double *e = edge;
    return e[0] + e[1] + e[2] + e[3];
  }
  void relax(long low, long high, double boundary) {
    for (long k = low; k < high; k++) cells[k] = 0.5 * (cells[k] + (k + 1 < count ? cells[k + 1] : boundary));
  }

private:
  long count;
  double *cells;
  double edge[4];
};

static std::vector<long> histogram[64];

static void move(Particle *p, long low, long high) {
  for (long k = low; k < high; k++)
    for (int d = 0; d < 3; d++) p[k].position[d] += 0.01 * p[k].velocity[d];
}

int main(int argc, char **argv) {
  long items = argc > 1 ? atol(argv[1]) : 65536, steps = argc > 2 ? atol(argv[2]) : 1000;
  if (items < 1 || steps < 1 || omp_get_max_threads() > 64) {
    std::fprintf(stderr, "cpp_structs: ITEMS and STEPS from 1, at most 64 threads\n");
    return 2;
  }
  static Mesh mesh(items);
  std::vector<Particle> particles(static_cast<size_t>(items), Particle{{0, 0, 0}, {1, 2, 3}, 1, 1});
  double total = 0;
#pragma omp parallel reduction(+ : total)
  {
    long me = omp_get_thread_num(), threads = omp_get_num_threads();
    long low = items * me / threads, high = items * (me + 1) / threads;
    histogram[me].assign(512, 0);
    long *mine = histogram[me].data();
    Particle *all = particles.data();
    mesh.clear(low, high);
#pragma omp barrier
    for (long step = 0; step < steps; step++) {
      move(all, low, high);
      mesh.relax(low, high, mesh.boundary());
      for (long k = low; k < high; k++) mine[k & 511]++;
#pragma omp barrier
    }
    for (long k = 0; k < 512; k++) total += static_cast<double>(mine[k]);
  }
  bool correct = total == static_cast<double>(items) * static_cast<double>(steps);
  std::printf("cpp_structs: x = %.3f, %s\n", particles[0].position[0], correct ? "correct" : "WRONG");
  return correct ? 0 : 1;
}
