/* Variables too narrow for what they are given: -1 in an unsigned char is 255, 2 in a _Bool is 1. */
#include <mpi.h>
#include <stdio.h>

#define R 12
#define C 20

static double u[R + 2][C], w[R + 2][C], s[R + 2][C], g[256][C], f[3][C];
static int rank, size, up, down;

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
        unsigned char k = -1;
        MPI_Sendrecv(u[R], C, MPI_DOUBLE, down, 1, g[255], C, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (i = 1; i <= R; i++)
            for (j = 0; j < C; j++) w[i][j] = 2 * u[i][j] + g[k][j];
        for (i = 1; i <= R; i++)
            for (j = 0; j < C; j++) u[i][j] = 0.5 * u[i][j] + 0.25 * w[i][j];
    }
    for (step = 0; step < 4; step++) {
        _Bool l = 2;
        MPI_Sendrecv(u[R], C, MPI_DOUBLE, down, 1, f[1], C, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (i = 1; i <= R; i++)
            for (j = 0; j < C; j++) w[i][j] = 2 * u[i][j] + f[l][j];
        for (i = 1; i <= R; i++)
            for (j = 0; j < C; j++) u[i][j] = 0.5 * u[i][j] + 0.25 * w[i][j];
    }
    for (i = 0; i < R + 2; i++)
        for (j = 0; j < C; j++) sum += u[i][j] * (7 * i + j + 1) + w[i][j] * (3 * i + j) + s[i][j];
    printf("%a\n", sum);
    MPI_Finalize();
    return 0;
}
