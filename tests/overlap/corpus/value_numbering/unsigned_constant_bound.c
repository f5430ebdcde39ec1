/* A bound that is a constant without a sign, of a loop that may begin below zero. */
#include <mpi.h>
#include <stdio.h>

#define R 12
#define C 20

static double u[R + 2][C], w[R + 2][C], s[R + 2][C];
static int rank, size, up, down;
static const unsigned last = 3;
static double b[3][C];

static void relax(int first)
{
    for (int i = first; i < last; i++)
        for (int j = 0; j < C; j++) w[i][j] = b[i][j] + 1;
}

int main(int argc, char **argv)
{
    int i, j, step;
    double sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    up = (rank + size - 1) % size;
    down = (rank + 1) % size;
    for (i = 0; i < R + 2; i++)
        for (j = 0; j < C; j++) {
            u[i][j] = (i * 5 + j * 3 + rank) % 31;
            s[i][j] = i + j;
        }
    for (step = 0; step < 4; step++) {
        MPI_Sendrecv(u[1], 3 * C, MPI_DOUBLE, down, 1, b, 3 * C, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        relax(step % 2);
        for (i = 1; i <= R; i++)
            for (j = 0; j < C; j++) u[i][j] = 0.5 * u[i][j] + 0.25 * w[i][j];
    }
    for (i = 0; i < R + 2; i++)
        for (j = 0; j < C; j++) sum += u[i][j] * (7 * i + j + 1) + w[i][j] * (3 * i + j) + s[i][j];
    printf("%a\n", sum);
    MPI_Finalize();
    return 0;
}
