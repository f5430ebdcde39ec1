/* Two threads exchange at once, each with a tag of its own: they would share what a call was taken apart into. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#define N 2000
static int rank, size; typedef struct { double a[N], b[N], c[N]; int tag; } Job; static Job jobs[2];
static void exchange(Job *j, int it) {
  for (int i = 0; i < N; i++) j->a[i] = 0.5 * j->a[i] + it;
  MPI_Sendrecv(j->a, N, MPI_DOUBLE, (rank + 1) % size, j->tag, j->b, N, MPI_DOUBLE, (rank + size - 1) % size, j->tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < N; i++) j->c[i] = 0.5 * j->c[i] + i;
  for (int i = 0; i < N; i++) j->a[i] += 0.5 * j->b[i] + j->c[i] * j->tag;
}
static void *worker(void *p) { for (int it = 0; it < 20; it++) exchange(p, it); return NULL; }
int main(int argc, char **argv) {
  int prov; MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &prov); MPI_Comm_rank(MPI_COMM_WORLD, &rank); MPI_Comm_size(MPI_COMM_WORLD, &size);
  pthread_t t[2];
  for (int k = 0; k < 2; k++) { jobs[k].tag = k + 1; for (int i = 0; i < N; i++) jobs[k].a[i] = i + rank + k; pthread_create(&t[k], NULL, worker, &jobs[k]); }
  for (int k = 0; k < 2; k++) pthread_join(t[k], NULL);
  double h = 0; for (int k = 0; k < 2; k++) for (int i = 0; i < N; i++) h = 0.5 * h + jobs[k].a[i] + jobs[k].c[i]; printf("%a\n", h);
  MPI_Finalize(); return 0;
}
