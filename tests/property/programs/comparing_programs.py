"""A random program is written to a file, imported, and run beside plain Python."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from random_programs import RandomProgram

import lapwing as lw


def load(path: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def run(function: Any, arguments: tuple[Any, ...]) -> Any:
    """What a call returns or raises."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return function(*arguments)
        except (ArithmeticError, AssertionError, UnboundLocalError) as error:
            return type(error)


def compare(case: RandomProgram, nest: lw.Nest) -> str:
    """Run the program, and see that all arrays and what is returned have the bits of plain Python; in a word what came of it."""
    given, expected = case.arguments(), case.arguments()
    right = run(nest.python, expected)
    try:
        found = run(nest, given)
    except lw.RefusedError as error:
        return "refused: " + str(error).splitlines()[0].split(": ", 1)[1][:60]
    except lw.RunError:
        assert isinstance(right, type), "it stops, plain Python does not"
        return "stops"
    if isinstance(right, type):
        assert found is right, f"{found!r}, expected {right}"
        return "raises"
    check_same("returned", found, right)
    for name, here, there in zip("uvwsx", given, expected, strict=False):
        check_same(name, here, there)
    return "same"


def compare_distributed(case: RandomProgram, nest: lw.Nest) -> str:
    """The same on ranks with DistributedArrays, of which the driver may take views for all that stands there: that is refused."""
    given = [
        lw.from_function(lambda *at, a=a: a[at], a.shape, a.dtype) if isinstance(a, np.ndarray) else a
        for a in case.arguments()
    ]
    expected = case.arguments()
    right = run(nest.python, expected)
    try:
        found = run(nest, tuple(given))
    except lw.RefusedError:
        return "distributed, refused"
    except ValueError as error:
        if "read-only" not in str(error):
            raise
        return "distributed, refused"
    except lw.RunError:
        assert isinstance(right, type), "it stops, plain Python does not"
        return "distributed, stops"
    if isinstance(right, type):
        assert found is right, f"{found!r}, expected {right}"
        return "distributed, raises"
    check_same("returned", _plain(found), right)
    for name, here, there in zip("uvwsx", given, expected, strict=False):
        check_same(name, _plain(here), there)
    return "distributed, same"


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return np.asarray(value) if isinstance(value, lw.DistributedArray) else value


def compare_on_disk(case: RandomProgram, nest: lw.Nest, folder: Path) -> str:
    """The same with its arrays on disk, watched, with what NumPy's views of arrays on disk cannot do refused."""
    given, expected = list(case.arguments()), case.arguments()
    right = run(nest.python, expected)
    for k, values in enumerate(given):
        if isinstance(values, np.ndarray):
            given[k] = lw.create(folder / f"{k}.zarr", values.shape, values.dtype)
            given[k].write(tuple((0, n) for n in values.shape), values)
    try:
        found = run(lambda *arguments: in_memory(nest.run(*arguments).returned), tuple(given))
    except lw.RefusedError as error:
        return "refused: " + str(error).splitlines()[0][-60:]
    except lw.RunError:
        assert isinstance(right, type), "it stops, plain Python does not"
        return "stops"
    except ValueError as error:
        if "read-only" not in str(error):  # u[0] += 1
            raise
        return "refused: read-only"
    if isinstance(right, type):
        assert found is right, f"{found!r}, expected {right}"
        return "raises"
    check_same("returned", found, right)
    for name, here, there in zip("uvwsx", map(in_memory, given), expected, strict=False):
        check_same(name, here, there)
    return "same"


def in_memory(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(in_memory, value))
    return value.numpy() if isinstance(value, lw.StoredArray) else value


def check_same(name: str, found: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        assert isinstance(found, tuple)
        assert len(found) == len(expected)
        for k, (here, there) in enumerate(zip(found, expected, strict=True)):
            check_same(f"{name}[{k}]", here, there)
    elif isinstance(expected, np.ndarray):
        assert isinstance(found, np.ndarray)
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        apart = np.argwhere((found != expected) & ~((found != found) & (expected != expected)))
        assert not len(apart), (
            f"{name}{apart[0].tolist()} is {found[tuple(apart[0])]}, expected {expected[tuple(apart[0])]}"
        )
        assert found.tobytes() == expected.tobytes() or np.isnan(expected).any() or (expected == 0).any(), name
    else:
        assert type(found) is type(expected), f"{name}: {type(found)}, expected {type(expected)}"
        assert found == expected or found != found, f"{name} is {found}, expected {expected}"
