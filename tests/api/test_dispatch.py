"""Calls in one process: those alike an earlier one skip binding and planning, and nothing shows but the time.

Every call is compared with the plain loop on the same arguments.
"""

from __future__ import annotations

import gc
import math
import pickle
import threading
import time
import types
import weakref
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing import memo
from lapwing.api.calls import decide, dispatch
from lapwing.calibrate import forms as forms_module
from lapwing.calibrate.tile import Probe
from lapwing.loopnest.program import program as program_module
from lapwing.machine.machine import Quantity
from lapwing.runtime.mpi import communicator

pytestmark = pytest.mark.usefixtures("little_optimised")

FACTOR = 0.25
SHIFTS = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])


@lw.nest
def smooth(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = FACTOR * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


@lw.nest
def relax(u, f, w, h=0.5):
    """Set-ups that follow a free scalar, and a reduction."""
    c = w / 4.0
    n = u.shape[0]
    total = 0.0
    for i in range(1, n - 1):
        for j in range(1, n - 1):
            u[i, j] = (1.0 - w) * u[i, j] + c * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1] - h * f[i, j])
            total += u[i, j]
    return total


@lw.nest
def shifted(u):
    for i in range(u.shape[0]):
        u[i] = u[i] + SHIFTS[i]


@lw.nest
def counted(u, w):
    """A set-up that makes an integer of a float."""
    n = int(w)
    for i in range(1, u.shape[0]):
        u[i] = u[i - 1] + n


@lw.nest
def set_twice(u, w, x):
    """Names that get a second value, after the first one has been used or before."""
    c = w
    c = 3.0
    d = c * x
    e = 2.0
    f = e * x
    e = w
    for i in range(u.shape[0]):
        u[i] = d * u[i] + f * c + e


@lw.nest
def looked_up(u, k):
    for i in range(1, u.shape[0]):
        u[i] = u[i - 1] + SHIFTS[k[i]]


@lw.nest
def scaled(u, x):
    """Whether x is -0.0 or NaN shows."""
    for i in range(u.shape[0]):
        u[i] = math.copysign(u[i], x) if x == x else 7.0


@lw.nest
def signed(u, x):
    for i in range(u.shape[0]):
        u[i] = math.copysign(u[i], x)


@lw.nest
def steepest(u, start):
    best = start
    for i in range(u.shape[0]):
        best = max(best, u[i])
    return best


