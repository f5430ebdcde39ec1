"""Calls of a nest in one process: a call alike an earlier one goes straight to its compiled run.

Calls are alike where all agrees that binding, planning and code generation look at: the types, shapes, strides and flags of
arrays, where they lie apart, and the values of scalars, but for floats that the loops only compute with or reductions begin
with.
"""

from __future__ import annotations

import ctypes
import inspect
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.api.calls.decide import PlannedCalls
from lapwing.api.calls.free_scalars import FreeScalars, Numbers
from lapwing.api.calls.planned import PlannedNest
from lapwing.api.calls.repeated import RepeatedCalls
from lapwing.api.calls.run import bound_alone, check_aliases, run
from lapwing.api.calls.tabulated import TabulatedCall, tabulation_of
from lapwing.errors import RefusedError
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.binding.promotion import CARRIED_LIMIT
from lapwing.loopnest.binding.scalars import extrema_and_sums, free_scalars, names_from_outside
from lapwing.loopnest.outside import Outside
from lapwing.memo import Memo
from lapwing.runtime.alone import PreparedRun
from lapwing.runtime.arrays.distributed import DistributedArray
from lapwing.runtime.execute import idle_results
from lapwing.runtime.mpi import communicator
from lapwing.scratch_arrays import is_scratch
from lapwing.store.array import StoredArray

_PLAIN_ARRAYS = (np.ndarray, np.memmap)
_BY_VALUE = (int, bool, str, type(None))
_BY_IDENTITY = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type, np.ufunc)  # what set-ups call

Values = Sequence[Any]


