"""One core: the programs of tests/literature as people write them, the whole call, against numba on the same function.

    python bench/core/literature.py [--family NAME]... [--program NAME]... [--rounds R] [--quick] [--json PATH]

bench/README.md says how to read the table.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import _paths  # noqa: F401
import numpy as np
from _contenders import has_numba
from _literature import CHAINED, FAMILY_OF, SIZES, Program, jitted
from _report import console, machine, say, show_machine, spread, summary, table, write_json

ROUNDS, QUICK_ROUNDS = 7, 2
# Calls until the inner forms have been measured: that happens once calls have taken half a second of the tile's time.
SETTLED_SECONDS, FEWEST_CALLS = 1.5, 3
OWN_ROUNDS = 3  # in which a program's regions are timed
TURN_SECONDS, MOST_CALLS = 0.02, 20  # a turn has so many calls that it takes about so long, and is their median
LIMIT, CHAINED_LIMIT = 1.05, 0.35  # of numba's time; the latter where a dependence is carried by the innermost loop


def main() -> None:
    options = parse_options()
    if not has_numba():
        raise SystemExit('literature: numba is not installed: pip install "lapwing[bench]"')
    document: dict[str, Any] = {"benchmark": "literature", "machine": machine(), "quick": options.quick, "programs": []}
    for number, name in enumerate(options.program, 1):
        say(f"literature: {name} ({number} of {len(options.program)})")
        document["programs"].append(measure(name, options.rounds, options.quick))
        write_json(options.json, document)
    show(document)


def parse_options() -> argparse.Namespace:
    families = sorted(set(FAMILY_OF.values()))
    parser = argparse.ArgumentParser(description="The programs of the literature on one core, against numba.")
    parser.add_argument("--family", action="append", choices=families, help="only this family; can be repeated")
    parser.add_argument("--program", action="append", choices=list(SIZES), help="only this one; can be repeated")
    parser.add_argument("--rounds", type=int, help=f"timed rounds, in which both take turns (default {ROUNDS})")
    parser.add_argument("--quick", action="store_true", help="the tests' sizes: shows that it works, not how fast")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write every figure there")
    options = parser.parse_args()
    if options.rounds is not None and options.rounds < 1:
        parser.error("--rounds: expected at least 1")
    options.rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    wanted = options.program or [n for n, family in FAMILY_OF.items() if family in (options.family or families)]
    options.program = [name for name in wanted if name in SIZES]
    return options


def measure(name: str, rounds: int, quick: bool) -> dict[str, Any]:
    """The figures of one program, as they go into the JSON document."""
    size = {} if quick else SIZES[name]
    program = Program(name, size)
    found: dict[str, Any] = {"program": name, "family": FAMILY_OF[name], "size": size}
    start = time.perf_counter()
    own = program.called(program.nest)
    found["first_seconds"] = time.perf_counter() - start
    function = jitted(program.nest.python)
    try:
        numbas = program.called(function)
    except (
        Exception
    ) as error:  # numba's own errors for what it cannot compile, and Python's for what its code then raises
        found["numba_refuses"] = _shortened(str(error))
        return found
    found["same_bits"] = _are_same(own, numbas)
    settle(program, quick)
    contenders: dict[str, Callable[..., Any]] = {"lapwing": program.nest, "numba": function}
    calls = {who: 1 if quick else _calls_a_turn(program, function) for who, function in contenders.items()}
    times: dict[str, list[float]] = {who: [] for who in contenders}
    regions = [program.own_seconds() for _ in range(1 if quick else OWN_ROUNDS)]
    for number in range(rounds):
        for who in list(contenders)[:: 1 if number % 2 else -1]:
            times[who].append(turn(program, contenders[who], calls[who]))
    by_seconds = sorted(regions, key=lambda region: region.seconds)
    found |= {
        "seconds": times,
        "ms": {who: summary([1e3 * s for s in seconds]) for who, seconds in times.items()},
        "over_numba": summary([a / b for a, b in zip(times["lapwing"], times["numba"], strict=True)]),
        "heaviest": asdict(by_seconds[len(by_seconds) // 2]),
    }
    return found


def settle(program: Program, quick: bool) -> None:
    begin, calls = time.perf_counter(), 0
    while calls < FEWEST_CALLS or (not quick and time.perf_counter() - begin < SETTLED_SECONDS):
        program.reset()
        program.nest(*program.arguments.values())
        calls += 1


def _calls_a_turn(program: Program, function: Callable[..., Any]) -> int:
    return max(1, min(MOST_CALLS, int(TURN_SECONDS / turn(program, function, 1))))


def turn(program: Program, function: Callable[..., Any], calls: int) -> float:
    """The median of calls made one after the other, each on the arrays as they were made: seconds of this thread's own, of which
    other programs take less than of those of the clock. Both contenders work in it alone."""
    seconds = []
    for _ in range(calls):
        program.reset()
        values = tuple(program.arguments.values())
        start = time.thread_time()
        function(*values)
        seconds.append(time.thread_time() - start)
    return statistics.median(seconds)


def _are_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(_are_equal(np.asarray(values), np.asarray(other[name])) for name, values in one.items())


def _are_equal(one: np.ndarray, other: np.ndarray) -> bool:
    return np.array_equal(one, other, equal_nan=one.dtype.kind in "fc" and other.dtype.kind in "fc")


def _shortened(text: str) -> str:
    """The line of an error of numba's that says what is wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("Failed in", "File ", "During", "There are", "- "))]
    return (telling or lines or ["?"])[0][:100]


