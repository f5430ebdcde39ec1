"""Random nests on ranks that are threads, under ThreadSanitizer and with delays: the flags of the one-sided transport, of
the helper thread and of the threads that move slabs to and from a disk order all that they have to.

LAPWING_EXAMPLES sets how many nests are run, LAPWING_SEED which ones.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from limits import scaled
from needs import LIBURING
from processes import WITH_HELPERS
from randomness import first_seed, wanted

from lapwing.codegen.compilation.toolchain import find_c_compiler, find_cxx_compiler
from lapwing.errors import BuildError
from lapwing.runtime.binding import native

WORKER = Path(__file__).parent / "nests" / "thread_worker.py"
RACE = 66  # the exit status ThreadSanitizer gives a process
SECONDS = 280
SEARCHES = 4  # for what a broken protocol does wrong

RACING = """
#include <thread>
int shared;
int main(int count, char **) {
    std::thread other([&] { if (count > 1) shared = 1; });
    if (count > 1) shared = 2;
    other.join();
}
"""

# What must not change in the headers, each with what it would be if it were forgotten.
MUTATIONS = {
    "finish without release": (
        "link.hpp", "finished_.count.store(number, std::memory_order_release)",
        "finished_.count.store(number, std::memory_order_relaxed)",
    ),
    "deliver without release": (
        "link.hpp", "count.store(made.last, std::memory_order_release)",
        "count.store(made.last, std::memory_order_relaxed)",
    ),
    "arrived without acquire": (
        "link.hpp", "arrived_.count.load(std::memory_order_acquire)", "arrived_.count.load(std::memory_order_relaxed)"
    ),
    "room without acquire": (
        "link.hpp", "finished_.count.load(std::memory_order_acquire)", "finished_.count.load(std::memory_order_relaxed)"
    ),
    "no room asked for": ("onesided.hpp", "if (!made.empty() && (looks_away()", "if (false && (looks_away()"),
    "one slot more than there is": ("link.hpp", ">= number + 1 - ring.depth()", ">= number - ring.depth()"),
    "room a step early": ("link.hpp", ">= ring.free_after(number)", ">= ring.free_after(number) - 1"),
    "given up a step early": ("ring.hpp", "at.step + 1; }", "at.step + 2; }"),
    "old values given up a sweep early": (
        "ring.hpp", "number / channel_->messages * channel_->peer_steps",
        "(number / channel_->messages - channel_->lag) * channel_->peer_steps",
    ),
    "slot given back in mid-batch": (
        "onesided.hpp", "link->is_direct() || !link->ring.closes_batch(written_in)", "link->is_direct()"
    ),
    "helper: computed without release": (
        "helper.hpp", "++computing_, std::memory_order_release", "++computing_, std::memory_order_relaxed"
    ),
    "helper: ready without release": (
        "helper.hpp", "++ready, std::memory_order_release", "++ready, std::memory_order_relaxed"
    ),
    "helper: sent without release": (
        "helper.hpp", "++sent, std::memory_order_release", "++sent, std::memory_order_relaxed"
    ),
    "helper: lags two steps behind": ("helper.hpp", "(rewrites ? 0 : 1)", "(rewrites ? 0 : 2)"),
    "helper: packs while the next sweep begins": (
        "helper.hpp", "opens_phase(at) && program_.phase[at.phase].rewrites", "false && opens_phase(at)"
    ),
    "helper: unpacks where steps are not apart": ("helper.hpp", "program_.apart", "true"),
    "helper: no room asked for": (
        "helper.hpp", "if (!transport_.has_room(at)) return false;\n        awaited_", "awaited_"
    ),
}  # fmt: skip

# Of what moves slabs between memory and disk.
DISK_MUTATIONS = {
    "released a slab early": (
        "disk_ring.hpp", "released = pass * disk_.slabs + disk_.slabs_after[at.step];",
        "released = std::min(disk_.passes * disk_.slabs, pass * disk_.slabs + disk_.slabs_after[at.step] + 1);",
    ),
    "read into a slab more than there is": (
        "disk_ring.hpp", "written + std::min(disk_.slots, disk_.slabs)", "written + 1 + std::min(disk_.slots, disk_.slabs)"
    ),
    "read into slabs that are not written": (
        "disk_ring.hpp", "const std::int64_t written = writing_.done.load(std::memory_order_relaxed);\n        return",
        "const std::int64_t written = released_;\n        return",
    ),
    "moved without release": (
        "disk_ring.hpp", "flow.done.store(done, std::memory_order_release)",
        "flow.done.store(done, std::memory_order_relaxed)",
    ),
    "moved without acquire": (
        "disk_ring.hpp", "reading_.done.load(std::memory_order_acquire)",
        "reading_.done.load(std::memory_order_relaxed)",
    ),
    "moved before the last request": (
        "disk_ring.hpp", "front().finished == flow.moving.front().requests.size()",
        "front().taken == flow.moving.front().requests.size()",
    ),
    "computed a slab early": (
        "disk_ring.hpp", "+ disk_.slabs_before[at.step];", "+ disk_.slabs_before[at.step] - 1;"
    ),
    "all passes in one place of the ring": (
        "disk_ring.hpp", "(row + pass * streamed.turn) % streamed.ring_rows", "row % streamed.ring_rows"
    ),
    "written without leave": (
        "disk_ring.hpp", "std::min({released_, writable_ * disk_.slabs, to_write_})", "std::min(released_, to_write_)"
    ),
    "given back before the last sweep of a pass": (
        "disk_ring.hpp", "if (abandoned_ || at.sweep + 1 < passes_.end_of(pass)) return;", ""
    ),
}  # fmt: skip

# Of io_uring's queue, which takes requests for whole blocks of the disk.
QUEUE_MUTATIONS = {
    "moved as soon as it is handed in": (
        "disk_ring.hpp", "if (is_under_way) {\n                    unused_.pop_back();\n                } else {",
        "unused_.pop_back();\n                {",
    ),
    "a place for another request while one is under way": (
        "disk_queue.hpp", "free_.pop_back();", ""
    ),
}  # fmt: skip
# The nest of thread_worker.py that shows what few others do.
SHOWN_BY = {"helper: packs while the next sweep begins": "upstream"}

PLACES = {"memory": MUTATIONS, "disk": DISK_MUTATIONS, "queue": QUEUE_MUTATIONS}
MARKS = {"memory": (), "disk": (), "queue": (pytest.mark.skipif(not LIBURING.is_here, reason=LIBURING.reason),)}
EVERYWHERE = [pytest.param(place, marks=MARKS[place]) for place in PLACES]
EVERYDAY = ["memory", "disk", pytest.param("queue", marks=[*MARKS["queue"], pytest.mark.long])]


@cache
def sanitizer() -> Path:
    """The library to be loaded first into a process that runs instrumented code."""
    compiler = find_cxx_compiler()
    asked = subprocess.run(
        [*compiler.command, "-print-file-name=libtsan.so"], capture_output=True, text=True, check=False
    )
    return Path(asked.stdout.strip())


def environment(directory: Path) -> dict[str, str]:
    # liburing gives its memory back behind ThreadSanitizer's back: another queue at the same place is none of its threads'.
    (directory / "suppressions").write_text("race:^io_uring_\n")
    return {
        **os.environ,
        "LD_PRELOAD": str(sanitizer()),
        "TSAN_OPTIONS": f"exitcode={RACE} halt_on_error=1 report_signal_unsafe=0 log_path={directory}/race "
        f"suppressions={directory}/suppressions",
    }


@pytest.fixture(scope="module")
def works(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skips where there is no ThreadSanitizer, or none that finds a race and lets Python run."""
    directory = tmp_path_factory.mktemp("sanitizer")
    try:
        compiler = find_cxx_compiler()
        find_c_compiler()
    except BuildError as error:
        pytest.skip(str(error))
    (directory / "racing.cpp").write_text(RACING)
    program = directory / "racing"
    build = [*compiler.command, "-std=c++20", "-fsanitize=thread", str(directory / "racing.cpp"), "-o", str(program)]
    built = subprocess.run(build, capture_output=True, text=True, check=False)
    if built.returncode != 0:
        pytest.skip(f"no ThreadSanitizer: {built.stderr.strip().splitlines()[-1:]}")
    own = {**environment(directory), "LD_PRELOAD": ""}
    if [subprocess.run([program, *more], env=own, check=False).returncode for more in ([], ["race"])] != [0, RACE]:
        pytest.skip("ThreadSanitizer does not work on this system")
    python = subprocess.run([sys.executable, "-c", "import numpy"], env=environment(directory), check=False)
    if not sanitizer().is_absolute() or python.returncode != 0:
        pytest.skip("Python does not run with ThreadSanitizer loaded")


