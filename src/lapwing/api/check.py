"""Comparing a run with the plain sequential loop, bit by bit.

The Python function itself is the reference for small sizes. For larger ones it is the same loop in C (codegen.plain),
which first has to agree with Python on a corner of the very same arrays: every range cut to its first few iterations.

Sums of floats are exact sums rounded once. Where Python runs a loop with such a sum, the terms are still those of the
Python loop, added exactly; every other value is Python's own.
"""

from __future__ import annotations

import ast
import copy
import ctypes
import math
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.codegen.plain import plain_source
from lapwing.errors import RunError
from lapwing.loopnest import ir
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest, global_values
from lapwing.loopnest.source import FunctionSource
from lapwing.runtime.arrays.storage import allocate, attach
from lapwing.runtime.binding import native
from lapwing.runtime.rounding import nearest
from lapwing.runtime.workspace import Reductions, Workspace
from lapwing.syntax_places import with_ends

PYTHON_ITERATIONS = 200_000  # what CPython does in a second
CORNER_ITERATIONS = 20_000
_COMPARED_AT_ONCE = 1 << 22  # elements
_UNLIMITED = 2**62

Array = npt.NDArray[np.generic]


@dataclass(frozen=True)
class Reference:
    """What the plain loop gives: its written arrays and reductions by name, or what it raises.

    ``how`` says which plain loop it was.
    """

    arrays: Mapping[str, Array]
    results: Mapping[str, Any]
    raises: str | None
    how: str


def make_reference(
    source: FunctionSource, bound: BoundNest, arguments: Mapping[str, Any], announce: native.Announce
) -> Reference:
    """Run the plain loop on copies of the arguments.

    Raises RunError where the compiled plain loop disagrees with Python, and BuildError where it cannot be compiled.
    """
    return PlainLoop(source, bound, announce)(arguments, bound.domain.box_volume <= PYTHON_ITERATIONS)


