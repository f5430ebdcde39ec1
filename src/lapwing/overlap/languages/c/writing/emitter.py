"""Emits statements in C and C++."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from lapwing.overlap import mpi
from lapwing.overlap.ir.expressions import Expression
from lapwing.overlap.ir.split_phase import Level, OutlinedCall, Part, SplitPhaseOperation
from lapwing.overlap.ir.statements import Loop
from lapwing.overlap.languages.c.parsing.includes import included
from lapwing.overlap.languages.c.writing import source_text, strip_mining
from lapwing.overlap.languages.c.writing.printer import indented
from lapwing.overlap.languages.c.writing.support import c_support
from lapwing.overlap.languages.shared.emitter import POSTED, SENT, Emitter, candidates, descends, ending
from lapwing.overlap.languages.shared.strip_mining import Heads
from lapwing.overlap.languages.shared.support_requirements import SupportRequirements, drain_name
from lapwing.overlap.source.indentation import indentation_step
from lapwing.overlap.source.spans import Source


class CEmitter(Emitter):
    """Emits statements for one file."""

    receives_by_support = False
    sets_error_codes = False

    def __init__(
        self, source: Source, requirements: SupportRequirements, stem_of: Callable[[int], str], cpp: bool
    ) -> None:
        super().__init__(source, requirements, stem_of)
        self._cpp = cpp

    # ---- expressions --------------------------------------------------------------------------------------------------

    def text(self, expression: Expression) -> str:
        return source_text.expression_text(self.source, expression)

    def assignment(self, target: Expression, value: Expression) -> str:
        return f"{self.text(target)} = {self.text(value)};"

    def unless_equal(self, left: Expression, right: Expression) -> tuple[str, str]:
        return f"if ({self.text(left)} != {self.text(right)}) {{", "}"

    # ---- calls --------------------------------------------------------------------------------------------------------

    def call(self, call: OutlinedCall) -> tuple[str, ...]:
        return (f"{call.name}({', '.join(map(self.text, call.arguments))});",)

    def _call_support(self, name: str) -> str:
        return f"{name}();"

    def _call_elsewhere(self, names: Sequence[str]) -> tuple[str, ...]:
        own = {drain_name(self.requirements.stem)} if self.requirements.drained_here else set()
        if self._cpp:
            self.requirements.elsewhere.update(set(names) - own)
        return tuple(
            f"{name}();" if self._cpp or name in own else f"{{ extern void {name}(void); {name}(); }}" for name in names
        )

    def _operation(self, operation: SplitPhaseOperation) -> tuple[str, ...]:
        return (self._text_of_operation(operation),)

    def _text_of_operation(self, operation: SplitPhaseOperation) -> str:
        slot = f"&lapwing_slots[{operation.slot - 1}]"
        status = "MPI_STATUS_IGNORE" if operation.status is None else self.text(operation.status)
        result = "" if operation.call.result is None else f"{self.text(operation.call.result)} = "

        def support(name: str, *roles: mpi.Role, more: Sequence[str] = ()) -> str:
            return f"lapwing_{name}({', '.join([slot, *self._arguments(operation, *roles), *more])});"

        match operation.part:
            case Part.SEND:
                return f"{result}{support(f'send{ending(operation)}', *SENT)}"
            case Part.POST if operation.copies:
                return support(f"post{ending(operation)}", *POSTED)
            case Part.POST if operation.plain_if_short:
                return support("receive_if_long", mpi.Role.RECV_BUFFER, *POSTED)
            case Part.ARRIVE if operation.copies:
                return f"{result}{support('arrive', mpi.Role.RECV_BUFFER, more=[status])}"
            case Part.ARRIVE if operation.plain_if_short:
                return f"{result}{support('received', mpi.Role.RECV_BUFFER, more=[status])}"
            case Part.POST | Part.START:
                return self._start(operation)
        return f"{result}MPI_Wait(&lapwing_slots[{operation.slot - 1}].lw_request, {status});"

    def _start(self, operation: SplitPhaseOperation) -> str:
        """The nonblocking call itself."""
        message = mpi.lookup(operation.call.name or "")
        assert message is not None
        name = message.nonblocking or message.name
        instead = dict(operation.instead)
        kept = [
            instead.get(place) or self.text(a)
            for place, (a, p) in enumerate(zip(operation.call.arguments, message.parameters, strict=False))
            if p.role not in (mpi.Role.STATUS, mpi.Role.REQUEST)
        ]
        condition = "" if operation.unless is None else f"if (!{operation.unless}) "
        return f"{condition}{name}({', '.join([*kept, f'&lapwing_slots[{operation.slot - 1}].lw_request'])});"

    def support(self, place: int) -> str:
        """Support code for after the last #include."""
        if not self.requirements.anything:
            return ""
        text = c_support(self.requirements, self._cpp, included(self.source.data, place))
        return indented(text, indentation_step(self.source))

    # ---- loops --------------------------------------------------------------------------------------------------------

    def strips(self, loop: Loop, head: str) -> Heads | None:
        return strip_mining.heads(self.source, loop, head)

    def guard(self, box: Sequence[Level]) -> tuple[str, ...]:
        """Skips the interior in one step, by setting the loop's variable."""
        level = box[-1]
        low, high = self._iterations_inside(level)
        test = self._tests(box, " >= ", " <= ", " && ")
        return (f"if ({test}) {{ {level.loop.variable.name} = {low if descends(level.loop) else high}; continue; }}",)

    def header(self, level: Level) -> str:
        loop, down = level.loop, descends(level.loop)
        low, high = self._iterations_inside(level)
        first, last = (high, low) if down else (low, high)
        name = loop.variable.name
        declared = f"{loop.variable.type.text} " if loop.declares else ""
        compare, step = (">=", "--") if down else ("<=", "++")
        return f"for ({declared}{name} = {first}; {name} {compare} {last}; {name}{step})"

    def outside(self, box: Sequence[Level]) -> tuple[str, ...]:
        return ()

    def _bounds(self, loop: Loop) -> tuple[str | Expression, str | Expression]:
        """As the loop's head spells them, since the model's bounds are folded."""
        spelled = source_text.ends(self.source, loop)
        assert spelled is not None  # checked by index_set_splitting/interior.py
        return spelled

    def _sum(self, loop: Loop, text: str, number: int) -> str:
        """Folded where the text is a number, or a variable plus a number."""
        if number == 0:
            return text
        if re.fullmatch(r"0|[1-9]\d*", text):
            return str(int(text) + number)
        found = re.fullmatch(r"\(([A-Za-z_]\w*) ([+-]) ([1-9]\d*)\)", text)
        if found is not None and source_text.is_one_term(self.source, loop, found[1]):
            text, number = found[1], number + int(f"{found[2]}{found[3]}")
        return f"{text} {'+' if number > 0 else '-'} {abs(number)}" if number else text

    def _extreme(self, least: bool, *ends: str) -> str:
        """The smaller or larger of two ends."""
        kept = candidates(least, ends)
        if len(kept) == 1:
            return kept[0]
        end, limit = (e if re.fullmatch(r"\w+", e) else f"({e})" for e in ends)
        return f"({end} {'<' if least else '>'} {limit} ? {end} : {limit})"
