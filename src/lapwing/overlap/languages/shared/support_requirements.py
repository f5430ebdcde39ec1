"""Support requirements: what the support code of one file has to contain for the statements written so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from lapwing.overlap.ir.split_phase import Part

# The comments that support text begins with.
SLOTS_COMMENT = "lapwing: what overlapped communication needs"
PROGRESS_COMMENT = "lapwing: lets MPI go on with what is under way"


@dataclass
class SupportRequirements:
    """``stem``: of the file's name, as an identifier. ``slots``: how many. ``copying``: operations that copy. ``direct``: some
    receive is without a copy, by support procedures. ``plain``: operations that are a blocking call if the message is short;
    and whether they copy otherwise. ``types``: Fortran's element types of buffers, numbered. ``interface``: Fortran's to MPI.
    ``drained_here``: whether only this file calls drains, and so no other needs to see its own. ``lends``: other files call its
    progress calls, too. ``elsewhere``: what C++ calls of other files' support. ``memcpy``: what transformations wrote calls it.
    """

    stem: str
    slots: int = 0
    copying: set[Part] = field(default_factory=set)
    direct: bool = False
    plain: set[tuple[Part, bool]] = field(default_factory=set)
    types: dict[str, int] = field(default_factory=dict)
    interface: str | None = None
    progresses: bool = False
    drained_here: bool = False
    lends: bool = False
    elsewhere: set[str] = field(default_factory=set)
    memcpy: bool = False

    @property
    def anything(self) -> bool:
        return bool(self.slots or self.progresses or self.elsewhere)

    @property
    def is_typed(self) -> bool:
        """Whether slots record the type of their message."""
        return bool(self.copying) or self.direct

    @property
    def holds(self) -> bool:
        """Whether some receive of a short message is deferred until it is needed."""
        return any(part is Part.POST for part, _ in self.plain)

    @property
    def drains(self) -> bool:
        """Whether copies may still be in flight when the program finalizes MPI."""
        return Part.SEND in self.copying


def drain_name(stem: str) -> str:
    return f"lapwing_{stem}_drain"


def progress_name(stem: str) -> str:
    return f"lapwing_{stem}_progress"
