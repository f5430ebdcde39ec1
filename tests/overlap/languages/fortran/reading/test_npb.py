"""The NAS Parallel Benchmarks, where LAPWING_NPB names the folder that holds NPB3.4-MPI and NPB3.3-MPI."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from _fortran import opaques

from lapwing.overlap.ir.program import Program
from lapwing.overlap.ir.statements import Call
from lapwing.overlap.languages.fortran.reading import read_fortran

NPB = os.environ.get("LAPWING_NPB")
FOLDERS = [
    f"NPB{version}-MPI/{name}" for version in ("3.4", "3.3") for name in ("BT", "CG", "EP", "FT", "LU", "MG", "SP")
]
# Files that are alternatives to others in the same folder.
ALTERNATIVES = re.compile(r".*_vec\.f|(simple_mpiio|fortran_io|full_mpiio|epio)\.f")

pytestmark = pytest.mark.skipif(NPB is None, reason="LAPWING_NPB is not set")


def read(folder: str, tmp_path: Path) -> Program:
    files = sorted(Path(NPB or "", folder).glob("*.f"))
    if not files:
        pytest.skip(f"{folder} is not there")
    # The build writes this file; its constants do not matter here.
    (tmp_path / "npbparams.h").write_text("      character class\n      parameter (class = 'S')\n")
    return read_fortran([file for file in files if not ALTERNATIVES.fullmatch(file.name)], [tmp_path])


@pytest.mark.parametrize("folder", FOLDERS)
def test_everything_is_read(folder: str, tmp_path: Path) -> None:
    program = read(folder, tmp_path)
    assert program.procedures
    assert [problem for problem in program.problems if "defined" not in problem.message] == []
    assert {name: found for name, procedure in program.procedures.items() if (found := opaques(procedure))} == {}


@pytest.mark.parametrize("folder", FOLDERS)
def test_calls_are_where_they_say(folder: str, tmp_path: Path) -> None:
    program = read(folder, tmp_path)
    found = 0
    for procedure in program.procedures.values():
        for statement in procedure.body.walk():
            if isinstance(statement, Call):
                text = program.sources[statement.span.source].text(statement.span).lower()
                assert re.match(rf"call\s+{statement.name}\b", text)
                assert (text.endswith(")") and text.count("(") == text.count(")")) or "(" not in text
                found += 1
    assert found > 5
    files = {program.sources[procedure.source].path for procedure in program.procedures.values()}
    written = sum(len(re.findall(r"(?mi)^[^c!*\n'][^!\n']*\bcall\s+\w", file.read_text("latin-1"))) for file in files)
    assert found == written
