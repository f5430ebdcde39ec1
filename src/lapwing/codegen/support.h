/* Python's and NumPy's arithmetic in C, for generated code. Every function here has the exact result of the Python
 * operation its name says; where Python would raise, the number of the place is noted in *trap. */
#ifndef LAPWING_SUPPORT_H
#define LAPWING_SUPPORT_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "lapwing.h"

#define LW_INLINE static inline __attribute__((always_inline, unused))

/* C's math library under names the compiler does not know, so that it neither folds nor rewrites the calls: the result
 * is the library's, as in Python. */
#define LW_LIBRARY_1(name) extern double lw_##name(double) __asm__(#name) __attribute__((const));
#define LW_LIBRARY_2(name) extern double lw_##name(double, double) __asm__(#name) __attribute__((const));
LW_LIBRARY_1(exp)
LW_LIBRARY_1(exp2)
LW_LIBRARY_1(expm1)
LW_LIBRARY_1(log)
LW_LIBRARY_1(log2)
LW_LIBRARY_1(log10)
LW_LIBRARY_1(log1p)
LW_LIBRARY_1(sin)
LW_LIBRARY_1(cos)
LW_LIBRARY_1(tan)
LW_LIBRARY_1(asin)
LW_LIBRARY_1(acos)
LW_LIBRARY_1(atan)
LW_LIBRARY_1(sinh)
LW_LIBRARY_1(cosh)
LW_LIBRARY_1(tanh)
LW_LIBRARY_1(asinh)
LW_LIBRARY_1(acosh)
LW_LIBRARY_1(atanh)
LW_LIBRARY_1(erf)
LW_LIBRARY_1(erfc)
LW_LIBRARY_1(cbrt)
LW_LIBRARY_2(atan2)
LW_LIBRARY_2(pow)
LW_LIBRARY_2(fmod)
LW_LIBRARY_2(hypot)
extern float lw_powf(float, float) __asm__("powf") __attribute__((const));
extern float lw_hypotf(float, float) __asm__("hypotf") __attribute__((const));
extern float lw_fmodf(float, float) __asm__("fmodf") __attribute__((const));

/* The index from `first` on at which an element of a row begins a vector; `first` itself, where there are few up to
 * `last`. row: where the element at index 0 would be. */
#define lw_vector_from(row, first, last) lw_first_of_vector((uintptr_t)(row), sizeof *(row), first, last)
LW_INLINE int64_t lw_first_of_vector(uintptr_t row, int64_t size, int64_t first, int64_t last) {
    const int64_t least = 512; /* bytes, of which fewer iterations than are done one by one are not worth it */
    const uintptr_t here = row + (uintptr_t)(first * size);
    return (last - first) * size < least ? first : first + (int64_t)(-here % __BIGGEST_ALIGNMENT__) / size;
}

/* What a box of several sweeps is in one of them, whose ends lie lower by `moves` from sweep to sweep. */
LW_INLINE lw_box lw_moved(const lw_box *box, const lw_box *moves, int64_t sweep) {
    lw_box moved = *box;
    for (int k = 0; k < LW_MAX_LOOPS; ++k) {
        moved.lo[k] -= moves->lo[k] * sweep;
        moved.hi[k] -= moves->hi[k] * sweep;
    }
    return moved;
}

/* Python's min(a, b) and max(a, b): the first of equals, and a where the comparison is with a NaN. */
#define LW_EXTREMA(suffix, type)                                                                                       \
    LW_INLINE type lw_min_##suffix(type a, type b) { return b < a ? b : a; }                                           \
    LW_INLINE type lw_max_##suffix(type a, type b) { return b > a ? b : a; }
LW_EXTREMA(f64, double)
LW_EXTREMA(f32, float)
LW_EXTREMA(i64, int64_t)
LW_EXTREMA(i32, int32_t)
LW_EXTREMA(i16, int16_t)
LW_EXTREMA(i8, int8_t)
LW_EXTREMA(u8, uint8_t)
LW_EXTREMA(u16, uint16_t)
LW_EXTREMA(u32, uint32_t)
LW_EXTREMA(b, bool)

/* Conversions and what makes a float positive are functions because gcc's front end turns 0.0 - x into -x, which is
 * -0.0 for x = 0, where it sees that x is never -0.0: of a function it sees nothing before it is inlined. */
#define LW_CONVERSIONS(suffix, type)                                                                                   \
    LW_INLINE double lw_double_##suffix(type x) { return (double)x; }                                                  \
    LW_INLINE float lw_float_##suffix(type x) { return (float)x; }
LW_CONVERSIONS(i64, int64_t)
LW_CONVERSIONS(i32, int32_t)
LW_CONVERSIONS(i16, int16_t)
LW_CONVERSIONS(i8, int8_t)
LW_CONVERSIONS(u8, uint8_t)
LW_CONVERSIONS(u16, uint16_t)
LW_CONVERSIONS(u32, uint32_t)
LW_CONVERSIONS(b, bool)

/* Of an operand that compilers see once, or they branch. */
#define LW_ABSOLUTE(suffix, type)                                                                                      \
    LW_INLINE type lw_abs_##suffix(type x) { return (type)(x < 0 ? -x : x); }
LW_ABSOLUTE(i64, int64_t)
LW_ABSOLUTE(i32, int32_t)
LW_ABSOLUTE(i16, int16_t)
LW_ABSOLUTE(i8, int8_t)

LW_INLINE double lw_abs_f64(double x) { return fabs(x); }
LW_INLINE float lw_abs_f32(float x) { return fabsf(x); }
LW_INLINE double lw_fabs(double x) { return fabs(x); }
LW_INLINE double lw_copysign(double x, double y) { return copysign(x, y); }

/* Complex numbers are built and taken apart here: sums and comparisons of them are C's, which are those of their parts;
 * products and quotients are not C's, which see to infinities. */
