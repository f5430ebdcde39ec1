/* Recurrences of integers over a strip of iterations, for generated code, as scans (parallel prefix: Kogge and Stone,
 * IEEE Transactions on Computers C-22, 1973; Blelloch, Prefix Sums and Their Applications, 1990):
 *
 *     x[k] = max(x[k - 1] + (c + cs[k]), t[k]) + (a + as[k]), or t[k] + (a + as[k]) where resets[k]
 *
 * In vectors, x[k] is the largest of all t[j] with what is added to it on the way from j to k: of t[j] less the prefix
 * sum of what is added up to j the largest so far is found by comparing with neighbours 1, 2, 4, ... lanes before, and
 * that of k is added again. The last element is carried on to the next vector. A reset adds what makes all that is
 * before it smaller than anything. Two recurrences that read each other, as of affine gaps,
 *
 *     x[k] = max(x[k - 1] + c, y[k - 1] + b, u[k]),   y[k] = max(t[k], x[k] + a)
 *
 * are one with max(c, b + a) and max(u[k], t[k - 1] + b).
 *
 * Integers wrap, and then a maximum of sums is no sum of a maximum. So it is looked at whether everything is too small
 * for that; elsewhere the recurrence is computed one by one. Of integers of 16 bits ranges (ranges.h) have proved it
 * before. */
#ifndef LAPWING_SCANS_H
#define LAPWING_SCANS_H

#include "strips.h"

enum { LW_SCAN_VECTOR = 64 }; /* bytes, at most */
#define LW_SCAN_ALIGNED __attribute__((aligned(64)))

/* What the strip after the next one is stored to: a strip's stores come all at once, and nothing hides waiting for
 * them. */
#define LW_FETCH_AHEAD(element) lw_fetch_ahead(&(element) + 2 * LW_STRIP, LW_STRIP * sizeof(element))
LW_INLINE void lw_fetch_ahead(const void *first, size_t bytes) {
    for (size_t k = 0; k < bytes; k += 64) __builtin_prefetch((const char *)first + k, 1);
}

/* Elements [lanes - by, 2 lanes - by) of two vectors side by side: the second one moved by so many lanes. */
#define LW_LATER_2_1(a, b) LW_SHUFFLE(__typeof__(a), a, b, 1, 2)
#define LW_LATER_4_1(a, b) LW_SHUFFLE(__typeof__(a), a, b, 3, 4, 5, 6)
#define LW_LATER_4_2(a, b) LW_SHUFFLE(__typeof__(a), a, b, 2, 3, 4, 5)
#define LW_LATER_8_1(a, b) LW_SHUFFLE(__typeof__(a), a, b, 7, 8, 9, 10, 11, 12, 13, 14)
#define LW_LATER_8_2(a, b) LW_SHUFFLE(__typeof__(a), a, b, 6, 7, 8, 9, 10, 11, 12, 13)
#define LW_LATER_8_4(a, b) LW_SHUFFLE(__typeof__(a), a, b, 4, 5, 6, 7, 8, 9, 10, 11)
#define LW_LATER_16_1(a, b)                                                                                            \
    LW_SHUFFLE(__typeof__(a), a, b, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30)
#define LW_LATER_16_2(a, b)                                                                                            \
    LW_SHUFFLE(__typeof__(a), a, b, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29)
#define LW_LATER_16_4(a, b)                                                                                            \
    LW_SHUFFLE(__typeof__(a), a, b, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27)
#define LW_LATER_16_8(a, b)                                                                                            \
    LW_SHUFFLE(__typeof__(a), a, b, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23)
#define LW_LATER_32_2(a, b) ((__typeof__(a))LW_LATER_16_1((lw_words)(a), (lw_words)(b)))
#define LW_LATER_32_4(a, b) ((__typeof__(a))LW_LATER_16_2((lw_words)(a), (lw_words)(b)))
#define LW_LATER_32_8(a, b) ((__typeof__(a))LW_LATER_16_4((lw_words)(a), (lw_words)(b)))
#define LW_LATER_32_16(a, b) ((__typeof__(a))LW_LATER_16_8((lw_words)(a), (lw_words)(b)))
#define LW_LAST_2(a) LW_SHUFFLE(__typeof__(a), a, a, 1, 1)
#define LW_LAST_4(a) LW_SHUFFLE(__typeof__(a), a, a, 3, 3, 3, 3)
#define LW_LAST_8(a) LW_SHUFFLE(__typeof__(a), a, a, 7, 7, 7, 7, 7, 7, 7, 7)
#define LW_LAST_16(a) LW_SHUFFLE(__typeof__(a), a, a, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15)

