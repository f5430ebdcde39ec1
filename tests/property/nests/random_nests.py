"""Random loop nests as Python source, with the arguments of a call.

The source is written to a file and imported, so that the plain function is the real thing and the definition of what is
right. Most nests are tiled as they are: every read of a written array is comparable with every write of it, component by
component, in the direction of the loops. In *skewed* nests reads lie anywhere around the write. In *forward* nests no read
lies ahead of a write and there are more sweeps, so that tiles may lie along time.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import strategies as st

FLOATS = ("float64", "float32")
COMPLEX = ("complex128", "complex64")
FRACTIONAL = (*FLOATS, *COMPLEX)
INTEGERS = ("int32", "int64", "int16", "int8", "uint8", "uint16", "uint32")
DTYPES = (*FRACTIONAL, *INTEGERS, "bool")
SPACE_NAMES, SWEEP_NAMES = ("i", "j", "k", "l"), ("s", "t")

# Per number of space loops: the most iterations of one loop, and of the others.
LONG, SHORT = (0, 90, 40, 20, 9), (0, 90, 10, 5, 3)
LONG_FORWARD, SHORT_FORWARD = (0, 50, 13, 7, 4), (0, 50, 9, 5, 3)
# Per number of sweep loops: the most iterations of one.
SWEEPS, SWEEPS_FORWARD = (0, 3, 3), (0, 8, 3)
MOST_POINTS = 900
FARTHEST = 3


@dataclass(frozen=True)
class ArraySpec:
    """An array argument.

    ``style`` is tame, special (NaN, infinities, -0.0, extreme integers) or index (0 to 4); ``layout`` how it lies in memory.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    style: str
    seed: int
    layout: str = "rows"

    def values(self) -> np.ndarray:
        values = self._values()
        if self.layout == "columns":
            return np.asfortranarray(values)
        if self.layout == "gaps":
            wide = np.zeros(tuple(2 * n for n in self.shape), self.dtype)
            view = wide[tuple(slice(None, None, 2) for _ in self.shape)]
            view[...] = values
            return view
        return values[::-1].copy()[::-1] if self.layout == "backwards" else values

    def _values(self) -> np.ndarray:
        random = np.random.default_rng(self.seed)
        if self.dtype in COMPLEX:
            part = FLOATS[COMPLEX.index(self.dtype)]
            real, imag = (replace(self, dtype=part, seed=2 * self.seed + k)._values() for k in (0, 1))
            values = np.empty(self.shape, self.dtype)
            values.real, values.imag = real, imag
            return values
        if self.dtype == "bool":
            return random.random(self.shape) < 0.5
        if self.style == "index":
            return random.integers(0, TABLE_LENGTH, self.shape).astype(self.dtype)
        if self.dtype in INTEGERS:
            low = 0 if self.dtype.startswith("uint") else -9
            values = random.integers(low, 10, self.shape).astype(self.dtype)
            limits = np.iinfo(self.dtype)
            specials = np.array([limits.min, limits.max, limits.max - 1, limits.min + 1], self.dtype)
        else:
            values = random.uniform(-1, 1, self.shape).astype(self.dtype)
            tiny = np.finfo(self.dtype).smallest_subnormal
            big = np.finfo(self.dtype).max
            specials = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, tiny, -big, 1.0], self.dtype)
        if self.style == "special":
            where = random.random(self.shape) < 0.1
            values[where] = random.choice(specials, int(where.sum()))
        return values


TABLE_LENGTH = 5


@dataclass(frozen=True)
class Case:
    """One nest and one call of it. Dependences may point backwards along a loop (``skewed``); by construction they allow
    tiles along time (``forward``). ``along``: the space loop that the first axis of all written arrays is indexed by; None
    where that was not asked for. ``loops``: how many are cut into tiles; None for all."""

    source: str
    arrays: tuple[ArraySpec, ...]
    scalars: tuple[tuple[str, object], ...]
    extents: tuple[int, ...]
    points: int
    skewed: bool = False
    forward: bool = False
    along: int | None = None
    loops: int | None = None

    def __str__(self) -> str:
        lines = [self.source]
        lines += [f"# {a.name}: {a.dtype} {a.shape} {a.style} seed {a.seed} {a.layout}" for a in self.arrays]
        lines += [f"# {name} = {value!r}" for name, value in self.scalars]
        return "\n".join([*lines, f"# extents {self.extents}"])

    def _repr_pretty_(self, printer, cycle: bool) -> None:
        printer.text(f"\n{self}\n")

    def arguments(self) -> dict[str, object]:
        return {**{a.name: a.values() for a in self.arrays}, **dict(self.scalars)}

    @property
    def sums(self) -> tuple[str, ...]:
        """Names of reductions by +, whose terms the reference collects."""
        return tuple(dict.fromkeys(re.findall(r"^ +(total\d+) [+-]=", self.source, re.MULTILINE)))

    @property
    def reference_source(self) -> str:
        """The plain function with every sum replaced by a list of its start and its terms."""
        text = self.source.replace("@lw.nest\n", "").replace("import lapwing as lw\n", "")
        text = re.sub(r"^( +)(total\d+) = (.*)$", r"\1\2 = [\3]", text, flags=re.MULTILINE)
        text = re.sub(r"^( +)(total\d+) \+= (.*)$", r"\1\2.append(\3)", text, flags=re.MULTILINE)
        return re.sub(r"^( +)(total\d+) -= (.*)$", r"\1\2.append(0 - (\3))", text, flags=re.MULTILINE)


