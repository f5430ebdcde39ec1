"""Statements on whole arrays and their slices as loops over elements (scalarisation; Allen and Kennedy, Optimizing Compilers for
Modern Architectures, 2001, chapter 13): what a loop copies and fills.

    un = u.copy()                for i in range(un.shape[0]):
                                     for j in range(un.shape[1]):
                                         un[i, j] = u[i, j]
    u[:, -1] = 0.0               for i in range(u.shape[0]):
                                     u[i, -1] = 0.0
    row = np.zeros(n)            for i in range(row.shape[0]):
                                     row[i] = 0

A copy, or a new array of a size that stays the same, that nobody reads after the loop is made in the same memory each time.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lapwing.loopnest.normalisation.names import fresh_name
from lapwing.loopnest.program.variables.names import bound_names
from lapwing.loopnest.program.whole_arrays.exchanges import NotRewrittenError
from lapwing.syntax_places import placed


@dataclass
class ElementLoops:
    """A loop with loops in the place of such statements. copies: by name, what makes the memory for arrays that it made; copied:
    the arrays that those are copies of, but for ``new`` ones; alike: pairs of arrays that are to have one shape and dtype; edges:
    those of which slices are taken at fixed indices, which raises whether a slice has elements or not. stands_for: by identity,
    the statement of the body before in whose place one stands."""

    loop: ast.For | ast.While
    copies: dict[str, ast.expr] = field(default_factory=dict)
    copied: dict[str, str] = field(default_factory=dict)
    alike: list[tuple[str, str]] = field(default_factory=list)
    edges: set[str] = field(default_factory=set)
    stands_for: dict[int, ast.stmt] = field(default_factory=dict)

    def of(self, array: str) -> str:
        """The array that one is a copy of, or itself."""
        return self.copied.get(array, array)

    @property
    def new(self) -> set[str]:
        """Arrays that it made anew."""
        return self.copies.keys() - self.copied.keys()


def with_element_loops(
    loop: ast.For | ast.While, taken: set[str], meaning: Callable[[str], object], own: frozenset[str]
) -> ElementLoops:
    """meaning: of names that are not the function's own. Raises NotRewrittenError where an array is made in the loop in a way
    that nothing is made of."""
    found = ElementLoops(copy.deepcopy(loop))
    is_numpy = lambda name: name not in own and meaning(name) is np  # noqa: E731
    writing = _Writing(found, counts_of_axes(loop), taken, is_numpy, frozenset(bound_names([loop])))
    body: list[ast.stmt] = []
    for original, statement in zip(loop.body, found.loop.body, strict=True):
        made = writing.block([statement])
        found.stands_for |= {id(one): original for one in made}
        body += made
    found.loop.body, found.loop.orelse = body, writing.block(found.loop.orelse)
    left = {n.id for n in ast.walk(found.loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if left & found.copies.keys():
        raise NotRewrittenError
    if found.new & {*found.edges, *(array for pair in found.alike for array in pair)}:
        raise NotRewrittenError  # their sizes are not known before the loop
    return found


def counts_of_axes(loop: ast.AST) -> dict[str, int]:
    """Of arrays, how many indices their elements have, as far as they are seen; of what has more axes, a nest is refused."""
    counts: dict[str, int] = {}
    for node in ast.walk(loop):
        match node:
            case ast.Subscript(value=ast.Name(id=name)):
                indices = indices_of(node)
                if not any(isinstance(i, ast.Starred) or _is_ellipsis(i) for i in indices):
                    counts[name] = max(counts.get(name, 0), len(indices))
    for node in ast.walk(loop):
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Attribute(value=ast.Name(id=of), attr="copy"), args=[], keywords=[])
                | ast.Call(func=ast.Attribute(attr="copy"), args=[ast.Name(id=of)], keywords=[]),
            ) if of in counts:
                counts.setdefault(name, counts[of])
    return counts


def row_indices(row: ast.expr, changing: frozenset[str]) -> tuple[str, list[ast.expr]] | None:
    """Of ``w[i, j]`` or ``w[i, :]``, of an array that does not change, its name and the indices; None of anything else."""
    match row:
        case ast.Subscript(value=ast.Name(id=array)) if array not in changing:
            parts = indices_of(row)
            while parts and ast.dump(parts[-1]) == ast.dump(ast.Slice()):
                parts = parts[:-1]
            nodes = [node for part in parts for node in ast.walk(part)]
            known = not any(isinstance(node, ast.Slice | ast.Starred | ast.NamedExpr) for node in nodes)
            is_index = all(not isinstance(part, ast.Constant) or type(part.value) is int for part in parts)
            return (array, parts) if parts and known and is_index else None
    return None


def place_of(place: str, index: tuple[int, ast.expr], array: str) -> ast.stmt:
    """``place = range(w.shape[axis])[i]``. index: the axis, and i."""
    axis, part = index
    shape = ast.Attribute(ast.Name(array, ast.Load()), "shape", ast.Load())
    extent = ast.Subscript(shape, ast.Constant(axis), ast.Load())
    all_of_them = ast.Call(ast.Name("range", ast.Load()), [extent], [])
    return ast.Assign([ast.Name(place, ast.Store())], ast.Subscript(all_of_them, part, ast.Load()))


def indices_of(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


_NOTHING = ast.Constant(None)  # is stored to arrays whose elements are not set
_MADE: dict[str, ast.expr] = {
    "zeros": ast.Constant(0), "ones": ast.Constant(1), "empty": _NOTHING,
    "zeros_like": ast.Constant(0), "ones_like": ast.Constant(1), "empty_like": _NOTHING,
}  # fmt: skip
_CHANGING = (ast.NamedExpr, ast.Lambda, ast.Await, ast.Yield, ast.YieldFrom)  # what may do something each time


@dataclass
class _Writing:
    found: ElementLoops
    axes: Mapping[str, int]
    taken: set[str]
    is_numpy: Callable[[str], bool]
    changing: frozenset[str]  # names that the loop makes something else

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        return [one for statement in statements for one in self._statement(statement)]

    def _statement(self, statement: ast.stmt) -> list[ast.stmt]:
        match statement:
            case ast.For() | ast.While() | ast.If():
                statement.body, statement.orelse = self.block(statement.body), self.block(statement.orelse)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if (of := self._copied(value)) is not None:
                count = self.axes.get(name, self.axes.get(of))
                if count is None or name == of or name in self.found.new:
                    raise NotRewrittenError
                if name in self.found.copies:
                    self.found.alike.append((of, self.found.copied[name]))
                else:
                    self.found.copies[name], self.found.copied[name] = value, of
                whole = [ast.Slice()] * count
                return self._loops(statement, name, whole, self._element(of, whole))
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Attribute(value=ast.Subscript() as row, attr="copy"), args=[], keywords=[]),
            ) if name in self.axes and (row_of := row_indices(row, self.changing)) is not None:
                return self._copied_row(statement, name, *row_of)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call) if (
                fill := self._new(call)
            ) is not None and name in self.axes:
                self._make(name, call)
                if fill is _NOTHING:
                    return [placed(statement, ast.Pass(), with_end=True)]
                return self._filled(statement, name, [ast.Slice()] * self.axes[name], fill)
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name)) as target], value=value):
                slices = self._slices(target)
                if slices is not None:
                    return self._filled(statement, name, slices, value)
            case ast.Expr(
                value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="fill"), args=[value], keywords=[])
            ) if name in self.axes:
                return self._filled(statement, name, [ast.Slice()] * self.axes[name], value)
        return [statement]

    def _copied(self, value: ast.expr) -> str | None:
        """The array that an expression copies."""
        match value:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="copy"), args=[], keywords=[]):
                return name if name in self.axes else None
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=module), attr="copy"), args=[ast.Name(id=name)], keywords=[]
            ) if self.is_numpy(module):
                return name
        return None

    def _copied_row(self, statement: ast.stmt, name: str, of: str, parts: Sequence[ast.expr]) -> list[ast.stmt]:
        """A copy of a row, made where a copy of the first one was."""
        first = ast.Subscript(
            ast.Name(of, ast.Load()), ast.Tuple([ast.Constant(0)] * len(parts), ast.Load()), ast.Load()
        )
        memory = ast.Call(ast.Attribute(first, "copy", ast.Load()), [], [])
        self._make(name, memory)
        held = [fresh_name(f"{name}_{axis}", self.taken) for axis in range(len(parts))]
        places = [
            placed(statement, place_of(*one, of), with_end=True) for one in zip(held, enumerate(parts), strict=True)
        ]
        whole: list[ast.expr] = [ast.Slice()] * self.axes[name]
        row: list[ast.expr] = [*(ast.Name(place, ast.Load()) for place in held), *whole]
        return [*places, *self._loops(statement, name, whole, self._element(of, row))]

    def _make(self, name: str, memory: ast.expr) -> None:
        """Notes what makes the memory of an array, which is the same wherever the loop makes it."""
        if ast.dump(self.found.copies.setdefault(name, memory)) != ast.dump(memory):
            raise NotRewrittenError

    def _new(self, call: ast.Call) -> ast.expr | None:
        """What the elements of an array are that a call makes, alike in all iterations; None for other calls."""
        match call.func:
            case ast.Attribute(value=ast.Name(id=module), attr=str() as made) if self.is_numpy(module):
                pass
            case _:
                return None
        if not call.args or any(isinstance(n, _CHANGING) for n in ast.walk(call)):
            return None
        if {n.id for n in ast.walk(call) if isinstance(n, ast.Name)} & (self.changing | self.found.copies.keys()):
            return None
        if made == "full":
            return call.args[1] if len(call.args) > 1 else None
        return _MADE.get(made)

    def _slices(self, target: ast.Subscript) -> list[ast.expr] | None:
        """An index or a slice for every axis; None where the target is an element."""
        indices = indices_of(target)
        assert isinstance(target.value, ast.Name)
        count = self.axes.get(target.value.id, 0)
        if len(indices) == 1 and _is_ellipsis(indices[0]):
            indices = [ast.Slice()] * count
        elif any(isinstance(index, ast.Slice) for index in indices) or len(indices) < count:
            indices = [*indices, *[ast.Slice()] * (count - len(indices))]
        else:
            return None
        if not count or len(indices) != count or not all(map(_is_known, indices)):
            raise NotRewrittenError
        if not all(isinstance(index, ast.Slice) for index in indices):
            self.found.edges.add(target.value.id)
        return indices

    def _filled(self, statement: ast.stmt, name: str, slices: list[ast.expr], value: ast.expr) -> list[ast.stmt]:
        """What gives a slice of an array the values of another slice, or one value."""
        match value:
            case ast.Name(id=of) if of in self.axes:
                source: list[ast.expr] | None = [ast.Slice()] * self.axes[of]
            case ast.Subscript(value=ast.Name(id=of)) if of in self.axes:
                source = self._slices(value)
            case _:
                source = None
        if source is not None:
            if not fit(slices, source, name == of):
                raise NotRewrittenError
            if name != of:
                self.found.alike.append((name, of))
            return self._loops(statement, name, slices, self._element(of, source))
        parts = [*ast.walk(value)]
        bare = {n.id for n in parts if isinstance(n, ast.Name)} - {
            n.value.id for n in parts if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name)
        }
        if bare & self.axes.keys() or any(isinstance(n, ast.Slice) for n in parts):
            raise NotRewrittenError
        if isinstance(value, ast.Constant | ast.UnaryOp) and not bare:
            return self._loops(statement, name, slices, lambda indices: copy.deepcopy(value))
        held = fresh_name(f"{name}_value", self.taken)  # an element of the array itself, perhaps
        first = placed(statement, ast.Assign([ast.Name(held, ast.Store())], value), with_end=True)
        return [first, *self._loops(statement, name, slices, lambda indices: ast.Name(held, ast.Load()))]

    def _element(self, of: str, slices: Sequence[ast.expr]) -> Callable[[list[ast.expr]], ast.expr]:
        def element(indices: list[ast.expr]) -> ast.expr:
            return subscript(of, slices, indices, ast.Load())

        return element

    def _loops(
        self,
        where: ast.stmt,
        name: str,
        slices: Sequence[ast.expr],
        value: Callable[[list[ast.expr]], ast.expr],
    ) -> list[ast.stmt]:
        """Loops over the elements of a slice. value: for each, made from the indices of the loops."""
        over = [(axis, one) for axis, one in enumerate(slices) if isinstance(one, ast.Slice)]
        indices = [fresh_name(f"{name}_{axis}", self.taken) for axis, _ in over]
        read: list[ast.expr] = [ast.Name(index, ast.Load()) for index in indices]
        inner = ast.Assign([subscript(name, slices, read, ast.Store())], value(read))
        return [placed(where, loops_over(name, slices, indices, inner), with_end=True)]


def loops_over(name: str, slices: Sequence[ast.expr], indices: Sequence[str], inner: ast.stmt) -> ast.stmt:
    """A statement in loops over the elements of an array's slice. indices: names, one for each axis that is no index."""
    over = [(axis, one) for axis, one in enumerate(slices) if isinstance(one, ast.Slice)]
    for index, (axis, one) in reversed([*zip(indices, over, strict=True)]):
        shape = ast.Attribute(ast.Name(name, ast.Load()), "shape", ast.Load())
        size: ast.expr = ast.Subscript(shape, ast.Constant(axis), ast.Load())
        if one.upper is not None:
            size = ast.BinOp(size, ast.Add(), copy.deepcopy(one.upper))
        ends = [copy.deepcopy(one.lower) or ast.Constant(0), size]
        call = ast.Call(ast.Name("range", ast.Load()), ends, [])
        inner = ast.For(ast.Name(index, ast.Store()), call, [inner], [])
    return inner


