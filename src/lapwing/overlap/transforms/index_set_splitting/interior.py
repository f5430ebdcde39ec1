"""A nest's interior, the box of iterations that avoids what a transfer writes or reads; and its boundary, the other iterations.

before:  do i = 1, n ; … ; end do
after:   do i = 2, n-1 ; … ; end do   |   do i = 1, n ; if (i >= 2 .and. i <= n-1) cycle ; … ; end do

Obligations. Interior and boundary may be interchanged: the loop carries no dependence (analysis/iteration_order.py), and no
scalar is live after the loop but reductions (analysis/reductions.py). The bounds are invariant in the loop, and no iteration
leaves it, communicates or does I/O.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from lapwing.affine.affine import Affine
from lapwing.affine.sections import Lookup, Range, Section
from lapwing.overlap.analysis.dependence import Conflict, data_conflict
from lapwing.overlap.analysis.effects.value_numbering import Environment, is_pure
from lapwing.overlap.analysis.iteration_order import carries_no_dependence, counters, written_in
from lapwing.overlap.analysis.manager import Analysis
from lapwing.overlap.analysis.reductions import Reductions, reductions
from lapwing.overlap.ir.accesses import Access
from lapwing.overlap.ir.expressions import (
    Element,
    Expression,
    Invocation,
    Name,
    Number,
    Operation,
    Storage,
    Symbol,
    Type,
    Unread,
)
from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.ir.rewriter import (
    counts_plainly,
    is_default_integer,
    is_seen_by_its_name,
)
from lapwing.overlap.ir.split_phase import NOWHERE, Level, PartialLoop, plus
from lapwing.overlap.ir.statements import Evaluate, If, Jump, Loop, Statement
from lapwing.overlap.languages.registry import language_of_procedure
from lapwing.overlap.transforms.code_motion import Independent

_WIDEST = 3  # planes left for the boundary on each side
_DEEPEST = 4  # planes between the interior and the memory it avoids, which includes the previous nest's boundary
_LEAST = 2  # with a known trip count, at most one iteration in so many is boundary
_MOST_BOXES = 8  # most limits that are tried
_FAR = 1_000_000  # planes outside, for a first test
_ROW = 8  # iterations that make a row
_CUBE = 16  # iterations per side of a small nest
_LEAST_SHARE = (
    0.5  # least share of it that must be interior: boundary iterations cost more than they do in the whole nest
)


@dataclass(frozen=True)
class Parts:
    """A nest's interior, and its boundary."""

    inside: PartialLoop
    boundary: PartialLoop


@dataclass(frozen=True)
class Side:
    """One end of an interior: ``base`` plus one of ``offsets``, from the narrowest interior on. ``own``: the base is the loop's
    end."""

    base: Expression
    offsets: tuple[int, ...]
    own: bool


@dataclass(frozen=True)
class Sides:
    """The ends that the interior may have in a loop; None: the loop's own."""

    low: Side | None
    high: Side | None

    @property
    def counts(self) -> tuple[int, int]:
        """The number of offsets on each side."""
        return (len(self.low.offsets) if self.low else 1), (len(self.high.offsets) if self.high else 1)


@dataclass
class Edges:
    """Memory that an interior has to avoid, and the environment at the computation's place in this procedure. ``limits``:
    whether the interior may have other ends than the loops' own."""

    accesses: Sequence[Access]
    values: Environment
    procedure: Procedure
    limits: bool = True
    # The sides chosen last for a variable, which mostly fit the next nest.
    found: dict[tuple[str, Sides], tuple[int, int]] = field(default_factory=dict)
    # The most successive nests worth splitting: each interior is smaller than the one before.
    spent: bool = False
    _axes: dict[int, tuple[Procedure, dict[str, set[tuple[str, int]]]]] = field(default_factory=dict)

    def axes(self, procedure: Procedure) -> Mapping[str, set[tuple[str, int]]]:
        """For each variable's name (in C each loop may have an ``i`` of its own): which of these arrays it subscripts in the
        procedure, and in which dimension."""
        if id(procedure.body) not in self._axes:
            names = {a.symbol.key for a in self.accesses if a.symbol is not None and a.section is not None}
            found: dict[str, set[tuple[str, int]]] = {}
            for element in (e for statement in procedure.body.statements for e in _elements(statement)):
                if isinstance(element.base, Name) and element.base.symbol.key in names:
                    for number, index in enumerate(element.indices):
                        for name in (e for e in index.walk() if isinstance(e, Name)):
                            found.setdefault(name.symbol.name, set()).add((element.base.symbol.key, number))
            self._axes[id(procedure.body)] = procedure, found
        return self._axes[id(procedure.body)][1]


