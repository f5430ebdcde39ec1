"""What messages cost, engine by engine: measured with the pipeline itself, fitted to the model of machine.Link.

Three runs for every engine and size, in turns:

relay    a message goes back and forth, nothing is computed: half a round trip is
         send_cpu + wire + latency + receive_cpu, and for synchronous sends what they wait for on top;
stream   nothing is computed, one message follows the other: the period is that of the slowest of sender, link and receiver;
busy     every step takes longer than its message: what is neither that time nor waiting is the CPU time of the calls.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.calibrate.rig import Rig
from lapwing.calibrate.statistics import median_quantity, typical
from lapwing.machine.machine import Curve, Link, Quantity
from lapwing.planner.plan import SLICE_SECONDS
from lapwing.schedule.pipeline import ENGINES

SIZES = (8, 64, 512, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 1 << 20, 4 << 20)
_SHORTEST_STEP = 2 * SLICE_SECONDS  # of a busy run
_BUSY_STEPS, _STREAM_STEPS = 16, 32
_OVERHEAD_STEPS, _OVERHEAD_ROUNDS = 32, 21
_ROUND_SECONDS = 4e-3  # what one relay should last, or three sweeps if they last longer
_MOST_SWEEPS = 500
_HIDES = 1.5  # times its hop, a step hides a message; steps much longer than that are more often interrupted
_FEWEST_ROUNDS, _MOST_ROUNDS = 3, 15
_SOON, _SLOWEST_BYTE = 10e-3, 1e-7  # seconds for a message that asks nobody to leave, and more for each byte
_TAG = 77
_PATIENCE = 1.5  # times the budget, for the fewest rounds
_CLEARLY = 1.5
_TINY = 1e-6  # seconds; less CPU time than that may grow as it likes
_THROUGHPUT_BYTES = 4096  # smaller messages tell of round trips, not of throughput

Report = Callable[[float], None]


@dataclass
class Samples:
    """What rounds gave for one engine and size, in seconds a message or a step; one entry a round.

    ``hop``: half a round trip. ``period``: of a stream. ``send`` and ``receive``: what a busy step takes the sender and the
    receiver, waiting apart, and ``idle`` the same step without messages. ``post_wait``: of synchronous sends whose receiver
    waits. ``setup``: what a run takes outside its pipeline.
    """

    hop: list[float] = field(default_factory=list)
    period: list[float] = field(default_factory=list)
    send: list[float] = field(default_factory=list)
    receive: list[float] = field(default_factory=list)
    idle: list[float] = field(default_factory=list)
    post_wait: list[float] = field(default_factory=list)
    setup: list[float] = field(default_factory=list)


def measure_links(rig: Rig, budget_seconds: float, sizes: Sequence[int], report: Report) -> dict[str, Link]:
    """The links between the two ranks of a rig, by engine. Collective; the first rank gets them, the other nothing.

    sizes: ascending; those that the budget does not allow are left out.
    """
    found: dict[tuple[str, int], Samples] = {}
    share = budget_seconds / len(ENGINES)
    runs: list[tuple[str, int]] = [(engine, size) for size in sizes for engine in ENGINES]
    plans: dict[tuple[str, int], float] = {}
    for engine, size in runs:  # a first look: how long is a hop?
        hop = _shared(rig, _hop(rig, engine, size, 4))
        if size in sizes[:2] or hop * _messages_a_round(hop) * _FEWEST_ROUNDS <= share / 3:
            plans[engine, size] = hop
    begin = time.perf_counter()
    for number in range(_MOST_ROUNDS):
        for done, ((engine, size), hop) in enumerate(plans.items()):
            _round(rig, engine, size, hop, found.setdefault((engine, size), Samples()))
            report((number + done / len(plans)) / _MOST_ROUNDS)
        # Three rounds, if they can be had in half as long again; more as long as the next will be over in time.
        spent = time.perf_counter() - begin
        next_ends = spent * (number + 2) / (number + 1)
        if rig.comm.bcast(next_ends > budget_seconds * (_PATIENCE if number + 1 < _FEWEST_ROUNDS else 1), root=0):
            break
    rendezvous = rendezvous_bytes(rig.comm)
    if rig.rank != 0:
        return {}
    return {
        name: fit_link(name, {size: s for (e, size), s in found.items() if e == name}, rendezvous) for name in ENGINES
    }


def _messages_a_round(hop: float) -> float:
    return 2 * _sweeps(hop) + _STREAM_STEPS + 2 * _HIDES * _BUSY_STEPS


def _sweeps(hop: float) -> int:
    return max(4, min(_MOST_SWEEPS, round(_ROUND_SECONDS / (2 * max(hop, 1e-7)))))


def _steps(hop: float, most: int) -> int:
    return max(4, min(most, round(10 * _ROUND_SECONDS / max(hop, 1e-7))))


def _hop(rig: Rig, engine: str, size: int, sweeps: int) -> float:
    # The quickest: what disturbs one look must not decide how long all rounds are.
    return min(float(np.min(rig.relay(engine, size, sweeps).periods)) for _ in range(2)) / 2


def _shared(rig: Rig, value: float) -> float:
    """The first rank's value on both ranks, so that they go on alike."""
    return float(rig.comm.bcast(value, root=0))


