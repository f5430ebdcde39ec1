"""Which loops around reductions are computed in lanes along themselves (outer-loop vectorisation: Nuzman and Zaks, PACT 2008):
the loop is strip-mined, and its strip interchanged inwards (Allen and Kennedy, chapters 5 and 8).

    for j:                               for j in strips:
        best = a[0] + b[0, j]                best[:] = a[0] + b[0, j:]
        for k:                       →       for k:
            best = max(best, …)                  best[:] = max(best[:], …)
        c[j] = best                          c[j:] = best[:]

The iterations of an inner loop that sums up floats, or looks for a largest element, wait for one another, and no compiler may
change their order; nor those of a recurrence, which go on with elements that the ones before have stored, as in filters and
in eliminations along columns. Those of the loop around it do not, and each lane goes through its own in their order: every
bit stays.

It is done where lanes read elements that lie side by side, or all the same one, wherever a loop inside reduces; or where each
goes through a row of its own, of which squares are transposed in registers, if the loop inside is a chain of floats: of
integers compilers may change the order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from lapwing.affine.affine import Affine
from lapwing.codegen.body.if_conversion import Exists, without_branches
from lapwing.codegen.outer_loops.expressions import Lanes
from lapwing.codegen.outer_loops.independence import (
    accesses_in,
    assigned_outside,
    first_of,
    inner_indices,
    is_recurrence,
    may_be_apart,
    may_be_repeated,
    stores_in,
)
from lapwing.codegen.outer_loops.interior import interior
from lapwing.codegen.outer_loops.normalisation import normalised
from lapwing.codegen.outer_loops.ranges import form_of
from lapwing.codegen.outer_loops.scalar_replacement import with_scalars
from lapwing.codegen.outer_loops.skewing import Carried, ahead, carried, looked_at, only_stores, skewed, waits_long
from lapwing.codegen.outer_loops.widening import widened
from lapwing.codegen.outer_loops.windows import Window, windows
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.guards import occurrences

_MOST_ACCESSES = 150  # of which each is held against every store
_MANY_DIVISIONS = 2
_MOST_ROWS = 2  # of every lane's own, of which squares are in registers at once
_MOST_SKEWED_ROWS = 12  # the same where lanes are on rows of one another, and else would load element by element

_Statements = tuple[t.TypedStatement, ...]


@dataclass(frozen=True)
class OuterLoop:
    """A loop that is computed in lanes. ``statements``: of an iteration, those that many iterations do together; ``later``:
    those that follow one iteration after the other; ``varying``: locals that differ between iterations; ``size``: bytes of the
    largest elements that are computed with; ``repeats``: whether an iteration may be done twice; ``rows``: whether lanes go
    through rows of their own; ``is_skewed``: whether each lane is some steps behind the one before it; ``carried``: elements that
    they have from earlier steps then, and ``ahead`` those that are stored later; ``length``: how many iterations lanes go through
    then, where all have as many, and that is known before; ``extrema``: what each lane looks for by itself; ``first``,
    ``until``: lanes are for iterations from all of these on, and before all of those."""

    index: str
    statements: tuple[t.TypedStatement, ...]
    later: tuple[t.TypedStatement, ...]
    varying: frozenset[t.Local]
    size: int
    repeats: bool
    rows: bool
    is_skewed: bool = False
    carried: tuple[Carried, ...] = ()
    ahead: frozenset[t.Load] = frozenset()
    length: t.Typed | None = None
    extrema: tuple[t.Accumulator, ...] = ()
    first: tuple[t.Typed, ...] = ()
    until: tuple[t.Typed, ...] = ()

    @property
    def most_rows(self) -> int:
        """Of how many of the lanes' own rows there are squares in registers."""
        return _MOST_SKEWED_ROWS if self.is_skewed else _MOST_ROWS

    def stored_squares(self, loop: t.TypedFor, lanes: Lanes) -> list[t.Load]:
        """The elements of rows of the lanes' own that a loop stores and that nobody looks at in memory meanwhile."""
        known = {*self.ahead, *(one.load for one in self.carried)}
        return [
            store
            for store in (only_stores(loop.body).values() if self.is_skewed else ())
            if lanes.along_rows(store, loop.index.name)
            and all(load in known for load in looked_at(loop.body) if load.array == store.array)
        ]


