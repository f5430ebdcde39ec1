"""Indices that are affine piece by piece: ``(i + 1) % n`` is i + 1, and i + 1 - n on the last row (index-set splitting).

So are ``i + 1 if i + 1 < n else 0``, ``max(i - 1, 0)``, and ``i - 1`` where i begins at 0, since -1 counts from the end. What is
known of them by pieces need not be sent, or kept, as anywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from lapwing.affine.affine import Affine
from lapwing.errors import Refusal, RefusedError
from lapwing.loopnest import ir
from lapwing.loopnest.guards import NotZero, affine_of, holds

Interval = tuple[int, int]  # inclusive
Place = tuple[ir.Access, int]  # an index: its access and axis
_MOST = 4  # pieces of an index: more are as good as anywhere


@dataclass(frozen=True)
class Piece:
    """An index over the user's loop indices, where all of ``guards`` are >= 0."""

    index: Affine
    guards: tuple[Affine, ...] = ()

    def within(self, ranges: Mapping[str, Interval]) -> dict[str, Interval] | None:
        """Ranges of loop indices without what guards of a single index exclude; None where nothing is left."""
        found = dict(ranges)
        for guard in self.guards:
            if len(guard.terms) != 1:
                if guard.interval(found)[1] < 0:
                    return None
                continue
            ((name, factor),) = guard.terms
            low, high = found[name]
            # factor * x + constant >= 0
            found[name] = (
                (max(low, -(guard.constant // factor)), high)
                if factor > 0
                else (low, min(high, guard.constant // -factor))
            )
            if found[name][0] > found[name][1]:
                return None
        return found


@dataclass(frozen=True)
class Around:
    """Where reads of arrays that a nest writes go around an axis, and the integers that decide it."""

    pieces: Mapping[Place, tuple[Piece, ...]]
    integers: Mapping[str, int]


@dataclass(frozen=True)
class Surroundings:
    """What is known where an index stands: the values of integer scalars, the ranges of loop indices, and the temporaries that
    are assigned once."""

    integers: Mapping[str, int]
    ranges: Mapping[str, Interval]
    definitions: Mapping[str, ir.Expression]


def surroundings_of(nest: ir.LoopNest, integers: Mapping[str, int], ranges: Mapping[str, Interval]) -> Surroundings:
    """Those of a nest's body. ranges: of the loop indices."""
    return Surroundings(integers, ranges, {} if nest.is_sequential else definitions_in(nest))


def definitions_in(nest: ir.LoopNest) -> dict[str, ir.Expression]:
    """The temporaries of a nest's body that are assigned once."""
    sets = [s for s in ir.all_statements(nest.body) if isinstance(s, ir.SetTemporary)]
    names = [s.name for s in sets]
    return {s.name: s.value for s in sets if names.count(s.name) == 1}


def interior(access: ir.Access, axis: int, definitions: Mapping[str, ir.Expression]) -> Affine | None:
    """An index where it does not go around its axis; None where that is not known."""
    return access.affine[axis] or _interior(access.subscripts[axis], definitions)


def _interior(node: ir.Expression, definitions: Mapping[str, ir.Expression]) -> Affine | None:
    match node:
        case ir.Temporary(name=name) if name in definitions:
            return _interior(definitions[name], definitions)
        case ir.Binary(operator="%", left=left):
            return affine_of(left)
        case ir.Binary(operator="+" | "-" as operator, left=left, right=right):
            first, second = _interior(left, definitions), _interior(right, definitions)
            if first is None or second is None:
                return None
            return first + second if operator == "+" else first - second
        case ir.Conditional(then=then, otherwise=otherwise):
            one, other = affine_of(then), affine_of(otherwise)
            return one if one is not None and one.terms else other
    return affine_of(node)


def places_around(nest: ir.LoopNest, looked_up: Collection[Place]) -> list[Place]:
    """The indices with which a written array is read along an axis that loops are cut along, and that may go around it.

    looked_up: the affine ones that may count from the end.
    """
    reads = dict.fromkeys(access for _, access in ir.body_reads(nest.body) if access.array in nest.axis_loops)
    return [
        (access, axis)
        for access in reads
        for axis, loop in enumerate(nest.axis_loops[access.array])
        if loop is not None and (access.affine[axis] is None or (access, axis) in looked_up)
    ]


def uniform_pieces(pieces: Sequence[Piece], loop: str, ranges: Mapping[str, Interval]) -> tuple[Piece, ...]:
    """Pieces that are a loop's index plus a constant each, a constant where the loop has one value among them; () where not all
    are."""
    found = []
    for piece in pieces:
        index = piece.index
        within = piece.within(ranges) or ranges
        if not index.terms and within[loop][0] == within[loop][1]:
            index = Affine.of(loop) + (index.constant - within[loop][0])
        if index.terms != ((loop, 1),):
            return ()
        found.append(Piece(index, piece.guards))
    return tuple(found)


def pieces_of(node: ir.Expression, extent: int, around: Surroundings) -> tuple[Piece, ...]:
    """An index of an axis with so many elements, counted from the start, as pieces; () where it is not known by pieces."""
    found = _pieces(node, around)
    if found is None:
        return ()
    counted: list[Piece] = []
    for piece in found:
        counted += _feasible(
            [
                Piece(piece.index, (*piece.guards, piece.index)),
                Piece(piece.index + extent, (*piece.guards, -piece.index - 1)),
            ],
            around,
        )
    return tuple(counted) if len(counted) <= _MOST else ()


def _pieces(node: ir.Expression, around: Surroundings) -> list[Piece] | None:
    """None where a value is not affine by few pieces."""
    form = affine_of(node)
    if form is not None:
        form = form.substitute(around.integers)
        return [Piece(form)] if form.names <= around.ranges.keys() else None
    found: list[Piece] | None = None
    match node:
        case ir.Temporary(name=name) if name in around.definitions:
            found = _pieces(around.definitions[name], around)
        case ir.Unary(operator="-", operand=operand) if (inner := _pieces(operand, around)) is not None:
            found = [Piece(-p.index, p.guards) for p in inner]
        case ir.Binary(operator="+" | "-" | "*" | "%" as operator, left=left, right=right):
            one, other = _pieces(left, around), _pieces(right, around)
            found = None if one is None or other is None else _combined(operator, one, other, around)
        case ir.Conditional(test=test, then=then, otherwise=otherwise):
            one, other = _pieces(then, around), _pieces(otherwise, around)
            if one is not None and other is not None:
                found = [*_given(one, test, True, around), *_given(other, test, False, around)]
        case ir.Call(function="max" | "min" as function, arguments=(left, right)):
            one, other = _pieces(left, around), _pieces(right, around)
            found = None if one is None or other is None else _extrema(function, one, other)
    if found is None:
        return None
    found = _feasible(found, around)
    return found if len(found) <= _MOST else None


def _combined(operator: str, one: Sequence[Piece], other: Sequence[Piece], around: Surroundings) -> list[Piece] | None:
    found: list[Piece] = []
    for a in one:
        for b in other:
            guards = (*a.guards, *b.guards)
            match operator:
                case "+":
                    found.append(Piece(a.index + b.index, guards))
                case "-":
                    found.append(Piece(a.index - b.index, guards))
                case "*" if not b.index.terms:
                    found.append(Piece(a.index * b.index.constant, guards))
                case "*" if not a.index.terms:
                    found.append(Piece(b.index * a.index.constant, guards))
                case "%" if not b.index.terms and b.index.constant > 0:
                    remainders = _remainders(a, b.index.constant, around)
                    if remainders is None:
                        return None
                    found += [Piece(r.index, (*r.guards, *b.guards)) for r in remainders]
                case _:
                    return None
    return found


def _remainders(piece: Piece, divisor: int, around: Surroundings) -> list[Piece] | None:
    ranges = piece.within(around.ranges)
    if ranges is None:
        return []
    low, high = piece.index.interval(ranges)
    quotients = range(low // divisor, high // divisor + 1)
    if len(quotients) > _MOST:
        return None
    remainders = [piece.index - quotient * divisor for quotient in quotients]
    return [Piece(r, (*piece.guards, r, -r + (divisor - 1))) for r in remainders]


def _given(found: Iterable[Piece], test: ir.Expression, truth: bool, around: Surroundings) -> list[Piece]:
    """Pieces where a test has the given truth as well, as far as that says something of loop indices."""
    guards: list[Affine] = []
    for guard in holds(test, truth):
        affine = (guard.affine if isinstance(guard, NotZero) else guard).substitute(around.integers)
        if not affine.names <= around.ranges.keys():
            continue
        if not isinstance(guard, NotZero):
            guards.append(affine)
        elif affine.interval(around.ranges)[0] == 0:
            guards.append(affine - 1)
        elif affine.interval(around.ranges)[1] == 0:
            guards.append(-affine - 1)
    return [Piece(p.index, (*p.guards, *guards)) for p in found]


def _extrema(function: str, one: Sequence[Piece], other: Sequence[Piece]) -> list[Piece]:
    sign = 1 if function == "max" else -1
    found = []
    for a in one:
        for b in other:
            guards, ahead = (*a.guards, *b.guards), (a.index - b.index) * sign
            found += [Piece(a.index, (*guards, ahead)), Piece(b.index, (*guards, -ahead - 1))]
    return found


def _feasible(found: Iterable[Piece], around: Surroundings) -> list[Piece]:
    """Pieces that hold somewhere, without guards that hold everywhere."""
    kept: dict[Piece, None] = {}
    for piece in found:
        if piece.within(around.ranges) is None:
            continue
        guards = dict.fromkeys(g for g in piece.guards if g.interval(around.ranges)[0] < 0)
        kept.setdefault(Piece(piece.index, tuple(guards)))
    return list(kept)


def refuse_around(nest: ir.LoopNest, access: ir.Access, axis: int, found: str) -> NoReturn:
    """Say that an axis is not cut because of how a read goes around it."""
    text = (
        f"{nest.where(access.line)}: index {axis + 1} of {access.text} goes around an axis that {nest.name} writes along, "
        f"{found}. Read old values from a copy of {access.array}, or cut other loops."
    )
    raise RefusedError(Refusal(text, tiled_only=True))
