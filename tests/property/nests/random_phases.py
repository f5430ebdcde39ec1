"""Random programs of several phases as Python source: each phase a nest of its own with the same sweep loop around it.

Every phase has its own order of loops, directions, ranges and write offsets; what it writes is read by others at offsets up to
two. ``t`` runs from ``first`` to ``last``, so that the plain functions can be called sweep by sweep, in turns.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from loading import load
from random_nests import ArraySpec, Case

import lapwing as lw
from lapwing.loopnest.binding.phased_nest import PhasedNest

NAMES = ("i", "j", "k")
LONGEST = (0, 30, 11, 6)  # by the number of space loops
FARTHEST = 2
MARGIN = 5  # the farthest that an index lies from its loop's


@dataclass(frozen=True)
class Program:
    """``phases`` are nests over some of ``arrays``; all of them take ``first`` and ``last`` as well."""

    phases: tuple[Case, ...]
    arrays: tuple[ArraySpec, ...]
    sweeps: int

    def __str__(self) -> str:
        lines = [case.source for case in self.phases]
        return "\n".join(
            [*lines, *(f"# {a.name}: {a.dtype} {a.shape}" for a in self.arrays), f"# {self.sweeps} sweeps"]
        )

    def _repr_pretty_(self, printer, cycle: bool) -> None:
        printer.text(f"\n{self}\n")

    @property
    def source(self) -> str:
        return "import lapwing as lw\nimport numpy as np\n\n" + "\n".join(case.source for case in self.phases)

    def values(self) -> dict[str, np.ndarray]:
        return {array.name: array.values() for array in self.arrays}


def load_phases(program: Program) -> list[lw.Nest]:
    """The nests of a program, phase by phase."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "phases.py"
        path.write_text(program.source)
        module = load(path)
        nests = [getattr(module, f"phase{k}") for k in range(len(program.phases))]
        for nest in nests:
            assert nest.dependences is not None  # the source is read while it is there
    return nests


def bind(program: Program, nests: Sequence[lw.Nest]) -> tuple[PhasedNest, list[int]] | None:
    """The phases that have iterations, bound to all sweeps, with their numbers; None where none has, or one goes around an axis
    as no cut allows."""
    values = program.values()
    try:
        bound = [
            nest.bind({**{a.name: values[a.name] for a in case.arrays}, "first": 0, "last": program.sweeps})
            for nest, case in zip(nests, program.phases, strict=True)
        ]
    except lw.RefusedError as error:
        if all(refusal.tiled_only for refusal in error.refusals):
            return None
        raise
    places = [k for k, one in enumerate(bound) if not one.domain.is_empty]
    return (PhasedNest("program", tuple(bound[k] for k in places)), places) if places else None


def plain_run(program: Program, nests: Sequence[lw.Nest], arrays: Mapping[str, np.ndarray]) -> None:
    """The plain loops, in place."""
    for t in range(program.sweeps):
        for nest, case in zip(nests, program.phases, strict=True):
            nest.python(**{a.name: arrays[a.name] for a in case.arrays}, first=t, last=t + 1)


@dataclass
class _Phase:
    """What a phase is made of while its source is written."""

    number: int
    axes: tuple[int, ...]  # of its loops, the outermost first
    steps: tuple[int, ...]  # by axis
    moved: tuple[int, ...]  # by axis: what its indices lie behind the elements' of an array in place
    places: dict[str, list[tuple[int, ...]]]  # of arrays that it writes, the constants added to its indices
    free: bool  # reads of what it writes may lie anywhere
    coloured: bool = False  # it does every other point


@st.composite
def programs(draw: st.DrawFn, most_phases: int = 4) -> Program:
    dims = draw(st.sampled_from([2, 2, 1, 3]), label="axes")
    extents = [draw(st.integers(2 if dims > 1 else 5, LONGEST[dims])) for _ in range(dims)]
    shape = tuple(n + 2 * MARGIN for n in (extents[:1] * dims if draw(st.booleans()) else extents))
    names = "uvwx"[: draw(st.integers(1, 4), label="arrays")]
    dtype = draw(st.sampled_from(["float64", "int64", "float32"]))
    arrays = [ArraySpec(name, dtype, shape, "tame", seed) for seed, name in enumerate(names)]
    # Staggered grids: what is written together lies apart by so much.
    staggered = {n: tuple(draw(st.sampled_from([0, 0, 0, 1])) for _ in range(dims)) for n in names}
    phases = draw(st.integers(2, most_phases), label="phases")
    cases = tuple(draw(_phase(k, arrays, staggered)) for k in range(phases))
    return Program(cases, tuple(arrays), draw(st.integers(1, 4), label="sweeps"))