/* The scan of a vector; none: what changes nothing. */
#define LW_SCANNED_2(x, none, OPERATION) x = OPERATION(x, LW_LATER_2_1(none, x));
#define LW_SCANNED_4(x, none, OPERATION)                                                                               \
    x = OPERATION(x, LW_LATER_4_1(none, x));                                                                           \
    x = OPERATION(x, LW_LATER_4_2(none, x));
#define LW_SCANNED_8(x, none, OPERATION)                                                                               \
    x = OPERATION(x, LW_LATER_8_1(none, x));                                                                           \
    x = OPERATION(x, LW_LATER_8_2(none, x));                                                                           \
    x = OPERATION(x, LW_LATER_8_4(none, x));
#define LW_SCANNED_16(x, none, OPERATION)                                                                              \
    x = OPERATION(x, LW_LATER_16_1(none, x));                                                                          \
    x = OPERATION(x, LW_LATER_16_2(none, x));                                                                          \
    x = OPERATION(x, LW_LATER_16_4(none, x));                                                                          \
    x = OPERATION(x, LW_LATER_16_8(none, x));
#define LW_SCANNED_32(x, none, OPERATION)                                                                              \
    x = OPERATION(x, LW_LATER_32_1(none, x));                                                                          \
    x = OPERATION(x, LW_LATER_32_2(none, x));                                                                          \
    x = OPERATION(x, LW_LATER_32_4(none, x));                                                                          \
    x = OPERATION(x, LW_LATER_32_8(none, x));                                                                          \
    x = OPERATION(x, LW_LATER_32_16(none, x));
#define LW_PLUS(a, b) ((a) + (b))

/* The larger and the smaller elements of two vectors: of comparisons and masks gcc makes two instructions. */
#define LW_CHOSEN(a, b, test) (((a) & (test)) | ((b) & ~(test)))
#if !defined(__clang__) && defined(__AVX512F__)
typedef long long lw_quads __attribute__((vector_size(64)));
typedef int lw_words __attribute__((vector_size(64)));
typedef short lw_shorts __attribute__((vector_size(64)));
#define LW_LARGER_i64(a, b) __builtin_ia32_pmaxsq512_mask((lw_quads)(a), (lw_quads)(b), (lw_quads)(a), 0xff)
#define LW_SMALLER_i64(a, b) __builtin_ia32_pminsq512_mask((lw_quads)(a), (lw_quads)(b), (lw_quads)(a), 0xff)
#define LW_LARGER_i32(a, b) __builtin_ia32_pmaxsd512_mask((lw_words)(a), (lw_words)(b), (lw_words)(a), 0xffff)
#define LW_SMALLER_i32(a, b) __builtin_ia32_pminsd512_mask((lw_words)(a), (lw_words)(b), (lw_words)(a), 0xffff)
#ifdef __AVX512BW__
#define LW_LARGER_i16(a, b) __builtin_ia32_pmaxsw512_mask((lw_shorts)(a), (lw_shorts)(b), (lw_shorts)(a), -1)
#define LW_SMALLER_i16(a, b) __builtin_ia32_pminsw512_mask((lw_shorts)(a), (lw_shorts)(b), (lw_shorts)(a), -1)
/* One instruction, where two vectors would take three. */
#define LW_LATER_32_1(a, b)                                                                                            \
    ((__typeof__(a))__builtin_ia32_permvarhi512_mask(                                                                  \
        (lw_shorts)(b), (lw_shorts){0,  0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14,                    \
                                    15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30},                   \
        (lw_shorts)(a), -2))
#define LW_LAST_32(a)                                                                                                  \
    ((__typeof__(a))__builtin_ia32_permvarhi512_mask((lw_shorts)(a), (lw_shorts){0} + 31, (lw_shorts)(a), -1))
