"""Ranges that have a name, put where loops go over them.

    before                                   after
    rows = range(1, n)                       for i in range(1, n):
    for i in rows:                               ...
        ...

Where a range depends on what may have changed by then, or which it is on a condition, its bounds are kept in variables:

    if up:                                   if up:
        rows = range(n)                          rows_start, rows_stop, rows_step = 0, n, 1
    else:                                    else:
        rows = range(n - 1, -1, -1)              rows_start, rows_stop, rows_step = n - 1, -1, -1
    for i in rows:                           for i in range(rows_start, rows_stop, rows_step):
        ...                                      ...
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Sequence

from lapwing.loopnest.normalisation.names import all_names, argument_names, fresh_name, names_set_once
from lapwing.syntax_places import placed

Bounds = tuple[ast.expr, ast.expr, ast.expr]


def with_ranges(tree: ast.FunctionDef) -> ast.FunctionDef:
    """The function with ranges where its loops are; the same where no name stands for one."""
    names = _range_names(tree)
    if not names:
        return tree
    tree = copy.deepcopy(tree)
    _Substitution(tree, names).block(tree.body, {})
    read = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    done = _Kept(tree, {name for name in names if name in read}, names).visit(tree)
    assert isinstance(done, ast.FunctionDef)
    return done


def _range_names(tree: ast.FunctionDef) -> set[str]:
    """The names that are only ever set to ranges and only gone over by loops."""
    uses: Counter[str] = Counter()
    fitting: Counter[str] = Counter()
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _bounds(value) is not None:
                found.add(name)
                fitting[name] += 1
            case ast.For(iter=ast.Name(id=name)):
                fitting[name] += 1
            case ast.Name(id=name):
                uses[name] += 1
    return {name for name in found - argument_names(tree) if uses[name] == fitting[name]}


def _bounds(node: ast.expr) -> Bounds | None:
    """Start, stop and step of a range, also of one that a condition chooses."""
    match node:
        case ast.Call(func=ast.Name(id="range"), args=[stop], keywords=[]):
            return ast.Constant(0), stop, ast.Constant(1)
        case ast.Call(func=ast.Name(id="range"), args=[start, stop], keywords=[]):
            return start, stop, ast.Constant(1)
        case ast.Call(func=ast.Name(id="range"), args=[start, stop, step], keywords=[]):
            return start, stop, step
        case ast.IfExp(test=test, body=body, orelse=orelse):
            one, other = _bounds(body), _bounds(orelse)
            is_pure = not any(isinstance(part, ast.Call | ast.NamedExpr) for part in ast.walk(test))
            if is_pure and one is not None and other is not None:
                start, stop, step = (ast.IfExp(test, a, b) for a, b in zip(one, other, strict=True))
                return start, stop, step
    return None


class _Substitution:
    """Puts ranges in the place of their names, as far as they are certain to be the same there."""

    def __init__(self, tree: ast.FunctionDef, names: set[str]) -> None:
        self.names = names
        self.fixed = names_set_once(tree) | {"range", "len"}

    def block(self, statements: Sequence[ast.stmt], known: dict[str, ast.expr]) -> None:
        """known: the ranges by their names, when the statements begin; changed to what they are at their end."""
        for statement in statements:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in self.names:
                    known.pop(name, None)
                    if self._stays(value):
                        known[name] = value
                    continue
                case ast.For(iter=ast.Name(id=name)) if name in known:
                    statement.iter = placed(statement.iter, copy.deepcopy(known[name]), with_end=True)
            inner = [s for s in ast.iter_child_nodes(statement) if isinstance(s, ast.stmt)]
            if not inner:
                continue
            changed = {
                n.id for s in inner for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
            }
            for field in ("body", "orelse", "finalbody"):
                # A loop's body begins also after an earlier iteration.
                begin = {k: v for k, v in known.items() if isinstance(statement, ast.If) or k not in changed}
                self.block(getattr(statement, field, []), begin)
            for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
                self.block(part.body, {k: v for k, v in known.items() if k not in changed})
            for name in changed & known.keys():
                del known[name]

    def _stays(self, value: ast.expr) -> bool:
        """Whether an expression has the same value wherever its names have one: they are set but once, in no loop."""
        plain = (
            ast.Name,
            ast.Constant,
            ast.BinOp,
            ast.UnaryOp,
            ast.Call,
            ast.IfExp,
            ast.Compare,
            ast.Attribute,
            ast.Subscript,
        )
        for node in ast.walk(value):
            if isinstance(node, ast.expr) and not isinstance(node, plain):
                return False
            if isinstance(node, ast.Name) and node.id not in self.fixed:
                return False
            if isinstance(node, ast.Subscript) and not (
                isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
            ):
                return False
            if isinstance(node, ast.Call) and not (
                isinstance(node.func, ast.Name) and node.func.id in ("range", "len")
            ):
                return False
        return True


class _Kept(ast.NodeTransformer):
    """Keeps the bounds of ranges in variables, and leaves out what is set and not read."""

    def __init__(self, tree: ast.FunctionDef, kept: set[str], names: set[str]) -> None:
        taken = all_names(tree)
        self.names = names
        self.parts = {
            name: tuple(fresh_name(f"{name}_{part}", taken) for part in ("start", "stop", "step")) for name in kept
        }

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | list[ast.stmt]:
        match node.targets:
            case [ast.Name(id=name)] if name in self.parts:
                bounds = _bounds(node.value)
                assert bounds is not None
                pairs = zip(self.parts[name], bounds, strict=True)
                return [placed(node, ast.Assign([ast.Name(n, ast.Store())], copy.deepcopy(b))) for n, b in pairs]
            case [ast.Name(id=name)] if name in self.names:
                return placed(node, ast.Pass())
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        match node.iter:
            case ast.Name(id=name) if name in self.parts:
                bounds: list[ast.expr] = [ast.Name(part, ast.Load()) for part in self.parts[name]]
                node.iter = placed(node.iter, ast.Call(ast.Name("range", ast.Load()), bounds, []), with_end=True)
        return node
