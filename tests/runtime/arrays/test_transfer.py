"""Boxes cut into pieces for copying and sending."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from lapwing.runtime.arrays import transfer


@pytest.mark.parametrize(
    "box", [((2, 9),), ((0, 3), (5, 45)), ((1, 4), (0, 3), (7, 30)), ((0, 0), (0, 5)), ((0, 5), (3, 3))]
)
def test_pieces_cover_the_box_once_and_are_small(box, monkeypatch):
    monkeypatch.setattr(transfer, "CHUNK_BYTES", 64)
    pieces = list(transfer.pieces(box, 8))
    points = [p for piece in pieces for p in itertools.product(*(range(*r) for r in piece))]
    assert points == sorted(itertools.product(*(range(*r) for r in box)))
    assert all(8 * math.prod(transfer.sides(piece)) <= 64 for piece in pieces)


def test_a_difference_of_boxes_holds_each_of_its_elements_once():
    random = np.random.default_rng(5)
    for _ in range(60):
        boxes = [tuple(tuple(sorted(map(int, random.integers(0, 7, 2)))) for _ in range(3)) for _ in range(4)]
        found = np.zeros((7, 7, 7), int)
        for part in transfer.difference(boxes[0], boxes[1:]):
            found[transfer.slices(part)] += 1
        expected = np.zeros_like(found)
        expected[transfer.slices(boxes[0])] = 1
        for other in boxes[1:]:
            expected[transfer.slices(other)] = 0
        np.testing.assert_array_equal(found, expected)
