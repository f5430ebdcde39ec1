"""Loops around small regions that are compiled as a whole: nothing shows but the time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from comparing import check_value, exact_sum

import lapwing as lw
from lapwing.api.nest import Nest
from lapwing.errors import RunError

pytestmark = pytest.mark.usefixtures("little_optimised")


@lw.nest
def filtered(z, x, steps):
    """Two nests of a vector and a scalar of the driver's in every iteration."""
    n = z.shape[0]
    gain = 1.0
    for step in range(steps):
        for i in range(1, n - 1):
            x[i] = gain * (z[i - 1] + z[i + 1])
        for i in range(1, n - 1):
            z[i] = z[i] - 0.5 * x[i]
        gain = gain * 0.75
    return gain


@lw.nest
def until(u, v, tol):
    steps = 0
    n = u.shape[0]
    change = 1.0
    while change > tol:
        change = 0.0
        for i in range(1, n - 1):
            v[i] = 0.5 * (u[i - 1] + u[i + 1])
            change = max(change, abs(v[i] - u[i]))
        for i in range(1, n - 1):
            u[i] = v[i]
        steps += 1
    return steps, change


@lw.nest
def looked_up(first, rates, value):
    """An index is NumPy's integer or Python's, in the inner loop alone."""
    last = rates.shape[0] - 1
    n = value.shape[0] - 1
    total = 0.0
    for p in range(first.shape[0]):
        for d in range(value.shape[1]):
            value[n, d] = 1.0
        for t in range(n - 1, -1, -1):
            x = first[p] + t
            if x > last:
                x = last
            for d in range(value.shape[1]):
                value[t, d] = 0.5 * value[t + 1, d] + rates[x]
            value[t, 0] += 1.0
        total += value[0, 0]
    return total


@lw.nest
def chained(u, v, steps):
    """Iterations of the first nest wait for each other, so that tiles may have a better order for it."""
    n = u.shape[0]
    for step in range(steps):
        for i in range(1, n):
            u[i] = 0.5 * (u[i - 1] + v[i])
        v[0] = u[n - 1]
        for i in range(1, n):
            v[i] = 0.5 * (v[i] - u[i])


@lw.nest
def summed(u, v, steps):
    n = u.shape[0]
    total = 0.0
    for step in range(steps):
        for i in range(1, n):
            total += u[i]
        for i in range(1, n):
            v[i] = u[i] + total
    return total


@lw.nest
def divided(u, v, steps):
    n = u.shape[0]
    for step in range(steps):
        for i in range(n):
            u[i] = u[i] + 1.0
        share = 6 / (2 - step)
        for i in range(n):
            v[i] = share * u[i]


