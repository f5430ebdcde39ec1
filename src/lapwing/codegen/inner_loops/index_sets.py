"""Index set splitting at conditions on indices (Griebl, Feautrier and Lengauer, International Journal of Parallel Programming
28, 2000): the iterations of an innermost loop in which conditions have the truth that they have inside of an array, apart from
those at its ends.

    for j in range(n + 1):                             for j at the first element:  as it was
        if i == 0 or j == 0:                           for j from 1 on, if i >= 1:
            c[i, j] = 0                          →         c[i, j] = max(c[i-1, j], c[i, j-1])
        else:
            c[i, j] = max(c[i-1, j], c[i, j-1])

Conditions compare the loop's index, or indices of loops around it alone, with what is the same in all iterations. Inside they are
known, so that less is left: statements without branches, all of whose elements exist.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from lapwing.codegen.body.loop_ends import mentions_index, slope, with_index
from lapwing.codegen.inner_loops.splitting import decided
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.ir import MIRRORED, OPPOSITE
from lapwing.tiling.invariants import is_invariant

_ABOVE, _BELOW = (">", ">="), ("<", "<=")


@dataclass(frozen=True)
class Bounds:
    """Where conditions have the truth that they have inside. ``holds``: in rows where these do, and each of ``near`` is less than
    2**62; from the largest of ``begins`` up to the smallest of ``ends``, on one side of each of ``apart``."""

    holds: tuple[t.Typed, ...] = ()
    near: tuple[t.Typed, ...] = ()
    begins: tuple[t.Typed, ...] = ()
    ends: tuple[t.Typed, ...] = ()
    apart: tuple[t.Typed, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.holds or self.begins or self.ends or self.apart)


@dataclass(frozen=True)
class Interior:
    """``body``: what is done inside; ``first``: bounds over indices and arguments; ``then``: such that read elements, where there
    is something inside by the first."""

    body: t.TypedBody
    first: Bounds
    then: Bounds

    @property
    def all_exist(self) -> bool:
        """Whether all elements exist in every iteration: where no condition on indices is left, what they guard does."""
        values = (v for s in t.all_statements(self.body.statements) for v in t.own_values(s))
        tests = (part for value in values for node in t.walk(value) for part in _tested(node))
        conditions = (s.test for s in t.all_statements(self.body.statements) if isinstance(s, t.TypedIf))
        return not any(
            isinstance(part, t.Index | t.AffineValue) for test in (*tests, *conditions) for part in t.walk(test)
        )


def interior(body: t.TypedBody, index: str, outer: Collection[str]) -> Interior | None:
    """What iterations of a loop do inside; None where no condition is on indices.

    index: of the loop, which counts up by ones; outer: the indices of the loops around it.
    """
    stored = {s.target.array for s in t.all_statements(body.statements) if isinstance(s, t.TypedStore)}
    first = _Decided(index, frozenset(outer), lambda load: False)
    body = replace(body, statements=first.all_of(body.statements))
    then = _Decided(index, frozenset(outer), lambda load: load.array not in stored)
    body = replace(body, statements=_with_constants(then.all_of(body.statements)))
    return Interior(body, first.bounds(), then.bounds()) if first.bounds() or then.bounds() else None


@dataclass
class _Decided:
    """Decides conditions. may_read: which elements these may be over."""

    index: str
    outer: frozenset[str]
    may_read: Callable[[t.Load], bool]
    _found: dict[str, list[t.Typed]] = field(default_factory=dict)

    def bounds(self) -> Bounds:
        return Bounds(**{name: tuple(dict.fromkeys(values)) for name, values in self._found.items()})

    def all_of(self, statements: tuple[t.TypedStatement, ...]) -> tuple[t.TypedStatement, ...]:
        """The statements inside, where what is compared is known; those that are not come to there are not looked at."""
        while True:
            values = (value for s in t.all_statements(statements) for value in t.own_values(s))
            nodes = (node for value in values for node in t.walk(value) if isinstance(node, t.Operation))
            for node in nodes:
                truth = self._truth_of(node) if node.operator in MIRRORED else None
                if truth is not None:
                    statements = decided(statements, node, truth)
                    break
            else:
                return statements

    def _truth_of(self, node: t.Operation) -> bool | None:
        """The truth inside of a comparison; None where it is none of indices."""
        left, right = node.operands
        slopes = [slope(side, self.index) for side in (left, right)]
        if None in slopes or left.dtype != "int64" or right.dtype != "int64":
            return None
        factor = (slopes[0] or 0) - (slopes[1] or 0)
        zero = t.Literal("int64", 0)
        sides = [with_index(side, self.index, zero) for side in (left, right)]
        if abs(factor) > 1 or not all(map(self._is_known, sides)):
            return None
        operator = node.operator
        if factor < 0:
            sides, operator = sides[::-1], MIRRORED[operator]
        own, bound = sides
        if factor == 0:
            if not any(map(self._is_of_outer, sides)):
                return None
            if not self._is_of_outer(own):
                bound, operator = own, MIRRORED[operator]
            truth = _is_true_inside(operator, bound)
            self._note("holds", node if truth else replace(node, operator=OPPOSITE[node.operator]))
            return truth
        for side in sides:
            if any(isinstance(part, t.Scalar | t.Load) for part in t.walk(side)):
                self._note("near", side)
        value = bound if own == zero else t.Operation("int64", "-", (bound, own))
        truth = _is_true_inside(operator, value)
        if operator in ("==", "!="):
            self._note("apart", value)
            return truth
        is_above = (operator in _ABOVE) == truth
        # index > value, index >= value, and what is left of index <= value and index < value; and the reverse
        one = t.Literal("int64", 1)
        further = operator in (">", "<=")
        self._note("begins" if is_above else "ends", t.Operation("int64", "+", (value, one)) if further else value)
        return truth

    def _note(self, name: str, value: t.Typed) -> None:
        self._found.setdefault(name, []).append(value)

    def _is_known(self, node: t.Typed) -> bool:
        """Whether it is the same in all iterations, and raises nothing."""
        for part in t.walk(node):
            if isinstance(part, t.Local) or t.may_raise(part):
                return False
            if isinstance(part, t.Index) and part.name not in self.outer:
                return False
            if isinstance(part, t.AffineValue) and not part.affine.names <= self.outer:
                return False
            if isinstance(part, t.Load) and not (self.may_read(part) and not mentions_index(part, self.index)):
                return False
        return True

    def _is_of_outer(self, node: t.Typed) -> bool:
        return any(name in self.outer for part in t.walk(node) for name in t.indices_of(part))


def _with_constants(statements: tuple[t.TypedStatement, ...]) -> tuple[t.TypedStatement, ...]:
    """Variables that are set once, where they are declared, as locals."""
    assigned = Counter(s.local for s in t.all_statements(statements) if isinstance(s, t.TypedAssign))
    declared = {s.local for s in statements if isinstance(s, t.TypedVariable) and s.value is None}
    once = {s.local for s in statements if isinstance(s, t.TypedAssign) and assigned[s.local] == 1} & declared
    found: list[t.TypedStatement] = []
    for statement in statements:
        if isinstance(statement, t.TypedAssign) and statement.local in once:
            found.append(t.TypedLocal(statement.line, statement.text, statement.local, statement.value))
        elif not (isinstance(statement, t.TypedVariable) and statement.local in once):
            found.append(statement)
    return tuple(found)


def _tested(node: t.Typed) -> tuple[t.Typed, ...]:
    """What decides whether parts of an expression are evaluated."""
    match node:
        case t.Select(test=test):
            return (test,)
        case t.Operation(operator="&&" | "||", operands=(one, _)):
            return (one,)
    return ()


def _is_true_inside(operator: str, bound: t.Typed) -> bool:
    """Whether an index compares so with a bound inside of an array: it is above numbers in the text, below what arguments say;
    else as the condition has it."""
    if operator in ("==", "!="):
        return operator == "!="
    if not is_invariant(bound):
        return True
    is_number = not any(isinstance(part, t.Scalar) for part in t.walk(bound))
    return operator in (_ABOVE if is_number else _BELOW)
