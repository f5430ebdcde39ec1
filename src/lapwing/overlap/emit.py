"""Phases and divided calls as statements of their language, and the support code a changed file needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from string import Template

from lapwing.overlap import mpi
from lapwing.overlap.fortran.write import comment_line, statement_lines
from lapwing.overlap.fortran_collectives import FortranCollectives, buffer_declaration, handle_types
from lapwing.overlap.motions.context import argument_of
from lapwing.overlap.phases import DividedCall, Drain, Level, Part, Phase
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
    types: dict[str, int] = field(default_factory=dict)  # Fortran: element types of buffers, numbered
    interface: str | None = None
    progresses: bool = False

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
        return tuple(f"{{ extern void {name}(void); {name}(); }}" for name in names)

    def progress(self) -> tuple[str, ...]:
        self.progresses = True
        name = f"lapwing_{self.stem}_progress()"
        return (f"call {name}",) if self.source.language == "fortran" else (f"{name};",)

    def phase(self, phase: Phase) -> tuple[str, ...]:
        self.slots = max(self.slots, phase.slot)
        if phase.copies:
            self.copying.add(phase.part)
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
        match phase.part:
            case Part.POST if phase.copies:
                rest = self._arguments(phase, *_POSTED)
                return f"lapwing_post({', '.join([slot, *rest])});"
            case Part.ARRIVE if phase.copies:
                return f"{result}lapwing_arrive({slot}, {self._arguments(phase, mpi.Role.RECV_BUFFER)[0]}, {status});"
            case Part.SEND if phase.copies:
                rest = self._arguments(phase, *_SENT)
                return f"{result}lapwing_send({', '.join([slot, *rest])});"
        if phase.part in (Part.POST, Part.SEND, Part.START):
            message = mpi.lookup(phase.call.name or "")
            assert message is not None
            name = message.nonblocking or message.name
            kept = [
                phase.sends if p.role is mpi.Role.SEND_BUFFER and phase.sends is not None else self._text(a)
                for a, p in zip(phase.call.arguments, message.parameters, strict=False)
                if p.role not in (mpi.Role.STATUS, mpi.Role.REQUEST)
            ]
            return f"{name}({', '.join([*kept, f'&lapwing_slots[{phase.slot - 1}].request'])});"
        return f"{result}MPI_Wait(&lapwing_slots[{phase.slot - 1}].request, {status});"

    def _fortran(self, phase: Phase) -> tuple[str, ...]:
        if phase.part in (Part.START, Part.END):
            error = self._error_lines(phase) if phase.part is Part.END else ()
            return (self.collectives.call(phase), *error)
        slot = str(phase.slot)
        status = None if phase.status is None else self._text(phase.status)
        ending = f"_{self._type_number(phase)}"
        error = self._error_lines(phase)
        name = f"lapwing_{self.stem}"
        match phase.part:
            case Part.POST if phase.copies:
                rest = self._arguments(phase, *_POSTED)
                return (f"call {name}_post({', '.join([slot, *rest])})",)
            case Part.ARRIVE if phase.copies:
                buffer = self._arguments(phase, mpi.Role.RECV_BUFFER)[0]
                asked = (
                    ()
                    if status is None or status.upper() == "MPI_STATUS_IGNORE"
                    else (f"call {name}_status({slot}, {status})",)
                )
                return (f"call {name}_arrive{ending}({slot}, {buffer})", *asked, *error)
            case Part.SEND if phase.copies:
                rest = self._arguments(phase, *_SENT)
                return (f"call {name}_send{ending}({', '.join([slot, *rest])})", *error)
        # Messages of Fortran always travel in copies (motions/blocking_calls.py and waits.py make no others).
        raise AssertionError(phase)

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
        if not self.slots and not self.progresses:
            return ""
        return self._fortran_support() if self.source.language == "fortran" else self._c_support()

    @property
    def drains(self) -> bool:
        """Whether copies may still be on their way when the program ends MPI."""
        return Part.SEND in self.copying

    def _c_support(self) -> str:
        parts = [_C_HEAD.substitute(slots=self.slots)] if self.slots else []
        if self.progresses:
            parts.append(_C_PROGRESS.substitute(stem=self.stem))
        if self.copying:
            parts.append(_C_ROOM)
        if Part.SEND in self.copying:
            parts.append(_C_SEND)
        if Part.POST in self.copying:
            parts.append(_C_RECEIVE)
        if self.drains:
            parts.append(_C_DRAIN.substitute(name=drain_name(self.stem), slots=self.slots))
        return "".join(parts)

    def _fortran_support(self) -> str:
        form = self.source.form or "free"
        use = {"mpi": "use mpi", "mpi_f08": "use mpi_f08"}.get(self.interface or "")
        include = None if use else "include 'mpif.h'"
        f08 = self.interface == "mpi_f08"
        values = {
            "stem": self.stem,
            "slots": str(self.slots),
            **handle_types(f08),
            "request": "type(MPI_Request)" if f08 else "integer",
            "status": "type(MPI_Status) :: status" if f08 else "integer :: status(MPI_STATUS_SIZE)",
            "found": "type(MPI_Status) :: found" if f08 else "integer :: found(MPI_STATUS_SIZE)",
            "copies": _COPIES,
            "touches": _TOUCHES,
        }
        texts = [*([_F_MODULE] if self.slots else []), *([_F_ROOM] if self.copying else [])]
        if self.progresses:
            texts.append(_F_PROGRESS)
        if Part.POST in self.copying:
            texts += [_F_POST, _F_STATUS]
        for text, number in self.types.items():
            more = {"type": text.partition(" ::")[0], "number": str(number)}
            more["shape"] = "(*)" if text.endswith("*") else ""
            if Part.SEND in self.copying:
                texts.append(Template(_F_SEND).safe_substitute(more))
            if Part.ARRIVE in self.copying:
                texts.append(Template(_F_ARRIVE).safe_substitute(more))
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
#include <stdlib.h>
#include <string.h>
struct lapwing_slot { MPI_Request request; char *copy; size_t bytes; MPI_Datatype type; int pending; };
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
_C_ROOM = """
static size_t lapwing_room(struct lapwing_slot *slot, int count, MPI_Datatype type)
{
    int size;
    size_t bytes;
    MPI_Type_size(type, &size);
    bytes = count > 0 ? (size_t)count * (size_t)size : 0;
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
_C_RECEIVE = """
static void lapwing_post(struct lapwing_slot *slot, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm)
{
    lapwing_room(slot, count, type);
    slot->type = type;
    MPI_Irecv(slot->copy, count, type, source, tag, comm, &slot->request);
}

static int lapwing_arrive(struct lapwing_slot *slot, void *data, MPI_Status *status)
{
    MPI_Status found;
    int count, size, error;
    error = MPI_Wait(&slot->request, &found);
    MPI_Get_count(&found, slot->type, &count);
    MPI_Type_size(slot->type, &size);
    if (count > 0) memcpy(data, slot->copy, (size_t)count * (size_t)size);
    if (status != MPI_STATUS_IGNORE) *status = found;
    return error;
}
"""
_C_DRAIN = Template(
    """
void $name(void)
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
      integer(1), allocatable :: copy(:)
      $request :: request
      $kind :: kind
      $found
      logical :: pending = .false.
   end type
   type(lapwing_slot), save, target, asynchronous :: slots($slots)
   interface lapwing_copy
$copies
   end interface
   interface lapwing_touch
$touches
   end interface
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
_COPIES = "\n".join(
    Template(_F_COPY).substitute(name=name, to=to, **{"from": start})
    for name, to, start in (("array", "to(*)", "from(*)"), ("in", "to(*)", "from"), ("out", "to", "from(*)"))
)
_TOUCHES = "\n".join(
    Template(_F_TOUCH).substitute(name=name, data=data) for name, data in (("array", "data(*)"), ("scalar", "data"))
)
_F_ROOM = """
integer function lapwing_${stem}_room(slot, count, kind)
   use lapwing_$stem
   implicit none
   integer :: slot, count, bytes, size_of_one, error
   $kind :: kind
   call MPI_TYPE_SIZE(kind, size_of_one, error)
   bytes = max(count * size_of_one, 1)
   if (allocated(slots(slot)%copy)) then
      if (size(slots(slot)%copy) < bytes) deallocate(slots(slot)%copy)
   end if
   if (.not. allocated(slots(slot)%copy)) allocate(slots(slot)%copy(bytes))
   lapwing_${stem}_room = max(count * size_of_one, 0)
end function
"""
# The program may pass MPI other types, without an interface, in the same file: so there is one here that takes any.
_F_POST = """
subroutine lapwing_${stem}_post(slot, count, kind, source, tag, comm)
   @f08 use lapwing_$stem
   @bare use lapwing_$stem, only: slots
   implicit none
   @bare interface
      @bare subroutine MPI_IRECV(data, count, kind, source, tag, comm, request, error)
         @bare type(*) :: data(*)
         @bare integer :: count, kind, source, tag, comm, request, error
      @bare end subroutine
   @bare end interface
   integer :: slot, count, source, tag, bytes, error
   integer, external :: lapwing_${stem}_room
   $kind :: kind
   $comm :: comm
   bytes = lapwing_${stem}_room(slot, count, kind)
   slots(slot)%kind = kind
   call MPI_IRECV(slots(slot)%copy, count, kind, source, tag, comm, slots(slot)%request, error)
end subroutine
"""
_F_ARRIVE = """
subroutine lapwing_${stem}_arrive_$number(slot, data)
   use lapwing_$stem
   implicit none
   integer :: slot, count, size_of_one, error
   $type :: data$shape
   call MPI_WAIT(slots(slot)%request, slots(slot)%found, error)
   call MPI_GET_COUNT(slots(slot)%found, slots(slot)%kind, count, error)
   call MPI_TYPE_SIZE(slots(slot)%kind, size_of_one, error)
   call lapwing_copy(data, slots(slot)%copy, int(max(count, 0), c_size_t) * size_of_one)
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
   integer :: slot, count, dest, tag, length, error
   integer, external :: lapwing_${stem}_room
   $kind :: kind
   $comm :: comm
   $type :: data$shape
   call lapwing_${stem}_settle(slot)
   length = lapwing_${stem}_room(slot, count, kind)
   call lapwing_copy(slots(slot)%copy, data, int(length, c_size_t))
   slots(slot)%pending = .true.
   call MPI_ISEND(slots(slot)%copy, count, kind, dest, tag, comm, slots(slot)%request, error)
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
