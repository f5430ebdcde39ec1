"""Types: every operator on every pair of types, in C and in Python, value by value.

One nest holds many statements ``o3[i] = <expression>``; i runs over all pairs of values of the two operands.
"""

from __future__ import annotations

import itertools
import math
import random
import re
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from comparing import differing
from hypothesis import strategies as st
from loading import load
from randomness import first_seed, time_is_left, wanted
from searching import search

import lapwing as lw
from lapwing.codegen.compilation.toolchain import find_c_compiler, find_cxx_compiler
from lapwing.errors import BuildError

FLOATS = ("float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32")
COMPLEX = ("complex64", "complex128")
DTYPES = (*FLOATS, *COMPLEX, *SIGNED, *UNSIGNED, "bool")
STATEMENTS = 48  # in one nest


def values_of(dtype: str) -> np.ndarray:
    """Ten values with all that is special about a dtype."""
    if dtype == "bool":
        return np.array([False, True] * 5)
    if dtype in FLOATS:
        big = np.finfo(dtype).max
        return np.array([-math.inf, -2.5, -0.0, 0.0, 0.1, 1.0, 3.0, big, math.inf, math.nan], dtype)
    if dtype in COMPLEX:
        big, tiny = np.finfo(dtype).max, np.finfo(dtype).tiny
        parts = [
            (-math.inf, 1.0), (0.1, -2.5), (-0.0, 0.0), (0.0, -0.0), (-tiny, -1.0), (3.0, 0.0), (-0.0, 0.3), (big, -big),
            (math.inf, -math.inf), (0.5, math.nan),
        ]  # fmt: skip
        return np.array([complex(*p) for p in parts], dtype)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    if dtype in UNSIGNED:
        return np.array([0, 1, 2, 3, 7, 100, high // 2, high // 2 + 1, high - 1, high], dtype)
    return np.array([low, low + 1, -7, -1, 0, 1, 3, 100, high - 1, high], dtype)


def arrays() -> dict[str, np.ndarray]:
    """Per dtype the left operand, each value ten times, and the right one, all values ten times over."""
    left = {f"a_{d}": np.repeat(values_of(d), 10) for d in DTYPES}
    right = {f"b_{d}": np.tile(values_of(d), 10) for d in DTYPES}
    return {**left, **right}


SCALARS: dict[str, object] = {
    "pi_int": 3, "pi_negative": -2, "pi_float": 2.5, "pi_bool": True, "pi_nan": math.nan,
    "np_float32": np.float32(0.1), "np_float64": np.float64(-1.5), "np_int8": np.int8(-5), "np_int16": np.int16(300),
    "np_int32": np.int32(70000), "np_int64": np.int64(-(2**40)), "np_uint8": np.uint8(200),
    "np_uint16": np.uint16(60000), "np_uint32": np.uint32(2**32 - 3), "np_bool": np.bool_(True),
    "pi_complex": 0.3 - 1.7j, "np_complex64": np.complex64(0.1 + 0.7j), "np_complex128": np.complex128(-1.5 - 1e-200j),
}  # fmt: skip
LEFT = (*(f"a_{d}[i]" for d in DTYPES), *SCALARS, "2", "-1.25", "0.0", "True", "i", "0.5j")
RIGHT = (*(f"b_{d}[i]" for d in DTYPES), *SCALARS, "3", "0.5", "1", "False", "i", "(1.1 - 0.3j)", "1j")
MIXED = (
    *(f"max(0, b_{d}[i])" for d in (*FLOATS, *SIGNED, *UNSIGNED)),
    *(f"(b_{d}[i] if a_bool[i] else 1)" for d in (*FLOATS, *SIGNED, *UNSIGNED)),
    *(f"min(b_{d}[i], 0.5)" for d in FLOATS),
    "(b_float32[i] if a_bool[i] else b_int8[i])", "(b_int8[i] if a_bool[i] else b_int64[i])",
    "min(a_bool[i], b_uint8[i])", "max(a_bool[i], 1)", "(b_complex64[i] if a_bool[i] else 1)",
    "(b_complex128[i] if a_bool[i] else 0.5)", "(b_complex128[i] if a_bool[i] else 1j)", "complex(b_float64[i], 0.7)",
)  # fmt: skip
BINARY = ("+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<", "<=", ">", ">=", "==", "!=")
UNARY = (
    "-{}", "+{}", "~{}", "(not {})", "abs({})", "np.abs({})", "np.sqrt({})", "float({})", "int({})", "bool({})",
    *(f"np.{d}({{}})" for d in DTYPES if d != "bool"), "np.bool_({})", "{} ** 2", "{} ** 2.0", "math.floor({})",
    "math.ceil({})", "math.trunc({})", "math.sqrt(abs({}))", "math.exp(min({}, 1.5))", "math.atan({})", "math.fabs({})",
    "math.copysign({}, -1.0)", "(1 if {} else 2.5)", "({} if i > 50 else {})", "(i < {} < 100)",
    "({}).real", "({}).imag", "({}).conjugate()", "({}).conj()", "np.real({})", "np.imag({})", "np.conj({})", "complex({})",
    "complex({}, 0.5)", "{} ** 3", "{} ** -1", "{} ** 0", "{} ** 0.5", "{} ** 1j", "np.square({})", "np.isfinite({})",
    "np.where(i > 50, {}, 0.5j)", "abs({}) ** 2", "-{} + 0.0", "{} * 2", "1e-200 * {}", "np.exp({})", "np.log({})", "np.sin({})",
    "np.sign({})", "np.rint({})", "np.power({}, 2)", "np.tanh({})", "np.isnan({})", "np.logical_not({})",
)  # fmt: skip


@dataclass(frozen=True)
class Expected:
    """An expression, the dtype of the array that takes its results, and those results."""

    text: str
    results: np.ndarray


@pytest.fixture(scope="module", autouse=True)
def compilers() -> None:
    try:
        find_c_compiler(), find_cxx_compiler()
    except BuildError as error:
        pytest.skip(str(error))


def fitting(dtype: str) -> Callable[[object], np.generic]:
    """The integer type as a cast that raises for a float that does not fit: C leaves that undefined, Lapwing stops."""
    kind, limits = np.dtype(dtype).type, np.iinfo(dtype)

    def cast(value: object) -> np.generic:
        if isinstance(value, float | np.floating) and not limits.min <= math.trunc(value) <= limits.max:
            raise OverflowError
        return kind(value)

    return cast


def small(function: Callable[[object], int]) -> Callable[[object], int]:
    """A function of Python that makes an int of a float, for floats up to 2**53."""

    def call(value: object) -> int:
        if isinstance(value, float | np.floating) and abs(value) > 2**53:
            raise OverflowError
        return function(value)

    return call


CHECKED_NUMPY = SimpleNamespace(
    **{n: getattr(np, n) for n in """
        sqrt abs bool_ float32 float64 complex64 complex128 real imag conj square isfinite where exp log sin sign rint power tanh
        isnan logical_not
    """.split()},
    **{d: fitting(d) for d in (*SIGNED, *UNSIGNED)},
)  # fmt: skip
CHECKED_MATH = SimpleNamespace(
    **{n: getattr(math, n) for n in ("sqrt", "exp", "atan", "fabs", "copysign")},
    **{n: small(getattr(math, n)) for n in ("floor", "ceil", "trunc")},
)


def evaluated(text: str, data: dict[str, np.ndarray], into: str | None = None) -> Expected | None:
    """What Python makes of an expression; None where it raises, or casts what does not fit."""
    names = {**SCALARS, **data, "np": CHECKED_NUMPY, "math": CHECKED_MATH, "int": small(int)}
    try:
        function = eval(f"lambda i: {text}", names)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.filterwarnings("error", "invalid value encountered in cast")
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            results = [function(i) for i in range(100)]
            dtype = into or np.result_type(*{np.asarray(r).dtype for r in results}).name
            if dtype not in DTYPES:
                return None
            stored = np.zeros(100, dtype)
            for i, result in enumerate(results):
                stored[i] = fitting(dtype)(result) if dtype in UNSIGNED else result
    except (TypeError, ArithmeticError, ValueError, AttributeError, RuntimeWarning, np.exceptions.ComplexWarning):
        return None
    return Expected(text, stored)


def source(expressions: Sequence[Expected]) -> str:
    outputs = [f"o{k}" for k in range(len(expressions))]
    lines = ["import math", "import numpy as np", "import lapwing as lw", "@lw.nest"]
    lines += [f"def nest({', '.join([*outputs, *arrays(), *SCALARS])}):", "    for i in range(100):"]
    lines += [f"        o{k}[i] = {e.text}" for k, e in enumerate(expressions)]
    return "\n".join(lines) + "\n"


def line_of(refusal: str) -> int:
    return int(re.search(r"\.py:(\d+): ", refusal).group(1))  # type: ignore[union-attr]


def check(expressions: Iterable[Expected], directory: Path) -> list[str]:
    """Run expressions in one nest and compare; return those that are refused, with the reason."""
    data, left, refused = arrays(), list(expressions), []
    for attempt in itertools.count():
        if not left:
            return refused
        path = directory / f"nest_{attempt}.py"
        path.write_text(source(left))
        outputs = {f"o{k}": np.zeros_like(e.results) for k, e in enumerate(left)}
        try:
            nest = load(path).nest
            nest.bind({**outputs, **data, **SCALARS})
        except lw.RefusedError as error:
            reasons = {line_of(text): text.split(": ", 1)[1] for text in map(str, error.refusals)}
            for line in sorted(reasons, reverse=True):
                refused.append(f"{left.pop(line - 7).text}: {reasons[line]}")
            continue
        try:
            nest(**outputs, **data, **SCALARS)
        except lw.RunError as error:
            refusal = left.pop(line_of(str(error)) - 7)
            if "turns complex" not in str(error) or refusal.results.dtype.kind != "c":
                raise
            refused.append(f"{refusal.text}: {error}")
            continue
        wrong = []
        for k, expected in enumerate(left):
            apart = differing(outputs[f"o{k}"], expected.results)
            for i in np.flatnonzero(apart)[:1]:
                operands = {n: v[i] for n, v in data.items() if n in expected.text}
                wrong.append(
                    f"{expected.text} with {operands} is {outputs[f'o{k}'][i]!r}, expected {expected.results[i]!r}"
                )
        assert not wrong, "\n".join(wrong)
        return refused
    raise AssertionError


def binary_expressions() -> Iterator[str]:
    for a, b in itertools.product(LEFT, (*RIGHT, *MIXED)):
        if "[" not in a + b:
            continue  # two numbers of Python: some of them below
        yield from (f"{a} {operator} {b}" for operator in BINARY)
        yield from (f"min({a}, {b})", f"max({b}, {a})", f"({a} if i % 3 == 0 else {b})")


def unary_expressions() -> Iterator[str]:
    for operand in (*LEFT, *MIXED, "(a_bool[i] and b_bool[i])", "(a_bool[i] or not b_bool[i])"):
        yield from (u.replace("{}", operand) for u in UNARY)
    numbers = ("i", "pi_int", "pi_float", "pi_bool", "pi_negative", "(i - 50)", "(i / 3)", "0.1")
    for a, b in itertools.product(numbers, numbers):
        yield from (f"{a} {operator} {b}" for operator in BINARY)


def chunks(texts: Iterable[str]) -> Iterator[list[Expected]]:
    data = arrays()
    known = (e for text in texts if (e := evaluated(text, data)) is not None)
    while chunk := list(itertools.islice(known, STATEMENTS)):
        yield chunk


def run(texts: Iterable[str], directory: Path) -> list[str]:
    refused = []
    goes_on = time_is_left()
    for number, chunk in enumerate(chunks(texts)):
        if not goes_on():
            break
        (place := directory / str(number)).mkdir()
        refused += check(chunk, place)
    return refused


def in_order_of_the_seed(texts: Iterable[str]) -> list[str]:
    """What there is no time for with one seed comes with another."""
    ordered = list(texts)
    random.Random(first_seed()).shuffle(ordered)
    return ordered


@pytest.mark.usefixtures("little_optimised")
def test_one_operand(tmp_path: Path) -> None:
    """One in 29, which meets every operation and every operand; the rest in the long tests."""
    print(*run(itertools.islice(unary_expressions(), 0, None, 29), tmp_path), sep="\n")


@pytest.mark.usefixtures("little_optimised")
def test_two_operands(tmp_path: Path) -> None:
    """One in 199; the rest in the long tests."""
    print(*run(itertools.islice(binary_expressions(), 0, None, 199), tmp_path), sep="\n")


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_one_operand_of_all_kinds(tmp_path: Path) -> None:
    print(*run(in_order_of_the_seed(unary_expressions()), tmp_path), sep="\n")


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_two_operands_of_all_kinds(tmp_path: Path) -> None:
    print(*run(in_order_of_the_seed(binary_expressions()), tmp_path), sep="\n")


SIGNED_ZEROS = (  # 0.0 - x is not -x where x is zero, even where the compiler knows that x is not negative
    "0.0 - {}", "0.0 + -{}", "-{} + 0.0", "0.0 + (-1.0) * {}", "1.0 * 0.0 - {}", "0.0 * float(max(0, b_uint8[i])) - {}",
    "-0.0 + {}",
)  # fmt: skip
NEVER_NEGATIVE_ZERO = (
    "float(a_int8[i])", "a_bool[i]", "abs(b_float64[i])", "math.fabs(b_float64[i])", "math.copysign(b_float64[i], 1.0)",
    "(0.0 if a_bool[i] else 1.0)", "(float(a_int8[i]) if a_bool[i] else 1.0)", "np.abs(b_float32[i])", "np.float32(a_int8[i])",
)  # fmt: skip


def test_signed_zeros(tmp_path: Path) -> None:
    assert not run((s.format(x) for s in SIGNED_ZEROS for x in NEVER_NEGATIVE_ZERO), tmp_path)


def test_an_integer_that_is_a_float_elsewhere_does_not_wrap(tmp_path: Path) -> None:
    [refused] = run(["np.int8(b_uint8[i] if a_bool[i] else 0.5)"], tmp_path)
    assert "it is Python float or uint8" in refused


@st.composite
def nested(draw: st.DrawFn, depth: int = 3) -> str:
    """A random expression: what an operator is given is itself an expression, of one type or several."""
    if depth == 0 or draw(st.integers(0, 9)) == 9:
        return draw(st.sampled_from((*LEFT, *RIGHT[:8], *MIXED)))
    a, b = draw(nested(depth - 1)), draw(nested(depth - 1))
    way = draw(st.integers(0, 9))
    if way < 6:
        return f"({a} {draw(st.sampled_from(BINARY))} {b})"
    if way == 6:
        return f"{draw(st.sampled_from(['min', 'max']))}({a}, {b})"
    if way == 7:
        return f"({a} if a_bool[i] else {b})"
    return draw(st.sampled_from(UNARY)).replace("{}", a)


def check_nested(data: st.DataObject) -> None:
    into = st.sampled_from([None, *DTYPES])
    known = arrays()
    drawn = data.draw(st.lists(st.tuples(nested(), into), min_size=16, max_size=32))
    found = [e for text, dtype in drawn if (e := evaluated(text, known, dtype)) is not None]
    with tempfile.TemporaryDirectory() as directory:
        check(found, Path(directory))


def test_nested_expressions() -> None:
    search(check_nested, min(wanted(4), 4), first_seed())


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_nested_expressions_at_length() -> None:
    search(check_nested, wanted(1000), first_seed())
