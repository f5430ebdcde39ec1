"""Typed expressions printed as C."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from lapwing.affine.affine import Affine
from lapwing.codegen.body.zeros import zero_taken
from lapwing.loopnest.binding import powers
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.promotion import CARRIED_LIMIT, EXACT_IN_DOUBLE, PARTS, dtype_range, is_inexact
from lapwing.loopnest.functions import MATH_BINARY, MATH_TO_INT, MATH_UNARY

C_TYPES = {
    "float64": "double", "float32": "float", "complex128": "double _Complex", "complex64": "float _Complex",
    "int64": "int64_t", "int32": "int32_t", "int16": "int16_t",
    "int8": "int8_t", "uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint32_t", "bool": "bool",
}  # fmt: skip
SUFFIXES = {
    "float64": "f64", "float32": "f32", "complex128": "c128", "complex64": "c64",
    "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8",
    "uint16": "u16", "uint32": "u32", "bool": "b",
}  # fmt: skip

# What Python's ints are of floats: int(x), round(x) and functions of math.
_PYTHON_INTEGERS = frozenset(f"math.{name}" for name in (*MATH_TO_INT, "rint"))

# Functions the compiler may inline because their results are exact; the others go to the library by another name.
_EXACT = {"sqrt", "floor", "ceil", "trunc", "rint"}
_IN_PLACE = _EXACT | {"fabs", "copysign"}  # that the compiler has instructions for
# NumPy's own loops that take another way for some exponents, where all elements have the same one.
_BY_EXPONENT = {"power", "float_power"}
_SMALL = ("int16", "int8", "uint8", "uint16")  # that C computes with as int


class Printer:
    """Prints expressions with the C names of one module.

    name: gives the C identifier of a scalar, index or temporary.
    element: gives the C text of an array element from the array's name and its subscripts.
    extent: gives the C text of the length of an axis.
    """

    def __init__(
        self,
        name: Callable[[t.Scalar | t.Index | t.Local], str],
        element: Callable[[str, list[str]], str],
        extent: Callable[[str, int], str],
        affine: Callable[[Affine], str],
    ) -> None:
        self.name, self.element, self.extent, self.affine = name, element, extent, affine
        self.named: dict[t.Typed, str] = {}  # what is computed before the loops, by the C name it has
        self.placed: dict[t.Load, str] = {}  # elements that are kept elsewhere than in their arrays
        # Where it is noted that a power may not be that of C's library; None where that is called then.
        self.uncertain: str | None = None
        # Where an iteration is inside of all arrays: indices that need not come back at the other end, or stay at one.
        self.inside: frozenset[t.Operation | t.LookupSubscript] = frozenset()
        self.indices: dict[tuple[str, t.LookupSubscript], str] = {}  # into arrays, that are computed before a loop
        self.kept: dict[t.Load, str] = {}  # elements whose value just stored is still at hand, by the C name it has
        self.by_masks = False  # whether integers are chosen by masks
        self.reciprocals: dict[t.Typed, str] = {}  # of divisors, and what else lw_quotient takes, as C texts

    def print(self, node: t.Typed) -> str:
        if self.named and node in self.named:  # nodes take as long to hash as they are large
            return self.named[node]
        match node:
            case t.Literal(dtype=dtype, value=value):
                return literal(dtype, value)
            case t.Scalar() | t.Index() | t.Local():
                return self.name(node)
            case t.AffineValue(affine=affine):
                return f"({self.affine(affine)})"
            case t.Load():
                return self.kept.get(node) or self.load(node)
            case t.Convert():
                return self._convert(node)
            case t.Select(test=test, then=then, otherwise=otherwise):
                texts = [self.print(part) for part in (test, then, otherwise)]
                is_free = all(map(_is_free, (then, otherwise)))
                if self.by_masks and node.dtype in ("int32", "int64") and (is_free or node.speculable):
                    return f"lw_masked_{SUFFIXES[node.dtype]}({', '.join(map(stripped, texts))})"
                if is_inexact(node.dtype) if is_free else node.speculable:
                    return f"lw_select_{SUFFIXES[node.dtype]}({', '.join(map(stripped, texts))})"
                return f"({texts[0]} ? {texts[1]} : {texts[2]})"
            case t.Operation():
                return self._operation(node)
        raise AssertionError(node)

    def load(self, node: t.Load) -> str:
        return self.placed.get(node) or self.in_array(node)

    def in_array(self, node: t.Load) -> str:
        """The element where its array has it."""
        subscripts = []
        for subscript in node.subscripts:
            if isinstance(subscript, t.AffineSubscript):
                subscripts.append(self.affine(subscript.affine + Affine(subscript.wrap)))
                continue
            subscripts.append(self.indices.get((node.array, subscript)) or self.index(node.array, subscript))
        return self.element(node.array, subscripts)

    def index(self, array: str, subscript: t.LookupSubscript) -> str:
        """A computed index where it is inside the array."""
        index, extent = self.print(subscript.index), self.extent(array, subscript.axis)
        if subscript.is_checked:
            return f"lw_lookup({index}, {extent}, {subscript.trap}, trap)"
        is_from_end = subscript.counts_from_end and subscript not in self.inside
        return f"lw_wrap({index}, {extent})" if is_from_end else index

    def check(self, node: t.TypedCheck) -> str:
        """A statement that notes whether evaluating an expression raises, or whether it is no index from the start of an axis."""
        value = stripped(self.print(node.value))
        if node.array is None:
            return f"(void)({value});"
        return f"lw_inspect({value}, {self.extent(node.array, node.axis)}, trap, from_end);"

    def _convert(self, node: t.Convert) -> str:
        operand = self.print(node.operand)
        c_type = C_TYPES[node.dtype]
        if node.dtype in PARTS:
            name = f"lw_{SUFFIXES[node.dtype]}"
            if node.operand.dtype in PARTS:
                return f"{name}_{SUFFIXES[node.operand.dtype]}({stripped(operand)})"
            return f"{name}({stripped(operand)}, {literal(PARTS[node.dtype], 0.0)})"
        if node.trap is None:
            if node.dtype.startswith("float") and not node.operand.dtype.startswith("float"):
                return f"lw_{c_type}_{SUFFIXES[node.operand.dtype]}({stripped(operand)})"
            if node.operand.dtype.startswith("float") and "int" in node.dtype:
                return f"({c_type})LW_WITHOUT_FRACTION({stripped(operand)})"
            return (
                f"({c_type}){operand}"
                if operand.startswith("(") or operand.isidentifier()
                else f"({c_type})({operand})"
            )
        low, high = dtype_range(node.dtype)
        if not node.operand.dtype.startswith("float"):
            limits = f"{literal('int64', low)}, {literal('int64', high)}"
            return f"({c_type})lw_fitting({operand}, {limits}, {node.trap}, trap)"
        if isinstance(node.operand, t.Operation) and node.operand.operator in _PYTHON_INTEGERS:
            low, high = -EXACT_IN_DOUBLE, EXACT_IN_DOUBLE + 1  # a Python int would not wrap
            if node.operand.operator == "math.trunc":  # as C does anyway
                operand = self.print(node.operand.operands[0])
        limits = f"{literal('float64', float(low))}, {literal('float64', float(high + 1))}"
        return f"({c_type})lw_to_integer({stripped(operand)}, {limits}, {node.trap}, trap)"

    def _operation(self, node: t.Operation) -> str:
        operator, dtype = node.operator, node.dtype
        operands = [self.print(o) for o in node.operands]
        computing = node.operands[0].dtype
        suffix = SUFFIXES[computing]
        if powers.is_power(node):
            return self._power(node, operands)
        if operator.startswith("math."):
            return self._math(operator[5:], operands, node.trap)
        if computing in PARTS and operator in _COMPLEX:
            return self._complex(node, list(map(stripped, operands)))
        if operator == "complex":
            return f"lw_{SUFFIXES[dtype]}({', '.join(map(stripped, operands))})"
        if operator.startswith("numpy."):
            return self._numpy(node, operator[6:], list(map(stripped, operands)))
        match operator:
            case "isnan" | "isinf" | "isfinite" if computing in PARTS:
                return f"lw_{operator}_{suffix}({stripped(operands[0])})"
            case "isnan" | "isinf" | "isfinite":
                return f"(bool){operator}({stripped(operands[0])})"
            case "<<" | ">>":
                return self._shift(node, operands)
            case "truth":
                return f"({operands[0]} != 0)"
            case "not":
                return f"!{operands[0]}" if _is_atom(operands[0]) else f"!({operands[0]})"
            case "&&" | "||" | "<" | "<=" | ">" | ">=" | "==" | "!=":
                return "(" + f" {operator} ".join(operands) + ")"
            case "unary -" | "unary ~":
                return _narrowed(dtype, f"({operator[-1]}{operands[0]})")
            case "min" | "max" if node in self.inside:
                return operands[0]
            case "min" | "max":
                return f"lw_{operator}_{suffix}({', '.join(map(stripped, operands))})"
            case "widened" if computing == "bool":
                return f"lw_flag_{SUFFIXES[dtype]}(&{operands[0]})"
            case "widened":
                return f"lw_widened_{SUFFIXES[dtype]}({stripped(operands[0])})"
            case "abs":
                return self._absolute(computing, operands[0])
            case "integer power":
                limit = literal("int64", CARRIED_LIMIT)
                return f"lw_integer_power({', '.join(map(stripped, operands))}, {limit}, {node.trap}, trap)"
            case "exact +" | "exact -" | "exact *":
                name = {"+": "sum", "-": "difference", "*": "product"}[operator[-1]]
                return f"lw_exact_{name}({', '.join(map(stripped, operands))}, {node.trap}, trap)"
            case "item":
                return f"lw_lookup({', '.join(map(stripped, operands))}, {node.trap}, trap)"
            case "carried":
                limit = literal(computing, CARRIED_LIMIT)
                function = "lw_fitting" if computing == "int64" else "lw_fitting_f64"
                return f"{function}({stripped(operands[0])}, -{limit}, {limit}, {node.trap}, trap)"
            case "where":
                return f"({operands[1]} ? {operands[0]} : {literal(dtype, 0.0)})"
            case "after":
                return f"lw_after_{suffix}({', '.join(map(stripped, operands))})"
            case "checked":
                return f"lw_checked_{len(operands) - 1}({', '.join(operands)}, {node.trap}, trap)"
            case "not zero":
                return f"lw_not_zero({stripped(operands[0])}, {node.trap}, trap)"
            case "assigned":
                return f"(lw_assigned({operands[1]}, {node.trap}, trap) ? {operands[0]} : 0)"
            case "sqrt":
                return f"{'sqrtf' if computing == 'float32' else 'sqrt'}({stripped(operands[0])})"
            case "wrap" if node in self.inside:
                return operands[0]
            case "wrap":
                return f"lw_wrap({operands[0]}, {operands[1]})"
            case "//" | "%":
                name = "floordiv" if operator == "//" else "mod"
                return f"lw_{name}_{suffix}({operands[0]}, {self._divisor(operands[1], computing, node.trap)})"
            case "/" if self.reciprocals and node.operands[1] in self.reciprocals:
                return f"lw_quotient_{suffix}({stripped(operands[0])}, {self.reciprocals[node.operands[1]]})"
            case "/":
                if not is_inexact(computing):  # NumPy divides integers as doubles
                    operands = [f"lw_double_{suffix}({stripped(o)})" for o in operands]
                    computing = "float64"
                return f"({operands[0]} / {self._divisor(operands[1], computing, node.trap)})"
        return _narrowed(dtype, f"({operands[0]} {operator} {operands[1]})")

    def _complex(self, node: t.Operation, operands: list[str]) -> str:
        suffix = SUFFIXES[node.operands[0].dtype]
        name = _COMPLEX[node.operator]
        if node.operator == "scaled":
            operands = [f"&{loop_variable('multiply', node.dtype)}", *operands]
        if node.operator == "python /":
            operands[1] = self._divisor(operands[1], node.dtype, node.trap)
        if node.trap is None or node.operator == "python /":
            return f"lw_{name}_{suffix}({', '.join(operands)})"
        if name == "modulus":
            name = "python_modulus"
        return f"lw_{name}_{suffix}({', '.join(operands)}, {node.trap}, trap)"

    def _divisor(self, operand: str, dtype: str, trap: int | None) -> str:
        return operand if trap is None else f"lw_divisor_{SUFFIXES[dtype]}({operand}, {trap}, trap)"

    def _power(self, node: t.Operation, operands: list[str]) -> str:
        single = node.dtype == "float32"
        quick = _quick_power(node)
        if quick is None:
            call = f"lw_pow{'f' if single else ''}({operands[0]}, {operands[1]})"
        elif self.uncertain is not None:
            call = f"lw_try_{quick}_{SUFFIXES[node.dtype]}({stripped(operands[0])}, {self.uncertain})"
        else:
            call = f"lw_{quick}_{SUFFIXES[node.dtype]}({stripped(operands[0])})"
        if node.trap is None:
            return call
        return f"lw_checked_2({call}, {operands[0]}, {operands[1]}, {node.trap}, trap)"

    def _math(self, name: str, operands: list[str], trap: int | None) -> str:
        assert name in _EXACT or name in MATH_UNARY or name in MATH_BINARY
        function = name if name in _EXACT else f"lw_{name}"
        call = f"{function}({', '.join(operands)})"
        if trap is None:
            return call
        return f"lw_checked_{len(operands)}({call}, {', '.join(operands)}, {trap}, trap)"

    def _numpy(self, node: t.Operation, name: str, operands: list[str]) -> str:
        suffix, values = SUFFIXES[node.dtype], ", ".join(operands)
        if t.is_numpy_loop(node):
            computing = node.operands[0].dtype
            call = f"lw_call_{len(operands)}_{SUFFIXES[computing]}" + ("_real" if computing != node.dtype else "")
            return f"{call}(&{loop_variable(name, computing)}, {values})"
        is_float = node.dtype.startswith("float")
        if name == "where":
            return f"lw_select_{suffix}({values})"
        if name in ("maximum", "minimum", "fmax", "fmin") and is_float:
            return f"lw_{name}_{zero_taken(name, node.dtype)}_{suffix}({values})"
        if name in ("maximum", "minimum", "fmax", "fmin"):
            return f"lw_{name[:3] if name[0] == 'm' else name[1:]}_{suffix}({values})"
        if name in ("floor", "ceil", "trunc", "rint", "fabs", "copysign"):
            return f"{name}{'f' if node.dtype == 'float32' else ''}({values})"
        return f"lw_numpy_{name}_{suffix}({values})"

    def _shift(self, node: t.Operation, operands: list[str]) -> str:
        name = "lw_shift_left" if node.operator == "<<" else "lw_shift_right"
        call = f"{name}_{SUFFIXES[node.dtype]}({', '.join(map(stripped, operands))})"
        if node.trap is None:
            return call
        return f"lw_shifted({call}, {stripped(operands[1])}, {node.trap}, trap)"

    def _absolute(self, dtype: str, operand: str) -> str:
        if dtype.startswith("uint"):
            return operand
        return f"lw_abs_{SUFFIXES[dtype]}({stripped(operand)})"


# Operations on complex numbers that are functions of support.h.
_COMPLEX = {
    "*": "product", "/": "quotient", "python /": "python_quotient", "scaled": "scaled", "power of 2": "power_2",
    "power of 3": "power_3",
    "python power": "python_power", "modulus": "modulus", "conjugate": "conjugate", "real": "real", "imag": "imag",
}  # fmt: skip


def strip_function(node: t.Operation) -> str | None:
    """The function of strips.h, or of scans.h, that computes an operation for many arguments at once, where there is one."""
    suffix, (kind, _, name) = SUFFIXES[node.dtype], node.operator.rpartition(".")
    if is_scan(node):
        return f"lw_strip_{_scan_words(node)[0]}_{suffix}"
    if node.operator == "later":
        return f"lw_strip_later_{suffix}"
    if powers.is_power(node):
        return f"lw_strip_{_quick_power(node) or 'pow'}_{suffix}"
    if kind == "math" and name not in _IN_PLACE:
        return f"lw_strip_{name}_{suffix}"
    if t.is_numpy_loop(node) and node.operands[0].dtype not in PARTS and name not in _BY_EXPONENT:
        return f"lw_strip_call_{len(node.operands)}_{suffix}"
    return None


def strip_arguments(node: t.Operation) -> tuple[t.Typed, ...]:
    """The operands that its function takes for every argument."""
    if is_scan(node):
        name, optional = _scan_words(node)
        return node.operands[: (3 if name.startswith("scan_pair") else 2) + len(optional)]
    return node.operands[:1] if powers.is_power(node) and _quick_power(node) else node.operands


def strip_call(node: t.Operation, arguments: Sequence[str], scalars: Sequence[str], result: str, count: str) -> str:
    """The call of its function, with the C names of arrays. scalars: C texts of its other operands."""
    if t.is_numpy_loop(node):
        arguments = [f"&{loop_variable(node.operator.removeprefix('numpy.'), node.dtype)}", *arguments]
    elif is_scan(node):
        arguments = _of_scan(node, arguments, scalars)
    return f"{strip_function(node)}({', '.join([*arguments, result, count])});"


def striped_call(node: t.Operation, strips: Sequence[str], scalars: Sequence[str], result: str) -> str:
    """The call of a scan's function for striped rows (striped.h), which takes the element before and terms."""
    name, _ = _scan_words(node)
    given = strips if name == "scan_sum" else [*strips, *scalars]
    return f"lw_striped_{name}({', '.join([*given, result])});"


