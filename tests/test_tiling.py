"""Blocks and faces, on examples small enough to work out by hand."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.tiling.faces import Channel, Faces
from lapwing.tiling.partition import Partition, balanced_cuts, factorisations

# -- blocks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("extent", range(1, 14))
@pytest.mark.parametrize("low", [-5, 0, 3])
def test_blocks_are_balanced_and_cover_the_loop(low: int, extent: int) -> None:
    for parts in range(1, extent + 1):
        cuts = balanced_cuts(low, low + extent, parts)
        sizes = [b - a for a, b in itertools.pairwise(cuts)]
        assert len(sizes) == parts
        assert (cuts[0], cuts[-1]) == (low, low + extent)
        assert min(sizes) >= 1
        assert max(sizes) - min(sizes) <= 1


def test_more_parts_than_points_are_refused() -> None:
    with pytest.raises(ValueError, match="5 parts of 4 points"):
        balanced_cuts(0, 4, 5)
    with pytest.raises(ValueError, match="0 parts"):
        balanced_cuts(0, 4, 0)


def test_factorisations_are_all_ordered_products() -> None:
    assert list(factorisations(6, 2)) == [(1, 6), (2, 3), (3, 2), (6, 1)]
    assert list(factorisations(1, 3)) == [(1, 1, 1)]
    assert list(factorisations(1, 0)) == [()]
    assert list(factorisations(2, 0)) == []
    for number in range(1, 25):
        found = list(factorisations(number, 3))
        every = [g for g in itertools.product(range(1, number + 1), repeat=3) if math.prod(g) == number]
        assert found == every


def test_ranks_are_numbered_row_by_row() -> None:
    partition = Partition(((0, 2, 4), (0, 1, 2, 3)), (1, 1))
    assert partition.grid == (2, 3)
    assert partition.ranks == 6
    assert [partition.coordinates(rank) for rank in range(6)] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert [partition.rank(partition.coordinates(rank)) for rank in range(6)] == list(range(6))
    assert partition.block(4) == ((2, 4), (1, 2))


def test_a_descending_loop_begins_at_the_last_rank() -> None:
    """Rank 0 owns the lowest indices; normalised, index i is -i, and its block comes last."""
    partition = Partition(((1, 4, 8),), (-1,))
    assert partition.block(0) == ((-3, 0),)  # indices 3, 2, 1
    assert partition.block(1) == ((-7, -3),)  # indices 7 to 4, visited first
    assert partition.order(1) < partition.order(0)


@pytest.mark.parametrize("steps", list(itertools.product((1, -1), repeat=2)))
def test_blocks_tile_the_space_in_every_direction(steps: tuple[int, ...]) -> None:
    partition = Partition((balanced_cuts(2, 9, 3), balanced_cuts(0, 5, 2)), steps)
    points = [x for rank in range(6) for x in itertools.product(*(range(*r) for r in partition.block(rank)))]
    indices = [tuple(s * x for s, x in zip(steps, point, strict=True)) for point in points]
    assert sorted(indices) == list(itertools.product(range(2, 9), range(5)))
    lowest = [tuple(s * x for s, x in zip(steps, p, strict=True)) for p in points[: len(points) // 6]]
    assert (2, 0) in lowest  # rank 0


def test_ranks_near_a_block() -> None:
    partition = Partition((balanced_cuts(0, 8, 8),), (1,))
    assert list(partition.ranks_near(4, [(0, 0)])) == []
    assert list(partition.ranks_near(4, [(-3, 0)])) == [1, 2, 3]
    assert list(partition.ranks_near(4, [(-1, 2)])) == [3, 5, 6]
    descending = Partition((balanced_cuts(0, 8, 8),), (-1,))
    assert list(descending.ranks_near(4, [(-3, 0)])) == [5, 6, 7]


# -- faces -----------------------------------------------------------------------------------------------------------


@lw.nest
def gauss_seidel(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


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
def two_writes(u, v):
    for i in range(1, u.shape[0] - 2):
        for j in range(u.shape[1]):
            u[i, j] = u[i - 1, j] + v[i, j]
            u[i + 1, j] = 0.5 * v[i - 1, j]
            v[i, j] = 1.0


def faces_of(nest: lw.Nest, *arguments: Any, grid: tuple[int, ...], mapping: int, tile: int) -> Faces:
    """The faces under blocks, a pipelined loop and a tile that are given, whatever the planner would choose."""
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
    # Step 0 of the next sweep reads u[i, j + 1] of its last column: it needs the first element of the second message.
    assert messages(up) == [(0, 0, [((4, 5), (1, 5))], 32), (1, 0, [((4, 5), (5, 9))], 32)]


def test_old_values_are_needed_no_earlier_than_they_are_touched() -> None:
    up = all_channels(faces_of(gauss_seidel, np.zeros((9, 14)), 3, grid=(2, 1), mapping=1, tile=4))[1, 0]
    assert [(m.made, m.needed) for m in up.messages] == [(0, 0), (1, 0), (2, 1)]


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