def in_the_way(analysis: Analysis, loop: Loop, procedure: Procedure) -> Conflict | None:
    """Why the loop may not be split at all; None if its bounds are invariant, and no iteration leaves it, communicates or does
    I/O."""
    for jump in loop.walk():
        # A label cannot be in both parts.
        if isinstance(jump, Jump) or jump.label is not None:
            return Conflict("control", f"iterations of the loop over {loop.variable.name} jump", jump.span)
    effects = analysis.plain(loop, procedure)
    if effects.barrier:
        return Conflict("unknown", effects.barrier, effects.where)
    if effects.io or effects.states - {"clock"} or effects.operations or effects.leaves:
        return Conflict("order", f"iterations of the loop over {loop.variable.name} do more than compute", loop.span)
    changing = Conflict("bounds", f"bounds of the loop over {loop.variable.name} may change in it", loop.span)
    head = loop.every_expression()
    if any(isinstance(e, Unread) or (isinstance(e, Invocation) and not is_pure(e)) for e in head):
        return changing  # both parts would evaluate it
    bounds = {e.symbol.key for e in head if isinstance(e, Name)}
    written, everything = analysis.written(loop.body, procedure)
    if everything or bounds & (written | {loop.variable.key}):
        return changing
    # The bounds' operands may have aliases.
    read = [
        analysis.plain(Evaluate(e, span=loop.span), procedure)
        for e in loop.expressions()
        if not isinstance(e, Name | Number)
    ]
    stay = all(data_conflict(one, effects, analysis.aliases) is None for one in read)
    return None if stay else changing


def interior(
    analysis: Analysis,
    loop: Loop,
    procedure: Procedure,
    independent: Independent,
    edges: Edges,
    *,
    limited: bool = False,
    inside_last: bool = False,
) -> Parts | Conflict | None:
    """The largest interior of the nest for which ``independent`` is true, if it may be interchanged with the boundary;
    otherwise why not, or None if there is none.

    It lies a few iterations inside the loops' own ends, or (``limited``: only) within limits: a few subscripts inside the
    edges, since a loop's own ends may be variables whose relation to the edges is unknown. ``inside_last``: it comes after the
    boundary.
    """
    nest = _nest(analysis, loop, procedure)
    if limited and not any(_holds_rows(analysis, inner) for inner in nest):
        return None
    if not nest:
        return Conflict("bounds", f"the loop over {loop.variable.name} is not recognised as such", loop.span)
    if not _may_keep_away(nest, procedure, edges) or not independent(loop, None):
        return _is_near(nest, edges)
    found = None if limited else _from_the_ends(analysis, nest, procedure, independent, edges)
    if found is None:
        found = _within(analysis, nest, procedure, independent, edges)
    if found is None:
        return _is_near(nest, edges)
    box, share = found
    if not any(level.splits for level in box):
        return None  # no interior, or all of the nest
    if limited and share < _LEAST_SHARE:
        edges.spent = True
        return None
    while not box[-1].splits:
        box = box[:-1]
    if limited and not _holds_rows(analysis, box[-1].loop):
        return None
    # The scalars' final values must not matter. Independent iterations leave arrays as they did.
    needed = _needed_after(analysis, loop, procedure) & written_in(analysis, procedure, loop.body.statements)
    summed = reductions(analysis, loop, procedure)
    needed -= summed.keys
    names = {s.name for s in procedure.symbols.values() if s.key in needed and s.dimensions is None}
    if inside_last or language_of_procedure(analysis.program, procedure).splits_shell:
        # Interior and boundary loops may leave other final values in their variables than the whole.
        counting = [level.loop.variable for level in box]
        names |= {v.name for v in counting if _may_be_needed_after(analysis, v, loop, procedure)}
    if names:
        why = f"{', '.join(sorted(names))} may be needed after the loop"
        return _rounds(analysis, summed) or Conflict("iterations", why, loop.span)
    for b in box:
        statements = b.loop.body.statements
        if not carries_no_dependence(
            analysis, b.loop, procedure, statements, statements, statements, accumulated=summed.keys
        ):
            return _rounds(analysis, summed) or Conflict(
                "iterations", f"the loop over {b.loop.variable.name} may carry a dependence", b.loop.span
            )
    return Parts(_inside(box), _boundary(box))


