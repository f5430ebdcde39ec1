"""How much of a rewritten program's behaviour is looked at, and which declarations of MPI programs are read with."""

from __future__ import annotations

from pathlib import Path

import pytest

from lapwing.overlap.languages.c.parsing import toolchain


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.long)], ids=["once", "thorough"])
def thorough(request: pytest.FixtureRequest) -> bool:
    """One run of a rewritten program every day, all schedules in the long tests."""
    return bool(request.param)


@pytest.fixture
def own_header(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that are only read, not compiled, are read with Lapwing's own declarations of MPI: reading an MPI's header takes
    longer than all else. Programs that are compiled are read with the header they are compiled with."""
    if request.node.get_closest_marker("mpi") is None:
        # It asks for the folders of the MPI that is here, and keeps the answer for all tests.
        toolchain.is_of_system(Path())
        monkeypatch.setattr(toolchain, "mpi_includes", lambda: ())