#endif
#elif !defined(__clang__) && defined(__AVX2__)
typedef int lw_words __attribute__((vector_size(32)));
typedef short lw_shorts __attribute__((vector_size(32)));
#define LW_LARGER_i16(a, b) __builtin_ia32_pmaxsw256((lw_shorts)(a), (lw_shorts)(b))
#define LW_SMALLER_i16(a, b) __builtin_ia32_pminsw256((lw_shorts)(a), (lw_shorts)(b))
#define LW_LARGER_i32(a, b) __builtin_ia32_pmaxsd256((lw_words)(a), (lw_words)(b))
#define LW_SMALLER_i32(a, b) __builtin_ia32_pminsd256((lw_words)(a), (lw_words)(b))
#endif
#ifndef LW_LARGER_i64
#define LW_LARGER_i64(a, b) LW_CHOSEN(a, b, (a) > (b))
#define LW_SMALLER_i64(a, b) LW_CHOSEN(a, b, (a) < (b))
#endif
#ifndef LW_LARGER_i32
#define LW_LARGER_i32(a, b) LW_CHOSEN(a, b, (a) > (b))
#define LW_SMALLER_i32(a, b) LW_CHOSEN(a, b, (a) < (b))
#endif

#ifndef LW_LARGER_i16
#define LW_LARGER_i16(a, b) LW_CHOSEN(a, b, (a) > (b))
#define LW_SMALLER_i16(a, b) LW_CHOSEN(a, b, (a) < (b))
#endif

/* Vectors of so many lanes, of elements of a type (wide) that may have more bits than what is computed (type). Terms
 * are at most LW_TERM, what is added to them LW_ADDED, and resets add LW_RESET, powers of two: whatever is computed of
 * them, with what is added in a vector, is smaller than the largest integer. */
#define LW_SCAN_VECTORS(suffix, type, wide, term, added, reset, lanes, larger)                                         \
    typedef type lw_scan_##suffix __attribute__((vector_size(lanes * sizeof(type))));                                  \
    typedef wide lw_scan_wide_##suffix __attribute__((vector_size(lanes * sizeof(type))));                             \
    typedef wide lw_scan_anywhere_##suffix                                                                             \
        __attribute__((vector_size(lanes * sizeof(type)), aligned(sizeof(wide)), may_alias));                          \
    static const wide LW_TERM_##suffix = (wide)1 << (term), LW_ADDED_##suffix = (wide)1 << (added),                    \
                      LW_RESET_##suffix = (wide)1 << (reset);                                                          \
    LW_INLINE bool lw_is_added_##suffix(wide x) { return x >= -LW_ADDED_##suffix && x <= LW_ADDED_##suffix; }          \
    LW_INLINE bool lw_is_term_##suffix(wide x) { return x >= -LW_TERM_##suffix && x <= LW_TERM_##suffix; }             \
    LW_INLINE lw_scan_##suffix lw_scan_max_of_##suffix(lw_scan_##suffix a, lw_scan_##suffix b) {                       \
        return (lw_scan_##suffix)LW_LARGER_##larger(a, b);                                                             \
    }                                                                                                                  \
    LW_INLINE lw_scan_##suffix lw_scan_min_of_##suffix(lw_scan_##suffix a, lw_scan_##suffix b) {                       \
        return (lw_scan_##suffix)LW_SMALLER_##larger(a, b);                                                            \
    }                                                                                                                  \
    LW_INLINE lw_scan_wide_##suffix lw_scan_load_##suffix(const wide *from) {                                          \
        return *(const lw_scan_anywhere_##suffix *)from;                                                               \
    }                                                                                                                  \
    LW_INLINE void lw_scan_store_##suffix(wide *to, lw_scan_wide_##suffix x) { *(lw_scan_anywhere_##suffix *)to = x; } \
    /* Of integers in [-most, most) that most was added to, no bit of 2 * most and beyond is set. */                   \
    LW_INLINE bool lw_scan_any_##suffix(lw_scan_wide_##suffix x, wide most) {                                          \
        wide any = 0;                                                                                                  \
        for (size_t k = 0; k < sizeof(x) / sizeof(wide); ++k) any |= x[k];                                             \
        return (any & ~(2 * most - 1)) != 0;                                                                           \
    }
