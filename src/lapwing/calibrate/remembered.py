"""What was measured of tiles, kept in the user's cache between runs."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lapwing.codegen.compilation.cache import cache_directory, make_cache_directory
from lapwing.planner.rates import Shape

_VERSION = 1

Entry = Mapping[str, Any]  # fit for JSON


def path_of(name: str) -> Path:
    return cache_directory() / "probes" / f"{name}.json"


def read(path: Path, loops: int) -> list[tuple[Shape, Entry]]:
    """Every shape with its entry; nothing where the file is not there or makes no sense: it is measured again.

    loops: of the nest that are cut into tiles.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["version"] != _VERSION:
            return []
        return [(_shape(entry, loops), entry) for entry in document["shapes"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def seconds(value: Any) -> float:
    """A time that was measured. Raises ValueError or TypeError for what is none."""
    found = float(value)
    if not 0 <= found < math.inf:
        raise ValueError(f"{value} seconds")
    return found


def _shape(entry: Entry, loops: int) -> Shape:
    block, mapping, tile = tuple(entry["block"]), entry["mapping"], entry["tile"]
    known = len(block) == loops and (mapping is None or mapping in range(loops))
    joined = entry.get("joined", 1)
    if not known or not all(type(n) is int and n > 0 for n in (*block, tile, joined)):
        raise ValueError(f"no shape of {loops} loops: {entry}")
    return Shape(block, mapping, tile, joined)


def write(path: Path, entries: Sequence[tuple[Shape, Entry]]) -> None:
    """Keep these entries in place of others; where that cannot be done, they are measured again."""
    shapes = [{**vars(shape), **entry} for shape, entry in entries]
    try:
        make_cache_directory()
        path.parent.mkdir(mode=0o700, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps({"version": _VERSION, "shapes": shapes}), encoding="utf-8")
        temporary.replace(path)
    except OSError:
        pass
