"""Starting the ranks of `lapwing run -n N`, listening to them, and leaving none behind.

However it ends (done, refused, a rank killed, Ctrl-C, this process killed), all ranks end within seconds:
the launcher gets a signal when this process ends, each rank one when its own parent ends, and the first rank reads
from standard input, which this process holds open for as long as it lives.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import selectors
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from lapwing.codegen.compilation.cache import cache_directory
from lapwing.codegen.compilation.toolchain import find_mpi
from lapwing.errors import LapwingError, RefusedError, RunError
from lapwing.launch.frames import ALIVE, FrameReader
from lapwing.launch.job import Emit, Report, stopped_text
from lapwing.launch.lab import Lab, Wires
from lapwing.launch.processes import end_marked, signal_name
from lapwing.launch.progress import ProgressBar
from lapwing.launch.search_path import without_current_directory
from lapwing.launch.supervision import ended_inside
from lapwing.orphans import die_with
from lapwing.temporary import remove_abandoned

_POLL_SECONDS = 0.1
_PATIENCE = 3.0  # seconds for the launcher to end its ranks when told to
_LAST_WORDS = 20.0  # seconds between the outcome and the end of the launcher
_LAST_GASPS = 5.0  # seconds between a rank's failure and the end of the launcher
# Signals that end a rank from outside or by a fault; ranks themselves end with status 0 or 1.
_FATAL = {signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL}
_TAIL = 8192  # bytes of output in which the launcher's account of a dead rank is looked for


@dataclass
class _Ending:
    """What has been heard of how the run ends."""

    report: Report | None = None
    failure: LapwingError | None = None
    stops: str | None = None
    ranks: list[tuple[str, int]] = field(default_factory=list)  # host and process id
    said: dict[str, str] = field(default_factory=dict)  # error messages of single ranks, and the first rank to say so
    tail: bytes = b""
    user_code: str | None = None  # the file that ranks are importing
    cut: bool = False  # a link of the lab went down
    deadline: float | None = None  # for the launcher to end by itself

    @property
    def known(self) -> bool:
        return self.report is not None or self.failure is not None


class Task(Protocol):
    """What the ranks are to do, as a text that fits a command line."""

    def to_json(self) -> str: ...


def launch(
    job: Task,
    ranks: int,
    hosts: Path | Lab | None,
    emit: Emit,
    progress: ProgressBar,
    environment: dict[str, str],
    module: str = "lapwing.session.worker",
) -> Report:
    """Run a job on ranks started by mpiexec. ``environment`` is what the launcher and the ranks see.

    hosts: where the ranks go: a host file, the lab, or this machine. module: what every rank runs, as worker.py does.
    Raises the first rank's LapwingError; RunError where a rank failed, was killed, lost its link in the lab, or the
    launcher did not work; KeyboardInterrupt after Ctrl-C.
    """
    mpiexec = find_mpi().mpiexec
    cache_directory()  # refused here it is refused once
    token = secrets.token_hex(16)
    worker = [sys.executable, "-m", module, token, job.to_json()]
    command = [str(mpiexec), *placed(mpiexec, ranks, hosts, worker)]
    settings = {**_launcher_settings(), **(hosts.settings() if isinstance(hosts, Lab) else {})}
    watch = hosts.watch(ranks) if isinstance(hosts, Lab) else contextlib.nullcontext()
    with watch as wires, _Signals() as signals:
        process = _start(command, {**without_current_directory(environment), **settings})
        listener = _Listener(process, wires, token, emit, progress)
        try:
            ending = listener.listen(signals)
        finally:
            progress.close()
            _end(process)
            end_marked(token, _PATIENCE)
            remove_abandoned()  # of ranks that were killed
    if signals.seen == signal.SIGINT:
        raise KeyboardInterrupt
    if signals.seen is not None:
        raise RunError(f"stopped by {signals.seen.name}; all ranks were ended.")
    return _outcome(ending, process.returncode, mpiexec)


def _start(command: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
    parent = os.getpid()

    def before_exec() -> None:
        die_with(parent, signal.SIGTERM)

    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            # A group of its own: Ctrl-C comes to this process alone, which then ends the rest in order.
            process_group=0,
            preexec_fn=before_exec,
        )
    except OSError as error:
        raise RunError(f"{command[0]} cannot be started: {error.strerror}.") from error
    assert process.stdin is not None
    with contextlib.suppress(OSError):  # it ended at once; its status says more
        process.stdin.write(ALIVE)
        process.stdin.flush()
    return process


class _Signals:
    """Notes Ctrl-C and requests to end while the ranks run, instead of raising in the middle of something."""

    def __init__(self) -> None:
        self.seen: signal.Signals | None = None
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> _Signals:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # What was started to ignore a signal (nohup, a background job) goes on ignoring it.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _note(self, number: int, _: Any) -> None:
        self.seen = self.seen or signal.Signals(number)


class _Listener:
    """Passes on what the ranks print, and gathers what they report."""

    def __init__(
        self, process: subprocess.Popen[bytes], wires: Wires | None, token: str, emit: Emit, progress: ProgressBar
    ) -> None:
        self.process, self.wires, self.emit, self.progress = process, wires, emit, progress
        self.frames = FrameReader(token)
        self.ending = _Ending()
        self._line = b""

    def listen(self, signals: _Signals) -> _Ending:
        """Until the launcher ends, a signal asks to stop, a link is cut, or the launcher outlasts the outcome too long."""
        output, errors = self.process.stdout, self.process.stderr
        assert output is not None
        assert errors is not None
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ, self._hear_output)
            selector.register(errors, selectors.EVENT_READ, self._hear_error)
            if self.wires is not None:
                selector.register(self.wires.output, selectors.EVENT_READ, self._hear_wires)
            while signals.seen is None and not self.ending.cut and not self._is_late():
                # Asked before reading: what was written before the end is then read.
                ended = self.process.poll() is not None
                ready = selector.select(0 if ended else _POLL_SECONDS)
                for key, _ in ready:
                    data = os.read(key.fd, 1 << 16)
                    if data:
                        key.data(data)
                    else:
                        selector.unregister(key.fileobj)
                if ended and not ready:
                    break
                if not selector.get_map() and not ended:
                    time.sleep(_POLL_SECONDS)
        self._print(self.frames.rest())
        self._hear_error(b"\n" if self._line else b"")
        return self.ending

    def _hear_wires(self, data: bytes) -> None:
        """MPI would wait many minutes for a link that is gone, as TCP does."""
        assert self.wires is not None
        host = self.wires.cut(data)
        if host is not None and not self.ending.known:
            self.ending.failure = RunError(f"the link of {host} went down; all ranks were ended.")
            self.ending.cut = True

    def _is_late(self) -> bool:
        return self.ending.deadline is not None and time.monotonic() > self.ending.deadline

    def _hear_output(self, data: bytes) -> None:
        text, events = self.frames.feed(data)
        self._print(text)
        for kind, value in events:
            self._heed(kind, value)

    def _heed(self, kind: str, value: Any) -> None:
        ending = self.ending
        match kind:
            case "ranks":
                ending.ranks = [(host, process) for host, process in value]
            case "report":
                ending.report = Report(value["document"], tuple(value["differences"]))
            case "error":
                text = value["text"]
                ending.failure = RefusedError(*text.splitlines()) if value["refused"] else RunError(text)
            case "user code":
                ending.user_code = value
            case _:
                if kind == "stops":
                    ending.stops = value
                self.emit(kind, value)
        if ending.known:
            self.progress.close()
            ending.deadline = ending.deadline or time.monotonic() + _LAST_WORDS

    def _print(self, text: bytes) -> None:
        if text:
            self.ending.tail = (self.ending.tail + text)[-_TAIL:]
            print(text.decode(errors="replace"), end="", flush=True)

    def _hear_error(self, data: bytes) -> None:
        """Pass on line by line; a rank's own error message is kept, to be said last."""
        self.ending.tail = (self.ending.tail + data)[-_TAIL:]
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            text = line.decode(errors="replace")
            said = re.match(r"lapwing: (rank \d+): (.*)", text)
            if said:
                self.ending.said.setdefault(said[2], said[1])
                # MPI_Abort waits for messages that are in flight, and the launcher for machines, both without end.
                self.ending.deadline = self.ending.deadline or time.monotonic() + _LAST_GASPS
            else:
                self.progress.write(text + "\n")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the launcher; it ends the ranks when asked to, and has little time for it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            break
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE)
    for stream in (process.stdin, process.stdout, process.stderr):
        with contextlib.suppress(OSError):
            if stream is not None:
                stream.close()


