"""The tables a rank hands to the runtime."""

from __future__ import annotations

from typing import Any

import pytest

import lapwing as lw
from lapwing.loopnest.array_shape import ArrayShape
from lapwing.runtime.binding.native import Program
from lapwing.runtime.binding.program import RankProgram, rank_program
from lapwing.tiling.faces import Faces


@lw.nest
def gauss_seidel(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


@lw.nest
def upwind(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0]):
            for j in range(1, u.shape[1]):
                u[i, j] = 0.5 * u[i, j] + 0.25 * u[i - 1, j] + 0.25 * u[i, j - 1]


@lw.nest
def upstream(u, sweeps):
    for t in range(sweeps):
        for i in range(0, u.shape[0] - 1):
            for j in range(0, u.shape[1] - 1):
                u[i, j] = 0.5 * u[i, j] + 0.25 * (u[i + 1, j] + u[i, j + 1])


def program_of(
    nest: lw.Nest, shape: tuple[int, int], sweeps: int, rank: int, grid: tuple[int, ...], tile: int
) -> RankProgram:
    arguments = nest.arguments(ArrayShape("float64", shape), sweeps)
    bound = nest.bind(arguments)
    plan = nest.using(grid=grid, tile=tile).plan(*arguments.values(), ranks=grid[0] * grid[-1])
    return rank_program(Faces(bound, plan.partition, plan.mapping, plan.tile), rank, plan.ranks)


def channel(program: Program, side: str, number: int) -> dict[str, Any]:
    """A channel's numbers, with those of its messages."""
    found = getattr(program, f"{side}_channels")[number]
    messages = [program.messages[found.first_message + k] for k in range(found.messages)]
    return {
        **{name: getattr(found, name) for name in ("peer", "lag", "depth", "largest", "there")},
        "messages": [(m.step, m.free_step, m.bytes) for m in messages],
    }


def test_a_space_loop_pipelined() -> None:
    program = program_of(gauss_seidel, (9, 10), 3, 0, (2, 1), 4).c
    assert (program.sweeps, program.steps, program.batch, program.apart) == (3, 2, 1, 1)
    assert (program.incoming, program.outgoing) == (1, 1)
    assert channel(program, "outgoing", 0) == {
        "peer": 1, "lag": 0, "depth": 2, "largest": 32, "there": None, "messages": [(0, -1, 32), (1, 0, 32)],
    }  # fmt: skip
    assert channel(program, "incoming", 0) == {
        "peer": 1, "lag": 1, "depth": 2, "largest": 32, "there": None, "messages": [(0, 0, 32), (1, 0, 32)],
    }  # fmt: skip


def test_the_next_sweep_waits_for_what_it_overwrites() -> None:
    """Of the lower ranks: their first rows are sent after their last steps. In one sweep nothing is sent."""
    rewrites = [program_of(upstream, (9, 13), 3, rank, (2, 2), 3).c.phase[0].rewrites for rank in range(4)]
    assert rewrites == [0, 0, 1, 1]
    assert program_of(upstream, (9, 13), 1, 2, (2, 2), 3).c.phase[0].rewrites == 0
    assert program_of(gauss_seidel, (9, 10), 3, 0, (2, 1), 4).c.phase[0].rewrites == 0


def test_one_sweep_needs_no_old_values() -> None:
    """The tables hold the messages of its channels alone, one after the other, as exported programs read them."""
    for rank, (incoming, outgoing) in enumerate([(0, 1), (1, 1), (1, 0)]):
        program = program_of(gauss_seidel, (9, 11), 1, rank, (3, 1), 4).c
        assert (program.incoming, program.outgoing) == (incoming, outgoing)
        channels = [*program.incoming_channels[:incoming], *program.outgoing_channels[:outgoing]]
        assert [c.first_message for c in channels] == [0, channels[0].messages][: len(channels)]


def test_time_pipelined() -> None:
    """Bytes are those of one sweep; the runtime knows how many travel together, and that the last batch is shorter."""
    program = program_of(upwind, (9, 11), 7, 3, (2, 2), 3).c
    assert (program.sweeps, program.steps, program.batch, program.apart) == (7, 1, 3, 0)
    assert [program.phase[0].sweep_points[k] for k in range(7)] == list(range(7))
    box = program.step_boxes[0]
    assert (box.lo[1:3], box.hi[1:3]) == ([5, 6], [9, 11])
    assert (program.incoming, program.outgoing) == (2, 0)
    assert channel(program, "incoming", 0) == {
        "peer": 1, "lag": 0, "depth": 3, "largest": 40, "there": None, "messages": [(0, 0, 40)],
    }  # fmt: skip
    assert channel(program, "incoming", 1)["messages"] == [(0, 0, 32)]


def test_messages_that_mpi_cannot_count_are_refused() -> None:
    assert program_of(upwind, (3, 1001), 260_000, 0, (2, 1), 260_000).c.batch == 260_000
    with pytest.raises(lw.RefusedError, match=r"a message of 2240000000 bytes.*Use smaller tiles or more ranks\."):
        program_of(upwind, (3, 1001), 280_000, 0, (2, 1), 280_000)
