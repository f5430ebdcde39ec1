"""Support code for a changed file in Fortran: a module with its slots, and external procedures that work on them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from string import Template

from lapwing.overlap.ir.split_phase import SHORT_MESSAGE, Part
from lapwing.overlap.languages.fortran.writing.collectives import FortranCollectives, handle_types
from lapwing.overlap.languages.fortran.writing.printer import comment_line, statement_lines
from lapwing.overlap.languages.shared.support_requirements import SLOTS_COMMENT, SupportRequirements


def fortran_support(
    requirements: SupportRequirements, collectives: FortranCollectives, form: str, step: int = 3
) -> str:
    """Text for the end of a file in this source form, including support for its collectives. ``step``: blanks per level in free
    form."""
    use = {"mpi": "use mpi", "mpi_f08": "use mpi_f08"}.get(requirements.interface or "")
    include = None if use else "include 'mpif.h'"
    f08 = requirements.interface == "mpi_f08"
    handles = handle_types(f08)
    values = {
        "stem": requirements.stem,
        "slots": str(requirements.slots),
        **handles,
        "status": "type(MPI_Status) :: status" if f08 else "integer :: status(MPI_STATUS_SIZE)",
        "found": _found(f08),
        "fields": _fields(requirements, handles, f08),
        "interfaces": _interfaces(requirements, collectives.used),
        "interface_isend": _taking_any("MPI_ISEND", "dest", "request"),
        "interface_send": _taking_any("MPI_SEND", "dest"),
        "interface_irecv": _taking_any("MPI_IRECV", "source", "request"),
        "interface_recv": _taking_any("MPI_RECV", "source", "status(*)"),
    }
    texts = [*([_MODULE] if requirements.slots else []), *([_BYTES] if requirements.is_typed else [])]
    if requirements.copying:
        texts.append(_ROOM)
    if requirements.progresses:
        texts.append(_PROGRESS)
    if requirements.holds:
        texts.append(_HOLD)
    if Part.POST in requirements.copying:
        texts.append(_POST)
    if (Part.POST, True) in requirements.plain:
        texts.append(_POST_SHORT)
    if Part.POST in requirements.copying or requirements.direct:
        texts.append(_STATUS)
    for text, number in requirements.types.items():
        more = {"type": text.partition(" ::")[0], "number": str(number)}
        more["shape"] = "(*)" if text.endswith("*") else ""
        more["held"] = Template(_HELD).safe_substitute(more) if more["shape"] and requirements.holds else ""
        for template in _typed(requirements, bool(more["shape"])):
            texts.append(Template(template).safe_substitute(more))
    if requirements.drains:
        texts += [_SETTLE, _DRAIN]
    texts += collectives.support(f"lapwing_{requirements.stem}")
    fixed = form == "fixed"
    outermost = 6 if fixed else 0
    lines = ["\n", comment_line(SLOTS_COMMENT, outermost, form).rstrip("\n") + "\n"]
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
            deeper, rest = divmod(len(line) - len(line.lstrip(" ")), 3)
            indent = outermost + deeper * (3 if fixed else step) + rest
            written = statement_lines(line.strip(), indent, form)
            lines.append(written if written.endswith("\n") else written + "\n")
    return "".join(lines)


def _typed(requirements: SupportRequirements, array: bool) -> Iterable[str]:
    """Templates of the support procedures for buffers of one type."""
    if Part.SEND in requirements.copying:
        yield _SEND
    if (Part.SEND, True) in requirements.plain and array:
        yield _SEND_SHORT
    if requirements.holds and array:
        yield _RECEIVE_HELD
    if Part.ARRIVE in requirements.copying:
        yield _ARRIVE
    if requirements.direct and array:
        yield from (_RECEIVE, _RECEIVED)
    if (Part.POST, False) in requirements.plain and array:
        yield _RECEIVE_SHORT


def _fields(requirements: SupportRequirements, handles: Mapping[str, str], f08: bool) -> str:
    request, kind, comm = "type(MPI_Request)" if f08 else "integer", handles["kind"], handles["comm"]
    lines = [
        f"{request} :: request",
        *(["integer(1), allocatable :: copy(:)"] if requirements.copying else []),
        *([f"{kind} :: kind", "integer :: size_of_one = 0"] if requirements.is_typed else []),
        *([_found(f08)] if Part.POST in requirements.copying or requirements.direct else []),
        *(["logical :: pending = .false."] if requirements.drains else []),
        *(
            ["logical :: held = .false.", "integer :: count, source, tag", f"{comm} :: comm"]
            if requirements.holds
            else []
        ),
    ]
    return "\n".join(f"      {line}" for line in lines)


def _interfaces(requirements: SupportRequirements, collectives: bool) -> str:
    """Interfaces of procedures that take any type."""
    interfaces = [
        *([_COPIES] if requirements.copying else []),
        *([_TOUCHES] if requirements.direct or collectives else []),
    ]
    return "\n".join(interfaces)


def _taking_any(call: str, peer: str, *more: str) -> str:
    """An interface: the program may pass MPI other types, without one, in the same file."""
    declared = ["count", "kind", peer, "tag", "comm", *more, "error"]
    named = [name.removesuffix("(*)") for name in declared]
    return f"""\
   @bare interface
      @bare subroutine {call}(data, {", ".join(named)})
         @bare type(*) :: data(*)
         @bare integer :: {", ".join(declared)}
      @bare end subroutine
   @bare end interface"""


def _found(f08: bool) -> str:
    return "type(MPI_Status) :: found" if f08 else "integer :: found(MPI_STATUS_SIZE)"


# Lines only for mpi_f08, and only for the other interfaces.
_F08, _BARE = "@f08 ", "@bare "
_MODULE = """
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
# Procedures that take any type, and keep the compiler from assuming that the buffer is unchanged. Arrays and scalars need one
# each.
_COPY = """\
      subroutine lapwing_copy_$name(to, from, bytes) bind(c, name='memcpy')
         import :: c_size_t
         type(*) :: $to, $from
         integer(c_size_t), value :: bytes
      end subroutine"""
