"""What the ranks of `lapwing calibrate` do: measure tiles, copies and messages, together."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from lapwing.calibrate.core.ceilings import measure_core
from lapwing.calibrate.fingerprint import here
from lapwing.calibrate.messages import SIZES, measure_links, step_overhead
from lapwing.calibrate.networks import network_key, remember
from lapwing.calibrate.rig import Rig
from lapwing.calibrate.sharing import measure_sharing
from lapwing.calibrate.tiles import (
    Subject,
    kernel_of,
    measure_copies,
    measure_noise,
    measure_operations,
    own_subjects,
    probe_subject,
    subject_of,
)
from lapwing.errors import RefusedError
from lapwing.loopnest.binding.function import NestFunction
from lapwing.machine.core import Core
from lapwing.machine.machine import Copies, Kernel, Link, Machine, Quantity
from lapwing.planner.choose import Wishes
from lapwing.runtime.binding import native
from lapwing.runtime.mpi import communicator

# Called on the first rank with what is being measured and the part of all that is done.
Progress = Callable[[str, float], None]

# Of the seconds to measure for.
_NOISE, _COPIES, _OPERATIONS, _TILES, _MESSAGES = 0.03, 0.05, 0.04, 0.38, 0.5


@dataclass(frozen=True)
class NodeFigures:
    """What one node gave: a Machine without network and disk, and what is to be said of it."""

    machine: Machine
    warnings: tuple[str, ...]


def measure_node(
    nest: NestFunction | None,
    arguments: Mapping[str, Any] | None,
    wishes: Wishes,
    seconds: float,
    comm: Any,
    progress: Progress,
) -> NodeFigures | None:
    """Measure with the ranks of comm (mpi4py), which must share a node. Collective; None but on the first rank.

    nest: to be measured with its arguments, and as it is wished to run, beside Lapwing's own. Raises LapwingError, on every
    rank the same.
    """
    if len(communicator.ranks_of_node(comm)) < comm.Get_size():
        raise RefusedError("the ranks are on several nodes; a node's own figures need all of them on one.")
    enter = progress if comm.Get_rank() == 0 else _unheard
    subjects = communicator.agree(comm, lambda: _subjects(nest, arguments, wishes, comm.Get_size()))
    announce = communicator.announcer(comm.Get_rank() == 0)
    rig = _pair(comm, announce)
    enter("noise", 0.0)
    noise = comm.allgather(_together(comm, partial(measure_noise, _NOISE * seconds)))
    enter("copies", _NOISE)
    copies = _together(comm, partial(measure_copies, _COPIES * seconds))
    sharing = comm.bcast(measure_sharing(rig.comm) if rig is not None else None, root=0)
    if sharing is not None:
        written, read = sharing
        copies = replace(copies, shared_write_seconds_per_line=written, shared_read_seconds_per_line=read)
    enter("operations", _NOISE + _COPIES)
    operations = _together(comm, partial(measure_operations, _OPERATIONS * seconds))
    core = _together(comm, partial(measure_core, announce))
    at = _NOISE + _COPIES + _OPERATIONS
    overhead = comm.bcast(step_overhead(rig) if rig is not None else None, root=0)
    kernels: dict[str, Kernel] = {}
    share = _TILES / len(subjects)
    for number, subject in enumerate(subjects):
        enter(f"tiles of {subject.bound.nest.name}", at + number * share)
        probes = comm.allgather(_together(comm, partial(probe_subject, subject, share * seconds)))
        kernel = kernel_of(subject, probes, overhead)
        kernels[kernel.key] = kernel
    links = _links(rig, _MESSAGES * seconds, comm, lambda done: enter("messages", 1 - _MESSAGES * (1 - done)))
    if comm.Get_rank() != 0:
        return None
    worst = max(noise, key=lambda n: n.value)
    machine = _machine(copies, operations, core, kernels, {"node": links}, worst.value)
    return NodeFigures(machine, tuple(filter(None, [worst.warning])))


def measure_network(seconds: float, comm: Any, progress: Progress) -> dict[str, Link] | None:
    """The links between two ranks on different nodes, by engine, which runs on these hosts find remembered.

    Collective; None but on the first rank.
    """
    nodes = comm.allgather(communicator.ranks_of_node(comm))
    if 1 in nodes[0]:
        raise RefusedError(
            "the first two ranks are on one node, so there is no network between them. "
            "Name hosts with one rank each, or leave out --hosts."
        )
    key = network_key(comm, 1)
    rig = _pair(comm, communicator.announcer(comm.Get_rank() == 0))
    links = _links(rig, seconds, comm, lambda done: progress("network", done))
    if comm.Get_rank() != 0:
        return None
    remember(key, links)
    return links


def _unheard(what: str, done: float) -> None:
    """The first rank alone says what is being done."""


def _subjects(
    nest: NestFunction | None, arguments: Mapping[str, Any] | None, wishes: Wishes, ranks: int
) -> list[Subject]:
    return own_subjects() if nest is None else [*own_subjects(), subject_of(nest, arguments or {}, wishes, ranks)]


def _pair(comm: Any, announce: native.Announce) -> Rig | None:
    """The first two ranks; None on the others, whose numbers among all ranks stay what they are."""
    pair = comm.Split(0 if comm.Get_rank() < 2 else 1, comm.Get_rank())
    return Rig(pair, announce) if comm.Get_rank() < 2 else None


def _links(rig: Rig | None, seconds: float, comm: Any, report: Callable[[float], None]) -> dict[str, Link]:
    """The pair measures; others wait without taking a CPU from it."""
    links = measure_links(rig, seconds, SIZES, report) if rig is not None else {}
    communicator.meet(comm)
    return links


def _together(comm: Any, action: Callable[[], Any]) -> Any:
    """All ranks at once; an error of one is raised on all."""
    comm.Barrier()
    return communicator.agree(comm, action)


def _machine(
    copies: Copies,
    operations: Mapping[str, Quantity],
    core: Core,
    kernels: Mapping[str, Kernel],
    links: Mapping[str, Mapping[str, Link]],
    noise: float,
) -> Machine:
    from lapwing.runtime.tuning import allowed_cpus

    return Machine(
        name=communicator.host(),
        source="measured by lapwing calibrate",
        cores_a_node=len(allowed_cpus()),
        links=links,
        copies=copies,
        seconds_per_operation=operations,
        core=core,
        kernels=kernels,
        noise=noise,
        created=time.strftime("%Y-%m-%d %H:%M:%S %z"),
        fingerprint=here(with_mpi=True),
    )
