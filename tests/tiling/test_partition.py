"""Blocks and process grids, on examples small enough to work out by hand."""

from __future__ import annotations

import itertools
import math

import pytest

from lapwing.tiling.partition import Partition, balanced_cuts, factorisations


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


def test_cuts_move_on_in_the_directions_of_loops() -> None:
    partition = Partition(((0, 10, 20, 30), (0, 8, 16)), (1, -1))
    assert partition.later((2, 3)).cuts == ((0, 12, 22, 30), (0, 5, 16))
    assert partition.later((0, 0)) == partition
    assert partition.later((10, 0)) == partition  # the last block would have no rows left