def run(
    directory: Path, examples: int, kind: str, place: str, seconds: int, seed: int | None = None, **more: str
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(WORKER), str(directory), str(examples), str(seed or first_seed()), kind, place]
    own = {**(environment(directory) if kind == "sanitized" else os.environ), **WITH_HELPERS}
    return subprocess.run(
        command, env={**own, **more}, capture_output=True, text=True, timeout=scaled(seconds), check=False
    )  # fmt: skip


def check(directory: Path, examples: int, kind: str, place: str, seconds: int = SECONDS) -> None:
    done = run(directory, examples, kind, place, seconds)
    print(done.stdout)
    if done.returncode != 0:
        races = "\n".join(path.read_text()[:4000] for path in sorted(directory.glob("race*")))
        nest = (directory / "current.py").read_text() if (directory / "current.py").exists() else "none"
        pytest.fail(
            f"status {done.returncode}\n{done.stderr[-4000:]}\n{races}\nThe nest at hand:\n{nest}", pytrace=False
        )


@pytest.mark.long  # every day with ranks that are processes, in test_random_nests
@pytest.mark.parametrize("place", EVERYWHERE)
def test_threads_with_delays(place: str, tmp_path: Path) -> None:
    check(tmp_path, wanted(6), "plain", place)


@pytest.mark.usefixtures("works")
@pytest.mark.parametrize("place", EVERYDAY)
def test_no_races(place: str, tmp_path: Path) -> None:
    check(tmp_path, wanted({"memory": 2, "disk": 1, "queue": 1}[place]), "sanitized", place)


