"""Loops with something beside the loop in them, as perfect nests.

    before                                   after
    for i in range(1, n):                    for i in range(1, n):
        x = a[i - 1]                             for j in range(0, max(m, 1)):
        if skipped[i]:                               x = a[i - 1]
            continue                                 if skipped[i]:
        d[i, 0] = i * gap                                continue
        for j in range(1, m):                        if j == 0:
            d[i, j] = f(d[i, j - 1], x)                  d[i, j] = i * gap
                                                     else:
                                                         d[i, j] = f(d[i, j - 1], x)

What an iteration of the outer loop sets, or asks, is set, or asked, in each of the inner loop (code sinking: Wolfe, High
Performance Compilers for Parallel Computing, 1996): only what comes to the same there, has no effects and raises nothing but for
an index, of which is noted in which loops it is taken (``taken_in``). What is done to the element before a row's first one, or
behind its last one, becomes one more iteration of the inner loop (statement embedding: Ahmed, Mateev, Pingali, ICS 2000); it is
done where there are no others, too.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import Any

from lapwing.loopnest.normalisation.boundary_loops import Moved, Place, Places
from lapwing.loopnest.normalisation.counted_loops import subscripts_of
from lapwing.loopnest.normalisation.forward_substitution import count_names, jumps
from lapwing.loopnest.normalisation.names import argument_names, is_range, names_set_once
from lapwing.syntax_places import placed

_FUNCTIONS = {"abs": abs, "max": max, "min": min}
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
class _Sunk:
    """What stands before an inner loop: what is sunk into it, and what is done to the elements before the first of its rows."""

    sets: list[ast.stmt]
    stores: list[ast.stmt]


class _Nesting:
    """Goes down a nest and changes it."""

    def __init__(self, tree: ast.FunctionDef, meaning: Callable[[str], object]) -> None:
        self.tree, self.meaning = tree, meaning
        self.has_changed = False
        self.parameters = argument_names(tree)
        self.stored = count_names(tree.body, ast.Store, ast.Del)
        self.places = Places(names_set_once(tree))

    def loop(self, node: ast.For, around: tuple[str, ...]) -> None:
        if (index := _index_of(node)) is None:
            return
        around = (*around, index)
        if (inner := self._inner(node.body, around)) is None:
            return
        node.body = [inner]
        self.loop(inner, around)

    def _inner(self, block: Sequence[ast.stmt], around: tuple[str, ...]) -> ast.For | None:
        """The loop that is all there is in a block, once what stands beside it is in it; None where that cannot be."""
        block = [statement for statement in block if not isinstance(statement, ast.Pass)]
        loops = [k for k, s in enumerate(block) if any(isinstance(n, ast.For | ast.While) for n in ast.walk(s))]
        if len(loops) != 1:
            return None
        before, inner, behind = block[: loops[0]], block[loops[0]], block[loops[0] + 1 :]
        if isinstance(inner, ast.For) and not (before or behind):
            return inner
        sinking = _Sinking(self, block, inner, frozenset(around))
        if isinstance(inner, ast.If):
            within = self._inner(inner.body, around) if not (inner.orelse or behind) else None
            if within is None or not sinking.is_sinkable(inner.test):
                return None
            test = sinking.sunk(inner.test)
            within.body = [placed(inner, ast.If(test, within.body, []))]
            inner = within
        if not isinstance(inner, ast.For) or _index_of(inner) is None or (sunk := sinking.before(before)) is None:
            return None
        if sunk.stores and behind:
            return None
        bounds = count_names([ast.Expr(inner.iter)], ast.Load)
        if bounds.keys() & count_names(sunk.sets, ast.Store).keys() or not self._embed(inner, sunk.stores, behind):
            return None
        inner.body = [*sunk.sets, *inner.body]
        self.has_changed = True
        return inner

    def _embed(self, loop: ast.For, before: Sequence[ast.stmt], behind: Sequence[ast.stmt]) -> bool:
        """Whether a loop has got an iteration more for what is done before its first one, or behind its last one."""
        if not (before or behind):
            return True
        index, ends = _index_of(loop), _ends(loop)
        if index is None or ends is None or not all(self.is_own(name, _FUNCTIONS[name]) for name in ("max", "min")):
            return False
        begin, end = map(self.places.place, ends)
        outside = count_names(self.tree.body, ast.Load)[index] - count_names([loop], ast.Load)[index]
        if begin is None or end is None or outside or (behind and jumps(loop)):
            return False
        at = begin.moved(-1) if before else end
        statements = [self._at_end(s, index, at, loop) for s in before or behind]
        known = [s for s in statements if s is not None]
        if len(known) < len(statements) or (at.base is None and at.number < 0):
            return False
        if before:
            bounds = [at.expression(), _extreme("max", begin, end)]
        else:
            bounds = [_extreme("min", begin, end), end.moved(1).expression()]
        test = ast.Compare(ast.Name(index, ast.Load()), [ast.Eq()], [at.expression()])
        loop.iter = ast.Call(ast.Name("range", ast.Load()), bounds, [])
        loop.body = [ast.If(test, known, loop.body)]
        placed(loop, loop)
        return True

    def _at_end(self, statement: ast.stmt, index: str, at: Place, loop: ast.For) -> ast.stmt | None:
        """A store before or behind a loop over rows, as one of an iteration of the loop; None where it is to another element."""
        target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
        if not _is_store(statement) or not isinstance(target, ast.Subscript):
            return None
        (base, axes), accesses = subscripts_of(target), [n for n in ast.walk(loop) if isinstance(n, ast.Subscript)]
        if not isinstance(base, ast.Name):
            return None
        along = [
            axis for axis in range(len(axes))
            if any(_is_along(access, base.id, axis, len(axes), index) for access in accesses)
        ]  # fmt: skip
        moved = Moved(self.places, len(axes), {axis: (index, at) for axis in along}).visit(copy.deepcopy(statement))
        is_moved = count_names([moved], ast.Load)[index] > count_names([statement], ast.Load)[index]
        return moved if is_moved else None

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

    def is_own(self, name: str, function: object) -> bool:
        """Whether a name stands for a function of Python's own."""
        return name not in self.parameters and not self.stored[name] and self.meaning(name) is function


