"""Folding of integer constants, and kinds that compilers and standard modules name."""

from __future__ import annotations

from dataclasses import replace

from lapwing.overlap.ir.expressions import Expression, Invocation, Name, Number, Operation, Slice, Storage, Symbol

KINDS = {
    "real32": 4,
    "real64": 8,
    "real128": 16,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "c_int": 4,
    "c_short": 2,
    "c_long": 8,
    "c_long_long": 8,
    "c_size_t": 8,
    "c_int8_t": 1,
    "c_int16_t": 2,
    "c_int32_t": 4,
    "c_int64_t": 8,
    "c_intptr_t": 8,
    "c_float": 4,
    "c_double": 8,
    "c_float_complex": 4,
    "c_double_complex": 8,
    "c_bool": 1,
    "c_char": 1,
    "mpi_address_kind": 8,
    "mpi_offset_kind": 8,
    "mpi_count_kind": 8,
    "mpi_integer_kind": 4,
}


def integer(value: Expression | None) -> int | None:
    """The integer an expression is after folding, None if it is none."""
    return value.value if isinstance(value, Number) and isinstance(value.value, int) else None


def folded(value: Expression) -> Expression:
    """The expression with integer constants put in and computed; spans stay those of the source."""
    if isinstance(value, Name):
        constant = _whole_constant(value.symbol)
        return value if constant is None else replace(constant, span=value.span)
    if isinstance(value, Operation):
        parts = tuple(folded(part) for part in value.arguments)
        number = _computed(value.operator, [integer(part) for part in parts])
        return replace(value, arguments=parts) if number is None else Number(number, span=value.span)
    if isinstance(value, Invocation):
        parts = tuple(folded(part) for part in value.arguments)
        number = _intrinsic(value.name, [integer(part) for part in parts])
        return replace(value, arguments=parts) if number is None else Number(number, span=value.span)
    if isinstance(value, Slice):
        lower, upper, step = (None if part is None else folded(part) for part in (value.lower, value.upper, value.step))
        return Slice(lower, upper, step, span=value.span)
    return value


def _whole_constant(symbol: Symbol) -> Number | None:
    """An integer PARAMETER's value. A real one may be spelled as an integer, too: half of 3 is 1.5 then."""
    plain = symbol.storage is Storage.CONSTANT and symbol.type.base == "integer" and symbol.dimensions is None
    return symbol.value if plain and isinstance(symbol.value, Number) and isinstance(symbol.value.value, int) else None


def _computed(operator: str, values: list[int | None]) -> int | None:
    if not values or any(value is None for value in values):
        return None
    first, *rest = [value for value in values if value is not None]
    if not rest:
        return {"neg": -first, "()": first}.get(operator)
    second = rest[0]
    if operator == "/":
        return None if second == 0 else _quotient(first, second)
    if operator == "**":
        return first**second if 0 <= second < 64 else None
    return {"+": first + second, "-": first - second, "*": first * second}.get(operator)


def _intrinsic(name: str | None, values: list[int | None]) -> int | None:
    numbers = [value for value in values if value is not None]
    if not numbers or len(numbers) < len(values):
        return None
    if name in ("selected_int_kind", "selected_real_kind"):
        return _selected(name, numbers)
    if name in ("max", "max0"):
        return max(numbers)
    if name in ("min", "min0"):
        return min(numbers)
    if name == "mod" and len(numbers) == 2 and numbers[1] != 0:
        return numbers[0] - numbers[1] * _quotient(numbers[0], numbers[1])
    if name in ("abs", "iabs") and len(numbers) == 1:
        return abs(numbers[0])
    return numbers[0] if name == "int" and len(numbers) == 1 else None


def _selected(name: str, wanted: list[int]) -> int | None:
    """The kind of that many decimal digits (and, of reals, that exponent), which is its number of bytes."""
    if name == "selected_int_kind":
        return next((bytes_ for digits, bytes_ in ((2, 1), (4, 2), (9, 4), (18, 8)) if wanted[0] <= digits), None)
    digits, exponent = (*wanted[:2], 0)[:2]
    kinds = ((6, 37, 4), (15, 307, 8))
    return next((bytes_ for most, range_, bytes_ in kinds if digits <= most and exponent <= range_), None)


def _quotient(first: int, second: int) -> int:
    """Fortran's integer division: towards zero."""
    quotient = abs(first) // abs(second)
    return quotient if (first < 0) == (second < 0) else -quotient
