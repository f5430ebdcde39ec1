"""What a nest's function finds outside of itself, at the time of asking: globals, closure variables and builtins."""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import operator
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

    def places(self) -> list[tuple[dict[str, Any], str, Any]] | None:
        """Where all names are looked up: globals, the name, and what is known where it is not there; None where some are in a
        closure."""
        if any(cell is not None for _, cell, _ in self._places):
            return None
        return [(self._globals, name, known) for name, _, known in self._places]

    def values(self) -> list[Any]:
        return [
            self._globals.get(name, known) if cell is None else _content(cell) for name, cell, known in self._places
        ]


def _content(cell: types.CellType) -> Any:
    """What a closure variable holds; None for one that was deleted, as for a global that is not there."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


class Meanings:
    """The functions and the modules' constants that a nest names, which its parsed form has taken in, and all that helpers name
    which are inlined in it."""

    def __init__(self, source: FunctionSource) -> None:
        inlined = source.inlined
        trees = (source.tree,) if source.outlined is not None else (source.parsed, source.written, source.tree)
        paths = [path for tree in trees for path in _paths(tree)] + [(name,) for name in sorted(source.rows_around)]
        self._parts = [_Named(source.function, paths)]
        for helper, tree in inlined.helpers:
            rows = [(name,) for name in sorted(FunctionSource.of(helper).rows_around)]
            self._parts.append(_Named(helper, [*_paths(tree), *_names(tree), *rows]))
        self._helpers = [helper for helper, _ in inlined.helpers]
        self._values = self._now()
        alone = None if self._helpers else self._parts[0].places()
        self._places = None if alone is None else list(zip(alone, self._values, strict=True))

    @property
    def hold(self) -> bool:
        """Whether the names still stand for the same."""
        if self._places is not None:  # that is quick: it is asked in every call
            for (found, name, known), value in self._places:
                if found.get(name, known) is not value:
                    break
            else:
                return True
        now = self._now()
        if all(map(operator.is_, self._values, now)):
            return True
        return all(map(_is_equal, self._values, now))

    def _now(self) -> list[Any]:
        values = [value for part in self._parts for value in part.values()]
        for helper in self._helpers:
            values += helper.__code__, helper.__defaults__, tuple((helper.__kwdefaults__ or {}).items())
        return values


class _Named:
    """What a function names of what is around it."""

    def __init__(self, function: Callable[..., Any], paths: Sequence[tuple[str, ...]]) -> None:
        parameters = inspect.signature(function).parameters
        paths = [path for path in dict.fromkeys(paths) if path[0] not in parameters]
        self._outside = Outside(function, [name for name, *_ in paths])
        self._attributes = [(k, attributes) for k, (_, *attributes) in enumerate(paths) if attributes]

    def places(self) -> list[tuple[dict[str, Any], str, Any]] | None:
        """Where the names are looked up: globals, the name, and what is known where it is not there; None where it takes more."""
        return None if self._attributes else self._outside.places()

    def values(self) -> list[Any]:
        values = self._outside.values()
        for k, attributes in self._attributes:
            for attribute in attributes:
                values[k] = getattr(values[k], attribute, None) if isinstance(values[k], types.ModuleType) else None
        return [_as_it_is(value) if type(value) in (list, tuple) else value for value in values]


def _names(tree: ast.FunctionDef) -> Iterator[tuple[str, ...]]:
    """All names that are read."""
    for node in (node for statement in tree.body for node in ast.walk(statement)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield (node.id,)


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


def _as_it_is(row: Sequence[Any]) -> tuple[Any, ...]:
    """A row that does not change any more."""
    return tuple(_as_it_is(value) if type(value) in (list, tuple) else value for value in row)


def _is_equal(before: Any, now: Any) -> bool:
    if now is before:
        return True
    return isinstance(before, int | float | complex | tuple) and type(before) is type(now) and repr(before) == repr(now)
