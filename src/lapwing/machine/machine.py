"""A machine as plans see it: what computing, messages, copies and the disk cost, with units, intervals and sources.

Pure: no clock, no MPI, no files. document.py turns a Machine into JSON and back, stored.py keeps such files.
Times are in seconds and sizes in bytes throughout.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from lapwing.errors import RefusedError
from lapwing.machine.core import Core

VERSION = 1
PLACES = ("node", "network")  # two ranks share a node's memory, or a network joins their nodes
ANY_ENGINE = "*"
OPERATIONS = ("add", "mul", "div", "sqrt", "load", "store", "other")

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Quantity:
    """A number, its 95 % interval (None where it is not known) and where it comes from.

    The unit is in the name of the field that holds it: ``…_seconds_per_byte``, or seconds where nothing is said.
    """

    value: float
    low: float | None = None
    high: float | None = None
    source: str = ""


@dataclass(frozen=True)
class Curve:
    """Seconds as a function of bytes: measured samples with straight lines between them.

    samples: (bytes, seconds), bytes ascending. Below the first sample the curve is constant, beyond the last it goes on
    as between the last two, never down. low, high: ends of the samples' 95 % intervals in seconds, or ().
    """

    samples: tuple[tuple[float, float], ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    source: str = ""

    @staticmethod
    def line(seconds: float, seconds_per_byte: float = 0.0, source: str = "") -> Curve:
        """``seconds + seconds_per_byte · bytes``."""
        if seconds_per_byte == 0:
            return Curve(((0.0, seconds),), source=source)
        megabyte = 1e6  # any two points make the line
        return Curve(((0.0, seconds), (megabyte, seconds + seconds_per_byte * megabyte)), source=source)

    @overload
    def __call__(self, bytes: float) -> float: ...
    @overload
    def __call__(self, bytes: npt.NDArray[Any]) -> Floats: ...
    def __call__(self, bytes: float | npt.NDArray[Any]) -> float | Floats:
        """Seconds for one size or an array of sizes."""
        sizes, seconds = self._columns
        beyond = np.maximum(np.asarray(bytes, np.float64) - sizes[-1], 0.0)
        found: Floats = np.interp(bytes, sizes, seconds) + self._last_slope * beyond
        return found if isinstance(bytes, np.ndarray) else float(found)

    @cached_property
    def _columns(self) -> tuple[Floats, Floats]:
        table = np.array(self.samples, np.float64)
        return table[:, 0], table[:, 1]

    @cached_property
    def _last_slope(self) -> float:
        """Seconds per byte beyond the last sample. Noise must not make larger messages cheaper without end."""
        sizes, seconds = self._columns
        if len(sizes) < 2:
            return 0.0
        return max(0.0, float((seconds[-1] - seconds[-2]) / (sizes[-1] - sizes[-2])))


@dataclass(frozen=True)
class Link:
    """How the messages of one engine travel between two ranks at one place (on a node, or over the network).

    ``send_cpu`` and ``receive_cpu``: the CPU seconds a message costs its sender and its receiver in calls, packing and
    unpacking apart. ``wire``: how long the message occupies the link, the inverse of its throughput. ``latency``:
    seconds from leaving the link until a receiver that polls sees it. ``synchronisation``: what a synchronous send
    takes on top of that. ``rendezvous_bytes``: from this size on the library asks the receiver first (None: never, or
    not known). ``setup``: what a run takes before its first step and after its last, for channels to be made and
    closed (None: not known).

    A message of b bytes that meets an idle link is seen send_cpu(b) + wire(b) + latency after its sending began.
    """

    send_cpu: Curve
    receive_cpu: Curve
    wire: Curve
    latency: Quantity
    synchronisation: Quantity
    rendezvous_bytes: int | None = None
    setup: Quantity | None = None


@dataclass(frozen=True)
class Copies:
    """What packing or unpacking a face costs: a part of a message is one call, its elements lie in runs or apart.

    seconds = seconds_per_part + bytes · contiguous_seconds_per_byte for whole runs of memory, and
    seconds_per_part + elements · strided_seconds_per_element for elements a stride apart.

    Between ranks of a node every cache line costs more: ``shared_write_seconds_per_line`` where another core has read it,
    ``shared_read_seconds_per_line`` where another has written it (None: not known).
    """

    contiguous_seconds_per_byte: Quantity
    strided_seconds_per_element: Quantity
    seconds_per_part: Quantity
    shared_write_seconds_per_line: Quantity | None = None
    shared_read_seconds_per_line: Quantity | None = None


@dataclass(frozen=True)
class Disk:
    """One disk: ``read``, ``write`` and ``both`` (as many reads as writes) are seconds a request of a size occupies the
    disk with several in flight, the inverse of the throughput; ``read_alone`` and ``write_alone`` are seconds until a
    request is done with no other in flight."""

    read: Curve
    write: Curve
    both: Curve
    read_alone: Curve
    write_alone: Curve
    source: str = ""


class KernelSample(NamedTuple):
    """One measured tile height: the points of a step, how many of them lie in a row along the innermost loop, the bytes of
    all arrays that the rank's whole block touches (which decide whether a sweep finds them in a cache), and seconds per
    point inside compute() with the ends of its 95 % interval."""

    points_a_step: int
    innermost_run: int
    working_set_bytes: int
    seconds_per_point: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Kernel:
    """The compiled tile of one nest with its types. ``key`` is the digest of the tile's source (see calibrate.tile).

    ``step_overhead``: seconds a step costs beside its points, which the samples do not contain.
    """

    key: str
    name: str
    samples: tuple[KernelSample, ...]
    step_overhead: Quantity
    source: str = ""

    def seconds_per_point(self, points: float, run: float, bytes: float) -> float:
        """Seconds per point of a step of ``points`` points in rows of ``run``, in a block that touches ``bytes``.

        Distances are between logarithms: the nearest sample, and on the line to the other sample that passes closest
        by, linearly between the two. Nothing is extrapolated.
        """
        wanted = np.log2(np.maximum([points, run, bytes], 1.0))
        places, seconds = self._columns
        offsets = wanted - places
        nearest = int(np.argmin((offsets**2).sum(axis=1)))
        directions = places - places[nearest]
        lengths = (directions**2).sum(axis=1)
        # How far along each line the foot of the perpendicular lies; a sample in the same place has no line.
        shares = np.clip(directions @ offsets[nearest] / np.where(lengths > 0, lengths, 1.0), 0.0, 1.0)
        shares[lengths == 0] = 0.0
        gaps = ((offsets[nearest] - shares[:, None] * directions) ** 2).sum(axis=1)
        other = int(np.argmin(gaps))
        return float(seconds[nearest] + shares[other] * (seconds[other] - seconds[nearest]))

    @cached_property
    def _columns(self) -> tuple[Floats, Floats]:
        """Per sample its place (logarithms of points, run and bytes), and seconds per point."""
        table = np.array([tuple(sample)[:4] for sample in self.samples], np.float64)
        return np.log2(np.maximum(table[:, :3], 1.0)), table[:, 3]


@dataclass(frozen=True)
class Fingerprint:
    """What a measured description holds for: another CPU or MPI makes it stale. Empty texts are not compared."""

    cpu: str = ""
    mpi: str = ""

    def changes(self, here: Fingerprint) -> tuple[str, ...]:
        """What differs, a text each: "CPU: measured on …, now …"."""
        pairs = (("CPU", self.cpu, here.cpu), ("MPI", self.mpi, here.mpi))
        return tuple(
            f"{what}: measured on {then}, now {now}" for what, then, now in pairs if then and now and then != now
        )


@dataclass(frozen=True)
class Machine:
    """A machine with its parameters. Every number says where it comes from.

    ``links``: by place (PLACES) and engine, ANY_ENGINE standing for those not named. ``kernels``: tiles measured here,
    by key. ``core``: what one of its cores takes at best (None: not known). ``seconds_per_operation``: for nests never measured
    here, by kind (OPERATIONS). ``known_nests``: published seconds per point by the nest's name. ``noise``: relative spread of
    repeated measurements, 0 where nothing was measured.
    """

    name: str
    source: str
    cores_a_node: int
    links: Mapping[str, Mapping[str, Link]]
    copies: Copies
    seconds_per_operation: Mapping[str, Quantity]
    disk: Disk | None = None
    core: Core | None = None
    kernels: Mapping[str, Kernel] = field(default_factory=dict)
    known_nests: Mapping[str, Quantity] = field(default_factory=dict)
    noise: float = 0.0
    created: str = ""
    fingerprint: Fingerprint = Fingerprint()

    def link(self, place: str, engine: str) -> Link:
        """How messages of an engine travel at a place. Raises RefusedError where the description does not say."""
        engines = self.links.get(place, {})
        found = engines.get(engine) or engines.get(ANY_ENGINE)
        if found is None:
            known = ", ".join(f"{p} ({', '.join(sorted(e))})" for p, e in sorted(self.links.items())) or "none"
            raise RefusedError(
                f"machine {self.name} has no link at place {place!r} for engine {engine}; it has {known}. "
                f"{'Calibrate with --hosts, or' if place == 'network' else 'Calibrate, or'} use another machine file."
            )
        return found
