/* Recurrences of narrow integers along striped rows, for generated code (the layout: Farrar, Bioinformatics 23, 2007;
 * scans in two levels: Blelloch, Prefix Sums and Their Applications, 1990).
 *
 * A row is cut into blocks, and a block into as many segments of LW_SEGMENT elements as a vector has lanes. Each lane
 * goes through a segment of its own, one element a vector; here, of four lanes:
 *
 *     row:      0  1  2  3 | 4  5  6  7 | 8  9 10 11 | 12 13 14 15
 *     striped:  0  4  8 12 | 1  5  9 13 | 2  6 10 14 |  3  7 11 15
 *
 * Elements of a segment follow one another in one operation for all segments, and only the last ones of all segments
 * are scanned across lanes, after which what comes from the segments before goes into each. So a block takes one scan
 * where a row as it is takes one a vector, and the elements before those of a vector are the vector before. */
#ifndef LAPWING_STRIPED_H
#define LAPWING_STRIPED_H

#include "scans.h"

#ifndef LW_STRIPED_ROW
#define LW_STRIPED_ROW (1 << 14) /* elements of a row at most that are striped at once */
#endif
enum {
    LW_SEGMENT = 4,
    LW_STRIPED_LANES = sizeof(lw_scan_i16) / sizeof(int16_t),
    LW_STRIPED_BLOCK = LW_SEGMENT * LW_STRIPED_LANES,
    LW_STRIPED_STRIP = 128, /* elements that a loop goes through, of one block or more */
    LW_STRIPED_ADDED = 96 /* what is added from element to element at most: it is added as often as a block has some */
};
typedef int16_t lw_striped_row[LW_STRIPED_ROW] LW_SCAN_ALIGNED;
typedef int16_t lw_striped_strip[LW_STRIPED_STRIP] LW_SCAN_ALIGNED;
typedef int16_t lw_striped_vector __attribute__((vector_size(sizeof(lw_scan_i16)), may_alias));

#define LW_STRIPED(image, v) (((lw_striped_vector *)(image))[v])
#define LW_STRIPED_GIVEN(image, v) ((lw_scan_i16)((const lw_striped_vector *)(image))[v])

/* Lanes of two vectors side by side, the second one's moved by some segments; the last segment's element in all lanes;
 * and the elements of two vectors in turns, in parts of 16 bytes each.
 *
 * Of vectors of 64 bytes the segments lie in such an order that interleaved vectors are rows: part q of interleaved
 * vector k is that of segments 8 k + 2 q and the next one. One instruction moves lanes however they lie. */
#if defined(__AVX512BW__) && !defined(__clang__)
#define LW_SEGMENT_OF(lane) ((lane) % 8 / 2 * 8 + (lane) / 8 * 2 + (lane) % 2) /* its own inverse */
#define LW_FROM(lane, by) LW_SEGMENT_OF((LW_SEGMENT_OF(lane) + 32 - (by)) % 32)
#define LW_FROM_4(lane, by) LW_FROM(lane, by), LW_FROM(lane + 1, by), LW_FROM(lane + 2, by), LW_FROM(lane + 3, by)
#define LW_FROM_16(lane, by)                                                                                           \
    LW_FROM_4(lane, by), LW_FROM_4(lane + 4, by), LW_FROM_4(lane + 8, by), LW_FROM_4(lane + 12, by)
#define LW_STAYS(lane, by) (LW_SEGMENT_OF(lane) >= (by) ? 1u << (lane) : 0)
#define LW_STAYS_4(lane, by)                                                                                           \
    (LW_STAYS(lane, by) | LW_STAYS(lane + 1, by) | LW_STAYS(lane + 2, by) | LW_STAYS(lane + 3, by))
#define LW_STAYS_16(lane, by)                                                                                          \
    (LW_STAYS_4(lane, by) | LW_STAYS_4(lane + 4, by) | LW_STAYS_4(lane + 8, by) | LW_STAYS_4(lane + 12, by))
#define LW_NEXT_SEGMENTS(first, x, by)                                                                                 \
    ((lw_scan_i16)__builtin_ia32_permvarhi512_mask((lw_shorts)(x), (lw_shorts){LW_FROM_16(0, by), LW_FROM_16(16, by)}, \
                                                   (lw_shorts)(first),                                                 \
                                                   (int)(LW_STAYS_16(0, by) | LW_STAYS_16(16, by))))
