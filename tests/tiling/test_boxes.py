"""Boxes of elements, held against the elements themselves."""

from __future__ import annotations

import numpy as np

from lapwing.runtime.arrays.transfer import slices
from lapwing.tiling.boxes import Box, MovingBox, coalesced, common, difference, hull, volume, without


def random_boxes(random: np.random.Generator, count: int) -> list[Box]:
    return [tuple(tuple(sorted(map(int, random.integers(0, 7, 2)))) for _ in range(3)) for _ in range(count)]  # type: ignore[misc]


def counted(boxes: list[Box]) -> np.ndarray:
    """How many of the boxes every element lies in."""
    found = np.zeros((7, 7, 7), int)
    for box in boxes:
        found[slices(box)] += 1
    return found


def test_a_difference_of_boxes_holds_each_of_its_elements_once():
    random = np.random.default_rng(5)
    for _ in range(60):
        boxes = random_boxes(random, 4)
        found = np.zeros((7, 7, 7), int)
        for part in difference(boxes[0], boxes[1:]):
            found[slices(part)] += 1
        expected = np.zeros_like(found)
        expected[slices(boxes[0])] = 1
        for other in boxes[1:]:
            expected[slices(other)] = 0
        np.testing.assert_array_equal(found, expected)


def test_what_boxes_have_in_common_with_others_and_what_not():
    random = np.random.default_rng(6)
    for _ in range(60):
        boxes, others = random_boxes(random, 3), random_boxes(random, 3)
        inside, outside = counted(coalesced(common(boxes, others))), counted(coalesced(without(boxes, others)))
        np.testing.assert_array_equal(inside, (counted(boxes) > 0) & (counted(others) > 0))
        np.testing.assert_array_equal(outside, (counted(boxes) > 0) & (counted(others) == 0))


def test_boxes_side_by_side_are_one():
    assert coalesced([((0, 2), (0, 5)), ((4, 6), (1, 5)), ((2, 4), (0, 5))]) == [((4, 6), (1, 5)), ((0, 4), (0, 5))]
    assert coalesced([((0, 9),), ((3, 4),), ((5, 5),)]) == [((0, 9),)]


def test_a_moving_box_comes_to_each_of_its_elements_once():
    random = np.random.default_rng(7)
    for _ in range(60):
        first, shifts = random_boxes(random, 1)[0], random.integers(0, 3, 3)
        moves = tuple((int(s) * int(random.integers(2)), int(s) * int(random.integers(2))) for s in shifts)
        sweeps = int(random.integers(1, 4))
        moving = MovingBox(tuple((low + 4, high + 4) for low, high in first), moves, sweeps)
        expected, found = np.zeros((12, 12, 12), int), np.zeros((12, 12, 12), int)
        for sweep in range(sweeps):
            expected[slices(moving.at(sweep))] = 1
        for part in moving.swept():
            found[slices(part)] += 1
        np.testing.assert_array_equal(found, expected)
        assert all(
            volume(box) == 0 or hull([moving.around, box]) == moving.around for box in map(moving.at, range(sweeps))
        )


def test_ends_move_down_from_sweep_to_sweep():
    moving = MovingBox(((10, 20), (0, 8)), ((1, 1), (0, 2)), 3)
    assert [moving.at(sweep) for sweep in range(3)] == [((10, 20), (0, 8)), ((9, 19), (0, 6)), ((8, 18), (0, 4))]
    assert moving.around == ((8, 20), (0, 8))
    assert moving.swept() == [((10, 20), (0, 8)), ((9, 10), (0, 6)), ((8, 9), (0, 4))]
