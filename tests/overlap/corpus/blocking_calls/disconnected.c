/* Messages of a communicator that ends before MPI does: they must be complete by then. */
#include <mpi.h>
#include <stdio.h>
#define N 100000
static double u[N], v[N], h[N];
int main(int argc, char **argv)
{
    int rank, size, i, step;
    double sum = 0;
    MPI_Comm c;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (i = 0; i < N; i++) { u[i] = i + rank; v[i] = 2 * i; }
    for (step = 0; step < 3; step++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &c);
        MPI_Sendrecv(u, N, MPI_DOUBLE, (rank + 1) % size, 1, h, N, MPI_DOUBLE, (rank + size - 1) % size, 1, c,
                     MPI_STATUS_IGNORE);
        for (i = 0; i < N; i++) v[i] = 0.5 * v[i] + u[i];
        for (i = 0; i < N; i++) u[i] = 0.5 * v[i] + h[i];
        MPI_Comm_disconnect(&c);
    }
    for (i = 0; i < N; i++) sum += u[i] * (i + 1);
    printf("%a\n", sum);
    MPI_Finalize();
    return 0;
}
