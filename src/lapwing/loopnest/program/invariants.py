"""What is the same for a whole loop, taken out of it, so that runs of the loop are alike (loop-invariant code motion).

    before, inside for t in range(steps)                    after
    for i in range(1, n):                                   f_1(u[(t + 1) % 2], u[t % 2], n)
        u[(t + 1) % 2, i] = 0.5 * u[t % 2, i - 1]

Taken out are views of arrays at an index that the loop does not change, elements of arrays that are only read, remainders of
counters, and sums and products with a counter: nothing that could raise or see another value than inside of the loop.
"""

from __future__ import annotations

import ast
import copy
import itertools
import keyword
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lapwing.affine.affine import Affine
from lapwing.loopnest.frontend.expressions import subscripts
from lapwing.loopnest.normalisation.names import fresh_name
from lapwing.loopnest.program.surroundings import Control

_SIGNS = {"%": " mod ", "+": " plus ", "-": " minus ", "*": " times ", "//": " over ", "/": " over "}


@dataclass
class Lifted:
    """A loop, and what was taken out of it: by the name it has there.

    rows: the indices of loops around it whose own values select parts of arrays that it writes, or only reduces, as row i of a
    matrix; t % 2 selects one of two. looks_at: the arrays whose elements are taken out. may_meet: whether two parts of an array
    that it writes may be the same one.
    """

    statement: ast.For | ast.While
    parameters: dict[str, ast.expr] = field(default_factory=dict)
    rows: set[str] = field(default_factory=set)
    looks_at: set[str] = field(default_factory=set)
    may_meet: bool = False


def lifted(statement: ast.For, own: set[str], control: Control, taken: set[str]) -> Lifted:
    """The loop without what is the same for all of it. own: the names it assigns. taken: names that are in use, to which those of
    what is taken out are added."""
    found = Lifted(copy.deepcopy(statement))
    uses = _Uses()
    uses.visit(found.statement)
    chosen = {name: axes for name in uses.accesses if (axes := _fixed_axes(name, uses, own, control))}
    lifting = _Lifting(found, chosen, uses.written, own, control, taken)
    found.may_meet = any(_may_meet(uses.accesses[name], axes) for name, axes in chosen.items() if name in uses.written)
    found.statement = lifting.visit(found.statement)
    return found


class _Uses(ast.NodeVisitor):
    """How a loop uses arrays: the indices of its accesses, and whether anything else is done with them."""

    def __init__(self) -> None:
        self.accesses: dict[str, list[list[ast.expr]]] = {}
        self.written: set[str] = set()
        self.otherwise: set[str] = set()

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if _shape_of(node) is not None:
            return
        name, elements = subscripts(node)
        if name is None:
            self.generic_visit(node)
            return
        self.accesses.setdefault(name, []).append(elements)
        if not isinstance(node.ctx, ast.Load):
            self.written.add(name)
        for element in elements:
            self.visit(element)

    def visit_Call(self, node: ast.Call) -> None:
        if _shape_of(node) is None:
            self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        self.otherwise.add(node.id)


def _fixed_axes(name: str, uses: _Uses, own: set[str], control: Control) -> tuple[int, ...]:
    """The axes along which all accesses stay where they are, and that are worth taking out."""
    accesses = uses.accesses[name]
    if name in uses.otherwise or name in own or len({len(elements) for elements in accesses}) > 1:
        return ()
    axes = [k for k in range(len(accesses[0])) if all(_is_fixed(elements[k], own) for elements in accesses)]
    if name in uses.written:
        # Of a view without its last axis no element has the next one beside it, so that it would be copied.
        last = len(accesses[0]) - 1
        if last in axes and all(isinstance(elements[last], ast.Constant) for elements in accesses):
            axes.remove(last)
        return tuple(axes) if len(axes) < len(accesses[0]) else ()
    return tuple(k for k in axes if any(_names(elements[k]) & control.changing for elements in accesses))


def _is_fixed(node: ast.expr, own: set[str]) -> bool:
    """Whether an index is made of whole numbers and names that the loop does not assign, and cannot raise."""
    match node:
        case ast.Constant(value=value):
            return type(value) is int
        case ast.Name(id=name):
            return name not in own
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _is_fixed(operand, own)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult(), right=right):
            return _is_fixed(left, own) and _is_fixed(right, own)
        case ast.BinOp(left=left, op=ast.Mod() | ast.FloorDiv(), right=ast.Constant(value=divisor)):
            return _is_fixed(left, own) and type(divisor) is int and divisor > 0
    return False


def _may_meet(accesses: Sequence[Sequence[ast.expr]], axes: Sequence[int]) -> bool:
    """Whether parts of an array that have different indices along these axes may be the same one."""
    parts = [[elements[k] for k in axes] for elements in accesses]
    different = {ast.dump(_joined(part)): part for part in parts}
    return any(
        not any(_differ(*pair) for pair in zip(one, other, strict=True))
        for one, other in itertools.combinations(different.values(), 2)
    )


def _differ(one: ast.expr, other: ast.expr) -> bool:
    """Whether indices are known to be different ones; those that count from the end are not looked at."""
    match one, other:
        case (
            ast.BinOp(left=left, op=ast.Mod(), right=ast.Constant(value=int() as divisor)),
            ast.BinOp(left=right, op=ast.Mod(), right=ast.Constant(value=same)),
        ) if divisor == same:
            apart = _difference(left, right)
            return apart is not None and apart % divisor != 0
    return bool(_difference(one, other))


def _difference(one: ast.expr, other: ast.expr) -> int | None:
    """By how much an index is larger than another; None where that is not the same for all values of names."""
    try:
        apart = _affine(one) - _affine(other)
    except ValueError:
        return None
    return None if apart.terms else apart.constant


