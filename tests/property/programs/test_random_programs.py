"""Random programs, several nests with all sorts of statements around them, on one process and on 2, 3 and 4 ranks: the bits of
plain Python.

LAPWING_EXAMPLES sets how many programs are run, LAPWING_SEED which ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from comparing_programs import compare, compare_on_disk, load
from limits import scaled
from processes import WITH_HELPERS
from random_programs import random_program
from randomness import first_seed, wanted

from lapwing.codegen.compilation.toolchain import find_c_compiler, find_cxx_compiler, find_mpi
from lapwing.errors import BuildError

WORKER = Path(__file__).with_name("program_worker.py")
SAME_AT_LEAST = 0.9  # of the programs, the others being refused or stopping as plain Python does
SAME_ON_DISK_AT_LEAST = 0.3  # where drivers keep views that would change
SECONDS_A_PROGRAM = 10  # a limit for a loaded machine, not an estimate
A_SEED = 1_000_000  # programs of one LAPWING_SEED


def check_count(count: Counter[str], programs: int) -> None:
    assert count["same"] >= SAME_AT_LEAST * programs, count


def in_one_process(programs: int, directory: Path) -> None:
    count: Counter[str] = Counter()
    for seed in range(first_seed() * A_SEED, first_seed() * A_SEED + programs):
        case, path = random_program(seed), directory / f"program{seed}.py"
        path.write_text(case.source)
        try:
            count[compare(case, load(path).program)] += 1
        except Exception as error:
            error.add_note(f"seed {seed}:\n{case.source}")
            raise
    check_count(count, programs)


def on_ranks(ranks: int, programs: int, directory: Path) -> None:
    """Many programs in one MPI run, each with the next engine."""
    try:
        find_c_compiler(), find_cxx_compiler()
        mpiexec = find_mpi().mpiexec
    except BuildError as error:
        pytest.skip(str(error))
    first = first_seed() * A_SEED + A_SEED // 2 + 1000 * ranks
    command = [mpiexec, "-n", ranks, sys.executable, WORKER, directory, first, programs]
    log = directory / "log.txt"
    with log.open("w") as stream:
        done = subprocess.run(
            list(map(str, command)),
            stdout=stream,
            stderr=subprocess.STDOUT,
            env={**os.environ, **WITH_HELPERS, "LAPWING_QUIET": "1"},
            timeout=scaled(300 + SECONDS_A_PROGRAM * programs),
            check=False,
        )
    assert done.returncode == 0, log.read_text()[-6000:]
    check_count(Counter(json.loads((directory / "report.json").read_text())), programs)


@pytest.mark.timeout(600)
def test_in_one_process(tmp_path: Path) -> None:
    in_one_process(wanted(6), tmp_path)


def on_disk(programs: int, directory: Path) -> Counter[str]:
    count: Counter[str] = Counter()
    for seed in range(first_seed() * A_SEED, first_seed() * A_SEED + programs):
        case, path = random_program(seed), directory / f"program{seed}.py"
        path.write_text(case.source)
        (folder := directory / str(seed)).mkdir()
        try:
            count[compare_on_disk(case, load(path).program, folder)] += 1
        except Exception as error:
            error.add_note(f"seed {seed}:\n{case.source}")
            raise
    return count


@pytest.mark.timeout(600)
def test_on_disk(tmp_path: Path) -> None:
    count = on_disk(wanted(6), tmp_path)
    assert count["same"] >= SAME_ON_DISK_AT_LEAST * count.total(), count


@pytest.mark.mpi
@pytest.mark.timeout(900)
@pytest.mark.parametrize("ranks", [pytest.param(2, marks=pytest.mark.long), 3])
def test_on_ranks(ranks: int, tmp_path: Path) -> None:
    on_ranks(ranks, wanted(3), tmp_path)


@pytest.mark.long
@pytest.mark.timeout(14400)
def test_in_one_process_at_length(tmp_path: Path) -> None:
    in_one_process(wanted(1000), tmp_path)


@pytest.mark.long
@pytest.mark.mpi
@pytest.mark.timeout(14400)
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_on_ranks_at_length(ranks: int, tmp_path: Path) -> None:
    on_ranks(ranks, wanted(300), tmp_path)
