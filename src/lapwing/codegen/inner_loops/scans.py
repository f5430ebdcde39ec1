"""Recurrences of integers along the innermost loop as scans (parallel prefix: Kogge and Stone 1973; Ladner and Fischer 1980;
Blelloch, Prefix Sums and Their Applications, 1990), after which iterations are independent.

    for j:                                             for j in a strip:  t[j] = max(0, h[i-1, j-1] + s, h[i-1, j] - g)
        h[i, j] = max(0, h[i-1, j-1] + s,          →   x = scan of x[j] = max(x[j-1] - g, t[j]), where x[j-1] was h[i, j-1]
                      h[i-1, j] - g, h[i, j-1] - g)    for j in the strip:  h[i, j] = x[j]

An iteration's value as a function of the one before it is a link: op(x + c, t) + a, or t + a where a condition resets it. Links
of one operator are closed under composition, so that they can be composed in any order: sums are, of integers that wrap, too,
and minima and maxima where nothing wraps, which is looked at when the strip is computed (``codegen/scans.h``).

Several arrays may be linked, as with affine gaps: one that is no link of its own element before, but of another array's in the
same iteration, is put in its place where its element before is read, until one array is left that is linked to itself. What
else is computed from elements before, as directions are, comes after the scan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lapwing.codegen.body.if_conversion import Exists, without_branches
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.tiling.invariants import is_invariant

SCANNED_TYPES = ("int32", "int64")
_EXTREMA = {"max": "max", "min": "min", "numpy.maximum": "max", "numpy.minimum": "min"}
_LARGER, _SMALLER = (">", ">="), ("<", "<=")


class _Other(Exception):
    """There is something that is no link."""


@dataclass(frozen=True)
class _Element:
    """An array's element of an iteration, or of the one before it."""

    array: str
    is_before: bool


@dataclass(frozen=True)
class _Link:
    """``added``: to each element before, or of another array, that the value is made of, what is added to it; None for nothing.
    ``operator``: what they are joined by, with ``term``, which does not depend on them; ``further``: what is added to all
    that; ``reset``: where the value is the term alone, and what is added."""

    dtype: str
    added: Mapping[_Element, t.Typed | None]
    operator: str = ""
    term: t.Typed | None = None
    further: t.Typed | None = None
    reset: t.Typed | None = None

    @property
    def shape(self) -> tuple[object, ...]:
        return self.added.keys(), self.operator, self.reset, self.dtype

    def may_join(self, operator: str) -> bool:
        """Whether the value may be an operand of an extremum, and the whole a link."""
        return self.further is None and self.operator in ("", operator)


def with_scans(
    bound: BoundNest,
    body: t.TypedBody,
    index: str,
    step: int,
    exists: Exists = lambda _: False,
    dtypes: Sequence[str] = SCANNED_TYPES,
) -> t.TypedBody | None:
    """The body of a loop with scans in the place of recurrences along it, so that no iteration waits for another; None where
    there is anything else that one would wait for, or where something may raise. index, step: of the loop. exists: see
    ``without_branches``. dtypes: of recurrences."""
    body = without_branches(bound, body, exists)
    if not body.is_straight or any(map(t.own_values_may_raise, body.statements)):
        return None
    try:
        return _Recurrences(body, index, step, dtypes).body()
    except _Other:
        return None


def behind(load: t.Load, target: t.Load, index: str, step: int) -> int | None:
    """How many iterations of a loop before it stores to a target another stores what a load reads, which is not that target; 0
    where none ever does. None where that is not known."""
    if not all(isinstance(s, t.AffineSubscript) for s in (*load.subscripts, *target.subscripts)):
        return None
    found: int | None = None
    for read, written in zip(load.subscripts, target.subscripts, strict=True):
        assert isinstance(read, t.AffineSubscript)
        assert isinstance(written, t.AffineSubscript)
        apart = written.affine + written.wrap - (read.affine + read.wrap)
        if apart.terms:
            return None
        along = written.affine.coefficient(index) * step
        if along == 0:
            if apart.constant:
                return 0
            continue
        if apart.constant % along:
            return 0
        count = apart.constant // along
        if found is not None and found != count:
            return 0
        found = count
    return found or None


