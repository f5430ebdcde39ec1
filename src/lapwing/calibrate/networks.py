"""The network between the nodes of a run: measured in seconds when hosts are first used, and remembered for them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lapwing.calibrate.fingerprint import here
from lapwing.calibrate.messages import measure_links
from lapwing.calibrate.rig import Rig
from lapwing.codegen.compilation.cache import cache_directory
from lapwing.errors import RefusedError
from lapwing.machine.document import links_document, links_from
from lapwing.machine.machine import Link
from lapwing.runtime.mpi import communicator

SECONDS = 2.0  # to measure for, compiling apart
_SIZES = (8, 8192, 65536, 1 << 20)  # the first two tell latency and throughput; more where the network is quick enough
# Settings by which an MPI chooses among a host's networks.
_CHOICES = ("FI_", "UCX_", "MPIR_CVAR_CH4_", "OMPI_MCA_btl", "OMPI_MCA_pml", "OMPI_MCA_mtl")


def network_of(comm: Any, report: Callable[[float], None]) -> dict[str, Link] | None:
    """The links between the first rank's node and the first other one, by engine: as remembered, or measured.

    Collective over comm (mpi4py); None but on the first rank, and where all ranks share a node. report: told the part done,
    on the first rank. Raises LapwingError, on every rank the same.
    """
    node = communicator.ranks_of_node(comm)
    away = next((rank for rank in range(comm.Get_size()) if rank not in node), None)
    away = comm.bcast(away, root=0)
    if away is None:
        return None
    key = network_key(comm, away)
    is_first = comm.Get_rank() == 0
    links = remembered(key) if is_first else None
    if not comm.bcast(links is not None, root=0):
        links = _measured(comm, away, report)
        if is_first:
            remember(key, links)
    return links if is_first else None


def _measured(comm: Any, away: int, report: Callable[[float], None]) -> dict[str, Link]:
    """By the first rank and that of another node, while the others leave them the CPUs. Empty but on the first rank."""
    communicator.clock_offset(comm)  # collective over all ranks on its first call, and the runtime asks for it
    chosen = comm.Get_rank() in (0, away)
    pair = comm.Split(0 if chosen else 1, comm.Get_rank())
    announce = communicator.announcer(comm.Get_rank() == 0)
    heard = report if comm.Get_rank() == 0 else _unheard
    links = measure_links(Rig(pair, announce), SECONDS, _SIZES, heard) if chosen else {}
    communicator.meet(comm)
    pair.Free()
    return links


def _unheard(done: float) -> None:
    """The first rank alone says what is being done."""


def network_key(comm: Any, away: int) -> str:
    """What tells one pair of hosts, as this MPI joins them, from others. Collective."""
    ends = comm.allgather((communicator.host(), _network_namespace()))
    choices = sorted((name, value) for name, value in os.environ.items() if name.startswith(_CHOICES))
    told = json.dumps([sorted([ends[0], ends[away]]), here(with_mpi=True).mpi, choices])
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _network_namespace() -> int:
    """Hosts of the lab have one name, but each a network of its own, and another one every time the lab is built."""
    try:
        return os.stat("/proc/self/ns/net").st_ino
    except OSError:
        return 0


def remembered(key: str) -> dict[str, Link] | None:
    """The links that were measured for a key; None where there are none, or nothing that makes sense."""
    try:
        return links_from(json.loads(_path(key).read_text(encoding="utf-8")), str(_path(key)))["network"]
    except (OSError, ValueError, KeyError, RefusedError):  # a cache: whatever is wrong with it, measure again
        return None


def remember(key: str, links: Mapping[str, Link]) -> None:
    """Keep links for a key; where the cache cannot be written they will be measured again."""
    path = _path(key)
    unfinished = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(json.dumps(links_document({"network": links})), encoding="utf-8")
        os.replace(unfinished, path)
    except OSError:
        with contextlib.suppress(OSError):
            unfinished.unlink()


def _path(key: str) -> Path:
    return cache_directory() / "networks" / f"{key}.json"
