"""A plan as a picture: how the iteration space is cut, which rank owns what, and when every rank computes its tiles."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

import numpy as np

from lapwing.schedule.pipeline import Pipeline
from lapwing.schedule.timeline import MOST_NODES, timeline
from lapwing.tiling.partition import Partition
from lapwing.units import duration

_WIDTH = 960
_CUT = (60.0, 74.0, 330.0, 290.0)  # left, top, width and height of the iteration space
_ROWS_LEFT = 480.0  # of the schedule
_ROWS_WIDTH = _WIDTH - _ROWS_LEFT - 24
_MOST_BLOCKS = 12  # along an axis
_MOST_LINES = 40  # of tiles, along the pipelined loop
_MOST_RANKS = 12  # in the schedule
_MOST_TILES = 120  # of a rank in the schedule
# Okabe and Ito's colours, which colour-blind people can tell apart; neighbours in a grid have different ones.
_COLOURS = ("#0072b2", "#009e73", "#e69f00", "#cc79a7", "#56b4e9", "#d55e00")
_STYLE = """
svg { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
.ground { fill: #fbfbfa; } text, .ink { fill: #1d2125; } .faint { fill: #646b73; }
.line { stroke: #1d2125; fill: none; } .tile { stroke: #ffffff; stroke-opacity: .65; } .row { fill: #ececea; }
.title { font-size: 16px; font-weight: 600; } .small { font-size: 11px; } .on { fill: #ffffff; font-weight: 600; }
@media (prefers-color-scheme: dark) {
  .ground { fill: #14171a; } text, .ink { fill: #e8eaec; } .faint { fill: #9aa4ad; } .line { stroke: #e8eaec; }
  .row { fill: #262b30; } .on { fill: #ffffff; }
}
"""


@dataclass(frozen=True)
class Cut:
    """What of a plan is drawn, as ``Plan`` has it: ``text`` is its lines, ``vectors`` its dependences as they are computed,
    skewed where loops are, sweep loops first.
    """

    text: str
    sweep_loops: tuple[str, ...]
    space_loops: tuple[str, ...]
    mapping: int | None
    tile: int
    steps: int
    partition: Partition
    vectors: tuple[tuple[int, ...], ...]
    pipeline: Pipeline | None


def plan_picture(plan: Cut) -> str:
    """The picture as a text in SVG, which needs nothing from elsewhere and takes the system's colours, light or dark.

    Left the cut: the two loops that matter most, blocks with their ranks, tiles along the pipelined loop and the way messages
    take. Right the schedule: predicted seconds where the machine is known, else steps. Below what was decided.
    """
    title, *lines = plan.text.splitlines()
    decided = [line for line in lines if line.split()[0] not in ("because", "note")]
    rows = min(plan.partition.ranks, _MOST_RANKS)
    below = _CUT[1] + max(_CUT[3], 22.0 * rows + 40) + 62
    height = below + 18 * len(decided) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" width="{_WIDTH}" height="{height:.0f}" '
        f'role="img" aria-label="{escape(title)}">',
        f"<style>{_STYLE}</style>",
        f'<rect class="ground" width="{_WIDTH}" height="{height:.0f}"/>',
        _text(24, 32, title, "title"),
        *_cut(plan),
        *_schedule(plan),
        *(_text(24, below + 18 * k, line, "small", "xml:space='preserve'") for k, line in enumerate(_columns(decided))),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def stacked(pictures: Sequence[str]) -> str:
    """Pictures of plans one below the other, as one."""
    heights = [int(re.search(r'height="(\d+)"', picture)[1]) for picture in pictures]  # type: ignore[index]
    inside = [p.replace("<svg ", f'<svg y="{sum(heights[:k])}" ', 1) for k, p in enumerate(pictures)]
    size = f'viewBox="0 0 {_WIDTH} {sum(heights)}" width="{_WIDTH}" height="{sum(heights)}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n{"".join(inside)}</svg>\n'


def _text(x: float, y: float, text: str, style: str = "", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{style}" {more}>{escape(text)}</text>'


def _columns(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        name, value = line[:15].strip(), line[15:]
        yield f"{name}:  {value}"


# -- the cut -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Axis:
    """A loop as it is drawn: its name, the indices between which blocks lie, its direction, and what tiles are high along it
    where it is pipelined. ``axis``: which of the space loops; None for the time loop."""

    name: str
    cuts: tuple[int, ...]
    step: int
    tile: int | None
    axis: int | None

    def places(self, cuts: Sequence[float], start: float, length: float) -> list[float]:
        low, high = self.cuts[0], max(self.cuts[-1], self.cuts[0] + 1)
        return [start + length * (cut - low) / (high - low) for cut in cuts]


def _axes(plan: Cut) -> tuple[_Axis, _Axis | None]:
    """The loops drawn downwards and to the right: the pipelined one, and the one that most ranks share."""
    every = [_space_axis(plan, k) for k in range(len(plan.space_loops))]
    if plan.mapping is None:
        tiles = max(plan.steps, 1)
        time = _Axis(plan.sweep_loops[-1], (0, tiles * plan.tile), 1, plan.tile, None)
        return time, max(every, key=_parts)
    down = every[plan.mapping]
    others = [axis for axis in every if axis is not down]
    if not others:
        return down, None
    across = max(reversed(others), key=_parts)
    return down, across


def _parts(axis: _Axis) -> int:
    return len(axis.cuts)


def _space_axis(plan: Cut, k: int) -> _Axis:
    tile = plan.tile if k == plan.mapping else None
    return _Axis(plan.space_loops[k], plan.partition.cuts[k], plan.partition.steps[k], tile, k)


def _cut(plan: Cut) -> Iterator[str]:
    left, top, width, height = _CUT
    down, across = _axes(plan)
    if across is None:
        width = 90.0
    across = across or _Axis("", (0, 1), 1, None, None)
    yield _text(left, top - 14, "cut and grid", "faint")
    rows, columns = _shown(down), _shown(across)
    ys, xs = down.places(rows, top, height), across.places(columns, left, width)
    for i, (y0, y1) in enumerate(pairwise(ys)):
        for j, (x0, x1) in enumerate(pairwise(xs)):
            if x1 <= x0 or y1 <= y0:
                continue  # of a nest without iterations
            place = [0] * len(plan.space_loops)
            for axis, at in ((down, i), (across, j)):
                if axis.axis is not None:
                    place[axis.axis] = at
            rank = plan.partition.rank(place)
            yield f'<rect x="{x0:.1f}" y="{y0:.1f}" width="{x1 - x0:.1f}" height="{y1 - y0:.1f}" fill="{_colour(rank)}"/>'
            yield from _tiles(down, (rows[i], rows[i + 1]), (x0, x1), ys[0], height)
            if x1 - x0 > 26 and y1 - y0 > 15:
                where = 'text-anchor="middle"'
                yield _text(
                    (x0 + x1) / 2, (y0 + y1) / 2 + 5, f"rank {rank}" if x1 - x0 > 60 else str(rank), "on", where
                )
    yield f'<rect class="line" x="{left}" y="{top}" width="{width:.1f}" height="{height}"/>'
    yield from _arrow(left - 14, down, top, height, downwards=True)
    yield _text(left - 48, top + height / 2, down.name)
    if across.name:
        yield from _arrow(top + height + 16, across, left, width, downwards=False)
        yield _text(left + width / 2, top + height + 34, across.name)
    others = [
        f"{name} in {parts}"
        for k, (name, parts) in enumerate(zip(plan.space_loops, plan.partition.grid, strict=True))
        if k not in (down.axis, across.axis) and parts > 1
    ]
    hidden = [f"also cut: {', '.join(others)}"] if others else []
    hidden += [
        f"the first {_MOST_BLOCKS} of {_parts(axis) - 1} along {axis.name}"
        for axis in (down, across)
        if _parts(axis) - 1 > _MOST_BLOCKS
    ]
    if hidden:
        yield _text(left + 100, top - 14, "; ".join(hidden), "faint small")


def _shown(axis: _Axis) -> Sequence[int]:
    return axis.cuts[: _MOST_BLOCKS + 1]


def _tiles(
    axis: _Axis, block: tuple[int, int], span: tuple[float, float], start: float, length: float
) -> Iterator[str]:
    """Lines between a block's tiles, counted from where its loop begins."""
    if axis.tile is None:
        return
    low, high = block
    if (high - low) / axis.tile > _MOST_LINES:
        return
    borders = range(low + axis.tile, high, axis.tile) if axis.step == 1 else range(high - axis.tile, low, -axis.tile)
    for y in axis.places(borders, start, length):
        yield f'<path class="tile" d="M{span[0]:.1f} {y:.1f}H{span[1]:.1f}"/>'


def _arrow(at: float, axis: _Axis, start: float, length: float, downwards: bool) -> Iterator[str]:
    """Which way a loop runs."""
    begin, end = (start + 8, start + length - 8) if axis.step == 1 else (start + length - 8, start + 8)
    back = end - 6 * axis.step
    if downwards:
        yield f'<path class="line" d="M{at} {begin:.1f}V{end:.1f}M{at - 4} {back:.1f}L{at} {end:.1f}L{at + 4} {back:.1f}"/>'
    else:
        yield f'<path class="line" d="M{begin:.1f} {at}H{end:.1f}M{back:.1f} {at - 4}L{end:.1f} {at}L{back:.1f} {at + 4}"/>'


def _colour(rank: int) -> str:
    return _COLOURS[rank % len(_COLOURS)]


# -- the schedule --------------------------------------------------------------------------------------------------------


def _schedule(plan: Cut) -> Iterator[str]:
    """A row for every rank: its steps, one after the other, and gaps where it waits."""
    spans, unit = _spans(plan)
    end = max(float(ends.max()) for _, ends in spans)
    shown = min(len(spans[0][0]), _MOST_TILES)
    until = max(float(ends[shown - 1]) for _, ends in spans)
    left, top = _ROWS_LEFT, _CUT[1]
    of_sweep = " of a sweep" if plan.sweep_loops and plan.mapping is not None else ""
    what = "schedule, as predicted" if unit == "s" else f"schedule{of_sweep}, in steps of a tile"
    many = f"; the first {_MOST_RANKS} of {plan.partition.ranks} ranks" if plan.partition.ranks > _MOST_RANKS else ""
    cut = "" if shown == len(spans[0][0]) else f"; the first {shown:,} of {len(spans[0][0]):,} steps"
    yield _text(left, top - 14, what + many + cut, "faint")
    for k, (begins, ends) in enumerate(spans):
        y = top + 22 * k
        yield f'<rect class="row" x="{left}" y="{y}" width="{_ROWS_WIDTH}" height="16"/>'
        yield _text(left - 8, y + 12, str(k), "small", 'text-anchor="end"')
        for begin, stop in zip(begins[:shown], ends[:shown], strict=True):
            x, width = left + _ROWS_WIDTH * begin / until, _ROWS_WIDTH * (stop - begin) / until
            gap = 0.6 if width > 3 else 0.0
            yield f'<rect x="{x:.2f}" y="{y}" width="{max(width - gap, 0.2):.2f}" height="16" fill="{_colour(k)}"/>'
    y = top + 22 * len(spans) + 14
    yield _text(left, y, "0", "small faint")
    ending = duration(until) if unit == "s" else f"{until:.0f} steps"
    of = "" if until >= end else f" of {duration(end) if unit == 's' else f'{end:.0f}'}"
    yield _text(left + _ROWS_WIDTH, y, ending + of, "small faint", 'text-anchor="end"')


def _spans(plan: Cut) -> tuple[list[tuple[np.ndarray, np.ndarray]], str]:
    """When the first ranks begin and end their steps, in seconds (``"s"``) or in steps (``""``)."""
    ranks, pipeline = min(plan.partition.ranks, _MOST_RANKS), plan.pipeline
    if pipeline is not None and pipeline.ranks * pipeline.total_steps <= min(MOST_NODES, 2_000_000):
        exact = timeline(pipeline)
        places = [_normalised(plan, rank) for rank in range(ranks)]
        return [(exact.start[place], exact.end[place]) for place in places], "s"
    steps = np.arange(max(plan.steps, 1), dtype=float)
    # A block that comes later along the pipelined loop begins when the one before it is done.
    late = {k: len(steps) if k == plan.mapping else 1 for k in _chained(plan)}
    begins = [steps + sum(by * _normalised(plan, rank)[k] for k, by in late.items()) for rank in range(ranks)]
    return [(begin, begin + 1) for begin in begins], ""


def _normalised(plan: Cut, rank: int) -> tuple[int, ...]:
    """A rank's place in the grid, counted in the directions in which loops run."""
    partition = plan.partition
    places = zip(partition.coordinates(rank), partition.grid, partition.steps, strict=True)
    return tuple(at if step == 1 else parts - 1 - at for at, parts, step in places)


def _chained(plan: Cut) -> list[int]:
    """The space loops along which a rank waits for the one before it, in the same sweep."""
    depth = len(plan.sweep_loops)
    inside = [vector[depth:] for vector in plan.vectors if plan.mapping is None or not any(vector[:depth])]
    return [k for k in range(len(plan.space_loops)) if any(vector[k] > 0 for vector in inside)]