#define LW_COMPLEX(suffix, type, ABS, HYPOT)                                                                           \
    LW_INLINE type _Complex lw_##suffix(type real, type imag) {                                                        \
        type _Complex z;                                                                                               \
        __real__ z = real;                                                                                             \
        __imag__ z = imag;                                                                                             \
        return z;                                                                                                      \
    }                                                                                                                  \
    LW_INLINE type lw_real_##suffix(type _Complex z) { return __real__ z; }                                            \
    LW_INLINE type lw_imag_##suffix(type _Complex z) { return __imag__ z; }                                            \
    LW_INLINE type _Complex lw_conjugate_##suffix(type _Complex z) { return lw_##suffix(__real__ z, -__imag__ z); }    \
    LW_INLINE type lw_modulus_##suffix(type _Complex z) { return HYPOT(__real__ z, __imag__ z); }                      \
    LW_INLINE bool lw_isnan_##suffix(type _Complex z) { return isnan(__real__ z) || isnan(__imag__ z); }               \
    LW_INLINE bool lw_isinf_##suffix(type _Complex z) { return isinf(__real__ z) || isinf(__imag__ z); }               \
    LW_INLINE bool lw_isfinite_##suffix(type _Complex z) { return isfinite(__real__ z) && isfinite(__imag__ z); }      \
    LW_INLINE type _Complex lw_product_##suffix(type _Complex x, type _Complex y) {                                    \
        const type a = __real__ x, b = __imag__ x, c = __real__ y, d = __imag__ y;                                     \
        return lw_##suffix(a * c - b * d, a * d + b * c);                                                              \
    }                                                                                                                  \
    LW_INLINE type _Complex lw_numpy_square_##suffix(type _Complex z) { return lw_product_##suffix(z, z); }            \
    /* NumPy's, by Smith's algorithm. */                                                                               \
    LW_INLINE type _Complex lw_quotient_##suffix(type _Complex x, type _Complex y) {                                   \
        const type a = __real__ x, b = __imag__ x, c = __real__ y, d = __imag__ y;                                     \
        if (c == 0 && d == 0) return lw_##suffix(a / ABS(c), b / ABS(c));                                              \
        if (ABS(c) >= ABS(d)) {                                                                                        \
            const type ratio = d / c, scale = 1 / (c + d * ratio);                                                     \
            return lw_##suffix((a + b * ratio) * scale, (b - a * ratio) * scale);                                      \
        }                                                                                                              \
        const type ratio = c / d, scale = 1 / (d + c * ratio);                                                         \
        return lw_##suffix((a * ratio + b) * scale, (b * ratio - a) * scale);                                          \
    }                                                                                                                  \
    /* NumPy's powers. */                                                                                              \
    LW_INLINE type _Complex lw_power_2_##suffix(type _Complex z) {                                                     \
        return z == 0 ? lw_##suffix(0, 0) : lw_product_##suffix(z, z);                                                 \
    }                                                                                                                  \
    LW_INLINE type _Complex lw_power_3_##suffix(type _Complex z) {                                                     \
        return z == 0 ? lw_##suffix(0, 0) : lw_product_##suffix(z, lw_product_##suffix(z, z));                         \
    }
LW_COMPLEX(c128, double, fabs, lw_hypot)
LW_COMPLEX(c64, float, fabsf, lw_hypotf)

LW_INLINE float _Complex lw_c64_c128(double _Complex z) { return lw_c64((float)__real__ z, (float)__imag__ z); }
LW_INLINE double _Complex lw_c128_c64(float _Complex z) { return lw_c128(__real__ z, __imag__ z); }

/* An element of a narrower type, wide: 0, but no compiler knows, which would go back to masks of the narrow type. */
__attribute__((weak)) int64_t lw_zero;
LW_INLINE int64_t lw_widened_i64(int64_t value) { return value + lw_zero; }
LW_INLINE int32_t lw_widened_i32(int32_t value) { return value + (int32_t)lw_zero; }
LW_INLINE int64_t lw_flag_i64(const bool *flag) { return lw_widened_i64(*(const uint8_t *)flag); } /* not as one bit */
LW_INLINE int32_t lw_flag_i32(const bool *flag) { return lw_widened_i32(*(const uint8_t *)flag); }

/* Both values are there whatever the test says, so that the compiler need not take a branch to one of them. */
#define LW_SELECT(suffix, type)                                                                                        \
    LW_INLINE type lw_select_##suffix(bool test, type then, type otherwise) { return test ? then : otherwise; }
LW_SELECT(f64, double)
LW_SELECT(f32, float)
LW_SELECT(i64, int64_t)
LW_SELECT(i32, int32_t)
LW_SELECT(i16, int16_t)
LW_SELECT(i8, int8_t)
LW_SELECT(u8, uint8_t)
LW_SELECT(u16, uint16_t)
LW_SELECT(u32, uint32_t)
LW_SELECT(b, bool)

/* The same by a mask, so that no compiler makes one branch of several choices by a test. */
#define LW_MASKED(suffix, type)                                                                                        \
    LW_INLINE type lw_masked_##suffix(bool test, type then, type otherwise) {                                          \
        return otherwise ^ ((then ^ otherwise) & -(type)test);                                                         \
    }
LW_MASKED(i64, int64_t)
LW_MASKED(i32, int32_t)
LW_SELECT(c128, double _Complex)
LW_SELECT(c64, float _Complex)

/* Integers: floor division and its remainder; NumPy's x // 0 and x % 0 are 0, and the least integer // -1 wraps. By a
 * positive number in the text they take no branch, so that compilers take them out of loops. By others a remainder
 * looks first whether there is anything to divide, as there mostly is not where indices go round an array: the branch
 * is predicted, and a division of 64 bits takes as long as ten additions. A quotient of numbers that have 32 bits is
 * divided as such, which takes less (as LLVM bypasses slow divisions). */
#define LW_UNSIGNED_DIVISION(suffix, type)                                                                             \
    LW_INLINE type lw_floordiv_##suffix(type a, type b) { return b == 0 ? 0 : (type)(a / b); }                         \
    LW_INLINE type lw_mod_##suffix(type a, type b) { return b == 0 ? 0 : (type)(a % b); }
LW_UNSIGNED_DIVISION(u8, uint8_t)
LW_UNSIGNED_DIVISION(u16, uint16_t)
LW_UNSIGNED_DIVISION(u32, uint32_t)
#define LW_IS_SHORT(a, b)                                                                                              \
    (!__builtin_constant_p(b) && sizeof(a) == 8 && b != 0 && (((uint64_t)(a) | (uint64_t)(b)) >> 32) == 0)
#define LW_INTEGER_DIVISION(suffix, type)                                                                              \
    LW_INLINE type lw_floordiv_##suffix(type a, type b) {                                                              \
        if (LW_IS_SHORT(a, b)) return (type)((uint32_t)a / (uint32_t)b);                                               \
        if (b == 0) return 0;                                                                                          \
        if (b == -1) return (type)(0 - (uint64_t)a);                                                                   \
        type q = (type)(a / b);                                                                                        \
        if (__builtin_constant_p(b > 0) && b > 0) return (type)(q - (type)(a % b < 0));                                \
        return (type)(q - (q * b != a && ((a < 0) != (b < 0))));                                                       \
    }                                                                                                                  \
    LW_INLINE type lw_mod_##suffix(type a, type b) {                                                                   \
        if (!__builtin_constant_p(b) && a >= 0 && a < b) return a;                                                     \
        if (b == 0 || b == -1) return 0;                                                                               \
        if (__builtin_constant_p(b > 0) && b > 0 && (b & (b - 1)) == 0) return (type)(a & (b - 1));                    \
        type r = (type)(a % b);                                                                                        \
        if (__builtin_constant_p(b > 0) && b > 0) return (type)(r + (b & -(type)(r < 0)));                             \
        return (type)(r != 0 && ((r < 0) != (b < 0)) ? r + b : r);                                                     \
    }
/* x % n, of a positive n and an x less than n away from [0, n). */
LW_INLINE int64_t lw_wrap(int64_t x, int64_t n) { return x < 0 ? x + n : x >= n ? x - n : x; }
/* The same seen from any index: with it can be reckoned. */
LW_INLINE int64_t lw_near(int64_t x) {
    const int64_t far = INT64_C(1) << 62;
    return x < -far ? -far : x > far ? far : x;
}
LW_INTEGER_DIVISION(i64, int64_t)
LW_INTEGER_DIVISION(i32, int32_t)
LW_INTEGER_DIVISION(i16, int16_t)
LW_INTEGER_DIVISION(i8, int8_t)

