"""Loops around short loops that call functions, as of windows around pixels: strip-mined, and the strips interchanged inwards,
with scalars expanded into arrays (Allen and Kennedy, Optimizing Compilers for Modern Architectures, chapters 5 and 6).

    for j:                                        for strip of j:
        total = 0.0                                   for j in strip:
        for k in range(-r, r + 1):                        total[j] = 0.0
            if 0 <= j + k < m:                →       for k in range(-r, r + 1):
                total += np.exp(a[j + k])                 for j in the part of strip with 0 <= j + k < m:
        b[j] = total                                          total[j] += np.exp(a[j + k])
                                                      for j in strip:
                                                          b[j] = total[j]

So functions are called for a strip of iterations of the outer loop at once, instead of for the few of the inner one. Each
iteration does what it did, in its order; no two touch one element. It is done where elements lie side by side along the outer
loop, and where at run time that has enough iterations and the innermost loop has few.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lapwing.affine.affine import Affine
from lapwing.codegen.body.conditional_calls import calls_by_strips
from lapwing.codegen.inner_loops.elements import Certain, NewLocal, elements_in
from lapwing.codegen.inner_loops.integers import plus
from lapwing.codegen.inner_loops.splitting import split_at_conditions
from lapwing.codegen.outer_loops.independence import accesses_in, may_be_apart
from lapwing.loopnest.binding import typed as t

STRIP = 256  # LW_STRIP of strips.h
_FEWEST_ITERATIONS = 16  # of the outer loop
_MANY_ITERATIONS = 64  # of the innermost one, for which its own strips do
_MOST_SCALARS = 12  # that are expanded: the first-level cache has other things, too

_Statements = Sequence[t.TypedStatement]


def interchanged(loop: t.TypedFor, certain: Certain, new: NewLocal) -> list[t.TypedStatement]:
    """A loop around others as strips that go through these; none where that cannot be, or is not worth it."""
    if not (isinstance(loop.step, t.Literal) and loop.step.value == 1) or not _can_be(loop):
        return []
    innermost = [s for s in t.all_statements(loop.body) if isinstance(s, t.TypedFor) and not _has_loops(s.body)]
    if not any(calls_by_strips(inner.body) for inner in innermost):
        return []
    expanded = _crossing(loop.body)
    if len(expanded) > _MOST_SCALARS:
        return []
    line, text = loop.line, loop.text
    start, stop, end = new(), new(), new()
    strip = t.Index("int64", f"{loop.index.name} strip")
    rooms = {local: _room(local, loop.index, strip) for local in expanded}
    body = _Expansion(replace(loop, start=strip, stop=end), rooms, certain, new).block(loop.body)
    last = t.Operation("int64", "min", (plus(strip, STRIP), stop))
    strips = t.TypedFor(
        line, text, strip, start, stop, t.Literal("int64", STRIP), (t.TypedLocal(line, text, end, last), *body)
    )
    declared = t.TypedStrips(line, text, tuple((room.array, room.dtype) for room in rooms.values()))
    is_worth_it: t.Typed = t.Operation("bool", "<=", (plus(start, _FEWEST_ITERATIONS), stop))
    for inner in innermost:
        if _is_known_outside(inner, loop):
            few = t.Operation("bool", "<", (inner.stop, plus(inner.start, _MANY_ITERATIONS)))
            is_worth_it = t.Operation("bool", "&", (is_worth_it, few))
    as_it_is = replace(loop, start=start, stop=stop)
    return [
        t.TypedLocal(line, text, start, loop.start),
        t.TypedLocal(line, text, stop, loop.stop),
        t.TypedIf(line, text, is_worth_it, (declared, strips), (as_it_is,)),
    ]


def _room(local: t.Local, index: t.Index, strip: t.Index) -> t.Load:
    """The element that is a local's value in an iteration."""
    place = t.AffineSubscript(Affine.of(index.name) - Affine.of(strip.name))
    return t.Load(local.dtype, f"{local.name} {local.version} strip", (place,))


# -- whether it can be -------------------------------------------------------------------------------------------------


def _has_loops(body: _Statements) -> bool:
    return any(isinstance(s, t.TypedFor) for s in t.all_statements(body))


