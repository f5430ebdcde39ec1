"""Random sequential regions in one process: the bits of plain Python, its types, and an error where it raises."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparing import check_arrays, differing
from hypothesis import assume
from hypothesis import strategies as st
from loading import load
from random_nests import ArraySpec
from random_regions import RegionCase, regions
from randomness import first_seed, wanted
from searching import search

import lapwing as lw
from lapwing.api.program_plan import ProgramPlan
from lapwing.codegen.compilation.toolchain import find_c_compiler, find_cxx_compiler
from lapwing.errors import BuildError

RAISED = (ArithmeticError, ValueError, IndexError, UnboundLocalError, RuntimeWarning)
OF_ITS_OWN = ("2**53", "does not fit")  # limits that Lapwing has and Python has not


@pytest.fixture(autouse=True)
def _needs_compilers(little_optimised: None) -> None:
    try:
        find_c_compiler(), find_cxx_compiler()
    except BuildError as error:
        pytest.skip(str(error))


def region_of(function: Any) -> lw.Nest:
    nest = lw.Nest(function)
    nest.source = dataclasses.replace(nest.source, sequential=True)
    return nest


def check_region(data: st.DataObject) -> None:
    check_case(data.draw(regions(), label="region"))


def check_case(case: RegionCase, made: Callable[[Any], Any] = region_of) -> None:
    """made: what is called, of the function."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "region.py"
        path.write_text(case.source)
        function = load(path).region
        nest = made(function)
    expected, found = case.arguments(), case.arguments()
    raised: Exception | None = None
    right: Any = None
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", "invalid value encountered in cast")
            right = function(**expected)
    except RAISED as error:
        raised = error
    except TypeError:  # a complex number, or ~ of a float: refused, or never reached
        assume(False)
    try:
        result = nest(**found)
    except lw.RefusedError:
        check_arrays(found, case.arguments())
        assume(False)
    except lw.RunError as error:
        if not _has_regions(nest, case):
            check_arrays(found, case.arguments())
        elif raised is not None:
            assert any(_are_equal(found, state) for state in _states(function, case)), "not a state of the plain loops"
        if raised is None and not any(limit in str(error) for limit in OF_ITS_OWN):
            raise AssertionError("the plain loop does not raise") from error
        return
    except RAISED as error:  # of what Python runs
        check_arrays(found, expected)
        if type(error) is not type(raised):
            raise AssertionError(f"the plain loop raises {raised!r}") from error
        return
    assert raised is None, f"the plain loop raises {raised!r}"
    check_arrays(found, expected)
    if right is None:
        assert result is None
        return
    if not isinstance(right, tuple):
        right, result = (right,), (result,)
    for here, there in zip(result, right, strict=True):
        assert here == there or (here != here and there != there), f"{result} for {right}"
        assert np.signbit(here) == np.signbit(there) or here != here, f"{result} for {right}"
        assert type(here) is type(there), f"{result!r} for {right!r}"


def _has_regions(nest: lw.Nest, case: RegionCase) -> bool:
    """Whether the call is one of a program, which keeps what regions before the one that raises have stored."""
    try:
        return isinstance(nest.plan(**case.arguments()), ProgramPlan)
    except lw.RefusedError:
        return False


class _Watched(np.ndarray):
    """Says when an element has been stored."""

    stored: Callable[[], None] = staticmethod(lambda: None)

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(index, value)
        _Watched.stored()


def _states(function: Callable[..., Any], case: RegionCase) -> list[dict[str, np.ndarray]]:
    """The arrays before the plain loops and after each of their stores."""
    arguments = case.arguments()
    watched = {n: v.view(_Watched) if isinstance(v, np.ndarray) else v for n, v in arguments.items()}
    states: list[dict[str, np.ndarray]] = []

    def note() -> None:
        states.append({n: v.copy() for n, v in arguments.items() if isinstance(v, np.ndarray)})

    note()
    _Watched.stored = note
    with np.errstate(all="ignore"), warnings.catch_warnings(), contextlib.suppress(*RAISED):
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", "invalid value encountered in cast")
        function(**watched)
    return states


