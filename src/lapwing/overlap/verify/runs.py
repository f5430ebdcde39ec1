"""What `lapwing overlap --verify COMMAND` does: run the original and the transformed program, and compare them.

COMMAND runs in copies of the project, two of the original and two of the transformed (a race need not show at once), in all
of which it has the same to build. Where outputs differ, it runs again with launchers told to say which rank prints what: the
lines of different ranks may come in any order. Then it runs once more in one copy of each with the library of `lapwing trace`,
for exposed communication, and to see which program it is that runs.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from lapwing.errors import LapwingError, RunError
from lapwing.orphans import die_with
from lapwing.overlap.source.patch import FileChange
from lapwing.overlap.verify.copies import Project, copy_project, find_project, put
from lapwing.overlap.verify.outputs import Comparison, by_rank, compare
from lapwing.overlap.verify.programs import Programs, not_run, programs_in
from lapwing.overlap.verify.sites import match_sites
from lapwing.overlap.verify.verdict import Verification
from lapwing.temporary import scratch_directory
from lapwing.trace.pmpi.exposure import Summary, summarise
from lapwing.trace.pmpi.gathering import gather
from lapwing.trace.pmpi.library import build_library, recording_environment
from lapwing.trace.pmpi.recording import read_programs, read_recordings
from lapwing.trace.pmpi.unseen import why_unseen
from lapwing.units import duration

# With these launchers say which rank printed a line: Open MPI and Slurm, and Hydra, which takes its options from a file.
_TAGGING = {"OMPI_MCA_orte_tag_output": "1", "SLURM_LABELIO": "1"}
_HYDRA_VARIABLE, _HYDRA_OPTIONS = "HYDRA_CONFIG_FILE", "-prepend-rank\n"
# In these copies the command runs again, to be traced; the others are removed at once.
_KEPT = ("was-1", "now-1")
# A transformed program that takes so much longer than the original hangs.
_TIMES_LONGER, _SECONDS_LONGER = 10, 60
_PATIENCE = 3.0  # seconds for processes to end when told to
_LAST_LINES = 10  # of standard error, where a command failed


@dataclass(frozen=True)
class _Ran:
    """A command that ended: its status as a shell has it, None if it was ended because it took too long."""

    status: int | None
    output: bytes
    errors: str
    seconds: float


def verify(
    command: str,
    changes: Sequence[FileChange],
    sources: Sequence[Path],
    given: Path | None = None,
    limit: float = 3600.0,
) -> Verification:
    """Run ``command`` by bash in copies of the project, the original's and the transformed one's, and compare.

    given: the project's folder, found otherwise. limit: seconds for a run. Raises RefusedError where there is no project
    to copy, RunError where the original itself fails.
    """
    # Include files that change need not be among the sources that were named.
    project = find_project([*sources, *(change.path for change in changes)], Path.cwd(), given)
    with _ended_in_order(), _temporary() as folder:
        runner = _Runner(command, project, folder, limit)
        originals = [runner.original(changes, name) for name in ("was-1", "was-2")]
        slowest = max(ran.seconds for ran in originals)
        found: list[_Ran] = []
        failure = comparison = None
        for name in ("now-1", "now-2"):
            found.append(runner.transformed(changes, name, slowest))
            failure = _failure(found[-1], slowest)
            comparison = None if failure else compare([ran.output for ran in originals], found[-1].output)
            if comparison is None or not comparison.same:
                break
        if comparison is not None and not comparison.same:
            comparison = runner.compared_by_rank(changes, slowest, originals[0].output) or comparison
        verification = Verification(
            command=command,
            project=project.root,
            same=comparison is not None and comparison.same,
            failure=failure,
            comparison=comparison,
            original_seconds=tuple(ran.seconds for ran in originals),
            transformed_seconds=tuple(ran.seconds for ran in found),
        )
        return runner.traced(verification) if verification.same else verification


def _say(text: str) -> None:
    print(f"lapwing: {text}", file=sys.stderr, flush=True)


# ---- running ----------------------------------------------------------------------------------------------------------


class _NoMpi(RunError):
    """The command ran no MPI program."""


class _Runner:
    """Runs the command in copies of the project."""

    def __init__(self, command: str, project: Project, folder: Path, limit: float) -> None:
        self.command, self.project, self.folder, self.limit = command, project, folder, limit

    def original(self, changes: Sequence[FileChange], name: str, variables: dict[str, str] | None = None) -> _Ran:
        """Run the original in a new copy. Raises RunError where it fails."""
        copy = self.new_copy(name, changes, transformed=False)
        _say(f"running the original in a copy of {self.project.root}")
        ran = self.run(copy, self.limit, variables)
        if ran.status is None:
            raise RunError(
                f"--verify: the original did not end within {self.limit:g} s. Give it longer with --timeout SECONDS."
            )
        if ran.status != 0:
            raise RunError(
                f"--verify: the original ended with status {ran.status} in a copy of {self.project.root}, so there is nothing "
                f"to compare with. Is all it needs in that folder (--project)?{_last_lines(ran.errors)}"
            )
        return ran

    def transformed(
        self, changes: Sequence[FileChange], name: str, slowest: float, variables: dict[str, str] | None = None
    ) -> _Ran:
        """Run the transformed program in a new copy. slowest: the seconds that the original took."""
        copy = self.new_copy(name, changes, transformed=True)
        _say("running the transformed program in another copy")
        return self.run(copy, min(self.limit, _TIMES_LONGER * slowest + _SECONDS_LONGER), variables)

    def compared_by_rank(self, changes: Sequence[FileChange], slowest: float, plain: bytes) -> Comparison | None:
        """Compare what each rank prints; None where the launcher does not tell the ranks apart. plain: the original's
        output without ranks."""
        _say("the outputs differ: running them again to see which rank prints what")
        options = self.folder / "hydra.conf"
        options.write_text(_HYDRA_OPTIONS, encoding="ascii")
        variables = {**_TAGGING, _HYDRA_VARIABLE: os.environ.get(_HYDRA_VARIABLE, str(options))}
        originals = [self.original(changes, name, variables) for name in ("was-3", "was-4")]
        found = self.transformed(changes, "now-3", slowest, variables)
        if found.status != 0:
            return None
        *expected, now = (by_rank(ran.output, plain) for ran in (*originals, found))
        known = [output for output in expected if output is not None]
        return compare(known, now) if now is not None and len(known) == len(expected) else None

    def new_copy(self, name: str, changes: Sequence[FileChange], *, transformed: bool) -> Path:
        copy = self.folder / name
        copy_project(self.project, copy)
        put(changes, self.project, copy, transformed=transformed)
        return copy

    def run(self, copy: Path, limit: float, variables: dict[str, str] | None = None) -> _Ran:
        """Run to the end, or to the limit. Whatever it leaves behind in the copies is ended."""
        parent = os.getpid()
        begin = time.monotonic()
        with tempfile.TemporaryFile(dir=self.folder) as output, tempfile.TemporaryFile(dir=self.folder) as errors:
            process = subprocess.Popen(
                ["bash", "-c", self.command],
                cwd=copy / self.project.inside,
                env={**os.environ, **(variables or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                # A group of its own: Ctrl-C comes to this process alone, which then ends the rest in order.
                process_group=0,
                preexec_fn=lambda: die_with(parent, signal.SIGTERM),
            )
            status: int | None
            try:
                status = process.wait(limit)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                seconds = time.monotonic() - begin
                _end(process)
                _end_inside(self.folder)
            if copy.name not in _KEPT:
                shutil.rmtree(copy, ignore_errors=True)
            said = _read(output).replace(os.fsencode(copy), os.fsencode(self.project.root))
            complaints = _read(errors).decode("utf-8", "replace")
        return _Ran(status if status is None or status >= 0 else 128 - status, said, complaints, seconds)

    def traced(self, verification: Verification) -> Verification:
        """Run original and transformed with the recording library, and add what that tells: also that what was compared was
        not the transformed program."""
        _say("running both once more with the library of `lapwing trace`")
        try:
            library = build_library(_say)
            traces = [self._trace(self.folder / name, library) for name in _KEPT]
        except _NoMpi as error:
            return replace(verification, same=False, failure=str(error))
        except LapwingError as error:
            return replace(verification, untraced=str(error))
        (before, was), (after, now) = traces
        astray = not_run(was, now, self.project.root) or self._astray(after)
        if astray is not None:
            return replace(verification, same=False, failure=astray)
        changes = match_sites(before, after, self.folder / "was-1", self.folder / "now-1")
        return replace(verification, before=before, after=after, changes=changes)

    def _trace(self, copy: Path, library: Path) -> tuple[Summary, Programs]:
        directory = Path(tempfile.mkdtemp(dir=self.folder, prefix="records-"))
        own = Path(shutil.copy(library, directory / "recorder.so"))
        ran = self.run(copy, self.limit, recording_environment(own, directory))
        recordings = read_recordings(directory)
        if ran.status != 0 and not (directory / "other-mpi").exists():
            end = "did not end in time" if ran.status is None else f"ended with status {ran.status}"
            raise RunError(
                f"with the library of `lapwing trace` preloaded the command {end}, without it with status "
                "0. (What a launcher loads in a way of its own, as SimGrid's smpirun does, cannot be "
                f"traced.){_last_lines(ran.errors)}"
            )
        if not recordings:
            words = [self._where(word, copy) for word in _words(self.command)]
            unseen = why_unseen(words, directory)
            if unseen is not None:
                raise RunError(unseen.replace(f"{copy / self.project.inside}/", ""))
            raise _NoMpi(
                f"no process of `{self.command}` came through MPI_Init, so no MPI program was compared. Let the command build "
                "and run the program (`make && mpiexec -n 4 ./app`), with LD_PRELOAD left in its environment."
            )
        programs = programs_in(copy, copy / self.project.inside, read_programs(directory), recordings)
        return summarise(gather(recordings, time.monotonic()), longest=0), programs

    def _where(self, word: str, copy: Path) -> str:
        """A word of the command, as the path of a program where it may be one."""
        return str(copy / self.project.inside / word) if "/" in word else word

    def _astray(self, summary: Summary) -> str | None:
        """Whether the program in the transformed copy was built from the project itself: then nothing has been compared."""
        if self.project.root in self.folder.parents:
            return None
        for metrics in summary.sites:
            if Path(metrics.site.file).is_relative_to(self.project.root):
                return (
                    f"the command builds {metrics.site.file}, not its copy: make the paths in its build relative, so that the "
                    "transformed program can be built elsewhere"
                )
        return None


def _failure(found: _Ran, slowest: float) -> str | None:
    if found.status is None:
        return f"it did not end within {duration(round(found.seconds))}; the original took {duration(slowest)}"
    if found.status != 0:
        return f"it ended with status {found.status}, the original with 0.{_last_lines(found.errors)}"
    return None


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _last_lines(errors: str) -> str:
    lines = errors.splitlines()[-_LAST_LINES:]
    return "".join(f"\n  {line}" for line in lines)


def _read(stream: Any) -> bytes:
    stream.seek(0)
    data: bytes = stream.read()
    return data


@contextlib.contextmanager
def _temporary() -> Iterator[Path]:
    with scratch_directory("lapwing-verify-") as directory:
        yield Path(os.path.realpath(directory))


@contextlib.contextmanager
def _ended_in_order() -> Iterator[None]:
    """A request to end this process ends what it has started, too, and removes the copies."""

    def leave(number: int, _: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command's group; a launcher ends its ranks when asked to."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE)


def _end_inside(folder: Path) -> None:
    """End what still runs in the copies: ranks are in other groups than their launcher's."""
    deadline = time.monotonic() + _PATIENCE
    while left := _inside(folder):
        if time.monotonic() > deadline:
            for process in left:
                with contextlib.suppress(OSError):
                    os.kill(process, signal.SIGKILL)
            return
        time.sleep(0.05)


def _inside(folder: Path) -> list[int]:
    """The ids of the processes on this machine whose current folder lies in ``folder``."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # it ended, or is another user's
                if Path(os.readlink(entry / "cwd")).is_relative_to(folder):
                    found.append(int(entry.name))
    return found
