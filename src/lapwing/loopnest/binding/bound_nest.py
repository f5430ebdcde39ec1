"""A nest bound to the arguments of one call: sizes, dtypes, numeric bounds, every index checked."""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from lapwing.affine.affine import Affine
from lapwing.errors import RefusedError
from lapwing.loopnest import ir
from lapwing.loopnest.analysis import NestAnalysis
from lapwing.loopnest.array_shape import ArrayShape
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.conversion import array_of, conversion
from lapwing.loopnest.binding.expressions import Surroundings
from lapwing.loopnest.binding.indices import check_indices, check_text, normal_loop, tightened
from lapwing.loopnest.binding.lowering import lower
from lapwing.loopnest.binding.promotion import SUPPORTED_DTYPES, scalar_type
from lapwing.loopnest.binding.scalars import used_parameters
from lapwing.loopnest.domain import Domain
from lapwing.loopnest.frontend.expressions import MAX_AXES
from lapwing.loopnest.guards import occurrences
from lapwing.loopnest.outside import ALWAYS_KNOWN
from lapwing.loopnest.pieces import (
    Around,
    Piece,
    pieces_of,
    places_around,
    refuse_around,
    surroundings_of,
    uniform_pieces,
)
from lapwing.loopnest.refusals import Refusals, Stopped
from lapwing.loopnest.setup import UnsupportedSetup, evaluate
from lapwing.loopnest.skew import Skew, in_skewed
from lapwing.loopnest.source import unset_names
from lapwing.scratch_arrays import is_scratch


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
    index counts from the end, with their size; ``looked_up`` those whose index may do either; ``pieces`` indices that are affine
    piece by piece. With a ``skew`` the domain is in skewed coordinates; the body always stands for the user's own indices.
    ``analysis`` has the dependences, in the user's coordinates, and the skewing that tiles need. ``dead``: written arrays of
    which nobody reads elements after the call.
    """

    nest: ir.LoopNest
    arrays: tuple[ArrayType, ...]
    parameters: Mapping[str, Any]
    domain: Domain
    body: t.TypedBody = field(repr=False)
    wraps: Mapping[tuple[ir.Access, int], int] = field(repr=False)
    looked_up: frozenset[tuple[ir.Access, int]] = field(repr=False)
    analysis: NestAnalysis = field(repr=False)
    pieces: Mapping[tuple[ir.Access, int], tuple[Piece, ...]] = field(default_factory=dict, repr=False)
    skew: Skew | None = None
    dead: frozenset[str] = frozenset()

    def array(self, name: str) -> ArrayType:
        return next(a for a in self.arrays if a.name == name)

    def storing_all(self) -> BoundNest:
        """The same nest with no dead arrays, so that all elements are stored."""
        return replace(self, dead=frozenset()) if self.dead else self

    def loops_of_axes(self, array: str) -> tuple[int | None, ...]:
        """Per axis of a written array the position of the loop that indexes it; None for a local axis."""
        names = self.nest.loop_names
        return tuple(None if loop is None else names.index(loop) for loop in self.nest.axis_loops[array])

    def local_volume(self, array: str) -> int:
        """How many elements of a written array there are for each that loops index: those along its local axes."""
        axes = zip(self.nest.axis_loops[array], self.array(array).shape, strict=True)
        return math.prod(extent for loop, extent in axes if loop is None)

    @property
    def symbols(self) -> dict[str, int]:
        return {name: int(self.parameters[name]) for name, _ in self.nest.symbols if _is_integer(self.parameters[name])}

    @property
    def may_last(self) -> bool:
        """Whether a run may take any time, or never end, whatever time an earlier one of the same sizes took."""
        return self.nest.is_sequential or any(
            isinstance(s, t.TypedWhile | t.TypedFor) for s in t.all_statements(self.body.statements)
        )

    @cached_property
    def accesses(self) -> tuple[ir.Access, ...]:
        return tuple(o.access for o in occurrences(self.nest))

    def axis(self, access: ir.Access, axis: int) -> Affine | None:
        """The index from the start, over coordinates of the domain with all symbols replaced; None for one that is looked up
        or runs over an inner loop."""
        index = self.index(access, axis)
        if index is None:
            return None
        index = self.domain.normalised(index)
        return index if self.skew is None else in_skewed(index, self.nest.loop_names, self.skew)

    def index(self, access: ir.Access, axis: int) -> Affine | None:
        """The same over the user's indices."""
        affine = access.affine[axis]
        if affine is None or (access, axis) in self.looked_up:
            return None
        affine = affine.substitute(self.symbols)
        if not affine.names <= set(self.nest.loop_names):
            return None
        return affine + self.wraps.get((access, axis), 0)

    def indices(self, point: Sequence[int]) -> dict[str, int]:
        """The user's loop indices at a point of the domain."""
        normalised = point if self.skew is None else self.skew.undo(point)
        return {loop.name: loop.step * x for loop, x in zip(self.nest.loops, normalised, strict=True)}


