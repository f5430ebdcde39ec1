"""Operations on complex numbers, whose bits differ between Python's own numbers and NumPy's."""

from __future__ import annotations

import itertools
from typing import NoReturn

from lapwing.loopnest import complex_numbers, ir
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.promotion import PARTS, PY_COMPLEX, PY_FLOAT, ScalarType, is_pythons, resolve
from lapwing.loopnest.binding.values import Value, ValueLowering

_LARGEST_EXPONENT = 100  # of Python's repeated squaring


class ComplexLowering(ValueLowering):
    """Types operations that have a complex operand."""

    def _complex_operator(self, operator: str, a: Value, b: Value, dtype: str, line: int) -> str:
        """What stands for ``+ - * /`` in the typed expression, computing in a complex dtype."""
        ways = {
            self._complex_way(operator, ka, kb, dtype, line)
            for ka, kb in itertools.product(a.types, b.types)
            if ka.is_complex or kb.is_complex
        }
        if len(ways) > 1:
            self._mixed(a if a.only is None else b, line)
        return ways.pop()

    def _complex_way(self, operator: str, a: ScalarType, b: ScalarType, dtype: str, line: int) -> str:
        python = is_pythons(a, b)
        left, right = (self._asked(kind, dtype, python) for kind in (a, b))
        if operator in "+-":
            way = "plain" if complex_numbers.adds_plainly(left, right) else None
        else:
            way = (complex_numbers.product if operator == "*" else complex_numbers.quotient)(left, right)
        if way is None:
            self._refuse(
                line,
                f"{operator} of {a} and {b}, which this {'Python' if python else 'NumPy'} computes in a way of its own",
                f"convert both operands: numpy.{dtype}(z)",
            )
        if way == "plain":
            return "python /" if python and operator == "/" else operator
        if operator == "/":
            return "numpy.divide"
        # A product by a real number has the bits of the plain one unless a part of it vanishes.
        return "numpy.multiply" if a.is_complex and b.is_complex else "scaled"

    def _asked(self, kind: ScalarType, dtype: str, python: bool) -> str:
        """The type that Python and NumPy are asked about: integers are computed with as floats are."""
        if kind.is_inexact:
            return str(kind)
        return str(PY_FLOAT) if python or kind.weak else dtype

    def _complex_power(self, a: Value, b: Value, exponent: ir.Expression, line: int) -> Value:
        pairs = list(itertools.product(a.types, b.types))
        by_python = {is_pythons(*pair) for pair in pairs}
        if len(by_python) > 1:
            self._mixed(a if a.only is None else b, line)
        if by_python == {True}:
            return self._python_power(a, exponent, line)
        types = {resolve("**", *pair) for pair in pairs}
        if len(types) > 1:
            self._mixed(a if a.only is None else b, line)
        ((dtype, _),) = types
        base = self._operand(a, dtype, line)
        power = _small_integer(exponent)
        if power in (2, 3) and complex_numbers.has_plain_powers(dtype):
            code = t.Operation(dtype, f"power of {power}", (base,))
        else:
            code = t.Operation(dtype, "numpy.power", (base, self._operand(b, dtype, line)))
        return Value(code, frozenset({ScalarType(dtype)}))

    def _check_square(self, dtype: str, line: int) -> None:
        """numpy.square has several loops, which round in different ways."""
        if not complex_numbers.has_plain_square(dtype):
            self._refuse(line, f"numpy.square of {dtype}, whose bits vary between calls in this NumPy", "write z * z")

    def _python_power(self, base: Value, exponent: ir.Expression, line: int) -> Value:
        power = _small_integer(exponent)
        if power is None or base.only != PY_COMPLEX or not complex_numbers.raises_plainly():
            self._refuse(
                line,
                "a power of Python's complex numbers",
                f"they are raised to constant integers of at most {_LARGEST_EXPONENT}; write numpy.complex128(z) ** x",
            )
        trap = self._trap(
            line, "a power is infinite, or of 0; the plain loop raises OverflowError or ZeroDivisionError"
        )
        operands = (base.code, t.Literal("int64", power))
        return Value(t.Operation("complex128", "python power", operands, trap), base.types)

    def _modulus(self, name: str, value: Value, line: int) -> Value:
        """abs(z), or numpy.absolute, whose own loop differs from it in the last bit."""
        kind = self._only_type(value, line)
        if name == "absolute":
            code = t.Operation(kind.part.dtype, "numpy.absolute", (value.code,))
            return Value(code, frozenset({ScalarType(code.dtype)}))
        trap = None
        if kind.weak:
            trap = self._trap(line, "a modulus is infinite; the plain loop raises OverflowError here")
        return Value(t.Operation(kind.part.dtype, "modulus", (value.code,), trap), frozenset({kind.part}))

    def _part(self, name: str, value: Value, line: int) -> Value:
        """z.real and z.imag."""
        if not any(kind.is_complex for kind in value.types):
            if name == "real" and not any(kind.is_bool for kind in value.types):
                return value
            self._refuse(
                line, f".{name} of {value.describe()}", "write the number itself for x.real, and 0.0 for x.imag"
            )
        part = PARTS[value.code.dtype]
        types = frozenset(kind.part if kind.is_complex else kind for kind in value.types)
        if any(kind.dtype != part for kind in types):
            self._mixed(value, line)
        return Value(t.Operation(part, name, (value.code,)), types)

    def _conjugate(self, name: str, value: Value, line: int) -> Value:
        """z.conjugate(), and z.conj() of NumPy's numbers."""
        if any(kind.is_bool or (name == "conj" and kind.weak) for kind in value.types):
            self._refuse(line, f".{name}() of {value.describe()}", "write z.conjugate(), of a number that is no bool")
        if not any(kind.is_complex for kind in value.types):
            return value
        self._only_type(value, line)
        return Value(t.Operation(value.code.dtype, "conjugate", (value.code,)), value.types)

    def _complex(self, arguments: list[Value], line: int) -> Value:
        """complex(x), complex(x, y)"""
        types = frozenset({PY_COMPLEX})
        if len(arguments) == 1:
            return Value(self._convert(arguments[0].code, "complex128", line), types)
        if any(kind.is_complex for value in arguments for kind in value.types):
            self._refuse(line, "complex(x, y) of a complex number", "it takes real numbers: write x + 1j * y")
        parts = tuple(self._convert(value.code, "float64", line) for value in arguments)
        return Value(t.Operation("complex128", "complex", parts), types)

    def _only_type(self, value: Value, line: int) -> ScalarType:
        if value.only is None:
            self._mixed(value, line)
        return value.only

    def _refuse_order(self, line: int, what: str) -> NoReturn:
        self._refuse(line, f"{what} of complex numbers", "they have no order: compare z.real, z.imag or abs(z)")


def has_complex(*values: Value) -> bool:
    """Whether one of them may be a complex number."""
    return any(kind.is_complex for value in values for kind in value.types)


def _small_integer(node: ir.Expression) -> int | None:
    """A constant that is an integer, as 2 and 2.0."""
    match node:
        case ir.Constant(value=int() | float() as value) if abs(value) <= _LARGEST_EXPONENT and value == int(value):
            return int(value)
    return None
