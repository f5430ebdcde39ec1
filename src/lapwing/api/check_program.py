"""Comparing a program with plain Python: everything it is given, and what it returns, bit by bit.

Where the whole run is short and adds up no floats, the Python function itself is the reference. Else it is the driver, with the
plain loop (``check``) in the place of every region.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lapwing.api.calls.run import bound_alone
from lapwing.api.check import PYTHON_ITERATIONS, PlainLoop, array_difference, same_number
from lapwing.loopnest.program.program import Program
from lapwing.loopnest.source import call_by_name
from lapwing.runtime.binding import native
from lapwing.scratch_arrays import is_scratch


@dataclass(frozen=True)
class ProgramReference:
    """What plain Python makes of the arguments, and returns; or what it raises. how: which plain Python it was. unwanted:
    arguments whose elements nobody reads after it."""

    arguments: Mapping[str, Any]
    returned: Any
    raises: str | None
    how: str
    unwanted: frozenset[str] = frozenset()

    def differences(self, arguments: Mapping[str, Any], returned: Any) -> list[str]:
        """What differs after a run that came to its end; a text for each."""
        if self.raises is not None:
            return [f"it finished, but plain Python {self.raises}"]
        arrays = [(n, v, arguments[n]) for n, v in self.arguments.items() if isinstance(v, np.ndarray)]
        arrays = [(n, right, found) for n, right, found in arrays if n not in self.unwanted]
        return [*(t for name, right, found in arrays for t in _different(name, right, found)),
                *_different("what is returned", self.returned, returned)]  # fmt: skip


def program_reference(
    program: Program,
    regions: Sequence[Any],
    arguments: Mapping[str, Any],
    announce: native.Announce,
) -> ProgramReference:
    """Run plain Python on copies of the arguments. Raises RunError and BuildError as make_reference does."""
    unwanted = program.deleted | {name for name, value in arguments.items() if is_scratch(value)}
    copies = copy.deepcopy(dict(arguments))
    plain = [_PlainRegion(region, announce) for region in regions]
    driver = program.driver(plain, [*program.procedures.values()])
    found = replace(_run(program, driver, copies, "the driver with plain loops"), unwanted=unwanted)
    if found.raises is None and all(region.is_python for region in plain):
        copies = copy.deepcopy(dict(arguments))
        found = _run(program, program.source.function, copies, "the Python function")
        return replace(found, unwanted=unwanted)
    return found


def _run(program: Program, function: Any, copies: dict[str, Any], how: str) -> ProgramReference:
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            returned = call_by_name(function, copies, program.source.function)
    except _Stops as error:
        return ProgramReference({}, None, str(error), how)
    except Exception as error:
        return ProgramReference({}, None, f"raises {type(error).__name__}: {error}", how)
    return ProgramReference(copies, returned, None, how)


class _Stops(Exception):
    """The plain loop of a region raises or stops; the text says what."""


class _PlainRegion:
    """The plain loop in the place of a region. is_python: whether Python itself has done all of it, as without Lapwing."""

    def __init__(self, region: Any, announce: native.Announce) -> None:
        self._region, self._announce = region, announce
        self._loops: dict[Any, PlainLoop] = {}
        self._iterations = 0
        self.is_python = True

    def __call__(self, *values: Any) -> Any:
        arguments = dict(zip(self._region.loops.parameters, values, strict=True))
        region = self._region.for_arguments(arguments)
        bound = bound_alone(region, arguments)
        self._iterations += bound.domain.box_volume
        in_python = self._iterations <= PYTHON_ITERATIONS
        sums = any(accumulator.exact_sum for accumulator in bound.body.accumulators)
        self.is_python = self.is_python and in_python and not sums
        plain = self._loops.setdefault(bound, PlainLoop(region.source, bound, self._announce))
        reference = plain(arguments, in_python)
        if reference.raises is not None:
            raise _Stops(reference.raises)
        for name, array in reference.arrays.items():
            arguments[name][...] = array
        return region.loops.returned(reference.results)


def _different(name: str, expected: Any, found: Any) -> list[str]:
    match expected:
        case np.ndarray() if isinstance(found, np.ndarray) and expected.dtype == found.dtype:
            if expected.shape != found.shape:
                return [f"{name} has shape {found.shape}, expected {expected.shape}"]
            text = array_difference(name, np.atleast_1d(expected), np.atleast_1d(found))
            return [text] if text else []
        case tuple() | list() if type(found) is type(expected) and len(found) == len(expected):
            pairs = enumerate(zip(expected, found, strict=True))
            return [text for k, (one, other) in pairs for text in _different(f"{name}[{k}]", one, other)]
        case dict() if isinstance(found, dict) and found.keys() == expected.keys():
            return [text for k in expected for text in _different(f"{name}[{k!r}]", expected[k], found[k])]
        case bool() | int() | float() | complex() | np.generic() if same_number(expected, found):
            return []
        case _ if type(found) is type(expected) and not isinstance(expected, np.ndarray) and found == expected:
            return []
    return [f"{name} is {found!r}, expected {expected!r}"]
