"""A nest bound to the arguments of one call: sizes, dtypes, numeric bounds, every index checked."""

from __future__ import annotations

import ast
import builtins
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from lapwing.errors import RefusedError
from lapwing.loopnest import ir
from lapwing.loopnest import typed as t
from lapwing.loopnest.affine import Affine
from lapwing.loopnest.domain import Domain, NormalLoop
from lapwing.loopnest.guards import guarded_accesses
from lapwing.loopnest.lowering import Surroundings, lower
from lapwing.loopnest.promotion import SUPPORTED_DTYPES, scalar_type
from lapwing.loopnest.scalars import used_parameters
from lapwing.loopnest.setup import UnsupportedSetup, evaluate
from lapwing.loopnest.skew import Skew, in_skewed

ALWAYS_KNOWN: Mapping[str, Any] = {**vars(builtins), "math": math, "np": np}  # names set-ups may use unimported


@dataclass(frozen=True)
class ArrayType:
    """What planning and code generation need to know of an array argument."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def itemsize(self) -> int:
        return np.dtype(self.dtype).itemsize


@dataclass(frozen=True, eq=False)
class BoundNest:
    """A LoopNest with the types and sizes of one call.

    ``domain`` is in normalised coordinates: every loop ascends, a descending index i is represented by -i.
    ``parameters`` maps each scalar the generated code uses to its value, symbols included. ``wraps`` holds the axes whose
    index counts from the end, with their size. With a ``skew`` the domain is in skewed coordinates; the body always stands
    for the user's own indices.
    """

    nest: ir.LoopNest
    arrays: tuple[ArrayType, ...]
    parameters: Mapping[str, Any]
    domain: Domain
    body: t.TypedBody = field(repr=False)
    wraps: Mapping[tuple[ir.Access, int], int] = field(repr=False)
    skew: Skew | None = None

    def array(self, name: str) -> ArrayType:
        return next(a for a in self.arrays if a.name == name)

    @property
    def symbols(self) -> dict[str, int]:
        return {name: int(self.parameters[name]) for name, _ in self.nest.symbols if _is_integer(self.parameters[name])}

    @cached_property
    def accesses(self) -> tuple[ir.Access, ...]:
        return tuple(access for access, _ in guarded_accesses(self.nest))

    def axis(self, access: ir.Access, axis: int) -> Affine | None:
        """The index from the start, over coordinates of the domain with all symbols replaced; None for a look-up."""
        affine = access.affine[axis]
        if affine is None:
            return None
        index = self.domain.normalised(affine.substitute(self.symbols)) + Affine(self.wraps.get((access, axis), 0))
        return index if self.skew is None else in_skewed(index, self.nest.loop_names, self.skew)

    def indices(self, point: Sequence[int]) -> dict[str, int]:
        """The user's loop indices at a point of the domain."""
        normalised = point if self.skew is None else self.skew.undo(point)
        return {loop.name: loop.step * x for loop, x in zip(self.nest.loops, normalised, strict=True)}


def global_values(function: Callable[..., Any]) -> dict[str, Any]:
    """The globals, closure variables and builtins that the function's source names."""
    names = inspect.getclosurevars(function)
    return {**names.builtins, **names.globals, **names.nonlocals}


def signature(arguments: Mapping[str, Any], surroundings: Mapping[str, Any]) -> tuple[Any, ...]:
    """Two calls with the same signature bind alike: types, shapes and scalar values."""
    return tuple(
        (name, str(value.dtype), value.shape, getattr(getattr(value, "flags", None), "writeable", True))
        if getattr(value, "shape", ())
        else (name, type(value), repr(value) if isinstance(value, float | np.floating) else value)  # 0.0 is not -0.0
        for values in (arguments, surroundings)
        for name, value in values.items()
        if not callable(value) and not inspect.ismodule(value)
    )


