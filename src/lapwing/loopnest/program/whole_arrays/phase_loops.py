"""The body of a time loop as loops, one for every phase of a sweep: fixed indices are loops of one iteration.

    ez[0] = ez[1]                            for ez_0 in range(0, 0 + 1):
                                                 ez[ez_0] = ez[ez_0 + 1]
    i = nx                                   for i in range(nx, nx + 1):
    u[i] = 2 * u[i - 1]                          u[i] = 2 * u[i - 1]
    for j in range(u.shape[1]):              for u_0 in range(u.shape[0] - 1, u.shape[0] - 1 + 1):
        u[-1, j] = 0.0                           for j in range(u.shape[1]):
                                                     u[u_0, j] = 0.0

So they run along the loops of the nests beside them, and what they read lies a known distance from what they write.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lapwing.loopnest.normalisation.names import fresh_name
from lapwing.loopnest.program.whole_arrays.exchanges import NotRewrittenError
from lapwing.syntax_places import placed


@dataclass(frozen=True)
class PhaseLoop:
    """A loop, and the statement of the body in whose place it stands."""

    loop: ast.For
    place: ast.stmt


def phase_loops(body: Sequence[ast.stmt], written: Callable[[ast.stmt], bool], taken: set[str]) -> Iterator[PhaseLoop]:
    """written: whether a loop is the program's own, and stays as it is. taken: names that are not free; more are added. Raises
    NotRewrittenError where a statement is neither a loop nor stores an element."""
    held: dict[str, ast.expr] = {}  # what variables are set to that only the next element's indices are made of
    for statement in body:
        match statement:
            case ast.For() if not held and written(statement):
                yield PhaseLoop(statement, statement)
            case ast.For() if not held:
                yield PhaseLoop(_of_slice(statement, taken), statement)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name not in held:
                held[name] = value
            case ast.Assign(targets=targets, value=ast.Constant()) if len(targets) > 1 and not held:
                for target in targets:
                    one = ast.copy_location(ast.Assign([target], copy.deepcopy(statement.value)), statement)
                    yield PhaseLoop(_of_element(one, target, held, taken), statement)
            case ast.Assign(targets=[target]) | ast.AugAssign(target=target):
                yield PhaseLoop(_of_element(statement, target, held, taken), statement)
                held = {}
            case _:
                raise NotRewrittenError
    if held:
        raise NotRewrittenError


def _of_slice(loop: ast.For, taken: set[str]) -> ast.For:
    """Of a loop over a slice (``element_loops``), whose arrays are of one shape."""
    loops, inner = [loop], loop.body[0]
    while isinstance(inner, ast.For):
        loops.append(inner)
        inner = inner.body[0]
    assert isinstance(inner, ast.Assign)
    names = {one.target.id: one.iter for one in loops if isinstance(one.target, ast.Name)}
    array, indices = _element(inner.targets[0])
    return _loops(inner, array, indices, names, taken, are_alike=True)


def _of_element(statement: ast.stmt, target: ast.expr, held: Mapping[str, ast.expr], taken: set[str]) -> ast.For:
    """held: variables that stand for an index, each the whole of one."""
    array, indices = _element(target)
    names = {index.id for index in indices if isinstance(index, ast.Name)}
    if not held.keys() <= names:
        raise NotRewrittenError
    over = {name: _once(value) for name, value in held.items()}
    return _loops(statement, array, indices, over, taken, are_alike=False)


def _element(target: ast.expr) -> tuple[str, list[ast.expr]]:
    """The array that an element is of, and its indices."""
    if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
        raise NotRewrittenError
    indices = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    if any(isinstance(index, ast.Slice | ast.Starred) for index in indices):
        raise NotRewrittenError
    return target.value.id, indices


def _loops(
    statement: ast.stmt,
    array: str,
    indices: Sequence[ast.expr],
    over: Mapping[str, ast.expr],
    taken: set[str],
    are_alike: bool,
) -> ast.For:
    """Loops around what stores an element. over: by name, what there is a loop over already. are_alike: whether all arrays have
    one shape."""
    names, starts, ranges = list[str](), list[ast.expr | None](), list[ast.expr]()
    for axis, index in enumerate(indices):
        if isinstance(index, ast.Name) and index.id in over:
            names.append(index.id)
            starts.append(None)
            ranges.append(over[index.id])
            continue
        names.append(fresh_name(f"{array}_{axis}", taken))
        starts.append(index)
        ranges.append(_once(_from_start(index, array, axis)))
    if len(set(names)) < len(names):
        raise NotRewrittenError
    inner: ast.stmt = _Along(array, names, starts, are_alike).visit(copy.deepcopy(statement))
    for name, each in reversed([*zip(names, ranges, strict=True)]):
        inner = ast.For(ast.Name(name, ast.Store()), copy.deepcopy(each), [inner], [])
    loop = placed(statement, inner, with_end=True)
    assert isinstance(loop, ast.For)
    return loop


def _once(start: ast.expr) -> ast.expr:
    """``range(start, start + 1)``"""
    after = ast.BinOp(copy.deepcopy(start), ast.Add(), ast.Constant(1))
    return ast.Call(ast.Name("range", ast.Load()), [copy.deepcopy(start), after], [])


def _from_start(index: ast.expr, array: str, axis: int) -> ast.expr:
    """An index that counts from the end as one that counts from the start."""
    match index:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int()) as number):
            shape = ast.Attribute(ast.Name(array, ast.Load()), "shape", ast.Load())
            size = ast.Subscript(shape, ast.Constant(axis), ast.Load())
            return ast.BinOp(size, ast.Sub(), copy.deepcopy(number))
    return index


class _Along(ast.NodeTransformer):
    """Writes indices by the loops of the element that is stored: on each axis what is a constant away from it."""

    def __init__(self, array: str, names: Sequence[str], starts: Sequence[ast.expr | None], are_alike: bool) -> None:
        self.array, self.names, self.starts, self.are_alike = array, names, starts, are_alike

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        ends_alike = self.are_alike or (isinstance(node.value, ast.Name) and node.value.id == self.array)
        for axis, (index, name, start) in enumerate(zip(indices, self.names, self.starts, strict=False)):
            apart = None if start is None else _apart(index, start, ends_alike)
            if apart is not None:
                read = ast.Name(name, ast.Load())
                indices[axis] = read if apart == 0 else ast.BinOp(read, ast.Add(), ast.Constant(apart))
        if not isinstance(node.slice, ast.Tuple):
            node.slice = indices[0]
        return self.generic_visit(node)


def _apart(index: ast.expr, start: ast.expr, ends_alike: bool) -> int | None:
    """By how much an index is larger than another one; None where that is not seen. ends_alike: whether axes are equally long."""
    (base, constant), (other, another) = _parts(index), _parts(start)
    return constant - another if base == other and (base != _END or ends_alike) else None


_END = "the end"


def _parts(index: ast.expr) -> tuple[str, int]:
    """What a constant is added to, and that."""
    match index:
        case ast.Constant(value=int() as value):
            return "", value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
            return _END, -value
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as operator, right=ast.Constant(value=int() as value)):
            return ast.dump(left), value if isinstance(operator, ast.Add) else -value
    return ast.dump(index), 0
