"""Scalar replacement of aggregates: small lists and tuples of scalars become variables, one for each element.

    before                                   after
    ring = [u[i - 1], u[i], u[i + 1]]        ring_0 = u[i - 1]
    if ring[0] == ring[2]:                   ring_1 = u[i]
        c = max(ring)                        ring_2 = u[i + 1]
                                             if ring_0 == ring_2:
                                                 c = max(ring_0, ring_1, ring_2)

An aggregate is a name that only displays of one shape are assigned to, and of which nothing is done but to index it, to go
over it, to unpack it and to reduce it. Its length is known then; loops that go over it or select from it are unrolled
(``tuple_loops``), after which the elements are known as well.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from lapwing.loopnest.normalisation.known_sequences import (
    MOST_ELEMENTS,
    Shape,
    builtins_by_name,
    is_number,
    value_of,
)
from lapwing.loopnest.normalisation.names import all_names, argument_names, fresh_name
from lapwing.syntax_places import placed

_REDUCTIONS = ("sum", "any", "all", "min", "max")


def aggregates(
    tree: ast.FunctionDef, builtins: frozenset[str], rows: frozenset[str] = frozenset()
) -> Mapping[str, tuple[Shape, ...]]:
    """The shapes of the aggregates of a function, by their names. rows: names that stand for rows of numbers."""
    shapes: dict[str, set[Shape]] = {}
    fitting: Counter[str] = Counter()
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.List() | ast.Tuple() as value):
                shape = _shape(value)
                if shape is not None:
                    shapes.setdefault(name, set()).add(shape)
                    fitting[name] += 1
    found = {name: shape for name, (shape, *others) in shapes.items() if shape is not None and not others}
    for name in _used_as_aggregates(tree, found, builtins):
        fitting[name] += 1
    uses = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    shared = argument_names(tree) | rows | _named_elsewhere(tree) | (_changed(tree) & _tuples(tree))
    return {name: shape for name, shape in found.items() if name not in shared and uses[name] == fitting[name]}


def with_scalars(tree: ast.FunctionDef, meaning: Callable[[str], object] = lambda name: None) -> ast.FunctionDef:
    """The function with scalars in the place of aggregates whose elements are all known; the same where it has none."""
    builtins = builtins_by_name(tree, meaning)
    known = aggregates(tree, builtins)
    in_loops = {
        n.id
        for loop in ast.walk(tree)
        if isinstance(loop, ast.For | ast.While)
        for n in ast.walk(loop)
        if isinstance(n, ast.Name)
    }
    shapes = {
        name: shape for name, shape in known.items() if name in in_loops and not _is_selected_from(name, shape, tree)
    }
    if not shapes and not any(_is_reduction(node, builtins) for node in ast.walk(tree)):
        return tree
    new = _Replacing(shapes, builtins, all_names(tree)).visit(copy.deepcopy(tree))
    assert isinstance(new, ast.FunctionDef)
    return new


def _shape(node: ast.expr) -> Shape:
    """The shape of a display, None of other expressions and of displays that are none of an aggregate."""
    if not isinstance(node, ast.List | ast.Tuple) or not node.elts or len(node.elts) > MOST_ELEMENTS:
        return None
    if any(isinstance(part, ast.Starred | ast.NamedExpr | ast.Lambda) for part in ast.walk(node)):
        return None
    shapes = tuple(_shape(element) for element in node.elts)
    whole = (
        ast.List,
        ast.Tuple,
        ast.ListComp,
        ast.SetComp,
        ast.DictComp,
        ast.GeneratorExp,
        ast.Dict,
        ast.Set,
        ast.JoinedStr,
    )
    if any(shape is None and isinstance(e, whole) for shape, e in zip(shapes, node.elts, strict=True)):
        return None
    if any(
        shape is None and isinstance(e, ast.Constant) and not is_number(e)
        for shape, e in zip(shapes, node.elts, strict=True)
    ):
        return None
    return shapes


def _used_as_aggregates(tree: ast.FunctionDef, shapes: Mapping[str, Shape], builtins: frozenset[str]) -> Iterator[str]:
    """The names of aggregates, where they are used as such."""
    inner: set[int] = set()
    for node in ast.walk(tree):  # an access before what it indexes
        match node:
            case ast.Subscript() if id(node) not in inner:
                name, places = _access(node)
                inner |= {id(part) for part in _bases(node)}
                if isinstance(node.ctx, ast.Del):
                    continue
                if name is not None and name in shapes and places is not None and _fits(shapes[name], len(places)):
                    yield name
            case ast.For(iter=over) | ast.comprehension(iter=over):
                yield from _gone_over(over, builtins)
            case ast.Assign(targets=[ast.Tuple() | ast.List()], value=ast.Name(id=name)):
                yield name
            case ast.Call(func=ast.Name(id=called), args=[over], keywords=[]) if called in builtins:
                if called in _REDUCTIONS or called == "len":
                    yield from _gone_over(over, builtins)


def _gone_over(node: ast.expr, builtins: frozenset[str]) -> Iterator[str]:
    match node:
        case ast.Name(id=name):
            yield name
        case ast.Subscript(value=inner, slice=ast.Slice()):
            yield from _gone_over(inner, builtins)
        case ast.Call(func=ast.Name(id="enumerate" | "zip" | "reversed" as called), args=parts) if called in builtins:
            for part in parts:
                yield from _gone_over(part, builtins)


def _access(node: ast.Subscript) -> tuple[str | None, list[ast.expr] | None]:
    """The name of what is indexed, and by what; None instead of the latter where there is more than one index at a time."""
    places: list[ast.expr] = []
    base: ast.expr = node
    while isinstance(base, ast.Subscript):
        places.insert(0, base.slice)
        base = base.value
    plain = not any(isinstance(place, ast.Slice | ast.Tuple) for place in places)
    return base.id if isinstance(base, ast.Name) else None, places if plain else None


def _bases(node: ast.Subscript) -> Iterator[ast.expr]:
    while isinstance(node.value, ast.Subscript):
        node = node.value
        yield node


def _fits(shape: Shape, depth: int) -> bool:
    """Whether so many indices select a scalar, whichever they are."""
    if depth == 0 or shape is None:
        return shape is None and depth == 0
    return all(_fits(inner, depth - 1) for inner in shape)


def _named_elsewhere(tree: ast.FunctionDef) -> set[str]:
    """Names that functions inside of this one use, too, or that it declares, or deletes."""
    found: set[str] = set()
    for node in (node for statement in tree.body for node in ast.walk(statement)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            found |= {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        elif isinstance(node, ast.Global | ast.Nonlocal):
            found.update(node.names)
    return found


def _changed(tree: ast.FunctionDef) -> set[str]:
    """The names of which elements are set."""
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.Subscript) and not isinstance(n.ctx, ast.Load)]
    return {name for name, _ in map(_access, nodes) if name is not None}


def _tuples(tree: ast.FunctionDef) -> set[str]:
    """The names that displays are assigned to of which no elements can be set."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if any(isinstance(part, ast.Tuple) for part in ast.walk(value)):
                    found.add(name)
    return found


