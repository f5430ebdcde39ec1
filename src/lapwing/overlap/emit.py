"""Phases and divided calls as statements of their language, and the support code a changed file needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from string import Template

from lapwing.overlap import mpi
from lapwing.overlap.c import toolchain
from lapwing.overlap.fortran.write import comment_line, statement_lines
from lapwing.overlap.fortran_collectives import FortranCollectives, buffer_declaration, handle_types
from lapwing.overlap.motions.context import argument_of
from lapwing.overlap.phases import SHORT_MESSAGE, DividedCall, Drain, Level, Part, Phase
from lapwing.overlap.program import (
    Cast,
    Constant,
    Expression,
    Loop,
    Name,
    Number,
    Operation,
    Procedure,
    Source,
    Span,
)


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
    if found is None or "/*" in head or "," in found[1] or re.search(r"[?&|^]|==|!=|,", found[3]):
        return None
    first, last = (
        text.strip() if re.fullmatch(r"\w+", text.strip()) else f"({text.strip()})" for text in (found[1], found[3])
    )
    return first, {"<": f"({last} - 1)", ">": f"({last} + 1)"}.get(found[2], last)


def _plus(limit: Expression, number: int) -> str:
    """A limit of an interior (a number, or a variable less a number) plus a number."""
    match limit:
        case Number(value=value):
            return str(value + number)
        case Operation(operator="-", arguments=(Name(symbol=symbol), Number(value=value))):
            less = value - number
            return f"{symbol.name} - {less}" if less else symbol.name
        case Name(symbol=symbol):
            return f"{symbol.name} {'+' if number > 0 else '-'} {abs(number)}"
    raise ValueError(f"{limit} is no limit")


def _descends(loop: Loop) -> bool:
    return isinstance(loop.step, Number) and loop.step.value < 0


def _in_parentheses(source: Source, expression: Expression) -> str:
    text = expression_text(source, expression)
    return text if re.fullmatch(r"\w+", text) else f"({text})"


@dataclass
class Emitter:
    """Writes for one file; remembers what support it needs. ``stem``: of the file's name, as an identifier."""

    source: Source
    stem: str
    stem_of: Callable[[int], str]  # of the program's other files
    slots: int = 0
    copying: set[Part] = field(default_factory=set)
    direct: bool = False  # some receive is without a copy, by procedures of the support
    plain: set[tuple[Part, bool]] = field(default_factory=set)  # if they are short; and whether there is a copy else
    types: dict[str, int] = field(default_factory=dict)  # Fortran: element types of buffers, numbered
    interface: str | None = None
    progresses: bool = False
    drained: set[str] = field(default_factory=set)  # C++: the files' drains that are called

    @cached_property
    def collectives(self) -> FortranCollectives:
        return FortranCollectives(f"lapwing_{self.stem}", self._text)

    # ---- statements ---------------------------------------------------------------------------------------------------

    def call(self, call: DividedCall) -> tuple[str, ...]:
        arguments = ", ".join(self._text(a) for a in call.arguments)
        if self.source.language == "fortran":
            return (f"call {call.name}({arguments})" if arguments else f"call {call.name}",)
        return (f"{call.name}({arguments});",)

    def guard(self, box: Sequence[Level]) -> tuple[str, ...]:
        """The line at the top of the innermost body that leaves out the interior."""
        fortran = self.source.language == "fortran"
        greater, less, also = (" .ge. ", " .le. ", " .and. ") if fortran else (" >= ", " <= ", " && ")
        tests = []
        for level in box:
            low, high = self._ends(level.loop)
            if _descends(level.loop):
                low, high = high, low
            if level.below:
                tests.append(f"{level.loop.variable.name}{greater}{low} + {level.below}")
            if level.above:
                tests.append(f"{level.loop.variable.name}{less}{high} - {level.above}")
            for sign, end in ((greater, level.low), (less, level.high)):
                if end is not None:
                    tests.append(f"{level.loop.variable.name}{sign}{expression_text(self.source, end)}")
        test = also.join(tests)
        return (f"if ({test}) cycle",) if fortran else (f"if ({test}) continue;",)

    def _ends(self, whole: Loop) -> tuple[str, str]:
        """The loop's first and last turn. C: as its head spells them, for the model's bounds are folded."""
        if self.source.language != "fortran":
            spelled = c_ends(self.source, whole)
            assert spelled is not None  # motions/split_loop.py asked
            return spelled
        return _in_parentheses(self.source, whole.lower), _in_parentheses(self.source, whole.upper)

    def header(self, level: Level) -> str:
        """The head of the interior's loop; C's brace is not part of it."""
        loop, down = level.loop, _descends(level.loop)
        first, last = self._ends(loop)
        name = loop.variable.name
        skipped = (level.above, level.below) if down else (level.below, level.above)
        signs = ("-", "+") if down else ("+", "-")
        first = f"{first} {signs[0]} {skipped[0]}" if skipped[0] else first
        last = f"{last} {signs[1]} {skipped[1]}" if skipped[1] else last
        low, high = (None if e is None else expression_text(self.source, e) for e in (level.low, level.high))
        first, last = (
            self._within(first, high if down else low, down),
            self._within(last, low if down else high, not down),
        )
        if self.source.language == "fortran":
            return f"do {name} = {first}, {last}" + (", -1" if down else "")
        declared = f"{loop.variable.type.text} " if loop.declares else ""
        compare, step = (">=", "--") if down else ("<=", "++")
        return f"for ({declared}{name} = {first}; {name} {compare} {last}; {name}{step})"

    def outside(self, level: Level) -> tuple[str, str]:
        """Fortran: the heads of two loops, one after the other, over what limits leave out of the interior."""
        assert level.low is not None
        assert level.high is not None
        name, (first, last) = level.loop.variable.name, self._ends(level.loop)
        low, high = expression_text(self.source, level.low), expression_text(self.source, level.high)
        below, above = _plus(level.low, -1), _plus(level.high, 1)
        if _descends(level.loop):
            return (
                f"do {name} = {first}, max({last}, {above}), -1",
                f"do {name} = min({first}, {high}, {below}), {last}, -1",
            )
        return f"do {name} = {first}, min({last}, {below})", f"do {name} = max({first}, {low}, {above}), {last}"

    def _within(self, end: str, limit: str | None, least: bool) -> str:
        """The smaller (``least``), or larger, of a loop's end and a limit of the interior."""
        if limit is None:
            return end
        if self.source.language == "fortran":
            return f"{'min' if least else 'max'}({end}, {limit})"
        return f"({end} {'<' if least else '>'} ({limit}) ? {end} : ({limit}))"

    def drain(self, drain: Drain) -> tuple[str, ...]:
        names = [drain_name(self.stem_of(number)) for number in drain.sources]
        if self.source.language == "fortran":
            return tuple(f"call {name}()" for name in names)
        if self.is_cpp:
            self.drained.update(names)
            return tuple(f"{name}();" for name in names)
        return tuple(f"{{ extern void {name}(void); {name}(); }}" for name in names)

    def progress(self) -> tuple[str, ...]:
        self.progresses = True
        name = f"lapwing_{self.stem}_progress()"
        return (f"call {name}",) if self.source.language == "fortran" else (f"{name};",)

    def phase(self, phase: Phase) -> tuple[str, ...]:
        self.slots = max(self.slots, phase.slot)
        if phase.copies:
            self.copying.add(phase.part)
        elif phase.part is Part.POST and (phase.plain_if_short or self.source.language == "fortran"):
            self.direct = True
        if phase.plain_if_short:
            self.plain.add((phase.part, phase.copies))
        if self.source.language == "fortran":
            return self._fortran(phase)
        return (self._c(phase),)

    def _text(self, expression: Expression) -> str:
        return expression_text(self.source, expression)

    def _arguments(self, phase: Phase, *roles: mpi.Role) -> list[str]:
        texts = []
        for role in roles:
            argument = argument_of(phase.call, role)
            assert argument is not None, (phase.call.name, role)
            texts.append(self._text(argument))
        return texts

    def _c(self, phase: Phase) -> str:
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
        return f"{result}MPI_Wait(&lapwing_slots[{phase.slot - 1}].request, {status});"

    def _c_start(self, phase: Phase) -> str:
        """The nonblocking call itself."""
        message = mpi.lookup(phase.call.name or "")
        assert message is not None
        name = message.nonblocking or message.name
        kept = [
            phase.sends if p.role is mpi.Role.SEND_BUFFER and phase.sends is not None else self._text(a)
            for a, p in zip(phase.call.arguments, message.parameters, strict=False)
            if p.role not in (mpi.Role.STATUS, mpi.Role.REQUEST)
        ]
        return f"{name}({', '.join([*kept, f'&lapwing_slots[{phase.slot - 1}].request'])});"

    def _fortran(self, phase: Phase) -> tuple[str, ...]:
        if phase.part in (Part.START, Part.END):
            error = self._error_lines(phase) if phase.part is Part.END else ()
            return (self.collectives.call(phase), *error)
        slot = str(phase.slot)
        status = None if phase.status is None else self._text(phase.status)
        ending = f"_{self._type_number(phase)}"
        error = self._error_lines(phase)
        name = f"lapwing_{self.stem}"
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

    def _error_lines(self, phase: Phase) -> tuple[str, ...]:
        """MPI's errors end the program (motions check that), so an error code that is seen is success."""
        call = phase.wait if phase.part is Part.ARRIVE and phase.wait is not None else phase.call
        message = mpi.lookup(call.name or "")
        assert message is not None
        parameters = mpi.fortran_parameters(message)
        if len(call.arguments) == len(parameters) and parameters[-1].role is mpi.Role.IERROR:
            return (f"{self._text(call.arguments[-1])} = 0",)
        return ()

    def _type_number(self, phase: Phase) -> int:
        buffer = argument_of(phase.call, mpi.Role.RECV_BUFFER, mpi.Role.SEND_BUFFER)
        assert buffer is not None  # motions/blocking_calls.py asked
        return self.types.setdefault(buffer_declaration(buffer), len(self.types) + 1)

    # ---- support ------------------------------------------------------------------------------------------------------

    def support(self) -> str:
        """Text to be inserted: C, after the last #include; Fortran, at the file's end. Empty if nothing needs it."""
        if not self.slots and not self.progresses and not self.drained:
            return ""
        return self._fortran_support() if self.source.language == "fortran" else self._c_support()

    def _fortran_fields(self, handles: Mapping[str, str], f08: bool) -> str:
        request, kind, comm = "type(MPI_Request)" if f08 else "integer", handles["kind"], handles["comm"]
        lines = [
            f"{request} :: request",
            *(["integer(1), allocatable :: copy(:)"] if self.copying else []),
            *([f"{kind} :: kind", "integer :: size_of_one = 0"] if self._is_typed else []),
            *([_found(f08)] if Part.POST in self.copying or self.direct else []),
            *(["logical :: pending = .false."] if self.drains else []),
            *(["logical :: held = .false.", "integer :: count, source, tag", f"{comm} :: comm"] if self._holds else []),
        ]
        return "\n".join(f"      {line}" for line in lines)

    def _interfaces(self) -> str:
        """Of what takes any type."""
        interfaces = [
            *([_COPIES] if self.copying else []),
            *([_TOUCHES] if self.direct or self.collectives.used else []),
        ]
        return "\n".join(interfaces)

    def _c_head(self) -> str:
        """The slots, which hold what is needed in this file."""
        lines = [
            "MPI_Request request;",
            *(["char *copy;", "size_t bytes;"] if self.copying else []),
            *(["MPI_Datatype type;", "int type_size;"] if self._is_typed else []),
            *(["int pending;"] if self.drains else []),
            *(["int held, count, source, tag;", "MPI_Comm comm;"] if self._holds else []),
        ]
        fields = "".join(f"    {line}\n" for line in lines)
        includes = "#include <stdlib.h>\n#include <string.h>\n" if self.copying else ""
        return _C_HEAD.substitute(slots=self.slots, fields=fields, includes=includes)

    @property
    def _is_typed(self) -> bool:
        """Whether slots know the type of what travels."""
        return bool(self.copying) or self.direct

    @property
    def _holds(self) -> bool:
        """Whether some receive of a short message is put off until it is needed."""
        return any(part is Part.POST for part, _ in self.plain)

    @property
    def is_cpp(self) -> bool:
        return toolchain.is_cpp(self.source.path)

    @property
    def drains(self) -> bool:
        """Whether copies may still be on their way when the program ends MPI."""
        return Part.SEND in self.copying

    def _c_support(self) -> str:
        parts = [self._c_head()] if self.slots else []
        if self.progresses:
            parts.append(_C_PROGRESS.substitute(stem=self.stem))
        if self._is_typed:
            parts.append(_C_BYTES)
        if self.copying:
            parts.append(_C_ROOM)
        if Part.SEND in self.copying:
            parts.append(_C_SEND)
        if (Part.SEND, True) in self.plain:
            parts.append(_C_SEND_SHORT)
        if self._holds:
            parts.append(_C_HOLD)
        if Part.POST in self.copying:
            parts.append(_C_POST.substitute(held=_C_HELD if (Part.POST, True) in self.plain else ""))
        if (Part.POST, True) in self.plain:
            parts.append(_C_POST_SHORT)
        if self.direct:
            parts.append(_C_RECEIVE)
        if self.drains:
            linkage = 'extern "C" ' if self.is_cpp else ""
            parts.append(_C_DRAIN.substitute(linkage=linkage, name=drain_name(self.stem), slots=self.slots))
        # A declaration in a block would be one of the namespace around, and of C++'s linkage: the drain may be a C file's.
        others = sorted(self.drained - ({drain_name(self.stem)} if self.drains else set()))
        if others:
            parts.append("\n" + "".join(f'extern "C" void {name}(void);\n' for name in others))
        return "".join(parts)

    def _fortran_support(self) -> str:
        form = self.source.form or "free"
        use = {"mpi": "use mpi", "mpi_f08": "use mpi_f08"}.get(self.interface or "")
        include = None if use else "include 'mpif.h'"
        f08 = self.interface == "mpi_f08"
        handles = handle_types(f08)
        values = {
            "stem": self.stem,
            "slots": str(self.slots),
            **handles,
            "status": "type(MPI_Status) :: status" if f08 else "integer :: status(MPI_STATUS_SIZE)",
            "found": _found(f08),
            "fields": self._fortran_fields(handles, f08),
            "interfaces": self._interfaces(),
        }
        texts = [*([_F_MODULE] if self.slots else []), *([_F_BYTES] if self._is_typed else [])]
        if self.copying:
            texts.append(_F_ROOM)
        if self.progresses:
            texts.append(_F_PROGRESS)
        if self._holds:
            texts.append(_F_HOLD)
        if Part.POST in self.copying:
            texts.append(_F_POST)
        if (Part.POST, True) in self.plain:
            texts.append(_F_POST_SHORT)
        if Part.POST in self.copying or self.direct:
            texts.append(_F_STATUS)
        for text, number in self.types.items():
            more = {"type": text.partition(" ::")[0], "number": str(number)}
            more["shape"] = "(*)" if text.endswith("*") else ""
            more["held"] = Template(_HELD).safe_substitute(more) if more["shape"] and self._holds else ""
            for template in self._typed_support(bool(more["shape"])):
                texts.append(Template(template).safe_substitute(more))
        if self.drains:
            texts += [_F_SETTLE, _F_DRAIN]
        texts += self.collectives.support(f"lapwing_{self.stem}")
        lines = ["\n", comment_line("lapwing: what overlapped communication needs", 6, form).rstrip("\n") + "\n"]
        for text in texts:
            for line in Template(text).substitute(values).splitlines():
                if "@use" in line:
                    if use is None:
                        continue
                    line = line.replace("@use", use)
                if "@include" in line:
                    if include is None:
                        continue
                    line = line.replace("@include", include)
                if (_BARE if f08 else _F08) in line:
                    continue
                line = re.sub(f"{_BARE} *|{_F08} *", "", line)
                if not line.strip():
                    lines.append("\n")
                    continue
                indent = 6 + len(line) - len(line.lstrip(" "))
                written = statement_lines(line.strip(), indent, form)
                lines.append(written if written.endswith("\n") else written + "\n")
        return "".join(lines)

    def _typed_support(self, array: bool) -> Iterable[str]:
        """Templates of the procedures that buffers of one type need."""
        if Part.SEND in self.copying:
            yield _F_SEND
        if (Part.SEND, True) in self.plain and array:
            yield _F_SEND_SHORT
        if self._holds and array:
            yield _F_RECEIVE_HELD
        if Part.ARRIVE in self.copying:
            yield _F_ARRIVE
        if self.direct and array:
            yield from (_F_RECEIVE, _F_RECEIVED)
        if (Part.POST, False) in self.plain and array:
            yield _F_RECEIVE_SHORT


