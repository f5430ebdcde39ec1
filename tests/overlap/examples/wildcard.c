/* The first message that comes is taken: who sent it depends on when it is asked for. */
#include <mpi.h>
#include <stdio.h>

#define N 2000

static double theirs[N], mine[N], work[N];
static double sums[N];

int main(int argc, char **argv) {
  int rank, size;
  double sum = 0.0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < N; i++) mine[i] = (i * 3 + rank) % 17;
  for (int step = 0; step < 3; step++) {
    if (rank == 0) {
      for (int r = 1; r < size; r++) {
        for (int i = 1; i < N; i++) work[i] = 0.5 * work[i - 1] + 0.25 * i;
        /* left: a receive from anybody */
        MPI_Recv(theirs, N, MPI_DOUBLE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < N; i++) sums[i] += theirs[i];
      }
    } else {
      MPI_Send(mine, N, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < N; i++) mine[i] = 0.5 * mine[i] + 0.25 * sums[i];
  }
  for (int i = 0; i < N; i++) sum += mine[i] + work[i];
  printf("%d: %a\n", rank, sum);
  MPI_Finalize();
  return 0;
}