#define LW_SCANNED_SEGMENTS(x, none, OPERATION)                                                                        \
    x = OPERATION(x, LW_NEXT_SEGMENTS(none, x, 1));                                                                    \
    x = OPERATION(x, LW_NEXT_SEGMENTS(none, x, 2));                                                                    \
    x = OPERATION(x, LW_NEXT_SEGMENTS(none, x, 4));                                                                    \
    x = OPERATION(x, LW_NEXT_SEGMENTS(none, x, 8));                                                                    \
    x = OPERATION(x, LW_NEXT_SEGMENTS(none, x, 16));
#define LW_LAST_SEGMENT(x) LW_LAST_32(x)
enum { LW_INTERLEAVED_ARE_ROWS = 1 };
#define LW_INTERLEAVED(name, a, b) __builtin_ia32_punpck##name##512_mask(a, b, a, -1)
#define LW_LOWER_SHORTS(a, b) LW_INTERLEAVED(lwd, (lw_shorts)(a), (lw_shorts)(b))
#define LW_UPPER_SHORTS(a, b) LW_INTERLEAVED(hwd, (lw_shorts)(a), (lw_shorts)(b))
#define LW_LOWER_WORDS(a, b) LW_INTERLEAVED(ldq, (lw_words)(a), (lw_words)(b))
#define LW_UPPER_WORDS(a, b) LW_INTERLEAVED(hdq, (lw_words)(a), (lw_words)(b))
#else
#define LW_SEGMENT_OF(lane) (lane)
#if LW_SCANNED_SHORTS == 16
#define LW_NEXT_SEGMENTS(first, x, by) LW_LATER_16_##by(first, x)
#define LW_SCANNED_SEGMENTS(x, none, OPERATION) LW_SCANNED_16(x, none, OPERATION)
#define LW_LAST_SEGMENT(x) LW_LAST_16(x)
#define LW_LOWER_SHORTS(a, b) LW_SHUFFLE(lw_scan_i16, a, b, 0, 16, 1, 17, 2, 18, 3, 19, 8, 24, 9, 25, 10, 26, 11, 27)
#define LW_UPPER_SHORTS(a, b) LW_SHUFFLE(lw_scan_i16, a, b, 4, 20, 5, 21, 6, 22, 7, 23, 12, 28, 13, 29, 14, 30, 15, 31)
#define LW_LOWER_WORDS(a, b) LW_SHUFFLE(lw_scan_i16, a, b, 0, 1, 16, 17, 2, 3, 18, 19, 8, 9, 24, 25, 10, 11, 26, 27)
#define LW_UPPER_WORDS(a, b) LW_SHUFFLE(lw_scan_i16, a, b, 4, 5, 20, 21, 6, 7, 22, 23, 12, 13, 28, 29, 14, 15, 30, 31)
#else
#define LW_NEXT_SEGMENTS(first, x, by) LW_LATER_8_##by(first, x)
#define LW_SCANNED_SEGMENTS(x, none, OPERATION) LW_SCANNED_8(x, none, OPERATION)
#define LW_LAST_SEGMENT(x) LW_LAST_8(x)
#define LW_LOWER_SHORTS(a, b) LW_SHUFFLE(lw_scan_i16, a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define LW_UPPER_SHORTS(a, b) LW_SHUFFLE(lw_scan_i16, a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define LW_LOWER_WORDS(a, b) LW_SHUFFLE(lw_scan_i16, a, b, 0, 1, 8, 9, 2, 3, 10, 11)
#define LW_UPPER_WORDS(a, b) LW_SHUFFLE(lw_scan_i16, a, b, 4, 5, 12, 13, 6, 7, 14, 15)
#endif
enum { LW_INTERLEAVED_ARE_ROWS = 0 };
#endif

/* A number that the compiler knows no more of than its type: gcc compares those of 8 bits in 32. */
#define LW_OPAQUE(number) __asm__("" : "+r"(number))

/* What a strip further on is stored to: see LW_FETCH_AHEAD. */
#define LW_STRIPED_FETCH_AHEAD(element)                                                                                \
    lw_fetch_ahead(&(element) + 4 * LW_STRIPED_STRIP, LW_STRIPED_STRIP * sizeof(element))

/* How many elements of a row are striped, in whole strips, of which the last one may begin before the end of the one
 * before it; added: the sizes of all that scans add from element to element. */
