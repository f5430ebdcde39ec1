/* Loops that compare without a sign, from or to numbers below zero. */
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>

#define N 40

static double u[N], v[N], h[N];
static int rank, size;

static void get(int tag)
{
    MPI_Sendrecv(u, N, MPI_DOUBLE, (rank + 1) % size, tag, h, N, MPI_DOUBLE, (rank + size - 1) % size, tag,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void add(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        v[i] += h[i + 1];
        if (i == 5) break;
    }
}

int main(int argc, char **argv)
{
    int i, n = -1;
    double sum = 0, r[N] = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (i = 0; i < N; i++) u[i] = i % 7 + rank + 1;
    get(1);
    for (unsigned k = 0; k < n; k++) {
        v[k] += h[k];
        if (k == 5) break;
    }
    get(2);
    add(n);
    get(3);
    for (i = 1; i < N; i++) {
        int lo = i > 1 ? -1 : 0;
        for (unsigned k = lo; k < N; k++) r[k] = 2 * h[k];
        for (int k = lo + 1; k < N; k++) v[i] += r[k];
    }
    for (i = 0; i < N; i++) sum += v[i] * (i + 1) + h[i];
    printf("%a\n", sum);
    MPI_Finalize();
    return 0;
}
