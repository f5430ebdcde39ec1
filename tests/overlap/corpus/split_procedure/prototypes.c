/* A divided procedure whose parameters have types that are declared after the first function. */
#include <mpi.h>
#include <stdio.h>
#define N 400
static double a[N], b[N], c[N]; static int rank, size;
static int first(int x) { return x + 1; }
typedef struct { double *p; int n; } Vec;
struct later { int k; double w[4]; };
enum mode { M1, M2 };
static void work(Vec *v, struct later l, enum mode m, const double *restrict q, double (*cb)(double)) {
  for (int i = 0; i < v->n; i++) v->p[i] = 0.5 * v->p[i] + l.w[1] + m;
  for (int i = 0; i < v->n; i++) b[i] = cb(b[i]) + q[i];
}
static double twice(double x) { return 2 * x; }
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank); MPI_Comm_size(MPI_COMM_WORLD, &size);
  int next = first(rank) % size, prev = (rank + size - 1) % size; Vec v = {c, N}; struct later l = {1, {1, 2, 3, 4}};
  for (int i = 0; i < N; i++) a[i] = i + rank, b[i] = 0, c[i] = i;
  for (int it = 0; it < 5; it++) {
    MPI_Sendrecv(a, N, MPI_DOUBLE, next, 1, b, N, MPI_DOUBLE, prev, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    work(&v, l, M2, a, twice);
    for (int i = 0; i < N; i++) a[i] = 0.5 * b[i] + c[i];
  }
  double h = 0; for (int i = 0; i < N; i++) h = 0.5 * h + a[i] + b[i] + c[i]; printf("%a\n", h);
  MPI_Finalize(); return 0;
}
