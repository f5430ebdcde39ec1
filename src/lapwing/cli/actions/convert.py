"""What `lapwing convert` does: the new array is written beside its place, by several processes, and then gets its name."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from types import FrameType
from typing import NoReturn

from lapwing.errors import RefusedError, RunError
from lapwing.launch.progress import ProgressBar
from lapwing.orphans import die_with
from lapwing.store.array import StoredArray
from lapwing.store.boxes import Box
from lapwing.store.conversion import block_of, boxes_of, check_apart, copy, create_like, forget, number_of_boxes
from lapwing.store.files.direct import explained
from lapwing.store.files.renaming import exchange, rename_new
from lapwing.store.opening import open_for_conversion
from lapwing.temporary import remove_abandoned, scratch_directory
from lapwing.units import duration, rate, size

_AHEAD = 2  # boxes a process has been given: the next one waits for it, not it for the next


def convert(source: str, path: Path, chunks: Sequence[int] | None, ranks: int, force: bool) -> str:
    """Make ``path`` an array of the elements of ``source``; what was done, as a line.

    Raises RefusedError where that is not wanted, RunError where the system cannot do it: nothing is left of it then.
    """
    began = time.monotonic()
    array = open_for_conversion(source)
    check_apart(source, str(path))
    _check_free(path, force)
    place = Path(os.path.realpath(path))
    remove_abandoned(place.parent)
    with _ended_as_by_an_error(), contextlib.ExitStack() as stack:
        with explained(f"{path} cannot be written"):
            scratch = stack.enter_context(scratch_directory("lapwing-convert", place.parent))
        made = create_like(array, str(scratch / place.name), chunks)
        _copy(array, made, ranks)
        with explained(f"{path} cannot be written"):
            _put(Path(made.path), place, force)
        text = repr(open_for_conversion(place)).partition(": ")[2].removesuffix(">")
    seconds = time.monotonic() - began
    return f"{path}: {text}; {size(array.nbytes)} in {duration(seconds)}, {rate(array.nbytes / seconds)}"


def _check_free(path: Path, force: bool) -> None:
    """Raises RefusedError where something is there that may not be replaced."""
    if not os.path.lexists(path):
        if not path.parent.is_dir():
            raise RefusedError(f"{path}: there is no folder {path.parent}. Make it, or name another.")
        return
    if not force:
        raise RefusedError(f"{path}: is there already. Name another, or replace it with --force.")
    try:
        open_for_conversion(path)
    except RefusedError as error:
        raise RefusedError(
            f"{path}: --force replaces arrays only, and that is none: {error} Remove it yourself if it is not needed."
        ) from None


def _copy(source: StoredArray, made: StoredArray, ranks: int) -> None:
    block = block_of(source, made)
    boxes, number = boxes_of(source, block), number_of_boxes(source, block)
    progress, label = ProgressBar(), f"converting {os.path.basename(source.path)}"
    copied = _copied_here if min(ranks, number) < 2 else _copied_by(min(ranks, number))
    try:
        for done, _ in enumerate(copied(source.path, made.path, boxes), 1):
            progress.update(label, done / number)
    finally:
        progress.close()
        forget()


_Copied = Callable[[str, str, Iterator[Box]], Iterator[int]]


def _copied_here(source: str, made: str, boxes: Iterator[Box]) -> Iterator[int]:
    for box in boxes:
        yield copy(source, made, box)


def _copied_by(ranks: int) -> _Copied:
    """The bytes of each box when it has been copied, by so many processes in any order. Raises what ``copy`` raises."""

    def copied(source: str, made: str, boxes: Iterator[Box]) -> Iterator[int]:
        pool = ProcessPoolExecutor(ranks, get_context("spawn"), _begin, (os.getpid(),))
        pending: set[Future[int]] = set()
        try:
            with _interrupts_held_back():  # from the processes for good: Ctrl-C is for this one, which ends them
                pending.add(pool.submit(copy, source, made, next(boxes)))
            for box in boxes:
                pending.add(pool.submit(copy, source, made, box))
                if len(pending) >= _AHEAD * ranks:
                    done, pending = wait(pending, return_when=FIRST_COMPLETED)
                    yield from (one.result() for one in done)
            done, pending = wait(pending)
            yield from (one.result() for one in done)
        except BrokenProcessPool:
            raise RunError(
                f"{source}: a process that copied was ended from outside; often there is not enough memory. Take fewer "
                "ranks (-n)."
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)

    return copied


def _begin(parent: int) -> None:
    """A process that copies: it ends with the command, however that ends."""
    die_with(parent, signal.SIGKILL)


@contextlib.contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Ctrl-C comes after the block, and never to processes that are started inside it.

    They inherit the mask of this thread; other threads of this process may get the signal meanwhile.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # they inherit that, too
        yield
        return
    came = []
    handler = signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
    if came:
        raise KeyboardInterrupt


@contextlib.contextmanager
def _ended_as_by_an_error() -> Iterator[None]:
    """Inside the block signals that end the process have it remove what it made before."""

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    numbers = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN]
    before = {number: signal.signal(number, leave) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _put(made: Path, place: Path, force: bool) -> None:
    """Give an array its place. What was there goes into the folder of the new one, which is removed. Raises OSError."""
    if not force:
        rename_new(str(made), str(place))
    elif not os.path.lexists(place):
        os.rename(made, place)
    elif not exchange(str(made), str(place)):
        if not place.is_dir() and not made.is_dir():
            os.replace(made, place)
            return
        before = made.with_name(f"{made.name}.before")
        os.rename(place, before)
        try:
            os.rename(made, place)
        except OSError:
            os.rename(before, place)
            raise