class Dispatcher:
    """Takes the calls of one nest, whatever choices were made for it by hand."""

    def __init__(self, nest: PlannedNest) -> None:
        parameters = inspect.signature(nest.python).parameters.values()
        self._in_any_form = all(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)
        self._parameters = tuple(p.name for p in parameters)
        self._defaults = tuple(p.default for p in parameters)
        required = sum(p.default is p.empty for p in parameters)
        # By how many arguments are given by position: the names that must be given, and those that may.
        self._by_name = [
            (frozenset(self._parameters[count:required]), frozenset(self._parameters[count:]))
            for count in range(len(self._parameters) + 1)
        ]
        self._outside = Outside(nest.python, names_from_outside(nest.loops))
        names = (*self._parameters, *self._outside.names)
        self._positions = {name: position for position, name in enumerate(names)}
        free, starts = free_scalars(nest.loops), free_scalars(nest.loops, extrema_and_sums(nest.loops))
        self._free = tuple(name for name in names if name in starts)
        of_free = _kind_of_free_number if nest.loops.is_generic else _kind_of_free
        kinds = tuple(of_free if name in free else _kind for name in names)
        self._kinds = tuple(
            _kind_of_start if name in starts - free else kind for name, kind in zip(names, kinds, strict=True)
        )
        self._remembered: Memo[_BoundCall | TabulatedCall] = Memo()
        self._refused: Memo[RefusedError] = Memo()
        self._again: _Again | None = None
        self._on_ranks = RepeatedCalls(nest, self._positions, kinds, tuple(name for name in names if name in free))

    def __call__(self, nest: PlannedNest, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The reductions by name. Raises as Nest.__call__ does."""
        values = self._values(nest, args, kwargs)
        if StoredArray in map(type, values):
            return run(nest, nest.arguments(*args, **kwargs)).results
        if not communicator.is_alone(nest.comm) or _are_distributed(values):
            return self._on_ranks(nest, values, lambda: nest.arguments(*args, **kwargs))
        if is_whole := DistributedArray in map(type, values):
            values = [value.whole if type(value) is DistributedArray else value for value in values]
        key = self._key(nest, values)
        try:
            known = self._remembered.get(key)
        except TypeError:  # a choice made by hand that planning refuses
            key = known = None
        if key is None:
            return _BoundCall(nest, self._positions, (), values).run(values)
        scalars: Any = None if known is None else known.scalars(values)
        if known is None or scalars is None:
            known = self._bound(nest, key, values)
            results = known.run(values)
            if known.is_small:
                self._remembered.keep(key, known)
            return results
        results = known.run(values, scalars)
        if self._in_any_form and not is_whole:
            self._again = _Again(nest, known, self._kinds, self._outside, values)
        return results

    def again(self, nest: PlannedNest, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
        """The same where the call is like the last one, which is soon seen; None where it is not."""
        again = self._again
        if again is None:
            return None
        if kwargs and not args and tuple(kwargs) == self._parameters:
            args = tuple(kwargs.values())
        elif kwargs or len(args) != len(self._parameters):
            if not self._fits(len(args), kwargs):
                return None
            args = (*args, *self._rest(len(args), kwargs))
        return again(nest, args)

    def _bound(self, nest: PlannedNest, key: Any, values: Values) -> _BoundCall | TabulatedCall:
        """Raises RefusedError, at once where a call like an earlier one is kept from being cut into tiles."""
        refused = self._refused.get(key)
        if refused is not None:
            raise refused.with_traceback(None)
        try:
            arguments = {name: values[self._positions[name]] for name in nest.loops.parameters}
            bound = bound_alone(nest, arguments)
            found = tabulation_of(nest, bound, arguments)
            if found is not None:
                return TabulatedCall(nest, found, self._positions, values, self._call)
            return _BoundCall(nest, self._positions, self._free, values, bound)
        except RefusedError as error:
            if all(refusal.tiled_only for refusal in error.refusals):
                self._refused.keep(key, error)
            raise

    def _call(self, nest: PlannedNest, positions: Mapping[str, int], values: Values) -> _BoundCall:
        return _BoundCall(nest, positions, self._free, values)

    def likeness(self, args: Values) -> Any:
        """Equal for calls that bind alike, with arrays at the same places; None where that is not known. args: by position."""
        values = [*args, *self._outside.values()]
        found: list[Any] = []
        for kind, value in zip(self._kinds, values, strict=True):
            if type(value) is DistributedArray:
                found.append((value.dtype, value.shape, id(value)))
                continue
            known = kind(value)
            if known is None:
                return None
            found.append((known, _address(value)) if type(value) in _PLAIN_ARRAYS else known)
        return tuple(found)

    def _values(self, nest: PlannedNest, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """All a call depends on: arguments in the order of the signature, then what comes from outside the function."""
        values = list(args)
        if kwargs or len(args) != len(self._parameters) or not self._in_any_form:
            if self._fits(len(args), kwargs):
                values += self._rest(len(args), kwargs)
            else:
                values = list(nest.arguments(*args, **kwargs).values())
        if self._outside.names:
            values += self._outside.values()
        return values

    def _fits(self, count: int, kwargs: dict[str, Any]) -> bool:
        """Whether parameters after the first ``count`` are given by name or have a default, and nothing else is given."""
        if not self._in_any_form or count > len(self._parameters):
            return False
        required, possible = self._by_name[count]
        return required <= kwargs.keys() <= possible

    def _rest(self, count: int, kwargs: dict[str, Any]) -> Iterator[Any]:
        """The values of the parameters after the first ``count``."""
        return map(kwargs.get, self._parameters[count:], self._defaults[count:])

    def _key(self, nest: PlannedNest, values: Values) -> Any:
        """Equal for calls that are alike; None for one that is like no other."""
        kinds = [kind(value) for kind, value in zip(self._kinds, values, strict=True)]
        if None in kinds:
            return None
        grid = tuple(nest.grid) if isinstance(nest.grid, list) else nest.grid
        return (nest.engine, nest.tile, grid, *kinds)


class _Again:
    """A call that is like the one before it: compared part by part, without a key for all of it."""

    def __init__(
        self,
        nest: PlannedNest,
        known: _BoundCall | TabulatedCall,
        kinds: Sequence[Callable[[Any], Any]],
        outside: Outside,
        values: Values,
    ) -> None:
        self._choices = nest.engine, nest.tile, nest.grid
        self._known, self._outside = known, outside
        self._count = len(values) - len(outside.names)
        # Values around the function: arrays there may change their shapes and types in place.
        self._around = [
            (kind, kind(value)) for kind, value in zip(kinds[self._count :], values[self._count :], strict=True)
        ]
        self._arrays: list[tuple[int, Any]] = []
        self._others: list[tuple[int, Callable[[Any], Any], Any, Any]] = []
        for position, value in enumerate(values[: self._count]):
            if type(value) is np.ndarray:
                self._arrays.append((position, _layout(value)))
            else:
                kind = kinds[position]
                last = value if type(value) in (int, bool) else _NOTHING  # a number that stays the same one
                self._others.append((position, kind, kind(value), last))

    def __call__(self, nest: PlannedNest, args: tuple[Any, ...]) -> dict[str, Any] | None:
        if len(args) != self._count or (nest.engine, nest.tile, nest.grid) != self._choices:
            return None
        for position, layout in self._arrays:
            value = args[position]
            if type(value) is not np.ndarray or _layout(value) != layout:
                return None
        for position, kind, expected, last in self._others:
            value = args[position]
            if value is not last and kind(value) != expected:
                return None
        values: Values = args
        if self._around:
            around = self._outside.values()
            if any(kind(value) != known for value, (kind, known) in zip(around, self._around, strict=True)):
                return None
            values = [*args, *around]
        if not communicator.is_alone(nest.comm):
            return None
        scalars: Any = self._known.scalars(values)
        return None if scalars is None else self._known.run(values, scalars)


_NOTHING = object()


def _layout(array: np.ndarray) -> tuple[Any, ...]:
    """What binding may look at of an array."""
    return array.dtype, array.shape, array.strides, array.flags.num, is_scratch(array)


def _are_distributed(values: Values) -> bool:
    return any(type(value) is DistributedArray and value.comm is not None for value in values)


def _kind(value: Any) -> Any:
    """What binding may look at of a value: equal for values it cannot tell apart, None where that is not known."""
    kind = type(value)
    if kind in _PLAIN_ARRAYS:
        return (kind, *_layout(value)) if value.shape else None
    if kind in _BY_VALUE:
        return kind, value
    if kind is float:
        return kind, value.hex()  # 0.0 is not -0.0, and NaN is NaN
    if kind is complex:
        return kind, value.real.hex(), value.imag.hex()
    if isinstance(value, np.number | np.bool):
        return kind, value.tobytes()
    return value if isinstance(value, _BY_IDENTITY) else None


def _kind_of_free(value: Any) -> Any:
    """The same for a scalar that is free where it is a float or a complex number."""
    kind = type(value)
    return kind if issubclass(kind, float | complex | np.inexact) else _kind(value)


def _kind_of_start(value: Any) -> Any:
    """The same for what reductions begin with: a real number is free."""
    kind = type(value)
    return kind if issubclass(kind, float | np.floating) else _kind(value)


def _kind_of_free_number(value: Any) -> Any:
    """The same where integers are free, too, but for those that are too large."""
    kind = type(value)
    if (kind is int or issubclass(kind, np.integer)) and abs(int(value)) <= CARRIED_LIMIT:
        return kind
    return _kind_of_free(value)


class _BoundCall:
    """A nest bound and planned for calls that are alike, and its runs that are not under way."""

    def __init__(
        self,
        nest: PlannedNest,
        positions: Mapping[str, int],
        free: Sequence[str],
        values: Values,
        bound: BoundNest | None = None,
    ) -> None:
        self._nest = nest
        self._parameters = [(name, positions[name]) for name in nest.loops.parameters]
        self._bound = bound_alone(nest, self._arguments(values)) if bound is None else bound
        self._calls = self._planned(values)
        if (region := self._in_its_order(free)) is not None:
            self._nest = region
            self._parameters = [(name, positions[name]) for name in region.loops.parameters]
            self._bound = bound_alone(region, self._arguments(values))
            self._calls = self._planned(values)
        self._arrays = [positions[array.name] for array in self._bound.arrays]
        self._are_buffers = all(_is_buffer(values[position]) for position in self._arrays)
        self._spans = [_span(values[position]) for position in self._arrays]
        self._pairs = _pairs_to_tell_apart(self._bound)
        self._scalars = FreeScalars(self._bound, positions, free, values)
        self._is_empty = self._bound.domain.is_empty
        self._idle = [] if self._is_empty else [self._prepared(values)]
        self.is_small = all(prepared.is_small for prepared in self._idle)

    def _in_its_order(self, free: Sequence[str]) -> PlannedNest | None:
        """What the nest is better run as, where that hangs on no more of the call and nothing was chosen by hand."""
        nest = self._nest
        if nest.is_cut_by_hand:
            return None
        region = nest.in_its_order(self._bound, self._calls.plan)
        return region if region is not None and set(free) <= free_scalars(region.loops) else None

    def scalars(self, values: Values) -> Numbers | None:
        """The free scalars of a call; see FreeScalars."""
        return self._scalars.of(values)

    def run(self, values: Values, numbers: Numbers = ([], [])) -> dict[str, Any]:
        """Run on the arrays of an alike call, with these numbers in place of those it was bound to. Raises RunError."""
        scalars, starts = numbers
        if self._is_empty:
            return {**idle_results(self._bound), **dict(starts)}
        arrays = [values[position] for position in self._arrays]
        if self._are_buffers:  # a quarter of the time
            addresses = [_addressof(_first_of_buffer(array)) for array in arrays]
        else:
            addresses = list(map(_address, arrays))
        if self._pairs:
            self._check_aliases(arrays, addresses)
        prepared = self._taken(values)
        native = prepared.scalars
        if starts:
            prepared.begin_with(starts)
        for position, value in scalars:
            if isinstance(value, int | np.integer):
                native[position].i = value
            else:
                native[position].f = value
        results = prepared.run(arrays, addresses)
        self._calls.note_run(prepared.seconds)
        self._idle.append(prepared)
        return results

    def _taken(self, values: Values) -> PreparedRun:
        """A run by the plan that is best known by now, which nobody else uses."""
        if self._calls.deserve_second_thoughts:
            self._calls = self._planned(values)
        try:
            prepared = self._idle.pop()
        except IndexError:  # another thread is in the same call
            return self._prepared(values)
        return prepared if prepared.plan is self._calls.plan else self._prepared(values)

    def _planned(self, values: Values) -> PlannedCalls:
        return self._nest.planned(self._bound, 1, 1, 1, self._arguments(values))

    def _prepared(self, values: Values) -> PreparedRun:
        arrays = [values[position] for position in self._arrays]
        return PreparedRun(self._bound, self._calls.plan, arrays, communicator.announcer(True))

    def _arguments(self, values: Values) -> dict[str, Any]:
        return {name: values[position] for name, position in self._parameters}

    def _check_aliases(self, arrays: Sequence[npt.NDArray[Any]], addresses: Sequence[int]) -> None:
        spans = self._spans
        for one, other in self._pairs:
            apart = addresses[other] - addresses[one]
            if spans[one][0] - spans[other][1] < apart < spans[one][1] - spans[other][0]:
                names = [array.name for array in self._bound.arrays]
                check_aliases(self._bound, dict(zip(names, arrays, strict=True)))


_addressof, _first_of_buffer = ctypes.addressof, ctypes.c_char.from_buffer


def _is_buffer(values: npt.NDArray[Any]) -> bool:
    """Whether the first element lies where the buffer of an array begins."""
    return bool(values.size and values.flags.c_contiguous and values.flags.writeable)


def _address(values: npt.NDArray[Any]) -> int:
    address: int = values.__array_interface__["data"][0]
    return address


def _span(values: npt.NDArray[Any]) -> tuple[int, int]:
    """The bytes from an array's first element that all of its elements lie in, half-open."""
    steps = [stride * (extent - 1) for stride, extent in zip(values.strides, values.shape, strict=True)]
    if not values.size:
        return 0, 0
    return sum(step for step in steps if step < 0), sum(step for step in steps if step > 0) + values.itemsize


def _pairs_to_tell_apart(bound: BoundNest) -> list[tuple[int, int]]:
    """The arrays that must not share memory, by position: a written one and any other."""
    written = [array.name in bound.nest.written for array in bound.arrays]
    count = len(written)
    return [(k, m) for k in range(count) for m in range(k + 1, count) if written[k] or written[m]]
