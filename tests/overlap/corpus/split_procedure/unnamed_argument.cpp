/* A parameter without a name, which the two parts of its function could not pass on. */
#include <mpi.h>
#include <stdio.h>

#define R 12
#define C 20

static double u[R + 2][C], w[R + 2][C], s[R + 2][C], h[2][C];
static int rank, size, up, down;

void exchange(double a[][C], int)
{
    int k;
    MPI_Sendrecv(a[R], C, MPI_DOUBLE, down, 1, h[0], C, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(a[1], C, MPI_DOUBLE, up, 2, h[1], C, MPI_DOUBLE, down, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (k = 0; k < C; k++) {
        a[0][k] = h[0][k];
        a[R + 1][k] = h[1][k];
    }
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
        exchange(u, 3);
        for (i = 1; i <= R; i++)
            for (j = 0; j < C; j++) s[i][j] = 0.5 * s[i][j] + i * j;
        for (i = 1; i <= R; i++)
            for (j = 1; j < C - 1; j++) w[i][j] = u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1];
        for (i = 1; i <= R; i++)
            for (j = 0; j < C; j++) u[i][j] = 0.5 * u[i][j] + 0.25 * w[i][j];
    }
    for (i = 0; i < R + 2; i++)
        for (j = 0; j < C; j++) sum += u[i][j] * (7 * i + j + 1) + w[i][j] * (3 * i + j) + s[i][j];
    printf("%a\n", sum);
    MPI_Finalize();
    return 0;
}