def global_values(function: Callable[..., Any]) -> dict[str, Any]:
    """The globals, closure variables and builtins that the function's source names.

    Raises RefusedError where a closure variable was deleted.
    """
    try:
        names = inspect.getclosurevars(function)
    except ValueError:  # an empty cell
        where = f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}"
        unset = ", ".join(unset_names(function))
        raise RefusedError(f"{where}: {unset} has no value yet. Set it before the nest is used.") from None
    return {**names.builtins, **names.globals, **names.nonlocals}


@cache
def _dtype_name(dtype: Any) -> str:
    return str(dtype)  # which NumPy puts together anew every time


def signature(arguments: Mapping[str, Any], surroundings: Mapping[str, Any]) -> tuple[Any, ...]:
    """Two calls with the same signature bind alike: types, shapes and scalar values, to the bit: 0.0 is not -0.0."""
    return tuple(
        (
            name,
            _dtype_name(value.dtype),
            value.shape,
            getattr(getattr(value, "flags", None), "writeable", True),
            _is_scratch(value),
        )
        if getattr(value, "shape", ())
        else (
            name,
            type(value),
            np.asarray(value).tobytes() if isinstance(value, float | complex | np.inexact) else value,
        )
        for values in (arguments, surroundings)
        for name, value in values.items()
        if not callable(value) and not inspect.ismodule(value)
    )


_NEAR = 16  # how far computing in indices and bounds goes, mostly


def _refuse_narrow(nest: ir.LoopNest, symbols: Mapping[str, Any], refusals: Refusals) -> None:
    """In bounds and indices NumPy's small integers would wrap where those of the loops here do not."""
    for name, value in symbols.items():
        kind = getattr(value, "dtype", None)
        narrow = kind is not None and kind.kind in "iu" and kind.itemsize < 4
        if narrow and np.iinfo(kind).min <= int(value) - _NEAR and int(value) + _NEAR <= np.iinfo(kind).max:
            continue
        if narrow:
            refusals.note(
                nest.line,
                f"{name} is {value!r} in bounds or indices",
                f"numbers of that type wrap: pass int({name})",
            )


def bind(analysis: NestAnalysis, arguments: Mapping[str, Any], surroundings: Mapping[str, Any]) -> BoundNest:
    """Bind a nest to its arguments.

    arguments: by parameter name; arrays are anything with ``dtype`` and ``shape`` (the elements are not looked at).
    surroundings: the function's globals, for global numbers and read-only global arrays.
    Raises RefusedError with every wrong type, dtype and dimension, and every index that leaves its array.
    """
    nest = analysis.nest
    refusals = Refusals(nest.file)
    values: dict[str, Any] = {**ALWAYS_KNOWN, **surroundings, **arguments}
    arrays = {}
    for name in nest.arrays:
        with refusals.recovering():
            arrays[name] = _array_type(nest, name, values, refusals)
    parameters = _scalars(nest, values, set(nest.arrays) - set(arrays), refusals)
    symbols = {n: int(parameters[n]) for n, _ in nest.symbols if _is_integer(parameters.get(n))}
    _refuse_narrow(nest, {n: parameters[n] for n in symbols}, refusals)
    domain = _domain(nest, symbols, set(nest.symbol_names) - set(parameters), refusals)
    integers = {n: int(value) for n, value in parameters.items() if _is_integer(value) and not _is_bool(value)}
    if nest.is_generic:
        integers = {n: value for n, value in integers.items() if n in symbols or n in nest.kept}
    of_loops, domain = domain, tightened(nest, integers, domain)
    shapes = {a.name: a.shape for a in arrays.values()}
    indices = check_indices(nest, shapes, integers, parameters, domain, refusals)
    check_text(nest, shapes, integers, of_loops, refusals)

    def subscript(access: ir.Access, axis: int) -> t.AffineSubscript | None:
        affine = access.affine[axis]
        if affine is None or (access, axis) in indices.looked_up:
            return None
        return t.AffineSubscript(affine, indices.wraps.get((access, axis), 0))

    around = Surroundings(
        dtypes={a.name: a.dtype for a in arrays.values()},
        shapes=shapes,
        parameters=parameters,
        index_ranges=domain.index_ranges(),
        iterations=domain.box_volume,
        subscript=subscript,
    )
    body = lower(nest, around, refusals)
    refusals.raise_if_any()
    looked_up = frozenset(indices.looked_up)
    pieces = _pieces(nest, shapes, integers, domain, looked_up)
    if not domain.is_empty and (places := places_around(nest, looked_up)):
        analysis = _around(nest, places, pieces, integers, domain)
        pieces |= analysis.around.pieces if analysis.around is not None else {}
    dead = frozenset(name for name in nest.written if name in nest.dead or _is_scratch(values[name]))
    types = tuple(arrays.values())
    return BoundNest(nest, types, parameters, domain, body, indices.wraps, looked_up, analysis, pieces, dead=dead)


