/* Functions of a strip of numbers at a time, for generated code: compilers cannot vectorise loops that call functions
 * now and then, as powers do, or always. In between, loops over the strip can be vectorised. Every function has the
 * very bits of its namesake for one number in support.h. */
#ifndef LAPWING_STRIPS_H
#define LAPWING_STRIPS_H

#include "support.h"

enum { LW_STRIP = 256, LW_STRIP_MARGIN = 8 }; /* functions are called for as many numbers as both together at most */

/* What is given for a strip, where computing its argument may raise: that is noted in its iteration's turn. */
LW_INLINE double lw_after_f64(double result, double argument) { return (void)argument, result; }
LW_INLINE float lw_after_f32(float result, float argument) { return (void)argument, result; }

/* Functions that are called where a condition holds: their arguments are packed, and their results unpacked. Elsewhere
 * results are 0. Where the condition holds everywhere nothing is moved, and places are not set. Whether it holds is 1
 * or 0 in integers as wide as the numbers of the loop, of which compilers make masks. */
#define LW_PLACES(suffix, mask)                                                                                        \
    LW_INLINE int64_t lw_places_##suffix(int32_t *restrict places, const mask *restrict where, int64_t count) {        \
        int64_t some = 0;                                                                                              \
        for (int64_t k = 0; k < count; ++k) some += where[k];                                                          \
        if (some == 0 || some == count) return some;                                                                   \
        some = 0;                                                                                                      \
        for (int64_t k = 0; k < count; ++k) {                                                                          \
            places[some] = (int32_t)k;                                                                                 \
            some += where[k];                                                                                          \
        }                                                                                                              \
        return some;                                                                                                   \
    }                                                                                                                  \
    /* The same for functions that take so little that they are called everywhere, unless it holds seldom. */          \
    LW_INLINE int64_t lw_most_places_##suffix(int32_t *restrict places, const mask *restrict where, int64_t count) {   \
        const int64_t some = lw_places_##suffix(places, where, count);                                                 \
        return some < count / 4 ? some : count;                                                                        \
    }
LW_PLACES(i64, int64_t)
LW_PLACES(i32, int32_t)
#define LW_PACKING(suffix, type)                                                                                       \
    LW_INLINE const type *lw_pack_##suffix(type *restrict packed, const type *restrict x,                              \
                                           const int32_t *restrict places, int64_t some, int64_t count) {              \
        if (some == count) return x;                                                                                   \
        for (int64_t k = 0; k < some; ++k) packed[k] = x[places[k]];                                                   \
        return packed;                                                                                                 \
    }                                                                                                                  \
    LW_INLINE void lw_unpack_##suffix(type *restrict result, const type *restrict packed,                              \
                                      const int32_t *restrict places, int64_t some, int64_t count) {                   \
        if (some == count) return;                                                                                     \
        memset(result, 0, (size_t)count * sizeof(type));                                                               \
        for (int64_t k = 0; k < some; ++k) result[places[k]] = packed[k];                                              \
    }
LW_PACKING(f64, double)
LW_PACKING(f32, float)

/* Powers: those that are in doubt are left to pow. Doubts are as wide as the numbers, of which every processor makes
 * them without moving elements between vectors, and are looked through eight at a time, of which some are in doubt or
 * none: the eight of a group lie apart, so that groups are made of whole vectors, too. Where some are in doubt is noted
 * without a branch, which would be mispredicted. */
#ifdef LW_ROUNDING_TEST
enum { LW_DOUBT_GROUP = 8, LW_DOUBT_GROUPS = (LW_STRIP + LW_STRIP_MARGIN) / LW_DOUBT_GROUP };
#define LW_STRIP_POWER(name, suffix, type, mask)                                                                       \
    static __attribute__((unused, noinline)) void lw_strip_##name##_##suffix(const type *restrict x,                   \
                                                                             type *restrict power, int64_t count) {    \
        mask doubts[LW_DOUBT_GROUPS * LW_DOUBT_GROUP], some[LW_DOUBT_GROUPS];                                          \
        int32_t groups[LW_DOUBT_GROUPS];                                                                               \
        for (int64_t k = 0; k < count; ++k) {                                                                          \
            bool certain;                                                                                              \
            power[k] = lw_rounded_##name##_##suffix(x[k], &certain);                                                   \
            doubts[k] = !certain;                                                                                      \
        }                                                                                                              \
        const int64_t apart = (count + LW_DOUBT_GROUP - 1) / LW_DOUBT_GROUP;                                           \
        memset(doubts + count, 0, (size_t)(LW_DOUBT_GROUP * apart - count) * sizeof(mask));                            \
        for (int64_t g = 0; g < apart; ++g) {                                                                          \
            some[g] = 0;                                                                                               \
            for (int64_t n = 0; n < LW_DOUBT_GROUP; ++n) some[g] |= doubts[g + n * apart] << n;                        \
        }                                                                                                              \
        int64_t found = 0;                                                                                             \
        for (int64_t g = 0; g < apart; ++g) {                                                                          \
            groups[found] = (int32_t)g;                                                                                \
            found += some[g] != 0;                                                                                     \
        }                                                                                                              \
        for (int64_t f = 0; f < found; ++f) {                                                                          \
            for (mask left = some[groups[f]]; left != 0; left &= left - 1) {                                           \
                const int64_t k = groups[f] + apart * __builtin_ctzll((uint64_t)left);                                 \
                power[k] = lw_called_##name##_##suffix(x[k]);                                                          \
            }                                                                                                          \
        }                                                                                                              \
    }
