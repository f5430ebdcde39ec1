"""Phases and divided calls as statements of their language, and what support code they need."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from lapwing.overlap import mpi
from lapwing.overlap.ir.expressions import Cast, Constant, Expression, Name, Number, Operation
from lapwing.overlap.ir.rewriter import argument_of
from lapwing.overlap.ir.split_phase import DividedCall, Drain, Level, Part, SplitPhaseOperation, plus
from lapwing.overlap.ir.statements import Loop
from lapwing.overlap.languages.c.parsing import toolchain
from lapwing.overlap.languages.c.parsing.includes import included
from lapwing.overlap.languages.c.writing.printer import indentation_step, indented
from lapwing.overlap.languages.c.writing.support import c_support
from lapwing.overlap.languages.fortran.writing.collectives import FortranCollectives, buffer_declaration
from lapwing.overlap.languages.fortran.writing.support import fortran_support
from lapwing.overlap.languages.shared.support_requirements import SupportRequirements, drain_name, progress_name
from lapwing.overlap.source.spans import Source, Span


def expression_text(source: Source, expression: Expression) -> str:
    """The expression as it is written, on one line."""
    if expression.span is None:
        if isinstance(expression, Number):
            return str(expression.value)
        if isinstance(expression, Name):
            return expression.symbol.name
        if isinstance(expression, Constant):
            return expression.name
        if isinstance(expression, Operation) and len(expression.arguments) == 2:
            left, right = (_in_parentheses(source, e) for e in expression.arguments)
            return f"{left} {expression.operator} {right}"
        if isinstance(expression, Cast):
            return expression_text(source, expression.value)
        raise ValueError(f"{expression} stands nowhere")
    lines = source.text(expression.span).splitlines()
    if source.language == "fortran" and len(lines) > 1:
        if source.form == "fixed":
            kept = [line for line in lines[1:] if line[:1].upper() not in ("C", "*", "!") and line.strip()]
            lines = [lines[0][:72], *(line[6:72] for line in kept)]
        else:
            lines = [line.split("!")[0].strip().strip("&") for line in lines]
    elif len(lines) > 1:
        lines = [re.sub(r"//.*", "", line) for line in lines]
    return " ".join(" ".join(lines).split())


def c_ends(source: Source, loop: Loop) -> tuple[str, str] | None:
    """The first and the last turn of C's ``for (i = a; i < b; i++)`` as the source spells them; None for other heads."""
    name = re.escape(loop.variable.name)
    head = " ".join(source.text(Span(loop.span.source, loop.span.start, loop.body.span.start)).split())
    pattern = rf"for ?\((?:[\w ]+ )?{name} ?= ?([^;]+); ?{name} ?(<=|>=|<|>) ?([^;]+); ?[^;]*\)"
    found = re.match(pattern, head)
    if found is None or re.search(r"/[*/]|\\", head) or "," in found[1] or re.search(r"[?&|^]|==|!=|,", found[3]):
        return None
    first, last = (
        text if text.isdigit() or _is_one_term(source, loop, text) else f"({text})"
        for text in (found[1].strip(), found[3].strip())
    )
    return first, {"<": f"({last} - 1)", ">": f"({last} + 1)"}.get(found[2], last)


def _is_one_term(source: Source, loop: Loop, text: str) -> bool:
    """Whether the text is a variable in the loop's head or a number's name: what looks like one may be a macro for more."""
    return any(e.symbol.name == text for e in loop.every_expression() if isinstance(e, Name)) or _is_number_macro(
        source, text
    )


def _is_number_macro(source: Source, name: str) -> bool:
    """Whether the file itself defines the name, always as a number or as something in parentheses."""
    pattern = rf"^[ \t]*#[ \t]*define[ \t]+{re.escape(name)}\b[ \t]*(.*?)[ \t]*(?:/[*/].*)?$"
    bodies = re.findall(pattern, source.data.decode("latin-1"), re.MULTILINE)
    return bool(bodies) and all(re.fullmatch(r"\w+|\([^()]*\)", body) for body in bodies)


def _descends(loop: Loop) -> bool:
    return isinstance(loop.step, Number) and loop.step.value < 0


def _in_parentheses(source: Source, expression: Expression) -> str:
    text = expression_text(source, expression)
    return text if re.fullmatch(r"\w+(\([\w, ]*\))?", text) else f"({text})"


