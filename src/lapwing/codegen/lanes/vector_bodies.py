"""Which loop bodies are computed in vectors (``codegen.lanes.vectors``): those whose values can have one size.

Compilers take the size of vectors from the smallest elements in a loop. Narrower ones are widened when they are loaded, and
narrowed when they are stored (``codegen.body.widening``); in bodies that compute with several sizes vectors would fall apart
into halves and quarters.

Quotients by what does not change in the loops are computed without the core's divider (``correctly_rounded.h``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from lapwing.codegen.body.expression import C_TYPES, SUFFIXES, stripped
from lapwing.codegen.body.names import Names
from lapwing.codegen.body.narrowing import is_table, letter_of
from lapwing.codegen.body.widening import COMPARISONS, WIDE, is_of_indices
from lapwing.codegen.lanes.buffers import Buffers
from lapwing.loopnest.binding import powers
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.tiling.invariants import invariant_divisors, is_invariant, raises_alike
from lapwing.tiling.transposed import ITEMSIZES

_MOST_VECTORS = 16  # whose operations are written out
_OPERATORS = frozenset(
    """
    + - * / & | ^ < <= > >= == != && || not truth min max abs sqrt numpy.maximum numpy.minimum numpy.fmax numpy.fmin numpy.where
    numpy.sqrt numpy.fabs numpy.absolute numpy.square numpy.clip numpy.sign numpy.floor numpy.ceil numpy.trunc numpy.rint
    numpy.copysign isnan isinf isfinite
    """.split()
) | {"unary -", "unary ~"}


# Of an access that is in no plane, by how much its place along the last axis moves from lane to lane and from step to step; None
# where that is not all that is known of it, or it is not known.
Move = Callable[[t.Load], tuple[int, int] | None]


@dataclass(frozen=True)
class Accumulator:
    """What every lane brings together by itself: as an argument of the loop body, and the C array in which lane 0 is the one at
    ``MARGIN``."""

    argument: str
    lanes: str
    dtype: str


class Reciprocals:
    """The divisors by which quotients are products, in a loop body of one type. ``doubt``: the C name of what keeps, for every
    lane of a vector, the doubt that a step's quotients are in; ``quick``: that of whether this can be done with all divisors."""

    def __init__(self, bound: BoundNest, names: Names, lane: str) -> None:
        # What might raise must not be computed from a quotient that is in doubt.
        self._divisors = invariant_divisors(bound.body) if raises_alike(bound.body) else ()
        self._names, self._lane = names, lane
        self.doubt = names.get("doubt of quotients", "doubt") if self else ""
        self.quick = names.get("quick quotients", "quick") if self else ""

    def __bool__(self) -> bool:
        return bool(self._divisors)

    def _name(self, divisor: t.Typed) -> str:
        return self._names.get(("reciprocal of", divisor), f"reciprocal_{1 + self._divisors.index(divisor)}")

    @property
    def _suffix(self) -> str:
        return SUFFIXES[self._divisors[0].dtype]

    @property
    def c_type(self) -> str:
        """Of a doubt: an integer of the size of elements."""
        return f"u{C_TYPES[WIDE[ITEMSIZES[self._divisors[0].dtype]]]}"

    def arguments(self) -> dict[t.Typed, str]:
        """What a quotient takes besides its dividend."""
        return {divisor: f"{self._name(divisor)}, &{self.doubt}[{self._lane}]" for divisor in self._divisors}

    def parameters(self) -> Iterator[tuple[str, str]]:
        """Of the loop body's function."""
        if self:
            for divisor in self._divisors:
                yield f"lw_reciprocal_{self._suffix} {self._name(divisor)}", self._name(divisor)
            yield f"{self.c_type} *restrict {self.doubt}", self.doubt

    def declarations(self, text: Callable[[t.Typed], str]) -> Iterator[str]:
        """Before the loops. text: the C text of a divisor."""
        for divisor in self._divisors:
            found = f"lw_reciprocal_of_{self._suffix}({stripped(text(divisor))})"
            yield f"const lw_reciprocal_{self._suffix} {self._name(divisor)} = {found};"
        if self:
            yield f"const bool {self.quick} = {' && '.join(f'{self._name(d)}.fits' for d in self._divisors)};"

    def in_doubt(self, width: int) -> str:
        """Whether a step has to be computed with the core's divider, in vectors of so many lanes."""
        found = f"lw_in_doubt_{self._suffix}((const {self.c_type} *)&{self.doubt}, {width})"
        return f"__builtin_expect(!{self.quick} || {found}, 0)"


