"""Everything that is refused of a nest, gathered so that all of it can be shown at once.

What rests on a part that is refused says nothing of its own: it stops with ``Stopped``, and the next independent part is looked
at, as compilers recover from an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn, TypeVar

from lapwing.errors import Refusal, RefusedError

Item = TypeVar("Item")
Result = TypeVar("Result")


class Stopped(Exception):
    """What was looked at is refused, or rests on something that is; the refusal has been noted."""


class Refusals:
    """What has been refused in one file so far."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._found: dict[Refusal, None] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def count(self) -> int:
        """How many there are."""
        return len(self._found)

    def forget_after(self, count: int) -> None:
        """Forget all but the first: what they are about is looked at again."""
        self._found = dict(list(self._found.items())[:count])

    def note(
        self, line: int, found: str, advice: str, tiled_only: bool = False, memory_is_shared: bool = False
    ) -> None:
        """Note a refusal: what was found, and what is expected or to be done; tiled_only, memory_is_shared: see Refusal."""
        text = f"{self.file}:{line}: {found}. {advice[0].upper()}{advice[1:].rstrip('.')}."
        self._found.setdefault(Refusal(text, self.file, line, tiled_only, memory_is_shared))

    def refuse(self, line: int, found: str, advice: str, tiled_only: bool = False) -> NoReturn:
        """Note a refusal and stop looking at what it is about."""
        self.note(line, found, advice, tiled_only)
        raise Stopped

    @contextmanager
    def recovering(self) -> Iterator[None]:
        """After the block, go on with what does not depend on it."""
        with suppress(Stopped):
            yield

    def each(self, action: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """The results of an action on independent items: all are looked at, before one that stopped stops the whole."""
        results, stopped = [], False
        for item in items:
            try:
                results.append(action(item))
            except Stopped:
                stopped = True
        if stopped:
            raise Stopped
        return results

    def raise_if_any(self) -> None:
        """Raise RefusedError with everything that was noted, in the order of the lines."""
        if self._found:
            raise RefusedError(*sorted(self._found, key=lambda refusal: refusal.line or 0))