/* The least integer from `first` on that leaves `rest` together with `offset`, divided by `by`; `beyond` where none
 * does. */
LW_INLINE int64_t lw_first_congruent(int64_t first, int64_t beyond, int64_t offset, int64_t by, int64_t rest) {
    return rest < 0 || rest >= by ? beyond : first + lw_mod_i64(rest - lw_mod_i64(first + offset, by), by);
}

/* Floats: the remainder has the sign of the divisor, and the quotient is consistent with it. */
#define LW_FLOAT_DIVISION(suffix, type, FMOD, FLOOR, COPYSIGN)                                                         \
    LW_INLINE type lw_mod_##suffix(type a, type b) {                                                                   \
        type mod = FMOD(a, b);                                                                                         \
        if (b == 0) return mod;                                                                                        \
        if (mod != 0) return (b < 0) != (mod < 0) ? mod + b : mod;                                                     \
        return COPYSIGN(0, b);                                                                                         \
    }                                                                                                                  \
    LW_INLINE type lw_floordiv_##suffix(type a, type b) {                                                              \
        if (b == 0) return a / b;                                                                                      \
        type mod = FMOD(a, b), div = (a - mod) / b;                                                                    \
        if (mod != 0 && ((b < 0) != (mod < 0))) div -= 1;                                                              \
        if (div == 0) return COPYSIGN(0, a / b);                                                                       \
        type floored = FLOOR(div);                                                                                     \
        return div - floored > (type)0.5 ? floored + 1 : floored;                                                      \
    }
LW_FLOAT_DIVISION(f64, double, lw_fmod, floor, copysign)
LW_FLOAT_DIVISION(f32, float, lw_fmodf, floorf, copysignf)

/* NumPy's functions. Which of two zeros its extrema give differs: the variants are the first, the second, the one in
 * order. */
#define LW_FLOAT_EXTREMA(suffix, type)                                                                                 \
    LW_INLINE type lw_maximum_first_##suffix(type a, type b) { return a >= b || isnan(a) ? a : b; }                    \
    LW_INLINE type lw_minimum_first_##suffix(type a, type b) { return a <= b || isnan(a) ? a : b; }                    \
    LW_INLINE type lw_maximum_second_##suffix(type a, type b) { return a > b || isnan(a) ? a : b; }                    \
    LW_INLINE type lw_minimum_second_##suffix(type a, type b) { return a < b || isnan(a) ? a : b; }                    \
    LW_INLINE type lw_fmax_first_##suffix(type a, type b) { return a >= b || isnan(b) ? a : b; }                       \
    LW_INLINE type lw_fmin_first_##suffix(type a, type b) { return a <= b || isnan(b) ? a : b; }                       \
    LW_INLINE type lw_fmax_second_##suffix(type a, type b) { return a > b || isnan(b) ? a : b; }                       \
    LW_INLINE type lw_fmin_second_##suffix(type a, type b) { return a < b || isnan(b) ? a : b; }                       \
    LW_INLINE type lw_greater_zero_##suffix(type a, type b) { return signbit(a) ? b : a; }                             \
    LW_INLINE type lw_lesser_zero_##suffix(type a, type b) { return signbit(a) ? a : b; }                              \
    LW_INLINE type lw_maximum_order_##suffix(type a, type b) {                                                         \
        return a == b ? lw_greater_zero_##suffix(a, b) : lw_maximum_first_##suffix(a, b);                              \
    }                                                                                                                  \
    LW_INLINE type lw_minimum_order_##suffix(type a, type b) {                                                         \
        return a == b ? lw_lesser_zero_##suffix(a, b) : lw_minimum_first_##suffix(a, b);                               \
    }                                                                                                                  \
    LW_INLINE type lw_fmax_order_##suffix(type a, type b) {                                                            \
        return a == b ? lw_greater_zero_##suffix(a, b) : lw_fmax_first_##suffix(a, b);                                 \
    }                                                                                                                  \
    LW_INLINE type lw_fmin_order_##suffix(type a, type b) {                                                            \
        return a == b ? lw_lesser_zero_##suffix(a, b) : lw_fmin_first_##suffix(a, b);                                  \
    }                                                                                                                  \
    LW_INLINE type lw_numpy_clip_##suffix(type x, type low, type high) {                                               \
        const type raised = isnan(x) || x >= low ? x : low;                                                            \
        return isnan(raised) || raised <= high ? raised : high;                                                        \
    }                                                                                                                  \
    LW_INLINE type lw_numpy_sign_##suffix(type x) { return x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x; }                  \
    LW_INLINE type lw_numpy_square_##suffix(type x) { return x * x; }
LW_FLOAT_EXTREMA(f64, double)
LW_FLOAT_EXTREMA(f32, float)
#define LW_INTEGER_FUNCTIONS(suffix, type, unsigned_type)                                                              \
    LW_INLINE type lw_numpy_clip_##suffix(type x, type low, type high) {                                               \
        const type raised = x < low ? low : x;                                                                         \
        return raised > high ? high : raised;                                                                          \
    }                                                                                                                  \
    LW_INLINE type lw_numpy_square_##suffix(type x) { return (type)(x * x); }                                          \
    LW_INLINE type lw_shift_left_##suffix(type x, type count) {                                                        \
        return (unsigned_type)count < sizeof x * 8 ? (type)((unsigned_type)x << count) : 0;                            \
    }
LW_INTEGER_FUNCTIONS(i64, int64_t, uint64_t)
LW_INTEGER_FUNCTIONS(i32, int32_t, uint32_t)
LW_INTEGER_FUNCTIONS(i16, int16_t, uint16_t)
LW_INTEGER_FUNCTIONS(i8, int8_t, uint8_t)
LW_INTEGER_FUNCTIONS(u8, uint8_t, uint8_t)
LW_INTEGER_FUNCTIONS(u16, uint16_t, uint16_t)
LW_INTEGER_FUNCTIONS(u32, uint32_t, uint32_t)
#define LW_SIGNED_FUNCTIONS(suffix, type, unsigned_type)                                                               \
    LW_INLINE type lw_numpy_sign_##suffix(type x) { return (type)((x > 0) - (x < 0)); }                                \
    LW_INLINE type lw_shift_right_##suffix(type x, type count) {                                                       \
        return (unsigned_type)count < sizeof x * 8 ? (type)(x >> count) : (type)(x < 0 ? -1 : 0);                      \
    }
LW_SIGNED_FUNCTIONS(i64, int64_t, uint64_t)
LW_SIGNED_FUNCTIONS(i32, int32_t, uint32_t)
LW_SIGNED_FUNCTIONS(i16, int16_t, uint16_t)
LW_SIGNED_FUNCTIONS(i8, int8_t, uint8_t)
#define LW_UNSIGNED_FUNCTIONS(suffix, type)                                                                            \
    LW_INLINE type lw_numpy_sign_##suffix(type x) { return x > 0; }                                                    \
    LW_INLINE type lw_shift_right_##suffix(type x, type count) { return count < sizeof x * 8 ? (type)(x >> count) : 0; }
LW_UNSIGNED_FUNCTIONS(u8, uint8_t)
LW_UNSIGNED_FUNCTIONS(u16, uint16_t)
LW_UNSIGNED_FUNCTIONS(u32, uint32_t)
LW_INLINE bool lw_numpy_clip_b(bool x, bool low, bool high) { return (x | low) & high; }

