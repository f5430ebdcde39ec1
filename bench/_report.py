"""What the benchmarks share: the machine they ran on, statistics, tables, JSON."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from lapwing.codegen.compilation.toolchain import find_c_compiler
from lapwing.errors import LapwingError
from lapwing.machine.caches import cache_bytes
from lapwing.runtime.binding import native

_PIPED_WIDTH = 132  # characters, where there is no terminal to ask
_BUSY = 0.5  # load of other programs, in cores, from which figures are not worth writing down


def machine() -> dict[str, Any]:
    """What the figures depend on, as far as it can be found out; sizes in bytes, None where unknown."""
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "l2_bytes": cache_bytes(2),
        "l3_bytes": cache_bytes(3),
        "system": f"{platform.system()} {platform.release()}",
        "compiler": compiler_name(),
        "mpi": _mpi_version(),
        "python": platform.python_version(),
        "numpy": metadata.version("numpy"),
        "numba": _version_or_none("numba"),
        "load_before": os.getloadavg()[0],
    }


def compiler_name() -> str:
    """The C compiler by its own name, where cc is only a link to it, and its version, as in "gcc 12.2"."""
    compiler = find_c_compiler()
    file = Path(compiler.command[0]).resolve().name
    known = next((name for name in ("gcc", "clang") if name in file), file)
    return f"{known} {compiler.label.rpartition(' ')[2]}"


def summary(values: Sequence[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def spread(values: dict[str, float], digits: int = 2) -> str:
    """A median with its range, as in "1.54 (1.49-1.60)"."""
    return f"{values['median']:.{digits}f} ({values['min']:.{digits}f}–{values['max']:.{digits}f})"


def console() -> Console:
    return Console(highlight=False) if sys.stdout.isatty() else Console(width=_PIPED_WIDTH, highlight=False)


def table(*columns: str, numbers: Sequence[str] = ()) -> Table:
    """An empty table; the columns named in numbers are set flush right."""
    made = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        made.add_column(column, justify="right" if column in numbers else "left")
    return made


def show_machine(out: Console, known: dict[str, Any]) -> None:
    caches = [f"L{k} {known[f'l{k}_bytes'] / 2**20:g} MiB" for k in (2, 3) if known[f"l{k}_bytes"]]
    numba = f"numba {known['numba']}" if known["numba"] else "no numba"
    out.print(f"{known['cpu']}, {known['cores']} cores, {', '.join(caches) or 'caches unknown'}, {known['system']}")
    out.print(f"{known['compiler']}; {known['mpi']}; Python {known['python']}, NumPy {known['numpy']}, {numba}")
    if known["load_before"] > _BUSY:
        out.print(f"The machine was busy before this started (load {known['load_before']:.1f}): the figures are noisy.")


def say(text: str) -> None:
    """A line on standard error: what is being done now."""
    print(text, file=sys.stderr, flush=True)


def write_json(path: Path | None, document: dict[str, Any]) -> None:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, indent=1) + "\n")


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _mpi_version() -> str:
    try:
        text = native.library_version(native.mpi_runtime())
    except LapwingError:
        return "no MPI"
    return " ".join(text.split("\n")[0].split())


def _version_or_none(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
