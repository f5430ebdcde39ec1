"""What ``correctly_rounded.h`` computes has the bits of the core's divider and roots.

LAPWING_SEED sets which divisors are tried; the long tests try more, and all floats.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from randomness import first_seed

from lapwing.codegen import tile
from lapwing.codegen.compilation.toolchain import find_c_compiler
from lapwing.runtime.binding import native

PRELUDE = """
#include <stdio.h>
#include <stdlib.h>
#include "correctly_rounded.h"
static uint64_t state;
static inline uint64_t number(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}
static inline float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline double double_of(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
"""

# By random divisors all floats of one binade are divided: one quotient is wrong where they are said not to fit, and none where
# they do. Quotients of doubles of all sizes by such as fit are right, or in doubt.
DIVISORS = """
int main(void) {
    state = SEED;
    for (int k = 0; k < COUNT; ++k) {
        const uint32_t size = (k % 2 ? 127u : 90u) << 23, sign = (uint32_t)(k % 3 == 0) << 31;
        const float b = float_of((uint32_t)(number() % (1u << 23)) | size | sign);
        const lw_reciprocal_f32 by = lw_reciprocal_of_f32(b);
        int64_t wrong = 0;
        uint32_t doubt = 0;
        for (uint32_t digits = 0; digits < 1u << 23; ++digits) {
            const float a = float_of(digits | 130u << 23);
            wrong += lw_quotient_f32(a, by, &doubt) != a / b;
        }
        const bool as_said = (wrong == 0) == by.fits && !lw_in_doubt_f32(&doubt, 1);
        if (LW_FUSES_f32 && !as_said) return printf("%a: %ld wrong\\n", (double)b, (long)wrong), 1;
    }
    for (int k = 0; k < 1000 * COUNT; ++k) {
        const double b = double_of(number());
        const lw_reciprocal_f64 by = lw_reciprocal_of_f64(b);
        for (int j = 0; by.fits && j < 50; ++j) {
            const double a = double_of(j % 5 ? number() : (number() & UINT64_C(0x801fffffffffffff)));
            uint64_t doubt = 0;
            const double found = lw_quotient_f64(a, by, &doubt), right = a / b;
            const bool same = memcmp(&found, &right, sizeof right) == 0 || (isnan(found) && isnan(right));
            if (!same && !lw_in_doubt_f64(&doubt, 1)) return printf("%a / %a\\n", a, b), 1;
        }
    }
    return 0;
}
"""

# Where g and h are no further off than Newton's step leaves them the last step rounds correctly, but for these six.
HARD_ROOTS = """
static float neighbour(float x, int steps) {
    for (; steps > 0; --steps) x = nextafterf(x, 9);
    for (; steps < 0; ++steps) x = nextafterf(x, 0);
    return x;
}
int main(void) {
    const double off = 0.81 * 0x1p-23;
    for (uint32_t bits = 127u << 23; bits < 129u << 23; ++bits) {
        const float x = float_of(bits), right = sqrtf(x);
        const double root = sqrt((double)x);
        bool hard = false;
        for (int steps = -3; steps <= 3; ++steps) {
            const float g = neighbour(right, steps);
            if (fabs(g - root) > off * root) continue;
            const float rest = __builtin_fmaf(-g, g, x);
            for (int side = -1; side <= 1; side += 2) /* what is added grows with h */
                hard |= __builtin_fmaf(rest, (float)(0.5 / root * (1 + side * off)), g) != right;
        }
        if (hard) printf("%a\\n", x);
    }
    return 0;
}
"""

# All floats between FIRST and LAST, as integers, of both signs.
ROOTS = """
int main(void) {
    const bool fits = lw_roots_fit();
    for (uint64_t first = FIRST; first < LAST; first += 16) {
        lw_floats_16 x, right;
        for (int lane = 0; lane < 16; ++lane) x[lane] = float_of((uint32_t)(first + (uint64_t)lane));
        for (int lane = 0; lane < 16; ++lane) right[lane] = sqrtf(x[lane]);
        const lw_floats_16 found = lw_roots_16(x, fits);
        if (memcmp(&found, &right, sizeof right)) return printf("from %llx on\\n", (unsigned long long)first), 1;
    }
#ifdef __AVX512F__
    return puts(fits ? "" : "this core's estimates do not fit"), 0;
#endif
}
"""


def said_by(program: str, directory: Path) -> str:
    codegen = Path(tile.__file__).parent
    headers = [f"-I{codegen}", f"-I{codegen.parent / 'runtime' / 'cpp'}"]
    (directory / "tried.c").write_text(PRELUDE + program, encoding="ascii")
    compiler = find_c_compiler()
    flags = compiler.spelled((*native.TILE_FLAGS, *native.WIDE_FLAGS))
    subprocess.run([*compiler.command, directory / "tried.c", "-o", directory / "tried", *headers, *flags], check=True)
    done = subprocess.run([directory / "tried"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


def divisors(seed: int, count: int) -> str:
    return DIVISORS.replace("COUNT", str(count)).replace("SEED", f"UINT64_C({2 * seed + 1})")


def test_which_divisors_fit(tmp_path: Path) -> None:
    said_by(divisors(first_seed(), 20), tmp_path)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_which_divisors_fit_at_length(tmp_path: Path) -> None:
    said_by(divisors(first_seed(), 20_000), tmp_path)


def test_six_roots_hang_on_the_estimate(tmp_path: Path) -> None:
    found = [float.fromhex(text) for text in said_by(HARD_ROOTS, tmp_path).split()]
    header = (Path(tile.__file__).parent / "correctly_rounded.h").read_text(encoding="utf-8")
    tried = header[header.index("hard[16] = {") :].partition("{")[2].partition("}")[0].replace("F", "").split(",")
    assert found == [float.fromhex(text) for text in tried if float.fromhex(text) != 1]


@pytest.mark.parametrize("first", [0, 0x0D7FF000, 0x3F800000, 0x7F7FF000, 0xFF7FF000, 0x80000000])
def test_bits_of_roots(first: int, tmp_path: Path) -> None:
    """Zeros and the smallest numbers; where roots begin to be found another way; from one on; infinities and what is not a
    number; negative ones."""
    said_by(ROOTS.replace("FIRST", str(first)).replace("LAST", str(first + (1 << 16))), tmp_path)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_bits_of_all_roots(tmp_path: Path) -> None:
    said_by(ROOTS.replace("FIRST", "0").replace("LAST", str(1 << 32)), tmp_path)