/* Elements, and in large that most was added to them. */
#define LW_SAME_SIZE(suffix, type)                                                                                     \
    LW_INLINE lw_scan_##suffix lw_scan_take_##suffix(const type *from, lw_scan_##suffix *large, type most) {           \
        const lw_scan_##suffix x = lw_scan_load_##suffix(from);                                                        \
        *large |= x + most;                                                                                            \
        return x;                                                                                                      \
    }                                                                                                                  \
    LW_INLINE void lw_scan_give_##suffix(type *to, lw_scan_##suffix x) { lw_scan_store_##suffix(to, x); }

/* The same where ranges have proved how large they are. */
#define LW_PROVED_SIZE(suffix, type)                                                                                   \
    LW_INLINE lw_scan_##suffix lw_scan_take_##suffix(const type *from, lw_scan_##suffix *large, type most) {           \
        (void)large;                                                                                                   \
        (void)most;                                                                                                    \
        return lw_scan_load_##suffix(from);                                                                            \
    }                                                                                                                  \
    LW_INLINE void lw_scan_give_##suffix(type *to, lw_scan_##suffix x) { lw_scan_store_##suffix(to, x); }

/* before: of the element before the first; cs, as, resets: of each iteration, or null; later: t of the iteration
 * before, or y before the first; own: u, or null; result: the element before the first iteration's, and then count - 1
 * more. sign: of what changes nothing, and of what a reset adds, reversed. */
#define LW_VECTOR_SCAN(name, suffix, type, wide, lanes, sign)                                                          \
    LW_INLINE int64_t lw_scan_vectors_##name##_##suffix(wide before, const wide *t, wide c, const wide *cs, wide a,    \
                                                        const wide *as, const wide *resets, const wide *later,         \
                                                        wide *result, int64_t count) {                                 \
        if (count < lanes || !lw_is_term_##suffix(before) || !lw_is_added_##suffix(c) || !lw_is_added_##suffix(a))     \
            return 0;                                                                                                  \
        const bool varies = cs != NULL || as != NULL || resets != NULL;                                                \
        lw_scan_##suffix none = {0}, zero = {0}, last = {0}, added = {0};                                              \
        lw_scan_wide_##suffix large = {0}, all_added = {0};                                                            \
        none -= sign * (((type)1 << (8 * sizeof(type) - 2)) + (((type)1 << (8 * sizeof(type) - 2)) - 1));              \
        last += (type)before;                                                                                          \
        for (int k = 0; k < lanes; ++k) added[k] = (type)(k + 1) * (type)(c + a);                                      \
        for (int64_t k = 0; k < count; k += lanes) {                                                                   \
            if (k > count - lanes) { /* the last vector has elements of the one before it as well */                   \
                k = count - lanes;                                                                                     \
                last = zero + (type)result[k - 1];                                                                     \
            }                                                                                                          \
            lw_scan_##suffix x = lw_scan_take_##suffix(t + k, &large, LW_TERM_##suffix) + (type)a;                     \
            if (later != NULL) lw_scan_take_##suffix(later + k, &large, LW_TERM_##suffix);                             \
            if (varies) {                                                                                              \
                added = zero + (type)(c + a);                                                                          \
                if (cs != NULL) added += lw_scan_take_##suffix(cs + k, &all_added, LW_ADDED_##suffix);                 \
                if (as != NULL) {                                                                                      \
                    const lw_scan_##suffix its = lw_scan_take_##suffix(as + k, &all_added, LW_ADDED_##suffix);         \
                    added += its;                                                                                      \
                    x += its;                                                                                          \
                }                                                                                                      \
                if (resets != NULL) {                                                                                  \
                    lw_scan_wide_##suffix ones = {0};                                                                  \
                    added -= lw_scan_take_##suffix(resets + k, &ones, 0) * (type)(sign * LW_RESET_##suffix);           \
                }                                                                                                      \
                LW_SCANNED_##lanes(added, zero, LW_PLUS)                                                               \
            }                                                                                                          \
            x -= added;                                                                                                \
            LW_SCANNED_##lanes(x, none, lw_scan_##name##_of_##suffix) x =                                              \
                lw_scan_##name##_of_##suffix(x, last) + added;                                                         \
            lw_scan_give_##suffix(result + k, x);                                                                      \
            last = LW_LAST_##lanes(x);                                                                                 \
        }                                                                                                              \
        const bool fits =                                                                                              \
            !lw_scan_any_##suffix(large, LW_TERM_##suffix) && !lw_scan_any_##suffix(all_added, LW_ADDED_##suffix);     \
        return fits ? count : 0;                                                                                       \
    }

/* Strips of them, one by one where something might wrap. vectors: the suffix of those that are tried. */
#define LW_STRIP_SCAN(name, suffix, type, vectors)                                                                     \
    LW_INLINE void lw_strip_scan_##name##_##suffix(type before, const type *t, type c, const type *cs, type a,         \
                                                   const type *as, const type *resets, type *result, int64_t count) {  \
        type x = result[0] = before;                                                                                   \
        const int64_t done =                                                                                           \
            lw_scan_vectors_##name##_##vectors(x, t, c, cs, a, as, resets, NULL, result + 1, count - 1);               \
        if (done > 0) x = result[done];                                                                                \
        for (int64_t k = done; k < count - 1; ++k) {                                                                   \
            const type further = (type)(x + (type)(c + (cs != NULL ? cs[k] : 0)));                                     \
            const type best = (resets != NULL && resets[k]) ? t[k] : lw_##name##_##suffix(further, t[k]);              \
            result[k + 1] = x = (type)(best + (type)(a + (as != NULL ? as[k] : 0)));                                   \
        }                                                                                                              \
    }                                                                                                                  \
    LW_INLINE void lw_strip_scan_pair_##name##_##suffix(type before, const type *both, const type *later, type c,      \
                                                        type b, type a, const type *own, type *result,                 \
                                                        int64_t count) {                                               \
        const bool fits = lw_is_added_##suffix(a) && lw_is_added_##suffix(b) && lw_is_added_##suffix(c);               \
        const type through = lw_##name##_##suffix(c, (type)(b + a));                                                   \
        type x = result[0] = before;                                                                                   \
        const int64_t done = !fits ? 0                                                                                 \
                                   : lw_scan_vectors_##name##_##vectors((type)(x + c - through), both, through, NULL,  \
                                                                        0, NULL, NULL, later, result + 1, count - 1);  \
        if (done > 0) x = result[done];                                                                                \
        for (int64_t k = done; k < count - 1; ++k) {                                                                   \
            const type y = k == 0 ? later[0] : lw_##name##_##suffix(later[k], (type)(x + a));                          \
            const type best = lw_##name##_##suffix((type)(x + c), (type)(y + b));                                      \
            result[k + 1] = x = own != NULL ? lw_##name##_##suffix(best, own[k]) : best;                               \
        }                                                                                                              \
    }

