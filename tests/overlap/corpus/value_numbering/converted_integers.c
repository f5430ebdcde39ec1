/* Whole numbers that are others after their conversions. */
#include <mpi.h>
#include <stdio.h>

#define N 400
typedef _Bool flag;

static double u[N], v[N], h[N];
static int rank, size;

static void get(int tag)
{
    MPI_Sendrecv(u, N, MPI_DOUBLE, (rank + 1) % size, tag, h, N, MPI_DOUBLE, (rank + size - 1) % size, tag,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int i;
    unsigned k;
    double sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (i = 0; i < N; i++) u[i] = i % 7 + rank + 1;
    get(1);
    for (i = 0; i < N; i++) {
        long m = (unsigned)(i - 3);
        v[i] = 2 * u[i];
        if (m > 1000) v[i] += h[0];
    }
    get(2);
    for (k = 0; k < N; k++) {
        long m = k - 3;
        if (m > 1000) v[k] += h[1];
    }
    get(3);
    for (k = 0; k < N; k++)
        if ((long)(k - 3) > 1000) v[k] += h[2];
    get(4);
    for (i = 0; i < N; i++) {
        int m = (int)(4294967296L + i);
        if (m == 5) v[i] += h[3];
    }
    get(5);
    for (i = 0; i < N; i++) {
        flag m = 5;
        if (m == 1) v[i] += h[4];
    }
    for (i = 0; i < N; i++) sum += v[i] * (i + 1) + h[i];
    printf("%a\n", sum);
    MPI_Finalize();
    return 0;
}
