/* Seven points in a box cut along its first dimension. */
#include <mpi.h>
#include <stdio.h>

#define NX 12
#define NY 14
#define NZ 16

static double u[NX + 2][NY + 2][NZ + 2], v[NX + 2][NY + 2][NZ + 2];
static int before, after;

static void exchange(void) {
  MPI_Request low, high;
  /* overlap: split-loop */
  MPI_Irecv(u[0], (NY + 2) * (NZ + 2), MPI_DOUBLE, before, 0, MPI_COMM_WORLD, &low);
  MPI_Irecv(u[NX + 1], (NY + 2) * (NZ + 2), MPI_DOUBLE, after, 0, MPI_COMM_WORLD, &high);
  MPI_Send(u[1], (NY + 2) * (NZ + 2), MPI_DOUBLE, before, 0, MPI_COMM_WORLD);
  MPI_Send(u[NX], (NY + 2) * (NZ + 2), MPI_DOUBLE, after, 0, MPI_COMM_WORLD);
  MPI_Wait(&low, MPI_STATUS_IGNORE);
  MPI_Wait(&high, MPI_STATUS_IGNORE);
}

static void relax(void) {
  for (int i = 1; i <= NX; i++)
    for (int j = 1; j <= NY; j++)
      for (int k = 1; k <= NZ; k++)
        v[i][j][k] = 0.125 * (u[i - 1][j][k] + u[i + 1][j][k] + u[i][j - 1][k] + u[i][j + 1][k] + u[i][j][k - 1] +
                              u[i][j][k + 1] + 2.0 * u[i][j][k]);
}

int main(int argc, char **argv) {
  int rank, size;
  double sum = 0.0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  before = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  after = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
  for (int i = 0; i < NX + 2; i++)
    for (int j = 0; j < NY + 2; j++)
      for (int k = 0; k < NZ + 2; k++) u[i][j][k] = (i + 3 * j + 7 * k + rank) % 23;
  for (int step = 0; step < 3; step++) {
    exchange();
    relax();
    for (int i = 1; i <= NX; i++)
      for (int j = 1; j <= NY; j++)
        for (int k = 1; k <= NZ; k++) u[i][j][k] = v[i][j][k];
  }
  for (int i = 0; i < NX + 2; i++)
    for (int j = 0; j < NY + 2; j++)
      for (int k = 0; k < NZ + 2; k++) sum += u[i][j][k] * (i + j + k);
  printf("%d: %a\n", rank, sum);
  MPI_Finalize();
  return 0;
}
