"""A Machine as a JSON document that people can read, and back; what does not make sense is refused, key by key.

Units stand in the keys: ``latency_seconds``, ``contiguous_seconds_per_byte``. A measured number is an object with
``value``, the ends ``low`` and ``high`` of its 95 % interval (null where unknown) and its ``source``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NoReturn, TypeVar

from lapwing.errors import RefusedError
from lapwing.machine.core import ACCESSES, LATENCIES, THROUGHPUTS, Core, kinds
from lapwing.machine.machine import (
    ANY_ENGINE,
    OPERATIONS,
    PLACES,
    VERSION,
    Copies,
    Curve,
    Disk,
    Fingerprint,
    Kernel,
    KernelSample,
    Link,
    Machine,
    Quantity,
)
from lapwing.schedule.pipeline import ENGINES

FORMAT = "lapwing machine"

# What no machine reaches: numbers beyond are slips, most often of a unit.
_LONGEST_CALL = 1.0  # seconds of a message or a request of few bytes
_SLOWEST_BYTE = 1e-4  # seconds; 10 kB/s
_SLOWEST_POINT = 1e-2
_LARGEST_FILE = 64 << 20  # characters
Item = TypeVar("Item")


# -- writing ---------------------------------------------------------------------------------------------------------


def to_text(machine: Machine) -> str:
    """The machine as JSON text: always the same for the same machine."""
    return _laid_out(to_document(machine)) + "\n"


def to_document(machine: Machine) -> dict[str, Any]:
    """The machine as what json.dumps takes."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": machine.name,
        "source": machine.source,
        "created": machine.created,
        "fingerprint": {"cpu": machine.fingerprint.cpu, "mpi": machine.fingerprint.mpi},
        "cores_a_node": machine.cores_a_node,
        "noise_relative": _short(machine.noise),
        "links": links_document(machine.links),
        "copies": {
            "contiguous_seconds_per_byte": _quantity_document(machine.copies.contiguous_seconds_per_byte),
            "seconds_per_part": _quantity_document(machine.copies.seconds_per_part),
            "shared_read_seconds_per_line": _optional_document(machine.copies.shared_read_seconds_per_line),
            "shared_write_seconds_per_line": _optional_document(machine.copies.shared_write_seconds_per_line),
            "strided_seconds_per_element": _quantity_document(machine.copies.strided_seconds_per_element),
        },
        "disk": None if machine.disk is None else _disk_document(machine.disk),
        "core": None if machine.core is None else core_document(machine.core),
        "kernels": {key: _kernel_document(kernel) for key, kernel in sorted(machine.kernels.items())},
        "seconds_per_operation": _quantities_document(machine.seconds_per_operation),
        "known_nests_seconds_per_point": _quantities_document(machine.known_nests),
    }


def links_document(links: Mapping[str, Mapping[str, Link]]) -> dict[str, Any]:
    """The links of a Machine alone."""
    return {
        place: {engine: _link_document(link) for engine, link in sorted(engines.items())}
        for place, engines in sorted(links.items())
    }


def _quantity_document(quantity: Quantity) -> dict[str, Any]:
    ends = {
        name: None if end is None else _short(end) for name, end in (("low", quantity.low), ("high", quantity.high))
    }
    return {"value": _short(quantity.value), **ends, "source": quantity.source}


def _short(value: float) -> float:
    """To six digits: more would only hide what is known. Rounding keeps order, and with it ends of intervals in place."""
    return float(f"{value:.6g}")


def _quantities_document(quantities: Mapping[str, Quantity]) -> dict[str, Any]:
    return {name: _quantity_document(quantity) for name, quantity in sorted(quantities.items())}


def _curve_document(curve: Curve) -> dict[str, Any]:
    document: dict[str, Any] = {
        "bytes": [int(size) if size == int(size) else size for size, _ in curve.samples],
        "seconds": [_short(seconds) for _, seconds in curve.samples],
    }
    if curve.low and curve.high:
        document |= {"low": [_short(s) for s in curve.low], "high": [_short(s) for s in curve.high]}
    return {**document, "source": curve.source}


