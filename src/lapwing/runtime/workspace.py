"""One rank's state for one generated module: local arrays, scalars, accumulators."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.codegen.rows.module import EXACT_WORDS, accumulator_offsets, accumulator_words
from lapwing.errors import BeyondError, RunError
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.binding.promotion import INT64_MIN, PARTS, ScalarType
from lapwing.loopnest.binding.scalars import scalar_words
from lapwing.loopnest.binding.values import as_start
from lapwing.runtime.arrays.storage import LocalArray
from lapwing.runtime.binding import native
from lapwing.runtime.rounding import nearest_ratio
from lapwing.runtime.streaming import StreamedArray

EXACT_HEADER = 4
_LEAST_EXPONENT = -1074  # of what words are counted in: the least float64
_UNITS = 2**-_LEAST_EXPONENT


class Workspace:
    """Holds what lw_tile points to. ``words`` are the accumulators, one row of 64-bit words, or one a sweep where each has its
    own; ``scalars`` are in the order of the nest's parameters, the real part of a complex one before the imaginary one."""

    def __init__(
        self, bound: BoundNest, library: ctypes.CDLL, arrays: Mapping[str, LocalArray | StreamedArray]
    ) -> None:
        self.bound = bound
        self.arrays = dict(arrays)
        self.library = library
        self._row = max(1, accumulator_words(bound.body.accumulators))
        self.words = np.zeros(self._row * rows_of_words(bound), np.int64)
        self._arrays = (native.Array * max(1, len(bound.arrays)))(
            *(native.array_at(arrays[a.name].origin, arrays[a.name].strides, a.shape) for a in bound.arrays)
        )
        scalars = [_native_scalar(word) for value in bound.parameters.values() for word in scalar_words(value)]
        self.scalars = (native.Scalar * max(1, len(scalars)))(*scalars)
        self.tile = native.Tile(self._arrays, self.scalars, self.words.ctypes.data_as(ctypes.POINTER(native.Scalar)))
        self._start = np.tile(_start_words(bound, self._row), rows_of_words(bound))
        offsets = accumulator_offsets(bound.body.accumulators)
        self._extrema = {a.name: offsets[a.name] for a in bound.body.accumulators if a.operator in ("max", "min")}
        self.reset()

    def reset(self) -> None:
        """Reductions start anew: max and min at the value before the loops, sums at zero."""
        if self.bound.body.accumulators:
            self.words[:] = self._start
        if self.bound.body.traps:
            self.tile.trap = 0

    def begin_with(self, starts: Sequence[tuple[str, Any]]) -> None:
        """Extrema begin with other floats from the next reset on; exact sums, which these may be of, begin at zero anyway."""
        for name, value in starts:
            if name in self._extrema:
                self._start.view(np.float64)[self._extrema[name] :: self._row] = value

    def move(self, position: int, origin: int) -> None:
        """Let an array of the same layout take the place of one: ``origin`` is where its element (0, …, 0) would be."""
        self._arrays[position].base = origin & (2**64 - 1)

    def check_traps(self) -> None:
        """Raise RunError if the run met a place where the plain loop raises."""
        if self.tile.trap:
            trap = self.bound.body.traps[self.tile.trap - 1]
            raise (BeyondError if trap.is_beyond else RunError)(trap.message)


def rows_of_words(bound: BoundNest) -> int:
    """How many times each reduction is there: once a sweep where these have their own."""
    if not bound.nest.by_sweep:
        return 1
    _, beyond = bound.domain.box[0]
    return max(1, beyond)


def _start_words(bound: BoundNest, count: int) -> npt.NDArray[np.int64]:
    words = np.zeros(count, np.int64)
    offsets = accumulator_offsets(bound.body.accumulators)
    for accumulator in bound.body.accumulators:
        if accumulator.operator != "+":
            kind = np.float64 if accumulator.dtype.startswith("float") else np.int64
            words[offsets[accumulator.name]] = np.array(accumulator.initial, kind).view(np.int64)
    return words


