"""NumPy's functions of scalars in loop bodies: the bits of the plain loop, special values and random ones included."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest
from comparing import differing
from everyday import one_of
from loading import load

import lapwing as lw
from lapwing.codegen.compilation.toolchain import find_c_compiler, find_cxx_compiler
from lapwing.errors import BuildError

POINTS = 1500
HEAD = "import math\nimport numpy as np\nimport lapwing as lw\n\n@lw.nest\ndef nest({}):\n    for i in range({}):\n"

UNARY_LOOPS = """
    exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh cbrt
    degrees radians deg2rad rad2deg
""".split()
BINARY_LOOPS = ("fmod", "logaddexp", "logaddexp2", "heaviside", "float_power", "nextafter")
UNARY = ("floor", "ceil", "trunc", "rint", "sign", "square", "fabs", "isnan", "isinf", "isfinite", "logical_not")
BINARY = (
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "mod",
    "remainder",
    "floor_divide",
    "copysign",
    "logical_and",
    "logical_or",
)
SPECIAL = (-math.inf, -2.5, -1.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, math.inf, math.nan, 1e30, 1e-40)
ARRAYS = {
    "float64": np.array(SPECIAL), "float32": np.array(SPECIAL, "float32"),
    "int8": np.array([-128, -127, -3, -1, 0, 1, 2, 127], "int8"),
    "int16": np.array([-(2**15), -7, -1, 0, 1, 5, 300, 2**15 - 1], "int16"),
    "int32": np.array([-(2**31), -7, -1, 0, 1, 5, 300, 2**31 - 1], "int32"),
    "int64": np.array([-(2**40), -7, -1, 0, 1, 5, 300, 2**40], "int64"),
    "uint8": np.array([0, 1, 2, 7, 100, 128, 254, 255], "uint8"),
    "uint16": np.array([0, 1, 2, 7, 100, 2**15, 2**16 - 1], "uint16"),
    "uint32": np.array([0, 1, 2, 7, 100, 2**31, 2**32 - 1], "uint32"), "bool": np.array([False, True]),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def compilers() -> None:
    try:
        find_c_compiler(), find_cxx_compiler()
    except BuildError as error:
        pytest.skip(str(error))


def check(texts: list[str], data: dict[str, np.ndarray], directory: Path) -> list[str]:
    """Run ``o[i] = text`` for every text and compare with Python; return those that NumPy itself does not take."""
    points = len(next(iter(data.values())))
    outputs, taken, left_out = {}, [], []
    for text in texts:
        function: FunctionType = eval(f"lambda i: {text}", {"np": np, "math": math, **data})
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                results = [function(i) for i in range(points)]
            dtype = np.result_type(*{np.asarray(r).dtype for r in results}).name
        except (TypeError, ValueError, ArithmeticError):
            dtype = "none"
        if dtype not in ARRAYS:  # float16, of small integers
            left_out.append(text)
            continue
        taken.append((text, np.array(results, dtype)))
        outputs[f"o{len(taken) - 1}"] = np.zeros(points, dtype)
    path = directory / "nest.py"
    lines = [f"        o{k}[i] = {text}\n" for k, (text, _) in enumerate(taken)]
    path.write_text(HEAD.format(", ".join([*outputs, *data]), points) + "".join(lines))
    load(path).nest(**outputs, **data)
    for (text, expected), output in zip(taken, outputs.values(), strict=True):
        for i in np.flatnonzero(differing(output, expected))[:1]:
            operands = {n: v[i] for n, v in data.items() if f"{n}[" in text}
            raise AssertionError(f"{text} with {operands} is {output[i]!r}, expected {expected[i]!r}")
    return left_out


def pairs(a: str, b: str) -> dict[str, np.ndarray]:
    first, second = ARRAYS[a], ARRAYS[b]
    return {"a": np.repeat(first, len(second)), "b": np.tile(second, len(first))}


def random_numbers(dtype: str, seed: int) -> np.ndarray:
    """Numbers of all sizes, many of them where the functions are neither 0 nor infinite."""
    rng = np.random.default_rng(seed)
    thirds = [
        rng.uniform(-2, 2, POINTS),
        rng.uniform(0, 700, POINTS),
        rng.normal(size=POINTS) * 10.0 ** rng.integers(-30, 30),
    ]
    values = np.concatenate([*thirds, SPECIAL])
    return rng.permutation(values).astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_loops_of_numpy_on_random_numbers(dtype: str, tmp_path: Path) -> None:
    data = {"a": random_numbers(dtype, 1), "b": random_numbers(dtype, 2)}
    texts = [f"np.{name}(a[i])" for name in UNARY_LOOPS]
    texts += [f"np.{name}(a[i], b[i])" for name in BINARY_LOOPS]
    texts += ["np.reciprocal(a[i])", "math.degrees(a[i])", "math.radians(a[i])"]
    texts += ["np.arctan2(a[i], b[i])", "np.power(np.abs(a[i]), b[i])", "np.power(a[i], 2)", "np.power(a[i], 0.5)"]
    texts += ["np.power(a[i], b[i])", "np.hypot(a[i], b[i])", "np.exp(0.5) * a[i]", "np.exp(-np.square(a[i]))"]
    assert not check(texts, data, tmp_path)


@pytest.mark.usefixtures("little_optimised")
@pytest.mark.parametrize("dtype", one_of(2, ARRAYS))
def test_one_operand(dtype: str, tmp_path: Path) -> None:
    data = {"a": ARRAYS[dtype]}
    texts = [f"np.{name}(a[i])" for name in (*UNARY, *(UNARY_LOOPS if dtype != "int64" else ()))]
    left_out = check(texts, data, tmp_path)
    assert len(left_out) < len(texts) - 6, left_out


@pytest.mark.usefixtures("little_optimised")
@pytest.mark.parametrize("pair", one_of(9, itertools.combinations_with_replacement(ARRAYS, 2)), ids=" and ".join)
def test_two_operands(pair: tuple[str, str], tmp_path: Path) -> None:
    a, b = pair
    texts = [f"np.{name}({x}, {y})" for name in BINARY for x, y in (("a[i]", "b[i]"), ("b[i]", "a[i]"))]
    texts += ["np.where(a[i] < b[i], a[i], b[i])", "np.where(a[i], b[i], 1)", "np.clip(a[i], b[i], 1)"]
    texts += ["np.clip(a[i], 0, b[i])", "np.clip(b[i], a[i], b[i])", "np.maximum(0, a[i])", "np.minimum(b[i], 1)"]
    left_out = check(texts, pairs(a, b), tmp_path)
    assert len(left_out) <= 12, left_out


def mixed() -> Iterator[str]:
    yield from (
        "np.maximum(i, 2)",
        "np.minimum(i, 2.5)",
        "np.square(i)",
        "np.sign(i - 3)",
        "np.exp(i)",
        "np.floor(i / 3)",
    )
    yield from ("np.where(i > 3, 1, 2)", "np.where(i > 3, 1, 2.5)", "np.where(i > 3, a[i], 2)", "np.clip(i, 1, 2.5)")
    yield from ("np.clip(0.1 * i, 0, 1)", "np.mod(i, 0)", "np.floor_divide(1.0, 0.0) + a[i]", "np.isnan(i)")
    yield from ("np.exp(800.0)", "np.log(-1.0)", "math.isnan(a[i])", "math.isinf(a[i])", "math.isfinite(a[i])")
    yield from ("np.maximum(a[i], 0.0)", "np.minimum(-0.0, a[i])", "np.fmax(a[i], 0)", "(np.isnan(a[i]) or a[i] > 1)")
    yield from ("np.hypot(3, 4)", "np.logical_and(i, a[i])", "np.where(np.isnan(a[i]), 0, a[i])")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_numbers_of_python(dtype: str, tmp_path: Path) -> None:
    assert not check(list(mixed()), {"a": ARRAYS[dtype]}, tmp_path)


def test_round(tmp_path: Path) -> None:
    data = {d: np.array([-2.5, -1.5, -0.5, 0.0, 0.5, 1.5, 2.5, 3.49], d) for d in ("float64", "float32")}
    assert not check(["round(float64[i])", "round(float32[i])", "round(i)", "round(0.5 * i)"], data, tmp_path)


def test_both_arms_of_where_are_evaluated(tmp_path: Path) -> None:
    path = tmp_path / "nest.py"
    path.write_text(HEAD.format("o", 4) + "        o[i] = np.where(i > 0, 1 // i, 0)\n")
    with pytest.raises(lw.LapwingError, match="ZeroDivisionError"):
        load(path).nest(np.zeros(4))


SHIFTED = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "bool")


@pytest.mark.parametrize("a", one_of(3, SHIFTED))
def test_shifts(a: str, tmp_path: Path) -> None:
    counts = np.array([-128, -1, 0, 1, 3, 7, 8, 9, 15, 16, 31, 32, 63, 64, 100], "int8")
    data = {"a": np.repeat(ARRAYS[a], len(counts)), "b": np.tile(counts, len(ARRAYS[a]))}
    texts = [
        "a[i] << b[i]",
        "a[i] >> b[i]",
        "b[i] << 2",
        "a[i] >> 1",
        "1 << a[i]",
        "a[i] << True",
        "i >> 2",
        "5 >> i",
        "i << 3",
    ]
    texts += [
        "(90 >> (i % 8)) & 1",
        "(i - 9) >> 100",
        "(i - 9) << 40",
        "True << 3",
        "a[i] in (1, 2, 0.0)",
        "a[i] not in (-1, 1)",
    ]
    assert len(check(texts, data, tmp_path)) <= 2


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_membership(dtype: str, tmp_path: Path) -> None:
    texts = [
        "a[i] in (0, 1, -2.5)",
        "a[i] not in (0.0,)",
        "(i in (1, 2)) + 1",
        "1.5 if a[i] in [1, 1.5] and i not in (3, 4) else 2.5",
    ]
    assert not check(texts, {"a": ARRAYS[dtype]}, tmp_path)


def test_a_negative_count_stops_the_run(tmp_path: Path) -> None:
    path = tmp_path / "nest.py"
    path.write_text(HEAD.format("o", 4) + "        o[i] = 5 >> (2 - i)\n")
    with pytest.raises(lw.LapwingError, match="negative count"):
        load(path).nest(np.zeros(4, "int64"))