def outer_loop(
    bound: BoundNest,
    body: Sequence[t.TypedStatement],
    index: str,
    probe: Lanes,
    is_chain: bool = False,
    is_measured: bool = False,
) -> OuterLoop | None:
    """A loop over an index as one in lanes; None where it is not worth it, or cannot be.

    probe: knows no locals that vary. is_chain: whether its iterations are known to wait for one another; is_measured:
    whether that is measured which only they would be better off in lanes for.
    """
    if not any(isinstance(s, t.TypedFor) for s in body):
        return None
    extrema = _extrema(bound, body) if is_measured else ()
    if extrema is None or len(list(accesses_in(body))) > _MOST_ACCESSES or not _is_known(body, bool(extrema)):
        return None
    exists = unguarded(bound)
    found = None if is_chain else _inside(bound, body, index, probe, exists)
    if found is not None:
        return found
    changed = with_scalars(with_choices(bound, body, exists))
    found = None if is_chain else _independent(bound, body, changed, index, probe)
    return found or _wavefront(changed, index, probe, is_measured, extrema)


def _inside(
    bound: BoundNest, body: Sequence[t.TypedStatement], index: str, probe: Lanes, exists: Exists
) -> OuterLoop | None:
    """The loop where its iterations are away from the ends of arrays. exists: of the elements in the text."""
    inside = interior(bound, body, index)
    if inside.statements == tuple(body):
        return None
    own = set(accesses_in(body))
    # What is known of elements is known of those in the text, by the loops around them.
    changed = with_scalars(with_choices(bound, inside.statements, lambda load: load in own and exists(load)))
    found = _independent(bound, inside.statements, changed, index, probe)
    return None if found is None else replace(found, first=inside.first, until=inside.until)


def _independent(
    bound: BoundNest, body: Sequence[t.TypedStatement], changed: _Statements, index: str, probe: Lanes
) -> OuterLoop | None:
    """The loop where iterations may be done together. changed: its body without branches."""
    if not any(map(probe.varies, stores_in(body))):
        return None
    for statements, later in _parts(normalised(changed, index), index, probe):
        if not may_be_apart(statements, later, index):
            continue
        lanes = probe.of(varying_locals(statements, later, probe))
        if not _can_be(statements, lanes) or not _is_worth_it(statements, lanes):
            continue
        rows = any(rows_of(loop, lanes) for loop in _innermost(statements))
        if rows and _has_better(bound, body, probe):
            return None
        values = [v for s in t.all_statements(statements) for v in t.own_values(s)]
        size = max((size for value in values for size in lanes.sizes(value)), default=8)
        if size == 8:
            both = widened((*statements, *later), lanes)
            statements, later = both[: len(statements)], both[len(statements) :]
        varying = varying_locals(statements, later, probe)
        repeats = not later and may_be_repeated(statements, index)
        return OuterLoop(index, statements, later, varying, size, repeats, rows)
    return None


def _wavefront(
    body: _Statements, index: str, probe: Lanes, is_measured: bool, extrema: tuple[t.Accumulator, ...]
) -> OuterLoop | None:
    """A loop around a chain of floats that many iterations go through together, each some steps behind the one before it."""
    found = skewed(body, index)
    if found is None:
        return None
    changed, place = found
    statements, later = changed[: place + 1], changed[place + 1 :]
    varying = varying_locals(statements, later, probe)
    lanes, (loop, own) = probe.of(varying), (statements[-1], body[place])
    assert isinstance(loop, t.TypedFor)
    assert isinstance(own, t.TypedFor)
    if not _can_be(statements, lanes) or not all(lanes.fits(v) for s in later for v in t.own_values(s)):
        return None
    if not is_measured and not waits_long(loop):
        return None
    values = [v for s in t.all_statements(statements) for v in t.own_values(s)]
    size = max((size for value in values for size in lanes.sizes(value)), default=8)
    # Where rows begin and end with others, an element may be one that the lane before has not stored.
    if is_ragged(own, lanes) or loop.start == own.start:
        if extrema:
            return None
        return OuterLoop(index, statements, later, varying, size, False, True, True, ahead=ahead(loop, index))
    length = t.Operation("int64", "-", (own.stop, own.start))
    is_known = not any(isinstance(node, t.Local) for node in t.walk(length))
    kept = carried(loop, index)
    before, known = ahead(loop, index), length if is_known else None
    return OuterLoop(index, statements, later, varying, size, False, True, True, kept, before, known, extrema)


def _extrema(bound: BoundNest, body: Sequence[t.TypedStatement]) -> tuple[t.Accumulator, ...] | None:
    """The largest and least values that statements look for, each lane for itself; None where they bring together anything
    else."""
    found = [s for s in t.all_statements(body) if isinstance(s, t.TypedAccumulate)]
    names = {s.name for s in found}
    kinds = tuple(a for a in bound.body.accumulators if a.name in names)
    are_alone = not any(s.position or s.payload for s in found) and not any(a.leader for a in kinds)
    return kinds if are_alone and all(a.operator in ("max", "min") and a.dtype != "bool" for a in kinds) else None


