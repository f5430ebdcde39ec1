"""A driver that tells before it looks at arrays, or writes to them: where ranks share the work on them, copies are then behind.

    while err > tol:                                   while (look(…), err > tol)[1]:
        u[0, :] = f(t)                                     look(…)
                                                           u[0, :] = f(t)
        sweep(u, v)                                        sweep(u, v)
        u, v = v, u                                        u, v = v, u

Nothing is said of moving arrays from name to name, of their shapes, and of what is passed to regions.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping

from lapwing.syntax_places import placed

# Not names that Python allows, so nobody else's.
LOOK, ITEM, VIEW, LOCALS, SLICE = "look at", "item of", "view of", "locals of the driver", "slice of"
NAMES = (LOOK, ITEM, VIEW, LOCALS, SLICE)

_SHAPES = frozenset({"shape", "ndim", "dtype", "size", "nbytes", "itemsize", "strides"})
_PLAIN_CONTEXTS = frozenset({"errstate", "catch_warnings", "suppress", "nullcontext", "printoptions", "open"})
_LIKE = frozenset({"zeros_like", "ones_like", "empty_like", "full_like", "shape", "ndim", "size"})


def looking(tree: ast.FunctionDef, calls: Mapping[int, Collection[str]]) -> ast.FunctionDef:
    """The driver with looks before its statements; the tree is changed. calls: the statements that call regions, by identity,
    with the names of the arrays that they read themselves."""
    tree.body = _Looking(calls).block(tree.body)
    return tree


class _Looking:
    def __init__(self, calls: Mapping[int, Collection[str]]) -> None:
        self.calls = calls

    def block(self, statements: Iterable[ast.stmt]) -> list[ast.stmt]:
        return [one for statement in statements for one in self._with_look(statement)]

    def _with_look(self, node: ast.stmt) -> list[ast.stmt]:
        """A statement, and what is said before it."""
        before: set[str] = set()
        match node:
            case _ if id(node) in self.calls:
                before = {*self.calls[id(node)]}
                _pass_views(node, before)
            case ast.If() | ast.While():
                node.test = _watched(node.test)
            case ast.For() | ast.AsyncFor():
                node.iter = _watched(node.iter)
                before = _looked_at(node.target)
            case ast.Match():
                node.subject = _watched(node.subject)
            case ast.With() | ast.AsyncWith():
                before = {name for item in node.items for name in _looked_at(item)}
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                before = {name for decorator in node.decorator_list for name in _looked_at(decorator)}
            case ast.Try() | ast.TryStar():
                for handler in node.handlers:
                    handler.body = self.block(handler.body)
            case ast.Assign(targets=targets, value=value) if all(_is_name(target) for target in targets):
                node.value, before = _moved(value)
            case ast.Return(value=ast.expr() as value):
                node.value, before = _moved(value)
            case _:
                before = _looked_at(node)
                if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                    before.add(node.target.id)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for name in ("body", "orelse", "finalbody"):
                if isinstance(getattr(node, name, None), list):
                    setattr(node, name, self.block(getattr(node, name)))
        for case in getattr(node, "cases", ()):
            case.body = self.block(case.body)
            case.guard = None if case.guard is None else _watched(case.guard)
        if isinstance(node, ast.With | ast.AsyncWith) and not all(map(_looks_at_nothing, node.items)):
            at_end = ast.Try(node.body, [], [], [ast.Expr(_look(before))])
            node.body = [placed(node, at_end, with_end=True)]
        return [placed(node, ast.Expr(_look(before)), with_end=True), node] if before else [node]


def _looks_at_nothing(item: ast.withitem) -> bool:
    """Whether the end of a with statement looks at no arrays, whatever happens in it."""
    match item.context_expr:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in _PLAIN_CONTEXTS
    return False


def _watched(node: ast.expr) -> ast.expr:
    """``(look(…), expression)[1]``"""
    names = _looked_at(node)
    match node:
        case ast.Call(func=ast.Name(id="range"), args=args) if not any(map(_is_look_up, args)):
            return node
    if not names:
        return node
    pair = ast.Tuple([_look(names), node], ast.Load())
    return placed(node, ast.Subscript(pair, ast.Constant(1), ast.Load()), with_end=True)


def _is_look_up(node: ast.expr) -> bool:
    """Whether an end of a range may come from an array's elements."""
    return any(isinstance(part, ast.Subscript | ast.Call) and not _is_shape(part) for part in ast.walk(node))


