/* A function whose head has a struct of its own: in another function's head the same words are another type. */
#include <mpi.h>
#include <stdio.h>
#define N 800
static double u[N + 2], w[N + 2];
static int rank, size, up, down;
static double h[N];
static void exchange(double *a, struct few *few)
{
    if (few) puts("few");
    MPI_Sendrecv(a, N, MPI_DOUBLE, down, 1, h, N, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < N; i++) a[i] += 0.125 * h[i];
}
int main(int argc, char **argv)
{
    int i, step;
    double sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    up = (rank + size - 1) % size, down = (rank + 1) % size;
    for (i = 0; i < N + 2; i++) u[i] = (i * 5 + rank) % 31;
    for (step = 0; step < 4; step++) {
        exchange(u, 0);
        for (i = 1; i <= N; i++) w[i] = 0.5 * w[i] + i;
        for (i = 1; i <= N; i++) u[i] = 0.5 * (u[i - 1] + u[i + 1]) + w[i];
    }
    for (i = 0; i < N + 2; i++) sum += u[i] * (i + 1);
    printf("%a\n", sum);
    MPI_Finalize();
    return 0;
}
