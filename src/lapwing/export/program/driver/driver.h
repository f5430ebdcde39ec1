/* What an exported program of several nests works on (driver.c) and the tiles that it calls (tile_1.c, ...). Numbers
 * that belong to one problem, such as the arrays' sizes and what is done in which order, are in program.bin. */
#ifndef LAPWING_DRIVER_H
#define LAPWING_DRIVER_H

#include "nest.h"

#ifdef __cplusplus
extern "C" {
#endif

/* element is the type as .npy files name it, such as "<f8". */
typedef struct lw_driver_memory {
    const char *name, *element;
    int64_t itemsize, axes;
} lw_driver_memory;

/* What some calls have in common: a generated tile, and what it works on. */
typedef struct lw_driver_module {
    const lw_nest *nest;
    lw_module functions;
} lw_driver_module;

typedef struct lw_driver {
    const char *name;
    int64_t memories, modules;
    const lw_driver_memory *memory;
    const lw_driver_module *module;
    const char *const *text; /* names of results, and those that are known */
} lw_driver;

extern const lw_driver lw_this_driver;

#ifdef __cplusplus
}
#endif

#endif
