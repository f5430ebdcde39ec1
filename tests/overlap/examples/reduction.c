/* The norm of the last step is only printed at the end of this one; the maximum steers the next. */
#include <mpi.h>
#include <stdio.h>

#define N 3000

static double u[N], v[N];

int main(int argc, char **argv) {
  int rank, largest, over_all = 0, counts[2], totals[2];
  double sums[4], whole[4];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < N; i++) u[i] = (i * 31 + rank) % 97;
  for (int step = 0; step < 4; step++) {
    largest = 0;
    for (int i = 0; i < N; i++)
      if (u[i] > largest) largest = (int)u[i];
    MPI_Allreduce(&largest, &over_all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD); /* overlap: nonblocking */
    for (int i = 1; i < N; i++) v[i] = 0.5 * u[i] + 0.5 * u[i - 1];
    for (int i = 0; i < N; i++) u[i] = v[i] / (1 + over_all) + step;

    for (int k = 0; k < 4; k++) sums[k] = u[k * 16] > 1.0 ? 2.0 : 0.5;
    /* left: sums of floating-point numbers depend on their order */
    MPI_Reduce(sums, whole, 4, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    for (int i = 1; i < N; i++) v[i] = 0.25 * v[i] + u[i];
    if (rank == 0) printf("%d: %a %a\n", step, whole[0], whole[3]);
  }
  counts[0] = counts[1] = 0;
  for (int i = 0; i < N; i++) counts[v[i] > 2.0]++;
  MPI_Allreduce(counts, totals, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("%d: %d %d %a %a\n", rank, totals[0], totals[1], u[5], v[N - 1]);
  MPI_Finalize();
  return 0;
}
