"""Tiles in C whose rows stay where they are, in the types of their arrays, and that compute with narrow integers: an element is
narrowed when it is read, and widened when it is stored."""

from __future__ import annotations

from lapwing.codegen.body.narrowing import NARROW
from lapwing.codegen.rows.tile_loops import TileWriter


class NarrowRowWriter(TileWriter):
    """Writes the version that computes with narrow integers. Elements are of that type in its body, and of their own in
    memory: C converts them, and all of them fit."""

    scanned_types = (NARROW,)

    @property
    def suffix(self) -> str:
        return "_narrow"

    def point_name(self) -> str:
        return f"{super().point_name()}{self.suffix}"

    def _function(self, invariant: str) -> str:
        return f"{super()._function(invariant)}{self.suffix}"
