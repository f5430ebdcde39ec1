/* Every collective that moves parts: each one's result is needed only after some work. */
#include <mpi.h>
#include <stdio.h>

#define N 1024
#define RANKS 8

static int part[N], whole[N * RANKS], piece[N], table[N * RANKS], swapped[N * RANKS], work[N];
static int counts[RANKS], starts[RANKS], given[RANKS], given_at[RANKS];

static void keep_busy(int by) {
  for (int i = 1; i < N; i++) work[i] = (work[i] * 5 + work[i - 1] + by) % 9973;
}

static int checksum(const int *x, int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) sum = (sum * 31 + x[i]) % 9973;
  return sum;
}

int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < N; i++) part[i] = i * 3 + rank;
  for (int r = 0; r < size; r++) {
    counts[r] = 5 + r;
    starts[r] = 20 * r;
    given[r] = 5 + rank;
    given_at[r] = 20 * r;
  }

  MPI_Gather(part, N, MPI_INT, whole, N, MPI_INT, 0, MPI_COMM_WORLD); /* overlap: nonblocking */
  keep_busy(1);
  if (rank == 0) printf("%d\n", checksum(whole, N * size));

  MPI_Scatter(whole, N, MPI_INT, piece, N, MPI_INT, 0, MPI_COMM_WORLD); /* overlap: nonblocking */
  keep_busy(2);
  printf("%d\n", checksum(piece, N));

  MPI_Allgather(piece, N, MPI_INT, table, N, MPI_INT, MPI_COMM_WORLD); /* overlap: nonblocking */
  keep_busy(3);
  printf("%d\n", checksum(table, N * size));

  MPI_Alltoall(table, N / RANKS, MPI_INT, swapped, N / RANKS, MPI_INT, MPI_COMM_WORLD); /* overlap: nonblocking */
  keep_busy(4);
  printf("%d\n", checksum(swapped, N));

  /* overlap: nonblocking */
  MPI_Gatherv(part, counts[rank], MPI_INT, whole, counts, starts, MPI_INT, 0, MPI_COMM_WORLD);
  keep_busy(5);
  if (rank == 0) printf("%d\n", checksum(whole, N * size));

  /* overlap: nonblocking */
  MPI_Scatterv(whole, counts, starts, MPI_INT, piece, counts[rank], MPI_INT, 0, MPI_COMM_WORLD);
  keep_busy(6);
  printf("%d\n", checksum(piece, N));

  /* overlap: nonblocking */
  MPI_Allgatherv(piece, counts[rank], MPI_INT, table, counts, starts, MPI_INT, MPI_COMM_WORLD);
  keep_busy(7);
  printf("%d\n", checksum(table, N * size));

  /* overlap: nonblocking */
  MPI_Alltoallv(table, given, given_at, MPI_INT, swapped, counts, starts, MPI_INT, MPI_COMM_WORLD);
  keep_busy(8);
  printf("%d %d\n", checksum(swapped, N * size), checksum(work, N));
  MPI_Finalize();
  return 0;
}
