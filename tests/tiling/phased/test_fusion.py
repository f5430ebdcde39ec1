"""How far phases and sweeps have to lie behind each other to be fused: programs everyone knows."""

from __future__ import annotations

import numpy as np
import pytest
from there_and_back import back, there

import lapwing as lw
from lapwing.loopnest.array_shape import ArrayShape
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.binding.phased_nest import PhasedNest
from lapwing.planner.choose import Wishes, make_plan
from lapwing.planner.phased import make_phased_plan
from lapwing.tiling.inner import InnerForm
from lapwing.tiling.phased import fusion
from lapwing.tiling.phased.fusion import Fusion, Shifts, shifts_of

N = 34
SQUARE = ArrayShape("float64", (N, N))
CUBE = ArrayShape("float64", (N, 40, N))


@lw.nest
def edge(u, sweeps):
    for t in range(sweeps):
        for j in range(u.shape[1]):
            u[0, j] = t + j


@lw.nest
def upwards(u, sweeps):
    for t in range(sweeps):
        for i in range(u.shape[0] - 2, 0, -1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.5 * (u[i + 1, j] + u[i, j])


@lw.nest
def columns(u, sweeps):
    for t in range(sweeps):
        for j in range(u.shape[1]):
            for i in range(1, u.shape[0]):
                u[i, j] = 0.5 * (u[i - 1, j] + u[i, j])


@lw.nest
def around(u, v, sweeps):
    for t in range(sweeps):
        for i in range(u.shape[0]):
            for j in range(u.shape[1]):
                v[i, j] = u[i - 1, j - 1]  # of the other end, where i or j is 0


@lw.nest
def heat(w, x, sweeps):
    for t in range(sweeps):
        for i in range(1, w.shape[0] - 1):
            for j in range(1, w.shape[1] - 1):
                for k in range(1, w.shape[2] - 1):
                    x[i, j, k] = w[i - 1, j, k] + w[i + 1, j, k] + w[i, j - 1, k] + w[i, j + 1, k] + w[i, j, k - 1]


@lw.nest
def heat_back(w, x, sweeps):
    for t in range(sweeps):
        for i in range(1, w.shape[0] - 1):
            for j in range(1, w.shape[1] - 1):
                for k in range(1, w.shape[2] - 1):
                    w[i, j, k] = x[i - 1, j, k] + x[i + 1, j, k] + x[i, j - 1, k] + x[i, j + 1, k] + x[i, j, k - 1]


def phases(*nests: lw.Nest, sweeps: int = 10) -> PhasedNest:
    given = {"u": SQUARE, "v": SQUARE, "w": CUBE, "x": CUBE, "sweeps": sweeps}
    return PhasedNest("program", tuple(nest.bind({n: given[n] for n in nest.loops.parameters}) for nest in nests))


def shifts(*nests: lw.Nest) -> Shifts:
    return next(shifts_of(phases(*nests)))


def test_jacobi_there_and_back() -> None:
    found = shifts(there, back)
    assert (found.of_phases, found.apart) == ((0, 1), 2)
    assert [found.fused(height, 1).skew for height in (1, 2, 3)] == [2, 1, 1]


def test_a_phase_of_one_row_comes_with_the_block_of_that_row() -> None:
    fusion = shifts(there, edge, back).fused(8, 2)
    assert fusion is not None
    rows = [box for box in fusion.steps(1) if box[0][0] < box[0][1]]
    assert rows == [((0, N),)]
    assert fusion.steps(0)[0][0] == (1, 9)


def test_blocks_go_along_the_loop_that_allows_it() -> None:
    assert shifts(there, columns).dimension.loops == {0: (0, 0), 1: (1, 0)}
    assert shifts(upwards, there).dimension.loops == {0: (1, 0), 1: (1, 0)}


def test_on_a_ring_ends_are_left_out_more_and_more() -> None:
    found = shifts(around, back)
    assert found.ring == 1
    fusion = found.fused(4, 2)
    assert fusion is not None
    assert fusion.windows == {(0, 0): (0, 9), (0, 1): (1, 7), (1, 0): (1, 6), (1, 1): (2, 6)}
    order = [*fusion.order()]
    assert sorted(order) == [(s, p, k) for s in range(2) for p in range(2) for k in range(9)]
    assert found.fused(4, 5) is None, "five sweeps leave nothing between the ends"


def test_planes_are_cut_into_strips(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of which two sweeps' planes do not fit, but those of so many rows do."""
    for size, value in (("cached_bytes", lambda: 8192), ("room_bytes", lambda: 60_000), ("BLOCK_BYTES", 512)):
        monkeypatch.setattr(fusion, size, value)
    found = make_phased_plan(phases(heat, heat_back), 1).fusion
    assert found is not None
    assert found.strips is not None
    assert (found.sweeps, found.strips.width, found.strips.apart, found.strips.shifts) == (3, 11, 2, (0, 1))
    assert found.strips.cuts(0, 0, 3) == (1, 12, 23, 34, 39)
    assert found.strips.cuts(1, 1, 3) == (1, 9, 20, 31, 39)
    steps = found.steps(0)
    assert len(steps) == 3 * 4 * found.blocks == len({step for _, phase, step in found.order() if phase == 0})
    assert steps[0] == ((1, 2), (1, 12), (1, N - 1))


@lw.nest
def recorded(u, v, out, steps):
    for t in range(steps):
        for i in range(1, u.shape[0] - 1):
            for j in range(u.shape[1]):
                v[i, j] = v[i, j] + u[i - 1, j]
                out[t, i, j] = v[i, j]


def test_of_a_record_of_sweeps_only_what_one_touches_is_to_stay_in_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    u, steps = np.ones((20, 10)), 50
    bound = recorded.bind({"u": u, "v": u.copy(), "out": np.ones((steps, 20, 10)), "steps": steps})
    phased = PhasedNest("recorded", (bound,))
    assert [fusion._bytes_of_a_sweep(phased, array) for array in phased.arrays] == [1600, 1600, 1600]
    monkeypatch.setattr(fusion, "cached_bytes", lambda: 4800)
    assert fusion.fusion_of(phased, [InnerForm((0, 1), 1, independent=True)]) is None


def test_sweeps_of_a_nest_are_fused_on_one_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    for size, value in (("cached_bytes", lambda: 8192), ("room_bytes", lambda: 4096), ("BLOCK_BYTES", 512)):
        monkeypatch.setattr(fusion, size, value)
    (bound,) = phases(there).phases

    def plan(bound: BoundNest, ranks: int = 1, tile: int | None = None) -> Fusion | None:
        return make_plan(bound, bound.analysis.dependences, ranks, Wishes(tile=tile)).fusion

    found = plan(bound)
    assert found is not None
    assert (found.height, found.skew, found.sweeps) == (2, 1, 3)
    assert plan(bound, ranks=2) is None
    assert plan(bound, tile=5) is None
    assert plan(phases(there, sweeps=1).phases[0]) is None


def test_phases_are_fused_on_one_rank_where_arrays_are_larger_than_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    assert make_phased_plan(phases(there, back), 1).fusion is None
    monkeypatch.setattr(fusion, "cached_bytes", lambda: 8192)
    monkeypatch.setattr(fusion, "room_bytes", lambda: 4096)
    monkeypatch.setattr(fusion, "BLOCK_BYTES", 512)
    found = make_phased_plan(phases(there, back), 1).fusion
    assert found is not None
    assert (found.height, found.skew, found.sweeps) == (2, 1, 3)
    assert make_phased_plan(phases(there, back), 2).fusion is None
    assert make_phased_plan(phases(there, back), 1, tile=4).fusion is None