@st.composite
def rings(draw: st.DrawFn) -> Program:
    """Programs on a ring, long enough for blocks of several sweeps; some of their phases leave out an end."""
    extent, width = draw(st.integers(30, 90), label="extent"), draw(st.sampled_from([0, 0, 3]), label="width")
    shape = (extent, width) if width else (extent,)
    arrays = [ArraySpec(name, "float64", shape, "tame", seed) for seed, name in enumerate("uvw")]
    beside, column = (", j", "    ") if width else ("", "")

    def index(far: int) -> str:
        offset = draw(st.integers(-far, far))
        way = draw(st.sampled_from([f"(i + {offset}) % {extent}", f"i - {abs(offset)}", "i"]))
        return f"{way}{beside}"

    cases = []
    for number in range(draw(st.integers(1, 3), label="phases")):
        written = draw(st.sampled_from("uvw"))
        read = [draw(st.sampled_from("uvw".replace(written, ""))) for _ in range(draw(st.integers(1, 3)))]
        terms = [f"{draw(st.integers(1, 3))} * {name}[{index(FARTHEST)}]" for name in read]
        terms += [f"{written}[i{beside}]"] if draw(st.booleans()) else []
        low, high = draw(st.sampled_from([(0, extent), (0, extent), (0, extent - 1), (2, extent)]))
        lines = ["    for t in range(first, last):", f"        for i in range({low}, {high}):"]
        lines += [f"            for j in range({width}):"] if width else []
        lines.append(f"            {column}{written}[i{beside}] = {' - '.join(terms)} + t")
        used = [a for a in arrays if any(f"{a.name}[" in line for line in lines)]
        head = f"def phase{number}({', '.join(a.name for a in used)}, first, last):"
        source = "\n".join(["@lw.nest", head, *lines, ""])
        cases.append(Case(source, tuple(used), (("first", 0), ("last", 1)), shape, 0))
    named = {a.name: a for case in cases for a in case.arrays}
    return Program(tuple(cases), tuple(named.values()), draw(st.integers(2, 5), label="sweeps"))


@st.composite
def _phase(draw: st.DrawFn, number: int, arrays: Sequence[ArraySpec], staggered: dict[str, tuple[int, ...]]) -> Case:
    dims = len(arrays[0].shape)
    axes = draw(st.permutations(range(dims))) if draw(st.booleans()) else range(dims)
    steps = tuple(draw(st.sampled_from([1, 1, -1])) for _ in range(dims))
    moved = tuple(draw(st.sampled_from([0, 0, -1, 1])) for _ in range(dims))
    written = draw(st.lists(st.sampled_from(arrays), min_size=1, max_size=2, unique=True))
    places = {a.name: [tuple(m + s for m, s in zip(moved, staggered[a.name], strict=True))] for a in written}
    if draw(st.sampled_from([False] * 6 + [True])):
        # One array is written at two places.
        (place,), axis = places[written[0].name], draw(st.integers(0, dims - 1))
        places[written[0].name].append((*place[:axis], place[axis] + 1, *place[axis + 1 :]))
    free = draw(st.sampled_from([False] * 5 + [True]))
    phase = _Phase(number, tuple(axes), steps, moved, places, free)
    lines, ranges = [], draw(_ranges(phase, arrays[0].shape))
    indent = "    "
    lines.append(f"{indent}for t in range(first, last):")
    for axis in phase.axes:
        indent += "    "
        lines.append(f"{indent}for {NAMES[axis]} in {ranges[axis]}:")
    indent += "    "
    if draw(st.sampled_from([False] * 4 + [True])):
        # Points of two colours; those of one do not read each other, or nearly so.
        colour = " + ".join(NAMES[a] for a in range(dims))
        lines.append(f"{indent}if ({colour}) % 2 == t % 2:")
        indent += "    "
        phase.coloured = True
    for array in written:
        for place in places[array.name]:
            lines.append(f"{indent}{array.name}[{_subscripts(place)}] = {draw(_value(phase, arrays))}")
    used = [a for a in arrays if any(f"{a.name}[" in line for line in lines)]
    head = f"def phase{number}({', '.join(a.name for a in used)}, first, last):"
    source = "\n".join(["@lw.nest", head, *lines, ""])
    return Case(source, tuple(used), (("first", 0), ("last", 1)), tuple(n - 2 * MARGIN for n in arrays[0].shape), 0)