def _affine(node: ast.expr) -> Affine:
    """Raises ValueError."""
    match node:
        case ast.Constant(value=int() as value):
            return Affine(value)
        case ast.Name(id=name):
            return Affine.of(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_affine(operand)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _affine(left) + _affine(right)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _affine(left) - _affine(right)
    raise ValueError


class _Lifting(ast.NodeTransformer):
    """Puts names in the place of what is taken out."""

    def __init__(
        self,
        found: Lifted,
        chosen: dict[str, tuple[int, ...]],
        written: set[str],
        own: set[str],
        control: Control,
        taken: set[str],
    ) -> None:
        self.found, self.chosen, self.written = found, chosen, written
        self.own, self.control, self.taken = own, control, taken
        self.known: dict[str, str] = {}  # by text
        self.in_value = True

    def visit_For(self, node: ast.For) -> ast.For:
        node.iter = self._visited(node.iter, in_value=False)
        node.body = [self.visit(statement) for statement in node.body]
        node.orelse = [self.visit(statement) for statement in node.orelse]
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        node.left = self._visited(node.left, in_value=False)
        node.comparators = [self._visited(part, in_value=False) for part in node.comparators]
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if (shape := _shape_of(node)) is not None:
            return self._shape(node, shape)
        name, elements = subscripts(node)
        if name is None:
            return self.generic_visit(node)  # type: ignore[return-value]
        if not (axes := self.chosen.get(name)):
            node.slice = self._visited(node.slice, in_value=False)
            if not isinstance(node.value, ast.Name):
                node.value = self.visit(node.value)
            return node
        if name in self.written or not self.written:
            for element in (elements[k] for k in axes):
                self.found.rows |= _names_outside_remainders(element) & self.control.indices
        fixed = [elements[k] for k in axes]
        left = [self._visited(element, in_value=False) for k, element in enumerate(elements) if k not in axes]
        everything: list[ast.expr] = [e if k in axes else ast.Slice() for k, e in enumerate(elements)]
        while isinstance(everything[-1], ast.Slice):
            everything.pop()
        view = ast.Subscript(ast.Name(name, ast.Load()), _joined(everything), ast.Load())
        wanted = "_".join([name, *map(ast.unparse, fixed)])
        variable = self._lift(view, wanted, node, key=f"{name} {axes} {[ast.unparse(e) for e in fixed]}")
        if not left:
            self.found.looks_at.add(name)
            return variable
        # Without the columns of what stood there, since this does not: texts are made of the tree.
        made = ast.Subscript(variable, _joined(left), node.ctx)
        made.lineno, made.col_offset = node.lineno, node.col_offset
        return made

    def visit_Call(self, node: ast.Call) -> ast.expr:
        shape = _shape_of(node)
        return self.generic_visit(node) if shape is None else self._shape(node, shape)  # type: ignore[return-value]

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        names = _names(node)
        if names and names <= self.control.counters and _is_fixed(node, self.own) and isinstance(node.op, ast.Mod):
            return self._lift(node, ast.unparse(node), node)
        if self.in_value and names & self.control.counters and _is_sum_or_product(node, self.own):
            return self._lift(node, ast.unparse(node), node)
        return self.generic_visit(node)  # type: ignore[return-value]

    def _visited(self, node: ast.expr, in_value: bool) -> Any:
        before, self.in_value = self.in_value, in_value
        try:
            return self.visit(node)
        finally:
            self.in_value = before

    def _shape(self, node: ast.expr, array: str) -> ast.expr:
        """The shape of an array that is not there any more."""
        if array not in self.chosen:
            return node
        return self._lift(node, ast.unparse(node).replace(".shape[", "_shape"), node)

    def _lift(self, value: ast.expr, wanted: str, where: ast.expr, key: str | None = None) -> ast.Name:
        key = ast.unparse(value) if key is None else key
        if key not in self.known:
            self.known[key] = fresh_name(_identifier(wanted), self.taken)
            lifted_value = copy.deepcopy(value)
            for part in ast.walk(lifted_value):
                if isinstance(part, ast.expr | ast.Slice):
                    ast.copy_location(part, where)
            self.found.parameters[self.known[key]] = lifted_value
        return ast.copy_location(ast.Name(self.known[key], ast.Load()), where)


def _is_sum_or_product(node: ast.expr, own: set[str]) -> bool:
    match node:
        case ast.Constant(value=value):
            return type(value) in (int, float)
        case ast.Name(id=name):
            return name not in own
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            return _is_sum_or_product(operand, own)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult(), right=right):
            return _is_sum_or_product(left, own) and _is_sum_or_product(right, own)
        case ast.BinOp(left=left, op=ast.Div(), right=ast.Constant(value=int() | float() as divisor)):
            return _is_sum_or_product(left, own) and divisor != 0
    return False


def _shape_of(node: ast.expr) -> str | None:
    """The array's name if the node is ``u.shape[k]`` or ``len(u)``."""
    match node:
        case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr="shape"), slice=ast.Constant()):
            return name
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)], keywords=[]):
            return name
    return None


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _names_outside_remainders(node: ast.expr) -> set[str]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return set()
    if isinstance(node, ast.Name):
        return {node.id}
    return {name for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)
            for name in _names_outside_remainders(child)}  # fmt: skip


def _joined(elements: Sequence[ast.expr]) -> ast.expr:
    return elements[0] if len(elements) == 1 else ast.Tuple([*elements], ast.Load())


def _identifier(text: str) -> str:
    for sign, word in _SIGNS.items():
        text = text.replace(sign, word)
    name = "_".join(part.strip("_") for part in re.findall(r"\w+", text))
    return name if name.isidentifier() and not keyword.iskeyword(name) else f"value_{name}"