def _parts(body: _Statements, index: str, probe: Lanes) -> Iterator[tuple[_Statements, _Statements]]:
    """The ways in which many iterations may do some statements together, and others follow for each: as many as can be first."""
    for count in range(len(body), 0, -1):
        if not any(isinstance(s, t.TypedFor) for s in t.all_statements(body[:count])):
            break
        yield body[:count], body[count:]
    # Of an inner loop that ends where the outer one is, what the first of many iterations does, and then what is left of each.
    place = next((k for k, s in enumerate(body) if isinstance(s, t.TypedFor)), len(body))
    loop, before = body[place] if place < len(body) else None, body[:place]
    if not isinstance(loop, t.TypedFor):
        return
    if probe.varies(loop.start) or not all(isinstance(s, t.SimpleStatement | t.TypedVariable) for s in before):
        return
    end, counts_up = form_of(loop.stop), isinstance(loop.step, t.Literal) and loop.step.value == 1
    if counts_up and end is not None and end.coefficient(index) == 1:
        further = end - Affine.of(index)
        common: t.Typed = first_of(index)
        if further != Affine(0):
            common = t.Operation("int64", "+", (common, t.AffineValue("int64", further)))
        start = t.Operation("int64", "max", (loop.start, common))
        yield (*before, replace(loop, stop=common)), (replace(loop, start=start), *body[place + 1 :])


def _is_known(body: Sequence[t.TypedStatement], has_extrema: bool) -> bool:
    """Whether statements are of kinds that may be done together or apart."""
    kinds = t.TypedStore | t.TypedLocal | t.TypedAssign | t.TypedVariable | t.TypedIf | t.TypedFor
    are_known = (
        isinstance(s, kinds) or (has_extrema and isinstance(s, t.TypedAccumulate)) for s in t.all_statements(body)
    )
    return all(are_known)


def _has_better(bound: BoundNest, body: Sequence[t.TypedStatement], probe: Lanes) -> bool:
    """Whether a loop inside can be done in lanes that read elements side by side."""
    for statement in t.all_statements(body):
        if isinstance(statement, t.TypedFor):
            inner = outer_loop(bound, statement.body, statement.index.name, probe.along(statement.index.name))
            if inner is not None and not inner.rows:
                return True
    return False


def varying_locals(
    statements: Sequence[t.TypedStatement], later: Sequence[t.TypedStatement], probe: Lanes
) -> frozenset[t.Local]:
    """The locals whose values differ between lanes: those that later statements change, and the least fixed point over what they
    are given."""
    given = [
        (s.local, s.value)
        for s in t.all_statements(statements)
        if isinstance(s, t.TypedLocal | t.TypedAssign | t.TypedVariable) and s.value is not None
    ]
    found = frozenset(assigned_outside(later))
    while True:
        lanes = probe.of(found)
        more = found | {local for local, value in given if local not in found and lanes.varies(value)}
        more |= _carried_in_ragged(statements, lanes)
        if more == found:
            return found
        found = more


def _carried_in_ragged(statements: Sequence[t.TypedStatement], lanes: Lanes) -> frozenset[t.Local]:
    """Variables of loops that not all lanes go through as often."""
    ragged = (s for s in t.all_statements(statements) if isinstance(s, t.TypedFor) and is_ragged(s, lanes))
    return frozenset(local for loop in ragged for local in assigned_outside(loop.body))


def is_ragged(loop: t.TypedFor, lanes: Lanes) -> bool:
    """Whether lanes begin or end an inner loop with different iterations."""
    return lanes.varies(loop.start) or lanes.varies(loop.stop)


def unguarded(bound: BoundNest) -> Exists:
    """Which elements exist in every iteration of all loops around them: no condition on indices stands there, and they are
    inside of their arrays, as was checked."""
    guarded: dict[tuple[str, tuple[Affine | None, ...]], bool] = {}
    for o in occurrences(bound.nest):
        key = o.access.array, o.access.affine
        guarded[key] = guarded.get(key, False) or bool(o.guards)

    def is_known(load: t.Load) -> bool:
        affine = tuple(s.affine if isinstance(s, t.AffineSubscript) and not s.wrap else None for s in load.subscripts)
        return None not in affine and not guarded.get((load.array, affine), True)

    return is_known


def with_choices(bound: BoundNest, statements: Sequence[t.TypedStatement], exists: Exists) -> _Statements:
    """Statements with conditions as values, those in loops too, where that can be."""
    inside = tuple(
        replace(s, body=with_choices(bound, s.body, exists)) if isinstance(s, t.TypedFor) else s for s in statements
    )
    conditional = [s for s in inside if isinstance(s, t.TypedIf)]
    if not all(map(exists, stores_in(conditional))):
        return inside
    body = replace(bound.body, statements=inside)
    return tuple(without_branches(bound, body, exists).statements)


