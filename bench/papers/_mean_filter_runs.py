"""P3's runs on this machine: the mean filter in core by virtual memory, and out of core, in the same memory.

Both run in a control group. A program has, beside the memory for the matrix, what it takes itself, so that virtual memory
and out-of-core slabs have the same.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import _paths  # noqa: F401
import numpy as np
from _control_group import ControlGroup, control_group
from _disk_blocks import WAYS, matrix
from _disk_blocks import seconds as seconds_of_way
from _report import say
from mean_filter import smooth

import lapwing as lw
from lapwing.codegen.compilation.toolchain import find_mpi
from lapwing.errors import BuildError, LapwingError, RunError
from lapwing.store.chunking import blocks

_SOURCE = Path(__file__).parent / "in_core.cpp"
_WORKER = Path(__file__).parent / "_mean_filter_worker.py"
_FLAGS = ("-O3", "-march=native", "-ffp-contract=off")  # the bits of the plain loop
_OWN_BYTES = {"in core": 32 << 20, "out of core": 192 << 20}  # of a rank: a C++ program with MPI, and Python with NumPy
_CHECKED = 200  # rows of the matrix that all programs are first compared on
_LIMIT_SECONDS = 3600


@dataclass(frozen=True)
class Sizes:
    """What is measured. n: rows and columns; memory: of the matrix there may be so many bytes in it."""

    n: int
    memory: int
    tiles: tuple[int, ...]
    ranks: tuple[int, ...]
    sweeps: int  # of figure 12
    sweeps_on: int  # ranks of figure 12
    rounds: int

    @property
    def bytes(self) -> int:
        return 8 * self.n**2


FULL = Sizes(16384, 512 << 20, (32, 128, 512), (1, 2, 4), 3, 2, 5)
QUICK = Sizes(1024, 2 << 20, (16,), (1, 2), 3, 2, 1)


@dataclass
class Case:
    """A program with its choices, and the seconds of its runs. pass_sweeps: None leaves it to the planner."""

    program: str  # "in core", "out of core" or "read and write"
    sweeps: int
    ranks: int
    tile: int
    ring: int = 0
    pass_sweeps: int | None = 1
    seconds: list[float] = field(default_factory=list)
    loaded: list[float] = field(default_factory=list)  # until synchronisation and load were over
    found: dict[str, Any] = field(default_factory=dict)

    @property
    def seconds_median(self) -> float:
        return median(self.seconds)

    @property
    def loaded_median(self) -> float | None:
        return median(self.loaded) if self.loaded else None

    def document(self) -> dict[str, Any]:
        return {**asdict(self), "median": self.seconds_median}


def cases(sizes: Sizes, in_core: bool) -> list[Case]:
    found = [Case("read and write", 1, 1, tile) for tile in sizes.tiles]
    for ranks, tile in itertools.product(sizes.ranks, sizes.tiles):
        found += [Case("in core", 1, ranks, tile)] if in_core else []
        found += [Case("out of core", 1, ranks, tile, ring) for ring in (3, 1)]
    for tile in sizes.tiles:
        sweeps, ranks = sizes.sweeps, sizes.sweeps_on
        found += [Case("in core", sweeps, ranks, tile)] if in_core else []
        found += [Case("out of core", sweeps, ranks, tile, 3, pass_sweeps) for pass_sweeps in (1, None)]
    return found


@dataclass
class Measured:
    """sizes, all cases; in_core: why there are no runs in core, None where there are."""

    sizes: Sizes
    cases: list[Case]
    no_in_core: str | None

    def one(self, program: str, sweeps: int, ranks: int, tile: int, ring: int = 0, whole: bool = False) -> Case | None:
        """The case with these choices. whole: all sweeps in passes as planned, and not one in each."""
        wanted = (program, sweeps, ranks, tile, ring, None if whole else 1)
        key = ((c.program, c.sweeps, c.ranks, c.tile, c.ring, c.pass_sweeps) for c in self.cases)
        return next((case for case, found in zip(self.cases, key, strict=True) if found == wanted), None)


def measure(directory: Path, sizes: Sizes) -> Measured:
    """All runs, taking turns; the files are removed at the end. Raises LapwingError where something fails."""
    mpi = find_mpi()
    with contextlib.ExitStack() as stack:
        try:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lapwing-p3-", dir=directory)))
        except OSError as error:
            raise RunError(f"{directory}: {error.strerror}.") from error
        group: ControlGroup | None = None
        reason = None
        try:
            group = stack.enter_context(control_group())
        except LapwingError as error:
            reason = f"no control group: {error}"
        runs = _Runs(folder, group, mpi.mpiexec, sizes.memory, _built(folder, mpi.mpicxx.command))
        runs.check(sizes)
        made = cases(sizes, group is not None)
        if group is not None:
            fill(folder / "in-core.bin", sizes.n)
        fill(folder / "out-of-core.zarr", sizes.n)
        held = {tile: stack.enter_context(matrix(folder, tile * 8 * sizes.n, sizes.n // tile)) for tile in sizes.tiles}
        for number in range(sizes.rounds):
            for case in made:
                say(f"round {number + 1} of {sizes.rounds}: {case.program}, {case.sweeps} sweeps, {case.ranks} ranks, "
                    f"tile {case.tile}" + (f", ring {case.ring}" if case.ring else ""))  # fmt: skip
                if case.program == "read and write":
                    case.seconds.append(seconds_of_way(WAYS[0], held[case.tile]))
                    case.loaded.append(
                        case.seconds[-1] * 4 / (2 * (sizes.n // case.tile))
                    )  # of the blocks read and written
                else:
                    runs.run(case, sizes.n)
        return Measured(sizes, made, reason)


def values(i: Any, j: Any) -> Any:
    return (i * 37.0 + j * 11.0) % 101.0


def fill(path: Path, n: int) -> None:
    """A matrix on disk: plain numbers, or a Zarr array whose chunks suit blocks of columns for up to four ranks."""
    if path.suffix == ".zarr":
        array = lw.create(path, (n, n), chunks=(min(256, n), max(1, n // 4)))
        for box in blocks(((0, n), (0, n)), array.chunks):
            (top, bottom), (left, right) = box
            array.write(box, values(*np.ogrid[top:bottom, left:right]))
    else:
        with open(path, "wb") as file:
            for top in range(0, n, 64):
                file.write(np.ascontiguousarray(values(*np.ogrid[top : min(top + 64, n), :n])).tobytes())
    _leave_cache(path)


def _leave_cache(path: Path) -> None:
    """What the system has of a file in memory goes: it would count as nobody's, and be there at once."""
    for file in [path] if path.is_file() else filter(Path.is_file, path.rglob("*")):
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def _built(folder: Path, mpicxx: tuple[str, ...]) -> Path:
    program = folder / "in_core"
    done = subprocess.run([*mpicxx, *_FLAGS, "-o", str(program), str(_SOURCE)], capture_output=True, text=True)
    if done.returncode != 0:
        raise BuildError(f"{_SOURCE.name} could not be built:\n{done.stderr[-2000:]}")
    return program


