/* Tests of a synchronous send that certainly is not over: its receiver waits for a message that is sent after them. */
#include <mpi.h>
#include <stdio.h>
#define N 600
static double u[N], w[N], x[N], y[N];
int main(int argc, char **argv)
{
    int rank, size, i, step, flag, seen = 0;
    double sum = 0;
    MPI_Request q;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (i = 0; i < N; i++) { u[i] = i + rank; w[i] = 2 * i; }
    for (step = 0; step < 4; step++) {
        if (rank == 0) {
            MPI_Issend(w, N, MPI_DOUBLE, 1, 11, MPI_COMM_WORLD, &q);
            for (i = 0; i < 2000; i++) { MPI_Test(&q, &flag, MPI_STATUS_IGNORE); seen += flag; }
            MPI_Send(u, N, MPI_DOUBLE, 1, 12, MPI_COMM_WORLD);
            MPI_Wait(&q, MPI_STATUS_IGNORE);
        } else if (rank == 1) {
            MPI_Recv(x, N, MPI_DOUBLE, 0, 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (i = 0; i < N; i++) sum += x[i] * i;
            MPI_Recv(y, N, MPI_DOUBLE, 0, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (i = 0; i < N; i++) sum += y[i] * i;
        }
        for (i = 0; i < N; i++) u[i] = u[i] * 0.5 + step;
    }
    printf("%a %d\n", sum, seen);
    MPI_Finalize();
    return 0;
}
