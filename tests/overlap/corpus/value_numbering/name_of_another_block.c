/* What a variable of a block that has ended was equal to, which no name means any more, or another. */
#include <mpi.h>
#include <stdio.h>

#define R 12
#define C 20

static double u[R + 2][C], w[R + 2][C], s[R + 2][C];
static int rank, size, up, down;
static int n, m_too = 3;
static double f[R][40][C], r[R][40][C], v[R][40][C];

static void advance(int first, int last)
{
    static double in[R][C], out[R][C];
    {
        int m = n / 2;
        s[0][0] += m;
    }
    int half = n / 2;
    for (int k = 0; k < R; k++)
        for (int q = 0; q < C; q++) out[k][q] = v[k][1][q];
    MPI_Sendrecv(out, R * C, MPI_DOUBLE, down, 5, in, R * C, MPI_DOUBLE, up, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int k = 0; k < R; k++)
        for (int q = 0; q < C; q++) v[k][0][q] = v[k][half + 1][q] = in[k][q];
    for (int j = 0; j < R; j++) {
        for (int i = first; i <= last; i++)
            for (int q = 0; q < C; q++) f[j][i][q] = 0.5 * v[j][i][q] + 0.25 * v[j][i - 1][q] + 0.125 * v[j][i + 1][q];
        for (int i = first; i < last; i++)
            for (int q = 0; q < C; q++) r[j][i][q] = 0.5 * r[j][i][q] + f[j][i][q];
    }
    for (int j = 0; j < R; j++)
        for (int i = 1; i <= half; i++)
            for (int q = 0; q < C; q++) v[j][i][q] = 0.5 * v[j][i][q] + 0.25 * r[j][i][q];
}

static void advance_too(int first, int last)
{
    static double in[R][C], out[R][C];
    {
        int m_too = n / 2;
        s[0][0] += m_too;
    }
    int half = n / 2;
    for (int k = 0; k < R; k++)
        for (int q = 0; q < C; q++) out[k][q] = v[k][1][q];
    MPI_Sendrecv(out, R * C, MPI_DOUBLE, down, 5, in, R * C, MPI_DOUBLE, up, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int k = 0; k < R; k++)
        for (int q = 0; q < C; q++) v[k][0][q] = v[k][half + 1][q] = in[k][q];
    for (int j = 0; j < R; j++) {
        for (int i = first; i <= last; i++)
            for (int q = 0; q < C; q++) f[j][i][q] = 0.5 * v[j][i][q] + 0.25 * v[j][i - 1][q] + 0.125 * v[j][i + 1][q];
        for (int i = first; i < last; i++)
            for (int q = 0; q < C; q++) r[j][i][q] = 0.5 * r[j][i][q] + f[j][i][q];
    }
    for (int j = 0; j < R; j++)
        for (int i = 1; i <= half; i++)
            for (int q = 0; q < C; q++) v[j][i][q] = 0.5 * v[j][i][q] + 0.25 * r[j][i][q];
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
    n = 30 - rank + m_too - 3;
    for (i = 0; i < R; i++)
        for (j = 0; j < 40; j++) v[i][j][i + j % 7] = i + 5 * j + rank;
    for (step = 0; step < 4; step++) {
        advance(rank % 2 + 1, n / 2 - step % 2);
        advance_too(rank % 2 + 1, n / 2 - step % 2);
        for (i = 0; i < R; i++)
            for (j = 0; j < C; j++) w[i][j] = r[i][j][j % 5] + v[i][j][j % 7];
        for (i = 1; i <= R; i++)
            for (j = 0; j < C; j++) u[i][j] = 0.5 * u[i][j] + 0.25 * w[i][j];
    }
    for (i = 0; i < R + 2; i++)
        for (j = 0; j < C; j++) sum += u[i][j] * (7 * i + j + 1) + w[i][j] * (3 * i + j) + s[i][j];
    printf("%a\n", sum);
    MPI_Finalize();
    return 0;
}
