"""Bounds of tiles, on a core with round figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from made_cores import CYCLES, made_core

import lapwing as lw
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.roofline.bounds import ARITHMETIC, DIVIDER, LATENCY, LOADS, MEMORY, STORES, Limit, limit_of
from lapwing.tiling.inner import InnerForm, legal_forms

PLAIN, INDEPENDENT = InnerForm((0, 1), 1, False), InnerForm((0, 1), 1, True)


@lw.nest
def gauss_seidel(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


@lw.nest
def rooted(u, v):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            v[i, j] = np.sqrt(u[i, j]) / (1.0 + u[i, j])


@lw.nest
def roots_of_neighbours(u):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1] - 1):
            u[i, j] = np.sqrt(u[i - 1, j]) + np.sqrt(u[i, j - 1]) + np.sqrt(u[i - 1, j - 1]) - np.sqrt(u[i, j + 1])


@lw.nest
def roots_in_space(u):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            for k in range(1, u.shape[2]):
                u[i, j, k] = np.sqrt(u[i - 1, j, k]) + np.sqrt(u[i, j - 1, k]) + np.sqrt(u[i, j, k - 1])


@lw.nest
def looked_up(u, table, place):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = table[place[i, j]]


def swept(n: int = 130, sweeps: int = 8) -> BoundNest:
    return gauss_seidel.bind({"u": np.ones((n, n)), "sweeps": sweeps})


def limit(bound: BoundNest, form: InnerForm, sweeps: int = 1, **core: Any) -> Limit:
    extents = [high - low for low, high in bound.domain.box[bound.nest.sweep_depth :]]
    return limit_of(bound, form, made_core(**core), extents, sweeps)


def test_a_chain_waits_for_its_operations_and_lanes_share_the_wait() -> None:
    """Two sums follow u[i, j - 1] and the product: the third sum comes before it."""
    chain = 1e-9 * (3 * CYCLES["+"] + CYCLES["*"])
    assert limit(swept(), PLAIN).bounds[LATENCY] == pytest.approx(chain)
    assert limit(swept(), InnerForm((0, 1), 16, True)).bounds[LATENCY] == pytest.approx(chain / 16)
    independent = rooted.bind({"u": np.ones((9, 9)), "v": np.ones((9, 9))})
    assert limit(independent, INDEPENDENT).bounds[LATENCY] == 0


@lw.nest
def paths(d):
    for i in range(1, d.shape[0]):
        for j in range(1, d.shape[1]):
            d[i, j] = max(d[i - 1, j], d[i, j - 1]) + 1


@pytest.mark.parametrize(("dtype", "lanes"), [("int64", 8), ("int32", 16)])
def test_vectors_of_a_scan_wait_for_one_another(dtype: str, lanes: int) -> None:
    bound = paths.bind({"d": np.ones((9, 9), dtype)})
    found = limit(bound, InnerForm((0, 1), 1, False, scanned=True)).bounds
    assert found[LATENCY] == pytest.approx(5e-9 / lanes)
    assert found[STORES] < limit(bound, PLAIN).bounds[STORES]


def test_the_core_is_at_the_next_row_while_the_last_points_wait() -> None:
    """Four operations of a point wait for each other; rows of 128."""
    whole = limit(swept(130), PLAIN).bounds[LATENCY]
    assert limit(swept(130), PLAIN, window=128).bounds[LATENCY] == pytest.approx(whole * 3 / 4)
    assert limit(swept(130), PLAIN, window=4 * 128).bounds[LATENCY] == 0
    assert limit(swept(130), PLAIN, window=1e6).bounds[LATENCY] == 0


def test_ports_are_those_of_scalars_or_of_vectors() -> None:
    """Four sums and products; vectors of eight doubles take twice as long as a scalar."""
    lanes = {lanes: InnerForm((0, 1), lanes, True) for lanes in (4, 16)}
    assert limit(swept(), PLAIN).bounds[ARITHMETIC] == pytest.approx(4 * 0.5e-9)
    assert limit(swept(), lanes[16]).bounds[ARITHMETIC] == pytest.approx(4 * 1e-9 / 8)
    assert limit(swept(), lanes[4]).bounds[ARITHMETIC] == pytest.approx(4 * 0.5e-9 / 4)  # as half a vector, or a scalar
    bound = rooted.bind({"u": np.ones((9, 9)), "v": np.ones((9, 9))})
    assert limit(bound, INDEPENDENT).bounds[DIVIDER] == pytest.approx(2 * 8e-9 / 8)
    single = rooted.bind({"u": np.ones((9, 9), "f4"), "v": np.ones((9, 9), "f4")})
    assert limit(single, INDEPENDENT).bounds[DIVIDER] == pytest.approx(2 * 8e-9 / 16)


def test_what_several_iterations_want_is_computed_once_where_it_stays_in_registers() -> None:
    bound = roots_of_neighbours.bind({"u": np.ones((99, 99))})
    found = {form.lanes: limit(bound, form) for form in legal_forms(bound, bound.analysis.dependences)}
    assert found[16].bounds[DIVIDER] == pytest.approx(4 * 8e-9 / 8)
    assert found[64].bounds[DIVIDER] == pytest.approx(2 * 8e-9 / 8)


def test_roots_of_floats_that_no_step_waits_for_take_no_divider() -> None:
    """Of 3 roots one is found without, and one is the same for two iterations."""
    bound = roots_in_space.bind({"u": np.ones((9, 99, 99), "f4")})
    found = {
        (form.lanes, form.coalesced): limit(bound, form) for form in legal_forms(bound, bound.analysis.dependences)
    }
    assert found[16, False].bounds[DIVIDER] == pytest.approx(3 * 8e-9 / 16)
    for coalesced in (False, True):
        assert found[64, coalesced].bounds[DIVIDER] == pytest.approx(8e-9 / 16)
        assert found[64, coalesced].bounds[ARITHMETIC] == pytest.approx((2 + 13) * 1e-9 / 16)


def test_loads_and_stores_are_element_by_element_unless_they_lie_side_by_side() -> None:
    forms = {form.lanes: form for form in legal_forms(swept(), swept().analysis.dependences)}
    found = {lanes: limit(swept(), form) for lanes, form in forms.items()}
    for lanes in (1, 4, 16):
        assert found[lanes].bounds[LOADS] == pytest.approx(3 * 0.5e-9)
        assert found[lanes].bounds[STORES] == pytest.approx(0.5e-9)
    # In buffers as vectors, and once more on the way in and on the way out, which seven sweeps share.
    assert forms[64].transposed
    assert found[64].bounds[LOADS] == pytest.approx((3 + 2) * 1e-9 / 8)
    shared = limit(swept(), forms[64], sweeps=7)
    assert shared.bounds[LOADS] == pytest.approx((3 + 2 / 7) * 1e-9 / 8)
    assert shared.bounds[STORES] == pytest.approx((1 + 2 / 7) * 1e-9 / 8)
    bound = looked_up.bind({"u": np.ones((5, 6)), "table": np.ones(4), "place": np.zeros((5, 6), np.int64)})
    assert limit(bound, INDEPENDENT).bounds[LOADS] == pytest.approx(1e-9 / 8 + 0.5e-9)


def test_what_moves_between_caches_is_shared_by_sweeps() -> None:
    for n, a_byte in ((40, 2e-12), (130, 2e-12), (370, 2e-11), (2100, 2e-10)):
        bound = swept(n)
        expected = 8 * n * n * a_byte / (n - 2) ** 2
        assert limit(bound, PLAIN).bounds[MEMORY] == pytest.approx(expected), n
        assert limit(bound, PLAIN, sweeps=4).bounds[MEMORY] == pytest.approx(expected / 4)
    bound = rooted.bind({"u": np.ones((400, 400)), "v": np.ones((400, 400))})
    assert limit(bound, INDEPENDENT).bounds[MEMORY] == pytest.approx(8 * 1e-11 + 8 * 2e-11)  # one read, one updated


def test_all_forms_have_a_bound() -> None:
    for bound in (swept(), rooted.bind({"u": np.ones((70, 70), "f4"), "v": np.ones((70, 70), "f4")})):
        for form in legal_forms(bound, bound.analysis.dependences):
            found = limit(bound, form)
            assert found.bound == max(found.bounds.values()) > 0


def test_the_largest_bound_is_the_limit_and_what_is_reached_is_said() -> None:
    found = Limit({LATENCY: 2e-9, LOADS: 1e-9, STORES: 0.0}, 2.5e-9)
    assert (found.name, found.bound, found.reached) == (LATENCY, 2e-9, pytest.approx(0.8))
    assert str(found) == "latency: bound 2 ns a point, reached 80% (loads 1)"
    assert found.to_json()["by"] == "latency"
    unknown = Limit({LATENCY: 2e-9, LOADS: 0.0})
    assert (unknown.reached, str(unknown)) == (None, "latency: bound 2 ns a point")
    assert unknown.to_json()["measured_seconds_per_point"] is None
