"""program.bin of a program of several nests, as export/program/driver reads it, and what its C sources have to name."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from lapwing.export.driver.calls import Call
from lapwing.export.driver.operations import (
    CallLocally,
    CallNest,
    Choose,
    Copy,
    Count,
    End,
    Exchange,
    Fill,
    Go,
    Load,
    Operation,
    Result,
    SetTo,
    SpecialisedDriver,
    Stop,
    Word,
)
from lapwing.export.driver.values import View
from lapwing.export.tables import MAGIC, bits, list_of, rank_tables, table_of
from lapwing.loopnest.binding.bound_nest import ArrayType, BoundNest
from lapwing.planner.plan import SLICE_SECONDS
from lapwing.runtime.arrays.storage import padded_strides
from lapwing.runtime.binding import native
from lapwing.tiling.boxes import Box, hull, volume

# As in driver_main.cpp.
(
    _SET_NUMBER,
    _SET_REGISTER,
    _FILL,
    _LOAD,
    _COPY,
    _EXCHANGE,
    _CALL_NEST,
    _CALL_LOCALLY,
    _GO,
    _CHOOSE,
    _COUNT,
    _END,
    _STOP,
) = range(13)
_IS_INTEGER, _IS_FLOAT, _IS_EQUAL = range(3)

Seconds = Callable[[Call], float]


@dataclass(eq=False)
class Module:
    """A tile that calls have in common: its text, and a nest that it was made for."""

    text: str
    bound: BoundNest


class DriverTables:
    """The numbers of everything that an exported program names: memories, modules, registers, texts."""

    def __init__(self, driver: SpecialisedDriver, engine: str) -> None:
        self.driver, self._engine = driver, engine
        self._registers: dict[str, int] = {}
        self._texts: dict[str, int] = {}
        self._modules: dict[Any, int] = {}
        self.modules: list[Module] = []
        self._memories = {name: number for number, name in enumerate(driver.memories)}
        operations = [operation for block in driver.blocks for operation in block]
        self._calls = [o for o in operations if isinstance(o, CallNest)]
        self._locals = [o for o in operations if isinstance(o, CallLocally)]
        self._exchanges = list(dict.fromkeys(o for o in operations if isinstance(o, Exchange)))
        self._ends = [o for o in operations if isinstance(o, End)]
        self._code = list(self._written_code())
        self._common_part_names()

    def _common_part_names(self) -> None:
        """Give numbers to all that is named."""
        for _ in self._common_part(None):
            pass

    @cached_property
    def texts(self) -> tuple[str, ...]:
        return tuple(self._texts)

    def file(self, report: Callable[[float], None] | None = None, seconds_per_point: Seconds | None = None) -> bytes:
        """The whole file: a part for all ranks, and one for each. seconds_per_point: of a call, in a simulated cluster."""
        parts = [b"".join(self._common_part(seconds_per_point))]
        for rank in range(self.driver.ranks):
            parts.append(b"".join(self._of_rank(rank)))
            if report is not None:
                report((rank + 1) / self.driver.ranks)
        header = len(MAGIC) + 8 + 8 * (len(parts) + 1)
        begins = accumulate((len(part) for part in parts), initial=header)
        return MAGIC + struct.pack(f"<{len(parts) + 2}q", self.driver.ranks, *begins) + b"".join(parts)

    # -- for all ranks -----------------------------------------------------------------------------------------------------

    def _common_part(self, seconds_per_point: Seconds | None) -> Iterator[bytes]:
        memories = list(self.driver.memories.values())
        tail = [part for call in self._calls for part in self._call(call, seconds_per_point)]
        tail += [part for call in self._locals for part in self._local(call)]
        tail += [part for end in self._ends for part in self._end(end)]
        yield list_of(
            [
                native.ENGINE_CODES[self._engine], bits(SLICE_SECONDS), len(self._registers), len(memories), len(self.modules),
                len(self._calls), len(self._locals), len(self._exchanges), len(self._ends),
            ]
        )  # fmt: skip
        for memory in memories:
            yield list_of(memory.shape)
            yield list_of([int(memory.data is not None)])
        yield list_of(self._code)
        yield from tail

    def _call(self, call: CallNest, seconds_per_point: Seconds | None) -> Iterator[bytes]:
        seconds = 0.0 if seconds_per_point is None else seconds_per_point(call.call)
        tables = call.call.tables(0)  # to be held as long as the program in them
        program = tables.c
        yield list_of([call.call.plan.ranks, bits(seconds), program.phases])
        phases = zip(call.call.bounds, call.call.sources, call.words, call.starts, strict=True)
        for number, (bound, text, words, starts) in enumerate(phases):
            yield from self._phase(bound, text, call.views, words, starts)
            phase = program.phase[number]
            yield list_of([phase.loops, phase.sweep_depth, phase.slice_grain, phase.slice_loop, phase.slices_rows])
            points = np.zeros((program.sweeps, 1), np.int64)
            if phase.sweep_depth:
                points = np.ctypeslib.as_array(phase.sweep_points, (program.sweeps, phase.sweep_depth))
            yield table_of(points)
        yield self._results(call.results, call.call.bounds)

    def _local(self, call: CallLocally) -> Iterator[bytes]:
        yield list_of([-1 if call.rank is None else call.rank])
        bound = call.call.bound
        starts: list[Word] = [
            bits(float(a.initial) if a.dtype.startswith("float") else int(a.initial)) for a in bound.body.accumulators
        ]
        yield from self._phase(bound, call.call.sources[0], call.views, call.words, starts)
        yield self._results(call.results, [bound])

    def _phase(
        self, bound: BoundNest, text: str, views: Any, words: Sequence[Word], starts: Sequence[Word]
    ) -> Iterator[bytes]:
        yield list_of([self._module(bound, text)])
        for array in bound.arrays:
            yield list_of(self._place(views[array.name]))
        yield self._words(words)
        yield self._words(starts)

    def _module(self, bound: BoundNest, text: str) -> int:
        accumulators = tuple(replace(a, initial=0) for a in bound.body.accumulators)
        key = (text, accumulators, bound.body.traps)
        if key not in self._modules:
            self._modules[key] = len(self.modules)
            self.modules.append(Module(text, bound))
        return self._modules[key]

    def _place(self, view: View) -> list[int]:
        found = [self._memories[view.memory]]
        for along in view.part:
            found += (along, -1) if isinstance(along, int) else (along[0], along[1] - along[0])
        return found

    def _words(self, words: Sequence[Word]) -> bytes:
        return table_of(_matrix([(1, self._register(w)) if isinstance(w, str) else (0, w) for w in words], 2))

    def _results(self, results: Sequence[Result], bounds: Sequence[BoundNest]) -> bytes:
        rows = []
        for result in results:
            names = [a.name for a in bounds[result.phase].body.accumulators]
            noted = [
                k for k, a in enumerate(bounds[result.phase].body.accumulators)
                if a.operator == "noted" and a.of == result.accumulator
            ]  # fmt: skip
            kept = -1 if result.kept is None else self._register(result.kept)
            target = self._register(result.register)
            rows.append((result.phase, names.index(result.accumulator), target, kept, noted[0] if noted else -1))
        return table_of(_matrix(rows, 5))

    def _end(self, end: End) -> Iterator[bytes]:
        arrays, numbers = [], []
        for array in end.arrays:
            kind, origin = array.origin
            low, high = (self._memories[origin], 0) if kind == "file" else _element(origin)
            arrays.append((self._text(array.name), self._memories[array.view.memory], int(kind == "file"), low, high))
        for number in end.numbers:
            if number.register is None:
                numbers.append((self._text(number.name), -1, self._text(number.text), 0, 0))
                continue
            dtype = np.dtype(number.dtype)
            width = 1 if dtype.kind == "b" else 8 * dtype.itemsize
            numbers.append(
                (self._text(number.name), self._register(number.register), -1, int(dtype.kind == "f"), width)
            )
        yield table_of(_matrix(arrays, 5))
        yield table_of(_matrix(numbers, 5))

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))

    def _register(self, name: str) -> int:
        return self._registers.setdefault(name, len(self._registers))

    # -- the code ----------------------------------------------------------------------------------------------------------

    def _written_code(self) -> Iterator[int]:
        numbers = {id(o): k for kind in (self._calls, self._locals, self._ends) for k, o in enumerate(kind)}
        exchanges = {o: k for k, o in enumerate(self._exchanges)}
        blocks = [[self._operation(o, numbers, exchanges) for o in block] for block in self.driver.blocks]
        begins = list(accumulate((sum(map(len, block)) for block in blocks), initial=0))
        for block, operations in zip(blocks, self.driver.blocks, strict=True):
            for words, operation in zip(block, operations, strict=True):
                match operation:
                    case Go():
                        yield from (words[0], begins[words[1]])
                    case Choose():
                        yield from (*words[:4], begins[words[4]], begins[words[5]])
                    case Count():
                        yield from (*words[:6], begins[words[6]], begins[words[7]])
                    case _:
                        yield from words

    def _operation(self, operation: Operation, numbers: dict[int, int], exchanges: dict[Exchange, int]) -> list[int]:
        register = self._register
        match operation:
            case SetTo(register=target, word=str() as source):
                return [_SET_REGISTER, register(target), register(source)]
            case SetTo(register=target, word=word):
                return [_SET_NUMBER, register(target), int(word)]
            case Fill(memory=memory, element=element):
                return [_FILL, self._memories[memory], *_element(element)]
            case Load(memory=memory):
                return [_LOAD, self._memories[memory]]
            case Copy(memory=memory, source=source):
                return [_COPY, self._memories[memory], self._memories[source]]
            case Exchange():
                return [_EXCHANGE, exchanges[operation]]
            case CallNest():
                return [_CALL_NEST, numbers[id(operation)]]
            case CallLocally():
                return [_CALL_LOCALLY, numbers[id(operation)]]
            case Go(block=block):
                return [_GO, block]
            case Choose(register=name, is_float=is_float, then=then, otherwise=otherwise, equal=equal):
                test = (_IS_FLOAT if is_float else _IS_INTEGER) if equal is None else _IS_EQUAL
                return [_CHOOSE, register(name), test, equal or 0, then, otherwise]
            case Count(position=position, values=values, target=target, inside=inside, behind=behind):
                return [
                    _COUNT, register(position), len(values), values.start, values.step, register(target), inside, behind,
                ]  # fmt: skip
            case End():
                return [_END, numbers[id(operation)]]
            case Stop(text=text):
                return [_STOP, self._text(text)]

    # -- for one rank --------------------------------------------------------------------------------------------------------

    def _of_rank(self, rank: int) -> Iterator[bytes]:
        for memory in self.driver.memories.values():
            box = _around(memory.kept[rank], len(memory.shape))
            yield list_of([low for low, _ in box])
            yield list_of([high for _, high in box])
            yield list_of(padded_strides([high - low for low, high in box], np.dtype(memory.dtype).itemsize))
        for call in self._calls:
            if rank < call.call.plan.ranks:
                yield from self._call_of_rank(call, rank)
        for local in self._locals:
            if local.rank == rank:
                for array in local.call.bound.arrays:
                    yield from self._private_locally(local, array.name)
        for exchange in self._exchanges:
            rows = []
            for name, move in exchange.moves:
                if rank in (move.source, move.target):
                    peer = move.target if rank == move.source else move.source
                    rows.append((self._memories[name], peer, int(rank == move.source), *_box_words(move.box)))
            yield table_of(_matrix(rows, 3 + 2 * native.MAX_LOOPS))
        for end in self._ends:
            for written in end.arrays:
                yield _boxes(written.owned[rank])

    def _call_of_rank(self, call: CallNest, rank: int) -> Iterator[bytes]:
        tables = call.call.tables(rank)
        c = tables.c
        yield list_of([c.sweeps, c.batch, c.apart])
        for number, bound in enumerate(call.call.bounds):
            yield list_of([c.phase[number].first_step, c.phase[number].rewrites])
            for array in bound.arrays:
                yield from self._private(call.call, call.views[array.name], array, rank)
        yield from rank_tables(c)

    def _private(self, call: Call, view: View, array: ArrayType, rank: int) -> Iterator[bytes]:
        """Where a tile finds an array that does not lie in order, sheared or with gaps between the elements of its rows."""
        name = array.name
        store = call.storage(name, rank)
        written = [box for boxes in call.writes(name, rank) for box in boxes]
        needed = [*call.needs(name, rank), *written]
        if store is not None and store.shear is not None:
            sides, strides, origin = _in_order(store.box, array.itemsize)
            yield from _private_part(sides, strides, origin, store.shear.strides(strides), needed, written)
        elif view.has_gaps and needed:
            box = _around([*needed, *call.room(name, rank)], len(array.shape))
            yield from _private_part(*_in_order(box, array.itemsize), None, needed, written)
        else:
            yield from _no_private_part()

    def _private_locally(self, call: CallLocally, name: str) -> Iterator[bytes]:
        view, bound, box = call.views[name], call.call.bound, call.call.box(name)
        if view.has_gaps:
            written = [box] if name in bound.nest.written else []
            yield from _private_part(*_in_order(box, bound.array(name).itemsize), None, [box], written)
        else:
            yield from _no_private_part()


def _in_order(box: Box, itemsize: int) -> tuple[list[int], tuple[int, ...], int]:
    """The sides of a box, the strides of its elements in memory, and where in that element (0, …, 0) would be."""
    sides = [high - low for low, high in box]
    strides = padded_strides(sides, itemsize)
    return sides, strides, -sum(low * stride for (low, _), stride in zip(box, strides, strict=True))


def _private_part(
    sides: Sequence[int],
    strides: Sequence[int],
    origin: int,
    of_indices: Sequence[int] | None,
    loaded: Sequence[Box],
    stored: Sequence[Box],
) -> Iterator[bytes]:
    yield list_of([max(1, sides[0]) * strides[0], origin])
    yield list_of(strides if of_indices is None else of_indices)
    yield _boxes(loaded)
    yield _boxes(stored)


def _no_private_part() -> Iterator[bytes]:
    yield list_of([0, 0])
    yield list_of([])
    yield _boxes([])
    yield _boxes([])


def _around(boxes: Sequence[Box], axes: int) -> Box:
    """The box around what there is in boxes."""
    found = [box for box in boxes if volume(box)]
    return hull(found) if found else ((0, 0),) * axes


def _boxes(boxes: Sequence[Box]) -> bytes:
    return table_of(_matrix([_box_words(box) for box in boxes], 2 * native.MAX_LOOPS))


def _box_words(box: Box) -> tuple[int, ...]:
    missing = (0,) * (native.MAX_LOOPS - len(box))
    return (*(low for low, _ in box), *missing, *(high for _, high in box), *missing)


def _element(element: bytes) -> tuple[int, int]:
    low, high = struct.unpack("<2q", element.ljust(16, b"\0"))
    return low, high


def _matrix(rows: Sequence[Sequence[int]], columns: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(rows, np.int64).reshape(len(rows), columns)
