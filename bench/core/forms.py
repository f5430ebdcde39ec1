"""One core: nanoseconds a point of kernels as users write them, against numba, and against another tree of Lapwing.

    python bench/core/forms.py [--kernel NAME]... [--before TREE] [--rounds R] [--quick] [--json PATH]

bench/README.md says how to read the table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import _paths  # noqa: F401
from _kernels import KERNELS
from _report import console, machine, say, show_machine, summary, table, write_json

ROUNDS, QUICK_ROUNDS = 7, 2
QUICK_SIZE = 24
NOW, BEFORE, NUMBA = "now", "before", "numba"


class Worker:
    """A process with one tree of Lapwing, idle until it is asked."""

    def __init__(self, tree: Path) -> None:
        python = tree / ".venv" / "bin" / "python"
        environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
        self._process = subprocess.Popen(
            [str(python) if python.exists() else sys.executable, str(Path(__file__).parent / "_forms_worker.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip

    def ask(self, **asked: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"a worker ended with status {self._process.wait()} at {asked}")
        return dict(json.loads(answer))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def main() -> None:
    options = parse_options()
    trees = {NOW: Path(__file__).parents[2], **({BEFORE: options.before.resolve()} if options.before else {})}
    workers = {name: Worker(tree) for name, tree in trees.items()}
    document: dict[str, Any] = {"benchmark": "forms", "machine": machine(), "quick": options.quick, "kernels": []}
    for name in options.kernel or KERNELS:
        say(f"forms: {name}")
        rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
        document["kernels"].append(measure(name, workers, rounds, options.quick))
    for worker in workers.values():
        worker.close()
    show(document)
    write_json(options.json, document)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Nanoseconds a point of users' kernels on one core, against numba.")
    parser.add_argument("--kernel", action="append", choices=list(KERNELS), help="only this one; can be repeated")
    parser.add_argument("--before", type=Path, metavar="TREE", help="another tree of Lapwing, to take turns with")
    parser.add_argument("--rounds", type=int, help=f"timed rounds, in which all take turns (default {ROUNDS})")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that it works, not how fast")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write every figure there")
    options = parser.parse_args()
    if options.rounds is not None and options.rounds < 1:
        parser.error("--rounds: expected at least 1")
    if options.before is not None and not (options.before / "src" / "lapwing").is_dir():
        parser.error(f"--before: {options.before} holds no src/lapwing")
    return options


def measure(name: str, workers: dict[str, Worker], rounds: int, quick: bool) -> dict[str, Any]:
    size = QUICK_SIZE if quick else KERNELS[name][1]
    loaded = {who: worker.ask(do="load", kernel=name, size=size, quick=quick) for who, worker in workers.items()}
    turns = [*((who, worker, "own") for who, worker in workers.items()), (NUMBA, workers[NOW], NUMBA)]
    times: dict[str, list[float]] = {who: [] for who, _, _ in turns}
    for number in range(-1, rounds):
        start = number % len(turns)
        for who, worker, do in (*turns[start:], *turns[:start]):
            seconds = worker.ask(do=do)["seconds"]
            if number >= 0 and seconds is not None:  # the first round warms up
                times[who].append(seconds)
    points = loaded[NOW]["points"]
    return {
        "kernel": name,
        "size": size,
        "points": points,
        "rounds": rounds,
        "form": loaded[NOW]["form"],
        "figures": {
            who: {
                "seconds": own,
                "ns": summary([1e9 * s / points for s in own]),
                "over_now": summary([s / t for s, t in zip(own, times[NOW], strict=True)]),
            }
            for who, own in times.items()
            if own
        },
    }


def show(document: dict[str, Any]) -> None:
    out = console()
    show_machine(out, document["machine"])
    if document["quick"]:
        out.print("Quick: sizes too small to say anything about speed.")
    found = [who for who in (NOW, BEFORE, NUMBA) if any(who in k["figures"] for k in document["kernels"])]
    columns = [*found, *(f"{who} / now" for who in found[1:])]
    rows = table("kernel", "size", *columns, "inner form", numbers=("size", *columns))
    for kernel in document["kernels"]:
        figures = kernel["figures"]
        ns = [f"{figures[who]['ns']['median']:.2f}" for who in found]
        ratios = [f"{figures[who]['over_now']['median']:.2f}" for who in found[1:]]
        rows.add_row(kernel["kernel"], str(kernel["size"]), *ns, *ratios, kernel["form"])
    out.print(rows)
    out.print(
        "Nanoseconds a point; medians over the rounds, ratios of times in the same round: above 1 is slower than now."
    )


if __name__ == "__main__":
    main()
