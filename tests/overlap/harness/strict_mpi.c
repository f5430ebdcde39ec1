/* A strict MPI between a program and MPICH, linked before it: what MPI merely permits happens here every time.
 *
 *   - Standard-mode sends are synchronous: what relies on buffering deadlocks.
 *   - While a nonblocking operation is on its way, what it will write holds poison, and what it reads is remembered. When it
 *     completes, memory that the program touched too early is reported and ends the run; what was read too early is poison.
 *   - Messages land outside the program's buffer and come in when the operation completes, never before.
 *   - Requests that were never completed are reported by MPI_Finalize.
 *   - With STRICT_MPI_DELAY=N every rank waits up to N microseconds before each call, differently on every rank.
 *
 * Bytes that a short message leaves alone keep their old values, as with any MPI.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* MPICH's function. Fortran's bindings call some functions by their MPI_ names and some by their PMPI_ names, so this file
 * defines both, and cannot call the second to reach MPICH. */
#define REAL(name) ((__typeof__(&name))real("P" #name))

enum { FAILED = 86, NOT_A_NUMBER = 0xFF, FAR_BELOW_ZERO = 0xA7 };

/* Memory that belongs to one operation on its way: `kept` is what it held at the start of a read, `landing` where a write
 * arrives. */
typedef struct Guard {
  struct Guard *next;
  MPI_Request request;
  unsigned char *user;
  size_t bytes;
  unsigned char *kept;
  unsigned char *landing;
  int poison;
  const char *call;
} Guard;

static Guard *guards;
static Guard *pending; /* guards of the call that is being started, which has no request yet */
static MPI_Request open_requests[4096];
static const char *open_calls[4096];
static int open_count;
static int world_rank = -1;
static unsigned delay_limit;
static uint64_t delay_state;

static void fail(const char *format, ...) {
  va_list values;
  va_start(values, format);
  fprintf(stderr, "strict_mpi: rank %d: ", world_rank);
  vfprintf(stderr, format, values);
  fputc('\n', stderr);
  fflush(stdout);
  fflush(stderr);
  va_end(values);
  PMPI_Abort(MPI_COMM_WORLD, FAILED);
}

static void *real(const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  if (found == NULL) fail("no %s", name);
  return found;
}

static void *memory(size_t bytes) {
  void *result = malloc(bytes > 0 ? bytes : 1);
  if (result == NULL) fail("no memory");
  return result;
}

static void hesitate(void) {
  if (delay_limit == 0) return;
  delay_state = delay_state * 6364136223846793005u + 1442695040888963407u;
  usleep((useconds_t)((delay_state >> 33) % delay_limit));
}

static void begin(void) {
  const char *limit = getenv("STRICT_MPI_DELAY");
  PMPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  delay_limit = limit != NULL ? (unsigned)atoi(limit) : 0;
  delay_state = 77u + 1000003u * (unsigned)world_rank;
}

/* ---- what an operation reads and writes --------------------------------------------------------------------------- */

/* Bytes of `count` elements; 0 for what cannot be guarded: types with gaps, MPI_IN_PLACE, MPI_BOTTOM. */
static size_t extent_of(const void *buffer, int count, MPI_Datatype type) {
  int size;
  MPI_Aint lower, extent, true_lower, true_extent;
  if (buffer == MPI_IN_PLACE || buffer == MPI_BOTTOM || count <= 0 || type == MPI_DATATYPE_NULL) return 0;
  PMPI_Type_size(type, &size);
  PMPI_Type_get_extent(type, &lower, &extent);
  PMPI_Type_get_true_extent(type, &true_lower, &true_extent);
  if (size != extent || size != true_extent || lower != 0 || true_lower != 0) return 0;
  return (size_t)count * (size_t)size;
}

/* Numbers that spread: a NaN stays one in whatever is computed from it. */
static int poison_of(MPI_Datatype type) {
  MPI_Datatype reals[] = {MPI_DOUBLE, MPI_FLOAT, MPI_DOUBLE_PRECISION, MPI_REAL, MPI_COMPLEX, MPI_DOUBLE_COMPLEX};
  for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
    if (type == reals[i]) return NOT_A_NUMBER;
  return FAR_BELOW_ZERO;
}

static void check_free(const char *call, const unsigned char *user, size_t bytes, int writes) {
  for (Guard *guard = guards; guard != NULL; guard = guard->next) {
    int overlaps = user < guard->user + guard->bytes && guard->user < user + bytes;
    if (overlaps && (writes || guard->landing != NULL))
      fail("%s uses memory that %s still %s", call, guard->call, guard->landing != NULL ? "writes" : "reads");
  }
}

