/* Rank 0 adds to a file and says so; rank 1, which has it open, reads what is new. */
#include <mpi.h>
#include <stdio.h>

#define N 600

static double a[N], b[N], field[N], table[64];

int main(int argc, char **argv)
{
    int rank;
    FILE *file = NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) file = fopen("flushed_file.table", "w");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) file = fopen("flushed_file.table", "r");
    for (int i = 0; i < N; i++) a[i] = i + rank;
    for (int t = 0; t < 4; t++) {
        for (int i = 0; i < N; i++) b[i] = 0.5 * b[i] + a[i];
        if (rank == 0) {
            for (int k = 0; k < 64; k++) fwrite(&b[k], sizeof(double), 1, file);
            fflush(file);
            MPI_Send(b, N, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD);
            for (int i = 0; i < N; i++) a[i] = 0.5 * a[i] + i;
        } else if (rank == 1) {
            MPI_Recv(field, N, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            size_t got = 0;
            for (int k = 0; k < 64; k++) got += fread(&table[k], sizeof(double), 1, file);
            for (int i = 0; i < N; i++) b[i] = 0.5 * b[i] + table[i % 64] + (double)got;
            for (int i = 0; i < N; i++) a[i] = 0.5 * a[i] + field[i];
        }
    }
    double sum = 0;
    for (int i = 0; i < N; i++) sum += a[i] * (i + 1) + b[i];
    printf("%d %a\n", rank, sum);
    if (rank < 2) fclose(file);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) remove("flushed_file.table");
    MPI_Finalize();
    return 0;
}
