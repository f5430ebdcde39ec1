"""What ranks tell each other where a sweep has several phases: the programs everyone knows, message by message."""

from __future__ import annotations

import numpy as np
import pytest
from there_and_back import back, there

import lapwing as lw
from lapwing.loopnest.array_shape import ArrayShape
from lapwing.loopnest.binding.phased_nest import PhasedNest
from lapwing.planner.phased import PhasedPlan, dimensions_to_cut, make_phased_plan
from lapwing.tiling.phased.faces import PhasedFaces
from lapwing.tiling.phased.steps import PhaseTiling, steps_of

N = 34
SQUARE = ArrayShape("float64", (N, N))
ROW = 8 * (N - 2)  # bytes of the inner elements of a row


@lw.nest
def magnetic(ez, hx, hy, sweeps):
    for t in range(sweeps):
        for i in range(ez.shape[0] - 1):
            for j in range(ez.shape[1] - 1):
                hx[i, j] = hx[i, j] - 0.5 * (ez[i, j + 1] - ez[i, j])
                hy[i, j] = hy[i, j] + 0.5 * (ez[i + 1, j] - ez[i, j])


@lw.nest
def electric(ez, hx, hy, sweeps):
    for t in range(sweeps):
        for i in range(1, ez.shape[0] - 1):
            for j in range(1, ez.shape[1] - 1):
                ez[i, j] = ez[i, j] + 0.5 * (hy[i, j] - hy[i - 1, j] - hx[i, j] + hx[i, j - 1])


@lw.nest
def forward(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])


@lw.nest
def backward(u, sweeps):
    for t in range(sweeps):
        for i in range(u.shape[0] - 2, 0, -1):
            for j in range(u.shape[1] - 2, 0, -1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])


@lw.nest
def shifted(u, v, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 3):
            for j in range(1, u.shape[1] - 1):
                v[i + 2, j] = u[i, j]


@lw.nest
def both(u, v, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = u[i, j] + 1
                v[i, j] = u[i, j]


@lw.nest
def diagonal(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0]):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = u[i - 1, j + 1] + u[i - 1, j - 1]


@lw.nest
def halves(u, v, sweeps):
    for t in range(sweeps):
        for i in range(u.shape[0]):
            v[i] = 0.5 * (u[i] + u[(i + 1) % u.shape[0]])


@lw.nest
def wholes(u, v, sweeps):
    for t in range(sweeps):
        for i in range(u.shape[0]):
            u[i] = v[i] - v[i - 1]


@lw.nest
def sums(u, v, sweeps):
    for t in range(sweeps):
        for i in range(u.shape[0]):
            total = 0.0
            for j in range(u.shape[1]):
                total += v[i, j]
                v[i, j] = total


@lw.nest
def after_sums(u, v, sweeps):
    for t in range(sweeps):
        for i in range(u.shape[0]):
            for j in range(1, u.shape[1]):
                u[i, j] = v[i, j] - v[i, j - 1]


@lw.nest
def fills(v, sweeps):
    for t in range(sweeps):
        for i in range(v.shape[0]):
            for j in range(v.shape[1]):
                v[i, j] = v[i, j] + (v[i - 1, j] if i > 0 else 0.0) + (v[i, j - 1] if j > 0 else 0.0)


@lw.nest
def beside_diagonal(v, w, sweeps):
    for t in range(sweeps):
        for i in range(w.shape[0]):
            w[i] = v[i, i + 3]


@lw.nest
def torus_there(u, v, sweeps):
    n, m = u.shape
    for t in range(sweeps):
        for i in range(n):
            for j in range(m):
                right = j + 1 if j < m - 1 else 0
                v[i, j] = 0.25 * (u[i - 1, j] + u[(i + 1) % n, j] + u[i, j - 1] + u[i, right])


