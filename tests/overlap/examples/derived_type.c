/* Every third element is sent and received; those between are the program's own. */
#include <mpi.h>
#include <stdio.h>

#define N 2000

static double theirs[N], mine[N], work[N];

int main(int argc, char **argv) {
  int rank, size, next, previous;
  double sum = 0.0;
  MPI_Datatype third;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Type_vector(N / 3, 1, 3, MPI_DOUBLE, &third);
  MPI_Type_commit(&third);
  next = (rank + 1) % size;
  previous = (rank + size - 1) % size;
  for (int i = 0; i < N; i++) mine[i] = (i * 3 + rank) % 17;
  for (int step = 0; step < 3; step++) {
    /* left: a datatype with gaps */
    MPI_Sendrecv(mine, 1, third, next, 0, theirs, 1, third, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 1; i < N; i++) theirs[i] += 0.25 * theirs[i - 1];
    for (int i = 1; i < N; i++) work[i] = 0.5 * work[i - 1] + 0.25 * i;
    for (int i = 0; i < N; i++) mine[i] = 0.5 * theirs[i] + work[i];
  }
  for (int i = 0; i < N; i++) sum += mine[i] + work[i];
  MPI_Type_free(&third);
  printf("%d: %a\n", rank, sum);
  MPI_Finalize();
  return 0;
}
