#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
typedef struct { int nx, ny, up, down; MPI_Comm comm; } grid_t;
#define IDX(g, i, j) ((i) * ((g)->ny + 2) + (j))
static void exchange(double *u, const grid_t *g)
{
    MPI_Request r[4];
    MPI_Irecv(&u[IDX(g, 0, 1)], g->ny, MPI_DOUBLE, g->up, 0, g->comm, &r[0]);
    MPI_Irecv(&u[IDX(g, g->nx + 1, 1)], g->ny, MPI_DOUBLE, g->down, 1, g->comm, &r[1]);
    MPI_Isend(&u[IDX(g, g->nx, 1)], g->ny, MPI_DOUBLE, g->down, 0, g->comm, &r[2]);
    MPI_Isend(&u[IDX(g, 1, 1)], g->ny, MPI_DOUBLE, g->up, 1, g->comm, &r[3]);
    MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
}
static void update(const double *u, double *v, const grid_t *g)
{
    for (int i = 1; i <= g->nx; i++)
        for (int j = 1; j <= g->ny; j++)
            v[IDX(g, i, j)] = 0.25 * (u[IDX(g, i - 1, j)] + u[IDX(g, i + 1, j)] + u[IDX(g, i, j - 1)] + u[IDX(g, i, j + 1)]);
}
static void setup(grid_t *g, int nx, int ny)
{
    int rank, size;
    g->comm = MPI_COMM_WORLD;
    MPI_Comm_rank(g->comm, &rank);
    MPI_Comm_size(g->comm, &size);
    g->up = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    g->down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    g->nx = nx / size;
    g->ny = ny;
}
int main(int argc, char **argv)
{
    grid_t g;
    MPI_Init(&argc, &argv);
    setup(&g, 24, 300);
    double *u = calloc((g.nx + 2) * (g.ny + 2), sizeof(double)), *v = calloc((g.nx + 2) * (g.ny + 2), sizeof(double));
    for (int i = 0; i <= g.nx + 1; i++)
        for (int j = 0; j <= g.ny + 1; j++) u[IDX(&g, i, j)] = v[IDX(&g, i, j)] = i * 7 % 5 + j % 3;
    for (int t = 0; t < 10; t++) {
        exchange(u, &g);
        update(u, v, &g);
        g.nx -= t == 4;
        exchange(v, &g);
        update(v, u, &g);
    }
    double s = 0;
    for (int i = 1; i <= g.nx; i++)
        for (int j = 1; j <= g.ny; j++) s += u[IDX(&g, i, j)] * (i + 2 * j);
    printf("%a\n", s);
    free(u);
    free(v);
    MPI_Finalize();
    return 0;
}
