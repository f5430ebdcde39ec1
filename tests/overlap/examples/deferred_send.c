/* Rows of a matrix go down a chain of ranks: each is sent on while the next one is worked out. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>

#define N 4000
#define ROWS 6

static double row[N], work[N], sum;

static void smooth(int number) {
  for (int i = 1; i < N - 1; i++) work[i] = 0.25 * work[i - 1] + 0.5 * work[i] + 0.25 * work[i + 1] + number;
}

int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < N; i++) work[i] = i % 17 + rank;
  for (int number = 0; number < ROWS; number++) {
    if (rank > 0) {
      MPI_Recv(row, N, MPI_DOUBLE, rank - 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      for (int i = 0; i < N; i++) row[i] = number + 0.5 * i;
    }
    for (int i = 0; i < N; i++) row[i] = sqrt(row[i] + rank);
    if (rank < size - 1) {
      MPI_Send(row, N, MPI_DOUBLE, rank + 1, 7, MPI_COMM_WORLD); /* overlap: nonblocking */
    }
    smooth(number);
    for (int i = 0; i < N; i++) sum += work[i];
  }
  printf("%d: %a %a\n", rank, sum, row[N / 2]);
  MPI_Finalize();
  return 0;
}
