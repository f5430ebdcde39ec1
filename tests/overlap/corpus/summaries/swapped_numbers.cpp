/* std::swap of numbers, which have other values then than they were declared with. */
#include <mpi.h>
#include <cstdio>
#include <utility>

#define C 20

static double u[C], v[C], g[4][C];

int main(int argc, char **argv)
{
    int rank, size, i, k = 2, l = 3;
    double sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (i = 0; i < C; i++) u[i] = i % 7 + rank + 1;
    std::swap(k, l);
    MPI_Sendrecv(u, C, MPI_DOUBLE, (rank + 1) % size, 1, g[3], C, MPI_DOUBLE, (rank + size - 1) % size, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (i = 0; i < C; i++) v[i] += 2 * g[k][i];
    for (i = 0; i < C; i++) sum += v[i] * (i + 1);
    printf("%a\n", sum);
    MPI_Finalize();
    return 0;
}
