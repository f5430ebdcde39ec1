"""Linear schedules and completion times: the papers' figures, and best heights and blocks against a scan."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from lapwing.errors import RefusedError
from lapwing.theory.completion import (
    MessageCost,
    StepCost,
    best_height,
    blocking_costs,
    blocking_steps,
    blocking_time,
    communication_time,
    dma_time,
    overlapped_costs,
    overlapped_steps,
    overlapped_time,
    time_at_height,
)
from lapwing.theory.linear import (
    LinearSchedule,
    blocking_vector,
    check_blocking,
    check_overlapped,
    linear_schedule,
    overlapped_vector,
)
from lapwing.theory.out_of_core import (
    OutOfCoreMachine,
    Wavefront,
    best_block,
    filter_curvature,
    filter_slope,
    filter_time,
    largest_block,
    mean_filter,
    most_elements,
    printed_best_block,
)

UNIT = ((1, 0, 0), (0, 1, 0), (0, 0, 1))

# -- linear schedules --------------------------------------------------------------------------------------------------


def test_the_blocking_schedule_of_a_grid() -> None:
    """4 x 4 x 32 tiles: the last is done in step 3 + 3 + 31 (P0, section 3)."""
    bounds = [(0, 4), (0, 4), (0, 32)]
    schedule = linear_schedule(blocking_vector(3), bounds, UNIT, mapping=2)
    assert schedule == LinearSchedule((1, 1, 1), 0, 1)
    assert schedule.step((3, 3, 31)) == 37
    assert schedule.steps(bounds) == 38 == blocking_steps((3, 3, 31))


def test_the_overlapped_schedule_of_a_grid() -> None:
    bounds = [(0, 4), (0, 4), (0, 32)]
    assert overlapped_vector(3, 1) == (2, 1, 2)
    schedule = linear_schedule(overlapped_vector(3, 2), bounds, UNIT, mapping=2)
    check_overlapped(schedule, [*UNIT, (1, 1, 0)], 2)
    assert schedule.step((1, 2, 5)) == 11
    assert schedule.steps(bounds) == 44 == overlapped_steps((3, 3, 31), 2)


def test_steps_are_counted_from_the_first_tile() -> None:
    schedule = linear_schedule((1, -1), [(2, 5), (-1, 3)], [(1, 0), (0, -1)])
    assert schedule.start == -min(a - b for a, b in itertools.product(range(2, 5), range(-1, 3)))
    assert schedule.step((2, 2)) == 0
    assert schedule.steps([(2, 5), (-1, 3)]) == 6


def test_displacement_packs_steps() -> None:
    """Pi = [2 4] over dependences that all advance by 2 or more does two tiles' worth of times in one step (P0, section 2.5)."""
    schedule = linear_schedule((2, 4), [(0, 4), (0, 4)], [(1, 0), (0, 1)])
    assert schedule.displacement == 2
    assert schedule.step((1, 1)) == 3
    assert schedule.steps([(0, 4), (0, 4)]) == 10
    check_blocking(schedule, [(1, 0), (0, 1)])


def test_tiles_that_share_a_processor_take_turns() -> None:
    """Without a dependence along the mapping dimension the displacement alone would do two tiles of a processor at once."""
    schedule = linear_schedule((2, 1), [(0, 4), (0, 4)], [(1, 0)], mapping=1)
    assert schedule.displacement == 1
    alone = linear_schedule((2, 1), [(0, 4), (0, 4)], [(1, 0)])
    assert alone.displacement == 2
    assert alone.step((0, 0)) == alone.step((0, 1))
    check_blocking(alone, [(1, 0)])
    with pytest.raises(RefusedError, match=r"tile dependence \[0, 1\] leads 0 steps on"):
        check_blocking(alone, [(1, 0)], mapping=1)


def test_the_blocking_schedule_is_too_hasty_for_overlapping() -> None:
    schedule = linear_schedule((1, 1, 1), [(0, 4)] * 3, UNIT, mapping=2)
    check_blocking(schedule, UNIT, mapping=2)
    with pytest.raises(
        RefusedError, match=r"tile dependence \[1, 0, 0\] leads 1 steps on, expected at least two steps"
    ):
        check_overlapped(schedule, UNIT, mapping=2)


# -- completion times --------------------------------------------------------------------------------------------------

# P0's cluster as simulated: 0.441 us a point, 4 bytes an element, 100 Mbit/s, 60 us + 10 ns a byte of CPU per message.
SECONDS_A_POINT = 0.441e-6
FAST_ETHERNET = MessageCost(startup=60e-6, startup_per_byte=10e-9, latency=60e-6, transmit_per_byte=8 / 100e6)
# side of a processor's block, length, z and seconds of eq. 3, z and seconds of eq. 4
SPACES = [
    (4, 16384, 384, 0.209, 256, 0.168),
    (4, 32768, 512, 0.393, 256, 0.309),
    (8, 4096, 64, 0.180, 64, 0.162),
]


