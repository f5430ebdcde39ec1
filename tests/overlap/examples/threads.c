/* Other threads run while this one communicates. */
#include <mpi.h>
#include <stdio.h>

#define N 2000

static double theirs[N], mine[N], work[N];

int main(int argc, char **argv) {
  int rank, size, next, previous;
  int provided;
  double sum = 0.0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  next = (rank + 1) % size;
  previous = (rank + size - 1) % size;
  for (int i = 0; i < N; i++) mine[i] = (i * 3 + rank) % 17;
  for (int step = 0; step < 3; step++) {
#pragma omp parallel for
    for (int i = 0; i < N; i++) work[i] = 0.5 * mine[i] + i;
#pragma omp parallel
    {
#pragma omp master
      {
        /* left: in a parallel region */
        MPI_Sendrecv(mine, N, MPI_DOUBLE, next, 0, theirs, N, MPI_DOUBLE, previous, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
      }
#pragma omp barrier
#pragma omp for
      for (int i = 0; i < N; i++) work[i] += theirs[i];
    }
    for (int i = 0; i < N; i++) mine[i] = 0.5 * work[i];
  }
  for (int i = 0; i < N; i++) sum += mine[i] + work[i];
  printf("%d: %a\n", rank, sum);
  MPI_Finalize();
  return 0;
}
