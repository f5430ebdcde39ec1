/* A long computation between start and end of a transfer: MPI gets a chance to move it along. */
#include <mpi.h>
#include <stdio.h>

#define N 20000

static double out[N], in[N], a[N];

int main(int argc, char **argv) {
  int rank, size;
  double sum = 0.0;
  MPI_Request requests[2];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < N; i++) {
    out[i] = i + rank;
    a[i] = (i * 3) % 47;
  }
  MPI_Irecv(in, N, MPI_DOUBLE, (rank + size - 1) % size, 0, MPI_COMM_WORLD, &requests[0]); /* overlap: progress-calls */
  MPI_Isend(out, N, MPI_DOUBLE, (rank + 1) % size, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (int sweep = 0; sweep < 200; sweep++)
    for (int i = 1; i < N; i++) a[i] = 0.5 * a[i] + 0.25 * a[i - 1] + 0.01 * sweep;
  for (int i = 0; i < N; i++) sum += a[i] + in[i];
  printf("%d: %a\n", rank, sum);
  MPI_Finalize();
  return 0;
}