@pytest.mark.parametrize(("side", "length", "z3", "eq3", "z4", "eq4"), SPACES)
def test_p0s_spaces(side: int, length: int, z3: int, eq3: float, z4: int, eq4: float) -> None:
    """4 x 4 processors; each step two messages of side x z elements come and two go."""
    last = (3, 3, length / z3 - 1)
    communicate = FAST_ETHERNET.blocking_step(2, 4 * side * z3)
    assert round(blocking_time(blocking_steps(last), side**2 * z3 * SECONDS_A_POINT, communicate), 3) == eq3
    last = (3, 3, length / z4 - 1)
    step = FAST_ETHERNET.overlapped_step(2, 4 * side * z4, side**2 * z4 * SECONDS_A_POINT)
    assert round(overlapped_steps(last, 2) * step, 3) == eq4


@pytest.mark.parametrize(("side", "length"), [(space[0], space[1]) for space in SPACES])
@pytest.mark.parametrize("bandwidth", [100e6, 5e6])
def test_costs_as_functions_of_the_height(side: int, length: int, bandwidth: float) -> None:
    message = replace(FAST_ETHERNET, transmit_per_byte=8 / bandwidth)
    per_height = side**2 * SECONDS_A_POINT
    blocking = blocking_costs(message, 2, 4 * side, per_height)
    overlapped = overlapped_costs(message, 2, 4 * side, per_height)
    for z in (1, 7, 64, 1000):
        last = (3, 3, length / z - 1)
        communicate = message.blocking_step(2, 4 * side * z)
        expected = blocking_time(blocking_steps(last), per_height * z, communicate)
        assert time_at_height(z, length, 6, blocking) == pytest.approx(expected)
        expected = overlapped_steps(last, 2) * message.overlapped_step(2, 4 * side * z, per_height * z)
        assert time_at_height(z, length, 12, overlapped) == pytest.approx(expected)


def test_equations_of_the_papers() -> None:
    assert communication_time(3.0, 4.0) == 7.0
    assert blocking_time(38, 2.0, 3.0) == 190.0
    assert overlapped_time(44, 2.0, 3.0) == 132.0
    assert overlapped_time(44, 3.0, 2.0) == 132.0
    assert overlapped_steps((2, 2, 9), mapping=2) == 2 * (2 + 2) + 9 + 1  # P0, eq. 6
    # P0, eq. 7, where t_comp >= t_comm: steps (t_start_dma + t_comp + t_sync).
    assert dma_time(18, 500e-6, 400e-6, 49.2e-6, 4 * 18.8e-6) == pytest.approx(18 * (49.2e-6 + 500e-6 + 75.2e-6))
    assert dma_time(18, 500e-6, 600e-6, 49.2e-6, 4 * 18.8e-6) == pytest.approx(18 * (49.2e-6 + 600e-6 + 75.2e-6))


COSTS = {
    "compute": [StepCost(1e-3, 2e-2)],
    "network slower": [StepCost(1e-3, 2e-2), StepCost(3e-3, 0.0)],
    "crossing": [StepCost(1e-3, 2e-2), StepCost(2.2e-3, 0.0)],
    "network faster": [StepCost(1e-3, 2e-2), StepCost(1e-4, 1e-3)],
    "latency alone": [StepCost(0.0, 2e-2)],
    "no latency": [StepCost(1e-3, 0.0)],
    "free": [StepCost(0.0, 0.0)],
}


@pytest.mark.parametrize("fill", [0, 3, 12])
@pytest.mark.parametrize("name", COSTS)
def test_the_best_height_is_not_beaten_by_a_scan(name: str, fill: int) -> None:
    length, costs = 2000, COSTS[name]
    best = best_height(length, fill, costs)
    assert 1 <= best <= length
    scanned = min(time_at_height(1 + k / 8, length, fill, costs) for k in range(8 * (length - 1) + 1))
    found = time_at_height(best, length, fill, costs)
    assert found <= scanned * (1 + 1e-12)
    assert found >= scanned * (1 - 1e-3)


def test_one_cost_has_the_closed_form() -> None:
    assert best_height(2000, 6, COSTS["compute"]) == pytest.approx(math.sqrt(2000 * 2e-2 / (6 * 1e-3)))
    assert best_height(2000, 0, COSTS["compute"]) == 2000  # no pipeline to fill


# -- out of core -------------------------------------------------------------------------------------------------------

