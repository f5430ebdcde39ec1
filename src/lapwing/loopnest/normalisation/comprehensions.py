"""Comprehensions over sequences of a known length, written out.

    before                                            after
    v = [u[i + k] for k in (-1, 0, 1)]                v = [u[i + -1], u[i + 0], u[i + 1]]
    s = sum(w * f[k] for k, w in enumerate(W))        s = sum((0.5 * f[0], 0.25 * f[1]))
    any(u[i + d] == 2 for d in (-1, 1))               bool(u[i + -1] == 2) or bool(u[i + 1] == 2)
    for q in (u[i - 1], u[i + 1]):                    q_values = (u[i - 1], u[i + 1])
        s = s + q                                     for q in q_values:
                                                          s = s + q

Arithmetic of numbers in displays is done: ``[1 / 6, 2 / 3]`` is a row of numbers then, as ``[0] * 4`` is.
"""

from __future__ import annotations

import ast
import copy
import math
from collections.abc import Callable

from lapwing.loopnest.normalisation.known_sequences import (
    MOST_ELEMENTS,
    KnownSequences,
    Substituting,
    is_number,
    is_row,
    match,
    truth_of,
    value_of,
)
from lapwing.loopnest.normalisation.names import all_names, fresh_name
from lapwing.loopnest.normalisation.tuple_loops import known_sequences, may_go_over_arrays
from lapwing.syntax_places import placed

_MOST_ROUNDS = 3  # of comprehensions that go over what others make


def expanded(tree: ast.FunctionDef, meaning: Callable[[str], object] = lambda name: None) -> ast.FunctionDef:
    """The function with these written out; the same where it has none. meaning: of names that are not its own."""
    for _ in range(_MOST_ROUNDS):
        expanding = _Expanding(tree, known_sequences(tree, meaning))
        new = expanding.visit(copy.deepcopy(tree))
        if not expanding.found:
            return tree
        tree = new
    return tree


