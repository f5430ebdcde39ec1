"""Which loop bodies are computed in vectors (``codegen.vectors``): those that compute with elements of one size.

Compilers take the size of vectors from the smallest elements in a loop. Narrower ones are widened when they are loaded; in bodies
that compute with several sizes vectors would fall apart into halves and quarters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lapwing.codegen.transposed import Buffers
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.tiling.invariants import is_invariant
from lapwing.tiling.transposed import ITEMSIZES, TRANSPOSED_LANES

_MOST_VECTORS = 16  # whose operations are written out
WIDE = {4: "int32", 8: "int64"}
_OPERATORS = frozenset(
    """
    + - * / & | ^ < <= > >= == != && || not truth min max abs sqrt numpy.maximum numpy.minimum numpy.fmax numpy.fmin numpy.where
    numpy.sqrt numpy.fabs numpy.absolute
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


def vector_lanes(
    bound: BoundNest, buffers: Buffers, vector_bytes: int, move: Move, accumulators: Sequence[Accumulator]
) -> int:
    """How many lanes a vector has; 0 where the loop body is not one for vectors."""
    written = [plane.dtype for plane in buffers.planes if plane.written]
    size, body = ITEMSIZES[written[0]], bound.body
    if size not in WIDE or TRANSPOSED_LANES * size > _MOST_VECTORS * vector_bytes:
        return 0
    narrowed = frozenset(
        load for load in loads_of(bound) if load not in buffers.places and _is_narrowed(load, size, move)
    )
    sums = [a.dtype for a in body.accumulators if a.exact_sum]
    fits = (
        body.is_straight
        and all(ITEMSIZES[dtype] == size and not _is_odd(dtype) for dtype in written)
        # Compilers widen by more than twice element by element.
        and all(2 * ITEMSIZES[plane.dtype] >= size for plane in buffers.planes)
        and all(_is_uniform(value, size, narrowed) for value in _values(bound))
        and all(_size(dtype) == size for dtype in (*sums, *(a.dtype for a in accumulators)))
        and (size == 8 or not body.traps)
        and all(
            load in buffers.places or _size(load.dtype) == size or is_constant(load) or is_row(move(load))
            for load in loads_of(bound)
        )
    )
    return vector_bytes // size if fits else 0


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
    return load.dtype == "int64" and size == 4 and is_row(move(load)) and not is_constant(load)


def is_constant(load: t.Load) -> bool:
    """Whether it is the same element in every iteration, which cannot raise."""
    return all(
        s.trap is None and is_invariant(s.index) if isinstance(s, t.LookupSubscript) else not s.affine.names
        for s in load.subscripts
    )


def is_row(move: tuple[int, int] | None) -> bool:
    """Whether elements follow one another from lane to lane, forwards or backwards, and stay near from step to step."""
    return move is not None and abs(move[0]) == 1 and abs(move[1]) <= 1


def _is_odd(dtype: str) -> bool:
    return dtype.startswith("complex") or dtype == "bool"


def _size(dtype: str) -> int:
    return ITEMSIZES.get(dtype, 0)


def loads_of(bound: BoundNest) -> list[t.Load]:
    return list(dict.fromkeys(n for value in _values(bound) for n in t.walk(value) if isinstance(n, t.Load)))


def _is_uniform(node: t.Typed, size: int, narrowed: frozenset[t.Load]) -> bool:
    """Whether all that is computed has elements of one size. Narrower ones are widened when they are loaded, and of wider
    ones some may be ``narrowed``, which are compared and nothing else."""

    def is_wide(operand: t.Typed) -> bool:
        return isinstance(operand, t.Load) or operand.dtype == "bool" or _size(operand.dtype) == size

    match node:
        case _ if is_invariant(node):
            return True
        case t.Load(dtype=dtype, subscripts=subscripts):
            indices = [s.index for s in subscripts if isinstance(s, t.LookupSubscript)]
            # There is one size of indices, too.
            known = all(map(is_invariant, indices)) or (
                size == 8 and all(_is_uniform(i, size, narrowed) for i in indices)
            )
            return known and 0 < _size(dtype) <= size and not dtype.startswith("complex")
        case t.Local(dtype=dtype) | t.Index(dtype=dtype):
            return dtype == "bool" or _size(dtype) == size
        case t.Operation(operator="==" | "!=" | "<" | "<=" | ">" | ">=", operands=operands) if all(
            o in narrowed for o in operands
        ):
            return True
        case t.Convert(dtype=dtype, operand=operand, trap=None):
            return is_wide(operand) and _size(dtype) == size and _is_uniform(operand, size, narrowed)
        case t.Operation(dtype=dtype, operator=operator, operands=operands):
            known = operator in _OPERATORS and not t.is_numpy_loop(node)
            fits = known and all(map(is_wide, operands)) and (dtype == "bool" or _size(dtype) == size)
        case t.Select(dtype=dtype):
            fits = _size(dtype) == size
        case _:
            return False
    return fits and all(_is_uniform(child, size, narrowed) for child in t.children(node))
