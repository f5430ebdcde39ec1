/* Two fields are exchanged through one pair of buffers, one field after the other. */
#include <mpi.h>
#include <stdio.h>

#define N 1500

static double pressure[N + 1], density[N + 1], out[N], in[N], work[N + 1];
static int next, previous;

static void exchange(int tag, double *field) {
  MPI_Request request;
  MPI_Irecv(in, N, MPI_DOUBLE, previous, tag, MPI_COMM_WORLD, &request);
  for (int i = 0; i < N; i++) out[i] = field[i];
  MPI_Send(out, N, MPI_DOUBLE, next, tag, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < N; i++) field[i] = 0.5 * field[i] + 0.5 * in[i];
}

int main(int argc, char **argv) {
  int rank, size;
  double sum = 0.0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  next = (rank + 1) % size;
  previous = (rank + size - 1) % size;
  for (int i = 0; i <= N; i++) {
    pressure[i] = (i * 7 + rank) % 43;
    density[i] = (i * 3 + rank) % 19;
  }
  for (int step = 0; step < 3; step++) {
    exchange(10, pressure);
    exchange(20, density);
    for (int i = 1; i < N; i++) work[i] = 0.5 * work[i - 1] + 0.125 * i;
    for (int i = 0; i < N; i++) pressure[i] += 0.01 * work[i] + 0.5 * density[i];
  }
  for (int i = 0; i < N; i++) sum += pressure[i] - density[i];
  printf("%d: %a\n", rank, sum);
  MPI_Finalize();
  return 0;
}
