/* Assignments to one of two variables, which C++ lets an expression choose. */
#include <mpi.h>
#include <cstdio>

#define N 400

static double u[N], v[N], h[N];

int main(int argc, char **argv)
{
    int rank, size, i, k = 0, l = 0;
    double sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (i = 0; i < N; i++) u[i] = i % 7 + rank + 1;
    (argc > 5 ? l : k) = 7;
    MPI_Sendrecv(u, N, MPI_DOUBLE, (rank + 1) % size, 1, h, N, MPI_DOUBLE, (rank + size - 1) % size, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    if (k != l)
        for (i = 0; i < N; i++) v[i] += h[i];
    for (i = 0; i < N; i++) sum += v[i] * (i + 1);
    printf("%a\n", sum);
    MPI_Finalize();
    return 0;
}
