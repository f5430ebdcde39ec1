"""One core: nanoseconds a point of Lapwing's tile, of the plain loop in C, and of numba, on the same arrays.

    python bench/core.py [--nest NAME]... [--rounds R] [--quick] [--json PATH]

README.md beside this file says how to read the table.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _contenders import TILE, Call, Contender, contenders, has_numba, usual_gcc
from _nests import PROBLEMS
from _report import console, machine, say, show_machine, spread, summary, table, write_json
from rich.console import Console

from lapwing.api.check import Reference, differences, make_reference
from lapwing.loopnest.binding.bound_nest import BoundNest

ROUNDS, QUICK_ROUNDS = 9, 2
RESIDENT, STREAMING = "L2-resident", "beyond the cache"


@dataclass(frozen=True)
class Case:
    """A nest with a size. ``calls`` are timed back to back in each turn, after one that warms the cache."""

    problem: str
    size: str
    shape: tuple[int, ...]
    sweeps: int = 1

    @property
    def calls(self) -> int:
        return 9 if self.size == RESIDENT else 1


CASES = (
    Case("sqrt3d", RESIDENT, (9, 33, 385)),
    Case("sqrt3d", STREAMING, (65, 65, 4097)),
    Case("gauss_seidel", RESIDENT, (130, 386), 10),
    Case("gauss_seidel", STREAMING, (3002, 3002), 2),
    Case("sor3d", RESIDENT, (26, 26, 42), 10),
    Case("sor3d", STREAMING, (162, 162, 162), 2),
    Case("smith_waterman", RESIDENT, (301, 401)),
    Case("smith_waterman", STREAMING, (4501, 4501)),
)
QUICK_CASES = (
    Case("sqrt3d", RESIDENT, (5, 9, 65)),
    Case("sqrt3d", STREAMING, (9, 9, 129)),
    Case("gauss_seidel", RESIDENT, (18, 66), 2),
    Case("gauss_seidel", STREAMING, (66, 66), 2),
    Case("sor3d", RESIDENT, (10, 10, 18), 2),
    Case("sor3d", STREAMING, (18, 18, 18), 2),
    Case("smith_waterman", RESIDENT, (41, 41)),
    Case("smith_waterman", STREAMING, (101, 101)),
)

# Nanoseconds a point of Pluto's tiled code and of the same gcc on the plain loop, both measured on another machine, an
# AVX-512 Xeon with gcc 12.2, on tiles that fit the L2 cache. Only their ratio can be compared with figures from here.
PLUTO = "Pluto + gcc (another machine)"
PLUTO_AND_GCC = {"sqrt3d": (3.2, 5.3), "gauss_seidel": (1.24, 2.83), "sor3d": (3.3, 4.4)}


def main() -> None:
    options = parse_options()
    cases = [c for c in (QUICK_CASES if options.quick else CASES) if c.problem in (options.nest or PROBLEMS)]
    document: dict[str, Any] = {"benchmark": "core", "machine": machine(), "quick": options.quick, "cases": []}
    for case in cases:
        say(f"core: {case.problem}, {case.size}")
        document["cases"].append(measure(case, options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)))
    show(document)
    write_json(options.json, document)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Nanoseconds a point on one core, against plain C and numba.")
    parser.add_argument("--nest", action="append", choices=list(PROBLEMS), help="only this nest; can be repeated")
    parser.add_argument("--rounds", type=int, help=f"timed rounds, in which all take turns (default {ROUNDS})")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that it works, not how fast")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write every figure there")
    options = parser.parse_args()
    if options.rounds is not None and options.rounds < 1:
        parser.error("--rounds: expected at least 1")
    return options


# -- measuring -------------------------------------------------------------------------------------------------------


def measure(case: Case, rounds: int) -> dict[str, Any]:
    """All figures of one case, as they go into the JSON document.

    Exits with a message where a contender that promises the bits of the Python loop does not give them.
    """
    problem = PROBLEMS[case.problem]
    arguments = problem.arguments(case.shape, case.sweeps)
    bound = problem.nest.bind(arguments)
    reference = make_reference(problem.nest.source, bound, arguments, say)
    entrants = contenders(problem.nest, bound, arguments, say)
    identical: dict[str, bool] = {}
    for entrant in entrants:  # the first run of each, which also builds, is the one that is compared
        call = entrant.call()
        wrong = check(entrant, call, reference, bound)
        if wrong and entrant.exact:
            raise SystemExit(f"{case.problem}: {next(iter(call.seconds))} differs from Python: {'; '.join(wrong)}")
        identical |= dict.fromkeys(call.seconds, not wrong)
    points = bound.domain.box_volume
    times = take_turns(entrants, rounds, case.calls)
    return {
        "nest": case.problem,
        "size": case.size,
        "shape": list(case.shape),
        "sweeps": case.sweeps,
        "points": points,
        "bytes": sum(arguments[a.name].nbytes for a in bound.arrays),
        "rounds": rounds,
        "figures": [figure(name, times, points, same) for name, same in identical.items()] + quoted(case),
    }


def check(entrant: Contender, call: Call, reference: Reference, bound: BoundNest) -> list[str]:
    arrays = {name: entrant.arguments[name] for name in bound.nest.written}
    return differences(reference, arrays, call.results)


def take_turns(entrants: Sequence[Contender], rounds: int, calls: int) -> dict[str, list[float]]:
    """Seconds by figure, one a round. All take turns in every round, so that what slows the machine slows all."""
    times: dict[str, list[float]] = {}
    for number in range(-1, rounds):
        start = number % len(entrants)
        for entrant in (*entrants[start:], *entrants[:start]):
            for name, seconds in turn(entrant, calls).items():
                times.setdefault(name, [])
                if number >= 0:  # the first round warms up
                    times[name].append(seconds)
    return times


def turn(entrant: Contender, calls: int) -> dict[str, float]:
    """The median of calls made back to back, after one that brings the arrays back into the cache."""
    if calls > 1:
        entrant.call()
    made = [entrant.call().seconds for _ in range(calls)]
    return {name: statistics.median(seconds[name] for seconds in made) for name in made[0]}


def figure(name: str, times: dict[str, list[float]], points: int, identical: bool) -> dict[str, Any]:
    """Ratios are taken within each round: how much longer this took than Lapwing's tile, and gcc than this."""
    own, tile, gcc = times[name], times[TILE], times[usual_gcc()]
    return {
        "name": name,
        "identical": identical,
        "seconds": own,
        "ns": summary([1e9 * s / points for s in own]),
        "over_tile": summary([s / t for s, t in zip(own, tile, strict=True)]),
        "gcc_over": summary([g / s for s, g in zip(own, gcc, strict=True)]),
        "quoted": False,
    }