/* x[k] = x[k - 1] + terms[k], whatever wraps. */
#define LW_STRIP_SUMS(suffix, type, lanes)                                                                             \
    LW_INLINE int64_t lw_sum_vectors_##suffix(type before, const type *terms, type *result, int64_t count) {           \
        lw_scan_##suffix last = {0}, zero = {0};                                                                       \
        last += before;                                                                                                \
        int64_t k = 0;                                                                                                 \
        for (; k <= count - lanes; k += lanes) {                                                                       \
            lw_scan_##suffix x = lw_scan_load_##suffix(terms + k);                                                     \
            LW_SCANNED_##lanes(x, zero, LW_PLUS) x += last;                                                            \
            *(lw_scan_anywhere_##suffix *)(result + k) = x;                                                            \
            last = LW_LAST_##lanes(x);                                                                                 \
        }                                                                                                              \
        return k;                                                                                                      \
    }                                                                                                                  \
    LW_INLINE void lw_strip_scan_sum_##suffix(type before, const type *terms, type *result, int64_t count) {           \
        type x = result[0] = before;                                                                                   \
        int64_t k = lw_sum_vectors_##suffix(x, terms, result + 1, count - 1);                                          \
        for (x = result[k]; k < count - 1; ++k) result[k + 1] = x = (type)(x + terms[k]);                              \
    }

/* What is computed in every iteration, one iteration later. */
#define LW_STRIP_LATER(suffix, type)                                                                                   \
    LW_INLINE void lw_strip_later_##suffix(type before, const type *x, type *result, int64_t count) {                  \
        result[0] = before;                                                                                            \
        memcpy(result + 1, x, (size_t)(count - 1) * sizeof(type));                                                     \
    }