static Guard *guard(const char *call, const void *user, size_t bytes) {
  Guard *made = memory(sizeof *made);
  *made = (Guard){pending, MPI_REQUEST_NULL, (unsigned char *)user, bytes, NULL, NULL, 0, call};
  pending = made;
  return made;
}

static void reads_bytes(const char *call, const void *user, size_t bytes) {
  if (user == NULL || bytes == 0) return;
  check_free(call, user, bytes, 0);
  Guard *made = guard(call, user, bytes);
  made->kept = memory(bytes);
  memcpy(made->kept, user, bytes);
}

static void reads(const char *call, const void *buffer, int count, MPI_Datatype type) {
  reads_bytes(call, buffer, extent_of(buffer, count, type));
}

/* Where MPI shall write instead of `buffer`. */
static void *writes(const char *call, void *buffer, int count, MPI_Datatype type) {
  size_t bytes = extent_of(buffer, count, type);
  if (bytes == 0) return buffer;
  check_free(call, buffer, bytes, 1);
  Guard *made = guard(call, buffer, bytes);
  made->landing = memory(bytes);
  memcpy(made->landing, buffer, bytes);
  made->poison = poison_of(type);
  memset(buffer, made->poison, bytes);
  return made->landing;
}

/* Where MPI shall write instead of `buffer`, in pieces of counts[i] elements at displs[i]; gaps stay the program's. */
static void *writes_pieces(const char *call, void *buffer, int ranks, const int *counts, const int *displs,
                           MPI_Datatype type) {
  size_t one = extent_of(buffer, 1, type), end = 0;
  if (one == 0) return buffer;
  for (int i = 0; i < ranks; i++) {
    size_t last = ((size_t)displs[i] + (size_t)counts[i]) * one;
    if (counts[i] > 0 && last > end) end = last;
  }
  if (end == 0) return buffer;
  /* The first guard owns the landing place; the others point into it. */
  unsigned char *landing = memory(end);
  memcpy(landing, buffer, end);
  for (int i = 0; i < ranks; i++) {
    size_t offset = (size_t)displs[i] * one, bytes = (size_t)counts[i] * one;
    if (bytes == 0) continue;
    check_free(call, (unsigned char *)buffer + offset, bytes, 1);
    Guard *made = guard(call, (unsigned char *)buffer + offset, bytes);
    made->landing = landing + offset;
    made->poison = poison_of(type);
    memset(made->user, made->poison, bytes);
  }
  return landing; /* leaked: programs are small */
}

static void reads_pieces(const char *call, const void *buffer, int ranks, const int *counts, const int *displs,
                         MPI_Datatype type) {
  size_t one = extent_of(buffer, 1, type);
  if (one == 0) return;
  for (int i = 0; i < ranks; i++)
    reads_bytes(call, (const unsigned char *)buffer + (size_t)displs[i] * one, (size_t)counts[i] * one);
}

/* MPI may look at count and displacement arrays until the operation completes. */
static void reads_counts(const char *call, int ranks, const int *counts, const int *displs) {
  reads_bytes(call, counts, (size_t)ranks * sizeof *counts);
  reads_bytes(call, displs, (size_t)ranks * sizeof *displs);
}

static int started(const char *call, int result, MPI_Request request) {
  while (pending != NULL) {
    Guard *one = pending;
    pending = one->next;
    one->request = request;
    one->next = guards;
    guards = one;
  }
  if (request != MPI_REQUEST_NULL && open_count < 4096) {
    open_requests[open_count] = request;
    open_calls[open_count++] = call;
  }
  return result;
}

static void close_request(MPI_Request request) {
  for (int i = 0; i < open_count; i++)
    if (open_requests[i] == request) {
      open_requests[i] = open_requests[--open_count];
      open_calls[i] = open_calls[open_count];
      return;
    }
}

static void finish(MPI_Request request) {
  if (request == MPI_REQUEST_NULL) return;
  close_request(request);
  for (Guard **place = &guards; *place != NULL;) {
    Guard *one = *place;
    if (one->request != request) {
      place = &one->next;
      continue;
    }
    for (size_t i = 0; i < one->bytes; i++)
      if (one->user[i] != (one->landing != NULL ? one->poison : one->kept[i]))
        fail("byte %zu of what %s %s changed before it completed", i, one->call, one->landing ? "writes" : "reads");
    if (one->landing != NULL) memcpy(one->user, one->landing, one->bytes);
    free(one->kept);
    *place = one->next;
    free(one);
  }
}

/* ---- start and end ------------------------------------------------------------------------------------------------ */