def _is_selected_from(name: str, shape: Shape, tree: ast.FunctionDef) -> bool:
    """Whether some of its uses are not of known elements."""
    inner: set[int] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Subscript() if id(node) not in inner:
                found, places = _access(node)
                inner |= {id(part) for part in _bases(node)}
                if found == name and _element(shape, places or []) is None:
                    return True
            case ast.For(iter=over) | ast.comprehension(iter=over):
                if any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(over)):
                    return True
            case ast.Call(func=ast.Name(id=called), args=[over]) if called in (*_REDUCTIONS, "len"):
                whole = not isinstance(over, ast.Name)
                if whole and any(
                    found == name for found in _gone_over(over, frozenset(("enumerate", "zip", "reversed")))
                ):
                    return True
    return False


def _element(shape: Shape, places: list[ast.expr]) -> tuple[int, ...] | None:
    """The place of the scalar that indices select; None where they are not known."""
    found: list[int] = []
    for place in places:
        value = value_of(place)
        if shape is None or type(value) is not int or not -len(shape) <= value < len(shape):
            return None
        found.append(int(value) % len(shape))
        shape = shape[found[-1]]
    return tuple(found) if found and shape is None else None


def _is_reduction(node: ast.AST, builtins: frozenset[str]) -> bool:
    """Whether it reduces a display."""
    match node:
        case ast.Call(func=ast.Name(id="any" | "all" | "min" | "max" as name), args=[display], keywords=[]):
            return name in builtins and _is_display(display)
    return False


