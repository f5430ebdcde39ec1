/* Several nests in each plane, of which the next takes what the one before makes. */
#include <mpi.h>
#include <stdio.h>

#define ROWS 12
#define MOST 30
#define WIDE 9

static double u[ROWS][MOST + 2][WIDE], f[ROWS][MOST + 2][WIDE], r[ROWS][MOST + 2][WIDE];
static int n, first, last, rank, size, left, right;

static void advance(void) {
  MPI_Request requests[2];
  static double in[ROWS][WIDE], out[ROWS][WIDE];
  for (int k = 0; k < ROWS; k++)
    for (int m = 0; m < WIDE; m++) out[k][m] = u[k][n][m];
  MPI_Irecv(in, ROWS * WIDE, MPI_DOUBLE, left, 5, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(out, ROWS * WIDE, MPI_DOUBLE, right, 5, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE); /* overlap: split-loop */
  for (int k = 0; k < ROWS; k++)
    for (int m = 0; m < WIDE; m++) u[k][0][m] = in[k][m];
  for (int j = 0; j < ROWS; j++) {
    for (int i = 1; i <= n; i++)
      for (int m = 0; m < WIDE; m++) f[j][i][m] = 0.5 * u[j][i][m] + 0.25 * u[j][i - 1][m];
    for (int i = first; i <= last; i++) {
      for (int m = 0; m < WIDE; m++) {
        double slope = f[j][i][m] - f[j][i - 1][m];
        r[j][i][m] = 0.5 * r[j][i][m] + slope;
      }
    }
    for (int i = first; i < n; i++)
      for (int m = 0; m < WIDE; m++) r[j][i][m] += 0.0625 * u[j][i + 1][m];
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
    for (int i = 0; i < MOST + 2; i++)
      for (int m = 0; m < WIDE; m++) u[j][i][m] = (3 * i + 5 * j + 7 * m + rank) % 13;
  for (int step = 0; step < 4; step++) {
    advance();
    for (int j = 0; j < ROWS; j++)
      for (int i = first; i <= last; i++)
        for (int m = 0; m < WIDE; m++) u[j][i][m] = 0.5 * u[j][i][m] + 0.25 * r[j][i][m];
  }
  for (int j = 0; j < ROWS; j++)
    for (int i = 1; i <= n; i++)
      for (int m = 0; m < WIDE; m++) sum += u[j][i][m];
  printf("%d: %a\n", rank, sum);
  MPI_Finalize();
  return 0;
}
