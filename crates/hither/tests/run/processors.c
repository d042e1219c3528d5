/* processors: what OpenMP believes of the machine, outside and inside of threads. */
#include <omp.h>
#include <stdio.h>

int main(void) {
  int inside = 0, threads = 0;
#pragma omp parallel
#pragma omp single
  inside = omp_get_num_procs(), threads = omp_get_num_threads();
  printf("%d %d %d %d\n", omp_get_num_procs(), inside, threads, omp_get_max_threads());
  return 0;
}
