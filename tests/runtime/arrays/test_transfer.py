"""Boxes cut into pieces for copying and sending."""

from __future__ import annotations

import itertools
import math

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
