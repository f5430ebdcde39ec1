/* Copies rows of an array into a buffer in which those elements lie side by side that are computed at once, and back:
 * for tiles that advance the rows of a block together, a lane each, every one a step behind the row above.
 *
 * At a step a lane is at position `step - lane` of its row. LW_STEPS steps are copied at once, in squares of lanes and
 * steps that are transposed in registers.
 *
 * Included for every size of elements: LW_BYTES of 1, 2, 4 or 8. LW_LANES are those of a block, the same in all of
 * them. Where the array has larger integers than the buffer, LW_STORED_BYTES is their size; all of them fit. With
 * LW_CALLED what copies is called and not inlined: for code that seldom runs, which is compiled in half the time
 * then. */
#ifndef LAPWING_TRANSPOSED_H
#define LAPWING_TRANSPOSED_H

#include <stdint.h>
#include <stdlib.h>

#include "support.h"

/* Steps copied at once; elements from one step to the next in a buffer; lanes before lane 0 that it has room for; bytes
 * of a row that are fetched ahead of time. */
enum { LW_STEPS = 8, LW_MARGIN = 16, LW_WIDTH = LW_LANES + 2 * LW_MARGIN + 8, LW_AHEAD = 128 };

enum { LW_FAR = INT32_MAX }; /* beyond any row */

/* Of every lane, LW_MARGIN ones before lane 0 first, the positions from `low` on and below `high`. Of so many lanes
 * each that make a square: the steps from which one lane or all of them are at such positions, and until which; and
 * those between which one from lane 0 on is. */
typedef struct lw_rows {
    int64_t low[LW_WIDTH], high[LW_WIDTH], from, until;
    int64_t some_from[LW_WIDTH], all_from[LW_WIDTH], all_until[LW_WIDTH], some_until[LW_WIDTH];
} lw_rows;

LW_INLINE void lw_no_rows(lw_rows *rows) {
    for (int k = 0; k < LW_WIDTH; ++k) {
        rows->low[k] = LW_FAR;
        rows->high[k] = -LW_FAR;
    }
}

/* Adds what lanes `first` to `last`, at positions `starts` to `stops` of their rows, want at an offset across and
 * along. */
LW_INLINE void lw_add_rows(lw_rows *rows, const int64_t *starts, const int64_t *stops, int64_t first, int64_t last,
                           int64_t across, int64_t along) {
    for (int64_t k = first + LW_MARGIN; k < last + LW_MARGIN; ++k) {
        if (starts[k] >= stops[k]) continue;
        rows->low[k + across] = lw_min_i64(rows->low[k + across], starts[k] + along);
        rows->high[k + across] = lw_max_i64(rows->high[k + across], stops[k] + along);
    }
}

/* Leaves out lanes before `first` and from `last` on, and positions outside of `from` to `until`, which are of lane 0:
 * from lane to lane they move by `slope`. */
LW_INLINE void lw_clip_rows(lw_rows *rows, int64_t first, int64_t last, int64_t from, int64_t until, int64_t slope) {
    for (int64_t k = 0; k < LW_WIDTH; ++k) {
        const int64_t lane = k - LW_MARGIN;
        rows->low[k] = lane < first || lane >= last ? LW_FAR : lw_max_i64(rows->low[k], from + slope * lane);
        rows->high[k] = lane < first || lane >= last ? -LW_FAR : lw_min_i64(rows->high[k], until + slope * lane);
    }
}

/* Of lanes `first` to `last` only what lies before their first positions. */
LW_INLINE void lw_rows_before(lw_rows *rows, const int64_t *starts, int64_t first, int64_t last) {
    for (int64_t k = first + LW_MARGIN; k < last + LW_MARGIN; ++k) rows->high[k] = lw_min_i64(rows->high[k], starts[k]);
}

/* Of every lane, lane 0 first, the positions from `low` on and below `high` whose elements only iterations of the same
 * block read, and the steps between which that holds of all lanes but the last ones: of those every element is read. Of
 * LW_GROUP lanes each: the steps from which all of them are at such positions, and until which; and those from and
 * until which one is at any. */
enum { LW_GROUP = 8 };
typedef struct lw_unread {
    int64_t low[LW_WIDTH], high[LW_WIDTH], from, until, lanes;
    int64_t all_from[LW_WIDTH], all_until[LW_WIDTH], some_from[LW_WIDTH], some_until[LW_WIDTH];
} lw_unread;

