/* The time of the exchange alone is measured: moving work into it would falsify what the program reports. */
#include <mpi.h>
#include <stdio.h>

#define N 2000

static double theirs[N], mine[N], work[N];

int main(int argc, char **argv) {
  int rank, size, next, previous;
  double sum = 0.0;
  MPI_Request departure;
  double seconds = 0.0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  next = (rank + 1) % size;
  previous = (rank + size - 1) % size;
  for (int i = 0; i < N; i++) mine[i] = (i * 3 + rank) % 17;
  for (int step = 0; step < 3; step++) {
    double start = MPI_Wtime();
    MPI_Isend(mine, N, MPI_DOUBLE, next, 0, MPI_COMM_WORLD, &departure);
    /* overlap: nonblocking */
    MPI_Recv(theirs, N, MPI_DOUBLE, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&departure, MPI_STATUS_IGNORE);
    seconds += MPI_Wtime() - start;
    for (int i = 1; i < N; i++) work[i] = 0.5 * work[i - 1] + 0.25 * i;
    for (int i = 0; i < N; i++) mine[i] = 0.5 * theirs[i] + work[i];
  }
  for (int i = 0; i < N; i++) sum += mine[i] + work[i];
  printf("%d: %a %d\n", rank, sum, seconds >= 0.0);
  MPI_Finalize();
  return 0;
}
