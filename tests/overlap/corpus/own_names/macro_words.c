/* Macros that are plain words. */
#include <mpi.h>
#include <stdio.h>

#define type double
#define slot (-1)
#define request 5
#define copy(a, b) (b)
#define bytes 8
#define pending held
#define count 3 +
#define source *
#define tag "tag"
#define data u
#define dest v
#define comm MPI_COMM_SELF
#define status error
#define found last
#define now flag

#define N 400

static type data[N], dest[N], h[N];

int main(int argc, char **argv)
{
    int i, rank, size;
    type base = 1, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (i = 0; i < N; i++) u[i] = i % 7 + rank + 1;
    MPI_Sendrecv(u, N, MPI_DOUBLE, (rank + 1) % size, 1, h, N, MPI_DOUBLE, (rank + size - 1) % size, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (i = 0; i < N; i++) v[i] = u[i] * base;
    for (i = 0; i < N; i++) sum += v[i] * (i + 1) + h[i];
    printf("%a\n", sum);
    MPI_Finalize();
    return 0;
}
