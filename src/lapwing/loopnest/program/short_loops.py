"""Loops that Python does in less time than a call of compiled code takes, where there are few iterations.

    for k in range(i):                        if trips(i) * 260 <= 20000 and region.knows(a):
        s -= a[i, k] * a[j, k]                    for k in range(i):
                                                      s -= a[i, k] * a[j, k]
                                              else:
                                                  s = region(a, i, j, s)

That is for loops that have the same bits either way. On arrays that no call of the region has been on it is called all the same,
so that what is refused is refused.

Loops around regions that are compiled in less than a call takes are better compiled as a whole, in their own order:

    for t in range(steps):                   found = whole(u, v, n, steps) if trips(n) * 260 <= 8000000 else None
        region 1(u, v, n)                    if found is None:
        region 2(u, v, n)                        for t in range(steps):
                                                     region 1(u, v, n)
                                                     region 2(u, v, n)
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from lapwing.loopnest.program.variables.names import bound_names

TRIPS = "trips of a loop over"  # not a name that Python allows, so nobody else's
BUDGET = 20_000  # nanoseconds: what a call takes
COLD = 50  # times as long loops may be for it, if they are as good as a whole: calls that find caches full of arrays take longer
AHEAD = 4  # times less, where sweeps are done ahead
FASTER = 400  # times that compiled loops are, at most, where nothing joins their iterations
_SUBSCRIPT, _OPERATION, _CALL, _STATEMENT = 50, 25, 100, 10  # nanoseconds that Python takes for each
_SIZES = frozenset({"shape", "size"})
_Number = int | ast.expr  # known, or told by an expression of the driver's
_LOOPS = (ast.While, ast.AsyncFor, ast.comprehension, ast.FunctionDef, ast.Lambda)


def region_name(name: str) -> str:
    """The driver's name for what is called in the place of a loop, not one that Python allows."""
    return f"region {name}"


def short_test(statement: ast.stmt, name: str, arrays: Sequence[str]) -> ast.expr | None:
    """An expression of the driver's that is true where Python does a loop in less than the budget; None where that is not known
    before. In it TRIPS is the function ``trips``. name: of the region; arrays: that it is given, as the driver calls them."""
    cost = _cost(statement)
    if cost is None:
        return None
    knows = ast.Attribute(ast.Name(region_name(name), ast.Load()), "knows", ast.Load())
    known: ast.expr = ast.Call(knows, [ast.Name(array, ast.Load()) for array in arrays], [])
    return ast.BoolOp(ast.And(), [ast.Compare(_expression(cost), [ast.LtE()], [ast.Constant(BUDGET)]), known])


def budget(gain: bool, ahead: bool) -> int:
    """Nanoseconds that regions may compute for, on an average, to be compiled with the loop around them. gain: whether tiles may
    have a better order for any: not where no dependence joins iterations of the innermost loop, nor where it is done in its own
    order anyway. ahead: whether sweeps may be done ahead (``lookahead``), so that there are fewer calls."""
    return BUDGET * COLD if not gain else BUDGET // AHEAD if ahead else BUDGET


def small_test(
    regions: Sequence[ast.stmt], changing: frozenset[str], known: frozenset[str], budget: int
) -> ast.expr | None:
    """An expression of the driver's that is true where the regions in a loop compute for no longer, on an average, than the
    budget, in nanoseconds; None where that is not known before the loop. changing: the names that the loop makes something else;
    known: those that have a value before it."""
    costs = [_of_loop(region, changing) if isinstance(region, ast.For) else None for region in regions]
    total: ast.expr | None = None
    for cost in costs:
        if cost is None:
            return None
        total = _expression(cost) if total is None else ast.BinOp(total, ast.Add(), _expression(cost))
    if total is None:
        return None
    read = {node.id for node in ast.walk(total) if isinstance(node, ast.Name)}
    if not read <= known | {TRIPS, "len"}:
        return None
    return ast.Compare(total, [ast.LtE()], [ast.Constant(budget * FASTER * len(costs))])


def is_short(statement: ast.stmt) -> bool:
    """Whether that is so whatever the arguments are."""
    cost = _cost(statement)
    return isinstance(cost, int) and cost <= BUDGET


def trips(*over: Any) -> float:
    """How many iterations a loop over a range with these ends and this step has, or one over an array or a row of values."""
    try:
        return len(range(*over))
    except (TypeError, ValueError, OverflowError):
        try:
            return len(over[0]) if len(over) == 1 else float("inf")
        except TypeError:
            return float("inf")


def _cost(statement: ast.stmt) -> _Number | None:
    """Nanoseconds that Python takes for a loop."""
    if not isinstance(statement, ast.For) or any(isinstance(node, _LOOPS) for node in ast.walk(statement)):
        return None
    return _of_loop(statement, frozenset(bound_names([statement])))


def _of_loop(
    loop: ast.For, own: frozenset[str], largest: Mapping[str, ast.expr] = MappingProxyType({})
) -> _Number | None:
    """own: what the outermost loop assigns; largest: what indices of loops around are at the most."""
    iterated = _with_largest(loop.iter, own, largest)
    if isinstance(loop.target, ast.Name) and (end := _largest_of(iterated)) is not None:
        largest = {**largest, loop.target.id: end}
    count, cost = _count(iterated, own), _of_statements([*loop.body, *loop.orelse], own, largest)
    if count is None:
        count = _elements_along(loop, own)
    if count is None or cost is None:
        return None
    if isinstance(count, int) and isinstance(cost, int):
        return count * cost
    return ast.BinOp(_expression(count), ast.Mult(), _expression(cost))


