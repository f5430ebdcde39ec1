"""The errors Lapwing raises, one class per kind of trouble.

Every message says where, what was found, what was expected and what to do.
"""

from __future__ import annotations

from dataclasses import dataclass


class LapwingError(Exception):
    """Base of every error Lapwing raises on purpose; its text is meant for the user."""


@dataclass(frozen=True)
class Refusal:
    """One thing that is not accepted: the whole message about it, and where it stands.

    ``file`` and ``line`` are None where no line of a file is at fault, as with a grid that does not fit. ``tiled_only``: whether
    it keeps loops from being cut into tiles, and not from being done in their own order on one rank. ``memory_is_shared``:
    whether it is that arrays share memory.
    """

    text: str
    file: str | None = None
    line: int | None = None
    tiled_only: bool = False
    memory_is_shared: bool = False

    def __str__(self) -> str:
        return self.text


class RefusedError(LapwingError):
    """A nest, its arguments or a command line that Lapwing does not accept; nothing has run yet.

    ``refusals`` holds every single thing that was found, in the order of their lines; the error's text is theirs, a line
    each. The command line exits with status 2.
    """

    def __init__(self, *refusals: Refusal | str) -> None:
        self.refusals = tuple(r if isinstance(r, Refusal) else Refusal(r) for r in refusals)
        super().__init__("\n".join(map(str, self.refusals)))


class RanksDiffer(RefusedError):
    """Ranks have called with different arguments, or other things altogether (DifferentCalls), and know it."""


class DifferentCalls(RanksDiffer):
    """Ranks have made different calls, and know it."""


class BuildError(LapwingError):
    """A compiler is missing, or it rejected or could not write what it was given."""


class RunError(LapwingError):
    """A run that started and could not finish; arrays passed in are as they were before."""


class BeyondError(RunError):
    """A run that met a number which Python has and Lapwing has not, such as an integer of more than 64 bits."""
