"""What the iterations of a loop do away from the ends of arrays (index set splitting: Banerjee; Griebl, Feautrier and Lengauer,
International Journal of Parallel Programming 28, 2000), where lanes all do the same:

    for j:                                      for j from r on, and before n - r:
        for d in range(-r, r + 1):                  for d in range(-r, r + 1):
            s += x[min(max(j + d, 0), n - 1)]   →       s += x[j + d]
        for b in range(max(0, j - r), …):           for b in range(j - r, …):
            if j + r < n: …                             …

Where a window is cut off, goes around, or is mirrored, iterations are done one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from lapwing.affine.affine import Affine
from lapwing.codegen.body.if_conversion import folded
from lapwing.codegen.outer_loops.independence import inner_indices
from lapwing.codegen.outer_loops.ranges import form_of
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.ir import OPPOSITE


@dataclass(frozen=True)
class Interior:
    """Statements of a loop where its index is at least all of ``first`` and less than all of ``until``."""

    statements: tuple[t.TypedStatement, ...]
    first: tuple[t.Typed, ...] = ()
    until: tuple[t.Typed, ...] = ()


def interior(bound: BoundNest, statements: Sequence[t.TypedStatement], index: str) -> Interior:
    """What is left of the statements of a loop over an index away from the ends of arrays."""
    inside = _Inside(bound, index, frozenset(inner_indices(statements)))
    found = inside.block(statements, _Known())
    values = [
        tuple(t.AffineValue("int64", form) for form in dict.fromkeys(forms)) for forms in (inside.first, inside.until)
    ]
    return Interior(found, *values)


@dataclass(frozen=True)
class _Known:
    """What is known at a place: the forms of locals, the least and the greatest value of the indices of loops inside, and forms
    that are not negative."""

    forms: Mapping[t.Local, Affine] = field(default_factory=dict)
    ranges: Mapping[str, tuple[Affine, Affine]] = field(default_factory=dict)
    positive: tuple[Affine, ...] = ()

    def but(self, statements: Sequence[t.TypedStatement]) -> _Known:
        """Without the locals that statements may give another value."""
        assigned = {s.local for s in t.all_statements(statements) if isinstance(s, t.TypedAssign)}
        return replace(self, forms={local: form for local, form in self.forms.items() if local not in assigned})

    def and_form(self, local: t.Local, form: Affine | None) -> _Known:
        others = {other: known for other, known in self.forms.items() if other != local}
        return replace(self, forms=others if form is None else {**others, local: form})

    def and_range(self, name: str, ends: tuple[Affine, Affine] | None) -> _Known:
        others = {other: ends for other, ends in self.ranges.items() if other != name}
        return replace(self, ranges=others if ends is None else {**others, name: ends})

    def and_positive(self, forms: Sequence[Affine]) -> _Known:
        return replace(self, positive=(*self.positive, *forms))

    def form(self, node: t.Typed) -> Affine | None:
        """An integer as an affine form."""
        return form_of(node, self.forms)

    def worst(self, form: Affine) -> Affine:
        """The least that a form may be, by the ranges of the loops inside, from the inside out."""
        for name in reversed(list(self.ranges)):
            factor = form.coefficient(name)
            if factor:
                form = form.substitute({name: self.ranges[name][0 if factor > 0 else 1]})
        return form


@dataclass
class _Inside:
    """Notes where the index has to be for what it takes for granted."""

    bound: BoundNest
    index: str
    inner: frozenset[str]
    first: list[Affine] = field(default_factory=list)
    until: list[Affine] = field(default_factory=list)

    def block(self, statements: Sequence[t.TypedStatement], known: _Known) -> tuple[t.TypedStatement, ...]:
        return tuple(self._block(statements, known)[0])

    def _block(self, statements: Sequence[t.TypedStatement], known: _Known) -> tuple[list[t.TypedStatement], _Known]:
        """The statements, and what is known behind them."""
        found: list[t.TypedStatement] = []
        for statement in statements:
            match statement:
                case t.TypedIf(then=then, otherwise=otherwise):
                    test = self._value(statement.test, known)
                    if isinstance(test, t.Literal):
                        taken, known = self._block(then if test.value else otherwise, known)
                        found += taken
                        continue
                    arms = [
                        self.block(arm, known.and_positive(self._facts(test, truth, known)))
                        for arm, truth in ((then, True), (otherwise, False))
                    ]
                    found.append(replace(statement, test=test, then=arms[0], otherwise=arms[1]))
                    known = known.but((statement,))
                case t.TypedFor(index=index):
                    start, stop = (self._end(end, known) for end in (statement.start, statement.stop))
                    known = known.but((statement,))
                    inside = known.and_range(index.name, self._range(statement, start, stop, known))
                    found.append(replace(statement, start=start, stop=stop, body=self.block(statement.body, inside)))
                case t.TypedLocal(local=local) | t.TypedAssign(local=local):
                    changed = t.with_values(statement, self._of(known))
                    assert isinstance(changed, t.TypedLocal | t.TypedAssign)
                    known = known.and_form(local, known.form(changed.value))
                    found.append(changed)
                case _:
                    known = known.but((statement,))
                    found.append(t.with_values(statement, self._of(known)))
        return found, known

    def _end(self, node: t.Typed, known: _Known) -> t.Typed:
        """Where a loop begins or ends, as a form where that is known to be one."""
        value = self._value(node, known)
        form = known.form(value)
        return value if form is None or isinstance(value, t.Literal) else t.AffineValue("int64", form)

    def _range(self, loop: t.TypedFor, start: t.Typed, stop: t.Typed, known: _Known) -> tuple[Affine, Affine] | None:
        least, end = known.form(start), known.form(stop)
        if least is None or end is None or not (isinstance(loop.step, t.Literal) and loop.step.value == 1):
            return None
        return least, end - 1

    # -- expressions -----------------------------------------------------------------------------------------------------

    def _of(self, known: _Known) -> Callable[[t.Typed], t.Typed]:
        return lambda node: self._value(node, known)

    def _value(self, node: t.Typed, known: _Known) -> t.Typed:
        if isinstance(node, t.Load):
            parts = (self._subscript(node.array, subscript, known) for subscript in node.subscripts)
            return replace(node, subscripts=tuple(parts))
        node = folded(t.mapped(node, lambda child: self._value(child, known)))
        if not isinstance(node, t.Operation) or any(operand.dtype != "int64" for operand in node.operands):
            return node
        forms = [form for form in map(known.form, node.operands) if form is not None]
        if len(forms) < len(node.operands):
            return node
        one, *others = forms
        match node.operator:
            case "max" | "min":
                return self._extremum(node, forms, known)
            case "%" | "wrap":
                return self._taken(node, one, [one, others[0] - one - 1], known)
            case "abs":
                return self._taken(node, one, [one], known)
            case "<" | "<=" | ">" | ">=":
                return self._comparison(node, one - others[0], known)
        return node

    def _subscript(
        self, array: str, subscript: t.AffineSubscript | t.LookupSubscript, known: _Known
    ) -> t.AffineSubscript | t.LookupSubscript:
        """An index, which is inside of its array where it is known to be, or may be taken to be."""
        if isinstance(subscript, t.AffineSubscript):
            return subscript
        subscript = replace(subscript, index=self._value(subscript.index, known))
        form = known.form(subscript.index)
        if form is None:
            return subscript
        if subscript.trap is None and not subscript.counts_from_end:
            return t.AffineSubscript(form)
        ends = [form, Affine(self.bound.array(array).shape[subscript.axis] - 1) - form]
        if self.bound.nest.is_generic:
            return subscript
        left = [end for end in ends if not self._is_known(end, known)]
        return t.AffineSubscript(form) if self._take(left, known) else subscript

    def _extremum(self, node: t.Operation, forms: Sequence[Affine], known: _Known) -> t.Typed:
        """The one that moves with the index, where that is the largest or the smallest."""
        moving = [form for form in forms if self._moves(form, known)]
        if len(moving) != 1:
            return node
        (own,) = moving
        apart = [own - form if node.operator == "max" else form - own for form in forms if form is not own]
        return self._taken(node, own, apart, known)

    def _taken(self, node: t.Typed, form: Affine, positive: Sequence[Affine], known: _Known) -> t.Typed:
        """The form in place of an expression, where none of others is negative."""
        if not self._moves(form, known) or not self._take(positive, known):
            return node
        return t.AffineValue("int64", form)

    def _comparison(self, node: t.Operation, difference: Affine, known: _Known) -> t.Typed:
        """The truth of a comparison of a difference with zero, where most iterations have it."""
        if not self._moves(difference, known):
            return node
        for truth in (True, False):
            if self._take([_positive(node.operator if truth else OPPOSITE[node.operator], difference)], known):
                return t.Literal("bool", truth)
        return node

    def _facts(self, test: t.Typed, truth: bool, known: _Known) -> list[Affine]:
        """Forms that are not negative where a test holds, or does not."""
        match test:
            case t.Operation(operator="not", operands=(operand,), dtype="bool"):
                return self._facts(operand, not truth, known)
            case t.Operation(operator="&" | "&&", operands=operands) if truth and test.dtype == "bool":
                return [fact for operand in operands for fact in self._facts(operand, truth, known)]
            case t.Operation(operator="|" | "||", operands=operands) if not truth and test.dtype == "bool":
                return [fact for operand in operands for fact in self._facts(operand, truth, known)]
            case t.Operation(operator="<" | "<=" | ">" | ">=" as operator, operands=(left, right)):
                a, b = known.form(left), known.form(right)
                if a is not None and b is not None:
                    return [_positive(operator if truth else OPPOSITE[operator], a - b)]
        return []

    # -- what is taken for granted ---------------------------------------------------------------------------------------

    def _is_known(self, form: Affine, known: _Known) -> bool:
        """Whether a form is known not to be negative."""
        return any(self._least(form - other) >= 0 for other in known.positive)

    def _least(self, form: Affine) -> int:
        """What a form is that is over arguments alone; less than any other."""
        return form.substitute(self._arguments).constant if form.names <= self._arguments.keys() else -1

    @cached_property
    def _arguments(self) -> dict[str, int]:
        return {
            name: int(value)
            for name, value in self.bound.parameters.items()
            if isinstance(value, int | np.integer) and not self.bound.nest.is_generic
        }

    def _moves(self, form: Affine, known: _Known) -> bool:
        return any(self.index in known.worst(one).names for one in (form, -form))

    def _take(self, positive: Sequence[Affine], known: _Known) -> bool:
        """Takes for granted that none of some forms is negative; False where that cannot be said of the index alone, or most
        iterations are elsewhere."""
        ends = []
        for form in positive:
            least = known.worst(form)
            factor = least.coefficient(self.index)
            rest = least - Affine.of(self.index) * factor
            end = -rest if factor == 1 else rest + 1
            if factor not in (1, -1) or rest.names & self.inner or not self._is_near(factor, end):
                return False
            ends.append((factor, end))
        for factor, end in ends:
            (self.first if factor == 1 else self.until).append(end)
        return True

    def _is_near(self, factor: int, end: Affine) -> bool:
        """Whether the index is to be at least, by the factor 1, what is in the first half of the largest array, or, by -1, less
        than what is in the second; where that is not known, numbers alone are in the first."""
        if not end.names <= self._arguments.keys():
            return factor == (-1 if end.names else 1)
        longest = max((extent for array in self.bound.arrays for extent in array.shape), default=0)
        return (2 * end.substitute(self._arguments).constant < longest) == (factor == 1)


def _positive(operator: str, difference: Affine) -> Affine:
    """What is not negative where a difference compares so with zero."""
    return {"<": -difference - 1, "<=": -difference, ">": difference - 1, ">=": difference}[operator]
