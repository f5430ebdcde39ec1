"""Starts the programs that run random nests on several ranks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from limits import scaled
from processes import WITH_HELPERS
from randomness import first_seed

from lapwing.codegen.compilation.toolchain import find_c_compiler, find_cxx_compiler, find_mpi
from lapwing.errors import BuildError

HERE = Path(__file__).parent
DELAYS = {"LAPWING_RUNTIME_DEFINES": "LAPWING_DELAYS"}
# MPICH can be told to take ranks of one machine for those of several nodes, so that they talk over TCP.
OVER_TCP = {"FI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo", "MPIR_CVAR_CH4_NETMOD": "ofi"}
APART = {"MPIR_CVAR_NOLOCAL": "1", **OVER_TCP}
PAIRS = {"MPIR_CVAR_ODD_EVEN_CLIQUES": "1", "LAPWING_PATIENCE": "120", **OVER_TCP}
# MPICH 5.0 does so now and then where ranks share memory with some and talk over TCP with others, after windows were used:
# docs/architecture/ranks.md.
LOST = "MPI has lost a message between them"
# Limits for a loaded machine, not estimates. The first nest waits for the runtime to be compiled.
SECONDS_A_NEST, SECONDS_TO_START = 3, 300


@dataclass(frozen=True)
class Variant:
    """Ranks that are run otherwise: with settings of the environment, and how many of them are to share a node."""

    ranks: int
    nests: int
    settings: dict[str, str] = field(default_factory=dict)
    seed: int = 0
    to_a_node: int | None = None


def mpiexec() -> Path:
    try:
        find_c_compiler(), find_cxx_compiler()
        return find_mpi().mpiexec
    except BuildError as error:
        pytest.skip(str(error))


def run_worker(worker: str, variant: Variant, directory: Path) -> dict[str, Any]:
    """Run a worker; a rank that hangs or dies is a failure that shows the nest at hand. What it reports."""
    ranks, nests = variant.ranks, variant.nests
    limit = round(scaled(SECONDS_TO_START + SECONDS_A_NEST * nests))
    command = [
        mpiexec(),
        "-n",
        ranks,
        sys.executable,
        HERE / worker,
        directory,
        nests,
        first_seed() + variant.seed,
        limit,
    ]
    log = directory / "log.txt"
    with log.open("w") as stream:
        process = subprocess.Popen(
            list(map(str, command)),
            stdout=stream,
            stderr=subprocess.STDOUT,
            env={**os.environ, **WITH_HELPERS, **variant.settings},
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
    # Of a few nests chance decides how many are refused.
    assert not report["complete"] or nests < 20 or report["run"] >= 0.9 * nests
    return report
