"""How long does `lapwing overlap` take? On NPB's MPI benchmarks, one by one, and on a program of 100,000 lines.

    python bench/rewriting/overlap_time.py [PATH] [--benchmarks LU,MG,BT,IS] [--lines 100000] [--rounds 5] [--json PATH]

PATH is a folder of NPB's MPI benchmarks (https://www.nas.nasa.gov/software/npb.html), or the environment's NPB. Nothing there is
changed. The large programs, one in Fortran and one in C, are these benchmarks again and again, under other names.
bench/README.md says how to read the table.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import _paths  # noqa: F401
from _large_program import Part, write_large
from _npb_build import SIMULATED, copy_tree, find_npb, missing_tools
from _report import console, machine, say, show_machine, spread, summary, table, write_json
from rich.console import Console

from lapwing.errors import BuildError, LapwingError
from lapwing.overlap.languages.c.reading import read_c
from lapwing.overlap.languages.fortran.reading import read_fortran

BENCHMARKS = ("LU", "MG", "BT", "IS")
ROUNDS = 5
LINES = 100_000
ASKED = {"LU": 5.0, "large": 60.0}  # seconds, wall clock
C_COMMON = ("c_timers.c", "c_print_results.c")


@dataclass(frozen=True)
class Options:
    npb: Path
    benchmarks: tuple[str, ...]
    lines: int
    rounds: int
    json: Path | None


@dataclass(frozen=True)
class Taken:
    """Seconds of one run of the command, by the clock and of the CPU."""

    wall: float
    cpu: float


def main() -> None:
    options = parse_options()
    document: dict[str, Any] = {"benchmark": "overlap_time", "machine": machine(), "rounds": options.rounds, "rows": []}
    out = console()
    show_machine(out, document["machine"])
    with tempfile.TemporaryDirectory(prefix="overlap_time.") as folder:
        try:
            measure(options, Path(folder), document)
        except LapwingError as error:
            raise SystemExit(f"overlap_time: {error}") from None
    show(out, document["rows"])


def parse_options() -> Options:
    parser = argparse.ArgumentParser(
        prog="overlap_time.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", nargs="?", type=Path, default=os.environ.get("NPB"), help="NPB; default $NPB")
    parser.add_argument("--benchmarks", default=",".join(BENCHMARKS), metavar="NAMES", help="default %(default)s")
    parser.add_argument("--lines", type=int, default=LINES, help="of the large programs; 0: none (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="runs of each benchmark (default %(default)s)")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write every figure there")
    given = parser.parse_args()
    missing = [tool for tool in missing_tools() if tool in ("make", "gcc")]
    if missing:
        parser.exit(0, f"overlap_time: left out: no {', '.join(missing)} on PATH.\n")
    if given.path is None:
        parser.exit(0, "overlap_time: left out: no NPB. Give the path of NPB's MPI benchmarks, or set NPB to it.\n")
    npb = find_npb(Path(given.path))
    if npb is None:
        parser.error(f"{given.path}: no folder of NPB's MPI benchmarks, with config, sys and common in it")
    if given.rounds < 1 or given.lines < 0:
        parser.error("--rounds must be at least 1, and --lines not below 0")
    names = tuple(given.benchmarks.upper().split(","))
    if not set(names) <= set(BENCHMARKS):
        parser.error(f"--benchmarks {given.benchmarks}: expected some of {','.join(BENCHMARKS)}")
    return Options(npb, names, given.lines, given.rounds, given.json)


def measure(options: Options, folder: Path, document: dict[str, Any]) -> None:
    parts = {}
    for name in options.benchmarks:
        parts[name] = part = read_part(options.npb, name, folder / name)
        say(f"overlap_time: {name}")
        run(part.sources, folder / name)  # Python compiles what it has not yet
        taken = [run(part.sources, folder / name) for _ in range(options.rounds)]
        add(document, name, part.language, part.lines, taken)
        write_json(options.json, document)
    for language in ("fortran", "c") if options.lines else ():
        chosen = [part for part in parts.values() if part.language == language]
        if not chosen:
            continue
        say(f"overlap_time: {options.lines} lines of {language}")
        place = folder / language
        lines = write_large(chosen, options.lines, place)
        suffixes = (".f", ".f90") if language == "fortran" else (".c",)
        sources = sorted(file for file in place.rglob("*") if file.suffix in suffixes)
        add(document, "large", language, lines, [run(sources, place)])
        write_json(options.json, document)


def read_part(npb: Path, name: str, tree: Path) -> Part:
    """A copy of the benchmark, with the sizes its makefile writes. Raises BuildError."""
    folder = copy_tree(npb, name, tree, SIMULATED)
    made = subprocess.run(["make", "-C", str(folder), "config", "CLASS=A"], capture_output=True, text=True)
    if made.returncode != 0:
        raise BuildError(f"{name}: its makefile cannot write npbparams.h:\n{made.stdout}{made.stderr}")
    common = tree / "common"
    written = sorted(folder.glob("*.f"))
    if written:
        sources = (*written, *sorted(common.glob("*.f")))
        included = (*folder.glob("*.h"), *folder.glob("*.incl"))
        return Part(name.lower(), sources, included, read_fortran(sources, [folder, common]))
    sources = (*sorted(folder.glob("*.c")), *(common / file for file in C_COMMON))
    included = (*folder.glob("*.h"), *common.glob("*.h"))
    return Part(name.lower(), sources, included, read_c(sources, [folder, common]))


def run(sources: Sequence[Path], folder: Path) -> Taken:
    """One run of the command, on all sources. Raises BuildError where it fails."""
    includes = [option for place in {source.parent: None for source in sources} for option in ("-I", str(place))]
    several = len(includes) > 4  # copies find what they include beside themselves
    command = [sys.executable, "-m", "lapwing", "overlap", *map(str, sources), *([] if several else includes)]
    # As after an installation: with Python's modules compiled, which some environments keep it from remembering.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(folder.parent / "bytecode")
    with (folder / "errors.txt").open("wb") as errors:
        began = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=errors, stdin=subprocess.DEVNULL, env=environment
        )
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise BuildError(f"lapwing overlap failed:\n{(folder / 'errors.txt').read_text(errors='replace')}")
    return Taken(wall, used.ru_utime + used.ru_stime)


def add(document: dict[str, Any], name: str, language: str, lines: int, taken: Sequence[Taken]) -> None:
    document["rows"].append(
        {
            "program": name, "language": language, "lines": lines, "asked": ASKED.get(name),
            "wall": [t.wall for t in taken], "cpu": [t.cpu for t in taken],
        }
    )  # fmt: skip


def show(out: Console, rows: Sequence[dict[str, Any]]) -> None:
    columns = ("program", "language", "lines", "wall s", "CPU s", "asked s")
    made = table(*columns, numbers=columns[2:])
    for row in rows:
        asked = "" if row["asked"] is None else f"≤ {row['asked']:g}"
        times = [spread(summary(row[kind]), 1) for kind in ("wall", "cpu")]
        made.add_row(row["program"], row["language"], f"{row['lines']:,}", *times, asked)
    out.print(made)
    out.print(
        "Of the whole command, Python's start included: medians and ranges over the rounds; the large programs once."
    )


if __name__ == "__main__":
    main()