def _found(f08: bool) -> str:
    return "type(MPI_Status) :: found" if f08 else "integer :: found(MPI_STATUS_SIZE)"


def _ending(phase: Phase) -> str:
    """Of the support procedure's name: whether short messages need no copy."""
    return "_if_long" if phase.plain_if_short else ""


def drain_name(stem: str) -> str:
    return f"lapwing_{stem}_drain"


def c_prototype(source: Source, procedure: Procedure, name: str) -> str:
    """``procedure``'s head with another name, without body."""
    start, end = procedure.span.start, procedure.body.span.start
    text = source.data[start:end].decode("latin-1")
    head = text[: text.rindex("{")].strip()
    return re.sub(rf"\b{re.escape(procedure.name)}\b", name, head, count=1)


def renamed(text: str, old: str, new: str) -> str:
    """The first word ``old`` in ``text`` as ``new``."""
    return re.sub(rf"\b{re.escape(old)}\b", new, text, count=1, flags=re.IGNORECASE)


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
_C_HEAD = Template(
    """
/* lapwing: what overlapped communication needs. A slot is one call's request and, if it needs one, its copy of the data. */
${includes}struct lapwing_slot {
$fields};
static struct lapwing_slot lapwing_slots[$slots];
"""
)
# MPICH does nothing for other messages when it looks on MPI_COMM_SELF, or when it finds one: so on MPI_COMM_WORLD, and with a tag
# that is hardly used, the largest that every MPI allows.
_C_PROGRESS = Template(
    """
/* lapwing: lets MPI go on with what is under way, about every 30 microseconds. It need not look at the clock each time. */
static void lapwing_${stem}_progress(void)
{
    static double last;
    static int left, skipped;
    double now, passed;
    int flag;
    if (left-- > 0) return;
    now = MPI_Wtime();
    passed = now - last;
    skipped = passed > 60e-6 ? 0 : passed < 30e-6 && skipped < 15 ? 2 * skipped + 1 : skipped;
    left = skipped;
    if (passed < 30e-6) return;
    last = now;
    MPI_Iprobe(MPI_ANY_SOURCE, 32767, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}
"""
)
# The types are MPI's own (motions/blocking_calls.py): one handle means one size for ever.
_C_BYTES = """
static size_t lapwing_bytes(struct lapwing_slot *slot, int count, MPI_Datatype type)
{
    if (slot->type_size == 0 || slot->type != type) MPI_Type_size(type, &slot->type_size);
    slot->type = type;
    return count > 0 ? (size_t)count * (size_t)slot->type_size : 0;
}
"""
_C_ROOM = """
static size_t lapwing_room(struct lapwing_slot *slot, int count, MPI_Datatype type)
{
    size_t bytes = lapwing_bytes(slot, count, type);
    if (slot->bytes < bytes) {
        free(slot->copy);
        slot->copy = (char *)malloc(bytes);
        if (slot->copy == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
        slot->bytes = bytes;
    }
    return bytes;
}
"""
_C_SEND = """
static int lapwing_send(struct lapwing_slot *slot, const void *data, int count, MPI_Datatype type, int dest, int tag,
                        MPI_Comm comm)
{
    size_t bytes;
    if (slot->pending) MPI_Wait(&slot->request, MPI_STATUS_IGNORE);
    bytes = lapwing_room(slot, count, type);
    if (bytes > 0) memcpy(slot->copy, data, bytes);
    slot->pending = 1;
    return MPI_Isend(slot->copy, count, type, dest, tag, comm, &slot->request);
}
"""
_C_SEND_SHORT = f"""
static int lapwing_send_if_long(struct lapwing_slot *slot, const void *data, int count, MPI_Datatype type, int dest, int tag,
                                MPI_Comm comm)
{{
    if (lapwing_bytes(slot, count, type) <= {SHORT_MESSAGE}) return MPI_Send((void *)data, count, type, dest, tag, comm);
    return lapwing_send(slot, data, count, type, dest, tag, comm);
}}
"""
_C_HOLD = f"""
static int lapwing_hold(struct lapwing_slot *slot, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm)
{{
    slot->held = lapwing_bytes(slot, count, type) <= {SHORT_MESSAGE};
    slot->count = count;
    slot->source = source;
    slot->tag = tag;
    slot->comm = comm;
    return slot->held;
}}
"""
_C_HELD = """\
    if (slot->held) return MPI_Recv(data, slot->count, slot->type, slot->source, slot->tag, slot->comm, status);
"""
_C_POST = Template(
    """
static void lapwing_post(struct lapwing_slot *slot, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm)
{
    lapwing_room(slot, count, type);
    MPI_Irecv(slot->copy, count, type, source, tag, comm, &slot->request);
}

static int lapwing_arrive(struct lapwing_slot *slot, void *data, MPI_Status *status)
{
    MPI_Status found;
    int count, error;
${held}\
    error = MPI_Wait(&slot->request, &found);
    MPI_Get_count(&found, slot->type, &count);
    if (count > 0) memcpy(data, slot->copy, (size_t)count * (size_t)slot->type_size);
    if (status != MPI_STATUS_IGNORE) *status = found;
    return error;
}
"""
)
_C_POST_SHORT = """
static void lapwing_post_if_long(struct lapwing_slot *slot, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm)
{
    if (!lapwing_hold(slot, count, type, source, tag, comm)) lapwing_post(slot, count, type, source, tag, comm);
}
"""
_C_RECEIVE = f"""
static void lapwing_receive_if_long(struct lapwing_slot *slot, void *data, int count, MPI_Datatype type, int source, int tag,
                            MPI_Comm comm)
{{
    if (lapwing_hold(slot, count, type, source, tag, comm)) return;
    MPI_Irecv(data, count, type, source, tag, comm, &slot->request);
}}

static int lapwing_received(struct lapwing_slot *slot, void *data, MPI_Status *status)
{{
{_C_HELD}\
    return MPI_Wait(&slot->request, status);
}}
"""
_C_DRAIN = Template(
    """
${linkage}void $name(void)
{
    int i;
    for (i = 0; i < $slots; i++)
        if (lapwing_slots[i].pending) {
            MPI_Wait(&lapwing_slots[i].request, MPI_STATUS_IGNORE);
            lapwing_slots[i].pending = 0;
        }
}
"""
)
# Lines only for mpi_f08, and only for the other interfaces.
_F08, _BARE = "@f08 ", "@bare "
_F_MODULE = """
module lapwing_$stem
   use, intrinsic :: iso_c_binding, only: c_int, c_intptr_t, c_size_t
   @use
   implicit none
   @include
   type lapwing_slot
$fields
   end type
   type(lapwing_slot), save, target, asynchronous :: slots($slots)
$interfaces
end module
"""
# What takes any type, and keeps the compiler from assuming that the buffer is untouched. Arrays and scalars need one each.
_F_COPY = """\
      subroutine lapwing_copy_$name(to, from, bytes) bind(c, name='memcpy')
         import :: c_size_t
         type(*) :: $to, $from
         integer(c_size_t), value :: bytes
      end subroutine"""