/* One of NumPy's own loops, for one element. As in NumPy's calls with scalars, nothing says how far apart the next
 * operands would be: it then takes shortcuts, for powers of 2 for example. */
typedef struct {
    void (*function)(char **, const intptr_t *, const intptr_t *, void *);
    void *data;
    int64_t most; /* elements a call, where the bits of one depend on no other */
} lw_numpy_loop;
#define LW_CALLS(suffix, type)                                                                                         \
    LW_INLINE type lw_call_1_##suffix(const lw_numpy_loop *loop, type x) {                                             \
        type result;                                                                                                   \
        char *operands[] = {(char *)&x, (char *)&result};                                                              \
        const intptr_t one = 1, steps[] = {0, sizeof(type)};                                                           \
        loop->function(operands, &one, steps, loop->data);                                                             \
        return result;                                                                                                 \
    }                                                                                                                  \
    LW_INLINE type lw_call_2_##suffix(const lw_numpy_loop *loop, type x, type y) {                                     \
        type result;                                                                                                   \
        char *operands[] = {(char *)&x, (char *)&y, (char *)&result};                                                  \
        const intptr_t one = 1, steps[] = {0, 0, sizeof(type)};                                                        \
        loop->function(operands, &one, steps, loop->data);                                                             \
        return result;                                                                                                 \
    }
LW_CALLS(f64, double)
LW_CALLS(f32, float)
LW_CALLS(c128, double _Complex)
LW_CALLS(c64, float _Complex)
#define LW_COMPLEX_CALLS(suffix, type)                                                                                 \
    LW_INLINE type lw_call_1_##suffix##_real(const lw_numpy_loop *loop, type _Complex z) {                             \
        type result;                                                                                                   \
        char *operands[] = {(char *)&z, (char *)&result};                                                              \
        const intptr_t one = 1, steps[] = {0, sizeof(type)};                                                           \
        loop->function(operands, &one, steps, loop->data);                                                             \
        return result;                                                                                                 \
    }                                                                                                                  \
    /* A product of which one operand is real. NumPy's loop may round it once (fused multiplication and addition):     \
     * that shows where a product of parts vanishes, for the zero it leaves may then have the other sign. */           \
    LW_INLINE type _Complex lw_scaled_##suffix(const lw_numpy_loop *multiply, type _Complex x, type _Complex y) {      \
        const type a = __real__ x, b = __imag__ x, c = __real__ y, d = __imag__ y;                                     \
        const bool vanishes = (a * c == 0 && a != 0 && c != 0) || (b * d == 0 && b != 0 && d != 0) ||                  \
                              (a * d == 0 && a != 0 && d != 0) || (b * c == 0 && b != 0 && c != 0);                    \
        return __builtin_expect(vanishes, 0) ? lw_call_2_##suffix(multiply, x, y) : lw_product_##suffix(x, y);         \
    }
LW_COMPLEX_CALLS(c128, double)
LW_COMPLEX_CALLS(c64, float)

/* Powers with the bits of the library's pow, mostly without calling it, by Ziv's rounding test. The power is computed
 * with twice the digits, as high + low. pow computes one within a small error and rounds it: if the true one is further
 * than that error from the middle between two numbers, where rounding changes its mind, then pow's result is high.
 *
 * Before it rounds, glibc's pow (2.28 and later, sysdeps/ieee754/dbl-64/e_pow.c) is off by less than 10.7 * 2^-62 of
 * the power where that is between 2^-256 and 2^256. The last step is scale + scale * tmp with |tmp| < 0.0028 < 2^-8:
 * tmp is the result of five sums, each rounded by at most 2^-62, and the product adds 1.4 * 2^-62 where it is not
 * fused; the polynomial is good to 0.1 * 2^-62; and the logarithm is to 1.5 * 2^-68 of itself, which the power's
 * natural logarithm (177.5 at most) multiplies to 4.2 * 2^-62. Of powers between 2^-32 and 2^32 that logarithm is 22.2
 * at most, and 7.1 * 2^-62 are enough: a third fewer are left to pow. powf is off by less than 0.002 units in the last
 * place for these exponents, found by trying all floats. Elsewhere pow is called. */
#if defined(__GLIBC__) && defined(__FP_FAST_FMA)
#if __GLIBC_PREREQ(2, 28)
#define LW_ROUNDING_TEST 1
#endif
#endif

#ifdef LW_ROUNDING_TEST
/* Whether all that pow may have before it rounds, where the power is high + low, rounds to high: what is taken off high
 * then leaves it as it is. (Upwards the next number is as far away or, at a power of two, further.) */
LW_INLINE bool lw_rounds_to(double high, double low) {
    const double size = fabs(high), error = (size >= 0x1p-32) & (size < 0x1p32) ? 7.1 * 0x1p-62 : 10.7 * 0x1p-62;
    const double off = fma(error, size, fabs(low));
    return (size >= 0x1p-256) & (size < 0x1p256) & (size - off == size);
}
/* The same for floats, of a power that is a double: it is not near the middle of the 2^29 doubles to a float. */
LW_INLINE bool lw_rounds_to_float(double power) {
    const uint64_t middle = UINT64_C(1) << 28, margin = UINT64_C(3) << 20; /* 0.0059 units */
    uint64_t bits;
    memcpy(&bits, &power, sizeof bits);
    bits &= INT64_MAX;
    const bool inside = bits - (UINT64_C(898) << 52) < UINT64_C(250) << 52;
    return inside & ((bits & (2 * middle - 1)) - (middle - margin) > 2 * margin);
}
/* Each power rounded, and whether that is pow's result. */
LW_INLINE double lw_rounded_square_f64(double x, bool *certain) {
    const double high = x * x;
    *certain = lw_rounds_to(high, fma(x, x, -high)) | (x == 0);
    return high;
}
LW_INLINE double lw_rounded_cube_f64(double x, bool *certain) {
    const double square = x * x, rest = fma(x, x, -square), product = square * x;
    const double beyond = fma(square, x, -product) + rest * x, high = product + beyond;
    *certain = lw_rounds_to(high, beyond - (high - product)) | (x == 0);
    return x == 0 ? product : high; /* with its sign */
}
LW_INLINE double lw_rounded_fourth_f64(double x, bool *certain) {
    const double square = x * x, rest = fma(x, x, -square), product = square * square;
    const double beyond = fma(square, square, -product) + 2 * square * rest, high = product + beyond;
    *certain = lw_rounds_to(high, beyond - (high - product)) | (x == 0);
    return high;
}
/* The remainder of a root is twice the root times what is missing, that of a quotient the divisor times what is. */
LW_INLINE double lw_rounded_root_f64(double x, bool *certain) {
    const double high = sqrt(x);
    *certain = lw_rounds_to(high, fma(-high, high, x) * (0.5 / high));
    return high;
}
LW_INLINE double lw_rounded_inverse_f64(double x, bool *certain) {
    const double high = 1 / x;
    *certain = lw_rounds_to(high, fma(-high, x, 1) * high);
    return high;
}
#define LW_ROUNDED_FLOAT(name, exponent, power)                                                                        \
    LW_INLINE float lw_rounded_##name##_f32(float single, bool *certain) {                                             \
        const double x = single, found = power;                                                                        \
        *certain = lw_rounds_to_float(found) | ((x == 0) & (exponent > 1));                                            \
        return (float)found;                                                                                           \
    }
