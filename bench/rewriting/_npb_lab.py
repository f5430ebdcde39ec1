"""One run of an NPB program on the lab's hosts, with a real MPI, and a second lab whose wires have no limit to speak of."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from _npb_build import Compilers
from _npb_run import FREE, Reading, execute, reading_of

from lapwing.errors import RefusedError, RunError
from lapwing.launch.lab import Lab, find_lab

LAB = "lab"  # the name of its network
_MAKER = Path(__file__).parents[2] / "lab" / "lab.py"
_UNLIMITED = "100gbit"
_LIMIT_SECONDS = 600  # after which a run counts as hung
# As packages beside other MPIs name MPICH's programs, after what is first on PATH.
_SUFFIXES = ("", ".mpich")


@dataclass(frozen=True)
class Mpi:
    """An MPICH with Fortran: the wheel that Lapwing itself runs with has none."""

    compilers: Compilers
    mpiexec: Path
    version: str


@dataclass(frozen=True)
class Hosts:
    """The lab and, beside it, the one without a limit. bytes_per_second: of a link; None where that is not known."""

    lab: Lab
    free: Lab
    mpi: Mpi
    bytes_per_second: float | None

    networks = (LAB,)

    @property
    def compilers(self) -> Compilers:
        return self.mpi.compilers

    def titles(self) -> list[str]:
        rate = f"{self.bytes_per_second * 8e-6:g} Mbit/s" if self.bytes_per_second else "no known limit"
        return [
            f"{LAB}: network namespaces of this machine joined by {rate} each way, {self.mpi.version} over TCP; "
            f"ceiling: the same with {_UNLIMITED}/s"
        ]

    def facts(self) -> list[dict[str, Any]]:
        mpi = {**asdict(self.mpi), "mpiexec": str(self.mpi.mpiexec)}
        return [{"name": LAB, "bytes_per_second": self.bytes_per_second, "mpi": mpi, "free": _UNLIMITED}]

    def run(self, program: Path, nodes: int, network: str) -> Reading:
        """Run the program with a rank a host. Raises RunError where it fails, prints no time, or a link is down."""
        lab = self.free if network == FREE.name else self.lab
        command = [str(self.mpi.mpiexec), *lab.arguments(nodes, [str(program)])]
        with tempfile.TemporaryDirectory(prefix="lapwing-npb-run-") as name, lab.watch(nodes):
            environment = {**os.environ, **lab.settings(), "TMPDIR": name}  # the launcher leaves files there
            status, output = execute(command, Path(name), program.name, environment, _LIMIT_SECONDS)
        return reading_of(f"{program.name} on {nodes} hosts of the lab", status, output)


def find_hosts() -> tuple[Lab, Mpi]:
    """The lab that is up and an MPI for it. Raises RefusedError where either is missing."""
    try:
        lab = find_lab()
    except RefusedError as error:
        raise RefusedError(str(error).removeprefix("--hosts lab: ")) from error
    for suffix in _SUFFIXES:
        found = _mpi(suffix)
        if found is not None:
            return lab, found
    raise RefusedError(
        "no MPICH with Fortran: expected mpif90 with mpicc and mpiexec beside it, or mpif90.mpich, mpicc.mpich and "
        "mpiexec.mpich, on PATH. Install it: apt install mpich libmpich-dev gfortran"
    )


def _mpi(suffix: str) -> Mpi | None:
    fortran = shutil.which(f"mpif90{suffix}")
    if fortran is None:
        return None
    c, mpiexec = (Path(fortran).with_name(f"{name}{suffix}") for name in ("mpicc", "mpiexec"))
    if not (c.is_file() and mpiexec.is_file()):
        return None
    said = subprocess.run(
        [str(mpiexec), "--version"], capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL
    ).stdout
    version = mpich_version(said)
    return None if version is None else Mpi(Compilers(str(c), fortran, fortran), mpiexec, version)


def mpich_version(said: str) -> str | None:
    """Such as "MPICH 4.0.2 (ch4:ucx)", from what its launcher says of itself; None where that is another MPI's."""
    if "HYDRA" not in said:
        return None
    version = re.search(r"Version:\s*(\S+)", said)
    device = re.search(r"--with-device=([\w:]+)", said)
    return f"MPICH {version[1] if version else '?'}{f' ({device[1]})' if device else ''}"


@contextlib.contextmanager
def hosts(lab: Lab, mpi: Mpi) -> Iterator[Hosts]:
    """The lab's hosts, and as many more without a limit for as long as this lasts. Raises RunError."""
    free = Lab(f"{lab.prefix}-free", tuple(f"{lab.prefix}-free-h{k}" for k in range(len(lab.hosts))))
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))  # so that it is removed then, too
    try:
        _lab(free, "up", f"--hosts={len(free.hosts)}", f"--rate={_UNLIMITED}")
        yield Hosts(lab, free, mpi, link_rate(lab))
    finally:
        _lab(free, "down")


def link_rate(lab: Lab) -> float | None:
    """Bytes a second that a link of the lab lets through; None where there is no limit, or it cannot be told."""
    command = ["tc", "-j", "-n", lab.hosts[0], "qdisc", "show", "dev", "eth0"]
    try:
        found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    except (OSError, ValueError, subprocess.CalledProcessError):
        return None
    return next((float(q["options"]["rate"]) for q in found if "rate" in q.get("options", {})), None)


def _lab(lab: Lab, *words: str) -> None:
    command = [sys.executable, str(_MAKER), *words]
    environment = {**os.environ, "LAPWING_LAB": lab.prefix}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL
    )
    if done.returncode != 0:
        raise RunError(f"`{_MAKER.name} {words[0]}` of {lab.prefix} failed: {(done.stderr or done.stdout).strip()}")
