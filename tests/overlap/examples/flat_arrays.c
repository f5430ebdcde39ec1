/* Planes in flat arrays of a size that is known at run time only, exchanged and worked on in functions; the arrays change places. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define AT(i, j) ((i) * (columns + 2) + (j))

static int up, down;

static double *plane(int elements) {
  double *made = malloc(elements * sizeof *made);
  if (made == NULL) {
    fprintf(stderr, "no memory\n");
    exit(1);
  }
  return made;
}

static void exchange(double *u, int rows, int columns) {
  MPI_Request requests[4];
  MPI_Irecv(&u[AT(0, 1)], columns, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(&u[AT(rows + 1, 1)], columns, MPI_DOUBLE, down, 2, MPI_COMM_WORLD, &requests[1]);
  MPI_Isend(&u[AT(1, 1)], columns, MPI_DOUBLE, up, 2, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(u + AT(rows, 1), columns, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE); /* overlap: split-loop */
}

static void relax(double *v, const double *u, int rows, int columns) {
  for (int i = 1; i <= rows; i++)
    for (int j = 1; j <= columns; j++)
      v[AT(i, j)] = 0.25 * (u[AT(i - 1, j)] + u[AT(i + 1, j)] + u[AT(i, j - 1)] + u[AT(i, j + 1)]);
}

int main(int argc, char **argv) {
  int rank, size, rows = 40, columns = 60;
  double sum = 0.0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc > 1) rows = atoi(argv[1]);
  if (argc > 2) columns = atoi(argv[2]);
  up = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
  double *u = plane((rows + 2) * (columns + 2)), *v = plane((rows + 2) * (columns + 2));
  for (int i = 0; i < (rows + 2) * (columns + 2); i++) v[i] = u[i] = (i * 5 + rank) % 31;
  for (int step = 0; step < 4; step++) {
    exchange(u, rows, columns);
    relax(v, u, rows, columns);
    double *old = u;
    u = v;
    v = old;
  }
  for (int i = 1; i <= rows; i++)
    for (int j = 1; j <= columns; j++) sum += u[AT(i, j)];
  printf("%d: %a\n", rank, sum);
  free(u);
  free(v);
  MPI_Finalize();
  return 0;
}