def _outcome(ending: _Ending, status: int, mpiexec: Path) -> Report:
    if ending.failure is not None:
        raise ending.failure
    if ending.report is not None:
        if status != 0:
            print(f"lapwing: the run is complete, but {mpiexec} {_ended(status)}.", file=sys.stderr)
        return ending.report
    if ending.said:
        text = "\nlapwing: ".join(f"{rank}: {text}" for text, rank in ending.said.items())
        raise RunError(stopped_text(text, ending.stops) if ending.stops else text)
    dead = next(_deaths(ending), None)
    if dead is not None:
        raise RunError(f"{dead}{_meanwhile(ending)}; all ranks were ended.")
    if ending.user_code is not None and status >= 0:
        raise RunError(ended_inside(ending.user_code, status, "while ranks imported it"))
    where = "all ranks were ended" if status < 0 else "its own messages are above"
    raise RunError(f"{mpiexec} {_ended(status)} before the run was done; {where}.")


def _meanwhile(ending: _Ending) -> str:
    return "" if ending.user_code is None else f" while ranks imported {ending.user_code}"


def _ended(status: int) -> str:
    if status < 0:
        return f"was killed by {signal_name(-status)}"
    return f"ended with status {status}"


def _deaths(ending: _Ending) -> Iterator[str]:
    """What MPICH (Hydra) or Open MPI say of a rank that was killed."""
    tail = ending.tail.decode(errors="replace")
    hydra = re.search(r"PID (\d+) RUNNING AT (\S+)\s+=\s+EXIT CODE: (\d+)", tail)
    if hydra:
        process, host, code = int(hydra[1]), hydra[2], int(hydra[3])
        same = [rank for rank, (_, other) in enumerate(ending.ranks) if other == process]
        who = f"rank {same[0]} (process {process} on {host})" if len(same) == 1 else f"process {process} on {host}"
        # With several hosts Hydra leaves the string out; the code is the signal's number then, too.
        by_signal = re.search(r"EXIT STRING: .*\(signal \d+\)", tail) or code in _FATAL
        yield f"{who} was killed by {signal_name(code)}" if by_signal else f"{who} ended with status {code}"
    open_mpi = re.search(r"process rank (\d+) with PID \d+ on node (\S+) exited on\s+signal (\d+)", tail)
    if open_mpi:
        yield f"rank {open_mpi[1]} (on {open_mpi[2]}) was killed by {signal_name(int(open_mpi[3]))}"


