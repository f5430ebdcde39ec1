"""Expressions of the IR as typed ones, by NumPy 2 promotion.

A value may have several possible types: ``max(0, h[i, j])`` is a Python int or an int32, depending on the values.
Operations on such a value are accepted where every possible type gives the same bits, and refused otherwise.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lapwing.loopnest import ir
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.complex_numbers import ComplexLowering, has_complex
from lapwing.loopnest.binding.effects import is_speculable
from lapwing.loopnest.binding.promotion import (  # fmt: skip
    CARRIED_LIMIT,
    EXACT_IN_DOUBLE,
    INT64_MAX,
    INT64_MIN,
    LARGEST_STEP,
    NP_BOOL,
    PARTS,
    PY_BOOL,
    PY_COMPLEX,
    PY_FLOAT,
    PY_INT,
    Interval,
    ScalarType,
    dtype_range,
    fits,
    holds_exactly,
    is_inexact,
    is_pythons,
    resolve,
    resolve_function,
    scalar_type,
)
from lapwing.loopnest.binding.signs import Sign, sign_of
from lapwing.loopnest.binding.values import Counted, Value, literal_of, truth
from lapwing.loopnest.functions import (
    MATH_BINARY,
    MATH_SCALES,
    MATH_TESTS,
    MATH_TO_INT,
    MATH_UNARY,
    NUMPY_COMPLEX_LOOPS,
    NUMPY_EXACT,
    NUMPY_LOOPS,
)
from lapwing.loopnest.guards import guards_access, guards_arm
from lapwing.loopnest.refusals import Refusals, Stopped

_BETWEEN_FLOATS = {"+": float.__add__, "-": float.__sub__, "*": float.__mul__}
_MOST_CONSTANTS = 16  # that a value may be

_INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64")
_SIZES = ("bool", *_INTEGERS, "float32", "float64", "complex64", "complex128")


@dataclass(frozen=True)
class Surroundings:
    """What lowering needs to know about a call: array dtypes and shapes, parameter values, ranges of the indices of the nest's
    own loops.

    subscript: an index that is affine and inside its array; None for one that is looked up.
    Arrays and parameters that were refused are missing.
    """

    dtypes: Mapping[str, str]
    shapes: Mapping[str, tuple[int, ...]]
    parameters: Mapping[str, Any]
    index_ranges: Mapping[str, Interval]
    iterations: int
    subscript: Callable[[ir.Access, int], t.AffineSubscript | None]


class ExpressionLowering(ComplexLowering):
    """Types expressions where the scalars have the values that ``values`` says: None where one was refused."""

    def __init__(self, nest: ir.LoopNest, surroundings: Surroundings, refusals: Refusals) -> None:
        super().__init__(nest, refusals)
        self.around = surroundings
        self.values: dict[str, Value | None] = {}
        self.signs: dict[t.Local, Sign] = {}  # of those that have one value each
        self.index_ranges = dict(surroundings.index_ranges)
        # What integers can be under the conditions around, by the names of scalars, with the values that this is known of, and
        # of loop indices.
        self.known_here: dict[str, tuple[Value | None, Interval]] = {}

    def _lower(self, node: ir.Expression) -> Value:
        line = node.line
        match node:
            case ir.Constant(value=value):
                return self._number(value, line)
            case ir.Parameter(name=name):
                return self._parameter(name, line)
            case ir.LoopIndex(name=name):
                interval, (_, here) = self.index_ranges[name], self.known_here.get(name, (None, None))
                return Value(t.Index("int64", name), frozenset({PY_INT}), interval, here=here)
            case ir.Temporary(name=name):
                return self._temporary(name, line)
            case ir.Access():
                return self._lower_access(node)
            case ir.Unary(operator="not", operand=operand):
                test = t.Operation("bool", "not", (self._test(operand),))
                return Value(test, frozenset({PY_BOOL}), (0, 1))
            case ir.Unary(operator=operator, operand=operand):
                return self._unary(operator, self._lower(operand), line)
            case ir.Binary(operator="**", left=left, right=right):
                a, b = self._operands(left, right)
                return self._power(a, b, right, line)
            case ir.Binary(operator="<<" | ">>" as operator, left=left, right=right):
                a, b = self._operands(left, right)
                return self._shift(operator, a, b, line)
            case ir.Binary(operator=operator, left=left, right=right):
                a, b = self._operands(left, right)
                return self._binary(operator, a, b, line)
            case ir.Comparison(operator=operator, left=left, right=right):
                a, b = self._operands(left, right)
                return self._compare(operator, a, b, line)
            case ir.Boolean(operands=operands):
                return self._boolean(node, operands)
            case ir.Conditional(test=test, then=then, otherwise=otherwise):
                try:
                    joined = self.refusals.each(self._lower_arm, ((test, True, then), (test, False, otherwise)))
                except Stopped:
                    self._test(test)  # to see what is wrong there as well
                    raise
                result = self._join(joined, line)
                yes, no = (self._convert(v.code, result.code.dtype, line) for v in joined)
                may_run = is_speculable(yes) and is_speculable(no) and not guards_arm(node)
                return replace(result, code=t.Select(yes.dtype, self._test(test), yes, no, may_run))
            case ir.Call(function="bool", arguments=(ir.Boolean() as inner,)):
                return Value(self._test(inner), frozenset({PY_BOOL}), (0, 1))
            case ir.Call(function=function, arguments=arguments):
                return self._call(function, self._operands(*arguments), line)
        raise AssertionError(node)

    def _temporary(self, name: str, line: int) -> Value:
        if name not in self.values:
            self.refusals.refuse(
                line,
                f"{name} may have no value here, since not every way through the code above gives it one",
                f"set it before, as {name} = 0",
                tiled_only=True,  # what an earlier iteration gave it, or what the plain loop raises
            )
        known = self.values[name]
        if known is None:
            raise Stopped
        noted, here = self.known_here.get(name, (None, None))
        return replace(known, here=here) if noted is known else known

    def _operands(self, *nodes: ir.Expression) -> list[Value]:
        """Several expressions, all of which are looked at before a refused one stops their parent."""
        return self.refusals.each(self._lower, nodes)

    def _number(self, value: Any, line: int) -> Value:
        kind = scalar_type(value)
        assert kind is not None
        if kind.is_inexact:
            constants = frozenset({float(value)}) if kind == PY_FLOAT else None
            return Value(literal_of(kind.dtype, value), frozenset({kind}), constants=constants)
        if not INT64_MIN <= int(value) <= INT64_MAX:
            self._refuse(line, f"the number {value}", "integers of at most 64 bits are supported")
        return Value(literal_of(kind.dtype, value), frozenset({kind}), (int(value), int(value)))

    def _parameter(self, name: str, line: int) -> Value:
        if name not in self.around.parameters:
            raise Stopped
        value = self.around.parameters[name]
        kind = scalar_type(value)
        if kind is None:
            described = value.dtype.name if hasattr(value, "dtype") else type(value).__name__
            self._refuse(
                line,
                f"{name} is {described}",
                "scalars are bool, int, float, complex or NumPy numbers of 8 to 64 bits a part",
            )
        interval = None if kind.is_inexact else (int(value), int(value))
        if interval and not fits(interval, "int64"):
            self._refuse(line, f"{name} = {value}", "integers of at most 64 bits are supported")
        if self.nest.is_generic and kind.is_integer and name in self.nest.parameters and name not in self.nest.kept:
            if abs(int(value)) > CARRIED_LIMIT:
                self._refuse(line, f"{name} = {value}", "integers of at most 50 bits are supported here")
            interval = (-CARRIED_LIMIT, CARRIED_LIMIT) if kind.weak else None
        return Value(t.Scalar(kind.dtype, name), frozenset({kind}), interval)

    def _lower_access(self, access: ir.Access) -> Value:
        if access.array not in self.around.dtypes or len(access.subscripts) != len(self.around.shapes[access.array]):
            raise Stopped
        axes = range(len(access.subscripts))
        subscripts = tuple(self.refusals.each(lambda axis: self._subscript(access, axis), axes))
        dtype = self.around.dtypes[access.array]
        return Value(t.Load(dtype, access.array, subscripts), frozenset({ScalarType(dtype)}))

    def _subscript(self, access: ir.Access, axis: int) -> t.AffineSubscript | t.LookupSubscript:
        affine = self.around.subscript(access, axis)
        if affine is not None:
            return affine
        index = self._index(access.subscripts[axis])
        if not all(k.is_integer for k in index.types):
            self._refuse(
                access.line,
                f"index {axis + 1} of {access.text} is {index.describe()}",
                "an index is an integer: write int(x), or a // b for a quotient",
            )
        extent = self.around.shapes[access.array][axis]
        lowest = 0 if axis in access.from_end else -extent
        here = index.extent_here
        guarded = here is not None and here[0] >= 0 and here[1] < extent
        counts_from_end = index.extent[0] < 0 and lowest < 0 and not guarded
        trap = None
        if index.extent[0] < lowest or index.extent[1] >= extent:
            trap = self._trap(
                access.line,
                f"an index of {access.text} is outside axis {axis} of {access.array}, which has {extent} elements; "
                "the plain loop raises IndexError here",
            )
        code = self._convert(index.code, "int64", access.line)
        if lowest == 0 and index.extent[0] < 0:
            is_before = t.Operation("bool", "<", (code, literal_of("int64", 0)))
            code = t.Select("int64", is_before, literal_of("int64", INT64_MIN), code, is_speculable(code))
        return t.LookupSubscript(code, axis, trap, counts_from_end, guarded and trap is not None)

    def _index(self, node: ir.Expression) -> Value:
        """An index. One that goes beyond 64 bits by a number that is no index of any array's is outside, and stays so wrapped."""
        match node:
            case ir.Binary(
                operator="+" | "-" as operator, left=left, right=ir.Constant(value=int() as by) as right
            ) if abs(by) < 2**62:
                a, b = self._operands(left, right)
                return self._binary(operator, a, b, node.line, check_overflow=False)
        return self._lower(node)

    def _test(self, node: ir.Expression) -> t.Typed:
        """A condition: only the truth of the value counts."""
        if not isinstance(node, ir.Boolean):
            return truth(self._lower(node).code)
        first, *others = node.operands
        code = self._test(first)
        with self._scope():
            for place, operand in enumerate(others, 1):
                self._learn(node.operands[place - 1], node.operator == "and")
                other = self._test(operand)
                may_run = is_speculable(other) and not guards_access(node, place)
                operator = ("&" if may_run else "&&") if node.operator == "and" else ("|" if may_run else "||")
                code = t.Operation("bool", operator, (code, other))
        return code

    # -- what conditions say of integers -------------------------------------------------------------------------------

    def _lower_arm(self, arm: tuple[ir.Expression, bool, ir.Expression]) -> Value:
        """An expression that is evaluated where a condition holds, or does not."""
        test, holds, node = arm
        with self._where(test, holds):
            return self._lower(node)

    @contextmanager
    def _scope(self) -> Iterator[None]:
        """What is learnt is forgotten at the end."""
        before = self.known_here
        self.known_here = dict(before)
        try:
            yield
        finally:
            self.known_here = before

    @contextmanager
    def _where(self, test: ir.Expression, holds: bool) -> Iterator[None]:
        """What is lowered is evaluated where a condition holds, or does not."""
        with self._scope():
            self._learn(test, holds)
            yield

    def _learn(self, test: ir.Expression, holds: bool) -> None:
        """Notes what integers can be from here on, where a condition holds, or does not (branches in interval analysis: Cousot
        and Cousot, POPL 1977), in a sequential region: other nests may evaluate what stands under conditions anyway."""
        if not self.nest.is_sequential:
            return
        match test:
            case ir.Unary(operator="not", operand=operand):
                self._learn(operand, not holds)
            case ir.Boolean(operator=operator, operands=operands) if (operator == "and") == holds:
                for operand in operands:
                    self._learn(operand, holds)
            case ir.Comparison(operator=operator, left=left, right=right):
                operator = operator if holds else ir.OPPOSITE[operator]
                self._learn_of(left, operator, right)
                self._learn_of(right, ir.MIRRORED[operator], left)

    def _learn_of(self, node: ir.Expression, operator: str, other: ir.Expression) -> None:
        by = 0
        match node:
            case ir.Binary(operator="+" | "-" as sign, left=left, right=ir.Constant(value=int(number))):
                node, by = left, number if sign == "+" else -number
        if not isinstance(node, ir.Temporary | ir.LoopIndex):
            return
        known, bound = self._looked_at(node), self._looked_at(other)
        extent, ends = (None if value is None else value.extent_here for value in (known, bound))
        if known is None or extent is None or ends is None or (by and known.only != PY_INT):
            return  # NumPy's sums wrap
        low, high = _where_compared(operator, (extent[0] + by, extent[1] + by), ends)
        if low <= high:  # or nobody comes here
            noted = self.values.get(node.name) if isinstance(node, ir.Temporary) else None
            self.known_here[node.name] = (noted, (low - by, high - by))

    def _looked_at(self, node: ir.Expression) -> Value | None:
        """What an expression is that has been lowered before; None where it is refused."""
        traps, refused = len(self.traps), self.refusals.count()
        try:
            return self._lower(node)
        except Stopped:
            return None
        finally:
            self.traps = self.traps[:traps]
            self.refusals.forget_after(refused)

    def _boolean(self, node: ir.Boolean, operands: tuple[ir.Expression, ...]) -> Value:
        values = self._operands(*operands)
        if not all(k.is_bool for v in values for k in v.types):
            self._refuse(node.line, f"{node.operator} of numbers", "write a if condition else b")
        types = frozenset(k for v in values for k in v.types)
        return Value(self._test(node), types, (0, 1))

    def _unary(self, operator: str, value: Value, line: int) -> Value:
        for kind in value.types:
            if (kind == NP_BOOL and operator in "+-") or (kind.is_inexact and operator == "~") or kind == PY_BOOL:
                self._refuse(line, f"{operator} of {kind}", "apply it to an int: write int(x)")
        dtype = value.code.dtype
        if operator == "+":
            return value
        if any(k.is_integer for k in value.types) and is_inexact(dtype):
            self._mixed(value, line)  # -0 of an integer is 0, of a float -0.0
        if dtype in PARTS and not all(k.is_complex for k in value.types):
            self._mixed(value, line)  # of a real number the imaginary part stays 0.0
        self._check_own_width(value, line)
        if operator == "~" and NP_BOOL in value.types and value.only is None:
            self._mixed(value, line)  # ~True_ is False_, ~1 is -2
        if operator == "~" and dtype == "bool":
            return Value(t.Operation("bool", "not", (value.code,)), value.types, (0, 1))
        interval = None
        if value.interval is not None:
            interval = _opposite(operator, value.interval)
            if value.only == PY_INT and self._is_seen_to_fit(interval):
                return self._negative(value, line)
            self._check_python_int(interval, line, tiled_only=value.only == PY_INT)
            if value.only is None and not fits(interval, dtype):
                self._mixed(value, line)
        reach = value.reached(dtype)
        if reach is not None:
            reach = _opposite(operator, reach)
            reach = reach if fits(reach, dtype) else None
        return Value(t.Operation(dtype, f"unary {operator}", (value.code,)), value.types, interval, reach=reach)

    def _binary(self, operator: str, a: Value, b: Value, line: int, check_overflow: bool = True) -> Value:
        """Arithmetic: the dtype it computes in must be the same for every type the operands may have."""
        by_python: set[str] = set()
        by_numpy: set[str] = set()
        results: set[ScalarType] = set()
        python_interval: Interval | None = None
        reached: list[Interval | None] = []
        for ka, kb in itertools.product(a.types, b.types):
            if is_pythons(ka, kb):
                compute, result = self._python_arithmetic(operator, ka, kb, line)
                by_python.add(compute)
                if result == PY_INT:
                    python_interval = self._interval(operator, a.integers(ka), b.integers(kb))
                    may_be_exact = operator in _ARITHMETIC and a.only == b.only == PY_INT
                    if check_overflow and may_be_exact and self._is_seen_to_fit(python_interval):
                        return self._exact(operator, a, b, line)
                    if check_overflow:
                        self._check_python_int(python_interval, line, tiled_only=may_be_exact)
                elif operator == "/" and not ka.is_inexact and not kb.is_inexact:
                    self._check_exact_double(a.integers(ka), line)
                    self._check_exact_double(b.integers(kb), line)
            else:
                compute, result = self._numpy_arithmetic(operator, a, ka, b, kb, line)
                by_numpy.add(compute)
                reached.append(
                    self._reach(operator, a.integers(ka), b.integers(kb), result) if result.is_integer else None
                )
            results.add(result)
        if (
            by_python == {"int64"}
            and python_interval is not None
            and self._may_wrap(operator, a, b, by_numpy, python_interval)
        ):
            return self._fitting(operator, a, b, min(by_numpy), frozenset(results), line)
        dtype = self._one_dtype(by_python, by_numpy, operator, a, b, python_interval, line)
        operands = (self._operand(a, dtype, line), self._operand(b, dtype, line))
        trap = None
        typed_operator = self._complex_operator(operator, a, b, dtype, line) if dtype in PARTS else operator
        if any(kind.weak for kind in results):
            trap = self._division_trap(operator, b, results, line)
        if dtype == "bool":
            typed_operator = {"+": "|", "*": "&"}.get(operator, operator)
        if operator == "%" and dtype == "int64" and trap is None and _is_near(a.extent, b.extent):
            typed_operator = "wrap"
        result_dtype = "float64" if operator == "/" and not is_inexact(dtype) else dtype
        interval = python_interval if PY_INT in results else None
        code = t.Operation(result_dtype, typed_operator, operands, trap)
        known = [one for one in reached if one is not None]
        reach = _around(known) if known and len(known) == len(reached) else None
        constants = _python_results(operator, a, b)
        here = self._here(operator, a, b, results)
        return Value(code, frozenset(results), interval, constants, reach, _counted_on(operator, a, b), here)

    def _is_seen_to_fit(self, interval: Interval) -> bool:
        """Whether it is seen as loops run that integers of an interval have 64 bits."""
        return self.nest.is_sequential and not fits(interval, "int64")

    def _exact(self, operator: str, a: Value, b: Value, line: int) -> Value:
        """Arithmetic of Python's integers, which stops where the result has more than 64 bits."""
        operands = (self._convert(a.code, "int64", line), self._convert(b.code, "int64", line))
        here = self._here(operator, a, b, {PY_INT})
        if here is None:
            trap = self._trap(line, "an integer has more than 64 bits; Lapwing has no such numbers", is_beyond=True)
            code = t.Operation("int64", f"exact {operator}", operands, trap)
        else:
            code = t.Operation("int64", operator, operands)
        return Value(code, frozenset({PY_INT}), dtype_range("int64"), here=here)

    def _negative(self, value: Value, line: int) -> Value:
        return self._exact("-", Value(literal_of("int64", 0), frozenset({PY_INT}), (0, 0)), value, line)

    def _here(self, operator: str, a: Value, b: Value, results: Collection[ScalarType]) -> Interval | None:
        """The range of what is computed of integers of which more is known here; None where something might wrap."""
        one, other = a.extent_here, b.extent_here
        if (a.here is None and b.here is None) or one is None or other is None or operator not in ("+", "-", "*"):
            return None
        exact = self._interval(operator, one, other)
        return exact if all(kind.is_integer and fits(exact, kind.dtype) for kind in results) else None

    def _reach(self, operator: str, a: Interval, b: Interval, result: ScalarType) -> Interval | None:
        """The range of what NumPy computes of integers, where nothing wraps and nothing is divided by zero."""
        if operator not in _EXACT or (operator in ("//", "%") and b[0] <= 0):
            return None
        exact = self._interval(operator, a, b)
        return exact if fits(exact, result.dtype) else None

    @staticmethod
    def _may_wrap(operator: str, a: Value, b: Value, by_numpy: set[str], python_interval: Interval) -> bool:
        """Whether arithmetic is between Python ints, or of a smaller NumPy integer, depending on the values: where everything
        fits, both give the same."""
        if operator not in ("+", "-", "*", "//", "%") or len(by_numpy) != 1:
            return False
        (dtype,) = by_numpy
        if dtype not in ("int8", "int16", "int32"):
            return False
        intervals = [python_interval] if operator in "+-*" else [python_interval, a.extent, b.extent]
        return not all(fits(interval, dtype) for interval in intervals)

    def _fitting(self, operator: str, a: Value, b: Value, dtype: str, types: frozenset[ScalarType], line: int) -> Value:
        """Such arithmetic, whose operands and result have to fit the dtype. Sequential regions see as they run if they do."""
        if not self.nest.is_sequential:
            self._mixed(a if a.only is None else b, line, tiled_only=True)
        advice = "Lapwing has no such number; convert the operands, for example with int(x)"
        operands = []
        for value in (a, b):
            code = self._convert(value.code, "int64", line)
            if not fits(value.extent, dtype):
                message = f"a Python int does not fit {dtype}, which it meets depending on the values: {advice}"
                code = self._convert(t.Convert(dtype, code, self._trap(line, message, is_beyond=True)), "int64", line)
            operands.append(code)
        message = f"{operator} of {a.describe()} and {b.describe()} does not fit {dtype}: {advice}"
        by_zero = self._division_trap(operator, b, set(types), line)
        exact = t.Operation("int64", operator, tuple(operands), by_zero)
        result = t.Convert(dtype, exact, self._trap(line, message, is_beyond=True))
        return Value(result, types, dtype_range(dtype))

    def _shift(self, operator: str, a: Value, b: Value, line: int) -> Value:
        """NumPy shifts everything out where the count is negative or too large; Python raises, or has more digits."""
        if any(k.is_inexact for v in (a, b) for k in v.types):
            self._refuse(line, f"{operator} of {a.describe()} and {b.describe()}", "use integers: write int(x)")
        found = {
            ("int64", PY_INT) if ka.weak and kb.weak else self._shifting(operator, ka, kb)
            for ka, kb in itertools.product(a.types, b.types)
        }
        if len(found) > 1:
            return self._shift_right_alike(operator, a, b, frozenset(result for _, result in found), line)
        ((compute, result),) = found
        operands = (self._operand(a, compute, line), self._operand(b, compute, line))
        for value in (a, b):
            if not result.weak and value.only == PY_INT:
                self._check_fits(value.integers(PY_INT), compute, line, f"{operator} with {compute}")
        if not result.weak:
            is_known = operator == ">>" and a.extent[0] >= 0 and b.extent[0] >= 0 and fits(a.extent, compute)
            reach = (0, a.extent[1] >> min(b.extent[0], 64)) if is_known else None
            return Value(t.Operation(compute, operator, operands), frozenset({result}), reach=reach)
        counts = max(0, b.extent[0]), max(0, b.extent[1])
        if operator == "<<":
            counts = counts[0], min(counts[1], 64)
            corners = [x << count for x in a.extent for count in counts]
            self._check_python_int((min(corners), max(corners)), line)
        else:
            corners = [x >> count for x in a.extent for count in counts]
        trap = None
        if b.extent[0] < 0:
            trap = self._trap(line, "a shift by a negative count; the plain loop raises ValueError here")
        return Value(t.Operation("int64", operator, operands, trap), frozenset({PY_INT}), (min(corners), max(corners)))

    def _shift_right_alike(self, operator: str, a: Value, b: Value, results: frozenset[ScalarType], line: int) -> Value:
        """A shift to the right of a number of Python's or of NumPy's: by less than there are bits both give the same."""
        low, high = b.extent
        if operator == "<<" or low < 0 or any(high >= np.iinfo(kind.dtype).bits for kind in results):
            self._mixed(a if a.only is None else b, line)
        operands = (self._operand(a, "int64", line), self._operand(b, "int64", line))
        corners = [x >> count for x in a.extent for count in (low, high)]
        return Value(t.Operation("int64", operator, operands), results, (min(corners), max(corners)))

    def _shifting(self, operator: str, a: ScalarType, b: ScalarType) -> tuple[str, ScalarType]:
        compute, result = resolve(operator, a, b)
        return compute, ScalarType(result)

    def _python_arithmetic(self, operator: str, a: ScalarType, b: ScalarType, line: int) -> tuple[str, ScalarType]:
        if operator in "&|^":
            if a.is_inexact or b.is_inexact:
                self._refuse(line, f"{operator} of {a} and {b}", "use integers or bools: write int(x)")
            return ("bool", PY_BOOL) if a.is_bool and b.is_bool else ("int64", PY_INT)
        if a.is_complex or b.is_complex:
            if operator in ("//", "%"):
                self._refuse_order(line, operator)
            return "complex128", PY_COMPLEX
        if operator == "/" or a.is_float or b.is_float:
            return "float64", PY_FLOAT
        return "int64", PY_INT

    def _numpy_arithmetic(
        self, operator: str, a: Value, ka: ScalarType, b: Value, kb: ScalarType, line: int
    ) -> tuple[str, ScalarType]:
        try:
            compute, result = resolve(operator, ka, kb)
        except TypeError:
            if ka.is_complex or kb.is_complex:
                self._refuse_order(line, operator)
            self._refuse(line, f"{operator} of {ka} and {kb}", _operand_advice(operator))
        if "float16" in (compute, result):
            self._refuse(line, f"{operator} of {ka} and {kb} gives float16", "convert to float32 first")
        if operator == "**" and compute not in (k.dtype for k in (ka, kb) if not k.weak):
            # NumPy then takes its vector code, which may differ from C's pow in the last bit.
            self._refuse(line, f"** of {ka} and {kb}", f"convert one of them, for example with numpy.{compute}")
        for value, kind in ((a, ka), (b, kb)):
            if kind == PY_INT and not is_inexact(compute):
                self._check_fits(value.integers(kind), compute, line, f"{operator} with {compute}")
            elif kind == PY_INT:
                self._check_exact_double(value.integers(kind), line)
        return compute, ScalarType(result)

    def _one_dtype(
        self,
        by_python: set[str],
        by_numpy: set[str],
        operator: str,
        a: Value,
        b: Value,
        python_interval: Interval | None,
        line: int,
    ) -> str:
        """The single dtype to compute in, or a refusal because it depends on the values.

        by_python: dtypes of arithmetic between Python numbers; by_numpy: where a NumPy number takes part.
        """
        if len(by_python | by_numpy) == 1:
            return next(iter(by_python | by_numpy))
        if len(by_numpy) == 1 and by_python == {"int64"} and python_interval is not None:
            # One possibility is arithmetic of Python ints; it gives the same bits where everything fits exactly.
            (other,) = by_numpy
            never_negative = all(v.integers(k)[0] >= 0 for v in (a, b) for k in v.types if not k.is_inexact)
            safe_zero = not is_inexact(other) or operator in "+-" or never_negative
            if safe_zero and operator in "+-*" and fits(python_interval, other):
                return other
            fitting = not is_inexact(other) and all(fits(x, other) for x in (python_interval, a.extent, b.extent))
            if operator in ("//", "%") and fitting:
                return other
        self._mixed(a if a.only is None else b, line)

    def _interval(self, operator: str, a: Interval, b: Interval) -> Interval:
        corners = [(x, y) for x in a for y in b]
        match operator:
            case "+" | "-" | "*":
                results = [_ARITHMETIC[operator](x, y) for x, y in corners]
                interval = (min(results), max(results))
            case "%" if b[0] > 0:
                interval = (a[0], a[1]) if a[0] >= 0 and a[1] < b[0] else (0, b[1] - 1)
            case "%":
                interval = (min(b[0] + 1, 0), max(b[1] - 1, 0))
            case "//" if b[0] > 0:
                results = [x // y for x, y in corners]
                interval = (min(results), max(results))
            case "//":
                bound = max(map(abs, a))
                interval = (-bound, bound)
            case "&" if a[0] >= 0 or b[0] >= 0:
                interval = (0, min(high for low, high in (a, b) if low >= 0))
            case _:
                bits = max((~x if x < 0 else x).bit_length() for pair in (a, b) for x in pair)
                low = -(2**bits) if min(a[0], b[0]) < 0 else max(a[0], b[0]) if operator == "|" else 0
                interval = (low, 2**bits - 1)
        return interval

    def _division_trap(self, operator: str, b: Value, results: set[ScalarType], line: int) -> int | None:
        if operator not in ("/", "//", "%"):
            return None
        may_be_inexact = any(kind.weak and kind.is_inexact for kind in b.types)
        if b.interval is not None and not may_be_inexact and not b.interval[0] <= 0 <= b.interval[1]:
            return None
        if (isinstance(b.code, t.Literal) and b.code.value != 0) or sign_of(b.code, self.signs) is Sign.POSITIVE:
            return None
        if any(not k.weak for k in results):
            self._check_between_either(operator, line)
            return self._trap(
                line,
                "division by zero, of Python's or of NumPy's numbers; the plain loop raises ZeroDivisionError or warns here",
            )
        return self._trap(line, "division by zero; the plain loop raises ZeroDivisionError here")

    def _power(self, a: Value, b: Value, exponent: ir.Expression, line: int) -> Value:
        if has_complex(a, b):
            return self._complex_power(a, b, exponent, line)
        if not any(k.is_float for k in a.types | b.types):
            if self.nest.is_sequential and a.only == b.only == PY_INT and not isinstance(exponent, ir.Constant):
                operands = (self._convert(a.code, "int64", line), self._convert(b.code, "int64", line))
                message = "a power of integers that is no integer, or goes beyond 2**50; Lapwing has no larger ones"
                code = t.Operation("int64", "integer power", operands, self._trap(line, message, is_beyond=True))
                return Value(code, frozenset({PY_INT}), (-CARRIED_LIMIT, CARRIED_LIMIT))
            if not (isinstance(exponent, ir.Constant) and type(exponent.value) is int and 1 <= exponent.value <= 16):
                self.refusals.refuse(
                    line,
                    "an integer power",
                    "an integer is raised to a constant from 1 to 16; otherwise write float(x)",
                    tiled_only=a.only == b.only == PY_INT and not isinstance(exponent, ir.Constant),
                )
            result = a = self._bools_as_integers(a, line)
            for _ in range(exponent.value - 1):
                result = self._binary("*", result, a, line)
            return result
        value = self._binary("**", a, b, line)
        unsure = value.only is None and PY_FLOAT in value.types and not _has_harmless_power(a, exponent)
        if not unsure and a.python_floats and isinstance(exponent, ir.Constant):
            powers = (_python_power(base, exponent.value) for base in a.python_floats)
            value = replace(value, constants=frozenset(power for power in powers if power is not None))
        if unsure:
            self._check_between_either("**", line)
        if value.only == PY_FLOAT or (unsure and value.code.dtype == "float64"):
            assert isinstance(value.code, t.Operation)
            trap = self._trap(line, "a power is not a finite real number; the plain loop raises or turns complex here")
            code = t.Operation("float64", "math.pow", value.code.operands, trap)
            return Value(code, value.types)
        return value

    def _bools_as_integers(self, value: Value, line: int) -> Value:
        """A bool to the power of a Python int is an integer of 64 bits."""
        if not any(k.is_bool for k in value.types):
            return value
        integers = {PY_BOOL: PY_INT, NP_BOOL: ScalarType("int64")}
        types = frozenset(integers.get(k, k) for k in value.types)
        return Value(self._convert(value.code, "int64", line), types, value.interval)

    def _compare(self, operator: str, a: Value, b: Value, line: int) -> Value:
        if has_complex(a, b) and operator not in ("==", "!="):
            self._refuse_order(line, operator)
        computing: dict[str, None] = {}
        results: set[ScalarType] = set()
        for ka, kb in itertools.product(a.types, b.types):
            computing.setdefault(self._comparing(a, ka, b, kb, line))
            results.add(PY_BOOL if is_pythons(ka, kb) else NP_BOOL)
        if len(computing) > 1 and computing.keys() <= set(_INTEGERS):
            computing = {next(c for c in _INTEGERS if all(holds_exactly(c, each) for each in computing)): None}
        elif len(computing) > 1:
            if set(computing) <= {"int64", "float64", "complex128"}:  # the integers involved were checked to be exact
                computing = {max(computing, key=_SIZES.index): None}
            else:
                self._mixed(a if a.only is None else b, line)
        dtype = max(computing, key=_SIZES.index)
        operands = (self._convert(a.code, dtype, line), self._convert(b.code, dtype, line))
        return Value(t.Operation("bool", operator, operands), frozenset(results), (0, 1))

    def _comparing(self, a: Value, ka: ScalarType, b: Value, kb: ScalarType, line: int) -> str:
        """The dtype one pair of types is compared in; integers of all kinds compare by value."""
        if not ka.is_inexact and not kb.is_inexact:
            for kind, value, other in ((ka, a, kb), (kb, b, ka)):
                if kind == PY_INT and not other.is_bool and not other.weak and fits(value.integers(kind), other.dtype):
                    return other.dtype
            return ka.dtype if ka.dtype == kb.dtype else "int64"
        for kind, value in ((ka, a), (kb, b)):
            if kind == PY_INT:
                self._check_exact_double(value.integers(kind), line)
        if ka.weak and kb.weak:
            return "complex128" if PY_COMPLEX in (ka, kb) else "float64"
        return resolve("==", ka, kb)[0]

    def _join(self, values: list[Value], line: int) -> Value:
        """One representation that holds every possible value exactly: for ``a if c else b``, min and max."""
        types = frozenset(k for v in values for k in v.types)
        intervals = [v.interval for v in values if v.interval is not None]
        interval = _around(intervals) if intervals else None
        for dtype in sorted({v.code.dtype for v in values}, key=_SIZES.index):
            if all(self._representable(v, kind, dtype) for v in values for kind in v.types):
                counted = {value.counted for value in values}
                return Value(
                    t.Literal(dtype, 0), types, interval, _all_constants(values), _all_reached(values, dtype),
                    counted.pop() if len(counted) == 1 else None,
                )  # fmt: skip
        described = ", ".join(v.describe() for v in values)
        self._refuse(
            line, f"values of types {described} meet", "convert them to one type, for example numpy.float64(x)"
        )

    def _representable(self, value: Value, kind: ScalarType, dtype: str) -> bool:
        if kind == PY_INT:
            return dtype != "bool" and fits(value.integers(kind), dtype)
        return holds_exactly(dtype, kind.dtype)

    # -- calls -------------------------------------------------------------------------------------------------------

    def _call(self, function: str, arguments: list[Value], line: int) -> Value:
        module, _, name = function.rpartition(".")
        if function in ("min", "max"):
            result = arguments[0]
            for other in arguments[1:]:
                result = self._extremum(function, result, other, line)
            return result
        if function == "sum":
            return self._sum(arguments, line)
        if function == "listed int":
            bound = arguments[1].extent[1]
            return Value(self._convert(arguments[0].code, "int64", line), frozenset({PY_INT}), (-bound, bound))
        if function == "range item":
            return self._range_item(arguments[0], arguments[1], line)
        if function == "integer sum":
            return self._integer_sum(arguments, line)
        if function == "element":
            return self._element(arguments, line)
        argument = arguments[0]
        if function in ("real", "imag"):
            return self._part(function, argument, line)
        if function in ("conjugate", "conj"):
            return self._conjugate(function, argument, line)
        if function == "complex":
            return self._complex(arguments, line)
        if has_complex(*arguments) and (module == "math" or function in ("round", "int", "float")):
            self._refuse(line, f"{function} of a complex number", _REAL_FUNCTION)
        if module == "math":
            return self._math(name, arguments, line)
        if function == "round":
            return self._rounded(argument, line)
        if module == "numpy" and (name in NUMPY_LOOPS or name in NUMPY_EXACT):
            return self._numpy_function(name, arguments, line)
        if name == "sqrt":
            return self._numpy_unary("sqrt", argument, line)
        if name in ("abs", "absolute"):
            return self._absolute(name, argument, line)
        if function == "float":
            return Value(self._convert(argument.code, "float64", line), frozenset({PY_FLOAT}))
        if function == "bool":
            return Value(truth(argument.code), frozenset({PY_BOOL}), (0, 1))
        if function == "int":
            return self._to_python_int("trunc", argument, line)
        dtype = "bool" if name == "bool_" else name
        if has_complex(argument) and dtype not in (*PARTS, "bool"):
            self._refuse(line, f"{function} of a complex number", _REAL_FUNCTION)
        return Value(
            self._assign(argument, dtype, line, function), frozenset({ScalarType(dtype)}), reach=argument.reached(dtype)
        )

    def _integer_sum(self, terms: list[Value], line: int) -> Value:
        """What numpy.sum gives of integers and bools, of 64 bits. Floats it adds in an order of its own."""
        if any(kind.is_inexact for term in terms for kind in term.types):
            self._refuse(line, "numpy.sum of floats, which are added in pairs,", "add them up in a loop: s += x")
        kind = frozenset({ScalarType("int64")})
        result, *others = (Value(self._convert(term.code, "int64", line), kind) for term in terms)
        for other in others:
            result = self._binary("+", result, other, line)
        return result

    def _range_item(self, index: Value, extent: Value, line: int) -> Value:
        """``range(n)[i]``: an index from the start of an axis."""
        for value in (index, extent):
            if not all(k.is_integer for k in value.types):
                self._refuse(line, f"range with {value.describe()}", "its end and index are integers: write int(x)")
        trap = self._trap(line, "an index is outside of its range; the plain loop raises IndexError here")
        operands = (self._convert(index.code, "int64", line), self._convert(extent.code, "int64", line))
        code = t.Operation("int64", "item", operands, trap)
        return Value(code, frozenset({PY_INT}), (0, max(0, extent.extent[1] - 1)))

    def _element(self, values: list[Value], line: int) -> Value:
        """The first of several numbers of which an array is made before they become elements of a row."""
        kinds = [kind for value in values for kind in value.types]
        for same in ("is_bool", "is_integer", "is_float", "is_complex"):
            if all(getattr(kind, same) for kind in kinds):
                return values[0]
        self._refuse(line, "a row of numbers of several kinds", "set its elements one by one: x[k, 0] = a")

    def _sum(self, terms: list[Value], line: int) -> Value:
        """sum((a, b, c)), which adds from the left; since 3.12 Python's own floats with their rounding errors."""
        result = terms[0]
        for term in terms[1:]:
            result = self._binary("+", result, term, line)
            if sys.version_info >= (3, 12) and result.types & {PY_FLOAT, PY_COMPLEX}:
                self._refuse(line, "sum of Python's floats", "write its terms out: a + b + c")
        return result

    def _extremum(self, function: str, a: Value, b: Value, line: int) -> Value:
        test = self._compare("<" if function == "min" else ">", b, a, line).code
        joined = self._join([a, b], line)
        dtype = joined.code.dtype
        first, second = self._convert(a.code, dtype, line), self._convert(b.code, dtype, line)
        assert isinstance(test, t.Operation)
        compared = test.operands[0].dtype
        code: t.Typed = t.Operation(dtype, function, (first, second))
        if compared != dtype and not holds_exactly(compared, dtype):
            # NumPy compares a Python float with a float32 as float32s, yet min returns the float it was given.
            code = t.Select(dtype, test, second, first)
        interval, reach = joined.interval, joined.reach
        is_pythons_int = interval is not None and a.only == b.only == PY_INT
        if is_pythons_int or reach is not None:
            pick = min if function == "min" else max
            picked = pick(a.extent[0], b.extent[0]), pick(a.extent[1], b.extent[1])
            interval = picked if is_pythons_int else interval
            reach = picked if reach is not None else None
        return Value(code, joined.types, interval, joined.constants, reach)

    def _math(self, name: str, arguments: list[Value], line: int) -> Value:
        for value in arguments:
            for kind in value.types:
                if not kind.is_float:
                    self._check_exact_double(value.integers(kind), line)
        if name == "trunc" and any(not k.weak and k.dtype != "float64" for k in arguments[0].types):
            self._refuse(line, f"math.trunc of {arguments[0].describe()}, which Python has not", "write int(x)")
        if name in MATH_TO_INT:
            return self._to_python_int(name, arguments[0], line)
        if name in MATH_TESTS:
            operand = self._convert(arguments[0].code, "float64", line)
            return Value(t.Operation("bool", name, (operand,)), frozenset({PY_BOOL}), (0, 1))
        operands = tuple(self._convert(v.code, "float64", line) for v in arguments)
        if name in MATH_SCALES:
            by = literal_of("float64", MATH_SCALES[name])
            return Value(t.Operation("float64", "*", (*operands, by)), frozenset({PY_FLOAT}))
        assert name in MATH_UNARY or name in MATH_BINARY
        trap = None
        if name not in ("fabs", "copysign", "atan", "tanh", "erf", "erfc", "cbrt") and not self._is_known_to_have(
            name, operands
        ):
            trap = self._trap(
                line, f"math.{name} has no finite value here; the plain loop raises ValueError or OverflowError"
            )
        return Value(t.Operation("float64", f"math.{name}", operands, trap), frozenset({PY_FLOAT}))

    def _is_known_to_have(self, name: str, operands: tuple[t.Typed, ...]) -> bool:
        """Whether a function has a value for these operands, which it does not have for some."""
        sign = sign_of(operands[0], self.signs)
        return (name == "sqrt" and sign >= Sign.NOT_NEGATIVE) or (
            name in ("log", "log2", "log10") and len(operands) == 1 and sign is Sign.POSITIVE
        )

    def _to_python_int(self, name: str, value: Value, line: int) -> Value:
        if not any(k.is_float for k in value.types):
            return Value(self._convert(value.code, "int64", line), frozenset({PY_INT}), value.extent)
        trap = self._trap(line, "a float that is not finite, or beyond 2**53, is turned into an int")
        operand = self._convert(value.code, "float64", line)
        code = t.Convert("int64", t.Operation("float64", f"math.{name}", (operand,)), trap)
        return Value(code, frozenset({PY_INT}), (-EXACT_IN_DOUBLE, EXACT_IN_DOUBLE))

    def _rounded(self, value: Value, line: int) -> Value:
        """round(x), which gives a Python int, the even one of two that are equally near."""
        if any(k.is_bool for k in value.types):
            self._refuse(line, f"round of {value.describe()}", "apply it to a number: write int(x)")
        return self._to_python_int("rint", value, line)

    def _numpy_function(self, name: str, arguments: list[Value], line: int) -> Value:
        """A call of NumPy's: it makes NumPy numbers, of Python's own as well, and warns where math raises."""
        if name.startswith("logical_"):
            truths = tuple(truth(v.code) for v in arguments)
            operator = {"logical_and": "&", "logical_or": "|", "logical_not": "not"}[name]
            return Value(t.Operation("bool", operator, truths), frozenset({NP_BOOL}))
        selects = name == "where"
        values = arguments[1:] if selects else arguments
        compute, result = self._numpy_types(name, values, line)
        operands = tuple(self._operand(v, compute, line) for v in values)
        if selects:
            operands = (truth(arguments[0].code), *operands)
        operator = {"mod": "%", "remainder": "%", "floor_divide": "//"}.get(name, f"numpy.{name}")
        if name == "square" and compute in PARTS:
            self._check_square(compute, line)
        if name == "conjugate" and compute not in PARTS:
            return Value(operands[0], frozenset({ScalarType(result)}))
        if name == "conjugate":
            operator = name
        if name in MATH_TESTS:
            operator = name
            if not is_inexact(compute):
                return Value(t.Literal("bool", name == "isfinite"), frozenset({NP_BOOL}))
        if name in ("floor", "ceil", "trunc", "rint") and not is_inexact(compute):
            return Value(operands[0], frozenset({ScalarType(result)}))
        return Value(t.Operation(result, operator, operands), frozenset({ScalarType(result)}))

    def _numpy_types(self, name: str, values: list[Value], line: int) -> tuple[str, str]:
        """The dtypes NumPy computes in and gives, which must be the same for every type that the operands may have."""
        found: set[tuple[str, str]] = set()
        for kinds in itertools.product(*(v.types for v in values)):
            described = ", ".join(map(str, kinds))
            if name == "clip":  # what is clipped becomes an array first
                kinds = (ScalarType(kinds[0].dtype), *kinds[1:])
            try:
                compute, result = resolve_function(name, *kinds)
            except TypeError:
                advice = _REAL_FUNCTION if has_complex(*values) else "it takes other numbers: write int(x) or float(x)"
                self._refuse(line, f"numpy.{name} of {described}", advice)
            if compute in PARTS and name not in _COMPLEX_FUNCTIONS:
                self._refuse_order(line, f"numpy.{name}")
            if "float16" in (compute, result):
                self._refuse(line, f"numpy.{name} of {described} gives float16", "convert to float32 first")
            if compute not in _SIZES or (name in NUMPY_LOOPS and not is_inexact(compute)):
                self._refuse(line, f"numpy.{name} of {described}", "convert the operands to floats, as float(x)")
            for value, kind in zip(values, kinds, strict=True):
                if kind == PY_INT and is_inexact(compute):
                    self._check_exact_double(value.integers(kind), line)
                elif kind == PY_INT:
                    self._check_fits(value.integers(kind), compute, line, f"numpy.{name} with {compute}")
            found.add((compute, result))
        if len(found) > 1:
            self._mixed(next((v for v in values if v.only is None), values[0]), line)
        return found.pop()

    def _numpy_unary(self, operator: str, value: Value, line: int) -> Value:
        dtypes = {resolve(operator, k) for k in value.types}
        if len(dtypes) > 1:
            self._mixed(value, line)
        compute, result = dtypes.pop()
        if compute == "float16":
            self._refuse(line, f"numpy.{operator} of {value.describe()} gives float16", "convert to float32 first")
        operand = self._convert(value.code, compute, line)
        if compute in PARTS:
            operator = f"numpy.{operator}"
        return Value(t.Operation(result, operator, (operand,)), frozenset({ScalarType(result)}))

    def _absolute(self, name: str, value: Value, line: int) -> Value:
        if has_complex(value):
            return self._modulus(name, value, line)
        types = value.types
        if name == "absolute":
            types = frozenset(ScalarType(resolve("abs", k)[1]) for k in types)
        if any(k.is_bool for k in value.types):
            self._refuse(line, f"abs of {value.describe()}", "apply it to a number: write int(x)")
        self._check_own_width(value, line)
        interval = None
        if PY_INT in value.types:
            low, high = value.integers(PY_INT)
            interval = (0 if low <= 0 <= high else min(abs(low), abs(high)), max(abs(low), abs(high)))
            if value.only == PY_INT and self._is_seen_to_fit(interval):
                either = (self._convert(value.code, "int64", line), self._negative(value, line).code)
                return Value(t.Operation("int64", "max", either), types, (0, dtype_range("int64")[1]))
            self._check_python_int(interval, line, tiled_only=value.only == PY_INT)
            if value.only is None and not fits(interval, value.code.dtype):
                self._mixed(value, line)
        reach = value.reached(value.code.dtype)
        if reach is not None:
            largest = max(map(abs, reach))
            reach = (0, largest) if fits((0, largest), value.code.dtype) else None
        return Value(t.Operation(value.code.dtype, "abs", (value.code,)), types, interval, reach=reach)


_COMPLEX_FUNCTIONS = {*NUMPY_LOOPS, *NUMPY_COMPLEX_LOOPS, *MATH_TESTS, "where", "conjugate", "square"}
_REAL_FUNCTION = (
    "it takes real numbers: take a part of it, as z.real, its modulus, abs(z), or NumPy's function of that name"
)
# Whose results intervals say, where none wraps.
_EXACT = frozenset({"+", "-", "*", "//", "%", "&", "|", "^"})
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y,
}  # fmt: skip