def _is_near(nest: Sequence[Loop], edges: Edges) -> Conflict:
    """Reports that no interior of the nest is known to avoid the edges."""
    arrays = {a.symbol.name for a in edges.accesses if a.symbol is not None and a.symbol.index_space is not None}
    named = {e.base.symbol.name for e in _elements(nest[0]) if isinstance(e.base, Name)} & arrays
    loops = ", ".join(loop.variable.name for loop in nest)
    what = ", ".join(sorted(named)) or "what stands before it"
    return Conflict(
        "interior", f"no iterations of the loop over {loops} are known to be independent of {what}", nest[0].span
    )


def _rounds(analysis: Analysis, summed: Reductions) -> Conflict | None:
    """Reports a sum whose rounding depends on the order of the iterations."""
    for statement, name in summed.rounding:
        text = " ".join(analysis.program.sources[statement.span.source].text(statement.span).split())
        return Conflict("rounding", f"what {name} is in the end depends on the order of {text}", statement.span, name)
    return None


def _holds_rows(analysis: Analysis, loop: Loop) -> bool:
    """Whether an iteration of the loop is a row or more. If rows themselves were split, the boundary would be a few iterations
    in each: as many cache lines would be fetched again as for all iterations, which costs more than a fast network takes."""
    iterations = [_trip_count(analysis, inner) for inner in loop.body.walk() if isinstance(inner, Loop)]
    return any(n is None or n >= _ROW for n in iterations)


def _needed_after(analysis: Analysis, loop: Loop, procedure: Procedure) -> frozenset[str]:
    """Local variables that may be live after the loop."""
    liveness = analysis.liveness(procedure)
    after = liveness.after(loop)
    return liveness.followed - counters(liveness, procedure) if after is None else after


def _may_be_needed_after(analysis: Analysis, variable: Symbol, loop: Loop, procedure: Procedure) -> bool:
    followed = analysis.liveness(procedure).followed
    return variable.key not in followed or variable.key in _needed_after(analysis, loop, procedure)


def _nest(analysis: Analysis, loop: Loop, procedure: Procedure) -> list[Loop]:
    """The loops of a perfect nest, from the outermost in, as far as they can be peeled at both ends."""
    nest: list[Loop] = []
    if not analysis.is_as_read(loop, procedure):
        return nest  # both parts reuse the text of the whole
    source, language = analysis.program.sources[procedure.source], language_of_procedure(analysis.program, procedure)
    if not language.can_bound(analysis.program, procedure):
        return nest
    while loop.step in (Number(1), Number(-1)) and loop.label is None and loop.body.form in ("lines", "single"):
        if not language.has_countable_ends(source, loop, procedure, _WIDEST):
            break
        if nest and in_the_way(analysis, loop, procedure) is not None:
            break
        nest.append(loop)
        if len(loop.body.statements) != 1 or not isinstance(loop.body.statements[0], Loop):
            break
        loop = loop.body.statements[0]
    return nest


# ---- the largest box ----------------------------------------------------------------------------------------------------


def _from_the_ends(
    analysis: Analysis, nest: Sequence[Loop], procedure: Procedure, independent: Independent, edges: Edges
) -> tuple[Sequence[Level], float] | None:
    """The largest interior at a distance of a few planes from the loops' own ends."""
    if not _may_keep_away_at_its_ends(nest, procedure, edges):
        return None
    return _largest(analysis, [_planes(analysis, loop) for loop in nest], nest, independent, {})


def _within(
    analysis: Analysis, nest: Sequence[Loop], procedure: Procedure, independent: Independent, edges: Edges
) -> tuple[Sequence[Level], float] | None:
    """The largest interior within limits."""
    if not edges.limits:
        return None
    choices: list[Sequence[Sides | None]] = [_limits(analysis, loop, nest, procedure, edges) for loop in nest]
    if not any(choices):
        return None
    for sides in itertools.islice(itertools.product(*(c or [None] for c in choices)), _MOST_BOXES):
        found = _largest(analysis, sides, nest, independent, edges.found)
        if found is not None:
            return found
    return None


