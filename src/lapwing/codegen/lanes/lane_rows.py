"""Rows of arrays that are no planes, as sequences are, for the lanes of vectors (``codegen.lanes.vectors``): laid side by side in
C arrays, as wide as what is computed with them.

From lane to lane their elements follow one another, forwards or backwards. Either they stay with the lanes, and are copied once
for a block of rows, or they move on by a lane in every step. Then they are copied for the steps of a group, or once for all
blocks where these go through the same elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum, auto

from lapwing.codegen.body.expression import C_TYPES
from lapwing.codegen.body.names import Names, PairNames
from lapwing.codegen.body.text import plus
from lapwing.codegen.body.widening import WIDE
from lapwing.codegen.lanes.buffers import Buffers
from lapwing.codegen.lanes.vector_bodies import Move, Profile, is_row
from lapwing.loopnest.binding import typed as t
from lapwing.tiling.transposed import COPIED_STEPS, ITEMSIZES, MARGIN

PROFILE = "int8"  # of the elements of query profiles, which are widened when they are loaded


class When(Enum):
    """When the elements of rows are copied."""

    ONCE = auto()
    BLOCK = auto()
    GROUP = auto()


class LaneRows:
    """The rows of one loop body. size: bytes of what is computed; lanes: of a block; is_same: whether all blocks of rows go
    through the same elements."""

    def __init__(
        self,
        loads: Sequence[t.Load],
        move: Move,
        is_same: Callable[[t.Load], bool],
        size: int,
        lanes: int,
        names: Names,
        c: PairNames,
    ) -> None:
        self._names, self._c, self._size, self._lanes = names, c, size, lanes
        self._same = frozenset(filter(is_same, loads))
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

    def declarations(self, when: When) -> Iterator[str]:
        for load in self._copied(when):
            c_type, kept = C_TYPES[self.dtype(load)], self._kept(load)
            low, high = self._range(load)
            if when is When.ONCE:
                yield f"{c_type} *const {kept} = lw_new_row({_minus(high, low)}, sizeof({c_type}));"
            else:
                yield f"{c_type} {kept}[{_minus(high, low)}];"

    def copied(self, when: When, element: Callable[[t.Load], tuple[str, str, str]], fits: str) -> Iterator[str]:
        """The elements of rows that lanes want, as far as there are such. element: at the indices of lane 0, the C texts of one,
        of its place along the last axis and of that axis' length. fits: the C variable that becomes false where an element is
        too large for its vector."""
        lane = self._c.lane
        for load in self._copied(when):
            (direction, _), (here, index, extent) = self._moves[load], element(load)
            low, high = self._range(load)
            start = self._c.starts_at if when is When.GROUP else ""
            first, beyond = (_plus(start, end) for end in (low, high))
            ends = (f"-({index})", f"{extent} - ({index})")
            if direction < 0:
                ends = (f"({index}) - {extent} + 1", f"({index}) + 1")
            row, kept = self.name(load), self._kept(load)
            element_here = f"{row}[{'-' if direction < 0 else ''}{lane}]"
            copy = f"{kept}[{lane}] = {element_here};"
            if self.is_narrowed(load):
                kept_type = C_TYPES[self.dtype(load)]
                copy = f"{{ {copy} {fits} &= {element_here} == ({kept_type}){element_here}; }}"
            yield f"const {C_TYPES[load.dtype]} *const {row} = &{here} {'-' if direction < 0 else '+'} ({first});"
            some = f"lw_max_i64({first}, {ends[0]})", f"lw_min_i64({beyond}, {ends[1]})"
            if when is not When.ONCE:
                yield f"if ({ends[0]} <= {first} && {beyond} <= {ends[1]})"
                yield f"    for (int64_t {lane} = 0; {lane} < {_minus(high, low)}; ++{lane}) {copy}"
                yield "else"
            indent = "    " if when is not When.ONCE else ""
            yield f"{indent}for (int64_t {lane} = {some[0]} - ({first}); {lane} < {some[1]} - ({first}); ++{lane})"
            yield f"{indent}    {copy}"

    def freed(self) -> Iterator[str]:
        """After the last block."""
        for load in self._copied(When.ONCE):
            yield f"free({self._kept(load)});"

    @property
    def narrows(self) -> bool:
        """Whether there are rows whose elements may be too large for their vectors."""
        return any(map(self.is_narrowed, self._moves))

    def is_narrowed(self, load: t.Load) -> bool:
        """Whether its elements may be too large for their vectors."""
        return ITEMSIZES[load.dtype] > self._size

    def has(self, when: When) -> bool:
        return bool(self._copied(when))

    def _copied(self, when: When) -> list[t.Load]:
        return [load for load in self._moves if self._when(load) is when]

    def _when(self, load: t.Load) -> When:
        if not self._moves[load][1]:
            return When.BLOCK
        return When.ONCE if load in self._same else When.GROUP

    def _range(self, load: t.Load) -> tuple[int | str, int | str]:
        """From and until which lane the elements of a row are wanted: in the steps of a group from the first lane at work on, in
        all of them, or, where they stay with the lanes, in all of a block."""
        _, shift = self._moves[load]
        match self._when(load):
            case When.BLOCK:
                return -MARGIN, self._lanes + MARGIN
            case When.GROUP:
                moved = shift * (COPIED_STEPS - 1)
                return min(0, moved), self._lanes + max(0, moved)
        steps = self._c.length
        return (0, f"{steps} + {self._lanes}") if shift > 0 else (f"-{steps}", self._lanes)

    def _kept(self, load: t.Load) -> str:
        return self._names.get(("kept row", load), f"{load.array}_lanes")

    def at_step(self) -> Iterator[str]:
        """Pointers to the first lane's elements."""
        for load, (_, shift) in self._moves.items():
            low, _ = self._range(load)
            when = self._when(load)
            since = self._c.step if when is When.ONCE else f"({self._c.step} - {self._c.first})"
            here = _minus(self._kept(load), low)
            if when is not When.GROUP:
                here = f"{here} + {self._c.starts_at}"
            if shift:
                here = f"{here} - {since}" if shift < 0 else f"{here} + {since}"
            yield f"const {C_TYPES[self.dtype(load)]} *const {self.name(load)} = {here};"


