"""What ranks tell each other, on examples small enough to work out by hand."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.tiling.faces import Channel, Faces, reads_ahead
from lapwing.tiling.partition import Partition, balanced_cuts, factorisations


@lw.nest
def gauss_seidel(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


@lw.nest
def red_black(u, sweeps):
    for t in range(2 * sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                if (i + j + t) % 2 == 0:
                    u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


@lw.nest
def red_black_rows(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                if i % 2 == t % 2:
                    u[i, j] = 0.5 * (u[i - 1, j] + u[i + 1, j]) + u[i, j - 1]


@lw.nest
def sqrt3d(a):
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            for k in range(1, a.shape[2]):
                a[i, j, k] = np.sqrt(a[i - 1, j, k]) + np.sqrt(a[i, j - 1, k]) + np.sqrt(a[i, j, k - 1])


@lw.nest
def diagonal(a):
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            for k in range(a.shape[2]):
                a[i, j, k] = 0.5 * a[i - 1, j - 1, k]


@lw.nest
def three_above(u):
    for i in range(3, u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = u[i - 1, j] + u[i - 2, j] + u[i - 3, j]


@lw.nest
def upwards(u):
    for i in range(u.shape[0] - 2, -1, -1):
        for j in range(u.shape[1]):
            u[i, j] = 0.5 * u[i + 1, j]


@lw.nest
def far_right(u, sweeps):
    for t in range(sweeps):
        for i in range(u.shape[0] - 1):
            for j in range(u.shape[1] - 2):
                u[i, j] = u[i + 1, j + 2]


@lw.nest
def right(u, sweeps):
    for t in range(sweeps):
        for i in range(u.shape[0]):
            for j in range(u.shape[1] - 1):
                u[i, j] = 0.5 * u[i, j + 1]


@lw.nest
def upstream(u, sweeps):
    for t in range(sweeps):
        for i in range(0, u.shape[0] - 1):
            for j in range(0, u.shape[1] - 1):
                u[i, j] = 0.5 * u[i, j] + 0.25 * (u[i + 1, j] + u[i, j + 1])


@lw.nest
def far_left(u):
    for i in range(1, u.shape[0]):
        for j in range(6, u.shape[1]):
            u[i, j] = u[i - 1, j - 6] + u[i - 1, j]


@lw.nest
def upwind(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0]):
            for j in range(1, u.shape[1]):
                u[i, j] = u[i, j] - 0.25 * (u[i, j] - u[i - 1, j]) - 0.25 * (u[i, j] - u[i, j - 1])


@lw.nest
def two_writes(u, v):
    for i in range(1, u.shape[0] - 2):
        for j in range(u.shape[1]):
            u[i, j] = u[i - 1, j] + v[i, j]
            u[i + 1, j] = 0.5 * v[i - 1, j]
            v[i, j] = 1.0


def faces_of(nest: lw.Nest, *arguments: Any, grid: tuple[int, ...], mapping: int | None, tile: int) -> Faces:
    """The faces under blocks, a mapping loop and a tile that are given, whatever the planner would choose."""
    bound = nest.bind(nest.arguments(*arguments))
    loops = bound.nest.space_loops
    cuts = []
    for loop, (low, high), parts in zip(loops, bound.domain.box[bound.nest.sweep_depth :], grid, strict=True):
        cuts.append(balanced_cuts(low, high, parts) if loop.step == 1 else balanced_cuts(1 - high, 1 - low, parts))
    return Faces(bound, Partition(tuple(cuts), tuple(loop.step for loop in loops)), mapping, tile)


def all_channels(faces: Faces) -> dict[tuple[int, int], Channel]:
    """Every channel by source and target, after checking that both ends see the same ones."""
    ranks = range(faces.partition.ranks)
    out = {(c.source, c.target): c for rank in ranks for c in faces.outgoing(rank)}
    into = {(c.source, c.target): c for rank in ranks for c in faces.incoming(rank)}
    assert out == into
    return out


def messages(channel: Channel) -> list[tuple[int, int, list[Any], int]]:
    return [(m.made, m.needed, [p.box for p in m.parts], m.bytes) for m in channel.messages]


def test_steps_cut_the_block_into_tiles() -> None:
    faces = faces_of(gauss_seidel, np.zeros((9, 11)), 3, grid=(2, 1), mapping=1, tile=4)
    assert faces.steps(0) == (((1, 4), (1, 5)), ((1, 4), (5, 9)), ((1, 4), (9, 10)))
    assert faces.steps(1)[0] == ((4, 8), (1, 5))


def test_gauss_seidel_on_two_ranks() -> None:
    """New values of the last row go down within a sweep; old values of the first row go up for the next sweep."""
    channels = all_channels(faces_of(gauss_seidel, np.zeros((9, 10)), 3, grid=(2, 1), mapping=1, tile=4))
    assert set(channels) == {(0, 1), (1, 0)}
    down, up = channels[0, 1], channels[1, 0]
    assert (down.lag, down.depth) == (0, 2)
    assert messages(down) == [(0, 0, [((3, 4), (1, 5))], 32), (1, 1, [((3, 4), (5, 9))], 32)]
    assert (up.lag, up.depth) == (1, 2)
    assert messages(up) == [(0, 0, [((4, 5), (1, 5))], 32), (1, 1, [((4, 5), (5, 9))], 32)]


def test_gauss_seidel_in_three_sweeps_at_once() -> None:
    """The rank before hands on what it wrote in any of them, each a row higher; the one after, what is final."""
    faces = replace(faces_of(gauss_seidel, np.zeros((14, 22)), 9, grid=(1, 2), mapping=0, tile=6), joined=3)
    assert [faces.block(rank)[1] for rank in range(2)] == [(1, 11), (9, 21)]
    right, left = (all_channels(faces)[pair] for pair in ((0, 1), (1, 0)))
    assert (right.lag, right.depth, left.lag) == (0, 2, 1)
    assert messages(right) == [
        (0, 0, [((1, 7), (8, 11))], 144),
        (1, 1, [((7, 13), (8, 11)), ((6, 7), (8, 10)), ((5, 6), (8, 9))], 168),
    ]
    assert messages(left) == [(0, 0, [((1, 5), (9, 12))], 96), (1, 0, [((5, 13), (9, 12))], 192)]
    assert not faces.is_apart(0, faces.incoming(0))


def test_points_that_do_not_wait_for_each_other_are_exchanged_between_sweeps() -> None:
    """Red points need black ones of the sweep before, on both sides."""
    faces = faces_of(red_black, np.zeros((14, 14)), 3, grid=(1, 3), mapping=0, tile=4)
    channels = all_channels(faces)
    assert channels.keys() == {(0, 1), (1, 0), (1, 2), (2, 1)}
    for channel in channels.values():
        assert (channel.lag, channel.exchange) == (1, 0)
        assert [(m.made, m.needed) for m in channel.messages] == [(0, 0), (1, 1), (2, 2)]


def test_rows_of_two_colours_are_exchanged_where_rows_are_cut() -> None:
    """Of rows in two colours the points of a row wait for each other, and none for another row."""
    for grid, lags in (((2, 1), {(0, 1): 1, (1, 0): 1}), ((1, 2), {(0, 1): 0})):
        faces = faces_of(red_black_rows, np.zeros((14, 14)), 3, grid=grid, mapping=grid.index(1), tile=3)
        assert {pair: channel.lag for pair, channel in all_channels(faces).items()} == lags


def test_old_values_are_needed_no_earlier_than_they_are_touched() -> None:
    up = all_channels(faces_of(gauss_seidel, np.zeros((9, 14)), 3, grid=(2, 1), mapping=1, tile=4))[1, 0]
    assert [(m.made, m.needed, m.last) for m in up.messages] == [(0, 0, 0), (1, 1, 1), (2, 2, 2)]


def test_old_values_two_columns_on_are_needed_a_step_early() -> None:
    """The last two columns of a step of the upper rank read the first two of the lower rank's next step."""
    up = all_channels(faces_of(far_right, np.zeros((9, 15)), 3, grid=(2, 1), mapping=1, tile=4))[1, 0]
    assert [(m.made, m.needed, m.last) for m in up.messages] == [(0, 0, 0), (1, 0, 1), (2, 1, 2), (3, 2, 2)]


