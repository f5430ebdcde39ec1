"""Tiles in C whose recurrences along a row are scans of narrow integers where ranges prove that no value is larger
(``codegen.body.narrowing``): vectors of a scan have two or four times as many elements then.

Rows stay where they are, in the types of their arrays. An element is narrowed when it is read, and widened when it is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lapwing.codegen.body.narrowing import COMPARISONS, NARROW
from lapwing.codegen.lanes.narrow import NarrowTileWriter
from lapwing.codegen.lanes.striped_rows import StripedRowWriter
from lapwing.codegen.lanes.transposed import TransposedTileWriter
from lapwing.codegen.rows.tile_loops import TileWriter
from lapwing.loopnest.binding import typed as t
from lapwing.tiling.faces import Face
from lapwing.tiling.inner import InnerForm, legal_forms


class NarrowScanWriter:
    """Writes a tile of scans with two functions, one of which computes with narrow integers. in_buffers: the tile's narrow
    version in buffers, which knows what ranges have to prove."""

    def __init__(self, wide: TileWriter, narrow: StripedRowWriter, in_buffers: NarrowTileWriter) -> None:
        self._wide, self._narrow, self._in_buffers = wide, narrow, in_buffers

    @classmethod
    def of(cls, wide: TileWriter, faces: Sequence[Face], form: InnerForm) -> NarrowScanWriter | None:
        """The writer of a tile of which there is a narrow version; wide: of the whole tile, without."""
        bound = wide.given
        if not wide.has_scans or bound.body.traps:
            return None
        forms = legal_forms(bound, bound.analysis.dependences)
        lanes = next((f for f in forms if f.transposed and not f.coalesced and f.order == form.order), None)
        if lanes is None:
            return None
        in_buffers = NarrowTileWriter.of(TransposedTileWriter(bound, faces, lanes), faces, lanes)
        if in_buffers is None:
            return None
        narrow = StripedRowWriter(replace(bound, body=_with_narrow_letters(in_buffers)), faces, form)
        return cls(wide, narrow, in_buffers) if narrow.has_scans else None

    def source(self) -> str:
        headers = ['#include "strips.h"', '#include "scans.h"', *self._narrow.headers_of_rows, '#include "ranges.h"']
        functions = self._in_buffers.functions(self._wide, self._narrow, 1, "LW_NARROW_SCANNED")
        lines = [*self._wide.heading("One tile."), *headers, "", *functions, "", *self._wide.face_functions()]
        return "\n".join(lines) + "\n"


def _with_narrow_letters(writer: NarrowTileWriter) -> t.TypedBody:
    """The narrow body with what is compared alone narrowed, too, where it is small or looked at before."""
    assert writer.vectors is not None
    rows = writer.vectors.rows
    looked_at = frozenset(filter(rows.is_narrowed, rows))

    def placed(node: t.Typed) -> t.Typed:
        if isinstance(node, t.Operation) and node.operator in COMPARISONS:
            return replace(node, operands=tuple(map(compared, node.operands)))
        return t.mapped(node, placed)

    def compared(node: t.Typed) -> t.Typed:
        narrows = isinstance(node, t.Load) and (node.dtype in ("int8", "uint8") or node in looked_at)
        return t.Convert(NARROW, node) if narrows else placed(node)

    body = writer.bound.body
    return replace(body, statements=tuple(t.with_values(statement, placed) for statement in body.statements))