def _round(rig: Rig, engine: str, size: int, hop: float, samples: Samples) -> None:
    # Something else that runs only adds: quartiles leave out what it disturbs, where that is not nearly all.
    relayed = rig.relay(engine, size, _sweeps(hop))
    samples.hop.append(_quarter(relayed.periods) / 2)
    samples.setup.append(relayed.setup)
    if len(relayed.post_waits):
        samples.post_wait.append(_quarter(relayed.post_waits))
    # A median would not do here: messages may come two at a time.
    streamed = rig.comm.gather(typical(rig.stream(engine, size, _steps(hop, _STREAM_STEPS), 0.0).periods), root=0)
    steps, seconds = _steps(hop, _BUSY_STEPS), max(_SHORTEST_STEP, _HIDES * hop)
    # Slicing steps and keeping their times has a price without messages as well.
    idle = _quarter(rig.alone(steps, seconds).busy)
    busy = rig.comm.gather(_quarter(rig.stream(engine, size, steps, seconds).busy), root=0)
    if rig.rank == 0:
        samples.period.append(max(streamed))
        samples.send.append(busy[0])
        samples.receive.append(busy[-1])
        samples.idle.append(idle)


def step_overhead(rig: Rig) -> Quantity:
    """Seconds a step costs beside its computation and its messages. Collective."""
    seconds = 2 * SLICE_SECONDS
    taken = [_median(rig.alone(_OVERHEAD_STEPS, seconds).busy) for _ in range(_OVERHEAD_ROUNDS)]
    return median_quantity([max(0.0, t - seconds) for t in taken], f"measured: {_OVERHEAD_ROUNDS} rounds")


# -- fitting ---------------------------------------------------------------------------------------------------------


def fit_link(engine: str, samples: Mapping[int, Samples], rendezvous: int | None) -> Link:
    """The parameters of a link from samples by size (bytes).

    latency: what is left of the smallest message's hop; wire: the period of a stream where the link sets its pace, else
    what larger messages' hops take more than that and their CPU times.
    """
    sizes = sorted(size for size, of_size in samples.items() if of_size.hop)
    of = [samples[size] for size in sizes]
    synchronous = engine == "blocking"
    # What disturbs a round only adds to what it takes.
    hop, period, waits = (np.array([_quarter(getattr(s, name)) for s in of]) for name in ("hop", "period", "post_wait"))
    send, receive = (
        _proportionate(sizes, [_quarter(getattr(s, name)) - _quarter(s.idle) for s in of])
        for name in ("send", "receive")
    )
    # Half a round trip cannot take longer than the whole: what noise added to CPU times is taken off again.
    scale = np.minimum(1.0, hop / np.maximum(send + receive, 1e-12))
    send, receive = send * scale, receive * scale
    # A larger message is never quicker: where it seems so the smaller one was disturbed.
    rest = _ascending(np.maximum(hop - send - receive, 0.0))
    latency = rest[0]
    wire = rest - latency
    if not synchronous:
        # Where a stream is clearly slower than either CPU the link sets its pace. A message by itself may come through
        # quicker (a shaper lets bursts pass) or slower (a link that holds several at a time).
        paced = (np.array(sizes) >= _THROUGHPUT_BYTES) & (period > _CLEARLY * np.maximum(send, receive))
        wire = _ascending(np.where(paced, period, np.minimum(wire, period)))
    wire = np.maximum(wire, np.array(sizes) * _least_per_byte(sizes, wire))
    excess = np.maximum(waits - wire - latency, 0.0) if synchronous else np.zeros(1)
    source = f"measured: {len(sizes)} sizes, {min(len(s.hop) for s in of)} rounds"
    hops = [median_quantity(s.hop) for s in of]
    others = send + receive + latency  # of a hop, beside the wire
    return Link(
        send_cpu=_curve(sizes, send, [_less(median_quantity(s.send), _median(s.idle)) for s in of], source),
        receive_cpu=_curve(sizes, receive, [_less(median_quantity(s.receive), _median(s.idle)) for s in of], source),
        wire=_curve(sizes, wire, [_less(q, o) for q, o in zip(hops, others, strict=True)], source),
        latency=_around(latency, _less(hops[0], send[0] + receive[0]), source),
        synchronisation=_around(float(np.median(excess)), median_quantity(excess), source),
        rendezvous_bytes=rendezvous if engine in ("overlap", "helper") else None,
        setup=median_quantity([s for one in of for s in one.setup] or [0.0], source),
    )


