/* Coefficients are read by rank 0 and sent to all; only the second half of the step needs them. */
#include <mpi.h>
#include <stdio.h>

#define N 4000

static double coefficient[N], field[N], other[N];

int main(int argc, char **argv) {
  int rank;
  double sum = 0.0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < N; i++) field[i] = i % 11 + rank;
  for (int step = 0; step < 4; step++) {
    if (rank == 0) {
      for (int i = 0; i < N; i++) coefficient[i] = 1.0 / (1 + i + step);
    }
    MPI_Bcast(coefficient, N, MPI_DOUBLE, 0, MPI_COMM_WORLD); /* overlap: nonblocking */
    for (int i = 1; i < N; i++) other[i] = 0.5 * other[i - 1] + field[i];
    for (int i = 0; i < N; i++) field[i] = 0.5 * field[i] + coefficient[i] * other[i];
  }
  for (int i = 0; i < N; i++) sum += field[i];
  printf("%d: %a\n", rank, sum);
  MPI_Finalize();
  return 0;
}
