"""Values of a driver's expressions while it is specialised: computed here, or by what the program does for them."""

from __future__ import annotations

import ast
from functools import partial
from typing import Any

import numpy as np

from lapwing.export.driver.partial_evaluation.constant_folding import folded
from lapwing.export.driver.partial_evaluation.local_calls import LocalCalls
from lapwing.export.driver.partial_evaluation.memories import Memories
from lapwing.export.driver.partial_evaluation.names import Names, named
from lapwing.export.driver.partial_evaluation.refusals import must_be_known, refuse
from lapwing.export.driver.partial_evaluation.state import Look, Path
from lapwing.export.driver.partial_evaluation.whole_arrays import WholeArrays
from lapwing.export.driver.values import Known, NeedsValue, Register, Several, Value, View
from lapwing.loopnest.source import FunctionSource


class Evaluation:
    """Of one program on so many ranks."""

    def __init__(self, source: FunctionSource, ranks: int) -> None:
        self.source = source
        self.memories = Memories(source, ranks)
        self.names = Names(source, self.memories)
        self.local_calls = LocalCalls(source, self.names, self.memories)
        self._whole_arrays = WholeArrays(source, self.memories)

    def value(self, node: ast.expr, path: Path, live: frozenset[str], look: Look | None = None) -> Value:
        """What an expression stands for. live: the names that are read later. Raises RefusedError for what neither is known
        here nor can be left to the program."""
        look = look or self.names.look(path)
        match node:
            case ast.Name(id=name):
                return named(self.source, node, name, look)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                items = tuple(self.value(element, path, live, look) for element in elements)
                if all(isinstance(item, Known) for item in items):
                    made = tuple if isinstance(node, ast.Tuple) else list
                    return Known(made(item.value for item in items if isinstance(item, Known)))
                return Several(items)
            case ast.Call(func=ast.Name(id="len"), args=[ast.Subscript() as row], keywords=[]):
                if isinstance(of := self.value(row, path, live, look), View):
                    return Known(of.shape[0])
            case ast.Call() if (array := self._array(node, path, live, look)) is not None:
                return array
            case ast.Subscript(value=of, slice=index):
                if (found := self._part(node, of, index, path, live, look)) is not None:
                    return found
            case ast.IfExp(test=test, body=body, orelse=orelse):
                chosen = self.value(test, path, live, look)
                if isinstance(chosen, Known):
                    return self.value(body if chosen.value else orelse, path, live, look)
        constant = folded(self.source, node, look)
        return self.local_calls.computed(node, path, look) if constant is None else constant

    def store(self, statement: ast.stmt, path: Path, live: frozenset[str]) -> None:
        """Do a statement that writes elements of arrays."""
        look = self.names.look(path)
        evaluate = partial(self.value, path=path, live=live)
        if not self._whole_arrays.overwritten(statement, path, look, evaluate):
            self.local_calls.store(statement, path, look)

    def _array(self, node: ast.Call, path: Path, live: frozenset[str], look: Look) -> Value | None:
        evaluate = partial(self.value, path=path, live=live, look=look)
        return self._whole_arrays.array(node, path, live, look, evaluate)

    def _known(self, node: ast.expr, path: Path, live: frozenset[str], look: Look, what: str) -> Any:
        return must_be_known(self.source, node, self.value(node, path, live, look), what)

    def _part(
        self, node: ast.expr, of: ast.expr, index: ast.expr, path: Path, live: frozenset[str], look: Look
    ) -> Value | None:
        """An item of a tuple, or a part of an array that is no element; None for anything else."""
        whole = self.value(of, path, live, look) if isinstance(of, ast.Name | ast.Subscript) else None
        match whole:
            case Several(items=items):
                return items[int(self._known(index, path, live, look, ast.unparse(node)))]
            case View():
                found = self._indices(index, len(whole.shape), path, live, look)
                if found is None:
                    return None
                try:
                    view = whole.indexed(found)
                except IndexError as error:
                    refuse(self.source, node, f"{ast.unparse(node)}: {error}", "Check the arguments")
                except ValueError as error:
                    refuse(
                        self.source, node, f"{ast.unparse(node)} is a part with {error}", "Loop over the whole array"
                    )
                return view if view.shape else None
        return None

    def _indices(
        self, index: ast.expr, axes: int, path: Path, live: frozenset[str], look: Look
    ) -> tuple[int | slice, ...] | None:
        """Indices of an array that are known; None where they are not, but select an element."""
        elements = index.elts if isinstance(index, ast.Tuple) else [index]
        is_part = len(elements) < axes or any(isinstance(element, ast.Slice) for element in elements)
        found: list[int | slice] = []
        for element in elements:
            if isinstance(element, ast.Slice):
                ends = (element.lower, element.upper, element.step)
                known = (
                    None if end is None else self._known(end, path, live, look, ast.unparse(index)) for end in ends
                )
                found.append(slice(*known))
                continue
            value = self.value(element, path, live, look)
            if isinstance(value, Register) and is_part:
                raise NeedsValue(value, f"the part of an array that {ast.unparse(index)} selects")
            if isinstance(value, Register):
                return None
            if not isinstance(value, Known) or not isinstance(value.value, int | np.integer):
                refuse(
                    self.source,
                    element,
                    f"an index {ast.unparse(element)}",
                    "Index arrays by whole numbers and ranges",
                )
            found.append(int(value.value))
        return tuple(found)