@dataclass(frozen=True)
class _Runs:
    """How programs are run. in_core: the program."""

    folder: Path
    group: ControlGroup | None
    mpiexec: Path
    memory: int
    in_core: Path

    def run(self, case: Case, n: int, suffix: str = "") -> None:
        """Run a case on its file, and note its times."""
        if case.program == "in core":
            file = self.folder / f"in-core{suffix}.bin"
            _leave_cache(file)
            program = [str(self.in_core), str(file), str(n), str(case.sweeps), str(case.tile)]
            case.seconds.append(float(self._output(case, program)[-1]))
            return
        file = self.folder / f"out-of-core{suffix}.zarr"
        _leave_cache(file)
        job = {"path": str(file), "memory": self.memory, **asdict(case)}
        lines = self._output(case, [sys.executable, str(_WORKER), json.dumps(job)])
        found = next(json.loads(line)["found"] for line in lines if line.startswith('{"found"'))
        if found["tile"] != case.tile:
            raise RunError(f"tiles of {case.tile} rows were asked for, and of {found['tile']} were taken.")
        case.seconds.append(found["seconds"])
        if found["loaded"] is not None:
            case.loaded.append(found["loaded"])
        case.found.update(found)

    def _output(self, case: Case, program: list[str]) -> list[str]:
        command = [str(self.mpiexec), "-n", str(case.ranks), *program] if case.ranks > 1 else program
        if self.group is not None:
            self.group.allow(self.memory + case.ranks * _OWN_BYTES[case.program])
            command = self.group.command(command)
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_SECONDS)
        if done.returncode != 0:
            text = done.stderr[-2000:] or f"exit status {done.returncode}"
            raise RunError(f"{case.program}, {case.ranks} ranks, tile {case.tile}: failed:\n{text}")
        return done.stdout.splitlines()

    def check(self, sizes: Sizes) -> None:
        """All programs give the bits of the plain loop on a small matrix; afterwards they are built and in the cache.

        Raises RunError where they do not.
        """
        n = _CHECKED
        expected = np.fromfunction(values, (n, n))
        smooth(expected, sizes.sweeps)  # in memory, which the tests compare with the plain loop
        for ranks in sizes.ranks:
            programs = [Case("out of core", sizes.sweeps, ranks, 24, 3)]
            programs += [Case("in core", sizes.sweeps, ranks, 24)] if self.group is not None else []
            for case in programs:
                suffix = f"-{ranks}"
                stored = self.folder / f"out-of-core{suffix}.zarr"
                plain = self.folder / f"in-core{suffix}.bin"
                read: dict[str, Callable[[], Any]] = {
                    "out of core": lambda stored=stored: lw.open(stored).numpy(),  # type: ignore[misc]
                    "in core": partial(np.fromfile, plain, np.float64),
                }
                fill(stored if case.program == "out of core" else plain, n)
                self.run(case, n, suffix)
                if read[case.program]().tobytes() != expected.tobytes():
                    raise RunError(f"{case.program} on {ranks} ranks computes something else than the plain loop.")