@lw.nest
def added(a, b, n):
    for i in range(n):
        a[i] = a[i] + b[i]


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The nests that had to be bound, call by call."""
    for nest in (smooth, relax, shifted, counted, looked_up, scaled, steepest, added):
        nest.__dict__.pop("_dispatcher", None)
    found: list[str] = []
    kept = dispatch.bound_alone

    def noted(nest: lw.Nest, *rest: Any) -> Any:
        found.append(nest.loops.name)
        return kept(nest, *rest)

    monkeypatch.setattr(dispatch, "bound_alone", noted)
    return found


def call(nest: lw.Nest, *args: Any, **kwargs: Any) -> Any:
    """Call the nest, on the very arrays that are given, and the plain loop on copies of them; both must agree."""

    def copied(value: Any) -> Any:
        return value.copy() if isinstance(value, np.ndarray) else value

    copies, copies_by_name = [copied(v) for v in args], {n: copied(v) for n, v in kwargs.items()}
    expected = nest.python(*copies, **copies_by_name)
    found = nest(*args, **kwargs)
    assert found == pytest.approx(expected, rel=1e-14) if isinstance(expected, float) else found == expected
    given = [*args, *kwargs.values()]
    for value, copy in zip(given, [*copies, *copies_by_name.values()], strict=True):
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, copy)
            assert np.array_equal(np.signbit(value), np.signbit(copy))
    return found


def grid(n: int = 6, m: int = 7) -> np.ndarray:
    return np.random.default_rng(n * m).random((n, m))


def test_calls_that_are_alike_are_bound_once(bound):
    for _ in range(3):
        call(smooth, grid(), 2)  # other arrays, of other addresses
        call(smooth, u=grid(), sweeps=2)
        call(smooth, grid(), sweeps=2)
    assert bound == ["smooth"]


def test_signatures_in_rotation_are_all_remembered(bound):
    for _ in range(2):
        for n in range(4, 24):
            call(smooth, grid(n, n), 1)
    assert len(bound) == 20


def test_the_signatures_that_are_remembered_are_limited(monkeypatch, bound):
    monkeypatch.setattr(memo, "KEPT", 3)
    for sweeps in (1, 2, 3, 4, 1, 4):
        call(smooth, grid(), sweeps)
    assert bound == ["smooth"] * 5


def test_what_binding_looks_at_makes_another_signature(bound):
    wide = grid(6, 14)
    variants = [
        lambda: (grid(), 2),
        lambda: (grid(), 3),
        lambda: (grid(), np.int64(2)),
        lambda: (grid().astype(np.float32), 2),
        lambda: (grid(7, 6), 2),
        lambda: (wide.copy()[:, :7], 2),
        lambda: (wide.copy()[:, ::2], 2),
        lambda: (grid()[::-1], 2),
        lambda: (np.asfortranarray(grid()), 2),
        lambda: (grid(), 0),
    ]
    for arguments in variants * 2:
        call(smooth, *arguments())
    assert len(bound) == len(variants)


def test_a_float_that_is_only_computed_with_may_change(bound):
    for w in (1.0, 1.5, -0.0, math.nan, math.inf, 1.5):
        call(scaled, grid()[0], w)
    for w in (1.0, 1.5, 0.5, 1.5):
        u, f = grid(6, 6), grid(6, 6)
        call(relax, u, f, w)
        call(relax, u, f, w, h=w)
    assert bound == ["scaled", "relax"]
    call(relax, grid(6, 6), grid(6, 6), 1)  # a Python int is another type
    call(relax, grid(6, 6), grid(6, 6), np.float32(1.5))
    assert bound == ["scaled", "relax", "relax", "relax"]


def test_a_float_that_an_integer_or_a_start_comes_from_is_bound_anew():
    for w in (1.0, 1.5, 2.0, 3.7):
        call(counted, np.zeros(5), w)
        call(steepest, grid()[0], w)
    with pytest.raises(lw.RefusedError, match="int"):
        counted(np.zeros(5), math.nan)
    call(counted, np.zeros(5), 2.0)


@lw.nest
def largest_change(u, start):
    change = start
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            new = 0.5 * u[i - 1, j]
            change = max(change, abs(new - u[i, j]))
            u[i, j] = new
    return change


def test_calls_with_another_start_of_a_reduction_share_their_plan():
    def calls(start: float, *shape: int) -> decide.PlannedCalls:
        made = {"u": np.ones(shape), "start": start}
        assert largest_change(**made) == largest_change.python(np.ones(shape), start)
        return largest_change.planned(largest_change.bind(made), 1, 1, 1, made)

    assert calls(0.0, 30, 20) is calls(7.5, 30, 20)
    assert calls(0.0, 30, 20) is not calls(0.0, 30, 21)


@lw.nest
def reduced(u, low, high, first):
    least, most, total, count = high, max(low, 0.5 * high), first, 0
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            least = min(least, u[i, j])
            most = max(most, u[i, j])
            total += u[i, j]
            count += 1
    return least, most, total, count


@pytest.mark.parametrize("kind", [float, np.float64, np.float32, int])
def test_reductions_that_begin_with_other_numbers(kind: type, bound: list[Any]) -> None:
    """They have the values and types of the plain loop, and floats need not be bound anew."""
    random = np.random.default_rng(5)
    for number, (low, high, first) in enumerate(
        [(0, 0, 0), (-9, 9, 1), (3, -3, 2), (1, 0, -5), (0, 9, 0), (-9, -9, 7)]
    ):
        u = random.standard_normal((5, 7)).astype(np.float32 if kind is np.float32 else float)
        given = kind(low), kind(high), kind(first)
        expected = reduced.python(u, *given)
        found = reduced(u, *given)
        exact = math.fsum([float(first), *u.ravel().tolist()])
        assert [type(value) for value in found] == [type(value) for value in expected], number
        assert (found[0], found[1], found[3]) == (expected[0], expected[1], expected[3]), number
        assert found[2] == pytest.approx(exact, rel=1e-6 if kind is np.float32 else 1e-15), number
    assert len(bound) == (6 if kind is int else 1)


@lw.nest
def first_above(u, start):
    best, where = start, -1
    for i in range(u.shape[0]):
        if u[i] > best:
            best, where = u[i], i
    return best, where


@lw.nest
def largest_of_both(u, v, start):
    best = start
    for i in range(u.shape[0]):
        best = max(best, u[i])
        best = max(best, v[i])
    return best


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_a_python_float_is_rounded_to_what_it_is_compared_with():
    u = np.array([-0.5, 0.05, 0.1, 0.03, np.inf], np.float32)
    for start in (0.0999999999, 0.1, 0.1000000001, 0.05, -1.0, 1e30, 1e300, math.inf, math.nan, np.float32(0.1), 0.1):
        for length in (0, 4, 5):
            expected, found = first_above.python(u[:length], start), first_above(u[:length], start)
            assert repr(found) == repr(expected), (start, length)
    assert largest_of_both(u, u.astype(float), 0.5) == math.inf  # there is no one type that it is compared with


@lw.nest
def complex_sum(z, total):
    for i in range(z.shape[0]):
        if abs(z[i]) > 100.0:
            total += z[i]
    return total


@lw.nest
def complex_sum_of_a_product(z, s):
    total = s * 1.0
    for i in range(z.shape[0]):
        if abs(z[i]) > 100.0:
            total += z[i]
    return total


@pytest.mark.parametrize("nest", [complex_sum, complex_sum_of_a_product], ids=["given", "made"])
def test_complex_sums_that_begin_with_floats(nest: lw.Nest) -> None:
    for start in (0.0, -0.0, 1.5, np.float64(-0.0), 0.0, 2j):
        for z in (np.ones(3, complex), np.ones(0, complex), np.full(2, 200 + 1j)):
            expected, found = nest.python(z, start), nest(z, start)
            assert (type(found), repr(found)) == (type(expected), repr(expected))


@pytest.mark.parametrize("start", [0.0, -0.0, math.nan, math.inf, -math.inf, 3.5])
def test_a_reduction_that_nothing_is_added_to(start: float) -> None:
    for again in (1.0, start, 2.0, start):
        for u in (np.zeros((1, 4)), np.full((3, 3), -math.inf)):
            with np.errstate(invalid="ignore"):
                expected = largest_change.python(u.copy(), again)
            found = largest_change(u.copy(), again)
            assert type(found) is type(expected)
            assert math.copysign(1.0, found) == math.copysign(1.0, expected) or math.isnan(expected)
            assert found == expected or (math.isnan(found) and math.isnan(expected))


def test_names_that_are_set_twice():
    for w, x in ((1.0, 1.0), (5.0, 4.0), (2.0, 4.0)):
        call(set_twice, np.ones(4), w, x)


def test_the_sign_of_a_nan_counts():
    for tile, sign in ((1, 1.0), (2, -1.0), (1, -1.0)):
        u = np.ones(3)
        signed.using(tile=tile)(u, math.copysign(math.nan, sign))
        assert np.array_equal(u, np.full(3, sign))


def test_globals_are_looked_up_in_every_call(monkeypatch, bound):
    call(smooth, grid(), 2)
    monkeypatch.setattr(f"{__name__}.FACTOR", 0.125)
    call(smooth, grid(), 2)
    assert bound == ["smooth"]
    monkeypatch.setattr(f"{__name__}.FACTOR", 1)
    call(smooth, grid(), 2)
    assert bound == ["smooth", "smooth"]
    call(shifted, np.ones(6))
    monkeypatch.setattr(f"{__name__}.SHIFTS", SHIFTS * 2)
    call(shifted, np.ones(6))
    assert bound == ["smooth", "smooth", "shifted"]
    monkeypatch.setattr(f"{__name__}.SHIFTS", np.arange(6))
    call(shifted, np.ones(6))
    monkeypatch.setattr(f"{__name__}.SHIFTS", SHIFTS[:3])
    with pytest.raises(lw.RefusedError, match="SHIFTS has 3 elements"):
        shifted(np.ones(6))


COEFFICIENTS = types.ModuleType("coefficients")
COEFFICIENTS.step = 2.0  # type: ignore[attr-defined]
outer, inner = math.sin, math.cos


@lw.nest
def called(u):
    c = outer(1.0)
    for i in range(u.shape[0]):
        u[i] = c * inner(u[i]) + COEFFICIENTS.step * max(u[i], 0.5)


def test_functions_and_constants_of_modules_are_looked_up_in_every_call(monkeypatch):
    def everywhere() -> None:
        call(called, np.arange(4.0))
        call(called.using(tile=2), np.arange(4.0))

    everywhere()
    monkeypatch.setattr(f"{__name__}.outer", math.exp)
    everywhere()
    monkeypatch.setattr(f"{__name__}.inner", math.exp)
    everywhere()
    monkeypatch.setattr(COEFFICIENTS, "step", 3.0)
    everywhere()
    monkeypatch.setattr(f"{__name__}.max", min, raising=False)
    everywhere()
    monkeypatch.setattr(f"{__name__}.inner", print)
    with pytest.raises(lw.RefusedError, match="call of inner"):
        called(np.arange(4.0))
    monkeypatch.undo()
    everywhere()


def test_closure_variables_are_looked_up_in_every_call():
    factor = 2.0

    @lw.nest
    def times(u):
        for i in range(u.shape[0]):
            u[i] = u[i] * factor  # noqa: F821 (deleted below)

    call(times, np.ones(4))
    factor = 3.0
    call(times, np.ones(4))
    del factor
    with pytest.raises(lw.RefusedError, match="factor has no value yet"):
        times(np.ones(4))


def test_threads_remember_at_the_same_time():
    """More signatures than are kept, so that each call may be the one that another thread makes room for."""

    def calls(first):
        for n in range(first, first + 40):
            call(smooth, grid(4, n), 1)

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(calls, first) for first in (4, 34, 64, 94)]:
            done.result()


def test_copied_and_pickled_as_a_function():
    assert deepcopy(smooth) is smooth
    assert pickle.loads(pickle.dumps(smooth)) is smooth


def test_arrays_that_come_to_share_memory_are_refused():
    memory = np.arange(20.0)
    call(added, memory[:8], memory[8:16], 8)
    before = memory.copy()
    with pytest.raises(lw.RefusedError, match="a and b share memory"):
        added(memory[:8], memory[4:12], 8)
    np.testing.assert_array_equal(memory, before)
    call(added, memory[8:16], memory[:8], 8)
    both = np.arange(16.0)
    call(added, both[::2], both[1::2], 8)  # interleaved: their ranges meet, their elements do not
    call(added, both[::2], both[1::2], 8)
    with pytest.raises(lw.RefusedError, match="share memory"):
        added(both[::2], both[::2], 8)


def test_refusals_stay_refusals():
    call(smooth, grid(), 2)
    frozen = grid()
    frozen.flags.writeable = False
    swapped = grid().astype(">f8")
    for wrong, message in ((frozen, "read-only"), (swapped, "byte order"), (np.ma.masked_array(grid()), "MaskedArray")):
        with pytest.raises(lw.RefusedError, match=message):
            smooth(wrong, 2)
    for choices in ({"grid": (2,)}, {"tile": [4]}, {"engine": "fast"}):
        with pytest.raises(lw.RefusedError, match=r"expected|grid"):
            smooth.using(**choices)(grid(), 2)
    for args, kwargs in (
        ((), {}),
        ((grid(),), {}),
        ((grid(), 2, 3), {}),
        ((grid(), 2), {"sweeps": 2}),
        ((grid(),), {"n": 2}),
    ):
        with pytest.raises(lw.RefusedError, match=r"Expected smooth\(u, sweeps\)"):
            smooth(*args, **kwargs)


def test_choices_made_by_hand_are_told_apart(bound):
    for _ in range(2):
        call(smooth, grid(), 2)
        call(smooth.using(tile=1), grid(), 2)
        call(smooth.using(tile=2), grid(), 2)
    assert len(bound) == 3


def test_an_array_that_was_resized_is_another_one():
    u = np.ones(6)
    call(added, u, np.ones(6), 6)
    u.resize(5, refcheck=False)
    with pytest.raises(lw.RefusedError, match="5 elements"):
        added(u, np.ones(6), 6)


def test_a_call_that_raises_leaves_the_next_one_alone():
    fine, wrong = np.zeros(5, np.int64), np.full(5, 9)
    for _ in range(2):
        call(looked_up, np.arange(5.0), fine)
        u = np.arange(5.0)
        with pytest.raises(lw.RunError, match="outside axis 0 of SHIFTS"):
            looked_up(u, wrong)
        np.testing.assert_array_equal(u, np.arange(5.0))


def test_padded_copies_are_made_anew_in_every_call(monkeypatch):
    for kept_bytes in (1 << 18, 0):
        monkeypatch.setattr("lapwing.runtime.alone.KEPT_BYTES", kept_bytes)
        for n in (5, 6):
            for _ in range(3):
                call(smooth, grid(n, 2 * n)[:, ::2], 2)
                call(smooth, np.random.default_rng(n).random((n, 512)), 2)  # rows a power of two apart
                call(smooth, np.random.default_rng(n).random((n, 512)), 5)  # copied: the sweeps are worth it


def test_no_array_is_kept_alive():
    u, f = grid(6, 6), grid(6, 6)
    kept = weakref.ref(u), weakref.ref(f)
    for _ in range(2):
        relax(u, f, 1.5)
    del u, f
    gc.collect()
    assert [array() for array in kept] == [None, None]


def test_distributed_arrays_in_one_process(bound):
    for _ in range(2):
        values, expected = grid(), grid()
        smooth.python(expected, 2)
        smooth(lw.DistributedArray(values), 2)
        np.testing.assert_array_equal(values, expected)
    assert bound == ["smooth"]


@lw.nest
def swept_both_ways(u, sweeps):
    total = 0.0
    for t in range(sweeps):
        for i in range(1, u.shape[0]):
            for j in range(u.shape[1]):
                u[i, j] += FACTOR * u[i - 1, j]
        total += u[-1, 0]
        for i in range(u.shape[0] - 2, -1, -1):
            for j in range(u.shape[1]):
                u[i, j] += FACTOR * u[i + 1, j]
    return total


def test_threads_make_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them reads the function, and the others wait for what it finds."""
    fresh, made = lw.nest(swept_both_ways.python), []
    make = program_module.make_program

    def slowly(*given: Any) -> Any:
        made.append(given)
        time.sleep(0.1)
        return make(*given)

    monkeypatch.setattr(program_module, "make_program", slowly)

    def work(k: int) -> bool:
        u = np.random.default_rng(k).random((5 + k, 6))
        expected = u.copy()
        found = fresh(u, 2)
        return bool(found == fresh.python(expected, 2)) and u.tobytes() == expected.tobytes()

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(work, range(4)))
    assert len(made) == 1