def _largest(
    analysis: Analysis,
    sides: Sequence[Sides | None],
    nest: Sequence[Loop],
    independent: Independent,
    found: dict[tuple[str, Sides], tuple[int, int]],
) -> tuple[Sequence[Level], float] | None:
    """The largest independent box with these sides, and its share of a small nest; None if not even the narrowest is independent.

    The box's accesses are computed once, in terms of its sides' offsets. The sides found for the previous nest mostly fit, and
    are tried first.
    """
    terms = [tuple(map(analysis.terms.of_variable, _offsets(number))) for number in range(len(nest))]
    symbolic = _inside([_symbolic(loop, side, n) for n, (loop, side) in enumerate(zip(nest, sides, strict=True))])
    split_levels = [(n, side) for n, side in enumerate(sides) if side is not None]

    def holds(chosen: Mapping[int, tuple[int, int]]) -> bool:
        values: list[tuple[str, int]] = []
        for number, side in split_levels:
            low, high = chosen[number]
            if side.low is not None:
                values.append((terms[number][0], -_FAR if low < 0 else side.low.offsets[low]))
            if side.high is not None:
                values.append((terms[number][1], _FAR if high < 0 else side.high.offsets[high]))
        return independent(symbolic, tuple(values))

    def widened(chosen: dict[int, tuple[int, int]], whole: tuple[int, int]) -> dict[int, tuple[int, int]]:
        for number, side in split_levels:
            low, high = chosen[number]
            if whole == _WHOLE and holds({**chosen, number: whole}):
                chosen = {**chosen, number: whole}
                continue
            low = _last(lambda n: holds({**chosen, number: (n, high)}), low, side.counts[0])  # noqa: B023
            high = _last(lambda n: holds({**chosen, number: (low, n)}), high, side.counts[1])  # noqa: B023
            chosen = {**chosen, number: (low, high)}
            found[nest[number].variable.key, side] = low, high
        return chosen

    chosen = {number: found.get((nest[number].variable.key, side), (0, 0)) for number, side in split_levels}
    if not holds(chosen):
        narrowest = dict.fromkeys(chosen, (0, 0))
        if chosen == narrowest or not holds(narrowest):
            return None
        chosen = narrowest
    for whole in (_WHOLE, (0, 0)):
        wide = widened(chosen, whole)
        box = [_level(loop, side, wide.get(n)) for n, (loop, side) in enumerate(zip(nest, sides, strict=True))]
        # That nothing is in the way within a million planes does not prove that nothing is.
        if _WHOLE not in wide.values() or independent(_inside(box)):
            return box, _share([side for _, side in split_levels], [wide[n] for n, _ in split_levels])
    return None


def _share(sides: Sequence[Sides], chosen: Sequence[tuple[int, int]]) -> float:
    """The interior's share of a small nest with these sides."""
    share = 1.0
    for side, (low, high) in zip(sides, chosen, strict=True):
        if (low, high) != _WHOLE:
            planes = sum(side.counts) - 2 - low - high
            share *= max(0.0, 1 - planes / _CUBE)
    return share


_WHOLE = (-1, -1)  # instead of two sides: the loop's own ends


def _offsets(number: int) -> tuple[Symbol, Symbol]:
    """Symbolic variables for the offsets of a level's sides."""
    integer = Type("integer", 4, "integer")
    low, high = (
        Symbol(f"interior {side} {number}", f"{side}_{number}", Storage.GLOBAL, integer) for side in ("low", "high")
    )
    return low, high


def _symbolic(loop: Loop, sides: Sides | None, number: int) -> Level:
    level = Level(loop)
    if sides is None:
        return level
    low, high = map(Name, _offsets(number))
    if sides.low is not None:
        level = replace(level, low=Operation("+", (sides.low.base, low)))
    if sides.high is not None:
        level = replace(level, high=Operation("+", (sides.high.base, high)))
    return level


def _level(loop: Loop, sides: Sides | None, chosen: tuple[int, int] | None) -> Level:
    level = Level(loop)
    if sides is None or chosen is None or chosen == _WHOLE:
        return level
    if sides.low is not None:
        offset = sides.low.offsets[chosen[0]]
        level = replace(level, below=offset) if sides.low.own else replace(level, low=plus(sides.low.base, offset))
    if sides.high is not None:
        offset = sides.high.offsets[chosen[1]]
        level = replace(level, above=-offset) if sides.high.own else replace(level, high=plus(sides.high.base, offset))
    return level