def subscript(
    name: str, slices: Sequence[ast.expr], indices: Sequence[ast.expr], context: ast.expr_context
) -> ast.Subscript:
    left = iter(indices)
    parts = [next(left) if isinstance(one, ast.Slice) else copy.deepcopy(one) for one in slices]
    return ast.Subscript(
        ast.Name(name, ast.Load()), ast.Tuple(parts, ast.Load()) if len(parts) > 1 else parts[0], context
    )


def _number(node: ast.expr | None) -> int | None:
    match node:
        case ast.Constant(value=int() as value):
            return int(value)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
            return -value
    return None


def _is_known(index: ast.expr) -> bool:
    """Whether it is an index, or a slice that leaves out as many elements as it says, of arrays of any length."""
    if not isinstance(index, ast.Slice):
        return not any(isinstance(n, ast.Subscript | ast.Call | ast.NamedExpr) for n in ast.walk(index))
    lower, upper = _number(index.lower), _number(index.upper)
    return (
        index.step is None
        and (index.lower is None or (lower is not None and lower >= 0))
        and (index.upper is None or (upper is not None and upper < 0))
    )


def fit(target: Sequence[ast.expr], source: Sequence[ast.expr], same: bool) -> bool:
    """Whether a slice takes another one's elements one by one, in any order. same: whether they are of one array: then they are
    the same elements, or none of them are."""
    if len(target) != len(source):
        return False
    for to, of in zip(target, source, strict=True):
        if isinstance(to, ast.Slice) != isinstance(of, ast.Slice):
            return False
        if isinstance(to, ast.Slice) and ast.dump(to) != ast.dump(of):
            return False
        if same and not isinstance(to, ast.Slice) and (_number(to) is None or _number(of) is None):
            return False
    return True
