"""Ctrl-C ends compiled loops that last, or never end, also where they are one computation of one tile.

Started as a program, this file makes one call, after a short one that builds what it needs.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from everyday import everyday
from on_ranks import mpiexec
from processes import WITH_HELPERS, default_signals

import lapwing as lw

SECONDS = 120
SOON = 20  # and not for ever, on a busy machine


@lw.nest
def counted(u, last):
    """A sequential region."""
    n = 0
    while True:
        n += 1
        u[n % 7] += 1
        if n == last:
            break
    return n


@lw.nest
def root(u, tol):
    """A while loop in a tile."""
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            x = 1.0 + u[i, j]
            while abs(x * x - 2.0) > tol:
                x = 0.5 * (x + 2.0 / x)
            u[i, j] = x


@lw.nest
def swept(u, tol):
    """Python's own loop around a nest."""
    largest = 1.0
    while largest > tol:
        largest = 0.0
        for i in range(1, u.shape[0]):
            for j in range(1, u.shape[1]):
                u[i, j] = 0.5 * (u[i - 1, j] + u[i, j - 1])
                largest = max(largest, u[i, j])
    return largest


CALLS: dict[str, tuple[Any, Any, Any, Any]] = {  # the nest, its array, and arguments that end and do not end it
    "region": (counted, np.zeros(7), 5, -1),
    "tile": (root, np.zeros((30, 20)), 1e-9, -1.0),
    "driver": (swept, np.ones((30, 20)), 2.0, -1.0),
}


def call(name: str, how: str) -> None:
    nest, u, ends, never = CALLS[name]
    nest(u, ends)
    if how == "handled":
        signal.signal(signal.SIGINT, lambda *_: print("handled", flush=True))
        never = 400_000_000 if name == "region" else ends
    print("begun", os.getpid(), flush=True)
    try:
        if how == "thread":  # the main thread waits, and is where Python raises
            threading.Thread(target=nest, args=(u, never), daemon=True).start()
            time.sleep(SECONDS)
        nest(u, never)
        print("over", flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        if how == "raises":
            raise
        nest(u, ends)  # and all goes on
        print("alive", flush=True)


@contextmanager
def running(*command: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        command, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*WITH_HELPERS.values(), str(ARRAYS)])},
        preexec_fn=default_signals, start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # ranks hold the pipe as well
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=SOON)


ARRAYS = Path(sys.modules["on_ranks"].__file__ or "").parent


def begun(process: subprocess.Popen[str], ranks: int = 1) -> list[int]:
    """The ranks' processes, once all of them are in the call that lasts."""
    assert process.stdout is not None
    found: list[int] = []
    while len(found) < ranks:
        line = process.stdout.readline()
        assert line, found
        if line.startswith("begun"):
            found.append(int(line.split()[1]))
    time.sleep(0.3)
    return found


@pytest.mark.parametrize("name", everyday(CALLS, ("region", "tile")))
def test_alone(name: str) -> None:
    with running(sys.executable, __file__, name, "once") as process:
        begun(process)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=SOON)
        assert said.split() == ["interrupted", "alive"]
        assert process.returncode == 0


@pytest.mark.long
def test_the_main_thread_is_not_kept_by_another() -> None:
    with running(sys.executable, __file__, "region", "thread") as process:
        begun(process)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=SOON)
        assert said.split() == ["interrupted", "alive"]


def test_a_handler_of_the_users_is_left_alone() -> None:
    """Python calls it when the loop is over; it is not the loop's end."""
    with running(sys.executable, __file__, "region", "handled") as process:
        begun(process)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=SECONDS)
        assert sorted(said.split()) == ["handled", "over"]


@pytest.mark.mpi
@pytest.mark.xfail(strict=False, reason="once in some runs a rank goes on: not understood yet")
@pytest.mark.parametrize("whom", ["launcher", pytest.param("rank", marks=pytest.mark.long)])
@pytest.mark.parametrize("name", ["region", pytest.param("tile", marks=pytest.mark.long)])
def test_on_ranks(name: str, whom: str) -> None:
    with running(mpiexec(), "-n", "2", sys.executable, __file__, name, "raises") as process:
        ranks = begun(process, 2)
        os.kill(process.pid if whom == "launcher" else ranks[0], signal.SIGINT)
        said, _ = process.communicate(timeout=SOON)
        assert process.returncode != 0
        assert "over" not in said
        until = time.monotonic() + SOON
        while any(Path(f"/proc/{rank}/exe").exists() for rank in ranks):
            assert time.monotonic() < until
            time.sleep(0.05)


if __name__ == "__main__":
    call(*sys.argv[1:])
