/* Sizes in types, which are computed where the types stand. */
#include <mpi.h>
#include <stdio.h>

#define N 400

static double u[N], v[N], h[N];
static int rank, size;

static void get(int tag)
{
    MPI_Sendrecv(u, N, MPI_DOUBLE, (rank + 1) % size, tag, h, N, MPI_DOUBLE, (rank + size - 1) % size, tag,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void add(int n, double rows[][n++])
{
    get(4);
    if (n == 6) for (int i = 0; i < N; i++) v[i] += h[3];
}

int main(int argc, char **argv)
{
    int i, k = 1, l = 1, m = 1;
    double sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (i = 0; i < N; i++) u[i] = i % 7 + rank + 1;
    typedef double row[k++];
    get(1);
    if (k == 2) for (i = 0; i < N; i++) v[i] += h[0];
    double (*rows)[l++] = 0;
    get(2);
    if (l == 2) for (i = 0; i < N; i++) v[i] += h[1];
    unsigned long bytes = sizeof(double[m++]);
    get(3);
    if (m == 2) for (i = 0; i < N; i++) v[i] += h[2];
    add(5, 0);
    for (i = 0; i < N; i++) sum += v[i] * (i + 1) + h[i];
    printf("%a %lu %lu %d\n", sum, bytes, sizeof(row), rows == 0);
    MPI_Finalize();
    return 0;
}