class Reductions:
    """Reads the reductions of a nest out of the words of all its ranks."""

    def __init__(self, bound: BoundNest) -> None:
        offsets = accumulator_offsets(bound.body.accumulators)
        self._places = [
            (a, offsets[a.name], np.float64 if a.dtype.startswith("float") else np.int64, _type_of(a))
            for a in bound.body.accumulators
        ]
        self._starts = offsets
        self._sweeps = rows_of_words(bound) if bound.nest.by_sweep else 0
        self._begun = {a.name: a.initial for a in bound.body.accumulators}  # what each begins with
        self._dtypes = {a.name: a.dtype for a in bound.body.accumulators}
        self._are_extrema = all(map(_is_plain_extremum, bound.body.accumulators))
        self._initial = {
            a.result: bound.parameters[a.result] for a in bound.body.accumulators if a.result in bound.parameters
        }

    def begin_with(self, starts: Sequence[tuple[str, Any]]) -> None:
        """The same reductions, of which some begin with other floats."""
        self._initial.update(starts)
        for name, value in starts:
            self._begun[name] = as_start(float(value), self._dtypes[name])

    def merged(self, rows: Sequence[npt.NDArray[np.int64]]) -> dict[str, Any]:
        """The reductions of all ranks put together, by name, as Python or NumPy scalars of the type Python would give. What
        a region leaves without a value is ``...``."""
        if self._sweeps:
            (own,) = rows
            return self._of_sweeps(own)
        return self._merged(rows)

    def _of_sweeps(self, words: npt.NDArray[np.int64]) -> dict[str, Any]:
        """The reductions of every sweep."""
        each = [self._merged([row]) for row in words.reshape(self._sweeps, -1)]
        return {name: tuple(one[name] for one in each) for name in each[0]}

    def _merged(self, rows: Sequence[npt.NDArray[np.int64]]) -> dict[str, Any]:
        results: dict[str, Any] = {}
        if not self._places:
            return results
        if self._are_extrema and len(rows) == 1:
            return dict(self._extrema(rows[0]))
        found: dict[str, int] = {}  # by leader, the rank whose values count
        kept_real = False
        for accumulator, start, kind, given in self._places:
            if accumulator.operator == "terms":  # of which none are left
                continue
            if accumulator.leader == accumulator.name:
                found[accumulator.name] = self._with_extremum(accumulator, rows)
            if accumulator.leader is not None:
                value: Any = rows[found[accumulator.leader]].view(kind).item(start)
            elif accumulator.operator in ("=", "is set", "kind"):
                value = rows[0].view(kind).item(start)
            elif accumulator.exact_sum:
                words = [row[start : start + EXACT_WORDS].tolist() for row in rows]
                value = _exact_total(accumulator, self._begun[accumulator.name], words)
            else:
                value = _combined(accumulator, [row.view(kind).item(start) for row in rows])
            if accumulator.of is not None:
                results[accumulator.of] = self._told(accumulator, value, results[accumulator.of])
                continue
            if accumulator.operator == "at":  # that is nobody's name
                continue
            name, kept = accumulator.result, self._is_as_before(accumulator, value, rows, found)
            if accumulator.part == "imag":
                value = complex(results[name], value)
                kept = kept and kept_real
            elif accumulator.part == "real":
                results[name], kept_real = value, kept
                continue
            results[name] = self._initial[name] if kept else given(value)
        return results

    def _extrema(self, row: npt.NDArray[np.int64]) -> Iterator[tuple[str, Any]]:
        """Those of one rank, where there is nothing else: calls of short nests wait for this."""
        for accumulator, start, kind, given in self._places:
            value = row.item(start) if kind is np.int64 else row.view(kind).item(start)
            name = accumulator.name
            yield name, self._initial[name] if _are_same(value, self._begun[name]) else given(value)

    def _is_as_before(
        self, accumulator: t.Accumulator, value: Any, rows: Sequence[npt.NDArray[np.int64]], found: Mapping[str, int]
    ) -> bool:
        """Whether nothing has been assigned to a reduction, so that the plain loop returns the very number that it began
        with. Of a sum of integers that is not known."""
        if accumulator.leader is not None:
            ats = [s for a, s, _, _ in self._places if a.leader == accumulator.leader and a.operator == "at"]
            return bool(rows[found[accumulator.leader]].item(ats[0]) == INT64_MIN)
        if accumulator.exact_sum:
            start = self._starts[accumulator.name]
            return all(row.item(start + k) == 0 for row in rows for k in range(EXACT_HEADER))
        return accumulator.operator in ("max", "min", "set") and _are_same(value, self._begun[accumulator.name])

    def _told(self, accumulator: t.Accumulator, value: Any, of: Any) -> Any:
        """What is given back, now that this is known about it."""
        if accumulator.operator == "noted":
            return of if value else self._initial[accumulator.of or ""]
        if accumulator.operator == "is set":
            return of if value else ...
        if of is ... or not value:
            return of
        kind = accumulator.kinds[value - 1]
        return _type_in_python(kind)(of if kind.is_complex else of.real)

    def _with_extremum(self, leader: t.Accumulator, rows: Sequence[npt.NDArray[np.int64]]) -> int:
        """The rank that has the extremum of all ranks, and of equal ones that of the first iteration, or of the last."""
        ((start, kind),) = [(start, kind) for a, start, kind, _ in self._places if a is leader]
        places = [s for a, s, _, _ in self._places if a.leader == leader.name and a.operator == "at"]
        least, last = leader.operator[0] == "<", leader.operator.endswith("=")
        best = 0
        for rank in range(1, len(rows)):
            here, there = (rows[k].view(kind).item(start) for k in (rank, best))
            at, other = ([rows[k].item(place) for place in places] for k in (rank, best))
            better = here < there if least else here > there
            if better or (here == there and (at > other if last else at < other)):
                best = rank
        return best


