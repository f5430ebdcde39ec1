/* Jacobi on a plane cut into strips: only the first and last row of a strip need the neighbours' rows. */
#include <mpi.h>
#include <stdio.h>

#define ROWS 40
#define COLUMNS 60

static double u[ROWS + 2][COLUMNS + 2], v[ROWS + 2][COLUMNS + 2];

int main(int argc, char **argv) {
  int rank, size, up, down, i, j, step;
  double sum = 0.0;
  MPI_Request requests[4];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  up = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
  for (i = 0; i < ROWS + 2; i++)
    for (j = 0; j < COLUMNS + 2; j++) u[i][j] = (i * 5 + j * 3 + rank) % 31;
  for (step = 0; step < 4; step++) {
    MPI_Irecv(&u[0][1], COLUMNS, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&u[ROWS + 1][1], COLUMNS, MPI_DOUBLE, down, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(&u[1][1], COLUMNS, MPI_DOUBLE, up, 2, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(&u[ROWS][1], COLUMNS, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE); /* overlap: split-loop */
    for (i = 1; i <= ROWS; i++)
      for (j = 1; j <= COLUMNS; j++) v[i][j] = 0.25 * (u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1]);
    for (i = 1; i <= ROWS; i++)
      for (j = 1; j <= COLUMNS; j++) u[i][j] = v[i][j];
  }
  for (i = 0; i < ROWS + 2; i++)
    for (j = 0; j < COLUMNS + 2; j++) sum += u[i][j] * (i + 2 * j);
  printf("%d: %a\n", rank, sum);
  MPI_Finalize();
  return 0;
}