class PlainLoop:
    """The plain loop of a bound nest: in Python, or in C, which is held against Python once, on the arguments at hand."""

    def __init__(self, source: FunctionSource, bound: BoundNest, announce: native.Announce) -> None:
        self._source, self._bound, self._announce = source, bound, announce
        self._library: Any = None

    def __call__(self, arguments: Mapping[str, Any], in_python: bool) -> Reference:
        """Run it on copies of the arguments. Raises as make_reference does."""
        bound = self._bound
        if in_python:
            return _run_python(self._source, bound, arguments, None)
        values = {**global_values(self._source.function), **arguments}
        if self._library is None:
            self._library = self._checked_library(arguments, values)
        return _run_compiled(self._library, bound, values, _UNLIMITED)

    def _checked_library(self, arguments: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
        bound = self._bound
        library = native.build_plain(plain_source(bound), self._announce, f"the plain loop of {bound.nest.name}")
        limit = _corner(bound)
        by_python = _run_python(self._source, bound, arguments, limit)
        by_c = _run_compiled(library, bound, values, limit)
        if (by_python.raises is None) != (by_c.raises is None):
            wrong = [f"Python {by_python.raises or 'finishes'}, it {by_c.raises or 'finishes'}"]
        else:
            wrong = differences(by_python, by_c.arrays, by_c.results)
        if wrong:
            raise RunError(
                f"{bound.nest.where(bound.nest.line)}: the compiled plain loop differs from the Python function "
                f"on the first {limit} iterations of every loop: {'; '.join(wrong)}. "
                "This compiler cannot be trusted to check; nothing was run."
            )
        return library


def differences(reference: Reference, arrays: Mapping[str, Any], results: Mapping[str, Any]) -> list[str]:
    """What differs from the reference, a text for each array and reduction; empty where all bits are the same.

    Two NaNs are the same whatever their bits.
    """
    return [*array_differences(reference, arrays), *number_differences(reference, results)]


def array_differences(reference: Reference, arrays: Mapping[str, Any]) -> list[str]:
    """Of ``differences`` those of arrays."""
    found = [array_difference(name, expected, arrays[name]) for name, expected in reference.arrays.items()]
    return [text for text in found if text]


def number_differences(reference: Reference, results: Mapping[str, Any]) -> list[str]:
    """Of ``differences`` those of reductions."""
    return [
        f"{name} is {results[name]!r}, expected {value!r}"
        for name, value in reference.results.items()
        if not same_number(value, results[name])
    ]


# -- in Python -------------------------------------------------------------------------------------------------------


def _run_python(source: FunctionSource, bound: BoundNest, arguments: Mapping[str, Any], limit: int | None) -> Reference:
    """The Python function on copies of the arguments, each range cut to ``limit`` iterations."""
    copies = {**arguments, **_copies(bound, arguments)}
    sums = [a for a in bound.body.accumulators if a.exact_sum]
    function = _variant(source, bound.nest, sums, limit) if limit is not None or sums else source.function
    names, how = bound.nest.returns, "the Python function"
    raises: str | None = None
    returned: Any = None
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            returned = function(**copies)
    except Exception as error:
        raises = f"raises {type(error).__name__}: {error}"
    if raises is not None:
        return Reference({}, {}, raises, how)
    values: tuple[Any, ...] = returned if bound.nest.returns_tuple else (returned,) * len(names)
    totals = [value.total() if isinstance(value, _Terms) else value for value in values]
    arrays = {name: copies[name] for name in bound.nest.written if name not in bound.dead}
    return Reference(arrays, dict(zip(names, totals, strict=True)), None, how)


class _Terms:
    """Stands for a sum of floats or complex numbers in the Python loop and keeps the terms, to add their parts exactly."""

    __array_ufunc__ = None  # NumPy scalars leave adding to this class

    def __init__(self, parts: Sequence[t.Accumulator]) -> None:
        self.dtype = np.dtype(parts[0].dtype)
        self.is_complex = len(parts) > 1
        self.terms = [tuple(self._rounded(part.initial) for part in parts)]

    def __add__(self, term: Any) -> _Terms:
        parts = (term.real, term.imag) if self.is_complex else (term,)
        self.terms.append(tuple(map(self._rounded, parts)))
        return self

    __radd__ = __add__

    def __sub__(self, term: Any) -> _Terms:
        return self.__add__(-term)

    def total(self) -> float | complex:
        """The exact sum, rounded once to the accumulator's type."""
        totals = [self._total_of(terms) for terms in zip(*self.terms, strict=True)]
        return complex(*totals) if self.is_complex else totals[0]

    def _total_of(self, terms: Sequence[float]) -> float:
        if not all(map(math.isfinite, terms)):
            return sum(x for x in terms if not math.isfinite(x))
        return nearest(sum(map(Fraction, terms), Fraction()), self.dtype.name)

    def _rounded(self, term: Any) -> float:
        return float(self.dtype.type(term))


def _variant(
    source: FunctionSource, nest: ir.LoopNest, sums: list[t.Accumulator], limit: int | None
) -> Callable[..., Any]:
    """The same function with float sums as ``_Terms`` and each of the nest's own loops stopped after ``limit`` iterations."""
    function, definition = source.function, copy.deepcopy(source.tree)
    # Only the body is wanted: decorators, defaults and annotations could run code again.
    definition.decorator_list, definition.returns = [], None
    arguments = definition.args
    arguments.defaults, arguments.kw_defaults = [], [None] * len(arguments.kwonlyargs)
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        argument.annotation = None
    first_loop = next(k for k, s in enumerate(definition.body) if isinstance(s, ast.For))
    names: dict[str, Any] = {**function.__globals__, **global_values(function)}
    if limit is not None:
        names["lapwing cut"] = lambda iterations: islice(iterations, limit)
        lines = {loop.line for loop in nest.loops}
        for node in ast.walk(definition):
            if isinstance(node, ast.For) and node.lineno in lines:
                node.iter = ast.Call(ast.Name("lapwing cut", ast.Load()), [node.iter], [])
    for name in dict.fromkeys(accumulator.result for accumulator in sums):
        key = f"lapwing terms of {name}"
        names[key] = lambda parts=[a for a in sums if a.result == name]: _Terms(parts)
        start = ast.Assign([ast.Name(name, ast.Store())], ast.Call(ast.Name(key, ast.Load()), [], []))
        definition.body.insert(first_loop, start)
    tree = ast.fix_missing_locations(ast.Module([with_ends(definition)], []))
    exec(compile(tree, function.__code__.co_filename, "exec"), names)
    variant: Callable[..., Any] = names[definition.name]
    return variant


# -- in C ------------------------------------------------------------------------------------------------------------


def _run_compiled(library: Any, bound: BoundNest, arguments: Mapping[str, Any], limit: int) -> Reference:
    """The compiled plain loop on copies of the arguments."""
    copies = _copies(bound, arguments)
    surroundings: dict[str, Any] = {**arguments, **copies}
    arrays = {}
    for array in bound.arrays:
        values = np.ascontiguousarray(surroundings[array.name])
        whole = tuple((0, n) for n in array.shape)
        arrays[array.name] = attach(array, values) or allocate(array, whole)  # the latter for one without elements
    workspace = Workspace(bound, library, arrays)
    _in_background(lambda: library.lw_plain(ctypes.byref(workspace.tile), ctypes.c_int64(limit)))
    how = "the plain loop in C, itself checked against Python"
    try:
        workspace.check_traps()
    except RunError as error:
        return Reference({}, {}, f"stops: {error}", how)
    totals = Reductions(bound).merged([workspace.words])
    wanted = {name: values for name, values in copies.items() if name not in bound.dead}
    return Reference(wanted, {name: totals[name] for name in bound.nest.returns}, None, how)


def _in_background(action: Callable[[], Any]) -> None:
    """Run a long call into C so that Ctrl-C is still heard."""
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.1)


