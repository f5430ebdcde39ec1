#include <mpi.h>
#include <stdio.h>
#define N 1200
static double a[N], b[N], c[N], d[N], e[N];
static int rank, size, next, prev, step, calls;
static void put(double *x) { double h = 0; int i; for (i = 0; i < N; i++) h = h * 0.5 + x[i] * (1 + i % 7); printf("%a\n", h); }

static double u[60][22], v[60][22];
static void exchange(double *x, double *y) {
  int i, j;
  MPI_Request rq;
  MPI_Irecv(y, 60, MPI_DOUBLE, prev, 1, MPI_COMM_WORLD, &rq);
  MPI_Send(x, 60, MPI_DOUBLE, next, 1, MPI_COMM_WORLD);
  MPI_Wait(&rq, MPI_STATUS_IGNORE);
  for (j = 0; j < 60; j++)
    u[j][0] = y[j];
  for (j = 0; j < 60; j++) {
    for (i = 1; i <= 20; i++)
      u[j][i] = 0.5 * u[j][i] + i;
    for (i = 0; i <= 20; i++)
      v[j][i] = 0.5 * v[j][i] + 0.25 * u[j][i];
  }
}

int main(int argc, char **argv) {
  int i;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  next = (rank + 1) % size; prev = (rank + size - 1) % size;
  for (i = 0; i < N; i++) { a[i] = i + rank; b[i] = 2 * i; c[i] = 3 * i; d[i] = 4 * i; e[i] = 5 * i; }
  for (step = 1; step <= 3; step++) {
for (i = 0; i < N; i++) d[i] = 0.5 * d[i] + e[i];
for (i = 0; i < N; i++) e[i] = 0.5 * d[i] + c[i];
exchange(a, b);
put(&u[0][0]); put(&v[0][0]);

  }
  put(a); put(b); put(c); put(d); put(e); printf("%d\n", calls);
  MPI_Finalize();
  return 0;
}
