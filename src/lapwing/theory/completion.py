"""Completion times of the two schedules in closed form (P0, eq. 3 to 7; P1, eq. 1 to 3). Times in seconds.

Quantities of one step:

    t_comp   the time to compute a tile
    t_comm   the time of a step's communication: t_startup + t_transmit

Numbers of steps are real: P0 puts x_k = DIMZ / z - 1 for the last tile's coordinate without rounding it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lapwing.errors import RefusedError


def blocking_steps(last_tile: Sequence[float]) -> float:
    """P(g) = Pi j_final + 1 with Pi = [1 ... 1], the first tile being 0 (P0, section 3)."""
    return sum(last_tile) + 1


def overlapped_steps(last_tile: Sequence[float], mapping: int) -> float:
    """P'(g) = Pi' j_final + 1 with Pi' = [2 ... 2 1 2 ... 2], 1 at the mapping dimension (P0, section 4 and eq. 5)."""
    if not 0 <= mapping < len(last_tile):
        raise RefusedError(
            f"mapping dimension {mapping}: expected 0 to {len(last_tile) - 1}, a dimension of the tile space."
        )
    return 2 * sum(last_tile) - last_tile[mapping] + 1


def communication_time(startup: float, transmit: float) -> float:
    """t_comm = t_startup + t_transmit (P0, below eq. 3)."""
    return startup + transmit


def blocking_time(steps: float, compute: float, communicate: float) -> float:
    """T = P(g) (t_comp + t_comm) (P0, eq. 3; P1, eq. 1)."""
    return steps * (compute + communicate)


def overlapped_time(steps: float, compute: float, communicate: float) -> float:
    """T = P'(g) max(t_comp, t_comm) (P0, eq. 4; with overlapped_steps eq. 5, and in three dimensions eq. 6)."""
    return steps * max(compute, communicate)


def dma_time(steps: float, compute: float, communicate: float, start_dma: float, synchronise: float) -> float:
    """T = P'(g) (t_start_dma + max(t_comp, t_comm) + t_sync) (P1, eq. 2 and, in three dimensions, eq. 3).

    What no DMA engine can hide stands outside the maximum. P0's eq. 7 is this where t_comp >= t_comm. On P1's and P0's
    cluster t_start_dma = 49.2e-6 s and t_sync = 4 * 18.8e-6 s, four SCI interrupts. (The stored text of P1 has lost the
    formulae; this is what its section 4 says of them in words, and agrees with P0's eq. 7.)
    """
    return steps * (start_dma + max(compute, communicate) + synchronise)


# -- messages ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MessageCost:
    """What a message costs: CPU on each side, and time on its way. Seconds, and seconds a byte."""

    startup: float  # CPU of a send, and of a receive
    startup_per_byte: float
    latency: float  # from the end of the send's startup to the first byte's arrival
    transmit_per_byte: float

    def cpu(self, size: float) -> float:
        """CPU seconds of sending or of receiving ``size`` bytes: t_startup of P0, section 3."""
        return self.startup + size * self.startup_per_byte

    def blocking_step(self, messages: int, size: float) -> float:
        """t_comm of eq. 3: every message is received, then every one sent, one after the other, nothing meanwhile.

        ``messages`` (of ``size`` bytes) come in each step and as many go. P0, section 3 counts the receive's startup, the
        send's startup, and a transmission each for what comes and what goes. But what one processor sends is what another
        receives, so the transmission is counted once. For P0's spaces on FastEthernet (tests/theory/test_schedules.py) eq. 3 then
        gives 0.209, 0.393 and 0.180 s with a latency of 60e-6 s; these values allow 58e-6 to 61e-6. A third startup (of
        MPI_Ssend's acknowledgement) would explain them as well as a latency does.
        """
        return messages * (2 * self.cpu(size) + self.latency + size * self.transmit_per_byte)

    def overlapped_step(self, messages: int, size: float, compute: float) -> float:
        """The length of a step of eq. 4 where the CPU computes and starts messages while the network transmits.

        max(t_comp + all startups, all transmissions): eq. 4 with the startups on the CPU's side, because nonblocking calls,
        too, need the CPU at first (P0, section 4). ``messages`` come in each step and as many go, in both directions at
        once. For P0's spaces this gives 0.168, 0.309 and 0.162 s at z = 256, 256 and 64, the best powers of two; for the
        second space 0.311 s at z = 384, where the simulation is fastest.
        """
        return max(compute + messages * 2 * self.cpu(size), messages * size * self.transmit_per_byte)


