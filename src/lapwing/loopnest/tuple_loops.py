"""Loops over a row of numbers in the text are unrolled, so that in every copy the number is a constant.

    before                                   after
    for step in (1, -1):                     for i in range(0, n, 1):
        for i in range(0, n, step):              u[i] = u[i] + 1
            u[i] = u[i] + step               for i in range(0, n, -1):
                                                 u[i] = u[i] + -1
                                             step = -1

Of a conditional expression whose test is then known (``range(n) if step > 0 else range(n - 1, -1, -1)``) what it chooses
stays.

A copy that ends early (``continue``) has what follows under the opposite condition. Loops that end early (``break``) are not
unrolled, since a copy cannot know whether the one before it did.
"""

from __future__ import annotations

import ast
import copy
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}

MOST_COPIES = 64  # of a statement, in loops that stand in each other


def unrolled(tree: ast.FunctionDef) -> ast.FunctionDef:
    """The function with such loops unrolled; the same where it has none."""
    if not any(isinstance(node, ast.For) and _rows(node) for node in ast.walk(tree)):
        return tree
    found = _Unrolling().visit(copy.deepcopy(tree))
    assert isinstance(found, ast.FunctionDef)
    return found


class _Unrolling(ast.NodeTransformer):
    def __init__(self) -> None:
        self.copies = 1

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        rows = _rows(node)
        if not rows or self.copies * len(rows) > MOST_COPIES or node.orelse:
            return self.generic_visit(node)
        body = _without_continue(node.body)
        if _is_left_early(body):
            return self.generic_visit(node)
        names = [n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)]
        changed = {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        if changed & set(names):
            return self.generic_visit(node)
        self.copies *= len(rows)
        found: list[ast.stmt] = []
        for row in rows:
            values = dict(zip(names, row, strict=True))
            for statement in body:
                one = _Substituting(values).visit(copy.deepcopy(statement))
                visited = self.visit(one)
                found += visited if isinstance(visited, list) else [visited]
        self.copies //= len(rows)
        for name, value in values.items():
            last = ast.Assign([ast.Name(name, ast.Store())], value)
            found.append(ast.fix_missing_locations(ast.copy_location(last, node)))
        return found


class _Substituting(ast.NodeTransformer):
    def __init__(self, values: dict[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self.values.get(node.id)
        if value is None or not isinstance(node.ctx, ast.Load):
            return node
        new = copy.deepcopy(value)
        for part in ast.walk(new):
            ast.copy_location(part, node)
        return new

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        match node.test:
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
                if _is_number(left) and _is_number(right):
                    holds = _COMPARISONS[type(op)](ast.literal_eval(left), ast.literal_eval(right))
                    return node.body if holds else node.orelse
        return node


def _rows(node: ast.For) -> list[list[ast.expr]]:
    """What the targets of a loop are in each iteration, where that stands in the text as numbers; else nothing."""
    if not isinstance(node.iter, ast.Tuple | ast.List) or not node.iter.elts:
        return []
    targets = node.target.elts if isinstance(node.target, ast.Tuple | ast.List) else [node.target]
    if not all(isinstance(target, ast.Name) for target in targets):
        return []
    rows: list[list[ast.expr]] = []
    for element in node.iter.elts:
        parts = list(element.elts) if isinstance(element, ast.Tuple | ast.List) else [element]
        if len(parts) != len(targets) or not all(map(_is_number, parts)):
            return []
        rows.append(parts)
    return rows


def _is_number(node: ast.expr) -> bool:
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _is_number(operand)
        case ast.Constant(value=value):
            return isinstance(value, bool | int | float)
    return False


def _without_continue(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The same with what follows ``if …: continue`` in its else, and the other way round."""
    for k, statement in enumerate(statements):
        if isinstance(statement, ast.Continue):
            return [*statements[:k], ast.copy_location(ast.Pass(), statement)]
        if isinstance(statement, ast.If):
            arms = (statement.body, statement.orelse)
            if any(map(_ends_in_continue, arms)):
                rest = statements[k + 1 :]
                then, otherwise = (_without_continue(arm if _ends_in_continue(arm) else [*arm, *rest]) for arm in arms)
                return [*statements[:k], ast.copy_location(ast.If(statement.test, then, otherwise), statement)]
    return list(statements)


def _ends_in_continue(statements: Sequence[ast.stmt]) -> bool:
    return bool(statements) and isinstance(statements[-1], ast.Continue)


def _is_left_early(statements: Sequence[ast.stmt]) -> bool:
    """Whether a break or continue of the loop itself is among the statements, or what cannot be copied."""
    return any(isinstance(n, ast.Break | ast.Continue | ast.FunctionDef | ast.Lambda) for n in _own(statements))


def _own(statements: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes of statements, but for the breaks and continues of loops among them."""
    for statement in statements:
        is_loop = isinstance(statement, ast.For | ast.While)
        for node in ast.walk(statement):
            if not (is_loop and isinstance(node, ast.Break | ast.Continue)):
                yield node
