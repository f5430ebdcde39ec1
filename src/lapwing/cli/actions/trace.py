"""What `lapwing trace` does: run a command with the recording library, read what the ranks recorded, report it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from lapwing.errors import RefusedError
from lapwing.files import check_writable, write_json
from lapwing.orphans import die_with
from lapwing.temporary import remove_abandoned, scratch_directory
from lapwing.trace.pmpi.callsites import CallSite
from lapwing.trace.pmpi.exposure import SiteMetrics, Summary, Wait, summarise
from lapwing.trace.pmpi.gathering import Run, gather
from lapwing.trace.pmpi.library import build_library, recording_environment
from lapwing.trace.pmpi.perfetto import chrome_trace
from lapwing.trace.pmpi.recording import Recording, read_recordings
from lapwing.trace.pmpi.unseen import why_unseen
from lapwing.units import duration


@dataclass(frozen=True)
class Wishes:
    """The options of the command line."""

    top: int
    waits: int
    records: int
    json_path: Path | None
    timeline_path: Path | None


def trace(words: Sequence[str], wishes: Wishes) -> int:
    """Run a command, report on it, and return its exit status.

    Raises RefusedError where it cannot be started, BuildError where the library cannot be built, RunError and
    LapwingError where its recordings cannot be read or results not written.
    """
    from lapwing.cli.tables.trace import show

    program = _find(words[0])
    for option, path in (("--json", wishes.json_path), ("--timeline", wishes.timeline_path)):
        if path is not None:
            check_writable(path, option)
    library = build_library(_say)
    with _directory() as directory:
        # A copy: ranks on other hosts see the directory, not this user's cache.
        own = shutil.copy(library, directory / "recorder.so")
        variables = {**recording_environment(Path(own), directory), "LAPWING_TRACE_RECORDS": str(wishes.records)}
        status = _run([program, *words[1:]], {**os.environ, **variables})
        ended = time.monotonic()
        recordings = read_recordings(directory)
        if not recordings:
            _say(_nothing(words, directory, status))
            return status
        run = gather(recordings, ended)
    summary = summarise(run, wishes.waits)
    sys.stdout.flush()
    for note in _notes(recordings, summary, status):
        _say(note)
    if wishes.json_path is not None:
        write_json(wishes.json_path, _document(words, status, run, summary))
    if wishes.timeline_path is not None:
        write_json(wishes.timeline_path, chrome_trace(run))
    show(summary, wishes.top)
    return status


def _say(text: str) -> None:
    print(f"lapwing: {text}", file=sys.stderr, flush=True)


def _find(name: str) -> str:
    program = shutil.which(name)
    if program is None:
        reason = "it is a directory" if os.path.isdir(name) else "no such program"
        if os.path.isfile(name) and "/" in name:
            reason = "it is not executable (chmod +x)"
        raise RefusedError(f"{name}: cannot be started: {reason}. Expected a command such as mpiexec after --.")
    return program


@contextmanager
def _directory() -> Iterator[Path]:
    """A directory for the recordings, here if possible: ranks on other hosts usually share the current directory."""
    place = Path() if os.access(".", os.W_OK | os.X_OK) else None
    remove_abandoned(place)
    with scratch_directory(".lapwing-trace-", place) as directory:
        yield directory.resolve()


def _run(command: Sequence[str], environment: dict[str, str]) -> int:
    """Run to the end and return the status as a shell would; the command gets all signals this process gets."""
    parent = os.getpid()
    try:
        process = subprocess.Popen(command, env=environment, preexec_fn=lambda: die_with(parent, signal.SIGTERM))
    except OSError as error:
        raise RefusedError(f"{command[0]}: cannot be started: {error.strerror}.") from error

    def pass_on(number: int, _: FrameType | None) -> None:
        # Ctrl-C at a terminal comes to the command by itself.
        if number != signal.SIGINT:
            process.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        status = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return status if status >= 0 else 128 - status


# --- what went wrong ------------------------------------------------------------


def _nothing(words: Sequence[str], directory: Path, status: int) -> str:
    """Why there is no recording."""
    unseen = why_unseen(words, directory)
    if unseen is not None:
        return unseen
    failed = f" and ended with status {status}" if status else ""
    return (
        f"nothing was recorded: no process of `{' '.join(words)}` came through MPI_Init{failed}. Either the program does "
        "not use MPI (through MPI_Init or MPI_Init_thread), or it removes LD_PRELOAD from its environment."
    )


def _notes(recordings: Sequence[Recording], summary: Summary, status: int) -> Iterator[str]:
    """What a reader of the report must know about what it rests on."""
    size = recordings[0].size
    missing = sorted(set(range(size)) - {recording.rank for recording in recordings})
    if missing:
        yield (
            f"no recording of {_ranks(missing)} of {size}: the report is of the others. (On other hosts, run "
            "lapwing in a directory that all of them share.)"
        )
    for state in dict.fromkeys(recording.state for recording in recordings if not recording.finalized):
        ranks = [recording.rank for recording in recordings if recording.state == state]
        yield f"{_ranks(ranks)} {state}; the report is of what was recorded until then."
    for wait in summary.waits:
        if not wait.ended:
            yield f"rank {wait.rank} was still in {wait.site} after {duration(wait.seconds)}."
    if summary.dropped:
        yield (
            f"{summary.dropped} calls came after a rank's first ones, which alone are recorded one by one: they are "
            "counted, but late partners, transfers, overlap and the longest waits are of the first only (--records)."
        )
    if status:
        yield f"the command ended with status {status}."


def _ranks(ranks: Sequence[int]) -> str:
    shown = ", ".join(map(str, ranks[:8])) + (", …" if len(ranks) > 8 else "")
    return f"rank {shown}" if len(ranks) == 1 else f"ranks {shown}"


# --- the document of --json -------------------------------------------------------


def _document(words: Sequence[str], status: int, run: Run, summary: Summary) -> dict[str, Any]:
    return {
        "command": list(words),
        "status": status,
        "mpi": run.recordings[0].library,
        "seconds": summary.seconds,
        "parallel_efficiency": summary.parallel_efficiency,
        "load_balance": summary.load_balance,
        "communication_efficiency": summary.communication_efficiency,
        "hidden": summary.hidden,
        "dropped": summary.dropped,
        "ranks": [asdict(rank) for rank in summary.ranks],
        "call_sites": [_site_metrics(metrics) for metrics in summary.sites],
        "longest_waits": [_wait(wait) for wait in summary.waits],
    }


def _site(site: CallSite) -> dict[str, Any]:
    return {"function": site.function, "file": site.file, "line": site.line, "inside": site.inside}


def _site_metrics(metrics: SiteMetrics) -> dict[str, Any]:
    values = {name: value for name, value in vars(metrics).items() if name != "site"}
    return {**_site(metrics.site), **values, "hidden": metrics.hidden}


def _wait(wait: Wait) -> dict[str, Any]:
    values = {name: value for name, value in vars(wait).items() if name not in ("site", "partner_site")}
    partner = None if wait.partner_site is None else _site(wait.partner_site)
    return {**values, "site": _site(wait.site), "partner_site": partner}
