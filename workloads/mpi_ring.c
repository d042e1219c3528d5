/* mpirun -np N mpi_ring [ROUNDS=2000 [WORDS=512]]
 *
 * Every round, each rank writes WORDS words to `out`, sends them to the next rank and
 * receives those of the one before in `in`; a barrier every 100 rounds.
 *
 * Expected: N processes in one matrix, and in it, among the ranks' first threads, a ring:
 * M[r][r+1 mod N] exceeds every other cell of row r but M[r][r-1 mod N], since messages
 * between ranks of one machine are copied through shared memory. (Messages that the
 * kernel copies, as with Open MPI's single-copy mechanism, leave no such trace: run
 * with --mca btl_vader_single_copy_mechanism none.) ROUNDS/100 MPI barriers per rank.
 * `in` and `out` are exclusive to their process. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static long out[512], in[512];

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  long rounds = argc > 1 ? atol(argv[1]) : 2000;
  int words = argc > 2 ? atoi(argv[2]) : 512;
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (words < 1 || words > 512) MPI_Abort(MPI_COMM_WORLD, 2);
  long wrong = 0;
  int next = (rank + 1) % size, before = (rank + size - 1) % size;
  for (long round = 0; round < rounds; round++) {
    for (int k = 0; k < words; k++) out[k] = round * size + rank + k;
    MPI_Sendrecv(out, words, MPI_LONG, next, 0, in, words, MPI_LONG, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int k = 0; k < words; k++) wrong += in[k] != round * size + before + k;
    if (round % 100 == 99) MPI_Barrier(MPI_COMM_WORLD);
  }
  long all = 0;
  MPI_Reduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("mpi_ring: %d ranks, %s\n", size, all ? "WRONG" : "correct");
  MPI_Finalize();
  return wrong != 0;
}
