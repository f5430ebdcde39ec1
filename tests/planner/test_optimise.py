"""Planning by prediction: what is taken to be computed and sent, what follows for the choice, and how it is told."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.api.calls.decide import Decider, Decision, decide, machine_here
from lapwing.calibrate import probing
from lapwing.calibrate.tile import FaceCost, Probe
from lapwing.errors import RefusedError
from lapwing.loopnest.array_shape import ArrayShape
from lapwing.machine import stored
from lapwing.machine.machine import Curve, Fingerprint, Link, Machine, Quantity
from lapwing.planner.choose import Wishes, make_plan
from lapwing.planner.costs import Placement, pipeline_of, setup_seconds
from lapwing.planner.cuts import Cut
from lapwing.planner.geometry import Geometry
from lapwing.planner.optimise import Problem, engines_on
from lapwing.planner.rates import CopySeconds, EstimatedRates, ProbedRates, Sample, Shape, operations
from lapwing.schedule.timeline import timeline
from lapwing.tiling.faces import Faces
from lapwing.tiling.partition import factorisations


@lw.nest
def gauss_seidel(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


@lw.nest
def red_black(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                if (i + j) % 2 == t % 2:
                    u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


@lw.nest
def sqrt3d(a):
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            for k in range(1, a.shape[2]):
                a[i, j, k] = np.sqrt(a[i - 1, j, k]) + np.sqrt(a[i, j - 1, k]) + np.sqrt(a[i, j, k - 1])


@lw.nest
def downhill(u, sweeps):
    for t in range(sweeps):
        for i in range(u.shape[0] - 2, -1, -1):
            for j in range(1, u.shape[1]):
                u[i, j] = 0.5 * u[i + 1, j] + 0.25 * u[i + 1, j - 1] + 0.25 * u[i, j - 1]


@lw.nest
def triangle(u):
    for i in range(1, u.shape[0]):
        for j in range(1, i + 1):
            u[i, j] = u[i - 1, j] + u[i, j - 1]


@lw.nest
def line(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            u[i] = 0.5 * (u[i - 1] + u[i + 1])


def of_shape(*shape: int) -> ArrayShape:
    return ArrayShape("float64", shape)


def bound_to(nest: lw.Nest, *arguments: Any) -> Any:
    return nest.bind(nest.arguments(*arguments))


def geometry(nest: lw.Nest, arguments: Sequence[Any], ranks: int, **wishes: Any) -> Geometry:
    bound = bound_to(nest, *arguments)
    plan = make_plan(bound, nest.dependences, ranks, Wishes(**wishes))
    sweeps = int(arguments[1]) if len(arguments) > 1 else 1
    return Geometry(Faces(bound, plan.partition, plan.mapping, plan.tile), sweeps)


def test_red_points_wait_for_no_red_ones() -> None:
    """Ranks start at once and exchange what the sweep before made: where a plain sweep's waits, none has to."""
    found = {}
    for nest in (red_black, gauss_seidel):
        made = geometry(nest, [of_shape(2050, 2050), 40], 4, tile=256, cut=Cut(0, (1, 4)))
        machine, rates = stored.find("typical"), EstimatedRates(1e-9, "")
        found[nest] = timeline(pipeline_of(made, "overlap", machine, rates, Placement(1, 1)))
    alternating, plain = found.values()
    assert alternating.fill.max() == 0.0
    assert plain.fill.max() > 0.1 * plain.makespan / 40
    # The outer ones have a neighbour less to serve, and no more than that to wait for.
    inner = alternating.waits[0, 1:3], plain.waits[0, 1:3]
    assert inner[0].max() == pytest.approx(0, abs=1e-12)
    assert inner[1].min() > 1e-4
    assert alternating.exposed.max() == pytest.approx(0, abs=1e-12)
    assert alternating.makespan < plain.makespan


# -- geometry ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [1, 2, 4, 6])
@pytest.mark.parametrize("tile", [1, 7, 100])
def test_every_iteration_is_in_a_step_of_a_rank(ranks: int, tile: int) -> None:
    for grid in factorisations(ranks, 3):
        for mapping in range(3):
            if grid[mapping] > 1:
                continue
            made = geometry(sqrt3d, [of_shape(14, 15, 41)], ranks, tile=tile, cut=Cut(mapping, grid))
            assert made.points.shape == (*grid, made.steps)
            assert made.points.sum() == 13 * 14 * 40
            whole = made.faces.steps(0)
            assert made.points[(0, 0, 0)].tolist() == [math.prod(b - a for a, b in step) for step in whole]