def bind(nest: ir.LoopNest, arguments: Mapping[str, Any], surroundings: Mapping[str, Any]) -> BoundNest:
    """Bind a nest to its arguments.

    arguments: by parameter name; arrays are anything with ``dtype`` and ``shape`` (the elements are not looked at).
    surroundings: the function's globals, for global numbers and read-only global arrays.
    Raises RefusedError for a wrong type, dtype, dimension or an index that leaves its array.
    """
    values = values_outside_loops(nest, arguments, surroundings)
    arrays = tuple(_array_type(nest, name, values) for name in nest.arrays)
    parameters = _scalars(nest, values)
    symbols = {n: int(parameters[n]) for n, _ in nest.symbols if _is_integer(parameters[n])}
    domain = _domain(nest, symbols)
    _check_dimensions(nest, arrays)
    integers = {n: int(value) for n, value in parameters.items() if _is_integer(value) and not _is_bool(value)}
    wraps = _check_bounds(nest, {a.name: a for a in arrays}, integers, domain)

    def subscript(access: ir.Access, axis: int) -> t.AffineSubscript:
        affine = access.affine[axis]
        assert affine is not None
        return t.AffineSubscript(affine, wraps.get((access, axis), 0))

    body = lower(
        nest,
        Surroundings(
            dtypes={a.name: a.dtype for a in arrays},
            shapes={a.name: a.shape for a in arrays},
            parameters=parameters,
            index_ranges=domain.index_ranges(),
            iterations=domain.box_volume,
            subscript=subscript,
        ),
    )
    return BoundNest(nest, arrays, parameters, domain, body, wraps)


def values_outside_loops(
    nest: ir.LoopNest, arguments: Mapping[str, Any], surroundings: Mapping[str, Any]
) -> dict[str, Any]:
    """Arguments, globals and the values set before the loops, by name. Raises RefusedError."""
    values: dict[str, Any] = {**ALWAYS_KNOWN, **surroundings, **arguments}
    for setup in nest.setups:
        set_up(nest, setup, values)
    return values


def set_up(nest: ir.LoopNest, setup: ir.Setup, values: dict[str, Any]) -> None:
    """Do one assignment that stands before the loops, on values by name. Raises RefusedError."""
    value = _evaluate(nest, setup.value, values, setup.line)
    if len(setup.targets) == 1:
        values[setup.targets[0]] = value
        return
    if not isinstance(value, tuple) or len(value) != len(setup.targets):
        raise RefusedError(
            f"{nest.where(setup.line)}: {ast.unparse(setup.value)} gives {value!r}, "
            f"expected {len(setup.targets)} values for {', '.join(setup.targets)}."
        )
    values.update(zip(setup.targets, value, strict=True))


def _evaluate(nest: ir.LoopNest, node: ast.expr, values: Mapping[str, Any], line: int) -> Any:
    try:
        return evaluate(node, values)
    except UnsupportedSetup as part:
        raise RefusedError(
            f"{nest.where(line)}: {part} outside the loops. Supported are numbers, arguments, array shapes, arithmetic, "
            "comparisons and calls of min, max, abs, int, float and math functions."
        ) from None
    except Exception as error:
        names: dict[str, Any] = {n.id: values.get(n.id) for n in ast.walk(node) if isinstance(n, ast.Name)}
        given = ", ".join(f"{n} has shape {v.shape}" for n, v in names.items() if hasattr(v, "shape"))
        raise RefusedError(
            f"{nest.where(line)}: {ast.unparse(node)} cannot be computed: {error}. "
            f"Check the arguments of {nest.name}{f': {given}' if given else ''}."
        ) from None


def _array_type(nest: ir.LoopNest, name: str, values: Mapping[str, Any]) -> ArrayType:
    value: Any = values.get(name)
    where = nest.where(nest.line)
    if not (hasattr(value, "dtype") and hasattr(value, "shape")) or value.shape == ():
        raise RefusedError(
            f"{where}: argument {name} of {nest.name} is {_described(value)}, expected a NumPy array with axes."
        )
    try:
        dtype = np.dtype(value.dtype)
    except TypeError:
        raise RefusedError(
            f"{where}: argument {name} of {nest.name} is {type(value).__name__} of {value.dtype}, expected a NumPy array. "
            f"Convert it with numpy.asarray({name})."
        ) from None
    if not dtype.isnative:
        raise RefusedError(
            f"{where}: array {name} has foreign byte order ({dtype.str}). Convert it: {name}.astype({dtype.name!r})."
        )
    if dtype.name not in SUPPORTED_DTYPES:
        raise RefusedError(
            f"{where}: array {name} has dtype {dtype.name}; supported are {', '.join(SUPPORTED_DTYPES)}. "
            f"Convert it with {name}.astype(…)."
        )
    if name in nest.written and getattr(getattr(value, "flags", None), "writeable", True) is False:
        raise RefusedError(f"{where}: array {name} is written by {nest.name} but is read-only. Pass a writable array.")
    return ArrayType(name, dtype.name, tuple(int(n) for n in value.shape))


