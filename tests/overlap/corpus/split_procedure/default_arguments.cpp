// A function with default arguments that could be divided but for them: its halves' declarations would give them twice.
#include <mpi.h>
#include <stdio.h>

#define N 3000

static double a[N], b[N], low[N], c[N], own[N];
static int next, previous;

static void swap(int tag = 31, double f = 0.5) {
  MPI_Sendrecv(a, N, MPI_DOUBLE, next, tag, low, N, MPI_DOUBLE, previous, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < N; i++) own[i] = 0.5 * own[i] + i;
  for (int i = 0; i < N; i++) c[i] = f * c[i] + low[i];
}

static void work(double f) {
  for (int i = 0; i < N; i++) b[i] = f * b[i] + i;
}

int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  next = (rank + 1) % size;
  previous = (rank + size - 1) % size;
  for (int i = 0; i < N; i++) a[i] = i % 11 + rank;
  for (int step = 0; step < 3; step++) {
    swap();
    work(0.5);
  }
  double sum = 0;
  for (int i = 0; i < N; i++) sum = 0.5 * sum + b[i] + c[i] + own[i];
  printf("%a\n", sum);
  MPI_Finalize();
  return 0;
}
