"""Quotients and remainders of integers where machines have ways that differ: around 0, 32 bits, and the ends of the type."""

from __future__ import annotations

import numpy as np
import pytest

import lapwing as lw


@lw.nest
def divided(a, b, quotient, remainder):
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            quotient[i, j] = a[i] // b[j]
            remainder[i, j] = a[i] % b[j]


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "uint8", "uint16", "uint32"])
def test_all_pairs(dtype: str) -> None:
    ends = np.iinfo(dtype)
    near = [
        sign * (2**bits + by) for bits in (0, 2, 7, 15, 31, 32, 33, 62, 63) for by in range(-3, 4) for sign in (1, -1)
    ]
    numbers = np.array(sorted({n for n in near if ends.min <= n <= ends.max}), dtype)
    shape = (len(numbers), len(numbers))
    expected = {"quotient": np.zeros(shape, dtype), "remainder": np.zeros(shape, dtype)}
    found = {name: array.copy() for name, array in expected.items()}
    with np.errstate(all="ignore"):
        divided.python(numbers, numbers, **expected)
    divided(numbers, numbers, **found)
    for name, array in expected.items():
        assert found[name].tobytes() == array.tobytes(), name