LW_INLINE int64_t lw_striped_length(int64_t count, int64_t added) {
    if (count < LW_STRIPED_STRIP || added > LW_STRIPED_ADDED) return 0;
    const int64_t whole = count / LW_STRIPED_STRIP * LW_STRIPED_STRIP;
    return count - whole > LW_STRIPED_STRIP / 2 ? whole + LW_STRIPED_STRIP : whole;
}
/* Where the rest of a row begins, from which on it is not striped: of whole vectors, where it is long enough. */
LW_INLINE int64_t lw_striped_rest(int64_t begin, int64_t striped, int64_t end) {
    const int64_t rest = end - begin - striped, vectors = (rest + LW_STRIPED_LANES - 1) / LW_STRIPED_LANES;
    return rest <= 0 ? end : lw_max_i64(begin, end - vectors * LW_STRIPED_LANES);
}
LW_INLINE int64_t lw_striped_size(int64_t added) { return added < 0 ? -added : added; }

/* A strip's image, and a strip from its image. */
LW_INLINE void lw_striped(const int16_t *restrict row, int16_t *restrict image) {
    for (int k = 0; k < LW_STRIPED_STRIP; k += LW_STRIPED_BLOCK)
        for (int v = 0; v < LW_SEGMENT; ++v)
            for (int lane = 0; lane < LW_STRIPED_LANES; ++lane)
                image[k + v * LW_STRIPED_LANES + lane] = row[k + LW_SEGMENT_OF(lane) * LW_SEGMENT + v];
}
LW_INLINE void lw_unstriped(const int16_t *restrict image, int16_t *restrict row) {
    typedef int64_t part __attribute__((vector_size(16), aligned(2), may_alias));
    enum { PARTS = LW_STRIPED_LANES / 8 };
    for (int k = 0; k < LW_STRIPED_STRIP; k += LW_STRIPED_BLOCK, image += LW_STRIPED_BLOCK, row += LW_STRIPED_BLOCK) {
        const lw_scan_i16 x0 = LW_STRIPED_GIVEN(image, 0), x1 = LW_STRIPED_GIVEN(image, 1);
        const lw_scan_i16 x2 = LW_STRIPED_GIVEN(image, 2), x3 = LW_STRIPED_GIVEN(image, 3);
        const lw_scan_i16 y0 = (lw_scan_i16)LW_LOWER_SHORTS(x0, x1), y1 = (lw_scan_i16)LW_UPPER_SHORTS(x0, x1);
        const lw_scan_i16 y2 = (lw_scan_i16)LW_LOWER_SHORTS(x2, x3), y3 = (lw_scan_i16)LW_UPPER_SHORTS(x2, x3);
        const lw_scan_i16 z[] = {(lw_scan_i16)LW_LOWER_WORDS(y0, y2), (lw_scan_i16)LW_UPPER_WORDS(y0, y2),
                                 (lw_scan_i16)LW_LOWER_WORDS(y1, y3), (lw_scan_i16)LW_UPPER_WORDS(y1, y3)};
        for (int n = 0; n < 4; ++n) {
            if (LW_INTERLEAVED_ARE_ROWS)
                LW_STRIPED(row, n) = z[n];
            else
                for (int p = 0; p < PARTS; ++p) memcpy(row + 8 * (4 * p + n), (const part *)&z[n] + p, sizeof(part));
        }
    }
}

/* The image of the elements `by` before those of another image: those before its first one are given. */
LW_INLINE void lw_striped_before(const int16_t *before, int by, const int16_t *restrict x, int16_t *restrict result) {
    for (int k = 0; k < LW_STRIPED_STRIP; k += LW_STRIPED_BLOCK, x += LW_STRIPED_BLOCK, result += LW_STRIPED_BLOCK) {
        const lw_scan_i16 zero = {0};
        for (int v = 0; v < by; ++v) {
            const lw_scan_i16 ends = LW_STRIPED_GIVEN(x, LW_SEGMENT + v - by);
            const lw_scan_i16 first =
                k == 0 ? zero + before[v]
                       : LW_LAST_SEGMENT(LW_STRIPED_GIVEN(x - LW_STRIPED_BLOCK, LW_SEGMENT + v - by));
            LW_STRIPED(result, v) = LW_NEXT_SEGMENTS(first, ends, 1);
        }
        for (int v = by; v < LW_SEGMENT; ++v) LW_STRIPED(result, v) = LW_STRIPED_GIVEN(x, v - by);
    }
}