def _can_be(statements: Sequence[t.TypedStatement], lanes: Lanes) -> bool:
    for statement in t.all_statements(statements):
        if not all(map(lanes.fits, t.own_values(statement))):
            return False
        match statement:
            case t.TypedStore(target=target):
                if not lanes.varies(target):
                    return False
            case t.TypedLocal() | t.TypedVariable() | t.TypedAccumulate():
                pass
            case t.TypedAssign(local=local, value=value):
                if lanes.varies(value) and local not in lanes.varying:
                    return False
            case t.TypedIf(test=test):
                if lanes.varies(test):
                    return False
            case t.TypedFor(step=step):
                if not (isinstance(step, t.Literal) and step.value):
                    return False
                if is_ragged(statement, lanes) and not (step.value == 1 and _is_simple(statement)):
                    return False
            case _:
                return False
    # If-conversion makes locals of variables in which arms join; none of those that loops hand on.
    inside = list(t.all_statements(statements))
    variables = {s.local for s in inside if isinstance(s, t.TypedVariable | t.TypedAssign)}
    return not variables & {s.local for s in inside if isinstance(s, t.TypedLocal)}


def _is_simple(loop: t.TypedFor) -> bool:
    """Whether nothing but straight statements is in a loop."""
    return all(isinstance(s, t.SimpleStatement | t.TypedVariable) for s in loop.body)


def _is_worth_it(statements: Sequence[t.TypedStatement], lanes: Lanes) -> bool:
    """Whether loops reduce, and lanes read elements side by side there."""
    innermost = list(_innermost(statements))
    if not any(map(_reduces, innermost)):
        return False
    rows = False
    if any(_divides_longer(loop) and not is_recurrence(loop) for loop in innermost):
        return False
    for loop in innermost:
        in_rows = {access for window in rows_of(loop, lanes) for access in window.offsets}
        rows |= bool(in_rows)
        if in_rows and not any(local.dtype.startswith("float") for local in assigned_outside(loop.body)):
            return False
        for access in accesses_in(loop.body):
            if lanes.varies(access) and not (lanes.is_in_row(access) or access in in_rows):
                return False
    return rows or all(lanes.is_in_row(target) for target in stores_in(statements))


def _divides_longer(loop: t.TypedFor) -> bool:
    """Whether quotients and roots of straight statements take the core longer than a sum waits for the one before it: compilers
    then compute them in vectors along the loop, and nothing is left to win."""
    values = [value for s in loop.body for value in t.own_values(s)]
    nodes = [node for value in dict.fromkeys(values) for node in t.walk(value)]
    return len(set(filter(is_divided, nodes))) >= _MANY_DIVISIONS and not any(isinstance(n, t.Select) for n in nodes)


def is_divided(node: t.Typed) -> bool:
    """Whether it keeps the core's divider at work."""
    return isinstance(node, t.Operation) and node.operator in ("/", "sqrt", "numpy.sqrt", "math.sqrt")


def rows_of(
    loop: t.TypedFor, lanes: Lanes, most: int = _MOST_ROWS, ahead: Collection[t.Load] = ()
) -> tuple[Window, ...]:
    """The elements of an innermost loop that lie in rows of the lanes' own, and are not stored to, or not before they are looked
    at; none where they are of too many rows."""
    stored, inner = {target.array for target in stores_in(loop.body)}, set(inner_indices(loop.body))
    own = (
        a
        for a in dict.fromkeys(accesses_in(loop.body))
        if lanes.along_rows(a, loop.index.name) and not inner.intersection(t.indices_of(a))
    )
    found = [access for access in own if access.array not in stored or access in ahead]
    forwards = [access for access in found if lanes.along_rows(access, loop.index.name) > 0]
    rows = (
        *windows(forwards),
        *(w for access in found if access not in forwards for w in windows((access,))),
    )
    counts_up = isinstance(loop.step, t.Literal) and loop.step.value == 1
    return rows if counts_up and len(rows) <= most else ()


def _innermost(statements: Iterable[t.TypedStatement]) -> Iterator[t.TypedFor]:
    for statement in t.all_statements(statements):
        if isinstance(statement, t.TypedFor) and not any(
            isinstance(s, t.TypedFor) for s in t.all_statements(statement.body)
        ):
            yield statement


def _reduces(loop: t.TypedFor) -> bool:
    """Whether a loop's iterations wait for one another: by a variable that they hand on, an element that all store to, or
    elements that one stores and a later one looks at."""
    if assigned_outside(loop.body) or is_recurrence(loop):
        return True
    for target in stores_in(loop.body):
        if not any(isinstance(s, t.AffineSubscript) and loop.index.name in s.affine.names for s in target.subscripts):
            return True
    return False
