"""P0's figures 5 to 7 again: both schedules over tile heights, on a simulated cluster of 16 nodes on FastEthernet.

    python bench/papers/p0.py [--quick] [--json PATH] [--pictures DIR]

The loop is examples/sqrt3d.py on 4x4 ranks, in SimGrid's SMPI, which must be installed (Debian: libsimgrid-dev). Every
iteration costs t_c, every message CPU time at its sender and at its receiver, and its way latency + bytes / bandwidth.
Four answers to each tile height, in seconds of the cluster's time:

- Lapwing's own runtime (the exported program), engines blocking and overlap;
- the paper's ProcB and ProcNB written out (by_hand.c), so that the gain is not that over a slow blocking engine, and ProcB
  with MPI_Send instead of MPI_Ssend: where the library buffers the message, and where it waits for its receiver;
- P0's eq. 3 and eq. 4;
- the exact timeline of the same costs.

P0's figures 12 to 15, on SCI, are P1's: p1.py.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import _paths  # noqa: F401
import numpy as np
from _by_hand import ByHand, Work
from _figures import Claim, Found, Picture, Row, Series, best, main, show_rows, yes
from _report import say
from rich.console import Console
from sqrt3d import sqrt3d

from lapwing.export.smpi import Cluster, build, line, simulate
from lapwing.export.stand_alone import sources
from lapwing.export.tables import program_bytes
from lapwing.planner.choose import Wishes, make_plan
from lapwing.schedule.pipeline import Channel, Engine, Pipeline
from lapwing.schedule.timeline import completion_seconds
from lapwing.theory.completion import MessageCost, blocking_steps, blocking_time, overlapped_steps

GRID = (4, 4)
RANKS = 16
ENGINES: tuple[Engine, ...] = ("blocking", "overlap")
FLOAT_BYTES = 4
SECONDS_PER_POINT = 0.441e-6
# P0 prints none of these but the network's 100 Mbit/s: its times ask for them (lapwing/schedule/completion.py).
COSTS = MessageCost(startup=60e-6, startup_per_byte=10e-9, latency=60e-6, transmit_per_byte=1 / 12.5e6)
CLUSTER = Cluster(
    name="P0's FastEthernet",
    hosts=RANKS,
    latency=COSTS.latency,
    bytes_per_second=1 / COSTS.transmit_per_byte,
    send_cpu=line(COSTS.startup, COSTS.startup_per_byte),
    receive_cpu=line(COSTS.startup, COSTS.startup_per_byte),
    seconds_per_point=SECONDS_PER_POINT,
)
EAGER_BYTES = 128_000  # MPICH 1.2 over TCP sends shorter messages unasked, if they are not sent synchronously
HEIGHTS = (16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096)
QUICK_HEIGHTS = (64, 256, 512)
CLOSE = 0.10  # eq. 4 and the run, up to the best height


@dataclass(frozen=True)
class Space:
    """One of the paper's iteration spaces; k is the mapping dimension. ``goal`` is the reduction its runs have to reach."""

    figure: int
    extents: tuple[int, int, int]
    goal: float

    @property
    def name(self) -> str:
        return "x".join(map(str, self.extents))

    @property
    def side(self) -> int:
        """Of a tile's square cross-section."""
        return self.extents[0] // GRID[0]


SPACES = (
    Space(5, (16, 16, 16384), 0.30),
    Space(6, (16, 16, 32768), 0.30),
    Space(7, (32, 32, 4096), 0.20),
)


def row_of(space: Space, height: int, by_hand: ByHand) -> Row:
    """All answers for one tile height."""
    side, length = space.side, space.extents[2]
    work = Work(GRID, length, height, side * side * SECONDS_PER_POINT, (side * FLOAT_BYTES,) * 2)
    costs = (COSTS.startup, COSTS.startup_per_byte)
    return {
        "z": height,
        **{engine: lapwing_seconds(space, height, engine) for engine in ENGINES},
        "ProcB": by_hand.seconds("blocking", work, costs, CLUSTER),
        "ProcNB": by_hand.seconds("overlap", work, costs, CLUSTER),
        "standard": by_hand.seconds("standard", work, costs, replace(CLUSTER, eager_bytes=EAGER_BYTES)),
        "standard_waiting": by_hand.seconds("standard", work, costs, CLUSTER),
        "eq3": equation_3(space, height),
        "eq3_both": equation_3_both(space, height),
        "eq4": equation_4(space, height),
        **{f"timeline_{engine}": completion_seconds(pipeline(space, height, engine)) for engine in ENGINES},
    }


