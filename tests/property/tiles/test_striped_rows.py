"""Scans of narrow integers in striped rows: random recurrences along rows, with elements of the row above, of rows
further up, of arrays along the row and beside it, have the bits of the plain loop, whatever is left of rows beside whole strips.

LAPWING_EXAMPLES sets how many are tried, LAPWING_SEED which ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from comparing import check_arrays
from hypothesis import assume
from hypothesis import strategies as st
from inner_forms import WITHOUT_WIDER, forms_with_vectors, in_form, vectors_of
from loading import nest_of
from randomness import first_seed, wanted
from searching import search

import lapwing as lw
from lapwing.api.calls.run import run
from lapwing.codegen.tile import tile_source
from lapwing.runtime.binding import native
from lapwing.tiling.faces import faces_of
from lapwing.tiling.inner import legal_forms

WIDEST = 3  # elements along the row


@st.composite
def terms(draw: st.DrawFn, arrays: list[str]) -> str:
    """Of what a row reads besides the element before."""
    by = draw(st.sampled_from((0, 0, 1, 1, 2, 3)))
    array = draw(st.sampled_from(arrays))
    row = draw(st.sampled_from(("i - 1", "i - 1", "i - 1", "i - 2")))
    element = f"{array}[{row}, j - {by}]"
    letters = draw(st.sampled_from(("a[i] == b[j - 1]", "a[i] != b[j]", "b[j] == c[i, j]", "a[i] < c[i, j]")))
    added = draw(
        st.sampled_from(("1", "-2", "gap", f"(4 if {letters} else -3)", "w[i, j]", "p[j + 2]", "k[i]", "-k[i]"))
    )
    return draw(st.sampled_from((element, f"{element} + {added}", f"{element} + {added}", f"{added} + 0")))


@st.composite
def recurrences(draw: st.DrawFn) -> str:
    arrays = draw(st.sampled_from((["h"], ["h"], ["e", "h"], ["e", "f", "h"])))
    upwards = draw(st.booleans())
    reduces = draw(st.sampled_from((None, "max", "min")))
    flags = draw(st.booleans())
    rows = "range(h.shape[0] - 3, 1, -1)" if upwards else "range(2, h.shape[0] - 2)"
    lines = ["import lapwing as lw", "@lw.nest", f"def nest({', '.join(arrays)}, d, a, b, c, w, p, k, gap):"]
    lines += [] if reduces is None else ["    best = 0"]
    lines += [f"    for i in {rows}:", f"        for j in range({WIDEST}, h.shape[1] - {WIDEST}):"]
    as_gaps = len(arrays) > 1 and draw(st.booleans())  # what is in gaps reads what is not, and the other way round
    extremum = draw(st.sampled_from(("max", "min")))
    for number, array in enumerate(arrays):
        found = [draw(terms(arrays)) for _ in range(draw(st.integers(1, 3)))]
        if as_gaps:
            found += ["e[i, j - 1] - 1", "h[i, j - 1] - 3"] if array == "e" else ["e[i, j] - 1"] if array == "h" else []
        else:
            found += [f"{other}[i, j] - 1" for other in arrays[:number] if draw(st.booleans())]
            extremum = draw(st.sampled_from(("max", "min")))
            if array == "h" or draw(st.booleans()):
                found.append(f"{array}[i, j - 1] {draw(st.sampled_from(('- 1', '+ gap', '+ 0', '- 2')))}")
        value = f"{extremum}({', '.join(found)})" if len(found) > 1 else found[0]
        lines.append(f"            {array}[i, j] = {value}")
    if flags:
        lines.append("            d[i, j] = 1 if h[i, j] == h[i - 1, j] else (2 if h[i, j] > h[i, j - 1] else 0)")
    if reduces is not None:
        lines += [f"            best = {reduces}(best, h[i, j])", "    return best"]
    text = "\n".join(lines) + "\n"
    return text.replace("i - 1", "i + 1").replace("i - 2", "i + 2") if upwards else text


def check(data: st.DataObject) -> None:
    text = data.draw(recurrences(), label="nest")
    shape = data.draw(st.tuples(st.integers(5, 9), st.integers(126, 430)), label="shape")
    dtype = data.draw(st.sampled_from(("int32", "int64")), label="dtype")
    letters = data.draw(st.sampled_from(("int8", "uint8", "int32", "uint16")), label="letters")
    largest = data.draw(st.sampled_from((0, 9, 1000, 3000, 8000, 40_000)), label="largest")
    gap = data.draw(st.integers(-3, 3) | st.sampled_from((-90, 97, 200)), label="gap")
    width = data.draw(st.sampled_from((16, 32, 64)), label="bytes of a vector")
    columns = data.draw(st.sampled_from((1 << 14, 128, 256)), label="elements of a row that are striped at once")
    seed = data.draw(st.integers(0, 99), label="seed")
    nest = nest_of(text)

    def arguments() -> dict[str, Any]:
        generator = np.random.default_rng(seed)
        made: dict[str, Any] = {n: generator.integers(-largest, largest, shape, dtype, endpoint=True) for n in "efh"}
        made["d"] = np.zeros(shape, np.int8)
        made["a"], made["b"] = (generator.integers(0, 4, side).astype(letters) for side in shape)
        made["c"] = generator.integers(0, 4, shape).astype(letters)
        made["w"] = generator.integers(-3, 4, shape, np.int8)
        made["p"] = generator.integers(-9, 9, shape[1], np.int8)
        made["k"] = generator.integers(-9, 9, shape[0], np.int8)
        return {name: made.get(name, gap) for name in nest.loops.parameters}

    expected, found = arguments(), arguments()
    bound = nest.bind(found)
    form = next((f for f in forms_with_vectors(width, bound, nest.dependences) if f.scanned), None)
    assume(form is not None)
    assert form is not None
    assume('"striped.h"' in tile_source(bound, faces_of(bound), form))
    with np.errstate(all="ignore"):
        right = nest.python(**expected)
    plan = in_form(nest.plan(**found), bound, form)
    with pytest.MonkeyPatch.context() as patched, vectors_of(width):
        flags = (*native.TILE_FLAGS, *WITHOUT_WIDER[width], f"-DLW_STRIPED_ROW={columns}")
        patched.setattr(native, "TILE_FLAGS", flags)
        outcome = run(nest, found, plan=plan)
    check_arrays(found, expected)
    assert right is None or list(outcome.results.values()) == [right]


@pytest.mark.usefixtures("little_optimised")
def test_bits_of_the_plain_loop() -> None:
    search(check, wanted(3), first_seed(), simplest=False)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_bits_of_the_plain_loop_at_length() -> None:
    search(check, wanted(4000), first_seed())


@lw.nest
def linear(h, a, b):
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            same = 2 if a[i - 1] == b[j - 1] else -1
            h[i, j] = max(0, h[i - 1, j - 1] + same, h[i - 1, j] - 1, h[i, j - 1] - 1)


@lw.nest
def by_index(h):
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            h[i, j] = max(h[i - 1, j] - (j & 1), h[i, j - 1] - 1)


@lw.nest
def backwards(h):
    for i in range(1, h.shape[0]):
        for j in range(h.shape[1] - 2, -1, -1):
            h[i, j] = max(h[i - 1, j], h[i, j + 1] - 1)


def is_striped(nest: lw.Nest, **arguments: Any) -> bool:
    bound = nest.bind(arguments)
    form = next(form for form in legal_forms(bound, nest.dependences) if form.scanned)
    return '"striped.h"' in tile_source(bound, faces_of(bound), form)


def test_which_rows_are_striped() -> None:
    h, letters = np.zeros((81, 201), np.int32), np.zeros(200, np.int8)
    assert is_striped(linear, h=h, a=letters, b=letters)
    assert not is_striped(by_index, h=h)  # an index has no image
    assert not is_striped(backwards, h=h)