@dataclass(frozen=True)
class Bound:
    """``constant + factor * outer``; outer is the position of an outer loop, or None."""

    constant: int
    factor: int = 0
    outer: int | None = None

    def at(self, point: Sequence[int]) -> int:
        return self.constant + (self.factor * point[self.outer] if self.outer is not None else 0)


@dataclass
class Loop:
    """``low <= index < high`` in steps, walked upwards or downwards.

    More bounds may hold as well, as ``max`` and ``min`` say. ``ahead``: of a sum of an outer index and a number the remainder
    (these three) by which it starts later.
    """

    name: str
    step: int
    low: Bound = Bound(0)
    high: Bound = Bound(0)
    lows: list[Bound] = field(default_factory=list)
    highs: list[Bound] = field(default_factory=list)
    stride: int = 1
    ahead: tuple[int, int, int] | None = None

    def values(self, outer: Sequence[int]) -> range:
        low, high = max(b.at(outer) for b in (self.low, *self.lows)), min(b.at(outer) for b in (self.high, *self.highs))
        later = 0
        if self.ahead is not None:
            position, number, modulus = self.ahead
            later = (outer[position] + number) % modulus
        if self.step == 1:
            return range(low + later, high, self.stride)
        return range(high - 1 - later, low - 1, -self.stride)


@dataclass
class Element:
    """An access of a written array: its text and, where it may leave the array, the condition it needs."""

    array: str
    dtype: str
    text: str
    guard: str | None = None


@dataclass
class Written:
    """A written array: the loop of each axis, offsets of its writes, and the reads the body may use. ``local``: place and length
    of an axis that no loop is cut along, of which each access says where, in place of ``@length@``."""

    name: str
    dtype: str
    loops: tuple[int, ...]
    writes: list[Element] = field(default_factory=list)
    reads: list[Element] = field(default_factory=list)
    shape: tuple[int, ...] = ()
    local: tuple[int, int] | None = None


@st.composite
def cases(
    draw: st.DrawFn,
    *,
    skewed: bool | None = None,
    expressions: bool = True,
    forward: bool | None = None,
    streaming: bool = False,
) -> Case:
    """A random nest with arguments.

    skewed: whether dependences may point backwards; None draws it. expressions: False leaves out all that is not
    arithmetic of elements, for tests of communication alone. forward: whether tiles along time are legal by construction;
    None draws it. streaming: whether one space loop, and no other, runs along the first axis of all written arrays.
    """
    return Builder(draw, skewed, expressions, forward, streaming).case()


