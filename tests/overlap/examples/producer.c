/* The sweep makes the rows that are sent: they are computed first, the others while they travel. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define COLUMNS 24

static double u[64][COLUMNS], v[64][COLUMNS];
static int rows;

static void share(int up, int down) {
  MPI_Status status;
  /* overlap: split-producer */
  MPI_Sendrecv(u[1], COLUMNS, MPI_DOUBLE, up, 1, u[rows + 1], COLUMNS, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &status);
  MPI_Sendrecv(u[rows], COLUMNS, MPI_DOUBLE, down, 2, u[0], COLUMNS, MPI_DOUBLE, up, 2, MPI_COMM_WORLD, &status);
}

int main(int argc, char **argv) {
  int rank, size, step, i, j;
  double sum = 0.0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
  rows = 20 + argc;
  for (i = 0; i <= rows + 1; i++)
    for (j = 0; j < COLUMNS; j++) v[i][j] = u[i][j] = (i * 7 + j * 11 + rank) % 37;
  for (step = 0; step < 5; step++) {
    for (i = 1; i <= rows; i++)
      for (j = 0; j < COLUMNS; j++) u[i][j] += 0.25 * v[i][j];
    share(up, down);
    for (i = 1; i <= rows; i++)
      for (j = 0; j < COLUMNS; j++) v[i][j] = u[i - 1][j] - 2.0 * u[i][j] + u[i + 1][j];
  }
  for (i = 0; i <= rows + 1; i++)
    for (j = 0; j < COLUMNS; j++) sum += u[i][j] * (i + 2 * j);
  printf("%d %a\n", rank, sum);
  MPI_Finalize();
  return 0;
}
