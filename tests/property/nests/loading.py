"""Imports a nest's source from a file, as its own module, and binds the nest for ranks."""

from __future__ import annotations

import importlib.util
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import lapwing as lw
from lapwing.loopnest.binding.bound_nest import BoundNest

# Stores that would leave the array in iterations which conditions or inner loops leave out: one rank does such nests.
_FOR_ONE_RANK = r"is stored .* that keeps? it inside"


def load(path: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def nest_of(text: str) -> lw.Nest:
    """The nest of that name in the text of a module."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "nest.py"
        path.write_text(text)
        nest: lw.Nest = load(path).nest
    return nest


def bind_for_ranks(nest: lw.Nest, arguments: Mapping[str, object]) -> BoundNest | None:
    """The nest bound to its arguments; None where it is one that only one rank may do."""
    try:
        return nest.bind(arguments)
    except lw.RefusedError as error:
        if all(re.search(_FOR_ONE_RANK, refusal.text) for refusal in error.refusals):
            return None
        raise