def _is_shape(node: ast.AST) -> bool:
    match node:
        case ast.Subscript(value=ast.Attribute(value=ast.Name(), attr=attribute)):
            return attribute in _SHAPES
        case ast.Call(func=ast.Name(id="len" | "int" | "min" | "max" | "abs")):
            return True
    return False


def _moved(value: ast.expr) -> tuple[ast.expr, set[str]]:
    """A value that is assigned to names, and what is looked at before: an array that only gets another name is not."""
    match value:
        case ast.Name() | ast.Constant():
            return value, set()
        case ast.Tuple(elts=elements) | ast.List(elts=elements) if not any(
            isinstance(e, ast.Starred) for e in elements
        ):
            moved = [_moved(element) for element in elements]
            value.elts = [element for element, _ in moved]
            return value, {name for _, names in moved for name in names}
        case ast.Subscript(value=ast.Name() as array, slice=index) if not _is_shape(value):
            item = ast.Call(ast.Name(ITEM, ast.Load()), [array, _as_value(index)], [])
            return placed(value, item, with_end=True), _looked_at(index)
    return value, _looked_at(value)


def _pass_views(node: ast.stmt, looked_at: Collection[str]) -> None:
    """``region(view(u, 1), n)`` for ``region(u[1], n)``. looked_at: arrays of which elements are passed."""
    match node:
        case ast.Expr(value=ast.Call() as call) | ast.Assign(value=ast.Call() as call):
            call.args = [_as_view(argument, looked_at) for argument in call.args]


def _as_view(node: ast.expr, looked_at: Collection[str]) -> ast.expr:
    match node:
        case ast.Subscript(value=ast.Name(id=name) as array, slice=index) if name not in looked_at and not _is_shape(
            node
        ):
            view = ast.Call(ast.Name(VIEW, ast.Load()), [array, _as_value(index)], [])
            return placed(node, view, with_end=True)
    return node


def _as_value(index: ast.expr) -> ast.expr:
    """An index as an expression: ``1:n, 0`` is ``slice(1, n, None), 0``."""
    match index:
        case ast.Slice(lower=lower, upper=upper, step=step):
            ends = [ast.Constant(None) if end is None else end for end in (lower, upper, step)]
            return ast.Call(ast.Name(SLICE, ast.Load()), ends, [])
        case ast.Tuple(elts=elements):
            return ast.Tuple([_as_value(element) for element in elements], ast.Load())
    return index


def _looked_at(node: ast.AST) -> set[str]:
    """The names of which a statement or expression may read elements, or write them."""
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            return {name}
        case ast.Attribute(value=ast.Name(), attr=attribute) if attribute in _SHAPES:
            return set()
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name()], keywords=[]):
            return set()
        case ast.Call(func=ast.Attribute(value=ast.Name() as module, attr=function), args=[ast.Name(), *rest]) if (
            function in _LIKE
        ):
            others = [module, *rest, *(keyword.value for keyword in node.keywords)]
            return {name for other in others for name in _looked_at(other)}
    return {name for child in ast.iter_child_nodes(node) for name in _looked_at(child)}


def _is_name(target: ast.expr) -> bool:
    if isinstance(target, ast.Tuple | ast.List):
        return all(map(_is_name, target.elts))
    return isinstance(target, ast.Name)


def _look(names: Collection[str]) -> ast.expr:
    """``look(locals(), 'u', 'v')``: some may have no value yet."""
    own = ast.Call(ast.Name(LOCALS, ast.Load()), [], [])
    return ast.Call(ast.Name(LOOK, ast.Load()), [own, *map(ast.Constant, sorted(names))], [])