def test_new_values_from_afar_are_used_for_long() -> None:
    """Six columns back are two steps back, so a message's columns are read for three steps."""
    (down,) = all_channels(faces_of(far_left, np.zeros((9, 22)), grid=(2, 1), mapping=1, tile=4)).values()
    assert [(m.made, m.needed, m.last) for m in down.messages] == [(0, 0, 2), (1, 1, 3), (2, 2, 3), (3, 3, 3)]


def test_steps_are_apart_from_the_messages_around_them() -> None:
    def apart(nest: lw.Nest, *arguments: Any, grid: tuple[int, ...], mapping: int | None, tile: int) -> list[bool]:
        faces = faces_of(nest, *arguments, grid=grid, mapping=mapping, tile=tile)
        return [faces.is_apart(rank, faces.incoming(rank)) for rank in range(faces.partition.ranks)]

    assert apart(gauss_seidel, np.zeros((9, 14)), 3, grid=(2, 1), mapping=1, tile=4) == [True, True]
    assert apart(gauss_seidel, np.zeros((9, 14)), 3, grid=(2, 1), mapping=1, tile=12) == [False, False]  # one step
    assert apart(gauss_seidel, np.zeros((9, 14)), 3, grid=(2, 2), mapping=1, tile=3) == [True] * 4
    assert apart(upwind, np.zeros((9, 14)), 3, grid=(2, 1), mapping=None, tile=2) == [False, False]  # one step
    assert apart(far_left, np.zeros((9, 22)), grid=(2, 1), mapping=1, tile=4) == [True, True]
    assert apart(two_writes, np.zeros((9, 4)), np.zeros((9, 4)), grid=(2, 1), mapping=1, tile=2) == [False, False]