#define LW_VECTOR_SCANS(suffix, type, wide, lanes)                                                                     \
    LW_VECTOR_SCAN(max, suffix, type, wide, lanes, 1)                                                                  \
    LW_VECTOR_SCAN(min, suffix, type, wide, lanes, -1)
#define LW_SCANS(suffix, type, term, added, reset, SIZE, lanes, vectors)                                               \
    LW_SCAN_VECTORS(suffix, type, type, term, added, reset, lanes, suffix)                                             \
    SIZE(suffix, type)                                                                                                 \
    LW_VECTOR_SCANS(suffix, type, type, lanes)                                                                         \
    LW_STRIP_SCAN(max, suffix, type, vectors)                                                                          \
    LW_STRIP_SCAN(min, suffix, type, vectors)                                                                          \
    LW_STRIP_SUMS(suffix, type, lanes)                                                                                 \
    LW_STRIP_LATER(suffix, type)
#define LW_SCANS_64(lanes, vectors) LW_SCANS(i64, int64_t, 56, 45, 58, LW_SAME_SIZE, lanes, vectors)
#define LW_SCANS_32(lanes) LW_SCANS(i32, int32_t, 24, 13, 26, LW_SAME_SIZE, lanes, i32)
/* Where the same is added in all iterations. */
#define LW_SCANS_16(lanes) LW_SCANS(i16, int16_t, 13, 8, 0, LW_PROVED_SIZE, lanes, i16)

/* For loops of as many iterations at least, where vectors are long enough: about as long as a scan takes one by one.
 * AVX2 has no maximum of integers of 64 bits, and four of them in a vector: those that are small are computed in 32. */
enum { LW_SCAN_FEWEST = 48 };
#ifdef __AVX512F__
enum { LW_SCAN_PAYS_i64 = 1, LW_SCAN_PAYS_i32 = 1, LW_SUM_PAYS_i64 = 1, LW_SUM_PAYS_i32 = 1 };
LW_SCANS_64(8, i64)
LW_SCANS_32(16)
#if defined(__AVX512BW__) && !defined(__clang__)
#define LW_SCANNED_SHORTS 32
LW_SCANS_16(32)
#else
#define LW_SCANNED_SHORTS 16
LW_SCANS_16(16)
#endif
#elif defined(__AVX2__)
enum { LW_SCAN_PAYS_i64 = 1, LW_SCAN_PAYS_i32 = 1, LW_SUM_PAYS_i64 = 0, LW_SUM_PAYS_i32 = 1 };
LW_SCAN_VECTORS(small, int32_t, int64_t, 24, 13, 26, 8, i32)
LW_INLINE lw_scan_small lw_scan_take_small(const int64_t *from, lw_scan_wide_small *large, int64_t most) {
    const lw_scan_wide_small low = lw_scan_load_small(from), high = lw_scan_load_small(from + 4);
    *large |= (low + most) | (high + most);
    return LW_SHUFFLE(lw_scan_small, (lw_scan_small)low, (lw_scan_small)high, 0, 2, 4, 6, 8, 10, 12, 14);
}
LW_INLINE void lw_scan_give_small(int64_t *to, lw_scan_small x) {
    typedef int32_t half __attribute__((vector_size(16)));
    half low, high;
    memcpy(&low, &x, sizeof low);
    memcpy(&high, (const char *)&x + sizeof low, sizeof high);
    lw_scan_store_small(to, __builtin_convertvector(low, lw_scan_wide_small));
    lw_scan_store_small(to + 4, __builtin_convertvector(high, lw_scan_wide_small));
}
LW_VECTOR_SCANS(small, int32_t, int64_t, 8)
LW_SCANS_64(4, small)
LW_SCANS_32(8)
#define LW_SCANNED_SHORTS 16
LW_SCANS_16(16)
#else
enum { LW_SCAN_PAYS_i64 = 0, LW_SCAN_PAYS_i32 = 0, LW_SUM_PAYS_i64 = 0, LW_SUM_PAYS_i32 = 0 };
LW_SCANS_64(2, i64)
LW_SCANS_32(4)
#define LW_SCANNED_SHORTS 8
LW_SCANS_16(8)
#endif

#endif
