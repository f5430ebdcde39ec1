"""Builds programs, runs them on several ranks and says where two of them behave differently.

Everything a rank prints is compared exactly, rank by rank. Besides a plain run there are runs under ``strict_mpi.c``, which makes
whatever MPI merely permits happen: it shows missing waits, buffers touched in flight and deadlocks that luck would hide. These
are compiled with the compiler's own checks of addresses and bounds, and with locals that start as garbage.
"""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from limits import scaled
from needs import FORTRAN_MPI

HERE = Path(__file__).parent
STRICT = HERE / "strict_mpi.c"
CHECKS = {
    # Optimised less than the plain program: the sanitizers take most of the time to compile otherwise.
    "c": (
        "-O1",
        "-g",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=undefined",
        "-ftrivial-auto-var-init=pattern",
    ),
    "fortran": ("-g", "-fsanitize=address", "-fcheck=bounds,do", "-finit-real=inf", "-finit-integer=-99999"),
}
SANITIZER = "detect_leaks=0:detect_stack_use_after_return=1"  # MPICH itself leaks
FORTRAN_SUFFIXES = {".f", ".for", ".f77", ".f90", ".f95", ".f03", ".f08"}
RUN_SECONDS = scaled(60)
BUILD_SECONDS = scaled(120)


@dataclass(frozen=True)
class Toolchain:
    """``compile``: the compiler of programs; ``compile_c``: of C files beside them; ``launch``: mpiexec of the same MPI."""

    compile: tuple[str, ...]
    compile_c: tuple[str, ...]
    launch: str


@dataclass(frozen=True)
class Schedule:
    """How a program is run: with the strict MPI or the plain one, and how long ranks dawdle before each call."""

    name: str
    strict: bool = False
    microseconds: int = 0


PLAIN = Schedule("plain")
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


class BuildFailed(Exception):
    """The compiler's words."""


# ---- the machine's tools ----------------------------------------------------------------------------------------------


def _beside(command: str, *names: str) -> str | None:
    """The first of these programs in the directory of ``command``, links followed or not."""
    for directory in (Path(command).parent, Path(command).resolve().parent):
        for name in names:
            if (directory / name).exists():
                return str(directory / name)
    return None


@functools.cache
def toolchain(language: str) -> Toolchain | None:
    """The MPI of "c" or of "fortran" on this machine; None where there is none."""
    if language == "c":
        compiler, launch = shutil.which("mpicc"), shutil.which("mpiexec")
        if compiler is None or launch is None:
            return None
        checks = (
            "-Werror=implicit-function-declaration",
            "-Werror=incompatible-pointer-types",
            "-Werror=int-conversion",
        )
        return Toolchain((compiler, "-O2", *checks), (compiler, "-O2"), launch)
    compiler = shutil.which("mpif90")
    if compiler is None:
        return None
    beside = _beside(compiler, "mpiexec.mpich", "mpiexec"), _beside(compiler, "mpicc.mpich", "mpicc")
    if None in beside:
        return None
    return Toolchain((compiler, "-O2", "-w"), (str(beside[1]), "-O2"), str(beside[0]))


def required(language: str) -> Toolchain:
    """The MPI of this language; skips the test that asks where there is none."""
    tools = toolchain(language)
    if tools is None:
        pytest.skip("no MPI for C here: pip install mpich" if language == "c" else FORTRAN_MPI.reason)
    return tools


@functools.cache
def strict_object(language: str) -> Path:
    """The strict MPI, compiled for this language's MPI."""
    tools = toolchain(language)
    assert tools is not None
    target = Path(tempfile.mkdtemp(prefix="lapwing-strict-")) / f"strict_{language}.o"
    _compile([*tools.compile_c, "-c", str(STRICT), "-o", str(target)], target.parent)
    return target


@functools.cache
def checks(language: str) -> tuple[str, ...]:
    """The compiler's checks for strict runs; none where it does not know them."""
    tools = toolchain(language)
    assert tools is not None
    with tempfile.TemporaryDirectory(prefix="lapwing-checks-") as scratch:
        trial = Path(scratch) / ("trial.c" if language == "c" else "trial.f90")
        trial.write_text("int main(void) { return 0; }\n" if language == "c" else "end\n")
        try:
            _compile([*tools.compile, *CHECKS[language], str(trial), "-o", str(trial.with_suffix(""))], trial.parent)
        except BuildFailed:
            return ()
    return CHECKS[language]


def language_of(source: str | Path) -> str:
    return "fortran" if Path(source).suffix.lower() in FORTRAN_SUFFIXES else "c"


# ---- building and running ---------------------------------------------------------------------------------------------


def write(files: Mapping[str, str], directory: Path) -> list[Path]:
    """The files in a new directory; returns those to compile."""
    directory.mkdir(parents=True)
    for name, text in files.items():
        (directory / name).write_text(text, encoding="latin-1")
    return [directory / name for name in files if Path(name).suffix not in (".inc", ".h")]


