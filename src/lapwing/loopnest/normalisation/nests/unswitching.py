"""Loops whose indices run one way or the other, by a condition that stays the same in them, as a loop for each way (unswitching:
Allen and Cocke, A Catalogue of Optimizing Transformations, 1971; Allen and Kennedy, Optimizing Compilers for Modern
Architectures).

before                                           after
for jj in range(n):                              if 0 < n and mu[m] > 0:
    j = jj if mu[m] > 0 else n - 1 - jj              for jj in range(n):
    u[j] = f(u[j], a[j])                                 u[jj] = f(u[jj], a[jj])
                                                 else:
                                                     for jj in range(n):
                                                         u[n - 1 - jj] = f(u[n - 1 - jj], a[n - 1 - jj])

Each then has indices that are affine in those of its loops. The condition is looked at where the loops have iterations that would
look at it first of all, so that what it raises is raised as in the text.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any

from lapwing.loopnest.normalisation.counted_loops import subscripts_of
from lapwing.loopnest.normalisation.depth import is_deep
from lapwing.loopnest.normalisation.names import blocks_in, count_names, is_builtin, loop_index, own_names, range_ends
from lapwing.syntax_places import placed

_MOST_CONDITIONS = 3  # of one loop, of which there are two to the power of that then
_MOST_STATEMENTS = 60  # in it


def with_unswitched(tree: ast.FunctionDef, meaning: Callable[[str], object]) -> ast.FunctionDef:
    """The function with such loops; the same where it has none. meaning: of names that are not its own."""
    if is_deep(tree) or not any(_direction(node) for node in ast.walk(tree) if isinstance(node, ast.stmt)):
        return tree
    if not is_builtin("range", own_names(tree), meaning):
        return tree
    new = copy.deepcopy(tree)
    unswitching = _Unswitching(new)
    new.body = unswitching.block(new.body)
    return new if unswitching.has_changed else tree


@dataclass(frozen=True)
class _Direction:
    """``name = then if test else otherwise``"""

    name: str
    test: ast.expr
    then: ast.expr
    otherwise: ast.expr


def _direction(statement: ast.stmt) -> _Direction | None:
    """What a statement says of an index, if it does."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.IfExp(test=test, body=then, orelse=otherwise)):
            pass
        case ast.If(
            test=test,
            body=[ast.Assign(targets=[ast.Name(id=name)], value=then)],
            orelse=[ast.Assign(targets=[ast.Name(id=other)], value=otherwise)],
        ) if name == other:
            pass
        case _:
            return None
    return _Direction(name, test, then, otherwise) if _is_index(then) and _is_index(otherwise) else None


def _is_index(node: ast.expr) -> bool:
    """Whether it is made of names and whole numbers."""
    match node:
        case ast.Name() | ast.Constant(value=int()):
            return not isinstance(getattr(node, "value", 0), bool)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _is_index(operand)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult(), right=right):
            return _is_index(left) and _is_index(right)
    return False


class _Unswitching:
    """Goes through a function and changes it."""

    def __init__(self, tree: ast.FunctionDef) -> None:
        self.tree = tree
        self.has_changed = False

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for statement in statements:
            if isinstance(statement, ast.For) and (switch := self._switch(statement)) is not None:
                self.has_changed = True
                found += self.block([switch])
                continue
            for inner in blocks_in(statement):
                inner[:] = self.block(inner)
            found.append(statement)
        return found

    def _switch(self, loop: ast.For) -> ast.If | None:
        """A loop for each outcome of a condition on which directions of it hang, or of loops inside; None where there is none."""
        if sum(isinstance(node, ast.stmt) for node in ast.walk(loop)) > _MOST_STATEMENTS:
            return None
        tests = {ast.unparse(d.test) for s in ast.walk(loop) if isinstance(s, ast.stmt) and (d := _direction(s))}
        if len(tests) > _MOST_CONDITIONS:
            return None
        test: ast.expr | None = None
        key, names = "", set[str]()
        for guards, direction in self._directions(loop):
            if test is None:
                key = ast.unparse(direction.test)
                test = ast.BoolOp(ast.And(), [*guards, copy.deepcopy(direction.test)])
            if ast.unparse(direction.test) == key:  # and in those loops, or inside of them
                names.add(direction.name)
        if test is None:
            return None
        ways: list[list[ast.stmt]] = []
        for holds in (True, False):
            way = copy.deepcopy(loop)
            _Chosen(names, holds, way).visit(way)
            ways.append([way])
        return placed(loop, ast.If(test, *ways))

    def _directions(self, loop: ast.For) -> Iterator[tuple[list[ast.expr], _Direction]]:
        """The directions whose conditions may be looked at before a loop, and when they are looked at."""
        given, changed = count_names([loop], ast.Store, ast.Del), _changed_arrays(loop)
        for guards, indices, direction, rest in _first_directions(loop):
            used = count_names([direction.test, *guards], ast.Load).keys()
            looked_at = {array.id for array in _arrays_of(direction.test)}
            if used & given.keys() or looked_at & changed or not _is_looked_at(direction.test):
                continue
            if self._is_index_inside(direction, loop, rest) and _stay(direction, loop, indices):
                yield guards, direction

    def _is_index_inside(self, direction: _Direction, loop: ast.For, rest: Sequence[ast.stmt]) -> bool:
        """Whether a name is an index, set once in an iteration and looked at in the rest of it; elsewhere it may be that of other
        loops."""
        name = direction.name
        setting = [s for s in ast.walk(loop) if isinstance(s, ast.stmt) and (d := _direction(s)) and d.name == name]
        if len(setting) != 1 or count_names([loop], ast.Store, ast.Del)[name] != count_names(setting, ast.Store)[name]:
            return False
        indices = (node.slice for node in ast.walk(loop) if isinstance(node, ast.Subscript))
        is_subscript = any(count_names([index], ast.Load)[name] for index in indices)
        others = [node for node in ast.walk(self.tree) if isinstance(node, ast.For) and loop_index(node) == name]
        loads = count_names([*rest, *(s for node in others for s in node.body)], ast.Load)[name]
        is_apart = not any(node is loop for other in others for node in ast.walk(other))
        return is_subscript and is_apart and loads == count_names(self.tree.body, ast.Load)[name]


