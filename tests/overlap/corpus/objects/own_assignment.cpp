/* A class whose assignment does more than assign. */
#include <mpi.h>
#include <stdio.h>
#define N 400
static double u[N], v[N], base;
static double h[N];
struct Sum {
    double last;
    Sum &operator=(double d) { base += d + h[3]; return *this; }
} total;

int main(int argc, char **argv)
{
    int i, rank, size;
    double sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    for (i = 0; i < N; i++) u[i] = i % 7 + rank + 1;
    MPI_Sendrecv(u, N, MPI_DOUBLE, next, 1, h, N, MPI_DOUBLE, last, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    total = 3.0;
    for (i = 0; i < N; i++) v[i] = u[i] * base;
    for (i = 0; i < N; i++) sum += v[i] * (i + 1) + h[i];
    printf("%a\n", sum);
    MPI_Finalize();
    return 0;
}