def test_iterations_of_a_triangle_are_close() -> None:
    made = geometry(triangle, [of_shape(401, 401)], 4, tile=25, cut=Cut(0, (1, 4)))
    assert made.points.sum() == pytest.approx(400 * 401 / 2, rel=0.01)
    columns = [made.partition.block(rank)[1] for rank in range(4)]
    exact = [sum(401 - j for j in range(*block)) for block in columns]
    assert made.points.sum(axis=-1)[0].tolist() == pytest.approx(exact, rel=0.03)
    assert made.points[0, 3, 0] == 0  # the first rows are short


def test_time_is_pipelined_in_tiles_of_sweeps() -> None:
    made = geometry(downhill, [of_shape(40, 41), 10], 4, tile=4, cut=Cut(None, (2, 2)))
    assert (made.steps, made.rounds) == (3, 1)
    assert made.points.sum() == 39 * 40 * 10
    # In the direction of a descending loop the rank of the highest rows comes first.
    assert made.points[0, 0].tolist() == [4 * 20 * 20, 4 * 20 * 20, 2 * 20 * 20]
    assert made.points[1, 0].tolist() == [4 * 19 * 20, 4 * 19 * 20, 2 * 19 * 20]


@pytest.mark.parametrize(
    ("nest", "arguments", "cut"),
    [
        (gauss_seidel, [of_shape(40, 50), 3], Cut(0, (1, 3))),
        (gauss_seidel, [of_shape(40, 50), 3], Cut(1, (3, 1))),
        (downhill, [of_shape(40, 50), 3], Cut(1, (3, 1))),
        (downhill, [of_shape(40, 50), 3], Cut(0, (1, 3))),
        (downhill, [of_shape(40, 50), 8], Cut(None, (3, 3))),
        (sqrt3d, [of_shape(30, 31, 50)], Cut(2, (3, 3, 1))),
        (sqrt3d, [of_shape(30, 31, 50)], Cut(0, (1, 3, 3))),
    ],
)
def test_neighbours_are_those_of_a_rank_in_the_middle(nest: lw.Nest, arguments: list[Any], cut: Cut) -> None:
    ranks = math.prod(cut.grid)
    made = geometry(nest, arguments, ranks, tile=5 if cut.mapping is not None else 2, cut=cut)
    middle = made.partition.rank(tuple(parts // 2 for parts in cut.grid))
    channels = made.faces.outgoing(middle)
    assert len(made.neighbours) == len(channels)
    for channel in channels:
        order = zip(made.partition.order(channel.target), made.partition.order(middle), strict=True)
        apart = tuple(t - s for t, s in order)
        (alike,) = [n for n in made.neighbours if n.offset == apart]
        message = channel.messages[len(channel.messages) // 2]
        assert alike.lag == channel.lag
        assert alike.bytes == made.faces.batch * message.bytes
        assert alike.parts == made.faces.batch * len(message.parts)
        if cut.mapping is not None:
            assert alike.shift == message.needed - message.made


def test_a_face_across_the_innermost_loop_is_one_run_after_the_other() -> None:
    along = geometry(gauss_seidel, [of_shape(40, 50), 1], 2, tile=8, cut=Cut(1, (2, 1)))
    across = geometry(gauss_seidel, [of_shape(40, 50), 1], 2, tile=8, cut=Cut(0, (1, 2)))
    assert [n.runs for n in along.neighbours] == [1]
    assert [n.runs for n in across.neighbours] == [8]
    assert [n.bytes for n in (*along.neighbours, *across.neighbours)] == [64, 64]


def test_long_rows_lie_in_pages_of_their_own() -> None:
    short = geometry(gauss_seidel, [of_shape(40, 64), 1], 2, tile=8, cut=Cut(0, (1, 2)))
    long = geometry(gauss_seidel, [of_shape(40, 6400), 1], 2, tile=8, cut=Cut(0, (1, 2)))
    along = geometry(gauss_seidel, [of_shape(40, 6400), 1], 2, tile=1024, cut=Cut(1, (2, 1)))
    assert [n.pages for n in (*short.neighbours, *long.neighbours, *along.neighbours)] == [1, 8, 2]
    onesided, overlap = (
        setup_seconds(long, engine, typical(), whole_nodes(typical())) for engine in ("onesided", "overlap")
    )
    assert onesided >= overlap + 0.9e-6 * 8 * long.steps


def test_a_mapping_loop_that_is_cut_is_one_step() -> None:
    made = geometry(line, [of_shape(52), 20], 5, cut=Cut(0, (5,)))
    assert made.mapping_is_cut
    assert (made.steps, made.rounds) == (1, 20)
    assert {(n.offset, n.lag, n.bytes) for n in made.neighbours} == {((1,), 0, 8), ((-1,), 1, 8)}


def test_messages_leave_a_node_where_rows_of_ranks_end() -> None:
    made = geometry(sqrt3d, [of_shape(30, 31, 50)], 8, tile=8, cut=Cut(2, (4, 2, 1)))
    places = {n.offset: Placement(2, 2).place(made.partition, n) for n in made.neighbours}
    assert places == {(1, 0, 0): "network", (0, 1, 0): "node"}
    assert {Placement(8, 8).place(made.partition, n) for n in made.neighbours} == {"node"}
    assert {Placement(3, 3).place(made.partition, n) for n in made.neighbours} == {"network"}


# -- rates -------------------------------------------------------------------------------------------------------------


def test_speeds_between_measured_heights_lie_between_them() -> None:
    samples = {
        Shape((8, 64), 1, 4): Sample(4e-9, {}),
        Shape((8, 64), 1, 16): Sample(2e-9, {(0, 1): CopySeconds(1e-9, 2e-9)}),
        Shape((8, 64), 0, 4): Sample(7e-9, {}),
    }
    rates = ProbedRates(samples)
    assert rates.seconds_per_point(Shape((8, 64), 1, 8)) == pytest.approx(3e-9)
    assert rates.seconds_per_point(Shape((8, 64), 1, 3)) == 4e-9
    assert rates.seconds_per_point(Shape((8, 64), 1, 20)) == 2e-9
    assert rates.seconds_per_point(Shape((8, 64), 0, 4)) == 7e-9
    assert rates.copy_seconds(Shape((8, 64), 1, 32), 0, 1) == CopySeconds(1e-9, 2e-9)
    assert rates.copy_seconds(Shape((8, 64), 1, 32), 1, 1) is None
    assert rates.nearest(Shape((8, 64), 1, 7)) == Shape((8, 64), 1, 4)
    assert rates.nearest(Shape((8, 64), 1, 9)) == Shape((8, 64), 1, 16)


def test_what_was_not_measured_is_not_known() -> None:
    rates = ProbedRates({Shape((8, 64), 1, 4): Sample(4e-9, {}), Shape((8, 64), 1, 16): Sample(2e-9, {})})
    known = [tile for tile in range(1, 40) if rates.knows(Shape((8, 64), 1, tile))]
    assert known == list(range(3, 23))
    assert not rates.knows(Shape((8, 64), 0, 8))
    assert not rates.knows(Shape((16, 32), 1, 8))
    assert [tile for tile in known if rates.has_near(Shape((8, 64), 1, tile))] == [3, 4, 5, *range(12, 23)]


def test_operations_are_counted() -> None:
    assert operations(bound_to(sqrt3d, of_shape(9, 9, 9))) == {"sqrt": 3, "add": 2, "load": 3, "store": 1}


def test_published_figures_come_before_estimates() -> None:
    machine = replace(typical(), known_nests={"sqrt3d": Quantity(4e-7, source="somewhere")})
    assert EstimatedRates.of(bound_to(sqrt3d, of_shape(9, 9, 9)), machine).value == 4e-7
    assert EstimatedRates.of(bound_to(gauss_seidel, of_shape(9, 9), 1), machine).value < 1e-7


# -- the choice --------------------------------------------------------------------------------------------------------


def typical() -> Machine:
    return stored.find("typical")


def whole_nodes(machine: Machine) -> Placement:
    return Placement(machine.cores_a_node, machine.cores_a_node)


def test_a_helper_needs_a_core_of_its_own() -> None:
    assert "helper" in engines_on(4, Placement(8, 8))
    assert "helper" not in engines_on(8, Placement(8, 8))
    assert "helper" not in engines_on(2, Placement(1, 2, 2)), "two nodes of one machine with two cores"
    assert "onesided" not in engines_on(2, Placement(1, 2, 2))


def with_network(latency: float, bytes_per_second: float, cpu: float = 1e-6) -> Machine:
    link = Link(
        send_cpu=Curve.line(cpu),
        receive_cpu=Curve.line(cpu),
        wire=Curve.line(0.0, 1 / bytes_per_second),
        latency=Quantity(latency),
        synchronisation=Quantity(latency),
    )
    return replace(typical(), links={**typical().links, "network": {"*": link}}, cores_a_node=1)


def decided(
    machine: Machine,
    ranks: int = 4,
    nest: lw.Nest = sqrt3d,
    arguments: Sequence[Any] = (),
    seconds: float = 5e-9,
    **wishes: Any,
) -> Decision:
    bound = bound_to(nest, *(arguments or [of_shape(65, 65, 4097)]))

    def measure(shapes: Sequence[Shape], budget: float, again: bool) -> Mapping[Shape, Sample]:
        return {shape: Sample(seconds, {}) for shape in shapes}

    return decide(bound, nest.dependences, ranks, Wishes(**wishes), machine, whole_nodes(machine), measure)


def test_dear_messages_ask_for_taller_tiles() -> None:
    grid = (2, 2)
    heights = [decided(with_network(1e-5, 1e9, cpu), grid=grid).plan.tile for cpu in (1e-6, 1e-4, 1e-2)]
    assert heights[0] < heights[1] < heights[2]


def test_overlap_pays_where_transfers_take_as_long_as_computing() -> None:
    decision = decided(with_network(1e-5, 2e7))
    assert decision.plan.engine == "overlap"
    assert "runner-up" in str(decision.plan)


def test_overlap_is_refused_where_it_would_not_pay() -> None:
    decision = decided(with_network(1e-9, 1e12, cpu=1e-9), ranks=2, seconds=1e-6)
    assert decision.plan.engine == "blocking"
    assert "blocking: transfer is" in str(decision.plan)
    assert "of compute" in str(decision.plan)


def test_parts_of_the_prediction_add_up() -> None:
    for machine in (with_network(1e-5, 1e7), with_network(1e-3, 1e9), typical()):
        prediction = decided(machine).plan.prediction
        assert prediction is not None
        parts = prediction.compute + prediction.messages + prediction.exposed + prediction.fill + prediction.setup
        assert parts == pytest.approx(prediction.seconds, rel=1e-9)
        assert prediction.limit in str(prediction)


def test_the_fastest_is_chosen() -> None:
    decision = decided(with_network(1e-5, 2e7))
    assert decision.plan.prediction is not None
    assert decision.plan.prediction.seconds <= min(c.seconds for c in decision.ranked) * 1.01
    assert len({c.tile for c in decision.ranked}) > 1


def test_wishes_are_kept() -> None:
    plan = decided(with_network(1e-5, 2e7), engine="blocking", tile=77, grid=(1, 4)).plan
    assert (plan.engine, plan.tile, plan.grid) == ("blocking", 77, (1, 4))
    assert plan.prediction is not None


def test_time_is_pipelined_where_every_sweep_has_few_points() -> None:
    plan = decided(with_network(1e-3, 1e9), 4, downhill, [of_shape(301, 301), 2000]).plan
    assert plan.mapping is None
    assert plan.tile > 1


def test_ranks_that_fit_no_grid_idle() -> None:
    plan = decided(typical(), ranks=10_000, nest=gauss_seidel, arguments=[of_shape(9, 9), 1]).plan
    assert (plan.ranks, plan.idle) == (49, 9951)


def test_a_machine_without_network_cannot_have_ranks_on_several_nodes() -> None:
    machine = replace(typical(), links={"node": typical().links["node"]}, cores_a_node=2)
    with pytest.raises(RefusedError, match="no link at place 'network'"):
        decided(machine, ranks=4)


def test_a_machine_that_was_calibrated_alone_can_be_planned_as_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAPWING_CACHE", str(tmp_path))
    uncalibrated = machine_here()
    assert uncalibrated.name == "typical"
    node = typical().links["node"]
    mine = replace(typical(), name="mine", links={"node": node}, cores_a_node=2)
    stored.write(mine, stored.own_path(tmp_path))
    assert machine_here().name == "mine"
    assert set(machine_here().links) == {"node", "network"}
    stored.write(replace(mine, fingerprint=Fingerprint(cpu="another")), stored.own_path(tmp_path))
    assert machine_here() == uncalibrated, "of another CPU"


def test_one_rank_has_nothing_to_choose() -> None:
    decision = decided(typical(), ranks=1)
    assert decision.plan.prediction is not None
    assert decision.plan.prediction.seconds == pytest.approx(64 * 64 * 4096 * 5e-9)


def test_no_iterations_no_prediction() -> None:
    assert decided(typical(), nest=gauss_seidel, arguments=[of_shape(9, 9), 0]).plan.prediction is None


def test_many_ranks_are_planned_as_well() -> None:
    plan = decided(with_network(1e-6, 1e10), ranks=4096).plan
    assert plan.ranks == 4096
    assert plan.prediction is not None


def test_a_million_ranks_are_planned_as_well() -> None:
    plan = decided(
        with_network(1e-6, 1e10), nest=gauss_seidel, arguments=[of_shape(4001, 4002), 3], ranks=1_000_000
    ).plan
    assert plan.ranks == 1_000_000
    assert plan.prediction is not None
    assert any("1,000,000 ranks are counted on from" in reason for reason in plan.reasons)


def test_the_busiest_in_a_triangle_stands_for_all() -> None:
    few = geometry(triangle, [of_shape(401, 401)], 16, tile=25, cut=Cut(0, (1, 16)))
    busiest, share = few.busiest
    assert busiest.shape == (1, 1, few.steps)
    assert busiest[0, 0].tolist() == pytest.approx(few.points.max(axis=(0, 1)).tolist(), rel=0.05)
    assert share == pytest.approx(few.points.mean() / few.points.max(axis=(0, 1)).mean(), rel=0.05)


def test_the_busiest_of_uneven_blocks_stands_for_all() -> None:
    made = geometry(gauss_seidel, [of_shape(42, 50), 3], 12, tile=10, cut=Cut(1, (12, 1)))
    busiest, share = made.busiest
    assert busiest[0, 0].tolist() == made.points.max(axis=(0, 1)).tolist()
    assert share == pytest.approx(made.points.mean() / busiest.mean())


def test_more_ranks_than_any_machine_has_are_refused() -> None:
    with pytest.raises(RefusedError, match="expected at most 16,777,216"):
        make_plan(bound_to(gauss_seidel, of_shape(40, 50), 3), gauss_seidel.dependences, 10**30)


def test_problems_keep_given_blocks() -> None:
    bound = bound_to(gauss_seidel, of_shape(40, 50), 3)
    given = make_plan(bound, gauss_seidel.dependences, 3, Wishes(grid=(3, 1))).partition
    plan = make_plan(bound, gauss_seidel.dependences, 3, partition=given)
    problem = Problem.of(plan, bound, typical(), whole_nodes(typical()), Wishes(), given)
    assert problem.possible == [Cut(plan.mapping, (3, 1))]
    assert problem.geometry(problem.possible[0], 4).partition == given


# -- measuring ---------------------------------------------------------------------------------------------------------


def test_what_was_measured_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAPWING_CACHE", str(tmp_path))
    calls: list[Any] = []

    def counted(bound: Any, dependences: Any, candidates: Sequence[Any], budget: float, **options: Any) -> list[Probe]:
        calls.append(list(candidates))
        return [Probe(b, m, z, 100, 10, 800, Quantity(1e-6), ()) for b, m, z in candidates]

    monkeypatch.setattr(probing, "probe", counted)
    bound = bound_to(sqrt3d, of_shape(9, 9, 99))
    first, second = Shape((8, 8, 98), 2, 7), Shape((8, 8, 98), 2, 14)
    prober = probing.Prober(bound, sqrt3d.dependences, 2)
    assert prober([first], 0.1)[first].seconds_per_point == pytest.approx(1e-8)
    assert len(calls) == 2, "on both cores at once"
    later = probing.Prober(bound, sqrt3d.dependences, 2)
    assert set(later([first], 0.1)) == {first}
    assert len(calls) == 2
    assert set(later([first, second], 0.1)) == {first, second}
    assert calls[-1] == [((8, 8, 98), 2, 14)]
    assert set(probing.Prober(bound, sqrt3d.dependences, 1)([], 0.1)) == set(), "one core alone is faster"
    later([first], 0.1, again=True)
    assert calls[-1] == [((8, 8, 98), 2, 7)]


def test_cores_that_come_by_different_faces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a parallelogram not every step has every message, and each core does as many steps as it has time for."""
    monkeypatch.setenv("LAPWING_CACHE", str(tmp_path))
    faces = [FaceCost(0, d, 10, 1, Quantity(1e-8), Quantity(2e-8)) for d in (1, -1)]
    seen = iter([tuple(faces), tuple(faces[1:])])
    monkeypatch.setattr(
        probing, "probe", lambda b, d, cs, s, **o: [Probe(*cs[0], 100, 10, 800, Quantity(1e-6), next(seen))]
    )
    shape = Shape((8, 8, 98), 2, 7)
    copies = probing.Prober(bound_to(sqrt3d, of_shape(9, 9, 99)), sqrt3d.dependences, 2)([shape], 0.1)[shape].copies
    assert copies == {(0, 1): pytest.approx((1e-9, 2e-9)), (0, -1): pytest.approx((1e-9, 2e-9))}


def test_spoilt_memories_are_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAPWING_CACHE", str(tmp_path))
    monkeypatch.setattr(
        probing, "probe", lambda b, d, cs, s, **o: [Probe(*c, 100, 10, 800, Quantity(1e-6), ()) for c in cs]
    )
    bound, shape = bound_to(sqrt3d, of_shape(9, 9, 99)), Shape((8, 8, 98), 2, 7)
    probing.Prober(bound, sqrt3d.dependences, 2)([shape], 0.1)
    (file,) = (tmp_path / "probes").iterdir()
    for text in ("", "[]", '{"version": 1, "shapes": [{}]}', '{"version": 0, "shapes": []}'):
        file.write_text(text)
        assert set(probing.Prober(bound, sqrt3d.dependences, 2)([shape], 0.1)) == {shape}


def test_short_calls_are_planned_by_rules_of_thumb(monkeypatch: pytest.MonkeyPatch) -> None:
    def decider(*shape: int) -> Decider:
        bound = bound_to(sqrt3d, of_shape(*shape))
        return Decider(
            bound, sqrt3d.dependences, 2, whole_nodes(typical()), {}, lambda _: None, typical(), measures=False
        )

    assert decider(9, 9, 99).for_call(Wishes()).prediction is None
    assert decider(257, 257, 1025).for_call(Wishes()).prediction is not None


def test_choices_made_with_lists_and_numpy_integers_are_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAPWING_CACHE", str(tmp_path))
    bound = bound_to(sqrt3d, of_shape(129, 129, 1025))
    given = sqrt3d.using(grid=[np.int64(2), 1], tile=np.int64(64))  # type: ignore[arg-type]
    plan = given.planned(bound, 2, 2, 2, {}).plan
    assert (plan.tile, plan.grid) == (64, (2, 1))
    assert plan.prediction is not None
    assert given.planned(bound, 2, 2, 2, {}).plan is plan


def test_a_plan_can_be_had_without_a_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LAPWING_CACHE", str(tmp_path))
    monkeypatch.setenv("LAPWING_CC", "false")
    bound = bound_to(sqrt3d, of_shape(65, 65, 1025))
    plan = Decider(bound, sqrt3d.dependences, 2, whole_nodes(typical()), {}, lambda _: None, typical())(Wishes())
    assert plan.prediction is not None
    assert "estimated from its operations" in str(plan)


def test_memories_of_other_shapes_do_not_stop_a_plan() -> None:
    bound = bound_to(sqrt3d, of_shape(65, 65, 1025))

    def remembered(shapes: Sequence[Shape], budget: float, again: bool) -> Mapping[Shape, Sample]:
        return {Shape((5, 5, 5), 0, 1): Sample(1e-9, {})}

    plan = decide(bound, sqrt3d.dependences, 2, Wishes(), typical(), whole_nodes(typical()), remembered).plan
    assert plan.prediction is not None
