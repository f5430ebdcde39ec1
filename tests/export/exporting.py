"""Builds and runs programs that were exported."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from limits import scaled

from lapwing.codegen.compilation.toolchain import find_mpi

SECONDS = scaled(120)
OBJECTS = ("main", "mpi")  # the same for all nests


def run_here(command: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, env={**os.environ, **environment}
    )


def little_optimised(folder: Path) -> str:
    """For ``make``: generated code that runs for a moment is compiled in a quarter of the time."""
    flags = re.search(r"^TILE_FLAGS := (.*)$", (folder / "Makefile").read_text(), re.MULTILINE)
    assert flags is not None
    return f"TILE_FLAGS={flags[1].replace('-O3', '-Og')}"


def make(folder: Path, *words: str) -> None:
    done = run_here(["make", *words], folder)
    assert done.returncode == 0, done.stdout + done.stderr


def mpiexec(folder: Path, ranks: int, name: str, *words: str) -> subprocess.CompletedProcess[str]:
    return run_here([str(find_mpi().mpiexec), "-n", str(ranks), f"build/{name}", *words], folder)


def with_objects(folder: Path, objects: Path) -> None:
    shutil.copytree(objects, folder / "build")
    for path in (folder / "build").iterdir():
        path.touch()  # newer than the sources
