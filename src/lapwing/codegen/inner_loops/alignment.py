"""Independent loops that begin with the few iterations before one that stores to the beginning of a vector, from where no store
crosses a line of the cache (loop peeling: Eichenberger, Wu and O'Brien, Vectorization for SIMD architectures with alignment
constraints, PLDI 2004).

    for j = first until last:    →    for j = first until middle, then from there until last:
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lapwing.loopnest.binding import typed as t

_DTYPES = ("float64", "int64", "float32", "int32")  # of elements that are not too many to a vector


def row_stored_to(body: Sequence[t.TypedStatement], index: str) -> t.Load | None:
    """Of the elements that all iterations store to side by side, the one at index 0; None where there are none."""
    for statement in body:
        if not isinstance(statement, t.TypedStore) or statement.target.dtype not in _DTYPES:
            continue
        subscripts = statement.target.subscripts
        affines = [s.affine for s in subscripts if isinstance(s, t.AffineSubscript) and not s.wrap]
        if len(affines) < len(subscripts):
            continue
        *others, last = affines
        if last.coefficient(index) == 1 and not any(index in affine.names for affine in others):
            first = t.AffineSubscript(last.substitute({index: 0}))
            return replace(statement.target, subscripts=(*subscripts[:-1], first))
    return None


def in_two(names: tuple[str, str], first: str, last: str, row: str) -> str:
    """The beginning of a loop that is done twice, from one name until the other. row: the C text of the element at index 0."""
    begin, end = names
    middle = f"lw_vector_from(&{row}, {begin}, {last})"
    return f"for (int64_t {begin} = {first}, {end} = {middle}; {begin} < {last}; {begin} = {end}, {end} = {last}) {{"
