/* Of two messages the first is taken by the receive from whoever, which has another name. */
#include <mpi.h>
#include <stdio.h>

#define N 600

enum { ANYBODY = MPI_ANY_SOURCE, HELLO = 7 };
static double u[N], h[N], w[N], g[N];

int main(int argc, char **argv)
{
    int rank, n;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < N; i++) u[i] = i + rank;
    for (int t = 0; t < 5; t++) {
        if (rank == 0) {
            n = 0;
            for (int i = 0; i < N; i++) {
                w[i] = 0.5 * w[i] + i;
                n += w[i] >= 0;
            }
            MPI_Recv(h, n, MPI_DOUBLE, ANYBODY, HELLO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Recv(g, N, MPI_DOUBLE, 1, HELLO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int i = 0; i < N; i++) u[i] = 0.5 * u[i] + g[i] + 2 * h[i];
        } else if (rank == 1) {
            MPI_Send(u, N, MPI_DOUBLE, 0, HELLO, MPI_COMM_WORLD);
            for (int i = 0; i < N; i++) u[i] = 0.25 * u[i] + i;
            MPI_Send(u, N, MPI_DOUBLE, 0, HELLO, MPI_COMM_WORLD);
        }
    }
    double sum = 0;
    for (int i = 0; i < N; i++) sum += u[i] * (i + 1) + h[i] * (3 * i + 1) + w[i];
    printf("%d %a\n", rank, sum);
    MPI_Finalize();
    return 0;
}