class LaneProfiles:
    """The query profiles of one loop body: for every index along one axis of a table a row of what is there at the indices that
    lanes go through. A lane has one of these rows to itself, and in the steps of a group the lanes' elements are laid side by
    side, a group ahead of when they are wanted."""

    def __init__(self, profiles: Sequence[Profile], move: Move, buffers: Buffers, names: Names, c: PairNames) -> None:
        self._profiles, self._move, self._names, self._c = profiles, move, names, c
        self._lanes, self._width = buffers.lanes, buffers.width
        self.elements = frozenset(profile.element for profile in profiles)

    def __iter__(self) -> Iterator[Profile]:
        return iter(self._profiles)

    def name(self, profile: Profile) -> str:
        """Of the vectors of elements."""
        return self._name(profile, "here")

    def _name(self, profile: Profile, suffix: str) -> str:
        return self._names.get(("profile", profile, suffix), f"{profile.element.array}_{suffix}")

    def made(
        self,
        profile: Profile,
        element: Callable[[t.Load], str],
        of_table: Callable[[str, list[str]], str],
        extent: Callable[[str, int], str],
    ) -> Iterator[str]:
        """Before the first block. element: the C text of one where rows begin; of_table: of one of a table at such indices;
        extent: of the length of an axis."""
        c, table, axis = self._c, profile.element.array, profile.axis
        rows, pitch, letters = (self._name(profile, suffix) for suffix in ("rows", "pitch", "letters"))
        moved = self._move(profile.moves)
        assert moved is not None
        indices = [f"{letters}[{'-' if moved[1] < 0 else ''}{c.step}]"]
        indices.insert(axis, c.first)
        yield f"/* A query profile: for every index along axis {axis} of {table} a row of its elements. */"
        yield f"const int64_t {pitch} = {c.length} + {self._lanes + 4 * COPIED_STEPS};"
        yield f"int8_t *const {rows} = lw_new_row({extent(table, axis)} * {pitch}, 1);"
        yield f"int8_t {self._name(profile, 'lanes')}[{2 * COPIED_STEPS} * {self._width}] __attribute__((aligned(64)));"
        yield "{"
        yield f"    const {C_TYPES[profile.moves.dtype]} *const {letters} = &{element(profile.moves)};"
        yield f"    for (int64_t {c.first} = 0; {c.first} < {extent(table, axis)}; ++{c.first})"
        yield f"        for (int64_t {c.step} = 0; {c.step} < {c.length} - {self._lanes}; ++{c.step})"
        there = f"{rows}[{c.first} * {pitch} + {self._lanes} + {c.step}]"
        yield f"            {there} = (int8_t){of_table(table, indices)};"
        yield "}"

    def freed(self) -> Iterator[str]:
        for profile in self._profiles:
            yield f"free({self._name(profile, 'rows')});"

    def of_block(self, element: Callable[[t.Load], str]) -> Iterator[str]:
        """The row of every lane, from where it is at step 0 on."""
        c = self._c
        for profile in self._profiles:
            moved = self._move(profile.stays)
            assert moved is not None
            rows, pitch, letters = (self._name(profile, suffix) for suffix in ("rows", "pitch", "letters"))
            letter = f"{letters}[{'-' if moved[0] < 0 else ''}{c.lane}]"
            own = self._name(profile, "of_lane")
            yield "{"
            yield f"    const {C_TYPES[profile.stays.dtype]} *const {letters} = &{element(profile.stays)};"
            yield f"    for (int64_t {c.lane} = 0; {c.lane} < {self._lanes}; ++{c.lane})"
            row = f"({c.lane} < {c.lanes} ? {letter} * {pitch} : 0)"
            yield f"        {own}[{c.lane}] = {rows} + {self._lanes} - {c.lane} + {row};"
            yield "}"

    def declared_of_block(self) -> Iterator[str]:
        for profile in self._profiles:
            yield f"const int8_t *{self._name(profile, 'of_lane')}[{self._lanes}];"

    def copied(self, step: str) -> Iterator[str]:
        """The elements of the steps of a group."""
        for profile in self._profiles:
            lanes, own = self._name(profile, "lanes"), self._name(profile, "of_lane")
            yield f"lw_profile_steps({lanes} + {self._place(step)}, {own}, {step}, {self._lanes});"

    def at_step(self, profile: Profile) -> str:
        return f"{self._name(profile, 'lanes')} + {self._place(self._c.step)}"

    def _place(self, step: str) -> str:
        step = f"({step})" if " " in step else step
        return f"({step} & {2 * COPIED_STEPS - 1}) * {self._width}"


def _plus(text: str, end: int | str) -> str:
    if isinstance(end, int):
        return plus(text, end)
    return end if not text else f"{text} + {end}"


def _minus(end: int | str, start: int | str) -> str:
    if isinstance(start, int):
        return plus(str(end), -start)
    return f"{end} + {start.removeprefix('-')}"