@dataclass
class _Recurrences:
    """``definitions``: locals, in no order, that depend on each other alone, and on elements that no iteration of the loop has
    stored to before they are read; ``roots``: stores and reductions, which are given them."""

    given: t.TypedBody
    index: str
    step: int
    dtypes: Sequence[str]
    definitions: dict[t.Local, t.TypedLocal] = field(default_factory=dict)
    roots: list[t.TypedStatement] = field(default_factory=list)
    _tests: dict[t.Typed, t.Typed] = field(default_factory=dict)  # what locals are that choices are made by
    _values: dict[t.Typed, t.Typed | _Link | None] = field(default_factory=dict)  # None: what is no link
    _now: dict[str, t.Local] = field(default_factory=dict)  # what has been stored in the iteration
    _left: dict[str, int] = field(default_factory=dict)  # of arrays, how many statements store to them further down
    _links: dict[str, _Link] = field(default_factory=dict)  # of arrays whose elements are not known before the scan

    def body(self) -> t.TypedBody:
        targets = self._targets()
        self._carried = dict(self._read_before(targets))
        self._before = {array: t.Local(load.dtype, f"{array} before", 1) for array, load in self._carried.items()}
        if not self._carried:
            raise _Other
        for statement in self.given.statements:
            self._statement(statement)
        self._resolve()
        return replace(self.given, statements=(*self._defined(), *self.roots))

    def _defined(self) -> Iterator[t.TypedStatement]:
        """The locals that are needed, each after what it depends on."""
        done: set[t.Local] = set()

        def visit(value: t.Typed) -> Iterator[t.TypedStatement]:
            for node in t.walk(value):
                if isinstance(node, t.Local) and node in self.definitions and node not in done:
                    done.add(node)
                    statement = self.definitions[node]
                    yield from visit(statement.value)
                    yield statement

        for root in self.roots:
            for value in t.own_values(root):
                yield from visit(value)

    # -- what is read and written --------------------------------------------------------------------------------------

    def _targets(self) -> dict[str, t.Load]:
        targets: dict[str, t.Load] = {}
        for statement in self.given.statements:
            if isinstance(statement, t.TypedStore):
                target = statement.target
                if targets.setdefault(target.array, target) != target:
                    raise _Other
                if not any(self.index in s.affine.names for s in target.subscripts if isinstance(s, t.AffineSubscript)):
                    raise _Other  # every iteration stores to one element
                self._left[target.array] = self._left.get(target.array, 0) + 1
            elif not isinstance(statement, t.TypedLocal | t.TypedAccumulate):
                raise _Other
        return targets

    def _read_before(self, targets: Mapping[str, t.Load]) -> Iterator[tuple[str, t.Load]]:
        """The elements that the iteration before has stored, by their arrays; all else that is read is of this iteration, or
        what it was before the loop."""
        stored: set[str] = set()
        for statement in self.given.statements:
            for load in _loads(statement):
                target = targets.get(load.array)
                if target is None or load == target:
                    continue
                count = behind(load, target, self.index, self.step)
                if count is None or count > 1 or (count < 0 and load.array in stored):
                    raise _Other
                if count == 1:
                    if load.dtype not in self.dtypes:
                        raise _Other
                    yield load.array, load
            if isinstance(statement, t.TypedStore):
                stored.add(statement.target.array)

    # -- statements ----------------------------------------------------------------------------------------------------

    def _statement(self, statement: t.TypedStatement) -> None:
        match statement:
            case t.TypedLocal(local=local, value=value):
                found = self._linked(value)
                self.definitions[local] = replace(statement, value=self._placed(value))
                self._tests[local] = value
                self._values[local] = local if isinstance(found, t.Typed) and not is_invariant(found) else found
            case t.TypedStore(target=target, value=value):
                self._left[target.array] -= 1
                is_last = self._left[target.array] == 0
                found = self._linked(value)
                now = t.Local(target.dtype, f"{target.array} now", self._left[target.array] + 1)
                self.definitions[now] = t.TypedLocal(statement.line, statement.text, now, self._placed(value))
                self._now[target.array] = now
                self._values[target] = now if isinstance(found, t.Typed) else found
                if is_last:
                    self.roots.append(replace(statement, target=self._target(target), value=now))
                    if target.array in self._carried:
                        self._stored(target, found, now)
            case _:
                self.roots.append(t.with_values(statement, self._placed))

    def _stored(self, target: t.Load, found: t.Typed | _Link | None, now: t.Local) -> None:
        """The element that the next iteration reads: what it is, as far as that is known."""
        if isinstance(found, t.Typed):
            self._later(target.array, now)
            return
        if found is None or found.dtype != target.dtype:
            raise _Other
        self._links[target.array] = found
        self._values[target] = _Link(target.dtype, {_Element(target.array, False): None})

    def _later(self, array: str, now: t.Local) -> None:
        """Defines what an array's element was in the iteration before, where that of every iteration is known."""
        before = self._before[array]
        value = t.Operation(before.dtype, "later", (self._carried[array], now))
        self.definitions[before] = t.TypedLocal(0, "", before, value)

    def _target(self, target: t.Load) -> t.Load:
        placed = t.mapped(target, self._placed)
        assert isinstance(placed, t.Load)
        return placed

    def _placed(self, node: t.Typed) -> t.Typed:
        """The expression over locals in the place of elements that iterations of the loop have stored."""
        if isinstance(node, t.Load):
            if self._is_before(node):
                return self._before[node.array]
            if node.array in self._now and node in self._values:
                return self._now[node.array]
        return t.mapped(node, self._placed)

    def _is_before(self, load: t.Load) -> bool:
        return self._carried.get(load.array) == load

    # -- links ---------------------------------------------------------------------------------------------------------

    def _linked(self, node: t.Typed) -> t.Typed | _Link | None:
        """What an expression is, as a link; itself if it depends on none, and None where it is anything else."""
        if node in self._values:
            return self._values[node]
        if isinstance(node, t.Load) and self._is_before(node):
            return _Link(node.dtype, {_Element(node.array, True): None})
        if isinstance(node, t.Select):
            return self._choice(node)
        parts = [self._linked(child) for child in t.children(node)]
        if all(isinstance(part, t.Typed) for part in parts):
            given = iter(parts)
            return t.mapped(node, lambda _: _typed(next(given)))
        if not isinstance(node, t.Operation) or len(parts) != 2 or node.dtype not in self.dtypes:
            return None
        one, other = parts
        if node.operator in _EXTREMA:
            return self._extremum(node, _EXTREMA[node.operator], one, other)
        if node.operator == "+" and isinstance(one, t.Typed):
            one, other = other, one
        if node.operator in ("+", "-") and isinstance(one, _Link) and isinstance(other, t.Typed):
            return _plus(one, other, node.operator) if one.dtype == other.dtype == node.dtype else None
        return None

    def _extremum(
        self, node: t.Typed, operator: str, one: t.Typed | _Link | None, other: t.Typed | _Link | None
    ) -> _Link | None:
        if isinstance(one, t.Typed):
            one, other = other, one
        if not isinstance(one, _Link) or one.dtype != node.dtype or not one.may_join(operator):
            return None
        if isinstance(other, t.Typed):
            return replace(one, operator=operator, term=_joined(operator, one.term, other))
        if not isinstance(other, _Link) or other.dtype != node.dtype or not other.may_join(operator):
            return None
        if one.reset is not None or other.reset is not None:
            return None
        term = one.term if other.term is None else _joined(operator, one.term, other.term)
        both = one.added.keys() & other.added.keys()
        if any(one.added[element] != other.added[element] for element in both):
            return None  # the larger sum is that of the larger number only where nothing wraps
        return replace(one, added={**one.added, **other.added}, operator=operator, term=term)

    def _choice(self, node: t.Select) -> t.Typed | _Link | None:
        if operator := _extremum_of(node, self._tests.get(node.test, node.test)):
            then, otherwise = self._linked(node.then), self._linked(node.otherwise)
            if isinstance(then, _Link) or isinstance(otherwise, _Link):
                return self._extremum(node, operator, then, otherwise)
        test, then, otherwise = map(self._linked, (node.test, node.then, node.otherwise))
        if not isinstance(test, t.Typed) or then is None or otherwise is None:
            return None
        if isinstance(then, t.Typed) and isinstance(otherwise, t.Typed):
            return replace(node, test=test, then=then, otherwise=otherwise)
        if node.dtype not in self.dtypes:
            return None

        def chosen(one: t.Typed, other: t.Typed) -> t.Typed:
            return one if one == other else replace(node, test=test, then=one, otherwise=other)

        if isinstance(then, _Link) and isinstance(otherwise, _Link):
            if then.shape != otherwise.shape or then.term is None or otherwise.term is None:
                return None
            zero = t.Literal(node.dtype, 0)
            added = {e: chosen(c or zero, otherwise.added[e] or zero) for e, c in then.added.items()}
            further = chosen(then.further or zero, otherwise.further or zero)
            return replace(then, added=added, term=chosen(then.term, otherwise.term), further=further)
        link, alone = (then, otherwise) if isinstance(then, _Link) else (otherwise, then)
        assert isinstance(link, _Link)
        assert isinstance(alone, t.Typed)
        if link.term is None or link.reset is not None or link.dtype != node.dtype:
            return None
        if link.further is not None:
            alone = t.Operation(node.dtype, "-", (alone, link.further))
        resets = t.Operation("bool", "not", (test,)) if link is then else test
        term = chosen(link.term, alone) if link is then else chosen(alone, link.term)
        return replace(link, term=term, reset=resets)

    # -- scans ---------------------------------------------------------------------------------------------------------

    def _resolve(self) -> None:
        """Finds what all elements are, by scans of those that are linked to their own before alone."""
        links = self._links
        while links:
            for array, link in list(links.items()):
                links[array] = link = self._with_known(link)
                if not link.added:
                    self._later(array, self._now[array])
                    break
                if link.added.keys() == {_Element(array, True)}:
                    self._scan(array, link)
                    break
            else:
                array = self._scan_pair()
            del links[array]

    def _with_known(self, link: _Link) -> _Link:
        """The link with elements that are known by now as terms."""
        for element, added in link.added.items():
            if element.array not in self._links:
                known: t.Typed = (self._before if element.is_before else self._now)[element.array]
                known = known if added is None else t.Operation(link.dtype, "+", (known, added))
                others = {e: c for e, c in link.added.items() if e != element}
                if others and link.reset is not None:
                    raise _Other
                term = known if link.term is None else _joined(link.operator, link.term, known)
                return self._with_known(replace(link, added=others, term=term))
        return link

    def _scan(self, array: str, link: _Link) -> None:
        (added,) = link.added.values()
        if not link.operator:
            if added is None or is_invariant(added):
                raise _Other
            self._define(array, "sum", added)
            return
        if link.term is None:
            raise _Other
        strips = {
            "added": None if added is None or is_invariant(added) else added,
            "further": None if link.further is None or is_invariant(link.further) else link.further,
            "resets": None if link.reset is None else t.Convert(link.dtype, link.reset),
        }
        if link.dtype not in SCANNED_TYPES and any(value is not None for value in strips.values()):
            raise _Other  # sums of what differs between iterations may be large, and resets are
        given = {name: self._named(array, name, value) for name, value in strips.items() if value is not None}
        scalars = (None if "added" in given else added, None if "further" in given else link.further)
        zeros = (_or_zero(link.dtype, value) for value in scalars)
        term = self._named(array, "term", link.term)
        self._define(array, " ".join([link.operator, *given]), term, *given.values(), *zeros)

    def _named(self, array: str, what: str, value: t.Typed) -> t.Local:
        """A local that is defined as a value."""
        local = t.Local(value.dtype, f"{array} {what}", 1)
        self.definitions[local] = t.TypedLocal(0, "", local, value)
        return local

    def _define(self, array: str, operator: str, *operands: t.Typed) -> None:
        """Defines an array's elements, now and before, by a scan."""
        load = self._carried[array]
        for local, name in ((self._now[array], "scan"), (self._before[array], "before scan")):
            value = t.Operation(load.dtype, f"{name} {operator}", (load, *operands))
            self.definitions[local] = t.TypedLocal(0, "", local, value)

    def _scan_pair(self) -> str:
        """Finds the elements of an array that reads those before of its own, and of another one that is made of its element of
        the same iteration; its name."""
        for array, link in self._links.items():
            for reader, its in self._links.items():
                own, read = _Element(reader, True), _Element(array, True)
                if link.added.keys() == {_Element(reader, False)} and its.added.keys() == {own, read}:
                    added = (its.added[own], its.added[read], link.added[_Element(reader, False)])
                    is_plain = all(each.further is None and each.reset is None for each in (its, link))
                    if is_plain and its.may_join(link.operator) and all(c is None or is_invariant(c) for c in added):
                        self._pair(reader, its, array, link, added)
                        return reader
        raise _Other

    def _pair(self, reader: str, its: _Link, array: str, link: _Link, added: Sequence[t.Typed | None]) -> None:
        if link.term is None:
            raise _Other
        _, reading, linked = added
        # The other array's term, from which its elements are computed, too.
        term, now = self._named(array, "term", link.term), self._now[array]
        value = _joined(link.operator, term, _sum(link.dtype, self._now[reader], linked))
        self.definitions[now] = replace(self.definitions[now], value=value)
        later = t.Operation(link.dtype, "later", (self._carried[array], term))
        both = self._named(reader, "term", _joined(link.operator, its.term, _sum(link.dtype, later, reading)))
        own = () if its.term is None else (self._named(reader, "own term", its.term),)
        operator = f"pair {link.operator}{' own' if own else ''}"
        self._define(reader, operator, both, later, *own, *(_or_zero(link.dtype, c) for c in added))


