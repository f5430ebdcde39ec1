"""Machine descriptions in files: those of known clusters that come with Lapwing, and this machine's own."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from lapwing.errors import LapwingError, RefusedError
from lapwing.machine.document import from_text, to_text
from lapwing.machine.machine import Machine

_CLUSTERS = files("lapwing.machine") / "clusters"
_OWN = "machine.json"


def cluster_names() -> tuple[str, ...]:
    """The clusters whose descriptions come with Lapwing: names for ``--machine``."""
    return tuple(
        sorted(entry.name.removesuffix(".json") for entry in _CLUSTERS.iterdir() if entry.name.endswith(".json"))
    )


def find(name: str) -> Machine:
    """The machine of a file, or of a cluster's name. Raises RefusedError where there is neither or it makes no sense."""
    if name in cluster_names() and not os.path.exists(name):
        return from_text((_CLUSTERS / f"{name}.json").read_text(encoding="utf-8"), f"{name}.json")
    if not os.path.exists(name):
        raise RefusedError(
            f"no machine {name}: expected a file, or one of {', '.join(cluster_names())}. "
            "`lapwing calibrate -o FILE` measures this machine and writes such a file."
        )
    return read(Path(name))


def read(path: Path) -> Machine:
    """The machine a file describes. Raises RefusedError where it cannot be read or makes no sense."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise RefusedError(f"{path} cannot be read: {reason}. Expected a machine description (JSON).") from None
    return from_text(text, str(path))


def write(machine: Machine, path: Path) -> None:
    """Write a description in one step: whoever reads the path finds all of it, or what was there before.

    Raises LapwingError where it cannot be written.
    """
    text = to_text(machine)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        target = os.path.realpath(path)
        if path.exists() and not path.is_file():  # a device or a pipe, which must not be replaced
            path.write_text(text, encoding="utf-8")
            return
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=os.path.dirname(target))
        try:
            with open(descriptor, "w", encoding="utf-8") as stream:
                stream.write(text)
            os.chmod(name, 0o644)
            os.replace(name, target)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise LapwingError(f"{path} cannot be written: {error.strerror}. Name another file.") from error


def own_path(cache: Path) -> Path:
    """Where the description of this machine is kept; ``cache``: the user's cache directory (codegen.cache)."""
    return cache / _OWN


def own(cache: Path) -> Machine | None:
    """This machine as it was calibrated; None where it never was. Raises RefusedError for a file that makes no sense."""
    path = own_path(cache)
    return read(path) if path.is_file() else None


def joined(measured: Machine, before: Machine) -> tuple[Machine, list[str]]:
    """A machine as it was measured, with what only an earlier measurement of the same machine found; and a line on each."""
    kept = []
    machine = measured
    for place in before.links.keys() - measured.links.keys():
        machine = replace(machine, links={**machine.links, place: before.links[place]})
        kept.append(f"kept from {before.created or 'before'}: messages over the {place}")
    if measured.disk is None and before.disk is not None:
        machine = replace(machine, disk=before.disk)
        kept.append(f"kept from {before.created or 'before'}: the disk, {before.disk.source}")
    others = {key: kernel for key, kernel in before.kernels.items() if key not in measured.kernels}
    if others:
        machine = replace(machine, kernels={**others, **measured.kernels})
        kept.append(f"kept from {before.created or 'before'}: tiles of {', '.join(k.name for k in others.values())}")
    return machine, kept
