"""One core: nanoseconds a point of Lapwing's tile, of the plain loop in C, of numba, and of libraries, on the same arrays.

    python bench/core/kernels.py [--nest NAME]... [--rounds R] [--quick] [--json PATH]

bench/README.md says how to read the table.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import _paths  # noqa: F401
import numpy as np
from _contenders import TILE, WHOLE_CALL, Call, Contender, clang_name, contenders, has_clang, has_numba, usual_gcc
from _libraries import Library, libraries
from _nests import KERNELS
from _report import compiler_name, console, machine, say, show_machine, spread, summary, table, write_json
from rich.console import Console

import lapwing as lw
from lapwing.api.check import Reference, differences, make_reference
from lapwing.calibrate.core.kept import core_here
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.roofline.bounds import Limit, limit_of
from lapwing.tiling.inner import InnerForm, sweeps_to_join
from lapwing.tiling.skewing import skewed_nest

ROUNDS, QUICK_ROUNDS = 7, 2
COPIED_BYTES = 1 << 29  # an array that caches do not hold; what copying it takes is the bandwidth that bounds are of
SETTLED_SECONDS = 1.5
WARMING_SECONDS = 0.02  # of calls before those that are timed, where arrays stay in a cache
RESIDENT, STREAMING = "L2-resident", "beyond the cache"


@dataclass(frozen=True)
class Case:
    """A nest with a size. ``calls`` are timed back to back in each turn."""

    problem: str
    size: str
    shape: tuple[int, ...]
    sweeps: int = 1

    @property
    def calls(self) -> int:
        return 9 if self.size == RESIDENT else 1


_SWEPT = {
    "gauss_seidel": ((130, 386), (3002, 3002)),
    "nine_points": ((130, 386), (3002, 3002)),
    "sor3d": ((34, 66, 66), (162, 162, 162)),
    "twenty_seven_points": ((34, 66, 66), (162, 162, 162)),
    "advection3d": ((34, 66, 66), (162, 162, 162)),
}
_ONCE = {
    "sqrt3d": ((9, 33, 385), (65, 65, 4097)),
    "smith_waterman": ((301, 401), (4501, 4501)),
    "affine_gaps": ((181, 241), (3001, 3001)),
    "common_subsequence": ((301, 401), (4501, 4501)),
    "time_warping": ((201, 251), (3001, 3001)),
    "eikonal": ((201, 251), (3001, 3001)),
}
SWEEPS, QUICK_SWEEPS = 8, 2
_QUICK = {2: ((18, 66), (66, 66)), 3: ((5, 9, 65), (9, 9, 129))}


def cases(quick: bool, many: int = SWEEPS) -> list[Case]:
    found = []
    for name in KERNELS:
        shapes = _SWEPT.get(name) or _ONCE[name]
        sweeps = 1 if name in _ONCE else QUICK_SWEEPS if quick else many
        for size, shape in zip((RESIDENT, STREAMING), _QUICK[len(shapes[0])] if quick else shapes, strict=True):
            found.append(Case(name, size, shape, sweeps))
    return found


# Nanoseconds a point of Pluto's tiled code and of the same gcc on the plain loop, both measured on another machine, an
# AVX-512 Xeon with gcc 12.2, on tiles that fit the L2 cache. Only their ratio can be compared with figures from here.
PLUTO = "Pluto + gcc (another machine)"
PLUTO_AND_GCC = {"sqrt3d": (3.2, 5.3), "gauss_seidel": (1.24, 2.83), "sor3d": (3.3, 4.4)}


def main() -> None:
    options = parse_options()
    document: dict[str, Any] = {"benchmark": "kernels", "machine": machine(), "quick": options.quick, "cases": []}
    document["copy_bytes_a_second"] = copy_bandwidth(1 << 20 if options.quick else COPIED_BYTES)
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    for case in cases(options.quick, options.sweeps):
        if case.problem in (options.nest or KERNELS):
            say(f"kernels: {case.problem}, {case.size}")
            document["cases"].append(measure(case, rounds, document["copy_bytes_a_second"], options.quick))
            write_json(options.json, document)
    show(document)
    write_json(options.json, document)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Nanoseconds a point on one core, against plain C and numba.")
    parser.add_argument("--nest", action="append", choices=list(KERNELS), help="only this nest; can be repeated")
    parser.add_argument("--rounds", type=int, help=f"timed rounds, in which all take turns (default {ROUNDS})")
    parser.add_argument("--sweeps", type=int, default=SWEEPS, help="of kernels that have some (default %(default)s)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that it works, not how fast")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write every figure there")
    options = parser.parse_args()
    if options.rounds is not None and options.rounds < 1:
        parser.error("--rounds: expected at least 1")
    if options.sweeps < 1:
        parser.error("--sweeps: expected at least 1")
    return options


# -- measuring -------------------------------------------------------------------------------------------------------


def copy_bandwidth(size: int) -> float:
    """Bytes read and written a second, by the best of some copies between arrays that no cache holds."""
    source, target = np.ones(size // 8), np.zeros(size // 8)
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        np.copyto(target, source)
        seconds.append(time.perf_counter() - start)
    return 2 * size / min(seconds)


def measure(case: Case, rounds: int, bandwidth: float, quick: bool) -> dict[str, Any]:
    """All figures of one case, as they go into the JSON document.

    Exits with a message where a contender that promises the bits of the Python loop does not give them.
    """
    problem = KERNELS[case.problem]
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
    others, notes = libraries(case.problem, arguments)
    for library in others:
        library.call()
        entrants.append(library_contender(library, arguments))
        identical[library.name] = False
    points = bound.domain.box_volume
    if not quick:
        settle(entrants[1])
    times = take_turns(entrants, rounds, case.calls)
    limits = limits_of(problem.nest, bound, arguments)
    written = sum(arguments[name].nbytes for name in bound.nest.written)
    moved = sum(arguments[a.name].nbytes for a in bound.arrays) + written
    names = {library.name: library.note for library in others}
    return {
        "nest": case.problem,
        "size": case.size,
        "shape": list(case.shape),
        "sweeps": case.sweeps,
        "points": points,
        "bytes": sum(arguments[a.name].nbytes for a in bound.arrays),
        "rounds": rounds,
        # Every sweep that goes through memory reads all arrays and writes some of them back.
        "memory_ns": 1e9 * moved / bandwidth / (points / case.sweeps),
        "notes": notes,
        "figures": [
            {**figure(name, times, points, same, limits.get(name)), "note": names.get(name)}
            for name, same in identical.items()
        ]
        + quoted(case),
    }


def library_contender(library: Library, arguments: dict[str, Any]) -> Contender:
    return Contender(arguments, lambda: Call({library.name: library.call()}, {}), exact=False)


def settle(lapwing: Contender) -> None:
    """Until inner forms have been compared, which takes calls of half a second in all."""
    begin = time.perf_counter()
    while time.perf_counter() - begin < SETTLED_SECONDS:
        lapwing.call()


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
    """The median of calls made back to back, after some that bring arrays and code back into the caches and the core to its
    clock for such code."""
    begin = time.perf_counter()
    while calls > 1 and time.perf_counter() - begin < WARMING_SECONDS:
        entrant.call()
    made = [entrant.call().seconds for _ in range(calls)]
    return {name: statistics.median(seconds[name] for seconds in made) for name in made[0]}


def limits_of(nest: lw.Nest, bound: BoundNest, arguments: dict[str, Any]) -> dict[str, Limit]:
    """What the core takes at least, by figure: in the inner form of the tile, and in the plain order of the compilers' loops."""
    plan = nest.planned(bound, 1, 1, 1, arguments).plan
    tiled, form, core = skewed_nest(bound, plan.skew), plan.inner.form, core_here(say)
    extents = plan.partition.widest
    own = limit_of(tiled, form, core, extents, min(form.sweeps, sweeps_to_join(tiled)))
    in_order = tuple(range(len(extents)))
    chained = any(d.vector[-1] and not any(d.vector[:-1]) for d in bound.analysis.dependences)
    plain = limit_of(bound, InnerForm(in_order, 1, independent=not chained), core, extents)
    loops = {name: plain for name in (f"{compiler_name()}, Lapwing's flags", usual_gcc(), clang_name(), "numba")}
    return {TILE: own, WHOLE_CALL: own, **loops}


