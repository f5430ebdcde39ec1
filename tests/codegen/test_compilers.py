"""Nests that compilers have translated wrongly, kept so that they never do again."""

from __future__ import annotations

import platform
import subprocess

import numpy as np
import pytest

import lapwing as lw
from lapwing.codegen.compilation.contraction import contracts
from lapwing.codegen.compilation.toolchain import find_c_compiler


@lw.nest
def three_statements(u, v, w):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            w[i, j] = 0.25 * w[i, j] + 0.25 * w[i, j]
            u[i, j] = 0.25 * u[i - 1, j] + 0.25 * u[i - 1, j] + 0.25 * u[i, j - 1] + 0.25 * u[i - 1, j]
            v[i, j] = 0.25 * v[i - 1, j]


def test_statements_are_not_distributed_over_skewed_loops():
    """gcc 12.2 at -O3 ran all lanes and steps of one statement before those of the next."""
    for shape in ((5, 31), (17, 40), (40, 40)):
        expected = [np.random.default_rng(seed).random(shape) for seed in range(3)]
        found = [array.copy() for array in expected]
        three_statements.python(*expected)
        three_statements(*found)
        for a, b in zip(expected, found, strict=True):
            assert a.tobytes() == b.tobytes()


@lw.nest
def rotated(q, c, s):
    for k in range(q.shape[0]):
        x = q[k, 0]
        y = q[k, 1]
        q[k, 0] = c * x - s * y
        q[k, 1] = s * x + c * y


def test_products_are_not_fused_with_sums():
    """gcc 12.2 takes vfmaddsub for these, also with -ffp-contract=off."""
    expected = np.random.default_rng(0).random((64, 2))
    found = expected.copy()
    rotated.python(expected, 0.6, 0.8)
    rotated(found, 0.6, 0.8)
    assert found.tobytes() == expected.tobytes()


@lw.nest
def halves(u):
    for k in range(1, u.shape[0]):
        x = np.float32(0.3 * u[k - 1, 0])
        y = np.float32(0.3 * u[k - 1, 1])
        u[k, 0] = x
        u[k, 1] = y


def test_doubles_made_floats_are_rounded():
    """gcc 12.2 leaves the rounding out of two such numbers that it takes for a vector."""
    expected = np.random.default_rng(2).random((9, 2))
    found = expected.copy()
    halves.python(expected)
    halves(found)
    assert found.tobytes() == expected.tobytes()


@lw.nest
def products(u, v):
    for k in range(1, u.shape[0]):
        u[k] = u[k] * v[k] - 0.3j * v[k - 1] / u[k]


@lw.nest
def rounded(u, v):
    for k in range(u.shape[0]):
        u[k] = np.complex64(abs(v[k]) - v[k])


@pytest.mark.parametrize("nest", [products, rounded])
def test_complex_numbers_are_computed_part_by_part(nest):
    """gcc 12.2 takes vfmaddsub for products, and leaves rounding out as above."""
    rng = np.random.default_rng(1)
    expected, v = (rng.normal(size=64) + 1j * rng.normal(size=64) for _ in range(2))
    found = expected.copy()
    nest.python(expected, v)
    nest(found, v)
    assert found.tobytes() == expected.tobytes()


FUSED = """
#include <immintrin.h>
__m256d fused(__m256d a, __m256d b, __m256d c) { return _mm256_fmaddsub_pd(a, b, c); }
"""
APART = "double apart(double a, double b, double c) { return a * b - c; }\n"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="of x86 only such instructions are known")
@pytest.mark.parametrize("with_objdump", [True, False])
def test_fused_products_are_found(tmp_path, monkeypatch, with_objdump):
    for name, text in (("fused", FUSED), ("apart", APART)):
        (tmp_path / f"{name}.c").write_text(text)
        compiler = find_c_compiler().command
        command = [*compiler, "-O2", "-mfma", "-ffp-contract=off", "-c", f"{name}.c", "-o", f"{name}.o"]
        subprocess.run(command, cwd=tmp_path, check=True)
    if not with_objdump:
        monkeypatch.setattr("lapwing.codegen.compilation.contraction.shutil.which", lambda name: None)
    contracts.cache_clear()
    assert contracts(tmp_path / "fused.o")
    assert not contracts(tmp_path / "apart.o")


@lw.nest
def looked_up(u, h, table):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = u[i - 1, j] + table[int(max(0, h[i, j]))]


def test_int_of_a_mixed_value_keeps_its_range():
    """int(max(0, x)) once counted as 0, so that an index beyond the table was read unchecked."""
    u, h = np.zeros((4, 5)), np.full((4, 5), 3, np.int32)
    looked_up(u, h, np.arange(4.0))
    assert u[3, 4] == 9.0
    h[2, 2] = 50_000
    with pytest.raises(lw.RunError, match="IndexError"):
        looked_up(np.zeros((4, 5)), h, np.arange(4.0))
