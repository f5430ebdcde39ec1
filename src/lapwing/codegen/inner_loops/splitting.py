"""Index set splitting (Banerjee, 1979; Griebl, Feautrier and Lengauer, 2000) of loops whose iterations are independent, where
conditions compare their indices with what does not change in them; and loop unswitching (Allen and Cocke, 1971).

    for w in range(c):                        for w in range(0, min(max(0, a[i]), c)):
        if a[i] <= w:                             k[i, w] = k[i - 1, w]
            k[i, w] = k[i - 1, w - a[i]]   →  for w in range(min(max(0, a[i]), c), c):
        else:                                     k[i, w] = k[i - 1, w - a[i]]
            k[i, w] = k[i - 1, w]

What stands under such a condition often has no elements elsewhere, so that it cannot become a value. In the parts there is no
condition, and compilers make vectors. The order of iterations is as before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from lapwing.affine.affine import Affine
from lapwing.codegen.body.conditional_calls import calls_by_strips
from lapwing.codegen.body.if_conversion import folded
from lapwing.codegen.body.widening import COMPARISONS
from lapwing.codegen.inner_loops.elements import Certain, NewLocal, elements_in
from lapwing.codegen.inner_loops.integers import combined, plus
from lapwing.codegen.outer_loops.independence import stores_in
from lapwing.codegen.outer_loops.ranges import form_of
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.effects import is_speculable
from lapwing.loopnest.ir import MIRRORED

_Part = Callable[
    [t.Typed, t.Typed, bool], list[t.TypedStatement]
]  # a loop from a start to a stop, where a condition has a truth
_MOST_CONDITIONS = 4  # by which a loop is split: each makes two or three of one


def split_at_conditions(loop: t.TypedFor, certain: Certain, new: NewLocal) -> list[t.TypedStatement]:
    """A loop as loops over parts of its range; the loop alone where no condition is on its index."""
    return _Splitting(loop, certain, new).loops(loop, _MOST_CONDITIONS)


@dataclass(frozen=True)
class _Condition:
    """A comparison: the index and ``further`` is ``operator`` ``bound``. bound: None where the index has no part in it."""

    node: t.Operation
    operator: str = ""
    bound: t.Typed | None = None
    further: int = 0


class _Splitting:
    def __init__(self, loop: t.TypedFor, certain: Certain, new: NewLocal) -> None:
        self._name, self._certain, self._new = loop.index.name, certain, new
        self._stored = {target.array for target in stores_in(loop.body)}
        self._calls = calls_by_strips(
            loop.body
        )  # which is not worth packing arguments for, where a condition is the same
        self._forms: dict[t.Typed, Affine] = {}  # of locals that hold where loops begin and end
        inside = t.all_statements(loop.body)
        self._inner = {s.local for s in inside if isinstance(s, t.TypedLocal | t.TypedVariable)}

    def loops(self, loop: t.TypedFor, left: int) -> list[t.TypedStatement]:
        """left: how many conditions it may still be split by."""
        condition = self._condition_of(loop.body) if left else None
        if condition is None:
            return [loop]

        def part(start: t.Typed, stop: t.Typed, truth: bool) -> list[t.TypedStatement]:
            body = decided(loop.body, condition.node, truth)
            inside = replace(loop, start=start, stop=stop, body=body, exist=elements_in(body, self._certain))
            return self.loops(inside, left - 1) if body else []

        # Elements need not exist where there is no iteration.
        if any(isinstance(node, t.Load) for node in t.walk(condition.node)):
            test = t.Operation("bool", "<", (loop.start, loop.stop))
            return [t.TypedIf(loop.line, loop.text, test, tuple(self._parts(loop, condition, part)), ())]
        return self._parts(loop, condition, part)

    def _parts(self, loop: t.TypedFor, condition: _Condition, part: _Part) -> list[t.TypedStatement]:
        if condition.bound is None:
            arms = (tuple(part(loop.start, loop.stop, truth)) for truth in (True, False))
            return [t.TypedIf(loop.line, loop.text, condition.node, *arms)]
        found: list[t.TypedStatement] = []

        def held(value: t.Typed) -> t.Local:
            local = self._new()
            if (form := self._form_of(value)) is not None:
                self._forms[local] = form
            found.append(t.TypedLocal(loop.line, loop.text, local, value))
            return local

        start, stop, by = held(loop.start), held(loop.stop), condition.further
        # No further away than the range: no sum overflows.
        near = combined("max", combined("min", condition.bound, plus(stop, by)), plus(start, by - 1))
        place = held(plus(near, -by))
        if condition.operator in ("==", "!="):
            is_there = condition.operator == "=="
            first = held(combined("max", start, combined("min", place, stop)))
            last = held(combined("max", first, combined("min", plus(place, 1), stop)))
            bound, elsewhere = self._form_of(condition.bound), not is_there
            if bound is None or bound != self._form_of(plus(start, by)):
                found += part(start, first, elsewhere)
            # One iteration, which is not worth vectors.
            body = decided(loop.body, condition.node, is_there)
            found += [replace(loop, start=first, stop=last, body=body, independent=False)] if body else []
            if bound is None or bound != self._form_of(plus(stop, by - 1)):
                found += part(last, stop, elsewhere)
        else:
            beyond: t.Typed = plus(place, 1) if condition.operator in ("<=", ">") else place
            middle = held(combined("max", start, combined("min", beyond, stop)))
            comes_first = condition.operator in ("<", "<=")
            found += [*part(start, middle, comes_first), *part(middle, stop, not comes_first)]
        return found

    def _form_of(self, node: t.Typed) -> Affine | None:
        match node:
            case t.Local():
                return self._forms.get(node)
            case t.Operation(operator="+", operands=(inner, t.Literal(value=int() as by)), dtype="int64"):
                form = self._form_of(inner)
                return None if form is None else form + by
        return form_of(node)

    # -- which condition -----------------------------------------------------------------------------------------------

    def _condition_of(self, body: Sequence[t.TypedStatement]) -> _Condition | None:
        """The condition to split a loop by: one on its index, or one that is the same in all iterations around such a one."""
        always = [c for node in _always(body) if (c := self._read(node)) is not None]
        for condition in always:
            if condition.bound is not None:
                return condition
        anywhere = (node for s in t.all_statements(body) for value in t.own_values(s) for node in t.walk(value))
        others = [c for node in anywhere if (c := self._read(node)) is not None and c.bound is not None]
        for condition in others:
            if not any(isinstance(part, t.Load) for part in t.walk(condition.node)):
                return condition
        return always[0] if always and (others or self._calls) else None

    def _read(self, node: t.Typed) -> _Condition | None:
        if not isinstance(node, t.Operation) or node.operator not in COMPARISONS:
            return None
        left, right = node.operands
        if left.dtype != "int64" or right.dtype != "int64":
            return None
        if self._is_fixed(left) and self._is_fixed(right):
            return _Condition(node)
        for one, other, operator in ((left, right, node.operator), (right, left, MIRRORED[node.operator])):
            if self._is_fixed(other) and (further := self._further(one)) is not None:
                return _Condition(node, operator, other, further)
        a, b = form_of(left), form_of(right)
        if a is None or b is None:
            return None
        difference = a - b
        factor = difference.coefficient(self._name)
        if abs(factor) != 1:
            return None
        rest = difference - Affine.of(self._name) * factor
        operator = node.operator if factor == 1 else MIRRORED[node.operator]
        return _Condition(node, operator, t.AffineValue("int64", -rest if factor == 1 else rest))

    def _further(self, node: t.Typed) -> int | None:
        """How much an expression is more than the index; None where that is not a number in the text."""
        match node:
            case t.Index(name=name) if name == self._name:
                return 0
            case t.Operation(operator="+" | "-" as sign, operands=(inner, t.Literal(value=int() as by)), dtype="int64"):
                less = self._further(inner)
                return None if less is None else less + (by if sign == "+" else -by)
        return None

    def _is_fixed(self, node: t.Typed) -> bool:
        """Whether an expression is the same in all iterations, and does no harm."""
        for part in t.walk(node):
            if self._name in t.indices_of(part) or part in self._inner:
                return False
            if isinstance(part, t.Load) and part.array in self._stored:
                return False
        return is_speculable(_without_loads(node))


def _always(body: Sequence[t.TypedStatement]) -> Iterator[t.Typed]:
    """The expressions that are evaluated in every iteration, with those inside of them."""
    for statement in body:
        for value in t.own_values(statement):
            yield from _always_in(value)


def _always_in(node: t.Typed) -> Iterator[t.Typed]:
    yield node
    match node:
        case t.Select(test=test):
            yield from _always_in(test)
        case t.Operation(operator="&&" | "||", operands=(first, *_)):
            yield from _always_in(first)
        case _:
            for child in t.children(node):
                yield from _always_in(child)


def _without_loads(node: t.Typed) -> t.Typed:
    """An expression with numbers for elements that are found without looking anything up."""
    if isinstance(node, t.Load) and all(isinstance(s, t.AffineSubscript) for s in node.subscripts):
        return t.Literal(node.dtype, 0)
    return t.mapped(node, _without_loads)


# -- where a condition is decided --------------------------------------------------------------------------------------


def decided(body: Sequence[t.TypedStatement], node: t.Operation, truth: bool) -> tuple[t.TypedStatement, ...]:
    """Statements where a comparison is known to hold, or not to."""
    found: list[t.TypedStatement] = []
    for statement in body:
        match statement:
            case t.TypedIf(test=test, then=then, otherwise=otherwise):
                test = _folded(test, node, truth)
                then, otherwise = (decided(arm, node, truth) for arm in (then, otherwise))
                if isinstance(test, t.Literal):
                    found += then if test.value else otherwise
                elif then or otherwise:
                    found.append(replace(statement, test=test, then=then, otherwise=otherwise))
            case _:
                found.append(t.with_values(statement, lambda value: _folded(value, node, truth)))
    return tuple(found)


def _folded(value: t.Typed, node: t.Operation, truth: bool) -> t.Typed:
    """An expression with a comparison's truth in its place, and what follows from that."""
    if value == node:
        return t.Literal("bool", truth)
    return folded(t.mapped(value, lambda child: _folded(child, node, truth)))
