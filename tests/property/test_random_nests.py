"""Random nests on 1, 2, 3, 4 and 6 ranks, with random tiles, grids and all engines: the very bits of the plain loop.

LAPWING_EXAMPLES sets how many nests are run in all, LAPWING_SEED which ones.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from searching import first_seed, wanted

from lapwing.codegen.toolchain import find_c_compiler, find_cxx_compiler, find_mpi
from lapwing.errors import BuildError

# Shares of the nests: many ranks on few cores take turns, so most nests are run on few.
SHARES = {1: 140, 2: 90, 3: 50, 4: 40, 6: 20}
SHORT, LONG = 340, 4000
SECONDS_A_NEST = 3  # a limit for a loaded machine, not an estimate


def examples(total: int, ranks: int) -> int:
    return max(1, wanted(total) * SHARES[ranks] // sum(SHARES.values()))


def mpiexec() -> Path:
    try:
        find_c_compiler(), find_cxx_compiler()
        return find_mpi().mpiexec
    except BuildError as error:
        pytest.skip(str(error))


def check(ranks: int, nests: int, directory: Path) -> None:
    """Run the worker; a rank that hangs or dies is a failure that shows the nest at hand."""
    worker = Path(__file__).with_name("nest_worker.py")
    limit = 120 + SECONDS_A_NEST * nests
    command = [mpiexec(), "-n", ranks, sys.executable, worker, directory, nests, first_seed(), limit]
    log = directory / "log.txt"
    with log.open("w") as stream:
        process = subprocess.Popen(list(map(str, command)), stdout=stream, stderr=subprocess.STDOUT)
        try:
            status = process.wait(limit + 30)
        finally:
            if process.poll() is None:
                process.terminate()  # the launcher then ends its ranks
                process.wait(30)
    if status != 0:
        at_hand = next((directory / n for n in ("failing.py", "current.py") if (directory / n).exists()), None)
        nest = at_hand.read_text() if at_hand else "none"
        pytest.fail(
            f"{ranks} ranks: status {status}\n\n{log.read_text()[-6000:]}\n\nThe nest at hand:\n{nest}", pytrace=False
        )
    report = json.loads((directory / "report.json").read_text())
    print(f"{ranks} ranks: {report}")
    assert report["run"] >= 0.9 * nests


@pytest.mark.mpi
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("ranks", SHARES)
def test_bits_of_the_plain_loop(ranks: int, tmp_path: Path) -> None:
    check(ranks, examples(SHORT, ranks), tmp_path)


@pytest.mark.mpi
@pytest.mark.long
@pytest.mark.timeout(14400)
@pytest.mark.parametrize("ranks", SHARES)
def test_bits_of_the_plain_loop_at_length(ranks: int, tmp_path: Path) -> None:
    check(ranks, examples(LONG, ranks), tmp_path)
