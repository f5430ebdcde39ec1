/* The exchange is a function's; what it could hide behind is its caller's. */
#include <mpi.h>
#include <stdio.h>

#define N 2000

static double u[N + 2], w[N + 2], source[N + 2];
static int left, right;

static void exchange(double *field) {
  /* overlap: nonblocking */
  MPI_Sendrecv(&field[N], 1, MPI_DOUBLE, right, 3, &field[0], 1, MPI_DOUBLE, left, 3, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
}

static void make_sources(int step) {
  for (int i = 1; i <= N; i++) source[i] = 0.5 * source[i - 1] + 0.001 * i * step;
}

static void advance(void) {
  for (int i = 1; i <= N; i++) w[i] = 0.5 * u[i] + 0.5 * u[i - 1] + source[i];
  for (int i = 1; i <= N; i++) u[i] = w[i];
}

int main(int argc, char **argv) {
  int rank, size;
  double sum = 0.0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  left = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  right = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
  for (int i = 0; i < N + 2; i++) u[i] = (i * 7 + rank) % 53;
  for (int step = 1; step <= 4; step++) {
    exchange(u);
    make_sources(step);
    advance();
  }
  for (int i = 0; i < N + 2; i++) sum += u[i] + w[i];
  printf("%d: %a\n", rank, sum);
  MPI_Finalize();
  return 0;
}
