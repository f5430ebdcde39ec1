"""One run of an NPB program, on a simulated cluster or by another command, and what it prints about itself."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from _npb_build import SIMULATED

from lapwing.errors import RunError
from lapwing.export.smpi import Cluster, Curve, host_file, line, platform_xml

_FLOPS_PER_SECOND = 1e9  # of a host, as platform_xml has it
_SHOWN_LINES = 20
_LIMIT_SECONDS = 3600  # after which a run counts as hung
_ENDING_SECONDS = 10.0  # that a program may take to end once it has printed its results
_LOOK_SECONDS = 1.0
_EAGER_BYTES = 65536
_SECONDS = re.compile(r"Time in seconds\s*=\s*(\S+)")
_RATE = re.compile(r"Mop/s total\s*=\s*(\S+)")
_VERIFICATION = re.compile(r"Verification\s*=\s*(\S+)")
_HALF_DIGIT = 0.005  # NPB prints seconds with two decimals

_CONFIGURATION = (
    "network/model:CM02", "network/crosstraffic:0", "network/latency-factor:1", "network/bandwidth-factor:1",
    "network/weight-S:0",
    # Computing is executed and measured, all of it; looking for messages takes no time.
    "smpi/simulate-computation:yes", "smpi/cpu-threshold:0", "smpi/test:0", "smpi/iprobe:0",
    "smpi/grow-injected-times:no",
    f"smpi/async-small-thresh:{_EAGER_BYTES}", f"smpi/send-is-detached-thresh:{_EAGER_BYTES}",
)  # fmt: skip


@dataclass(frozen=True)
class Network:
    """latency: seconds from host to host; bytes_per_second: of a host's link in either direction; message_cpu: of a
    message at its sender, and again at its receiver."""

    name: str
    title: str
    latency: float
    bytes_per_second: float
    message_cpu: Curve

    def cluster(self, nodes: int) -> Cluster:
        return Cluster(
            name=self.name, hosts=nodes, latency=self.latency, bytes_per_second=self.bytes_per_second,
            send_cpu=self.message_cpu, receive_cpu=self.message_cpu, seconds_per_point=0.0,
        )  # fmt: skip


GIGABIT = Network(
    "gigabit", "gigabit Ethernet: 125 MB/s, 50 µs; a message costs either CPU 5 µs and 0.25 ns a byte",
    50e-6, 125e6, line(5e-6, 0.25e-9),
)  # fmt: skip
INFINIBAND = Network(
    "infiniband", "InfiniBand 4x SDR: 1 GB/s, 4 µs; a message costs either CPU 1 µs and 0.1 ns a byte",
    4e-6, 1e9, line(1e-6, 0.1e-9),
)  # fmt: skip
FREE = Network("free", "no network: nothing that is sent costs anything", 1e-12, 1e15, line(0.0, 0.0))
NETWORKS = {network.name: network for network in (GIGABIT, INFINIBAND)}


@dataclass(frozen=True)
class Reading:
    """What a run printed: seconds to two decimals, its rate in Mop/s, which has more digits, and the verdict."""

    seconds: float
    rate: float
    verification: str

    @property
    def verified(self) -> bool:
        return self.verification == "SUCCESSFUL"


def run(program: Path, nodes: int, network: Network, slower: float) -> Reading:
    """Run the program with a rank a host. slower: how many times slower than this machine the hosts compute.

    Raises RunError where it fails or prints no time.
    """
    cluster = network.cluster(nodes)
    with tempfile.TemporaryDirectory(prefix="lapwing-npb-run-") as name:
        folder = Path(name)
        (folder / "platform.xml").write_text(platform_xml(cluster))
        (folder / "hosts").write_text(host_file(cluster, nodes))
        cost = _linear(network.message_cpu)
        settings = [
            *_CONFIGURATION, f"smpi/host-speed:{slower * _FLOPS_PER_SECOND:.0f}f", f"smpi/tmpdir:{folder}",
            f"smpi/os:{cost}", f"smpi/ois:{cost}", f"smpi/or:{cost}",
        ]  # fmt: skip
        command = [
            "smpirun", "-np", str(nodes), "-platform", "platform.xml", "-hostfile", "hosts",
            "--log=root.thres:critical", *(f"--cfg={setting}" for setting in settings), str(program),
        ]  # fmt: skip
        status, output = execute(command, folder, program.name)
    return reading_of(f"{program.name} on {nodes} nodes", status, output)


@dataclass(frozen=True)
class Simulated:
    """Simulated clusters. slower: how many times slower than this machine their hosts compute."""

    known: tuple[Network, ...]
    slower: float

    compilers = SIMULATED

    @property
    def networks(self) -> tuple[str, ...]:
        return tuple(network.name for network in self.known)

    def titles(self) -> list[str]:
        return [f"{network.name}: {network.title}" for network in self.known]

    def facts(self) -> list[dict[str, Any]]:
        return [asdict(network) for network in self.known]

    def run(self, program: Path, nodes: int, network: str) -> Reading:
        """Run the program with a rank a host. Raises RunError where it fails or prints no time."""
        return run(program, nodes, FREE if network == FREE.name else NETWORKS[network], self.slower)


def reading_of(what: str, status: int, output: str) -> Reading:
    """What a run that ended with this status printed. Raises RunError, which says what ran, where it failed."""
    found = [pattern.search(output) for pattern in (_SECONDS, _RATE, _VERIFICATION)]
    if status != 0 or not all(found):
        shown = "\n".join(output.strip().splitlines()[-_SHOWN_LINES:])
        raise RunError(f"{what} failed with status {status}:\n{shown}")
    seconds, rate, verification = (match[1] for match in found if match)
    return Reading(float(seconds), float(rate), verification)


def operations(readings: Sequence[Reading]) -> float:
    """Operations of a benchmark and class in millions, from all its runs: operations = seconds · rate in each of them.

    Every run allows only the interval that its rounded seconds leave, and the number is the same in all.
    """
    low = max((r.seconds - _HALF_DIGIT) * r.rate for r in readings)
    high = min((r.seconds + _HALF_DIGIT) * r.rate for r in readings)
    return (low + high) / 2


def execute(
    command: Sequence[str],
    folder: Path,
    name: str,
    environment: dict[str, str] | None = None,
    limit: int = _LIMIT_SECONDS,
) -> tuple[int, str]:
    """Run a command; its status and all it said. What it started ends with it. A program that has printed its results and does
    not end (some MPIs hang in MPI_Finalize) is ended, and counts as done. Raises RunError where it hangs before."""
    said = folder / "output"
    with said.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        status = _wait(process, said, limit)
    finally:
        _end(process)
    if status is None and not _has_results(said):
        raise RunError(f"{name} did not end within {limit} s.")
    return status or 0, said.read_text(errors="replace")


def _wait(process: subprocess.Popen[bytes], said: Path, limit: int) -> int | None:
    """Its status; None if it does not end within the limit, or soon after its results."""
    end = time.monotonic() + limit
    shown = False
    while time.monotonic() < end:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(timeout=_LOOK_SECONDS)
        if not shown and _has_results(said):
            shown, end = True, min(end, time.monotonic() + _ENDING_SECONDS)
    return None


def _has_results(said: Path) -> bool:
    return _VERIFICATION.search(said.read_text(errors="replace")) is not None


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _linear(curve: Curve) -> str:
    """A straight line as the simulator wants it: from bytes, seconds, seconds a byte."""
    (first, seconds), (last, more) = curve[0], curve[-1]
    return f"{first:.0f}:{seconds!r}:{(more - seconds) / (last - first)!r}"
