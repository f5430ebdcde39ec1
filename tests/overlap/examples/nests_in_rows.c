/* Several loops in each row, of which the next takes what the one before makes. */
#include <mpi.h>
#include <stdio.h>

#define ROWS 12
#define MOST 30

static double u[ROWS][MOST + 2], f[ROWS][MOST + 2], r[ROWS][MOST + 2];
static int n, first, last, rank, size, left, right;

static void advance(void) {
  MPI_Request requests[2];
  static double in[ROWS], out[ROWS];
  for (int k = 0; k < ROWS; k++) out[k] = u[k][n];
  MPI_Irecv(in, ROWS, MPI_DOUBLE, left, 5, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(out, ROWS, MPI_DOUBLE, right, 5, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE); /* overlap: split-loop */
  for (int k = 0; k < ROWS; k++) u[k][0] = in[k];
  for (int j = 0; j < ROWS; j++) {
    for (int i = 1; i <= n; i++) f[j][i] = 0.5 * u[j][i] + 0.25 * u[j][i - 1];
    for (int i = first; i <= last; i++) {
      double slope = f[j][i] - f[j][i - 1];
      r[j][i] = 0.5 * r[j][i] + slope;
    }
    for (int i = first; i < n; i++) r[j][i] += 0.0625 * u[j][i + 1];
  }
}

int main(int argc, char **argv) {
  double sum = 0.0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  n = MOST - 2 * rank;
  first = rank == 0 ? 2 : 1;
  last = rank == size - 1 ? n - 1 : n;
  left = (rank + size - 1) % size;
  right = (rank + 1) % size;
  for (int j = 0; j < ROWS; j++)
    for (int i = 0; i < MOST + 2; i++) u[j][i] = (3 * i + 5 * j + rank) % 13;
  for (int step = 0; step < 4; step++) {
    advance();
    for (int j = 0; j < ROWS; j++)
      for (int i = first; i <= last; i++) u[j][i] = 0.5 * u[j][i] + 0.25 * r[j][i];
  }
  for (int j = 0; j < ROWS; j++)
    for (int i = 1; i <= n; i++) sum += u[j][i];
  printf("%d: %a\n", rank, sum);
  MPI_Finalize();
  return 0;
}
