/* Vectors whose lanes are iterations of an outer loop, for generated code: LW_LANES of them, which it defines. A mask
 * has an integer a lane, all of whose bits are set or none, as large as the largest elements (LW_MASK). */
#ifndef LAPWING_OUTER_LOOPS_H
#define LAPWING_OUTER_LOOPS_H

#include "support.h"

enum { LW_VECTORS = 4 }; /* that are computed side by side at most: results of one are waited for meanwhile */

/* Not part of the loops around it, which may have few iterations, and are compiled as if there were no vectors. */
#define LW_APART static __attribute__((noinline, unused))

#define LW_VECTOR_OF(type) __attribute__((vector_size(LW_LANES * sizeof(type))))
typedef LW_MASK lw_mask LW_VECTOR_OF(LW_MASK);

/* bits: the integer of the size of an element, of which comparisons give vectors. */
#define LW_LANES_OF(suffix, type, bits)                                                                                \
    typedef type lw_lanes_##suffix LW_VECTOR_OF(type);                                                                 \
    typedef bits lw_bits_##suffix LW_VECTOR_OF(bits);                                                                  \
    typedef type lw_anywhere_##suffix                                                                                  \
        __attribute__((vector_size(LW_LANES * sizeof(type)), aligned(sizeof(type)), may_alias));                       \
    LW_INLINE lw_lanes_##suffix lw_load_##suffix(const type *from) { return *(const lw_anywhere_##suffix *)from; }     \
    LW_INLINE void lw_store_##suffix(type *to, lw_lanes_##suffix x) { *(lw_anywhere_##suffix *)to = x; }               \
    LW_INLINE lw_lanes_##suffix lw_gather_##suffix(const type *from, int64_t stride) {                                 \
        lw_lanes_##suffix x;                                                                                           \
        for (int lane = 0; lane < LW_LANES; ++lane) x[lane] = from[lane * stride];                                     \
        return x;                                                                                                      \
    }                                                                                                                  \
    LW_INLINE void lw_scatter_##suffix(type *to, int64_t stride, lw_lanes_##suffix x) {                                \
        for (int lane = 0; lane < LW_LANES; ++lane) to[lane * stride] = x[lane];                                       \
    }                                                                                                                  \
    LW_INLINE lw_lanes_##suffix lw_all_##suffix(type x) {                                                              \
        lw_lanes_##suffix all;                                                                                         \
        for (int lane = 0; lane < LW_LANES; ++lane) all[lane] = x;                                                     \
        return all;                                                                                                    \
    }                                                                                                                  \
    LW_INLINE lw_mask lw_mask_##suffix(lw_bits_##suffix test) { return __builtin_convertvector(test, lw_mask); }       \
    LW_INLINE lw_lanes_##suffix lw_either_##suffix(lw_mask test, lw_lanes_##suffix then,                               \
                                                   lw_lanes_##suffix otherwise) {                                      \
        const lw_bits_##suffix bits_ = __builtin_convertvector(test, lw_bits_##suffix);                                \
        return (lw_lanes_##suffix)((bits_ & (lw_bits_##suffix)then) | (~bits_ & (lw_bits_##suffix)otherwise));         \
    }                                                                                                                  \
    LW_INLINE lw_lanes_##suffix lw_lesser_##suffix(lw_lanes_##suffix a, lw_lanes_##suffix b) {                         \
        return lw_either_##suffix(lw_mask_##suffix(b < a), b, a);                                                      \
    }                                                                                                                  \
    LW_INLINE lw_lanes_##suffix lw_greater_##suffix(lw_lanes_##suffix a, lw_lanes_##suffix b) {                        \
        return lw_either_##suffix(lw_mask_##suffix(b > a), b, a);                                                      \
    }                                                                                                                  \
    LW_INLINE lw_lanes_##suffix lw_truth_##suffix(lw_mask test) {                                                      \
        return __builtin_convertvector(test & 1, lw_lanes_##suffix);                                                   \
    }

