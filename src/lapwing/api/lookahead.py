"""Sweeps that are done ahead of the tests of the loop around them (``loopnest.program.lookahead``), in one process."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.api.calls.dispatch import Dispatcher
from lapwing.api.calls.planned import PlannedNest
from lapwing.errors import RefusedError
from lapwing.loopnest.analysis import NestAnalysis
from lapwing.loopnest.program.lookahead import Lookahead
from lapwing.loopnest.program.short_loops import trips
from lapwing.memo import Memo
from lapwing.runtime.arrays.meeting import share_memory
from lapwing.runtime.memory_pool import pooled
from lapwing.scratch_arrays import wanted

SWEEPS = 16  # at once: two vectors of float64 with AVX-512
FEWEST = SWEEPS // 2  # fewer are left to the region
_FEWEST_BLOCKS = 4  # until it is known what they take
_MOST_SAVED_BYTES = 1 << 30  # of an array: what may be too much is kept twice

_NUMBERS = (int, float, complex, str, type(None), np.generic)

Array = npt.NDArray[Any]


class _Sweeps(PlannedNest):
    """A region with a loop around it, of which every sweep has reductions of its own."""

    def _read_nest(self) -> Any:
        analysis, meanings = super()._read_nest()
        return NestAnalysis(replace(analysis.nest, by_sweep=True)), meanings


@dataclass
class _Pace:
    """fewest: sweeps that are worth being done at once. alone, ahead: the least that a sweep has taken, in seconds, by itself and
    among others. blocks: how often sweeps were done ahead; in the first ones tiles are built and compared. iterations: of the
    loop, when it last ended."""

    fewest: int
    alone: float = math.inf
    ahead: float = math.inf
    blocks: int = 0
    iterations: int = 0

    @property
    def pays(self) -> bool:
        return self.blocks < _FEWEST_BLOCKS or self.ahead <= self.alone


class LookaheadCall:
    """What the driver calls before the loop."""

    def __init__(self, lookahead: Lookahead) -> None:
        self.lookahead = lookahead
        self.nest = _Sweeps(lookahead.nest.function, lookahead.nest)
        self.dispatcher: Dispatcher | None = None
        self.paces: Memo[_Pace | None] = Memo()  # by kinds of arguments; None where sweeps are not done ahead

    def alone(self, region: Callable[..., Any], wishes: PlannedNest) -> Callable[..., Ahead]:
        """region: what is called for a sweep. wishes: with choices made by hand, which are for regions, nothing is done ahead."""

        def begin(over: Any, own: Mapping[str, Any]) -> Ahead:
            iterations = trips(over.start, over.stop, over.step) if type(over) is range else math.inf
            known = None if wishes.is_cut_by_hand else self._known(own)
            return Ahead(self, region, iterations, known)

        return begin

    def _known(self, own: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """What the names in the rest of the loop stand for, where it computes with numbers and keeps them; else None."""
        loop = self.lookahead
        known = {**own, **{name: loop.outside(name) for name in loop.from_outside}}
        is_of_numbers = (
            all(isinstance(known[name], _NUMBERS) for name in loop.numbers if name in known)
            and all(type(known[name]) is list for name in loop.lists)
            and all(_holds_numbers(known[name]) for name in loop.arrays)
            and all(type(known[name]) in (np.ndarray, list) for name in loop.sized)
        )
        return known if is_of_numbers else None

    def is_apart(self, known: Mapping[str, Any], arrays: Sequence[Array]) -> bool:
        """Whether the rest of the loop keeps numbers elsewhere than in these arrays."""
        others = [known[name] for name in self.lookahead.arrays]
        return not any(share_memory(other, array) for other in others for array in arrays)

    def pace(self, values: Sequence[Any]) -> _Pace | None:
        """None where sweeps are not done ahead."""
        key = tuple(map(_kind, values))
        if key not in self.paces:
            pace = None
            if self._has_lanes(values, SWEEPS):
                pace = _Pace(FEWEST if self._has_lanes(values, FEWEST) else SWEEPS)
            self.paces.keep(key, pace)
        return self.paces[key]

    def expected_sweeps(self, arguments: Mapping[str, Any]) -> int:
        """How many may be done at once; 0 where none are. arguments: the region's by name, arrays may be shapes."""
        *names, _ = self.nest.loops.parameters
        has_all = all(name in arguments for name in names)
        return SWEEPS if has_all and self._has_lanes([arguments[name] for name in names], SWEEPS) else 0

    def _has_lanes(self, values: Sequence[Any], count: int) -> bool:
        """Whether so many sweeps are lanes."""
        try:
            names = self.nest.loops.parameters
            arguments = dict(zip(names, (*values, count), strict=True))
            with wanted():
                bound = self.nest.bind(arguments)
            return self.nest.planned(bound, 1, 1, 1, arguments).plan.joined >= FEWEST
        except RefusedError:
            return False

    def sweeps(self, values: Sequence[Any], count: int) -> list[Any]:
        """Does so many, and gives what the region would have returned of each. Raises RefusedError."""
        if self.dispatcher is None:
            self.dispatcher = Dispatcher(self.nest)
        with wanted():
            results = self.dispatcher(self.nest, (*values, count), {})
        return [
            self.nest.loops.returned({name: each[sweep] for name, each in results.items()}) for sweep in range(count)
        ]