def _has_harmless_power(base: Value, exponent: ir.Expression) -> bool:
    """Whether Python's own numbers among the values of the base are integers of 0 or 1, to a positive power, or floats that are
    known and have a power. Those of others may not be finite or real: Python then raises or gives a complex number, where
    NumPy gives an infinity or a NaN."""
    if not isinstance(exponent, ir.Constant) or isinstance(exponent.value, complex) or exponent.value <= 0:
        return False
    low, high = base.interval or (0, 1)
    are_small = 0 <= low <= high <= 1 if base.interval or PY_INT in base.types else True
    floats = base.python_floats
    return are_small and floats is not None and all(_python_power(each, exponent.value) is not None for each in floats)


def _python_power(base: float, exponent: complex) -> float | None:
    """What Python finds, where that is a finite real number."""
    try:
        power = base**exponent
    except ArithmeticError:
        return None
    return power if isinstance(power, float) and math.isfinite(power) else None


def _python_results(operator: str, a: Value, b: Value) -> frozenset[float] | None:
    """What Python finds of two floats that are known."""
    if operator not in _BETWEEN_FLOATS or (a.types | b.types) & {PY_INT, PY_BOOL, PY_COMPLEX}:
        return None
    ones, others = a.python_floats, b.python_floats
    if ones is None or others is None or len(ones) * len(others) > _MOST_CONSTANTS:
        return None
    return frozenset(_BETWEEN_FLOATS[operator](one, other) for one in ones for other in others)


