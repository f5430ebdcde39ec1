/* A worker could have its next parameters on the way while it still computes with its own data. */
#include <mpi.h>
#include <stdio.h>

#define N 5000

static double mine[N], theirs[N], result[N];

static void compute(int round) {
  for (int i = 1; i < N; i++) mine[i] = 0.75 * mine[i] + 0.25 * mine[i - 1] + round;
}

int main(int argc, char **argv) {
  int rank, size, next, previous;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  next = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
  previous = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  for (int i = 0; i < N; i++) {
    mine[i] = i * 0.01 + rank;
    theirs[i] = 1.0;
  }
  for (int round = 0; round < 5; round++) {
    MPI_Send(mine, N, MPI_DOUBLE, next, 1, MPI_COMM_WORLD);
    compute(round);
    /* overlap: nonblocking */
    MPI_Recv(theirs, N, MPI_DOUBLE, previous, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < N; i++) result[i] += theirs[i] * mine[i];
  }
  double sum = 0.0;
  for (int i = 0; i < N; i++) sum += result[i];
  printf("%d: %a\n", rank, sum);
  MPI_Finalize();
  return 0;
}