def rows(measured: Measured) -> Iterator[dict[str, Any]]:
    """Per sweeps, ranks and tile: median seconds of each program, and the ratios of times of the same round."""
    sizes = measured.sizes
    wanted = [(1, ranks, tile) for ranks in sizes.ranks for tile in sizes.tiles]
    wanted += [(sizes.sweeps, sizes.sweeps_on, tile) for tile in sizes.tiles]
    for sweeps, ranks, tile in wanted:
        find = partial(measured.one, sweeps=sweeps, ranks=ranks, tile=tile)
        three, one = find("out of core", ring=3), find("out of core", ring=1)
        whole = find("out of core", ring=3, whole=True)
        in_core = find("in core")
        copied = measured.one("read and write", 1, 1, tile)
        assert three is not None
        assert copied is not None
        yield {
            "sweeps": sweeps,
            "ranks": ranks,
            "rows": tile,
            "slab_MB": 8e-6 * tile * sizes.n,
            "in_core": in_core and in_core.seconds_median,
            "out_of_core": three.seconds_median,
            "one_block": one and one.seconds_median,
            "all_sweeps": whole and whole.seconds_median,
            "passes": whole and -(-sweeps // whole.found["pass_sweeps"]),
            "read_write": sweeps * copied.seconds_median,
            "in_core / out_of_core": _ratio(in_core, three),
            "one_block / out_of_core": _ratio(one, three),
            "out_of_core / read_write": (_ratio(three, copied) or 0.0) / sweeps,
            "loaded": three.loaded_median,
            "read_write_loaded": copied.loaded_median,
        }


def _ratio(a: Case | None, b: Case | None) -> float | None:
    """Median of the ratios within each round, in which a slow phase of the machine cancels."""
    if a is None or b is None:
        return None
    return median(x / y for x, y in zip(a.seconds, b.seconds, strict=True))