def _all_constants(values: Sequence[Value]) -> frozenset[float] | None:
    """Those of all of several values, where all are known."""
    known = [value.python_floats for value in values]
    return frozenset[float]().union(*(each for each in known if each)) if None not in known else None


def _counted_on(operator: str, a: Value, b: Value) -> Counted | None:
    """What a sum or a difference of Python ints counts from, where one of them is a step."""
    if operator not in ("+", "-") or any(kind not in (PY_INT, PY_BOOL) for kind in a.types | b.types):
        return None
    for value, step in ((a, b), (b, a)) if operator == "+" else ((a, b),):
        if value.counted is not None and max(map(abs, step.extent)) <= LARGEST_STEP:
            return value.counted
    return None


def _all_reached(values: Sequence[Value], dtype: str) -> Interval | None:
    """The integers of a dtype that several values can be, where all are such."""
    known = [value.reached(dtype) for value in values]
    return _around([one for one in known if one is not None]) if None not in known else None


def _where_compared(operator: str, extent: Interval, ends: Interval) -> Interval:
    """What an integer of a range can be that compares so with one of another range; nothing where the first is larger."""
    low, high = extent
    match operator:
        case "<" | "<=":
            return low, min(high, ends[1] - (operator == "<"))
        case ">" | ">=":
            return max(low, ends[0] + (operator == ">")), high
        case "==":
            return max(low, ends[0]), min(high, ends[1])
        case "!=" if ends[0] == ends[1]:
            return low + (low == ends[0]), high - (high == ends[0])
    return extent


def _opposite(operator: str, interval: Interval) -> Interval:
    """What - or ~ makes of a range."""
    low, high = interval
    return (-high, -low) if operator == "-" else (~high, ~low)


def _around(intervals: Sequence[Interval]) -> Interval:
    return min(low for low, _ in intervals), max(high for _, high in intervals)


def _operand_advice(operator: str) -> str:
    """What to do where NumPy has no such operation for its operands."""
    if operator in ("&", "|", "^"):
        return "it takes integers or bools: write int(x)"
    return "NumPy has no such operation; convert one of them: write int(x)"


def _is_near(value: Interval, divisor: Interval) -> bool:
    """Whether a value lies less than a divisor, which is known and positive, away from what remains."""
    if divisor[0] != divisor[1] or divisor[0] <= 0:
        return False
    return value[0] >= -divisor[0] and value[1] < 2 * divisor[0]