class Watch:
    """Counts the calls of the regions of programs and of whole loops."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.called: list[str] = []
        call = Nest.__call__

        def noted(nest: Nest, *args: Any, **kwargs: Any) -> Any:
            self.called.append(nest.name)
            return call(nest, *args, **kwargs)

        monkeypatch.setattr(Nest, "__call__", noted)

    @property
    def wholes(self) -> int:
        return sum("_whole_" in name for name in self.called)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    return Watch(monkeypatch)


def vectors(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.random(n), rng.random(n)


def same(nest: lw.Nest, n: int, *rest: Any, call: Any = None) -> None:
    mine, right = vectors(n), vectors(n)
    returned, expected = (call or nest)(*mine, *rest), nest.python(*right, *rest)
    assert returned == expected
    assert all(a.tobytes() == b.tobytes() for a, b in zip(mine, right, strict=True))


@pytest.mark.parametrize(("nest", "rest"), [(filtered, 7), (until, 1e-3)])
def test_small_regions_are_compiled_with_the_loop_around_them(watch: Watch, nest: lw.Nest, rest: Any) -> None:
    same(nest, 200, rest)
    assert watch.wholes == 1
    assert len(watch.called) == 2  # the program, and the loop


def test_large_ones_are_called(watch: Watch) -> None:
    same(chained, 40_000, 3)
    assert not watch.wholes


def test_larger_ones_are_compiled_with_the_loop_where_their_iterations_are_independent(watch: Watch) -> None:
    same(filtered, 40_000, 3)
    assert watch.wholes == 1


def test_choices_made_by_hand_are_for_tiles(watch: Watch) -> None:
    same(filtered, 200, 3, call=filtered.using(tile=16))
    assert not watch.wholes


@pytest.mark.parametrize("spread", [0, 40, 300])
def test_sums_are_rounded_once_behind_each_nest(watch: Watch, spread: int) -> None:
    """As they are where the nests are cut into tiles; terms of any sizes, and of both signs."""
    rng = np.random.default_rng(spread)
    u = (rng.random(700) - 0.5) * 2.0 ** rng.integers(-spread - 1, spread + 1, 700)
    mine, two = (u.copy(), np.zeros(700)), (u.copy(), np.zeros(700))
    returned = summed(*mine, 3)
    assert watch.wholes == 1
    assert returned == summed.using(tile=64)(*two, 3)
    assert mine[1].tobytes() == two[1].tobytes()


SPECIAL = (
    [np.inf, 1.0], [np.inf, -np.inf], [np.nan, 1.0], [-0.0, -0.0], [5e-324, -1e-323], [1e308, 1e308],
    [1.0, 2.0**-53], [1.0, 2.0**-53, 5e-324], [-1.0, -(2.0**-53)], [1.0 + 2.0**-52, 2.0**-53], [2.0**-1022, -5e-324],
)  # fmt: skip


@pytest.mark.parametrize("values", SPECIAL)
def test_sums_of_what_is_special(values: list[float]) -> None:
    """And of what lies halfway between two numbers, or just beside it."""
    u = np.array([1.0, *values, *values])
    one, two = (call(u.copy(), np.zeros(len(u)), 1) for call in (summed, summed.using(tile=64)))
    assert np.array(one).tobytes() == np.array(two).tobytes()


@lw.nest
def norms(u, v, steps):
    """A sum of squares of what a chain computes: the squares are taken behind it."""
    n = u.shape[0]
    worst, change, count = 0.0, 0.0, 0
    for step in range(steps):
        change = 0.0
        for i in range(1, n - 1):
            new = 0.5 * (u[i - 1] + u[i + 1]) + v[i]
            change += (new - u[i]) ** 2
            if new > 0.5:
                count += 1
            u[i] = new
        worst = max(worst, change)
    return worst, change, count


def test_sums_of_powers_and_of_integers(watch: Watch) -> None:
    mine, two = vectors(700), vectors(700)
    returned, right = norms(*mine, 4), norms.using(tile=64)(*two, 4)
    assert watch.wholes == 1
    assert returned == right
    assert [*map(type, returned)] == [*map(type, right)]
    assert mine[0].tobytes() == two[0].tobytes()


def test_no_term_leaves_a_sum_as_it_was() -> None:
    returned = summed(*vectors(1), 3)
    assert returned == 0.0
    assert type(returned) is float


@lw.nest
def left(u, v, steps):
    n = u.shape[0]
    for step in range(steps):
        total, last = 0.0, step
        for i in range(1, n - 1):
            v[i] = 0.5 * (u[i - 1] + u[i + 1])
            total += v[i]
        for i in range(1, n - 1):
            u[i] = v[i]
    return total, last


def test_a_scalar_that_only_the_loop_sets(watch: Watch) -> None:
    mine, two = vectors(60), vectors(60)
    returned, right = left(*mine, 3), left.using(tile=16)(*two, 3)
    assert watch.wholes == 1
    assert returned == right
    assert [*map(type, returned)] == [*map(type, right)]
    for call in (left, left.python):
        with pytest.raises(UnboundLocalError):
            call(*vectors(60), 0)


@lw.nest
def rotated(u, v, w, steps):
    n = u.shape[0]
    for step in range(steps):
        for i in range(1, n - 1):
            w[i] = 0.5 * (v[i - 1] + v[i + 1]) - u[i]
        w[0] = v[n - 1]
        u, v, w = v, w, u
    return v


@lw.nest
def exchanged_now_and_then(u, v, steps):
    n = u.shape[0]
    for step in range(steps):
        for i in range(1, n - 1):
            v[i] = 0.5 * (u[i - 1] + u[i + 1])
        if step % 3 != 1:
            held = u
            u = v
            v = held
        for i in range(1, n - 1):
            v[i] = v[i] + 0.25
    return u, v


@lw.nest
def copied(u, v, steps):
    n = u.shape[0]
    for step in range(steps):
        old = u.copy()
        for i in range(1, n):
            u[i] = old[i] - 0.5 * (old[i] - old[i - 1])
        v[:] = u
        v[1:-1] = 0.5
        u[0] = v[-1]


@lw.nest
def edged(u, v, steps):
    n, m = u.shape
    for step in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
        v[0, :] = v[1, :]
        v[-1] = v[0, 1]
        v[1:-1, -1] = u[1:-1, 1]
        v[:, 0] = 1.0
        u, v = v, u
    return u


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 4, 5])
def test_arrays_that_change_places(watch: Watch, steps: int) -> None:
    arrays = [*vectors(60), vectors(60)[0]]
    mine, right = ([a.copy() for a in arrays] for _ in range(2))
    returned, expected = rotated(*mine, steps), rotated.python(*right, steps)
    assert watch.wholes
    assert all(a.tobytes() == b.tobytes() for a, b in zip(mine, right, strict=True))
    assert [a is returned for a in mine] == [a is expected for a in right]


@pytest.mark.parametrize("steps", range(8))
def test_arrays_that_change_places_now_and_then(watch: Watch, steps: int) -> None:
    mine, right = vectors(60), vectors(60)
    returned, expected = exchanged_now_and_then(*mine, steps), exchanged_now_and_then.python(*right, steps)
    assert watch.wholes
    assert all(a.tobytes() == b.tobytes() for a, b in zip(mine, right, strict=True))
    assert [[a is r for a in mine] for r in returned] == [[a is r for a in right] for r in expected]


@lw.nest
def waves(u, v, w, steps):
    """Bounds that are those of arrays which change places."""
    for t in range(steps):
        for i in range(1, u.shape[0] - 1):
            w[i] = 1.5 * v[i] - u[i] + 0.25 * (v[i - 1] + v[i + 1])
        u, v, w = v, w, u
    return v[1]


@pytest.mark.parametrize("lengths", [(90, 90, 90), (60, 90, 90), (90, 90, 60), (90, 60, 90)])
def test_ends_of_arrays_that_change_places(watch: Watch, lengths: tuple[int, int, int]) -> None:
    mine, right = ([np.random.default_rng(n).random(n) for n in lengths] for _ in range(2))
    try:
        expected = waves.python(*right, 5)
    except IndexError:
        with pytest.raises((lw.RefusedError, RunError)):
            waves(*mine, 5)
        return
    assert waves(*mine, 5) == expected
    assert all(a.tobytes() == b.tobytes() for a, b in zip(mine, right, strict=True))
    assert watch.wholes == 1


@lw.nest
def edit_distance(first, second):
    """Two rows that change places; the inner loop has the counter of the outer one."""
    before = np.arange(second.shape[0] + 1)
    row = np.zeros(second.shape[0] + 1, np.int64)
    for i in range(first.shape[0]):
        row[0] = i + 1
        for j in range(second.shape[0]):
            cost = 0 if first[i] == second[j] else 1
            row[j + 1] = min(before[j + 1] + 1, row[j] + 1, before[j] + cost)
        before, row = row, before
    return before[second.shape[0]]


def test_rows_that_change_places(watch: Watch) -> None:
    first, second = (np.random.default_rng(n).integers(0, 4, n) for n in (40, 50))
    assert edit_distance(first, second) == edit_distance.python(first, second)
    assert watch.wholes == 1


def test_copies_and_fills(watch: Watch) -> None:
    same(copied, 60, 4)
    assert watch.wholes == 1


@lw.nest
def relaxed(u, f, tol, most):
    """Compares whole arrays after every sweep."""
    n, m = u.shape
    for sweep in range(most):
        old = u.copy()
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                u[i, j] = 0.25 * (old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1] - f[i, j])
        if np.max(np.abs(u - old)) < tol or u[1, :].min() > 0.9:
            break
    return sweep


@lw.nest
def swept(u, f, tol, most):
    """The same with a function that has loops, a history, and rows of a length that changes."""
    change, sweep = 2 * tol, 0
    while change > tol and sweep < most:
        last = np.copy(u)
        for i in range(1, u.shape[0] - 1):
            first = int(f[i, 0] * 3)
            for j in range(max(first, 1), u.shape[1] - 1):
                u[i, j] = 0.5 * (u[i, j - 1] + u[i - 1, j]) * f[i, j]
        change = np.abs(last - u).max()
        f[0, sweep] = change
        sweep += 1
    return sweep, change


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("nest", [relaxed, swept])
def test_extrema_of_arrays(watch: Watch, nest: lw.Nest, dtype: type) -> None:
    rng = np.random.default_rng(2)
    u, f = (rng.random((9, 40)).astype(dtype) for _ in range(2))
    with_nan = u.copy()
    with_nan[3, 3] = np.nan
    for values, tol in ((u, 0.02), (u, 0.0), (with_nan, 0.02)):
        mine, right = ([values.copy(), f.copy()] for _ in range(2))
        with np.errstate(all="ignore"):
            expected = nest.python(*right, tol, 30)
        assert repr(nest(*mine, tol, 30)) == repr(expected)
        assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(mine, right, strict=True))
    if nest is relaxed or dtype is np.float64:  # a Python float that becomes a float32 has two types
        assert watch.wholes == 3


def test_an_extremum_of_no_elements_is_an_error_of_numpy() -> None:
    with pytest.raises(ValueError, match="zero-size array"):
        relaxed(np.zeros((0, 4)), np.zeros((0, 4)), 0.1, 3)


def logarithm_of_sum(x):
    largest = -np.inf
    for i in range(x.shape[0]):
        if x[i] > largest:
            largest = x[i]
    total = 0.0
    for i in range(x.shape[0]):
        total += np.exp(x[i] - largest)
    return np.log(total) + largest


@lw.nest
def forward(start, transitions, seen, found, work):
    """A function with loops of its own in each iteration of two loops."""
    for t in range(1, seen.shape[0]):
        for j in range(seen.shape[1]):
            for i in range(seen.shape[1]):
                work[i] = found[t - 1, i] + transitions[i, j]
            found[t, j] = logarithm_of_sum(work) + seen[t, j]


@lw.nest
def columns(values, tops, diffusion, b, c, d):
    """Columns of different heights, each solved for itself."""
    for i in range(values.shape[0]):
        top = tops[i]
        if top > 0:
            top -= 1
            for k in range(top, values.shape[1]):
                b[k] = diffusion[i, k]
                d[k] = values[i, k]
            c[top] = b[top]
            for k in range(top + 1, values.shape[1]):
                scale = 1.0 / (2.0 + b[k] - c[k - 1] * b[k])
                c[k] = b[k] * scale
                d[k] = (d[k] - d[k - 1] * b[k]) * scale
            for k in range(values.shape[1] - 2, top - 1, -1):
                d[k] = d[k] - c[k] * d[k + 1]
                values[i, k] = d[k]


def test_functions_with_loops_in_two_loops(watch: Watch) -> None:
    rng = np.random.default_rng(3)
    arguments = (rng.random(4), rng.random((4, 4)), rng.random((20, 4)), rng.random((20, 4)), np.zeros(4))
    mine, right = ([a.copy() for a in arguments] for _ in range(2))
    forward(*mine), forward.python(*right)
    assert watch.wholes == 1
    assert np.allclose(mine[3], right[3], rtol=1e-15, atol=0)  # sums of floats are rounded once


def test_loops_whose_ends_change(watch: Watch) -> None:
    rng = np.random.default_rng(4)
    rows = (np.zeros(12) for _ in range(3))
    arguments = (rng.random((30, 12)), rng.integers(0, 9, 30), rng.random((30, 12)), *rows)
    mine, right = ([a.copy() for a in arguments] for _ in range(2))
    columns(*mine), columns.python(*right)
    assert watch.wholes == 1
    assert all(a.tobytes() == b.tobytes() for a, b in zip(mine, right, strict=True))


@pytest.mark.parametrize("shape", [(12, 9), (3, 2), (1, 1), (2, 1)])
def test_edges_of_matrices(watch: Watch, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    arrays = [rng.random(shape), rng.random(shape)]
    mine, right = ([a.copy() for a in arrays] for _ in range(2))
    if shape[1] == 1:  # Python raises
        for call in (edged.python, edged):
            with pytest.raises((IndexError, RunError)):
                call(*mine, 3)
        return
    edged(*mine, 3), edged.python(*right, 3)
    assert watch.wholes == 1
    assert all(a.tobytes() == b.tobytes() for a, b in zip(mine, right, strict=True))


def test_arrays_of_other_shapes_are_done_region_by_region() -> None:
    """NumPy says what becomes of a slice of another length."""
    u = vectors(60)[0]
    mine, right = (u.copy(), np.zeros(1)), (u.copy(), np.zeros(1))
    with pytest.raises(ValueError, match="broadcast"):
        copied.python(*right, 2)
    with pytest.raises(ValueError, match="broadcast"):
        copied(*mine, 2)
    assert mine[0].tobytes() == right[0].tobytes()
    wide, right_wide = (u.copy(), np.zeros(60, np.float32)), (u.copy(), np.zeros(60, np.float32))
    copied(*wide, 2), copied.python(*right_wide, 2)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(wide, right_wide, strict=True))


def test_an_error_of_the_driver_is_raised_as_ever(watch: Watch) -> None:
    """The driver raises it again, region by region, from the arrays as they were."""
    mine, right = vectors(100), vectors(100)
    with pytest.raises(ZeroDivisionError):
        divided.python(*right, 4)
    with pytest.raises(ZeroDivisionError):
        divided(*mine, 4)
    assert watch.wholes == 1
    assert all(a.tobytes() == b.tobytes() for a, b in zip(mine, right, strict=True))


def test_arrays_that_share_memory_are_refused_as_ever() -> None:
    u, _ = vectors(100)
    with pytest.raises(lw.RefusedError, match="share"):
        filtered(u[:50], u[25:75], 3)


@lw.nest
def stopped(u, index, steps):
    n = u.shape[0]
    for i in range(n):
        u[i] = u[i] + 1.0
    for i in range(n):
        for _k in range(steps):
            u[i] = u[i] + u[index[i]]


def test_arrays_are_as_they_were_before_the_region_that_raises() -> None:
    """The second nest has stored a part of its elements, where they lie, when it raises."""
    u, index = np.arange(10.0), np.arange(10)
    index[6] = 99
    with pytest.raises(RunError, match="outside"):
        stopped(u, index, 2)
    assert u.tobytes() == (np.arange(10.0) + 1.0).tobytes()


@lw.nest
def scaled(u, h):
    for i in range(u.shape[0]):
        u[i] = u[i] + 1.0 / h


def test_what_all_iterations_raise_alike_is_raised_before_anything_is_stored() -> None:
    u = np.arange(10.0)
    scaled(u, 0.5)
    assert u[3] == 5.0
    with pytest.raises(RunError, match="ZeroDivisionError"):
        scaled(u, 0.0)
    assert u.tobytes() == (np.arange(10.0) + 2.0).tobytes()


@lw.nest
def maybe_never(u, steps, k):
    s = 0
    for t in range(steps):
        s += 1
        for i in range(1, u.shape[0] // k):
            u[i] = u[i - 1] * 0.5 + s
    return s


@lw.nest
def carried(u, steps, x):
    for t in range(steps):
        for i in range(1, u.shape[0]):
            u[i] = u[i - 1] * x
        if t >= 1:
            x = u[0]
    return x


@lw.nest
def swapped(u, steps, s, q):
    for t in range(steps):
        s, q = q, s
        for i in range(1, u.shape[0]):
            u[i] = u[i - 1] * 0.5
    return s, q


@lw.nest
def joined(u, v, steps, x):
    k = 0
    for t in range(steps):
        v[0] = x * 3 + v[0]
        k += 1
        for i in range(1, u.shape[0]):
            u[i] = u[i - 1] * 0.5 + x
        if t >= 1:
            x = u[0]
    return x, k


def test_bounds_that_the_plain_loop_never_comes_to_raise_nothing() -> None:
    assert maybe_never(np.ones(9), 0, 0) == maybe_never.python(np.ones(9), 0, 0) == 0
    with pytest.raises(ZeroDivisionError):
        maybe_never(np.ones(9), 2, 0)


def test_scalars_that_are_of_several_types_keep_them() -> None:
    for nest, *rest in ((carried, 1, 0.1), (carried, 3, 0.1), (swapped, 2, 7, np.float32(0.1)), (swapped, 3, 7, 0.5)):
        for dtype in (np.float32, np.float64):
            found, right = nest(np.ones(5, dtype), *rest), nest.python(np.ones(5, dtype), *rest)
            assert repr(found) == repr(right)
    for x in (*range(20), 2**24 + 1):
        found, right = np.zeros(5), np.zeros(5)
        assert repr(joined(np.ones(5, np.float32), found, 1, x)) == repr(
            joined.python(np.ones(5, np.float32), right, 1, x)
        )
        assert found[0] == right[0]


@lw.nest
def rows_of_triangles(P, c, out):
    """How long the inner loops are hangs on loops around them."""
    for a in range(len(out)):
        P[0, 0] = a + 1.0
        for m in range(1, P.shape[0]):
            P[m, m] = 0.5 * P[m - 1, m - 1]
        for m in range(P.shape[0] - 1):
            for k in range(m + 1, P.shape[0]):
                P[k, m] = 0.5 * P[k - 1, m] + 1.0
        total = 0.0
        for m in range(P.shape[0]):
            for k in range(P.shape[0] - 1, m - 1, -1):
                total += P[k, m] * c[k - m]
        out[a] = total


def test_loops_around_triangles_are_compiled_as_a_whole() -> None:
    assert rows_of_triangles.program is not None
    assert len(rows_of_triangles.program.wholes) == 1
    found, expected = ([np.zeros((7, 7)), np.linspace(0.25, 2.0, 7), np.zeros(5)] for _ in range(2))
    rows_of_triangles(*found)
    rows_of_triangles.python(*expected)
    assert found[0].tobytes() == expected[0].tobytes()
    assert np.allclose(found[2], expected[2], rtol=1e-15)


@lw.nest
def row_by_row(a, sums, row):
    """Few terms in each of many sums."""
    for t in range(a.shape[0]):
        for i in range(a.shape[1]):
            row[i] = a[t, i]
        total = 0.0
        for i in range(a.shape[1]):
            total += row[i]
        sums[t] = total


TIES = (
    [1.0, 2.0**-53], [1.0, 2.0**-53, 2.0**-106], [1.0, 2.0**-53, -(2.0**-106)], [1 + 2.0**-52, 2.0**-53], [1.0, -(2.0**-54)],
    [1e308, 1e308, -1e308], [1e16, 1.0, -1e16], [5e-324, 5e-324, -1e-323], [2.0**-1022, -5e-324], [-0.0, -0.0], [0.1, -0.1],
    [np.inf, 1.0], [np.inf, -np.inf], [np.nan, 1.0], [2.0**1023, 2.0**1023], [2.0**53, 1.0, 2.0**-30],
    [3.0, 2.0**-52, -(2.0**-53)], [1.0, 2.0**-53, 2.0**-110], [1.0, -(2.0**-54), -(2.0**-111)],
)  # fmt: skip


@pytest.mark.parametrize("most", [3, 20, 64])
def test_sums_of_few_terms(watch: Watch, most: int) -> None:
    random = np.random.default_rng(5)
    rows = [*map(list, TIES)]
    for number in range(400):
        terms = random.standard_normal(most) * 2.0 ** random.integers(-60, 60, most)
        if number % 2:  # most of it is cancelled
            half = terms[: most // 2]
            terms = random.permutation([*half, *-half[:-1], 2.0**-53, 1.0])
        rows.append(list(terms[:most]))
    a = np.zeros((len(rows), most))
    for values, terms in zip(a, rows, strict=True):
        values[: len(terms)] = terms
    sums = np.zeros(len(rows))
    row_by_row(a, sums, np.zeros(most))
    assert watch.wholes == 1
    with np.errstate(all="ignore"):
        for terms, found in zip(rows, sums, strict=True):
            check_value(str(terms), found, exact_sum([0.0, *terms], np.float64))


def own_magnitude(x):
    return x if np.ndim(x) else -x


@lw.nest
def with_its_own_abs(u, tol, most):
    """What is called abs here is no absolute value of an element."""
    abs = own_magnitude
    for sweep in range(most):
        for i in range(1, u.shape[0] - 1):
            u[i] = 0.5 * (u[i - 1] + u[i + 1])
        if np.max(abs(u)) < tol:
            break
    return sweep


def test_a_function_of_the_same_name() -> None:
    u, v = vectors(20)[0], vectors(20)[0]
    assert with_its_own_abs(u, 0.9, 9) == with_its_own_abs.python(v, 0.9, 9)
    assert u.tobytes() == v.tobytes()


def test_scalars_of_regions_may_be_of_several_types(watch: Watch) -> None:
    rng = np.random.default_rng(3)
    first, rates = rng.integers(0, 30, 50, np.int32), rng.random(35)
    found, expected = np.zeros((20, 3)), np.zeros((20, 3))
    assert looked_up(first, rates, found) == looked_up.python(first, rates, expected)
    assert np.array_equal(found, expected)
    assert watch.wholes == 1
    assert len(watch.called) == 2  # no region is called for itself