def _can_be(loop: t.TypedFor) -> bool:
    index, body = loop.index.name, loop.body
    inside = list(t.all_statements(body))
    if not all(isinstance(s, t.SimpleStatement | t.TypedVariable | t.TypedIf | t.TypedFor) for s in inside):
        return False
    if any(isinstance(s, t.TypedAccumulate | t.TypedRounded) for s in inside):
        return False
    if any(isinstance(s, t.TypedIf) and _has_loops((*s.then, *s.otherwise)) for s in inside):
        return False
    stored = {s.target.array for s in inside if isinstance(s, t.TypedStore)}
    own = {s.local for s in inside if isinstance(s, t.TypedLocal | t.TypedVariable)}
    for inner in inside:
        if isinstance(inner, t.TypedFor):
            nodes = [node for value in t.own_values(inner) for node in t.walk(value)]
            if any(index in t.indices_of(node) or node in own or t.may_raise(node) for node in nodes):
                return False
            if any(isinstance(node, t.Load) and node.array in stored for node in nodes):
                return False
    accesses = list(accesses_in(body))
    return all(_is_side_by_side(access, index) for access in accesses) and may_be_apart(body, (), index)


def _is_side_by_side(access: t.Load, index: str) -> bool:
    """Whether iterations next to each other touch elements next to each other, or the same one."""
    factors = []
    for subscript in access.subscripts:
        if not isinstance(subscript, t.AffineSubscript):
            return False
        factors.append(subscript.affine.coefficient(index))
    return not any(factors[:-1]) and factors[-1:] in ([0], [1])


def _is_known_outside(inner: t.TypedFor, loop: t.TypedFor) -> bool:
    """Whether it is known before a loop how often one inside of it goes round."""
    around = {s.index.name for s in t.all_statements(loop.body) if isinstance(s, t.TypedFor)}
    nodes = [node for value in (inner.start, inner.stop) for node in t.walk(value)]
    plain = t.Literal | t.Scalar | t.Index | t.AffineValue | t.Operation
    return all(isinstance(node, plain) and not around & set(t.indices_of(node)) for node in nodes)


# -- scalars as arrays ---------------------------------------------------------------------------------------------------


def _runs(body: _Statements) -> Iterator[_Statements]:
    """Statements between loops, and the loops, one by one."""
    run: list[t.TypedStatement] = []
    for statement in body:
        if isinstance(statement, t.TypedFor):
            if run:
                yield run
            yield [statement]
            run = []
        else:
            run.append(statement)
    if run:
        yield run


def _crossing(body: _Statements) -> list[t.Local]:
    """The locals that statements have in common which are not in one loop along the strip."""
    places: dict[t.Local, set[int]] = {}
    declared: dict[t.Local, None] = {}
    number = 0

    def visit(body: _Statements) -> None:
        nonlocal number
        for run in _runs(body):
            if isinstance(run[0], t.TypedFor):
                visit(run[0].body)
                continue
            number += 1
            for statement in t.all_statements(run):
                if isinstance(statement, t.TypedLocal | t.TypedVariable):
                    declared[statement.local] = None
                if isinstance(statement, t.TypedLocal | t.TypedVariable | t.TypedAssign):
                    places.setdefault(statement.local, set()).add(number)
                for node in (node for value in t.own_values(statement) for node in t.walk(value)):
                    if isinstance(node, t.Local):
                        places.setdefault(node, set()).add(number)

    visit(body)
    return [local for local in declared if len(places[local]) > 1]


@dataclass(frozen=True)
class _Expansion:
    """loop: along a strip; rooms: elements in the place of locals."""

    loop: t.TypedFor
    rooms: Mapping[t.Local, t.Load]
    certain: Certain
    new: NewLocal

    def block(self, body: _Statements) -> tuple[t.TypedStatement, ...]:
        found: list[t.TypedStatement] = []
        for run in _runs(body):
            if isinstance(run[0], t.TypedFor):
                found.append(replace(run[0], body=self.block(run[0].body)))
            elif along := tuple(self._statements(run)):
                inner = replace(self.loop, body=along, independent=True, exist=elements_in(along, self.certain))
                found += split_at_conditions(inner, self.certain, self.new)
        return tuple(found)

    def _statements(self, body: _Statements) -> Iterator[t.TypedStatement]:
        for statement in body:
            match statement:
                case t.TypedIf(then=then, otherwise=otherwise):
                    then, otherwise = tuple(self._statements(then)), tuple(self._statements(otherwise))
                    yield replace(statement, test=self._value(statement.test), then=then, otherwise=otherwise)
                case t.TypedVariable(value=None, local=local) if local in self.rooms:
                    pass
                case (
                    t.TypedLocal(local=local, value=t.Typed() as value)
                    | t.TypedAssign(local=local, value=t.Typed() as value)
                    | t.TypedVariable(local=local, value=t.Typed() as value)
                ) if local in self.rooms:
                    yield t.TypedStore(statement.line, statement.text, self.rooms[local], self._value(value))
                case _:
                    yield t.with_values(statement, self._value)

    def _value(self, node: t.Typed) -> t.Typed:
        if isinstance(node, t.Local) and node in self.rooms:
            return self.rooms[node]
        return t.mapped(node, self._value)
