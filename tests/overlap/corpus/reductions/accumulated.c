#include <math.h>
#include <mpi.h>
#include <stdio.h>
#define N 600
static double u[10][N], v[10][N];
int main(int argc, char **argv) {
  int rank, size, i, j, t;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (i = 0; i < 10; i++)
    for (j = 0; j < N; j++) u[i][j] = (i * 7 + j * 3 + rank * 5) % 11 * 0.1;
  u[3 + rank][40] = 0.0 / (u[0][0] - u[0][0]);
  for (t = 0; t < 8; t++) {
    double most = t % 2 ? -0.0 : -1.0, least = 1e-3 * t, by_name = 0, sum = 0, best = 0;
    int count = 0, where = 0, agree = 1;
    by_name = 0.25;
    MPI_Sendrecv(u[8], N, MPI_DOUBLE, (rank + 1) % size, 1, u[0], N, MPI_DOUBLE, (rank + size - 1) % size, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (i = 1; i < 9; i++)
      for (j = 1; j < N - 1; j++) {
        v[i][j] = 0.25 * (u[i - 1][j] + u[i][j] + u[i][j - 1] + u[i][j + 1]);
        double e = fabs(v[i][j] - u[i][j]);
        if (e >= most) most = e;
        least = e < least ? e : least;
        by_name = fmax(by_name, e);
        if (e > 0.01) count += j - 2 * i;
        if (!(e < 0.5)) agree = 0;
      }
    for (i = 1; i < 9; i++)
      for (j = 1; j < N - 1; j++) {
        sum += u[i - 1][j] * v[i][j];
        if (fabs(u[i - 1][j]) > best) { best = fabs(u[i - 1][j]); where = 1000 * i + j; }
      }
    for (i = 1; i < 9; i++)
      for (j = 1; j < N - 1; j++) u[i][j] = t == 6 ? 0 : v[i][j];
    printf("%d %d %a %a %a %a %a %d %d %d\n", rank, t, most, least, by_name, sum, best, count, where, agree);
  }
  MPI_Finalize();
  return 0;
}
