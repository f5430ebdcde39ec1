#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* heap buffers freed and realloced right after the call */
static void pass_on(double *x, int n, int next, int prev) {
  double *out = malloc(n * sizeof *out), *in = malloc(n * sizeof *in);
  for (int i = 0; i < n; i++) out[i] = x[i] * 1.25;
  MPI_Request r;
  MPI_Irecv(in, n, MPI_DOUBLE, prev, 9, MPI_COMM_WORLD, &r);
  MPI_Send(out, n, MPI_DOUBLE, next, 9, MPI_COMM_WORLD);
  free(out);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  for (int i = 0; i < n; i++) x[i] = 0.5 * x[i] + in[i];
  free(in);
}
int main(int argc, char **argv) {
  int rank, size; MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank); MPI_Comm_size(MPI_COMM_WORLD, &size);
  int next = (rank + 1) % size, prev = (rank + size - 1) % size;
  int n = 300; double *x = malloc(n * sizeof *x); double w[500];
  for (int i = 0; i < 500; i++) w[i] = i;
  for (int i = 0; i < n; i++) x[i] = i + rank;
  for (int it = 0; it < 5; it++) {
    pass_on(x, n, next, prev);
    for (int i = 0; i < 500; i++) w[i] = w[i] * 0.5 + i;
    double *in = malloc(n * sizeof *in);
    MPI_Sendrecv(x, n, MPI_DOUBLE, next, 2, in, n, MPI_DOUBLE, prev, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    x = realloc(x, (n + 50) * sizeof *x);
    for (int i = 0; i < 50; i++) x[n + i] = w[i];
    for (int i = 0; i < n; i++) x[i] += in[n - 1 - i];
    free(in);
    n += 50;
  }
  double h = 0; for (int i = 0; i < n; i++) h = 0.5 * h + x[i]; printf("%d %a\n", n, h);
  free(x); MPI_Finalize(); return 0;
}
