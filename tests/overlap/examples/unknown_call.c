/* A function that is reached through a pointer may do anything, to the buffers, too. */
#include <mpi.h>
#include <stdio.h>

#define N 2000

static double theirs[N], mine[N], work[N];

static void touch(void) {
  for (int i = 0; i < N; i++) theirs[i] += 1.0;
}

static void (*volatile between)(void) = touch;

int main(int argc, char **argv) {
  int rank, size, next, previous;
  double sum = 0.0;
  MPI_Request departure;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  next = (rank + 1) % size;
  previous = (rank + size - 1) % size;
  for (int i = 0; i < N; i++) mine[i] = (i * 3 + rank) % 17;
  for (int step = 0; step < 3; step++) {
    between();
    MPI_Isend(mine, N, MPI_DOUBLE, next, 0, MPI_COMM_WORLD, &departure);
    /* left: an unknown call stands next to it on both sides */
    MPI_Recv(theirs, N, MPI_DOUBLE, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&departure, MPI_STATUS_IGNORE);
    between();
    for (int i = 0; i < N; i++) mine[i] = 0.5 * theirs[i] + work[i];
  }
  for (int i = 0; i < N; i++) sum += mine[i] + work[i];
  printf("%d: %a\n", rank, sum);
  MPI_Finalize();
  return 0;
}