@st.composite
def _ranges(draw: st.DrawFn, phase: _Phase, shape: tuple[int, ...]) -> list[str]:
    """Of every axis, inside the margins; now and then one that depends on an outer index."""
    found = []
    for axis, extent in enumerate(shape):
        low, high = MARGIN, extent - MARGIN
        if draw(st.sampled_from([False, False, True])):
            low, high = low + draw(st.integers(0, 1)), high - draw(st.integers(0, 1))
        if low >= high:
            low, high = MARGIN, extent - MARGIN
        begin, end = str(low), str(high)
        position = phase.axes.index(axis)
        if position and draw(st.sampled_from([False] * 7 + [True])):
            begin = NAMES[phase.axes[position - 1]]
        found.append(f"range({begin}, {end})" if phase.steps[axis] == 1 else f"range({end} - 1, {begin} - 1, -1)")
    return found


def _subscripts(offsets: Sequence[int], first: int = 0) -> str:
    """Those of axes from the first on."""
    places = enumerate(offsets, first)
    return ", ".join(f"{NAMES[a]} {'+' if o > 0 else '-'} {abs(o)}" if o else NAMES[a] for a, o in places)


@st.composite
def _value(draw: st.DrawFn, phase: _Phase, arrays: Sequence[ArraySpec]) -> str:
    reads = [draw(_read(phase, arrays)) for _ in range(draw(st.integers(1, 4)))]
    terms = [f"{draw(st.integers(1, 3))} * {read}" for read in reads]
    text = " - ".join(terms)
    match draw(st.sampled_from(["plain", "plain", "plain", "parity", "sweep"])):
        case "parity":
            colour = " + ".join(NAMES[a] for a in range(len(arrays[0].shape)))
            return f"{text} if ({colour}) % 2 == t % 2 else {reads[0]}"
        case "sweep":
            return f"{text} + t"
    return text


@st.composite
def _around(draw: st.DrawFn, index: str, extent: int) -> str:
    """An index that goes on at the other end, of the whole axis or of what loops write, stops there, or does neither."""
    offset, inside = draw(st.integers(-FARTHEST, FARTHEST)), extent - 2 * MARGIN
    last = extent - MARGIN - 1
    return draw(
        st.sampled_from(
            [
                f"({index} + {offset} - {MARGIN}) % {inside} + {MARGIN}",
                f"({index} + {offset}) % {inside}",
                f"{MARGIN} + ({index} - {MARGIN + abs(offset)}) % {inside}",
                f"{index} - {MARGIN + abs(offset)}",
                f"{index} + 1 if {index} < {last} else {MARGIN}",
                f"{index} - 1 if {index} > {MARGIN} else {last}",
                f"max({index} - {abs(offset)}, {MARGIN})",
                f"min({index} + {abs(offset)}, {last})",
                f"{index} + {offset}",
                index,
            ]
        )
    )


@st.composite
def _read(draw: st.DrawFn, phase: _Phase, arrays: Sequence[ArraySpec]) -> str:
    array = draw(st.sampled_from(arrays))
    dims = len(array.shape)
    if array.name not in phase.places:
        kind = draw(
            st.sampled_from(["near"] * 8 + ["row", "turned", "around", "around", "around", "diagonal", "diagonal"])
        )
        texts = _subscripts([draw(st.integers(-FARTHEST, FARTHEST)) for _ in range(dims)]).split(", ")
        axis, is_square = draw(st.integers(0, dims - 1)), dims == 2 and array.shape[0] == array.shape[1]
        if kind == "row" and dims > 1:
            texts[axis] = str(draw(st.integers(0, 5)))
        elif kind == "turned" and is_square:
            texts = ["j", "i"]
        elif kind == "around":
            texts = [draw(_around(NAMES[axis], extent)) for axis, extent in enumerate(array.shape)]
        elif kind == "diagonal" and is_square:
            texts[1 - axis] = f"{NAMES[axis]} + {draw(st.integers(-FARTHEST, FARTHEST))}"
        return f"{array.name}[{', '.join(texts)}]"
    if phase.coloured and draw(st.sampled_from([True] * 5 + [False])):
        place, axis = phase.places[array.name][0], draw(st.integers(0, dims - 1))
        away = draw(st.sampled_from([-1, 1]))
        texts = [_subscripts([p + away * (axis == k)], k) for k, p in enumerate(place)]
        if draw(st.booleans()):
            low, inside = MARGIN + place[axis], array.shape[axis] - 2 * MARGIN
            texts[axis] = f"({NAMES[axis]} + {place[axis] + away - low}) % {inside} + {low}"
        return f"{array.name}[{', '.join(texts)}]"
    # Where tiles are to be legal, every read lies behind the write in the order of all loops, or ahead in all of them.
    side, offsets = draw(st.sampled_from([-1, 1])), []
    for axis in range(dims):
        ahead = draw(st.booleans()) if phase.free else side * phase.steps[axis] > 0
        places, far = [place[axis] for place in phase.places[array.name]], draw(st.integers(0, FARTHEST))
        offsets.append(max(places) + far if ahead else min(places) - far)
    return f"{array.name}[{_subscripts(offsets)}]"