def _stay(direction: _Direction, loop: ast.For, indices: Set[str]) -> bool:
    """Whether what an index is made of is the same throughout an iteration of loops with these indices."""
    stored = count_names([loop], ast.Store, ast.Del)
    used = count_names([direction.then, direction.otherwise], ast.Load)
    return all(stored[name] == int(name in indices) for name in used)


def _first_directions(loop: ast.For) -> Iterator[tuple[list[ast.expr], Set[str], _Direction, Sequence[ast.stmt]]]:
    """What the first iteration of a loop and of loops inside comes to before anything else that might raise or store: under which
    conditions it does, the indices of the loops around it, and what comes behind it."""
    guards: list[ast.expr] = []
    indices: set[str] = set()
    node: ast.stmt | None = loop
    while isinstance(node, ast.For) and (index := loop_index(node)) is not None:
        has_iterations = _has_iterations(node)
        if has_iterations is None:
            return
        guards, indices = [*guards, has_iterations], {*indices, index}
        inner = None
        for place, statement in enumerate(node.body):
            direction = _direction(statement)
            if direction is not None:
                yield guards, indices, direction, node.body[place + 1 :]
            elif not _is_harmless(statement):
                inner = statement
                break
        node = inner


def _has_iterations(loop: ast.For) -> ast.expr | None:
    """The condition under which a loop has iterations; None where its range is not made of numbers and sizes."""
    if (ends := range_ends(loop)) is None:
        return None
    start, stop, step = ends
    if not (_is_size(start) and _is_size(stop)):
        return None
    return ast.Compare(copy.deepcopy(start), [ast.Lt() if step == 1 else ast.Gt()], [copy.deepcopy(stop)])


def _is_size(node: ast.expr) -> bool:
    match node:
        case ast.Subscript(value=ast.Attribute(value=ast.Name(), attr="shape"), slice=ast.Constant()):
            return True
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult(), right=right):
            return _is_size(left) and _is_size(right)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _is_size(operand)
    return _is_index(node)


def _is_harmless(statement: ast.stmt) -> bool:
    """Whether a statement gives a name a number, and nothing else."""
    match statement:
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Assign(targets=[ast.Name()], value=ast.Constant(value=int() | float())):
            return True
        case ast.Assign(targets=[ast.Name()], value=value):
            return _is_index(value)
    return False


def _arrays_of(node: ast.expr) -> Iterator[ast.Name]:
    """The arrays of which an expression looks at elements."""
    for part in ast.walk(node):
        if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name):
            yield part.value


def _changed_arrays(loop: ast.For) -> Set[str]:
    """The names by which a loop may store to arrays, or pass them to what does."""
    found = set()
    for node in ast.walk(loop):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            base, _ = subscripts_of(node)
            found |= {n.id for n in ast.walk(base) if isinstance(n, ast.Name)}
        elif isinstance(node, ast.AugAssign):
            found |= count_names([node.target], ast.Store).keys()
        elif isinstance(node, ast.Call):
            found |= {n.id for a in (*node.args, *(k.value for k in node.keywords)) for n in _passed(a)}
    return found


def _passed(node: ast.expr) -> Iterator[ast.Name]:
    """Names that stand for themselves in an argument: of elements there are only values."""
    if isinstance(node, ast.Name):
        yield node
    elif not isinstance(node, ast.Subscript):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from _passed(child)


def _is_looked_at(node: ast.expr) -> bool:
    """Whether a condition compares numbers and elements, and does nothing else."""
    match node:
        case ast.Compare(left=left, ops=ops, comparators=others):
            of_values = not any(isinstance(op, ast.In | ast.NotIn | ast.Is | ast.IsNot) for op in ops)
            return of_values and all(map(_is_looked_at, (left, *others)))
        case ast.BoolOp(values=values):
            return all(map(_is_looked_at, values))
        case ast.UnaryOp(operand=operand):
            return _is_looked_at(operand)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Mod(), right=right):
            return _is_looked_at(left) and _is_looked_at(right)
        case ast.Subscript(value=ast.Name()):
            return all(map(_is_index, subscripts_of(node)[1]))
        case ast.Constant(value=value):
            return isinstance(value, bool | int | float)
    return isinstance(node, ast.Name)


class _Chosen(ast.NodeTransformer):
    """Puts what an index is, where a condition holds or does not, in the place of its name."""

    def __init__(self, names: Set[str], holds: bool, loop: ast.For) -> None:
        self.values = {
            d.name: d.then if holds else d.otherwise
            for s in ast.walk(loop)
            if isinstance(s, ast.stmt) and (d := _direction(s)) and d.name in names
        }

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.stmt) and (direction := _direction(node)) and direction.name in self.values:
            return None
        return super().visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self.values and isinstance(node.ctx, ast.Load):
            return ast.copy_location(copy.deepcopy(self.values[node.id]), node)
        return node