def _link_document(link: Link) -> dict[str, Any]:
    return {
        "send_cpu": _curve_document(link.send_cpu),
        "receive_cpu": _curve_document(link.receive_cpu),
        "wire": _curve_document(link.wire),
        "latency_seconds": _quantity_document(link.latency),
        "synchronisation_seconds": _quantity_document(link.synchronisation),
        "rendezvous_bytes": link.rendezvous_bytes,
        "setup_seconds": _optional_document(link.setup),
    }


def _disk_document(disk: Disk) -> dict[str, Any]:
    curves = {name: _curve_document(getattr(disk, name)) for name in _DISK_CURVES}
    return {**curves, "source": disk.source}


def core_document(core: Core) -> dict[str, Any]:
    """A core alone."""
    by_kind = {f"{name}_seconds": getattr(core, name) for name in _CORE_KINDS}
    sizes = {f"{name}_seconds_per_byte": getattr(core, name) for name in _CORE_SIZES}
    return {
        "cycle_seconds": _short(core.cycle),
        "vector_bytes": core.vector_bytes,
        "window_operations": _short(core.window),
        **{key: {kind: _short(value) for kind, value in sorted(found.items())} for key, found in by_kind.items()},
        **{key: [[size, _short(value)] for size, value in samples] for key, samples in sizes.items()},
    }


def _optional_document(quantity: Quantity | None) -> dict[str, Any] | None:
    return None if quantity is None else _quantity_document(quantity)


def _kernel_document(kernel: Kernel) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "step_overhead_seconds": _quantity_document(kernel.step_overhead),
        "samples": [_sample_document(KernelSample(*sample)) for sample in kernel.samples],
        "source": kernel.source,
    }


def _sample_document(sample: KernelSample) -> dict[str, Any]:
    return {name: _short(value) if isinstance(value, float) else value for name, value in sample._asdict().items()}


