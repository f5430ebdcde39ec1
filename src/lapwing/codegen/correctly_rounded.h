/* Correctly rounded quotients and roots without the core's divider, for generated code with vectors of many lanes.
 *
 * By a divisor b that stays the same a quotient is a / b = a * high + a * low, where high is 1 / b rounded towards zero
 * and low what is left of it, rounded, or a number next to that: one product and one fused multiplication and addition
 * (Brisebarre, Muller and Raina, "Accelerating correctly rounded floating-point division when the divisor is known in
 * advance", IEEE Transactions on Computers 53, 2004; Brisebarre and Muller, "Correctly rounded multiplication by
 * arbitrary precision constants", the same 57, 2008). Before the one rounding it is off by less than 2^(3 - p) units in
 * the last place, with p digits: a * low is less than two units, low off by 3 * 2^-p of itself, and their product
 * rounded. So it rounds to another number only where the middle between two numbers is as near to a / b. With integers
 * A and B of their digits, B odd, the middles are M * 2^-s with odd M, and a / b is N / (2 * B) units away from one
 * where N = A * 2^s - B * M, which is odd. So |N| is less than B * 2^(4 - p), 15 at most, and A is N * 2^-s modulo B:
 * there are a few such dividends for each N and s. They are tried when the divisor becomes known. A divisor for which
 * some of them fail with all three of low, as for one of thirty-six, is divided by, and so is one that is very small or
 * very large.
 *
 * high and low have the same sign, so zeros and infinities have theirs, and what is not a number goes through both
 * operations with its bits. Where a * low is so small that it loses digits the quotient is in doubt: `doubt` is the
 * largest of what the dividends have, and a step in doubt is computed again. */
#ifndef LAPWING_CORRECTLY_ROUNDED_H
#define LAPWING_CORRECTLY_ROUNDED_H

#include "support.h"

/* DIGITS: p. Divisors are from SMALLEST to LARGEST. Of dividends from SURE on no quotient is in doubt: by the largest
 * divisor they are so far above the smallest normal number that a * low is off by 2^-27 units at most where it is less.
 * EXACT times the reciprocal of a power of two is much less than half a unit of it: there low must be anything but
 * zero, which infinities must not be multiplied by. */
