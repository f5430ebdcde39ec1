"""Loops with something beside the loop in them, as perfect nests.

    before                                   after
    for i in range(1, n):                    for i in range(1, n):
        x = a[i - 1]                             for j in range(0, m):
        if skipped[i]:                               x = a[i - 1]
            continue                                 if skipped[i]:
        d[i, 0] = i * gap                                continue
        for j in range(1, m):                        if j == 0:
            d[i, j] = f(d[i, j - 1], x)                  d[i, j] = i * gap
                                                     else:
                                                         d[i, j] = f(d[i, j - 1], x)

What an iteration of the outer loop sets, or asks, is set, or asked, in each of the inner loop (code sinking: Wolfe, High
Performance Compilers for Parallel Computing, 1996), where it comes to the same there and has no effects. What is done to the
element before a row's first one, or behind its last one, becomes one more iteration of the inner loop (statement embedding:
Ahmed, Mateev and Pingali, ICS 2000).

Both count on the inner loop to have iterations, which is known when sizes are: how far apart its ends must be is noted at
the loop (``ends_apart``). Where all that could go wrong is an index, it is noted instead in which loops elements are taken
(``Taken``).
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import Any

from lapwing.loopnest.normalisation.counted_loops import subscripts_of
from lapwing.loopnest.normalisation.names import (
    argument_names,
    count_names,
    is_builtin,
    jumps,
    loop_index,
    names_set_once,
    range_ends,
)
from lapwing.loopnest.normalisation.nests.boundary_loops import Moved, Place, Places
from lapwing.loopnest.normalisation.nests.forward_substitution import Taken, note_taken, taken_of
from lapwing.syntax_places import placed

_MOST_BESIDE = 50  # statements
_FUNCTIONS = ("abs", "max", "min")
_NEVER_RAISE = (ast.Add, ast.Sub, ast.Mult, ast.BitAnd, ast.BitOr, ast.BitXor)


def perfect_nest(tree: ast.FunctionDef, meaning: Callable[[str], object]) -> ast.FunctionDef:
    """The function with its first loop as a nest that is perfect down to as many loops as can be; the same where it is so in the
    text. meaning: of names that are not its own."""
    nesting = _Nesting(copy.deepcopy(tree), meaning)
    for statement in nesting.tree.body:
        if isinstance(statement, ast.For):
            nesting.loop(statement, ())
            break
    return nesting.tree if nesting.has_changed else tree


@dataclass
class _Parts:
    """What stands beside an inner loop: what is sunk into it, and what is done before its first iteration and behind its last."""

    sunk: list[ast.stmt]
    first: list[ast.stmt]
    last: list[ast.stmt]


class _Nesting:
    """Goes down a nest and changes it."""

    def __init__(self, tree: ast.FunctionDef, meaning: Callable[[str], object]) -> None:
        self.tree, self.meaning = tree, meaning
        self.has_changed = False
        self.parameters = argument_names(tree)
        self.stored = count_names(tree.body, ast.Store, ast.Del)
        self.places = Places(names_set_once(tree))

    def loop(self, node: ast.For, around: tuple[str, ...]) -> None:
        if (index := loop_index(node)) is None:
            return
        around = (*around, index)
        if (inner := self._inner(node.body, around)) is None:
            return
        if inner not in node.body:
            node.body = [inner]
            self.has_changed = True
        self.loop(inner, around)

    def _inner(self, block: Sequence[ast.stmt], around: tuple[str, ...]) -> ast.For | None:
        """The loop that is all there is in a block, once what stands beside it is in it; None where that cannot be."""
        block = [statement for statement in block if not isinstance(statement, ast.Pass)]
        loops = [k for k, s in enumerate(block) if any(isinstance(n, ast.For | ast.While) for n in ast.walk(s))]
        if len(loops) != 1 or len(block) > _MOST_BESIDE:
            return None
        before, inner, behind = block[: loops[0]], block[loops[0]], block[loops[0] + 1 :]
        if isinstance(inner, ast.For) and not (before or behind):
            return inner
        inner = copy.deepcopy(inner)  # which stays as it is where something stands beside it in the end
        sinking = _Sinking(self, block, inner, frozenset(around))
        if isinstance(inner, ast.If):
            within = self._inner(inner.body, around) if not (inner.orelse or behind) else None
            if within is None or not sinking.is_sinkable(inner.test):
                return None
            test = sinking.sunk(inner.test)
            within.body = [placed(inner, ast.If(test, within.body, []))]
            inner = within
        if not isinstance(inner, ast.For) or (parts := sinking.parts(before, behind)) is None:
            return None
        bounds = count_names([inner.iter], ast.Load)
        if bounds.keys() & count_names(parts.sunk, ast.Store).keys():
            return None
        if sinking.may_raise and not _assume(inner, apart=1):
            return None
        if (parts.first or parts.last) and not self._embed(inner, parts, around):
            return None
        inner.body = [*parts.sunk, *inner.body]
        return inner

    def _embed(self, loop: ast.For, parts: _Parts, around: Sequence[str]) -> bool:
        """Whether a loop has got an iteration more for what is done before its first one, and behind its last one."""
        index, ends = loop_index(loop), range_ends(loop)
        if index is None or ends is None or (parts.last and jumps(loop)):
            return False
        start, stop, step = ends
        places = Places(self.places.fixed | {*around})
        begin, end = places.place(start), places.place(stop)
        outside = count_names(self.tree.body, ast.Load)[index] - count_names([loop], ast.Load)[index]
        if begin is None or end is None or outside:
            return False
        body, bounds = loop.body, [start, stop]
        if parts.last:
            if (last := _at(places, end, index, parts.last, loop)) is None:
                return False
            bounds[1], body = end.moved(step).expression(), [ast.If(_is_at(index, end), last, body)]
        if parts.first:
            at = begin.moved(-step)
            if (first := _at(places, at, index, parts.first, loop)) is None:
                return False
            bounds[0], body = at.expression(), [ast.If(_is_at(index, at), first, body)]
        _assume(loop, apart=0)
        loop.iter = ast.Call(ast.Name("range", ast.Load()), [*bounds, ast.Constant(step)][: 2 if step == 1 else 3], [])
        loop.body = body
        placed(loop, loop)
        return True

    def is_affine(self, node: ast.expr, loops: Set[str]) -> bool:
        """Whether an index is made of those of loops, and of numbers that stay the same."""
        match node:
            case ast.Name(id=name) if name in loops:
                return True
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.is_affine(operand, loops)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult(), right=right):
                return self.is_affine(left, loops) and self.is_affine(right, loops)
        return self.places.place(node) is not None

    def is_own(self, name: str) -> bool:
        """Whether a name stands for a function of Python's own."""
        return is_builtin(name, {*self.parameters, *self.stored}, self.meaning)


