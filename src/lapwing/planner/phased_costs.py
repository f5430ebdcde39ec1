"""From a plan of several phases, a machine and the speed of every phase's tiles to a pipeline whose timeline can be computed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lapwing.machine.machine import Copies, Machine
from lapwing.planner.costs import Placement
from lapwing.planner.phased import PhasedPlan
from lapwing.schedule.phased import PhasedPipeline, Route, RoutedMessage
from lapwing.tiling.boxes import volume
from lapwing.tiling.faces import Channel, Message
from lapwing.tiling.phases import PhasedFaces


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