def lapwing_seconds(space: Space, height: int, engine: Engine) -> float:
    # No element is read: memory that is never touched.
    bound = sqrt3d.bind({"a": np.zeros([extent + 1 for extent in space.extents], np.float32)})
    plan = make_plan(bound, sqrt3d.dependences, RANKS, Wishes(engine, height, GRID))
    return simulate(build(sources(bound, plan), say), program_bytes(bound, plan), RANKS, engine, CLUSTER)


def _last_tile(space: Space, height: int) -> tuple[float, float, float]:
    return (GRID[0] - 1, GRID[1] - 1, space.extents[2] / height - 1)


def equation_3(space: Space, height: int) -> float:
    size = space.side * height * FLOAT_BYTES
    compute = space.side**2 * height * SECONDS_PER_POINT
    return blocking_time(blocking_steps(_last_tile(space, height)), compute, COSTS.blocking_step(2, size))


def equation_3_both(space: Space, height: int) -> float:
    """Eq. 3 with a transmission for what comes and one for what goes, as P0's section 3 counts them.

    A synchronous send keeps its sender and its receiver waiting, so a rank with two neighbours on either side waits for four
    transmissions a step: blocking_step() has two.
    """
    size = space.side * height * FLOAT_BYTES
    compute = space.side**2 * height * SECONDS_PER_POINT
    communicate = COSTS.blocking_step(2, size) + 2 * (COSTS.latency + size * COSTS.transmit_per_byte)
    return blocking_time(blocking_steps(_last_tile(space, height)), compute, communicate)


def equation_4(space: Space, height: int) -> float:
    size = space.side * height * FLOAT_BYTES
    compute = space.side**2 * height * SECONDS_PER_POINT
    return overlapped_steps(_last_tile(space, height), 2) * COSTS.overlapped_step(2, size, compute)


