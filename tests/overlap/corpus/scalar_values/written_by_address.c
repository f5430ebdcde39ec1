/* Variables with initial values that others then write, by their addresses. */
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

static void add(int n)
{
    int before = n;
    sscanf("7", "%d", &n);
    get(3);
    if (n != before) for (int i = 0; i < N; i++) v[i] += h[2];
}

int main(int argc, char **argv)
{
    int i, me = 0, all = 0;
    double sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (i = 0; i < N; i++) u[i] = i % 7 + rank + 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    get(1);
    if (me != 0) for (i = 0; i < N; i++) v[i] += h[0];
    MPI_Allreduce(&size, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    get(2);
    if (all != 0) for (i = 0; i < N; i++) v[i] += h[1];
    add(6);
    for (i = 0; i < N; i++) sum += v[i] * (i + 1) + h[i];
    printf("%a\n", sum);
    MPI_Finalize();
    return 0;
}
