/* Macros with braces of their own around messages: nothing in them may change, or what is left of them runs twice. */
#include <mpi.h>
#include <stdio.h>

#define N 300
#define SHIFT(s, r, t) { MPI_Request q; MPI_Irecv(r, N, MPI_DOUBLE, prev, t, MPI_COMM_WORLD, &q); \
    MPI_Send(s, N, MPI_DOUBLE, next, t, MPI_COMM_WORLD); MPI_Wait(&q, MPI_STATUS_IGNORE); \
    for (int z = 0; z < N; z++) r[z] += ++turns % 5; }
#define ROTATE(s) do { MPI_Sendrecv(s, N, MPI_DOUBLE, next, 7, e, N, MPI_DOUBLE, prev, 7, MPI_COMM_WORLD, \
    MPI_STATUS_IGNORE); for (int z = 0; z < N; z++) s[z] = e[z] * 0.5 + z; } while (0)

static double a[N], b[N], c[N], d[N], e[N];
static int turns;

static void scale(double *x) { for (int i = 0; i < N; i++) x[i] = 0.5 * x[i] + i; }

int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int next = (rank + 1) % size, prev = (rank + size - 1) % size;
  for (int i = 0; i < N; i++) a[i] = i + rank, b[i] = c[i] = d[i] = i;
  for (int it = 0; it < 4; it++) {
    ROTATE(a);
    scale(d);
    SHIFT(a, b, 4)
    scale(d);
    if (it % 2) ROTATE(b); else SHIFT(d, c, 5)
    scale(d);
    if (it % 2) {
      MPI_Sendrecv(a, N, MPI_DOUBLE, next, 7, c, N, MPI_DOUBLE, prev, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      scale(d);
    } else ROTATE(c);
    for (int i = 0; i < N; i++) a[i] += 0.25 * c[i] + d[i];
  }
  double h = turns;
  for (int i = 0; i < N; i++) h = 0.5 * h + a[i] + b[i] + c[i] + d[i];
  printf("%a\n", h);
  MPI_Finalize();
  return 0;
}