def pipeline(space: Space, height: int, engine: Engine) -> Pipeline:
    """What Lapwing's runtime does on this cluster, for the exact timeline."""
    length = space.extents[2]
    heights = np.full(-(-length // height), height)
    heights[-1] = length - height * (len(heights) - 1)
    size = space.side * height * FLOAT_BYTES
    costs = {
        "send": COSTS.cpu(size),
        "receive": COSTS.cpu(size),
        "wire": size * COSTS.transmit_per_byte,
        "latency": COSTS.latency,
    }
    return Pipeline(
        grid=GRID,
        steps=len(heights),
        sweeps=1,
        compute=heights * (space.side**2 * SECONDS_PER_POINT),
        channels=(Channel((1, 0), **costs), Channel((0, 1), **costs)),
        engine=engine,
    )


def summary(space: Space, rows: Sequence[Row]) -> Row:
    """The best of both schedules, and how far eq. 4 is from the simulated run up to its best height."""
    found = {key: best(rows, key) for key in (*ENGINES, "ProcB", "ProcNB", "standard", "standard_waiting")}
    up_to = [row for row in rows if row["z"] <= found["overlap"]["z"]]
    return {
        "space": space.name,
        "figure": space.figure,
        **{key: {"seconds": row[key], "z": row["z"]} for key, row in found.items()},
        "reduction": 1 - found["overlap"]["overlap"] / found["blocking"]["blocking"],
        "reduction_by_hand": 1 - found["ProcNB"]["ProcNB"] / found["ProcB"]["ProcB"],
        "goal": space.goal,
        "eq4_error": max(abs(row["eq4"] / row["overlap"] - 1) for row in up_to),
        "eq3_both_error_at_best": found["blocking"]["eq3_both"] / found["blocking"]["blocking"] - 1,
        "eq4_error_at_best": found["overlap"]["eq4"] / found["overlap"]["overlap"] - 1,
    }


def work(out: Console, quick: bool, _: argparse.Namespace) -> Found:
    spaces: list[Row] = []
    with ByHand() as by_hand:
        for space in SPACES[:1] if quick else SPACES:
            heights = [z for z in (QUICK_HEIGHTS if quick else HEIGHTS) if z <= space.extents[2] // 4]
            rows = [row_of(space, height, by_hand) for height in heights]
            show(out, space, rows)
            spaces.append({**summary(space, rows), "rows": rows})
    found = [claim for one in spaces for claim in claims(one)]
    return Found({"cluster": asdict(CLUSTER), "spaces": spaces}, found, [picture(spaces)])


SIMULATED = {
    "z": "z",
    "blocking": "blocking",
    "overlap": "overlap",
    "less": "less",
    "ProcB": "ProcB",
    "ProcNB": "ProcNB",
    "less_by_hand": "less",
    "standard": "MPI_Send, buffered",
    "standard_waiting": "MPI_Send, not",
}
CALCULATED = {
    "z": "z",
    "eq3": "eq. 3",
    "eq3_both": "eq. 3, both ways",
    "eq4": "eq. 4",
    "timeline_blocking": "timeline, blocking",
    "timeline_overlap": "timeline, overlap",
}


def show(out: Console, space: Space, rows: Sequence[Row]) -> None:
    title = f"{space.name} points on 4x4 ranks (P0 figure {space.figure}): simulated seconds"
    shown = [
        row
        | {
            "less": f"{1 - row['overlap'] / row['blocking']:.1%}",
            "less_by_hand": f"{1 - row['ProcNB'] / row['ProcB']:.1%}",
        }
        for row in rows
    ]
    show_rows(out, title, shown, SIMULATED)
    show_rows(out, f"{space.name}: seconds by equations and the exact timeline", rows, CALCULATED)


def claims(one: Row) -> list[Claim]:
    figure = f"P0 {one['figure']}"
    faster = min(one["reduction"], one["reduction_by_hand"])
    return [
        Claim(
            figure,
            f"{one['space']}: nonblocking much faster",
            f"{_at(one, 'overlap')} against {_at(one, 'blocking')}: {one['reduction']:.1%} less; by hand "
            f"{_at(one, 'ProcNB')} against {_at(one, 'ProcB')}: {one['reduction_by_hand']:.1%}",
            yes(faster >= one["goal"]),
        ),
        Claim(
            figure,
            "MPI_Ssend stands for the absence of overlap",
            f"with MPI_Send: buffered {_at(one, 'standard')}, else {_at(one, 'standard_waiting')}",
            "the gain is over Ssend",
        ),
        Claim(
            figure,
            "eq. 4 gives the time",
            f"{one['eq4_error']:.1%} off at most up to the best height, {one['eq4_error_at_best']:+.1%} there",
            yes(one["eq4_error"] <= CLOSE),
        ),
    ]


def _at(one: Row, key: str) -> str:
    return f"{one[key]['seconds']:.3f} s at z = {one[key]['z']}"


def picture(spaces: Sequence[Row]) -> Picture:
    names = {
        "blocking": "Lapwing, blocking",
        "overlap": "Lapwing, overlap",
        "ProcB": "ProcB by hand",
        "ProcNB": "ProcNB by hand",
    }
    equations = {"eq3_both": "eq. 3, both ways", "eq4": "eq. 4"}
    panels = []
    for one in spaces:
        z = [row["z"] for row in one["rows"]]
        lines = [Series(name, z, [row[key] for row in one["rows"]]) for key, name in names.items()]
        lines += [Series(name, z, [row[key] for row in one["rows"]], dashed=True) for key, name in equations.items()]
        panels.append((one["space"], lines))
    return Picture("p0-figures-5-7", "tile height z", "seconds", panels)


if __name__ == "__main__":
    sys.exit(main(__doc__, work))
