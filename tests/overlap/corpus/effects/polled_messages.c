/* Probes and tests of what certainly has not come: its sender waits for a message that is sent after them. */
#include <mpi.h>
#include <stdio.h>
#define N 600
static double u[N], ack[N], w[N], r0[N], r1[N];
int main(int argc, char **argv)
{
    int rank, size, i, step, flag, seen = 0;
    double sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (i = 0; i < N; i++) { u[i] = i + rank; w[i] = 2 * i; }
    for (step = 0; step < 4; step++) {
        if (rank == 0) {
            MPI_Recv(r0, N, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (i = 0; i < 2000; i++) { MPI_Iprobe(1, 2, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE); seen += flag; }
            MPI_Send(u, N, MPI_DOUBLE, 1, 3, MPI_COMM_WORLD);
            MPI_Recv(r1, N, MPI_DOUBLE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (i = 0; i < N; i++) sum += r0[i] * i + r1[i];
        } else if (rank == 1) {
            for (i = 0; i < N; i++) w[i] = w[i] * 0.5 + step;
            MPI_Send(w, N, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
            MPI_Recv(ack, N, MPI_DOUBLE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (i = 0; i < N; i++) u[i] = u[i] * 0.5 + step;
            MPI_Send(u, N, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD);
            for (i = 0; i < N; i++) sum += ack[i] * i;
        }
    }
    printf("%a %d\n", sum, seen);
    MPI_Finalize();
    return 0;
}