def test_threads_in_the_same_call():
    """A remembered run has one set of native arguments: two threads must not share it."""
    rounds, size = 200, 40
    failures: list[str] = []

    def work(seed: int) -> None:
        start = np.random.default_rng(seed).random((size, size))
        expected = start.copy()
        smooth.python(expected, 1)
        for _ in range(rounds):
            u = start.copy()
            smooth(u, 1)
            if not np.array_equal(u, expected):
                failures.append(f"seed {seed}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_second_thoughts_replace_what_was_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: list[Any]
) -> None:
    """The form by rule is a guess until calls alike have taken long enough, whatever their free scalars are."""
    monkeypatch.setenv("LAPWING_CACHE", str(tmp_path))
    measured: list[Any] = []

    def probe(around: Any, candidate: Any, forms: Any, budget: float, **options: Any) -> list[Probe]:
        measured.append(forms)
        return [Probe(*candidate, 100, 10, 800, Quantity(1e-7 * (1 + abs(f.lanes - 4))), ()) for f in forms]

    monkeypatch.setattr(forms_module, "probe_forms", probe)
    nest = lw.nest(relax.python)
    f = np.ones((12, 12))
    (u, v), plans = (np.ones((12, 12)) for _ in range(2)), []
    for w in (0.5, 0.75, 1.0, 1.25):
        assert nest(u, f, w) == pytest.approx(nest.python(v, f, w), rel=1e-14)
        assert np.array_equal(u, v)
        (known,) = nest._planned.values()
        plans.append(known.plan)
        known.note_run(0.4 * decide.FORMS_SECONDS)
    assert [plan.inner.is_guess for plan in plans] == [True, True, True, False]
    assert (plans[-1].inner.form.lanes, len(measured), len(bound)) == (4, 1, 1)
    (call,) = nest._dispatcher._remembered.values()
    assert [prepared.plan for prepared in call._idle] == [plans[-1]]


