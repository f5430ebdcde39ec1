"""What bench/overlap/overlap.py tells the ranks to run: nests, sizes, and the contenders that take turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import _paths  # noqa: F401
import numpy as np
from _nests import advection3d, sqrt3d

import lapwing as lw
from lapwing.planner.plan import SLICE_SECONDS

ENGINES = ("blocking", "overlap", "onesided", "helper")


@lw.nest
def sqrt3d_repeated(a, sweeps):
    for t in range(sweeps):
        for i in range(1, a.shape[0]):
            for j in range(1, a.shape[1]):
                for k in range(1, a.shape[2]):
                    a[i, j, k] = np.sqrt(a[i - 1, j, k]) + np.sqrt(a[i, j - 1, k]) + np.sqrt(a[i, j, k - 1])


@dataclass(frozen=True)
class Pipelined:
    """A nest of one array; ``scalars`` are its other arguments, but for the number of sweeps."""

    nest: lw.Nest
    array: str
    dtype: str
    scalars: dict[str, float]

    def arguments(self, array: Any, sweeps: int) -> dict[str, Any]:
        counted = {"sweeps": sweeps} if "sweeps" in self.nest.loops.parameters else {}
        return {self.array: array, **counted, **self.scalars}


NESTS = {
    "sqrt3d": Pipelined(sqrt3d, "a", "float32", {}),
    "sqrt3d_repeated": Pipelined(sqrt3d_repeated, "a", "float32", {}),
    "advection3d": Pipelined(advection3d, "u", "float64", {"cx": 0.25, "cy": 0.2, "cz": 0.15}),
}


@dataclass(frozen=True)
class Contender:
    """One way to run, and what for. ``kind``:

    engine    Lapwing, as its users call it
    peer      peer_pipeline.c in the place of Lapwing's runtime: ProcNB, or ProcB with engine "blocking"
    compute   what each rank computes, with no messages
    wire      the same messages, as fast as they go, nothing computed, packed or unpacked: what ``hidden`` is measured
              against
    """

    name: str
    kind: str = "engine"
    engine: str = "overlap"
    split_bytes: int = 0
    slice_seconds: float = SLICE_SECONDS
    helper_cpu: str = "auto"
    events: int = 20_000  # kept on each rank: what was hidden is told from them


def engine(name: str) -> Contender:
    return Contender(name, engine=name)


COMPUTE, WIRE = (Contender(kind, kind) for kind in ("compute", "wire"))
PEER, PEER_BLOCKING = Contender("peer", "peer"), Contender("peer, blocking", "peer", "blocking")
LIMITS = (COMPUTE, WIRE)


@dataclass(frozen=True)
class Case:
    """A size of a nest and how it is cut. ``shape`` is that of the array, its edges of given values included."""

    nest: str
    shape: tuple[int, ...]
    sweeps: int
    tile: int
    grid: tuple[int, ...]


@dataclass(frozen=True)
class Job:
    """What the ranks do: all contenders take turns ``repeat`` times, after a round in which their results are compared."""

    case: Case
    contenders: tuple[Contender, ...]
    repeat: int

    @staticmethod
    def from_json(value: dict[str, Any]) -> Job:
        case = {**value["case"], "shape": tuple(value["case"]["shape"]), "grid": tuple(value["case"]["grid"])}
        return Job(Case(**case), tuple(Contender(**c) for c in value["contenders"]), value["repeat"])