@dataclass
class Emitter:
    """Writes for one file; remembers what support it needs."""

    source: Source
    needs: SupportRequirements
    stem_of: Callable[[int], str]  # of the program's files

    @cached_property
    def collectives(self) -> FortranCollectives:
        return FortranCollectives(f"lapwing_{self.needs.stem}", self._text)

    # ---- statements ---------------------------------------------------------------------------------------------------

    def call(self, call: DividedCall) -> tuple[str, ...]:
        arguments = ", ".join(self._text(a) for a in call.arguments)
        if self.source.language == "fortran":
            return (f"call {call.name}({arguments})" if arguments else f"call {call.name}",)
        return (f"{call.name}({arguments});",)

    def guard(self, box: Sequence[Level]) -> tuple[str, ...]:
        """The line at the top of the innermost body that leaves out the interior. C: at once, by its loop's variable."""
        test = self._tests(box)
        if self.source.language == "fortran":
            return (f"if ({test}) cycle",)
        level = box[-1]
        low, high = self._turns_inside(level)
        return (f"if ({test}) {{ {level.loop.variable.name} = {low if _descends(level.loop) else high}; continue; }}",)

    def _tests(self, box: Sequence[Level]) -> str:
        """Whether a turn is the interior's, as far as these levels go."""
        fortran = self.source.language == "fortran"
        greater, less, also = (" .ge. ", " .le. ", " .and. ") if fortran else (" >= ", " <= ", " && ")
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
        lower, upper = self._bounds(level.loop)
        low = level.low if level.low is not None else lower if isinstance(lower, str) else plus(lower, level.below)
        high = level.high if level.high is not None else upper if isinstance(upper, str) else plus(upper, -level.above)
        return (
            self._c_sum(level.loop, low, level.below) if isinstance(low, str) else self._text_of(low),
            self._c_sum(level.loop, high, -level.above) if isinstance(high, str) else self._text_of(high),
        )

    def _c_sum(self, loop: Loop, text: str, number: int) -> str:
        """The sum of what ``c_ends`` says and a number, put together where that is a number or a variable and one."""
        if number == 0:
            return text
        if re.fullmatch(r"0|[1-9]\d*", text):
            return str(int(text) + number)
        found = re.fullmatch(r"\(([A-Za-z_]\w*) ([+-]) ([1-9]\d*)\)", text)
        if found is not None and _is_one_term(self.source, loop, found[1]):
            text, number = found[1], number + int(f"{found[2]}{found[3]}")
        return f"{text} {'+' if number > 0 else '-'} {abs(number)}" if number else text

    def _turns_inside(self, level: Level) -> tuple[str, str]:
        """The lowest and the highest value of the variable in the interior that are turns of the loop."""
        low, high = self._interior_of(level)
        lower, upper = map(self._text_of, self._bounds(level.loop))
        return (
            self._extreme(False, lower, low) if level.low is not None else low,
            self._extreme(True, upper, high) if level.high is not None else high,
        )

    def _text_of(self, end: str | Expression) -> str:
        return end if isinstance(end, str) else expression_text(self.source, end)

    def _bounds(self, loop: Loop) -> tuple[str | Expression, str | Expression]:
        """The variable's lowest and highest value in the loop. C: as its head spells them, for the model's bounds are folded."""
        first: str | Expression = loop.lower
        last: str | Expression = loop.upper
        if self.source.language != "fortran":
            spelled = c_ends(self.source, loop)
            assert spelled is not None  # index_set_splitting/interior.py asked
            first, last = spelled
        return (last, first) if _descends(loop) else (first, last)

    def header(self, level: Level) -> str:
        """The head of the interior's loop; C's brace is not part of it."""
        loop, down = level.loop, _descends(level.loop)
        low, high = self._turns_inside(level)
        first, last = (high, low) if down else (low, high)
        name = loop.variable.name
        if self.source.language == "fortran":
            return f"do {name} = {first}, {last}" + (", -1" if down else "")
        declared = f"{loop.variable.type.text} " if loop.declares else ""
        compare, step = (">=", "--") if down else ("<=", "++")
        return f"for ({declared}{name} = {first}; {name} {compare} {last}; {name}{step})"

    def outside(self, box: Sequence[Level]) -> tuple[str, str]:
        """Fortran: the heads of two loops, one after the other, over what the last level leaves out of the interior. In rows
        that are not the interior's, by the levels before, the first takes all turns."""
        level = box[-1]
        rows, name = self._tests(box[:-1]), level.loop.variable.name
        lower, upper = (e for e in self._bounds(level.loop) if not isinstance(e, str))
        low = level.low if level.low is not None else plus(lower, level.below)
        high = level.high if level.high is not None else plus(upper, -level.above)

        def end(inside: Expression, outside: Expression) -> str:
            texts = [expression_text(self.source, e) for e in (inside, outside)]
            return f"merge({texts[0]}, {texts[1]}, {rows})" if rows else texts[0]

        down = _descends(level.loop)
        if down:
            before, after = end(plus(high, 1), lower), end(plus(low, -1), plus(lower, -1))
            first, last, begins, limit = upper, lower, high, level.high
        else:
            before, after = end(plus(low, -1), upper), end(plus(high, 1), plus(upper, 1))
            first, last, begins, limit = lower, upper, low, level.low
        start, stop, inner = (expression_text(self.source, e) for e in (first, last, begins))
        step = ", -1" if down else ""
        outer = [start] if limit is not None else []
        return (
            f"do {name} = {start}, {self._extreme(not down, stop, before)}{step}",
            f"do {name} = {self._extreme(down, *outer, inner, after)}, {stop}{step}",
        )

    def _extreme(self, least: bool, *ends: str) -> str:
        """The smallest (``least``), or the largest, of several ends. C: of two."""
        choose = min if least else max
        numbers = [int(e) for e in ends if re.fullmatch(r"-?\d+", e)]
        others = list(dict.fromkeys(e for e in ends if not re.fullmatch(r"-?\d+", e)))
        kept = [*others, *([str(choose(numbers))] if numbers else [])]
        if len(kept) == 1:
            return kept[0]
        if self.source.language == "fortran":
            return f"{choose.__name__}({', '.join(kept)})"
        end, limit = (e if re.fullmatch(r"\w+", e) else f"({e})" for e in ends)
        return f"({end} {'<' if least else '>'} {limit} ? {end} : {limit})"

    def drain(self, drain: Drain) -> tuple[str, ...]:
        return self._calls_elsewhere([drain_name(self.stem_of(number)) for number in drain.sources])

    def progress(self, lender: int | None = None) -> tuple[str, ...]:
        """``lender``: as in phases.Progress."""
        if lender is not None:
            return self._calls_elsewhere([progress_name(self.stem_of(lender))])
        self.needs.progresses = True
        name = progress_name(self.needs.stem)
        return (f"call {name}()",) if self.source.language == "fortran" else (f"{name}();",)

    def _calls_elsewhere(self, names: Sequence[str]) -> tuple[str, ...]:
        """Calls of what another file's support may hold."""
        if self.source.language == "fortran":
            return tuple(f"call {name}()" for name in names)
        own = {drain_name(self.needs.stem)} if self.needs.drained_here else set()
        declared = toolchain.is_cpp(self.source.path)
        if declared:
            self.needs.elsewhere.update(set(names) - own)
        return tuple(
            f"{name}();" if declared or name in own else f"{{ extern void {name}(void); {name}(); }}" for name in names
        )

    def phase(self, phase: SplitPhaseOperation) -> tuple[str, ...]:
        self.needs.slots = max(self.needs.slots, phase.slot)
        if phase.copies:
            self.needs.copying.add(phase.part)
        elif phase.part is Part.POST and (phase.plain_if_short or self.source.language == "fortran"):
            self.needs.direct = True
        if phase.plain_if_short:
            self.needs.plain.add((phase.part, phase.copies))
        if self.source.language == "fortran":
            return self._fortran(phase)
        return (self._c(phase),)

    def _text(self, expression: Expression) -> str:
        return expression_text(self.source, expression)

    def _arguments(self, phase: SplitPhaseOperation, *roles: mpi.Role) -> list[str]:
        texts = []
        for role in roles:
            argument = argument_of(phase.call, role)
            assert argument is not None, (phase.call.name, role)
            texts.append(self._text(argument))
        return texts

    def _c(self, phase: SplitPhaseOperation) -> str:
        slot = f"&lapwing_slots[{phase.slot - 1}]"
        status = "MPI_STATUS_IGNORE" if phase.status is None else self._text(phase.status)
        result = "" if phase.call.result is None else f"{self._text(phase.call.result)} = "

        def support(name: str, *roles: mpi.Role, more: Sequence[str] = ()) -> str:
            return f"lapwing_{name}({', '.join([slot, *self._arguments(phase, *roles), *more])});"

        match phase.part:
            case Part.SEND:
                return f"{result}{support(f'send{_ending(phase)}', *_SENT)}"
            case Part.POST if phase.copies:
                return support(f"post{_ending(phase)}", *_POSTED)
            case Part.POST if phase.plain_if_short:
                return support("receive_if_long", mpi.Role.RECV_BUFFER, *_POSTED)
            case Part.ARRIVE if phase.copies:
                return f"{result}{support('arrive', mpi.Role.RECV_BUFFER, more=[status])}"
            case Part.ARRIVE if phase.plain_if_short:
                return f"{result}{support('received', mpi.Role.RECV_BUFFER, more=[status])}"
            case Part.POST | Part.START:
                return self._c_start(phase)
        return f"{result}MPI_Wait(&lapwing_slots[{phase.slot - 1}].lw_request, {status});"

    def _c_start(self, phase: SplitPhaseOperation) -> str:
        """The nonblocking call itself."""
        message = mpi.lookup(phase.call.name or "")
        assert message is not None
        name = message.nonblocking or message.name
        instead = dict(phase.instead)
        kept = [
            instead.get(place) or self._text(a)
            for place, (a, p) in enumerate(zip(phase.call.arguments, message.parameters, strict=False))
            if p.role not in (mpi.Role.STATUS, mpi.Role.REQUEST)
        ]
        condition = "" if phase.unless is None else f"if (!{phase.unless}) "
        return f"{condition}{name}({', '.join([*kept, f'&lapwing_slots[{phase.slot - 1}].lw_request'])});"

    def _fortran(self, phase: SplitPhaseOperation) -> tuple[str, ...]:
        if phase.part in (Part.START, Part.END):
            error = self._error_lines(phase) if phase.part is Part.END else ()
            return (self.collectives.call(phase), *error)
        slot = str(phase.slot)
        status = None if phase.status is None else self._text(phase.status)
        ending = f"_{self._type_number(phase)}"
        error = self._error_lines(phase)
        name = f"lapwing_{self.needs.stem}"
        if phase.part is Part.SEND:
            sent = ", ".join([slot, *self._arguments(phase, *_SENT)])
            return (f"call {name}_send{_ending(phase)}{ending}({sent})", *error)
        buffer = self._arguments(phase, mpi.Role.RECV_BUFFER)[0]
        if phase.part is Part.POST:
            posted = ", ".join(self._arguments(phase, *_POSTED))
            if phase.copies:
                return (f"call {name}_post{_ending(phase)}({slot}, {posted})",)
            return (f"call {name}_receive{_ending(phase)}{ending}({slot}, {buffer}, {posted})",)
        asked = (
            ()
            if status is None or status.upper() == "MPI_STATUS_IGNORE"
            else (f"call {name}_status({slot}, {status})",)
        )
        arrival = "arrive" if phase.copies else "received"
        return (f"call {name}_{arrival}{ending}({slot}, {buffer})", *asked, *error)

    def _error_lines(self, phase: SplitPhaseOperation) -> tuple[str, ...]:
        """MPI's errors end the program (motions check that), so an error code that is seen is success."""
        call = phase.wait if phase.part in (Part.ARRIVE, Part.END) and phase.wait is not None else phase.call
        message = mpi.lookup(call.name or "")
        assert message is not None
        parameters = mpi.fortran_parameters(message)
        if len(call.arguments) == len(parameters) and parameters[-1].role is mpi.Role.IERROR:
            return (f"{self._text(call.arguments[-1])} = 0",)
        return ()

    def _type_number(self, phase: SplitPhaseOperation) -> int:
        buffer = argument_of(phase.call, mpi.Role.RECV_BUFFER, mpi.Role.SEND_BUFFER)
        assert buffer is not None  # split_phase/blocking_calls.py asked
        return self.needs.types.setdefault(buffer_declaration(buffer), len(self.needs.types) + 1)

    # ---- support ------------------------------------------------------------------------------------------------------

    def support(self, place: int) -> str:
        """Text to be inserted at ``place``: C, after the last #include; Fortran, at the file's end. Empty if nothing needs it."""
        if not self.needs.anything:
            return ""
        if self.source.language == "fortran":
            step = len(indentation_step(self.source))
            return fortran_support(self.needs, self.collectives, self.source.form or "free", step)
        text = c_support(self.needs, toolchain.is_cpp(self.source.path), included(self.source.data, place))
        return indented(text, indentation_step(self.source))


def _ending(phase: SplitPhaseOperation) -> str:
    """Of the support procedure's name: whether short messages need no copy."""
    return "_if_long" if phase.plain_if_short else ""


def renamed(text: str, old: str, new: str) -> str:
    """The procedure's name ``old`` in its head as ``new``: the word before the arguments, else the first that is it."""
    name = rf"\b{re.escape(old)}\b"
    called = re.search(rf"{name}(?=\s*\()", text, re.IGNORECASE)
    found = called or re.search(name, text, re.IGNORECASE)
    return text if found is None else text[: found.start()] + new + text[found.end() :]


# What the support procedures take, in this order.
_POSTED = (mpi.Role.COUNT, mpi.Role.TYPE, mpi.Role.SOURCE, mpi.Role.RECV_TAG, mpi.Role.COMM)
_SENT = (
    mpi.Role.SEND_BUFFER,
    mpi.Role.COUNT,
    mpi.Role.TYPE,
    mpi.Role.DEST,
    mpi.Role.SEND_TAG,
    mpi.Role.COMM,
)