def _is_plain_extremum(accumulator: t.Accumulator) -> bool:
    """Whether it is that of numbers alone, and nothing else is known about them."""
    is_alone = accumulator.leader is None and accumulator.part is None and accumulator.of is None
    return accumulator.operator in ("max", "min") and is_alone and accumulator.result == accumulator.name


def _are_same(value: Any, initial: Any) -> bool:
    """Whether a number is the one that a reduction began with. Of NaN nothing is larger, or less."""
    return bool(value == initial or (value != value and initial != initial))


def _combined(accumulator: t.Accumulator, values: list[Any]) -> Any:
    if accumulator.operator == "+":
        total = int(accumulator.initial) + sum(values)
        if accumulator.weak:
            return total
        return np.array(total & (2**64 - 1), np.uint64).astype(accumulator.dtype).item()  # NumPy's integers wrap
    if accumulator.operator == "noted":
        return any(values)
    if accumulator.operator == "set":
        return next((value for value in values if value != accumulator.initial), values[0])
    result = values[0]
    for value in values[1:]:
        if value > result if accumulator.operator == "max" else value < result:
            result = value
    return result


def _exact_total(accumulator: t.Accumulator, begun: float, rows: list[list[int]]) -> float:
    """The exact sum of all terms and the number that it begins with, rounded once."""
    initial = float(begun)
    if not math.isfinite(initial) or any(row[1] or row[2] or row[3] for row in rows):
        nans, plus, minus = (sum(row[k] for row in rows) for k in (1, 2, 3))
        total = sum([math.inf] * bool(plus) + [-math.inf] * bool(minus) + [initial])
        return math.nan if nans or math.isnan(total) else total
    if accumulator.dtype == "float64":
        try:
            return math.fsum([initial, *(part for row in rows for part in _parts_of_digits(row[EXACT_HEADER:]))]) + 0.0
        except OverflowError:  # a sum of some of the parts, or of all of them
            pass
    numerator, denominator = initial.as_integer_ratio()
    units = numerator * (_UNITS // denominator)
    for row in rows:
        units += sum(digit << (32 * k) for k, digit in enumerate(row[EXACT_HEADER:]) if digit)
    return nearest_ratio(units, _UNITS, accumulator.dtype)


def _parts_of_digits(digits: Sequence[int]) -> Iterator[float]:
    """The number that digits of an exact sum stand for, in parts that are exact."""
    for k, digit in [(k, digit) for k, digit in enumerate(digits) if digit]:
        yield math.ldexp(digit & 0xFFFFFFFF, 32 * k + _LEAST_EXPONENT)
        yield math.ldexp(digit >> 32, 32 * (k + 1) + _LEAST_EXPONENT)


def _type_of(accumulator: t.Accumulator) -> type[Any]:
    """What the plain loop would return: a Python number or a NumPy scalar."""
    if accumulator.part is not None:
        whole = next(whole for whole, part in PARTS.items() if part == accumulator.dtype)
        return _type_in_python(ScalarType(whole, accumulator.weak))
    return _type_in_python(accumulator.term or ScalarType(accumulator.dtype, accumulator.weak))


def _type_in_python(kind: ScalarType) -> type[Any]:
    if kind.weak:
        return {"bool": bool, "int64": int, "float64": float, "complex128": complex}[kind.dtype]
    return np.dtype(kind.dtype).type


def _native_scalar(word: float) -> native.Scalar:
    return native.Scalar(f=word) if isinstance(word, float) else native.Scalar(i=word)