@lw.nest
def torus_back(u, v, sweeps):
    n, m = u.shape
    for t in range(sweeps):
        for i in range(n):
            for j in range(m):
                down = (i - 1) % n
                u[i, j] = 0.25 * (v[down, j] + v[(i + 1) % n, j] + v[i, (j - 1) % m] + v[i, (j + 1) % m])


@lw.nest
def red(u, v, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1 + (i + 1) % 2, u.shape[1] - 1, 2):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + v[i, j])


@lw.nest
def black(u, v, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1 + i % 2, u.shape[1] - 1, 2):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + v[i, j])


def phased(*nests: lw.Nest, sweeps: int = 3, **arrays: ArrayShape) -> PhasedNest:
    bound = []
    for nest in nests:
        names = nest.loops.parameters
        bound.append(nest.bind({**{n: arrays.get(n, SQUARE) for n in names if n != "sweeps"}, "sweeps": sweeps}))
    return PhasedNest("program", tuple(bound))


def messages(faces: PhasedFaces, source: int, target: int) -> list[tuple[int, int, int, int, int]]:
    """Per message: phase, lag, the step that makes it, the step that needs it, bytes."""
    return [(c.phase, c.lag, m.made, m.needed, m.bytes) for c in faces.channels(source, target) for m in c.messages]


def test_two_arrays_in_turns_exchange_a_row_a_phase() -> None:
    """Jacobi's iteration: boundaries come first, and what they send is needed by the next phase's boundaries."""
    plan = make_phased_plan(phased(there, back), 2, tile=100)
    faces = plan.faces
    assert plan.grid == (2, 1)
    assert [t.split for t in plan.tilings] == ["boundary first"] * 2
    assert [(p, s.box, s.boundary) for p in (0, 1) for s in faces.phase_steps(p, 0)] == [
        (p, box, boundary)
        for p in (0, 1)
        for box, boundary in ((((16, 17), (1, 33)), True), (((1, 16), (1, 33)), False))
    ]
    assert messages(faces, 0, 1) == messages(faces, 1, 0) == [(0, 0, 0, 2, ROW), (1, 1, 2, 0, ROW)]
    assert [c.exchange for c in faces.channels(0, 1)] == [1, 0]


def test_phases_of_two_colours_have_interiors() -> None:
    """What a red point reads is black, from the phase before: no phase waits for its own faces."""
    plan = make_phased_plan(phased(red, black), 2, grid=(2, 1), tile=100)
    assert [t.split for t in plan.tilings] == ["boundary first"] * 2
    assert messages(plan.faces, 0, 1) == messages(plan.faces, 1, 0) == [(0, 0, 0, 2, ROW), (1, 1, 2, 0, ROW)]


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_ranks_along_a_periodic_axis_are_a_ring(ranks: int) -> None:
    """Each sends the row at either end to the ranks on both sides, the last one's neighbour being the first."""
    plan = make_phased_plan(phased(torus_there, torus_back), ranks, grid=(ranks, 1), tile=100)
    faces, row = plan.faces, 8 * N
    assert [t.split for t in plan.tilings] == ["boundary first"] * 2
    for rank in range(ranks):
        assert [s.boundary for s in faces.phase_steps(0, rank)] == [True, True, False]
        sent = [(c.target, c.phase, c.lag, m.bytes) for c in faces.outgoing(rank) for m in c.messages]
        around = [(rank + 1) % ranks, (rank - 1) % ranks]
        both = {target: row * around.count(target) for target in around}
        assert sorted(sent) == sorted((t, p, p, b) for t, b in both.items() for p in (0, 1))


def test_the_ends_of_a_ring_need_little_of_each_other() -> None:
    """The first of four ranks has its rows and one at the other end; the box around them is the whole array."""
    faces = make_phased_plan(phased(torus_there, torus_back), 4, grid=(4, 1), tile=100).faces
    assert faces.needed_box("u", 0) == ((0, N), (0, N))
    assert sorted(faces.needed_parts("u", 0)) == [((0, 9), (0, N)), ((N - 1, N), (0, N))]
    assert faces.needed_parts("u", 1) == [faces.needed_box("u", 1)]


