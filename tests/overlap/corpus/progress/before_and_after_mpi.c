/* What is done while a message travels is done before MPI begins and after it has ended, too, and by threads. */
#include <mpi.h>
#include <stdio.h>

#define N 200

static double u[N + 2][N], v[N + 2][N], w[2][N + 2][N];

static void relax(double to[N + 2][N], double from[N + 2][N])
{
    for (int i = 1; i <= N; i++)
        for (int j = 1; j < N - 1; j++) to[i][j] = 0.5 * from[i][j] + 0.125 * (from[i - 1][j] + from[i + 1][j]);
}

static void smooth(double to[N + 2][N], double from[N + 2][N])
{
    for (int i = 1; i <= N; i++)
        for (int j = 1; j < N - 1; j++) to[i][j] = 0.25 * (from[i - 1][j] + from[i + 1][j] + from[i][j - 1] + from[i][j + 1]);
}

static void exchange(double f[N + 2][N], int up, int down)
{
    MPI_Sendrecv(f[1], N, MPI_DOUBLE, up, 1, f[N + 1], N, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(f[N], N, MPI_DOUBLE, down, 2, f[0], N, MPI_DOUBLE, up, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int rank, size;
    for (int i = 0; i < N + 2; i++)
        for (int j = 0; j < N; j++) w[0][i][j] = u[i][j] = v[i][j] = (i * 7 + j) % 13;
    relax(v, u);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    for (int t = 0; t < 10; t++) {
        exchange(u, up, down);
        relax(v, u);
#pragma omp parallel for
        for (int k = 0; k < 1; k++) smooth(w[k + 1], w[k]);
        exchange(v, up, down);
        smooth(u, v);
    }
    MPI_Finalize();
    relax(v, u);
    double sum = 0;
    for (int i = 0; i < N + 2; i++)
        for (int j = 0; j < N; j++) sum += v[i][j] * (i + 3 * j + 1) + w[1][i][j];
    printf("%d %a\n", rank, sum);
    return 0;
}