def _around(
    nest: ir.LoopNest,
    places: Sequence[tuple[ir.Access, int]],
    pieces: Mapping[tuple[ir.Access, int], tuple[Piece, ...]],
    integers: Mapping[str, int],
    domain: Domain,
) -> NestAnalysis:
    """The analysis with what reads of written arrays find beyond the ends of axes. Raises RefusedError where these axes, or
    because of them others, cannot be cut."""
    found = {}
    for access, axis in places:
        loop = nest.axis_loops[access.array][axis]
        assert loop is not None
        found[access, axis] = uniform_pieces(pieces.get((access, axis), ()), loop, domain.index_ranges())
        if not found[access, axis]:
            refuse_around(nest, access, axis, f"and is not {loop} plus a constant everywhere")
    analysis = NestAnalysis(nest, Around(found, integers))
    assert analysis.skew is None
    return analysis


def _pieces(
    nest: ir.LoopNest,
    shapes: Mapping[str, Sequence[int]],
    integers: Mapping[str, int],
    domain: Domain,
    looked_up: Collection[tuple[ir.Access, int]],
) -> dict[tuple[ir.Access, int], tuple[Piece, ...]]:
    """Of the indices that are looked up where elements are read, those that are affine piece by piece."""
    around = surroundings_of(nest, integers, domain.index_ranges())
    stored = {store.target for store in nest.stores}
    found: dict[tuple[ir.Access, int], tuple[Piece, ...]] = {}
    for access in () if domain.is_empty else dict.fromkeys(o.access for o in occurrences(nest)):
        if access in stored:
            continue
        for axis, affine in enumerate(access.affine):
            if affine is None or (access, axis) in looked_up:
                found[access, axis] = pieces_of(access.subscripts[axis], shapes[access.array][axis], around)
    return {place: pieces for place, pieces in found.items() if pieces}


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
    refusals = Refusals(nest.file)
    with refusals.recovering():
        values.update(_set_up(nest, setup, values, set(), refusals))
    refusals.raise_if_any()


def _scalars(nest: ir.LoopNest, values: Mapping[str, Any], refused: set[str], refusals: Refusals) -> dict[str, Any]:
    """Every scalar the loops use: arguments, set-ups and symbols, but for what is refused.

    values: arguments, globals and builtins. refused: names about which all has been said.
    """
    values = dict(values)
    for setup in nest.setups:
        try:
            values.update(_set_up(nest, setup, values, refused, refusals))
            refused.difference_update(setup.targets)
        except Stopped:
            refused.update(setup.targets)
    parameters: dict[str, Any] = {}
    for name, node in nest.symbols:
        with refusals.recovering():
            parameters[name] = _evaluate(node, values, nest.line, nest.name, refused, refusals)
    for name in (*used_parameters(nest), *nest.accumulators):
        if name not in nest.symbol_names and name not in refused:
            parameters[name] = values[name]
    for name, value in list(parameters.items()):
        if scalar_type(value) is None:
            del parameters[name]
            refusals.note(
                nest.line,
                f"{name} is {_described(value)}, expected a number (bool, int, float, complex or a NumPy scalar of a "
                "supported dtype)",
                f"convert it, for example with float({name}), or index it where it is an array",
            )
    return parameters


def _set_up(
    nest: ir.LoopNest, setup: ir.Setup, values: Mapping[str, Any], refused: set[str], refusals: Refusals
) -> dict[str, Any]:
    """The values that one assignment before the loops gives, by name."""
    value = _evaluate(setup.value, values, setup.line, nest.name, refused, refusals)
    if len(setup.targets) == 1:
        return {setup.targets[0]: value}
    if not isinstance(value, tuple) or len(value) != len(setup.targets):
        refusals.refuse(
            setup.line,
            f"{ast.unparse(setup.value)} gives {value!r}, expected {len(setup.targets)} values for "
            f"{', '.join(setup.targets)}",
            "give as many names as there are values, or pass an array with as many axes",
        )
    return dict(zip(setup.targets, value, strict=True))


