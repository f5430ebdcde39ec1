"""Arguments as buffers of messages: which are memory that stays where it is, and that a procedure elsewhere can declare."""

from __future__ import annotations

from lapwing.overlap.ir.expressions import Element, Expression, Name, Slice, without_casts
from lapwing.overlap.ir.rewriter import has_explicit_shape
from lapwing.overlap.languages.fortran.writing.collectives import buffer_declaration, declared_type


def is_contiguous(buffer: Expression) -> bool:
    """Whether the argument is certainly the memory itself, and no temporary, of a type that can be declared anywhere."""
    if declared_type(buffer) is None:
        return False
    if isinstance(buffer, Element) and isinstance(buffer.base, Name):
        symbol = buffer.base.symbol
        whole = not symbol.pointer and (symbol.allocatable or has_explicit_shape(symbol.dimensions))
        return whole and not any(isinstance(i, Slice) for i in buffer.indices)
    if isinstance(buffer, Name):
        symbol = buffer.symbol
        return not symbol.pointer and (
            symbol.dimensions is None or symbol.allocatable or has_explicit_shape(symbol.dimensions)
        )
    return False


def is_array(buffer: Expression) -> bool:
    """Whether support procedures can declare a dummy argument for it that is an array."""
    return buffer_declaration(buffer).endswith("*")


def may_be_copied(buffer: Expression) -> bool:
    """Whether it is an array, or a section of one, that a procedure elsewhere can declare."""
    buffer = without_casts(buffer)
    sliced = isinstance(buffer, Element) and any(isinstance(i, Slice) for i in buffer.indices)
    base = buffer.base if isinstance(buffer, Element) and sliced else buffer
    if not isinstance(base, Name) or declared_type(base) is None:
        return False
    symbol = base.symbol
    return symbol.dimensions is not None and not symbol.pointer and not _looks_up(buffer)


def _looks_up(buffer: Expression) -> bool:
    """Whether the subscripts look up an array."""
    indices = buffer.indices if isinstance(buffer, Element) else ()
    parts = (part for index in indices for part in (index.operands() if isinstance(index, Slice) else (index,)))
    return any(isinstance(part, Name) and part.symbol.dimensions is not None for part in parts)