# Recurrences of integers (``codegen.inner_loops.scans``, scans.h). Operators are "scan max" or "scan min",
# x = op(x before + c, t) + a, with which of c, a and resets differ between iterations; "scan pair max", for two that read each
# other, with whether x has a term of its own; or "scan sum". Operands are the element before the first iteration, what differs
# between iterations, and then what does not. With "before" in front of the operator it is what x was before.
_BEFORE = "before "


def is_scan(node: t.Operation) -> bool:
    return node.operator.removeprefix(_BEFORE).startswith("scan ")


def is_recurrence(node: t.Operation) -> bool:
    """Whether its function takes the element before the first iteration, and then what differs between iterations."""
    return is_scan(node) or node.operator == "later"


def is_sum_scan(node: t.Operation) -> bool:
    """Whether it is the scan of a sum."""
    return node.operator.removeprefix(_BEFORE) == "scan sum"


def scan_of(node: t.Operation) -> tuple[t.Operation, int]:
    """A scan, and which of its results is wanted of an iteration: that of the one before it comes first."""
    is_before = node.operator.startswith(_BEFORE)
    return replace(node, operator=node.operator.removeprefix(_BEFORE)), 0 if is_before else 1


def _scan_words(node: t.Operation) -> tuple[str, list[str]]:
    """What its function is called, and what it is given of each iteration besides terms."""
    words = node.operator.removeprefix(_BEFORE).split()
    length = 3 if words[1] == "pair" else 2
    return "_".join(words[:length]), words[length:]


