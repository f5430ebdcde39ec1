"""What an exported program does, operation by operation: its driver, specialised to one problem, as a graph of blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lapwing.export.driver.calls import Call, LocalCall
from lapwing.export.driver.residency import Boxes, Move
from lapwing.export.driver.values import View

Word = int | str  # 64 bits, or the register that holds them


@dataclass(frozen=True)
class SetTo:
    """A register gets a number, by its 64 bits, or what another one holds."""

    register: str
    word: Word


@dataclass(frozen=True)
class Fill:
    """All elements of an array get a value. element: its bytes."""

    memory: str
    element: bytes


@dataclass(frozen=True)
class Load:
    """An array gets what its file holds."""

    memory: str


@dataclass(frozen=True)
class Copy:
    """An array becomes another one's copy."""

    memory: str
    source: str


@dataclass(frozen=True)
class Exchange:
    """Elements go from rank to rank."""

    moves: tuple[tuple[str, Move], ...]


@dataclass(frozen=True)
class Result:
    """What a phase's accumulator holds in the end, put together over all ranks. kept: gets whether nothing has been assigned to
    it. noted: the accumulator that knows whether there was a term."""

    phase: int
    accumulator: str
    register: str
    kept: str | None = None


@dataclass(frozen=True, eq=False)
class CallNest:
    """views: of every array by its name in the call. words, starts: of every phase, its scalars and what its accumulators begin
    with."""

    call: Call
    views: Mapping[str, View]
    words: Sequence[Sequence[Word]]
    starts: Sequence[Sequence[Word]]
    results: Sequence[Result]


@dataclass(frozen=True, eq=False)
class CallLocally:
    """The same of what one rank does, from which the others get the results; None: every rank for itself."""

    call: LocalCall
    views: Mapping[str, View]
    words: Sequence[Word]
    results: Sequence[Result]
    rank: int | None


@dataclass(frozen=True)
class Go:
    block: int


@dataclass(frozen=True)
class Choose:
    """Goes on where a register holds another number than nothing, or a given one, and elsewhere where it does not."""

    register: str
    is_float: bool
    then: int
    otherwise: int
    equal: int | None = None


@dataclass(frozen=True)
class Count:
    """The next of the values of a range, or what stands behind the loop. position: the register with how many there have been."""

    position: str
    values: range
    target: str
    inside: int
    behind: int


@dataclass(frozen=True)
class Written:
    """An array that is a result. name: of its file. owned: by rank, the elements that differ from its ``origin``."""

    name: str
    view: View
    origin: Any
    owned: tuple[Boxes, ...]


@dataclass(frozen=True)
class Printed:
    """A number that is a result: text, or a register and its type as in lw_nest_reduction."""

    name: str
    text: str
    register: str | None = None
    dtype: str = ""


@dataclass(frozen=True)
class End:
    arrays: tuple[Written, ...]
    numbers: tuple[Printed, ...]


@dataclass(frozen=True)
class Stop:
    """Ends the program where Python would raise. text: what it says."""

    text: str


Operation = SetTo | Fill | Load | Copy | Exchange | CallNest | CallLocally | Go | Choose | Count | End | Stop


@dataclass(eq=False)
class Memory:
    """An array of the program. data: what its file holds at the beginning, None where it has none. kept: by rank, the elements
    that it has."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    data: Any = None
    kept: list[list[Any]] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class SpecialisedDriver:
    """blocks: of operations, of which the last one says where it goes on; the first begins. inputs: the arrays passed."""

    name: str
    where: str
    ranks: int
    blocks: Sequence[Sequence[Operation]]
    memories: Mapping[str, Memory]
    inputs: tuple[str, ...]