def placed(mpiexec: Path, ranks: int, hosts: Path | Lab | None, worker: list[str]) -> list[str]:
    """What mpiexec is told in order to start a worker on every rank."""
    if hosts is None:
        return ["-n", str(ranks), *worker]
    version = _version(mpiexec)
    if isinstance(hosts, Lab):
        if "HYDRA" not in version:
            raise RefusedError(
                f"--hosts lab works with MPICH, whose launcher is Hydra; {mpiexec} says: {version.strip()[:80]!r}. "
                'Put MPICH\'s mpicxx first on PATH (`pip install "lapwing[mpich]"`), or set LAPWING_MPICXX to it.'
            )
        return hosts.arguments(ranks, worker)
    is_open_mpi = re.search("open.?mpi|openrte|prrte", version, re.IGNORECASE)
    if is_open_mpi:  # which takes few variables to other hosts
        passed = [word for name in ("PYTHONPATH", "PYTHONSAFEPATH") for word in ("-x", name)]
        return ["-n", str(ranks), "--hostfile", str(hosts.resolve()), *passed, *worker]
    return ["-n", str(ranks), "-f", str(hosts.resolve()), *worker]


def _version(mpiexec: Path) -> str:
    """What the launcher says of itself."""
    try:
        said = subprocess.run(
            [str(mpiexec), "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunError(f"`{shlex.join([str(mpiexec), '--version'])}` does not work: {error}.") from error
    return said.stdout + said.stderr


def _launcher_settings() -> dict[str, str]:
    """What Open MPI needs to start as many ranks as were asked for, in a container too; others do not look at it."""
    settings = {
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    }
    if os.geteuid() == 0:
        names = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
        settings.update({prefix + name: "1" for name in names for prefix in ("", "PRTE_")})
    return {name: value for name, value in settings.items() if name not in os.environ}
