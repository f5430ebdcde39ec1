/* Planes that functions are given as rows, of a length that is an argument, too. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, size, up, down;

static void exchange(int nx, int ny, double u[nx + 2][ny + 2])
{
    MPI_Request req[4];
    MPI_Irecv(&u[0][1], ny, MPI_DOUBLE, up, 0, MPI_COMM_WORLD, &req[0]);
    MPI_Irecv(&u[nx + 1][1], ny, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &req[1]);
    MPI_Isend(&u[1][1], ny, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &req[2]);
    MPI_Isend(&u[nx][1], ny, MPI_DOUBLE, down, 0, MPI_COMM_WORLD, &req[3]);
    MPI_Waitall(4, req, MPI_STATUSES_IGNORE); /* overlap: split-loop */
}

static void update(int nx, int ny, double v[nx + 2][ny + 2], double u[nx + 2][ny + 2])
{
    for (int i = 1; i <= nx; i++)
        for (int j = 1; j <= ny; j++)
            v[i][j] = 0.25 * (u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1]);
}

static void copy(int nx, int ny, double u[nx + 2][ny + 2], double v[nx + 2][ny + 2])
{
    for (int i = 1; i <= nx; i++)
        for (int j = 1; j <= ny; j++)
            u[i][j] = v[i][j];
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int nx = argc > 1 ? atoi(argv[1]) : 8, ny = argc > 2 ? atoi(argv[2]) : 10;
    double (*u)[ny + 2] = malloc(sizeof(double[nx + 2][ny + 2]));
    double (*v)[ny + 2] = malloc(sizeof(double[nx + 2][ny + 2]));
    up = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    for (int i = 0; i < nx + 2; i++)
        for (int j = 0; j < ny + 2; j++) {
            u[i][j] = rank + 0.1 * i + 0.01 * j;
            v[i][j] = 0.0;
        }
    for (int step = 0; step < 5; step++) {
        exchange(nx, ny, u);
        update(nx, ny, v, u);
        copy(nx, ny, u, v);
    }
    double s = 0;
    for (int i = 1; i <= nx; i++)
        for (int j = 1; j <= ny; j++)
            s += u[i][j] * (i + 3 * j);
    printf("%a\n", s);
    MPI_Finalize();
    return 0;
}