LW_ROUNDED_FLOAT(square, 2, x *x)
LW_ROUNDED_FLOAT(cube, 3, x * x * x)
LW_ROUNDED_FLOAT(fourth, 4, (x * x) * (x * x))
LW_ROUNDED_FLOAT(root, 0.5F, sqrt(x))
LW_ROUNDED_FLOAT(inverse, -1, 1 / x)
#endif
/* pow itself: glibc's of numbers without their sign. It branches on that, which is mispredicted where data have both.
 * What it gives for -x is what it gives for x, or minus that. */
#define LW_CALLED_POWERS(suffix, type, POW, ABS, COPYSIGN)                                                             \
    LW_INLINE type lw_called_square_##suffix(type x) { return POW(ABS(x), 2); }                                        \
    LW_INLINE type lw_called_cube_##suffix(type x) { return COPYSIGN(POW(ABS(x), 3), x); }                             \
    LW_INLINE type lw_called_fourth_##suffix(type x) { return POW(ABS(x), 4); }                                        \
    LW_INLINE type lw_called_root_##suffix(type x) { return POW(x, 0.5F); }                                            \
    LW_INLINE type lw_called_inverse_##suffix(type x) { return COPYSIGN(POW(ABS(x), -1), x); }
#ifdef LW_ROUNDING_TEST
LW_CALLED_POWERS(f64, double, lw_pow, fabs, copysign)
LW_CALLED_POWERS(f32, float, lw_powf, fabsf, copysignf)
/* lw_try_*: notes where the result may not be pow's. */
#define LW_POWER(name, suffix, type, integer)                                                                          \
    LW_INLINE type lw_##name##_##suffix(type x) {                                                                      \
        bool certain;                                                                                                  \
        const type rounded = lw_rounded_##name##_##suffix(x, &certain);                                                \
        return __builtin_expect(certain, 1) ? rounded : lw_called_##name##_##suffix(x);                                \
    }                                                                                                                  \
    LW_INLINE type lw_try_##name##_##suffix(type x, integer *uncertain) {                                              \
        bool certain;                                                                                                  \
        const type rounded = lw_rounded_##name##_##suffix(x, &certain);                                                \
        *uncertain |= certain ? 0 : -1;                                                                                \
        return rounded;                                                                                                \
    }
#else
#define LW_AS_IT_IS(x, ...) x
LW_CALLED_POWERS(f64, double, lw_pow, LW_AS_IT_IS, LW_AS_IT_IS)
LW_CALLED_POWERS(f32, float, lw_powf, LW_AS_IT_IS, LW_AS_IT_IS)
#define LW_POWER(name, suffix, type, integer)                                                                          \
    LW_INLINE type lw_##name##_##suffix(type x) { return lw_called_##name##_##suffix(x); }                             \
    LW_INLINE type lw_try_##name##_##suffix(type x, integer *uncertain) {                                              \
        *uncertain = -1;                                                                                               \
        return x;                                                                                                      \
    }
#endif
#define LW_POWERS(name)                                                                                                \
    LW_POWER(name, f64, double, int64_t)                                                                               \
    LW_POWER(name, f32, float, int32_t)
LW_POWERS(square)
LW_POWERS(cube)
LW_POWERS(fourth)
LW_POWERS(root)
LW_POWERS(inverse)

/* The first that goes wrong counts. Where nothing else can, it does not matter which iteration is first, and compilers
 * make a reduction of it, in vectors. */
LW_INLINE void lw_note(bool bad, int64_t id, int64_t *trap) {
#ifdef LW_ONE_TRAP
    *trap |= bad ? id : 0;
#else
    if (__builtin_expect(bad, 0) && *trap == 0) *trap = id;
#endif
}

/* What was computed before the loops; its own trap says whether the plain loop raises where it comes to it. */
#define LW_NOTING(suffix, type)                                                                                        \
    LW_INLINE type lw_noting_##suffix(type computed, int64_t own_trap, int64_t *trap) {                                \
        lw_note(own_trap != 0, own_trap, trap);                                                                        \
        return computed;                                                                                               \
    }
LW_NOTING(f64, double)
LW_NOTING(f32, float)
LW_NOTING(i64, int64_t)
LW_NOTING(i32, int32_t)
LW_NOTING(i16, int16_t)
LW_NOTING(i8, int8_t)
LW_NOTING(u8, uint8_t)
LW_NOTING(u16, uint16_t)
LW_NOTING(u32, uint32_t)
LW_NOTING(b, bool)
LW_NOTING(c128, double _Complex)
LW_NOTING(c64, float _Complex)

/* The divisor of a Python division, which must not be zero. */
#define LW_DIVISOR(suffix, type)                                                                                       \
    LW_INLINE type lw_divisor_##suffix(type b, int64_t id, int64_t *trap) {                                            \
        lw_note(b == 0, id, trap);                                                                                     \
        return b;                                                                                                      \
    }
LW_DIVISOR(f64, double)
LW_DIVISOR(i64, int64_t)
LW_DIVISOR(i32, int32_t)
LW_DIVISOR(i16, int16_t)
LW_DIVISOR(i8, int8_t)
LW_DIVISOR(u32, uint32_t)
LW_DIVISOR(u16, uint16_t)
LW_DIVISOR(u8, uint8_t)
LW_DIVISOR(c128, double _Complex)

/* A shift of Python's integers, which takes no negative count. */
LW_INLINE int64_t lw_shifted(int64_t result, int64_t count, int64_t id, int64_t *trap) {
    lw_note(count < 0, id, trap);
    return result;
}

/* The result of a function of Python's math module, which raises where C returns a NaN or an infinity. */
LW_INLINE double lw_checked_1(double result, double x, int64_t id, int64_t *trap) {
    lw_note((isnan(result) && !isnan(x)) || (isinf(result) && isfinite(x)), id, trap);
    return result;
}
LW_INLINE double lw_checked_2(double result, double x, double y, int64_t id, int64_t *trap) {
    lw_note((isnan(result) && !isnan(x) && !isnan(y)) || (isinf(result) && isfinite(x) && isfinite(y)), id, trap);
    return result;
}

/* Python's own complex numbers: a quotient, by Smith's algorithm. */
LW_INLINE double _Complex lw_python_quotient_c128(double _Complex x, double _Complex y) {
    const double a = __real__ x, b = __imag__ x, c = __real__ y, d = __imag__ y;
    if (fabs(c) >= fabs(d)) {
        const double ratio = d / c, divisor = c + d * ratio;
        return lw_c128((a + b * ratio) / divisor, (b - a * ratio) / divisor);
    }
    if (fabs(d) >= fabs(c)) {
        const double ratio = c / d, divisor = c * ratio + d;
        return lw_c128((a * ratio + b) / divisor, (b * ratio - a) / divisor);
    }
    return lw_c128(NAN, NAN);
}