int MPI_Init(int *argc, char ***argv) {
  int result = REAL(MPI_Init)(argc, argv);
  begin();
  return result;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
  int result = REAL(MPI_Init_thread)(argc, argv, required, provided);
  begin();
  return result;
}

int MPI_Finalize(void) {
  if (open_count > 0) fail("%s was started and never completed (%d requests open)", open_calls[0], open_count);
  return REAL(MPI_Finalize)();
}

/* ---- messages ----------------------------------------------------------------------------------------------------- */

int MPI_Send(const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c) {
  hesitate();
  check_free("MPI_Send", b, extent_of(b, n, t), 0);
  return PMPI_Ssend(b, n, t, to, tag, c);
}

int MPI_Recv(void *b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Status *s) {
  hesitate();
  check_free("MPI_Recv", b, extent_of(b, n, t), 1);
  return REAL(MPI_Recv)(b, n, t, from, tag, c, s);
}

int MPI_Sendrecv(const void *sb, int sn, MPI_Datatype st, int to, int stag, void *rb, int rn, MPI_Datatype rt, int from,
                 int rtag, MPI_Comm c, MPI_Status *s) {
  hesitate();
  check_free("MPI_Sendrecv", sb, extent_of(sb, sn, st), 0);
  check_free("MPI_Sendrecv", rb, extent_of(rb, rn, rt), 1);
  return REAL(MPI_Sendrecv)(sb, sn, st, to, stag, rb, rn, rt, from, rtag, c, s);
}

int MPI_Isend(const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request *r) {
  hesitate();
  reads("MPI_Isend", b, n, t);
  int result = REAL(MPI_Issend)(b, n, t, to, tag, c, r);
  return started("MPI_Isend", result, *r);
}

int MPI_Issend(const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request *r) {
  hesitate();
  reads("MPI_Issend", b, n, t);
  int result = REAL(MPI_Issend)(b, n, t, to, tag, c, r);
  return started("MPI_Issend", result, *r);
}

int MPI_Irecv(void *b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request *r) {
  hesitate();
  b = writes("MPI_Irecv", b, n, t);
  int result = REAL(MPI_Irecv)(b, n, t, from, tag, c, r);
  return started("MPI_Irecv", result, *r);
}

/* ---- collectives -------------------------------------------------------------------------------------------------- */

static int is_inter(MPI_Comm c) {
  int answer;
  PMPI_Comm_test_inter(c, &answer);
  return answer;
}

static int size_of(MPI_Comm c) {
  int size;
  PMPI_Comm_size(c, &size);
  return size;
}

static int is_root(int root, MPI_Comm c) {
  int rank;
  PMPI_Comm_rank(c, &rank);
  return rank == root;
}

int MPI_Ibcast(void *b, int n, MPI_Datatype t, int root, MPI_Comm c, MPI_Request *r) {
  hesitate();
  if (!is_inter(c)) {
    if (is_root(root, c))
      reads("MPI_Ibcast", b, n, t);
    else
      b = writes("MPI_Ibcast", b, n, t);
  }
  int result = REAL(MPI_Ibcast)(b, n, t, root, c, r);
  return started("MPI_Ibcast", result, *r);
}

int MPI_Ireduce(const void *sb, void *rb, int n, MPI_Datatype t, MPI_Op op, int root, MPI_Comm c, MPI_Request *r) {
  hesitate();
  if (!is_inter(c)) {
    reads("MPI_Ireduce", sb, n, t);
    if (is_root(root, c)) rb = writes("MPI_Ireduce", rb, n, t);
  }
  int result = REAL(MPI_Ireduce)(sb, rb, n, t, op, root, c, r);
  return started("MPI_Ireduce", result, *r);
}

int MPI_Iallreduce(const void *sb, void *rb, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Request *r) {
  hesitate();
  if (!is_inter(c)) {
    reads("MPI_Iallreduce", sb, n, t);
    rb = writes("MPI_Iallreduce", rb, n, t);
  }
  int result = REAL(MPI_Iallreduce)(sb, rb, n, t, op, c, r);
  return started("MPI_Iallreduce", result, *r);
}

int MPI_Igather(const void *sb, int sn, MPI_Datatype st, void *rb, int rn, MPI_Datatype rt, int root, MPI_Comm c,
                MPI_Request *r) {
  hesitate();
  if (!is_inter(c)) {
    reads("MPI_Igather", sb, sn, st);
    if (is_root(root, c)) rb = writes("MPI_Igather", rb, rn * size_of(c), rt);
  }
  int result = REAL(MPI_Igather)(sb, sn, st, rb, rn, rt, root, c, r);
  return started("MPI_Igather", result, *r);
}

