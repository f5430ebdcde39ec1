"""Fortran: what a changed file needs to start and end its collectives, and sends without a copy.

Each start and end is a call of an external procedure that is given the buffers, so that the compiler must assume they are
read and written there, whatever it makes of the code in between (MPI 3.1, 17.1.17). There is one procedure for each collective
and kinds of buffers: Fortran wants all calls of a procedure without interface to pass the same kinds of arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from string import Template

from lapwing.overlap import mpi
from lapwing.overlap.ir.expressions import Constant, Element, Expression, Name, Symbol, Type, without_casts
from lapwing.overlap.ir.split_phase import Part, SplitPhaseOperation

_BUFFERS = frozenset({mpi.Role.SEND_BUFFER, mpi.Role.RECV_BUFFER, mpi.Role.BOTH_BUFFER})
_ARRAYS = frozenset({mpi.Role.COUNTS, mpi.Role.DISPLACEMENTS})
_HANDLES = {mpi.Role.TYPE: "$kind", mpi.Role.OP: "$op", mpi.Role.COMM: "$comm"}


def declared_type(buffer: Expression) -> str | None:
    """How any scope declares the type of what is in this buffer; None if that takes declarations of the program's own."""
    symbol = _symbol(buffer)
    return None if symbol is None else _spelled(symbol.type)


def _symbol(buffer: Expression) -> Symbol | None:
    buffer = without_casts(buffer)
    base = buffer.base if isinstance(buffer, Element) else buffer
    return base.symbol if isinstance(base, Name) else None


def _spelled(kind: Type) -> str | None:
    if kind.base == "character" and kind.text:
        return "character"
    return kind.text or None if kind.base in ("integer", "logical", "real", "complex") else None


@dataclass
class FortranCollectives:
    """Of one file. ``prefix``: of the names of its procedures; ``text``: writes an argument."""

    prefix: str
    text: Callable[[Expression], str]
    _starts: dict[tuple[str, ...], str] = field(default_factory=dict)
    _ends: dict[tuple[str, ...], str] = field(default_factory=dict)

    def call(self, operation: SplitPhaseOperation) -> str:
        """The call that starts or ends this one."""
        message = mpi.lookup(operation.call.name or "")
        assert message is not None
        nonblocking = message.nonblocking or message.name
        pairs = [
            (parameter, argument)
            for parameter, argument in zip(message.parameters, operation.call.arguments, strict=False)
            if parameter.role in _BUFFERS or (operation.part is Part.START and parameter.role is not mpi.Role.REQUEST)
        ]
        given = [self.text(argument) for _, argument in pairs if not _in_place(argument)]
        signature = tuple(_declaration(parameter, argument) for parameter, argument in pairs)
        if operation.part is Part.START:
            key = (nonblocking.upper(), *signature)
            short = message.name.removeprefix("MPI_").lower()
            name = self._starts.setdefault(key, f"{self.prefix}_{short}_{len(self._starts) + 1}")
        else:
            name = self._ends.setdefault(tuple(filter(None, signature)), f"{self.prefix}_end_{len(self._ends) + 1}")
        return f"call {name}({', '.join([str(operation.slot), *given])})"

    @property
    def used(self) -> bool:
        return bool(self._starts)

    def support(self, module: str) -> list[str]:
        """Templates of the procedures; ``module`` holds the slots."""
        texts = [_start(name, key[0], key[1:], module) for key, name in self._starts.items()]
        return texts + [_end(name, key, module) for key, name in self._ends.items()]


def buffer_declaration(buffer: Expression) -> str:
    """``type :: *`` of an array, ``type ::`` of a scalar. Only for buffers whose type can be declared anywhere."""
    symbol = _symbol(buffer)
    assert symbol is not None
    kind = _spelled(symbol.type)
    assert kind is not None, symbol.name
    return f"{kind} :: {'' if symbol.dimensions is None and kind != 'character' else '*'}"


def handle_types(f08: bool) -> Mapping[str, str]:
    """What the templates call the types of handles."""
    if f08:
        return {"comm": "type(MPI_Comm)", "kind": "type(MPI_Datatype)", "op": "type(MPI_Op)"}
    return {"comm": "integer", "kind": "integer", "op": "integer"}


def _in_place(argument: Expression) -> bool:
    return isinstance(argument, Constant) and argument.name == "MPI_IN_PLACE"


def _declaration(parameter: mpi.Parameter, argument: Expression) -> str:
    """``type :: *`` of an array, ``type ::`` of a scalar; nothing for MPI_IN_PLACE, which is not passed on."""
    if parameter.role in _BUFFERS:
        return "" if _in_place(argument) or _symbol(argument) is None else buffer_declaration(argument)
    if parameter.role in _ARRAYS:
        return "integer :: *"
    return f"{_HANDLES.get(parameter.role, 'integer')} ::"


def _declared(declarations: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Dummy arguments' names, and lines that declare them."""
    names, lines = [], []
    for number, declaration in enumerate(declarations, 1):
        if declaration:
            names.append(f"a{number}")
            lines.append(
                f"   {declaration.removesuffix('*').strip()} a{number}{'(*)' if declaration.endswith('*') else ''}"
            )
    return names, lines


def _start(name: str, call: str, declarations: tuple[str, ...], module: str) -> str:
    names, lines = _declared(declarations)
    described = tuple(declaration or "integer ::" for declaration in declarations)  # MPI_IN_PLACE is an integer
    passed = [f"a{n}" if declaration else "MPI_IN_PLACE" for n, declaration in enumerate(declarations, 1)]
    values = {
        "name": name,
        "module": module,
        "dummies": ", ".join(names),
        "lines": "\n".join(lines),
        "call": call,
        "included": "\n   @bare include 'mpif.h'" if "MPI_IN_PLACE" in passed else "",
        "every": ", ".join(f"a{n}" for n in range(1, len(declarations) + 1)),
        "types": "\n".join(f"         @bare {line.strip()}" for line in _declared(described)[1]),
        "passed": ", ".join(passed),
    }
    return Template(_F_START).safe_substitute(values)


def _end(name: str, declarations: tuple[str, ...], module: str) -> str:
    names, lines = _declared(declarations)
    accessed = "\n".join(f"   error = lapwing_touch({dummy}, place)" for dummy in names)
    values = {
        "name": name,
        "module": module,
        "dummies": ", ".join(names),
        "lines": "\n".join(lines),
        "touched": accessed,
    }
    return Template(_F_END).safe_substitute(values)


# The program may pass MPI other types, without an interface, in the same file: so this call has its own interface.
# MPI_IN_PLACE comes from mpif.h: gfortran 12 with -g fails inside where "only" names it (a variable of a common block).
_F_START = """
subroutine $name(slot, $dummies)
   @f08 use $module
   @bare use $module, only: slots
   implicit none$included
   @bare interface
      @bare subroutine $call($every, request, error)
$types
         @bare integer :: request, error
      @bare end subroutine
   @bare end interface
   integer :: slot, error
$lines
   call $call($passed, slots(slot)%request, error)
end subroutine
"""
# To ask for a buffer's address tells the compiler that MPI may have changed what it holds.
_F_END = """
subroutine $name(slot, $dummies)
   use $module
   implicit none
   integer :: slot, error
   integer(c_intptr_t) :: place
$lines
   call MPI_WAIT(slots(slot)%request, MPI_STATUS_IGNORE, error)
$touched
end subroutine
"""
