/* The usual pattern: receives are posted, but waited for at once. */
#include <mpi.h>
#include <stdio.h>

#define N 2000

static double mine[N], halo[N], inner[N];

static void exchange(int from, int to) {
  MPI_Request request;
  MPI_Irecv(halo, N, MPI_DOUBLE, from, 2, MPI_COMM_WORLD, &request); /* overlap: wait-later */
  MPI_Send(mine, N, MPI_DOUBLE, to, 2, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 1; i < N - 1; i++) inner[i] = 0.5 * inner[i] + 0.25 * (mine[i - 1] + mine[i + 1]);
  for (int i = 0; i < N; i++) inner[i] += 0.125 * halo[i];
}

int main(int argc, char **argv) {
  int rank, size;
  double sum = 0.0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < N; i++) mine[i] = (i * 17 + rank) % 61;
  for (int step = 0; step < 4; step++) {
    exchange((rank + size - 1) % size, (rank + 1) % size);
    for (int i = 0; i < N; i++) mine[i] = 0.5 * inner[i] + step;
  }
  for (int i = 0; i < N; i++) sum += mine[i];
  printf("%d: %a\n", rank, sum);
  MPI_Finalize();
  return 0;
}