_TOUCH = """\
      integer(c_int) function lapwing_touch_$name(data, place) bind(c, name='MPI_Get_address')
         import :: c_int, c_intptr_t
         type(*) :: $data
         integer(c_intptr_t) :: place
      end function"""
_COPIES = (
    "   interface lapwing_copy\n"
    + "\n".join(
        Template(_COPY).substitute(name=name, to=to, **{"from": start})
        for name, to, start in (("array", "to(*)", "from(*)"), ("in", "to(*)", "from"), ("out", "to", "from(*)"))
    )
    + "\n   end interface"
)
_TOUCHES = (
    "   interface lapwing_touch\n"
    + "\n".join(
        Template(_TOUCH).substitute(name=name, data=data) for name, data in (("array", "data(*)"), ("scalar", "data"))
    )
    + "\n   end interface"
)
_BYTES = """
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
_ROOM = """
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
_POST = """
subroutine lapwing_${stem}_post(slot, count, kind, source, tag, comm)
   @f08 use lapwing_$stem
   @bare use lapwing_$stem, only: c_size_t, slots
   implicit none
$interface_irecv
   integer :: slot, count, source, tag, error
   integer(c_size_t) :: bytes
   integer(c_size_t), external :: lapwing_${stem}_room
   $kind :: kind
   $comm :: comm
   bytes = lapwing_${stem}_room(slot, count, kind)
   call MPI_IRECV(slots(slot)%copy, count, kind, source, tag, comm, slots(slot)%request, error)
end subroutine
"""
_HOLD = f"""
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
_POST_SHORT = """
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
_RECEIVE_HELD = """
subroutine lapwing_${stem}_receive_held_$number(slot, data)
   @f08 use lapwing_$stem
   @bare use lapwing_$stem, only: slots
   implicit none
$interface_recv
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
_ARRIVE = """
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
_STATUS = """
subroutine lapwing_${stem}_status(slot, status)
   use lapwing_$stem
   implicit none
   integer :: slot
   $status
   status = slots(slot)%found
end subroutine
"""
_SETTLE = """
subroutine lapwing_${stem}_settle(slot)
   use lapwing_$stem
   implicit none
   integer :: slot, error
   $found
   if (slots(slot)%pending) call MPI_WAIT(slots(slot)%request, found, error)
   slots(slot)%pending = .false.
end subroutine
"""
_SEND = """
subroutine lapwing_${stem}_send_$number(slot, data, count, kind, dest, tag, comm)
   @f08 use lapwing_$stem
   @bare use lapwing_$stem, only: c_size_t, lapwing_copy, slots
   implicit none
$interface_isend
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
_SEND_SHORT = f"""
subroutine lapwing_${{stem}}_send_if_long_$number(slot, data, count, kind, dest, tag, comm)
   @f08 use lapwing_$stem
   @bare use lapwing_$stem, only: c_size_t
   implicit none
$interface_send
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
_RECEIVE = """
subroutine lapwing_${stem}_receive_$number(slot, data, count, kind, source, tag, comm)
   @f08 use lapwing_$stem
   @bare use lapwing_$stem, only: slots
   implicit none
$interface_irecv
   integer :: slot, count, source, tag, error
   $kind :: kind
   $comm :: comm
   $type :: data$shape
   call MPI_IRECV(data, count, kind, source, tag, comm, slots(slot)%request, error)
end subroutine
"""
_RECEIVE_SHORT = """
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
# Taking the buffer's address tells the compiler that MPI may have changed its contents.
_RECEIVED = """
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
_PROGRESS = """
subroutine lapwing_${stem}_progress()
   @use
   implicit none
   @include
   double precision, save :: last = 0
   integer, save :: left = 0, skipped = 0
   double precision :: now, passed
   logical :: flag, over
   integer :: error
   left = left - 1
   if (left .ge. 0) return
   call MPI_INITIALIZED(flag, error)
   call MPI_FINALIZED(over, error)
   if (.not. flag .or. over) return
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
_DRAIN = """
subroutine lapwing_${stem}_drain()
   use lapwing_$stem
   implicit none
   integer :: slot
   do slot = 1, $slots
      call lapwing_${stem}_settle(slot)
   end do
end subroutine
"""