@dataclass
class Ahead:
    """One loop under way. iterations: the most that it has. known: what names in the driver stand for when it begins; None where
    nothing is done ahead.

    ``_found``: what sweeps that have been done, but not been asked for yet, return. ``_saved``: where there are such, the arrays
    that they write, as they were before them and before ``_taken`` more.
    """

    call: LookaheadCall
    region: Callable[..., Any]
    iterations: float
    known: Mapping[str, Any] | None
    _found: deque[Any] = field(default_factory=deque)
    _saved: list[tuple[Array, Array]] = field(default_factory=list)
    _values: tuple[Any, ...] = ()
    _given: tuple[Any, ...] = ()
    _taken: int = 0
    _done: int = 0
    _pace: _Pace | None = None

    def __call__(self, given: tuple[Any, ...], values: tuple[Any, ...]) -> Any:
        """What the region returns. given: what it is called with; values: what its sweeps are given."""
        if self._found:
            if _are_same(values, self._values):
                self._taken += 1
                self._done += 1
                return self._next()
            self.settle()
        count = self.how_many(values)
        returned = self._looked(given, values, count) if count else self._alone(given)
        self._done += 1
        return returned

    def _next(self) -> Any:
        returned = self._found.popleft()
        if not self._found:
            self._saved = []
        return returned

    def settle(self) -> None:
        """The arrays are as they are after the sweeps that were asked for."""
        if self._saved:
            self._restore()
            self._again(self._taken)

    def end(self) -> None:
        """The same when the loop has ended: nothing is kept."""
        if self._pace is not None:
            self._pace.iterations = self._done
        self.settle()
        self._values = self._given = ()

    def _alone(self, given: tuple[Any, ...]) -> Any:
        if self.known is None:
            return self.region(*given)
        start = time.perf_counter()
        returned = self.region(*given)
        if self._pace is not None:
            self._pace.alone = min(self._pace.alone, time.perf_counter() - start)
        return returned

    def how_many(self, values: tuple[Any, ...]) -> int:
        """How many sweeps to do now: several where enough are to come, as far as is known, or as many have been done."""
        if self.known is None:
            return 0
        if self._done == 0:
            self._pace = self._begin(values)
            if self._pace is None:
                self.known = None
                return 0
        assert self._pace is not None
        if self._pace.blocks >= _FEWEST_BLOCKS and self._pace.alone == math.inf:
            return 0  # to know what one takes by itself
        left = self.iterations - self._done
        is_known = self.call.lookahead.is_counted or self._pace.iterations > self._done
        if is_known and not self.call.lookahead.is_counted:
            left = min(left, self._pace.iterations - self._done)
        if not self._pace.pays or left < self._pace.fewest or not (is_known or self._done >= SWEEPS):
            return 0
        return SWEEPS if left >= SWEEPS else self._pace.fewest

    def _begin(self, values: tuple[Any, ...]) -> _Pace | None:
        arrays = [value for value in values if isinstance(value, np.ndarray)]
        assert self.known is not None
        if any(type(a) is not np.ndarray or a.nbytes > _MOST_SAVED_BYTES for a in arrays):
            return None
        if not self.call.is_apart(self.known, arrays):
            return None
        self.known = {}  # nothing is kept from being freed
        return self.call.pace(values)

    def _looked(self, given: tuple[Any, ...], values: tuple[Any, ...], count: int) -> Any:
        names = self.call.nest.loops.parameters
        written = [v for n, v in zip(names, values, strict=False) if n in self.call.nest.loops.written]
        start = time.perf_counter()
        try:
            with pooled():
                self._saved = [(array, array.copy()) for array in written]
        except MemoryError:
            self.known = None
            return self._alone(given)
        self._values, self._given, self._taken = values, given, 0
        try:
            self._found.extend(self.call.sweeps(values, count))
        except RefusedError:
            self._restore()
            self.known = None
            return self._alone(given)
        except BaseException:
            self._restore()
            raise
        self._taken = 1
        assert self._pace is not None
        self._pace.ahead = min(self._pace.ahead, (time.perf_counter() - start) / count)
        self._pace.blocks += 1
        return self._next()

    def _restore(self) -> None:
        self._found.clear()
        for array, values in self._saved:
            array[...] = values
        self._saved = []

    def _again(self, count: int) -> None:
        """Do sweeps that were done before."""
        assert self._pace is not None
        if count >= self._pace.fewest:
            self.call.sweeps(self._values, self._pace.fewest)
            count -= self._pace.fewest
        for _ in range(count):
            self.region(*self._given)


def _holds_numbers(value: Any) -> bool:
    return type(value) is np.ndarray and not value.dtype.hasobject


def _kind(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.strides
    return type(value), value if isinstance(value, int | np.integer) else None


def _are_same(values: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether they are the same arrays, and the same numbers to the bit."""
    return all(
        one is other or (type(one) is type(other) and isinstance(one, _NUMBERS) and _bits(one) == _bits(other))
        for one, other in zip(values, others, strict=True)
    )


def _bits(value: Any) -> Any:
    return np.asarray(value).tobytes() if isinstance(value, float | complex | np.generic) else value
