/* The program's own macros, named like constants of MPI: they stand for variables. */
#include <mpi.h>
#include <stdio.h>

#define R 12
#define C 20
#define MPI_FROM from
#define MPI_TO to
#define MPI_COMM_ROW row
#define MPI_SCALE scale

static double u[R + 2][C], w[R + 2][C], s[R + 2][C], h[2][C], g[C];
static int rank, size, up, down;

int main(int argc, char **argv)
{
    int i, j, step;
    double sum = 0;
    int from, to, me;
    double scale;
    MPI_Comm rows[2], row;
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
    MPI_Comm_dup(MPI_COMM_WORLD, &rows[0]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &rows[1]);
    for (step = 0; step < 4; step++) {
        for (i = 0; i < R; i++) s[i][0] = 0.5 * s[i][0] + step;
        from = (rank + size - step % size) % size;
        to = (rank + step) % size;
        for (i = 0; i < R; i++) s[i][1] += 1.0 / (i + 1);
        MPI_Sendrecv(u[1], C, MPI_DOUBLE, MPI_TO, 3, h[0], C, MPI_DOUBLE, MPI_FROM, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (j = 0; j < C; j++) w[1][j] = 0.5 * (u[2][j] + h[0][j]) + s[j % R][1];
        row = rows[step % 2];
        MPI_Comm_rank(MPI_COMM_ROW, &me);
        to = (me + 1) % size;
        from = (me + size - 1) % size;
        for (i = 0; i < R; i++) s[i][2] += 2.0 / (i + 1);
        MPI_Sendrecv(u[2], C, MPI_DOUBLE, to, 4, h[1], C, MPI_DOUBLE, from, 4, MPI_COMM_ROW, MPI_STATUS_IGNORE);
        for (i = 0; i < R; i++) s[i][3] += 3.0 / (i + 1);
        for (j = 0; j < C; j++) w[2][j] = 0.5 * (u[3][j] + h[1][j]) + s[j % R][3];
        MPI_Sendrecv(u[3], C, MPI_DOUBLE, down, 5, g, C, MPI_DOUBLE, up, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        scale = g[5] * 0.001;
        for (i = 3; i < R; i++)
            for (j = 0; j < C; j++) w[i][j] = 0.5 * w[i][j] + u[i][j] * MPI_SCALE;
        for (i = 1; i <= R; i++)
            for (j = 0; j < C; j++) u[i][j] = 0.5 * u[i][j] + 0.25 * w[i][j];
    }
    for (i = 0; i < R + 2; i++)
        for (j = 0; j < C; j++) sum += u[i][j] * (7 * i + j + 1) + w[i][j] * (3 * i + j) + s[i][j];
    printf("%a\n", sum);
    MPI_Finalize();
    return 0;
}