int MPI_Igatherv(const void *sb, int sn, MPI_Datatype st, void *rb, const int *rn, const int *rd, MPI_Datatype rt,
                 int root, MPI_Comm c, MPI_Request *r) {
  hesitate();
  if (!is_inter(c)) {
    reads("MPI_Igatherv", sb, sn, st);
    if (is_root(root, c)) {
      reads_counts("MPI_Igatherv", size_of(c), rn, rd);
      rb = writes_pieces("MPI_Igatherv", rb, size_of(c), rn, rd, rt);
    }
  }
  int result = REAL(MPI_Igatherv)(sb, sn, st, rb, rn, rd, rt, root, c, r);
  return started("MPI_Igatherv", result, *r);
}

int MPI_Iscatter(const void *sb, int sn, MPI_Datatype st, void *rb, int rn, MPI_Datatype rt, int root, MPI_Comm c,
                 MPI_Request *r) {
  hesitate();
  if (!is_inter(c)) {
    if (is_root(root, c)) reads("MPI_Iscatter", sb, sn * size_of(c), st);
    rb = writes("MPI_Iscatter", rb, rn, rt);
  }
  int result = REAL(MPI_Iscatter)(sb, sn, st, rb, rn, rt, root, c, r);
  return started("MPI_Iscatter", result, *r);
}

int MPI_Iscatterv(const void *sb, const int *sn, const int *sd, MPI_Datatype st, void *rb, int rn, MPI_Datatype rt,
                  int root, MPI_Comm c, MPI_Request *r) {
  hesitate();
  if (!is_inter(c)) {
    if (is_root(root, c)) {
      reads_counts("MPI_Iscatterv", size_of(c), sn, sd);
      reads_pieces("MPI_Iscatterv", sb, size_of(c), sn, sd, st);
    }
    rb = writes("MPI_Iscatterv", rb, rn, rt);
  }
  int result = REAL(MPI_Iscatterv)(sb, sn, sd, st, rb, rn, rt, root, c, r);
  return started("MPI_Iscatterv", result, *r);
}

int MPI_Iallgather(const void *sb, int sn, MPI_Datatype st, void *rb, int rn, MPI_Datatype rt, MPI_Comm c,
                   MPI_Request *r) {
  hesitate();
  if (!is_inter(c)) {
    reads("MPI_Iallgather", sb, sn, st);
    rb = writes("MPI_Iallgather", rb, rn * size_of(c), rt);
  }
  int result = REAL(MPI_Iallgather)(sb, sn, st, rb, rn, rt, c, r);
  return started("MPI_Iallgather", result, *r);
}

int MPI_Iallgatherv(const void *sb, int sn, MPI_Datatype st, void *rb, const int *rn, const int *rd, MPI_Datatype rt,
                    MPI_Comm c, MPI_Request *r) {
  hesitate();
  if (!is_inter(c)) {
    reads("MPI_Iallgatherv", sb, sn, st);
    reads_counts("MPI_Iallgatherv", size_of(c), rn, rd);
    rb = writes_pieces("MPI_Iallgatherv", rb, size_of(c), rn, rd, rt);
  }
  int result = REAL(MPI_Iallgatherv)(sb, sn, st, rb, rn, rd, rt, c, r);
  return started("MPI_Iallgatherv", result, *r);
}

int MPI_Ialltoall(const void *sb, int sn, MPI_Datatype st, void *rb, int rn, MPI_Datatype rt, MPI_Comm c,
                  MPI_Request *r) {
  hesitate();
  if (!is_inter(c)) {
    reads("MPI_Ialltoall", sb, sn * size_of(c), st);
    rb = writes("MPI_Ialltoall", rb, rn * size_of(c), rt);
  }
  int result = REAL(MPI_Ialltoall)(sb, sn, st, rb, rn, rt, c, r);
  return started("MPI_Ialltoall", result, *r);
}

int MPI_Ialltoallv(const void *sb, const int *sn, const int *sd, MPI_Datatype st, void *rb, const int *rn, const int *rd,
                   MPI_Datatype rt, MPI_Comm c, MPI_Request *r) {
  hesitate();
  if (!is_inter(c)) {
    reads_counts("MPI_Ialltoallv", size_of(c), sn, sd);
    reads_pieces("MPI_Ialltoallv", sb, size_of(c), sn, sd, st);
    reads_counts("MPI_Ialltoallv", size_of(c), rn, rd);
    rb = writes_pieces("MPI_Ialltoallv", rb, size_of(c), rn, rd, rt);
  }
  int result = REAL(MPI_Ialltoallv)(sb, sn, sd, st, rb, rn, rd, rt, c, r);
  return started("MPI_Ialltoallv", result, *r);
}