@dataclass(frozen=True)
class Profile:
    """Elements of a table along a row, as a query profile of sequence alignment has them: one index stays with a lane, that along
    ``axis``, and the other moves on in every step, through the same elements in all blocks of rows."""

    element: t.Load
    axis: int
    stays: t.Load
    moves: t.Load


def profiles_of(bound: BoundNest, move: Move, is_same: Callable[[t.Load], bool]) -> list[Profile]:
    """The tables of a body of narrow integers, whose indices are inside."""
    found = []
    for load in (n for value in _values(bound) for n in t.walk(value) if isinstance(n, t.Load) and is_table(n)):
        if any(isinstance(s, t.LookupSubscript) and (s.trap is not None or s.counts_from_end) for s in load.subscripts):
            continue
        letters = [letter for s in load.subscripts if isinstance(s, t.LookupSubscript) and (letter := letter_of(s))]
        moves = [move(letter) for letter in letters]
        staying = [k for k, moved in enumerate(moves) if moved is not None and is_row(moved) and not moved[1]]
        if len(staying) == 1 and is_row(moves[1 - staying[0]]) and is_same(letters[1 - staying[0]]):
            found.append(Profile(load, staying[0], letters[staying[0]], letters[1 - staying[0]]))
    return list(dict.fromkeys(found))


def reason_against_vectors(
    bound: BoundNest,
    buffers: Buffers,
    size: int,
    vector_bytes: int,
    move: Move,
    accumulators: Sequence[Accumulator],
    profiles: Sequence[Profile] = (),
) -> str | None:
    """Why a loop body without branches is not computed in vectors of values of ``size`` bytes; None where it is."""
    body = bound.body
    if buffers.lanes * size > _MOST_VECTORS * vector_bytes:
        return "vectors of the processor are too short for its elements"
    if buffers.lanes * size < vector_bytes:
        return "vectors of the processor have more elements than lanes"
    tables = frozenset(profile.element for profile in profiles)
    loads = loads_of(bound, tables)
    narrowed = frozenset(load for load in loads if load not in buffers.places and _is_narrowed(load, size, move))
    for plane in buffers.planes:
        if plane.dtype.startswith("complex"):
            return f"{plane.array} holds complex numbers"
        is_kept = any(offset != (0, 0, 0) for offset in plane.offsets)
        # Vectors of what is kept from step to step would be twice as many, and each be converted twice.
        is_rounded = plane.dtype == "float32" and size == 8 and is_kept
        if plane.written and (ITEMSIZES[plane.dtype] > size or is_rounded):
            return f"{plane.array} has elements of another size ({plane.dtype}) than what else is computed"
    for value in _values(bound):
        if not is_uniform(value, size, narrowed, tables):
            return _reason_against(value, size, narrowed, tables)
    sums = [a.dtype for a in body.accumulators if a.exact_sum]
    if any(_size(dtype) != size for dtype in (*sums, *(a.dtype for a in accumulators))):
        return "a reduction has another size than what else is computed"
    if size != 8 and body.traps:
        return "iterations may raise"
    for load in loads:
        is_kept = load in buffers.places or _size(load.dtype) == size or is_constant(load) or is_row(move(load))
        if not is_kept:
            return (
                f"elements of {load.array} are collected one by one, and are of another size than what else is computed"
            )
    return None


def _reason_against(node: t.Typed, size: int, narrowed: frozenset[t.Load], tables: frozenset[t.Load]) -> str:
    """What in an expression is not for vectors: the innermost part that is not."""
    for child in t.children(node):
        if not is_uniform(child, size, narrowed, tables):
            return _reason_against(child, size, narrowed, tables)
    match node:
        case t.Load(array=array, subscripts=subscripts) if any(isinstance(s, t.LookupSubscript) for s in subscripts):
            return f"elements of {array} are looked up, by indices of another size than what else is computed"
        case t.Load(array=array, dtype=dtype):
            return f"{array} has elements of another size ({dtype}) than what else is computed"
        case t.Convert(trap=trap) | t.Operation(trap=trap) if trap is not None:
            return "iterations may raise"
        case t.Operation(operator=operator) if powers.is_power(node):
            return "there is a power, of which the last bit is looked at"
        case t.Operation(operator=operator) if t.is_numpy_loop(node) or operator.startswith("math."):
            return f"{operator} is a function of a library"
        case t.Operation(operator=operator) if operator not in _OPERATORS:
            return f"there are no vectors for {operator}"
    return f"values of several sizes are computed with ({node.dtype} and such of {8 * size} bits)"


