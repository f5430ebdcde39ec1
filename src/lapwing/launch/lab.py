"""`lapwing run --hosts lab`: ranks on the hosts of the lab, a cluster in this machine that `make lab-up` builds.

Hosts are network namespaces, known by their names alone; lab/lab.py, which stands apart, gives the same names.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lapwing.errors import RefusedError, RunError
from lapwing.orphans import die_with

_NAMESPACES = Path("/run/netns")
_INTERFACE = "eth0"  # of every host
# The lab's wires are TCP; these keep MPICH to them, over libfabric or UCX, whichever it was built for.
_TCP = {
    "MPIR_CVAR_CH4_NETMOD": "ofi",
    "FI_PROVIDER": "tcp",
    "FI_TCP_IFACE": _INTERFACE,
    "UCX_TLS": "tcp,self",
    "UCX_NET_DEVICES": _INTERFACE,
}


@dataclass(frozen=True)
class Lab:
    """The lab that is up.

    prefix: what its namespaces' names begin with.
    hosts: the namespaces that are hosts, in the order of their numbers.
    """

    prefix: str
    hosts: tuple[str, ...]

    def blocks(self, ranks: int) -> list[tuple[str, int]]:
        """The hosts that get ranks, and how many each: consecutive ranks together, as evenly as they go."""
        used = self.hosts[:ranks]
        share, more = divmod(ranks, len(used))
        return [(host, share + (position < more)) for position, host in enumerate(used)]

    def arguments(self, ranks: int, worker: list[str]) -> list[str]:
        """What Hydra's mpiexec is told in order to start ``worker`` on every rank, each in its host's namespace.

        Hydra takes every host for a node of its own, so ranks of one host share memory and ranks of two do not; the
        launcher `fork` starts all of them here, and what Hydra itself has to say does not cross the lab's wires.
        """
        blocks = self.blocks(ranks)
        hosts = ",".join(f"{host}:{count}" for host, count in blocks)
        words = ["-localhost", "localhost", "-launcher", "fork", "-hosts", hosts]
        for host, count in blocks:
            words += ["-n", str(count), "ip", "netns", "exec", host, *worker, ":"]
        return words[:-1]

    def settings(self) -> dict[str, str]:
        """Environment of the ranks, but for what the user has set."""
        return {name: value for name, value in _TCP.items() if name not in os.environ}

    @contextlib.contextmanager
    def watch(self, ranks: int) -> Iterator[Wires]:
        """The wires of the hosts that ``ranks`` ranks are on, while the run lasts. Raises RunError if one is down."""
        ports = {f"h{host.rpartition('-h')[2]}": host for host, _ in self.blocks(ranks)}
        links = ["ip", "-o", "-n", f"{self.prefix}-switch"]
        monitor = subprocess.Popen(
            [*links, "monitor", "link"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            process_group=0,  # Ctrl-C is for the command
            preexec_fn=partial(die_with, os.getpid(), signal.SIGTERM),
        )
        try:
            wires = Wires(monitor, ports)
            # Asked after the monitor is there, so that nothing is missed between.
            now = subprocess.run([*links, "link"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
            cut = wires.cut(now.stdout)
            if now.returncode != 0 or cut is not None:
                what = f"the link of {cut} is down" if cut is not None else "it has no switch"
                raise RunError(f"the lab is not whole: {what}; `make lab-up` rebuilds it.")
            yield wires
        finally:
            monitor.terminate()
            monitor.communicate()


class Wires:
    """What `ip monitor` says of the switch's ports."""

    def __init__(self, monitor: subprocess.Popen[bytes], ports: dict[str, str]) -> None:
        assert monitor.stdout is not None
        self.output = monitor.stdout
        self._ports = ports
        self._line = b""

    def cut(self, data: bytes) -> str | None:
        """The host whose link is down or gone by what the switch says next; None while there is none."""
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            said = re.match(rb"(Deleted )?\d+: (\w+)(?:@\S+)?: <([^>]*)>", line)
            if said is None:
                continue
            host = self._ports.get(said[2].decode())
            if host is not None and (said[1] or b"LOWER_UP" not in said[3].split(b",")):
                return host
        return None


def find_lab() -> Lab:
    """The lab that is up. Raises RefusedError where there is none or this user may not enter it."""
    prefix = os.environ.get("LAPWING_LAB") or "lapwing"
    numbers = []
    with contextlib.suppress(FileNotFoundError):
        for entry in _NAMESPACES.iterdir():
            match = re.fullmatch(re.escape(prefix) + r"-h(0|[1-9]\d*)", entry.name)
            numbers += [int(match[1])] if match else []
    if not numbers:
        raise RefusedError(
            f"--hosts lab: no lab is up: there is no network namespace {prefix}-h0, {prefix}-h1, …. "
            f"`make lab-up HOSTS=2 RATE=200mbit` builds one, as root; hosts in a file of that name: --hosts ./lab."
        )
    if os.geteuid() != 0:
        raise RefusedError("--hosts lab: entering the lab's network namespaces needs root: use sudo, or be root.")
    if shutil.which("ip") is None:
        raise RefusedError("--hosts lab: ip is not on PATH. It is in Debian's iproute2, as /usr/sbin/ip.")
    return Lab(prefix, tuple(f"{prefix}-h{number}" for number in sorted(numbers)))
