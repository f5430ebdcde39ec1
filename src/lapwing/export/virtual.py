"""From a machine's description to the virtual cluster that a planned nest runs on."""

from __future__ import annotations

from collections.abc import Sequence

from lapwing.export.smpi import Cluster, Curve
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.machine.machine import Curve as MachineCurve
from lapwing.machine.machine import Link, Machine
from lapwing.planner.along_time import AlongTime
from lapwing.planner.costs import Placement, pipeline_of
from lapwing.planner.geometry import Geometry, Neighbour
from lapwing.planner.plan import Plan
from lapwing.planner.rates import EstimatedRates
from lapwing.schedule.pipeline import Channel
from lapwing.tiling.skewing import skewed_nest

_NO_TIME = 1e-9  # seconds: links without latency need one all the same
_NO_LIMIT = 1e15  # bytes a second
_SOME_BYTES = 65536.0  # of a message by which a link's speed is told
_LARGE = 1e8  # bytes of a message, up to which a description's curve is followed
_MOST_BYTES = 2**31 - 1  # the simulator's


def cluster_of(bound: BoundNest, plan: Plan, machine: Machine, ranks_a_node: int) -> Cluster:
    """The cluster on which the plan's prediction and its simulation count the same costs.

    Copies into and out of messages count as sending and receiving; links have the speed at which they carry the plan's
    largest message. Raises RefusedError where the machine does not describe a link that is needed.
    """
    bound = skewed_nest(bound, plan.skew)
    faces = plan.faces(bound)
    geometry = Geometry(faces, AlongTime(bound, plan.dependences).sweeps)
    placement = Placement(ranks_a_node, machine.cores_a_node)
    pipeline = pipeline_of(
        geometry, plan.engine, machine, EstimatedRates(_seconds_per_point(plan, geometry), ""), placement
    )
    pairs = list(zip(geometry.neighbours, pipeline.channels, strict=True))
    places: dict[str, list[tuple[Neighbour, Channel]]] = {"network": [], "node": []}
    for neighbour, channel in pairs:
        places[placement.place(plan.partition, neighbour)].append((neighbour, channel))
    far, near = places["network"], places["node"]
    link = machine.link("network" if far else "node", plan.engine) if pairs else None
    return Cluster(
        name=machine.name,
        hosts=-(-plan.ranks // ranks_a_node),
        cores=ranks_a_node,
        latency=_latency(far),
        bytes_per_second=_bytes_per_second(far),
        local_latency=_latency(near),
        local_bytes_per_second=_bytes_per_second(near),
        send_cpu=_curve(link.send_cpu if link else None, [(n.bytes, c.pack) for n, c in pairs]),
        receive_cpu=_curve(link.receive_cpu if link else None, [(n.bytes, c.unpack) for n, c in pairs]),
        eager_bytes=_MOST_BYTES if link is None or link.rendezvous_bytes is None else link.rendezvous_bytes,
        seconds_per_point=_seconds_per_point(plan, geometry),
    )


def cluster_of_program(machine: Machine, engine: str, ranks: int, ranks_a_node: int) -> Cluster:
    """The cluster on which a program of several nests runs, each of which says itself what its points cost.

    Raises RefusedError where the machine does not describe a link that is needed.
    """
    hosts = -(-ranks // ranks_a_node)
    place = "network" if hosts > 1 else "node"
    link = machine.link(place, engine) if ranks > 1 else None
    near = machine.link("node", engine) if ranks > 1 and ranks_a_node > 1 else None
    copies = machine.copies.contiguous_seconds_per_byte.value
    some = [(_SOME_BYTES, copies * _SOME_BYTES)]
    return Cluster(
        name=machine.name,
        hosts=hosts,
        cores=ranks_a_node,
        latency=_NO_TIME if link is None else link.latency.value or _NO_TIME,
        bytes_per_second=_NO_LIMIT if link is None else _speed(link),
        local_latency=_NO_TIME if near is None else near.latency.value or _NO_TIME,
        local_bytes_per_second=_NO_LIMIT if near is None else _speed(near),
        send_cpu=_curve(link.send_cpu if link else None, some),
        receive_cpu=_curve(link.receive_cpu if link else None, some),
        eager_bytes=_MOST_BYTES if link is None or link.rendezvous_bytes is None else link.rendezvous_bytes,
        seconds_per_point=0.0,
    )


def _speed(link: Link) -> float:
    wire = link.wire(_SOME_BYTES)
    return _SOME_BYTES / wire if wire > 0 else _NO_LIMIT


def _seconds_per_point(plan: Plan, geometry: Geometry) -> float:
    """What the prediction took a point to cost."""
    busiest = float(geometry.points.sum(axis=-1).max()) * geometry.rounds
    return 0.0 if plan.prediction is None or busiest == 0 else plan.prediction.compute / busiest


def _latency(pairs: list[tuple[Neighbour, Channel]]) -> float:
    return max((channel.latency for _, channel in pairs), default=0.0) or _NO_TIME


def _bytes_per_second(pairs: list[tuple[Neighbour, Channel]]) -> float:
    bytes_, wire = max(((n.bytes, c.wire) for n, c in pairs), default=(0, 0.0))
    return bytes_ / wire if wire > 0 else _NO_LIMIT


def _curve(calls: MachineCurve | None, copies: Sequence[tuple[float, float]]) -> Curve:
    """What a message costs a CPU in calls and copies; copies: bytes and seconds of the plan's messages.

    Messages of other sizes, such as those of the last tile or of a whole sweep, are copied at the same rate.
    """
    if calls is None:
        return ((0.0, 0.0),)
    rate = max(seconds / bytes_ for bytes_, seconds in copies)
    sizes = sorted({0.0, _LARGE, *(bytes_ for bytes_, _ in calls.samples), *(float(bytes_) for bytes_, _ in copies)})
    return tuple((size, calls(size) + rate * size) for size in sizes)