def _scalars(nest: ir.LoopNest, values: Mapping[str, Any]) -> dict[str, Any]:
    """Every scalar the loops use: arguments, set-ups and symbols."""
    parameters: dict[str, Any] = {}
    for name, node in nest.symbols:
        parameters[name] = _evaluate(nest, node, values, nest.line)
    for name in (*used_parameters(nest), *nest.accumulators):
        if name not in parameters:
            parameters[name] = values[name]
    for name, value in parameters.items():
        if scalar_type(value) is None:
            raise RefusedError(
                f"{nest.where(nest.line)}: {name} is {_described(value)}, expected a number "
                "(bool, int, float or a NumPy scalar of a supported dtype)."
            )
    return parameters


def _domain(nest: ir.LoopNest, symbols: Mapping[str, int]) -> Domain:
    loops = []
    steps = {loop.name: loop.step for loop in nest.loops}
    for loop in nest.loops:
        bounds = []
        for bound in (loop.start, loop.stop):
            fixed = bound.substitute(symbols)
            unknown = fixed.names - set(nest.loop_names)
            if unknown:
                raise RefusedError(
                    f"{nest.where(loop.line)}: a bound of loop {loop.name} depends on {', '.join(sorted(unknown))}, "
                    "which is not an integer."
                )
            bounds.append(Affine(fixed.constant, tuple((n, c * steps[n]) for n, c in fixed.terms)))
        start, stop = bounds
        lower, upper = (start, stop) if loop.step == 1 else (-start, -stop)
        loops.append(NormalLoop(loop.name, loop.step, lower, upper))
    return Domain(tuple(loops))


def _check_dimensions(nest: ir.LoopNest, arrays: tuple[ArrayType, ...]) -> None:
    by_name = {a.name: a for a in arrays}
    for access, _ in guarded_accesses(nest):
        array = by_name[access.array]
        if len(access.subscripts) != len(array.shape):
            raise RefusedError(
                f"{nest.where(access.line)}: {access.text} has {len(access.subscripts)} indices but {array.name} has "
                f"{len(array.shape)} axes (shape {array.shape}). Index every axis."
            )


def _check_bounds(
    nest: ir.LoopNest, arrays: Mapping[str, ArrayType], integers: Mapping[str, int], domain: Domain
) -> dict[tuple[ir.Access, int], int]:
    """Check every affine index against its array; return the axes whose index counts from the end, with their size."""
    wraps: dict[tuple[ir.Access, int], int] = {}
    from_start: set[tuple[ir.Access, int]] = set()
    if domain.is_empty:
        return wraps
    for access, guards in guarded_accesses(nest):
        array = arrays[access.array]
        for axis, affine in enumerate(access.affine):
            if affine is None:
                continue
            fixed = domain.normalised(affine.substitute(integers))
            known = [g.substitute(integers) for g in guards]
            known = [domain.normalised(g) for g in known if g.names <= set(nest.loop_names)]
            if fixed.names - set(nest.loop_names):
                raise RefusedError(f"{nest.where(access.line)}: index {axis + 1} of {access.text} is not an integer.")
            reached = domain.range_of(fixed, known)
            extent = array.shape[axis]
            if reached is None:
                continue
            if reached[0] >= 0 and reached[1] < extent:
                from_start.add((access, axis))
                continue
            if -extent <= reached[0] and reached[1] < 0 and access.array not in nest.written:
                wraps[access, axis] = extent
                continue
            worst = reached[0] if reached[0] < 0 else reached[1]
            raise RefusedError(
                f"{nest.where(access.line)}: {access.text}: index {axis + 1} reaches {worst}, but {array.name} has "
                f"{extent} elements along axis {axis} (indices 0 to {extent - 1}). "
                "Shorten the loop's range or enlarge the array."
            )
    if both := [key for key in wraps if key in from_start]:
        access, axis = both[0]
        raise RefusedError(
            f"{nest.where(access.line)}: {access.text}: index {axis + 1} counts from the start in one place and from the end "
            f"in another. Write an index from the end as {access.array}.shape[{axis}] minus something."
        )
    return wraps


def _is_integer(value: Any) -> bool:
    kind = scalar_type(value)
    return kind is not None and not kind.is_float


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool | np.bool)


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    return type(value).__name__
