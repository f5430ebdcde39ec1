"""What may go wrong in a run on several ranks, under every engine: a clear line and an end, or a stated fallback; never a
hang.

Started by mpiexec as a program, this file runs one scenario, a function below, on the ranks of that run.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from everyday import everyday, one_of
from limits import scaled
from needs import TASKSET
from optimising import optimise_little
from processes import WITH_HELPERS, default_signals

import lapwing as lw
from lapwing.api.calls.run import run
from lapwing.planner.plan import ENGINES
from lapwing.runtime import execute, runner
from lapwing.runtime.arrays import segments
from lapwing.runtime.mpi import communicator
from lapwing.runtime.mpi.patience import patience_seconds
from lapwing.runtime.mpi.start import start_mpi
from lapwing.runtime.tuning import Tuning, allowed_cpus

SECONDS = scaled(120)  # for a run that ends by itself, on a machine that is busy
PATIENCE = round(scaled(2))  # for messages and for ranks that start, all of them at once
GONE = scaled(60)  # for a run to end after something has happened to it
SCENARIOS: dict[str, Callable[..., None]] = {}


def scenario(function: Callable[..., None]) -> Callable[..., None]:
    SCENARIOS[function.__name__] = function
    return function


# -- on the ranks of a run -------------------------------------------------------------------------------------------


@lw.nest
def smooth(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


@lw.nest
def divided(u):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = u[i - 1, j] + 7 // abs(i + j - 75)


@lw.nest
def swept_and_divided(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = u[i - 1, j] + u[i, j - 1] + u[i, j + 1] + 7 // abs(j - 20)


def rank() -> int:
    from mpi4py import MPI

    return int(MPI.COMM_WORLD.Get_rank())


def check(nest: lw.Nest) -> None:
    """A short run gives the bits of the plain loop; then every rank says so."""
    u = np.random.default_rng(1).random((40, 30))
    expected = u.copy()
    smooth.python(expected, 3)
    nest(u, 3)
    assert rank() > 0 or u.tobytes() == expected.tobytes()
    print("done", flush=True)


@scenario
def stops_together(engine: str) -> None:
    """The first rank meets an error of the plain loop when many messages are still to come; every rank raises it."""
    nest = swept_and_divided.using(engine=engine, tile=4)
    with pytest.raises(lw.RunError, match="division by zero"):
        nest(np.ones((40, 60)), 5)
    print("done", flush=True)


@scenario
def short(*engines: str) -> None:
    for engine in engines:
        check(smooth.using(engine=engine, tile=4))


MOMENTS = {  # modules and the functions in them that a rank comes to
    "the first rank plans": (communicator, "join"),
    "building": (execute, "tile_library"),
    "arrays are scattered": (execute, "scatter_stores"),
    "the run begins": (runner, "join"),
}


@scenario
def endless(engine: str, directory: str, moment: str = "") -> None:
    """Runs until something happens to it. Every rank leaves a file named after its process, and the first one another when
    all are in the middle of the run.

    moment: on the way to the run, one of MOMENTS, at which the second rank stops.
    """
    start_mpi("endless")
    arguments = {"u": np.zeros((800, 800)), "sweeps": 100_000}
    nest = smooth.using(engine=engine, tile=50)
    plan = nest.plan(**arguments, ranks=communicator.world().Get_size()) if rank() == 0 else None

    def leave(name: str) -> None:
        here = Path(directory) / name
        here.with_suffix(".new").write_text(str(os.getpid()))
        here.with_suffix(".new").rename(here)

    def report(done: float) -> None:
        if done * arguments["sweeps"] > 4 and not (Path(directory) / "running").exists():
            leave("running")  # the first sweep's values have come back from the other ranks

    leave(f"rank{rank()}")
    if moment and rank() == 1:
        module, name = MOMENTS[moment]
        setattr(module, name, lambda *_, **__: os.kill(os.getpid(), signal.SIGSTOP))
    run(nest, arguments, report, plan=plan)
    print("done", flush=True)


@scenario
def traps(engine: str) -> None:
    divided.using(engine=engine, tile=4)(np.ones((60, 40), np.int64))
    print("done", flush=True)


@scenario
def helper_on(*cpus: str) -> None:
    """Refused on every rank, after which all goes on."""
    u = np.ones((40, 30))
    try:
        smooth.using(engine="helper", tuning=Tuning(helper_cpu=tuple(map(int, cpus))))(u, 3)
    except lw.RefusedError as error:
        print(error, flush=True)
    assert (u == 1).all()
    check(smooth.using(engine="helper"))


@scenario
def helper_cannot_be_pinned() -> None:
    """The CPU goes away after it was chosen."""
    runner.helper_cpu = lambda tuning, place: 5000
    smooth.using(engine="helper")(np.ones((40, 30)), 3)
    print("done", flush=True)


@scenario
def thread_level(level: str) -> None:
    import mpi4py

    mpi4py.rc.thread_level = level
    check(smooth.using(engine="helper"))


@scenario
def in_turn() -> None:
    """What goes on afterwards, on the same ranks: to start them takes longest."""
    thread_level("serialized")
    print("over: just enough threads", flush=True)
    helper_on("900", "901")
    print("over: no such CPUs", flush=True)
    no_memfd()
    print("over: nothing to export", flush=True)


@scenario
def no_memfd() -> None:
    def refuse(name: str) -> int:
        raise OSError("no such call")

    os.memfd_create = refuse
    assert segments.export_segment(100) is None
    check(smooth.using(engine="onesided", tile=4))


# -- tests -----------------------------------------------------------------------------------------------------------


def mpiexec() -> str:
    program = shutil.which("mpiexec")
    if program is None or shutil.which("mpicxx") is None or importlib.util.find_spec("mpi4py") is None:
        pytest.skip("no MPI here: mpiexec, mpicxx and mpi4py are needed")
    return program


def start(ranks: int, *words: str, before: tuple[str, ...] = (), **settings: str) -> subprocess.CompletedProcess[str]:
    command = [*before, mpiexec(), "-n", str(ranks), sys.executable, __file__, *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, **WITH_HELPERS, **settings},
    )  # fmt: skip


class Endless:
    """A run in its middle, or one that a rank does not come to (MOMENTS)."""

    def __init__(self, engine: str, ranks: int, directory: Path, moment: str = "", **settings: str) -> None:
        command = [mpiexec(), "-n", str(ranks), sys.executable, __file__, "endless", engine, str(directory), moment]
        self.output = directory / "output"
        with self.output.open("w") as stream:
            self.process = subprocess.Popen(
                command,
                env={**os.environ, **WITH_HELPERS, **settings},
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                preexec_fn=default_signals,
            )
        deadline = time.monotonic() + SECONDS
        files = [directory / f"rank{number}" for number in range(ranks)]
        signs = files if moment else [*files, directory / "running"]
        while not all(file.exists() for file in signs):
            assert self.process.poll() is None, self.output.read_text()
            assert time.monotonic() < deadline, self.output.read_text()
            time.sleep(0.02)
        self.ranks = [int(file.read_text()) for file in files]

    def end(self) -> str:
        """What it said, once it has failed and no rank is left."""
        status = self.process.wait(GONE)
        text = self.output.read_text()
        assert status != 0, text
        assert "done" not in text
        deadline = time.monotonic() + GONE
        while any(self.runs(process) for process in self.ranks):
            assert time.monotonic() < deadline, f"ranks are left: {text}"
            time.sleep(0.05)
        return text

    @staticmethod
    def runs(process: int) -> bool:
        try:
            return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    def clean_up(self) -> None:
        self.process.kill()
        self.process.wait()
        for process in self.ranks:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


@pytest.fixture
def endless_run(tmp_path: Path) -> Iterator[Callable[..., Endless]]:
    begun: list[Endless] = []

    def begin(engine: str, ranks: int, moment: str = "", **settings: str) -> Endless:
        begun.append(Endless(engine, ranks, tmp_path, moment, **settings))
        return begun[-1]

    yield begin
    for one in begun:
        one.clean_up()


def engines(*chosen: str) -> pytest.MarkDecorator:
    """These engines, whose way of waiting is another; all of them in the long tests."""
    return pytest.mark.parametrize("engine", everyday(ENGINES, chosen))


@pytest.mark.mpi
class TestInMidRun:
    @engines("overlap")
    def test_a_rank_is_killed(self, engine: str, endless_run: Callable[..., Endless]) -> None:
        run = endless_run(engine, 3)
        os.kill(run.ranks[1], signal.SIGKILL)
        assert "KILLED BY SIGNAL: 9" in run.end() or "signal 9" in run.end()

    @engines("onesided")
    def test_a_rank_stands_still(self, engine: str, endless_run: Callable[..., Endless]) -> None:
        run = endless_run(engine, 2, LAPWING_PATIENCE=str(PATIENCE))
        os.kill(run.ranks[1], signal.SIGSTOP)
        said = run.end()
        assert f"lapwing: rank 0: waited {PATIENCE} s for " in said
        assert "LAPWING_PATIENCE=SECONDS allows longer waits" in said

    @pytest.mark.parametrize("moment", everyday(MOMENTS, ("arrays are scattered",)))
    def test_a_rank_stands_still_before(self, moment: str, endless_run: Callable[..., Endless]) -> None:
        run = endless_run("overlap", 3, moment, LAPWING_PATIENCE=str(PATIENCE))
        said = run.end()
        assert f"lapwing: rank 0: waited {PATIENCE} s for rank 1 outside of the run: that rank or the network" in said
        assert "LAPWING_PATIENCE=SECONDS allows longer waits" in said

    @engines("blocking")
    def test_ctrl_c(self, engine: str, endless_run: Callable[..., Endless]) -> None:
        run = endless_run(engine, 2)
        run.process.send_signal(signal.SIGINT)
        run.end()

    @engines("helper")
    def test_one_rank_is_interrupted(self, engine: str, endless_run: Callable[..., Endless]) -> None:
        run = endless_run(engine, 2)
        os.kill(run.ranks[1], signal.SIGINT)
        assert "lapwing: rank 1: interrupted" in run.end()

    @engines("overlap")
    def test_the_plain_loop_would_raise(self, engine: str) -> None:
        done = start(3, "traps", engine)
        assert done.returncode != 0
        assert "test_faults.py" in done.stderr
        assert "division by zero" in done.stderr
        assert "done" not in done.stdout


@pytest.mark.mpi
@engines("helper")
def test_all_raise_what_the_plain_loop_would_raise(engine: str) -> None:
    over_tcp = {
        "MPIR_CVAR_ODD_EVEN_CLIQUES": "1",
        "FI_PROVIDER": "tcp",
        "FI_TCP_IFACE": "lo",
        "MPIR_CVAR_CH4_NETMOD": "ofi",
    }
    done = start(4, "stops_together", engine, **over_tcp)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("done") == 4


@pytest.mark.mpi
@pytest.mark.skipif(not TASKSET.is_here, reason=TASKSET.reason)
def test_one_core() -> None:
    done = start(2, "short", *ENGINES, before=("taskset", "-c", str(allowed_cpus()[0])))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("done") == 2 * len(ENGINES)


NO_SUCH_CPU = "the helper thread cannot be pinned to CPU 900: this process may use CPU 0"


@pytest.mark.mpi
def test_what_goes_on_afterwards() -> None:
    """MPI with just enough threads, CPUs that cannot be had, no memory that other ranks can map."""
    done = start(2, "in_turn")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(NO_SUCH_CPU) == 2, done.stdout
    for what in ("just enough threads", "no such CPUs", "nothing to export"):
        assert done.stdout.count(f"over: {what}") == 2, done.stdout


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("cpus", "text"),
    [
        pytest.param(("900", "901"), NO_SUCH_CPU, marks=pytest.mark.long),
        pytest.param((str(allowed_cpus()[0]),), "1 for 2 ranks", marks=pytest.mark.long),
    ],
)
def test_helper_cpus_that_cannot_be_had(cpus: tuple[str, ...], text: str) -> None:
    done = start(2, "helper_on", *cpus)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(text) == 2, done.stdout
    assert done.stdout.count("done") == 2


@pytest.mark.mpi
def test_a_helper_thread_that_cannot_be_pinned_after_all() -> None:
    done = start(2, "helper_cannot_be_pinned")
    assert done.returncode != 0
    assert "the helper thread cannot be pinned to CPU 5000: this process may not run there" in done.stderr
    assert "done" not in done.stdout


@pytest.mark.mpi
@pytest.mark.parametrize("level", everyday(["single", "funneled"], ["funneled"]))
def test_mpi_without_threads(level: str) -> None:
    done = start(2, "thread_level", level)
    if done.returncode == 0:
        pytest.skip(f"this MPI gives more than {level} to those who ask for it")
    assert "needs MPI_THREAD_SERIALIZED or more" in done.stderr
    assert "--engine overlap" in done.stderr


@pytest.mark.mpi
@pytest.mark.long
def test_mpi_with_just_enough_threads() -> None:
    done = start(2, "thread_level", "serialized")
    assert done.returncode == 0, done.stderr


@pytest.mark.mpi
@pytest.mark.long
def test_no_memory_to_export() -> None:
    done = start(2, "no_memfd")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("done") == 2


NO_WINDOWS = """
#include <mpi.h>
int FUNCTION { return MPI_ERR_NO_MEM; }
"""
WINDOWS = {
    "shared": (
        "MPI_Win_allocate_shared(MPI_Aint, int, MPI_Info, MPI_Comm, void *, MPI_Win *)", {}, "no shared memory for ",
    ),
    "between nodes": (
        "MPI_Win_allocate(MPI_Aint, int, MPI_Info, MPI_Comm, void *, MPI_Win *)",
        {"MPIR_CVAR_NOLOCAL": "1", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo"},
        "no window for ",
    ),
}  # fmt: skip


@pytest.mark.mpi
@pytest.mark.parametrize("kind", one_of(2, WINDOWS))
def test_windows_that_cannot_be_allocated(kind: str, tmp_path: Path) -> None:
    function, settings, text = WINDOWS[kind]
    source, library = tmp_path / "none.c", tmp_path / "none.so"
    source.write_text(NO_WINDOWS.replace("FUNCTION", function))
    mpiexec()
    built = subprocess.run(["mpicxx", "-x", "c++", "-shared", "-fPIC", source, "-o", library], check=False)
    assert built.returncode == 0
    done = start(2, "short", "onesided", LD_PRELOAD=str(library), **settings)
    if kind == "between nodes" and done.returncode == 0:
        pytest.skip("this MPI does not let ranks of one machine stand for several nodes")
    assert done.returncode != 0
    assert text in done.stderr
    assert "Use --engine overlap" in done.stderr
    assert "done" not in done.stdout


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf"])
def test_patience_that_is_none(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAPWING_PATIENCE", text)
    with pytest.raises(lw.RefusedError, match=f"LAPWING_PATIENCE={text}: expected seconds, such as 120, or 0"):
        patience_seconds()


@pytest.mark.mpi
def test_patience_is_looked_at_before_anything_runs() -> None:
    done = start(2, "short", "overlap", LAPWING_PATIENCE="soon")
    assert done.returncode != 0
    assert "LAPWING_PATIENCE=soon: expected seconds" in done.stderr


if __name__ == "__main__":
    optimise_little()
    SCENARIOS[sys.argv[1]](*sys.argv[2:])
