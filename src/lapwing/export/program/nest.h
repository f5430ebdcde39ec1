/* What the exported program computes: the generated tile (tile.c) and what it works on (nest.c). Numbers that belong to
 * one problem, such as the arrays' sizes, are in program.bin. */
#ifndef LAPWING_NEST_H
#define LAPWING_NEST_H

#include "lapwing.h"

#ifdef __cplusplus
extern "C" {
#endif

/* element is the type as .npy files name it, such as "<f8". */
typedef struct lw_nest_array {
    const char *name, *element;
    int64_t itemsize, axes, written;
} lw_nest_array;

/* kind is 'f' for floats and 'i' for integers; an exact sum takes many words, of which first_word is the first.
 * operation is "max", "min", "+" or "set"; or ">", ">=", "<" or "<=", of an extremum whose argument is wanted. It leads
 * others, which say so by its number (-1 in those without a leader): "at" is the value of a loop where it was found, in
 * the loops' order, which is nobody's name, and "with" what else was kept. "noted" is whether a sum of integers has had
 * a term, nobody's name either. */
typedef struct lw_nest_reduction {
    const char *name, *operation;
    char kind;
    int64_t bits, exact, first_word, leader;
} lw_nest_reduction;

typedef struct lw_nest {
    const char *name;
    int64_t arrays, scalars, reductions, words, traps;
    const lw_nest_array *array;
    const lw_nest_reduction *reduction;
    const char *const *trap; /* what the plain loop raises, by lw_tile's trap minus one */
} lw_nest;

extern const lw_nest lw_this_nest;

void lw_tile_compute(lw_tile *tile, const lw_box *iterations);
void lw_tile_pack(const lw_tile *tile, int32_t face, const lw_box *iterations, void *out);
void lw_tile_unpack(lw_tile *tile, int32_t face, const lw_box *iterations, const void *in);
void lw_tile_put(const lw_tile *tile, int32_t face, const lw_box *iterations, const lw_array *there);

#ifdef __cplusplus
}
#endif

#endif