def _is_along(access: ast.Subscript, array: str, axis: int, axes: int, index: str) -> bool:
    """Whether an access of an array with so many axes goes along one of them with a loop."""
    _, indices = subscripts_of(access)
    is_of_array = _array_of(access) == array and len(indices) == axes
    return is_of_array and bool(count_names([indices[axis]], ast.Load)[index])


def _assume(loop: ast.For, apart: int) -> bool:
    """Note that a loop is as it has to be only where its ends are so far apart; False where that is not known to count."""
    if (ends := range_ends(loop)) is None:
        return False
    low, high, step = ends
    if step < 0:
        low, high = high, low
    assumed = (copy.deepcopy(low), copy.deepcopy(high), apart)
    loop.ends_apart = [*getattr(loop, "ends_apart", []), assumed]  # type: ignore[attr-defined]
    return True


def _is_at(index: str, at: Place) -> ast.expr:
    return ast.Compare(ast.Name(index, ast.Load()), [ast.Eq()], [at.expression()])


def _at(places: Places, at: Place, index: str, statements: Sequence[ast.stmt], loop: ast.For) -> list[ast.stmt] | None:
    """Statements before or behind a loop over rows as those of one of its iterations; None where they store other elements."""
    accesses = [node for node in ast.walk(loop) if isinstance(node, ast.Subscript)]
    found = [copy.deepcopy(statement) for statement in statements]
    stored = [n for s in found for n in ast.walk(s) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)]
    shapes = {(_array_of(node), len(subscripts_of(node)[1])) for node in stored}
    for array, axes in shapes:
        along = [axis for axis in range(axes) if any(_is_along(a, array, axis, axes, index) for a in accesses)]
        moving = Moved(places, axes, {axis: (index, at) for axis in along})
        found = [moving.visit(statement) for statement in found]
    are_moved = all(count_names([node], ast.Load)[index] for node in stored)
    return found if stored and are_moved else None


