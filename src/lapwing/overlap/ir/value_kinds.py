"""The kind of a C expression's value, as it matters to pointers: a number, a pointer, or an array that decays to one."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from lapwing.overlap.ir.expressions import (
    AddressOf,
    Assignment,
    Cast,
    Deref,
    Element,
    Expression,
    Name,
    Number,
    Operation,
    Storage,
    Symbol,
    Text,
    Type,
)


class Kind(enum.Enum):
    NUMBER = enum.auto()  # cannot hold a pointer
    INTEGER = enum.auto()  # wide enough to hold a pointer that was cast
    POINTER = enum.auto()
    ARRAY = enum.auto()
    STRUCT = enum.auto()
    UNKNOWN = enum.auto()


@dataclass(frozen=True)
class Shape:
    """``inner``: what a pointer points to, or an array's elements."""

    kind: Kind
    inner: Shape | None = None

    def step(self) -> Shape:
        """The shape after one ``*`` or one index."""
        if self.kind in (Kind.NUMBER, Kind.INTEGER):
            return self  # an index into an array that the type does not express
        return self.inner or UNKNOWN_SHAPE

    @property
    def plain(self) -> bool:
        return self.kind in (Kind.NUMBER, Kind.INTEGER)


UNKNOWN_SHAPE = Shape(Kind.UNKNOWN)
NUMBER_SHAPE = Shape(Kind.NUMBER)
_INTEGER_SHAPE = Shape(Kind.INTEGER)
_POINTER_BYTES = 8


def shape_of_type(type_: Type | None) -> Shape:
    if type_ is None:
        return UNKNOWN_SHAPE
    if type_.base == "pointer":
        return Shape(Kind.POINTER, shape_of_type(type_.target))
    if type_.base == "other" and type_.target is not None:
        return _shape_of_row(type_.text, shape_of_type(type_.target))
    if type_.base == "integer":
        return NUMBER_SHAPE if type_.bytes is not None and type_.bytes < _POINTER_BYTES else _INTEGER_SHAPE
    if type_.base in ("real", "complex", "logical", "character"):
        return NUMBER_SHAPE
    return Shape(Kind.STRUCT) if type_.base == "struct" else UNKNOWN_SHAPE


def _shape_of_row(text: str, element: Shape) -> Shape:
    """An array that a pointer points to. Its type gives the elements, but only its text the number of dimensions."""
    count = text.count("[")
    if not count and not element.plain:
        return Shape(Kind.ARRAY, UNKNOWN_SHAPE)
    for _ in range(max(count, 1)):
        element = Shape(Kind.ARRAY, element)
    return element


def shape_of_symbol(symbol: Symbol) -> Shape:
    shape = shape_of_type(symbol.type)
    if symbol.dimensions is None:
        return Shape(Kind.POINTER, shape) if symbol.pointer and shape.kind is not Kind.POINTER else shape
    for _ in symbol.dimensions:
        shape = Shape(Kind.ARRAY, shape)
    # An array argument is a pointer to its first element, unless it is passed by reference.
    return Shape(Kind.POINTER, shape.inner) if symbol.storage is Storage.ARGUMENT and symbol.by_value else shape


def shape_of(expression: Expression) -> Shape:
    match expression:
        case Name(symbol):
            return shape_of_symbol(symbol)
        case Number() | Text():
            return NUMBER_SHAPE
        case Cast(type_, _):
            return shape_of_type(type_)
        case Element(base, indices):
            shape = shape_of(base)
            for _ in indices:
                shape = shape.step()
            return shape
        case Deref(pointer):
            return shape_of(pointer).step()
        case AddressOf(inner):
            return Shape(Kind.POINTER, shape_of(inner))
        case Assignment(target, _, _, _):
            return shape_of(target)
        case Operation(operator, arguments):
            return _shape_of_operation(operator, arguments)
    return UNKNOWN_SHAPE


def _shape_of_operation(operator: str, arguments: tuple[Expression, ...]) -> Shape:
    if operator in ("?:", ","):
        return shape_of(arguments[-1])
    if operator not in ("+", "-", "&", "|", "^", "~"):
        return NUMBER_SHAPE if operator in ("<", "<=", ">", ">=", "==", "!=", "&&", "||", "!") else _INTEGER_SHAPE
    shapes = [shape_of(argument) for argument in arguments]
    for shape in shapes:
        if shape.kind in (Kind.POINTER, Kind.ARRAY):
            return Shape(Kind.POINTER, shape.inner)
    if all(shape.plain for shape in shapes):
        return NUMBER_SHAPE if all(shape.kind is Kind.NUMBER for shape in shapes) else _INTEGER_SHAPE
    return UNKNOWN_SHAPE
