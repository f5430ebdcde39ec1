"""What does `lapwing overlap` bring? NPB's MPI benchmarks, as they are and rewritten, on simulated clusters or the lab.

    python bench/rewriting/npb.py [PATH] [--benchmarks IS,LU,MG,BT] [--class A] [--nodes 4,16]
                                  [--networks gigabit,infiniband] [--rounds 5] [--slower 1] [--transformed PATH]
                                  [--json PATH]
    python bench/rewriting/npb.py [PATH] --lab [--benchmarks IS,LU,MG] [--class A] [--nodes 2] [--rounds 5]
                                  [--transformed PATH] [--json PATH]

PATH is a folder of NPB 3.4's MPI benchmarks (https://www.nas.nasa.gov/software/npb.html), or the environment's NPB.
Nothing there is changed. bench/README.md says how to read the table.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import _paths  # noqa: F401
from _npb_build import SHARED, Compilers, Overlapped, build, copy_tree, find_npb, missing_tools, overlap
from _npb_lab import Mpi, find_hosts, hosts
from _npb_run import FREE, NETWORKS, Reading, Simulated, operations
from _report import console, machine, say, show_machine, spread, summary, table, write_json
from rich.console import Console

from lapwing.errors import LapwingError
from lapwing.launch.lab import Lab

ROUNDS = 5
SIMULATOR = ("smpicc", "smpif90", "smpirun")
NODES, LAB_NODES = "4,16", "2"
ORIGINAL, TRANSFORMED, UNAIDED = "original", "transformed", "transformed, no progress calls"
# With progress calls? The simulator moves messages without them; TCP in the lab moves long ones only in calls of MPI.
SIMULATED_VERSIONS = {TRANSFORMED: False}
LAB_VERSIONS = {TRANSFORMED: True, UNAIDED: False}


@dataclass(frozen=True)
class Expected:
    """Gains in percent: published by P2 (source-to-source overlap on 16 InfiniBand nodes), and reached on SMPI by hand with the
    same kinds of transformation. ranks: how many a benchmark can run on. lab_class: of 1 to 10 s on two cores."""

    published: str
    by_hand: dict[str, str]
    ranks: Callable[[int], bool]
    lab_class: str


def _power_of_two(ranks: int) -> bool:
    return ranks & (ranks - 1) == 0


def _square(ranks: int) -> bool:
    return math.isqrt(ranks) ** 2 == ranks


BENCHMARKS = {
    "IS": Expected("11–39", {"gigabit": "14", "infiniband": "30–31"}, _power_of_two, "A"),
    "LU": Expected("10–17", {"gigabit": "16–19", "infiniband": "0–5"}, _power_of_two, "W"),
    "MG": Expected("5–8", {"gigabit": "0–8"}, _power_of_two, "A"),
    "BT": Expected("none", {}, _square, "W"),
}


@dataclass(frozen=True)
class Options:
    npb: Path
    transformed: Path | None
    benchmarks: tuple[str, ...]
    classes: dict[str, str]
    nodes: tuple[int, ...]
    networks: tuple[str, ...]
    rounds: int
    slower: float
    lab: tuple[Lab, Mpi] | None
    json: Path | None

    def place(self) -> AbstractContextManager[Place]:
        if self.lab is not None:
            return hosts(*self.lab)
        return nullcontext(Simulated(tuple(NETWORKS[name] for name in self.networks), self.slower))

    @property
    def versions(self) -> dict[str, bool]:
        """What else than the original is measured, and whether the tool may put progress calls into it."""
        if self.transformed is not None or self.lab is None:
            return SIMULATED_VERSIONS
        return LAB_VERSIONS


class Place(Protocol):
    """Where programs run, over networks known by name; all places also have one named as FREE is."""

    @property
    def compilers(self) -> Compilers: ...
    @property
    def networks(self) -> tuple[str, ...]: ...
    def titles(self) -> list[str]: ...
    def facts(self) -> list[dict[str, Any]]: ...
    def run(self, program: Path, nodes: int, network: str) -> Reading: ...


@dataclass(frozen=True)
class Contender:
    """A program on a network."""

    version: str
    program: Path
    network: str


Programs = dict[str, Path]  # by version
Readings = dict[tuple[str, str], list[Reading]]  # by version and network, a reading a round


def main() -> None:
    options = parse_options()
    document: dict[str, Any] = {
        "benchmark": "npb", "machine": machine(), "classes": options.classes, "rounds": options.rounds,
        "slower": options.slower, "networks": [], "tool": {}, "rows": [],
    }  # fmt: skip
    out = console()
    show_machine(out, document["machine"])
    try:
        with options.place() as place:
            document["networks"] = place.facts()
            measure_all(place, options, document)
            show(out, place, document, options)
    except LapwingError as error:
        raise SystemExit(f"npb: {error}") from None
    if any("error" in told for told in document["tool"].values()) or not all(
        row["verified"] for row in document["rows"]
    ):
        raise SystemExit(1)


def measure_all(place: Place, options: Options, document: dict[str, Any]) -> None:
    for benchmark in options.benchmarks:
        try:
            measure(benchmark, place, options, document)
        except LapwingError as error:
            say(f"npb: {benchmark} is left out: {error}")
            document["tool"].setdefault(benchmark, {})["error"] = str(error)
        write_json(options.json, document)


def parse_options() -> Options:
    parser = argparse.ArgumentParser(
        prog="npb.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", nargs="?", type=Path, default=os.environ.get("NPB"), help="NPB; default $NPB")
    parser.add_argument("--benchmarks", default=",".join(BENCHMARKS), metavar="NAMES", help="default %(default)s")
    parser.add_argument(
        "--lab",
        action="store_true",
        help="on the hosts of the lab, a rank each, with a real MPI: needs root, make lab-up",
    )
    in_lab = ", ".join(f"{name} {expected.lab_class}" for name, expected in BENCHMARKS.items())
    parser.add_argument("--class", dest="class_", choices=[*"SWABCD"], help=f"size (default A; in the lab {in_lab})")
    parser.add_argument("--nodes", metavar="COUNTS", help=f"default {NODES}; in the lab {LAB_NODES}")
    parser.add_argument("--networks", metavar="NAMES", help=f"simulated ones (default {','.join(NETWORKS)})")
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
    if given.path is None:
        parser.exit(0, "npb: left out: no NPB. Give the path of NPB 3.4's MPI benchmarks, or set NPB to it.\n")
    lab = _lab(parser, given) if given.lab else None
    missing = missing_tools(*(() if given.lab else SIMULATOR))
    if missing:
        packages = "make gcc" if given.lab else "libsimgrid-dev make"
        parser.exit(0, f"npb: left out: no {', '.join(missing)} on PATH. Install them: apt install {packages}\n")
    if given.rounds < 1 or given.slower <= 0:
        parser.error("--rounds must be at least 1, and --slower above 0")
    benchmarks = _chosen(parser, "--benchmarks", given.benchmarks.upper(), BENCHMARKS)
    return Options(
        npb=_npb(parser, given.path),
        transformed=None if given.transformed is None else _npb(parser, given.transformed),
        benchmarks=benchmarks,
        classes={b: given.class_ or (BENCHMARKS[b].lab_class if given.lab else "A") for b in benchmarks},
        nodes=_nodes(parser, given.nodes or (LAB_NODES if given.lab else NODES), lab),
        networks=_chosen(parser, "--networks", given.networks or ",".join(NETWORKS), NETWORKS),
        rounds=given.rounds,
        slower=given.slower,
        lab=lab,
        json=given.json,
    )


def _lab(parser: argparse.ArgumentParser, given: argparse.Namespace) -> tuple[Lab, Mpi]:
    if given.networks is not None or given.slower != 1:
        parser.error(
            "--networks and --slower are of simulated clusters; the lab is as it was made (make lab-up RATE=…)"
        )
    try:
        return find_hosts()
    except LapwingError as error:
        parser.exit(1, f"npb: --lab cannot run: {error}\n")


def _nodes(parser: argparse.ArgumentParser, text: str, lab: tuple[Lab, Mpi] | None) -> tuple[int, ...]:
    try:
        nodes = tuple(int(count) for count in text.split(","))
    except ValueError:
        nodes = ()
    if not nodes or min(nodes) < 1:
        parser.error(f"--nodes {text}: expected counts such as {NODES}")
    if lab is not None and max(nodes) > len(lab[0].hosts):
        parser.error(
            f"--nodes {text}: the lab has {len(lab[0].hosts)} hosts; make lab-up HOSTS={max(nodes)} makes more"
        )
    if lab is not None and max(nodes) > len(os.sched_getaffinity(0)):
        say("npb: more ranks than cores, and ranks wait by spinning: the figures will say little")
    return nodes


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


def measure(benchmark: str, place: Place, options: Options, document: dict[str, Any]) -> None:
    """Build all versions, run them in turn, and add a row for each cluster. Raises LapwingError where either fails."""
    counts = [n for n in options.nodes if BENCHMARKS[benchmark].ranks(n)]
    for left_out in sorted(set(options.nodes) - set(counts)):
        say(f"npb: {benchmark} does not run on {left_out} nodes")
    if not counts:
        return
    with tempfile.TemporaryDirectory(prefix="lapwing-npb-") as name:
        say(f"npb: building {benchmark}")
        made, told = programs(benchmark, place.compilers, options, Path(name))
        document["tool"][benchmark] = told
        found = {n: race(made, n, place, options.rounds) for n in counts}
    everything = [r for readings in found.values() for rounds in readings.values() for r in rounds]
    work = operations(everything)
    for nodes, readings in found.items():
        for network in place.networks:
            for version in options.versions:
                if version in made or version == TRANSFORMED:
                    facts = {"class": options.classes[benchmark], "progress_calls": options.versions[version]}
                    document["rows"].append(facts | row(benchmark, nodes, network, version, readings, work))


def programs(benchmark: str, compilers: Compilers, options: Options, folder: Path) -> tuple[Programs, dict[str, Any]]:
    """The original and what the tool makes of it, and what the tool told. Versions equal to another are left out."""
    class_ = options.classes[benchmark]
    made = {ORIGINAL: build(copy_tree(options.npb, benchmark, folder / ORIGINAL, compilers), class_)}
    if options.transformed is not None:
        sources = copy_tree(options.transformed, benchmark, folder / TRANSFORMED, compilers)
        return {**made, TRANSFORMED: build(sources, class_)}, {}
    told: dict[str, Any] = {}
    texts: list[dict[str, bytes]] = []
    for k, (version, progress_calls) in enumerate(options.versions.items()):
        sources = copy_tree(options.npb, benchmark, folder / f"{TRANSFORMED}{k}", compilers)
        build(sources, class_)  # for npbparams.h, and to learn which sources are compiled
        done = overlap(sources, progress_calls)
        told = told or _told(done)
        if done.changed and done.texts not in texts:
            made[version] = build(sources, class_)
        texts.append(done.texts)
    if len(texts) > 1:
        told["progress_calls"] = texts[0] != texts[1]
    return made, told


def _told(done: Overlapped) -> dict[str, Any]:
    return {
        "seconds": done.seconds, "sources": len(done.texts), "changed": done.changed, "outcome": done.outcome
    }  # fmt: skip


def race(made: Programs, nodes: int, place: Place, rounds: int) -> Readings:
    """All versions take turns in every round, backwards in every second; the original also without a network."""
    contenders = [Contender(version, made[version], network) for version in made for network in place.networks]
    contenders.append(Contender(ORIGINAL, made[ORIGINAL], FREE.name))
    contenders.sort(key=lambda c: c.network)  # those to be compared run one after the other
    readings: Readings = {}
    for k in range(rounds):
        say(f"npb: {made[ORIGINAL].name} on {nodes} nodes, round {k + 1} of {rounds}")
        for contender in contenders if k % 2 == 0 else contenders[::-1]:
            reading = place.run(contender.program, nodes, contender.network)
            readings.setdefault((contender.version, contender.network), []).append(reading)
    return readings


def row(benchmark: str, nodes: int, network: str, version: str, readings: Readings, work: float) -> dict[str, Any]:
    """What is known of a version on a cluster; gains and ceilings are of runs in the same round."""

    def seconds(version: str, name: str) -> list[float]:
        return [work / reading.rate for reading in readings.get((version, name), ())]

    original, transformed = seconds(ORIGINAL, network), seconds(version, network)
    free = seconds(ORIGINAL, FREE.name)
    runs = [
        r for key in ((ORIGINAL, network), (version, network), (ORIGINAL, FREE.name)) for r in readings.get(key, ())
    ]
    return {
        "benchmark": benchmark, "nodes": nodes, "network": network,
        "original": original, "transformed": transformed, "free": free,
        "gain": _gain(original, transformed), "ceiling": _gain(original, free),
        "published": BENCHMARKS[benchmark].published, "by_hand": BENCHMARKS[benchmark].by_hand.get(network),
        "verified": all(r.verified for r in runs),
    }  # fmt: skip


def _gain(before: Sequence[float], after: Sequence[float]) -> dict[str, float] | None:
    """How much shorter, in percent."""
    return summary([100 * (1 - b / a) for a, b in zip(before, after, strict=True)]) if after else None


# -- showing ---------------------------------------------------------------------------------------------------------


def show(out: Console, place: Place, document: dict[str, Any], options: Options) -> None:
    for title in place.titles():
        out.print(title)
    slower = f"{options.slower:g} times slower than" if options.slower != 1 else "as fast as"
    hosts_are = f"Hosts compute {slower} one core of this machine" if options.lab is None else "Hosts share its cores"
    out.print(f"{hosts_are}; {options.rounds} rounds, class {class_text(options.classes)}.")
    columns = (
        "benchmark", "nodes", "network", "original s", "transformed s", "gain %", "published %", "by hand %", "ceiling %",
        "verified",
    )  # fmt: skip
    numbers = ("nodes", "original s", "transformed s", "gain %", "published %", "by hand %", "ceiling %")
    aided = len(options.versions) > 1
    rows = table(*columns, *(("progress",) if aided else ()), numbers=numbers)
    for found in document["rows"]:
        transformed = found["transformed"]
        rows.add_row(
            found["benchmark"], str(found["nodes"]), found["network"], f"{statistics.median(found['original']):.4g}",
            f"{statistics.median(transformed):.4g}" if transformed else "unchanged",
            spread(found["gain"], 1) if found["gain"] else "–", found["published"], found["by_hand"] or "–",
            f"{found['ceiling']['median']:.0f}", "yes" if found["verified"] else "NO",
            *(("calls" if found["progress_calls"] else "no calls",) if aided else ()),
        )  # fmt: skip
    if document["rows"]:
        out.print(rows)
    for benchmark, told in document["tool"].items():
        if "seconds" in told:
            counts = told["outcome"].get("counts", {})
            same = " It found no place for progress calls." if told.get("progress_calls") is False else ""
            out.print(
                f"{benchmark}: lapwing overlap read {told['sources']} files in {told['seconds']:.1f} s and rewrote "
                f"{counts.get('rewritten', 0)} of {counts.get('communications', 0)} communications.{same}"
            )


def class_text(classes: dict[str, str]) -> str:
    """ "A" where all benchmarks have that class, else such as "IS A, LU W"."""
    letters = set(classes.values())
    return letters.pop() if len(letters) == 1 else ", ".join(f"{name} {letter}" for name, letter in classes.items())


if __name__ == "__main__":
    main()
