/* Variables that are assigned on one side of && or of ?:, where the assignment may not happen. */
#include <mpi.h>
#include <stdio.h>

#define R 12
#define C 20

static double u[R + 2][C], w[R + 2][C], s[R + 2][C], v[R + 2][C], g[10][C], h[2][C];
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
        int k = 5;
        step % 2 ? (k = 0) : (k = 7);
        MPI_Sendrecv(s[R - step], C, MPI_DOUBLE, down, 3, g[0], C, MPI_DOUBLE, up, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (i = 1; i <= R; i++)
            for (j = 0; j < C; j++) w[i][j] = 2 * u[i][j] + g[k][j];
        for (i = 1; i <= R; i++)
            for (j = 0; j < C; j++) u[i][j] = 0.5 * u[i][j] + 0.25 * w[i][j];
    }
    for (step = 0; step < 4; step++) {
        int l = 0;
        step % 2 && (l = 7);
        MPI_Sendrecv(u[R], C, MPI_DOUBLE, down, 4, g[0], C, MPI_DOUBLE, up, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (i = 1; i <= R; i++)
            for (j = 0; j < C; j++) v[i][j] = 2 * u[i][j] + g[l][j];
        for (i = 1; i <= R; i++)
            for (j = 0; j < C; j++) u[i][j] = 0.5 * u[i][j] + 0.25 * w[i][j];
    }
    for (step = 0; step < 4; step++) {
        MPI_Sendrecv(u[R], C, MPI_DOUBLE, down, 1, h[0], C, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(u[1], C, MPI_DOUBLE, up, 2, h[1], C, MPI_DOUBLE, down, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double t = 3;
        for (i = 1; i <= R; i++)
            for (j = 0; j < C; j++) {
                s[i][j] > 20 && (t = s[i][j]);
                w[i][j] += t;
                if (i == 1 || i == R) w[i][j] += h[i > 1][j];
            }
        for (i = 1; i <= R; i++)
            for (j = 0; j < C; j++) u[i][j] = 0.5 * u[i][j] + 0.25 * w[i][j];
    }
    for (i = 0; i < R + 2; i++)
        for (j = 0; j < C; j++) sum += u[i][j] * (7 * i + j + 1) + w[i][j] * (3 * i + j) + v[i][j] * (i + 2 * j);
    printf("%a\n", sum);
    MPI_Finalize();
    return 0;
}