#else
#define LW_STRIP_POWER(name, suffix, type, mask)                                                                       \
    static __attribute__((unused, noinline)) void lw_strip_##name##_##suffix(const type *restrict x,                   \
                                                                             type *restrict power, int64_t count) {    \
        for (int64_t k = 0; k < count; ++k) power[k] = lw_called_##name##_##suffix(x[k]);                              \
    }
#endif
#define LW_STRIP_POWERS(name)                                                                                          \
    LW_STRIP_POWER(name, f64, double, int64_t)                                                                         \
    LW_STRIP_POWER(name, f32, float, int32_t)
LW_STRIP_POWERS(square)
LW_STRIP_POWERS(cube)
LW_STRIP_POWERS(fourth)
LW_STRIP_POWERS(root)
LW_STRIP_POWERS(inverse)

/* C's math library. */
#define LW_STRIP_LIBRARY_1(name)                                                                                       \
    LW_INLINE void lw_strip_##name##_f64(const double *restrict x, double *restrict result, int64_t count) {           \
        for (int64_t k = 0; k < count; ++k) result[k] = lw_##name(x[k]);                                               \
    }
#define LW_STRIP_LIBRARY_2(name, suffix, type, FUNCTION)                                                               \
    LW_INLINE void lw_strip_##name##_##suffix(const type *restrict x, const type *restrict y, type *restrict result,   \
                                              int64_t count) {                                                         \
        for (int64_t k = 0; k < count; ++k) result[k] = FUNCTION(x[k], y[k]);                                          \
    }
LW_STRIP_LIBRARY_1(exp)
LW_STRIP_LIBRARY_1(exp2)
LW_STRIP_LIBRARY_1(expm1)
LW_STRIP_LIBRARY_1(log)
LW_STRIP_LIBRARY_1(log2)
LW_STRIP_LIBRARY_1(log10)
LW_STRIP_LIBRARY_1(log1p)
LW_STRIP_LIBRARY_1(sin)
LW_STRIP_LIBRARY_1(cos)
LW_STRIP_LIBRARY_1(tan)
LW_STRIP_LIBRARY_1(asin)
LW_STRIP_LIBRARY_1(acos)
LW_STRIP_LIBRARY_1(atan)
LW_STRIP_LIBRARY_1(sinh)
LW_STRIP_LIBRARY_1(cosh)
LW_STRIP_LIBRARY_1(tanh)
LW_STRIP_LIBRARY_1(asinh)
LW_STRIP_LIBRARY_1(acosh)
LW_STRIP_LIBRARY_1(atanh)
LW_STRIP_LIBRARY_1(erf)
LW_STRIP_LIBRARY_1(erfc)
LW_STRIP_LIBRARY_1(cbrt)
LW_STRIP_LIBRARY_2(atan2, f64, double, lw_atan2)
LW_STRIP_LIBRARY_2(fmod, f64, double, lw_fmod)
LW_STRIP_LIBRARY_2(pow, f64, double, lw_pow)
LW_STRIP_LIBRARY_2(pow, f32, float, lw_powf)

/* NumPy's own loops; one by one as lw_call does. */
#define LW_STRIP_CALLS(suffix, type)                                                                                   \
    LW_INLINE void lw_strip_call_1_##suffix(const lw_numpy_loop *loop, const type *x, type *result, int64_t count) {   \
        const intptr_t step = loop->most > 1 ? sizeof(type) : 0, steps[] = {step, sizeof(type)};                       \
        for (intptr_t k = 0, most; k < count; k += most) {                                                             \
            most = lw_min_i64(loop->most, count - k);                                                                  \
            char *operands[] = {(char *)(intptr_t)(x + k), (char *)(result + k)};                                      \
            loop->function(operands, &most, steps, loop->data);                                                        \
        }                                                                                                              \
    }                                                                                                                  \
    LW_INLINE void lw_strip_call_2_##suffix(const lw_numpy_loop *loop, const type *x, const type *y, type *result,     \
                                            int64_t count) {                                                           \
        const intptr_t step = loop->most > 1 ? sizeof(type) : 0, steps[] = {step, step, sizeof(type)};                 \
        for (intptr_t k = 0, most; k < count; k += most) {                                                             \
            most = lw_min_i64(loop->most, count - k);                                                                  \
            char *operands[] = {(char *)(intptr_t)(x + k), (char *)(intptr_t)(y + k), (char *)(result + k)};           \
            loop->function(operands, &most, steps, loop->data);                                                        \
        }                                                                                                              \
    }
LW_STRIP_CALLS(f64, double)
LW_STRIP_CALLS(f32, float)

#endif