def _laid_out(value: Any, indent: str = "") -> str:
    """JSON with a line for each entry, but lists of numbers and small objects on one line."""
    flat = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if not isinstance(value, dict | list) or len(indent) + len(flat) <= 110:
        return flat
    items = value.values() if isinstance(value, dict) else value
    if not any(isinstance(item, dict | list) for item in items) and (isinstance(value, list) or "value" in value):
        return flat
    inner = indent + "  "
    if isinstance(value, list):
        lines = [inner + _laid_out(item, inner) for item in value]
        return "[\n" + ",\n".join(lines) + f"\n{indent}]"
    lines = [f"{inner}{json.dumps(k, ensure_ascii=False)}: {_laid_out(item, inner)}" for k, item in value.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


# -- reading ---------------------------------------------------------------------------------------------------------

_CORE_KINDS = {
    "latency": kinds(LATENCIES),
    **{width: [*kinds(THROUGHPUTS), *ACCESSES] for width in ("scalar", "vector")},
}
_CORE_SIZES = ("read", "update")
_DISK_CURVES = ("read", "write", "both", "read_alone", "write_alone")


@lru_cache(maxsize=8)  # a call that is planned asks for the same ones each time
def from_text(text: str, where: str) -> Machine:
    """The machine that a JSON text describes; ``where`` names the file in messages.

    Raises RefusedError, naming file, key, what was found and what was expected.
    """
    if len(text) > _LARGEST_FILE:
        raise RefusedError(f"{where}: {len(text):,} characters; no machine description is that long.")
    try:
        document = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise RefusedError(
            f"{where} is not JSON: {error}. Expected a machine description, as `lapwing calibrate -o FILE` writes it."
        ) from None
    return from_document(document, where)


def from_document(document: Any, where: str) -> Machine:
    """The machine that to_document described. Raises RefusedError as from_text does."""
    return _machine(_Entry(document, where, ""))


def links_from(document: Any, where: str) -> dict[str, dict[str, Link]]:
    """The links that links_document wrote. Raises RefusedError as from_text does."""
    return _links(_Entry(document, where, "links"))


def core_from(document: Any, where: str) -> Core:
    """The core that core_document wrote. Raises RefusedError as from_text does."""
    return _core(_Entry(document, where, "core"))


class _Entry:
    """A value in a document and where it stands; every way of reading it checks it."""

    def __init__(self, value: Any, file: str, key: str) -> None:
        self.value, self.file, self.key = value, file, key

    def refuse(self, expected: str) -> NoReturn:
        shown = json.dumps(self.value, ensure_ascii=False)
        shown = shown if len(shown) <= 60 else shown[:57] + "…"
        raise RefusedError(f"{self.file}: {self.key or 'the file'}: found {shown}, expected {expected}.")

    def entries(self, needed: Sequence[str], others: Sequence[str] = ()) -> dict[str, _Entry]:
        """The entries of an object that has all that are needed and none that are not known; those left out are null."""
        if not isinstance(self.value, dict):
            self.refuse(f"an object with {', '.join(needed)}")
        missing = [key for key in needed if key not in self.value]
        if missing:
            raise RefusedError(f"{self.file}: {self._path(missing[0])} is missing; expected {self._listed(needed)}.")
        unknown = [key for key in self.value if key not in needed and key not in others]
        if unknown:
            raise RefusedError(
                f"{self.file}: {self._path(unknown[0])} is not known; expected {self._listed([*needed, *others])}."
            )
        return {key: self._child(key, self.value.get(key)) for key in (*needed, *others)}

    def items(self, what: str, known: Sequence[str] | None = None) -> dict[str, _Entry]:
        """The entries of an object whose keys are names, or some of those that are known."""
        if not isinstance(self.value, dict):
            self.refuse(f"an object by {what}")
        for key in self.value:
            if known is not None and key not in known:
                raise RefusedError(f"{self.file}: {self._path(key)} is not known; expected {what}: {', '.join(known)}.")
        return {key: self._child(key, item) for key, item in self.value.items()}

    def list(self, read: Callable[[_Entry], Item], what: str) -> tuple[Item, ...]:
        if not isinstance(self.value, list) or not self.value:
            self.refuse(f"a list of {what}, at least one")
        return tuple(read(_Entry(item, self.file, f"{self.key}[{k}]")) for k, item in enumerate(self.value))

    def number(self, least: float, most: float, unit: str) -> float:
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            self.refuse(f"{unit}, a number from {least:g} to {most:g}")
        if not least <= value <= most:
            self.refuse(f"{unit}, from {least:g} to {most:g}")
        return float(value)

    def count(self, least: int, most: int, what: str) -> int:
        if isinstance(self.value, bool) or not isinstance(self.value, int) or not least <= self.value <= most:
            self.refuse(f"{what}, a whole number from {least} to {most:,}")
        return int(self.value)

    def text(self) -> str:
        if not isinstance(self.value, str):
            self.refuse("a text")
        return self.value

    def _child(self, key: str, value: Any) -> _Entry:
        return _Entry(value, self.file, self._path(key))

    def _path(self, key: str) -> str:
        return f"{self.key}.{key}" if self.key else key

    @staticmethod
    def _listed(keys: Sequence[str]) -> str:
        return ", ".join(keys)


def _machine(entry: _Entry) -> Machine:
    if not isinstance(entry.value, dict) or entry.value.get("format") != FORMAT:
        raise RefusedError(
            f'{entry.file} is no machine description: found no "format": "{FORMAT}". '
            "Expected a file that `lapwing calibrate -o FILE` wrote, or one like it."
        )
    version = entry.value.get("version")
    if version != VERSION:
        raise RefusedError(
            f"{entry.file}: version: found {version!r}, expected {VERSION}. Calibrate again with this Lapwing."
        )
    needed = ("format", "version", "name", "source", "cores_a_node", "links", "copies", "seconds_per_operation")
    others = ("created", "fingerprint", "noise_relative", "disk", "core", "kernels", "known_nests_seconds_per_point")
    at = entry.entries(needed, others)
    return Machine(
        name=at["name"].text(),
        source=at["source"].text(),
        cores_a_node=at["cores_a_node"].count(1, 100_000, "cores of a node"),
        links=_links(at["links"]),
        copies=_copies(at["copies"]),
        disk=None if at["disk"].value is None else _disk(at["disk"]),
        core=None if at["core"].value is None else _core(at["core"]),
        kernels={} if at["kernels"].value is None else _kernels(at["kernels"]),
        seconds_per_operation=_quantities(at["seconds_per_operation"], OPERATIONS, "kinds of operation"),
        known_nests=_quantities(at["known_nests_seconds_per_point"], None, "names of nests"),
        noise=0.0 if at["noise_relative"].value is None else at["noise_relative"].number(0, 10, "relative spread"),
        created="" if at["created"].value is None else at["created"].text(),
        fingerprint=Fingerprint() if at["fingerprint"].value is None else _fingerprint(at["fingerprint"]),
    )


def _links(entry: _Entry) -> dict[str, dict[str, Link]]:
    places = entry.items("places", PLACES)
    if not places:
        entry.refuse(f"at least one place: {', '.join(PLACES)}")
    return {
        place: {e: _link(at) for e, at in engines.items("engines", (*ENGINES, ANY_ENGINE)).items()}
        for place, engines in places.items()
    }


def _link(entry: _Entry) -> Link:
    needed = ("send_cpu", "receive_cpu", "wire", "latency_seconds", "synchronisation_seconds")
    at = entry.entries(needed, ("rendezvous_bytes", "setup_seconds"))
    rendezvous, setup = at["rendezvous_bytes"], at["setup_seconds"]
    return Link(
        send_cpu=_curve(at["send_cpu"]),
        receive_cpu=_curve(at["receive_cpu"]),
        wire=_curve(at["wire"]),
        latency=_quantity(at["latency_seconds"], _LONGEST_CALL, "seconds"),
        synchronisation=_quantity(at["synchronisation_seconds"], _LONGEST_CALL, "seconds"),
        rendezvous_bytes=None if rendezvous.value is None else rendezvous.count(0, 1 << 40, "bytes"),
        setup=None if setup.value is None else _quantity(setup, _LONGEST_CALL, "seconds"),
    )


_SHARED = ("shared_write_seconds_per_line", "shared_read_seconds_per_line")


def _copies(entry: _Entry) -> Copies:
    needed = ("contiguous_seconds_per_byte", "strided_seconds_per_element", "seconds_per_part")
    at = entry.entries(needed, _SHARED)
    shared = [at[name] for name in _SHARED]
    return Copies(
        _quantity(at["contiguous_seconds_per_byte"], _SLOWEST_BYTE, "seconds per byte"),
        _quantity(at["strided_seconds_per_element"], _SLOWEST_BYTE, "seconds per element"),
        _quantity(at["seconds_per_part"], _LONGEST_CALL, "seconds per part"),
        *(None if s.value is None else _quantity(s, _LONGEST_CALL, "seconds per cache line") for s in shared),
    )


def _disk(entry: _Entry) -> Disk:
    at = entry.entries(_DISK_CURVES, ("source",))
    curves = {name: _curve(at[name]) for name in _DISK_CURVES}
    return Disk(**curves, source="" if at["source"].value is None else at["source"].text())


def _core(entry: _Entry) -> Core:
    by_kind = {name: f"{name}_seconds" for name in _CORE_KINDS}
    sizes = {name: f"{name}_seconds_per_byte" for name in _CORE_SIZES}
    at = entry.entries(("cycle_seconds", "vector_bytes", "window_operations", *by_kind.values(), *sizes.values()))
    latency, scalar, vector = (_core_kinds(at[key], _CORE_KINDS[name]) for name, key in by_kind.items())
    read, update = (at[key].list(_core_sample, "sizes with seconds per byte") for key in sizes.values())
    return Core(
        cycle=at["cycle_seconds"].number(1e-12, _SLOWEST_POINT, "seconds"),
        vector_bytes=at["vector_bytes"].count(1, 1 << 12, "bytes"),
        window=at["window_operations"].number(0, 1e6, "operations"),
        latency=latency,
        scalar=scalar,
        vector=vector,
        read=read,
        update=update,
    )


def _core_kinds(entry: _Entry, known: Sequence[str]) -> dict[str, float]:
    found = entry.entries(known)
    return {kind: at.number(0, _SLOWEST_POINT, "seconds") for kind, at in found.items()}


def _core_sample(entry: _Entry) -> tuple[int, float]:
    if not isinstance(entry.value, list) or len(entry.value) != 2:
        entry.refuse("a size in bytes and seconds per byte")
    size, seconds = (_Entry(value, entry.file, f"{entry.key}[{k}]") for k, value in enumerate(entry.value))
    return size.count(1, 1 << 50, "bytes"), seconds.number(0, _SLOWEST_BYTE, "seconds per byte")


def _kernels(entry: _Entry) -> dict[str, Kernel]:
    return {key: _kernel(key, at) for key, at in entry.items("keys of kernels").items()}


def _kernel(key: str, entry: _Entry) -> Kernel:
    at = entry.entries(("name", "samples", "step_overhead_seconds"), ("source",))
    return Kernel(
        key=key,
        name=at["name"].text(),
        samples=at["samples"].list(_kernel_sample, "measured tile heights"),
        step_overhead=_quantity(at["step_overhead_seconds"], _LONGEST_CALL, "seconds"),
        source="" if at["source"].value is None else at["source"].text(),
    )


def _kernel_sample(entry: _Entry) -> KernelSample:
    *counts, seconds, low, high = KernelSample._fields
    at = entry.entries((*counts, seconds), (low, high))
    points, run, size = (at[name].count(1, 1 << 60, name.split("_")[-1]) for name in counts)
    value = at[seconds].number(0, _SLOWEST_POINT, "seconds per point")
    return KernelSample(points, run, size, value, *_interval(at, value, _SLOWEST_POINT, "seconds per point"))


def _quantities(entry: _Entry, known: Sequence[str] | None, what: str) -> dict[str, Quantity]:
    if entry.value is None:
        return {}
    return {name: _quantity(at, _SLOWEST_POINT, "seconds") for name, at in entry.items(what, known).items()}


def _quantity(entry: _Entry, most: float, unit: str) -> Quantity:
    at = entry.entries(("value",), ("low", "high", "source"))
    value = at["value"].number(0, most, unit)
    return Quantity(value, *_interval(at, value, most, unit), "" if at["source"].value is None else at["source"].text())


def _interval(at: Mapping[str, _Entry], value: float, most: float, unit: str) -> tuple[float | None, float | None]:
    low = None if at["low"].value is None else at["low"].number(0, value, f"{unit}, the lower end of an interval")
    high = None if at["high"].value is None else at["high"].number(value, most, f"{unit}, the upper end of an interval")
    return low, high


def _curve(entry: _Entry) -> Curve:
    at = entry.entries(("bytes", "seconds"), ("low", "high", "source"))
    sizes = at["bytes"].list(lambda item: item.number(0, 2.0**50, "bytes"), "sizes in bytes")
    if list(sizes) != sorted(set(sizes)):
        at["bytes"].refuse("sizes that ascend")
    seconds = _column(at["seconds"], sizes)
    low = () if at["low"].value is None else _column(at["low"], sizes)
    high = () if at["high"].value is None else _column(at["high"], sizes)
    source = "" if at["source"].value is None else at["source"].text()
    return Curve(tuple(zip(sizes, seconds, strict=True)), low, high, source)


def _column(entry: _Entry, sizes: Sequence[float]) -> tuple[float, ...]:
    """Seconds, one for each size, none longer than the slowest link there could be."""
    if isinstance(entry.value, list) and len(entry.value) != len(sizes):
        entry.refuse(f"{len(sizes)} numbers, one for each size in bytes")
    longest = iter(sizes)
    return entry.list(lambda item: item.number(0, _LONGEST_CALL + _SLOWEST_BYTE * next(longest), "seconds"), "seconds")


def _fingerprint(entry: _Entry) -> Fingerprint:
    at = entry.entries(("cpu", "mpi"))
    return Fingerprint(at["cpu"].text(), at["mpi"].text())
