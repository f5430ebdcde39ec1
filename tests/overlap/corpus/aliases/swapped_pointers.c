#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#define N 600
/* buffers aliased through pointers that swap, restrict on locals */
static double pool[4 * N], own[N];
static double *cur = pool, *old = pool + N, *in = pool + 2 * N;
static void swap(double **a, double **b) { double *t = *a; *a = *b; *b = t; }
static void smooth(double *restrict y, const double *restrict x) { for (int i = 1; i < N - 1; i++) y[i] = 0.5 * x[i] + 0.25 * (x[i - 1] + x[i + 1]); }
int main(int argc, char **argv) {
  int rank, size; MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank); MPI_Comm_size(MPI_COMM_WORLD, &size);
  int next = (rank + 1) % size, prev = (rank + size - 1) % size;
  for (int i = 0; i < 4 * N; i++) pool[i] = rank + i % 13;
  double *alias = pool + 2 * N + 5;
  for (int it = 0; it < 6; it++) {
    MPI_Sendrecv(cur, N, MPI_DOUBLE, next, 3, in, N, MPI_DOUBLE, prev, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < N; i++) own[i] = 0.5 * own[i] + it * i;
    smooth(old, cur);
    double s = 0; for (int i = 0; i < 10; i++) s += alias[i] * (i + 1);
    old[0] += s * 0.001; old[N - 1] = pool[(it % 3) * N + N - 1];
    swap(&cur, &old);
    if (it % 2) swap(&old, &in);
    alias = in + it;
  }
  double h = 0; for (int i = 0; i < 4 * N; i++) h = h * 0.5 + pool[i] * (i % 7) + own[i % N]; printf("%a\n", h);
  MPI_Finalize(); return 0;
}