LW_INLINE void lw_none_read(lw_unread *unread) {
    for (int k = 0; k < LW_WIDTH; ++k) {
        unread->low[k] = -LW_FAR;
        unread->high[k] = LW_FAR;
    }
}

/* Leaves out what is read `across` lanes further, `along` positions further, by no iteration of a block of `lanes`. */
LW_INLINE void lw_read_at(lw_unread *unread, const int64_t *starts, const int64_t *stops, int64_t lanes, int64_t across,
                          int64_t along) {
    for (int64_t k = 0; k < lanes; ++k) {
        const int64_t reader = k + across + LW_MARGIN;
        const bool inside = k + across < lanes;
        unread->low[k] = inside ? lw_max_i64(unread->low[k], starts[reader] - along) : LW_FAR;
        unread->high[k] = inside ? lw_min_i64(unread->high[k], stops[reader] - along) : -LW_FAR;
    }
}

/* To be called when all readers are known, before anything is stored; rows: of the lanes themselves. */
LW_INLINE void lw_group_unread(lw_unread *unread, const lw_rows *rows, int64_t lanes) {
    unread->from = -LW_FAR, unread->until = LW_FAR;
    unread->lanes = lanes;
    while (unread->lanes > 0 && unread->low[unread->lanes - 1] == LW_FAR) --unread->lanes;
    for (int64_t k = 0; k < unread->lanes; k += LW_GROUP) {
        int64_t all_from = -LW_FAR, all_until = LW_FAR, some_from = LW_FAR, some_until = -LW_FAR;
        for (int64_t i = k; i < lw_min_i64(k + LW_GROUP, unread->lanes); ++i) {
            all_from = lw_max_i64(all_from, unread->low[i] + i);
            all_until = lw_min_i64(all_until, unread->high[i] + i);
            some_from = lw_min_i64(some_from, rows->low[i + LW_MARGIN] + i);
            some_until = lw_max_i64(some_until, rows->high[i + LW_MARGIN] + i);
        }
        unread->all_from[k] = all_from, unread->all_until[k] = all_until;
        unread->some_from[k] = some_from, unread->some_until[k] = some_until;
        unread->from = lw_max_i64(unread->from, all_from);
        unread->until = lw_min_i64(unread->until, all_until);
    }
}

/* Room for the lanes of so many steps, at the beginning of a cache line. */
LW_INLINE void *lw_new_steps(int64_t steps, int64_t size) {
    void *const made = aligned_alloc(64, (size_t)(steps * LW_WIDTH * size + 63) / 64 * 64);
    if (!made) abort();
    return made;
}

/* Keeps compilers quiet about what the first of several rounds sets. */
#define LW_SET_LATER(variable) __asm__("" : "=m"(variable))

/* The fewest steps in whole groups of LW_STEPS. */
LW_INLINE int64_t lw_whole_groups(int64_t steps) { return (steps + LW_STEPS - 1) / LW_STEPS * LW_STEPS; }

#define LW_JOINED_(name, suffix) name##_##suffix
#define LW_JOINED(name, suffix) LW_JOINED_(name, suffix)
typedef uint8_t lw_element_1 __attribute__((may_alias));
typedef uint16_t lw_element_2 __attribute__((may_alias));
typedef uint32_t lw_element_4 __attribute__((may_alias));
typedef uint64_t lw_element_8 __attribute__((may_alias));
typedef int16_t lw_integer_2 __attribute__((may_alias));
typedef int32_t lw_integer_4 __attribute__((may_alias));
typedef int64_t lw_integer_8 __attribute__((may_alias));