def test_calls_for_this_rank_alone_are_remembered(monkeypatch: pytest.MonkeyPatch, bound: list[Any]) -> None:
    monkeypatch.setattr(communicator, "launched", lambda: True)
    alone = smooth.using(comm=lw.SELF)
    u, expected = np.ones((7, 9)), np.ones((7, 9))
    for _ in range(3):
        alone(u, 2)
        smooth.python(expected, 2)
        assert np.array_equal(u, expected)
    assert len(bound) <= 1


def test_what_is_no_communicator_is_refused() -> None:
    with pytest.raises(lw.RefusedError, match="expected an mpi4py communicator"):
        smooth.using(comm=3)(np.ones((7, 9)), 2)


AROUND = np.arange(40.0).reshape(5, 8)


@lw.nest
def copied(u):
    for i in range(AROUND.shape[0]):
        for j in range(AROUND.shape[1]):
            u[i, j] = AROUND[i, j] * 2


def test_an_array_around_the_function_that_changes_its_shape() -> None:
    try:
        for _ in range(4):
            copied(np.zeros((10, 10)))
        AROUND.shape = (8, 5)
        found, right = np.zeros((10, 10)), np.zeros((10, 10))
        copied(found)
        copied.python(right)
        assert np.array_equal(found, right)
    finally:
        AROUND.shape = (5, 8)
