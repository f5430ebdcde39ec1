"""What a driver does with whole arrays: makes them as NumPy does, copies them, and overwrites all of their elements."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from lapwing.errors import RefusedError
from lapwing.export.driver.partial_evaluation.constant_folding import (
    asks_for_sizes_alone,
    computed_here,
    folded,
    is_safe,
    known_names,
)
from lapwing.export.driver.partial_evaluation.memories import Memories
from lapwing.export.driver.partial_evaluation.names import named
from lapwing.export.driver.partial_evaluation.refusals import must_be_known, raise_there, refuse
from lapwing.export.driver.partial_evaluation.state import Look, Path
from lapwing.export.driver.values import Known, Value, View
from lapwing.loopnest.source import FunctionSource

_MADE_OF_SHAPE: dict[Any, int | None] = {np.zeros: 0, np.ones: 1, np.empty: 0, np.full: None}
_MADE_LIKE: dict[Any, int | None] = {np.zeros_like: 0, np.ones_like: 1, np.empty_like: 0, np.full_like: None}
_COPIES = (np.copy, np.array, np.ascontiguousarray)
_COMPUTED_HERE = (np.array, np.arange, np.linspace, np.eye, np.asarray, np.identity)

Evaluate = Callable[[ast.expr], Value]


class WholeArrays:
    """Of one program. evaluate: what an expression stands for in the same state, to those that have others in them."""

    def __init__(self, source: FunctionSource, memories: Memories) -> None:
        self._source, self._memories = source, memories

    def array(self, node: ast.Call, path: Path, live: frozenset[str], look: Look, evaluate: Evaluate) -> Value | None:
        """The array that a call makes; None for other calls. live: the names that are read later."""
        if isinstance(node.func, ast.Attribute) and node.func.attr == "copy" and not node.args:
            try:
                of = evaluate(node.func.value)
            except RefusedError:
                return None
            return self._copied(path, node, of, live) if isinstance(of, View) else None
        function = self._function(node.func, look)
        if function is None:
            return None
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        if function in _COPIES and len(node.args) == 1 and not keywords:
            of = evaluate(node.args[0])
            if isinstance(of, View):
                return self._copied(path, node, of, live)
        if function in _MADE_OF_SHAPE or function in _MADE_LIKE:
            return self._made(node, function, keywords, path, live, look, evaluate)
        if function in _COMPUTED_HERE:
            return self._computed_here(node, path, live, look)
        return None

    def overwritten(self, node: ast.stmt, path: Path, look: Look, evaluate: Evaluate) -> bool:
        """Whether a statement gives all elements of an array a number, or those of another one, ``u[:] = v``; then it is done."""
        match node:
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name), slice=index)], value=value):
                pass
            case _:
                return False
        target = path.names.get(name)
        is_all = isinstance(index, ast.Slice) and not (index.lower or index.upper or index.step)
        if not isinstance(target, View) or not target.is_whole or not (is_all or ast.unparse(index) == "..."):
            return False
        found = evaluate(value) if isinstance(value, ast.Name) else folded(self._source, value, look)
        match found:
            case Known() if found.is_number:
                try:
                    element = np.full((), found.value, target.dtype).tobytes()
                except Exception as error:
                    raise_there(self._source, node, error)
                self._memories.fill(path, target, element)
                return True
            case View() if found.is_whole and (found.dtype, found.shape) == (target.dtype, target.shape):
                if found.memory != target.memory:
                    self._memories.copy(path, target, found)
                return True
        return False

    def _function(self, node: ast.expr, look: Look) -> Any:
        match node:
            case ast.Name(id=name):
                value = named(self._source, node, name, look)
                return value.value if isinstance(value, Known) else None
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                owner = named(self._source, node, name, look)
                return getattr(owner.value, attribute, None) if isinstance(owner, Known) else None
        return None

    def _copied(self, path: Path, node: ast.AST, source: View, live: frozenset[str]) -> View:
        if not source.is_whole:
            refuse(
                self._source,
                node,
                f"{ast.unparse(node)} copies a part of an array",
                "Copy it element by element, in loops",
            )
        view = self._memories.new(path, node, source.dtype, source.shape, live | path.names_of(source.memory))
        self._memories.copy(path, view, source)
        return view

    def _made(
        self,
        node: ast.Call,
        function: Any,
        keywords: Mapping[str | None, ast.expr],
        path: Path,
        live: frozenset[str],
        look: Look,
        evaluate: Evaluate,
    ) -> View:
        """zeros, ones, empty and full, and the same of an array's shape."""
        given = [*node.args]
        first = given.pop(0) if given else keywords.get("shape") or keywords.get("a")
        value = {**_MADE_OF_SHAPE, **_MADE_LIKE}[function]
        if value is None:
            filling = given.pop(0) if given else keywords.get("fill_value")
            if filling is not None:
                value = must_be_known(self._source, filling, evaluate(filling), "what an array is filled with")
        kind = given.pop(0) if given else keywords.get("dtype")
        if first is None or value is None or given or not keywords.keys() <= {"shape", "a", "fill_value", "dtype"}:
            refuse(self._source, node, f"{ast.unparse(node)}", "Write it with a shape, a value and dtype= alone")
        if function in _MADE_LIKE:
            like = evaluate(first)
            if not isinstance(like, View):
                refuse(self._source, node, f"{ast.unparse(first)} is no array", "Pass one")
            shape: Any = like.shape
            dtype = like.dtype
        else:
            shape = must_be_known(self._source, first, evaluate(first), f"the shape of {ast.unparse(node)}")
            dtype = "float64" if function is not np.full else np.asarray(value).dtype.name
        if kind is not None:
            dtype = np.dtype(self._dtype(kind, look)).name
        shape = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
        view = self._memories.new(path, node, dtype, tuple(map(int, shape)), live)
        self._memories.fill(path, view, np.full((), value, dtype).tobytes())
        return view

    def _dtype(self, node: ast.expr, look: Look) -> Any:
        match node:
            case ast.Attribute(value=of, attr="dtype"):
                if isinstance(of, ast.Name) and isinstance(view := named(self._source, of, of.id, look), View):
                    return view.dtype
            case ast.Name() | ast.Attribute():
                if (found := self._function(node, look)) is not None:
                    return found
            case ast.Constant(value=str() as name):
                return name
        refuse(self._source, node, f"dtype={ast.unparse(node)}", "Name the type, as dtype=np.float64")

    def _computed_here(self, node: ast.Call, path: Path, live: frozenset[str], look: Look) -> Value | None:
        """An array that only depends on what is known."""
        names = known_names(self._source, node, look)
        if names is None or not asks_for_sizes_alone(node, names):
            return None
        calls = [part for part in ast.walk(node) if isinstance(part, ast.Call) and part is not node]
        if not all(is_safe(part, names) for part in calls):
            return None
        try:
            values = computed_here(self._source, node, names)
        except Exception as error:
            refuse(self._source, node, f"{ast.unparse(node)} cannot be computed: {error}", "Check the arguments")
        if not isinstance(values, np.ndarray) or not values.shape:
            return None
        view = self._memories.new(path, node, values.dtype.name, values.shape, live, np.ascontiguousarray(values))
        if not np.array_equal(self._memories.by_name[view.memory].data, values):
            refuse(self._source, node, f"{ast.unparse(node)} is another array every time", "Make it before the loop")
        self._memories.load(path, view)
        return view
