"""What the names of a driver stand for: its own in a state, and what its function finds outside."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lapwing.export.driver.partial_evaluation.memories import Memories
from lapwing.export.driver.partial_evaluation.refusals import refuse
from lapwing.export.driver.partial_evaluation.state import Look, Path
from lapwing.export.driver.values import Known, Value, View, shares_memory
from lapwing.loopnest.binding.bound_nest import BoundNest, global_values
from lapwing.loopnest.outside import ALWAYS_KNOWN
from lapwing.loopnest.source import FunctionSource


class Names:
    """Of one driver's function."""

    def __init__(self, source: FunctionSource, memories: Memories) -> None:
        self._source, self._memories = source, memories
        self._outside: dict[str, Any] = {**vars(builtins), **ALWAYS_KNOWN, **global_values(source.function)}

    def look(self, path: Path) -> Look:
        def look(name: str) -> Value:
            if name in path.names:
                return path.names[name]
            if name in self._outside:
                value = self._outside[name]
                is_array = isinstance(value, np.ndarray) and value.shape
                return self._memories.given(name, value) if is_array else Known(value)
            raise KeyError(name)

        return look

    def is_array_outside(self, name: str) -> bool:
        return isinstance(self._outside.get(name), np.ndarray)

    def views(self, node: ast.AST, bounds: Sequence[BoundNest], given: Mapping[str, Value]) -> dict[str, View]:
        """The arrays of a call by name. Raises RefusedError where one that is written shares memory with another."""
        found: dict[str, View] = {}
        written = {name for bound in bounds for name in bound.nest.written}
        for bound in bounds:
            for array in bound.arrays:
                view = given.get(array.name)
                if view is None:
                    view = self._memories.given(array.name, self._outside[array.name])
                assert isinstance(view, View)
                found[array.name] = view
        for name in written:
            for other, view in found.items():
                if other != name and shares_memory(found[name], view):
                    refuse(
                        self._source,
                        node,
                        f"arrays {name} and {other} share memory, and {name} is written",
                        f"Pass {other}.copy()",
                    )
        return found


def named(source: FunctionSource, node: ast.expr, name: str, look: Look) -> Value:
    """What a name stands for. Raises RefusedError for one that stands for nothing."""
    try:
        return look(name)
    except KeyError:
        refuse(source, node, f"{name} has no value here", "Set it before")
