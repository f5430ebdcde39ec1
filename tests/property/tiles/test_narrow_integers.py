"""Tiles that compute with 16-bit integers where ranges prove that these hold all values: random recurrences of sums, minima,
maxima and choices have the bits of the plain loop, with values near the ends of what 16 bits hold, beyond them, and such that
wrap.

LAPWING_EXAMPLES sets how many are tried, LAPWING_SEED which ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from comparing import check_arrays
from hypothesis import strategies as st
from inner_forms import WITHOUT_WIDER, forms_with_vectors, in_form, vectors_of
from loading import nest_of
from randomness import first_seed, wanted
from searching import search

import lapwing as lw
from lapwing.api.calls.run import run
from lapwing.codegen.rows.tile_loops import is_scanned
from lapwing.codegen.tile import tile_source
from lapwing.runtime.binding import native
from lapwing.tiling.faces import faces_of
from lapwing.tiling.inner import legal_forms

PLACES = ["i - 1, j - 1", "i - 1, j", "i, j - 1"]
TESTS = [
    "a[i - 1] == b[j - 1]", "a[i - 1] != b[j - 1]", "h[i - 1, j] > h[i, j - 1]", "gap > 3", "a[i - 1] < b[j - 1]",
    "h[i - 1, j] > gap", "h[i - 1, j - 1] + gap > h[i - 1, j]", "h[i - 1, j] - 30000 < h[i, j - 1] + 30000",
    "(h[i - 1, j] - gap if a[i - 1] == b[j - 1] else 0) > 0",
]  # fmt: skip
# To the element before, with the same in all iterations or not.
ADDED = (
    "- 1", "- 1", "+ gap", "+ gap", "+ 0", "- 250", "- 300", "- True", "- w[i, j]", "- w[i, j] - gap",
    "- (1100 if a[i - 1] == b[j - 1] else False)", "+ (4000 if w[i, j] == 1 else -4000)",
)  # fmt: skip
LETTERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64")
# Of what rows begin with: small, near the ends of what scans hold and of 16 bits, beyond them, and at those of 32.
LARGEST = (0, 9, 1000, 4000, 8000, 8191, 16_383, 30_000, 32_700, 32_767, 40_000, 2**31 - 1)


@st.composite
def recurrences(draw: st.DrawFn) -> str:
    arrays = draw(st.sampled_from((["h"], ["h"], ["e", "h"], ["e", "f", "h"])))
    backwards = draw(st.booleans())
    lines = ["import lapwing as lw", "@lw.nest", f"def nest({', '.join(arrays)}, a, b, w, s, gap):"]
    reduces = draw(st.sampled_from((None, "max", "min")))
    lines += [] if reduces is None else ["    best = 0"]
    columns = "range(h.shape[1] - 2, 0, -1)" if backwards else "range(1, h.shape[1] - 1)"
    lines += ["    for i in range(1, h.shape[0]):", f"        for j in {columns}:"]
    for k, array in enumerate(arrays):
        stored = [f"{other}[i, j]" for other in arrays[:k]]
        value = draw(values(arrays, stored, 2))
        if array == "h":  # a chain along the row, so that there are lanes
            extremum, added = draw(st.sampled_from(("max", "min"))), draw(st.sampled_from(ADDED))
            value = f"{extremum}({value}, h[i, j - 1] {added})"
        if draw(st.booleans()):
            lines.append(f"            x{k} = {value}")
            value = f"x{k}"
        lines.append(f"            {array}[i, j] = {value}")
    if reduces is not None:
        lines += [f"            best = {reduces}(best, h[i, j])", "    return best"]
    text = "\n".join(lines) + "\n"
    return text.replace("j - 1", "j + 1").replace("b[j + 1]", "b[j - 1]") if backwards else text


@st.composite
def values(draw: st.DrawFn, arrays: list[str], stored: list[str], depth: int) -> str:
    elements = [*(f"{array}[{place}]" for array in arrays for place in PLACES), *stored]
    element = draw(st.sampled_from(elements))
    kind = draw(st.integers(0, 9 if depth else 3))
    if kind <= 3:
        return f"{element} {draw(st.sampled_from('+-'))} {draw(differences())}" if kind else element
    if kind <= 7:
        parts = [draw(values(arrays, stored, depth - 1)) for _ in range(draw(st.integers(1, 2)))]
        parts.append(draw(st.sampled_from(("0", "-7", "gap"))) if draw(st.booleans()) else element)
        return f"{draw(st.sampled_from(('max', 'min')))}({', '.join(parts)})" if len(parts) > 1 else parts[0]
    one, other = (draw(values(arrays, stored, depth - 1)) for _ in range(2))
    if kind == 8:
        return f"({one} if {draw(st.sampled_from(TESTS))} else {other})"
    # Sums of several elements grow without bounds: those stay as they are.
    return draw(st.sampled_from((f"abs({one})", f"-({one})", f"({one}) + ({other})", f"({one}) - ({other})")))


@st.composite
def differences(draw: st.DrawFn) -> str:
    first, second = draw(st.integers(-9, 30)), draw(st.integers(-9, 9))
    choice = f"({first} if {draw(st.sampled_from(TESTS))} else {second})"
    table = draw(st.sampled_from(("s[a[i - 1], b[j - 1]]", "s[b[j - 1], a[i - 1]]")))
    return draw(
        st.sampled_from((f"{abs(first)}", "gap", "w[i, j]", "(a[i - 1] != b[j - 1])", choice, choice, table, table))
    )


def check(data: st.DataObject) -> None:
    text = data.draw(recurrences(), label="nest")
    sides, strips = st.integers(9, 40) | st.integers(64, 140), st.integers(126, 420)  # of striped rows
    shape = data.draw(st.tuples(sides, sides) | st.tuples(st.integers(3, 40), strips), label="shape")
    dtype = data.draw(st.sampled_from(("int32", "int64")), label="dtype")
    letters = data.draw(st.sampled_from(LETTERS), label="letters")
    largest = data.draw(st.sampled_from(LARGEST), label="largest")
    gap = data.draw(
        st.integers(-4, 12) | st.sampled_from((256, 257, 1000, 8000, 32_000, 40_000, 2**31 - 1)), label="gap"
    )
    width = data.draw(st.sampled_from((16, 32, 64)), label="bytes of a vector")
    tile = data.draw(st.none() | st.integers(1, 150), label="tile")
    scores = data.draw(st.sampled_from((3, 3, 12, 127, 128, 30_000)), label="scores")
    strange = data.draw(st.sampled_from((None, None, None, -1, -6, 6)), label="strange letter")
    seed = data.draw(st.integers(0, 99), label="seed")
    nest = nest_of(text)

    def arguments() -> dict[str, Any]:
        generator = np.random.default_rng(seed)
        made: dict[str, Any] = {}
        for name in nest.loops.parameters:
            if name in "ab":
                made[name] = generator.integers(0, 4, shape["ab".index(name)]).astype(letters)
                if letters in ("int32", "int64") and seed % 3 == 0 and "s[" not in text:  # equal in their lower halves
                    made[name][generator.random(made[name].shape) < 0.05] += 1 << 16
                if strange is not None and (strange >= 0 or not letters.startswith("u")):
                    made[name][generator.integers(0, len(made[name]))] = strange
            elif name == "s":
                made[name] = generator.integers(-scores, scores, (5, 6), "int32", endpoint=True)
            elif name == "w":
                made[name] = generator.integers(-3, 4, shape, dtype=np.int8)
            elif name == "gap":
                made[name] = gap
            else:
                # One side as large as can be, or both.
                low = (-largest, 0, largest - largest // 50)[seed % 3 if name == "h" else (seed + 1) % 3]
                made[name] = generator.integers(low, largest, shape, dtype, endpoint=True)
        return made

    expected, found, raises, right = arguments(), arguments(), False, None
    try:
        with np.errstate(all="ignore"):
            right = nest.python(**expected)
    except IndexError:
        raises, expected = True, arguments()
    bound = nest.bind(found)
    forms = forms_with_vectors(width, bound, nest.dependences)
    forms = [form for form in forms if form.transposed or (form.scanned and is_scanned(bound, form))]
    form = data.draw(st.sampled_from(forms), label="form")
    plan = in_form(nest.using(tile=tile).plan(**found), bound, form)
    with pytest.MonkeyPatch.context() as patched, vectors_of(width):
        if form.scanned:
            patched.setattr(native, "TILE_FLAGS", (*native.TILE_FLAGS, *WITHOUT_WIDER[width]))
        if raises:
            with pytest.raises(lw.RunError):
                run(nest, found, plan=plan)
        else:
            outcome = run(nest, found, plan=plan)
    check_arrays(found, expected)
    if raises:
        return
    assert right is None or list(outcome.results.values()) == [right]


@pytest.mark.usefixtures("little_optimised")
def test_bits_of_the_plain_loop() -> None:
    search(check, wanted(2), first_seed(), simplest=False)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_bits_of_the_plain_loop_at_length() -> None:
    search(check, wanted(4000), first_seed())


@lw.nest
def linear(h, a, b):
    best = 0
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            same = 2 if a[i - 1] == b[j - 1] else -1
            h[i, j] = max(0, h[i - 1, j - 1] + same, h[i - 1, j] - 1, h[i, j - 1] - 1)
            best = max(best, h[i, j])
    return best


@lw.nest
def distance(d, a, b):
    for i in range(1, d.shape[0]):
        for j in range(1, d.shape[1]):
            d[i, j] = min(d[i - 1, j - 1] + (a[i - 1] != b[j - 1]), d[i - 1, j] + 1, d[i, j - 1] + 1)


@lw.nest
def batch(h, a, b, opening, extending):
    for k in range(h.shape[0]):
        for i in range(h.shape[1] - 2, -1, -1):
            for j in range(1, h.shape[2]):
                same = h[k, i + 1, j - 1] + (3 if a[k, i] == b[k, j - 1] else -2)
                h[k, i, j] = max(same, h[k, i + 1, j] - opening, h[k, i, j - 1] - extending)


@lw.nest
def doubled(h):
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            h[i, j] = max(h[i - 1, j] + h[i, j - 1], 0)


@lw.nest
def looking_back(h):
    for i in range(1, h.shape[0] - 1):
        for j in range(1, h.shape[1]):
            h[i, j] = max(h[i + 1, j], h[i, j - 1] - 1)


@lw.nest
def scored(h, a, b, score):
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            h[i, j] = max(0, h[i - 1, j - 1] + score[a[i - 1], b[j - 1]], h[i - 1, j] - 4, h[i, j - 1] - 4)


@lw.nest
def subsequence(d, a, b):
    for i in range(1, d.shape[0]):
        for j in range(1, d.shape[1]):
            d[i, j] = d[i - 1, j - 1] + 1 if a[i - 1] == b[j - 1] else max(d[i - 1, j], d[i, j - 1])


def is_narrow(nest: lw.Nest, scanned: bool = False, **arguments: Any) -> bool:
    bound = nest.bind(arguments)
    form = next(form for form in legal_forms(bound, nest.dependences) if (form.scanned if scanned else form.transposed))
    return "lw_narrow_rows" in tile_source(bound, faces_of(bound), form)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_which_scans_are_narrow(dtype: str) -> None:
    d, letters, both = np.zeros((81, 81), dtype), np.zeros(80, np.int8), np.zeros((2, 80), np.int8)
    assert is_narrow(linear, True, h=d, a=letters, b=letters.astype(np.int64))
    assert is_narrow(distance, True, d=d, a=letters, b=letters)
    assert is_narrow(batch, True, h=np.zeros((2, 81, 81), dtype), a=both, b=both, opening=4, extending=1)
    assert not is_narrow(subsequence, True, d=d, a=letters, b=letters)  # what is reset


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_which_tiles_are_narrow(dtype: str) -> None:
    def whole(*shape: int) -> np.ndarray[Any, Any]:
        return np.zeros(shape, dtype)

    letters = np.zeros(80, np.int8)
    assert is_narrow(linear, h=whole(81, 81), a=letters, b=letters.astype(np.int64))
    assert is_narrow(distance, d=whole(81, 81), a=letters, b=letters)
    both = np.zeros((2, 80), np.int8)
    assert is_narrow(batch, h=whole(2, 81, 81), a=both, b=both, opening=4, extending=1)
    assert is_narrow(scored, h=whole(81, 81), a=letters, b=letters, score=np.zeros((9, 9), np.int64))
    assert not is_narrow(doubled, h=whole(81, 81))
    assert not is_narrow(looking_back, h=whole(81, 81))


@pytest.mark.usefixtures("little_optimised")
@pytest.mark.parametrize("scanned", [False, True], ids=["in buffers", "scans"])
@pytest.mark.parametrize("largest", [3, 8000, 32_600, 33_000])
def test_batches(largest: int, scanned: bool) -> None:
    generator = np.random.default_rng(largest)
    h = generator.integers(-largest, largest, (2, 70, 90), np.int32)
    letters = [generator.integers(0, 3, (2, 90)) for _ in range(2)]
    expected = h.copy()
    batch.python(expected, *letters, 4, 1)
    bound = batch.bind({"h": h, "a": letters[0], "b": letters[1], "opening": 4, "extending": 1})
    form = next(
        form for form in legal_forms(bound, batch.dependences) if (form.scanned if scanned else form.transposed)
    )
    found = {"h": h, "a": letters[0], "b": letters[1], "opening": 4, "extending": 1}
    run(batch, found, plan=in_form(batch.plan(**found), bound, form))
    np.testing.assert_array_equal(h, expected)


@lw.nest
def compared(h, gap):
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            h[i, j] = max(h[i, j - 1] - 1, h[i - 1, j] if h[i - 1, j - 1] + gap > h[i - 1, j] else 0)


@pytest.mark.usefixtures("little_optimised")
@pytest.mark.parametrize("gap", [5, 32_767, 40_000])
def test_what_is_compared_alone_may_be_large(gap: int) -> None:
    h = np.random.default_rng(gap).integers(-9, 9, (140, 140)).astype(np.int32)
    expected, found = h.copy(), {"h": h, "gap": gap}
    compared.python(expected, gap)
    bound = compared.bind(found)
    form = next(form for form in legal_forms(bound, compared.dependences) if form.transposed)
    run(compared, found, plan=in_form(compared.plan(**found), bound, form))
    np.testing.assert_array_equal(h, expected)


@lw.nest
def with_costs(h, a):
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            h[i, j] = max(h[i - 1, j], h[i, j - 1] - (1100 if a[j] == 1 else 0))


@lw.nest
def with_flags(h, a):
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            h[i, j] = min(h[i - 1, j - 1] + (0 if a[i] == a[j] else True), h[i - 1, j] + True, h[i, j - 1] + 1)


@pytest.mark.usefixtures("little_optimised")
@pytest.mark.parametrize("nest", [with_costs, with_flags], ids=lambda nest: nest.name)
def test_what_is_added_may_vary_or_be_a_flag(nest: lw.Nest) -> None:
    found = {"h": np.zeros((2, 64), np.int32), "a": np.ones(64, np.int8)}
    found["h"][1, 0] = 3000
    expected = found["h"].copy()
    nest.python(expected, found["a"])
    bound = nest.bind(found)
    form = next(form for form in legal_forms(bound, nest.dependences) if form.scanned)
    run(nest, found, plan=in_form(nest.plan(**found), bound, form))
    np.testing.assert_array_equal(found["h"], expected)
