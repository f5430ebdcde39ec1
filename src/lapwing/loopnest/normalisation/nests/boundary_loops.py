"""Loops along the boundary of an array get a loop of one iteration for the axis that they do not go along.

    before                                   after
    for j in range(m):                       for k in range(0, 1):
        u[0, j] = u[1, j]                        for j in range(m):
        u[n - 1, j] = 0.0                            u[k, j] = u[k + 1, j]
                                             for k in range(n - 1, n):
                                                 for j in range(m):
                                                     u[k, j] = 0.0

They are then cut along the same axes as the nests around them, in the same time loop: whoever has the boundary computes it, and
no array has to be brought together. Loops elsewhere stay.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from lapwing.loopnest.normalisation.names import all_names, fresh_name, is_range, names_set_once
from lapwing.syntax_places import placed


def with_boundary_loops(tree: ast.FunctionDef) -> ast.FunctionDef:
    """The function with such loops; the same where it has none."""
    lifting = _Lifting(tree)
    found = lifting.visit(copy.deepcopy(tree))
    assert isinstance(found, ast.FunctionDef)
    return found if lifting.has_changed else tree


class _Lifting(ast.NodeTransformer):
    """Changes loops along boundaries that stand beside nests, in a loop around them all."""

    def __init__(self, tree: ast.FunctionDef) -> None:
        self.taken = all_names(tree)
        self.places = Places(names_set_once(tree))
        self.has_changed = False

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        node.body = self._block(node.body)
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        self.generic_visit(node)
        node.body = self._block(node.body)
        return node

    def _block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        nests = [s for s in statements if isinstance(s, ast.For) and len(_loops(s)[0]) > 1]
        done: list[ast.stmt] = []
        for statement in statements:
            is_beside = any(nest is not statement for nest in nests)
            done += self._lifted(statement) if is_beside and isinstance(statement, ast.For) else [statement]
        return done

    def _lifted(self, node: ast.For) -> list[ast.stmt]:
        loops, body = _loops(node)
        indices = [loop.target.id for loop in loops if isinstance(loop.target, ast.Name)]
        if len(indices) < len(loops) or len(set(indices)) < len(indices) or any(loop.orelse for loop in loops):
            return [node]
        stores = [_Store.of(statement, indices) for statement in body]
        known = [store for store in stores if store is not None]
        if len(known) > 1 and any(_reads_elements(loop.iter) for loop in loops):
            return [node]  # Python asks for bounds before all of them
        if len(known) < len(stores) or not self._are_alike(known, indices):
            return [node]
        found = [self._with_loops(store, loops, indices) for store in known]
        lifted = [loop for loop in found if loop is not None]
        if not known or len(lifted) < len(known) or not all(store.places for store in known):
            return [node]
        self.has_changed = True
        return [placed(node, loop) for loop in lifted]

    def _are_alike(self, stores: Sequence[_Store], indices: Sequence[str]) -> bool:
        """Whether each statement may be done for all iterations before the next is done for any: elements that both touch are
        then of the same iteration."""
        if len(stores) == 1:
            return True
        written = {store.array for store in stores}
        accesses = [access for store in stores for access in store.accesses if _base(access) in written]
        return all([_name(i) for i in _indices(a) if _is_moving(i, indices)] == list(indices) for a in accesses)

    def _with_loops(self, store: _Store, loops: Sequence[ast.For], indices: Sequence[str]) -> ast.For | None:
        """The loops around one statement; None where it is not on a boundary alone."""
        values = {axis: self.places.index(store.array, axis, index) for axis, index in store.places.items()}
        if any(value is None for value in values.values()):
            return None
        names: dict[int, str] = {}
        around: list[tuple[str, ast.expr]] = []
        for axis, index in enumerate(store.subscripts):
            value = values.get(axis)
            if value is None:
                position = indices.index(_name(index))
                around.append((indices[position], loops[position].iter))
            else:
                names[axis] = fresh_name("at", self.taken)
                end = Place(value.base, value.number + 1)
                around.append((names[axis], _range(value.expression(), end.expression())))
        if [name for name, _ in around if name in indices] != list(indices):
            # In another order than the axes: bounds may depend on outer loops.
            inner = [(i, loop.iter) for i, loop in zip(indices, loops, strict=True)]
            around = [pair for pair in around if pair[0] not in indices] + inner
        moved = {axis: (names[axis], value) for axis, value in values.items() if value is not None}
        statement = Moved(self.places, len(store.subscripts), moved).visit(copy.deepcopy(store.statement))
        if any(_base(a) == store.array and self._differs(a, store, names) for a in _accesses(statement)):
            return None
        body: list[ast.stmt] = [statement]
        for name, iterable in reversed(around):
            body = [ast.For(ast.Name(name, ast.Store()), copy.deepcopy(iterable), body, [])]
        (loop,) = body
        assert isinstance(loop, ast.For)
        return loop

    def _differs(self, access: ast.Subscript, store: _Store, names: dict[int, str]) -> bool:
        """Whether an access of the written array is at a place that has not become one beside the loops' own."""
        indices = _indices(access)
        if len(indices) != len(store.subscripts):
            return True
        return any(
            name not in {n.id for n in ast.walk(indices[axis]) if isinstance(n, ast.Name)}
            for axis, name in names.items()
        )


@dataclass(frozen=True)
class Place:
    """A place along an axis that no loop changes: so far beyond ``base``, a name or a length; beyond 0 where that is None."""

    base: ast.expr | None
    number: int

    def moved(self, by: int) -> Place:
        return Place(self.base, self.number + by)

    def expression(self) -> ast.expr:
        if self.base is None:
            return ast.Constant(self.number)
        if not self.number:
            return copy.deepcopy(self.base)
        op = ast.Add() if self.number > 0 else ast.Sub()
        return ast.BinOp(copy.deepcopy(self.base), op, ast.Constant(abs(self.number)))

    def beyond(self, other: Place) -> int | None:
        """How far this is beyond another place, where that is a number."""
        same = (self.base and ast.dump(self.base)) == (other.base and ast.dump(other.base))
        return self.number - other.number if same else None


