"""The array section that an MPI call's buffer covers, and the requests that the call names."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lapwing.affine.affine import Affine
from lapwing.affine.sections import Range, Section, Subscript
from lapwing.overlap import mpi
from lapwing.overlap.analysis.effects.value_numbering import Environment
from lapwing.overlap.ir.expressions import (
    AddressOf,
    Constant,
    Dimension,
    Element,
    Expression,
    Name,
    Number,
    Operation,
    Slice,
    Symbol,
    without_casts,
)
from lapwing.overlap.languages.language import Language

Declared = Callable[[Expression | None], Affine | None]


def section_of(
    message: mpi.MpiCall,
    number: int,
    arguments: Sequence[Expression],
    environment: Environment,
    declared: Declared,
    language: Language,
) -> tuple[Symbol, Section] | None:
    """The array and the section of it that argument ``number`` of the call passes to MPI, where that is certain: a basic type
    of an element's size, and elements contiguous along the fastest dimension, whole lines of it, or a section.

    ``declared``: the values of arrays' bounds.
    """
    buffer = next((b for b in message.buffers if b.argument == number), None)
    if buffer is None or buffer.count is None or buffer.per_rank or max(buffer.count, buffer.type) >= len(arguments):
        return None
    place = _place(arguments[number])
    if place is None:
        return None
    symbol, indices = place
    dimensions = symbol.index_space
    if symbol.overlay is not None or dimensions is None or not symbol.element.holds_values:
        return None
    if symbol.pointer and (symbol.type.base != "pointer" or environment.is_changed(symbol)):
        return None
    # A count converted to a type too narrow for it means fewer elements, if any.
    kind, count = arguments[buffer.type], environment.affine(without_casts(arguments[buffer.count]))
    size = mpi.TYPE_SIZES.get(kind.name, ("", "", None))[2] if isinstance(kind, Constant) else None
    if count is None or size is None or size != symbol.element.bytes:
        return None
    if any(isinstance(index, Slice) for index in indices):
        # A procedure that is passed a section may access nothing beyond it (Fortran 2018, 15.5.2.11).
        return symbol, Section(tuple(map(environment.subscript, indices)))
    order = list(range(len(dimensions)))
    if not language.column_major:
        order.reverse()
    starts = _starts(dimensions, indices, environment, declared)
    return None if starts is None else _run(symbol, dimensions, starts, order, count, declared)


def _place(argument: Expression) -> tuple[Symbol, tuple[Expression, ...]] | None:
    argument = without_casts(argument)
    if isinstance(argument, AddressOf):
        argument = argument.object
    elif isinstance(argument, Operation) and argument.operator == "+":
        pointer, *offset = sorted(argument.arguments, key=lambda e: not (isinstance(e, Name) and e.symbol.pointer))
        if isinstance(pointer, Name) and pointer.symbol.type.base == "pointer":
            return pointer.symbol, tuple(offset)
    if isinstance(argument, Element) and isinstance(argument.base, Name):
        return argument.base.symbol, argument.indices
    return (argument.symbol, ()) if isinstance(argument, Name) else None


def _starts(
    dimensions: Sequence[Dimension], indices: Sequence[Expression], environment: Environment, declared: Declared
) -> list[Affine] | None:
    """The subscripts of the first element; omitted ones are the lower bounds (C's ``a[i]`` of a plane)."""
    starts = []
    for place, dimension in enumerate(dimensions):
        value = environment.affine(indices[place]) if place < len(indices) else declared(dimension.lower)
        if value is None:
            return None
        starts.append(value)
    return starts


def _run(
    symbol: Symbol,
    dimensions: Sequence[Dimension],
    starts: Sequence[Affine],
    order: Sequence[int],
    count: Affine,
    declared: Declared,
) -> tuple[Symbol, Section] | None:
    """``count`` elements from ``starts``, with the dimensions in ``order``, fastest first."""
    subscripts: list[Subscript] = list(starts)
    for place, axis in enumerate(order):
        dimension = dimensions[axis]
        upper, lower = declared(dimension.upper), declared(dimension.lower)
        end = starts[axis] + count - 1
        last = place == len(order) - 1
        room = None if upper is None else upper - end
        if last or (room is not None and not room.terms and room.constant >= 0):
            subscripts[axis] = Range(starts[axis], end)
            return symbol, Section(tuple(subscripts))
        # Whole lines only: anything else is not a box.
        if lower is None or upper is None or lower != starts[axis]:
            return None
        extent = upper - lower + 1
        if extent.terms or count.terms or extent.constant <= 0 or count.constant % extent.constant:
            return None
        subscripts[axis] = Range(lower, upper)
        count = Affine(count.constant // extent.constant)
    return None


Slot = tuple[str, int | None]


def slots_of(
    message: mpi.MpiCall, arguments: Sequence[Expression], environment: Environment, declared: Declared
) -> tuple[Slot, ...] | None:
    """The requests that the call names, each a variable and, in an array, a subscript; None where that is uncertain."""
    several = mpi.index_of(message, mpi.Role.REQUESTS)
    single = mpi.index_of(message, mpi.Role.REQUEST)
    number = single if several is None else several
    if number is None or number >= len(arguments):
        return None
    place = _place(arguments[number])
    if place is None:
        return None
    symbol, indices = place
    if symbol.pointer or symbol.overlay is not None or len(indices) > 1:
        return None
    if symbol.dimensions is None:
        return ((symbol.key, None),) if several is None or _is_one(message, arguments) else None
    if len(symbol.dimensions) != 1:
        return None
    starts = _starts(symbol.dimensions, indices, environment, declared)
    if starts is None or starts[0].terms:
        return None
    first = starts[0].constant
    if several is None:
        return ((symbol.key, first),)
    count = mpi.index_of(message, mpi.Role.COUNT)
    length = None if count is None or count >= len(arguments) else environment.affine(arguments[count])
    if length is None or length.terms:
        return None
    return tuple((symbol.key, first + n) for n in range(length.constant))


def _is_one(message: mpi.MpiCall, arguments: Sequence[Expression]) -> bool:
    count = mpi.index_of(message, mpi.Role.COUNT)
    return count is not None and count < len(arguments) and arguments[count] == Number(1)
