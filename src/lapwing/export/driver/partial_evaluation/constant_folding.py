"""Expressions of a driver of which all parts are known: computed here and now. Of arrays the sizes are known, and not the
elements."""

from __future__ import annotations

import ast
import copy
import math
from collections.abc import Mapping
from typing import Any

from lapwing.export.driver.partial_evaluation.names import named
from lapwing.export.driver.partial_evaluation.refusals import raise_there
from lapwing.export.driver.partial_evaluation.state import Look
from lapwing.export.driver.values import Known, View
from lapwing.loopnest.array_shape import ArrayShape
from lapwing.loopnest.functions import canonical_name
from lapwing.loopnest.setup import UnsupportedSetup, evaluate, resolve
from lapwing.loopnest.source import FunctionSource

_SAFE = (
    range,
    len,
    int,
    float,
    bool,
    abs,
    min,
    max,
    round,
    sum,
    tuple,
    list,
    enumerate,
    zip,
    reversed,
    complex,
    divmod,
)


def folded(source: FunctionSource, node: ast.expr, look: Look) -> Known | None:
    """The value of an expression of which all parts are known; None for others."""
    names = known_names(source, node, look)
    if names is None:
        return None
    try:
        return Known(evaluate(node, names))
    except UnsupportedSetup:
        pass
    except Exception as error:
        if any(isinstance(value, ArrayShape) for value in names.values()):
            return None  # what was looked at may have been no size
        raise_there(source, node, error)
    if not asks_for_sizes_alone(node, names):
        return None
    if not all(is_safe(part, names) for part in ast.walk(node)):
        return None
    try:
        return Known(computed_here(source, node, names))
    except Exception as error:
        raise_there(source, node, error)


def known_names(source: FunctionSource, node: ast.expr, look: Look) -> dict[str, Any] | None:
    """What the names in an expression are, of arrays their shape; None where one is not known."""
    names: dict[str, Any] = {}
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            match named(source, part, part.id, look):
                case Known(value=value):
                    names[part.id] = value
                case View() as view:
                    names[part.id] = view.like
                case _:
                    return None
    return names


def asks_for_sizes_alone(node: ast.AST, names: Mapping[str, Any]) -> bool:
    """Whether of arrays an expression has nothing but len(u) and u.shape."""
    inside = 0
    for part in ast.walk(node):
        match part:
            case (
                ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)])
                | ast.Attribute(value=ast.Name(id=name), attr="shape" | "ndim" | "size")
            ):
                inside += isinstance(names.get(name), ArrayShape)
    arrays = [n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(names.get(n.id), ArrayShape)]
    return len(arrays) == inside


def is_safe(part: ast.AST, names: Mapping[str, Any]) -> bool:
    """Whether a node of an expression, looked at without what is inside of it, has no effects and is the same in every run."""
    if isinstance(part, ast.Lambda | ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom | ast.comprehension):
        return False
    if not isinstance(part, ast.Call):
        return True
    function = resolve(part.func, names)
    return function is not None and (function in _SAFE or canonical_name(function) is not None)


def computed_here(source: FunctionSource, node: ast.expr, names: Mapping[str, Any]) -> Any:
    """What Python makes of an expression. Raises what it raises."""
    names = {name: _Sized(value.shape) if isinstance(value, ArrayShape) else value for name, value in names.items()}
    code = compile(ast.Expression(copy.deepcopy(node)), source.file, "eval")
    return eval(code, {"__builtins__": {}}, names)


class _Sized:
    """What has a shape and nothing else."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape, self.ndim, self.size = shape, len(shape), math.prod(shape)

    def __len__(self) -> int:
        return self.shape[0]
