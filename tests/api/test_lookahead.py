"""Loops that sweep until something holds: nothing shows of sweeps that were done ahead of the tests but the time."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from comparing import check_arrays
from hypothesis import strategies as st
from inner_forms import vectors_of
from loading import nest_of
from randomness import first_seed, wanted
from searching import search

import lapwing as lw
from lapwing.api import lookahead
from lapwing.loopnest.program import short_loops

SHAPE = (7, 64)


@pytest.fixture(autouse=True)
def _tiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small loops are not compiled as a whole."""
    monkeypatch.setattr(short_loops, "FASTER", 0)


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many sweeps were done at once, each time, whatever took longer."""
    monkeypatch.setattr(lookahead._Pace, "pays", True)
    found: list[int] = []
    do = lookahead.LookaheadCall.sweeps

    def counted(call: lookahead.LookaheadCall, values: Any, count: int) -> list[Any]:
        found.append(count)
        return do(call, values, count)

    monkeypatch.setattr(lookahead.LookaheadCall, "sweeps", counted)
    return found


def smooth(shape: tuple[int, ...] = SHAPE, dtype: type = np.float64) -> np.ndarray:
    return np.random.default_rng(sum(shape)).random(shape).astype(dtype)


@lw.nest
def relaxed(u, f, tol, most):
    change = 0.0
    for k in range(most):
        change = 0.0
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - f[i, j])
                change = max(change, abs(new - u[i, j]))
                u[i, j] = new
        if change < tol:
            return k, change
    return most, change


@pytest.mark.usefixtures("little_optimised")
def test_ends_after_any_number_of_sweeps(ahead: list[int]) -> None:
    """Also the second time, when it is known how many there were, and there are more or fewer."""
    changes = [relaxed.python(smooth(), smooth(), 0.0, k)[1] for k in range(1, 40)]
    for most in (*range(34, 0, -3), 38, 40):
        for tol in (0.0, changes[most - 2] if most > 1 else 0.0):
            expected, found = smooth(), smooth()
            wanted_ = relaxed.python(expected, smooth(), tol, most)
            returned = relaxed(found, smooth(), tol, most)
            assert returned == wanted_
            assert list(map(type, returned)) == list(map(type, wanted_))
            assert found.tobytes() == expected.tobytes()
    assert {8, 16} == set(ahead)


@lw.nest
def in_all_ways(u, mask, out, history, kept, most, stop):
    """While, with numbers that are kept, printed, and divided by."""
    count, change, start = 0, 1.0, time.perf_counter()
    while True:
        change = 0.0
        for i in range(u.shape[0] - 2, 0, -1):
            for j in range(1, u.shape[1] - 1):
                old = u[i, j]
                if mask[i, j]:
                    u[i, j] = 0.25 * (u[i, j - 1] + u[i + 1, j] + u[i - 1, j] + u[i, j + 1])
                    if abs(u[i, j] - old) > change:
                        change = abs(u[i, j] - old)
        history.append(change)
        kept[count % len(kept.shape), 0] = change
        if count % 16 == 7:
            print(f"{count}: {change:.3f}", file=out)
        count += 1
        rest = 1 / (stop - count)
        if change == 0 or count >= most or time.perf_counter() < start:
            break
    return count, change, rest


@pytest.mark.usefixtures("little_optimised")
def test_numbers_are_kept_and_errors_come_in_time(ahead: list[int]) -> None:
    mask = smooth() > 0.2
    for most, stop in ((1, 90), (45, 90), (30, 90), (50, 23), (50, 17), (50, 33), (50, 90)):
        found = []
        for function in (in_all_ways.python, in_all_ways):
            u, history, kept = smooth(), [], np.zeros((3, 2))
            returned: Any = None
            with contextlib.suppress(ZeroDivisionError):
                returned = function(u, mask, None, history, kept, most, stop)
            found.append((u.tobytes(), history, kept.tobytes(), returned, len(history)))
        assert found[0] == found[1]
    assert ahead


@lw.nest
def without_reductions(u, most, stop):
    for k in range(most):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
        if k == stop:
            return k
    return -1


@pytest.mark.usefixtures("little_optimised")
@pytest.mark.parametrize("width", [64, 32, 16])
def test_single_precision_with_vectors_of_any_length(width: int, ahead: list[int]) -> None:
    """With the longest ones eight sweeps are too few."""
    nest = lw.nest(without_reductions.python)
    with vectors_of(width):
        for stop in (17, 25, 28, 31, 39, 20, 33):
            expected, found = (smooth((7, 90), np.float32) for _ in range(2))
            assert nest(found, 60, stop) == nest.python(expected, 60, stop)
            assert found.tobytes() == expected.tobytes()
    assert 16 in ahead


@lw.nest
def looking(u, most):
    for k in range(most):
        change = 0.0
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new = 0.5 * (u[i - 1, j] + u[i, j - 1])
                change = max(change, abs(new - u[i, j]))
                u[i, j] = new
        if u[1, 1] < 0.1:
            break
    return change


@lw.nest
def changing(u, omega, most):
    for k in range(most):
        change = 0.0
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new = omega * (u[i - 1, j] + u[i, j - 1])
                change = max(change, abs(new - u[i, j]))
                u[i, j] = new
        omega = 0.5 * omega + 0.2
    return change


@lw.nest
def going_on(u, most):
    change = 0.0
    for k in range(most):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new = 0.5 * (u[i - 1, j] + u[i, j - 1])
                change = max(change, abs(new - u[i, j]))
                u[i, j] = new
        if change > 3:
            break
    return change


@pytest.mark.usefixtures("little_optimised")
@pytest.mark.parametrize(
    ("nest", "more"), [(looking, ()), (changing, (0.4,)), (going_on, ())], ids=["looking", "changing", "going on"]
)
def test_loops_whose_sweeps_hang_on_the_tests(nest: lw.Nest, more: tuple[Any, ...], ahead: list[int]) -> None:
    expected, found = smooth(), smooth()
    assert nest(found, *more, 40) == nest.python(expected, *more, 40)
    assert found.tobytes() == expected.tobytes()
    assert not ahead


@lw.nest
def kept_in_itself(u, kept, most):
    for k in range(most):
        change = 0.0
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new = 0.5 * (u[i - 1, j] + u[i, j - 1])
                change = max(change, abs(new - u[i, j]))
                u[i, j] = new
        kept[0, k] = change
    return change


@pytest.mark.usefixtures("little_optimised")
def test_what_is_kept_may_be_an_element(ahead: list[int]) -> None:
    expected, found = smooth(), smooth()
    assert kept_in_itself(found, found[:1], 40) == kept_in_itself.python(expected, expected[:1], 40)
    assert found.tobytes() == expected.tobytes()
    assert not ahead
    kept_in_itself(found, np.zeros((1, 40)), 40)
    assert ahead


@lw.nest
def set_late(u, rows, most):
    """A row that has no value when the loop begins."""
    for k in range(most):
        change = 0.0
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new = 0.5 * (u[i - 1, j] + u[i, j - 1])
                change = max(change, abs(new - u[i, j]))
                u[i, j] = new
        if k == 0:
            row = rows[k % 3]
        if row[1] > 9:
            break
    return change


OMEGA = 1.0


@lw.nest
def of_a_global(u, most):
    global OMEGA
    OMEGA = 1.0
    for k in range(most):
        change = 0.0
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new = 0.5 * OMEGA * (u[i - 1, j] + u[i, j - 1])
                change = max(change, abs(new - u[i, j]))
                u[i, j] = new
        OMEGA = 0.9 * OMEGA
    return change


class Watched:
    def __init__(self) -> None:
        self.array = np.zeros((3, 3))

    @property
    def corner(self) -> float:
        return float(self.array[1, 1])


WATCHED = Watched()


@lw.nest
def of_an_object(u, most):
    for k in range(most):
        change = 0.0
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new = 0.2 * (u[i - 1, j] + u[i, j + 1] + u[i + 1, j])
                change = max(change, abs(new - u[i, j]))
                u[i, j] = new
        if WATCHED.corner < 0.15266893:
            break
    return k, change


@lw.nest
def begun_anew_now_and_then(u, most):
    for k in range(most):
        change = 0.0
        if k % 5 == 4:
            change = 1.0
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new = 0.5 * (u[i - 1, j] + u[i, j - 1])
                change = max(change, abs(new - u[i, j]))
                u[i, j] = new
        if change > 5:
            break
    return change


@pytest.mark.usefixtures("little_optimised")
@pytest.mark.parametrize("nest", [set_late, of_a_global, of_an_object, begun_anew_now_and_then], ids=lambda n: n.name)
def test_what_is_not_known_before_the_loop(nest: lw.Nest, ahead: list[int]) -> None:
    more = (smooth(),) if nest is set_late else ()
    expected, found = smooth(), smooth()
    WATCHED.array = expected
    returned = nest.python(expected, *more, 40)
    WATCHED.array = found
    assert nest(found, *more, 40) == returned
    assert found.tobytes() == expected.tobytes()
    assert not ahead


@lw.nest
def resized_at_the_end(u, most):
    kept = np.zeros(10)
    for k in range(most):
        change = 0.0
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new = 0.5 * (u[i - 1, j] + u[i, j + 1])
                change = max(change, abs(new - u[i, j]))
                u[i, j] = new
        kept[k % 10] = change
        if change < 1e-9:
            break
    kept.resize(20)
    return kept


@pytest.mark.usefixtures("little_optimised")
def test_nothing_is_referred_to_when_the_loop_has_ended(ahead: list[int]) -> None:
    expected, found = smooth(), smooth()
    assert resized_at_the_end(found, 40).tobytes() == resized_at_the_end.python(expected, 40).tobytes()
    assert found.tobytes() == expected.tobytes()
    assert ahead


@lw.nest
def sum_under_a_condition(u, most):
    for k in range(most):
        total = 0
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new = 0.5 * (u[i - 1, j] + u[i, j + 1])
                if new > 7.0:
                    total += new
                u[i, j] = new
        if total > 1e9:
            break
    return total


@pytest.mark.usefixtures("little_optimised")
def test_a_sum_without_a_term_is_what_it_was() -> None:
    expected, found = smooth(), smooth()
    assert repr(sum_under_a_condition(found, 40)) == repr(sum_under_a_condition.python(expected, 40))
    assert found.tobytes() == expected.tobytes()


@lw.nest
def of_a_number(u, tol, most):
    for k in range(most):
        change = 0.0
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new = 0.5 * (u[i - 1, j] + u[i, j - 1])
                change = max(change, abs(new - u[i, j]))
                u[i, j] = new
        if change < tol:
            break
    return change


@pytest.mark.usefixtures("little_optimised")
def test_a_name_may_stand_for_an_element(ahead: list[int]) -> None:
    expected, found = smooth(), smooth()
    assert of_a_number(found, found[2, 2:3], 40) == of_a_number.python(expected, expected[2, 2:3], 40)
    assert found.tobytes() == expected.tobytes()
    assert not ahead


@pytest.mark.usefixtures("little_optimised")
def test_a_sweep_that_is_interrupted_leaves_the_arrays_as_they_were(
    monkeypatch: pytest.MonkeyPatch, ahead: list[int]
) -> None:
    """Those of the sweeps before it."""
    fresh = lw.nest(relaxed.python)
    found, expected = smooth(), smooth()
    do = lookahead.LookaheadCall.sweeps

    def interrupted(call: lookahead.LookaheadCall, values: Any, count: int) -> list[Any]:
        do(call, values, count)
        raise KeyboardInterrupt

    monkeypatch.setattr(lookahead.LookaheadCall, "sweeps", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fresh(found, smooth(), 0.0, 60)
    relaxed.python(expected, smooth(), 0.0, 16)
    assert found.tobytes() == expected.tobytes()
    assert ahead == [16]


# -- random loops ----------------------------------------------------------------------------------------------------

HEADS = (
    ("for k in range(most):", "if found {0} tol: break"),
    ("for k in range(most):", "if found {0} tol: return k, found"),
    ("for k in range(2, most):", "last = found"),
    ("while True:", "k += 1\nif found {0} tol or k >= most: break"),
    ("while k < most and (k < 5 or not found {0} tol):", "k += 1"),
)
REDUCTIONS = ("found = max(found, {})", "found = min({}, found)", "if {0} > found: found = {0}", "found += {}")
LEFT_OUT = r"values of types .* meet|the type of a value depends on the values"
VALUES = ("(u[i, j] - old) ** 2", "u[i, j] - old", "abs(u[i, j] - old)", "u[i, j]", "f[i, j] * u[i, j - 1]")
ROWS = ("range(1, n - 1)", "range(n - 2, 0, -1)")
COLUMNS = ("range(1, m - 1)", "range(m - 2, 0, -1)")
NEIGHBOURS = (
    "u[i - 1, j]",
    "u[i + 1, j]",
    "u[i, j - 1]",
    "u[i, j + 1]",
    "u[i - 1, j + 1]",
    "u[i + 1, j - 1]",
    "f[i, j]",
    "v[i, j - 1]",
)
OTHERS = (
    "history.append(found)",
    "kept[k % 5] = found",
    "if k % 3 == 0: last = found",
    "last = found if k > 4 else 0.0",
)


@st.composite
def loops(draw: st.DrawFn) -> str:
    head, end = draw(st.sampled_from(HEADS))
    terms = draw(st.lists(st.sampled_from(NEIGHBOURS), min_size=1, max_size=4))
    body = ["old = u[i, j]", f"u[i, j] = {draw(st.sampled_from((0.2, 0.3)))} * ({' + '.join(terms)})"]
    if draw(st.booleans()):
        body.append("v[i, j] = 0.5 * (u[i, j] - v[i, j])")
    if draw(st.integers(0, 2)) == 0:
        body[1] = f"if f[i, j] > 0.3: {body[1]}"
    if draw(st.integers(0, 5)):
        reduction = draw(st.sampled_from(REDUCTIONS)).format(draw(st.sampled_from(VALUES)))
        body.insert(draw(st.integers(1, len(body))), reduction)
    kept, sign = draw(st.lists(st.sampled_from(OTHERS), max_size=2)), draw(st.sampled_from("<>"))
    lines = [
        "import lapwing as lw", "@lw.nest", "def nest(u, v, f, start, tol, most, history, kept):", "    n, m = u.shape",
        "    k, found, last = 0, start, 0.0", f"    {head.format(sign)}", "        found = 0.0",
        f"        for i in {draw(st.sampled_from(ROWS))}:", f"            for j in {draw(st.sampled_from(COLUMNS))}:",
        *(f"                {line}" for line in body),
        *(f"        {line}" for line in (*kept, *end.format(sign).split("\n"))),
        "    return k, found, last",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def one_by_one(nest: lw.Nest) -> Callable[..., Any]:
    def call(**arguments: Any) -> Any:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(lookahead.Ahead, "how_many", lambda *_: 0)
            return nest(**arguments)

    return call


def check(data: st.DataObject) -> None:
    text = data.draw(loops(), label="loops")
    nest = nest_of(text)
    dtype = data.draw(st.sampled_from((np.float64, np.float64, np.float32)), label="type")
    shape = (data.draw(st.integers(4, 9), label="n"), data.draw(st.sampled_from((12, 57, 64, 71)), label="m"))
    for _ in range(3):
        seed, most = data.draw(st.integers(0, 99), label="seed"), data.draw(st.integers(0, 45), label="most")
        tol = data.draw(st.sampled_from((-1.0, 0.0, 1e-3, 1e-2, 0.1, 1.0)), label="tol")
        random = np.random.default_rng(seed)
        arrays = {name: (4 * random.standard_normal(shape)).astype(dtype) for name in "uvf"}
        called = []
        # Sums of floats are rounded once: those are compared with sweeps that are done one by one.
        for function in (one_by_one(nest) if "found +=" in text else nest.python, nest):
            own = {name: values.copy() for name, values in arrays.items()}
            history: list[Any] = []
            kept = np.zeros(5)
            try:
                with np.errstate(all="ignore"):
                    returned = function(**own, start=0.0, tol=tol, most=most, history=history, kept=kept)
            except lw.RefusedError as error:
                assert re.search(LEFT_OUT, str(error))  # noqa: PT017 (others are errors of the test)
                return
            given = {f"returned {k}": np.array(value) for k, value in enumerate(returned)}
            called.append({**own, "kept": kept, "history": np.array(history, float), **given})
        check_arrays(called[1], called[0])


@pytest.mark.usefixtures("little_optimised")
def test_bits_of_the_plain_loop(ahead: list[int]) -> None:
    search(check, wanted(6), first_seed())
    assert ahead


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_bits_of_the_plain_loop_at_length(ahead: list[int]) -> None:
    search(check, wanted(2000), first_seed())
    assert ahead