#define LW_RECIPROCALS(suffix, type, bits_type, DIGITS, FMA, SMALLEST, LARGEST, SURE, EXACT)                           \
    typedef struct {                                                                                                   \
        type divisor, high, low;                                                                                       \
        bool fits; /* whether all quotients that are not in doubt are correctly rounded */                             \
    } lw_reciprocal_##suffix;                                                                                          \
                                                                                                                       \
    /* The smaller a dividend is the more; none of zeros. */                                                           \
    LW_INLINE bits_type lw_doubt_##suffix(type dividend) {                                                             \
        bits_type bits;                                                                                                \
        memcpy(&bits, &dividend, sizeof bits);                                                                         \
        return (bits_type)(0 - (bits << 1));                                                                           \
    }                                                                                                                  \
                                                                                                                       \
    LW_INLINE type lw_quotient_##suffix(type dividend, lw_reciprocal_##suffix by, bits_type *doubt) {                  \
        const bits_type own = lw_doubt_##suffix(dividend);                                                             \
        *doubt = own > *doubt ? own : *doubt;                                                                          \
        return FMA(dividend, by.high, dividend * by.low);                                                              \
    }                                                                                                                  \
                                                                                                                       \
    LW_INLINE bool lw_in_doubt_##suffix(const bits_type *doubt, int lanes) {                                           \
        bits_type most = 0;                                                                                            \
        for (int lane = 0; lane < lanes; ++lane) most = doubt[lane] > most ? doubt[lane] : most;                       \
        return most > lw_doubt_##suffix(SURE);                                                                         \
    }                                                                                                                  \
                                                                                                                       \
    LW_INLINE bits_type lw_half_##suffix(bits_type x, bits_type odd_modulus) {                                         \
        return (bits_type)((x >> 1) + (x & 1 ? (odd_modulus >> 1) + 1 : 0));                                           \
    }                                                                                                                  \
                                                                                                                       \
    /* Tries the dividends whose quotients are nearest to a middle. odd: B; most: of |N|. */                           \
    static __attribute__((unused, noinline)) bool lw_tried_##suffix(lw_reciprocal_##suffix by, bits_type odd,          \
                                                                    int most) {                                        \
        const bits_type first = (bits_type)1 << (DIGITS - 1), beyond = (bits_type)1 << DIGITS;                         \
        bits_type inverse = 1; /* of 2^s */                                                                            \
        for (int s = 1; s <= DIGITS + 1; ++s) {                                                                        \
            inverse = lw_half_##suffix(inverse, odd);                                                                  \
            if (s < DIGITS - 4) continue; /* A / B is between 2^-1 and 2^5 */                                          \
            bits_type times = 0;                                                                                       \
            for (int n = 1; n <= most; ++n) {                                                                          \
                times += inverse;                                                                                      \
                times -= times >= odd ? odd : 0;                                                                       \
                for (int negative = 0; negative < 2; ++negative) {                                                     \
                    bits_type digits = negative ? odd - times : times;                                                 \
                    digits += digits < first ? (first - digits + odd - 1) / odd * odd : 0;                             \
                    for (; digits < beyond; digits += odd) {                                                           \
                        const type dividend = (type)digits;                                                            \
                        if (FMA(dividend, by.high, dividend * by.low) != dividend / by.divisor) return false;          \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        return true;                                                                                                   \
    }                                                                                                                  \
                                                                                                                       \
    LW_INLINE lw_reciprocal_##suffix lw_reciprocal_of_##suffix(type divisor) {                                         \
        lw_reciprocal_##suffix by = {divisor, 0, 0, false};                                                            \
        const type size = divisor < 0 ? -divisor : divisor;                                                            \
        if (!LW_FUSES_##suffix || !(size >= (SMALLEST) && size <= (LARGEST))) return by;                               \
        by.high = 1 / divisor;                                                                                         \
        if (FMA(-by.high, divisor, 1) < 0) { /* the number next to it, towards zero */                                 \
            bits_type bits;                                                                                            \
            memcpy(&bits, &by.high, sizeof bits);                                                                      \
            --bits;                                                                                                    \
            memcpy(&by.high, &bits, sizeof bits);                                                                      \
        }                                                                                                              \
        const type rest = FMA(-by.high, divisor, 1);                                                                   \
        by.low = rest == 0 ? by.high * (EXACT) : rest / divisor;                                                       \
        bits_type odd;                                                                                                 \
        memcpy(&odd, &size, sizeof odd);                                                                               \
        odd = (odd & (((bits_type)1 << (DIGITS - 1)) - 1)) | (bits_type)1 << (DIGITS - 1);                             \
        odd >>= __builtin_ctzll(odd);                                                                                  \
        const int most = (int)(odd >> (DIGITS - 4)) + 1;                                                               \
        by.fits = odd < (bits_type)1 << (DIGITS - 5);                                                                  \
        for (int k = 0; k < 3 && !by.fits; ++k) {                                                                      \
            bits_type bits;                                                                                            \
            memcpy(&bits, &by.low, sizeof bits);                                                                       \
            bits += k == 0 ? 0 : k == 1 ? 1 : (bits_type)0 - 2;                                                        \
            memcpy(&by.low, &bits, sizeof bits);                                                                       \
            by.fits = lw_tried_##suffix(by, odd, most);                                                                \
        }                                                                                                              \
        return by;                                                                                                     \
    }

#if defined(__FP_FAST_FMA) || defined(__FMA__)
enum { LW_FUSES_f64 = 1 };
#define LW_FMA_f64 __builtin_fma
#else
enum { LW_FUSES_f64 = 0 };
#define LW_FMA_f64(a, b, c) ((a) * (b) + (c)) /* never used */
#endif
#if defined(__FP_FAST_FMAF) || defined(__FMA__)
enum { LW_FUSES_f32 = 1 };
#define LW_FMA_f32 __builtin_fmaf
#else
enum { LW_FUSES_f32 = 0 };
#define LW_FMA_f32(a, b, c) ((a) * (b) + (c)) /* never used */
#endif
LW_RECIPROCALS(f64, double, uint64_t, 53, LW_FMA_f64, 0x1p-900, 0x1p250, 0x1p-700, 0x1p-200)
LW_RECIPROCALS(f32, float, uint32_t, 24, LW_FMA_f32, 0x1p-90F, 0x1p30F, 0x1p-70F, 0x1p-60F)

/* Roots of sixteen floats. From an estimate of 1 / sqrt(x) with an error below 2^-14, which AVX-512 has an instruction
 * for, one step of Newton's method leads to g and h, near sqrt(x) and 1 / (2 * sqrt(x)), and the remainder of g to the
 * root: g + h * (x - g * g) (Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor",
 * IBM Journal of Research and Development 34, 1990). Products and sums are fused but for the first ones; g and h are
 * off by less than 0.8 * 2^-23 of themselves. For all floats of two binades and all g and h that are no further off the
 * last step rounds correctly, but for six (found by trying them: tests/codegen/test_correctly_rounded.py). Which g and
 * h those have hangs on the core's estimates, so they are tried, times every power of four (Cornea, Harrison and Tang,
 * "Scientific Computing on Itanium-based Systems", 2002, for such proofs). Where remainders may lose digits, of
 * negative numbers, and of what is infinite or not a number, the core's own roots are taken; zeros stay what they are.
 */
typedef float lw_floats_16 __attribute__((vector_size(64)));
#ifdef __AVX512F__
#include <immintrin.h>

LW_INLINE __m512 lw_refined_roots_16(__m512 x, __mmask16 nonzero) {
    const __m512 estimate = _mm512_maskz_rsqrt14_ps(nonzero, x), half = _mm512_set1_ps(0.5F);
    const __m512 first = _mm512_mul_ps(x, estimate), first_h = _mm512_mul_ps(half, estimate);
    const __m512 error = _mm512_fnmadd_ps(first, first_h, half);
    const __m512 g = _mm512_fmadd_ps(first, error, first), h = _mm512_fmadd_ps(first_h, error, first_h);
    return _mm512_fmadd_ps(_mm512_fnmadd_ps(g, g, x), h, g);
}

/* fits: whether this core's estimates do. */
LW_INLINE lw_floats_16 lw_roots_16(lw_floats_16 numbers, bool fits) {
    const __m512 x = (__m512)numbers;
    const __m512i bits = _mm512_castps_si512(x), smallest = _mm512_set1_epi32(0x0d800000); /* 2^-100 */
    const __mmask16 nonzero = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(INT32_MAX));
    const __m512i above = _mm512_sub_epi32(bits, smallest), finite = _mm512_set1_epi32(0x7f800000 - 0x0d800000);
    const __mmask16 doubt = _mm512_mask_cmpge_epu32_mask(nonzero, above, finite);
    if (__builtin_expect(!fits || doubt != 0, 0)) return (lw_floats_16)_mm512_sqrt_ps(x);
    return (lw_floats_16)lw_refined_roots_16(x, nonzero);
}

static __attribute__((unused, noinline)) bool lw_roots_fit(void) {
    static const float hard[16] = {0x1.000002p+0F,
                                   0x1.f82294p+0F,
                                   0x1.dd26e4p+1F,
                                   0x1.fffff6p+1F,
                                   0x1.fffffap+1F,
                                   0x1.fffffep+1F,
                                   1,
                                   1,
                                   1,
                                   1,
                                   1,
                                   1,
                                   1,
                                   1,
                                   1,
                                   1};
    for (int exponent = -100; exponent < 126; exponent += 2) {
        const __m512 x = _mm512_scalef_ps(_mm512_loadu_ps(hard), _mm512_set1_ps((float)exponent));
        if (_mm512_cmpneq_ps_mask(lw_refined_roots_16(x, (__mmask16)-1), _mm512_sqrt_ps(x))) return false;
    }
    return true;
}
#else
LW_INLINE lw_floats_16 lw_roots_16(lw_floats_16 numbers, bool fits) {
    (void)fits;
    for (int lane = 0; lane < 16; ++lane) numbers[lane] = sqrtf(numbers[lane]);
    return numbers;
}
LW_INLINE bool lw_roots_fit(void) { return false; }
#endif

#endif