/* A power with a constant exponent, by repeated squaring; it must be finite. */
LW_INLINE double _Complex lw_python_power_c128(double _Complex z, int64_t exponent, int64_t id, int64_t *trap) {
    double _Complex power = lw_c128(1, 0);
    for (int64_t rest = exponent < 0 ? -exponent : exponent; rest != 0; rest >>= 1) {
        if (rest & 1) power = lw_product_c128(power, z);
        z = lw_product_c128(z, z);
    }
    if (exponent < 0) {
        lw_note(power == 0, id, trap);
        power = lw_python_quotient_c128(lw_c128(1, 0), power);
    }
    lw_note(lw_isinf_c128(power), id, trap);
    return power;
}

/* The modulus, which must be finite where its parts are. */
LW_INLINE double lw_python_modulus_c128(double _Complex z, int64_t id, int64_t *trap) {
    return lw_checked_2(lw_modulus_c128(z), __real__ z, __imag__ z, id, trap);
}

/* A float as an integer. With -fno-trapping-math gcc takes what becomes a float again for truncated alone, which keeps
 * the sign of a zero: where integers become floats, that sign is taken off before. */
#ifdef LW_FLOATS_OF_INTEGERS
#define LW_WITHOUT_FRACTION(x) (trunc(x) + 0.0)
#else
#define LW_WITHOUT_FRACTION(x) (x)
#endif

/* The same of one that must fit. The upper limit is exclusive. Where one instruction converts, and what does not fit 64
 * bits becomes the least integer, one comparison is enough. */
LW_INLINE int64_t lw_to_integer(double x, double low, double high, int64_t id, int64_t *trap) {
#if defined LW_ONE_TRAP
    const bool fits = ((x > low - 1) & (x < high)) | (x == low);
    lw_note(!fits, id, trap);
    return (int64_t)LW_WITHOUT_FRACTION(fits ? x : 0);
#else
#ifdef __SSE2__
    if (low >= -0x1p62 && high <= 0x1p62) {
        const int64_t integer = _mm_cvttsd_si64(_mm_set_sd(x));
        const bool fits = (uint64_t)(integer - (int64_t)low) < (uint64_t)((int64_t)high - (int64_t)low);
        if (__builtin_expect(fits, 1)) return integer;
        lw_note(true, id, trap);
        return 0;
    }
#endif
    if (__builtin_expect(!((x > low - 1) & (x < high)), 0)) { /* low - 1 may be rounded to low */
        lw_note(x != low, id, trap);
        return x == low ? (int64_t)low : 0;
    }
    return (int64_t)LW_WITHOUT_FRACTION(x);
#endif
}

/* An integer that must lie between low and high. */
LW_INLINE int64_t lw_fitting(int64_t x, int64_t low, int64_t high, int64_t id, int64_t *trap) {
    lw_note((x < low) | (x > high), id, trap);
    return x;
}

/* The same of one that is kept as a double, as others are that are no integers; of these some are not finite. */
LW_INLINE double lw_fitting_f64(double x, double low, double high, int64_t id, int64_t *trap) {
    lw_note(isfinite(x) && (x < low || x > high), id, trap);
    return x;
}

/* Integers of Python's that have no more than 64 bits. */
#define LW_EXACT(name, operation)                                                                                      \
    LW_INLINE int64_t lw_exact_##name(int64_t a, int64_t b, int64_t id, int64_t *trap) {                               \
        int64_t result;                                                                                                \
        lw_note(__builtin_##operation##_overflow(a, b, &result), id, trap);                                            \
        return result;                                                                                                 \
    }
LW_EXACT(sum, add)
LW_EXACT(difference, sub)
LW_EXACT(product, mul)

/* The step of a range, which is not zero. */
LW_INLINE int64_t lw_not_zero(int64_t step, int64_t id, int64_t *trap) {
    lw_note(step == 0, id, trap);
    return step;
}

/* What follows in a range; its end where that is further than integers go. */
LW_INLINE int64_t lw_next(int64_t x, int64_t step, int64_t end) {
    int64_t next;
    return __builtin_add_overflow(x, step, &next) ? end : next;
}

/* Whether a scalar has a value, which it must. */
LW_INLINE bool lw_assigned(bool is_set, int64_t id, int64_t *trap) {
    lw_note(!is_set, id, trap);
    return is_set;
}

/* A power of Python integers: an integer of at most the limit, with an exponent that is not negative. */
LW_INLINE int64_t lw_integer_power(int64_t base, int64_t exponent, int64_t limit, int64_t id, int64_t *trap) {
    lw_note(exponent < 0, id, trap);
    if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
    int64_t power = 1;
    for (; exponent > 0; --exponent) {
        int64_t next;
        const bool beyond = __builtin_mul_overflow(power, base, &next) || next > limit || next < -limit;
        lw_note(beyond, id, trap);
        if (beyond) return power;
        power = next;
    }
    return power;
}

/* An index into an axis: negative ones count from the end, as in Python. */
LW_INLINE int64_t lw_lookup(int64_t index, int64_t extent, int64_t id, int64_t *trap) {
    if (__builtin_expect((uint64_t)index < (uint64_t)extent, 1)) return index;
    const bool inside = index < 0 && index >= -extent;
    lw_note(!inside, id, trap);
    return inside ? index + extent : 0;
}

/* Whether an index is inside an axis, from its start. */
LW_INLINE bool lw_inside(int64_t index, int64_t extent) { return (uint64_t)index < (uint64_t)extent; }

/* Notes whether an index is outside an axis, or counts from its end. */
LW_INLINE void lw_inspect(int64_t index, int64_t extent, int64_t *trap, int64_t *from_end) {
    *trap |= (index < -extent) | (index >= extent);
    *from_end |= index < 0;
}

/* An exact sum of doubles: a fixed-point number of 32-bit digits, wide enough for every double, in 64-bit words whose
 * upper halves hold carries not yet passed on. Word 0 counts finite terms since the last carry pass, and is 0 where
 * there was none at all; words 1 to 3 count the NaNs, the +infinities and the -infinities. Adding is exact, so no order
 * of adding can be told from the result. */
enum { LW_EXACT_DIGITS = 68, LW_EXACT_HEADER = 4, LW_EXACT_WORDS = LW_EXACT_HEADER + LW_EXACT_DIGITS };

static __attribute__((unused)) void lw_exact_carry(int64_t *sum) {
    int64_t *digit = sum + LW_EXACT_HEADER;
    for (int k = 0; k + 1 < LW_EXACT_DIGITS; ++k) {
        const int64_t carry = digit[k] >> 32;
        digit[k] -= carry * INT64_C(4294967296);
        digit[k + 1] += carry;
    }
    sum[0] = 1; /* something has been added */
}

LW_INLINE void lw_exact_add(int64_t *sum, double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int exponent = (int)(bits >> 52) & 0x7ff;
    uint64_t mantissa = bits & UINT64_C(0xfffffffffffff);
    if (__builtin_expect(exponent == 0x7ff, 0)) {
        sum[mantissa ? 1 : 2 + (int)(bits >> 63)] += 1;
        return;
    }
    if (exponent) mantissa |= UINT64_C(1) << 52;
    /* x = mantissa * 2^(position - 1074) */
    const int position = exponent ? exponent - 1 : 0;
    const unsigned __int128 shifted = (unsigned __int128)mantissa << (position & 31);
    const int64_t sign = (bits >> 63) ? -1 : 1;
    int64_t *digit = sum + LW_EXACT_HEADER + (position >> 5);
    digit[0] += sign * (int64_t)(uint32_t)shifted;
    digit[1] += sign * (int64_t)(uint32_t)(shifted >> 32);
    digit[2] += sign * (int64_t)(uint32_t)(shifted >> 64);
    if (__builtin_expect(++sum[0] == (INT64_C(1) << 30), 0)) lw_exact_carry(sum);
}