def figure(
    name: str, times: dict[str, list[float]], points: int, identical: bool, limit: Limit | None
) -> dict[str, Any]:
    """Ratios are taken within each round: how much longer this took than Lapwing's tile, and gcc than this."""
    own, tile, gcc = times[name], times[TILE], times[usual_gcc()]
    return {
        "name": name,
        "identical": identical,
        "seconds": own,
        "ns": summary([1e9 * s / points for s in own]),
        "over_tile": summary([s / t for s, t in zip(own, tile, strict=True)]),
        "gcc_over": summary([g / s for s, g in zip(own, gcc, strict=True)]),
        "limit": None if limit is None else replace(limit, measured=statistics.median(own) / points).to_json(),
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
    if not has_clang():
        out.print("clang is not installed and was left out")
    out.print(f"gcc / this: {usual_gcc()} on the plain loop took so many times this line's time.")
    out.print(
        "this / tile: this line took so many times the time of Lapwing's tile. bits: those of the Python function?"
    )
    out.print(
        "core's bound: what a core's units take at least for a point in that order, and how much of that speed is reached."
    )
    out.print("Medians and ranges over the rounds; ratios are of times in the same round.")


def show_case(out: Console, case: dict[str, Any], cache_bytes: int | None) -> None:
    shape = " × ".join(map(str, case["shape"]))
    sweeps = f", {case['sweeps']} sweeps" if case["sweeps"] > 1 else ""
    title = KERNELS[case["nest"]].title
    out.print(f"\n{title}, {case['size']}: {shape}{sweeps}, {case['bytes'] / 2**20:.1f} MiB", style="bold")
    if case["size"] == STREAMING and cache_bytes and case["bytes"] < cache_bytes:
        out.print(f"(the last cache of this machine, {cache_bytes / 2**20:g} MiB, holds these arrays)")
    columns = ("ns a point", "gcc / this", "this / tile")
    rows = table("", *columns, "core's bound", "bits", numbers=columns)
    for f in case["figures"]:
        if f["quoted"]:
            ns, gain = (f[name]["median"] for name in ("ns", "gcc_over"))
            rows.add_row(f["name"], f"{ns:.2f}", f"{gain:.2f} on that machine", "–", "–", "–")
        else:
            bits = f["note"] or ("same" if f["identical"] else "differ")
            ratios = spread(f["gcc_over"]), spread(f["over_tile"])
            rows.add_row(f["name"], spread(f["ns"]), *ratios, limit_text(f["limit"]), bits)
    out.print(rows)
    if case["size"] == STREAMING:
        out.print(
            f"bound: {case['memory_ns']:.2f} ns a point, where every sweep goes through memory at the speed of a copy"
        )
    for note in case["notes"]:
        out.print(note, markup=False)


def limit_text(limit: dict[str, Any] | None) -> str:
    if limit is None:
        return "–"
    return f"{1e9 * limit['seconds_per_point']:.2f} {limit['by']}, {limit['reached']:.0%} reached"


if __name__ == "__main__":
    main()
