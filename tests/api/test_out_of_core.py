"""Nests on arrays on disk: the very bits of the plain loop, whatever ends a run, and refusals with their reasons.

Started as a program, alone or by mpiexec, this file runs `smooth` on the array on disk that it is given.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from everyday import everyday
from limits import scaled
from needs import LIBURING
from processes import WITH_HELPERS

import lapwing as lw
from lapwing.codegen.compilation.toolchain import find_c_compiler, find_mpi
from lapwing.errors import BuildError, RunError
from lapwing.loopnest.array_shape import ArrayShape
from lapwing.planner.choose import Wishes
from lapwing.planner.plan import ENGINES, Plan
from lapwing.planner.streaming import DiskRates, StreamingWishes, streaming_plan
from lapwing.runtime.binding import native
from lapwing.runtime.mpi import communicator
from lapwing.runtime.streaming import brought_boxes
from lapwing.store.manifest import Claim, reached, read_manifest
from lapwing.tiling.faces import Faces

pytestmark = pytest.mark.usefixtures("little_optimised")

SHAPE, CHUNKS = (60, 50), (16, 17)


@lw.nest
def smooth(u, sweeps):
    total = 0.0
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])
                total = total + u[i, j]
    return total


@lw.nest
def upwards(u, c, v):
    for i in range(u.shape[0] - 2, 0, -1):
        for j in range(1, u.shape[1] - 1):
            u[i, j] = u[i + 1, j] + c[j] * v[i, j - 1] - u[i, j]


@lw.nest
def skewed(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j + 1] + u[i, j - 1] + u[i + 1, j - 1] + u[i, j])


@lw.nest
def turned(u):
    for i in range(1, u.shape[1] - 1):
        for j in range(1, u.shape[0] - 1):
            u[j, i] = u[j + 1, i - 1] + u[j - 1, i]


@lw.nest
def crossing(u, v):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = u[i - 1, j] + 1.0
            v[j, i] = v[j, i - 1] + 1.0


@lw.nest
def divided(u):
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = u[i - 1, j] + 7 // (i - 40)


@lw.nest
def divided_late(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0]):
            for j in range(1, u.shape[1]):
                u[i, j] = u[i - 1, j] + u[i, j - 1] + 7 // ((t - 5) * (t - 5) + (299 - j) * (299 - j))


@lw.nest
def divided_apart(u, sweeps):
    """Columns have nothing to do with each other; that of the error is in the first sweep."""
    for t in range(sweeps):
        for i in range(1, u.shape[0]):
            for j in range(u.shape[1]):
                u[i, j] = u[i - 1, j] + 7 // (299 - j)


@lw.nest
def twice(u):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1] - 1):
            u[i, j + 1] = u[i - 1, j]
            u[i, j] = 0.5 * u[i, j]


def stored(path: Path, values: np.ndarray, chunks: tuple[int, ...] | None = CHUNKS) -> lw.StoredArray:
    array = lw.create(path, values.shape, values.dtype, chunks=None if path.suffix == ".npy" else chunks)
    array.write(tuple((0, n) for n in values.shape), values)
    return array


def values(dtype: str = "float64", shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    return (np.random.default_rng(5).random(shape) * 100).astype(dtype)


HOW = {
    "chosen": {},
    "a sweep a pass": dict(tile=4, pass_sweeps=1),
    "all sweeps in one pass": dict(tile=3, pass_sweeps=7),
    "some of them": dict(tile=5, pass_sweeps=3),
    "one slab at a time": dict(tile=4, ring=1),
    "two slabs": dict(tile=1, pass_sweeps=2, ring=2),
    "little memory": dict(memory="40KB"),
}


@pytest.mark.parametrize("name", HOW)
@pytest.mark.parametrize("kind", ["zarr", "npy"])
def test_bits_of_the_plain_loop(name: str, kind: str, tmp_path: Path) -> None:
    array, expected = stored(tmp_path / f"u.{kind}", values()), values()
    total = smooth.using(**HOW[name])(array, 7)
    assert total == pytest.approx(smooth.python(expected, 7))
    assert array.numpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize("pass_sweeps", [1, 3])
def test_nests_that_are_skewed_in_memory(pass_sweeps: int, tmp_path: Path) -> None:
    array, expected = stored(tmp_path / "u.zarr", values()), values()
    skewed.using(tile=7, pass_sweeps=pass_sweeps)(array, 5)
    skewed.python(expected, 5)
    assert array.numpy().tobytes() == expected.tobytes()


@pytest.mark.skipif(not LIBURING.is_here, reason=LIBURING.reason)
def test_requests_go_into_a_queue_of_the_system() -> None:
    native.serial_runtime()
    assert "liburing" in Path("/proc/self/maps").read_text()


@pytest.mark.parametrize("chunks", [(16, 128), (7, 64)])
def test_rows_that_the_system_moves_without_a_copy(chunks: tuple[int, int], tmp_path: Path) -> None:
    array = stored(tmp_path / "u.zarr", values(shape=(90, 128)), chunks)
    expected = values(shape=(90, 128))
    for pass_sweeps in (1, 3):
        smooth.using(tile=5, pass_sweeps=pass_sweeps)(array, 5)
        smooth.python(expected, 5)
        assert array.numpy().tobytes() == expected.tobytes()


def test_descending_with_arrays_that_are_read_only(tmp_path: Path) -> None:
    u, v, c = values("float32"), values("float64"), np.linspace(0, 1, SHAPE[1])
    on_disk, read = stored(tmp_path / "u.zarr", u, (9, 50)), stored(tmp_path / "v.zarr", v, (60, 7))
    upwards.using(tile=7)(on_disk, c, read)
    upwards.python(u, c, v)
    assert on_disk.numpy().tobytes() == u.tobytes()
    assert read.numpy().tobytes() == v.tobytes()


@lw.nest
def largest(u):
    most = 0.0
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            most = max(most, u[i, j])
    return most


def test_many_slabs_of_an_array_that_is_only_read(tmp_path: Path) -> None:
    """There is nothing to write, which makes room for the next slab at once."""
    many = values(shape=(600, 50))
    for ring in (1, 3):
        path = tmp_path / f"{ring}.zarr"
        assert largest.using(tile=2, ring=ring)(stored(path, many)) == many.max()


def test_chunks_that_were_never_written(tmp_path: Path) -> None:
    array = lw.create(tmp_path / "u.zarr", SHAPE, chunks=CHUNKS, fill_value=2.5)
    expected = np.full(SHAPE, 2.5)
    smooth.using(tile=4)(array, 3)
    smooth.python(expected, 3)
    assert array.numpy().tobytes() == expected.tobytes()


def test_nothing_to_compute(tmp_path: Path) -> None:
    array = stored(tmp_path / "u.zarr", values(shape=(2, 9)), (1, 4))
    assert smooth(array, 3) == 0.0
    assert array.numpy().tobytes() == values(shape=(2, 9)).tobytes()


def test_an_error_of_the_plain_loop_leaves_the_array(tmp_path: Path) -> None:
    array = stored(tmp_path / "u.zarr", values("int64"))
    with pytest.raises(lw.RunError, match="division by zero"):
        divided.using(tile=8)(array)
    assert array.numpy().tobytes() == values("int64").tobytes()
    assert not (tmp_path / "u.zarr" / ".lapwing").exists()


class TestRefusals:
    def test_too_little_memory(self, tmp_path: Path) -> None:
        array = stored(tmp_path / "u.zarr", values())
        with pytest.raises(lw.RefusedError, match=r"memory of 1,000 B for 1 rank.* expected"):
            smooth.using(memory=1000)(array, 2)

    def test_a_dependence_that_points_backwards(self, tmp_path: Path) -> None:
        said = r"along i, u is indexed otherwise; along j, the flow dependence \[1, -1\] points backwards along it"
        with pytest.raises(lw.RefusedError, match=said):
            turned(stored(tmp_path / "u.zarr", values()))

    def test_arrays_that_do_not_stream_along_one_loop(self, tmp_path: Path) -> None:
        u, v = (stored(tmp_path / name, values(shape=(20, 20))) for name in ("u.zarr", "v.zarr"))
        with pytest.raises(
            lw.RefusedError, match="no loop can be streamed along: along i, v is indexed otherwise; along j, u is"
        ):
            crossing(u, v)

    def test_blocks_that_would_lose_values(self) -> None:
        """The first statement writes the last column, the second all others: those of blocks are written by both."""
        bound = twice.bind({"u": ArrayShape("float64", SHAPE)})
        how = dict(on_disk={"u": CHUNKS}, seconds_per_point=1e-9, disk=DiskRates.of(None))

        def planned(grid: tuple[int, ...] | None) -> Plan:
            wishes = Wishes("overlap", 4, grid)
            return streaming_plan(bound, twice.dependences, 2, 2, wishes, StreamingWishes(), **how)

        assert planned(None).ranks == 1
        assert "j is not cut: statements write elements of u at different places along it" in str(planned(None))
        with pytest.raises(
            lw.RefusedError,
            match="out of core expected one rank along j: statements write elements of u at different places",
        ):
            planned((2,))

    def test_an_array_twice(self, tmp_path: Path) -> None:
        array = stored(tmp_path / "u.zarr", values())
        with pytest.raises(lw.RefusedError, match="the same array on disk"):
            upwards(array, np.ones(SHAPE[1]), array)

    @pytest.mark.parametrize(
        "how", [dict(ring=4), dict(pass_sweeps=0), dict(memory="much"), dict(memory=0), dict(grid=(7,))]
    )
    def test_choices_that_are_none(self, how: dict[str, object], tmp_path: Path) -> None:
        array = stored(tmp_path / "u.zarr", values())
        with pytest.raises(lw.RefusedError, match="expected"):
            smooth.using(**how)(array, 2)

    def test_another_run_is_at_work(self, tmp_path: Path) -> None:
        array = stored(tmp_path / "u.zarr", values())
        claim = Claim(str(tmp_path / "u.zarr" / ".lapwing"), "it")
        with pytest.raises(lw.RefusedError, match=r"u\.zarr: another run is at work on it"):
            smooth(array, 2)
        claim.release()
        smooth(array, 2)


LARGE = """
import re, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import lapwing as lw
from test_out_of_core import smooth, stored, values