class _Sinking:
    """What of an iteration of some loops, a block, may be done in each iteration of the loop inside. may_raise: whether any of it
    may raise something besides what an index does."""

    def __init__(self, nesting: _Nesting, block: Sequence[ast.stmt], inner: ast.stmt, loops: frozenset[str]) -> None:
        self.nesting, self.block, self.inner, self.loops = nesting, block, inner, loops
        self.may_raise = False
        written = {array for statement in block for node in ast.walk(statement) if (array := _stored_array(node))}
        self.changing = {*count_names([inner], ast.Store), *written}

    def parts(self, before: Sequence[ast.stmt], behind: Sequence[ast.stmt]) -> _Parts | None:
        """What stands before and behind the inner loop; None where some of it has to stay there."""
        needed = {*count_names([self.inner, *behind], ast.Load)}
        is_sunk = [False] * len(before)
        while True:
            new = [
                is_already or _has_continue(s) or bool(count_names([s], ast.Store).keys() & needed)
                for s, is_already in zip(before, is_sunk, strict=True)
            ]
            if new == is_sunk:
                break
            is_sunk = new
            needed |= {*count_names([s for s, is_one in zip(before, is_sunk, strict=True) if is_one], ast.Load)}
        sunk = [s for s, is_one in zip(before, is_sunk, strict=True) if is_one]
        first = [s for s, is_one in zip(before, is_sunk, strict=True) if not is_one]
        if not all(map(self._is_set, sunk)) or not self._are_own(before) or not self._are_own(behind):
            return None
        if not all(map(_is_plain, (*first, *behind))) or self._meet(before, is_sunk):
            return None
        set_behind, set_inside = count_names(behind, ast.Store), count_names([self.inner], ast.Store)
        if count_names(behind, ast.Load).keys() & set_inside.keys():
            return None
        if count_names([*before, self.inner], ast.Load).keys() & set_behind.keys():  # in the next iteration
            return None
        return _Parts([self.sunk(s) for s in sunk], first, [*behind])

    def _meet(self, before: Sequence[ast.stmt], is_sunk: Sequence[bool]) -> bool:
        """Whether what is sunk cannot be done ahead of what it stands behind."""
        for k, statement in enumerate(before):
            later = [s for s, is_one in zip(before[k:], is_sunk[k:], strict=True) if is_one]
            if not is_sunk[k] and later:
                touched = count_names([statement], ast.Load, ast.Store).keys()
                if touched & count_names(later, ast.Store).keys() or any(map(jumps, later)):
                    return True
        return False

    def sunk(self, node: ast.AST) -> Any:
        """A copy that stands in the inner loop, with a note in which loops elements are taken."""
        new = copy.deepcopy(node)
        for part in ast.walk(new):
            if isinstance(part, ast.Subscript) and not any(taken.axes is None for taken in taken_of(part)):
                note_taken(part, Taken(self.loops))
        return new

    def _are_own(self, statements: Sequence[ast.stmt]) -> bool:
        """Whether the scalars that statements set have their values from these in every iteration, and nobody else's."""
        set_here = count_names(statements, ast.Store)
        unset = {*set_here}
        everywhere, inside = (count_names(part, ast.Load) for part in (self.nesting.tree.body, self.block))
        for statement in statements:
            if _loads_first(statement, unset):
                return False
            unset -= _surely_set(statement)
        return not unset and all(
            self.nesting.stored[name] == count
            and name not in self.nesting.parameters
            and everywhere[name] == inside[name]
            for name, count in set_here.items()
        )

    def _is_set(self, statement: ast.stmt) -> bool:
        match statement:
            case ast.Assign(targets=targets, value=value):
                return all(map(_names_alone, targets)) and self._is_value(value)
            case ast.AnnAssign(target=ast.Name(), value=ast.expr() as value):
                return self.is_sinkable(value)
            case ast.AugAssign(target=ast.Name(), op=operator, value=value) if isinstance(operator, _NEVER_RAISE):
                return self.is_sinkable(value)
            case ast.If(test=test, body=body, orelse=orelse):
                return self.is_sinkable(test) and all(map(self._is_set, (*body, *orelse)))
            case ast.Continue() | ast.Pass():
                return True
        return False

    def _is_value(self, node: ast.expr) -> bool:
        return all(map(self.is_sinkable, node.elts if isinstance(node, ast.Tuple) else [node]))

    def is_sinkable(self, node: ast.expr) -> bool:
        """Whether an expression has the same value in every iteration of the inner loop, and takes little time to compute."""
        match node:
            case ast.Constant(value=value):
                return isinstance(value, bool | int | float)
            case ast.Name(id=name):
                return name not in self.changing
            case ast.UnaryOp(operand=operand):
                return self.is_sinkable(operand)
            case ast.BinOp(left=left, op=operator, right=right) if isinstance(operator, _NEVER_RAISE):
                return self.is_sinkable(left) and self.is_sinkable(right)
            case ast.BinOp(left=left, op=ast.Div() | ast.FloorDiv() | ast.Mod(), right=right):
                self.may_raise = True
                return self.is_sinkable(left) and self.is_sinkable(right)
            case ast.Compare(left=left, ops=ops, comparators=others):
                is_of_values = not any(isinstance(op, ast.In | ast.NotIn | ast.Is | ast.IsNot) for op in ops)
                return is_of_values and all(map(self.is_sinkable, (left, *others)))
            case ast.BoolOp(values=values):
                return all(map(self.is_sinkable, values))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return all(map(self.is_sinkable, (test, body, orelse)))
            case ast.Subscript(value=ast.Attribute(value=ast.Name(), attr="shape"), slice=ast.Constant()):
                return True
            case ast.Subscript(value=ast.Name(id=array)):
                return array not in self.changing and all(
                    self.nesting.is_affine(index, self.loops) for index in subscripts_of(node)[1]
                )
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
                return self.nesting.is_own(name) and all(map(self.is_sinkable, arguments))
        return False


