"""Loops split at the one iteration that stores what others look at (index set splitting at a weak-zero dependence: Goff, Kennedy
and Tseng, PLDI 1991; Allen and Kennedy, sections 3.3 and 5.7).

    for j in range(n):                              for j in range(min(k, n)): …
        through = d[i, k] + d[k, j]                 for j in range(k, min(k + 1, n)): …
        if through < d[i, j]:                 →     for j in range(max(0, k + 1), n): …
            d[i, j] = through

``d[i, k]`` is stored by the iteration ``j = k`` alone. Before it and behind it no two iterations touch one element that one
of them stores, and these parts are computed as independent loops are; as is a loop that does not come to that iteration, as
``for j in range(k + 1, n)``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lapwing.affine.affine import Affine
from lapwing.codegen.inner_loops.integers import combined
from lapwing.codegen.outer_loops.candidates import unguarded, with_choices
from lapwing.codegen.outer_loops.independence import (
    Meeting,
    accesses_in,
    affine_pairs,
    assigned_outside,
    meeting,
    stores_in,
)
from lapwing.codegen.outer_loops.ranges import form_of
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest

_KINDS = t.TypedStore | t.TypedLocal | t.TypedVariable | t.TypedAssign | t.TypedIf


def with_split_loops(bound: BoundNest) -> tuple[t.TypedStatement, ...]:
    """A nest's statements, of which innermost loops are split where that leaves independent ones without branches."""
    return _Splitting(bound).all_of(bound.body.statements)


class _Splitting:
    def __init__(self, bound: BoundNest) -> None:
        self._bound, self._exists = bound, unguarded(bound)
        self._kept = 0

    def all_of(self, statements: Sequence[t.TypedStatement]) -> tuple[t.TypedStatement, ...]:
        return tuple(part for statement in statements for part in self._parts(statement))

    def _parts(self, statement: t.TypedStatement) -> Iterator[t.TypedStatement]:
        match statement:
            case t.TypedIf(then=then, otherwise=otherwise):
                yield replace(statement, then=self.all_of(then), otherwise=self.all_of(otherwise))
            case t.TypedWhile(body=body):
                yield replace(statement, body=self.all_of(body))
            case t.TypedFor(start=start, stop=stop, body=body):
                point = split_point(statement)
                without = () if point is None else with_choices(self._bound, body, self._exists)
                if point is None or any(isinstance(s, t.TypedIf) for s in without):
                    yield replace(statement, body=self.all_of(body))
                    return
                apart = replace(statement, body=without, independent=True)
                if _is_ahead(point, start) or _is_ahead(form_of(stop), t.AffineValue("int64", point + 1)):
                    yield from self._with_scalars(apart)
                    return
                at, behind = (t.AffineValue("int64", form) for form in (point, point + 1))
                yield from self._with_scalars(replace(apart, stop=combined("min", stop, at)))
                yield replace(statement, start=combined("max", start, at), stop=combined("min", stop, behind))
                yield from self._with_scalars(replace(apart, start=combined("max", start, behind)))
            case _:
                yield statement

    def _with_scalars(self, loop: t.TypedFor) -> Iterator[t.TypedStatement]:
        """A part with the elements that it looks at in all iterations, and stores in none, in variables (scalar replacement)."""
        stored = {target.array for target in stores_in(loop.body)}
        kept = {
            load: self._new(load)
            for load in dict.fromkeys(accesses_in(loop.body))
            if load.array in stored and loop.index.name not in t.indices_of(load) and self._exists(load)
        }
        if not kept:
            yield loop
            return

        def visit(node: t.Typed) -> t.Typed:
            return kept[node] if isinstance(node, t.Load) and node in kept else t.mapped(node, visit)

        before = [t.TypedLocal(loop.line, loop.text, local, load) for load, local in kept.items()]
        inside = replace(loop, body=tuple(t.with_values(s, visit) for s in loop.body))
        some = t.Operation("bool", "<", (loop.start, loop.stop))  # else there may be no such elements
        yield t.TypedIf(loop.line, loop.text, some, (*before, inside), ())

    def _new(self, load: t.Load) -> t.Local:
        self._kept += 1
        return t.Local(load.dtype, f"{load.array} beside", self._kept)


def _is_ahead(one: Affine | None, other: t.Typed) -> bool:
    """Whether one form is less than another wherever indices are."""
    beyond = form_of(other)
    if one is None or beyond is None:
        return False
    difference = beyond - one
    return not difference.terms and difference.constant > 0


def split_point(loop: t.TypedFor) -> Affine | None:
    """The iteration without which the others of an innermost loop are independent; None where there is none, or they are so with
    it."""
    inside = list(t.all_statements(loop.body))
    if loop.independent or not (isinstance(loop.step, t.Literal) and loop.step.value == 1):
        return None
    if not all(isinstance(s, _KINDS) for s in inside) or assigned_outside(loop.body):
        return None
    if any(map(t.own_values_may_raise, inside)):
        return None
    points = set[Affine | None]()
    for store in dict.fromkeys(stores_in(loop.body)):
        for access in dict.fromkeys(accesses_in(loop.body)):
            if meeting(store, access, loop.index.name, ()) is Meeting.ANY:
                points.add(_meeting_point(store, access, loop.index.name))
    return points.pop() if len(points) == 1 else None


def _meeting_point(store: t.Load, access: t.Load, index: str) -> Affine | None:
    """The only iteration whose element another one may look at; None where there may be several."""
    for stored, other in affine_pairs(store, access):
        factor = stored.coefficient(index)
        if factor in (1, -1) and not other.coefficient(index):
            return (other - stored.substitute({index: Affine(0)})) * factor
    return None
