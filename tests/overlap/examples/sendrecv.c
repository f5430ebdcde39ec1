/* Heat in a rod. Both ends' halos come by MPI_Sendrecv; the interior does not need them. */
#include <mpi.h>
#include <stdio.h>

#define N 3000

static double u[N + 2], v[N + 2], source[N + 2];

int main(int argc, char **argv) {
  int rank, size, left, right, i, step;
  double heat = 0.0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  left = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  right = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
  for (i = 0; i < N + 2; i++) u[i] = (i + 7 * rank) % 23;
  for (step = 0; step < 5; step++) {
    /* overlap: nonblocking */
    MPI_Sendrecv(&u[1], 1, MPI_DOUBLE, left, 0, &u[N + 1], 1, MPI_DOUBLE, right, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    /* overlap: nonblocking */
    MPI_Sendrecv(&u[N], 1, MPI_DOUBLE, right, 1, &u[0], 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (i = 1; i <= N; i++) source[i] = 0.5 * source[i] + 0.001 * i;
    for (i = 1; i <= N; i++) v[i] = u[i] + 0.25 * (u[i - 1] - 2.0 * u[i] + u[i + 1]) + source[i];
    for (i = 1; i <= N; i++) u[i] = v[i];
  }
  for (i = 1; i <= N; i++) heat += u[i];
  printf("%d: %a\n", rank, heat);
  MPI_Finalize();
  return 0;
}
