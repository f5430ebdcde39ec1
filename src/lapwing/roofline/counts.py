"""What a point of a nest takes: operations by kind and type, elements loaded and stored, bytes that move.

Counted is what no compiler leaves out: what every iteration computes, equal expressions once, nothing that is the same in all
of them. Calls of the math library are not counted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from lapwing.loopnest.binding import powers
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.binding.promotion import is_inexact
from lapwing.tiling.chains import distance_behind
from lapwing.tiling.invariants import invariant_divisor, is_invariant, is_power_of_two
from lapwing.tiling.needed import touched_box

_FREE = ("truth", "not", "real", "imag", "complex", "wrap", "assigned", "carried", "not zero", "&&", "||")


# Without the divider, in vectors (``codegen/correctly_rounded.h``): a quotient by what does not change is a product, a fused
# multiplication and addition, and what finds dividends that are too small; a root an estimate, which takes as long as three
# others, seven products and sums, and what finds numbers that have none.
_BY_RECIPROCAL, _REFINED = 5, 13


def operations(
    body: t.TypedBody, by_reciprocals: bool = False, refined: Container[t.Typed] = ()
) -> Counter[tuple[str, str]]:
    """By kind (as ``machine.core`` has them) and the type that is computed in. by_reciprocals: whether quotients by what does not
    change in the loops are products; refined: roots that are found without the divider."""
    found: Counter[tuple[str, str]] = Counter()
    for node in set(_evaluated(body)):
        match node:
            case t.Operation(operands=operands) if by_reciprocals and invariant_divisor(node) is not None:
                found["simple", operands[0].dtype] += _BY_RECIPROCAL
            case t.Operation(dtype=dtype) if node in refined:
                found["simple", dtype] += _REFINED
            case t.Convert(operand=operand) if is_inexact(operand.dtype) != is_inexact(node.dtype):
                found["simple", node.dtype] += 1
            case t.Select():
                found["simple", node.dtype] += 1
            case t.Operation(operands=operands) if (kind := kind_of(node)) is not None:
                found[kind, operands[0].dtype] += 1
    return found


def kind_of(node: t.Operation) -> str | None:
    """None where an operation takes no instruction of its own, or a call."""
    operator, computing = node.operator, node.operands[0].dtype
    if operator in _FREE or powers.is_power(node) or t.is_numpy_loop(node) or operator.startswith("math."):
        return None
    if operator == "sqrt":
        return "sqrt"
    if operator == "/" and is_inexact(computing) and not is_power_of_two(node.operands[1]):
        return "/"
    return "simple"


@dataclass(frozen=True)
class Elements:
    """Elements that a point loads and stores at least, as bytes of each: those further along a row that it has been at stay in
    registers. ``gathered`` lie where an index says."""

    loaded: tuple[int, ...]
    gathered: tuple[int, ...]
    stored: tuple[int, ...]


def elements(bound: BoundNest, loop: str, step: int) -> Elements:
    """Where a loop is the innermost one. step: that of the loop, 1 or -1."""
    itemsizes = {array.name: array.itemsize for array in bound.arrays}
    stores = [s.target for s in _always(bound.body) if isinstance(s, t.TypedStore)]
    rows: dict[tuple[str, tuple[t.AffineSubscript, ...]], None] = {}
    gathered: dict[t.Load, None] = {}
    for load in _loads(bound.body):
        if any(isinstance(s, t.LookupSubscript) for s in load.subscripts):
            gathered[load] = None
        elif _moves(load, loop) and not any(distance_behind(load, s, loop) * step > 0 for s in stores):
            rows[_row(load, loop)] = None
    return Elements(
        tuple(itemsizes[array] for array, _ in rows),
        tuple(itemsizes[load.array] for load in gathered),
        tuple(itemsizes[target.array] for target in dict.fromkeys(stores)),
    )


def _loads(body: t.TypedBody) -> Iterator[t.Load]:
    """What every iteration reads, but for what it has just stored."""
    stored: set[t.Load] = set()
    for statement in body.statements:
        for node in _values(statement):
            if isinstance(node, t.Load) and node not in stored:
                yield node
        if isinstance(statement, t.TypedStore):
            stored.add(statement.target)


def _row(load: t.Load, loop: str) -> tuple[str, tuple[t.AffineSubscript, ...]]:
    """Equal for elements that a loop comes by one after the other."""
    affine = (s for s in load.subscripts if isinstance(s, t.AffineSubscript))
    return load.array, tuple(
        t.AffineSubscript(s.affine - s.affine.constant) if loop in s.affine.names else s for s in affine
    )


def _moves(load: t.Load, loop: str) -> bool:
    return any(isinstance(s, t.AffineSubscript) and loop in s.affine.names for s in load.subscripts)


@dataclass(frozen=True)
class Traffic:
    """Bytes of one sweep over a block: all that it touches, and what of it is written."""

    touched: int
    written: int


def traffic(bound: BoundNest, extents: Sequence[int]) -> Traffic:
    """extents: of a block in the middle of the space loops, in the coordinates that are cut into tiles."""
    depth = bound.nest.sweep_depth
    block = [
        (begin := low + (high - low - extent) // 2, begin + extent)
        for extent, (low, high) in zip(extents, bound.domain.box[depth:], strict=True)
    ]
    ranges = dict(zip(bound.nest.loop_names, (*bound.domain.box[:depth], *block), strict=True))
    touched = {
        array.name: array.itemsize
        * math.prod(max(0, high - low) for low, high in touched_box(bound, array.name, ranges))
        for array in bound.arrays
    }
    return Traffic(sum(touched.values()), sum(touched[name] for name in bound.nest.written))


def _evaluated(body: t.TypedBody) -> Iterator[t.Typed]:
    """Every node that each iteration evaluates and that is not the same in all."""
    for statement in body.statements:
        yield from _values(statement)


def _values(statement: t.TypedStatement) -> Iterator[t.Typed]:
    values = (statement.value,) if isinstance(statement, t.TypedStore) else t.own_values(statement)
    for value in values:
        yield from _parts(value)


def _parts(node: t.Typed) -> Iterator[t.Typed]:
    if is_invariant(node):
        return
    yield node
    match node:
        case t.Select(test=test, speculable=False):
            yield from _parts(test)
        case t.Operation(operator="&&" | "||", operands=operands):
            yield from _parts(operands[0])
        case _:
            for child in t.children(node):
                yield from _parts(child)


def _always(body: t.TypedBody) -> Iterator[t.SimpleStatement]:
    return (s for s in body.statements if isinstance(s, t.SimpleStatement))
