"""The part of emitters common to all languages: collects support requirements, and computes the bounds of a nest's interior."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from lapwing.overlap import mpi
from lapwing.overlap.ir.expressions import Expression, Number
from lapwing.overlap.ir.rewriter import argument_of
from lapwing.overlap.ir.split_phase import Drain, Level, OutlinedCall, Part, SplitPhaseOperation, plus
from lapwing.overlap.ir.statements import Loop
from lapwing.overlap.languages.shared.strip_mining import Heads
from lapwing.overlap.languages.shared.support_requirements import SupportRequirements, drain_name, progress_name
from lapwing.overlap.source.spans import Source

# The arguments of the support procedures, in this order.
POSTED = (mpi.Role.COUNT, mpi.Role.TYPE, mpi.Role.SOURCE, mpi.Role.RECV_TAG, mpi.Role.COMM)
SENT = (
    mpi.Role.SEND_BUFFER,
    mpi.Role.COUNT,
    mpi.Role.TYPE,
    mpi.Role.DEST,
    mpi.Role.SEND_TAG,
    mpi.Role.COMM,
)


class Emitter(ABC):
    """Emits statements for one file, and collects their support requirements.

    ``stem_of``: the stems of the program's files, by number.
    """

    receives_by_support: bool
    """Whether a receive without a copy is a support procedure rather than MPI's."""
    sets_error_codes: bool
    """Whether the emitted text sets the variables that the calls had for their error codes."""

    def __init__(self, source: Source, requirements: SupportRequirements, stem_of: Callable[[int], str]) -> None:
        self.source = source
        self.requirements = requirements
        self._stem_of = stem_of

    # ---- expressions --------------------------------------------------------------------------------------------------

    @abstractmethod
    def text(self, expression: Expression) -> str:
        """The expression as it is written, on one line."""

    @abstractmethod
    def assignment(self, target: Expression, value: Expression) -> str: ...

    @abstractmethod
    def unless_equal(self, left: Expression, right: Expression) -> tuple[str, str]:
        """The head of a conditional that is true if the two differ, and the line that ends it."""

    # ---- calls --------------------------------------------------------------------------------------------------------

    @abstractmethod
    def call(self, call: OutlinedCall) -> tuple[str, ...]: ...

    @abstractmethod
    def _call_support(self, name: str) -> str:
        """A call of a procedure of this file's support code without arguments."""

    @abstractmethod
    def _call_elsewhere(self, names: Sequence[str]) -> tuple[str, ...]:
        """Calls of procedures that may be in another file's support code."""

    def drain(self, drain: Drain) -> tuple[str, ...]:
        return self._call_elsewhere([drain_name(self._stem_of(number)) for number in drain.sources])

    def progress(self, lender: int | None = None) -> tuple[str, ...]:
        """``lender``: as in split_phase.Progress."""
        if lender is not None:
            return self._call_elsewhere([progress_name(self._stem_of(lender))])
        self.requirements.progresses = True
        return (self._call_support(progress_name(self.requirements.stem)),)

    def operation(self, operation: SplitPhaseOperation) -> tuple[str, ...]:
        self.requirements.slots = max(self.requirements.slots, operation.slot)
        if operation.copies:
            self.requirements.copying.add(operation.part)
        elif operation.part is Part.POST and (operation.plain_if_short or self.receives_by_support):
            self.requirements.direct = True
        if operation.plain_if_short:
            self.requirements.plain.add((operation.part, operation.copies))
        return self._operation(operation)

    @abstractmethod
    def _operation(self, operation: SplitPhaseOperation) -> tuple[str, ...]: ...

    def _arguments(self, operation: SplitPhaseOperation, *roles: mpi.Role) -> list[str]:
        texts = []
        for role in roles:
            argument = argument_of(operation.call, role)
            assert argument is not None, (operation.call.name, role)
            texts.append(self.text(argument))
        return texts

    @abstractmethod
    def support(self, place: int) -> str:
        """Support code to be inserted at ``place``. Empty if none is required."""

    # ---- loops --------------------------------------------------------------------------------------------------------

    @abstractmethod
    def strips(self, loop: Loop, head: str) -> Heads | None:
        """The strip-mined form of the loop's ``head`` (its text up to the body); None if its form is not supported."""

    @abstractmethod
    def guard(self, box: Sequence[Level]) -> tuple[str, ...]:
        """The line at the top of the innermost body that skips the interior."""

    @abstractmethod
    def header(self, level: Level) -> str:
        """The head of the interior's loop, without a brace."""

    @abstractmethod
    def outside(self, box: Sequence[Level]) -> tuple[str, ...]:
        """The heads of successive loops over the boundary at the last level. In rows that outer levels exclude from the
        interior, the first loop runs all iterations. Empty if the boundary is written with a guard."""

    @abstractmethod
    def _bounds(self, loop: Loop) -> tuple[str | Expression, str | Expression]:
        """The variable's first and last value in the loop."""

    @abstractmethod
    def _sum(self, loop: Loop, text: str, number: int) -> str:
        """The sum of a bound given as text and a number."""

    @abstractmethod
    def _extreme(self, least: bool, *ends: str) -> str:
        """The smallest (``least``), or the largest, of several ends."""

    def _tests(self, box: Sequence[Level], greater: str, less: str, also: str) -> str:
        """The test whether an iteration is in the interior, at these levels. The operators are spelled with blanks."""
        tests = []
        for level in box:
            low, high = self._interior_of(level)
            if level.below or level.low is not None:
                tests.append(f"{level.loop.variable.name}{greater}{low}")
            if level.above or level.high is not None:
                tests.append(f"{level.loop.variable.name}{less}{high}")
        return also.join(tests)

    def _interior_of(self, level: Level) -> tuple[str, str]:
        """The lowest and the highest value of the variable in the interior."""
        lower, upper = self._lowest_and_highest(level.loop)
        low = level.low if level.low is not None else lower if isinstance(lower, str) else plus(lower, level.below)
        high = level.high if level.high is not None else upper if isinstance(upper, str) else plus(upper, -level.above)
        return (
            self._sum(level.loop, low, level.below) if isinstance(low, str) else self._text_of(low),
            self._sum(level.loop, high, -level.above) if isinstance(high, str) else self._text_of(high),
        )

    def _iterations_inside(self, level: Level) -> tuple[str, str]:
        """The lowest and the highest value of the variable in the interior, clipped to the loop's iterations."""
        low, high = self._interior_of(level)
        lower, upper = map(self._text_of, self._lowest_and_highest(level.loop))
        return (
            self._extreme(False, lower, low) if level.low is not None else low,
            self._extreme(True, upper, high) if level.high is not None else high,
        )

    def _text_of(self, end: str | Expression) -> str:
        return end if isinstance(end, str) else self.text(end)

    def _lowest_and_highest(self, loop: Loop) -> tuple[str | Expression, str | Expression]:
        first, last = self._bounds(loop)
        return (last, first) if descends(loop) else (first, last)


def descends(loop: Loop) -> bool:
    return isinstance(loop.step, Number) and loop.step.value < 0


def candidates(least: bool, ends: Sequence[str]) -> list[str]:
    """The ends among which to choose the smallest, or the largest, after comparing numbers at once."""
    choose = min if least else max
    numbers = [int(e) for e in ends if re.fullmatch(r"-?\d+", e)]
    others = list(dict.fromkeys(e for e in ends if not re.fullmatch(r"-?\d+", e)))
    return [*others, *([str(choose(numbers))] if numbers else [])]


def ending(operation: SplitPhaseOperation) -> str:
    """The suffix of the support procedure's name: whether short messages need no copy."""
    return "_if_long" if operation.plain_if_short else ""
