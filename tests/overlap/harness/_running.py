"""Runs programs on several ranks and says where two of them behave differently.

Everything a rank prints is compared exactly, rank by rank. Besides a plain run there are runs under ``strict_mpi.c``, which makes
whatever MPI merely permits happen: it shows missing waits, buffers touched in flight and deadlocks that luck would hide. These
are compiled with the compiler's own checks of addresses and bounds, and with locals that start as garbage.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest
from _building import Build, BuildFailed, Toolchain, cached, keep, known_toolchain, toolchain
from limits import scaled
from needs import FORTRAN_MPI

from lapwing.cli.main import main
from lapwing.overlap.languages.shared import strip_mining

SANITIZER = "detect_leaks=0:detect_stack_use_after_return=1"  # MPICH itself leaks
# All ranks are here: looking for networks takes MPICH longer than all that the programs do.
ON_ONE_MACHINE = {"UCX_TLS": "posix,self", "UCX_MEM_EVENTS": "no", "UCX_MODULES": ""}
RUN_SECONDS = scaled(60)


@dataclass(frozen=True)
class Schedule:
    """How a program is built and run: with the strict MPI or the plain one, and how long ranks dawdle before each call."""

    name: str
    strict: bool = False
    microseconds: int = 0
    quick: bool = False  # built without the optimiser


PLAIN = Schedule("plain")
QUICKLY = Schedule("plain", quick=True)
STRICTLY = Schedule("strict", strict=True)
SLOWLY = Schedule("strict with delays", strict=True, microseconds=300)


@dataclass(frozen=True)
class Outcome:
    """``outputs``: what each rank printed. ``status``: None for a run that did not end in time."""

    outputs: tuple[str, ...]
    errors: str
    status: int | None

    @property
    def ended_well(self) -> bool:
        return self.status == 0

    def failure(self) -> str:
        how = "did not end in time" if self.status is None else f"ended with status {self.status}"
        return f"{how}: {self.errors.strip()[:400]}"


def required(language: str) -> Toolchain:
    """The MPI of this language; skips the test that asks where there is none."""
    tools = toolchain(language)
    if tools is None:
        pytest.skip("no MPI for C here: pip install mpich" if language == "c" else FORTRAN_MPI.reason)
    return tools


# ---- running ----------------------------------------------------------------------------------------------------------


def run(
    executable: Path, language: str, ranks: int, schedule: Schedule = PLAIN, seconds: float = RUN_SECONDS
) -> Outcome:
    """Start it on this many ranks and collect what each of them prints. A run that does not end in time is ended."""
    tools = known_toolchain(language)
    with tempfile.TemporaryDirectory(prefix="lapwing-run-") as scratch:
        settings = {**ON_ONE_MACHINE, "STRICT_MPI_DELAY": str(schedule.microseconds), "ASAN_OPTIONS": SANITIZER}
        command = [tools.launch, "-n", str(ranks), "-outfile-pattern", f"{scratch}/%r.out", str(executable)]
        # A session of its own: mpiexec and all ranks end together.
        process = subprocess.Popen(
            command,
            cwd=scratch,
            env={**os.environ, **settings},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            errors, _ = process.communicate(timeout=seconds)
            status: int | None = process.returncode
        except subprocess.TimeoutExpired:
            # mpiexec hands the signal on to ranks that sit in groups of their own; killing it at once would leave them.
            process.terminate()
            try:
                errors, _ = process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                errors, _ = process.communicate()
            status = None
        files = [Path(scratch) / f"{rank}.out" for rank in range(ranks)]
        outputs = tuple(f.read_text(errors="replace") if f.exists() else "" for f in files)
    return Outcome(outputs, errors, status)


# ---- comparing --------------------------------------------------------------------------------------------------------


def first_difference(expected: Outcome, found: Outcome) -> str | None:
    """Where two runs differ, in words; None if they do not."""
    if expected.ended_well and not found.ended_well:
        return found.failure()
    if expected.status != found.status:
        return f"ended with status {found.status}, expected {expected.status}"
    for rank, (left, right) in enumerate(zip(expected.outputs, found.outputs, strict=True)):
        if left != right:
            before, after = left.splitlines(), right.splitlines()
            for number, (old, new) in enumerate(zip(before, after, strict=False), 1):
                if old != new:
                    return f"rank {rank} prints {new!r} in line {number}, expected {old!r}"
            return f"rank {rank} prints {len(after)} lines, expected {len(before)}"
    return None


class Reference:
    """An original program and what it does, found out when asked for and kept: it is always the same. Raises BuildFailed."""

    def __init__(self, sources: Sequence[Path], options: Sequence[str] = (), seconds: float = RUN_SECONDS) -> None:
        self.seconds = seconds
        self.sources = list(sources)
        self.build = Build(sources, options)
        self.outcome = functools.cache(self._outcome)

    def _outcome(self, ranks: int, schedule: Schedule) -> Outcome:
        key = f"{self.build.key(schedule.strict, schedule.quick)}-{ranks}-{schedule.microseconds}.json"
        if (entry := cached(key)) is not None:
            return Outcome(tuple(json.loads(entry.read_text(encoding="utf-8"))), "", 0)
        outcome = self._run(ranks, schedule)
        if outcome.ended_well:
            keep(key, json.dumps(outcome.outputs).encode())
        return outcome

    def _run(self, ranks: int, schedule: Schedule) -> Outcome:
        return run(
            self.build.executable(schedule.strict, schedule.quick), self.build.language, ranks, schedule, self.seconds
        )

    def is_steady(self, ranks: int, schedule: Schedule) -> bool:
        """Whether the original does the same when it runs again, and again."""
        expected = self.outcome(ranks, schedule)
        return all(first_difference(expected, self._run(ranks, schedule)) is None for _ in range(3))

    def differences(
        self,
        sources: Sequence[Path],
        ranks: Sequence[int] = (2, 3, 4),
        schedules: Sequence[Schedule] = (PLAIN, STRICTLY),
        seconds: float | None = None,
    ) -> list[str]:
        """What a changed program does that the original does not; nothing if it behaves alike. Stops at the first finding.

        Runs in which the original fails are not compared: it may rely on buffered sends, or on a number of ranks. Nor are
        those in which the original itself prints now this and now that.
        """
        build = Build(sources, self.build.options)
        for schedule in schedules:
            try:
                executable = build.executable(schedule.strict, schedule.quick)
            except BuildFailed as failure:
                return [f"does not compile: {failure}"]
            for count in ranks:
                expected = self.outcome(count, schedule)
                if not expected.ended_well:
                    continue
                found = run(executable, build.language, count, schedule, seconds or self.seconds)
                difference = first_difference(expected, found)
                if difference is not None and (not found.ended_well or self.is_steady(count, schedule)):
                    return [f"{count} ranks, {schedule.name}: {difference}"]
        return []

    def assert_unchanged_by(self, sources: Sequence[Path], thorough: bool, ranks: int = 2) -> None:
        """Assert that a changed program does what the original does.

        The everyday comparison is of one plain run of the original, which the optimiser has not seen, with one run of the changed
        program under the strict MPI and with all checks, where each kind of mistake shows. Only what differs there is compared
        with the original's run of that kind: a sort with the compiler's checks calls the program in another order. The thorough
        comparison is of all numbers of ranks and all schedules.
        """
        expected = self.outcome(ranks, PLAIN if thorough else QUICKLY)
        assert expected.ended_well, f"the original {expected.failure()}"
        if thorough:
            assert self.differences(sources, (2, 3, 4), (PLAIN, STRICTLY, SLOWLY)) == []
            return
        executable = Build(sources, self.build.options).executable(strict=True)
        found = run(executable, self.build.language, ranks, STRICTLY, self.seconds)
        difference = first_difference(expected, found)
        if difference is not None and found.ended_well:
            difference = first_difference(self.outcome(ranks, STRICTLY), found)
        assert difference is None, difference


# ---- the tool ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rewritten:
    """What ``lapwing overlap --in-place`` made of a copy of the sources. ``report``: the text of its JSON."""

    originals: tuple[Path, ...]
    sources: tuple[Path, ...]
    changed: bool
    report: str
    messages: str
    status: int


def overlap(
    sources: Sequence[Path], directory: Path, arguments: Sequence[str] = (), strip: int = strip_mining.STRIP
) -> Rewritten:
    """Copy the directory of the sources and let the tool rewrite the copy; long loops in strips of ``strip`` iterations."""
    shutil.copytree(sources[0].parent, directory)
    copies = tuple(directory / source.name for source in sources)
    report = directory.with_suffix(".json")
    messages = io.StringIO()
    with (
        contextlib.chdir(directory),
        contextlib.redirect_stdout(messages),
        contextlib.redirect_stderr(messages),
        mock.patch.object(strip_mining, "STRIP", strip),
        pytest.raises(SystemExit) as ended,
    ):
        main(["overlap", *map(str, copies), "--in-place", "--json", str(report), *arguments])
    changed = any(copy.read_bytes() != source.read_bytes() for copy, source in zip(copies, sources, strict=True))
    text = report.read_text(encoding="utf-8") if report.exists() else ""
    assert isinstance(ended.value.code, int)
    return Rewritten(tuple(sources), copies, changed, text, messages.getvalue(), ended.value.code)
