"""P4's figures 5 to 7 again: advection with time as the mapping dimension, on eight dual nodes joined by Gigabit Ethernet.

    python bench/papers/p4.py [--quick] [--json PATH] [--pictures DIR]

As in the paper each number of processes is given its best process grid and tile height (sweeps a message).

- Lapwing's engines blocking, overlap and helper, by the exact timeline; at 8 and 16 processes the runtime itself runs in
  SimGrid's SMPI as well, as far as that can (it has one thread a rank, so no helper).
- The paper's STD and OVRLP written out (by_hand.c) in SMPI, at 8 and 16 processes. STD's sends are no synchronous ones,
  which makes it another program than the engine blocking.

ASYM is the engine helper. Its thread is taken to cost the computing thread nothing, as if the sibling hardware thread were
a core of its own. What sharing a core really costs cannot be found here: the last table says how much slower computing
may become until the gain is gone.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import _paths  # noqa: F401
import advection2d
import advection3d
import numpy as np
from _by_hand import ByHand, Procedure, Work
from _figures import Claim, Found, Picture, Row, Series, main, show_rows, yes
from _report import say
from rich.console import Console

from lapwing.api.nest import Nest
from lapwing.export.smpi import build, simulate
from lapwing.export.stand_alone import sources
from lapwing.export.tables import program_bytes
from lapwing.export.virtual import cluster_of
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.machine.machine import Curve, Link, Machine, Quantity
from lapwing.machine.stored import find
from lapwing.planner.choose import Wishes, make_plan
from lapwing.planner.costs import Placement, pipeline_of
from lapwing.planner.geometry import Geometry
from lapwing.planner.plan import Plan
from lapwing.planner.prediction import predict
from lapwing.planner.rates import EstimatedRates
from lapwing.schedule.pipeline import Engine, Pipeline
from lapwing.schedule.timeline import completion_seconds
from lapwing.tiling.faces import Faces

NODES, CORES_A_NODE = 8, 2
SWEEPS = 256
ENGINES: tuple[Engine, ...] = ("blocking", "overlap", "helper")
BY_HAND: dict[str, Procedure] = {"STD": "standard", "OVRLP": "overlap"}
EAGER_BYTES = 128_000  # MPICH 1.2.7 over TCP sends shorter messages unasked
PROCESSES = tuple(range(2, 17, 2))
TILES = (1, 2, 4, 8, 16)
IN_SMPI = (8, 16)
SLOWER = (0.0, 0.05, 0.1, 0.15, 0.2)  # of computing beside a busy sibling
# P4 prints no times in its text. On a 2.8 GHz Xeon with HT a point waits for the one before: a multiplication and an
# addition of 7 and 5 cycles, and about 6 more until what was stored can be loaded.
SECONDS_PER_POINT = 18 / 2.8e9
ARRAY_BYTES = 8
ALIKE = 0.05  # times that differ by less
# TCP over Gigabit Ethernet: 1448 bytes of 1538 on the wire.
WIRE = Curve.line(0.0, 8 / (1e9 * 1448 / 1538), "Gigabit Ethernet, line rate with TCP's headers")


@dataclass(frozen=True)
class Space:
    """An iteration space of the paper: 256 sweeps over side**dimensions points."""

    dimensions: int
    side: int

    @property
    def name(self) -> str:
        return "x".join([str(self.side)] * self.dimensions)

    @property
    def nest(self) -> Nest:
        return {2: advection2d.advect, 3: advection3d.advect}[self.dimensions]

    def bind(self) -> BoundNest:
        """For points that are computed, from 1 on; of an array that is never read."""
        courant = {name: 0.5 for name in ("cx", "cy", "cz")[: self.dimensions]}
        v = np.zeros((self.side + 1,) * self.dimensions)
        return self.nest.bind({"v": v, **courant, "sweeps": SWEEPS})


# Figures 5 and 6 have four each; these are the ones the text names, and the next in two dimensions.
SPACES = (Space(2, 1024), Space(2, 2048), Space(3, 128), Space(3, 192))


def machine() -> Machine:
    """P3's cluster, of nodes much like P4's (two Xeons of 2.6 instead of 2.8 GHz, MPICH over TCP), with its wire faster."""
    like = find("p3-fastethernet")
    link: Link = like.link("network", "*")
    network = replace(link, wire=WIRE, latency=Quantity(30e-6, source="estimated: switched Gigabit Ethernet"))
    return replace(like, name="p4-gigabit", links={**like.links, "network": {"*": network}}, cores_a_node=CORES_A_NODE)


MACHINE = machine()


@dataclass(frozen=True)
class Cut:
    """A space on some processes: one plan, of which all engines make their pipelines."""

    space: Space
    bound: BoundNest
    plan: Plan

    @property
    def ranks_a_node(self) -> int:
        """The nodes are filled with one process each first, then with two."""
        return 1 if self.plan.ranks <= NODES else CORES_A_NODE

    def pipeline(self, engine: Engine) -> Pipeline:
        plan = self.plan
        geometry = Geometry(Faces(self.bound, plan.partition, plan.mapping, plan.tile, plan.buffers), SWEEPS)
        placement = Placement(self.ranks_a_node, CORES_A_NODE)
        made = pipeline_of(geometry, engine, MACHINE, EstimatedRates(SECONDS_PER_POINT, "estimated"), placement)
        return replace(made, apart=False)  # P4, algorithm 5: packing waits for the computing thread, behind a barrier


def cuts(space: Space, processes: int, tiles: Sequence[int]) -> Iterator[Cut]:
    """All process grids with time as the mapping dimension, and tile heights."""
    bound = space.bind()
    for grid in grids(processes, space.dimensions):
        for tile in tiles:
            plan = make_plan(bound, space.nest.dependences, processes, Wishes("overlap", tile, grid))
            yield Cut(space, bound, plan)


def grids(processes: int, dimensions: int) -> Iterator[tuple[int, ...]]:
    if dimensions == 1:
        yield (processes,)
        return
    for parts in (n for n in range(1, processes + 1) if processes % n == 0):
        for rest in grids(processes // parts, dimensions - 1):
            yield (parts, *rest)


def rows_of(space: Space, quick: bool, by_hand: ByHand) -> list[Row]:
    """Per number of processes, every engine and program at its best grid and height."""
    rows = []
    for processes in PROCESSES[3:4] if quick else PROCESSES:
        tried = list(cuts(space, processes, TILES[1:3] if quick else TILES))
        row: Row = {"processes": processes}
        for engine in ENGINES:
            made = [(completion_seconds(cut.pipeline(engine)), cut) for cut in tried]
            row[engine], cut = min(made, key=lambda pair: pair[0])
            row[f"{engine}_at"] = f"{'x'.join(map(str, cut.plan.grid))}, {cut.plan.tile}"
            if engine == "overlap":
                row["computing"] = predict(cut.pipeline(engine)).compute
            if processes in IN_SMPI and engine != "helper":
                row[f"{engine}_smpi"] = in_smpi(cut, engine)
            if processes in IN_SMPI and engine == "overlap":
                same_grid = [other for other in tried if other.plan.grid == cut.plan.grid]
                for name in BY_HAND:
                    row[name] = min(written_out(other, name, by_hand) for other in same_grid)
        if processes in IN_SMPI:
            row["slower"] = {share: slowed(tried, share) for share in SLOWER}
        rows.append(row)
    return rows


def slowed(tried: Sequence[Cut], share: float) -> float:
    """ASYM where computing takes 1 + share as long."""
    pipelines = (cut.pipeline("helper") for cut in tried)
    return min(completion_seconds(replace(p, compute=p.compute * (1 + share))) for p in pipelines)


def in_smpi(cut: Cut, engine: Engine) -> float:
    """The runtime's own time on the simulated cluster."""
    plan = replace(cut.plan, engine=engine)
    cluster = replace(cluster_of(cut.bound, plan, MACHINE, cut.ranks_a_node), seconds_per_point=SECONDS_PER_POINT)
    program = build(sources(cut.bound, plan), say)
    return simulate(program, program_bytes(cut.bound, plan), plan.ranks, engine, cluster)


