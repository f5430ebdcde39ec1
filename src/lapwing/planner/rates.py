"""How fast a tile computes: seconds per point, measured where it was, estimated where it was not."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import NamedTuple, Protocol

from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.machine.machine import Kernel, Machine
from lapwing.tiling.needed import touched_box
from lapwing.units import duration

Block = tuple[int, ...]

NEAR = 1.4  # heights within this factor of each other are about as fast
_KINDS = {"+": "add", "-": "add", "*": "mul", "/": "div", "//": "div", "%": "div", "sqrt": "sqrt"}


@dataclass(frozen=True)
class Shape:
    """The tiles of a rank: its block (extents of the space loops), the mapping loop (None for time), their height, and how many
    sweeps are joined."""

    block: Block
    mapping: int | None
    tile: int
    joined: int = 1

    @property
    def of_any_height(self) -> tuple[Block, int | None, int]:
        """What shapes have in common that differ in their height."""
        return self.block, self.mapping, self.joined

    @property
    def step(self) -> Block:
        """Extents of one step: of one sweep's part where time is pipelined."""
        if self.mapping is None:
            return self.block
        height = min(self.tile, self.block[self.mapping])
        return (*self.block[: self.mapping], height, *self.block[self.mapping + 1 :])


class Rates(Protocol):
    """How fast tiles of some shape are; ``source`` says how that is known."""

    @property
    def source(self) -> str: ...

    def knows(self, shape: Shape) -> bool:
        """Whether the other questions have an answer for this shape."""
        ...

    def seconds_per_point(self, shape: Shape) -> float: ...

    def copy_seconds(self, shape: Shape, axis: int, direction: int) -> CopySeconds | None:
        """Seconds per byte of packing and unpacking a message along a loop, in its direction (1) or against it (-1).

        None where nobody knows.
        """
        ...


class CopySeconds(NamedTuple):
    """Seconds per byte."""

    pack: float
    unpack: float


@dataclass(frozen=True)
class EstimatedRates:
    """The same for all shapes: a published figure of the nest, or a sum over the operations of a point."""

    value: float
    source: str

    @staticmethod
    def of(bound: BoundNest, machine: Machine) -> EstimatedRates:
        known = machine.known_nests.get(bound.nest.name)
        if known is not None:
            return EstimatedRates(known.value, f"{duration(known.value)} a point: {known.source}")
        costs = machine.seconds_per_operation
        total = sum(count * costs[kind].value for kind, count in operations(bound).items() if kind in costs)
        return EstimatedRates(total, f"{duration(total)} a point, estimated from its operations")

    def knows(self, shape: Shape) -> bool:
        return True

    def seconds_per_point(self, shape: Shape) -> float:
        return self.value

    def copy_seconds(self, shape: Shape, axis: int, direction: int) -> None:
        return None


@dataclass(frozen=True)
class KernelRates:
    """From a kernel measured before, at other sizes perhaps."""

    bound: BoundNest
    kernel: Kernel

    @property
    def source(self) -> str:
        return self.kernel.source or "measured by lapwing calibrate"

    def knows(self, shape: Shape) -> bool:
        return True

    def seconds_per_point(self, shape: Shape) -> float:
        return self.kernel.seconds_per_point(*step_size(self.bound, shape))

    def copy_seconds(self, shape: Shape, axis: int, direction: int) -> None:
        return None


class Sample(NamedTuple):
    """One shape, measured: seconds per point, and of its messages by axis and direction."""

    seconds_per_point: float
    copies: Mapping[tuple[int, int], CopySeconds]


@dataclass(frozen=True)
class ProbedRates:
    """Measured on the real tiles.

    Between two heights of a block the line over the logarithm of the height, a little beyond them the nearest. Other shapes
    are not known. Tiles along time are as fast as each of their sweeps, however many.
    """

    samples: Mapping[Shape, Sample]
    source: str = "measured on the real tiles"

    def knows(self, shape: Shape) -> bool:
        heights = self._heights.get(shape.of_any_height)
        if shape.mapping is None:
            return heights is not None
        return heights is not None and heights[0][0] <= NEAR * shape.tile and shape.tile <= NEAR * heights[-1][0]

    def has_near(self, shape: Shape) -> bool:
        """Whether a height was measured that tells as much."""
        heights = self._heights.get(shape.of_any_height, [])
        if shape.mapping is None:
            return bool(heights)
        return any(max(height, shape.tile) <= NEAR * min(height, shape.tile) for height, _ in heights)

    def seconds_per_point(self, shape: Shape) -> float:
        heights = self._heights[shape.of_any_height]
        if shape.mapping is None:
            return median(seconds for _, seconds in heights)
        place = bisect_left(heights, (shape.tile, -math.inf))
        if place == 0:
            return heights[0][1]
        if place == len(heights):
            return heights[-1][1]
        (low, before), (high, after) = heights[place - 1], heights[place]
        share = math.log(shape.tile / low) / math.log(high / low)
        return before + share * (after - before)

    def nearest(self, shape: Shape) -> Shape:
        """The measured shape of the same block, mapping loop and sweeps whose height is nearest."""
        alike = [s for s in self.samples if s.of_any_height == shape.of_any_height]
        return min(alike, key=lambda s: abs(math.log(s.tile / shape.tile)))

    def copy_seconds(self, shape: Shape, axis: int, direction: int) -> CopySeconds | None:
        return self.samples[self.nearest(shape)].copies.get((axis, direction))

    @cached_property
    def _heights(self) -> dict[tuple[Block, int | None, int], list[tuple[int, float]]]:
        """Per shape of any height, heights and seconds per point."""
        found: dict[tuple[Block, int | None, int], list[tuple[int, float]]] = {}
        for shape, sample in self.samples.items():
            found.setdefault(shape.of_any_height, []).append((shape.tile, sample.seconds_per_point))
        return {key: sorted(heights) for key, heights in found.items()}


def operations(bound: BoundNest) -> Counter[str]:
    """How many operations of each kind (machine.OPERATIONS) a point takes."""
    found: Counter[str] = Counter()
    for statement in bound.body.simple:
        found["store"] += isinstance(statement, t.TypedStore)
        for node in t.walk(statement.value):
            if isinstance(node, t.Load):
                found["load"] += 1
            elif isinstance(node, t.Operation):
                found[_KINDS.get(node.operator, "other")] += 1
            elif isinstance(node, t.Select):
                found["other"] += 1
    return found


def step_size(bound: BoundNest, shape: Shape) -> tuple[int, int, int]:
    """Points of a step, how many of them lie along the innermost loop, and the bytes of arrays the whole block touches."""
    depth = bound.nest.sweep_depth
    middle = [
        (begin := low + (high - low - extent) // 2, begin + extent)
        for extent, (low, high) in zip(shape.block, bound.domain.box[depth:], strict=True)
    ]
    ranges = dict(zip(bound.nest.loop_names, (*bound.domain.box[:depth], *middle), strict=True))
    boxes = ((array, touched_box(bound, array.name, ranges)) for array in bound.arrays)
    touched = sum(math.prod(high - low for low, high in box) * array.itemsize for array, box in boxes)
    return math.prod(shape.step), shape.step[-1], touched
