/* A label between the last messages and MPI_Finalize, which must not lead past the end of the messages. */
#include <mpi.h>
#include <stdio.h>

#define R 12
#define C 20

static double u[R + 2][C], w[R + 2][C], s[R + 2][C];
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
        MPI_Sendrecv(u[R], C, MPI_DOUBLE, down, 1, u[0], C, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(u[1], C, MPI_DOUBLE, up, 2, u[R + 1], C, MPI_DOUBLE, down, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (i = 1; i <= R; i++)
            for (j = 1; j < C - 1; j++) w[i][j] = u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1];
        for (i = 1; i <= R; i++)
            for (j = 0; j < C; j++) u[i][j] = 0.5 * u[i][j] + 0.25 * w[i][j];
    }
    for (i = 0; i < R + 2; i++)
        for (j = 0; j < C; j++) sum += u[i][j] * (7 * i + j + 1) + w[i][j] * (3 * i + j) + s[i][j];
    printf("%a\n", sum);
    if (rank >= 0) goto out;
out:
    MPI_Finalize();
    return 0;
}