def resident(kind):
    return int(re.search(kind + r":\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) << 10

smooth.using(memory="8MB")(stored(Path(sys.argv[2]) / "small.zarr", values()), 2)  # what is loaded once
before = resident("VmRSS")
Path("/proc/self/clear_refs").write_text("5")
smooth.using(memory="8MB")(lw.open(sys.argv[3]), 3)
print(resident("VmHWM") - before)
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is looked up in Linux's /proc")
def test_memory_is_kept_to(tmp_path: Path) -> None:
    path = tmp_path / "u.zarr"
    array = lw.create(path, (3000, 8192), "float64", chunks=(16, 8192))  # 197 MB
    array.prepare()
    done = subprocess.run(
        [sys.executable, "-c", LARGE, str(Path(__file__).parent), str(tmp_path), str(path)],
        capture_output=True, text=True, timeout=scaled(120), check=False, env={**os.environ, **WITH_HELPERS},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= 8e6 + (64 << 20)


# -- several ranks ----------------------------------------------------------------------------------------------------


@lw.nest
def planes(u, v):
    for t in range(u.shape[1] - 1):
        for i in range(1, u.shape[0]):
            for j in range(1, v.shape[1]):
                u[i, t, j] = u[i - 1, t, j - 1] + u[i, t + 1, j - 1]
                v[i, j] = v[i - 1, j] + v[i, j - 1]


def test_messages_of_one_sweep_do_not_bring_what_others_write() -> None:
    bound = planes.bind({"u": ArrayShape("float64", (9, 4, 12)), "v": ArrayShape("float64", (9, 12))})
    chunks = {"u": (9, 4, 12), "v": (9, 12)}
    wishes = Wishes("overlap", 3)
    plan = streaming_plan(bound, planes.dependences, 2, 2, wishes, StreamingWishes(), chunks, DiskRates.of(None), 1e-9)
    faces = Faces(bound, plan.partition, plan.mapping, plan.tile, plan.buffers)
    (boundary,) = plan.partition.cuts[1][1:-1]
    assert brought_boxes(bound, faces, 1) == {"v": [((1, 9), (boundary - 1, boundary))]}


# -- runs that are ended ----------------------------------------------------------------------------------------------

SWEEPS, WIDE = 30, (400, 300)


def work(path: str, *words: str) -> None:
    """What this file does as a program. words: what the run is to be like; an engine among them."""
    engine = next((engine for engine in ENGINES if engine in words), None)
    pass_sweeps = 1 if "slowly" in words else 2
    nest = smooth.using(tile=20, pass_sweeps=pass_sweeps, resume="resume" in words, engine=engine)
    if "nothing" in words:
        assert nest(lw.open(path), 0) == 0.0
    if "an error" in words:
        divided, tile = (divided_apart, WIDE[0]) if "apart" in words else (divided_late, 20)
        run = divided.using(tile=tile, pass_sweeps=pass_sweeps, grid=(1, 2), engine=engine)
        ranks = communicator.world()
        told = ranks.gather(error_of(lambda: run(lw.open(path), SWEEPS)))
        if ranks.Get_rank() == 0:
            print(json.dumps(told), flush=True)
        return
    total = nest(None if "first alone" in words and communicator.world().Get_rank() else lw.open(path), SWEEPS)
    if not communicator.launched() or communicator.world().Get_rank() == 0:  # lines of several ranks may mix
        print(json.dumps(total), flush=True)


def error_of(action: Callable[[], object]) -> str | None:
    """What is said by the error in which it ends."""
    try:
        action()
    except RunError as error:
        return str(error)
    return None


def start(path: Path, *words: str, ranks: int = 1, **environment: str) -> subprocess.Popen[str]:
    launcher = [str(find_mpi().mpiexec), "-n", str(ranks)] if ranks > 1 else []
    return subprocess.Popen(
        [*launcher, sys.executable, __file__, str(path), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **WITH_HELPERS, **environment},
    )


def processes_of(path: Path) -> list[int]:
    found = subprocess.run(["pgrep", "-f", f"{__file__} {path}"], capture_output=True, text=True, check=False)
    return [int(pid) for pid in found.stdout.split()]


def kill_and_resume(path: Path, kills: int, chooser: random.Random, ranks: int) -> float:
    """Run, end it by ``kill -9`` of one process at any moment, so many times, and go on to the end: what it gives then."""
    done = 0
    while True:
        process = start(path, "resume", ranks=ranks)
        if done < kills:
            time.sleep(chooser.uniform(0.4, 1.6))
            victims = processes_of(path)
            if victims and process.poll() is None:
                os.kill(chooser.choice(victims), 9)
                done += 1
        out, errors = process.communicate(timeout=scaled(120))
        if process.returncode == 0:
            return float(json.loads(out.splitlines()[-1]))
        if "another run is at work" in errors:
            time.sleep(0.5)  # the other processes of the one that was ended
        assert done > 0, errors


def reference() -> tuple[np.ndarray, float]:
    expected = values(shape=WIDE)
    return expected, smooth(expected, SWEEPS)  # in memory, which other tests compare with the plain loop


@pytest.mark.mpi
@pytest.mark.parametrize(
    "words",
    everyday(
        [*ENGINES, "helper, slowly", "overlap, first alone", "nothing"],
        ("helper, slowly", "overlap, first alone"),
    ),
)
def test_on_two_ranks(words: str, tmp_path: Path) -> None:
    array = stored(tmp_path / "u.zarr", values(shape=WIDE), (50, 150))
    process = start(tmp_path / "u.zarr", *words.split(", "), ranks=2)
    out, errors = process.communicate(timeout=scaled(120))
    assert process.returncode == 0, errors
    expected, total = reference()
    assert float(json.loads(out.splitlines()[0])) == total
    assert array.numpy().tobytes() == expected.tobytes()


@pytest.mark.mpi
@pytest.mark.parametrize(
    "words", everyday(["overlap, slowly", "helper", "overlap, slowly, apart"], ["overlap, slowly, apart"])
)
def test_an_error_of_one_rank_reaches_the_other(words: str, tmp_path: Path) -> None:
    given = values("int64", WIDE)
    array = stored(tmp_path / "u.zarr", given, (50, 150))
    process = start(tmp_path / "u.zarr", "an error", *words.split(", "), ranks=2)
    out, errors = process.communicate(timeout=scaled(120))
    assert process.returncode == 0, errors
    told = json.loads(out.splitlines()[-1])
    assert len(told) == 2
    assert all(error is not None and "ZeroDivisionError" in error for error in told), told
    assert array.numpy().tobytes() == given.tobytes()


@pytest.mark.parametrize("ranks", [pytest.param(1, marks=pytest.mark.long), pytest.param(2, marks=pytest.mark.mpi)])
def test_killed_and_resumed(ranks: int, tmp_path: Path) -> None:
    path = tmp_path / "u.zarr"
    array = stored(path, values(shape=WIDE), (50, 150))
    expected, total = reference()
    assert kill_and_resume(path, 3 if ranks == 1 else 2, random.Random(ranks), ranks) == total
    assert array.numpy().tobytes() == expected.tobytes()


@pytest.mark.long
@pytest.mark.mpi
@pytest.mark.timeout(1800)
def test_killed_and_resumed_often(tmp_path: Path) -> None:
    chooser = random.Random(int(os.environ.get("LAPWING_SEED", "0")))
    expected, total = reference()
    for number in range(13):  # 52 kills
        path = tmp_path / f"{number}.zarr"
        array = stored(path, values(shape=WIDE), (50, 150))
        assert kill_and_resume(path, 4, chooser, chooser.choice([1, 2, 3])) == total
        assert array.numpy().tobytes() == expected.tobytes()
        shutil.rmtree(path)


FAILING = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
static int calls;
static int fails(void) { return __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) > atoi(getenv("CALLS")); }
#define WRAP(name) \\
    ssize_t name(int file, const struct iovec *runs, int count, off_t at) { \\
        ssize_t (*real)(int, const struct iovec *, int, off_t) = dlsym(RTLD_NEXT, #name); \\
        if (fails()) { errno = atoi(getenv("ERRNO")); return -1; } \\
        return real(file, runs, count, at); \\
    }
WRAP(pwritev)
WRAP(pwritev64)
"""


@pytest.fixture(scope="module")
def failing_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For LD_PRELOAD: after CALLS calls writing fails."""
    folder = tmp_path_factory.mktemp("failing")
    source, library = folder / "failing.c", folder / "failing.so"
    source.write_text(FAILING)
    try:
        compiler = find_c_compiler().command
    except BuildError as error:
        pytest.skip(str(error))
    subprocess.run([*compiler, "-shared", "-fPIC", str(source), "-o", str(library), "-ldl"], check=True)
    return library


def run_until_writing_fails(path: Path, library: Path, number: int) -> str:
    """What such a run says on standard error; some passes are finished then."""
    # The store itself writes with other calls, as does the queue of the system.
    failing = start(
        path, LD_PRELOAD=str(library), CALLS="700", ERRNO=str(number), LAPWING_RUNTIME_DEFINES="LAPWING_NO_LIBURING"
    )
    _, errors = failing.communicate(timeout=scaled(120))
    assert failing.returncode != 0
    return errors


def test_a_chunk_that_changes_meanwhile(failing_library: Path, tmp_path: Path) -> None:
    path = tmp_path / "u.zarr"
    array = stored(path, values(shape=WIDE), (50, 150))
    run_until_writing_fails(path, failing_library, 5)
    folder = str(path / ".lapwing")
    manifest = read_manifest(folder)
    assert manifest is not None
    state = reached(folder, manifest)
    assert state.generation > 0
    chunk = path / ".lapwing" / ("odd" if state.generation % 2 else "even") / "3" / "1"
    damaged = bytearray(chunk.read_bytes())
    damaged[1001] ^= 4
    chunk.write_bytes(damaged)
    resumed = start(path, "resume")
    _, errors = resumed.communicate(timeout=scaled(120))
    assert resumed.returncode != 0
    assert f"what pass {state.generation + 1} has read is not what was written before" in errors
    assert array.numpy().tobytes() == values(shape=WIDE).tobytes()
    expected, total = reference()
    assert smooth.using(tile=20, resume=True)(array, SWEEPS) == total
    assert array.numpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("number", "said"), [(5, "Input/output error"), pytest.param(28, "No space left on device", marks=pytest.mark.long)]
)
def test_a_disk_that_fails(number: int, said: str, failing_library: Path, tmp_path: Path) -> None:
    path = tmp_path / "u.zarr"
    array = stored(path, values(shape=WIDE), (50, 150))
    errors = run_until_writing_fails(path, failing_library, number)
    assert said in errors
    assert "writing" in errors
    assert array.numpy().tobytes() == values(shape=WIDE).tobytes()
    resumed = start(path, "resume")
    out, errors = resumed.communicate(timeout=scaled(120))
    expected, total = reference()
    assert float(json.loads(out.splitlines()[-1])) == total, errors
    assert array.numpy().tobytes() == expected.tobytes()


class TestResume:
    def test_what_is_complete_is_not_done_again(self, tmp_path: Path) -> None:
        array, expected = stored(tmp_path / "u.zarr", values()), values()
        total = smooth.using(resume=True)(array, 3)
        assert smooth.using(resume=True)(array, 3) == total
        smooth.python(expected, 3)
        assert array.numpy().tobytes() == expected.tobytes()
        smooth(array, 3)  # without resume it is done again
        smooth.python(expected, 3)
        assert array.numpy().tobytes() == expected.tobytes()

    def test_a_run_of_something_else(self, tmp_path: Path) -> None:
        array = stored(tmp_path / "u.zarr", values())
        smooth(array, 3)
        with pytest.raises(lw.RefusedError, match="of a run of another nest, or with other arguments"):
            smooth.using(resume=True)(array, 4)

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("nothing", "is no manifest of a run"),
            ('{"format": "lapwing run", "version": 99}', "version 99 of a newer Lapwing"),
            ('{"format": "another"}', "is no manifest of a run"),
        ],
    )
    def test_manifests_that_are_none(self, text: str, said: str, tmp_path: Path) -> None:
        array = stored(tmp_path / "u.zarr", values())
        smooth(array, 3)
        (tmp_path / "u.zarr" / ".lapwing" / "manifest.json").write_text(text)
        with pytest.raises(lw.RefusedError, match=said):
            smooth.using(resume=True)(array, 3)
        smooth(array, 3)


if __name__ == "__main__":
    work(*sys.argv[1:])
