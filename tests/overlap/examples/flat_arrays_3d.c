/* Cubes in flat arrays, with lengths of rows in variables of their own; whole planes travel. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  int rank, size;
  double sum = 0.0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int nx = argc > 1 ? atoi(argv[1]) : 12, ny = argc > 2 ? atoi(argv[2]) : 10, nz = argc > 3 ? atoi(argv[3]) : 14;
  const int row = nx + 2, rows = ny + 2;
  int below = rank > 0 ? rank - 1 : MPI_PROC_NULL, above = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
  double *u = (double *)malloc(sizeof(double) * row * rows * (nz + 2));
  double *v = (double *)malloc(sizeof(double) * row * rows * (nz + 2));
  for (int i = 0; i < row * rows * (nz + 2); i++) v[i] = u[i] = (i * 5 + rank) % 31;
  for (int step = 0; step < 4; step++) {
    MPI_Sendrecv(&u[row * rows], row * rows, MPI_DOUBLE, below, 1, /* overlap: split-loop */
                 &u[(nz + 1) * row * rows], row * rows, MPI_DOUBLE, above, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&u[nz * row * rows], row * rows, MPI_DOUBLE, above, 2,
                 u, row * rows, MPI_DOUBLE, below, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int k = 1; k <= nz; k++)
      for (int j = 1; j <= ny; j++)
        for (int i = 1; i <= nx; i++) {
          long at = (k * rows + j) * row + i;
          v[at] = (u[at - 1] + u[at + 1] + u[at - row] + u[at + row] + u[at - row * rows] + u[at + row * rows]) / 6;
        }
    for (int k = 1; k <= nz; k++)
      for (int j = 1; j <= ny; j++)
        for (int i = 1; i <= nx; i++) u[(k * rows + j) * row + i] = v[(k * rows + j) * row + i];
  }
  for (int i = 0; i < row * rows * (nz + 2); i++) sum += u[i] * (i % 7);
  printf("%d: %a\n", rank, sum);
  free(u);
  free(v);
  MPI_Finalize();
  return 0;
}
