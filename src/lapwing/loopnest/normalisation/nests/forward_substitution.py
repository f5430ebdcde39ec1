"""Names for indices and rows that are set in a loop's body, replaced by what they are set to (forward substitution: Allen and
Kennedy, Optimizing Compilers for Modern Architectures, 4.5).

    before                                   after
    for k in range(n):                       for k in range(n):
        i = k + 1                                for j in range(max(1, k + 1 - w), m):
        row = u[i]                                   u[k + 1, j] = u[k + 1 - 1, j]
        for j in range(max(1, i - w), m):
            row[j] = u[i - 1, j]

Accesses are then affine in the indices of loops, and loops perfectly nested that are not in the text. Other values are left where
they are: what is computed once is not to be computed again.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lapwing.loopnest.normalisation.counted_loops import Rows, is_row, subscripts_of
from lapwing.loopnest.normalisation.names import (
    argument_names,
    blocks_in,
    count_names,
    is_builtin,
    jumps,
    loop_index,
    names_set_once,
)
from lapwing.syntax_places import placed

_OTHER_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_MOST = 50  # names: each takes a walk through the function


@dataclass(frozen=True)
class Taken:
    """That the text takes an element in every iteration of some loops, or the row that it is of, whether or not there are
    iterations of the loops inside. loops: their indices; axes: of the row, None where it is the element; is_guarded: whether
    it does so only where the conditions hold under which the element stands here. Syntax nodes have theirs in ``taken``."""

    loops: frozenset[str]
    axes: int | None = None
    is_guarded: bool = True


def note_taken(node: ast.AST, taken: Taken) -> None:
    node.taken = (*taken_of(node), taken)  # type: ignore[attr-defined]


def taken_of(node: ast.AST) -> tuple[Taken, ...]:
    return getattr(node, "taken", ())


def with_substituted(tree: ast.FunctionDef, meaning: Callable[[str], object]) -> ast.FunctionDef:
    """The function without such names; the same where it has none. meaning: of names that are not its own."""
    inner = (node for statement in tree.body for node in ast.walk(statement))
    if any(isinstance(node, _OTHER_SCOPES) for node in inner):
        return tree
    substitution = _Substitution(copy.deepcopy(tree), meaning)
    substitution.block(substitution.tree.body, (), is_certain=True)
    return substitution.tree if substitution.has_changed else tree


class _Substitution:
    """Goes through a function and changes it."""

    def __init__(self, tree: ast.FunctionDef, meaning: Callable[[str], object]) -> None:
        self.tree, self.meaning = tree, meaning
        self.has_changed = False
        self.fixed = names_set_once(tree)
        self.parameters = argument_names(tree)
        self.stores = count_names(tree.body, ast.Store, ast.Del)
        self.left = _MOST

    def block(self, block: list[ast.stmt], indices: tuple[str, ...], is_certain: bool) -> None:
        """Statements in loops with these indices. is_certain: whether they are done in every iteration of these."""
        position = 0
        while position < len(block):
            statement = block[position]
            if indices and (left := self._left(statement, block[position + 1 :], indices, is_certain)) is not None:
                block[position : position + 1] = left or ([] if len(block) > 1 else [placed(statement, ast.Pass())])
                self.has_changed = True
                position += len(left)
                continue
            index = loop_index(statement)
            inside = indices if index is None else (*indices, index)
            for inner in blocks_in(statement):
                self.block(inner, inside, is_certain and index is not None)
            is_certain = is_certain and not jumps(statement)
            position += 1

    def _left(
        self, statement: ast.stmt, rest: list[ast.stmt], indices: tuple[str, ...], is_certain: bool
    ) -> list[ast.stmt] | None:
        """What is left of a statement that sets such names, which have been replaced in what follows it; None where it does
        not."""
        parts = one_by_one(statement)
        left = [
            part for k, part in enumerate(parts)
            if not self._is_substituted(part, [*parts[k + 1 :], *rest], indices, is_certain)
        ]  # fmt: skip
        return left if len(left) < len(parts) else None

    def _is_substituted(
        self, statement: ast.stmt, rest: list[ast.stmt], indices: tuple[str, ...], is_certain: bool
    ) -> bool:
        """Whether a statement sets such a name, which has been replaced in what follows it then."""
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case _:
                return False
        is_index = self._is_index(value, indices)
        is_row_of = is_certain and not is_index and self._is_row_of(value, indices)
        if not (is_index or is_row_of) or not self.left:
            return False
        used = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
        loads = count_names(rest, ast.Load)[name]
        if (
            self.stores[name] > 1 or name in self.parameters or used & set(count_names(rest, ast.Store, ast.Del))
            or not loads or loads < count_names(self.tree.body, ast.Load)[name]
        ):  # fmt: skip
            return False
        replacing: ast.NodeTransformer
        if is_index and used & {*indices} and _is_indexing(name, rest):
            replacing = _Numbers(name, value)
        elif not is_index and _is_view(name, rest):
            replacing = _Views(name, value, frozenset(indices))
        else:
            return False
        self.left -= 1
        for later in rest:
            replacing.visit(later)
        return True

    def _is_index(self, node: ast.expr, indices: tuple[str, ...]) -> bool:
        """Whether it is made of indices, and of numbers that stay the same."""
        match node:
            case ast.Constant(value=int() as value):
                return not isinstance(value, bool)
            case ast.Name(id=name):
                return name in indices or name in self.fixed
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._is_index(operand, indices)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult(), right=right):
                return self._is_index(left, indices) and self._is_index(right, indices)
            case ast.Subscript(value=ast.Attribute(value=ast.Name(id=array), attr="shape"), slice=ast.Constant()):
                return array in self.fixed
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=array)], keywords=[]):
                return array in self.fixed
            case ast.Call(func=ast.Name(id="min" | "max" as function), args=[_, _, *_] as arguments, keywords=[]):
                is_own = is_builtin(function, {*self.stores, *self.parameters}, self.meaning)
                return is_own and all(self._is_index(argument, indices) for argument in arguments)
        return False

    def _is_row_of(self, node: ast.expr, indices: tuple[str, ...]) -> bool:
        """Whether it is ``u[i]`` or ``u[i, j + 1]`` of an array that is always the same."""
        match node:
            case ast.Subscript(value=ast.Name(id=array), slice=ast.Tuple(elts=parts)) if array in self.fixed:
                return all(self._is_index(part, indices) for part in parts)
            case ast.Subscript(value=ast.Name(id=array), slice=part) if array in self.fixed:
                return self._is_index(part, indices)
        return False


def one_by_one(statement: ast.stmt) -> list[ast.stmt]:
    """``a, b = x, y`` as ``a = x`` and ``b = y``, where that is the same."""
    match statement:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(values):
            set_here = {target.id for target in targets if isinstance(target, ast.Name)}
            used = {node.id for value in values for node in ast.walk(value) if isinstance(node, ast.Name)}
            if len(set_here) == len(targets) and not set_here & used:
                return [
                    placed(statement, ast.Assign([target], value))
                    for target, value in zip(targets, values, strict=True)
                ]
    return [statement]


class _Numbers(ast.NodeTransformer):
    """An expression in the place of a name."""

    def __init__(self, name: str, value: ast.expr) -> None:
        self.name, self.value = name, value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return placed(node, copy.deepcopy(self.value)) if node.id == self.name else node


class _Views(Rows):
    """Elements of a row that is taken in every iteration of some loops: its place has to be there in each of them, whatever
    elements are taken."""

    def __init__(self, name: str, row: ast.expr, loops: frozenset[str]) -> None:
        super().__init__(name, row)
        self.loops = loops

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        is_of_row = isinstance(node.value, ast.Name) and node.value.id == self.name
        found = super().visit_Subscript(node)
        if is_of_row:
            note_taken(found, Taken(self.loops, len(subscripts_of(self.row)[1]), is_guarded=False))
        return found


def _is_view(name: str, statements: Sequence[ast.stmt]) -> bool:
    """Whether a name stands for a row of which elements are taken, and for nothing else."""
    nodes = (node for statement in statements for node in ast.walk(statement))
    return is_row(name, statements) and any(
        isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name) and n.value.id == name for n in nodes
    )


def _is_indexing(name: str, statements: Sequence[ast.stmt]) -> bool:
    """Whether a name stands in an index, or in the bounds of a loop: it is an integer then."""
    for statement in statements:
        for node in ast.walk(statement):
            inside = node.slice if isinstance(node, ast.Subscript) else node.iter if isinstance(node, ast.For) else None
            if inside is not None and any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(inside)):
                return True
    return False