def _last(holds: Callable[[int], bool], known: int, count: int) -> int:
    """The last number below ``count`` for which it holds, given that it holds for ``known`` and is monotonic."""
    low, high = known, max(count, 1)
    if known and high - low > 1 and not holds(known + 1):
        return known
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _planes(analysis: Analysis, loop: Loop) -> Sides:
    """Planes at the loop's own ends: fewer for short loops, whose interior might otherwise be empty."""
    iterations = _trip_count(analysis, loop)
    widest = _WIDEST if iterations is None else min(_WIDEST, iterations // (2 * _LEAST))
    lower, upper = (loop.lower, loop.upper) if loop.step == Number(1) else (loop.upper, loop.lower)
    return Sides(Side(lower, tuple(range(widest, -1, -1)), own=True), Side(upper, tuple(range(-widest, 1)), own=True))


def _trip_count(analysis: Analysis, loop: Loop) -> int | None:
    """The loop's trip count, if known."""
    values = Environment(analysis.terms)
    lower, upper = values.affine(loop.lower), values.affine(loop.upper)
    between = None if lower is None or upper is None else upper - lower
    return None if between is None or between.terms else abs(between.constant) + 1


def _may_keep_away(nest: Sequence[Loop], procedure: Procedure, edges: Edges) -> bool:
    """Whether the edges of each array that the nest names are thin along some loop of the nest: what extends from end to end
    cannot be avoided. A cheap test before the nest's accesses are computed."""
    return all(
        any(_is_thin(section.subscripts[number], section) for _, number in _along(nest, procedure, edges, access))
        for access, section in _hemming_in(nest, edges)
    )


def _may_keep_away_at_its_ends(nest: Sequence[Loop], procedure: Procedure, edges: Edges) -> bool:
    """Whether some loop may start or end beside each of the edges, as far as is known at the computation's place."""
    return procedure is not edges.procedure or all(
        any(
            _may_end_beside(loop, nest, section.subscripts[number], section, edges.values)
            for loop, number in _along(nest, procedure, edges, access)
        )
        for access, section in _hemming_in(nest, edges)
    )


def _may_end_beside(
    loop: Loop, nest: Sequence[Loop], subscript: Affine | Range | None, section: Section, values: Environment
) -> bool:
    bounds = (loop.lower, loop.upper) if loop.step == Number(1) else (loop.upper, loop.lower)
    lower, upper = map(values.affine, bounds)
    if lower is None or upper is None:
        return True
    counters = {outer.variable.key for outer in nest}
    if any(values.terms.origin.get(name, frozenset()) & counters for name in lower.names | upper.names):
        return True
    firsts, lasts = _ends_of(subscript, section)
    gaps = [*(lower - last for last in lasts), *(first - upper for first in firsts)]
    return any(not gap.terms and gap.constant > -_WIDEST for gap in gaps)


def _hemming_in(nest: Sequence[Loop], edges: Edges) -> Iterable[tuple[Access, Section]]:
    """The edges in arrays that the nest names, where a boundary leaves room inside. Flattened arrays are not considered here."""
    named = {e.base.symbol.key for e in _elements(nest[0]) if isinstance(e.base, Name) and not _is_in_flat_array(e)}
    for access in edges.accesses:
        section = access.section
        if section is None or access.symbol is None or access.symbol.key not in named:
            continue
        if all(len(condition) <= 1 for condition in section.conditions):
            yield access, section


def _along(nest: Sequence[Loop], procedure: Procedure, edges: Edges, access: Access) -> Iterable[tuple[Loop, int]]:
    """Loops of the nest, with the dimensions of the access that they run along."""
    axes = edges.axes(procedure)
    for loop in nest:
        for key, number in axes.get(loop.variable.name, ()):
            if access.symbol is not None and key == access.symbol.key:
                yield loop, number


def _is_in_flat_array(element: Element) -> bool:
    """Whether its subscript may combine a row and a position in the row."""
    if len(element.indices) != 1:
        return False
    products = (e for e in element.indices[0].walk() if isinstance(e, Operation) and e.operator == "*")
    pointed = isinstance(element.base, Name) and element.base.symbol.pointer
    # A small multiple is not a row.
    return pointed or any(not any(isinstance(a, Number) and a.value <= _DEEPEST for a in e.arguments) for e in products)


def _elements(statement: Statement) -> Iterable[Element]:
    return (e for inner in statement.walk() for e in inner.every_expression() if isinstance(e, Element))


def _is_thin(subscript: Affine | Range | None, section: Section) -> bool:
    """Whether the subscript takes only few values."""
    firsts, lasts = _ends_of(subscript, section)
    return any(
        first.names == last.names and (last - first).constant <= _DEEPEST and not (last - first).terms
        for first in firsts
        for last in lasts
    )


# ---- limits -------------------------------------------------------------------------------------------------------------


def _limits(analysis: Analysis, loop: Loop, nest: Sequence[Loop], procedure: Procedure, edges: Edges) -> list[Sides]:
    """Limits between the edges along the loop's variable: above numbers, below variables."""
    if (
        _trip_count(analysis, loop) is not None
        or not counts_plainly(loop)
        or not _has_signed_bounds(analysis, loop, procedure)
    ):
        return []
    axes = edges.axes(procedure).get(loop.variable.name, set())
    firsts: set[Affine] = set()
    lasts: set[Affine] = set()
    for access in edges.accesses:
        if access.section is not None and access.symbol is not None:
            for number, subscript in enumerate(access.section.subscripts):
                if (access.symbol.key, number) in axes:
                    first, last = _ends_of(subscript, access.section)
                    firsts |= first
                    lasts |= last
    low = None
    numbers = {end.constant for end in lasts if not end.terms}
    if numbers:
        lowest = min(numbers)
        highest = min(max(numbers), lowest + _DEEPEST)
        low = Side(Number(0), tuple(range(highest + 1 + _DEEPEST, lowest, -1)), own=False)
    sides = []
    lower = edges.values.affine(loop.lower if loop.step == Number(1) else loop.upper)
    own = frozenset[str]() if lower is None else lower.names  # below those there is no iteration
    ends = {end.terms[0][0] for end in firsts if len(end.terms) == 1 and end.terms[0][1] == 1}
    for term in sorted(ends - own):
        constants = {end.constant for end in firsts if end.terms == ((term, 1),)}
        highs = tuple(range(min(constants) - 1 - _DEEPEST, max(constants)))
        for limit in _spelled(analysis, term, nest, procedure, edges.values):
            sides.append(Sides(low, Side(limit, highs, own=False)))
    return sides or ([] if low is None else [Sides(low, None)])


def _has_signed_bounds(analysis: Analysis, loop: Loop, procedure: Procedure) -> bool:
    """Whether the bounds' texts, if reused, are made of signed variables and numbers, which compare with limits by value."""
    spelled = language_of_procedure(analysis.program, procedure).spelled_ends(
        analysis.program.sources[procedure.source], loop
    )
    names = {e.symbol.name for e in loop.every_expression() if isinstance(e, Name)}
    return all(word in names or word.isdigit() for text in spelled or () for word in re.findall(r"\w+", text))


@lru_cache(maxsize=10_000)
def _ends_of(subscript: Affine | Range | None, section: Section) -> tuple[set[Affine], set[Affine]]:
    """The known candidates for the first and the last value of a subscript, in terms that are not bound in the section."""
    hidden = frozenset(section.bound) - {lookup.term for lookup in section.lookups}
    firsts: set[Affine] = set()
    lasts: set[Affine] = set()
    if isinstance(subscript, Range):
        firsts |= {subscript.lower} if subscript.lower is not None else set()
        lasts |= {subscript.upper} if subscript.upper is not None else set()
    elif subscript is not None:
        bound = [name for name, factor in subscript.terms if name in hidden and factor == 1]
        if not bound:
            firsts.add(subscript)
            lasts.add(subscript)
        else:
            own = Affine.of(bound[0])
            for comparisons in (condition[0] for condition in section.conditions if len(condition) == 1):
                for form, operator in comparisons:
                    factor = form.coefficient(bound[0])
                    if abs(factor) != 1:
                        continue
                    end = (subscript - own) - (form - own * factor) * factor
                    if factor > 0 or operator == "=":
                        firsts.add(end)
                    if factor < 0 or operator == "=":
                        lasts.add(end)
    return {end for end in firsts if not end.names & hidden}, {end for end in lasts if not end.names & hidden}


def _spelled(
    analysis: Analysis, term: str, nest: Sequence[Loop], procedure: Procedure, values: Environment
) -> list[Expression]:
    """Expressions that have, or may have, the term's value in the nest."""
    changing = analysis.written(nest[0].body, procedure)[0] | {nest[0].variable.key}
    language = language_of_procedure(analysis.program, procedure)

    def is_invariant(expression: Expression) -> bool:
        symbols = [e.symbol for e in expression.walk() if isinstance(e, Name)]
        return all(is_default_integer(s) and s.key not in changing and language.is_signed(s.type) for s in symbols)

    found: list[Expression] = [
        Name(symbol)
        for symbol in procedure.symbols.values()
        if is_invariant(Name(symbol))
        and values.value(symbol) == Affine.of(term)
        and is_seen_by_its_name(symbol, procedure)
    ]
    lookup = analysis.terms.origins.get(term)
    if not isinstance(lookup, Lookup):
        return found
    ends = (end for loop in procedure.body.walk() if isinstance(loop, Loop) for end in (loop.lower, loop.upper))
    elements = dict.fromkeys(e for end in ends for e in end.walk() if isinstance(e, Element))
    return [*found, *(e for e in elements if is_invariant(e) and _may_be(e, lookup))]


def _may_be(element: Element, lookup: Lookup) -> bool:
    """Whether the element is of this array, with equal subscripts where both are numbers."""
    return (
        isinstance(element.base, Name)
        and element.base.symbol.key == lookup.array
        and len(element.indices) == len(lookup.subscripts)
        and all(
            bool(known.terms) if not isinstance(index, Number) else known == Affine(int(index.value))
            for index, known in zip(element.indices, lookup.subscripts, strict=True)
        )
    )


# ---- the two parts ------------------------------------------------------------------------------------------------------


def _inside(box: Sequence[Level]) -> PartialLoop:
    """The interior; a level's lower end is where the loop starts, whichever way it runs."""
    level = box[0]
    loop, forwards = level.loop, level.loop.step == Number(1)
    first, last = (level.below, level.above) if forwards else (level.above, level.below)
    sign = ("+", "-") if forwards else ("-", "+")
    lower = Operation(sign[0], (loop.lower, Number(first))) if first else loop.lower
    upper = Operation(sign[1], (loop.upper, Number(last))) if last else loop.upper
    body = loop.body if len(box) == 1 else replace(loop.body, statements=(_inside(box[1:]),))
    for operator, end in ((">=", level.low), ("<=", level.high)):
        if end is not None:
            test = Operation(operator, (Name(loop.variable), end))
            body = replace(loop.body, statements=(If(test, body, span=NOWHERE),))
    return PartialLoop(
        loop.variable,
        lower,
        upper,
        loop.step,
        body,
        loop.declares,
        inside=True,
        box=tuple(box),
        whole=loop,
        wraps=loop.wraps,
        span=NOWHERE,
    )


def _boundary(box: Sequence[Level]) -> PartialLoop:
    """The boundary: the whole nest's iterations without the interior's."""
    tests = [Operation(operator, (Name(level.loop.variable), end)) for level in box for operator, end in _ends(level)]
    inside: Expression = tests[0]
    for test in tests[1:]:
        inside = Operation("&&", (inside, test))
    body = box[-1].loop.body
    body = replace(body, statements=(If(Operation("!", (inside,)), body, span=NOWHERE),))
    for outer, level in reversed([*itertools.pairwise(box)]):
        body = replace(outer.loop.body, statements=(replace(level.loop, body=body),))
    loop = box[0].loop
    return PartialLoop(
        loop.variable,
        loop.lower,
        loop.upper,
        loop.step,
        body,
        loop.declares,
        inside=False,
        box=tuple(box),
        whole=loop,
        wraps=loop.wraps,
        span=loop.span,
    )


def _ends(level: Level) -> Iterable[tuple[str, Expression]]:
    """The bounds of the interior that its loop's variable is compared with."""
    lower, upper = level.loop.lower, level.loop.upper
    if level.loop.step != Number(1):
        lower, upper = upper, lower
    if level.below:
        yield ">=", Operation("+", (lower, Number(level.below)))
    if level.above:
        yield "<=", Operation("-", (upper, Number(level.above)))
    if level.low is not None:
        yield ">=", level.low
    if level.high is not None:
        yield "<=", level.high
