/* A loop over cells does two things to each, of which only one needs what comes: each of them gets a loop of its own. */
#include <mpi.h>
#include <stdio.h>

#define CELLS 12
#define N 200

static double mine[CELLS][N], theirs[CELLS][N], sum[CELLS][N], own[CELLS][N];

int main(int argc, char **argv) {
  int rank, size, next, previous;
  double total = 0.0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  next = (rank + 1) % size;
  previous = (rank + size - 1) % size;
  for (int c = 0; c < CELLS; c++)
    for (int i = 0; i < N; i++) mine[c][i] = (i * 3 + c + rank) % 17;
  for (int step = 0; step < 3; step++) {
    /* overlap: split-loop */
    MPI_Sendrecv(mine, CELLS * N, MPI_DOUBLE, next, 0, theirs, CELLS * N, MPI_DOUBLE, previous, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (int c = 0; c < CELLS; c++) {
      for (int i = 0; i < N; i++) sum[c][i] = mine[c][i] + theirs[c][i];
      for (int i = 0; i < N; i++) own[c][i] = 0.5 * own[c][i] + 0.25 * mine[c][i];
    }
    for (int c = 0; c < CELLS; c++)
      for (int i = 0; i < N; i++) mine[c][i] = 0.5 * sum[c][i] + own[c][i];
  }
  for (int c = 0; c < CELLS; c++)
    for (int i = 0; i < N; i++) total += mine[c][i];
  printf("%d: %a\n", rank, total);
  MPI_Finalize();
  return 0;
}
