"""Nests whose arrays have elements of several sizes, in lanes of one size: random loop bodies have the bits of the plain loop.

LAPWING_EXAMPLES sets how many bodies are tried, LAPWING_SEED which ones.
"""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest
from comparing import check_arrays
from hypothesis import assume
from hypothesis import strategies as st
from inner_forms import forms_with_vectors, in_form, vectors_of
from loading import nest_of
from randomness import first_seed, wanted
from searching import search

import lapwing as lw
from lapwing.api.calls.run import run
from lapwing.codegen.tile import reason_against_vectors
from lapwing.tiling.inner import legal_forms

INTEGERS, FLOATS = ("int8", "uint8", "bool", "int16", "uint16", "int32", "uint32", "int64"), ("float32", "float64")
SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 5e-324, 1e-310, 1e300, 1e-40])
# Elements of written arrays that lanes find at other iterations, and their own of those that are only read.
WRITTEN = (
    "[i - 1, j]",
    "[i, j - 1]",
    "[i - 1, j - 1]",
    "[i - 2, j]",
    "[i, j - 2]",
    "[i + 1, j]",
    "[i, j + 1]",
    "[i, j]",
)
READ = ("[i, j]", "[i - 1, j]", "[i, j + 1]")


@st.composite
def nests(draw: st.DrawFn, dtypes: dict[str, str]) -> str:
    """A nest that writes u, v and w; dtypes: of every array, with those of r, which is read, and of the row a."""
    head = ["import lapwing as lw", "@lw.nest", "def nest(u, v, w, r, a):"]
    swept = draw(st.booleans())
    head += ["    for t in range(3):"] if swept else []
    indent = " " * (8 if swept else 4)
    loops = [
        f"{indent}for i in range(2, u.shape[0] - 1):",
        f"{indent}    for j in range(2, u.shape[1] - 1):",
    ]
    elements = Elements(dtypes)
    body = [f"p = {draw(elements.values('int'))}"] if draw(st.booleans()) else []
    for name in draw(st.permutations("uvw"))[: draw(st.integers(1, 3))]:
        kind = "float" if dtypes[name] in FLOATS else "bool" if dtypes[name] == "bool" else "int"
        stored, other = (draw(elements.values(kind)) for _ in range(2))
        match draw(st.integers(0, 3)):
            case 0:
                body += [
                    f"if {draw(elements.tests())}:", f"    {name}[i, j] = {stored}",
                    "else:", f"    {name}[i, j] = {other}",
                ]  # fmt: skip
            case 1:
                body += [f"if {draw(elements.tests())}:", f"    {name}[i, j] = {stored}"]
            case _:
                body.append(f"{name}[i, j] = {stored}")
    # One chain along each loop, so that there are lanes.
    kind = "float" if dtypes["u"] in FLOATS else "bool" if dtypes["u"] == "bool" else "int"
    chained = {
        "float": "u[i, j - 1] + u[i - 1, j]",
        "bool": "u[i, j - 1] != u[i - 1, j]",
        "int": "u[i, j - 1] ^ u[i - 1, j]",
    }
    body.append(f"u[i, j] = {chained[kind]}" if draw(st.booleans()) else "u[i, j] = min(u[i, j - 1], u[i - 1, j])")
    return "\n".join([*head, *loops, textwrap.indent("\n".join(body), indent + " " * 8)]) + "\n"


class Elements:
    """Strategies of expressions over the arrays."""

    def __init__(self, dtypes: dict[str, str]) -> None:
        self._dtypes = dtypes

    def _elements(self, kinds: tuple[str, ...]) -> list[str]:
        found = [f"{name}{at}" for name in "uvw" if self._dtypes[name] in kinds for at in WRITTEN]
        found += [f"r{at}" for at in READ if self._dtypes["r"] in kinds]
        return found + [at for at in ("a[i]", "a[j - 1]") if self._dtypes["a"] in kinds]

    def values(self, kind: str) -> st.SearchStrategy[str]:
        if kind == "bool":
            return self.tests()
        integers = self._elements(("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64")) or ["i"]
        numbers = st.sampled_from(integers)
        simple = numbers | st.sampled_from(["0", "1", "3"])
        whole = st.one_of(
            numbers,
            simple,
            st.builds("{} + {}".format, numbers, simple),
            st.builds("{} - {}".format, numbers, numbers),
            st.builds("{} * {}".format, numbers, numbers),
            st.builds("{} & {}".format, numbers, numbers),
            st.builds("abs({})".format, numbers),
            st.builds("max({}, {})".format, numbers, numbers),
            st.builds("min({}, {}) + 1".format, numbers, numbers),
            st.builds("int({})".format, self.tests()),
            st.builds("({} if {} else {})".format, simple, self.tests(), simple),
        )
        if kind == "int":
            return whole
        floats = self._elements(FLOATS)
        if not floats:
            return whole
        of_floats = st.sampled_from(floats)
        return st.one_of(
            of_floats,
            whole,
            st.builds("{} + {}".format, of_floats, of_floats),
            st.builds("0.5 * {} - {}".format, of_floats, of_floats),
            st.builds("{} * {}".format, of_floats, numbers),
            st.builds("max({}, {})".format, of_floats, of_floats),
            st.builds("abs({})".format, of_floats),
            st.builds("({} if {} else {})".format, of_floats, self.tests(), of_floats),
        )

    def tests(self) -> st.SearchStrategy[str]:
        bools = self._elements(("bool",))
        kinds = tuple(dtype for dtype in (*INTEGERS, *FLOATS) if dtype != "bool")
        numbers = st.sampled_from(self._elements(kinds) or ["i"])
        compared = st.builds("{} {} {}".format, numbers, st.sampled_from("< <= == != >".split()), numbers)
        return compared | st.sampled_from(bools) if bools else compared


