/* How large the values of a recurrence can get: intervals of integers (interval analysis: Moore, 1966), on which the
 * loop body is evaluated instead of numbers.
 *
 * Of sums of which one term alone comes from other iterations, minima, maxima and choices, results differ by no more
 * than what they are computed from: the body is nonexpansive in the maximum norm (Crandall and Tartar, Proc. AMS 78,
 * 1980). So values that begin m apart from others stay within m of them, and a row never adds more than the row before
 * it did. */
#ifndef LAPWING_RANGES_H
#define LAPWING_RANGES_H

#include <stdint.h>
#include <string.h>

#include "support.h"

enum {
    LW_MOST_RANGES = 16, /* arrays that are written */
    LW_FOLLOWED_ROWS = 4,
    LW_FOLLOWED_STEPS = 64, /* of a row */
    LW_TABLE_SIDE = 256,    /* of tables that are worth going through before the loops */
    /* The largest values: */
    LW_NARROW = INT16_MAX - 1,
    LW_NARROW_SCANNED = (1 << 13) - 1 /* in scans of them (scans.h) */
};
#define LW_UNBOUNDED (INT64_C(1) << 32)

typedef struct lw_range {
    int64_t low, high;
} lw_range;

LW_INLINE lw_range lw_range_join(lw_range a, lw_range b) {
    return (lw_range){lw_min_i64(a.low, b.low), lw_max_i64(a.high, b.high)};
}

/* What is computed goes into the range of everything. */
LW_INLINE lw_range lw_range_between(int64_t low, int64_t high, lw_range *all) {
    low = lw_min_i64(lw_max_i64(low, -LW_UNBOUNDED), LW_UNBOUNDED);
    high = lw_min_i64(lw_max_i64(high, -LW_UNBOUNDED), LW_UNBOUNDED);
    const lw_range found = {low, high};
    *all = lw_range_join(*all, found);
    return found;
}

LW_INLINE lw_range lw_range_of(int64_t value, lw_range *all) { return lw_range_between(value, value, all); }

LW_INLINE lw_range lw_range_plus(lw_range a, lw_range b, lw_range *all) {
    return lw_range_between(a.low + b.low, a.high + b.high, all);
}

LW_INLINE lw_range lw_range_minus(lw_range a, lw_range b, lw_range *all) {
    return lw_range_between(a.low - b.high, a.high - b.low, all);
}

LW_INLINE lw_range lw_range_negative(lw_range a, lw_range *all) { return lw_range_between(-a.high, -a.low, all); }

LW_INLINE lw_range lw_range_max(lw_range a, lw_range b) {
    return (lw_range){lw_max_i64(a.low, b.low), lw_max_i64(a.high, b.high)};
}

LW_INLINE lw_range lw_range_min(lw_range a, lw_range b) {
    return (lw_range){lw_min_i64(a.low, b.low), lw_min_i64(a.high, b.high)};
}

LW_INLINE lw_range lw_range_abs(lw_range a, lw_range *all) {
    const int64_t low = lw_max_i64(lw_max_i64(a.low, -a.high), 0);
    return lw_range_between(low, lw_max_i64(-a.low, a.high), all);
}

LW_INLINE int64_t lw_range_size(lw_range a) { return lw_max_i64(-a.low, a.high); }

/* The loop body on ranges: of tables that are looked up in; of every array that is written those of rows further up, of
 * the same row, and now; and of all that is computed on the way. */
typedef void lw_ranges_of_point(const lw_tile *tile, const lw_range *tables, const lw_range *above, const lw_range *row,
                                lw_range *now, lw_range *all);

/* So much larger than what a block of rows begins with are the values that it computes at most, or so large: with
 * `each` for every row. */
typedef struct lw_reach {
    int64_t first, each;
} lw_reach;

