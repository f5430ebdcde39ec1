#include <mpi.h>
#include <stdio.h>
#define N 1200
static double a[N], b[N], c[N], d[N], e[N];
static int rank, size, next, prev, step, calls;
static void put(double *x) { double h = 0; int i; for (i = 0; i < N; i++) h = h * 0.5 + x[i] * (1 + i % 7); printf("%a\n", h); }

static double u[62][400], v[62][400];
static int rows = 60, from = 1, to = 60;
static void advance(void) {
  MPI_Request rq[4];
  int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
  int i, j;
  if (rank == 0) from = 2;
  if (rank == size - 1) to = 50;
  for (i = 1; i <= rows; i++)
 for (j = 0; j < 400; j++) u[i][j] = 0.5 * u[i][j] + 0.25 * v[i][j] + j;

  MPI_Irecv(u[0], 400, MPI_DOUBLE, up, 5, MPI_COMM_WORLD, &rq[0]);
  MPI_Irecv(u[rows + 1], 400, MPI_DOUBLE, down, 6, MPI_COMM_WORLD, &rq[1]);
  MPI_Isend(u[rows], 400, MPI_DOUBLE, down, 5, MPI_COMM_WORLD, &rq[2]);
  MPI_Isend(u[1], 400, MPI_DOUBLE, up, 6, MPI_COMM_WORLD, &rq[3]);
  MPI_Waitall(4, rq, MPI_STATUSES_IGNORE);
  calls += i;
for (i = from; i <= to; i++)
 for (j = 0; j < 400; j++) v[i][j] = 0.5 * u[i - 1][j] + 0.25 * u[i + 1][j];

}

int main(int argc, char **argv) {
  int i;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  next = (rank + 1) % size; prev = (rank + size - 1) % size;
  for (i = 0; i < N; i++) { a[i] = i + rank; b[i] = 2 * i; c[i] = 3 * i; d[i] = 4 * i; e[i] = 5 * i; }
  for (step = 1; step <= 3; step++) {
advance();
put(&u[0][0]); put(&v[0][0]);

  }
  put(a); put(b); put(c); put(d); put(e); printf("%d\n", calls);
  MPI_Finalize();
  return 0;
}