/* Of every lane LW_STEPS elements of a row of its own, from `step` on, laid side by side. */
LW_INLINE void lw_profile_steps(int8_t *steps, const int8_t *const *rows, int64_t step, int64_t lanes) {
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
    typedef int8_t part __attribute__((vector_size(8), aligned(1), may_alias));
    typedef int8_t bytes __attribute__((vector_size(16)));
    typedef int16_t pairs __attribute__((vector_size(16)));
    typedef int32_t fours __attribute__((vector_size(16)));
    for (int64_t lane = 0; lane < lanes; lane += 8) {
        bytes a[4];
        for (int k = 0; k < 4; ++k) {
            const part one = *(const part *)(rows[lane + 2 * k] + step);
            const part next = *(const part *)(rows[lane + 2 * k + 1] + step);
            a[k] = __builtin_shufflevector(one, next, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
        }
        pairs b[4];
        for (int k = 0; k < 4; k += 2) {
            b[k] = __builtin_shufflevector((pairs)a[k], (pairs)a[k + 1], 0, 8, 1, 9, 2, 10, 3, 11);
            b[k + 1] = __builtin_shufflevector((pairs)a[k], (pairs)a[k + 1], 4, 12, 5, 13, 6, 14, 7, 15);
        }
        for (int k = 0; k < 2; ++k) {
            const bytes low = (bytes)__builtin_shufflevector((fours)b[k], (fours)b[k + 2], 0, 4, 1, 5);
            const bytes high = (bytes)__builtin_shufflevector((fours)b[k], (fours)b[k + 2], 2, 6, 3, 7);
            int8_t *const here = steps + 4 * k * LW_WIDTH + lane;
            *(part *)here = __builtin_shufflevector(low, low, 0, 1, 2, 3, 4, 5, 6, 7);
            *(part *)(here + LW_WIDTH) = __builtin_shufflevector(low, low, 8, 9, 10, 11, 12, 13, 14, 15);
            *(part *)(here + 2 * LW_WIDTH) = __builtin_shufflevector(high, high, 0, 1, 2, 3, 4, 5, 6, 7);
            *(part *)(here + 3 * LW_WIDTH) = __builtin_shufflevector(high, high, 8, 9, 10, 11, 12, 13, 14, 15);
        }
    }
    return;
#endif
#endif
    for (int64_t lane = 0; lane < lanes; ++lane)
        for (int k = 0; k < LW_STEPS; ++k) steps[k * LW_WIDTH + lane] = rows[lane][step + k];
}

#endif

#ifdef LW_CALLED
#define LW_COPY static __attribute__((noinline, unused))
#else
#define LW_COPY LW_INLINE
#endif

#ifdef LW_STORED_BYTES
#define LW_NAME(name) LW_JOINED(LW_JOINED(name, LW_BYTES), LW_JOINED(of, LW_STORED_BYTES))
#define LW_ELEMENT LW_JOINED(lw_integer, LW_BYTES)
#define LW_STORED LW_JOINED(lw_integer, LW_STORED_BYTES)
#else
#define LW_NAME(name) LW_JOINED(name, LW_BYTES)
#define LW_ELEMENT LW_NAME(lw_element)
#define LW_STORED LW_ELEMENT
#endif

#include "squares.h"

LW_INLINE void LW_NAME(lw_copy_lane)(LW_ELEMENT *steps, LW_STORED *row, int64_t along, int64_t step, int64_t lane,
                                     const lw_rows *rows, bool out) {
    const int64_t begin = lw_max_i64(step, rows->low[lane + LW_MARGIN] + lane);
    const int64_t end = lw_min_i64(step + LW_STEPS, rows->high[lane + LW_MARGIN] + lane);
    if (end - begin == LW_STEPS) { /* a number that compilers know */
        LW_STORED *const here = row + (step - lane) * along;
        LW_ELEMENT *const kept = steps + lane;
        for (int k = 0; k < LW_STEPS; ++k) {
            if (out)
                here[k * along] = kept[k * LW_WIDTH];
            else
                kept[k * LW_WIDTH] = here[k * along];
        }
        return;
    }
    for (int64_t k = begin; k < end; ++k) {
        LW_STORED *const here = row + (k - lane) * along;
        LW_ELEMENT *const kept = steps + (k - step) * LW_WIDTH + lane;
        if (out)
            *here = *kept;
        else
            *kept = *here;
    }
}

#ifdef LW_SIDE

/* A square of which only some elements are wanted; `step` and `lane` are its first ones. */
LW_INLINE void LW_NAME(lw_part_of_square)(LW_ELEMENT *steps, LW_STORED *first, int64_t next, int64_t along,
                                          int64_t step, int64_t lane, const lw_rows *rows, bool out) {
    LW_STORED square[LW_SIDE * LW_SIDE] __attribute__((aligned(64)));
    LW_NAME(lw_square_out)(steps, square, LW_SIDE, along);
    for (int i = 0; i < LW_SIDE; ++i) {
        LW_STORED *const here = first + i * next, *const kept = square + i * LW_SIDE;
        /* In the order of memory. */
        int64_t begin = rows->low[lane + i + LW_MARGIN] + lane + i - step;
        int64_t end = rows->high[lane + i + LW_MARGIN] + lane + i - step;
        if (along < 0) {
            const int64_t other = LW_SIDE - begin;
            begin = LW_SIDE - end;
            end = other;
        }
        for (int k = 0; k < LW_SIDE; ++k) {
            if (k < begin || k >= end) continue;
            if (out)
                here[k] = kept[k];
            else
                kept[k] = here[k];
        }
    }
    if (!out) LW_NAME(lw_square_in)(steps, square, LW_SIDE, along);
}

#endif

/* To be called when all rows are known, before they are copied. */
LW_INLINE void LW_NAME(lw_make_squares)(lw_rows *rows) {
#ifdef LW_SIDE
    rows->from = LW_FAR, rows->until = -LW_FAR;
    for (int k = 0; k + LW_SIDE <= LW_WIDTH; k += LW_SIDE) {
        int64_t some_from = LW_FAR, all_from = -LW_FAR, all_until = LW_FAR, some_until = -LW_FAR;
        for (int i = k; i < k + LW_SIDE; ++i) {
            const int64_t from = rows->low[i] + i - LW_MARGIN, until = rows->high[i] + i - LW_MARGIN;
            some_from = lw_min_i64(some_from, from);
            all_from = lw_max_i64(all_from, from);
            all_until = lw_min_i64(all_until, until);
            some_until = lw_max_i64(some_until, until);
        }
        rows->some_from[k] = some_from, rows->all_from[k] = all_from;
        rows->all_until[k] = all_until, rows->some_until[k] = some_until;
        if (k < LW_MARGIN) continue;
        rows->from = lw_min_i64(rows->from, some_from);
        rows->until = lw_max_i64(rows->until, some_until);
    }
#else
    (void)rows;
#endif
}

/* Copies the elements of LW_STEPS steps.
 *
 * buffer: where lane 0 of the first step is kept; array: the element of lane 0 at position 0; row: leads from a lane's
 * element to that of the next at the same position; along: 1, or -1 where positions go down in memory; out: from the
 * buffer to the array; fetch: what lies ahead along the rows. */
LW_COPY void LW_NAME(lw_copy_steps)(void *buffer, void *array, int64_t row, int64_t along, int64_t step,
                                    int64_t low_lane, int64_t high_lane, const lw_rows *rows, bool out, bool fetch) {
    LW_ELEMENT *const steps = buffer;
    LW_STORED *const first = array;
    int64_t lane = low_lane;
#ifdef LW_SIDE
    const int64_t next = row - along;
    for (; lane < high_lane && lane % LW_SIDE != 0; ++lane)
        LW_NAME(lw_copy_lane)(steps, first + lane * row, along, step, lane, rows, out);
    for (; lane + LW_SIDE <= high_lane; lane += LW_SIDE) {
        const int64_t k = lane + LW_MARGIN;
        if (lane >= 0 && (step + LW_STEPS <= rows->from || step >= rows->until)) {
            lane += (high_lane - lane) / LW_SIDE * LW_SIDE;
            break;
        }
        if (step + LW_STEPS <= rows->some_from[k] || step >= rows->some_until[k]) continue;
        const bool whole = step >= rows->all_from[k] && step + LW_STEPS <= rows->all_until[k];
        LW_STORED *const here = first + lane * row + (step - lane) * along;
        for (int part = 0; part < LW_STEPS; part += LW_SIDE) {
            LW_ELEMENT *const kept = steps + part * LW_WIDTH + lane;
            LW_STORED *const there = here + (along < 0 ? -part - (LW_SIDE - 1) : part);
            if (!whole)
                LW_NAME(lw_part_of_square)(kept, there, next, along, step + part, lane, rows, out);
            else if (out)
                LW_NAME(lw_square_out)(kept, there, next, along);
            else
                LW_NAME(lw_square_in)(kept, there, next, along);
        }
        /* Of every line of the cache once. */
        const bool fetches = fetch && (step & (64 / (int64_t)sizeof(LW_STORED) - 1)) < LW_STEPS;
        for (int i = 0; i < LW_SIDE && whole && fetches; ++i) {
            const LW_STORED *const later = here + i * next + along * LW_AHEAD / (int64_t)sizeof(LW_STORED);
            if (out)
                __builtin_prefetch(later, 1);
            else
                __builtin_prefetch(later, 0, 2);
        }
    }
#endif
    for (; lane < high_lane; ++lane) LW_NAME(lw_copy_lane)(steps, first + lane * row, along, step, lane, rows, out);
}

/* Stores of the elements of LW_STEPS steps only those that other blocks read: rows says which ones there are.
 * Parameters as of lw_copy_steps. */
LW_COPY void LW_NAME(lw_store_read)(void *buffer, void *array, int64_t row, int64_t along, int64_t step, int64_t lanes,
                                    const lw_rows *rows, const lw_unread *unread) {
    const int64_t beyond = step + LW_STEPS;
    LW_ELEMENT *const steps = buffer;
    LW_STORED *const first = array;
    for (int64_t lane = unread->lanes; lane < lanes; ++lane)
        LW_NAME(lw_copy_lane)(steps, first + lane * row, along, step, lane, rows, true);
    if (step >= unread->from && beyond <= unread->until) return;
    for (int64_t group = 0; group < unread->lanes; group += LW_GROUP) {
        if (step >= unread->all_from[group] && beyond <= unread->all_until[group]) continue;
        if (beyond <= unread->some_from[group] || step >= unread->some_until[group]) continue;
        for (int64_t lane = group; lane < lw_min_i64(group + LW_GROUP, unread->lanes); ++lane) {
            const int64_t from = lw_max_i64(step - lane, rows->low[lane + LW_MARGIN]);
            const int64_t until = lw_min_i64(beyond - lane, rows->high[lane + LW_MARGIN]);
            const int64_t low = unread->low[lane], high = lw_max_i64(low, unread->high[lane]);
            LW_STORED *const here = first + lane * row;
            LW_ELEMENT *const kept = steps + lane + (lane - step) * LW_WIDTH;
            for (int64_t k = from; k < lw_min_i64(until, low); ++k) here[k * along] = kept[k * LW_WIDTH];
            for (int64_t k = lw_max_i64(from, high); k < until; ++k) here[k * along] = kept[k * LW_WIDTH];
        }
    }
}

/* The same of planes whose rows follow one another in a lane: from plane to plane its position moves by `pitch`, and
 * before a row there is room for `before` elements.
 *
 * array: the element of lane 0 at position 0 of plane 0; plane: leads from an element to that of the next plane;
 * first, last: the planes there are; rows: of those before plane 0; inner: of all others. */
LW_INLINE void LW_NAME(lw_copy_planes)(void *buffer, void *array, int64_t plane, int64_t pitch, int64_t before,
                                       int64_t first, int64_t last, int64_t row, int64_t along, int64_t step,
                                       int64_t low_lane, int64_t high_lane, const lw_rows *rows, const lw_rows *inner,
                                       bool out, bool fetch) {
    int64_t k = lw_max_i64(first, lw_floordiv_i64(step - high_lane + 1 + before, pitch));
    for (; k < last && k * pitch - before < step + LW_STEPS - low_lane; ++k)
        LW_NAME(lw_copy_steps)(buffer, (LW_STORED *)array + k * plane, row, along, step - k * pitch, low_lane,
                               high_lane, k < 0 ? rows : inner, out, fetch);
}

/* Of lanes `low` to `high` those that lie between rows: `gap` ones from `first` on, and again after `every` lanes. */
LW_INLINE void LW_NAME(lw_copy_idle)(void *to, const void *from, int64_t first, int64_t every, int64_t gap, int64_t low,
                                     int64_t high) {
    const LW_ELEMENT *const source = from;
    LW_ELEMENT *const target = to;
    if (first + gap <= low) first += every;
    for (; first < high; first += every) {
        const int64_t end = lw_min_i64(first + gap, high);
        for (int64_t lane = lw_max_i64(first, low); lane < end; ++lane) {
            target[lane] = source[lane];
            __asm__ volatile(""); /* one by one: they are too few for vectors */
        }
    }
}

#undef LW_SIDE
#undef LW_PART
#undef LW_NAME
#undef LW_ELEMENT
#undef LW_STORED
#undef LW_STORED_BYTES
#undef LW_COPY
#undef LW_CALLED
#undef LW_BYTES
