"""Inner loops over a window around the index of the loop that is computed in lanes, normalised (Allen and Kennedy, chapter 4):
they count from where the window begins, so that all lanes go through them alike.

    for j:                                  for j:
        for b in range(j - r, j + r):   →       for b in range(-r, r):
            s += x[b]                               s += x[b + j]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lapwing.affine.affine import Affine
from lapwing.codegen.outer_loops.ranges import form_of
from lapwing.codegen.outer_loops.skewing import with_index_moved
from lapwing.loopnest.binding import typed as t


def normalised(statements: Sequence[t.TypedStatement], index: str) -> tuple[t.TypedStatement, ...]:
    """The statements of a loop over an index with its windows normalised."""
    return tuple(_normalised(statement, index) for statement in statements)


def _normalised(statement: t.TypedStatement, index: str) -> t.TypedStatement:
    match statement:
        case t.TypedIf(then=then, otherwise=otherwise):
            return replace(statement, then=normalised(then, index), otherwise=normalised(otherwise, index))
        case t.TypedFor():
            loop = _of_window(statement, index)
            return replace(loop, body=normalised(loop.body, index))
    return statement


def _of_window(loop: t.TypedFor, index: str) -> t.TypedFor:
    """A loop that begins and ends so many times the index later, from where it would without; as it is where it does not."""
    start, stop = form_of(loop.start), form_of(loop.stop)
    if start is None or stop is None or not isinstance(loop.step, t.Literal):
        return loop
    factor = start.coefficient(index)
    if not factor or stop.coefficient(index) != factor:
        return loop
    further = Affine.of(index) * factor
    begin, end = (t.AffineValue("int64", form - further) for form in (start, stop))
    return replace(with_index_moved(loop, -further), start=begin, stop=end)
