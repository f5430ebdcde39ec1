/* A receive that must not start before a call that receives from the same rank with the same tag. */
#include <mpi.h>
#include <stdio.h>

#define R 12
#define C 400

static double u[R + 2][C], w[R + 2][C], s[R + 2][C], h[2][C];
static int rank, size, up, down;

int main(int argc, char **argv)
{
    int i, j, step;
    double sum = 0;
    MPI_Datatype row;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    up = (rank + size - 1) % size;
    down = (rank + 1) % size;
    for (i = 0; i < R + 2; i++)
        for (j = 0; j < C; j++) {
            u[i][j] = (i * 5 + j * 3 + rank) % 31;
            s[i][j] = i + j;
        }
    MPI_Type_contiguous(C, MPI_DOUBLE, &row);
    MPI_Type_commit(&row);
    for (step = 0; step < 4; step++) {
        if (rank % 2 == 0 && rank + 1 < size) {
            MPI_Sendrecv_replace(h[0], C, MPI_DOUBLE, rank + 1, 1, rank + 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Recv(h[1], C, MPI_DOUBLE, rank + 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (i = 1; i <= R; i++)
                for (j = 0; j < C; j++) s[i][j] = s[i][j] * 0.5 + u[i][j];
            for (j = 0; j < C; j++) w[1][j] += h[1][j] - 2 * h[0][j];
        } else if (rank % 2 == 1) {
            for (j = 0; j < C; j++) h[0][j] = rank + step + j;
            MPI_Sendrecv_replace(h[0], C, MPI_DOUBLE, rank - 1, 2, rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (j = 0; j < C; j++) h[1][j] = 100 * rank + step + j;
            MPI_Send(h[1], C, MPI_DOUBLE, rank - 1, 2, MPI_COMM_WORLD);
        }
        if (rank == 0) {
            for (j = 0; j < C; j++) h[0][j] = step + j;
            MPI_Sendrecv(h[0], 1, row, 1, 4, h[1], 1, row, size - 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Recv(s[1], C, MPI_DOUBLE, size - 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (i = 1; i <= R; i++)
                for (j = 0; j < C; j++) w[i][j] = w[i][j] * 0.5 + u[i][j];
        } else if (rank == size - 1) {
            for (j = 0; j < C; j++) h[0][j] = 3 * step + j;
            if (size > 2) MPI_Send(h[0], 1, row, 0, 5, MPI_COMM_WORLD);
            else MPI_Sendrecv(h[0], 1, row, 0, 5, h[1], 1, row, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (j = 0; j < C; j++) h[0][j] = 7 * step + j;
            MPI_Send(h[0], C, MPI_DOUBLE, 0, 5, MPI_COMM_WORLD);
        }
        if (size > 2 && rank == 1) MPI_Recv(h[1], 1, row, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (i = 1; i <= R; i++)
            for (j = 0; j < C; j++) u[i][j] = 0.5 * u[i][j] + 0.25 * w[i][j];
    }
    for (i = 0; i < R + 2; i++)
        for (j = 0; j < C; j++) sum += u[i][j] * (7 * i + j + 1) + w[i][j] * (3 * i + j) + s[i][j] * (i + 2 * j);
    printf("%a\n", sum);
    MPI_Type_free(&row);
    MPI_Finalize();
    return 0;
}