def _compile(command: Sequence[str], directory: Path) -> None:
    done = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, errors="replace", timeout=BUILD_SECONDS, check=False
    )
    if done.returncode != 0:
        raise BuildFailed(done.stderr[:2000])


def build(sources: Sequence[Path], directory: Path, options: Sequence[str] = ()) -> Callable[[bool], Path]:
    """What builds the program when asked to, and once: with the strict MPI and the compiler's checks, or without.

    The result raises BuildFailed.
    """
    language = language_of(sources[0])
    tools = toolchain(language)
    assert tools is not None

    @functools.cache
    def linked(strict: bool) -> Path:
        place = directory / ("strict" if strict else "plain")
        place.mkdir(parents=True, exist_ok=True)
        flags = [*options, *(checks(language) if strict else ())]
        objects = []
        for source in sources:
            objects.append(str(place / (source.stem + ".o")))
            _compile([*tools.compile, "-I", str(source.parent), *flags, "-c", str(source), "-o", objects[-1]], place)
        more = [str(strict_object(language))] if strict else []
        _compile([*tools.compile, *objects, *more, "-lm", *flags, "-o", str(place / "program")], place)
        return place / "program"

    return linked


def run(
    executable: Path, language: str, ranks: int, schedule: Schedule = PLAIN, seconds: float = RUN_SECONDS
) -> Outcome:
    """Start it on this many ranks and collect what each of them prints. A run that does not end in time is ended."""
    tools = toolchain(language)
    assert tools is not None
    with tempfile.TemporaryDirectory(prefix="lapwing-run-") as scratch:
        settings = {"STRICT_MPI_DELAY": str(schedule.microseconds), "ASAN_OPTIONS": SANITIZER}
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
    """An original program, built once, and its behaviour, found out as it is asked for. Raises BuildFailed."""

    def __init__(
        self, sources: Sequence[Path], directory: Path, options: Sequence[str] = (), seconds: float = RUN_SECONDS
    ) -> None:
        self.seconds = seconds
        self.sources = list(sources)
        self.directory = directory
        self.options = tuple(options)
        self.language = language_of(sources[0])
        self.linked = build(sources, directory / "original", options)
        self.linked(False)
        self.outcome = functools.cache(self._outcome)
        self.builds: dict[tuple[Path, ...], Callable[[bool], Path]] = {}

    def _outcome(self, ranks: int, schedule: Schedule) -> Outcome:
        return run(self.linked(schedule.strict), self.language, ranks, schedule, self.seconds)

    def built(self, sources: tuple[Path, ...]) -> Callable[[bool], Path]:
        if sources not in self.builds:
            self.builds[sources] = build(sources, self.directory / f"changed{len(self.builds)}", self.options)
        return self.builds[sources]

    def is_steady(self, ranks: int, schedule: Schedule) -> bool:
        """Whether the original does the same when it runs again, and again."""
        expected = self.outcome(ranks, schedule)
        return all(first_difference(expected, self._outcome(ranks, schedule)) is None for _ in range(3))

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
        linked = self.built(tuple(sources))
        for schedule in schedules:
            try:
                executable = linked(schedule.strict)
            except BuildFailed as failure:
                return [f"does not compile: {failure}"]
            for count in ranks:
                expected = self.outcome(count, schedule)
                if not expected.ended_well:
                    continue
                found = run(executable, self.language, count, schedule, seconds or self.seconds)
                difference = first_difference(expected, found)
                if difference is not None and (not found.ended_well or self.is_steady(count, schedule)):
                    return [f"{count} ranks, {schedule.name}: {difference}"]
        return []


# ---- the tool ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rewritten:
    """What ``lapwing overlap --in-place`` made of a copy of the sources. ``report``: the text of its JSON."""

    sources: tuple[Path, ...]
    changed: bool
    report: str
    messages: str
    status: int


_SHORT_STRIPS = """
import sys
from lapwing.cli.main import main
from lapwing.overlap import strips
strips.STRIP = int(sys.argv.pop(1))
main()
"""


def overlap(
    sources: Sequence[Path],
    directory: Path,
    arguments: Sequence[str] = (),
    seconds: float = scaled(300),
    strip: int | None = None,
) -> Rewritten:
    """Copy the directory of the sources and let the tool rewrite the copy; long loops in strips of ``strip`` turns."""
    shutil.copytree(sources[0].parent, directory)
    copies = tuple(directory / source.name for source in sources)
    report = directory.with_suffix(".json")
    tool = [sys.executable, "-m", "lapwing"]
    done = subprocess.run(
        [
            *(tool if strip is None else [sys.executable, "-c", _SHORT_STRIPS, str(strip)]),
            "overlap",
            *map(str, copies),
            "--in-place",
            "--json",
            str(report),
            *arguments,
        ],
        cwd=directory,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=seconds,
        check=False,
    )
    changed = any(copy.read_bytes() != source.read_bytes() for copy, source in zip(copies, sources, strict=True))
    text = report.read_text(encoding="utf-8") if report.exists() else ""
    return Rewritten(copies, changed, text, done.stdout + done.stderr, done.returncode)
