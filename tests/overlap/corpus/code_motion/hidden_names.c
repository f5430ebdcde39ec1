#include <mpi.h>
#include <stdio.h>
#define N 400
/* names hidden by inner declarations; loops whose variable is reused; initialisers with effects */
static double a[N], b[N], c[N], d[N]; static int n = N, cnt;
static int bump(void) { return cnt++; }
int main(int argc, char **argv) {
  int rank, size, i; MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank); MPI_Comm_size(MPI_COMM_WORLD, &size);
  int next = (rank + 1) % size, prev = (rank + size - 1) % size;
  for (i = 0; i < N; i++) a[i] = i + rank, b[i] = 0, c[i] = i, d[i] = 2;
  for (int it = 0; it < 5; it++) {
    double *x = it % 2 ? a : d;
    MPI_Sendrecv(x, n, MPI_DOUBLE, next, 1, b, n, MPI_DOUBLE, prev, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    { int n = 100 + bump(); double *b = c; for (int i = 0; i < n; i++) b[i] = 0.5 * b[i] + n; }
    { double c[N]; for (int i = 0; i < N; i++) c[i] = i * it; for (int i = 0; i < N; i++) d[i] = 0.5 * d[i] + c[N - 1 - i]; }
    int m = bump(); for (i = 0; i < N && i < 350 + m; i++) c[i] += 0.25 * d[i];
    int last = i;
    for (i = 0; i < last; i++) a[i] = 0.5 * b[i] + c[i];
    c[0] += i + m; double b2 = b[3], *y = &b2; *y += 1; a[1] += b2;
    MPI_Sendrecv(a, n, MPI_DOUBLE, next, 1, b, n, MPI_DOUBLE, prev, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int k; for (k = 0; k < N; k++) c[k] = 0.5 * c[k];
    while (k-- > 300) c[k] += 1;
    a[5] += k; a[6] += b[k + 1];
    n = N - it;
  }
  double h = cnt; for (i = 0; i < N; i++) h = 0.5 * h + a[i] + b[i] + c[i] + d[i]; printf("%a\n", h);
  MPI_Finalize(); return 0;
}
