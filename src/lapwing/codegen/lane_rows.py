"""Rows of arrays that are no planes, as sequences are, for the lanes of vectors (``codegen.vectors``): laid side by side in C
arrays, as wide as what is computed with them.

From lane to lane their elements follow one another, forwards or backwards. Either they stay with the lanes, and are copied once
for a block of rows, or they move on by a lane in every step, and are copied for the steps of a group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from lapwing.codegen.body.expression import C_TYPES
from lapwing.codegen.body.names import Names, PairNames
from lapwing.codegen.body.text import plus
from lapwing.codegen.vector_bodies import WIDE, Move, is_row
from lapwing.loopnest.binding import typed as t
from lapwing.tiling.transposed import COPIED_STEPS, ITEMSIZES, MARGIN, TRANSPOSED_LANES


class LaneRows:
    """The rows of one loop body. size: bytes of what is computed."""

    def __init__(self, loads: Sequence[t.Load], move: Move, size: int, names: Names, c: PairNames) -> None:
        self._names, self._c, self._size = names, c, size
        # The direction from lane to lane, and how many lanes elements move on in a step.
        self._moves: dict[t.Load, tuple[int, int]] = {}
        for load in loads:
            moves = move(load)
            if moves is not None and is_row(moves):
                self._moves[load] = moves[0], moves[0] * moves[1]

    def __iter__(self) -> Iterator[t.Load]:
        return iter(self._moves)

    def name(self, load: t.Load) -> str:
        """The pointer to the first lane's element."""
        return self._names.get(("row of", load), f"{load.array}_here")

    def dtype(self, load: t.Load) -> str:
        """What elements are in the C arrays."""
        if ITEMSIZES[load.dtype] == self._size:
            return load.dtype
        return "float64" if load.dtype == "float32" else WIDE[self._size]

    def declarations(self, moving: bool) -> Iterator[str]:
        """moving: of rows whose elements go from lane to lane, or of those that stay."""
        for load, (_, shift) in self._some(moving):
            low, high = _range_of(shift)
            yield f"{C_TYPES[self.dtype(load)]} {self._kept(load)}[{high - low}];"

    def copied(self, moving: bool, element: Callable[[t.Load], tuple[str, str, str]], fits: str) -> Iterator[str]:
        """The elements of rows that lanes want in the steps of a group, or in all steps, as far as there are such. element: at
        the indices of lane 0, the C texts of one, of its place along the last axis and of that axis' length. fits: the C variable
        that becomes false where an element is too large for its vector."""
        lane = self._c.lane
        for load, (direction, shift) in self._some(moving):
            here, index, extent = element(load)
            low, high = _range_of(shift)
            first, beyond = (plus(self._c.starts_at if moving else "", end) for end in (low, high))
            ends = (f"-({index})", f"{extent} - ({index})")
            if direction < 0:
                ends = (f"({index}) - {extent} + 1", f"({index}) + 1")
            row, kept = self.name(load), self._kept(load)
            element_here = f"{row}[{'-' if direction < 0 else ''}{lane}]"
            copy = f"{kept}[{lane}] = {element_here};"
            if self._is_narrowed(load):
                kept_type = C_TYPES[self.dtype(load)]
                copy = f"{{ {copy} {fits} &= {element_here} == ({kept_type}){element_here}; }}"
            yield f"const {C_TYPES[load.dtype]} *const {row} = &{here} {'-' if direction < 0 else '+'} ({first});"
            yield f"if ({ends[0]} <= {first} && {beyond} <= {ends[1]})"
            yield f"    for (int64_t {lane} = 0; {lane} < {high - low}; ++{lane}) {copy}"
            yield "else"
            some = f"lw_max_i64({first}, {ends[0]})", f"lw_min_i64({beyond}, {ends[1]})"
            yield f"    for (int64_t {lane} = {some[0]} - ({first}); {lane} < {some[1]} - ({first}); ++{lane})"
            yield f"        {copy}"

    @property
    def narrows(self) -> bool:
        """Whether there are rows whose elements may be too large for their vectors."""
        return any(map(self._is_narrowed, self._moves))

    def _is_narrowed(self, load: t.Load) -> bool:
        return ITEMSIZES[load.dtype] > self._size

    def has(self, moving: bool) -> bool:
        return bool(self._some(moving))

    def _some(self, moving: bool) -> list[tuple[t.Load, tuple[int, int]]]:
        return [(load, moves) for load, moves in self._moves.items() if moving == bool(moves[1])]

    def _kept(self, load: t.Load) -> str:
        return self._names.get(("kept row", load), f"{load.array}_lanes")

    def at_step(self) -> Iterator[str]:
        """Pointers to the first lane's elements."""
        for load, (_, shift) in self._moves.items():
            low, _ = _range_of(shift)
            since = f"({self._c.step} - {self._c.first})"
            here = plus(self._kept(load), -low)
            if shift == 0:
                here = f"{here} + {self._c.starts_at}"
            else:
                here = f"{here} - {since}" if shift < 0 else f"{here} + {since}"
            yield f"const {C_TYPES[self.dtype(load)]} *const {self.name(load)} = {here};"


def _range_of(shift: int) -> tuple[int, int]:
    """From and until which lane the elements of a row are wanted: in the steps of a group, from the first lane at work on; where
    they stay with the lanes, in all of a block."""
    if not shift:
        return -MARGIN, TRANSPOSED_LANES + MARGIN
    moved = shift * (COPIED_STEPS - 1)
    return min(0, moved), TRANSPOSED_LANES + max(0, moved)
