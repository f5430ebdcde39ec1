"""The network between the nodes of a run: measured when hosts are first used, remembered, and what predictions rest on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from limits import scaled

from lapwing.api.calls.decide import Decider
from lapwing.calibrate import networks
from lapwing.codegen.compilation.toolchain import find_mpi
from lapwing.errors import BuildError
from lapwing.machine import stored
from lapwing.machine.machine import Link

NEST = """
import numpy as np
import lapwing as lw

@lw.nest
def smooth(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i-1, j] + u[i, j-1] + u[i+1, j] + u[i, j+1])

@smooth.problem
def problem(n=200, sweeps=4):
    return dict(u=np.ones((n, n)), sweeps=sweeps)
"""


class OneNode:
    """A communicator whose ranks are all where this process is; it can be asked for nothing but that."""

    def Get_size(self) -> int:
        return 2

    def bcast(self, value: Any, root: int) -> Any:
        return value


def links() -> dict[str, Link]:
    return dict(stored.find("p0-fastethernet").links["network"])


def test_what_was_measured_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "cache_directory", lambda: tmp_path)
    assert networks.remembered("ab12") is None
    networks.remember("ab12", links())
    assert networks.remembered("ab12") == links()
    assert networks.remembered("cd34") is None
    assert [path.name for path in (tmp_path / "networks").iterdir()] == ["ab12.json"]


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"network": {"overlap": {}}}', "\udcff"])
def test_what_makes_no_sense_is_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(networks, "cache_directory", lambda: tmp_path)
    (tmp_path / "networks").mkdir()
    (tmp_path / "networks" / "ab12.json").write_bytes(text.encode(errors="surrogateescape"))
    assert networks.remembered("ab12") is None


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "networks").write_text("a file, where a directory would be")
    monkeypatch.setattr(networks, "cache_directory", lambda: tmp_path)
    networks.remember("ab12", links())
    assert networks.remembered("ab12") is None


def test_on_one_node_there_is_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapwing.runtime.mpi.communicator.ranks_of_node", lambda comm: {0, 1})
    assert networks.network_of(OneNode(), lambda done: None) is None


def test_predictions_rest_on_the_measured_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow network that was measured makes a run longer than the typical one that stands for what nobody has measured."""
    from lapwing.api.nest import Nest
    from lapwing.launch.loading import load_nest, problem_arguments

    monkeypatch.setenv("LAPWING_CACHE", str(tmp_path))
    (tmp_path / "smooth.py").write_text(NEST)
    nest: Nest = load_nest(str(tmp_path / "smooth.py"))
    arguments = problem_arguments(nest, ())
    seconds = []
    for network in (None, links()):
        decide = Decider.here(nest.bind(arguments), nest.dependences, 2, 1, 2, arguments, lambda _: None, network)
        plan = Decider(**{**vars(decide), "measures": False})(nest.using(engine="overlap").wishes())
        assert plan.prediction is not None
        seconds.append(plan.prediction.seconds)
    assert seconds[1] > 2 * seconds[0]


WORKER = """
from lapwing.calibrate import networks
from lapwing.runtime.mpi import communicator

comm = communicator.world()
networks.SECONDS = 0.1
heard = []
first, second = (networks.network_of(comm, heard.append), len(heard)), (networks.network_of(comm, heard.append), len(heard))
if comm.Get_rank() == 0:
    assert sorted(first[0]) == ["blocking", "helper", "onesided", "overlap"], first
    assert first[1] > 0
    assert second[0].keys() == first[0].keys()
    assert second[1] == first[1], "measured twice"
    print("measured once")
else:
    assert first[0] is second[0] is None
    assert heard == []
"""


@pytest.mark.mpi
def test_ranks_of_several_nodes_measure_once(tmp_path: Path) -> None:
    """MPICH can be told to take every rank for a node of its own: they then talk through the loopback interface."""
    try:
        mpi = find_mpi()
    except BuildError as error:
        pytest.skip(str(error))
    if "HYDRA" not in subprocess.run([mpi.mpiexec, "--version"], capture_output=True, text=True, check=False).stdout:
        pytest.skip("only MPICH can be told so")
    (tmp_path / "worker.py").write_text(WORKER)
    # A setting that no earlier run of this test can have had, so that nothing is remembered for it.
    settings = {"MPIR_CVAR_NOLOCAL": "1", "FI_LAPWING_TEST": str(tmp_path)}
    done = subprocess.run(
        [mpi.mpiexec, "-n", "3", sys.executable, "worker.py"],
        cwd=tmp_path, env={**os.environ, **settings}, capture_output=True, text=True, timeout=scaled(120), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "measured once" in done.stdout
