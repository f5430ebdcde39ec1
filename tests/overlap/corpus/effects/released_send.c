/* Rank 0 may report when rank 1 has taken its order, which rank 1 does when its own report has been acknowledged. */
#include <mpi.h>
#include <stdio.h>

#define N 600

static double u[N], order[N], ack[N], h[N];

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Status from;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < N; i++) u[i] = i + rank;
    for (int t = 0; t < 3 && size > 2; t++) {
        if (rank == 0) {
            MPI_Ssend(u, N, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD);
            MPI_Send(u, N, MPI_DOUBLE, 2, 3, MPI_COMM_WORLD);
        } else if (rank == 1) {
            for (int k = 0; k < 2000; k++)
                for (int i = 0; i < N; i++) u[i] = 0.5 * u[i] + i;
            MPI_Send(u, N, MPI_DOUBLE, 2, 3, MPI_COMM_WORLD);
            MPI_Recv(ack, N, MPI_DOUBLE, 2, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Recv(order, N, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int i = 0; i < N; i++) u[i] = 0.5 * u[i] + order[i] + ack[i];
        } else if (rank == 2) {
            MPI_Recv(h, N, MPI_DOUBLE, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &from);
            printf("%d: first rank %d\n", t, from.MPI_SOURCE);
            MPI_Send(h, N, MPI_DOUBLE, 1, 2, MPI_COMM_WORLD);
            MPI_Recv(h, N, MPI_DOUBLE, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &from);
            printf("%d: then rank %d\n", t, from.MPI_SOURCE);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    printf("%d %a %a\n", rank, u[5], h[7]);
    MPI_Finalize();
    return 0;
}