/* Room for so many elements of a row, at the beginning of a cache line. */
LW_INLINE void *lw_new_row(int64_t elements, int64_t size) {
    void *const made = aligned_alloc(64, (size_t)(elements * size + 63) / 64 * 64);
    if (!made) abort();
    return made;
}

/* Where a step is in a ring of so many, given where it would be at most once around it. */
LW_INLINE int64_t lw_around(int64_t step, int64_t ring) {
    return step < 0 ? step + ring : step >= ring ? step - ring : step;
}

/* Eight elements of eight bytes, which lie so many elements behind one. */
#if !defined(__clang__) && defined(__AVX512F__)
typedef double lw_eight_doubles __attribute__((vector_size(64)));
typedef long long lw_eight_integers __attribute__((vector_size(64)));
#define LW_GATHER_f64(one, behind)                                                                                     \
    ((lw_eight_doubles)__builtin_ia32_gatherdiv8df((lw_eight_doubles){0}, one, (lw_eight_integers)(behind), -1, 8))
#define LW_GATHER_i64(one, behind)                                                                                     \
    ((lw_eight_integers)__builtin_ia32_gatherdiv8di((lw_eight_integers){0}, one, (lw_eight_integers)(behind), -1, 8))
#else
#define LW_GATHER_f64(one, behind) LW_GATHERED(one, behind)
#define LW_GATHER_i64(one, behind) LW_GATHERED(one, behind)
#define LW_GATHERED(one, behind)                                                                                       \
    {(one)[(behind)[0]], (one)[(behind)[1]], (one)[(behind)[2]], (one)[(behind)[3]],                                   \
     (one)[(behind)[4]], (one)[(behind)[5]], (one)[(behind)[6]], (one)[(behind)[7]]}
#endif

/* Elements of two vectors, by their places in both; order: the type of a vector of such places. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define LW_SHUFFLE(order, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#endif
#endif
#ifndef LW_SHUFFLE
#define LW_SHUFFLE(order, a, b, ...) __builtin_shuffle(a, b, (order){__VA_ARGS__})
#endif

/* Many terms at once: an error-free transformation by extraction (Rump, Ogita and Oishi, SIAM J. Sci. Comput. 31, 2008,
 * algorithm 3.2). Where no term is larger than 2^e, adding 2^(e + 10) and taking it off again leaves the upper part of
 * each, and so many upper parts have a sum without rounding; what is left of each term is exact, and 43 bits further
 * down. Two parts are taken from each term in a round. What is left of terms after four rounds, or of small ones
 * before, and terms that are not finite are added one by one. */
#ifdef __AVX512F__
enum { LW_VECTOR = 8 };
#elif defined(__AVX2__)
enum { LW_VECTOR = 4 };
#else
enum { LW_VECTOR = 2 };
#endif
/* Two vectors are worked on side by side, so that neither waits for the other's sums. */
enum { LW_TERMS = 512, LW_FEW_TERMS = 64, LW_PAIR = 2 * LW_VECTOR, LW_ROUNDS = 4, LW_PART = 43 };
typedef double lw_terms __attribute__((vector_size(LW_VECTOR * 8)));
typedef int64_t lw_bits __attribute__((vector_size(LW_VECTOR * 8)));

/* 2^(exponent - 1023) */
LW_INLINE double lw_power_of_two(int64_t exponent) {
    const int64_t pattern = exponent << 52;
    double power;
    memcpy(&power, &pattern, sizeof power);
    return power;
}

LW_INLINE void lw_exact_add_vector(int64_t *sum, lw_terms terms) {
    double together = 0;
    for (int k = 0; k < LW_VECTOR; ++k) together += terms[k];
    lw_exact_add(sum, together);
}

/* The larger of each pattern so far and that of a vector of terms, without signs. */
LW_INLINE void lw_enlarge(lw_bits *largest, const double *terms) {
    lw_bits bits;
    memcpy(&bits, terms, sizeof bits);
    bits &= INT64_MAX;
    const lw_bits more = bits > *largest;
    *largest = (bits & more) | (*largest & ~more);
}

/* Adds two parts of a vector of terms to sums of such parts; what is left of them stays, and is noted. */
LW_INLINE void lw_take_parts(double *terms, double scale, double further, lw_terms *upper, lw_terms *lower,
                             lw_bits *left) {
    lw_terms rest;
    lw_bits bits;
    memcpy(&rest, terms, sizeof rest);
    const lw_terms first = (scale + rest) - scale;
    *upper += first;
    rest -= first;
    const lw_terms second = (further + rest) - further;
    *lower += second;
    rest -= second;
    memcpy(&bits, &rest, sizeof bits);
    *left |= bits;
    memcpy(terms, &rest, sizeof rest);
}

/* terms: as many as count says, at most LW_TERMS, with room for LW_PAIR more; they are overwritten. */
static __attribute__((unused, noinline)) void lw_exact_add_all(int64_t *sum, double *terms, int64_t count) {
    if (count == 0) return;
    memset(terms + count, 0, LW_PAIR * sizeof *terms);
    lw_bits largest[2] = {{0}, {0}};
    for (int64_t k = 0; k < count; k += LW_PAIR) {
        for (int side = 0; side < 2; ++side) lw_enlarge(&largest[side], terms + k + side * LW_VECTOR);
    }
    int64_t most = 0;
    for (int k = 0; k < LW_PAIR; ++k) most = lw_max_i64(most, largest[k / LW_VECTOR][k % LW_VECTOR]);
    int64_t exponent = (most >> 52) + 11; /* of what is added, which is larger than all the terms together */
    if (exponent < 0x7fe) {
        for (int round = 0; round < LW_ROUNDS && exponent > 2 * 53 + LW_PART; ++round, exponent -= 2 * LW_PART) {
            const double scale = lw_power_of_two(exponent), further = lw_power_of_two(exponent - LW_PART);
            lw_terms upper[2] = {{0}, {0}}, lower[2] = {{0}, {0}};
            lw_bits left[2] = {{0}, {0}};
            for (int64_t k = 0; k < count; k += LW_PAIR) {
                for (int side = 0; side < 2; ++side) {
                    double *const vector = terms + k + side * LW_VECTOR;
                    lw_take_parts(vector, scale, further, &upper[side], &lower[side], &left[side]);
                }
            }
            lw_exact_add_vector(sum, upper[0] + upper[1]);
            lw_exact_add_vector(sum, lower[0] + lower[1]);
            left[0] |= left[1];
            int64_t any = 0;
            for (int k = 0; k < LW_VECTOR; ++k) any |= left[0][k];
            if ((any & INT64_MAX) == 0) return;
        }
    }
    for (int64_t k = 0; k < count; ++k)
        if (terms[k] != 0) lw_exact_add(sum, terms[k]);
    if (sum[0] == 0) sum[0] = 1; /* zeros have been added */
}