@pytest.mark.long
@pytest.mark.usefixtures("works")
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("place", EVERYWHERE)
def test_no_races_at_length(place: str, tmp_path: Path) -> None:
    check(tmp_path, wanted(1500), "sanitized", place, 7000)


@pytest.mark.parametrize("place", PLACES)
def test_what_is_broken_is_there(place: str) -> None:
    for file, right, _ in PLACES[place].values():
        assert right in (native.SOURCES / file).read_text(), f"{file} has changed: {right}"


@pytest.mark.long
@pytest.mark.usefixtures("works")
@pytest.mark.timeout(600 * SEARCHES)
@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS[place]) for place in PLACES for name in PLACES[place]])
def test_a_broken_protocol_is_found(name: str, tmp_path: Path) -> None:
    place = next(place for place in PLACES if name in PLACES[place])
    file, right, wrong = PLACES[place][name]
    broken = tmp_path / "cpp"
    shutil.copytree(native.SOURCES, broken)
    text = (broken / file).read_text()
    (broken / file).write_text(text.replace(right, wrong))
    nest = {"LAPWING_TEST_NEST": SHOWN_BY[name]} if name in SHOWN_BY else {}
    for search in range(SEARCHES):  # no single one is sure to meet what is wrong now and then
        seed = first_seed() + 1000 * search
        done = run(tmp_path, 150, "sanitized", place, 580, seed, LAPWING_TEST_NATIVE=str(broken), **nest)
        print(f"{name}: status {done.returncode}: {done.stderr.strip().splitlines()[-1:]}")
        if done.returncode != 0:
            return
    pytest.fail(f"not found: {name}")
