"""Inner loops over a window around the index of the loop that is computed in lanes, normalised (Allen and Kennedy, chapter 4):
they count from where the window begins, so that all lanes go through them alike.

    for j:                                  for j:
        for b in range(j - r, j + r):   →       for b in range(-r, r):
            s += x[b]                               s += x[b + j]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lapwing.affine.affine import Affine
from lapwing.codegen.body.loop_ends import slope, with_index
from lapwing.codegen.outer_loops.ranges import form_of
from lapwing.codegen.outer_loops.skewing import with_index_moved
from lapwing.loopnest.binding import typed as t

_Values = Mapping[t.Local, t.Typed]


def normalised(statements: Sequence[t.TypedStatement], index: str) -> tuple[t.TypedStatement, ...]:
    """The statements of a loop over an index with its windows normalised."""
    inside = t.all_statements(statements)
    own = frozenset(s.local for s in inside if isinstance(s, t.TypedLocal | t.TypedVariable | t.TypedAssign))
    return tuple(_Windows(index, own).block(statements, {}))


@dataclass(frozen=True)
class _Windows:
    """own: the locals that are set in the loop."""

    index: str
    own: frozenset[t.Local]

    def block(self, statements: Sequence[t.TypedStatement], known: _Values) -> Iterator[t.TypedStatement]:
        for statement in statements:
            match statement:
                case t.TypedLocal(local=local, value=value):
                    known = {**known, local: value}
                case t.TypedIf(then=then, otherwise=otherwise):
                    arms = tuple(self.block(then, known)), tuple(self.block(otherwise, known))
                    statement = replace(statement, then=arms[0], otherwise=arms[1])
                case t.TypedFor():
                    loop = self._of_window(statement, known)
                    statement = replace(loop, body=tuple(self.block(loop.body, known)))
            yield statement

    def _of_window(self, loop: t.TypedFor, known: _Values) -> t.TypedFor:
        """A loop that begins and ends so many times the index later, from where it would without; as it is where it does not."""
        start, stop = (_resolved(end, known) for end in (loop.start, loop.stop))
        factor = slope(start, self.index)
        if not factor or slope(stop, self.index) != factor or not isinstance(loop.step, t.Literal):
            return loop
        if any(node in self.own for end in (start, stop) for node in t.walk(end)):
            return loop
        moved = with_index_moved(loop, Affine.of(self.index) * -factor)
        return replace(moved, start=self._without(start), stop=self._without(stop))

    def _without(self, end: t.Typed) -> t.Typed:
        """Where a loop begins or ends for the index 0."""
        form = form_of(end)
        if form is not None:
            return t.AffineValue("int64", form.substitute({self.index: Affine(0)}))
        return with_index(end, self.index, t.Literal("int64", 0))


def _resolved(node: t.Typed, known: _Values) -> t.Typed:
    """An expression with what locals are in their place."""
    if isinstance(node, t.Local) and node in known:
        return _resolved(known[node], known)
    return t.mapped(node, lambda child: _resolved(child, known))
