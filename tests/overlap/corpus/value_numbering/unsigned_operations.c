/* Operations that give something else without a sign: where messages go, and what is read. */
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>

#define C 20

static double u[C], v[C], g[32][C];
static int rank, size;

static void get(int row, int tag)
{
    MPI_Sendrecv(u, C, MPI_DOUBLE, (rank + 1) % size, tag, g[row], C, MPI_DOUBLE, (rank + size - 1) % size, tag,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int i, x = -3 * (argc < 5), k = 4;
    long y = x;
    unsigned a = argc > 5;
    size_t b = y;
    double sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (i = 0; i < C; i++) u[i] = i % 7 + rank + 1;
    get(x % 8u, 1);
    for (i = 0; i < C; i++) v[i] += g[x % 8 + 8][i];
    get(x < 5u ? 1 : 2, 2);
    for (i = 0; i < C; i++) v[i] += g[(x < 5 ? 1 : 2) + 1][i];
    get(((int)a - 3) % 8 + 8, 3);
    for (i = 0; i < C; i++) v[i] += g[(a - 3) % 8][i];
    get((y >> 60) + 16, 4);
    for (i = 0; i < C; i++) v[i] += g[b >> 60][i];
    k += 4294967295u;
    get(3, 5);
    for (i = 0; i < C; i++) v[i] += g[k][i];
    get(k + 4294967295u, 6);
    for (i = 0; i < C; i++) v[i] += g[k - 1][i];
    x = 260 * (argc < 5);
    { typedef short T; k = (T)x - 256; }
    get(k, 7);
    { typedef unsigned char T; for (i = 0; i < C; i++) v[i] += g[(T)x][i]; }
    y = -2 * (argc < 5);
    b = y;
    b >>= 60;
    get((y >> 60) + 16, 8);
    for (i = 0; i < C; i++) v[i] += 2 * g[b][i];
    for (i = 0; i < C; i++) sum += v[i] * (i + 1);
    printf("%a\n", sum);
    MPI_Finalize();
    return 0;
}
