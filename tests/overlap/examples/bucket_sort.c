/* Keys are ranked again and again: count, agree on the counts, send every key to the rank that owns its bucket. */
#include <mpi.h>
#include <stdio.h>

#define KEYS 4096
#define MAX_KEY 1024
#define RANKS 8
#define ITERATIONS 5

static int keys[KEYS], sorted[KEYS], received[KEYS * RANKS], histogram[MAX_KEY];
static int buckets[RANKS], totals[RANKS], sends[RANKS], receives[RANKS], send_at[RANKS], receive_at[RANKS];
static int rank, size, checks;

static void make_keys(void) {
  unsigned state = 12345u + 77u * (unsigned)rank;
  for (int i = 0; i < KEYS; i++) {
    state = state * 1103515245u + 12345u;
    keys[i] = (int)(state >> 16) % MAX_KEY;
  }
}

static void rank_keys(int iteration) {
  int pointers[RANKS], width = (MAX_KEY + size - 1) / size, count = 0;

  keys[iteration] = iteration;
  keys[iteration + ITERATIONS] = MAX_KEY - iteration - 1;
  for (int r = 0; r < size; r++) buckets[r] = 0;
  for (int i = 0; i < KEYS; i++) buckets[keys[i] / width]++;
  MPI_Allreduce(buckets, totals, size, MPI_INT, MPI_SUM, MPI_COMM_WORLD);

  pointers[0] = 0;
  for (int r = 1; r < size; r++) pointers[r] = pointers[r - 1] + buckets[r - 1];
  for (int i = 0; i < KEYS; i++) sorted[pointers[keys[i] / width]++] = keys[i];

  for (int r = 0; r < size; r++) sends[r] = buckets[r];
  MPI_Alltoall(sends, 1, MPI_INT, receives, 1, MPI_INT, MPI_COMM_WORLD);
  send_at[0] = receive_at[0] = 0;
  for (int r = 1; r < size; r++) {
    send_at[r] = send_at[r - 1] + sends[r - 1];
    receive_at[r] = receive_at[r - 1] + receives[r - 1];
  }
  /* overlap: pipeline-loop */
  MPI_Alltoallv(sorted, sends, send_at, MPI_INT, received, receives, receive_at, MPI_INT, MPI_COMM_WORLD);

  for (int k = 0; k < MAX_KEY; k++) histogram[k] = 0;
  for (int r = 0; r < size; r++) count += receives[r];
  for (int i = 0; i < count; i++) histogram[received[i]]++;
  for (int k = 1; k < MAX_KEY; k++) histogram[k] += histogram[k - 1];
  checks = (checks * 31 + histogram[MAX_KEY - 1] + totals[rank]) % 9973;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  make_keys();
  for (int iteration = 1; iteration <= ITERATIONS; iteration++) rank_keys(iteration);
  printf("%d: %d\n", rank, checks);
  for (int k = 0; k < MAX_KEY; k += 64) printf("%d\n", histogram[k]);
  MPI_Finalize();
  return 0;
}
