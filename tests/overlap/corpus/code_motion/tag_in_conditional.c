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
int tag;
if (rank == step % 2) { tag = rank + 1; MPI_Send(d, 4, MPI_DOUBLE, MPI_PROC_NULL, tag, MPI_COMM_WORLD); }
if (size > 1) {
  tag = 2010;
  if (rank + 1 == size) MPI_Send(a, 4, MPI_DOUBLE, 0, tag, MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Recv(b, 4, MPI_DOUBLE, size - 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    c[0] = b[0] + tag;
  }
}

  }
  put(a); put(b); put(c); put(d); put(e); printf("%d\n", calls);
  MPI_Finalize();
  return 0;
}
