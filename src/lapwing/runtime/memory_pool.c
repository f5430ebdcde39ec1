/* Memory of arrays that programs make while they run, for NumPy (NEP 49): what is freed is kept and given out again, so
 * that a program that is called again finds pages that the system need not map and clear once more. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* NumPy's PyDataMem_Handler, version 1. */
typedef struct allocator {
    void *context;
    void *(*malloc)(void *context, size_t size);
    void *(*calloc)(void *context, size_t count, size_t size);
    void *(*realloc)(void *context, void *data, size_t size);
    void (*free)(void *context, void *data, size_t size);
} allocator;
typedef struct handler {
    char name[127];
    uint8_t version;
    allocator allocator;
} handler;

/* What stands before the data of an array, for the length of a cache line. capacity: bytes of a mapped block, this
 * among them; 0 where malloc gave the memory. */
typedef struct block {
    size_t capacity;
} block;

enum { HEADER = 64, PAGE = 4096, MOST_KEPT = 64, SPARE = 8 /* the part of a block that may be left unused */ };
static const size_t LEAST_MAPPED = 256 << 10, HUGE_PAGE = 2 << 20;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block *kept[MOST_KEPT]; /* the one that has been kept longest first */
static size_t kept_count, kept_bytes, most_bytes;

void lw_keep_at_most(size_t bytes) { most_bytes = bytes; }

static block *block_of(void *data) { return (block *)((char *)data - HEADER); }

static block *take_out(size_t position) {
    block *const taken = kept[position];
    memmove(kept + position, kept + position + 1, (--kept_count - position) * sizeof *kept);
    kept_bytes -= taken->capacity;
    return taken;
}

/* The smallest block that is large enough and not much too large, of several the one that was freed last, which caches
 * may still hold; NULL where none is kept. */
static block *kept_block(size_t bytes) {
    pthread_mutex_lock(&lock);
    size_t best = MOST_KEPT;
    for (size_t k = 0; k < kept_count; ++k) {
        const size_t capacity = kept[k]->capacity;
        if (capacity < bytes || capacity - bytes > capacity / SPARE) continue;
        if (best == MOST_KEPT || capacity <= kept[best]->capacity) best = k;
    }
    block *const found = best == MOST_KEPT ? NULL : take_out(best);
    pthread_mutex_unlock(&lock);
    return found;
}

static block *mapped_block(size_t bytes) {
    const size_t capacity = (bytes + PAGE - 1) / PAGE * PAGE;
    block *const made = mmap(NULL, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) return NULL;
#ifdef MADV_HUGEPAGE
    /* Of what is larger than the pool only few elements may ever be touched. */
    if (capacity >= 2 * HUGE_PAGE && capacity <= most_bytes) madvise(made, capacity, MADV_HUGEPAGE);
#endif
    made->capacity = capacity;
    return made;
}

static void *pool_malloc_or_calloc(size_t size, bool zeros) {
    if (size > SIZE_MAX - HEADER - PAGE) return NULL;
    const size_t bytes = size + HEADER;
    block *found = NULL;
    if (bytes < LEAST_MAPPED) {
        found = zeros ? calloc(1, bytes) : malloc(bytes);
        if (found) found->capacity = 0;
    } else if ((found = kept_block(bytes))) {
        if (zeros) memset((char *)found + HEADER, 0, size);
    } else {
        found = mapped_block(bytes);
    }
    return found ? (char *)found + HEADER : NULL;
}

static void *pool_malloc(void *context, size_t size) {
    (void)context;
    return pool_malloc_or_calloc(size, false);
}

static void *pool_calloc(void *context, size_t count, size_t size) {
    (void)context;
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? NULL : pool_malloc_or_calloc(bytes, true);
}

static void pool_free(void *context, void *data, size_t size) {
    (void)context;
    (void)size;
    if (!data) return;
    block *const freed = block_of(data);
    if (freed->capacity == 0) {
        free(freed);
        return;
    }
    pthread_mutex_lock(&lock);
    const bool keep = freed->capacity <= most_bytes;
    while (keep && (kept_count == MOST_KEPT || kept_bytes + freed->capacity > most_bytes)) {
        block *const oldest = take_out(0);
        munmap(oldest, oldest->capacity);
    }
    if (keep) {
        kept[kept_count++] = freed;
        kept_bytes += freed->capacity;
    }
    pthread_mutex_unlock(&lock);
    if (!keep) munmap(freed, freed->capacity);
}

static void *pool_realloc(void *context, void *data, size_t size) {
    if (!data) return pool_malloc(context, size);
    block *const old = block_of(data);
    if (old->capacity == 0) {
        block *const moved = size > SIZE_MAX - HEADER ? NULL : realloc(old, size + HEADER);
        return moved ? (char *)moved + HEADER : NULL;
    }
    if (size <= old->capacity - HEADER) return data;
    void *const made = pool_malloc(context, size);
    if (!made) return NULL;
    memcpy(made, data, old->capacity - HEADER);
    pool_free(context, data, 0);
    return made;
}

handler lw_memory_handler = {"lapwing", 1, {NULL, pool_malloc, pool_calloc, pool_realloc, pool_free}};
