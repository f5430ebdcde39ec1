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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from everyday import everyday
from limits import scaled
from on_ranks import mpiexec
from processes import WITH_HELPERS, default_signals

import lapwing as lw
from lapwing.runtime.runner import Runner

SECONDS = scaled(120)
SOON = scaled(20)  # and not for ever, on a busy machine


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
def halved(u, tol):
    """A while loop in a tile."""
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            x = 1.0 + u[i, j]
            while x > tol:
                x = 0.5 * x
            u[i, j] = x


@lw.nest
def root(u, tol):
    """One in which Python could raise, so that ranks tell each other more."""
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


ON_RANKS = ("raises", "distributed")  # arrays are NumPy's, or distributed ones

CALLS: dict[str, tuple[Any, Any, Any, Any]] = {  # the nest, its array, and arguments that end and do not end it
    "region": (counted, np.zeros(7), 5, -1),
    "tile": (halved, np.zeros((30, 20)), 1e-9, -1.0),
    "trap": (root, np.zeros((30, 20)), 1e-9, -1.0),
    "driver": (swept, np.ones((30, 20)), 2.0, -1.0),
}


def say(text: str) -> None:
    """A line in one piece, which lines of other ranks do not come into."""
    os.write(sys.stdout.fileno(), f"{text}\n".encode())


def interrupts_itself(run: Callable[..., int]) -> Callable[..., int]:
    """Ctrl-C comes once, after Python has looked for it and before compiled code does."""
    left = [signal.SIGINT]

    def interrupted(*arguments: Any) -> int:
        if left:
            signal.raise_signal(left.pop())
        return run(*arguments)

    return interrupted


def call(name: str, how: str) -> None:
    nest, u, ends, never = CALLS[name]
    if how == "distributed":
        u = lw.zeros(u.shape)
    if how == "at once":
        Runner._run = interrupts_itself(Runner._run)  # type: ignore[method-assign]
    else:
        for _ in range(3):  # now it is known how long that takes
            nest(u, ends)
    if how == "handled":
        signal.signal(signal.SIGINT, lambda *_: say("handled"))
        never = 400_000_000 if name == "region" else ends
    say(f"begun {os.getpid()}")
    try:
        if how == "thread":  # the main thread waits, and is where Python raises
            threading.Thread(target=nest, args=(u, never), daemon=True).start()
            time.sleep(SECONDS)
        nest(u, never)
        say("over")
    except KeyboardInterrupt:
        say("interrupted")
        if how in ON_RANKS:
            raise
        nest(u, ends)  # and all goes on
        say("alive")


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


def test_before_compiled_code_looks() -> None:
    with running(sys.executable, __file__, "region", "at once") as process:
        said, _ = process.communicate(timeout=SECONDS)
        assert said.split("\n", 1)[1].split() == ["interrupted", "alive"]


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
@pytest.mark.parametrize("whom", everyday(["launcher", "rank"], ["launcher"]))
@pytest.mark.parametrize(
    "words", everyday(["region, raises", "tile, raises", "tile, distributed", "trap, raises"], ["region, raises"])
)
def test_on_ranks(words: str, whom: str) -> None:
    with running(mpiexec(), "-n", "2", sys.executable, __file__, *words.split(", ")) as process:
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