/* Of rows of `length` iterations; arrays: how many are written. */
LW_INLINE lw_reach lw_reach_of(const lw_tile *tile, lw_ranges_of_point *point, const lw_range *tables, int arrays,
                               int64_t length) {
    lw_range above[LW_MOST_RANGES] = {{0, 0}}, row[LW_MOST_RANGES], now[LW_MOST_RANGES], all = {0, 0};
    int64_t once = 0;
    for (int followed = 0;; ++followed) {
        memcpy(row, above, sizeof row);
        /* From iteration to iteration, until nothing changes. */
        bool changes = true;
        for (int step = 0; step < LW_FOLLOWED_STEPS && step < length && changes; ++step) {
            changes = false;
            point(tile, tables, above, row, now, &all);
            for (int k = 0; k < arrays; ++k) {
                const lw_range wider = lw_range_join(row[k], now[k]);
                changes = changes || wider.low != row[k].low || wider.high != row[k].high;
                row[k] = wider;
            }
            if (followed == 0 && step == 0) once = lw_range_size(all);
        }
        /* No iteration adds more than the first one did. */
        if (changes && length > LW_FOLLOWED_STEPS) return (lw_reach){once * (length + 1), once};
        int64_t grown = 0;
        for (int k = 0; k < arrays; ++k) {
            grown = lw_max_i64(grown, lw_max_i64(above[k].low - row[k].low, row[k].high - above[k].high));
            above[k] = row[k];
        }
        if (grown == 0 || followed == LW_FOLLOWED_ROWS) return (lw_reach){lw_range_size(all), grown};
    }
}

/* For how many rows at a time, whole blocks of them, narrow integers of up to `most` do where they begin with values of
 * up to half of that; none where they never do. */
LW_INLINE int64_t lw_narrow_rows(lw_reach reach, int64_t block, int64_t most) {
    const int64_t room = most / 2 - reach.first;
    if (room < 0) return 0;
    if (reach.each == 0) return INT32_MAX / block * block;
    return room / reach.each / block * block;
}

/* How large values may be that so many rows begin with. */
LW_INLINE int64_t lw_largest_before(lw_reach reach, int64_t rows, int64_t most) {
    return most - reach.first - reach.each * rows;
}

LW_INLINE bool lw_is_narrow(int64_t value) { return value == (int16_t)value; }

/* Whether elements at positions `from` to `until` of the lanes from `first` on and before `last` are no larger than
 * `limit`. array: the element of lane 0 at position 0; row: leads from a lane's element to that of the next; along: 1,
 * or -1 where positions go down in memory. */
#define LW_WITHIN(suffix, type, unsigned_type)                                                                         \
    LW_INLINE bool lw_within_##suffix(const type *array, int64_t row, int64_t along, int64_t first, int64_t last,      \
                                      int64_t from, int64_t until, int64_t limit) {                                    \
        const unsigned_type most = (unsigned_type)limit;                                                               \
        bool larger = false;                                                                                           \
        for (int64_t lane = first; lane < last; ++lane) {                                                              \
            const type *const here = array + lane * row + (along < 0 ? 1 - until : from);                              \
            for (int64_t k = 0; k < until - from; ++k) larger |= (unsigned_type)here[k] + most > 2 * most;             \
        }                                                                                                              \
        return !larger;                                                                                                \
    }
LW_WITHIN(i32, int32_t, uint32_t)
LW_WITHIN(i64, int64_t, uint64_t)

/* The range of a table's elements, which lie in rows `stride` apart; and whether elements of a row, or others `along`
 * apart, are indices of an axis. */
#define LW_TABLE(suffix, type)                                                                                         \
    LW_INLINE lw_range lw_table_range_##suffix(const type *table, int64_t stride, int64_t rows, int64_t columns) {     \
        if (rows > LW_TABLE_SIDE || columns > LW_TABLE_SIDE) return (lw_range){-LW_UNBOUNDED, LW_UNBOUNDED};           \
        lw_range found = {INT64_MAX, INT64_MIN};                                                                       \
        for (int64_t k = 0; k < rows; ++k)                                                                             \
            for (int64_t i = 0; i < columns; ++i) {                                                                    \
                found.low = lw_min_i64(found.low, table[k * stride + i]);                                              \
                found.high = lw_max_i64(found.high, table[k * stride + i]);                                            \
            }                                                                                                          \
        return found;                                                                                                  \
    }                                                                                                                  \
    LW_INLINE bool lw_are_indices_##suffix(const type *row, int64_t along, int64_t count, int64_t extent) {            \
        bool outside = false;                                                                                          \
        for (int64_t k = 0; k < count; ++k) outside |= row[k * along] < 0 || row[k * along] >= extent;                 \
        return !outside;                                                                                               \
    }
LW_TABLE(u8, uint8_t)
LW_TABLE(i8, int8_t)
LW_TABLE(i16, int16_t)
LW_TABLE(i32, int32_t)
LW_TABLE(i64, int64_t)

LW_INLINE bool lw_is_in_8_bits(lw_range a) { return a.low >= INT8_MIN && a.high <= INT8_MAX; }

#endif