def _is_plain(statement: ast.stmt) -> bool:
    """Whether a statement is one of those that are done where a row begins or ends."""
    match statement:
        case ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Pass():
            return True
        case ast.If(body=body, orelse=orelse):
            return all(map(_is_plain, (*body, *orelse)))
    return False


def _has_continue(statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.Continue) for node in ast.walk(statement))


def _array_of(node: ast.Subscript) -> str:
    base, _ = subscripts_of(node)
    return base.id if isinstance(base, ast.Name) else ""


def _stored_array(node: ast.AST) -> str:
    """The array of which an element is stored; no name of anything else."""
    return _array_of(node) if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) else ""


def _names_alone(target: ast.expr) -> bool:
    return all(isinstance(part, ast.Name) for part in (target.elts if isinstance(target, ast.Tuple) else [target]))


def _loads_first(statement: ast.stmt, unset: Set[str]) -> bool:
    """Whether a statement reads one of the names that may not be set yet."""
    match statement:
        case ast.If(test=test, body=body, orelse=orelse):
            return bool(count_names([test], ast.Load).keys() & unset) or any(
                _any_loads_first(block, unset) for block in (body, orelse)
            )
        case ast.AugAssign(target=ast.Name(id=name)) if name in unset:
            return True
    return bool(count_names([statement], ast.Load).keys() & unset)


def _any_loads_first(statements: Sequence[ast.stmt], unset: Set[str]) -> bool:
    for statement in statements:
        if _loads_first(statement, unset):
            return True
        unset = unset - _surely_set(statement)
    return False


def _surely_set(statement: ast.stmt) -> set[str]:
    match statement:
        case ast.If(body=body, orelse=orelse):
            if any(isinstance(s, ast.Continue) for s in body):  # what follows is where the other branch leads
                return _all_surely_set(orelse)
            return _all_surely_set(body) & _all_surely_set(orelse)
    return {*count_names([statement], ast.Store)}


def _all_surely_set(statements: Sequence[ast.stmt]) -> set[str]:
    return {name for statement in statements for name in _surely_set(statement)}