def test_a_torus_cut_along_both_axes() -> None:
    plan = make_phased_plan(phased(torus_there, torus_back), 4, grid=(2, 2), tile=100)
    for rank in range(4):
        sent = [(c.target, m.bytes) for c in plan.faces.outgoing(rank) for m in c.messages]
        # Both ends of the block go to the one neighbour along an axis, in each of two phases.
        assert sorted(sent) == sorted([(rank ^ 1, 8 * N)] * 2 + [(rank ^ 2, 8 * N)] * 2)


def test_fields_that_lie_apart_are_sent_one_way_each() -> None:
    """Of FDTD's three fields only hy's last row goes up, and only ez' first goes down."""
    faces = make_phased_plan(phased(magnetic, electric), 2, grid=(2, 1), tile=100).faces
    # The upper rank's first phase has no boundary, and is one step.
    assert [len(faces.phase_steps(0, rank)) for rank in (0, 1)] == [2, 1]
    assert messages(faces, 0, 1) == [(0, 0, 0, 1, ROW)]
    assert messages(faces, 1, 0) == [(1, 1, 1, 0, ROW)]
    for rank, (source, target) in enumerate(((0, 1), (1, 0))):
        (channel,) = faces.channels(source, target)
        assert [faces.faces(rank)[p.face].array for m in channel.messages for p in m.parts] == [("hy", "ez")[rank]]


def test_forward_and_backward_sweeps_need_one_message_a_tile_each() -> None:
    """SSOR: what flows in one direction is there for the other, whose old values it is."""
    plan = make_phased_plan(phased(forward, backward), 2, grid=(2, 1), tile=16)
    faces = plan.faces
    assert [t.split for t in plan.tilings] == [None, None]
    half = ROW // 2
    assert messages(faces, 0, 1) == [(0, 0, 0, 0, half), (0, 0, 1, 1, half)]
    assert messages(faces, 1, 0) == [(1, 0, 2, 2, half), (1, 0, 3, 3, half)]
    # The row of the forward sweep is read by the backward one, which comes to it from the other end.
    (channel,) = faces.channels(0, 1)
    assert [m.last for m in channel.messages] == [3, 2]


def test_a_message_that_several_phases_read_is_sent_once() -> None:
    """What both writes is read by there in the same sweep and by back in the next one."""
    faces = make_phased_plan(phased(both, there, back), 2, grid=(2, 1), tile=100).faces
    found = messages(faces, 0, 1)
    assert [(phase, lag) for phase, lag, *_ in found] == [(0, 0), (1, 0)]


def test_what_is_overwritten_before_it_is_read_is_not_sent() -> None:
    """back's u is overwritten by both at the beginning of the next sweep."""
    faces = make_phased_plan(phased(both, there, back), 2, grid=(2, 1), tile=100).faces
    assert not [c for rank in (0, 1) for c in faces.outgoing(rank) if c.phase == 2]


def test_loops_are_cut_where_the_elements_are_that_they_write() -> None:
    plan = make_phased_plan(phased(there, shifted), 2, grid=(2, 1))
    distribution = plan.distribution
    assert [distribution.block(0, rank)[0] for rank in (0, 1)] == [(1, 17), (17, 33)]  # type: ignore[index]
    assert [distribution.block(1, rank)[0] for rank in (0, 1)] == [(1, 15), (15, 31)]  # type: ignore[index]
    assert [distribution.owned("v", rank)[0] for rank in (0, 1)] == [(0, 17), (17, N)]


def test_loops_that_a_dependence_points_backwards_along_are_not_cut() -> None:
    """j of the second phase: its tiles need those on both sides."""
    program = phased(both, diagonal)
    (dimension,) = dimensions_to_cut(program)
    assert [loop for loop, _ in dimension.loops.values()] == [0, 0]
    assert make_phased_plan(program, 4).grid == (4,)


