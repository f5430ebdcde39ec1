"""The C front end on MPI-Corrbench's programs: $LAPWING_CORRBENCH names a copy."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from _mpi_calls import unrepresented

from lapwing.overlap.ir.program import Program
from lapwing.overlap.ir.statements import Block, Opaque
from lapwing.overlap.languages.c.reading import read_c

ROOT = Path(os.environ.get("LAPWING_CORRBENCH", "")) / "micro-benches" / "0-level"

pytestmark = pytest.mark.skipif(
    "LAPWING_CORRBENCH" not in os.environ, reason="LAPWING_CORRBENCH does not name a copy of MPI-Corrbench"
)


def check_block(block: Block, program: Program) -> None:
    """Statements lie in their block, in order, none over another."""
    position = block.span.start
    for statement in block.statements:
        assert block.span.contains(statement.span)
        if block.form == "lines":
            assert statement.span.start >= position, program.sources[statement.span.source].text(statement.span)
        position = statement.span.end
        for inner in statement.blocks():
            check_block(inner, program)


@pytest.mark.parametrize(
    "folder", ["correct/pt2pt", "correct/coll", "correct/datatype", "correct/rma", "pt2pt", "coll"]
)
def test_every_call_is_represented(folder: str) -> None:
    paths = sorted((ROOT / folder).glob("*.c"))
    assert paths
    for path in paths:
        program = read_c([path], [ROOT / "correct" / "include"])
        assert unrepresented(program) == []
        for procedure in program.procedures.values():
            check_block(procedure.body, program)
        if folder.startswith("correct"):
            reasons = {s.reason for p in program.procedures.values() for s in p.body.walk() if isinstance(s, Opaque)}
            assert not [reason for reason in reasons if "conditional compilation" not in reason], path
