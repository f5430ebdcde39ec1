"""Does communication hide behind computation? Two ranks, all engines, a pipeline written by hand, and the physical limits.

    python bench/overlap/overlap.py [--part lab|node|helper|cost]... [--setting NAME[=WIDTHxTILE]]... [--repeat N] [--quick]
                                    [--json PATH]

    lab     sqrt3d and advection on two hosts of the lab, one rank each: at sizes where computing takes as long as
            transferring, and with messages of 2 MiB. Needs root, and the lab: make lab-up HOSTS=2 RATE=200mbit
    node    both ranks on this machine, tiny steps: stores into the neighbour's memory (onesided) against messages
    helper  a helper thread against polling, on this machine and, if it is up, in the lab
    cost    what polling, the trace, and splitting messages cost or gain; in the lab, if it is up

Without --part all that can run here is run. Both ranks need a core each; anything else that runs makes noise.
All contenders of a table take turns in every round, in one process a rank, after a round in which their results are
compared bit by bit.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import _paths  # noqa: F401
from _overlap_settings import QUICK_SETTINGS, SETTINGS, Setting, find
from _overlap_start import RANKS, Place, Race
from _overlap_tables import (
    explain_lab,
    show_helper,
    show_lab,
    show_node,
    show_polls,
    show_search,
    show_splits,
    show_traces,
)
from _pipelines import COMPUTE, ENGINES, LIMITS, PEER, PEER_BLOCKING, WIRE, Case, Contender, engine
from _report import console, machine, say, show_machine, write_json
from rich.console import Console

from lapwing.errors import LapwingError
from lapwing.launch.lab import Lab, find_lab

PARTS = ("lab", "node", "helper", "cost")
REPEAT, QUICK_REPEAT, QUICK_STEPS = 5, 2, 6
COST_STEPS = 24
NODE_SIDES, NODE_TILES, NODE_STEPS = (4, 8, 16), (4, 8, 16, 32, 64), 2000
SLICES = (25e-6, 50e-6, 75e-6, 100e-6)  # seconds
NO_POLLS = 1.0  # a slice longer than any step
SPLITS = (0, 16 << 10, 64 << 10, 256 << 10)  # bytes
EVENTS = 1_000_000  # room for all of a run

Document = dict[str, Any]


@dataclass(frozen=True)
class Options:
    """What to measure. ``given`` are widths and tile heights that are not to be searched for, by setting."""

    parts: tuple[str, ...]
    settings: tuple[Setting, ...]
    given: dict[str, tuple[int, int]]
    repeat: int
    quick: bool
    json: Path | None
    lab: Lab | None

    def steps(self, setting: Setting) -> int:
        return QUICK_STEPS if self.quick else setting.steps

    @property
    def widest_place(self) -> Place:
        """The lab, if it is up."""
        return Place(self.lab)


def main() -> None:
    options = parse_options()
    document: Document = {
        "benchmark": "overlap",
        "machine": machine(),
        "quick": options.quick,
        "repeat": options.repeat,
        "searches": {},
        "races": [],
    }
    out = console()
    show_machine(out, document["machine"])
    if options.quick:
        out.print("Quick: sizes too small to say anything about speed.")
    measure = {"lab": part_lab, "node": part_node, "helper": part_helper, "cost": part_cost}
    for part in options.parts:
        for race in measure[part](options, document, out):
            document["races"].append({"part": part, **race.to_json()})
        write_json(options.json, document)
    out.print("Medians and ranges over the rounds; ratios are of times in the same round.")


def parse_options() -> Options:
    parser = argparse.ArgumentParser(
        prog="overlap.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [setting.name for setting in SETTINGS]
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part; can be repeated")
    parser.add_argument(
        "--setting",
        action="append",
        metavar="NAME[=WIDTHxTILE]",
        help=f"of lab, helper and cost only this: {', '.join(names)}; can be repeated. With a width and a tile height, "
        "which an earlier run has printed, they are not searched for",
    )
    parser.add_argument("--repeat", type=int, help=f"timed runs of each kind (default {REPEAT})")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that it works, not how fast")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write every figure there")
    given = parser.parse_args()
    if given.repeat is not None and given.repeat < 1:
        parser.error("--repeat: expected at least 1")
    sizes: dict[str, tuple[int, int] | None] = {}
    for text in given.setting or names:
        match = re.fullmatch(r"([\w-]+)(?:=([1-9]\d*)x([1-9]\d*))?", text)
        if match is None or match[1] not in names:
            parser.error(f"--setting {text}: expected {', '.join(names)}, with or without =WIDTHxTILE")
        sizes[match[1]] = (int(match[2]), int(match[3])) if match[2] else None
    lab, why_not = the_lab()
    parts = tuple(part for part in PARTS if part in (given.part or PARTS))
    if lab is None and "lab" in parts:
        if given.part:
            parser.exit(1, f"overlap: part lab cannot run: {why_not}\n")
        say(f"overlap: part lab is left out: {why_not}")
        parts = tuple(part for part in parts if part != "lab")
    return Options(
        parts=parts,
        settings=tuple(s for s in (QUICK_SETTINGS if given.quick else SETTINGS) if s.name in sizes),
        given={name: size for name, size in sizes.items() if size is not None},
        repeat=given.repeat or (QUICK_REPEAT if given.quick else REPEAT),
        quick=given.quick,
        json=given.json,
        lab=lab,
    )


def the_lab() -> tuple[Lab | None, str]:
    """The lab, or why there is none of two hosts."""
    try:
        lab = find_lab()
    except LapwingError as error:
        return None, str(error).removeprefix("--hosts lab: ")
    if len(lab.hosts) < RANKS:
        return None, f"the lab has {len(lab.hosts)} host, and {RANKS} are needed: make lab-up HOSTS={RANKS}"
    return lab, ""


def sized(setting: Setting, place: Place, options: Options, document: Document, out: Console, steps: int) -> Case:
    """The setting at the size where compute ≈ transfer, searched for once."""
    if setting.name in options.given:
        return setting.case(*options.given[setting.name], steps)
    searches = document["searches"]
    if setting.name not in searches:
        found = find(setting, place)
        searches[setting.name] = [f.to_json() for f in found]
        show_search(out, setting, found)
    best = searches[setting.name][0]
    return setting.case(best["width"], best["tile"], steps)


# -- the parts -------------------------------------------------------------------------------------------------------


def part_lab(options: Options, document: Document, out: Console) -> list[Race]:
    races = []
    place = Place(options.lab)
    for setting in options.settings:
        case = sized(setting, place, options, document, out, options.steps(setting))
        race = place.race(case, (*map(engine, ENGINES), PEER, PEER_BLOCKING, *LIMITS), options.repeat)
        show_lab(out, setting.title, race, place.rate())
        races.append(race)
    explain_lab(out)
    return races


def part_node(options: Options, document: Document, out: Console) -> list[Race]:
    sides, tiles = ((4,), (4, 8)) if options.quick else (NODE_SIDES, NODE_TILES)
    steps = 50 if options.quick else NODE_STEPS
    engines = (replace(engine(name), events=0) for name in ("overlap", "onesided"))
    contenders = (*engines, PEER, COMPUTE, WIRE)
    races = [
        Place().race(
            Case("sqrt3d", (side + 1, side + 1, tile * steps + 1), 1, tile, (2, 1)), contenders, options.repeat
        )
        for side in sides
        for tile in tiles
    ]
    show_node(out, races)
    return races


def part_helper(options: Options, document: Document, out: Console) -> list[Race]:
    contenders = (
        engine("overlap"),
        replace(engine("helper"), name="helper, auto"),
        replace(engine("helper"), name="helper, none", helper_cpu="none"),
        *LIMITS,
    )
    races = []
    for setting in options.settings:
        case = sized(setting, options.widest_place, options, document, out, options.steps(setting))
        for place in (Place(), Place(options.lab)) if options.lab else (Place(),):
            races.append(place.race(case, contenders, options.repeat))
    show_helper(out, races)
    return races


def part_cost(options: Options, document: Document, out: Console) -> list[Race]:
    races = []
    place = options.widest_place
    for setting in options.settings:
        case = sized(setting, place, options, document, out, QUICK_STEPS if options.quick else COST_STEPS)
        polls = [Contender(slice_name(s), slice_seconds=s) for s in (*SLICES, NO_POLLS)]
        race = place.race(case, (*polls, *LIMITS), options.repeat)
        show_polls(out, setting.title, race)
        races.append(race)
        if setting.name.endswith("-large"):
            races.append(split_race(place, case, options))
            show_splits(out, setting.title, races[-1])
    races += trace_races(options)
    show_traces(out, races[-2:])
    return races


def slice_name(seconds: float) -> str:
    return "no polls" if seconds == NO_POLLS else f"{seconds * 1e6:.0f} µs"


def split_race(place: Place, case: Case, options: Options) -> Race:
    contenders = [
        replace(contender, name=f"{contender.name}, {f'{split >> 10} KiB' if split else 'whole'}", split_bytes=split)
        for contender in (engine("overlap"), PEER)
        for split in SPLITS
    ]
    return place.race(case, (*contenders, *LIMITS), options.repeat)


def trace_races(options: Options) -> list[Race]:
    """Tiny steps, and steps as long as the planner makes them, on this machine."""
    engines = [replace(engine(name), events=0) for name in ("overlap", "onesided")]
    kept = [replace(e, name=f"{e.name}, events kept", events=EVENTS) for e in engines]
    tiny = Case("sqrt3d", (9, 9, (50 if options.quick else NODE_STEPS) * 8 + 1), 1, 8, (2, 1))
    usual = Case("sqrt3d", (17, 17, 513) if options.quick else (65, 65, 8193), 1, 64, (2, 1))
    return [Place().race(case, (*engines, *kept, COMPUTE), options.repeat) for case in (tiny, usual)]


if __name__ == "__main__":
    main()