def _evaluate(
    node: ast.expr, values: Mapping[str, Any], line: int, nest_name: str, refused: set[str], refusals: Refusals
) -> Any:
    used: dict[str, Any] = {n.id: values.get(n.id) for n in ast.walk(node) if isinstance(n, ast.Name)}
    if refused & set(used):
        raise Stopped
    try:
        return evaluate(node, values)
    except UnsupportedSetup as part:
        found = f"{part} outside the loops"
    except Exception as error:
        given = ", ".join(f"{n} has shape {v.shape}" for n, v in used.items() if hasattr(v, "shape"))
        refusals.refuse(
            line,
            f"{ast.unparse(node)} cannot be computed: {error}",
            f"check the arguments of {nest_name}{f': {given}' if given else ''}",
        )
    refusals.refuse(
        line,
        found,
        "supported are numbers, arguments, array shapes, arithmetic, comparisons and calls of min, max, abs, int, float and "
        "math functions; compute anything else before the call and pass it as an argument",
    )


def _array_type(nest: ir.LoopNest, name: str, values: Mapping[str, Any], refusals: Refusals) -> ArrayType:
    if name not in values:
        refusals.refuse(nest.line, f"{name} is not known to {nest.name}", f"pass {name} as an argument, a NumPy array")
    value: Any = values[name]
    argument = f"argument {name} of {nest.name}"
    if not (hasattr(value, "dtype") and hasattr(value, "shape")) or value.shape == ():
        refusals.refuse(
            nest.line,
            f"{argument} is {_described(value)}, expected a NumPy array with axes",
            array_of(name, value),
        )
    try:
        dtype = np.dtype(value.dtype)
    except TypeError:
        refusals.refuse(
            nest.line,
            f"{argument} is {type(value).__name__} of {value.dtype}, expected a NumPy array",
            f"convert it with numpy.asarray({name})",
        )
    if not dtype.isnative:
        refusals.refuse(
            nest.line,
            f"array {name} has foreign byte order ({dtype.str})",
            f"convert it: {name}.astype({dtype.name!r})",
        )
    if dtype.name not in SUPPORTED_DTYPES:
        refusals.refuse(
            nest.line,
            f"array {name} has dtype {dtype.name}; supported are {', '.join(SUPPORTED_DTYPES)}",
            conversion(name, dtype),
        )
    if len(value.shape) > MAX_AXES:
        refusals.refuse(
            nest.line,
            f"array {name} has {len(value.shape)} axes",
            f"at most {MAX_AXES} are supported; call the nest for each part of it, {name}[k], which is a view",
        )
    if name in nest.written and getattr(getattr(value, "flags", None), "writeable", True) is False:
        refusals.refuse(
            nest.line,
            f"array {name} is written by {nest.name} but is read-only",
            f"pass a writable array: {name}.copy()",
        )
    return ArrayType(name, dtype.name, tuple(int(n) for n in value.shape))


def _domain(nest: ir.LoopNest, symbols: Mapping[str, int], refused: set[str], refusals: Refusals) -> Domain:
    """The iteration space; raises RefusedError, with all noted before, where a bound is not known. refused: symbols."""
    known = True
    for loop in nest.loops:
        unknown = (loop.bound_names | loop.integers) - set(symbols) - set(nest.loop_names)
        known = known and not unknown
        if unknown - refused:
            refusals.note(
                loop.line,
                f"a bound of loop {loop.name} depends on {', '.join(sorted(unknown))}, which is not an integer",
                "pass an int, write int(…) around it before the loops, or divide with //",
            )
    if not known:
        refusals.raise_if_any()
    domain = Domain(())
    for loop in nest.loops:
        starts, stops = (
            [domain.normalised(bound.substitute(symbols)) for bound in bounds] for bounds in (loop.starts, loop.stops)
        )
        domain = Domain((*domain.loops, normal_loop(loop.name, loop.step, starts, stops)))
    return domain


def _is_scratch(value: Any) -> bool:
    return value.is_scratch if isinstance(value, ArrayShape) else is_scratch(value)


def _is_integer(value: Any) -> bool:
    kind = scalar_type(value)
    return kind is not None and not kind.is_inexact


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool | np.bool)


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    return type(value).__name__