def arguments_of(dtypes: dict[str, str], shape: tuple[int, int], seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)

    def made(dtype: str, extents: tuple[int, ...]) -> Any:
        if dtype == "bool":
            return rng.random(extents) < 0.5
        values = rng.integers(0 if dtype.startswith("uint") else -9, 10, extents).astype(dtype)
        ends = SPECIAL if dtype in FLOATS else np.array([np.iinfo(dtype).min, np.iinfo(dtype).max])
        at = rng.random(extents) < 0.1
        with np.errstate(all="ignore"):
            values[at] = rng.choice(ends, at.sum()).astype(dtype)
        return values

    return {name: made(dtypes[name], shape if name != "a" else (max(shape),)) for name in ("u", "v", "w", "r", "a")}


@lw.nest
def wrapping(h, small, byte, flag, single):
    """Numbers that wrap in their own types, read again in the same iteration and in later ones; what is rounded when stored."""
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            h[i, j] = max(h[i - 1, j] + small[i - 1, j], h[i, j - 1])
            small[i, j] = small[i - 1, j] + small[i, j - 1] + 1
            byte[i, j] = small[i, j] * byte[i - 1, j - 1] - byte[i, j - 1]
            flag[i, j] = flag[i - 1, j] != (byte[i, j] > small[i, j])
            single[i, j] = 0.1 * h[i, j]


@pytest.mark.parametrize("dtype", ["int64", "float64"])
@pytest.mark.usefixtures("little_optimised")
def test_what_elements_hold_is_what_lanes_keep(dtype: str) -> None:
    rng = np.random.default_rng(5)

    def made() -> dict[str, Any]:
        return {
            "h": rng.integers(-9, 9, (70, 90)).astype(dtype),
            "small": rng.integers(-128, 128, (70, 90)).astype(np.int8),
            "byte": rng.integers(0, 256, (70, 90)).astype(np.int16),
            "flag": rng.random((70, 90)) < 0.5,
            "single": np.zeros((70, 90), np.float32),
        }

    found = made()
    expected = {name: values.copy() for name, values in found.items()}
    bound = wrapping.bind(found)
    form = next(form for form in legal_forms(bound, wrapping.dependences) if form.transposed)
    with vectors_of(64):
        assert reason_against_vectors(bound, form) is None
        with np.errstate(all="ignore"):
            wrapping.python(**expected)
        run(wrapping, found, plan=in_form(wrapping.plan(**found), bound, form))
    check_arrays(found, expected)


def check(data: st.DataObject) -> None:
    dtypes = {name: data.draw(st.sampled_from((*INTEGERS, *FLOATS)), label=name) for name in "uvwra"}
    text = data.draw(nests(dtypes), label="nest")
    nest = nest_of(text)
    sides = st.integers(4, 150) | st.integers(4, 30)
    shape = data.draw(st.tuples(sides, sides), label="shape")
    seed = data.draw(st.integers(0, 99), label="seed")
    width = data.draw(st.sampled_from((16, 32, 64)), label="bytes of a vector")
    expected, found = arguments_of(dtypes, shape, seed), arguments_of(dtypes, shape, seed)
    try:
        bound = nest.bind(found)
    except lw.RefusedError:
        assume(False)
    forms = [form for form in forms_with_vectors(width, bound, nest.dependences) if form.transposed]
    assume(forms and not bound.domain.is_empty)
    with vectors_of(width):
        assume(reason_against_vectors(bound, forms[0]) is None)
    with np.errstate(all="ignore"):
        try:
            nest.python(**expected)
        except (OverflowError, ValueError):
            assume(False)
    plan = in_form(nest.plan(**found), bound, forms[0])
    with vectors_of(width):
        run(nest, found, plan=plan)
    check_arrays(found, expected)


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("little_optimised")
def test_bits_of_the_plain_loop() -> None:
    search(check, wanted(1), first_seed(), simplest=False)


@pytest.mark.long
@pytest.mark.timeout(14400)
def test_bits_of_the_plain_loop_at_length() -> None:
    search(check, wanted(1000), first_seed())