def _of_scan(node: t.Operation, strips: Sequence[str], scalars: Sequence[str]) -> list[str]:
    """What the function of a scan takes, as C texts."""
    name, optional = _scan_words(node)
    if name == "scan_sum":
        return list(strips)
    terms = strips[: len(strips) - len(optional)]
    given = dict(zip(optional, strips[len(terms) :], strict=True))
    if name.startswith("scan_pair"):
        return [*terms, *scalars, given.get("own", "NULL")]
    added, further = scalars
    return [
        *terms,
        added,
        given.get("added", "NULL"),
        further,
        given.get("further", "NULL"),
        given.get("resets", "NULL"),
    ]


def is_quick_power(node: t.Operation) -> bool:
    """Whether it is a power that takes little in a strip."""
    return powers.is_power(node) and _quick_power(node) is not None


def _quick_power(node: t.Operation) -> str | None:
    return powers.QUICK.get(powers.exponent(node) or 0.0)


def loop_variable(name: str, dtype: str) -> str:
    """The variable of a module that holds one of NumPy's own loops."""
    return f"lw_numpy_{name}_{SUFFIXES[dtype]}"


def _is_free(node: t.Typed) -> bool:
    """Whether the value is there already: C then takes no branch for it."""
    match node:
        case t.Convert(operand=operand, trap=None):
            return _is_free(operand)
    return isinstance(node, t.Literal | t.Scalar | t.Index | t.Local)