_F_TOUCH = """\
      integer(c_int) function lapwing_touch_$name(data, place) bind(c, name='MPI_Get_address')
         import :: c_int, c_intptr_t
         type(*) :: $data
         integer(c_intptr_t) :: place
      end function"""
_COPIES = (
    "   interface lapwing_copy\n"
    + "\n".join(
        Template(_F_COPY).substitute(name=name, to=to, **{"from": start})
        for name, to, start in (("array", "to(*)", "from(*)"), ("in", "to(*)", "from"), ("out", "to", "from(*)"))
    )
    + "\n   end interface"
)
_TOUCHES = (
    "   interface lapwing_touch\n"
    + "\n".join(
        Template(_F_TOUCH).substitute(name=name, data=data) for name, data in (("array", "data(*)"), ("scalar", "data"))
    )
    + "\n   end interface"
)
_F_BYTES = """
integer(c_size_t) function lapwing_${stem}_bytes(slot, count, kind)
   use lapwing_$stem
   implicit none
   integer :: slot, count, error
   $kind :: kind
   logical :: known
   known = slots(slot)%size_of_one /= 0
   @f08 if (known) known = slots(slot)%kind%MPI_VAL == kind%MPI_VAL
   @bare if (known) known = slots(slot)%kind == kind
   if (.not. known) call MPI_TYPE_SIZE(kind, slots(slot)%size_of_one, error)
   slots(slot)%kind = kind
   lapwing_${stem}_bytes = int(max(count, 0), c_size_t) * slots(slot)%size_of_one
end function
"""
_F_ROOM = """
integer(c_size_t) function lapwing_${stem}_room(slot, count, kind)
   use lapwing_$stem
   implicit none
   integer :: slot, count
   integer(c_size_t), external :: lapwing_${stem}_bytes
   integer(c_size_t) :: bytes
   $kind :: kind
   bytes = lapwing_${stem}_bytes(slot, count, kind)
   if (allocated(slots(slot)%copy)) then
      if (size(slots(slot)%copy, kind=c_size_t) < bytes) deallocate(slots(slot)%copy)
   end if
   if (.not. allocated(slots(slot)%copy)) allocate(slots(slot)%copy(max(bytes, 1_c_size_t)))
   lapwing_${stem}_room = bytes
end function
"""
# The program may pass MPI other types, without an interface, in the same file: so there is one here that takes any.
_F_POST = """
subroutine lapwing_${stem}_post(slot, count, kind, source, tag, comm)
   @f08 use lapwing_$stem
   @bare use lapwing_$stem, only: c_size_t, slots
   implicit none
   @bare interface
      @bare subroutine MPI_IRECV(data, count, kind, source, tag, comm, request, error)
         @bare type(*) :: data(*)
         @bare integer :: count, kind, source, tag, comm, request, error
      @bare end subroutine
   @bare end interface
   integer :: slot, count, source, tag, error
   integer(c_size_t) :: bytes
   integer(c_size_t), external :: lapwing_${stem}_room
   $kind :: kind
   $comm :: comm
   bytes = lapwing_${stem}_room(slot, count, kind)
   call MPI_IRECV(slots(slot)%copy, count, kind, source, tag, comm, slots(slot)%request, error)
end subroutine
"""
_F_HOLD = f"""
logical function lapwing_${{stem}}_hold(slot, count, kind, source, tag, comm)
   use lapwing_$stem
   implicit none
   integer :: slot, count, source, tag
   integer(c_size_t), external :: lapwing_${{stem}}_bytes
   $kind :: kind
   $comm :: comm
   slots(slot)%held = lapwing_${{stem}}_bytes(slot, count, kind) <= {SHORT_MESSAGE}
   slots(slot)%count = count
   slots(slot)%source = source
   slots(slot)%tag = tag
   slots(slot)%comm = comm
   lapwing_${{stem}}_hold = slots(slot)%held
end function
"""
_F_POST_SHORT = """
subroutine lapwing_${stem}_post_if_long(slot, count, kind, source, tag, comm)
   @f08 use lapwing_$stem
   implicit none
   integer :: slot, count, source, tag
   logical, external :: lapwing_${stem}_hold
   $kind :: kind
   $comm :: comm
   if (.not. lapwing_${stem}_hold(slot, count, kind, source, tag, comm)) then
      call lapwing_${stem}_post(slot, count, kind, source, tag, comm)
   end if
end subroutine
"""
# As above, with an interface that takes any type.
_F_RECEIVE_HELD = """
subroutine lapwing_${stem}_receive_held_$number(slot, data)
   @f08 use lapwing_$stem
   @bare use lapwing_$stem, only: slots
   implicit none
   @bare interface
      @bare subroutine MPI_RECV(data, count, kind, source, tag, comm, status, error)
         @bare type(*) :: data(*)
         @bare integer :: count, kind, source, tag, comm, status(*), error
      @bare end subroutine
   @bare end interface
   integer :: slot, error
   $type :: data$shape
   associate (held => slots(slot))
      call MPI_RECV(data, held%count, held%kind, held%source, held%tag, held%comm, held%found, error)
   end associate
end subroutine
"""
_HELD = """\
   if (slots(slot)%held) then
      call lapwing_${stem}_receive_held_$number(slot, data)
      return
   end if
"""
_F_ARRIVE = """
subroutine lapwing_${stem}_arrive_$number(slot, data)
   use lapwing_$stem
   implicit none
   integer :: slot, count, error
   $type :: data$shape
$held\
   call MPI_WAIT(slots(slot)%request, slots(slot)%found, error)
   call MPI_GET_COUNT(slots(slot)%found, slots(slot)%kind, count, error)
   call lapwing_copy(data, slots(slot)%copy, int(max(count, 0), c_size_t) * slots(slot)%size_of_one)
end subroutine
"""
_F_STATUS = """
subroutine lapwing_${stem}_status(slot, status)
   use lapwing_$stem
   implicit none
   integer :: slot
   $status
   status = slots(slot)%found
end subroutine
"""
_F_SETTLE = """
subroutine lapwing_${stem}_settle(slot)
   use lapwing_$stem
   implicit none
   integer :: slot, error
   $found
   if (slots(slot)%pending) call MPI_WAIT(slots(slot)%request, found, error)
   slots(slot)%pending = .false.
end subroutine
"""
_F_SEND = """
subroutine lapwing_${stem}_send_$number(slot, data, count, kind, dest, tag, comm)
   @f08 use lapwing_$stem
   @bare use lapwing_$stem, only: c_size_t, lapwing_copy, slots
   implicit none
   @bare interface
      @bare subroutine MPI_ISEND(data, count, kind, dest, tag, comm, request, error)
         @bare type(*) :: data(*)
         @bare integer :: count, kind, dest, tag, comm, request, error
      @bare end subroutine
   @bare end interface
   integer :: slot, count, dest, tag, error
   integer(c_size_t) :: length
   integer(c_size_t), external :: lapwing_${stem}_room
   $kind :: kind
   $comm :: comm
   $type :: data$shape
   call lapwing_${stem}_settle(slot)
   length = lapwing_${stem}_room(slot, count, kind)
   call lapwing_copy(slots(slot)%copy, data, length)
   slots(slot)%pending = .true.
   call MPI_ISEND(slots(slot)%copy, count, kind, dest, tag, comm, slots(slot)%request, error)
end subroutine
"""
# As above, with an interface that takes any type.
_F_SEND_SHORT = f"""
subroutine lapwing_${{stem}}_send_if_long_$number(slot, data, count, kind, dest, tag, comm)
   @f08 use lapwing_$stem
   @bare use lapwing_$stem, only: c_size_t
   implicit none
   @bare interface
      @bare subroutine MPI_SEND(data, count, kind, dest, tag, comm, error)
         @bare type(*) :: data(*)
         @bare integer :: count, kind, dest, tag, comm, error
      @bare end subroutine
   @bare end interface
   integer :: slot, count, dest, tag, error
   integer(c_size_t), external :: lapwing_${{stem}}_bytes
   $kind :: kind
   $comm :: comm
   $type :: data$shape
   if (lapwing_${{stem}}_bytes(slot, count, kind) <= {SHORT_MESSAGE}) then
      call MPI_SEND(data, count, kind, dest, tag, comm, error)
   else
      call lapwing_${{stem}}_send_$number(slot, data, count, kind, dest, tag, comm)
   end if
end subroutine
"""
_F_RECEIVE = """
subroutine lapwing_${stem}_receive_$number(slot, data, count, kind, source, tag, comm)
   @f08 use lapwing_$stem
   @bare use lapwing_$stem, only: slots
   implicit none
   @bare interface
      @bare subroutine MPI_IRECV(data, count, kind, source, tag, comm, request, error)
         @bare type(*) :: data(*)
         @bare integer :: count, kind, source, tag, comm, request, error
      @bare end subroutine
   @bare end interface
   integer :: slot, count, source, tag, error
   $kind :: kind
   $comm :: comm
   $type :: data$shape
   call MPI_IRECV(data, count, kind, source, tag, comm, slots(slot)%request, error)
end subroutine
"""
_F_RECEIVE_SHORT = """
subroutine lapwing_${stem}_receive_if_long_$number(slot, data, count, kind, source, tag, comm)
   @f08 use lapwing_$stem
   implicit none
   integer :: slot, count, source, tag
   logical, external :: lapwing_${stem}_hold
   $kind :: kind
   $comm :: comm
   $type :: data$shape
   if (.not. lapwing_${stem}_hold(slot, count, kind, source, tag, comm)) then
      call lapwing_${stem}_receive_$number(slot, data, count, kind, source, tag, comm)
   end if
end subroutine
"""
# To ask for the buffer's address tells the compiler that MPI may have changed what it holds.
_F_RECEIVED = """
subroutine lapwing_${stem}_received_$number(slot, data)
   use lapwing_$stem
   implicit none
   integer :: slot, error
   integer(c_intptr_t) :: place
   $type :: data$shape
$held\
   call MPI_WAIT(slots(slot)%request, slots(slot)%found, error)
   error = lapwing_touch(data, place)
end subroutine
"""
_F_PROGRESS = """
subroutine lapwing_${stem}_progress()
   @use
   implicit none
   @include
   double precision, save :: last = 0
   integer, save :: left = 0, skipped = 0
   double precision :: now, passed
   logical :: flag
   integer :: error
   left = left - 1
   if (left .ge. 0) return
   now = MPI_WTIME()
   passed = now - last
   if (passed .gt. 60d-6) then
      skipped = 0
   else if (passed .lt. 30d-6 .and. skipped .lt. 15) then
      skipped = 2 * skipped + 1
   end if
   left = skipped
   if (passed .lt. 30d-6) return
   last = now
   call MPI_IPROBE(MPI_ANY_SOURCE, 32767, MPI_COMM_WORLD, flag, MPI_STATUS_IGNORE, error)
end subroutine
"""
_F_DRAIN = """
subroutine lapwing_${stem}_drain()
   use lapwing_$stem
   implicit none
   integer :: slot
   do slot = 1, $slots
      call lapwing_${stem}_settle(slot)
   end do
end subroutine
"""
