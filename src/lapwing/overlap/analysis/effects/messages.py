"""The effects of an MPI call, or of a split-phase operation, on memory, on the environment and on other ranks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from lapwing.overlap import mpi
from lapwing.overlap.analysis.effects.actual_formal import is_place
from lapwing.overlap.analysis.effects.effects import MessageOperation
from lapwing.overlap.analysis.effects.message_buffers import section_of, slots_of
from lapwing.overlap.analysis.effects.state import State
from lapwing.overlap.analysis.messages.sites import COMMUNICATING
from lapwing.overlap.ir.accesses import Access, Memory
from lapwing.overlap.ir.expressions import AddressOf, Constant, Element, Expression, Name, Number, Text, without_casts
from lapwing.overlap.ir.split_phase import Part, SplitPhaseOperation
from lapwing.overlap.ir.statements import Call
from lapwing.overlap.ir.value_kinds import shape_of


def of_call(state: State, message: mpi.MpiCall, arguments: Sequence[Expression], call: Call | None) -> None:
    """An MPI call of the program."""
    parameters = state.language().parameters(message)
    if message.kind is mpi.Kind.COMPLETION or message.name in ("MPI_Start", "MPI_Startall"):
        # First, since the call itself changes the requests.
        state.found += _in_flight(state, message, arguments)
    for number, argument in enumerate(arguments):
        parameter = parameters[number] if number < len(parameters) else None
        if parameter is None:
            state.barrier = f"{message.name} has more arguments than expected"
            continue
        if not _buffer_argument(state, message, number, arguments, parameter):
            _message_argument(state, argument, parameter)
        _access_beyond(state, message, number, arguments, parameter)
    if not message.blocking and mpi.index_of(message, mpi.Role.REQUEST) is not None:
        _remember_in_flight(state, message, arguments)
    if message.kind in (mpi.Kind.ONE_SIDED, mpi.Kind.IO, mpi.Kind.OTHER):
        state.barrier = f"{message.name} may access memory it does not name"
    if message.synchronises and message.kind is not mpi.Kind.SETUP:
        state.states.add("synchronisation")
    if message.kind in (mpi.Kind.ABORT,) or message.name in _BOUNDS_OF_MPI:
        state.barrier = f"{message.name} begins or ends MPI, or a communicator's messages"
    if message.kind is mpi.Kind.LOCAL and not message.buffers:
        state.states.add("clock" if "time" in message.name.lower() else "mpi")
    if message.kind in _TRAFFIC or (message.kind is mpi.Kind.SETUP and message.collective):
        state.operations.append(_operation(state, message, arguments, call))
    place = mpi.index_of(message, mpi.Role.OP)
    if place is not None and place < len(arguments):
        operator = arguments[place]
        if not isinstance(operator, Constant) or operator.name not in mpi.CONSTANTS:
            state.barrier = state.barrier or f"{message.name} may call a procedure of the program"
    if _CALLING_BACK.match(message.name) and state.analysis.has_key_values:
        state.barrier = state.barrier or f"{message.name} may call a procedure of the program"
    for number, argument in enumerate(arguments):
        if isinstance(argument, Constant) and argument.name == "MPI_IN_PLACE":
            for buffer in mpi.buffers_in_place(message, number):
                if buffer.reads and buffer.argument < len(arguments):
                    _read_buffer(state, arguments[buffer.argument])


def _read_buffer(state: State, argument: Expression) -> None:
    if state.language().by_reference:
        base = argument.base if isinstance(argument, Element) else argument
        state.access(base, None, writes=False, must=False)
    else:
        state.pointee(argument, writes=False)


def _buffer_argument(
    state: State, message: mpi.MpiCall, number: int, arguments: Sequence[Expression], parameter: mpi.Parameter
) -> bool:
    """A buffer whose section is certain."""
    if parameter.role not in _BUFFER_ROLES or state.sectionless:
        return False
    found = section_of(message, number, arguments, state.environment, state.declared, state.language())
    if found is None:
        return False
    symbol, section = found
    state.subexpressions(_without_address(arguments[number]))
    if symbol.pointer:
        state.access_scalar(symbol, writes=False)
    place = Element(Name(symbol), (Number(0),)) if symbol.pointer else Name(symbol)
    for writes in _uses(parameter):
        state.access(place, state.bound(section), writes=writes, must=False)
    return True


def _access_beyond(
    state: State, message: mpi.MpiCall, number: int, arguments: Sequence[Expression], parameter: mpi.Parameter
) -> None:
    buffer = next((b for b in message.buffers if b.argument == number), None)
    memory = frozenset[Memory]() if buffer is None else state.analysis.beyond(buffer, arguments)
    for writes in _uses(parameter) if memory else ():
        state.found.append(Access(None, None, writes, False, False, memory, state.where))
        if writes:
            state.environment.changed |= {m.key for m in memory}
            state.forget_scalars(memory)


def _remember_in_flight(state: State, message: mpi.MpiCall, arguments: Sequence[Expression]) -> None:
    """Records what the request of a nonblocking call stands for from here on."""
    slots = slots_of(message, arguments, state.environment, state.declared)
    if slots is None:
        state.environment.forget_requests()
        return
    if state.depth > 0 or state.sectionless or not message.buffers:
        state.environment.forget_requests({slot[0] for slot in slots})
        return
    buffers = []
    for buffer in message.buffers:
        if buffer.argument >= len(arguments):
            continue
        found = section_of(message, buffer.argument, arguments, state.environment, state.declared, state.language())
        memory = state.analysis.memory_of(arguments[buffer.argument], state.procedure)
        symbol, section = (None, None) if found is None else (found[0], state.bound(found[1]))
        through = symbol is not None and symbol.pointer
        buffers.append(Access(symbol, section, buffer.writes, False, through, memory, state.where))
    for slot in slots:
        state.environment.in_flight[slot] = tuple(buffers)


def _in_flight(state: State, message: mpi.MpiCall, arguments: Sequence[Expression]) -> list[Access]:
    """The buffers of the nonblocking calls that this one may complete or start: between the two they belong to MPI."""
    place = mpi.index_of(message, mpi.Role.REQUEST)
    place = mpi.index_of(message, mpi.Role.REQUESTS) if place is None else place
    if place is None or place >= len(arguments):
        return []
    copied = state.analysis.copies_requests
    slots = None if copied else slots_of(message, arguments, state.environment, state.declared)
    if slots is not None and all(slot in state.environment.in_flight for slot in slots):
        return [_still(state, a).at(state.where) for slot in slots for a in state.environment.in_flight[slot]]
    requests = state.analysis.memory_of(arguments[place], state.procedure)
    found = []
    for call in state.analysis.nonblocking_calls():
        if copied or state.analysis.aliases.may_overlap(requests, call.requests):
            for memory, writes in call.buffers:
                found.append(Access(None, None, writes, False, False, memory, state.where))
    return found


def _still(state: State, access: Access) -> Access:
    """The access as it persists past changes of its pointer, which may since point elsewhere."""
    if access.symbol is None or not access.through or not state.environment.is_changed(access.symbol):
        return access
    return replace(access, section=None, stale=True)


def of_split_phase(state: State, operation: SplitPhaseOperation) -> None:
    """A split-phase operation: it accesses its buffers when it copies, or while they are in use."""
    call = operation.call
    assert call.name is not None
    message = mpi.lookup(call.name)
    assert message is not None
    arguments = list(call.arguments)
    if operation.part in _ENDINGS and operation.wait is not None:
        wait = mpi.lookup(operation.wait.name or "")
        assert wait is not None
        for number, argument in enumerate(operation.wait.arguments):
            parameters = state.language().parameters(wait)
            if number < len(parameters) and parameters[number].role not in (mpi.Role.REQUEST, mpi.Role.REQUESTS):
                _message_argument(state, argument, parameters[number])
    if operation.part is not Part.SEND:
        # The operations of one communication keep their order, and its next instance waits for its end.
        slot = frozenset({Memory(f"slot {state.procedure.source}:{operation.slot}")})
        state.found.append(Access(None, None, True, False, False, slot, state.where))
    parameters = state.language().parameters(message)
    for number, argument in enumerate(arguments):
        if number >= len(parameters):
            break
        parameter = parameters[number]
        if not operation.copies and parameter.role in _BUFFER_ROLES:
            # Start and end must see the same memory, as if each read what the other wrote.
            parameter = replace(parameter, reads=True)
        if _concerns(operation, parameter):
            if not _buffer_argument(state, message, number, arguments, parameter):
                _message_argument(state, argument, parameter)
            _access_beyond(state, message, number, arguments, parameter)
    if operation.call.result is not None and operation.part in _ENDINGS | {Part.SEND} and operation.wait is None:
        state.target(operation.call.result, must=True)
    name = "MPI_Wait" if operation.part in _ENDINGS else (message.nonblocking or message.name)
    in_flight = mpi.lookup(name)
    assert in_flight is not None
    if operation.part in _ENDINGS:
        state.operations.append(MessageOperation(in_flight, call, state.procedure.key, None, None, None))
    else:
        state.operations.append(_operation(state, in_flight, arguments, call))


def _concerns(operation: SplitPhaseOperation, parameter: mpi.Parameter) -> bool:
    """Whether this operation of a communication reads or writes the argument."""
    role = parameter.role
    if role in (mpi.Role.REQUEST, mpi.Role.REQUESTS):
        return False
    starting = operation.part in (Part.POST, Part.SEND, Part.START)
    if role is mpi.Role.SEND_BUFFER:
        return starting or not operation.copies
    if role in (mpi.Role.RECV_BUFFER, mpi.Role.BOTH_BUFFER):
        # Without a copy, the memory belongs to MPI from start to end.
        return not operation.copies or operation.part in _ENDINGS or role is mpi.Role.BOTH_BUFFER
    if role in (mpi.Role.STATUS, mpi.Role.STATUSES, mpi.Role.IERROR):
        return operation.part in _ENDINGS or operation.part is Part.SEND
    if role in (mpi.Role.COUNTS, mpi.Role.DISPLACEMENTS, mpi.Role.TYPES):
        return True  # they must not change while MPI may still read them
    return starting


def _operation(
    state: State, message: mpi.MpiCall, arguments: Sequence[Expression], call: Call | None
) -> MessageOperation:
    def text(*roles: mpi.Role) -> str | None:
        for role in roles:
            place = mpi.index_of(message, role)
            if place is not None and place < len(arguments):
                return state.environment.canonical(arguments[place])
        return None

    return MessageOperation(
        message,
        call,
        state.procedure.key,
        text(mpi.Role.COMM),
        text(mpi.Role.DEST, mpi.Role.SOURCE, mpi.Role.ROOT),
        text(mpi.Role.SEND_TAG, mpi.Role.RECV_TAG),
        _is_ordered(state, message),
    )


def _is_ordered(state: State, message: mpi.MpiCall) -> bool:
    """Whether the order of what this call sends, or lets others send, may be observed: by a receive from any source, or by a
    call that asks what has arrived."""
    releases = message.kind is mpi.Kind.RECV and state.analysis.has_synchronous_sends
    return (releases or message.kind in _SENDING) and state.analysis.shows_order


def _message_argument(state: State, argument: Expression, parameter: mpi.Parameter) -> None:
    inner = without_casts(argument)
    if isinstance(inner, Constant | Number | Text):
        return
    if state.language().by_reference:
        if parameter.writes and is_place(argument):
            _target_or_part(state, argument, parameter)
        if parameter.reads or not parameter.writes:
            _read_part(state, argument, parameter)
        return
    if isinstance(inner, AddressOf):
        state.subexpressions(inner.object)
        place = inner.object
        if isinstance(place, Name) and place.symbol.dimensions is None:
            for writes in _uses(parameter):
                state.access(place, None, writes=writes, must=False)
            return
    else:
        state.value_of_pointer(argument)
    if shape_of(inner).plain:
        return  # no address that is passed on
    for writes in _uses(parameter):
        state.pointee(argument, writes=writes)


def _target_or_part(state: State, argument: Expression, parameter: mpi.Parameter) -> None:
    """Fortran: MPI writes from this element on; scalars get an unknown value."""
    if isinstance(argument, Element) and parameter.role in _BUFFER_ROLES:
        state.subexpressions(argument)
        state.access(argument, None, writes=True, must=False)
    elif isinstance(argument, Name) and argument.symbol.dimensions is None:
        state.access_scalar(argument.symbol, writes=True)
        state.environment.assign(argument.symbol, None)
    else:
        state.target(argument, must=False)
        if parameter.role is mpi.Role.REQUESTS and isinstance(argument, Element):
            # The elements behind it, too.
            base = argument.base
            state.environment.forget_requests({base.symbol.key} if isinstance(base, Name) else None)


def _read_part(state: State, argument: Expression, parameter: mpi.Parameter) -> None:
    if isinstance(argument, Element) and parameter.role in _BUFFER_ROLES:
        state.subexpressions(argument)
        state.access(argument, None, writes=False, must=False)
    else:
        state.value(argument)


def _uses(parameter: mpi.Parameter) -> list[bool]:
    """How the argument's memory is used: False for a read, True for a write."""
    return [writes for writes, wanted in ((False, parameter.reads), (True, parameter.writes)) if wanted]


def _without_address(argument: Expression) -> Expression:
    argument = without_casts(argument)
    return argument.object if isinstance(argument, AddressOf) else argument


# The callbacks of a key value are called when an attribute is set anew, or its object is freed.
_CALLING_BACK = re.compile(
    r"MPI_((Comm|Type|Win)_(set|delete)_attr|Attr_(put|delete)|(Type|Win|Comm)_(free|dup\w*|idup))\Z"
)
_SENDING = frozenset({mpi.Kind.SEND, mpi.Kind.SENDRECV, mpi.Kind.COLLECTIVE})
_BOUNDS_OF_MPI = frozenset({"MPI_Init", "MPI_Init_thread", "MPI_Finalize", "MPI_Comm_disconnect"})
_ENDINGS = frozenset({Part.ARRIVE, Part.END})
_BUFFER_ROLES = frozenset({mpi.Role.SEND_BUFFER, mpi.Role.RECV_BUFFER, mpi.Role.BOTH_BUFFER})
_TRAFFIC = COMMUNICATING | {mpi.Kind.IO}