def _corner(bound: BoundNest) -> int:
    """How far every loop goes on the corner held against Python."""
    extents = [high - low for low, high in bound.domain.box]
    low, high = 1, max(extents)
    while low < high:
        middle = (low + high + 1) // 2
        if math.prod(min(extent, middle) for extent in extents) <= CORNER_ITERATIONS:
            low = middle
        else:
            high = middle - 1
    return low


def _copies(bound: BoundNest, arguments: Mapping[str, Any]) -> dict[str, Array]:
    """Dense copies of the written arrays."""
    return {name: np.array(arguments[name], order="C", copy=True) for name in bound.nest.written}


# -- comparing -------------------------------------------------------------------------------------------------------


def array_difference(name: str, expected: Array, found: Array) -> str | None:
    """What differs between two arrays of one shape and dtype; None where all bits are the same. NaNs are alike."""
    rows = max(1, _COMPARED_AT_ONCE * len(expected) // max(1, expected.size))
    count, first = 0, None
    for at in range(0, len(expected), rows):
        wrong = _unequal(expected[at : at + rows], found[at : at + rows])
        count += int(np.count_nonzero(wrong))
        if first is None and count:
            index = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
            first = (int(index[0]) + at, *map(int, index[1:]))
    if first is None:
        return None
    return (
        f"{name} differs in {count:,} of {expected.size:,} elements, first in {name}[{', '.join(map(str, first))}]: "
        f"{found[first]!r}, expected {expected[first]!r}"
    )


def _unequal(expected: Array, found: Array) -> npt.NDArray[np.bool]:
    """Where two arrays of one dtype differ in their bits and are not both NaN; each part of complex numbers by itself."""
    if expected.dtype.kind == "c":
        both = (np.ascontiguousarray(values) for values in (expected, found))
        part = np.dtype(f"f{expected.itemsize // 2}")
        apart = _unequal(*(values.view(part).reshape(*values.shape, 2) for values in both))
        either: npt.NDArray[np.bool] = np.logical_or(apart[..., 0], apart[..., 1])
        return either
    bits = np.dtype(f"u{expected.itemsize}")
    wrong = np.ascontiguousarray(expected).view(bits) != np.ascontiguousarray(found).view(bits)
    if expected.dtype.kind == "f":
        wrong &= ~(np.isnan(expected) & np.isnan(found))
    result: npt.NDArray[np.bool] = wrong
    return result


def same_number(expected: Any, found: Any) -> bool:
    """Whether two numbers are equal, NaNs too; so are parts of complex ones."""
    if isinstance(expected, complex | np.complexfloating) or isinstance(found, complex | np.complexfloating):
        return same_number(float(expected.real), float(found.real)) and same_number(
            float(expected.imag), float(found.imag)
        )
    floats = isinstance(expected, float | np.floating) or isinstance(found, float | np.floating)
    if floats and math.isnan(expected) and math.isnan(found):
        return True
    # Of equal zeros max and min return the first they meet, so the sign depends on the order of iterations.
    return bool(expected == found)
