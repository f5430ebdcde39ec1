"""program.bin: what the ranks of an exported program do, as export/program/program_file.hpp reads it."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.codegen.rows.module import accumulator_offsets, accumulator_words
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import ArrayType, BoundNest
from lapwing.loopnest.binding.scalars import scalar_words
from lapwing.planner.plan import Plan
from lapwing.runtime.arrays.layout import written_boxes
from lapwing.runtime.arrays.shear import shear_of
from lapwing.runtime.arrays.storage import padded_strides, storage_of
from lapwing.runtime.binding import native
from lapwing.runtime.binding.program import RankProgram, rank_program
from lapwing.tiling.faces import Faces
from lapwing.tiling.partition import Range
from lapwing.tiling.skewing import skewed_nest

MAGIC = b"LWPROG1\n"

Matrix = npt.NDArray[np.int64]


def program_bytes(bound: BoundNest, plan: Plan, report: Callable[[float], None] | None = None) -> bytes:
    """The whole file: a part for all ranks, and one for each.

    bound: as the user's loops have it; where the plan skews the nest, the program is in skewed coordinates.
    report: told the fraction done.
    Raises RefusedError where a rank's program would be too large (runtime/program.py).
    """
    bound = skewed_nest(bound, plan.skew)
    faces = plan.faces(bound)
    parts: list[bytes] = []
    for rank in range(plan.ranks):
        program = rank_program(faces, rank, plan.ranks, fusion=plan.fusion)
        if rank == 0:
            parts.append(b"".join(_common(bound, plan, program)))
        parts.append(b"".join(_of_rank(bound, faces, program, rank)))
        if report is not None:
            report((rank + 1) / plan.ranks)
    header = len(MAGIC) + 8 + 8 * (len(parts) + 1)
    begins = accumulate((len(part) for part in parts), initial=header)
    return MAGIC + struct.pack(f"<{len(parts) + 2}q", plan.ranks, *begins) + b"".join(parts)


def _common(bound: BoundNest, plan: Plan, program: RankProgram) -> Iterator[bytes]:
    c = program.c
    engine = native.ENGINE_CODES[plan.engine]
    slices = bits(plan.slice_seconds)
    phase = c.phase[0]
    yield list_of(
        [engine, phase.loops, phase.sweep_depth, c.sweeps, c.batch, phase.slice_grain, phase.slice_loop, slices]
    )
    points = np.ctypeslib.as_array(phase.sweep_points, (c.sweeps, phase.sweep_depth)) if phase.sweep_depth else None
    yield table_of(np.zeros((c.sweeps, 1), np.int64) if points is None else points)
    for array in bound.arrays:
        yield list_of(array.shape)
    yield list_of([bits(word) for value in bound.parameters.values() for word in scalar_words(value)])
    yield list_of(_initial_words(bound.body.accumulators))
    yield list_of([bits(_kind(a)(a.initial)) for a in bound.body.accumulators])


def _of_rank(bound: BoundNest, faces: Faces, program: RankProgram, rank: int) -> Iterator[bytes]:
    c = program.c
    yield list_of([c.apart, c.phase[0].rewrites])
    for array in bound.arrays:
        yield from _array(bound, array, faces.partition.block(rank), faces.block(rank))
    yield from rank_tables(c)


def rank_tables(c: native.Program) -> Iterator[bytes]:
    """The sweeps that are joined and share a pass, the steps and their order, channels, messages and parts of a rank."""
    messages = sum(side[k].messages for side, count in _channels(c) for k in range(count))
    parts = sum(c.messages[k].parts for k in range(messages))
    yield list_of([c.joined_sweeps, c.last_joined, c.closing_sweeps, c.pass_sweeps])
    yield table_of(_rows([c.step_boxes[k] for k in range(c.steps)], native.Box))
    places = np.ctypeslib.as_array(c.places, (c.pass_places, 2)) if c.pass_places else np.zeros((0, 2), np.int64)
    yield table_of(places)
    yield table_of(_rows([c.step_moves[k] for k in range(c.steps if c.step_moves else 0)], native.Box))
    for side, count in _channels(c):
        yield table_of(_rows([side[k] for k in range(count)], native.Channel))
    yield table_of(_rows([c.messages[k] for k in range(messages)], native.Message))
    yield table_of(_rows([c.parts[k] for k in range(parts)], native.Part))


def _array(bound: BoundNest, array: ArrayType, block: Sequence[Range], reached: Sequence[Range]) -> Iterator[bytes]:
    """A rank's part of an array: where it lies in memory, the elements it begins with, and those it writes. reached: the
    iterations that the rank does in any of the sweeps that are joined, or a box around them."""
    store = storage_of(bound, array.name, reached)
    everything = tuple((0, n) for n in array.shape)
    sides = [high - low for low, high in store.box]
    strides = padded_strides(sides, array.itemsize)
    origin = -sum(low * stride for (low, _), stride in zip(store.box, strides, strict=True))
    yield list_of([max(1, sides[0]) * strides[0], origin])
    yield list_of(strides if store.shear is None else store.shear.strides(strides))
    loaded = [store.box] if store.shear is None else [box for box, _ in store.shear.pieces(store.box, everything)]
    yield table_of(_rows([native.box(box) for box in loaded], native.Box))
    rounds = written_boxes(bound, array.name, block) if array.name in bound.nest.written else []
    if bound.skew is not None and rounds:
        # One offset only, so every element has one writer.
        (sheared,) = rounds
        pieces = [box for box, _ in shear_of(bound, array.name).pieces(sheared, everything)]
        yield list_of([0] * len(pieces))
        yield table_of(_rows([native.box(box) for box in pieces], native.Box))
        return
    yield list_of(range(len(rounds)))
    yield table_of(_rows([native.box(box) for box in rounds], native.Box))


def _channels(program: native.Program) -> tuple[tuple[Any, int], tuple[Any, int]]:
    return (program.incoming_channels, program.incoming), (program.outgoing_channels, program.outgoing)


def _rows(structures: Sequence[ctypes.Structure], kind: type[ctypes.Structure]) -> Matrix:
    """Structures of 64-bit numbers, one a row."""
    columns = ctypes.sizeof(kind) // 8
    return np.frombuffer(b"".join(bytes(s) for s in structures), np.int64).reshape(len(structures), columns)


def list_of(values: Sequence[int] | range) -> bytes:
    return table_of(np.array(values, np.int64).reshape(-1, 1))


def table_of(rows: Matrix) -> bytes:
    """A table: its number of rows and, column by column, runs of equal differences from row to row."""
    numbers = [np.array([len(rows)], np.int64)]
    if len(rows):
        for column in np.ascontiguousarray(rows.T):
            differences = np.diff(column, prepend=np.int64(0))  # may wrap, and wraps back when it is read
            starts = np.flatnonzero(np.concatenate([[True], differences[1:] != differences[:-1]]))
            lengths = np.diff(starts, append=len(column))
            numbers.append(np.stack([differences[starts], lengths], axis=1).reshape(-1))
    return _variable_length(np.concatenate(numbers))


def _variable_length(numbers: npt.NDArray[np.int64]) -> bytes:
    """Seven bits a byte, the highest bit set in all but the last; the sign in the lowest bit."""
    bits = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    places = np.arange(10, dtype=np.uint64)
    groups = bits[:, None] >> (np.uint64(7) * places)
    needed = np.maximum(1, np.count_nonzero(groups, axis=1))[:, None]
    coded = (groups & np.uint64(0x7F)) | np.where(places + 1 < needed, np.uint64(0x80), np.uint64(0))
    kept: npt.NDArray[np.uint8] = coded.astype(np.uint8)[places < needed]
    return kept.tobytes()


def bits(value: float) -> int:
    """The 64 bits of an lw_scalar, as an integer."""
    return int(np.float64(value).view(np.int64)) if isinstance(value, float) else int(value)


def _kind(accumulator: t.Accumulator) -> type[Any]:
    return np.float64 if accumulator.dtype.startswith("float") else int


def _initial_words(accumulators: Sequence[t.Accumulator]) -> list[int]:
    """What accumulators hold before the loops: maxima and minima their first value, sums zero."""
    words = [0] * accumulator_words(accumulators)
    offsets = accumulator_offsets(accumulators)
    for accumulator in accumulators:
        if accumulator.operator != "+":
            words[offsets[accumulator.name]] = bits(_kind(accumulator)(accumulator.initial))
    return words
