"""What mpiexec starts on every rank for `lapwing run -n N`: ``python -m lapwing.session.worker TOKEN JOB``.

The first rank reports to the command through marked lines on standard output (frames.py). Ranks end with status 0 also
where the run was refused: the status that counts is the command's.
"""

from __future__ import annotations

import gc

if __name__ == "__main__":
    gc.set_threshold(20_000)  # before all other imports: see lapwing/__main__.py

import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

from lapwing.api.nest import Nest
from lapwing.errors import LapwingError, RefusedError
from lapwing.launch.frames import ALIVE, FrameWriter
from lapwing.launch.job import Emit, Job, Report
from lapwing.launch.loading import load_nest, split_target
from lapwing.launch.search_path import forget_environment
from lapwing.launcher import launcher_rank
from lapwing.orphans import die_with
from lapwing.runtime.mpi import communicator
from lapwing.runtime.mpi.ending import abort
from lapwing.session.session import run_session

# What a job's text asks for, done by all ranks together; the report is the first rank's.
Work = Callable[[str, Any, Emit], Report | None]


def main(work: Work) -> None:
    die_with(os.getppid(), signal.SIGKILL)
    forget_environment()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")  # as the command reads it, in every locale
    token, text = sys.argv[1:3]
    frames = FrameWriter(os.dup(1), token)
    threading.Thread(target=_end_with_command, daemon=True).start()
    try:
        comm = communicator.world("the start of the run")
    except (LapwingError, ImportError, RuntimeError) as error:
        # Without MPI there is no agreeing: every rank says so, and the command says it once.
        _fail(launcher_rank(), f"MPI does not start: {error}")
    rank = comm.Get_rank()
    if rank != 0:
        # The user's file is imported on every rank; what it prints should be seen once.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        _report(work, text, comm, frames)
    except BaseException as error:
        if os.environ.get("LAPWING_DEBUG"):
            traceback.print_exc()
        described = str(error) if isinstance(error, LapwingError) else f"{type(error).__name__}: {error}"
        print(f"lapwing: rank {rank}: {described}", file=sys.stderr, flush=True)
        abort(comm)


def run_job(text: str, comm: Any, emit: Emit) -> Report | None:
    """`lapwing run`: what a Job asks for."""
    job = Job.from_json(text)
    return run_session(job, load_on_ranks(job.target, comm, emit), comm, emit)


def load_on_ranks(target: str, comm: Any, emit: Emit) -> Nest:
    """The nest that FILE[:NEST] means, on every rank; the command knows meanwhile what ranks do. Collective.

    Raises LapwingError as load_nest does, on every rank the same.
    """
    if comm.Get_rank() == 0:
        emit("user code", str(split_target(target)[0]))
    communicator.meet(comm)  # said before any rank can come to harm
    nest = communicator.agree(comm, lambda: load_nest(target))
    if comm.Get_rank() == 0:
        emit("user code", None)
    return nest


def _report(work: Work, text: str, comm: Any, frames: Emit) -> None:
    processes = comm.gather((communicator.host(), os.getpid()), root=0)
    if comm.Get_rank() == 0:
        frames("ranks", processes)
    try:
        report = work(text, comm, frames)
    except LapwingError as error:  # the same on every rank
        if comm.Get_rank() == 0:
            if os.environ.get("LAPWING_DEBUG"):
                traceback.print_exc()
            frames("error", {"refused": isinstance(error, RefusedError), "text": str(error)})
        return
    if report is not None:
        frames("report", {"document": report.document, "differences": report.differences})


def _end_with_command() -> None:
    """End this rank when the command that started it is gone, which shows as the end of standard input.

    Launchers pass standard input to the first rank alone; other ranks, and launchers that pass none, find it empty.
    """
    heard = b""
    while len(heard) < len(ALIVE):
        data = os.read(0, len(ALIVE) - len(heard))
        if not data:
            return
        heard += data
    if heard != ALIVE:
        return
    while os.read(0, 4096):
        continue
    os.kill(os.getpid(), signal.SIGKILL)  # the launcher then ends the others


def _fail(rank: int, text: str) -> NoReturn:
    print(f"lapwing: rank {rank}: {text}", file=sys.stderr, flush=True)
    os._exit(1)  # finalising MPI would wait for ranks that have not failed


if __name__ == "__main__":
    main(run_job)