def test_messages_that_wait_for_the_last_step_carry_what_the_next_sweep_writes_first() -> None:
    """The right neighbour's first column is read in the last step; along the other loop messages leave with their steps."""

    def rewriting(nest: lw.Nest, grid: tuple[int, ...], mapping: int) -> list[bool]:
        faces = faces_of(nest, np.zeros((9, 13)), 3, grid=grid, mapping=mapping, tile=3)
        return [faces.rewrites(rank, faces.outgoing(rank)) for rank in range(faces.partition.ranks)]

    assert rewriting(upstream, (1, 2), 1) == [False, True]
    assert rewriting(upstream, (2, 2), 1) == [False, True, False, True]
    assert rewriting(upstream, (1, 2), 0) == [False, False]
    assert rewriting(upstream, (2, 1), 1) == [False, False]
    assert rewriting(gauss_seidel, (1, 2), 1) == [False, False]


def test_next_sweep_channels_come_first() -> None:
    faces = faces_of(gauss_seidel, np.zeros((11, 10)), 3, grid=(3, 1), mapping=1, tile=4)
    assert [(c.source, c.lag) for c in faces.incoming(1)] == [(2, 1), (0, 0)]
    assert [c.source for c in faces.incoming(0)] == [1]


def test_no_diagonal_messages_without_a_diagonal_dependence() -> None:
    channels = all_channels(faces_of(sqrt3d, np.zeros((5, 5, 7)), grid=(2, 2, 1), mapping=2, tile=3))
    assert set(channels) == {(0, 1), (0, 2), (1, 3), (2, 3)}
    assert messages(channels[0, 1]) == [
        (0, 0, [((1, 3), (2, 3), (1, 4))], 48),
        (1, 1, [((1, 3), (2, 3), (4, 7))], 48),
    ]
    assert messages(channels[0, 2])[0] == (0, 0, [((2, 3), (1, 3), (1, 4))], 48)


def test_a_diagonal_dependence_sends_the_corner() -> None:
    channels = all_channels(faces_of(diagonal, np.zeros((5, 5, 6)), grid=(2, 2, 1), mapping=2, tile=3))
    assert set(channels) == {(0, 1), (0, 2), (0, 3), (1, 3), (2, 3)}
    assert messages(channels[0, 3]) == [
        (0, 0, [((2, 3), (2, 3), (0, 3))], 24),
        (1, 1, [((2, 3), (2, 3), (3, 6))], 24),
    ]


def test_blocks_of_one_row_hear_from_three_ranks() -> None:
    faces = faces_of(three_above, np.zeros((8, 6), np.float32), grid=(5, 1), mapping=1, tile=6)
    assert set(all_channels(faces)) == {(s, t) for s in range(5) for t in range(5) if 1 <= t - s <= 3}
    assert [c.source for c in faces.incoming(3)] == [0, 1, 2]
    assert messages(faces.incoming(3)[0]) == [(0, 0, [((3, 4), (0, 6))], 24)]


def test_descending_loops_send_to_lower_ranks() -> None:
    channels = all_channels(faces_of(upwards, np.zeros((7, 4)), grid=(3, 1), mapping=1, tile=4))
    assert set(channels) == {(2, 1), (1, 0)}
    assert all(channel.lag == 0 for channel in channels.values())
    assert messages(channels[2, 1]) == [(0, 0, [((-4, -3), (0, 4))], 32)]  # row 4, which rank 1's row 3 reads


