/* An exchange that might be divided, in a function that is not divided in the end. */
#include <mpi.h>
#include <stdio.h>

#define NX 20
#define NY 24

static double u[NY + 2][NX], w[NY + 2][NX];
static double (*field)[NX] = u;
static int below, above;

void exchange(double (*a)[NX])
{
    MPI_Sendrecv(a[NY], NX, MPI_DOUBLE, above, 1, a[0], NX, MPI_DOUBLE, below, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(a[1], NX, MPI_DOUBLE, below, 2, a[NY + 1], NX, MPI_DOUBLE, above, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void producer(int k)
{
    for (int i = 1; i <= NY; i++)
        for (int j = 0; j < NX; j++) u[i][j] = 0.99 * u[i][j] + 0.001 * k;
    exchange(field);
    for (int i = 1; i <= NY; i++)
        for (int j = 0; j < NX; j++) w[i][j] = 0.5 * (u[i - 1][j] + u[i + 1][j]);
}

int main(int argc, char **argv)
{
    int rank, size;
    double s = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    below = rank == 0 ? MPI_PROC_NULL : rank - 1;
    above = rank == size - 1 ? MPI_PROC_NULL : rank + 1;
    for (int i = 0; i < NY + 2; i++)
        for (int j = 0; j < NX; j++) u[i][j] = (i * 7 + j * 3 + rank * 5) % 23;
    for (int step = 0; step < 3; step++) {
        producer(step);
        for (int i = 1; i <= NY; i++)
            for (int j = 1; j < NX - 1; j++) u[i][j] = w[i][j];
    }
    for (int i = 0; i < NY + 2; i++)
        for (int j = 0; j < NX; j++) s += u[i][j] * (i + 2 * j);
    printf("%d %a\n", rank, s);
    MPI_Finalize();
    return 0;
}
