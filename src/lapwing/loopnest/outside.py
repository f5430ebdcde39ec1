"""What a nest's function finds outside of itself, at the time of asking: globals, closure variables and builtins."""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from lapwing.loopnest.source import FunctionSource

ALWAYS_KNOWN: Mapping[str, Any] = {**vars(builtins), "math": math, "np": np}  # names set-ups may use unimported


class Outside:
    """Looks up names as a function does: in its closure, its globals and what is always known."""

    def __init__(self, function: Callable[..., Any], names: Sequence[str]) -> None:
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        self.names = tuple(names)
        self._globals = function.__globals__
        self._places = [(name, cells.get(name), ALWAYS_KNOWN.get(name)) for name in names]

    def values(self) -> list[Any]:
        return [
            self._globals.get(name, known) if cell is None else cell.cell_contents for name, cell, known in self._places
        ]


class Meanings:
    """The functions and the modules' constants that a nest names, which its parsed form has taken in."""

    def __init__(self, source: FunctionSource) -> None:
        parameters = inspect.signature(source.function).parameters
        paths = [path for path in dict.fromkeys(_paths(source.tree)) if path[0] not in parameters]
        self._outside = Outside(source.function, [name for name, *_ in paths])
        self._attributes = [attributes for _, *attributes in paths]
        self._values = list(self._now())

    @property
    def hold(self) -> bool:
        """Whether the names still stand for the same."""
        return all(
            now is before or _is_equal(before, now) for before, now in zip(self._values, self._now(), strict=True)
        )

    def _now(self) -> Iterator[Any]:
        for value, attributes in zip(self._outside.values(), self._attributes, strict=True):
            for attribute in attributes:
                value = getattr(value, attribute, None) if isinstance(value, types.ModuleType) else None
            yield value


def _paths(tree: ast.FunctionDef) -> Iterator[tuple[str, ...]]:
    """The names that are called, and all dotted ones, as they are written."""
    for node in (node for statement in tree.body for node in ast.walk(statement)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield (node.func.id,)
        attributes: list[str] = []
        while isinstance(node, ast.Attribute):
            attributes.append(node.attr)
            node = node.value
        if attributes and isinstance(node, ast.Name):
            yield (node.id, *reversed(attributes))


def _is_equal(before: Any, now: Any) -> bool:
    return isinstance(before, int | float) and type(before) is type(now) and repr(before) == repr(now)
