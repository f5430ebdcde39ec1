/* Rank 0 and the others meet in the broadcast at different places, one of which must stay as it is. */
#include <mpi.h>
#include <stdio.h>

#define N 2000

static double theirs[N], mine[N], work[N];

static void touch(void) {
  for (int i = 0; i < N; i++) work[i] += theirs[i];
}

static void (*volatile between)(void) = touch;

int main(int argc, char **argv) {
  int rank;
  double sum = 0.0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < N; i++) mine[i] = (i * 3 + rank) % 17;
  for (int step = 0; step < 3; step++) {
    if (rank == 0) {
      for (int i = 0; i < N; i++) theirs[i] = mine[i] + step;
      MPI_Bcast(theirs, N, MPI_DOUBLE, 0, MPI_COMM_WORLD); /* left: its counterpart must stay blocking */
      for (int i = 1; i < N; i++) work[i] = 0.5 * work[i - 1] + 0.25 * i;
    } else {
      between();
      MPI_Bcast(theirs, N, MPI_DOUBLE, 0, MPI_COMM_WORLD); /* left: unknown calls on both sides */
      between();
    }
    for (int i = 0; i < N; i++) mine[i] = 0.5 * theirs[i] + work[i];
  }
  for (int i = 0; i < N; i++) sum += mine[i] + work[i];
  printf("%d: %a\n", rank, sum);
  MPI_Finalize();
  return 0;
}