def _is_along(access: ast.Subscript, array: str, axis: int, axes: int, index: str) -> bool:
    """Whether an access of an array with so many axes goes along one of them with a loop."""
    base, indices = subscripts_of(access)
    is_of_array = isinstance(base, ast.Name) and base.id == array and len(indices) == axes
    return is_of_array and bool(count_names([ast.Expr(indices[axis])], ast.Load)[index])


def _extreme(function: str, one: Place, other: Place) -> ast.expr:
    """The lesser or greater of two places."""
    if (beyond := one.beyond(other)) is not None:
        return (one if (beyond > 0) == (function == "max") else other).expression()
    return ast.Call(ast.Name(function, ast.Load()), [one.expression(), other.expression()], [])


class _Sinking:
    """What of an iteration of some loops, a block, may be done in each iteration of the loop inside."""

    def __init__(self, nesting: _Nesting, block: Sequence[ast.stmt], inner: ast.stmt, loops: frozenset[str]) -> None:
        self.nesting, self.block, self.loops = nesting, block, loops
        written = {base for statement in block for node in ast.walk(statement) if (base := _stored_array(node))}
        self.changing = {*count_names([inner], ast.Store), *written}

    def before(self, statements: Sequence[ast.stmt]) -> _Sunk | None:
        """What stands before the inner loop; None where some of it has to stay there."""
        sets = [s for s in statements if not _is_store(s)]
        stores = [s for s in statements if _is_store(s)]
        if stores and any(jumps(s) for s in statements[statements.index(stores[0]) :]):
            return None
        if not all(map(self._is_set, sets)) or not self._are_own(statements):
            return None
        return _Sunk([self.sunk(s) for s in sets], stores)

    def sunk(self, node: ast.AST) -> Any:
        """A copy that stands in the inner loop, with a note in which loops elements are taken."""
        new = copy.deepcopy(node)
        for part in ast.walk(new):
            if isinstance(part, ast.Subscript) and not hasattr(part, "taken_in"):
                part.taken_in = self.loops  # type: ignore[attr-defined]
        return new

    def _are_own(self, statements: Sequence[ast.stmt]) -> bool:
        """Whether the scalars that statements set have their values from these in every iteration, and nobody else's."""
        set_here, unset = count_names(statements, ast.Store), {*count_names(statements, ast.Store)}
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
        """Whether an expression has the same value in every iteration of the inner loop, and raises nothing but for an index."""
        match node:
            case ast.Constant(value=value):
                return isinstance(value, bool | int | float)
            case ast.Name(id=name):
                return name not in self.changing
            case ast.UnaryOp(operand=operand):
                return self.is_sinkable(operand)
            case ast.BinOp(left=left, op=operator, right=right) if isinstance(operator, _NEVER_RAISE):
                return self.is_sinkable(left) and self.is_sinkable(right)
            case ast.BinOp(left=left, op=ast.Div() | ast.FloorDiv() | ast.Mod(), right=ast.Constant(value=by)):
                return isinstance(by, int | float) and by != 0 and self.is_sinkable(left)
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
                return self.nesting.is_own(name, _FUNCTIONS[name]) and all(map(self.is_sinkable, arguments))
        return False


def _is_store(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assign(targets=[ast.Subscript()]) | ast.AugAssign(target=ast.Subscript()):
            return True
    return False


def _stored_array(node: ast.AST) -> str:
    """The array of which an element is stored; no name of anything else."""
    if not (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)):
        return ""
    base, _ = subscripts_of(node)
    return base.id if isinstance(base, ast.Name) else ""


def _names_alone(target: ast.expr) -> bool:
    return all(isinstance(part, ast.Name) for part in (target.elts if isinstance(target, ast.Tuple) else [target]))


def _loads_first(statement: ast.stmt, unset: Set[str]) -> bool:
    """Whether a statement reads one of the names that may not be set yet."""
    match statement:
        case ast.If(test=test, body=body, orelse=orelse):
            return bool(count_names([ast.Expr(test)], ast.Load).keys() & unset) or any(
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


def _index_of(loop: ast.stmt) -> str | None:
    match loop:
        case ast.For(target=ast.Name(id=name), iter=iterable, orelse=[]) if is_range(iterable):
            return name
    return None


def _ends(loop: ast.For) -> tuple[ast.expr, ast.expr] | None:
    """Where a range with step 1 begins and ends."""
    match loop.iter:
        case ast.Call(args=[stop], keywords=[]):
            return ast.Constant(0), stop
        case (
            ast.Call(args=[start, stop], keywords=[]) | ast.Call(args=[start, stop, ast.Constant(value=1)], keywords=[])
        ):
            return start, stop
    return None
