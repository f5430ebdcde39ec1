"""P3's two ways through a matrix on disk, on this machine: one block in memory (its figure 3) and three in turn (figure 4).

One process, so there is neither a pipeline nor a frontier: what is left is whether I/O goes on while a block is computed. A file
without a name holds the matrix, block after block; the page cache is left out where the file system allows that.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lapwing.errors import RunError

Block = npt.NDArray[np.float64]
WAYS = ("read and write", "one block", "three blocks")
_BLOCKS_IN_MEMORY = 3


@dataclass(frozen=True)
class Matrix:
    """A matrix of ``blocks`` blocks in a file; buffers: room for three, and for a temporary result."""

    fd: int
    blocks: int
    buffers: tuple[mmap.mmap, ...]
    scratch: Block

    @property
    def bytes(self) -> int:
        return len(self.buffers[0])

    def read(self, block: int) -> None:
        self._whole(os.preadv(self.fd, [self._buffer(block)], block * self.bytes))

    def write(self, block: int) -> None:
        self._whole(os.pwritev(self.fd, [self._buffer(block)], block * self.bytes))

    def compute(self, block: int) -> None:
        """Means of neighbours; two passes over the block."""
        values = np.frombuffer(self._buffer(block), np.float64)
        np.add(values[:-1], values[1:], out=self.scratch)
        np.multiply(self.scratch, 0.5, out=values[1:])

    def _buffer(self, block: int) -> mmap.mmap:
        return self.buffers[block % len(self.buffers)]

    def _whole(self, moved: int) -> None:
        if moved != self.bytes:
            raise RunError(f"the disk moved {moved} of {self.bytes} bytes.")


@contextlib.contextmanager
def matrix(directory: Path, block_bytes: int, blocks: int) -> Iterator[Matrix]:
    """A new file in a directory, filled; it is gone afterwards. Raises RunError where the disk fails."""
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            buffers = tuple(mmap.mmap(-1, block_bytes) for _ in range(_BLOCKS_IN_MEMORY))
            for buffer in buffers:
                buffer[:] = np.random.default_rng(0).random(block_bytes // 8).tobytes()
            made = Matrix(file.fileno(), blocks, buffers, np.empty(block_bytes // 8 - 1))
            for block in range(blocks):
                made.write(block)
            os.fsync(made.fd)
            _leave_out_the_cache(made.fd)
            yield made
    except OSError as error:
        raise RunError(f"{directory}: the disk fails: {error.strerror}.") from error


def seconds(way: str, held: Matrix) -> float:
    """Seconds to work once through the matrix in one of WAYS."""
    begin = time.perf_counter()
    {"read and write": _read_and_write, "one block": _one_block, "three blocks": _three_blocks}[way](held)
    os.fsync(held.fd)
    return time.perf_counter() - begin


def _read_and_write(held: Matrix) -> None:
    for block in range(held.blocks):
        held.read(block)
        held.write(block)


def _one_block(held: Matrix) -> None:
    for block in range(held.blocks):
        held.read(block)
        held.compute(block)
        held.write(block)


def _three_blocks(held: Matrix) -> None:
    """The disk always has something to do: after reading block i it writes block i - 2, while i - 1 is computed."""
    with ThreadPoolExecutor(1) as disk:
        reads: list[Future[None]] = [disk.submit(held.read, 0)]
        writes: list[Future[None]] = []
        for block in range(held.blocks):
            if block + 1 < held.blocks:
                reads.append(disk.submit(held.read, block + 1))  # after the write of block - 2, whose buffer it takes
            reads[block].result()
            held.compute(block)
            writes.append(disk.submit(held.write, block))
        for done in (*reads, *writes):
            done.result()


def _leave_out_the_cache(fd: int) -> None:
    import fcntl

    with contextlib.suppress(OSError, AttributeError):
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_DIRECT)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
