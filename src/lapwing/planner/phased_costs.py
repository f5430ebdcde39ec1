"""From a plan of several phases, a machine and the speed of every phase's tiles to a pipeline whose timeline can be computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lapwing.loopnest.binding.phased_nest import PhasedNest
from lapwing.machine.machine import Copies, Machine
from lapwing.planner.costs import Placement
from lapwing.planner.phased import PhasedPlan, make_phased_plan
from lapwing.planner.rates import EstimatedRates
from lapwing.schedule.phased import PhasedPipeline, Route, RoutedMessage, phased_timeline
from lapwing.tiling.boxes import intersection, volume
from lapwing.tiling.faces import Channel, Message
from lapwing.tiling.phased.faces import PhasedFaces


@dataclass(frozen=True)
class Comparison:
    """Seconds that phases take through one pipeline, and one after the other, each with a plan of its own and what it reads
    brought to it before."""

    together: float
    apart: float


def compared(plan: PhasedPlan, machine: Machine, placement: Placement) -> Comparison:
    """What the exact timelines say. Raises RefusedError where the machine does not describe a link that is needed."""
    phased, ranks = plan.distribution.phased, plan.ranks + plan.idle
    rates = [EstimatedRates.of(bound, machine).value for bound in phased.phases]
    pipeline = pipeline_of_phases(plan, machine, rates, placement)
    if phased.sweeps <= _FOLLOWED:
        together = phased_timeline(pipeline).makespan
    else:  # all further sweeps are like the last one
        few = [phased_timeline(replace(pipeline, sweeps=_FOLLOWED - k)).makespan for k in (1, 0)]
        together = few[1] + (phased.sweeps - _FOLLOWED) * (few[1] - few[0])
    alone = [
        make_phased_plan(PhasedNest(bound.nest.name, (bound,)), ranks, plan.engine, tile=None)
        for bound in phased.phases
    ]
    apart = 0.0
    for phase, (own, rate) in enumerate(zip(alone, rates, strict=True)):
        apart += phased_timeline(replace(pipeline_of_phases(own, machine, [rate], placement), sweeps=1)).makespan
        apart += max(
            _bringing_seconds(alone, phase, rank, phased.written, machine, placement) for rank in range(own.ranks)
        )
    return Comparison(together, phased.sweeps * apart)


_FOLLOWED = 3  # sweeps: by then a pipeline is full


def _bringing_seconds(
    plans: Sequence[PhasedPlan], phase: int, rank: int, written: Sequence[str], machine: Machine, placement: Placement
) -> float:
    """Until a rank has what it reads in a phase and the phase before that has the array, cyclically, left elsewhere."""
    size = 0
    for array in plans[phase].distribution.phased.arrays:
        others = (plans[(phase - k) % len(plans)].distribution for k in range(1, len(plans) + 1))
        before = next((d for d in others if any(a.name == array.name for a in d.phased.arrays)), None)
        if array.name in written and before is not None:
            needed = plans[phase].faces.needed_box(array.name, rank)
            here = intersection(needed, before.owned(array.name, rank)) if rank < before.ranks else None
            size += array.itemsize * (volume(needed) - (0 if here is None else volume(here)))
    if not size:
        return 0.0
    link = machine.link("node" if placement.ranks_a_node >= plans[phase].ranks else "network", plans[phase].engine)
    return link.latency.value + link.send_cpu(size) + link.wire(size) + link.receive_cpu(size)


def pipeline_of_phases(
    plan: PhasedPlan, machine: Machine, seconds_per_point: Sequence[float], placement: Placement
) -> PhasedPipeline:
    """The pipeline of a plan: all times in seconds.

    seconds_per_point: of every phase's tiles, as many at work as there are cores. Raises RefusedError where the machine does not
    describe a link that is needed.
    """
    faces, phases = plan.faces, range(len(plan.tilings))
    crowding = placement.crowding(plan.ranks)
    compute = tuple(
        np.array(
            [
                crowding * seconds_per_point[phase] * volume(step.box)
                for phase in phases
                for step in faces.phase_steps(phase, rank)
            ]
        )
        for rank in range(plan.ranks)
    )
    routes, synchronisation = [], 0.0
    for rank in range(plan.ranks):
        for channel in faces.outgoing(rank):
            on_node = channel.source // placement.ranks_a_node == channel.target // placement.ranks_a_node
            link = machine.link("node" if on_node else "network", plan.engine)
            stored = plan.engine == "onesided" and on_node and faces.is_apart
            synchronisation = max(synchronisation, link.synchronisation.value)
            messages = []
            for message in channel.messages:
                copy = _copy_seconds(faces, channel, message, machine.copies)
                messages.append(
                    RoutedMessage(
                        made=message.made,
                        needed=message.needed,
                        free=_free(faces, channel, message) if stored else None,
                        pack=copy,
                        send=link.send_cpu(message.bytes),
                        receive=link.receive_cpu(message.bytes),
                        unpack=0.0 if stored else copy,
                        wire=link.wire(message.bytes),
                    )
                )
            depth = 2 * channel.depth  # buffers at both ends
            routes.append(
                Route(
                    channel.source,
                    channel.target,
                    channel.lag,
                    depth,
                    tuple(messages),
                    channel.exchange,
                    link.latency.value,
                )
            )
    return PhasedPipeline(
        compute=compute,
        first_steps=tuple(tuple(faces.first_step(p, rank) for p in phases) for rank in range(plan.ranks)),
        sweeps=faces.phased.sweeps,
        routes=tuple(routes),
        engine=plan.engine,
        rewrites=tuple(frozenset(p for p in phases if faces.rewrites(p, rank)) for rank in range(plan.ranks)),
        synchronisation=synchronisation,
    )


def _free(faces: PhasedFaces, channel: Channel, message: Message) -> int:
    """How many steps the receiver has to have done, from the beginning of the sweep that makes a message."""
    return (channel.lag - 1) * faces.step_count(channel.target) + message.last + 1


def _copy_seconds(faces: PhasedFaces, channel: Channel, message: Message, copies: Copies) -> float:
    """Seconds of packing or unpacking a message, by its bytes and its pieces of memory."""
    runs = 0
    for part in message.parts:
        elements = faces.elements(channel.phase, part)
        low, high = elements[-1]
        runs += volume(elements) // (high - low)
    each = max(
        message.bytes * copies.contiguous_seconds_per_byte.value, runs * copies.strided_seconds_per_element.value
    )
    return len(message.parts) * copies.seconds_per_part.value + each