/* What the lanes before have, of vectors one behind the other. */
#define LW_BEHIND_OF(suffix)                                                                                           \
    LW_INLINE lw_lanes_##suffix lw_behind_##suffix(lw_lanes_##suffix before, lw_lanes_##suffix x) {                    \
        lw_lanes_##suffix behind;                                                                                      \
        behind[0] = before[LW_LANES - 1];                                                                              \
        for (int lane = 1; lane < LW_LANES; ++lane) behind[lane] = x[lane - 1];                                        \
        return behind;                                                                                                 \
    }

/* Of vectors of every lane's row those of the lanes' elements, one after the other: a square of lanes and elements is
 * transposed, first those next to each other, then those two apart, and so on. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#if LW_LANES == 2
#define LW_LOWER_1(a, b) __builtin_shufflevector(a, b, 0, 2)
#define LW_UPPER_1(a, b) __builtin_shufflevector(a, b, 1, 3)
#elif LW_LANES == 4
#define LW_LOWER_1(a, b) __builtin_shufflevector(a, b, 0, 4, 2, 6)
#define LW_UPPER_1(a, b) __builtin_shufflevector(a, b, 1, 5, 3, 7)
#define LW_LOWER_2(a, b) __builtin_shufflevector(a, b, 0, 1, 4, 5)
#define LW_UPPER_2(a, b) __builtin_shufflevector(a, b, 2, 3, 6, 7)
#elif LW_LANES == 8
#define LW_LOWER_1(a, b) __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14)
#define LW_UPPER_1(a, b) __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15)
#define LW_LOWER_2(a, b) __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define LW_UPPER_2(a, b) __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#define LW_LOWER_4(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define LW_UPPER_4(a, b) __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15)
#elif LW_LANES == 16
#define LW_LOWER_1(a, b) __builtin_shufflevector(a, b, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30)
#define LW_UPPER_1(a, b) __builtin_shufflevector(a, b, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31)
#define LW_LOWER_2(a, b) __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
#define LW_UPPER_2(a, b) __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)
#define LW_LOWER_4(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27)
#define LW_UPPER_4(a, b) __builtin_shufflevector(a, b, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31)
#define LW_LOWER_8(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23)
#define LW_UPPER_8(a, b) __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31)
#endif
#endif
#endif
#define LW_STAGE(square, apart)                                                                                        \
    _Pragma("GCC unroll 16") for (int lane = 0; lane < LW_LANES; ++lane) {                                             \
        if (lane & apart) continue;                                                                                    \
        const __typeof__(*square) a_ = square[lane], b_ = square[lane + apart];                                        \
        square[lane] = LW_LOWER_##apart(a_, b_);                                                                       \
        square[lane + apart] = LW_UPPER_##apart(a_, b_);                                                               \
    }
#ifndef LW_LOWER_1
#define LW_TRANSPOSE(square)                                                                                           \
    for (int lane = 0; lane < LW_LANES; ++lane)                                                                        \
        for (int k_ = 0; k_ < lane; ++k_) {                                                                            \
            const __typeof__(square[0][0]) kept_ = square[lane][k_];                                                   \
            square[lane][k_] = square[k_][lane];                                                                       \
            square[k_][lane] = kept_;                                                                                  \
        }
#elif LW_LANES == 2
#define LW_TRANSPOSE(square) LW_STAGE(square, 1)
#elif LW_LANES == 4
#define LW_TRANSPOSE(square) LW_STAGE(square, 1) LW_STAGE(square, 2)
#elif LW_LANES == 8
#define LW_TRANSPOSE(square) LW_STAGE(square, 1) LW_STAGE(square, 2) LW_STAGE(square, 4)
#else
#define LW_TRANSPOSE(square) LW_STAGE(square, 1) LW_STAGE(square, 2) LW_STAGE(square, 4) LW_STAGE(square, 8)
#endif
#define LW_SQUARE_OF(suffix, type)                                                                                     \
    LW_INLINE void lw_load_square_##suffix(lw_lanes_##suffix *square, const type *from, int64_t stride) {              \
        _Pragma("GCC unroll 16") for (int lane = 0; lane < LW_LANES; ++lane) square[lane] =                            \
            lw_load_##suffix(from + lane * stride);                                                                    \
        LW_TRANSPOSE(square)                                                                                           \
    }                                                                                                                  \
    LW_INLINE void lw_store_square_##suffix(lw_lanes_##suffix *square, type *to, int64_t stride) {                     \
        LW_TRANSPOSE(square)                                                                                           \
        _Pragma("GCC unroll 16") for (int lane = 0; lane < LW_LANES; ++lane)                                           \
            lw_store_##suffix(to + lane * stride, square[lane]);                                                       \
    }

LW_LANES_OF(f64, double, int64_t)
LW_LANES_OF(f32, float, int32_t)
LW_LANES_OF(i64, int64_t, int64_t)
LW_LANES_OF(i32, int32_t, int32_t)
LW_LANES_OF(i16, int16_t, int16_t)
LW_LANES_OF(i8, int8_t, int8_t)
LW_LANES_OF(u8, uint8_t, int8_t)
LW_LANES_OF(u16, uint16_t, int16_t)
LW_LANES_OF(u32, uint32_t, int32_t)
LW_BEHIND_OF(f64)
LW_BEHIND_OF(f32)
LW_BEHIND_OF(i64)
LW_BEHIND_OF(i32)
LW_BEHIND_OF(i16)
LW_BEHIND_OF(i8)
LW_BEHIND_OF(u8)
LW_BEHIND_OF(u16)
LW_BEHIND_OF(u32)
LW_SQUARE_OF(f64, double)
LW_SQUARE_OF(f32, float)
LW_SQUARE_OF(i64, int64_t)
LW_SQUARE_OF(i32, int32_t)
LW_SQUARE_OF(i16, int16_t)
LW_SQUARE_OF(i8, int8_t)
LW_SQUARE_OF(u8, uint8_t)
LW_SQUARE_OF(u16, uint16_t)
LW_SQUARE_OF(u32, uint32_t)

/* The index of the loop in every lane. */
LW_INLINE lw_lanes_i64 lw_index_from(int64_t first) {
    lw_lanes_i64 index;
    for (int lane = 0; lane < LW_LANES; ++lane) index[lane] = first + lane;
    return index;
}
LW_INLINE lw_mask lw_all_b(bool x) {
    lw_mask all;
    for (int lane = 0; lane < LW_LANES; ++lane) all[lane] = x ? -1 : 0;
    return all;
}
LW_INLINE lw_mask lw_either_b(lw_mask test, lw_mask then, lw_mask otherwise) {
    return (test & then) | (~test & otherwise);
}
LW_INLINE lw_mask lw_load_b(const bool *from) { return lw_mask_u8(*(const lw_anywhere_u8 *)from != 0); }
LW_INLINE lw_mask lw_gather_b(const bool *from, int64_t stride) {
    lw_mask x;
    for (int lane = 0; lane < LW_LANES; ++lane) x[lane] = from[lane * stride] ? -1 : 0;
    return x;
}
LW_INLINE void lw_store_b(bool *to, lw_mask x) {
    for (int lane = 0; lane < LW_LANES; ++lane) to[lane] = x[lane] != 0;
}
LW_INLINE void lw_scatter_b(bool *to, int64_t stride, lw_mask x) {
    for (int lane = 0; lane < LW_LANES; ++lane) to[lane * stride] = x[lane] != 0;
}
typedef lw_mask lw_lanes_b;
LW_INLINE bool lw_any(lw_mask test) {
    LW_MASK any = 0;
    for (int lane = 0; lane < LW_LANES; ++lane) any |= test[lane];
    return any != 0;
}
LW_INLINE bool lw_all(lw_mask test) { return !lw_any(~test); }

#endif
