"""What does `lapwing overlap` bring? NPB's MPI benchmarks, as they are and rewritten, on simulated clusters.

    python bench/npb.py [PATH] [--benchmarks IS,LU,MG,BT] [--class A] [--nodes 4,16] [--networks gigabit,infiniband]
                        [--rounds 5] [--slower 1] [--transformed PATH] [--json PATH]

PATH is a folder of NPB 3.4's MPI benchmarks (https://www.nas.nasa.gov/software/npb.html), or the environment's NPB.
Nothing there is changed. README.md beside this file says how to read the table.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from _npb_build import SHARED, Overlapped, build, copy_tree, find_npb, missing_tools, overlap
from _npb_run import FREE, NETWORKS, Network, Reading, operations, run
from _report import console, machine, say, show_machine, spread, summary, table, write_json
from rich.console import Console

from lapwing.errors import LapwingError

ROUNDS = 5
ORIGINAL, TRANSFORMED = "original", "transformed"


@dataclass(frozen=True)
class Expected:
    """Gains in percent: published by P2 (source-to-source overlap on 16 InfiniBand nodes), and reached on SMPI
    by hand with the same kinds of motion. ranks: how many a benchmark can run on."""

    published: str
    by_hand: dict[str, str]
    ranks: Callable[[int], bool]


def _power_of_two(ranks: int) -> bool:
    return ranks & (ranks - 1) == 0


def _square(ranks: int) -> bool:
    return math.isqrt(ranks) ** 2 == ranks


BENCHMARKS = {
    "IS": Expected("11–39", {"gigabit": "14", "infiniband": "30–31"}, _power_of_two),
    "LU": Expected("10–17", {"gigabit": "16–19", "infiniband": "0–5"}, _power_of_two),
    "MG": Expected("5–8", {"gigabit": "0–8"}, _power_of_two),
    "BT": Expected("none", {}, _square),
}


@dataclass(frozen=True)
class Options:
    npb: Path
    transformed: Path | None
    benchmarks: tuple[str, ...]
    class_: str
    nodes: tuple[int, ...]
    networks: tuple[Network, ...]
    rounds: int
    slower: float
    json: Path | None


@dataclass(frozen=True)
class Contender:
    """A program on a network."""

    version: str
    program: Path
    network: Network


Readings = dict[tuple[str, str], list[Reading]]  # by version and network, a reading a round


def main() -> None:
    options = parse_options()
    document: dict[str, Any] = {
        "benchmark": "npb", "machine": machine(), "class": options.class_, "rounds": options.rounds,
        "slower": options.slower, "networks": [asdict(network) for network in options.networks],
        "tool": {}, "rows": [],
    }  # fmt: skip
    out = console()
    show_machine(out, document["machine"])
    for benchmark in options.benchmarks:
        try:
            measure(benchmark, options, document)
        except LapwingError as error:
            say(f"npb: {benchmark} is left out: {error}")
            document["tool"].setdefault(benchmark, {})["error"] = str(error)
        write_json(options.json, document)
    show(out, document, options)
    if any("error" in told for told in document["tool"].values()) or not all(
        row["verified"] for row in document["rows"]
    ):
        raise SystemExit(1)


def parse_options() -> Options:
    parser = argparse.ArgumentParser(
        prog="npb.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", nargs="?", type=Path, default=os.environ.get("NPB"), help="NPB; default $NPB")
    parser.add_argument("--benchmarks", default=",".join(BENCHMARKS), metavar="NAMES", help="default %(default)s")
    parser.add_argument("--class", dest="class_", default="A", choices=[*"SWABCD"], help="size (default %(default)s)")
    parser.add_argument("--nodes", default="4,16", metavar="COUNTS", help="default %(default)s")
    parser.add_argument("--networks", default=",".join(NETWORKS), metavar="NAMES", help="default %(default)s")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="runs of each kind (default %(default)s)")
    parser.add_argument(
        "--slower", type=float, default=1.0, metavar="FACTOR",
        help="the simulated hosts compute so many times slower than this machine (default %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--transformed", type=Path, metavar="PATH", help="an NPB rewritten already, instead of running the tool"
    )
    parser.add_argument("--json", type=Path, metavar="PATH", help="write every figure there")
    given = parser.parse_args()
    missing = missing_tools()
    if missing:
        parser.exit(
            0, f"npb: left out: no {', '.join(missing)} on PATH. Install them: apt install libsimgrid-dev make\n"
        )
    if given.path is None:
        parser.exit(0, "npb: left out: no NPB. Give the path of NPB 3.4's MPI benchmarks, or set NPB to it.\n")
    if given.rounds < 1 or given.slower <= 0:
        parser.error("--rounds must be at least 1, and --slower above 0")
    try:
        nodes = tuple(int(count) for count in given.nodes.split(","))
    except ValueError:
        nodes = ()
    if not nodes or min(nodes) < 1:
        parser.error(f"--nodes {given.nodes}: expected counts such as 4,16")
    networks = _chosen(parser, "--networks", given.networks, NETWORKS)
    return Options(
        npb=_npb(parser, given.path),
        transformed=None if given.transformed is None else _npb(parser, given.transformed),
        benchmarks=_chosen(parser, "--benchmarks", given.benchmarks.upper(), BENCHMARKS),
        class_=given.class_,
        nodes=nodes,
        networks=tuple(NETWORKS[name] for name in networks),
        rounds=given.rounds,
        slower=given.slower,
        json=given.json,
    )


def _chosen(
    parser: argparse.ArgumentParser, option: str, text: str, known: Sequence[str] | dict[str, Any]
) -> tuple[str, ...]:
    names = tuple(text.split(","))
    for name in names:
        if name not in known:
            parser.error(f"{option}: {name} is unknown; expected some of {','.join(known)}")
    return names


def _npb(parser: argparse.ArgumentParser, path: Path) -> Path:
    found = find_npb(path)
    if found is None:
        parser.error(f"{path}: no NPB for MPI: a folder that holds {', '.join(SHARED)} was expected")
    return found.resolve()


# -- measuring -------------------------------------------------------------------------------------------------------


def measure(benchmark: str, options: Options, document: dict[str, Any]) -> None:
    """Build both versions, run them in turn, and add a row for each cluster. Raises LapwingError where either fails."""
    with tempfile.TemporaryDirectory(prefix="lapwing-npb-") as name:
        say(f"npb: building {benchmark}")
        original, transformed, told = programs(benchmark, options, Path(name))
        document["tool"][benchmark] = told
        counts = [n for n in options.nodes if BENCHMARKS[benchmark].ranks(n)]
        for left_out in sorted(set(options.nodes) - set(counts)):
            say(f"npb: {benchmark} does not run on {left_out} nodes")
        found = {n: race(original, transformed, n, options) for n in counts}
    everything = [r for readings in found.values() for rounds in readings.values() for r in rounds]
    work = operations(everything) if everything else 0.0
    for nodes, readings in found.items():
        document["rows"] += [row(benchmark, nodes, network, readings, work) for network in options.networks]


def programs(benchmark: str, options: Options, folder: Path) -> tuple[Path, Path | None, dict[str, Any]]:
    """The original program, the transformed one (None where the tool changed nothing), and what the tool told."""
    original = build(copy_tree(options.npb, benchmark, folder / ORIGINAL), options.class_)
    sources = copy_tree(options.transformed or options.npb, benchmark, folder / TRANSFORMED)
    if options.transformed is not None:
        return original, build(sources, options.class_), {}
    build(sources, options.class_)  # for npbparams.h, and to learn which sources are compiled
    done = overlap(sources)
    return original, build(sources, options.class_) if done.changed else None, _told(done)


def _told(done: Overlapped) -> dict[str, Any]:
    return {"seconds": done.seconds, "sources": done.sources, "changed": done.changed, "outcome": done.outcome}


def race(original: Path, transformed: Path | None, nodes: int, options: Options) -> Readings:
    """All versions take turns in every round, starting one later in each; the original also without a network."""
    contenders = [Contender(ORIGINAL, original, network) for network in (*options.networks, FREE)]
    if transformed is not None:
        contenders += [Contender(TRANSFORMED, transformed, network) for network in options.networks]
        contenders.sort(key=lambda c: c.network.name)  # the two to be compared run one after the other
    readings: Readings = {}
    for k in range(options.rounds):
        say(f"npb: {original.name} on {nodes} nodes, round {k + 1} of {options.rounds}")
        for contender in contenders if k % 2 == 0 else contenders[::-1]:
            reading = run(contender.program, nodes, contender.network, options.slower)
            readings.setdefault((contender.version, contender.network.name), []).append(reading)
    return readings


def row(benchmark: str, nodes: int, network: Network, readings: Readings, work: float) -> dict[str, Any]:
    """What is known of a benchmark on a cluster; gains and ceilings are of runs in the same round."""

    def seconds(version: str, name: str) -> list[float]:
        return [work / reading.rate for reading in readings.get((version, name), ())]

    original, transformed = seconds(ORIGINAL, network.name), seconds(TRANSFORMED, network.name)
    free = seconds(ORIGINAL, FREE.name)
    runs = [r for (_, name), rounds in readings.items() if name in (network.name, FREE.name) for r in rounds]
    return {
        "benchmark": benchmark, "nodes": nodes, "network": network.name,
        "original": original, "transformed": transformed, "free": free,
        "gain": _gain(original, transformed), "ceiling": _gain(original, free),
        "published": BENCHMARKS[benchmark].published, "by_hand": BENCHMARKS[benchmark].by_hand.get(network.name),
        "verified": all(r.verified for r in runs),
    }  # fmt: skip


def _gain(before: Sequence[float], after: Sequence[float]) -> dict[str, float] | None:
    """How much shorter, in percent."""
    return summary([100 * (1 - b / a) for a, b in zip(before, after, strict=True)]) if after else None


# -- showing ---------------------------------------------------------------------------------------------------------


def show(out: Console, document: dict[str, Any], options: Options) -> None:
    for network in options.networks:
        out.print(f"{network.name}: {network.title}")
    slower = f"{options.slower:g} times slower than" if options.slower != 1 else "as fast as"
    out.print(f"Hosts compute {slower} one core of this machine; {options.rounds} rounds, class {options.class_}.")
    rows = table(
        "benchmark", "nodes", "network", "original s", "transformed s", "gain %", "published %", "by hand %", "ceiling %",
        "verified",
        numbers=("nodes", "original s", "transformed s", "gain %", "published %", "by hand %", "ceiling %"),
    )  # fmt: skip
    for found in document["rows"]:
        transformed = found["transformed"]
        rows.add_row(
            found["benchmark"], str(found["nodes"]), found["network"], f"{statistics.median(found['original']):.4g}",
            f"{statistics.median(transformed):.4g}" if transformed else "unchanged",
            spread(found["gain"], 1) if found["gain"] else "–", found["published"], found["by_hand"] or "–",
            f"{found['ceiling']['median']:.0f}", "yes" if found["verified"] else "NO",
        )  # fmt: skip
    if document["rows"]:
        out.print(rows)
    for benchmark, told in document["tool"].items():
        if "seconds" in told:
            counts = told["outcome"].get("counts", {})
            out.print(
                f"{benchmark}: lapwing overlap read {told['sources']} files in {told['seconds']:.1f} s and rewrote "
                f"{counts.get('rewritten', 0)} of {counts.get('communications', 0)} communications."
            )


if __name__ == "__main__":
    main()
