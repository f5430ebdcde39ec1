/* Rank 0 may send when rank 1 says that its receive has begun. */
#include <mpi.h>
#include <stdio.h>

#define N 600

static double u[N], go[N], h[N], w[N];

int main(int argc, char **argv)
{
    int rank;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int t = 0; t < 3; t++) {
        if (rank == 0) {
            MPI_Recv(go, N, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Rsend(u, N, MPI_DOUBLE, 1, 2, MPI_COMM_WORLD);
        } else if (rank == 1) {
            for (int i = 0; i < N; i++) go[i] = i + t;
            MPI_Irecv(h, N, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD, &request);
            MPI_Send(go, N, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
            for (int i = 0; i < N; i++) w[i] = 0.5 * w[i] + i;
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    }
    printf("%d %a %a\n", rank, w[5], h[7]);
    MPI_Finalize();
    return 0;
}