def _largest_of(iterated: ast.expr) -> ast.expr | None:
    """What the index of a loop over a range is at the most, about."""
    match iterated:
        case ast.Call(func=ast.Name("range"), args=[end] | [_, end]):
            return end
        case ast.Call(func=ast.Name("range"), args=[start, end, step]):
            return start if isinstance(step, ast.UnaryOp) else end
    return None


def _with_largest(iterated: ast.expr, own: frozenset[str], largest: Mapping[str, ast.expr]) -> ast.expr:
    """A range with as many numbers as one with ends that hang on indices of loops around has at the most, about: the rows of a
    triangle are as long as the longest."""
    match iterated:
        case ast.Call(func=ast.Name("range") as function, args=[_, *_] as ends, keywords=[]):
            lower = 1 if len(ends) == 3 and isinstance(ends[2], ast.UnaryOp) else 0
            found: list[ast.expr] = []
            for position, end in enumerate(ends):
                changing = own & _names(end)
                if len(ends) > 1 and position == lower and changing and changing <= largest.keys():
                    found.append(ast.Constant(-lower))
                else:
                    found.append(_Largest(largest).visit(copy.deepcopy(end)))
            return ast.Call(function, found, [])
    return iterated


class _Largest(ast.NodeTransformer):
    """Puts for indices what they are at the most, or 0 where they are subtracted."""

    def __init__(self, largest: Mapping[str, ast.expr]) -> None:
        self.largest = largest

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return copy.deepcopy(self.largest.get(node.id, node))

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        node.left = self.visit(node.left)
        if isinstance(node.op, ast.Sub) and _names(node.right) & self.largest.keys():
            node.right = ast.Constant(0)
        else:
            node.right = self.visit(node.right)
        return node


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _of_statements(
    statements: Sequence[ast.stmt], own: frozenset[str], largest: Mapping[str, ast.expr]
) -> _Number | None:
    loops = [loop for statement in statements for loop in _outermost_loops(statement)]
    inside = {id(node) for loop in loops for node in ast.walk(loop)}
    nodes = (node for statement in statements for node in ast.walk(statement))
    cost: _Number = sum(_own_cost(node) for node in nodes if id(node) not in inside)
    for loop in loops:
        of_loop = _of_loop(loop, own, largest)
        if of_loop is None:
            return None
        if isinstance(cost, int) and isinstance(of_loop, int):
            cost += of_loop
        else:
            cost = ast.BinOp(_expression(cost), ast.Add(), _expression(of_loop))
    return cost


def _count(over: ast.expr, own: frozenset[str]) -> _Number | None:
    """The number of iterations; None where to ask for it may do something, or comes too early."""
    match over:
        case ast.Call(func=ast.Name("range"), args=[_, *_] as ends, keywords=[]):
            pass
        case ast.Call(func=ast.Name("enumerate"), args=[ast.Name() as name], keywords=[]):
            ends = [name]
        case ast.Name():
            ends = [over]
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return None if any(isinstance(e, ast.Starred) for e in elements) else len(elements)
        case _:
            return None
    if not all(map(_only_looks, ends)):
        return None
    if any(own & _names(end) for end in ends):
        return None
    constants = [end.value for end in ends if isinstance(end, ast.Constant) and isinstance(end.value, int)]
    if isinstance(over, ast.Call) and len(constants) == len(ends):
        count = trips(*constants)
        return int(count) if count < BUDGET else None
    return ast.Call(ast.Name(TRIPS, ast.Load()), copy.deepcopy(ends), [])


def _elements_along(loop: ast.For, own: frozenset[str]) -> _Number | None:
    """How many iterations a loop over a range has at the most, about, whose index is one of an array: as many as there are
    elements. None where there is no such array from before."""
    if not (isinstance(loop.target, ast.Name) and isinstance(loop.iter, ast.Call)):
        return None
    for node in (node for statement in loop.body for node in ast.walk(statement)):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id not in own:
            subscripts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            axes = [k for k, s in enumerate(subscripts) if isinstance(s, ast.Name) and s.id == loop.target.id]
            if axes:
                # One index may be that of a list, whose length is known to the same function.
                along = f"{node.value.id}.shape[{axes[0]}]" if len(subscripts) > 1 else node.value.id
                return ast.Call(ast.Name(TRIPS, ast.Load()), [ast.parse(along, mode="eval").body], [])
    return None


def _expression(number: _Number) -> ast.expr:
    return ast.Constant(number) if isinstance(number, int) else number


def _only_looks(node: ast.expr) -> bool:
    """Whether an expression does nothing but find a number or a row."""
    match node:
        case ast.Name() | ast.Constant():
            return True
        case ast.BinOp(left=left, right=right):
            return _only_looks(left) and _only_looks(right)
        case ast.UnaryOp(operand=operand):
            return _only_looks(operand)
        case ast.Attribute(value=ast.Name(), attr=attribute):
            return attribute in _SIZES
        case ast.Subscript(value=ast.Attribute(value=ast.Name(), attr="shape"), slice=ast.Constant()):
            return True
        case ast.Call(func=ast.Name("len"), args=[ast.Name()], keywords=[]):
            return True
        case _:
            return False


def _outermost_loops(node: ast.AST) -> Iterator[ast.For]:
    if isinstance(node, ast.For):
        yield node
        return
    for child in ast.iter_child_nodes(node):
        yield from _outermost_loops(child)


def _own_cost(node: ast.AST) -> int:
    match node:
        case ast.Subscript():
            return _SUBSCRIPT
        case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.BoolOp() | ast.AugAssign():
            return _OPERATION
        case ast.Call():
            return _CALL
        case ast.stmt():
            return _STATEMENT
        case _:
            return 0