def _is_display(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.List | ast.Tuple)
        and bool(node.elts)
        and not any(isinstance(e, ast.Starred) for e in node.elts)
    )


class _Replacing(ast.NodeTransformer):
    def __init__(self, shapes: Mapping[str, Shape], builtins: frozenset[str], taken: set[str]) -> None:
        self.shapes, self.builtins, self.taken = shapes, builtins, taken
        self.names: dict[tuple[str, tuple[int, ...]], str] = {}

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.List() | ast.Tuple() as value) if (
                name in self.shapes
            ):
                reads = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
                self.generic_visit(node)
                pairs = [*self._pairs(name, self.shapes[name], value, ())]
                if name not in reads:
                    return [placed(node, ast.Assign([target], element)) for target, element in pairs]
                targets = ast.Tuple([target for target, _ in pairs], ast.Store())
                elements = ast.Tuple([element for _, element in pairs], ast.Load())
                return placed(node, ast.Assign([targets], elements))
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        name, places = _access(node)
        if name is not None and name in self.shapes and places is not None:
            element = _element(self.shapes[name], places)
            assert element is not None
            return ast.copy_location(ast.Name(self._named(name, element), node.ctx), node)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node:
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)]) if name in self.shapes:
                shape = self.shapes[name]
                return ast.copy_location(ast.Constant(len(shape or ())), node)
        self.generic_visit(node)
        if not _is_reduction(node, self.builtins):
            return node
        assert isinstance(node.func, ast.Name)
        (display,) = node.args
        assert isinstance(display, ast.List | ast.Tuple)
        if node.func.id in ("min", "max"):
            node.args = display.elts
            return node if len(display.elts) > 1 else display.elts[0]
        if "bool" not in self.builtins:
            return node
        first, *others = (placed(node, ast.Call(ast.Name("bool", ast.Load()), [e], [])) for e in display.elts)
        found: ast.expr = first
        for other in others:  # all elements are computed
            found = placed(node, ast.BinOp(found, ast.BitOr() if node.func.id == "any" else ast.BitAnd(), other))
        return found

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id not in self.shapes:
            return node
        return placed(node, self._whole(node.id, self.shapes[node.id], ()))

    def _whole(self, name: str, shape: Shape, at: tuple[int, ...]) -> ast.expr:
        if shape is None:
            return ast.Name(self._named(name, at), ast.Load())
        return ast.Tuple([self._whole(name, inner, (*at, k)) for k, inner in enumerate(shape)], ast.Load())

    def _pairs(
        self, name: str, shape: Shape, value: ast.expr, at: tuple[int, ...]
    ) -> Iterator[tuple[ast.expr, ast.expr]]:
        if shape is None:
            yield ast.Name(self._named(name, at), ast.Store()), value
            return
        assert isinstance(value, ast.List | ast.Tuple)
        for k, inner in enumerate(shape):
            yield from self._pairs(name, inner, value.elts[k], (*at, k))

    def _named(self, name: str, at: tuple[int, ...]) -> str:
        """The variable of an element."""
        if (name, at) not in self.names:
            self.names[name, at] = fresh_name("_".join(map(str, (name, *at))), self.taken)
        return self.names[name, at]