/* x[k] = max(x[k - 1] + c, t[k]) + a. sign: of what changes nothing, reversed. */
#define LW_STRIPED_SCAN(name, sign)                                                                                    \
    LW_INLINE void lw_striped_scan_##name(int16_t before, const int16_t *restrict t, int16_t c, int16_t a,             \
                                          int16_t *restrict result) {                                                  \
        const lw_scan_i16 zero = {0}, none = zero - sign * INT16_MAX;                                                  \
        const lw_scan_i16 each = zero + (int16_t)(c + a), further = zero + a;                                          \
        lw_scan_i16 last = zero + before, added = zero;                                                                \
        for (int lane = 0; lane < LW_STRIPED_LANES; ++lane)                                                            \
            added[lane] = (int16_t)((LW_SEGMENT_OF(lane) + 1) * LW_SEGMENT * (c + a));                                 \
        for (int k = 0; k < LW_STRIPED_STRIP;                                                                          \
             k += LW_STRIPED_BLOCK, t += LW_STRIPED_BLOCK, result += LW_STRIPED_BLOCK) {                               \
            lw_scan_i16 x[LW_SEGMENT] = {LW_STRIPED_GIVEN(t, 0) + further};                                            \
            for (int v = 1; v < LW_SEGMENT; ++v)                                                                       \
                x[v] = lw_scan_##name##_of_i16(LW_STRIPED_GIVEN(t, v) + further, x[v - 1] + each);                     \
            lw_scan_i16 ends = x[LW_SEGMENT - 1] - added;                                                              \
            LW_SCANNED_SEGMENTS(ends, none, lw_scan_##name##_of_i16)                                                   \
            ends = lw_scan_##name##_of_i16(ends, last) + added;                                                        \
            lw_scan_i16 carried = LW_NEXT_SEGMENTS(last, ends, 1);                                                     \
            last = LW_LAST_SEGMENT(ends);                                                                              \
            for (int v = 0; v < LW_SEGMENT - 1; ++v) {                                                                 \
                carried += each;                                                                                       \
                LW_STRIPED(result, v) = lw_scan_##name##_of_i16(x[v], carried);                                        \
            }                                                                                                          \
            LW_STRIPED(result, LW_SEGMENT - 1) = ends;                                                                 \
        }                                                                                                              \
    }                                                                                                                  \
    /* x[k] = max(x[k - 1] + c, y[k - 1] + b, u[k]), y[k] = max(t[k], x[k] + a); both: max(u[k], t[k - 1] + b). */     \
    LW_INLINE void lw_striped_scan_pair_##name(int16_t before, const int16_t *both, int16_t c, int16_t b, int16_t a,   \
                                               int16_t *result) {                                                      \
        const int16_t through = lw_##name##_i16(c, (int16_t)(b + a));                                                  \
        lw_striped_scan_##name((int16_t)(before + c - through), both, through, 0, result);                             \
    }
LW_STRIPED_SCAN(max, 1)
LW_STRIPED_SCAN(min, -1)

/* x[k] = x[k - 1] + t[k]. */
LW_INLINE void lw_striped_scan_sum(int16_t before, const int16_t *restrict t, int16_t *restrict result) {
    const lw_scan_i16 zero = {0};
    lw_scan_i16 last = zero + before;
    for (int k = 0; k < LW_STRIPED_STRIP; k += LW_STRIPED_BLOCK, t += LW_STRIPED_BLOCK, result += LW_STRIPED_BLOCK) {
        lw_scan_i16 x[LW_SEGMENT] = {LW_STRIPED_GIVEN(t, 0)};
        for (int v = 1; v < LW_SEGMENT; ++v) x[v] = LW_STRIPED_GIVEN(t, v) + x[v - 1];
        lw_scan_i16 ends = x[LW_SEGMENT - 1];
        LW_SCANNED_SEGMENTS(ends, zero, LW_PLUS)
        ends += last;
        const lw_scan_i16 carried = LW_NEXT_SEGMENTS(last, ends, 1);
        last = LW_LAST_SEGMENT(ends);
        for (int v = 0; v < LW_SEGMENT - 1; ++v) LW_STRIPED(result, v) = x[v] + carried;
        LW_STRIPED(result, LW_SEGMENT - 1) = ends;
    }
}

#endif