def _are_equal(found: Mapping[str, Any], state: Mapping[str, np.ndarray]) -> bool:
    return not any(differing(found[name], values).any() for name, values in state.items())


IN_ITS_ORDER = """
def region(a, b, x):
    n, m = a.shape
    for i in range(1, n):
        f = x[i]
        if f > 1:
            a[i, 0] = f
        r = b[i - 1]
        g = x[i]
        if g > 1:
            a[i, 0] = g
        for j in range(1, i + 2):
            a[i, j] = b[i, j] * 0.5 + r[j] - r[j]
"""


def test_what_earlier_rows_stored_stays_where_a_later_one_raises() -> None:
    """The loops are run row by row."""
    arrays = (
        ArraySpec("a", "float64", (7, 4), "tame", 255),
        ArraySpec("b", "float64", (7, 4), "tame", 0),
        ArraySpec("x", "float64", (7,), "tame", 276),
    )
    check_case(RegionCase(IN_ITS_ORDER.lstrip(), arrays, ()), lw.nest)


def test_regions_are_the_plain_loop() -> None:
    search(check_region, wanted(8), first_seed())


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_regions_are_the_plain_loop_at_length() -> None:
    search(check_region, wanted(3000), first_seed() + 1)


def _assigned(value: str) -> str:
    return f"import numpy as np\ndef region(n, x):\n    if n >= 0:\n        x = {value}\n    return n, x\n"


_SMALL_INTEGERS = (3, np.int8(5), np.int32(3), np.int64(4))
_FLOATS = (2.5, np.float32(3.3), np.float64(2.2))


@pytest.mark.parametrize("n", [0, -1])
@pytest.mark.parametrize(
    ("start", "value"),
    [
        *((start, "2**40") for start in (*_SMALL_INTEGERS, np.bool_(True))),
        *((start, "0.1") for start in _FLOATS),
        *((start, "7") for start in (*_SMALL_INTEGERS, *_FLOATS[1:], np.bool_(True))),
    ],
)
def test_a_scalar_of_one_of_two_types(start: Any, value: str, n: int) -> None:
    """A scalar of NumPy's that a region sets to a number of Python's, which need not fit in it."""
    check_case(RegionCase(_assigned(value), (), (("n", n), ("x", start))))


@pytest.mark.parametrize(
    ("start", "value"),
    [*((start, "0.1") for start in _SMALL_INTEGERS), *((start, "1j") for start in (*_SMALL_INTEGERS, *_FLOATS))],
)
def test_a_scalar_that_an_integer_or_a_float_cannot_hold(start: Any, value: str, tmp_path: Path) -> None:
    path = tmp_path / "region.py"
    path.write_text(_assigned(value))
    with pytest.raises(lw.RefusedError, match=r"depends on the values|meet"):
        region_of(load(path).region)(0, start)


@pytest.mark.parametrize("number", [2, 5])
@pytest.mark.parametrize(
    "sets",
    [
        ["s = max(3, b)"],
        ["s = min(b, 3)"],
        ["s = max(max(1, b), 3)"],
        ["q, s = n, max(3, b)"],
        ["q, s = n, b if b > 3 else 3"],
        ["q, s = n, (3 if b > 3 else max(b, 1) if n == 0 else n) if n < 9 else 2"],
        ["t = min(3, b)", "s = max(t, 2)", "t = 1"],
        ["s = max(1, b, 3)"],
        ["t = max(b, 3)", "s = abs(-t) * 2", "t = b"],
        ["s = 1", "s += min(b, 3)"],
        ["s = 0", "for i in range(4):", "    s = max(s, b, 3)"],
    ],
)
def test_the_type_of_one_of_a_number_of_pythons_and_one_of_numpys(sets: list[str], number: int) -> None:
    lines = ["def region(n, b):", "    if n >= 0:", *(f"        {line}" for line in sets), "    return n, s"]
    check_case(RegionCase("\n".join(lines) + "\n", (), (("n", 0), ("b", np.int8(number)))))
