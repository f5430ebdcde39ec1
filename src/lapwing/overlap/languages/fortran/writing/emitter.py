"""Statements printed in Fortran."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from lapwing.overlap import mpi
from lapwing.overlap.ir.expressions import Expression
from lapwing.overlap.ir.rewriter import argument_of
from lapwing.overlap.ir.split_phase import Level, OutlinedCall, Part, SplitPhaseOperation, plus
from lapwing.overlap.ir.statements import Loop
from lapwing.overlap.languages.fortran.writing import source_text, strip_mining
from lapwing.overlap.languages.fortran.writing.collectives import FortranCollectives, buffer_declaration
from lapwing.overlap.languages.fortran.writing.support import fortran_support
from lapwing.overlap.languages.shared.emitter import POSTED, SENT, Emitter, candidates, descends, ending
from lapwing.overlap.languages.shared.strip_mining import Heads
from lapwing.overlap.source.indentation import indentation_step


class FortranEmitter(Emitter):
    """Of one file."""

    receives_by_support = True
    sets_error_codes = True

    @cached_property
    def _collectives(self) -> FortranCollectives:
        return FortranCollectives(f"lapwing_{self.requirements.stem}", self.text)

    # ---- expressions --------------------------------------------------------------------------------------------------

    def text(self, expression: Expression) -> str:
        return source_text.expression_text(self.source, expression)

    def assignment(self, target: Expression, value: Expression) -> str:
        return f"{self.text(target)} = {self.text(value)}"

    def unless_equal(self, left: Expression, right: Expression) -> tuple[str, str]:
        return f"if ({self.text(left)} .ne. {self.text(right)}) then", "end if"

    # ---- calls --------------------------------------------------------------------------------------------------------

    def call(self, call: OutlinedCall) -> tuple[str, ...]:
        arguments = ", ".join(map(self.text, call.arguments))
        return (f"call {call.name}({arguments})" if arguments else f"call {call.name}",)

    def _call_support(self, name: str) -> str:
        return f"call {name}()"

    def _call_elsewhere(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(map(self._call_support, names))

    def _operation(self, operation: SplitPhaseOperation) -> tuple[str, ...]:
        if operation.part in (Part.START, Part.END):
            error = self._error_lines(operation) if operation.part is Part.END else ()
            return (self._collectives.call(operation), *error)
        slot = str(operation.slot)
        status = None if operation.status is None else self.text(operation.status)
        number = f"_{self._type_number(operation)}"
        error = self._error_lines(operation)
        name = f"lapwing_{self.requirements.stem}"
        if operation.part is Part.SEND:
            sent = ", ".join([slot, *self._arguments(operation, *SENT)])
            return (f"call {name}_send{ending(operation)}{number}({sent})", *error)
        buffer = self._arguments(operation, mpi.Role.RECV_BUFFER)[0]
        if operation.part is Part.POST:
            posted = ", ".join(self._arguments(operation, *POSTED))
            if operation.copies:
                return (f"call {name}_post{ending(operation)}({slot}, {posted})",)
            return (f"call {name}_receive{ending(operation)}{number}({slot}, {buffer}, {posted})",)
        asked = (
            ()
            if status is None or status.upper() == "MPI_STATUS_IGNORE"
            else (f"call {name}_status({slot}, {status})",)
        )
        arrival = "arrive" if operation.copies else "received"
        return (f"call {name}_{arrival}{number}({slot}, {buffer})", *asked, *error)

    def _error_lines(self, operation: SplitPhaseOperation) -> tuple[str, ...]:
        """MPI's errors end the program (eligibility.py checks that), so any error code that is seen is success."""
        call = (
            operation.wait
            if operation.part in (Part.ARRIVE, Part.END) and operation.wait is not None
            else operation.call
        )
        message = mpi.lookup(call.name or "")
        assert message is not None
        parameters = mpi.fortran_parameters(message)
        if len(call.arguments) == len(parameters) and parameters[-1].role is mpi.Role.IERROR:
            return (f"{self.text(call.arguments[-1])} = 0",)
        return ()

    def _type_number(self, operation: SplitPhaseOperation) -> int:
        buffer = argument_of(operation.call, mpi.Role.RECV_BUFFER, mpi.Role.SEND_BUFFER)
        assert buffer is not None  # checked by split_phase/blocking_calls.py
        return self.requirements.types.setdefault(buffer_declaration(buffer), len(self.requirements.types) + 1)

    def support(self, place: int) -> str:
        """At the file's end."""
        if not self.requirements.anything:
            return ""
        step = len(indentation_step(self.source))
        return fortran_support(self.requirements, self._collectives, self.source.form or "free", step)

    # ---- loops --------------------------------------------------------------------------------------------------------

    def strips(self, loop: Loop, head: str) -> Heads | None:
        return strip_mining.heads(self.source, loop, head)

    def guard(self, box: Sequence[Level]) -> tuple[str, ...]:
        return (f"if ({self._inside(box)}) cycle",)

    def _inside(self, box: Sequence[Level]) -> str:
        return self._tests(box, " .ge. ", " .le. ", " .and. ")

    def header(self, level: Level) -> str:
        down = descends(level.loop)
        low, high = self._iterations_inside(level)
        first, last = (high, low) if down else (low, high)
        return f"do {level.loop.variable.name} = {first}, {last}" + (", -1" if down else "")

    def outside(self, box: Sequence[Level]) -> tuple[str, ...]:
        level = box[-1]
        rows, name = self._inside(box[:-1]), level.loop.variable.name
        lower, upper = (e for e in self._lowest_and_highest(level.loop) if not isinstance(e, str))
        low = level.low if level.low is not None else plus(lower, level.below)
        high = level.high if level.high is not None else plus(upper, -level.above)

        def end(inside: Expression, outside: Expression) -> str:
            texts = [self.text(e) for e in (inside, outside)]
            return f"merge({texts[0]}, {texts[1]}, {rows})" if rows else texts[0]

        down = descends(level.loop)
        if down:
            before, after = end(plus(high, 1), lower), end(plus(low, -1), plus(lower, -1))
            first, last, begins, limit = upper, lower, high, level.high
        else:
            before, after = end(plus(low, -1), upper), end(plus(high, 1), plus(upper, 1))
            first, last, begins, limit = lower, upper, low, level.low
        start, stop, inner = (self.text(e) for e in (first, last, begins))
        step = ", -1" if down else ""
        outer = [start] if limit is not None else []
        return (
            f"do {name} = {start}, {self._extreme(not down, stop, before)}{step}",
            f"do {name} = {self._extreme(down, *outer, inner, after)}, {stop}{step}",
        )

    def _bounds(self, loop: Loop) -> tuple[str | Expression, str | Expression]:
        return loop.lower, loop.upper

    def _sum(self, loop: Loop, text: str, number: int) -> str:
        raise TypeError("Fortran's bounds are expressions")

    def _extreme(self, least: bool, *ends: str) -> str:
        kept = candidates(least, ends)
        return kept[0] if len(kept) == 1 else f"{'min' if least else 'max'}({', '.join(kept)})"