def literal(dtype: str, value: bool | int | float | complex) -> str:
    """A number as a C literal of exactly that value and type."""
    if dtype in PARTS:
        parts = (literal(PARTS[dtype], part) for part in (value.real, value.imag))
        return f"lw_{SUFFIXES[dtype]}({', '.join(map(stripped, parts))})"
    assert not isinstance(value, complex)
    if dtype == "bool":
        return "true" if value else "false"
    if dtype.startswith("float"):
        return _float_literal(dtype, float(value))
    text = str(int(value))
    if dtype == "int64":
        text = (
            "INT64_MIN"
            if int(value) == -(2**63)
            else f"INT64_C({text})"
            if int(value) >= 0
            else f"(-INT64_C({-int(value)}))"
        )
    elif dtype == "uint32":
        text += "U"
    elif int(value) == -(2**31):
        text = "INT32_MIN"  # the number in digits is a long to C
    elif int(value) < 0:
        text = f"({text})"
    return f"({C_TYPES[dtype]}){text}" if dtype in _SMALL else text


def _float_literal(dtype: str, value: float) -> str:
    if math.isnan(value):
        return "NAN"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if math.isinf(value):
        return f"({sign}INFINITY)" if sign else "INFINITY"
    text = str(np.float32(abs(value))) if dtype == "float32" else repr(abs(value))
    if not any(c in text for c in ".en"):
        text += ".0"
    text += "f" if dtype == "float32" else ""
    return f"({sign}{text})" if sign else text


def _narrowed(dtype: str, text: str) -> str:
    """Arithmetic of small integers wraps in their own type, not in C's int."""
    return f"({C_TYPES[dtype]}){text}" if dtype in _SMALL else text


def stripped(text: str) -> str:
    """Without one pair of parentheses around the whole."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0 and position < len(text) - 1:
            return text
    return text[1:-1]


def _is_atom(text: str) -> bool:
    return text.isidentifier() or (text.startswith("(") and text.endswith(")") and text.count("(") == 1)