def written_out(cut: Cut, name: str, by_hand: ByHand) -> float:
    """The paper's program on the simulated cluster."""
    grid = cut.plan.partition.grid
    block = [math.ceil(cut.space.side / parts) for parts in grid]
    points = math.prod(block)
    work = Work(
        grid=grid,
        length=SWEEPS,
        height=cut.plan.tile,
        compute=points * SECONDS_PER_POINT,
        bytes=tuple(points // side * ARRAY_BYTES for side in block),
    )
    link, copies = MACHINE.link("network", "*"), MACHINE.copies
    megabyte = 1e6
    call = link.send_cpu(0)
    each_byte = (link.send_cpu(megabyte) - call) / megabyte + copies.contiguous_seconds_per_byte.value
    cluster = replace(cluster_of(cut.bound, cut.plan, MACHINE, cut.ranks_a_node), eager_bytes=EAGER_BYTES)
    return by_hand.seconds(BY_HAND[name], work, (call, each_byte), cluster)


def work(out: Console, quick: bool, _: argparse.Namespace) -> Found:
    figures: dict[str, list[Row]] = {}
    with ByHand() as by_hand:
        for space in SPACES[2:3] if quick else SPACES:
            rows = figures[space.name] = rows_of(space, quick, by_hand)
            show(out, space, rows)
    normalised = {name: gains(rows) for name, rows in figures.items()}
    show_gains(out, normalised)
    return Found({"spaces": figures, "gains": normalised}, claims(normalised), pictures(figures))


def show(out: Console, space: Space, rows: Sequence[Row]) -> None:
    columns = {"processes": "processes", "computing": "computing"}
    for engine in ENGINES:
        columns |= {engine: engine, f"{engine}_at": "at"}
        if engine != "helper":
            columns[f"{engine}_smpi"] = "SMPI"
    columns |= {"STD": "STD by hand", "OVRLP": "OVRLP by hand"}
    shown = [{key: row.get(key) for key in columns} for row in rows]
    figure = 5 if space.dimensions == 2 else 6
    show_rows(
        out,
        f"{space.name} points, {SWEEPS} sweeps (P4 figure {figure}): seconds; at: grid, sweeps a tile",
        shown,
        columns,
    )


def gains(rows: Sequence[Row]) -> Row:
    """Figure 7: as many computing threads for all, so that ASYM has twice the threads; how much less than STD by hand."""
    found: Row = {}
    for row in rows:
        if "slower" in row:
            std = row["STD"]
            found[str(row["processes"])] = {
                "OVRLP": 1 - row["OVRLP"] / std,
                "overlap": 1 - row["overlap_smpi"] / std,
                **{f"ASYM {share:.0%}": 1 - seconds / std for share, seconds in row["slower"].items()},
            }
    return found


def show_gains(out: Console, normalised: dict[str, Row]) -> None:
    rows = [
        {"space": name, "processes": int(count), **{key: f"{value:.1%}" for key, value in gain.items()}}
        for name, by_count in normalised.items()
        for count, gain in by_count.items()
    ]
    columns = {"space": "space", "processes": "processes", "OVRLP": "OVRLP by hand", "overlap": "Lapwing overlap"}
    columns |= {f"ASYM {share:.0%}": f"ASYM, {share:.0%} slower" for share in SLOWER}
    show_rows(out, "Less time than STD by hand (P4 figure 7c, 7d); ASYM with computing so much slower", rows, columns)


def claims(normalised: dict[str, Row]) -> list[Claim]:
    found = [
        asymmetric("7d", 3, "8", "3-D, 16 threads ASYM, 8 STD: 19 % less on average, 23 % at 128x128x128", normalised),
        asymmetric(
            "7c", 3, "16", "3-D, 32 threads ASYM, 16 STD: 13 % less on average, 20 % at 192x192x192", normalised
        ),
        asymmetric("5", 2, "16", "2-D, 32 threads ASYM, 16 STD: within 3 % on average, 5 % at 1024x1024", normalised),
    ]
    gains_of_overlap = [gain["OVRLP"] for by_count in normalised.values() for gain in by_count.values()]
    least, most = min(gains_of_overlap), max(gains_of_overlap)
    found.append(
        Claim(
            "P4 5, 6",
            "OVRLP and STD behave alike",
            f"OVRLP takes {least:+.1%} to {most:+.1%} less",
            yes(max(abs(least), abs(most)) < ALIKE),
        )
    )
    return found


def asymmetric(figure: str, dimensions: int, count: str, paper: str, normalised: dict[str, Row]) -> Claim:
    """ASYM's gain is a bound: it says nothing about what sharing a core costs."""
    found = {
        name: by_count[count]
        for name, by_count in normalised.items()
        if name.count("x") + 1 == dimensions and count in by_count
    }
    here = "; ".join(
        f"{name}: {gain['ASYM 0%']:.0%}, {gain['ASYM 10%']:.0%} at 10 % slower" for name, gain in found.items()
    )
    return Claim(f"P4 {figure}", paper, here or "not run", "as a bound")


def pictures(figures: dict[str, list[Row]]) -> list[Picture]:
    made = []
    for dimensions, number in ((2, 5), (3, 6)):
        panels = [(name, lines_of(rows)) for name, rows in figures.items() if name.count("x") + 1 == dimensions]
        if panels:
            made.append(Picture(f"p4-figure-{number}", "processes", "seconds", panels, log_y=True))
    return made


def lines_of(rows: Sequence[Row]) -> list[Series]:
    def line(key: str, name: str, dashed: bool = False) -> Series:
        there = [row for row in rows if key in row]
        return Series(name, [row["processes"] for row in there], [row[key] for row in there], dashed)

    return [
        line("STD", "STD by hand"),
        line("OVRLP", "OVRLP by hand"),
        line("blocking", "Lapwing, blocking"),
        line("overlap", "Lapwing, overlap"),
        line("helper", "ASYM: Lapwing, helper"),
        line("computing", "computing", dashed=True),
    ]


if __name__ == "__main__":
    sys.exit(main(__doc__, work))