def test_a_cut_pipelined_loop_waits_for_the_block_before_it() -> None:
    channels = all_channels(faces_of(gauss_seidel, np.zeros((6, 10)), 2, grid=(2, 2), mapping=1, tile=2))
    assert set(channels) == {(0, 1), (1, 0), (0, 2), (2, 0), (1, 3), (3, 1), (2, 3), (3, 2)}
    # The last column of rank 0 is made in its step 1 and needed in step 0 of rank 1.
    assert messages(channels[0, 1]) == [(1, 0, [((1, 3), (4, 5))], 16)]
    assert (channels[0, 1].lag, channels[0, 1].depth) == (0, 1)
    # Old values of rank 1's first column are needed by the last step of rank 0.
    assert messages(channels[1, 0]) == [(0, 1, [((1, 3), (5, 6))], 16)]
    assert channels[1, 0].lag == 1


def test_every_write_offset_is_a_face() -> None:
    faces = faces_of(two_writes, np.zeros((9, 4)), np.zeros((9, 4)), grid=(2, 1), mapping=1, tile=4)
    assert [(f.array, f.offsets, f.text) for f in faces.faces] == [
        ("u", (0, 0), "u[i, j]"),
        ("u", (1, 0), "u[i + 1, j]"),
        ("v", (0, 0), "v[i, j]"),
    ]
    (message,) = all_channels(faces)[0, 1].messages
    assert [p.face for p in message.parts] == [0, 1, 2]
    assert message.bytes == sum(p.bytes for p in message.parts)


def test_tiles_along_time_send_whole_faces() -> None:
    """A step is a sweep of the whole block, and three sweeps' faces travel together."""
    faces = faces_of(upwind, np.zeros((9, 11)), 5, grid=(2, 2), mapping=None, tile=3)
    assert faces.batch == 3
    assert faces.steps(0) == (((1, 5), (1, 6)),)
    assert not reads_ahead(faces.bound, (2, 2))
    channels = all_channels(faces)
    assert set(channels) == {(0, 1), (0, 2), (1, 3), (2, 3)}
    assert all((c.lag, c.depth) == (0, 3) for c in channels.values())
    assert messages(channels[0, 2]) == [(0, 0, [((4, 5), (1, 6))], 40)]
    assert messages(channels[0, 1]) == [(0, 0, [((1, 5), (5, 6))], 32)]


def test_reading_ahead_is_seen_where_the_loop_is_cut() -> None:
    def ahead(nest: lw.Nest, *grid: int) -> bool:
        found = reads_ahead(nest.bind(nest.arguments(np.zeros((9, 10)), 3)), grid)
        channels = all_channels(faces_of(nest, np.zeros((9, 10)), 3, grid=grid, mapping=0, tile=2)).values()
        assert found == any(channel.lag == 1 for channel in channels)
        return found

    assert ahead(gauss_seidel, 2, 2)
    assert ahead(gauss_seidel, 2, 1)
    assert not ahead(gauss_seidel, 1, 1)
    assert ahead(far_right, 2, 1)
    assert not ahead(upwind, 2, 2)
    assert not ahead(right, 2, 1)  # only columns to the right are read
    assert ahead(right, 1, 2)


def test_one_rank_sends_nothing() -> None:
    faces = faces_of(gauss_seidel, np.zeros((9, 10)), 3, grid=(1, 1), mapping=1, tile=4)
    assert faces.outgoing(0) == faces.incoming(0) == ()


@pytest.mark.parametrize("grid", list(factorisations(12, 3)))
def test_neighbours_receive_all_they_read(grid: tuple[int, ...]) -> None:
    """By brute force: each element read from another block was sent, by the rank that wrote it."""
    faces = faces_of(sqrt3d, np.zeros((13, 13, 13)), grid=grid, mapping=2, tile=5)
    partition = faces.partition
    points = {x: rank for rank in range(12) for x in itertools.product(*(range(*r) for r in partition.block(rank)))}
    sent = {
        (c.source, c.target, x)
        for c in all_channels(faces).values()
        for m in c.messages
        for p in m.parts
        for x in itertools.product(*(range(*r) for r in p.box))
    }
    for (i, j, k), rank in points.items():
        for x in ((i - 1, j, k), (i, j - 1, k), (i, j, k - 1)):
            if x in points and points[x] != rank:
                assert (points[x], rank, x) in sent