def _least_per_byte(sizes: Sequence[int], wire: npt.NDArray[np.float64]) -> float:
    """Seconds a byte in the long run, by the largest messages: what lets a small one pass at once, such as a shaper's burst,
    does not do so for many in a row."""
    if len(sizes) < 2:
        return 0.0
    return float(min(wire[-1] / sizes[-1], (wire[-1] - wire[-2]) / (sizes[-1] - sizes[-2])))


def _proportionate(sizes: Sequence[int], seconds: Sequence[float]) -> npt.NDArray[np.float64]:
    """CPU times without those that grow clearly faster than the messages: those of steps that something else interrupted."""
    found: list[float] = []
    for k, value in enumerate(seconds):
        most = math.inf if k == 0 else _CLEARLY * max(found[-1], _TINY) * sizes[k] / sizes[k - 1]
        found.append(min(max(0.0, value), most))
    return np.array(found)


def _ascending(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Each value, or a later one if that is less."""
    return np.minimum.accumulate(values[::-1])[::-1]


def _less(quantity: Quantity, seconds: float) -> Quantity:
    low, high = ((quantity.value if end is None else end) - seconds for end in (quantity.low, quantity.high))
    return Quantity(quantity.value - seconds, low, high)


def _around(value: float, spread: Quantity, source: str) -> Quantity:
    """A fitted value with the interval of what it was fitted to; neither end on the wrong side of it, or below zero."""
    low, high = (spread.value if end is None else end for end in (spread.low, spread.high))
    return Quantity(float(value), float(min(max(0.0, low), value)), float(max(high, value)), source)


def _curve(sizes: Sequence[int], values: npt.NDArray[np.float64], spreads: Sequence[Quantity], source: str) -> Curve:
    samples = [_around(value, spread, source) for value, spread in zip(values.tolist(), spreads, strict=True)]
    return Curve(
        tuple((float(size), sample.value) for size, sample in zip(sizes, samples, strict=True)),
        tuple(sample.low or 0.0 for sample in samples),
        tuple(sample.high or 0.0 for sample in samples),
        source,
    )


def _quarter(values: Sequence[float] | npt.NDArray[np.float64]) -> float:
    """The lower quartile."""
    return float(np.quantile(values, 0.25)) if len(values) else 0.0


def _median(values: Sequence[float] | npt.NDArray[np.float64]) -> float:
    return float(np.median(values)) if len(values) else 0.0


def rendezvous_bytes(comm: Any) -> int | None:
    """The smallest power of two from which a send waits for its receiver; None up to 4 MiB. Collective over two ranks."""
    for size in (1 << k for k in range(9, 23)):
        if _asks_first(comm, size):
            return size
    return None


def _asks_first(comm: Any, size: int) -> bool:
    """Whether a send of so many bytes cannot end as long as nobody receives it."""
    waits = False
    if comm.Get_rank() == 0:
        request = comm.Isend(np.zeros(size, np.uint8), dest=1, tag=_TAG)
        # Time of this process: while others have the CPU nothing can be seen.
        deadline = time.process_time() + _SOON + size * _SLOWEST_BYTE
        while not (done := request.Test()) and time.process_time() < deadline:
            continue
        waits = not done
        comm.Barrier()
        if waits:
            request.Wait()
    else:
        comm.Barrier()
        comm.Recv(np.empty(size, np.uint8), source=0, tag=_TAG)
    return bool(comm.bcast(waits, root=0))
