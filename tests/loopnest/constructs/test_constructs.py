"""Constructs as people write them have the bits of plain Python, in one process and on two ranks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from constructs import CASES
from equal import equal
from limits import scaled
from processes import WITH_HELPERS

import lapwing as lw
from lapwing.codegen.compilation.toolchain import find_c_compiler, find_cxx_compiler, find_mpi
from lapwing.errors import BuildError

pytestmark = pytest.mark.usefixtures("little_optimised")


@pytest.fixture(autouse=True)
def _compilers() -> None:
    try:
        find_c_compiler(), find_cxx_compiler()
    except BuildError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", CASES)
def test_in_one_process(name: str) -> None:
    function, arguments = CASES[name]
    found, expected = arguments(), arguments()
    assert equal(lw.nest(function)(**found), function(**expected))
    for key, value in expected.items():
        assert equal(found[key], value), key


@pytest.mark.mpi
@pytest.mark.timeout(900)
def test_on_two_ranks() -> None:
    try:
        mpiexec = find_mpi().mpiexec
    except BuildError as error:
        pytest.skip(str(error))
    worker = Path(__file__).parent / "constructs_worker.py"
    command = list(map(str, [mpiexec, "-n", 2, sys.executable, worker]))
    environment = {**os.environ, **WITH_HELPERS, "LAPWING_PATIENCE": "120"}
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env=environment, timeout=scaled(60 + 5 * len(CASES))
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
