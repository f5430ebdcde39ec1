/* Squares of elements transposed in registers: in memory `next` leads from a row of an array to that of the next lane;
 * in a buffer the lanes of a step lie side by side.
 *
 * Included by transposed.h for every size of elements, LW_BYTES, and of those of the array, LW_STORED_BYTES, where
 * these are larger: what is transposed has the smaller size. Defines LW_SIDE, the elements along a side, where there
 * are squares. */
#ifndef LAPWING_SQUARES_H
#define LAPWING_SQUARES_H

#include <stdint.h>

#include "support.h"

typedef int16_t lw_eight_of_2 __attribute__((vector_size(16)));
typedef int32_t lw_eight_of_4 __attribute__((vector_size(32), may_alias));
typedef int32_t lw_four_of_4 __attribute__((vector_size(16), may_alias));
typedef int64_t lw_four_of_8 __attribute__((vector_size(32)));

/* Integers in a larger size. GCC 12 makes four instructions of each conversion where the processor has one. */
#if defined(__AVX2__) && !defined(__clang__)
#define LW_WIDENED_2(vector) (lw_eight_of_4) __builtin_ia32_pmovsxwd256(vector)
#define LW_WIDENED_4(vector) (lw_four_of_8) __builtin_ia32_pmovsxdq256((lw_four_of_4)(vector))
#else
#define LW_WIDENED_2(vector) __builtin_convertvector(vector, lw_eight_of_4)
#define LW_WIDENED_4(vector) __builtin_convertvector(vector, lw_four_of_8)
#endif

/* Two vectors interleaved element by element, in each of the parts that they have: by elements of a part and of a
 * vector. */
#define LW_LOWER_8_8(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define LW_UPPER_8_8(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define LW_LOWER_4_8(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define LW_UPPER_4_8(a, b) __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define LW_LOWER_4_4(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define LW_UPPER_4_4(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define LW_LOWER_2_4(a, b) __builtin_shufflevector(a, b, 0, 4, 2, 6)
#define LW_UPPER_2_4(a, b) __builtin_shufflevector(a, b, 1, 5, 3, 7)
#define LW_PARTS_8(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7)
#define LW_PARTS_4(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3)

/* A square of eight rows of eight bytes, each `next` bytes after the one before it, transposed: its rows are to be
 * `to_next` bytes apart. Pairs of rows are interleaved, then pairs of pairs. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
LW_INLINE void lw_transpose_bytes(const uint8_t *rows, int64_t next, uint8_t *to, int64_t to_next) {
    typedef uint8_t part __attribute__((vector_size(8), aligned(1), may_alias));
    typedef uint8_t bytes __attribute__((vector_size(16)));
    typedef uint16_t pairs __attribute__((vector_size(16)));
    typedef uint32_t fours __attribute__((vector_size(16)));
    pairs a[4];
    for (int k = 0; k < 4; ++k) {
        const part one = *(const part *)(rows + 2 * k * next), other = *(const part *)(rows + (2 * k + 1) * next);
        a[k] = (pairs)__builtin_shufflevector(one, other, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
    }
    for (int half = 0; half < 2; ++half) {
        fours b[2];
        for (int k = 0; k < 2; ++k)
            b[k] = half == 0 ? (fours)__builtin_shufflevector(a[2 * k], a[2 * k + 1], 0, 8, 1, 9, 2, 10, 3, 11)
                             : (fours)__builtin_shufflevector(a[2 * k], a[2 * k + 1], 4, 12, 5, 13, 6, 14, 7, 15);
        const bytes low = (bytes)__builtin_shufflevector(b[0], b[1], 0, 4, 1, 5);
        const bytes high = (bytes)__builtin_shufflevector(b[0], b[1], 2, 6, 3, 7);
        uint8_t *const here = to + 4 * half * to_next;
        *(part *)here = __builtin_shufflevector(low, low, 0, 1, 2, 3, 4, 5, 6, 7);
        *(part *)(here + to_next) = __builtin_shufflevector(low, low, 8, 9, 10, 11, 12, 13, 14, 15);
        *(part *)(here + 2 * to_next) = __builtin_shufflevector(high, high, 0, 1, 2, 3, 4, 5, 6, 7);
        *(part *)(here + 3 * to_next) = __builtin_shufflevector(high, high, 8, 9, 10, 11, 12, 13, 14, 15);
    }
}
#endif
#endif

#endif

/* The side of a square is what a vector register holds; none where the compiler cannot say how to permute one. A part
 * of a register is what one instruction interleaves with another, but for vectors of 64 bytes: they have two as well.
 */
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#if LW_BYTES == 1 && !defined(LW_STORED_BYTES)
#define LW_SIDE 8
#elif LW_BYTES == 2
#define LW_SIDE 8
#define LW_PART 8
#elif LW_BYTES == 4 && defined(__AVX__)
#define LW_SIDE 8
#define LW_PART 4
#elif LW_BYTES == 4
#define LW_SIDE 4
#define LW_PART 4
#elif LW_BYTES == 8 && defined(__AVX512F__)
#define LW_SIDE 8
#define LW_PART 4
#elif LW_BYTES == 8 && defined(__AVX__)
#define LW_SIDE 4
#define LW_PART 2
#endif
#endif
#endif

#if defined(LW_SIDE) && LW_BYTES == 1

LW_INLINE void LW_NAME(lw_square_in)(LW_ELEMENT *steps, const LW_STORED *first, int64_t next, int64_t along) {
    lw_transpose_bytes(first, next, along < 0 ? steps + 7 * LW_WIDTH : steps, along < 0 ? -LW_WIDTH : LW_WIDTH);
}