def sizes_of_lanes(buffers: Buffers) -> list[int]:
    """Bytes that values may have in lanes, the fewest first: no less than the largest elements that are written have."""
    largest = max(ITEMSIZES[plane.dtype] for plane in buffers.planes if plane.written)
    return [size for size in WIDE if size >= largest]


def computes_with_floats(body: t.TypedBody) -> bool:
    values = (value for s in t.all_statements(body.statements) for value in t.own_values(s))
    return any(node.dtype.startswith("float") for value in values for node in t.walk(value))


def _values(bound: BoundNest) -> Iterator[t.Typed]:
    """All that is computed; where an extremum was found is known from the step."""
    for statement in t.all_statements(bound.body.statements):
        if isinstance(statement, t.TypedAccumulate):
            yield statement.value
            yield from (value for _, value in statement.payload if not isinstance(value, t.Index))
        else:
            yield from t.own_values(statement)


def _is_narrowed(load: t.Load, size: int, move: Move) -> bool:
    """Whether it is one of integers in a row that are wider than all else, as those of sequences mostly are."""
    is_wider = load.dtype in WIDE.values() and ITEMSIZES[load.dtype] > size
    return is_wider and size < 8 and is_row(move(load)) and not is_constant(load)


def is_constant(load: t.Load) -> bool:
    """Whether it is the same element in every iteration, which cannot raise."""
    return all(
        s.trap is None and is_invariant(s.index) if isinstance(s, t.LookupSubscript) else not s.affine.names
        for s in load.subscripts
    )


def is_row(move: tuple[int, int] | None) -> bool:
    """Whether elements follow one another from lane to lane, forwards or backwards, and stay near from step to step."""
    return move is not None and abs(move[0]) == 1 and abs(move[1]) <= 1


def _size(dtype: str) -> int:
    return ITEMSIZES.get(dtype, 0)


def loads_of(bound: BoundNest, without: Collection[t.Typed] = ()) -> list[t.Load]:
    """All elements that are read, but those in some expressions."""

    def walk(node: t.Typed) -> Iterator[t.Typed]:
        if not without or node not in without:
            yield node
            for child in t.children(node):
                yield from walk(child)

    return list(dict.fromkeys(n for value in _values(bound) for n in walk(value) if isinstance(n, t.Load)))


def is_uniform(node: t.Typed, size: int, narrowed: frozenset[t.Load], tables: frozenset[t.Load]) -> bool:
    """Whether all that is computed has elements of one size. Narrower ones are widened when they are loaded, and of wider
    ones some may be ``narrowed``, which are compared and nothing else, or from ``tables``, of which narrow ones are kept."""

    def is_wide(operand: t.Typed) -> bool:
        return isinstance(operand, t.Load) or operand.dtype == "bool" or _size(operand.dtype) == size

    match node:
        case _ if is_invariant(node):
            return True
        case t.Load() if node in tables:
            return True
        case t.Load(dtype=dtype, subscripts=subscripts):
            indices = [s.index for s in subscripts if isinstance(s, t.LookupSubscript)]
            # There is one size of indices, too.
            known = all(map(is_invariant, indices)) or (
                size == 8 and all(is_uniform(i, size, narrowed, tables) for i in indices)
            )
            return known and 0 < _size(dtype) <= size and not dtype.startswith("complex")
        case t.Local(dtype=dtype) | t.Index(dtype=dtype):
            return dtype == "bool" or _size(dtype) == size
        case t.Operation(operator=operator, operands=operands) if operator in COMPARISONS and all(
            isinstance(o, t.Load) and (o in narrowed or is_uniform(o, size, narrowed, tables)) for o in operands
        ):
            return True
        case t.Operation(operator=operator, operands=operands) if operator in COMPARISONS and all(
            map(is_of_indices, operands)
        ):
            return True
        case t.Convert(dtype=dtype, operand=operand, trap=None) if is_of_indices(operand):
            return dtype == WIDE[size] or (dtype == "float64" and size == 8)
        case t.Convert(dtype=dtype, operand=operand, trap=None):
            return is_wide(operand) and _size(dtype) == size and is_uniform(operand, size, narrowed, tables)
        case t.Operation(dtype=dtype, operator=operator, operands=operands):
            known = operator in _OPERATORS and not t.is_numpy_loop(node)
            fits = known and all(map(is_wide, operands)) and (dtype == "bool" or _size(dtype) == size)
        case t.Select(dtype=dtype):
            fits = _size(dtype) == size
        case _:
            return False
    return fits and all(is_uniform(child, size, narrowed, tables) for child in t.children(node))