# -- the best tile height ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StepCost:
    """The length of a step as a function of tile height z: ``per_height`` z + ``fixed``, seconds."""

    per_height: float
    fixed: float

    def at(self, height: float) -> float:
        return self.per_height * height + self.fixed


def blocking_costs(
    message: MessageCost, messages: int, bytes_per_height: float, compute_per_height: float
) -> tuple[StepCost, ...]:
    """t_comp + t_comm of eq. 3 as a function of tile height, by MessageCost.blocking_step.

    bytes_per_height: bytes of one message per unit of tile height. compute_per_height: seconds per unit of tile height.
    """
    per_byte = 2 * message.startup_per_byte + message.transmit_per_byte
    return (
        StepCost(
            compute_per_height + messages * bytes_per_height * per_byte,
            messages * (2 * message.startup + message.latency),
        ),
    )


def overlapped_costs(
    message: MessageCost, messages: int, bytes_per_height: float, compute_per_height: float
) -> tuple[StepCost, ...]:
    """The CPU's and the network's share of a step of eq. 4 as functions of tile height, by MessageCost.overlapped_step."""
    size = messages * bytes_per_height
    return (
        StepCost(compute_per_height + 2 * size * message.startup_per_byte, 2 * messages * message.startup),
        StepCost(size * message.transmit_per_byte, 0.0),
    )


def best_height(length: float, fill: float, costs: Sequence[StepCost]) -> float:
    """The real tile height z in [1, length] that minimises (fill + length / z) max over the costs of cost(z).

    length: points along the mapping dimension. fill: steps more than tiles along it, P(g) - length / z: the sum of the other
    coordinates of the last tile for eq. 3, twice that for eq. 4. costs: one for eq. 3, the CPU's and the network's for
    eq. 4. Closed form: for one cost z = sqrt(length fixed / (fill per_height)); each such time is convex in z, so the least
    of their maximum lies at one of these or where two costs cross.
    Raises RefusedError for a length below 1, a negative fill or cost, or no cost at all.
    """
    _check_model(length, fill, costs)
    candidates = [1.0, float(length), *(_single_best(length, fill, cost) for cost in costs)]
    for k, a in enumerate(costs):
        for b in costs[:k]:
            if a.per_height != b.per_height:
                candidates.append((b.fixed - a.fixed) / (a.per_height - b.per_height))
    allowed = [z for z in candidates if 1 <= z <= length]
    return min(allowed, key=lambda z: time_at_height(z, length, fill, costs))


def time_at_height(height: float, length: float, fill: float, costs: Sequence[StepCost]) -> float:
    """T(z) = (fill + length / z) max over the costs of cost(z), seconds: eq. 3 and 4 as functions of the tile height."""
    return (fill + length / height) * max(cost.at(height) for cost in costs)


def _single_best(length: float, fill: float, cost: StepCost) -> float:
    slope = fill * cost.per_height
    return math.sqrt(length * cost.fixed / slope) if slope else math.inf


def _check_model(length: float, fill: float, costs: Sequence[StepCost]) -> None:
    if not length >= 1 or not fill >= 0:
        raise RefusedError(
            f"a mapping dimension of {length} points and a fill of {fill} steps: expected at least one point and no negative "
            "number of steps."
        )
    if not costs or any(not (cost.per_height >= 0 and cost.fixed >= 0) for cost in costs):
        raise RefusedError(
            f"costs of a step {list(costs)}: expected at least one, none of them negative. Check the machine's parameters."
        )
