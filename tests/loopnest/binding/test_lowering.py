"""Control flow in typed bodies: live scalars, variables that join values, types that loops widen, indices, unrolling."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.loopnest import ir
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.liveness import liveness

Function = Callable[..., Any]


def bound_of(function: Function, *arguments: Any, sequential: bool = False, most_loops: int | None = None) -> BoundNest:
    nest = lw.Nest(function)
    nest.source = dataclasses.replace(nest.source, sequential=sequential, most_loops=most_loops)
    return nest.bind(nest.arguments(*arguments))


def variables(bound: BoundNest) -> dict[str, str]:
    """The variables that values join in, with their types."""
    statements = t.all_statements(bound.body.statements)
    return {s.local.name: s.local.dtype for s in statements if isinstance(s, t.TypedVariable)}


# -- liveness ----------------------------------------------------------------------------------------------------------


def carrying(u):
    for i in range(u.shape[0]):
        s = 0.0
        for k in range(3):
            x = u[i] * k
            if x > 1:
                break
            s += x
        u[i] = s


def test_live_at_a_loops_head_is_what_it_carries() -> None:
    nest = lw.nest(carrying).loops
    found = liveness(nest.body)
    (loop,) = (s for s in ir.all_statements(nest.body) if isinstance(s, ir.For))
    assert found.head(loop) == {"s"}
    assert found.after(loop) == {"s"}
    first = loop.body[0]
    assert found.after(first) == {"s", "x"}
    assert found.after(nest.body[-1]) == set()


def test_live_at_the_end_are_those_that_are_given_back() -> None:
    nest = lw.nest(carrying).loops
    assert liveness(nest.body, ["x"]).after(nest.body[-1]) == {"x"}


# -- joins -------------------------------------------------------------------------------------------------------------


def joined(u, v):
    for i in range(u.shape[0]):
        own = 1
        v[i] = own
        if u[i] > 0.5:
            x = 1
            own = 2.5
            v[i] = own
        elif u[i] > 0.25:
            x = 0.5
        else:
            continue
        u[i] = x


def test_only_what_is_read_later_is_joined() -> None:
    assert variables(bound_of(joined, np.ones(5), np.ones(5))) == {"x": "float64"}


def widened(u, m):
    for i in range(u.shape[0]):
        s = 0
        n = 0
        for k in range(m):
            s += u[i]
            n += 3
        u[i] = s * n


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_loop_widens_the_types_it_carries(dtype: str) -> None:
    bound = bound_of(widened, np.ones(5, dtype), 4)
    assert variables(bound) == {"s": dtype, "n": "int64"}
    assert [trap.message.split(": ")[1] for trap in bound.body.traps] == [
        "n goes beyond 2**50 in this loop; Lapwing carries no larger Python integers"
    ]


def counted(u, m):
    for i in range(u.shape[0]):
        n = 0
        for k in range(m):
            if u[i] > k:
                n += 1
            for q in range(k):
                n -= 2
            n = n + (k > 1)
        u[i] = n


def copied(u, m):
    for i in range(u.shape[0]):
        n = 0
        p = 0
        for _ in range(m):
            n += 2
            p = p + n
        u[i] = p


def from_afar(u, m):
    for i in range(u.shape[0]):
        n = 2**49 + 1
        for _ in range(m):
            n += 2
        u[i] = n


def test_what_counts_by_ones_or_twos_has_no_limit() -> None:
    """It would take months to reach one; what is added up, or begins far off, would not."""
    assert not bound_of(counted, np.ones(5), 4).body.traps
    for nest, name in ((copied, "p"), (from_afar, "n")):
        (trap,) = bound_of(nest, np.ones(5), 4).body.traps
        assert f": {name} goes beyond 2**50 in this loop" in trap.message


def mean(u, m):
    for i in range(u.shape[0]):
        s = 0
        for k in range(m):
            s += u[i]
        u[i] = s / m


def test_what_was_before_a_loop_that_surely_runs_no_longer_counts() -> None:
    bound_of(mean, np.ones(5), 1)
    with pytest.raises(lw.RefusedError, match="between Python numbers or NumPy numbers"):
        bound_of(mean, np.ones(5), 0)


def squares(u, limit):
    for i in range(u.shape[0]):
        low = min(u[i], -0.0)
        if u[i] > 4.0:
            high = 2.0
        else:
            high = max(u[i], 0.0)
        u[i] = (max(u[i], 0.0) ** 2 + low**2 + high**3) ** 0.5


def square_of_an_argument(u, limit):
    for i in range(u.shape[0]):
        u[i] = max(u[i], limit) ** 2


def square_of_a_large_number(u, limit):
    for i in range(u.shape[0]):
        u[i] = max(u[i], 1e200) ** 2


def root_of_a_negative_number(u, limit):
    for i in range(u.shape[0]):
        u[i] = max(u[i], -1.0) ** 0.5


def changed_in_a_loop(u, limit):
    for i in range(u.shape[0]):
        x = 0.0
        for k in range(limit):
            x = max(u[i], x * 1e200 + 1.0)
        u[i] = x**2


def test_powers_of_a_few_known_floats_raise_nothing() -> None:
    assert not bound_of(squares, np.ones(5), 1.0).body.traps
    u = np.array([-2.0, -0.0, 0.0, 1.5, 9.0, np.nan, np.inf, 1e-200])
    right = u.copy()
    lw.Nest(squares)(u, 1.0)
    squares(right, 1.0)
    assert u.tobytes() == right.tobytes()


@pytest.mark.parametrize(
    "function", [square_of_an_argument, square_of_a_large_number, root_of_a_negative_number, changed_in_a_loop]
)
def test_powers_of_other_floats_are_refused(function: Function) -> None:
    with pytest.raises(lw.RefusedError, match=r"\*\* is between Python numbers or NumPy numbers"):
        bound_of(function, np.ones(5), 3 if function is changed_in_a_loop else 3.0)


def chained(u):
    for i in range(u.shape[0]):
        a = b = c = d = e = f = g = h = 0
        for k in range(20):
            h = g
            g = f
            f = e
            e = d
            d = c
            c = b
            b = a
            a = u[i]
        u[i] = h


def test_types_go_round_as_often_as_they_must() -> None:
    assert set(variables(bound_of(chained, np.ones(5))).values()) == {"float64"}


# -- values that may be missing ----------------------------------------------------------------------------------------


def after_the_loop(u, n):
    for i in range(u.shape[0]):
        for k in range(n):
            x = u[i] * k
        u[i] = x


def test_a_loop_that_surely_runs_sets_what_it_assigns() -> None:
    bound_of(after_the_loop, np.ones(5), 1)
    with pytest.raises(lw.RefusedError, match="x may have no value here"):
        bound_of(after_the_loop, np.ones(5), 0)


def test_a_sequential_region_sees_as_it_runs() -> None:
    bound = bound_of(after_the_loop, np.ones(5), 0, sequential=True)
    assert variables(bound) == {"x": "float64", "x is set": "bool"}
    assert any(
        "x has no value here; the plain loop raises UnboundLocalError" in trap.message for trap in bound.body.traps
    )


# -- indices -----------------------------------------------------------------------------------------------------------


def jumped(u):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            if i == 0 or not j > 0:
                continue
            u[i, j] = u[i - 1, j - 1]


def unguarded(u):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            if i == 1:
                continue
            u[i, j] = u[i + 1, j]


def test_what_follows_a_jump_is_under_the_opposite_condition() -> None:
    assert not bound_of(jumped, np.ones((4, 5))).body.traps
    with pytest.raises(lw.RefusedError, match="index 1 reaches 4"):
        bound_of(unguarded, np.ones((4, 5)))


def inner(u, w):
    for i in range(u.shape[0]):
        for k in range(i, u.shape[1], 2):
            if k >= 2:
                u[i, k - 2] = w[k - i]
            u[i, k - 1] += 1.0


def test_indices_over_inner_loops() -> None:
    bound = bound_of(inner, np.ones((4, 5)), np.ones(5), most_loops=1)
    (either,) = bound.looked_up  # the first is -1, others are not
    assert either[0].text == "u[i, k - 1]"
    assert either[1] == 1
    with pytest.raises(lw.RefusedError, match="index 1 reaches 4, but w has 4 elements"):
        bound_of(inner, np.ones((4, 5)), np.ones(4), most_loops=1)


def on_a_ring(u, w):
    n = w.shape[0]
    for i in range(n):
        behind = (i - 1) % n
        j = behind if i < 5 else i
        count = i + 1
        u[i] = w[j] + count


def test_what_indices_are_made_of_has_64_bits() -> None:
    bound = bound_of(on_a_ring, np.ones(9), np.ones(9))
    statements = t.all_statements(bound.body.statements)
    found = {s.local.name: s.local.dtype for s in statements if isinstance(s, t.TypedLocal)}
    assert found == {"behind": "int64", "j": "int64", "count": "int32"}


# -- unrolling ---------------------------------------------------------------------------------------------------------


def around(u):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            for d in range(-1, 2):
                for e in range(-1, 2):
                    if abs(d) + abs(e) != 1:
                        continue
                    u[i, j] += 0.25 * u[i + d, j + e]


def broken(u):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            for d in range(-1, 2):
                if u[i + d, j] > 0:
                    break
                u[i, j] += 1.0


def long(u):
    for i in range(40, u.shape[0]):
        for j in range(1, u.shape[1]):
            for d in range(1, 34):
                u[i, j] += u[i - d, j - 1]


def test_loops_over_offsets_are_unrolled() -> None:
    nest = lw.nest(around).loops
    assert nest.loop_names == ("i", "j")
    reads = [next(ir.body_reads([s])) for s in nest.body]
    assert [access.text for _, access in ir.body_reads(nest.body)][1::2] == [
        "u[i + -1, j + 0]", "u[i + 0, j + -1]", "u[i + 0, j + 1]", "u[i + 1, j + 0]",
    ]  # fmt: skip
    assert len(reads) == len(nest.stores) == 4


def weighted(u, w, out):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            s = 0.0
            for d in range(2):
                for e in range(-1, 1):
                    s += w[d, e + 1] * u[i + d, j + e]
            for c in range(2):
                s += w[c, c]
            out[i, j] = s


def test_loops_over_offsets_into_what_is_read_are_unrolled_and_others_stay() -> None:
    nest = lw.nest(weighted).loops
    reads = [access.text for _, access in ir.body_reads(nest.body)]
    assert reads == [
        "w[0, -1 + 1]", "u[i + 0, j + -1]", "w[0, 0 + 1]", "u[i + 0, j + 0]",
        "w[1, -1 + 1]", "u[i + 1, j + -1]", "w[1, 0 + 1]", "u[i + 1, j + 0]", "w[c, c]",
    ]  # fmt: skip
    assert [s.index for s in ir.all_statements(nest.body) if isinstance(s, ir.For)] == ["c"]


def lowest(u, ground):
    found = True
    while found:
        found = False
        for i in range(1, u.shape[0] - 1):
            for d in range(-1, 2):
                if u[i + d] > ground[i]:
                    u[i + d] = ground[i]
                    found = True
    return d


def test_loops_over_offsets_of_a_region_are_unrolled() -> None:
    bound = bound_of(lowest, np.ones(9), np.zeros(9), sequential=True)
    assert [s.index for s in ir.all_statements(bound.nest.body) if isinstance(s, ir.For)] == ["i"]
    assert lw.nest(lowest)(np.ones(9), np.zeros(9)) == 1


@pytest.mark.parametrize("function", [broken, long])
def test_loops_that_end_early_and_long_ones_stay(function: Function) -> None:
    nest = lw.nest(function).loops
    assert nest.loop_names != ("i", "j") or nest.axis_loops["u"] == (None, "j")
    assert any(isinstance(s, ir.For) for s in ir.all_statements(nest.body))
