/* What a call sends is packed anew only by the next call: the send may last until then. */
#include <mpi.h>
#include <stdio.h>

#define N 3000

static double buffer[N], state[N];
static int rank, size;

static void publish(void) {
  for (int i = 0; i < N; i++) buffer[i] = 0.5 * state[i];
  if (rank > 0) MPI_Send(buffer, N, MPI_DOUBLE, 0, 4, MPI_COMM_WORLD); /* overlap: nonblocking */
}

static void collect(double *total) {
  static double theirs[N];
  for (int r = 1; r < size; r++) {
    MPI_Recv(theirs, N, MPI_DOUBLE, r, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < N; i++) *total += theirs[i];
  }
}

int main(int argc, char **argv) {
  double total = 0.0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < N; i++) state[i] = (i * 3 + rank) % 71;
  for (int step = 0; step < 5; step++) {
    publish();
    if (rank == 0) collect(&total);
    for (int i = 1; i < N; i++) state[i] = 0.5 * state[i] + 0.25 * state[i - 1] + step;
  }
  printf("%d: %a %a\n", rank, total, state[N - 1]);
  MPI_Finalize();
  return 0;
}
