"""Tiles whose two innermost loops are gone through by lanes that stay where rows lie: each is some steps behind the one before
it, and has what that one wrote from its registers (``codegen.outer_loops.skewing``). Where there is but one loop inside of the
sweeps, lanes are sweeps over the same row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from weakref import WeakKeyDictionary

from lapwing.codegen.body.text import Lines
from lapwing.codegen.outer_loops.candidates import OuterLoop
from lapwing.codegen.rows.outer_loops import FEWEST_STEPS, WHOLE
from lapwing.codegen.rows.tile_loops import TileWriter
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.tiling.inner import InnerForm

_FROM, _UNTIL = t.Local("int64", " row from", 1), t.Local("int64", " row until", 1)


class WavefrontTileWriter(TileWriter):
    """Writes a tile over a rectangle of rows whose iterations raise nothing."""

    def _name_row_invariants(self) -> list[tuple[str, str, str]]:
        return []

    @property
    def joins_sweeps(self) -> bool:
        return len(self.form.order) == 1

    @property
    def _pair(self) -> tuple[int, int]:
        """The loop over rows, or the sweeps, and the innermost one."""
        along = self.nest.sweep_depth + self.form.order[-1]
        return (0 if self.joins_sweeps else self.nest.sweep_depth + self.form.order[-2]), along

    @cached_property
    def lanes_of_rows(self) -> tuple[OuterLoop, str, list[str]] | None:
        """The loop over rows in lanes, the call of its function, and that; None where there is none."""
        rows, along = (self.nest.loops[k] for k in self._pair)
        names = {loop.name for loop in self.nest.loops}
        if (
            self._parts or self._wraps or self._stride is not None or self.bound.skew is not None
            or self.bound.body.traps
            or not (self._counting_up(rows.name) and self._counting_up(along.name))
            or any(loop.bound_names & names for loop in self.nest.space_loops)
        ):  # fmt: skip
            return None
        index, one = t.Index("int64", along.name), t.Literal("int64", 1)
        row = t.TypedFor(self.nest.line, "", index, _FROM, _UNTIL, one, tuple(self.bound.body.statements))
        return self._made((row,), rows.name, WHOLE, is_chain=True, is_measured=True)

    def point_functions(self) -> Iterator[str]:
        assert self.lanes_of_rows is not None
        functions = list(self._point_functions())
        yield from (*self.lane_functions(), *functions)

    def outer_loops(self) -> Sequence[int]:
        return super().outer_loops()[:-1]

    def _loops(self, lines: Lines, call: str) -> None:
        made = self.lanes_of_rows
        assert made is not None
        rows, along = self._pair
        x, y = (self.coordinate(self.nest.loops[k].name) for k in (along, rows))
        first, last = (self.printer.name(local) for local in (_FROM, _UNTIL))
        if not self.joins_sweeps:
            self.sweep_indices(lines, f"{call} {made[1]}")
        for k in self.outer_loops():
            self.open_loop(lines, k)
        bounds = self.loop_bounds(rows)
        lines.add(f"const int64_t {first} = {self.loop_bounds(along).low}, {last} = {self.loop_bounds(along).high};")
        end = self.loop_end(lines, rows)
        lines.add(f"int64_t {y} = {bounds.low};")
        long = f"{last} - {first} >= {FEWEST_STEPS} * LW_LANES"
        lines.add(f"if ({end} - {y} >= LW_LANES && {long}) {y} = {made[1].format(y, end)};")
        lines.open(f"for (; {y} < {end}; ++{y}) {{")
        lines.open(f"for (int64_t {x} = {first}; {x} < {last}; ++{x}) {{")
        lines.add(call)
        lines.close_all()


_KNOWN: WeakKeyDictionary[BoundNest, dict[tuple[int, ...], bool]] = WeakKeyDictionary()


def is_wavefront(bound: BoundNest, form: InnerForm) -> bool:
    """Whether there is code for a form whose lanes are skewed. Planning asks again and again."""
    known = _KNOWN.setdefault(bound, {})
    if form.order not in known:
        known[form.order] = WavefrontTileWriter(bound, (), form).lanes_of_rows is not None
    return known[form.order]
