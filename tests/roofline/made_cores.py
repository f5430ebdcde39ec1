"""A core with round figures, for tests."""

from __future__ import annotations

from lapwing.machine.core import ACCESSES, LATENCIES, THROUGHPUTS, Core, kinds

CYCLES = {"+": 4.0, "*": 4.0, "min": 2.0, "/": 16.0, "sqrt": 20.0}


def made_core(window: float = 0.0) -> Core:
    """A cycle takes a nanosecond; scalars take half of one, roots and quotients four, vectors of 64 bytes twice as long."""
    cycle = 1e-9
    scalar = {kind: cycle * (0.5 if kind.split()[0] in ("simple", *ACCESSES) else 4.0) for kind in _THROUGHPUTS}
    return Core(
        cycle=cycle,
        vector_bytes=64,
        window=window,
        latency={kind: cycle * CYCLES[kind.split()[0]] for kind in kinds(LATENCIES)},
        scalar=scalar,
        vector={kind: 2 * seconds for kind, seconds in scalar.items()},
        read=((1 << 14, 1e-12), (1 << 20, 1e-11), (1 << 25, 1e-10)),
        update=((1 << 14, 2e-12), (1 << 20, 2e-11), (1 << 25, 2e-10)),
    )


_THROUGHPUTS = (*kinds(THROUGHPUTS), *ACCESSES)
