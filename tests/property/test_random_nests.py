"""Random nests on 1, 2, 3, 4 and 6 ranks, with random tiles, grids and all engines: the very bits of the plain loop.

LAPWING_EXAMPLES sets how many nests are run in all, LAPWING_SEED which ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from limits import scaled
from randomness import IN_WORKERS, first_seed, wanted

from lapwing.codegen.toolchain import find_c_compiler, find_cxx_compiler, find_mpi
from lapwing.errors import BuildError

WORKER = Path(__file__).with_name("nest_worker.py")

# Shares of the nests: many ranks on few cores take turns, so most nests are run on few. Whatever the number of ranks, every
# nest is run on one first.
SHARES = {1: 60, 2: 80, 3: 30, 4: 25, 6: 10}

# MPICH can be told to take ranks of one machine for those of several nodes, so that they talk over TCP.
OVER_TCP = {"FI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo", "MPIR_CVAR_CH4_NETMOD": "ofi"}
DELAYS = {"LAPWING_RUNTIME_DEFINES": "LAPWING_DELAYS"}
APART = {"MPIR_CVAR_NOLOCAL": "1", **OVER_TCP}
PAIRS = {"MPIR_CVAR_ODD_EVEN_CLIQUES": "1", "LAPWING_PATIENCE": "120", **OVER_TCP}
# MPICH 5.0 does so now and then where ranks share memory with some and talk over TCP with others, after windows were used:
# docs/architecture/ranks.md.
LOST = "MPI has lost a message between them"


@dataclass(frozen=True)
class Variant:
    """Ranks that are run otherwise: with settings of the environment, and how many of them are to share a node."""

    ranks: int
    nests: int
    settings: dict[str, str] = field(default_factory=dict)
    seed: int = 0
    to_a_node: int | None = None


VARIANTS = {
    "delays, 2 ranks": Variant(2, 500, DELAYS, 1),
    "delays, 4 ranks": Variant(4, 300, DELAYS, 2),
    "delays, 6 ranks": Variant(6, 160, DELAYS, 3),
    "no shared memory, 2 ranks": Variant(2, 360, APART, 4, 1),
    "no shared memory and delays, 3 ranks": Variant(3, 360, {**APART, **DELAYS}, 5, 1),
    "two nodes, 4 ranks": Variant(4, 240, PAIRS, 6, 2),
    "two nodes and delays, 4 ranks": Variant(4, 240, {**PAIRS, **DELAYS}, 7, 2),
}
EVERYDAY = ("delays, 2 ranks", "two nodes and delays, 4 ranks")
FEW = 4  # nests of each of these
ENOUGH = 40  # nests, for some of them to be skewed
SHORT, LONG = 45, 4000
SECONDS_A_NEST = 3  # a limit for a loaded machine, not an estimate


def examples(total: int, ranks: int) -> int:
    return max(1, wanted(total) * SHARES[ranks] // sum(SHARES.values()))


def mpiexec() -> Path:
    try:
        find_c_compiler(), find_cxx_compiler()
        return find_mpi().mpiexec
    except BuildError as error:
        pytest.skip(str(error))


def check(variant: Variant, directory: Path) -> None:
    report = check_worker(WORKER, variant, directory)
    if report["complete"] and variant.nests >= ENOUGH:
        assert report.get("skewed", 0), "no nest was skewed"


def check_worker(worker: Path, variant: Variant, directory: Path) -> dict[str, Any]:
    """Run a worker; a rank that hangs or dies is a failure that shows the nest at hand. What it reports."""
    ranks, nests = variant.ranks, variant.nests
    limit = round(scaled(120 + SECONDS_A_NEST * nests))
    command = [mpiexec(), "-n", ranks, sys.executable, worker, directory, nests, first_seed() + variant.seed, limit]
    log = directory / "log.txt"
    with log.open("w") as stream:
        process = subprocess.Popen(
            list(map(str, command)),
            stdout=stream,
            stderr=subprocess.STDOUT,
            env={**os.environ, **IN_WORKERS, **variant.settings},
        )
        try:
            status = process.wait(limit + 30)
        finally:
            if process.poll() is None:
                process.terminate()  # the launcher then ends its ranks
                process.wait(30)
    if status != 0 and "MPIR_CVAR_ODD_EVEN_CLIQUES" in variant.settings and LOST in log.read_text():
        pytest.skip(f"{LOST}, as this MPICH does with two ranks to a node")
    if status != 0:
        at_hand = next((directory / n for n in ("failing.py", "current.py") if (directory / n).exists()), None)
        nest = at_hand.read_text() if at_hand else "none"
        pytest.fail(
            f"{ranks} ranks: status {status}\n\n{log.read_text()[-6000:]}\n\nThe nest at hand:\n{nest}", pytrace=False
        )
    report: dict[str, Any] = json.loads((directory / "report.json").read_text())
    print(f"{ranks} ranks: {report}")
    if variant.to_a_node not in (None, report["ranks of this node"]):
        pytest.skip("this MPI does not let ranks of one machine stand for several nodes")
    assert not report["complete"] or report["run"] >= 0.9 * nests
    return report


@pytest.mark.mpi
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("ranks", [n if n in (2, 3) else pytest.param(n, marks=pytest.mark.long) for n in SHARES])
def test_bits_of_the_plain_loop(ranks: int, tmp_path: Path) -> None:
    check(Variant(ranks, examples(SHORT, ranks)), tmp_path)


@pytest.mark.mpi
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", EVERYDAY)
def test_bits_otherwise(name: str, tmp_path: Path) -> None:
    check(replace(VARIANTS[name], nests=FEW), tmp_path)


@pytest.mark.mpi
@pytest.mark.long
@pytest.mark.timeout(14400)
@pytest.mark.parametrize("name", VARIANTS)
def test_bits_otherwise_at_length(name: str, tmp_path: Path) -> None:
    check(VARIANTS[name], tmp_path)


@pytest.mark.mpi
@pytest.mark.long
@pytest.mark.timeout(14400)
@pytest.mark.parametrize("ranks", SHARES)
def test_bits_of_the_plain_loop_at_length(ranks: int, tmp_path: Path) -> None:
    check(Variant(ranks, examples(LONG, ranks)), tmp_path)