@dataclass(frozen=True)
class Places:
    """``fixed``: the names that always stand for the same."""

    fixed: Set[str]

    def place(self, node: ast.expr) -> Place | None:
        """A fixed number: ``n - 1``, ``0``, ``u.shape[0]``, ``min(n, m)``."""
        match node:
            case ast.Constant(value=int() as value) if not isinstance(value, bool):
                return Place(None, value)
            case ast.Name(id=name) if name in self.fixed:
                return Place(node, 0)
            case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr="shape"), slice=ast.Constant()) if (
                name in self.fixed
            ):
                return Place(node, 0)
            case ast.Call(func=ast.Name(id="max" | "min"), args=[_, _, *_] as parts, keywords=[]) if all(
                map(self.place, parts)
            ):
                return Place(node, 0)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=ast.Constant(value=int() as value)):
                begin = self.place(left)
                return begin and begin.moved(value if isinstance(op, ast.Add) else -value)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right) if self.place(left) and self.place(right):
                return Place(node, 0)
        return None

    def index(self, array: str, axis: int, node: ast.expr) -> Place | None:
        """The same of an index, which may count from the end of the axis: ``-1``."""
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
                shape = ast.Attribute(ast.Name(array, ast.Load()), "shape", ast.Load())
                return Place(ast.Subscript(shape, ast.Constant(axis), ast.Load()), -value)
        return self.place(node)


@dataclass(frozen=True)
class _Store:
    """An assignment to an element. places: its indices that no loop changes, by axis."""

    statement: ast.Assign | ast.AugAssign
    array: str
    subscripts: tuple[ast.expr, ...]
    places: dict[int, ast.expr] = field(default_factory=dict)

    @staticmethod
    def of(statement: ast.stmt, indices: Sequence[str]) -> _Store | None:
        """None for any other statement, and where loops do not go along axes one by one."""
        match statement:
            case ast.Assign(targets=[ast.Subscript() as target]) | ast.AugAssign(target=ast.Subscript() as target):
                pass
            case _:
                return None
        array, subscripts = _base(target), _indices(target)
        moving = [index for index in subscripts if _is_moving(index, indices)]
        if array is None or sorted(_name(index) for index in moving) != sorted(indices):
            return None
        places = {axis: index for axis, index in enumerate(subscripts) if not _is_moving(index, indices)}
        assert isinstance(statement, ast.Assign | ast.AugAssign)
        return _Store(statement, array, tuple(subscripts), places)

    @property
    def accesses(self) -> list[ast.Subscript]:
        return list(_accesses(self.statement))


class Moved(ast.NodeTransformer):
    """Puts loop indices in the place of fixed ones, also beside the one that is stored to. axes: how many an array has of which
    elements are moved. moved: the index of a loop, and where it is, by axis."""

    def __init__(self, places: Places, axes: int, moved: Mapping[int, tuple[str, Place]]) -> None:
        self.places, self.axes, self.moved = places, axes, moved

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        indices, array = _indices(node), _base(node)
        if array is None or len(indices) != self.axes:
            return node
        for axis, (name, value) in self.moved.items():
            place = self.places.index(array, axis, indices[axis])
            beyond = None if place is None else place.beyond(value)
            if beyond is not None:
                from_end = isinstance(indices[axis], ast.UnaryOp)
                indices[axis] = ast.Name(name, ast.Load())
                if beyond:
                    op = ast.Add() if beyond > 0 else ast.Sub()
                    indices[axis] = ast.BinOp(indices[axis], op, ast.Constant(abs(beyond)))
                # Of an array that has fewer elements it is no index, while one below 0 may be.
                indices[axis].counted_from_end = from_end  # type: ignore[attr-defined]
        node.slice = indices[0] if len(indices) == 1 else ast.Tuple(indices, ast.Load())
        return node


def _loops(node: ast.For) -> tuple[list[ast.For], list[ast.stmt]]:
    """The loops that stand in each other with nothing beside them, over ranges, and what is in the innermost."""
    loops: list[ast.For] = []
    body: list[ast.stmt] = [node]
    while len(body) == 1 and isinstance(loop := body[0], ast.For) and is_range(loop.iter):
        loops.append(loop)
        body = [s for s in loop.body if not isinstance(s, ast.Pass)]
    return loops, body


def _reads_elements(node: ast.expr) -> bool:
    parts = (part for part in ast.walk(node) if isinstance(part, ast.Subscript))
    return any(not isinstance(part.value, ast.Attribute) for part in parts)


def _accesses(node: ast.AST) -> Iterator[ast.Subscript]:
    """Elements of arrays."""
    return (n for n in ast.walk(node) if isinstance(n, ast.Subscript) and not isinstance(n.value, ast.Attribute))


def _base(node: ast.Subscript) -> str | None:
    return node.value.id if isinstance(node.value, ast.Name) else None


def _indices(node: ast.Subscript) -> list[ast.expr]:
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def _is_moving(index: ast.expr, indices: Sequence[str]) -> bool:
    return any(isinstance(n, ast.Name) and n.id in indices for n in ast.walk(index))


def _name(index: ast.expr) -> str:
    """A loop's index that is used as it is; no name for anything else."""
    return index.id if isinstance(index, ast.Name) else ""


def _range(begin: ast.expr, end: ast.expr) -> ast.Call:
    return ast.Call(ast.Name("range", ast.Load()), [copy.deepcopy(begin), copy.deepcopy(end)], [])