/* ---- completion --------------------------------------------------------------------------------------------------- */

static MPI_Request *copies(int n, const MPI_Request *r) {
  MPI_Request *copy = memory((size_t)n * sizeof *copy);
  memcpy(copy, r, (size_t)n * sizeof *copy);
  return copy;
}

int MPI_Wait(MPI_Request *r, MPI_Status *s) {
  MPI_Request was = *r;
  hesitate();
  int result = REAL(MPI_Wait)(r, s);
  finish(was);
  return result;
}

int MPI_Waitall(int n, MPI_Request *r, MPI_Status *s) {
  MPI_Request *were = copies(n, r);
  hesitate();
  int result = REAL(MPI_Waitall)(n, r, s);
  for (int i = 0; i < n; i++) finish(were[i]);
  free(were);
  return result;
}

int MPI_Waitany(int n, MPI_Request *r, int *index, MPI_Status *s) {
  MPI_Request *were = copies(n, r);
  hesitate();
  int result = REAL(MPI_Waitany)(n, r, index, s);
  if (*index != MPI_UNDEFINED) finish(were[*index]);
  free(were);
  return result;
}

int MPI_Waitsome(int n, MPI_Request *r, int *count, int *indices, MPI_Status *s) {
  MPI_Request *were = copies(n, r);
  hesitate();
  int result = REAL(MPI_Waitsome)(n, r, count, indices, s);
  for (int i = 0; *count != MPI_UNDEFINED && i < *count; i++) finish(were[indices[i]]);
  free(were);
  return result;
}

int MPI_Test(MPI_Request *r, int *flag, MPI_Status *s) {
  MPI_Request was = *r;
  int result = REAL(MPI_Test)(r, flag, s);
  if (*flag) finish(was);
  return result;
}

int MPI_Testall(int n, MPI_Request *r, int *flag, MPI_Status *s) {
  MPI_Request *were = copies(n, r);
  int result = REAL(MPI_Testall)(n, r, flag, s);
  for (int i = 0; *flag && i < n; i++) finish(were[i]);
  free(were);
  return result;
}

int MPI_Testany(int n, MPI_Request *r, int *index, int *flag, MPI_Status *s) {
  MPI_Request *were = copies(n, r);
  int result = REAL(MPI_Testany)(n, r, index, flag, s);
  if (*flag && *index != MPI_UNDEFINED) finish(were[*index]);
  free(were);
  return result;
}

int MPI_Testsome(int n, MPI_Request *r, int *count, int *indices, MPI_Status *s) {
  MPI_Request *were = copies(n, r);
  int result = REAL(MPI_Testsome)(n, r, count, indices, s);
  for (int i = 0; *count != MPI_UNDEFINED && i < *count; i++) finish(were[indices[i]]);
  free(were);
  return result;
}

/* A request given up may complete whenever it likes: it is not watched any more. A receive's message would be lost. */
int MPI_Request_free(MPI_Request *r) {
  for (Guard *one = guards; one != NULL; one = one->next)
    if (one->request == *r && one->landing != NULL) fail("MPI_Request_free gives up %s, which writes", one->call);
  for (Guard **place = &guards; *place != NULL;)
    if ((*place)->request == *r)
      *place = (*place)->next;
    else
      place = &(*place)->next;
  close_request(*r);
  return REAL(MPI_Request_free)(r);
}

/* ---- the same under their other names ------------------------------------------------------------------------------ */

#define ALSO(name) extern __typeof__(name) P##name __attribute__((alias(#name)));
ALSO(MPI_Init)
ALSO(MPI_Init_thread)
ALSO(MPI_Finalize)
ALSO(MPI_Send)
ALSO(MPI_Recv)
ALSO(MPI_Sendrecv)
ALSO(MPI_Isend)
ALSO(MPI_Issend)
ALSO(MPI_Irecv)
ALSO(MPI_Ibcast)
ALSO(MPI_Ireduce)
ALSO(MPI_Iallreduce)
ALSO(MPI_Igather)
ALSO(MPI_Igatherv)
ALSO(MPI_Iscatter)
ALSO(MPI_Iscatterv)
ALSO(MPI_Iallgather)
ALSO(MPI_Iallgatherv)
ALSO(MPI_Ialltoall)
ALSO(MPI_Ialltoallv)
ALSO(MPI_Wait)
ALSO(MPI_Waitall)
ALSO(MPI_Waitany)
ALSO(MPI_Waitsome)
ALSO(MPI_Test)
ALSO(MPI_Testall)
ALSO(MPI_Testany)
ALSO(MPI_Testsome)
ALSO(MPI_Request_free)