def quoted(case: Case) -> list[dict[str, Any]]:
    if case.size != RESIDENT or case.problem not in PLUTO_AND_GCC:
        return []
    pluto, gcc = PLUTO_AND_GCC[case.problem]
    return [{"name": PLUTO, "ns": summary([pluto]), "gcc_over": summary([gcc / pluto]), "quoted": True}]


# -- showing ---------------------------------------------------------------------------------------------------------


def show(document: dict[str, Any]) -> None:
    out = console()
    show_machine(out, document["machine"])
    if document["quick"]:
        out.print("Quick: sizes too small to say anything about speed.")
    for case in document["cases"]:
        show_case(out, case, document["machine"]["l3_bytes"])
    if not has_numba():
        out.print('numba is not installed and was left out: pip install "lapwing[bench]"', markup=False)
    out.print(f"gcc / this: {usual_gcc()} on the plain loop took so many times this line's time.")
    out.print(
        "this / tile: this line took so many times the time of Lapwing's tile. bits: those of the Python function?"
    )
    out.print("Medians and ranges over the rounds; ratios are of times in the same round.")


def show_case(out: Console, case: dict[str, Any], cache_bytes: int | None) -> None:
    shape = " × ".join(map(str, case["shape"]))
    sweeps = f", {case['sweeps']} sweeps" if case["sweeps"] > 1 else ""
    title = PROBLEMS[case["nest"]].title
    out.print(f"\n{title}, {case['size']}: {shape}{sweeps}, {case['bytes'] / 2**20:.1f} MiB", style="bold")
    if case["size"] == STREAMING and cache_bytes and case["bytes"] < cache_bytes:
        out.print(f"(the last cache of this machine, {cache_bytes / 2**20:g} MiB, holds these arrays)")
    columns = ("ns a point", "gcc / this", "this / tile")
    rows = table("", *columns, "bits", numbers=columns)
    for f in case["figures"]:
        if f["quoted"]:
            ns, gain = (f[name]["median"] for name in ("ns", "gcc_over"))
            rows.add_row(f["name"], f"{ns:.2f}", f"{gain:.2f} on that machine", "–", "–")
        else:
            bits = "same" if f["identical"] else "differ"
            rows.add_row(f["name"], spread(f["ns"]), spread(f["gcc_over"]), spread(f["over_tile"]), bits)
    out.print(rows)


if __name__ == "__main__":
    main()
