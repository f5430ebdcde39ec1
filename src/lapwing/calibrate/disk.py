"""What a disk takes for requests of a size: alone, and with several in flight; reading, writing, and both.

A file of its own is made in the directory and removed again. The page cache is left out (O_DIRECT) where the file system
allows that.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lapwing.calibrate.statistics import median_quantity
from lapwing.errors import RefusedError, RunError
from lapwing.machine.machine import Curve, Disk
from lapwing.planner.streaming import QUEUE_DEPTH

SIZES = (4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20)
MODES = ("read_alone", "write_alone", "read", "write", "both")
_FILE_BYTES = 256 << 20
_SPARE = 2  # the free space must be this many times the file
_FEWEST_ROUNDS, _MOST_ROUNDS = 3, 9


def measure_disk(
    directory: Path, budget_seconds: float, report: Callable[[float], None], sizes: Sequence[int] = SIZES
) -> Disk:
    """Measure the disk that a directory is on. Request sizes and modes take turns, round after round.

    Raises RefusedError where there is no such directory, it cannot be written or has too little room; RunError where the
    disk fails.
    """
    check_directory(directory)
    samples: dict[tuple[str, int], list[float]] = {(mode, size): [] for mode in MODES for size in sizes}
    try:
        with _file(directory) as file, ThreadPoolExecutor(QUEUE_DEPTH) as pool:
            end = time.perf_counter() + budget_seconds
            slot = budget_seconds / (len(samples) * _MOST_ROUNDS)
            for number in range(_MOST_ROUNDS):
                if number >= _FEWEST_ROUNDS and time.perf_counter() > end:
                    break
                for done, ((mode, size), times) in enumerate(samples.items()):
                    times.append(_seconds_a_request(file, pool, mode, size, slot))
                    report((number + done / len(samples)) / _MOST_ROUNDS)
            direct = file.direct
    except OSError as error:
        raise RunError(f"--disk {directory}: the disk fails: {error.strerror}.") from error
    source = f"measured in {directory}: {'O_DIRECT' if direct else 'through the page cache'}, {QUEUE_DEPTH} requests under way"
    curves = {mode: disk_curve({size: samples[mode, size] for size in sizes}, source) for mode in MODES}
    return Disk(**curves, source=source)


def disk_curve(samples: dict[int, list[float]], source: str) -> Curve:
    """Medians of rounds, by size in bytes."""
    medians = {size: median_quantity(times) for size, times in sorted(samples.items())}
    return Curve(
        tuple((float(size), q.value) for size, q in medians.items()),
        tuple(q.low or 0.0 for q in medians.values()),
        tuple(q.high or q.value for q in medians.values()),
        source,
    )


def check_directory(directory: Path) -> None:
    """Raises RefusedError as measure_disk does, without measuring."""
    if not directory.is_dir():
        found = "is no directory" if directory.exists() else "does not exist"
        raise RefusedError(f"--disk {directory}: it {found}; expected a directory on the disk to measure.")
    if not os.access(directory, os.W_OK | os.X_OK):
        raise RefusedError(f"--disk {directory}: this user may not write there. Name another directory.")
    free = shutil.disk_usage(directory).free
    if free < _SPARE * _FILE_BYTES:
        raise RefusedError(
            f"--disk {directory}: {free >> 20:,} MiB are free, but measuring takes a file of {_FILE_BYTES >> 20} MiB and leaves "
            "as much. Make room, or name another directory."
        )


@dataclass(frozen=True)
class _File:
    """An open file without a name, and buffers for requests: one for each that may be in flight."""

    fd: int
    direct: bool
    buffers: tuple[mmap.mmap, ...]


@contextlib.contextmanager
def _file(directory: Path) -> Iterator[_File]:
    fd, name = tempfile.mkstemp(prefix=".lapwing-disk-", dir=directory)
    try:
        # Without a name nothing is left behind, however this ends.
        os.unlink(name)
        filler = mmap.mmap(-1, max(SIZES))
        filler[:] = np.random.default_rng(0).bytes(len(filler))  # some disks compress
        for at in range(0, _FILE_BYTES, len(filler)):
            os.pwrite(fd, filler, at)
        os.fsync(fd)
        buffers = tuple(mmap.mmap(-1, max(SIZES)) for _ in range(QUEUE_DEPTH))  # pages are aligned as O_DIRECT needs
        for buffer in buffers:
            buffer[:] = filler[:]
        yield _File(fd, _go_direct(fd), buffers)
    finally:
        os.close(fd)


def _go_direct(fd: int) -> bool:
    """Leave the page cache out. Where that cannot be, drop what it holds of the file."""
    import fcntl

    if hasattr(os, "O_DIRECT"):
        try:
            fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_DIRECT)
            buffer = mmap.mmap(-1, SIZES[0])
            os.preadv(fd, [buffer], 0)
            return True
        except OSError:
            fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) & ~os.O_DIRECT)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    return False


def _seconds_a_request(file: _File, pool: ThreadPoolExecutor, mode: str, size: int, slot: float) -> float:
    """Seconds of one request by itself, or the disk's share of one of several in flight; requests lie anywhere."""
    threads = 1 if mode.endswith("alone") else QUEUE_DEPTH
    places = np.random.default_rng(size).permutation(_FILE_BYTES // size) * size

    def work(thread: int) -> int:
        view = memoryview(file.buffers[thread])[:size]
        done = 0
        while done == 0 or time.perf_counter() < end:
            place = int(places[(done * threads + thread) % len(places)])
            writes = mode.startswith("write") or (mode == "both" and (done + thread) % 2 == 1)
            moved = os.pwritev(file.fd, [view], place) if writes else os.preadv(file.fd, [view], place)
            if moved != size:
                raise OSError(5, f"{moved} of {size} bytes moved")
            done += 1
        return done

    if not file.direct:
        os.posix_fadvise(file.fd, 0, 0, os.POSIX_FADV_DONTNEED)
    begin = time.perf_counter()
    end = begin + slot
    requests = sum(pool.map(work, range(threads)))
    if not file.direct and mode != "read":
        os.fdatasync(file.fd)
    return (time.perf_counter() - begin) / requests
