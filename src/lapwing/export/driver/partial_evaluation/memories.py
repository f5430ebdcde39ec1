"""The arrays of an exported program while its driver is specialised: made, filled and copied, and fetched from rank to rank."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lapwing.export.driver.operations import Copy, Exchange, Fill, Load, Memory
from lapwing.export.driver.partial_evaluation.refusals import refuse
from lapwing.export.driver.partial_evaluation.state import Path
from lapwing.export.driver.residency import Boxes, Residency
from lapwing.export.driver.values import View, memories_in
from lapwing.loopnest.binding.promotion import SUPPORTED_DTYPES
from lapwing.loopnest.source import FunctionSource


class Memories:
    """Of one program on so many ranks."""

    def __init__(self, source: FunctionSource, ranks: int) -> None:
        self._source, self.ranks = source, ranks
        self.by_name: dict[str, Memory] = {}
        self._copies: list[tuple[str, str]] = []

    # -- which there are ---------------------------------------------------------------------------------------------------

    def given(self, name: str, values: np.ndarray[Any, Any]) -> View:
        """An array that is there before the program runs, from its file."""
        return View.of(self._memory(name, values.dtype.name, values.shape, values), values.dtype.name, values.shape)

    def _memory(self, name: str, dtype: str, shape: tuple[int, ...], data: Any = None) -> str:
        if name not in self.by_name:
            self.by_name[name] = Memory(name, dtype, shape, data, [[] for _ in range(self.ranks)])
        return name

    def new(
        self, path: Path, node: ast.AST, dtype: str, shape: tuple[int, ...], live: frozenset[str], data: Any = None
    ) -> View:
        """A new array: memory that no name that is still read stands for."""
        if dtype not in SUPPORTED_DTYPES:
            refuse(self._source, node, f"an array of {dtype}", f"Supported are {', '.join(SUPPORTED_DTYPES)}")
        taken = {memory for name in live if name in path.names for memory in memories_in(path.names[name])}
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        number = 1
        while (name := f"array_{line}_{column}_{number}") in taken:
            number += 1
        known = self.by_name.get(name)
        if known is not None and (known.dtype, known.shape) != (dtype, shape):
            name = f"{name}_{'x'.join(map(str, shape))}_{dtype}"
        return View.of(self._memory(name, dtype, shape, data), dtype, shape)

    # -- what they hold ------------------------------------------------------------------------------------------------------

    def fill(self, path: Path, view: View, element: bytes) -> None:
        path.arrays[view.memory] = Residency.new(("fill", element), self.ranks)
        path.done.append(Fill(view.memory, element))

    def load(self, path: Path, view: View) -> None:
        path.arrays[view.memory] = Residency.new(("file", view.memory), self.ranks)
        path.done.append(Load(view.memory))

    def copy(self, path: Path, view: View, source: View) -> None:
        """Let an array become another one's copy."""
        path.arrays[view.memory] = self.residency(path, source.memory)
        path.done.append(Copy(view.memory, source.memory))
        self._copies.append((view.memory, source.memory))

    # -- which ranks have them -----------------------------------------------------------------------------------------------

    def residency(self, path: Path, memory: str) -> Residency:
        """That of an array from a file is as it was read where nothing has been done to it."""
        return path.arrays.get(memory) or Residency.new(("file", memory), self.ranks)

    def fetch(self, path: Path, needs: Mapping[str, Sequence[Boxes]]) -> None:
        """Let ranks have elements of arrays as they are now. needs: by rank, boxes."""
        moves = []
        for memory, needed in needs.items():
            residency = self.residency(path, memory)
            found = residency.moves(needed)
            path.arrays[memory] = residency.moved(found)
            moves += [(memory, move) for move in found]
            self.keep(memory, needed)
            for move in found:
                self.by_name[memory].kept[move.source].append(move.box)
        if moves:
            path.done.append(Exchange(tuple(moves)))

    def written(self, path: Path, memory: str, rounds: Sequence[Sequence[Boxes]]) -> None:
        path.arrays[memory] = self.residency(path, memory).written(rounds)

    def keep(self, memory: str, needed: Sequence[Boxes]) -> None:
        for kept, boxes in zip(self.by_name[memory].kept, needed, strict=True):
            kept += (box for box in boxes if box not in kept)

    def keep_copies(self) -> None:
        """What is kept of a copy must be there in what it is a copy of."""
        while True:
            missing = [
                (kept, box)
                for copy, source in self._copies
                for kept, boxes in zip(self.by_name[source].kept, self.by_name[copy].kept, strict=True)
                for box in boxes
                if box not in kept
            ]
            if not missing:
                return
            for kept, box in missing:
                kept.append(box)