/* The same of several sums, `apart` words from one to the next: a step of terms has one of each, and `width` of them
 * lie side by side. Of what lies beside those of the sums nothing is added. */
static __attribute__((unused, noinline)) void lw_exact_add_lanes(int64_t *sums, int64_t apart, double *terms,
                                                                 int64_t steps, int64_t lanes, int64_t width) {
    for (int64_t first = 0; first < lanes; first += LW_VECTOR) {
        const int64_t here = lw_min_i64(lanes - first, LW_VECTOR);
        double *const own = terms + first;
        bool are_left = true;
        lw_bits largest = {0};
        for (int64_t k = 0; k < steps && width % LW_VECTOR == 0; ++k) lw_enlarge(&largest, own + k * width);
        int64_t most = 0;
        for (int k = 0; k < LW_VECTOR; ++k) most = lw_max_i64(most, largest[k]);
        int64_t exponent = width % LW_VECTOR == 0 ? (most >> 52) + 11 : 0x7fe;
        for (int round = 0; are_left && exponent < 0x7fe && round < LW_ROUNDS && exponent > 2 * 53 + LW_PART;
             ++round, exponent -= 2 * LW_PART) {
            const double scale = lw_power_of_two(exponent), further = lw_power_of_two(exponent - LW_PART);
            lw_terms upper = {0}, lower = {0};
            lw_bits left = {0};
            for (int64_t k = 0; k < steps; ++k) lw_take_parts(own + k * width, scale, further, &upper, &lower, &left);
            int64_t any = 0;
            for (int64_t lane = 0; lane < here; ++lane) {
                lw_exact_add(sums + (first + lane) * apart, upper[lane]);
                lw_exact_add(sums + (first + lane) * apart, lower[lane]);
                any |= left[lane];
            }
            are_left = (any & INT64_MAX) != 0;
        }
        for (int64_t lane = 0; lane < here; ++lane) {
            int64_t *const sum = sums + (first + lane) * apart;
            for (int64_t k = 0; are_left && k < steps; ++k)
                if (own[k * width + lane] != 0) lw_exact_add(sum, own[k * width + lane]);
            if (sum[0] == 0) sum[0] = 1; /* zeros have been added */
        }
    }
}

/* Keeps a term until there are so many that they are worth adding. */
LW_INLINE void lw_exact_put(int64_t *sum, double *terms, int64_t *count, double x) {
    terms[(*count)++] = x;
    if (__builtin_expect(*count == LW_TERMS, 0)) {
        lw_exact_add_all(sum, terms, LW_TERMS);
        *count = 0;
    }
}

/* Of so many terms that are kept as many as are left; it adds them where `more` might not have room. */
LW_INLINE int64_t lw_exact_keep(int64_t *sum, double *terms, int64_t count, int64_t more) {
    if (count + more <= LW_TERMS) return count;
    lw_exact_add_all(sum, terms, count);
    return 0;
}

/* Whether an exact sum has any terms, those aside that are kept as many as count says. */
LW_INLINE bool lw_exact_has_terms(const int64_t *sum, int64_t count) {
    return count != 0 || (sum[0] | sum[1] | sum[2] | sum[3]) != 0;
}

/* A sum of few terms in twice the precision (Ogita, Rump and Oishi, SIAM J. Sci. Comput. 26, 2005, algorithm 4.4),
 * rounded, and whether the exact sum is rounded to the same: it is where all that may be missing changes nothing. Of
 * sums that are zero, or not finite, that is not known. */
LW_INLINE double lw_sum_of_few(const double *terms, int64_t count, double first, bool *certain) {
    double sum = first, rest = 0, errors = 0;
    for (int64_t k = 0; k < count; ++k) {
        const double next = sum + terms[k], taken = next - sum;
        const double error = (sum - (next - taken)) + (terms[k] - taken);
        rest += error;
        errors += fabs(error);
        sum = next;
    }
    const double rounded = sum + rest, taken = rounded - sum;
    const double beyond = (sum - (rounded - taken)) + (rest - taken), missing = errors * (double)count * 0x1p-51;
    *certain = (rounded + (beyond + missing) == rounded) & (rounded + (beyond - missing) == rounded) & (rounded != 0);
    return rounded;
}

/* The exact sum of a value and all terms, also of those that are kept, rounded once; no terms are left. */
static __attribute__((unused, noinline)) double lw_exact_rounded(int64_t *sum, double *terms, int64_t *count,
                                                                 double first) {
    if (!lw_exact_has_terms(sum, *count)) return first;
    if (*count <= LW_FEW_TERMS && !lw_exact_has_terms(sum, 0)) {
        bool certain;
        const double rounded = lw_sum_of_few(terms, *count, first, &certain);
        if (certain) {
            *count = 0;
            return rounded;
        }
    }
    lw_exact_add_all(sum, terms, *count);
    *count = 0;
    lw_exact_add(sum, first);
    int64_t *digit = sum + LW_EXACT_HEADER;
    double rounded = 0;
    lw_exact_carry(sum);
    const bool is_negative = digit[LW_EXACT_DIGITS - 1] < 0;
    if (is_negative) {
        for (int k = 0; k < LW_EXACT_DIGITS; ++k) digit[k] = -digit[k];
        lw_exact_carry(sum);
    }
    int top = LW_EXACT_DIGITS - 1;
    while (top > 0 && digit[top] == 0) --top;
    /* The three digits from the first one that is not 0 are rounded to 53 bits; below, all that counts is whether there
     * is anything. */
    const int low = top > 2 ? top - 2 : 0;
    unsigned __int128 upper = 0;
    for (int k = top; k >= low; --k) upper = upper << 32 | (uint64_t)digit[k];
    bool more = false;
    for (int k = 0; k < low; ++k) more |= digit[k] != 0;
    int bits = 0;
    while (bits < 96 && upper >> bits) ++bits;
    const int dropped = bits > 53 ? bits - 53 : 0;
    uint64_t mantissa = (uint64_t)(upper >> dropped);
    if (dropped) {
        const unsigned __int128 left = upper - ((unsigned __int128)mantissa << dropped);
        const unsigned __int128 half = (unsigned __int128)1 << (dropped - 1);
        if (left > half || (left == half && (more || (mantissa & 1)))) ++mantissa;
    }
    rounded = ldexp((double)mantissa, dropped + 32 * low - 1074);
    if (is_negative) rounded = -rounded;
    if (sum[1] || (sum[2] && sum[3]))
        rounded = (double)NAN;
    else if (sum[2] || sum[3])
        rounded = sum[2] ? (double)INFINITY : -(double)INFINITY;
    memset(sum, 0, LW_EXACT_WORDS * sizeof *sum);
    return rounded;
}

/* A box of elements that lie one after the other in a buffer, as an array. */
LW_INLINE lw_array lw_dense(const void *buffer, int64_t itemsize, int axes, const lw_box *box) {
    lw_array dense;
    int64_t stride = 1, first = 0;
    for (int k = axes - 1; k >= 0; --k) {
        dense.stride[k] = stride;
        first += box->lo[k] * stride;
        stride *= box->hi[k] - box->lo[k];
    }
    dense.base = (char *)(intptr_t)buffer - first * itemsize;
    return dense;
}

#endif
