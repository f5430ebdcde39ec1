"""What to do with what is not an array, or an array of a dtype that is not supported."""

from __future__ import annotations

from typing import Any

import numpy as np

# The least supported dtype that holds every value.
_HOLDING = {"float16": "float32"}


def conversion(name: str, dtype: np.dtype[Any]) -> str:
    """Advice for an array that is called ``name`` and has a dtype that is not supported."""
    if dtype.names is not None:
        return f"pass each of its fields as an array of its own: {name}[{dtype.names[0]!r}].copy()"
    if dtype.kind in "mM":
        return f"pass its numbers: {name}.view('int64')"
    if dtype.kind == "U":
        return f"pass its characters as numbers: {name}.view('int32')"
    if dtype.kind == "S":
        return f"pass its characters as numbers: {name}.view('uint8')"
    if dtype.name in _HOLDING:
        return (
            f"pass a copy that holds the same values, {name}.astype({_HOLDING[dtype.name]!r}), and read results from it"
        )
    if dtype.name == "uint64":
        return f"where its values are below 2**63, pass a copy, {name}.astype('int64'), and read results from it"
    other = "complex128" if dtype.kind == "c" else "float64"
    return f"where it holds plain numbers, pass a copy, {name}.astype({other!r}), and read results from it"


def array_of(name: str, value: Any) -> str:
    """Advice for an argument that should be an array, and is none."""
    if isinstance(value, str):
        return f"pass its characters as numbers: numpy.array(list({name})).view('int32')"
    if isinstance(value, bytes | bytearray):
        return f"pass its bytes as numbers: numpy.frombuffer({name}, 'uint8')"
    return f"convert it once, {name} = numpy.array({name}, ndmin=1), and pass that"
