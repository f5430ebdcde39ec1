/* Arguments that macros put together, with casts: what is written elsewhere must mean the same, or stay. */
#include <mpi.h>
#include <stdio.h>

#define N 300
#define BYTES(p, off) ((char *)(p) + (off))
#define EXCHANGE(p, q, off) MPI_Sendrecv(BYTES(p, off), (unsigned char)(256 + 80) * 8, MPI_BYTE, next, 3, \
    (char *)(q) + (off), (unsigned char)(256 + 80) * 8, MPI_BYTE, prev, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
#define TOTAL(x) MPI_Allreduce(MPI_IN_PLACE, &(x), 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD)
#define RING(x, y) MPI_Sendrecv(x, N, MPI_DOUBLE, next, 4, y, N, MPI_DOUBLE, prev, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE)

static double a[N], b[N], c[N], d[N];

int main(int argc, char **argv) {
  int rank, size, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int next = (rank + 1) % size, prev = (rank + size - 1) % size;
  for (int i = 0; i < N; i++) a[i] = i + rank, b[i] = c[i] = d[i] = i;
  sum = rank;
  for (int it = 0; it < 3; it++) {
    EXCHANGE(a, b, 8 * 10);
    for (int i = 0; i < N; i++) d[i] = 0.5 * d[i] + i;
    for (int i = 0; i < N; i++) c[i] = 0.5 * b[i] + d[i];
    RING(c, a);
    for (int i = 0; i < N; i++) d[i] = 0.5 * d[i] + i;
    sum = (sum * 3 + it) % 101;
    TOTAL(sum);
    for (int i = 0; i < N; i++) d[i] = 0.5 * d[i] + i;
    a[it] += sum;
  }
  double h = sum;
  for (int i = 0; i < N; i++) h = 0.5 * h + a[i] + b[i] + c[i] + d[i];
  printf("%a\n", h);
  MPI_Finalize();
  return 0;
}