LW_INLINE void LW_NAME(lw_square_out)(const LW_ELEMENT *steps, LW_STORED *first, int64_t next, int64_t along) {
    lw_transpose_bytes(along < 0 ? steps + 7 * LW_WIDTH : steps, along < 0 ? -LW_WIDTH : LW_WIDTH, first, next);
}

#elif defined(LW_SIDE)

typedef LW_ELEMENT LW_NAME(lw_vector) __attribute__((vector_size(LW_SIDE * LW_BYTES)));
typedef LW_ELEMENT LW_NAME(lw_part) __attribute__((vector_size(LW_PART * LW_BYTES), may_alias));
/* The same anywhere in memory. */
typedef LW_ELEMENT LW_NAME(lw_any_vector) __attribute__((vector_size(LW_SIDE * LW_BYTES), aligned(LW_BYTES)));
typedef LW_STORED LW_NAME(lw_any_part)
    __attribute__((vector_size(LW_PART * sizeof(LW_STORED)), aligned(sizeof(LW_STORED))));

#define LW_OF_SIDE(name) LW_JOINED(name, LW_SIDE)
#define LW_OF_PART(name) LW_OF_SIDE(LW_JOINED(name, LW_PART))

LW_INLINE LW_NAME(lw_part) LW_NAME(lw_part_from)(const LW_STORED *from) {
    const LW_NAME(lw_any_part) stored = *(const LW_NAME(lw_any_part) *)from;
#if !defined(LW_STORED_BYTES)
    return stored;
#elif LW_STORED_BYTES == 4 * LW_BYTES /* which compilers do not convert to at once */
    return __builtin_convertvector(__builtin_convertvector(stored, lw_eight_of_4), LW_NAME(lw_part));
#else
    return __builtin_convertvector(stored, LW_NAME(lw_part));
#endif
}

LW_INLINE void LW_NAME(lw_part_to)(LW_STORED *to, LW_NAME(lw_part) part) {
#if !defined(LW_STORED_BYTES)
    *(LW_NAME(lw_any_part) *)to = part;
#elif LW_BYTES == 4
    *(LW_NAME(lw_any_part) *)to = (LW_NAME(lw_any_part))LW_WIDENED_4(part);
#elif LW_STORED_BYTES == 4
    *(LW_NAME(lw_any_part) *)to = (LW_NAME(lw_any_part))LW_WIDENED_2((lw_eight_of_2)part);
#else
    typedef LW_STORED half __attribute__((vector_size(4 * sizeof(LW_STORED)), aligned(sizeof(LW_STORED))));
    const lw_eight_of_4 between = LW_WIDENED_2((lw_eight_of_2)part);
    for (int k = 0; k < 2; ++k) *(half *)(to + 4 * k) = (half)LW_WIDENED_4(((const lw_four_of_4 *)&between)[k]);
#endif
}

/* So many vectors as a part has elements: parts are transposed by rounds of interleaving, as a perfect shuffle does it
 * with addresses. */
LW_INLINE void LW_NAME(lw_transpose)(LW_NAME(lw_vector) * r) {
    for (int round = 1; round < LW_PART; round *= 2) {
        LW_NAME(lw_vector) next[LW_PART];
        for (int i = 0; i < LW_PART / 2; ++i) {
            next[2 * i] = LW_OF_PART(LW_LOWER)(r[i], r[i + LW_PART / 2]);
            next[2 * i + 1] = LW_OF_PART(LW_UPPER)(r[i], r[i + LW_PART / 2]);
        }
        for (int i = 0; i < LW_PART; ++i) r[i] = next[i];
    }
}

/* Where positions go down, so do the steps. */
LW_INLINE void LW_NAME(lw_square_in)(LW_ELEMENT *steps, const LW_STORED *first, int64_t next, int64_t along) {
    for (int begin = 0; begin < LW_SIDE; begin += LW_PART) {
        LW_NAME(lw_vector) r[LW_PART];
        for (int i = 0; i < LW_PART; ++i) {
            const LW_STORED *const from = first + i * next + begin;
#if LW_PART < LW_SIDE
            r[i] = LW_OF_SIDE(LW_PARTS)(LW_NAME(lw_part_from)(from), LW_NAME(lw_part_from)(from + LW_PART * next));
#else
            r[i] = LW_NAME(lw_part_from)(from);
#endif
        }
        LW_NAME(lw_transpose)(r);
        for (int i = 0; i < LW_PART; ++i) {
            const int k = along < 0 ? LW_SIDE - 1 - begin - i : begin + i;
            *(LW_NAME(lw_any_vector) *)(steps + k * LW_WIDTH) = r[i];
        }
    }
}

LW_INLINE void LW_NAME(lw_square_out)(const LW_ELEMENT *steps, LW_STORED *first, int64_t next, int64_t along) {
    for (int begin = 0; begin < LW_SIDE; begin += LW_PART) {
        LW_NAME(lw_vector) r[LW_PART];
        for (int i = 0; i < LW_PART; ++i) {
            const int k = along < 0 ? LW_SIDE - 1 - begin - i : begin + i;
            r[i] = *(const LW_NAME(lw_any_vector) *)(steps + k * LW_WIDTH);
        }
        LW_NAME(lw_transpose)(r);
        for (int i = 0; i < LW_SIDE; ++i)
            LW_NAME(lw_part_to)(first + i * next + begin, ((const LW_NAME(lw_part) *)&r[i % LW_PART])[i / LW_PART]);
    }
}

#undef LW_OF_SIDE
#undef LW_OF_PART

#endif