def test_what_a_phase_writes_all_along_an_axis_is_not_cut_there() -> None:
    """The columns of v: a row of it is longer than what a rank keeps where the second phase is cut along them."""
    (dimension,) = dimensions_to_cut(phased(sums, after_sums))
    assert dimension.axes.keys() == {"v", "u"}
    assert {axis for axis, _ in dimension.axes.values()} == {0}


def test_a_rank_without_iterations_has_a_step_all_the_same() -> None:
    """So that ranks come to every phase."""
    assert [step.box for step in steps_of(None, 2, PhaseTiling(0, 4), ())] == [((0, 0), (0, 0))]


def test_the_interior_comes_first_after_a_pipelined_phase() -> None:
    """The faces of its last tiles are on their way meanwhile."""
    plan = make_phased_plan(phased(forward, there), 2, grid=(2, 1))
    assert [t.split for t in plan.tilings] == [None, "interior first"]
    steps = plan.faces.phase_steps(1, 0)
    assert [step.boundary for step in steps] == [False] * (len(steps) - 1) + [True]


@pytest.mark.parametrize(
    ("change", "message"),
    [({"sweeps": 2}, "2 sweeps and forward 3"), ({"shape": (N, N + 1)}, r"u is float64 of shape \(34, 35\)")],
)
def test_phases_that_do_not_fit_are_refused(change: dict, message: str) -> None:
    arguments = {"u": np.zeros(change.get("shape", (N, N))), "sweeps": change.get("sweeps", 3)}
    first = forward.bind({"u": np.zeros((N, N)), "sweeps": 3})
    with pytest.raises(lw.RefusedError, match=message):
        PhasedNest("program", (first, backward.bind(arguments)))


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"grid": (2, 2)}, "is for 4 ranks, but there are 2"),
        ({"grid": (2,)}, "each of the 2 loops"),
        ({"tile": 0}, "at least 1"),
        ({"engine": "fast"}, "expected one of"),
    ],
)
def test_wishes_that_do_not_fit_are_refused(wishes: dict, message: str) -> None:
    with pytest.raises(lw.RefusedError, match=message):
        make_phased_plan(phased(there, back), 2, **wishes)


def test_elements_may_be_read_from_the_end() -> None:
    """v[i - 1] is v[-1] at first, so the ranks at both ends are neighbours: v goes up from one to the next, and u down."""
    line = ArrayShape("float64", (N,))
    faces = make_phased_plan(phased(halves, wholes, u=line, v=line), 4, tile=100).faces
    for source, target in ((3, 0), (0, 1), (1, 2)):
        assert [(phase, lag) for phase, lag, *_ in messages(faces, source, target)] == [(0, 0)]
        assert [(phase, lag) for phase, lag, *_ in messages(faces, target, source)] == [(1, 1)]


def test_elements_of_a_box_that_nobody_reads_may_come_last() -> None:
    """Of columns 4 to 8, rows 1 to 5 have an element beside the diagonal, and the box around what is read has all rows."""
    square, line = ArrayShape("float64", (16, 19)), ArrayShape("float64", (16,))
    program = phased(fills, beside_diagonal, v=square, w=line)
    faces = make_phased_plan(program, 4, grid=(1, 4), tile=3).faces
    assert [step.box for step in faces.phase_steps(0, 1)] == [((r, min(r + 3, 16)), (4, 9)) for r in range(0, 16, 3)]
    assert [(made, needed) for _, _, made, needed, _ in messages(faces, 1, 0)] == [
        (0, 6), (1, 7), (2, 11), (3, 11), (4, 11), (5, 11),
    ]  # fmt: skip


def test_more_ranks_than_rows_idle() -> None:
    small = ArrayShape("float64", (4, 4))
    plan: PhasedPlan = make_phased_plan(phased(there, back, u=small, v=small), 7)
    assert (plan.ranks, plan.idle) == (4, 3)
