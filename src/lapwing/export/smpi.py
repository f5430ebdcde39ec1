"""Exported programs on a cluster that is simulated by SimGrid's SMPI: the cluster's description, the build, the run.

Computing is not executed but told to the simulator, so that results depend on nothing of this machine: every iteration
costs what the cluster says, and so does every message at its sender and at its receiver. Messages are moved by SimGrid's
flow model CM02 with its factors off: latency + bytes / bandwidth, links shared fairly. The simulator moves them without
being polled, so an engine that polls computes each step in one slice.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lapwing.codegen.compilation.cache import cache_directory, make_cache_directory
from lapwing.codegen.compilation.ownership import check_directory, check_file
from lapwing.codegen.compilation.toolchain import cpu_identity, find_c_compiler
from lapwing.errors import BuildError, RefusedError, RunError
from lapwing.temporary import remove_abandoned, scratch_directory

ENGINES = ("blocking", "overlap", "onesided")
Announce = Callable[[str], None] | None

_FLOPS_PER_SECOND = 1e9  # of a host; the program counts a flop as a nanosecond (runtime/cpp/simulated.hpp)
_OBJECTS = ("smpi-main.o", "smpi-mpi.o")  # of all programs
_SHOWN_LINES = 20
_RESULT = re.compile(r"^\w+: \w+ on \d+ ranks?, (\S+) seconds$", re.MULTILINE)
_CONFIGURATION = (
    "network/model:CM02", "network/crosstraffic:0", "network/latency-factor:1", "network/bandwidth-factor:1",
    "network/weight-S:0",
    # What the program computes takes the time it tells, and looking for messages none.
    "smpi/simulate-computation:no", "smpi/test:0", "smpi/iprobe:0", "smpi/grow-injected-times:no",
    "smpi/wtime:0", "smpi/init:0",
)  # fmt: skip

Curve = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Cluster:
    """A cluster as the simulator sees it: ``hosts`` with ``cores`` each, joined by a switch.

    latency: seconds from one host to another; bytes_per_second: of each host's link, in either direction. send_cpu and
    receive_cpu: CPU seconds of a message as (bytes, seconds) samples with straight lines between and beyond them.
    eager_bytes: smaller messages travel before their receive is posted, others when it is. local_latency and
    local_bytes_per_second: between ranks of a host. seconds_per_point: of the nest's tile.
    """

    name: str
    hosts: int
    latency: float
    bytes_per_second: float
    send_cpu: Curve
    receive_cpu: Curve
    seconds_per_point: float
    eager_bytes: int = 0
    cores: int = 1
    local_latency: float = 1e-6
    local_bytes_per_second: float = 5e9

    @property
    def ranks(self) -> int:
        return self.hosts * self.cores


def line(seconds: float, seconds_per_byte: float) -> Curve:
    """``seconds + seconds_per_byte · bytes`` as samples."""
    megabyte = 1e6  # any two points make the line
    return ((0.0, seconds), (megabyte, seconds + seconds_per_byte * megabyte))


def platform_xml(cluster: Cluster) -> str:
    """SimGrid's description of the cluster. A message crosses the links of two hosts, each with half of the latency."""
    attributes = {
        "id": "cluster",
        "prefix": "host-",
        "suffix": "",
        "radical": f"0-{cluster.hosts - 1}",
        "speed": f"{_FLOPS_PER_SECOND:.0f}f",
        "core": str(cluster.cores),
        "bw": f"{cluster.bytes_per_second!r}Bps",
        "lat": f"{cluster.latency / 2!r}s",
        "sharing_policy": "SPLITDUPLEX",
        "loopback_bw": f"{cluster.local_bytes_per_second!r}Bps",
        "loopback_lat": f"{cluster.local_latency!r}s",
    }
    text = " ".join(f'{name}="{value}"' for name, value in attributes.items())
    return (
        "<?xml version='1.0'?>\n"
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
        f'<platform version="4.1">\n  <cluster {text}/>\n</platform>\n'
    )


def host_file(cluster: Cluster, ranks: int) -> str:
    """The host of every rank, a line each: a host's cores are filled before the next one's."""
    return "".join(f"host-{rank // cluster.cores}\n" for rank in range(ranks))


def require_simgrid() -> None:
    """Raise BuildError where SimGrid is missing."""
    for tool in ("smpicxx", "smpirun"):
        _tool(tool)


def build(texts: Mapping[str, str], announce: Announce) -> Path:
    """The program of these sources (stand_alone.sources) for the simulator, built once for all sizes.

    Raises BuildError where SimGrid or a compiler is missing, or one rejects the sources.
    """
    smpicxx = _tool("smpicxx")
    version = _version(smpicxx)
    entry = _entry("simulated", texts, smpicxx, version)
    program = entry / "program"
    if _is_there(program):
        return program
    if announce is not None:
        announce("building the program for the simulator, once")
    try:
        remove_abandoned(make_cache_directory())
        objects = _objects(texts, smpicxx, version)
        with scratch_directory("building-", cache_directory()) as folder:
            _write(folder, texts)
            (folder / "build").mkdir()
            for path in objects:
                shutil.copyfile(path, folder / "build" / path.name)  # after the sources, as make wants it
            _make(folder, smpicxx, "smpi")
            _keep(next(folder.glob("build/*-smpi")), program)
    except OSError as error:
        raise BuildError(f"{cache_directory()}: {error.strerror}. Set LAPWING_CACHE to a directory.") from error
    return program


