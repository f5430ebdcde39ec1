/* The condition of the receive does not hold any more where its data are used. */
#include <mpi.h>
#include <stdio.h>

#define N 2000

static double theirs[N], mine[N], work[N];

int main(int argc, char **argv) {
  int rank, size, next, previous;
  double sum = 0.0;
  MPI_Request request, arrival;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  next = (rank + 1) % size;
  previous = (rank + size - 1) % size;
  for (int i = 0; i < N; i++) mine[i] = (i * 3 + rank) % 17;
  for (int step = 0; step < 3; step++) {
    int odd = step % 2;
    if (odd) {
      MPI_Isend(mine, N, MPI_DOUBLE, next, 0, MPI_COMM_WORLD, &request);
      MPI_Irecv(theirs, N, MPI_DOUBLE, previous, 0, MPI_COMM_WORLD, &arrival);
      MPI_Wait(&arrival, MPI_STATUS_IGNORE);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    odd = rank % 2;
    if (odd) {
      for (int i = 0; i < N; i++) work[i] = 0.5 * theirs[i];
    }
    for (int i = 1; i < N; i++) mine[i] = 0.5 * mine[i] + 0.25 * work[i - 1];
  }
  for (int i = 0; i < N; i++) sum += mine[i] + work[i];
  printf("%d: %a\n", rank, sum);
  MPI_Finalize();
  return 0;
}
