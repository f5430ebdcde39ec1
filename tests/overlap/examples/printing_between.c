/* Output is no reason to wait: what is printed has nothing to do with the message. */
#include <mpi.h>
#include <stdio.h>

#define N 2000

static double theirs[N], mine[N], work[N];

int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < N; i++) mine[i] = (i * 3 + rank) % 17;
  for (int step = 0; step < 3; step++) {
    /* overlap: nonblocking */
    MPI_Sendrecv(mine, N, MPI_DOUBLE, (rank + 1) % size, 0, theirs, N, MPI_DOUBLE, (rank + size - 1) % size, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 1; i < N; i++) work[i] = 0.5 * work[i - 1] + i;
    printf("%d: %a\n", step, work[N - 1]);
    for (int i = 0; i < N; i++) mine[i] = 0.5 * theirs[i] + work[i];
  }
  printf("%a\n", mine[N / 3]);
  MPI_Finalize();
  return 0;
}