def _typed(value: t.Typed | _Link | None) -> t.Typed:
    assert isinstance(value, t.Typed)
    return value


def _plus(link: _Link, value: t.Typed, operator: str) -> _Link:
    """The link with something added to, or taken off, its value."""
    if operator == "-":
        value = t.Operation(link.dtype, "unary -", (value,))
    if link.operator:
        return replace(link, further=_sum(link.dtype, value, link.further))
    ((element, added),) = link.added.items()
    return replace(link, added={element: _sum(link.dtype, value, added)})


def _sum(dtype: str, one: t.Typed, other: t.Typed | None) -> t.Typed:
    return one if other is None else t.Operation(dtype, "+", (one, other))


def _or_zero(dtype: str, value: t.Typed | None) -> t.Typed:
    return t.Literal(dtype, 0) if value is None else value


def _joined(operator: str, one: t.Typed | None, other: t.Typed) -> t.Typed:
    return other if one is None else t.Operation(other.dtype, operator, (one, other))


def _extremum_of(node: t.Select, test: t.Typed) -> str:
    """Which extremum of two values a choice is, if it is one."""
    if not isinstance(test, t.Operation) or test.operator not in (*_LARGER, *_SMALLER):
        return ""
    if test.operands == (node.then, node.otherwise):
        return "max" if test.operator in _LARGER else "min"
    if test.operands == (node.otherwise, node.then):
        return "min" if test.operator in _LARGER else "max"
    return ""


def _loads(statement: t.TypedStatement) -> Iterator[t.Load]:
    """The elements that a statement reads, and what it looks up to find the one that it stores to."""
    values: Sequence[t.Typed] = t.own_values(statement)
    if isinstance(statement, t.TypedStore):
        values = (statement.value, *t.children(statement.target))
    return (node for value in values for node in t.walk(value) if isinstance(node, t.Load))