N = 32768
# Double precision, 11 MB/s of network, 100 Mflop/s: P3's cluster and Fast Ethernet.
P3 = OutOfCoreMachine(
    processors=4, speed=100e6, receive_latency=50e-6, send_latency=70e-6, network_per_element=8 / 11e6,
    io_latency=5e-3, io_per_element=8 / 40e6,
)  # fmt: skip
MACHINES = {
    "P3": P3,
    "two": replace(P3, processors=2, speed=2e9, network_per_element=8 / 1e9),
    "many": replace(P3, processors=64, io_latency=1e-4),
    "shared": replace(P3, disk_sharing=4),
}
machines = pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
sweep_counts = pytest.mark.parametrize("sweeps", [1, 2, 7])


def test_memory_of_three_blocks() -> None:
    block = largest_block(10_000, bottom=20, top=100, right=30, rows=50)
    assert block == 65
    assert most_elements(20, 100, 30, 50, block) <= 10_000 < most_elements(20, 100, 30, 50, block + 1)
    # P3, section 5: N = 32768, blocks of 1024 "lead to a memory consumption of 192 MB": 3 x 8192 x 1024 doubles.
    assert most_elements(0, 0, 0, N // 4, 1024) * 8 == 192 * 2**20


def test_costs_of_one_operation() -> None:
    assert P3.communicate(11e6 / 8) == pytest.approx(1 + 120e-6)
    assert P3.transfer(40e6 / 8) == pytest.approx(1.005)
    assert P3.compute(1e8) == 1
    assert replace(P3, disk_sharing=4).transfer(40e6 / 8) == pytest.approx(4.005)


@machines
@sweep_counts
@pytest.mark.parametrize("contiguous", [True, False])
@pytest.mark.parametrize("block", [16, 1000])
def test_the_total_is_the_sum_of_its_phases(
    machine: OutOfCoreMachine, sweeps: int, contiguous: bool, block: int
) -> None:
    """Eq. 12 and 14 against eq. 8 to 11 and 13, for a wavefront of no particular shape; eq. 15 and 19 against eq. 12 and 14."""
    for model in (
        Wavefront(N, 5000, 3 * N, 2, 9, machine, contiguous),
        mean_filter(N, machine, contiguous),
    ):
        phases = (
            model.synchronisation(block)
            + model.load(block)
            + sweeps * (model.steady_state(block) + model.flush(block))
            + (sweeps - 1) * model.transition(block)
        )
        assert model.total(block, sweeps) == pytest.approx(phases, rel=1e-12)
    assert filter_time(N, block, machine, sweeps, contiguous) == pytest.approx(phases, rel=1e-12)


@machines
@sweep_counts
def test_the_best_block_is_a_minimum(machine: OutOfCoreMachine, sweeps: int) -> None:
    best = best_block(N, machine, sweeps)
    assert abs(filter_slope(N, best, machine, sweeps)) < 1e-9 * filter_curvature(N, best, machine, sweeps) * best
    least = filter_time(N, best, machine, sweeps)
    scanned = min(filter_time(N, block, machine, sweeps) for block in range(1, N + 1, 7))
    assert least <= scanned
    assert least == pytest.approx(scanned, rel=1e-3)


@machines
@sweep_counts
def test_slope_and_curvature_are_derivatives(machine: OutOfCoreMachine, sweeps: int) -> None:
    block, step = 300.0, 1e-2
    before, after = (filter_time(N, block + s, machine, sweeps) for s in (-step, step))
    # The second difference of times of some 100 s would drown in rounding, so curvature is the difference of slopes.
    assert filter_slope(N, block, machine, sweeps) == pytest.approx((after - before) / (2 * step), rel=1e-4, abs=1e-9)
    before, after = (filter_slope(N, block + s, machine, sweeps) for s in (-step, step))
    assert filter_curvature(N, block, machine, sweeps) == pytest.approx((after - before) / (2 * step), rel=1e-4)


@pytest.mark.parametrize("latency", [1e-3, 5e-3, 2e-2])
def test_the_printed_block_is_too_small(latency: float) -> None:
    """Whatever beta_io: P3's eq. 17 as printed is 7.7 times too small, and what depends on NB takes 3.9 times as long."""
    machine = replace(P3, io_latency=latency)
    best, printed = best_block(N, machine), printed_best_block(machine)
    assert round(best / printed, 1) == 7.7
    # The rest of eq. 15: what is left where both terms in NB are 0.
    idle = replace(machine, speed=1e30)
    rest = filter_time(N, 1.0, idle) - 2 * N * latency - 3 * machine.network_per_element
    ratio = (filter_time(N, printed, machine) - rest) / (filter_time(N, best, machine) - rest)
    assert round(ratio, 1) == 3.9


@sweep_counts
def test_the_printed_block_is_no_zero(sweeps: int) -> None:
    assert filter_slope(N, printed_best_block(P3, sweeps), P3, sweeps) < 0
    assert printed_best_block(P3, sweeps) < best_block(N, P3, sweeps) / 5


def test_a_shared_disk_is_not_divided_by_p() -> None:
    """With one disk among all, the matrix passes through it twice, however many processes share the work."""
    free = replace(P3, io_latency=0.0, network_per_element=0.0, receive_latency=0.0, send_latency=0.0, speed=1e30)
    for processors in (1, 4, 16):
        shared = replace(free, processors=processors, disk_sharing=processors)
        own = replace(free, processors=processors)
        both_ways = 2 * N * N * P3.io_per_element
        assert filter_time(N, 64, shared) == pytest.approx(both_ways + processors * N * P3.io_per_element)
        assert filter_time(N, 64, own) == pytest.approx(both_ways / processors + N * P3.io_per_element)
    assert best_block(N, replace(P3, disk_sharing=4)) == best_block(N, P3)


def test_a_scattered_top_frontier_pays_a_latency_an_element() -> None:
    for sweeps in (1, 3):
        more = filter_time(N, 512, P3, sweeps, contiguous=False) - filter_time(N, 512, P3, sweeps)
        assert more == pytest.approx(sweeps * (N - 1) * P3.io_latency)


def test_the_best_block_stays_within_memory_and_matrix() -> None:
    assert best_block(N, P3, most=100) == 100
    assert best_block(N, replace(P3, io_latency=1e6)) == N
    assert best_block(N, replace(P3, io_latency=0.0)) == 1
    one = replace(P3, processors=1)
    assert best_block(N, one) == N  # no pipeline
    assert best_block(N, one, most=100) == 100
    assert best_block(N, one, sweeps=2) < N


# -- what is refused ---------------------------------------------------------------------------------------------------

GRID = [(0, 4), (0, 4)]
REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "backwards": (
        lambda: linear_schedule((1, 1), GRID, [(1, 0), (1, -1)]),
        "schedule Pi = [1, 1]: its product with tile dependence [1, -1] is 0, expected >= 1",
    ),
    "along the mapping": (
        lambda: linear_schedule((1, 0), GRID, [(1, 0)], mapping=1),
        "its product with tile dependence [0, 1] is 0",
    ),
    "inside a tile": (lambda: linear_schedule((1, 1), GRID, [(0, 0)]), "tile dependence [0, 0] is 0"),
    "dimensions of a space": (
        lambda: linear_schedule((1, 1), GRID[:1], [(1, 0)]),
        "the tile space has 1 dimensions, Pi",
    ),
    "no tile": (
        lambda: linear_schedule((1, 1), [(0, 4), (3, 3)], []),
        "dimension 1 of the tile space is the range [3, 3)",
    ),
    "length of a dependence": (lambda: linear_schedule((1, 1), GRID, [(1,)]), "tile dependence [1] has 1 components"),
    "mapping": (lambda: overlapped_vector(2, 2), "mapping dimension 2: expected 0 to 1"),
    "mapping of a schedule": (
        lambda: linear_schedule((1, 1), GRID, [], mapping=-1),
        "mapping dimension -1: expected 0 to 1",
    ),
    "mapping of steps": (lambda: overlapped_steps((1, 2), 3), "mapping dimension 3: expected 0 to 1"),
    "length": (lambda: best_height(0, 6, [StepCost(1, 1)]), "a mapping dimension of 0 points"),
    "not a number": (lambda: best_height(math.nan, 6, [StepCost(1, 1)]), "a mapping dimension of nan points"),
    "fill": (lambda: best_height(9, -1, [StepCost(1, 1)]), "a fill of -1 steps"),
    "cost": (lambda: best_height(9, 1, [StepCost(-1, 1)]), "expected at least one, none of them negative"),
    "no cost": (lambda: best_height(9, 1, []), "costs of a step []"),
    "memory": (lambda: largest_block(100, 10, 20, 30, 20), "memory for 100 elements: expected room for 120"),
    "processors": (lambda: replace(P3, processors=0), "0 processors"),
    "sharing": (lambda: replace(P3, disk_sharing=5), "4 processors, 5 of them on one disk"),
    "speed": (lambda: replace(P3, speed=0), "speed 0 operations a second"),
    "latency": (lambda: replace(P3, io_latency=-1e-3), "io_latency -0.001: expected a number of seconds"),
    "bandwidth": (lambda: replace(P3, network_per_element=math.nan), "network_per_element nan"),
    "block": (lambda: filter_time(N, N + 1, P3), "a block of 32769 columns of 32768"),
    "no block": (lambda: mean_filter(N, P3).total(0), "a block of 0 columns"),
    "sweeps": (lambda: filter_time(N, 64, P3, sweeps=0), "0 sweeps: expected at least one"),
    "no pipeline": (lambda: printed_best_block(replace(P3, processors=1)), "expected a pipeline"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises(RefusedError, match=re.escape(message)):
        call()