class _Expanding(ast.NodeTransformer):
    def __init__(self, tree: ast.FunctionDef, known: KnownSequences) -> None:
        self.known = known
        self.taken = all_names(tree)
        self.found = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.body = [s for one in node.body for s in self._statement(one)]
        return node

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return [node]
        new = self.visit(node)
        return new if isinstance(new, list) else [new]

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        if [type(target) for target in node.targets] == [ast.Name]:
            node.value = self._display(node.value)
        return node

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        before: list[ast.stmt] = []
        if not may_go_over_arrays(node):
            node.iter = self._over(node.iter, node, before)
        return [*before, node]

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Name(id=name), args=[argument, *rest], keywords=[]) if name in self.known.builtins:
                if name in ("sum", "min", "max", "any", "all") and (not rest or name == "sum"):
                    return self._reduced(node, name, argument)
                if name in ("tuple", "list") and not rest:
                    return self._reduced(node, name, argument)
        return node

    def _reduced(self, node: ast.Call, name: str, argument: ast.expr) -> ast.expr:
        """A reduction of a comprehension."""
        elements = self._comprehension(argument) if isinstance(argument, ast.GeneratorExp | ast.ListComp) else None
        if elements is None or (name in ("min", "max") and not elements):
            return node
        self.found = True
        if name == "list":
            return placed(node, ast.List(elements, ast.Load()))
        display = placed(node, ast.Tuple(elements, ast.Load()))
        if name == "tuple":
            return display
        if name in ("any", "all") and isinstance(argument, ast.GeneratorExp) and "bool" in self.known.builtins:
            if not elements:
                return placed(node, ast.Constant(name == "all"))
            truths: list[ast.expr] = [ast.Call(ast.Name("bool", ast.Load()), [e], []) for e in elements]
            connective = ast.Or() if name == "any" else ast.And()
            return placed(node, truths[0] if len(truths) == 1 else ast.BoolOp(connective, truths))
        node.args[0] = display
        return node

    def _display(self, node: ast.expr) -> ast.expr:
        """A display in the place of a comprehension, or of a display that is repeated, with numbers as they come out."""
        elements: list[ast.expr] | None = None
        match node:
            case ast.ListComp():
                elements = self._comprehension(node)
                if elements is not None:
                    self.found = True
                    return placed(node, ast.List(elements, ast.Load()))
            case ast.BinOp(
                left=ast.List(elts=[_, *_] as parts), op=ast.Mult(), right=ast.Constant(value=int() as times)
            ):
                if all(map(is_number, parts)) and 0 < times * len(parts) <= MOST_ELEMENTS:
                    self.found = True
                    return placed(node, ast.List([copy.deepcopy(p) for _ in range(times) for p in parts], ast.Load()))
            case ast.List() | ast.Tuple() if not is_row(node):
                numbers = self._of_numbers(node)
                if numbers is not None:
                    self.found = True
                    return numbers
        return node

    def _of_numbers(self, node: ast.expr) -> ast.expr | None:
        """A display of arithmetic between numbers as one of numbers."""
        if isinstance(node, ast.List | ast.Tuple):
            parts = [self._of_numbers(part) for part in node.elts]
            known = [part for part in parts if part is not None]
            if not known or len(known) < len(parts):
                return None
            return placed(node, type(node)(known, ast.Load()))
        return node if is_number(node) else _literal(node)

    def _over(self, node: ast.expr, loop: ast.For, before: list[ast.stmt]) -> ast.expr:
        """What a loop goes over, with names for displays in it that are none of numbers."""
        match node:
            case ast.Call(func=ast.Name(id="enumerate" | "zip" | "reversed" as called), args=args) if (
                called in self.known.builtins
            ):
                node.args = [self._over(argument, loop, before) for argument in args]
            case ast.ListComp():
                elements = self._comprehension(node)
                if elements is not None:
                    self.found = True
                    return self._over(placed(node, ast.List(elements, ast.Load())), loop, before)
            case ast.List(elts=[_, *_]) | ast.Tuple(elts=[_, *_]) if not is_row(node) and not any(
                isinstance(part, ast.Starred) for part in ast.walk(node)
            ):
                self.found = True
                of = next(n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name))
                name = fresh_name(f"{of}_values", self.taken)
                before.append(placed(loop, ast.Assign([ast.Name(name, ast.Store())], node)))
                return placed(node, ast.Name(name, ast.Load()), with_end=True)
        return node

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> list[ast.expr] | None:
        """The elements of a comprehension; None where they are not known."""
        targets = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        inside = [n for part in (node.elt, *(i for g in node.generators for i in g.ifs)) for n in ast.walk(part)]
        if any(isinstance(n, ast.Lambda | ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom) for n in inside):
            return None
        if any(isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.id in targets for n in inside):
            return None
        found = self._elements(node.elt, node.generators, {})
        return found if found is not None and len(found) <= MOST_ELEMENTS else None

    def _elements(
        self, element: ast.expr, generators: list[ast.comprehension], values: dict[str, ast.expr]
    ) -> list[ast.expr] | None:
        put = Substituting(values, self.known)
        if not generators:
            new = put.visit(copy.deepcopy(element))
            return [_literal(new) or new]
        first, *rest = generators
        over = put.visit(copy.deepcopy(first.iter))
        items = self.known.elements(over)
        if items is None:
            items = self.known.numbers(over)
        if items is None or first.is_async or len(items) > MOST_ELEMENTS:
            return None
        found: list[ast.expr] = []
        for item in items:
            own = dict(values)
            if not match(first.target, item, own):
                return None
            tests = [truth_of(Substituting(own, self.known).visit(copy.deepcopy(test))) for test in first.ifs]
            if None in tests:
                return None
            if all(tests):
                inner = self._elements(element, rest, own)
                if inner is None or len(found) + len(inner) > MOST_ELEMENTS:
                    return None
                found += inner
        return found


def _literal(node: ast.expr) -> ast.expr | None:
    """The number that arithmetic between numbers gives; None of any other expression, and of numbers that have no literal."""
    if isinstance(node, ast.Tuple) and node.elts and not is_row(node):
        parts = [part if is_number(part) else _literal(part) for part in node.elts]
        known = [part for part in parts if part is not None]
        return placed(node, ast.Tuple(known, ast.Load())) if len(known) == len(parts) else None
    value = None if is_number(node) else value_of(node)
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return placed(node, ast.parse(repr(value), mode="eval").body)