class Builder:
    """Draws one nest. Others may draw its body in another way."""

    def __init__(
        self,
        draw: st.DrawFn,
        skewed: bool | None,
        expressions: bool,
        forward: bool | None,
        streaming: bool = False,
    ) -> None:
        self.draw = draw
        self.streaming = streaming
        self.along: int | None = None
        self.rich = expressions
        self.complex = expressions and self.chance(20)  # complex numbers in place of floats
        self.skewed = self.pick(False, True) if skewed is None else skewed
        self.forward = not self.skewed and (self.chance(30) if forward is None else forward)
        self.globals: dict[str, str] = {}
        self.setups: dict[str, str] = {}
        self.scalars: dict[str, object] = {}
        self.readonly: dict[str, ArraySpec] = {}
        self.temporaries: list[str] = []

    # -- small draws -------------------------------------------------------------------------------------------------

    def chance(self, percent: int) -> bool:
        # The common case is the low end, so that examples shrink towards it.
        return self.draw(st.integers(0, 99)) >= 100 - percent

    def pick(self, *options):
        return options[self.draw(st.integers(0, len(options) - 1))]

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    # -- the nest ----------------------------------------------------------------------------------------------------

    def case(self) -> Case:
        space = self.pick(2, 2, 1, 3, 2, 3, 4)
        sweeps = self.pick(1, 1, 2) if self.forward else self.pick(0, 1, 0, 1, 2)
        names = SWEEP_NAMES[:sweeps] + SPACE_NAMES[:space]
        self.depth = sweeps
        self.loops = [Loop(name, self.pick(1, 1, -1)) for name in names]
        self.below, self.above = [0] * len(names), [0] * len(names)
        if self.streaming:
            self.along = self.integer(0, min(1, space - 1))
        self.triangular = self.chance(25)
        self.arrays = [self.written_array(k) for k in range(self.pick(1, 2, 2, 3))]
        self.points = self.draw_loops()
        self.lowest = [min((p[k] for p in self.points), default=0) for k in range(len(names))]
        self.highest = [max((p[k] for p in self.points), default=0) for k in range(len(names))]
        for array in self.arrays:
            array.shape = tuple(
                max(self.highest[k] + self.above[k] + 1 + self.pick(0, 0, 1, 2), 1) for k in array.loops
            )
            if array.local is not None:
                place, length = array.local
                array.shape = (*array.shape[:place], length, *array.shape[place:])
        body, totals = self.body()
        return self.finish(body, totals)

    def written_array(self, number: int) -> Written:
        space = tuple(range(self.depth, len(self.loops)))
        loops = list(space)
        if self.chance(25):
            loops = list(self.draw(st.permutations(space)))
        if number > 0 and self.depth and self.chance(40):
            loops.insert(self.integer(0, len(loops)) if self.chance(20) else 0, self.integer(0, self.depth - 1))
        if self.along is not None:
            loops.sort(key=lambda k: k != self.depth + self.along)
        dtype = (
            self.pick(*FLOATS, "int32", "uint8", *FLOATS, "int8", "int64", *FLOATS, "bool", "int16", "uint32", "uint16")
            if self.rich
            else "int64"
        )
        if self.complex and dtype in FLOATS:
            dtype = COMPLEX[FLOATS.index(dtype)]
        array = Written("uvw"[number], dtype, tuple(loops))
        base = tuple(0 if self.chance(70) else self.integer(-1, 1) for _ in self.loops)
        writes = [base]
        while not (self.triangular or self.forward or self.skewed) and self.chance(15) and len(writes) < 3:
            last = writes[-1]
            writes.append(tuple(last[k] + (self.pick(0, 1) if k >= self.depth else 0) for k in range(len(self.loops))))
        writes = list(dict.fromkeys(writes))
        array.writes = [self.element(array, w) for w in writes]
        least, most = writes[0], writes[-1]
        for _ in range(self.integer(1, 4)):
            array.reads.append(self.read_around(array, least, most))
        return array

    def read_around(self, array: Written, least: tuple[int, ...], most: tuple[int, ...]) -> Element:
        """A read before, after or between all writes, in every component (normalised offsets); in skewed nests anywhere."""
        new_value = self.forward or self.pick(True, True, False)
        reach = self.pick(1, 1, 2, FARTHEST)
        offsets = []
        free = False
        for k in range(len(self.loops)):
            if k < self.depth:
                offsets.append(least[k] + (self.pick(0, -1, 1) if k in array.loops else 0))
                free = free or (offsets[k] != least[k] and not self.forward)
            elif free:
                offsets.append(self.integer(-FARTHEST, FARTHEST))
            elif self.skewed:
                offsets.append(least[k] + self.pick(0, 1, -1, 0, 1, -1, 2, -2))
            else:
                apart = self.integer(0, reach) if self.chance(60) else 0
                offset = least[k] - apart if new_value else most[k] + apart
                offsets.append(max(-FARTHEST, min(FARTHEST, offset)))
        if not any(a != b for a, b in zip(offsets, least, strict=True)) and not self.chance(30):
            axis = self.integer(self.depth, len(self.loops) - 1)
            offsets[axis] += -1 if new_value else 1
        if not free and not self.skewed:
            extremum, writes = (min, least) if new_value else (max, most)
            offsets = [extremum(o, w) for o, w in zip(offsets, writes, strict=True)]
        return self.element(array, tuple(offsets), guarded=self.rich and self.chance(20))

    def element(self, array: Written, offsets: tuple[int, ...], guarded: bool = False) -> Element:
        """An access at normalised offsets; unless guarded, the margins are widened for it."""
        subscripts, guards = [], []
        for axis, k in enumerate(array.loops):
            loop = self.loops[k]
            offset = loop.step * offsets[k]
            subscripts.append(_plus(loop.name, offset))
            if guarded and offset:
                guards.append(self.guard(array, axis, loop.name, offset))
            else:
                self.below[k] = max(self.below[k], -offset)
                self.above[k] = max(self.above[k], offset)
        return Element(array.name, array.dtype, f"{array.name}[{', '.join(subscripts)}]", " and ".join(guards) or None)

    def guard(self, array: Written, axis: int, index: str, offset: int) -> str:
        if offset < 0:
            return self.pick(f"{index} >= {-offset}", f"{index} > {-offset - 1}", f"not {index} < {-offset}")
        shape = f"{array.name}.shape[{axis}]"
        return self.pick(f"{index} < {shape} - {offset}", f"{index} + {offset} <= {shape} - 1")

    # -- loops -------------------------------------------------------------------------------------------------------

    def draw_loops(self) -> list[tuple[int, ...]]:
        """Choose bounds so that no access goes below index 0; return the points, in user's indices."""
        points: list[tuple[int, ...]] = [()]
        space = len(self.loops) - self.depth
        long, short = (LONG_FORWARD, SHORT_FORWARD) if self.forward else (LONG, SHORT)
        long_loop = self.integer(self.depth, len(self.loops) - 1)
        for k, loop in enumerate(self.loops):
            if k < self.depth:
                most = (SWEEPS_FORWARD if self.forward else SWEEPS)[self.depth]
                extent = 0 if self.chance(2) else self.integer(1, most)
            else:
                most = (long if k == long_loop else short)[space]
                extent = self.integer(most // 2 if self.chance(50) else 1, most)
                if self.chance(2):
                    extent = self.integer(-1, 0)
            low, high = Bound(0), Bound(extent)
            if self.triangular and k > 0 and self.chance(70):
                outer, factor = self.integer(0, k - 1), self.pick(1, -1, 2, -2)
                if self.chance(50):
                    low = Bound(0, factor, outer)
                    if self.chance(50):
                        high = Bound(extent, factor, outer)
                else:
                    high = Bound(extent, factor, outer)
            starts = [low.at(p) for p in points if low.at(p) < high.at(p)]
            shift = self.below[k] + self.pick(0, 0, 1) - min(starts, default=0)
            loop.low = Bound(low.constant + shift, low.factor, low.outer)
            loop.high = Bound(high.constant + shift, high.factor, high.outer)
            outer_points = points
            points = [(*p, x) for p in outer_points for x in range(loop.low.at(p), loop.high.at(p))]
            if len(points) > MOST_POINTS or (not points and not self.chance(10)):
                loop.low, loop.high = Bound(self.below[k]), Bound(self.below[k] + 1)
                points = [(*p, self.below[k]) for p in outer_points]
            elif k >= self.depth and self.chance(25):
                points = self.restricted(k, loop, outer_points) or points
        return points

    def restricted(self, k: int, loop: Loop, outer_points: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Fewer points of a loop: in steps, from a place that an outer index decides, or within more bounds; () for none."""
        low, high = loop.low.constant, loop.high.constant
        narrower = Loop(loop.name, loop.step, loop.low, loop.high)
        outer = self.integer(0, k - 1) if k > 0 else None
        # What more bounds leave of steps nobody proves.
        bounded = outer is not None and all(len(array.writes) == 1 for array in self.arrays)
        if bounded and self.chance(50):
            narrower.lows = [Bound(self.integer(low - 3, low + 2), self.pick(1, 1, -1, 2), outer)]
        if bounded and self.chance(50):
            narrower.highs = [Bound(self.integer(high - 2, high + 3), self.pick(-1, 1, 1), outer)]
        if not narrower.lows and not narrower.highs:
            narrower.stride = self.pick(2, 1, 2, 3, 4)
            if outer is not None and self.chance(60):
                narrower.ahead = outer, self.integer(0, 3), self.pick(2, 2, 3, 4)
        points = [(*p, x) for p in outer_points for x in narrower.values(p)]
        if points:
            vars(loop).update(vars(narrower))
        return points

    def bound_text(self, bound: Bound, extra: int) -> str:
        """``bound + extra`` as a person might write it."""
        constant = bound.constant + extra
        outer = self.loops[bound.outer].name if bound.outer is not None else ""
        if bound.outer is not None and bound.factor:
            part = outer if bound.factor == 1 else f"-{outer}" if bound.factor == -1 else f"{bound.factor}*{outer}"
            return _plus(part, constant)
        way = self.pick("number", "number", "shape", "parameter", "setup")
        array = self.pick(*self.arrays)
        if way == "shape":
            axis = self.integer(0, len(array.shape) - 1)
            return _plus(f"{array.name}.shape[{axis}]", constant - array.shape[axis])
        if way == "setup":
            rows = f"rows_{array.name}"
            rest = [f"length{axis}" for axis in range(1, len(array.shape))]
            self.setups[rows] = (
                f"{', '.join([rows, *rest])} = {array.name}.shape" if rest else f"{rows} = len({array.name})"
            )
            return _plus(rows, constant - array.shape[0])
        if way == "parameter":
            offset = self.integer(-1, 1)
            self.scalars.setdefault("n", constant - offset)
            return _plus("n", constant - self.scalars["n"])  # type: ignore[operator]
        return str(constant)

    def loop_lines(self) -> list[str]:
        lines = []
        for depth, loop in enumerate(self.loops):
            extra = 0 if loop.step == 1 else -1
            low, high = (
                self.ends_text("max", loop.low, loop.lows, extra),
                self.ends_text("min", loop.high, loop.highs, extra),
            )
            first, last = (low, high) if loop.step == 1 else (high, low)
            if loop.ahead is not None:
                position, number, modulus = loop.ahead
                later = f"({_plus(self.loops[position].name, number)}) % {modulus}"
                first = f"{first} + {later}" if loop.step == 1 else f"{first} - {later}"
            text = last if loop.step == 1 and first == "0" and self.chance(50) else f"{first}, {last}"
            if loop.step * loop.stride != 1:
                text = f"{text if ', ' in text else f'0, {text}'}, {loop.step * loop.stride}"
            lines.append("    " * (depth + 1) + f"for {loop.name} in range({text}):")
        return lines

    def ends_text(self, function: str, bound: Bound, others: Sequence[Bound], extra: int) -> str:
        texts = [self.bound_text(one, extra) for one in (bound, *others)]
        return texts[0] if not others else f"{function}({', '.join(texts)})"

    # -- the body ----------------------------------------------------------------------------------------------------

    def body(self) -> tuple[list[str], dict[str, str]]:
        slots: list[tuple[str, object]] = [("store", (a, w)) for a in self.arrays for w in a.writes]
        if self.rich:
            slots += [("temporary", None)] * self.pick(0, 0, 1, 2)
            slots += [("reduction", None)] * self.pick(0, 0, 0, 1, 2)
        lines, totals = [], {}
        for kind, what in self.draw(st.permutations(slots)) if len(slots) > 1 else slots:
            if kind == "store":
                array, write = what  # type: ignore[misc]
                lines.append(self.store(array, write))
            elif kind == "temporary":
                lines.append(self.temporary())
            else:
                line, name, start = self.reduction(len(totals))
                totals[name] = start
                lines.append(line)
        return lines, totals

    def store(self, array: Written, write: Element) -> str:
        if array.dtype == "bool":
            operator = self.pick("=", "=", "|=", "&=", "^=")
            return f"{write.text} {operator} {self.condition(2)}"
        if self.rich and self.chance(10):
            return f"{write.text} {self.pick('+=', '-=', '*=')} {self.term(array)}"
        if self.rich and self.chance(30):
            return f"{write.text} = {self.expression(array.dtype, self.integer(1, 3))}"
        if self.rich and array.dtype not in COMPLEX and self.chance(20):
            others = [self.term(array) for _ in range(self.integer(1, 3))]
            return f"{write.text} = {self.pick('max', 'min')}({', '.join([self.leaf(array.dtype), *others])})"
        terms = [self.term(array) for _ in range(self.integer(1, 4))]
        # Without its own old value every sweep may give the same, and nobody would see one taken for another.
        own = not self.rich and self.chance(60)
        return f"{write.text} {'+=' if own else '='} {' + '.join(terms)}"

    def term(self, array: Written) -> str:
        """A share of some element, often of the array itself, so that what ranks tell each other matters."""
        element = self.read_of(array) if self.chance(60) else self.any_read(array.dtype)
        if array.dtype in COMPLEX and self.chance(40):
            return f"{self.pick('0.5j', '(0.3 - 0.2j)', 'np.float32(0.5)', 'np.complex64(0.1j)')} * {element}"
        if array.dtype in FRACTIONAL:
            return f"{self.pick('0.25', '0.5', '0.125', '0.3')} * {element}"
        return self.pick(element, element, f"{element} - 1", f"3 * {element}", f"{element} ^ 5")

    def temporary(self) -> str:
        flavour = self.pick("float64", self.arrays[0].dtype)
        letter = "c" if flavour in COMPLEX else "x"
        name = f"{letter}{self.integer(0, len(self.temporaries))}" if self.temporaries else f"{letter}0"
        if self.chance(25):
            value = self.condition(2)
        else:
            value = self.expression(flavour, self.integer(1, 2))
        if name not in self.temporaries:
            self.temporaries.append(name)
            return f"{name} = {value}"
        return f"{name} {self.pick('=', '+=', '*=')} {value}"

    def reduction(self, number: int) -> tuple[str, str, str]:
        array = self.pick(*self.arrays)
        term = self.expression(array.dtype, self.integer(0, 2))
        if self.chance(60):
            start = self.pick("0.0", "0", "0.5") if array.dtype in FRACTIONAL else self.pick("0", "7")
            return f"total{number} {self.pick('+=', '+=', '-=')} {term}", f"total{number}", start
        if array.dtype in COMPLEX:
            term = self.modulus(term)
        kind = self.pick("max", "min")
        start = (
            self.pick("0", "-1.5", "1000.0", "-3", "0.0") if array.dtype in FRACTIONAL else self.pick("0", "-3", "100")
        )
        more = array.dtype not in COMPLEX and self.chance(20)
        terms = [term] + ([self.leaf(array.dtype)] if more else [])
        return f"best{number} = {kind}(best{number}, {', '.join(terms)})", f"best{number}", start

    # -- expressions -------------------------------------------------------------------------------------------------

    def read_of(self, array: Written) -> str:
        element = self.pick(*array.reads)
        if element.guard is None:
            return element.text
        return f"({element.text} if {element.guard} else {self.otherwise(array.dtype)})"

    def otherwise(self, dtype: str) -> str:
        """What stands for an element that is not there."""
        if dtype in COMPLEX:
            return f"np.{dtype}({self.pick('0.0', '1.5j')})"
        if dtype == "bool":
            return "False"
        return self.pick("0.0", "1.5") if dtype in FLOATS else self.pick("0", "2")

    def modulus(self, text: str) -> str:
        return self.pick(f"abs(np.complex128({text}))", f"np.complex64({text}).real", f"np.complex128({text}).imag")

    def any_read(self, dtype: str) -> str:
        """An element of any array, rather of the same kind as the dtype."""
        kinds = [(d in FLOATS, d in COMPLEX) for d in (dtype, *(a.dtype for a in self.arrays))]
        alike = [a for a, kind in zip(self.arrays, kinds[1:], strict=True) if kind == kinds[0]]
        if alike and self.chance(60):
            return self.read_of(self.pick(*alike))
        if self.chance(70):
            return self.read_only(dtype)
        array = self.pick(*self.arrays)
        element = self.read_of(array)
        return self.modulus(element) if array.dtype in COMPLEX and dtype not in COMPLEX else element

    def read_only(self, dtype: str) -> str:
        """An element of a read-only array: any affine index, constants from the end, or a look-up."""
        if self.rich and self.chance(25):
            return self.look_up(dtype)
        axes = self.pick(1, 2, 2, 3)
        kinds = (*FLOATS, dtype) if dtype in FRACTIONAL else (*INTEGERS, dtype)
        kinds += COMPLEX if dtype in COMPLEX else ()
        name = f"r{len(self.readonly)}"
        subscripts, shape = [], []
        for _ in range(axes):
            text, extent = self.affine_subscript()
            subscripts.append(text)
            shape.append(extent)
        style = self.pick("tame", "tame", "special")
        self.add_readonly(name, self.pick(*kinds), tuple(shape), style)
        return f"{name}[{', '.join(subscripts)}]"

    def affine_subscript(self) -> tuple[str, int]:
        """The text of an index and an extent that holds it."""
        if self.chance(15):
            back = self.integer(1, 3)
            return str(-back), back + self.integer(0, 2)
        k = self.integer(0, len(self.loops) - 1)
        other = self.integer(0, len(self.loops) - 1)
        factors = [0] * len(self.loops)
        factors[k] = self.pick(1, 1, 2, -1, 0)
        if self.chance(25):
            factors[other] += self.pick(1, -1, 2)
        values = [sum(f * x for f, x in zip(factors, p, strict=True)) for p in self.points] or [0]
        low, high = min(values), max(values)
        text = " + ".join(
            f"{f}*{loop.name}" if f != 1 else loop.name
            for f, loop in zip(factors, self.loops, strict=True) if f
        )  # fmt: skip
        if self.chance(5):  # all indices count from the end
            constant = -1 - high - self.integer(0, 1)
            extent = -(low + constant) + self.integer(0, 1)
        else:
            constant = -low + self.pick(0, 0, 1)
            extent = high + constant + 1 + self.pick(0, 0, 1)
        return (_plus(text, constant) if text else str(constant)), extent

    def look_up(self, dtype: str) -> str:
        kinds = COMPLEX if dtype in COMPLEX else FLOATS if dtype in FLOATS else (dtype, "int32")
        name = self.pick("table", "table2") + ("c" if dtype in COMPLEX else "")
        if name not in self.readonly:
            self.add_readonly(name, self.pick(*kinds), (TABLE_LENGTH,), "tame")
        way = self.pick("index", "python", "remainder", "clamped")
        names = [loop.name for loop in self.loops]
        if way == "python":
            return f"{name}[({self.pick('7', '3')} * {self.pick(*names)} + {self.pick(*names)}) % {TABLE_LENGTH}]"
        integers = [a for a in self.arrays if a.dtype in INTEGERS]
        if way == "clamped" and integers:
            return f"{name}[min(max({self.read_of(self.pick(*integers))}, 0), {TABLE_LENGTH - 1})]"
        text, extent = self.affine_subscript()
        chosen = f"r{len(self.readonly)}"
        self.add_readonly(chosen, self.pick(*INTEGERS), (extent,), "index")
        element = f"{chosen}[{text}]"
        return f"{name}[{element}]" if way == "index" else f"{name}[{element} % {TABLE_LENGTH}]"

    def add_readonly(self, name: str, dtype: str, shape: tuple[int, ...], style: str) -> None:
        self.readonly[name] = ArraySpec(name, dtype, shape, style, self.integer(0, 999))

    def leaf(self, dtype: str) -> str:
        kind = self.pick("read", "read", "read", "number", "index", "parameter", "temporary")
        fitting = self.fitting_temporaries(dtype)
        if kind == "temporary" and fitting:
            return self.pick(*fitting)
        if kind == "number" and dtype in COMPLEX:
            return self.pick("0.5", "(0.5 - 1.25j)", "2", "1j", "np.complex64(0.3j)", "np.complex128(1.5)")
        if kind == "number":
            numbers = ("0.5", "-1.25", "2", "0.0", "3.0", "1") if dtype in FRACTIONAL else ("1", "2", "3", "0", "7")
            return self.pick(*numbers)
        if kind == "index" and self.rich:
            return self.pick(*self.loops).name
        if kind == "parameter" and self.rich:
            return self.parameter(dtype)
        return self.any_read(dtype)

    def fitting_temporaries(self, dtype: str) -> list[str]:
        return [name for name in self.temporaries if dtype in COMPLEX or not name.startswith("c")]

    def parameter(self, dtype: str) -> str:
        if dtype in COMPLEX:
            name = f"q{self.integer(0, 2)}"
            if name not in self.scalars:
                number = self.integer(0, 5) / 4 - 0.5j
                self.scalars[name] = self.pick(
                    number, np.complex64(number), np.complex128(number), np.float64(0.75), 1.5
                )
            return name
        if self.chance(10):
            self.globals["SCALE"] = self.pick("0.5", "3", "np.float32(0.25)") if dtype in FRACTIONAL else "2"
            return "SCALE"
        name = f"p{self.integer(0, 2)}"
        if name not in self.scalars:
            own = np.dtype(dtype).type
            small = self.integer(0, 5)
            self.scalars[name] = self.pick(
                small, small / 4, own(small), np.float32(small / 8), np.int64(small), True, np.float64(small)
            )
        return name

    def expression(self, dtype: str, depth: int) -> str:
        if depth == 0:
            return self.leaf(dtype)
        if dtype == "bool":
            return self.condition(depth)
        a = self.expression(dtype, depth - 1)
        if dtype in COMPLEX:
            return self.complex_expression(a, dtype, depth)
        way = self.pick("+", "+", "*", "conditional", "extremum", "function", "divide", "cast", "negative")
        if way in "+*":
            return f"({a} {self.pick('+', '-', '*')} {self.expression(dtype, depth - 1)})"
        if way == "conditional":
            return f"({a} if {self.condition(depth - 1)} else {self.expression(dtype, depth - 1)})"
        if way == "extremum":
            return f"{self.pick('max', 'min')}({a}, {self.expression(dtype, depth - 1)})"
        if way == "divide":
            divisor = self.leaf(dtype) if self.chance(50) else self.pick("4", "3", "-2")
            if dtype.startswith("uint") and divisor == "-2":
                divisor = "2"
            return f"({a} {self.pick('//', '%', '/')} {divisor})"
        if way == "negative":
            return f"(-{a})" if dtype not in ("bool", "uint8") else f"(~{a})"
        if way == "cast":
            if dtype in FRACTIONAL:
                return f"{self.pick('np.float32', 'np.float64', 'float')}({a})"
            return f"{self.pick('np.int64', 'int', 'np.int32')}(min(max({a}, -100), 100))"
        if dtype in FRACTIONAL:
            return self.pick(
                f"abs({a})", f"np.sqrt({a})", f"np.sqrt(abs({a}))", f"math.exp(min({a}, 2.0))", f"math.atan({a})",
                f"math.log(1.5 + abs({a}))", f"math.floor(min(max({a}, -9.0), 9.0))", f"np.abs({a})", f"({a}) ** 2.0",
            )  # fmt: skip
        return self.pick(f"abs({a})", f"({a}) ** 2", f"({a} & 7)", f"({a} | 3)")

    def complex_expression(self, a: str, dtype: str, depth: int) -> str:
        way = self.pick("+", "+", "*", "*", "conditional", "divide", "function", "cast", "negative")
        if way in "+*":
            return f"({a} {self.pick('+', '-', '*')} {self.expression(dtype, depth - 1)})"
        if way == "conditional":
            return f"({a} if {self.condition(depth - 1)} else {self.expression(dtype, depth - 1)})"
        if way == "divide":
            return f"({a} / {self.leaf(dtype) if self.chance(60) else self.pick('4', '(3 - 1j)', '2j')})"
        if way == "negative":
            return f"(-{a})"
        if way == "cast":
            return f"{self.pick('np.complex64', 'np.complex128', 'complex')}({a})"
        return self.pick(
            f"np.conj({a})", f"np.sqrt({a})", f"np.exp(0.1 * {a})", f"np.abs({a})", f"abs({a})", f"({a}) ** 2", f"({a}) ** 3",
            f"np.complex128({a}).imag", f"complex(np.complex64({a}).real, 0.5)", f"np.square({a})",
        )  # fmt: skip

    def condition(self, depth: int) -> str:
        dtype = self.pick(*self.arrays).dtype
        way = self.pick("compare", "compare", "index", "logic", "chain", "bools")
        if way == "index" and self.rich:
            loop = self.pick(*self.loops).name
            return f"{loop} {self.pick('<', '>', '==', '<=')} {self.integer(0, 6)}"
        if way == "logic" and depth > 0:
            first, second = self.condition(depth - 1), self.condition(depth - 1)
            return self.pick(f"({first} and {second})", f"({first} or {second})", f"(not {first})")
        bools = [a for a in self.arrays if a.dtype == "bool"]
        if way == "bools" and bools:
            return self.read_of(self.pick(*bools))
        if dtype in COMPLEX:
            if self.chance(50):
                return f"({self.leaf(dtype)} {self.pick('==', '!=')} {self.leaf(dtype)})"
            dtype = "float64"
        if way == "chain":
            return f"({self.leaf(dtype)} < {self.leaf(dtype)} <= {self.leaf(dtype)})"
        return f"({self.leaf(dtype)} {self.pick('<', '>', '<=', '>=', '==', '!=')} {self.leaf(dtype)})"

    # -- the function ------------------------------------------------------------------------------------------------

    def nested(self, body: list[str]) -> list[str]:
        """The loops with what they do."""
        indent = "    " * (len(self.loops) + 1)
        return [*self.loop_lines(), *(indent + line for line in body)]

    def finish(self, body: list[str], totals: dict[str, str]) -> Case:
        nested = self.nested(body)
        names = [*(a.name for a in self.arrays), *self.readonly, *self.scalars]
        lines = ["import math", "import numpy as np", "import lapwing as lw"]
        lines += [f"{name} = {value}" for name, value in self.globals.items()]
        lines += ["@lw.nest", f"def nest({', '.join(names)}):"]
        lines += [f"    {line}" for line in self.setups.values()]
        lines += [f"    {name} = {start}" for name, start in totals.items()]
        lines += nested
        if totals:
            lines.append(f"    return {', '.join(totals)}")
        style = self.pick("tame", "tame", "special")
        layout = self.pick("rows", "rows", "rows", "rows", "rows", "columns", "gaps", "backwards")
        specs = [ArraySpec(a.name, a.dtype, a.shape, style, self.integer(0, 999), layout) for a in self.arrays]
        extents = tuple(
            max(0, high - low + 1) if self.points else 0
            for low, high in zip(self.lowest[self.depth :], self.highest[self.depth :], strict=True)
        )
        return Case(
            "\n".join(lines) + "\n",
            (*specs, *self.readonly.values()),
            tuple(self.scalars.items()),
            extents,
            len(self.points),
            self.skewed,
            self.forward,
            self.along,
            len(self.loops),
        )


def _plus(text: str, constant: int) -> str:
    if constant == 0:
        return text
    return f"{text} {'+' if constant > 0 else '-'} {abs(constant)}"


@dataclass(frozen=True)
class Choice:
    """How one run is cut; ``grid`` is None or given over all space loops or over all but the pipelined one."""

    engine: str
    tile: int | None
    grid: tuple[int, ...] | None


@st.composite
def choices(draw: st.DrawFn, case: Case, ranks: int, engines: Sequence[str] = ("overlap", "blocking")) -> Choice:
    """A random engine, tile height and grid that fits the nest on a number of ranks."""
    engine = draw(st.sampled_from(engines))
    tile = draw(st.one_of(st.none(), st.integers(1, 6), st.integers(7, 100)))
    whole = fitting_grids(case, ranks)
    others = [g for g in grids(ranks, len(case.extents) - 1) if g]
    often = 3 if case.forward else 1  # these ask for tiles along time
    return Choice(engine, tile, draw(st.sampled_from([None, *whole * often, *others])))


def fitting_grids(case: Case, ranks: int) -> list[tuple[int, ...]]:
    """Grids over all space loops that leave every rank at least one row."""
    whole = grids(ranks, len(case.extents))
    return [g for g in whole if all(p <= max(e, 1) for p, e in zip(g, case.extents, strict=True))]


def check_refused_grid(case: Case, ranks: int, choice: Choice, error: Exception) -> None:
    """A grid is refused where some rank would have no row, and only there."""
    assert "every rank needs at least one" in str(error), f"refused: {error}"
    assert choice.grid is not None, f"refused: {error}"
    if not case.skewed:  # a skewed loop may be shorter than it was
        # Which loop is pipelined is the planner's choice, and the others may be too short.
        assert len(choice.grid) < len(case.extents), f"refused: {error}"


def grids(ranks: int, loops: int) -> list[tuple[int, ...]]:
    sides = [p for p in range(1, ranks + 1) if ranks % p == 0]
    return [g for g in itertools.product(sides, repeat=loops) if np.prod(g) == ranks]
