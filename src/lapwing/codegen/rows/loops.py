"""Loops over a box of iterations, in generated C."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from lapwing.affine.scanning import LoopBounds
from lapwing.codegen.body.text import Lines, mentions
from lapwing.codegen.rows.bounds import tile_bounds
from lapwing.codegen.rows.module import ModuleWriter


class LoopWriter(ModuleWriter):
    """Writes loops over ``box``, a parameter of the functions of a tile."""

    def sweep_indices(self, lines: Lines, body: str) -> None:
        for k, loop in enumerate(self.nest.sweep_loops):
            if mentions(body, self.index(loop.name)):
                lines.add(f"const int64_t {self.index(loop.name)} = {'' if loop.step == 1 else '-'}box->lo[{k}];")

    def open_loop(self, lines: Lines, k: int, pragma: str = "") -> None:
        bounds, name = self.loop_bounds(k), self.nest.loops[k].name
        x = self.coordinate(name)
        end = self.loop_end(lines, k)
        lines.add(*([pragma] if pragma else []))
        lines.open(f"for (int64_t {x} = {bounds.low}; {x} < {end}; ++{x}) {{")
        lines.add(*self.index_from_coordinates(name))

    def loop_end(self, lines: Lines, k: int, bounds: LoopBounds | None = None) -> str:
        """The end of a loop's range, under a name of its own: C would look it up again after every store of bytes."""
        high = (bounds or self.loop_bounds(k)).high
        x = self.coordinate(self.nest.loops[k].name)
        end = self.names.get(("end", k), f"{x}_end")
        lines.add(f"const int64_t {end} = {high};")
        return end

    @cached_property
    def _ragged_bounds(self) -> list[LoopBounds]:
        """The bounds of space loops where some depend on outer loops; else nothing."""
        loops = self.nest.space_loops
        depends = any(loop.bound_names & set(self.nest.loop_names) for loop in loops)
        if not depends and self.bound.skew is None:
            return []
        coordinates = {loop.name: self.coordinate(loop.name) for loop in loops}
        return tile_bounds(self.bound, coordinates, {name: self.scalar(name) for name, _ in self.nest.symbols})

    def loop_bounds(self, k: int) -> LoopBounds:
        """The range of a loop inside the box."""
        if self._ragged_bounds:
            return self._ragged_bounds[k - self.nest.sweep_depth]
        return LoopBounds(f"box->lo[{k}]", f"box->hi[{k}]")

    def indices_of(self, lines: Lines, values: Sequence[tuple[int, str]], used_in: str | None = None) -> None:
        """Declares loops' coordinates and the user's indices; used_in: only those that a statement mentions."""
        names = [self.nest.loops[k].name for k, _ in values]
        # The index of a loop that is skewed takes the coordinates of all.
        all_of_them = any(self.is_skewed(n) and mentions(used_in or "", self.index(n)) for n in names)
        for name, (_, value) in zip(names, values, strict=True):
            if used_in is None or all_of_them or mentions(used_in, self.index(name)):
                lines.add(f"const int64_t {self.coordinate(name)} = {value};", *self.index_from_coordinates(name))
