#include <mpi.h>
#include <stdio.h>
#define N 1200
static double a[N], b[N], c[N], d[N], e[N];
static int rank, size, next, prev, step, calls;
static void put(double *x) { double h = 0; int i; for (i = 0; i < N; i++) h = h * 0.5 + x[i] * (1 + i % 7); printf("%a\n", h); }

int main(int argc, char **argv) {
  int i;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  next = (rank + 1) % size; prev = (rank + size - 1) % size;
  for (i = 0; i < N; i++) { a[i] = i + rank; b[i] = 2 * i; c[i] = 3 * i; d[i] = 4 * i; e[i] = 5 * i; }
  for (step = 1; step <= 3; step++) {
MPI_Sendrecv(a, N, MPI_DOUBLE, next, 1, b, N, MPI_DOUBLE, prev, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
for (i = 1; i < N; i++) { a[i % 2] = c[i] * 0.5; d[i] = a[1 - i % 2] + d[i]; e[i] = b[i]; }

  }
  put(a); put(b); put(c); put(d); put(e); printf("%d\n", calls);
  MPI_Finalize();
  return 0;
}