# -- showing ---------------------------------------------------------------------------------------------------------


def limit_of(found: dict[str, Any]) -> float:
    return CHAINED_LIMIT if found["heaviest"]["kind"] == CHAINED else LIMIT


def show(document: dict[str, Any]) -> None:
    out = console()
    show_machine(out, document["machine"])
    if document["quick"]:
        out.print("Quick: sizes too small to say anything about speed.")
    numbers = ("whole call ms", "its regions ms", "numba ms", "Lapwing / numba")
    rows = table("program", *numbers, "innermost loop", "inner form", numbers=numbers)
    timed = [found for found in document["programs"] if "ms" in found]
    for found in sorted(timed, key=lambda f: -f["over_numba"]["median"] / limit_of(f)):
        heaviest, ms = found["heaviest"], found["ms"]
        name = found["program"] + ("" if found["same_bits"] else " *")
        rows.add_row(
            name, f"{ms['lapwing']['median']:.2f}", f"{1e3 * heaviest['seconds']:.2f}", f"{ms['numba']['median']:.2f}",
            spread(found["over_numba"]), heaviest["kind"], heaviest["form"],
        )  # fmt: skip
    out.print(rows)
    for found in document["programs"]:
        if "numba_refuses" in found:
            out.print(f"{found['program']}: numba cannot compile it as written: {found['numba_refuses']}", markup=False)
    _show_goals(out, timed)
    out.print(
        "Medians over the rounds with the range of the ratios, worst first; ratios are of times in the same round."
    )
    out.print("*: numba's results differ, as those of x**2 taken for a product and of float sums do.", markup=False)


def _show_goals(out: Any, timed: Sequence[dict[str, Any]]) -> None:
    ratios = {found["program"]: found["over_numba"]["median"] for found in timed}
    chained = [found["program"] for found in timed if found["heaviest"]["kind"] == CHAINED]
    others = [name for name in ratios if name not in chained]
    for names, limit, what in ((others, LIMIT, "others"), (chained, CHAINED_LIMIT, "chained")):
        within = sum(ratios[name] <= limit for name in names)
        out.print(f"{what}: {within} of {len(names)} within {limit} of numba's time")
    slower = [name for name in ratios if ratios[name] > LIMIT]
    out.print(f"slower than {LIMIT} of numba's time: {', '.join(slower) or 'none'}")


if __name__ == "__main__":
    main()
