"""Statements of the innermost body: from Python's syntax tree to assignments of the IR."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import NoReturn

from lapwing.loopnest import ir
from lapwing.loopnest.frontend.expressions import BINARY, ExpressionParser
from lapwing.loopnest.functions import canonical_name


class StatementParser(ExpressionParser):
    """Parses statements of one function. accumulators: the names of its reductions."""

    def statement(self, node: ast.stmt, accumulators: tuple[str, ...]) -> list[ir.Statement]:
        """The assignments that a statement of the innermost body is."""
        match node:
            case ast.Assign(targets=targets, value=value):
                pairs = [(target, value) for target in targets]
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                pairs = [(target, value)]
            case ast.AugAssign(target=target, op=op, value=value):
                if type(op) not in BINARY:
                    self.refuse(node, self.source.text(node), f"supported operators are {' '.join(BINARY.values())}")
                if isinstance(target, ast.Name) and target.id in accumulators:
                    return self._accumulate(node, target.id, BINARY[type(op)], value)
                pairs = [(target, ast.copy_location(ast.BinOp(_as_load(target), op, value), node))]
            case _:
                self._refuse_statement(node)
        if len(pairs) == 1 and not isinstance(pairs[0][0], ast.Tuple | ast.List):
            return self._assign(node, *pairs[0], accumulators)
        return self._assign_several(node, pairs, accumulators)

    def _refuse_statement(self, node: ast.stmt) -> NoReturn:
        text = f"{self.source.text(node)} in the loops"
        match node:
            case ast.If():
                advice = (
                    "write x = a if condition else b, with u[i, j] = x if condition else u[i, j] where there is no else"
                )
                reduced = sorted(bound_names(node) & set(self.scope.setup_names))
                maxima = "".join(f"; where {name} is a maximum, {name} = max({name}, x)" for name in reduced)
                self.refuse(node, "an if statement in the loops", f"{advice}{maxima}")
            case ast.While():
                self.refuse(
                    node,
                    text,
                    "the body holds assignments; go a fixed number of times, as an outer loop for k in range(most), with "
                    "u[i, j] = x if condition else u[i, j], or call the nest from a while loop in Python",
                )
            case ast.Break() | ast.Continue() | ast.Return() | ast.Raise() | ast.Assert():
                advice = "the body holds assignments, and every iteration runs: write x = a if condition else b"
                self.refuse(node, text, f"{advice}; check results after the call")
        self.refuse(
            node,
            text,
            "the body holds assignments to array elements, to scalar temporaries and to reductions; "
            "do other work before or after the call",
        )

    def _assign_several(
        self, node: ast.stmt, pairs: list[tuple[ast.expr, ast.expr]], accumulators: tuple[str, ...]
    ) -> list[ir.Statement]:
        """``a, b = b, a`` and ``a = b = x``: every value is computed before anything is assigned, as Python does."""
        single = [pair for target, value in pairs for pair in self._unpacked(node, target, value)]
        reduced = [(t, v) for t, v in single if isinstance(t, ast.Name) and t.id in accumulators]
        others = [pair for pair in single if pair not in reduced]
        names_reduced = [target.id for target, _ in reduced]
        for name in {name for name in names_reduced if names_reduced.count(name) > 1}:
            self.refuse(
                node, f"{self.source.text(node)} assigns to {name} twice", "write each update on a line of its own"
            )
        # Not names that Python allows, so nobody else's.
        names = {v: ast.copy_location(ast.Name(f"{ast.unparse(t)} =", ast.Load()), v) for t, v in others}
        text = self.source.text(node)
        held = zip(names.values(), self.expressions(*names), strict=True)
        parsed: list[ir.Statement] = [ir.SetTemporary(node.lineno, text, name.id, its) for name, its in held]
        for reduction, value in reduced:  # nothing in the body reads them
            parsed += self._assign(node, reduction, value, accumulators)
        self.scope.temporaries |= {name.id for name in names.values()}
        for target, value in others:
            parsed += self._assign(node, target, names[value], accumulators)
        return parsed

    def _unpacked(self, node: ast.stmt, target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
        """Each single target with its value."""
        if not isinstance(target, ast.Tuple | ast.List):
            yield target, value
            return
        starred = any(isinstance(e, ast.Starred) for e in target.elts)
        if starred or not isinstance(value, ast.Tuple | ast.List) or len(value.elts) != len(target.elts):
            self.refuse(
                node,
                f"{self.source.text(node)} in the loops",
                f"{len(target.elts)} targets take {len(target.elts)} values, as in a, b = b, a + b; "
                "else write one assignment for each",
            )
        for one, its in zip(target.elts, value.elts, strict=True):
            yield from self._unpacked(node, one, its)

    def _assign(
        self,
        node: ast.stmt,
        target: ast.expr,
        value: ast.expr,
        accumulators: tuple[str, ...],
    ) -> list[ir.Statement]:
        """One assignment to one target."""
        text = self.source.text(node)
        if isinstance(target, ast.Name):
            name = target.id
            if name in accumulators:
                return self._accumulate(node, name, None, value)
            if name in self.scope.loop_names or name in self.scope.parameters:
                advice = f"loop indices and arguments keep their value; use another name than {name}"
                self.refuse(node, f"{name} is assigned in the loops", advice)
            parsed = self.expression(value)
            self.scope.temporaries.add(name)
            return [ir.SetTemporary(node.lineno, text, name, parsed)]
        if not isinstance(target, ast.Subscript):
            self.refuse(node, f"assignment to {self.source.text(target)}", "assign to an array element or to a name")
        access, parsed = self.refusals.each(self.expression, (_as_load(target), value))
        if not isinstance(access, ir.Access):
            self.refuse(node, f"assignment to {self.source.text(target)}", "index an array by its name: u[i, j]")
        return [ir.Store(node.lineno, text, access, parsed)]

    def _accumulate(self, node: ast.stmt, name: str, operator: str | None, value: ast.expr) -> list[ir.Statement]:
        """Recognise a reduction: ``s += e``, ``s = s + e``, ``s = e + s``, ``s = max(s, e, …)`` and min alike.

        max and min take their terms one after the other, as Python does: with a NaN among them the order decides.
        """
        terms: Sequence[ir.Expression] = ()
        kind = operator
        text = self.source.text(node)
        match value:
            case _ if operator in ("+", "-"):
                terms = self.expressions(value)
            case ast.BinOp(left=ast.Name(id=left), op=ast.Add() | ast.Sub() as op, right=right) if left == name:
                kind, terms = BINARY[type(op)], self.expressions(right)
            case ast.BinOp(left=left_value, op=ast.Add(), right=ast.Name(id=right_name)) if right_name == name:
                kind, terms = "+", self.expressions(left_value)
            case ast.Call(func=function, args=arguments, keywords=[]) if operator is None:
                kind = canonical_name(self.resolve(function))
                own = [k for k, a in enumerate(arguments) if isinstance(a, ast.Name) and a.id == name]
                if kind in ("max", "min") and own == [0] and len(arguments) > 1:
                    terms = self.expressions(*arguments[1:])
                elif kind in ("max", "min") and len(own) == 1:
                    self.refuse(node, text, f"put the reduction first: {name} = {kind}({name}, …)")
        if not terms or kind not in ("+", "-", "max", "min"):
            self.refuse(
                node,
                f"{text} updates {name}, which was set before the loops",
                f"reductions are {name} = max({name}, x), {name} = min({name}, x) and {name} += x; "
                "other scalars are set and used within one iteration, under a name that is not set before the loops",
            )
        if kind == "-":
            kind, terms = "+", [ir.Unary("-", term, line=node.lineno) for term in terms]
        return [ir.Accumulate(node.lineno, text, name, kind, term) for term in terms]


def assigned(statements: Iterable[ast.stmt]) -> set[str]:
    """The names that statements assign to."""
    nodes = (node for statement in statements for node in ast.walk(statement))
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def bound_names(statement: ast.stmt) -> set[str]:
    """The names that a statement gives a meaning to: also imports and definitions."""
    found = assigned([statement])
    for node in ast.walk(statement):
        if isinstance(node, ast.alias):
            found.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
    return found


def _as_load(node: ast.expr) -> ast.expr:
    """The same target read instead of written, for augmented assignments and access parsing."""
    copy = ast.parse(ast.unparse(node), mode="eval").body
    for part in ast.walk(copy):
        if isinstance(part, ast.expr):
            ast.copy_location(part, node)
    return copy
