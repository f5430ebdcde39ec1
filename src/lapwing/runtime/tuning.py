"""How a run is carried out, beyond what the plan decides: CPUs of helper threads, slices."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lapwing.errors import RefusedError
from lapwing.launcher import local_place
from lapwing.runtime.mpi.communicator import host

_TOPOLOGY = Path("/sys/devices/system/cpu")


@dataclass(frozen=True)
class Tuning:
    """``helper_cpu``: "auto" (the SMT sibling of the rank's own CPU, where there is one), "none", or the CPUs of the helper
    threads of a node's ranks, in their order. ``split_bytes``: messages travel in parts of at most this size (0: whole).
    ``slice_seconds``: how often an engine that polls does so; None is the plan's choice.
    """

    helper_cpu: str | tuple[int, ...] = "auto"
    split_bytes: int = 0
    slice_seconds: float | None = None


@dataclass(frozen=True)
class Place:
    """A rank's place on its machine: its number there, how many ranks there are, the CPUs this process may use, and how many
    the ranks may use together."""

    number: int
    ranks: int
    cpus: tuple[int, ...]
    all_cpus: int


def place_of(comm: Any, others_work: bool = True) -> Place:
    """This rank's place. Collective over comm (mpi4py).

    others_work: whether ranks of this machine that are not in comm count, because they are at work at the same time.
    """
    here = host()
    # By name, not by shared memory: ranks of one machine that do not share memory share its CPUs all the same.
    everyone = comm.allgather((here, allowed_cpus()))
    masks = [cpus for name, cpus in everyone if name == here]
    number, ranks = sum(name == here for name, _ in everyone[: comm.Get_rank()]), len(masks)
    if others_work and (local := local_place()) is not None and local[1] > ranks:
        number, ranks = local
    return Place(number, ranks, allowed_cpus(), len(set().union(*masks)))


def allowed_cpus() -> tuple[int, ...]:
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def may_spin(place: Place, threads: int) -> bool:
    """Whether every thread of this machine's ranks, ``threads`` a rank, can have a CPU of its own."""
    return len(place.cpus) >= threads and place.all_cpus >= threads * place.ranks


def helper_cpu(tuning: Tuning, place: Place) -> int:
    """The CPU the helper thread is pinned to, or -1.

    Raises RefusedError where it was asked for and cannot be had.
    """
    if tuning.helper_cpu == "none":
        return -1
    if tuning.helper_cpu == "auto":
        return _sibling(place)
    wanted = tuning.helper_cpu
    assert not isinstance(wanted, str)
    if place.number >= len(wanted):
        raise RefusedError(
            f"helper CPUs {','.join(map(str, wanted))}: {len(wanted)} for {place.ranks} ranks on {host()}. "
            "Give one for each."
        )
    cpu = wanted[place.number]
    if cpu not in place.cpus:
        raise RefusedError(
            f"the helper thread cannot be pinned to CPU {cpu}: this process may use {_ranges(place.cpus)} on "
            f"{host()}. Choose among these, or none."
        )
    return cpu


def _sibling(place: Place) -> int:
    """The other hardware thread of the core this rank would compute on; -1 without SMT or where cores are shared."""
    cores: dict[tuple[int, ...], None] = {}
    for cpu in place.cpus:
        cores[tuple(c for c in siblings(cpu) if c in place.cpus)] = None
    with_smt = [core for core in cores if len(core) > 1]
    if place.number >= len(with_smt):
        return -1
    return with_smt[place.number][1]


def siblings(cpu: int) -> tuple[int, ...]:
    """The hardware threads of a CPU's core, itself included."""
    path = _TOPOLOGY / f"cpu{cpu}" / "topology" / "thread_siblings_list"
    try:
        return parse_cpus(path.read_text(encoding="ascii").strip())
    except (OSError, ValueError):
        return (cpu,)


def parse_cpus(text: str) -> tuple[int, ...]:
    """``0-2,5`` as (0, 1, 2, 5). Raises ValueError."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        found += range(int(first), int(last if dash else first) + 1)
    return tuple(found)


def helper_cpus(text: str) -> str | tuple[int, ...]:
    """What ``--helper-cpu`` says, as Tuning has it. Raises ValueError."""
    return text if text in ("auto", "none") else parse_cpus(text)


def _ranges(cpus: Sequence[int]) -> str:
    return "CPU " + ", ".join(map(str, cpus))
