/* Labels at calls and between them, some jumped to; macros that change their meaning between a call and what it would pass. */
#include <mpi.h>
#include <stdio.h>

#define N 3000

static double a[N], b[N], c[N], d[N], e[N];
static int rank, size, next, previous;

static void swap(int tag)
{
    MPI_Sendrecv(b, N, MPI_DOUBLE, next, tag, e, N, MPI_DOUBLE, previous, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < N; i++) a[i] = 0.5 * a[i] + e[i];
}

int main(int argc, char **argv)
{
    int i, turn = 0, largest = 0;
    double sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    next = (rank + 1) % size;
    previous = (rank + size - 1) % size;
    for (i = 0; i < N; i++) a[i] = i % 17 + rank;
    for (i = 0; i < N; i++) d[i] = 0.5 * d[i] + i;
again:
    MPI_Sendrecv(a, N, MPI_DOUBLE, next, 1, b, N, MPI_DOUBLE, previous, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (i = 0; i < N; i++) c[i] = 0.5 * d[i] + c[i];
    for (i = 0; i < N; i++) c[i] += b[i];
    for (i = 0; i < N; i++) a[i] = 0.5 * a[i] + b[i];
    if (++turn < 3) goto again;
    for (i = 0; i < N; i++) d[i] = 0.5 * d[i] + c[i];
#define TAG 7
    for (i = 0; i < N; i++) c[i] = 0.25 * c[i] + i;
#undef TAG
#define TAG 8
    MPI_Sendrecv(a, N, MPI_DOUBLE, next, TAG, b, N, MPI_DOUBLE, previous, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (i = 0; i < N; i++) d[i] = 0.5 * d[i] + c[i];
    for (i = 0; i < N; i++) d[i] += b[i];
#define MINE (rank == 0 ? 10 : 20)
    MPI_Allreduce(&rank, &largest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    for (i = 0; i < N; i++) c[i] = 0.25 * c[i] + i;
    sum += largest + MINE;
    for (i = 0; i < N; i++) d[i] = 0.5 * d[i] + i;
#define PARTNER 9
    swap(PARTNER);
    for (i = 0; i < N; i++) c[i] = 0.5 * d[i] + c[i];
more:
    swap(11);
    for (i = 0; i < N; i++) d[i] = 0.5 * d[i] + c[i];
    if (++turn < 6) goto more;
    for (i = 0; i < N; i++) sum = 0.5 * sum + a[i] + b[i] + c[i] + d[i] + e[i];
    printf("%a\n", sum);
    MPI_Finalize();
    return 0;
}