def _objects(texts: Mapping[str, str], smpicxx: str, version: str) -> list[Path]:
    """What programs of all nests are linked with, built once: compiling it takes by far the longest."""
    flags = [line for line in texts["Makefile"].splitlines() if line.startswith(("RUNTIME_FLAGS", "SIMULATED"))]
    common = {name: text for name, text in texts.items() if name.startswith("src/") and not name.endswith(".c")}
    entry = _entry("simulator", common | {"flags": "\n".join(flags)}, smpicxx, version)
    objects = [entry / name for name in _OBJECTS]
    if not all(map(_is_there, objects)):
        with scratch_directory("building-", cache_directory()) as folder:
            _write(folder, texts)
            _make(folder, smpicxx, *(f"build/{name}" for name in _OBJECTS))
            for path in objects:
                _keep(folder / "build" / path.name, path)
    return objects


def _entry(name: str, texts: Mapping[str, str], smpicxx: str, version: str) -> Path:
    """The directory in the cache of what is built of these texts."""
    key = json.dumps([sorted(texts.items()), smpicxx, version, cpu_identity()])
    return cache_directory() / f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:20]}"


def _is_there(file: Path) -> bool:
    """Whether a file of an entry is there; raises BuildError where others can change it."""
    if not file.is_file():
        return False
    check_directory(file.parent)
    check_file(file)
    return True


def _keep(made: Path, file: Path) -> None:
    made.chmod(0o700)  # the umask may let others write to it
    file.parent.mkdir(mode=0o700, exist_ok=True)
    os.replace(made, file)  # in one step: another process may do the same


def simulate(program: Path, tables: bytes, ranks: int, engine: str, cluster: Cluster) -> float:
    """Simulated seconds of a run of the program's tables (tables.program_bytes): no array is read and nothing computed.

    Raises RefusedError where the cluster has too few cores or the engine cannot be simulated, RunError where the
    simulation fails.
    """
    check_engine(engine)
    if ranks > cluster.ranks:
        raise RefusedError(f"{ranks} ranks on {cluster.name}: it has {cluster.hosts} hosts of {cluster.cores} cores.")
    with scratch_directory("lapwing-simulation-") as folder:
        (folder / "program.bin").write_bytes(tables)
        arguments = ["--dir", str(folder), "--engine", engine, "--dry", *cost_options(cluster)]
        return run(program, ranks, cluster, arguments, folder)


def check_engine(engine: str) -> None:
    """Raise RefusedError for an engine that cannot be simulated."""
    if engine not in ENGINES:
        raise RefusedError(
            f"engine {engine} cannot be simulated: SMPI has one thread a rank. Choose among {', '.join(ENGINES)}."
        )


def cost_options(cluster: Cluster) -> list[str]:
    """What things cost on a cluster, as options of the program."""
    return [
        "--seconds-per-point", repr(cluster.seconds_per_point),
        "--send-cpu", _samples(cluster.send_cpu),
        "--receive-cpu", _samples(cluster.receive_cpu),
    ]  # fmt: skip


def run(program: Path, ranks: int, cluster: Cluster, arguments: Sequence[str], folder: Path) -> float:
    """Run a program on a simulated cluster; the seconds it prints. folder: for the simulator's own files.

    Raises RunError where it fails.
    """
    platform, hosts = folder / "platform.xml", folder / "hosts"
    platform.write_text(platform_xml(cluster), encoding="utf-8")
    hosts.write_text(host_file(cluster, ranks), encoding="utf-8")
    configuration = [
        *_CONFIGURATION,
        f"smpi/host-speed:{_FLOPS_PER_SECOND:.0f}f",
        f"smpi/async-small-thresh:{cluster.eager_bytes}",
        f"smpi/send-is-detached-thresh:{cluster.eager_bytes}",
        f"smpi/tmpdir:{folder}",
    ]
    command = [
        _tool("smpirun"), "-np", str(ranks), "-platform", str(platform), "-hostfile", str(hosts),
        "--log=root.thres:critical", *(f"--cfg={setting}" for setting in configuration), str(program), *arguments,
    ]  # fmt: skip
    status, output = _run(command)
    found = _RESULT.search(output)
    if status != 0 or found is None:
        raise RunError(f"the simulation failed with status {status}:\n{_tail(output)}")
    return float(found.group(1))


def _run(command: Sequence[str]) -> tuple[int, str]:
    """Run a command; its status and all it said. It ends with us, and so does what it started."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        encoding="utf-8", errors="replace", start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = process.communicate()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    return process.returncode, output


def _samples(curve: Curve) -> str:
    return ",".join(f"{bytes_!r}:{seconds!r}" for bytes_, seconds in curve)


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _make(folder: Path, smpicxx: str, *targets: str) -> None:
    make = shutil.which("make")
    if make is None:
        raise BuildError("no make found on PATH. Install it: `apt install make`.")
    compiler = " ".join(find_c_compiler().command)
    command = [make, "-C", str(folder), *targets, f"CC={compiler}", f"SMPICXX={smpicxx}"]
    status, output = _run(command)
    if status != 0:
        raise BuildError(f"the program for the simulator could not be built:\n{_tail(output)}")


def _tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise BuildError(
            f"no {name} found on PATH: --smpi needs SimGrid with SMPI. Install it: `apt install libsimgrid-dev` (Debian, "
            "Ubuntu), or from https://simgrid.org; without --smpi nothing is needed."
        )
    return path


def _version(tool: str) -> str:
    said = subprocess.run([tool, "--version"], capture_output=True, stdin=subprocess.DEVNULL).stdout
    return said.decode("utf-8", "replace").strip()


def _tail(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-_SHOWN_LINES:])
