"""Boxes of elements, held against the elements themselves."""

from __future__ import annotations

import numpy as np

from lapwing.runtime.arrays.transfer import slices
from lapwing.tiling.boxes import Box, coalesced, common, difference, without


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
