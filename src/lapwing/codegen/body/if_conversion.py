"""Statements under conditions as values (if-conversion: Allen, Kennedy, Porterfield and Warren, POPL 1983), in loops whose
iterations are independent, and for the lanes of a step.

    if a[i] == 1:                        is_one, is_three = a[i] == 1, b[i] == 3
        a[i] = 0                         r = p[i] / q if is_one else 0.0
        r = p[i] / q                     a[i] = 0 if is_one else 1 if is_three else a[i]
    elif b[i] == 3:                →
        a[i] = 1
        r = 0.0

Compilers do that with masked stores, and branch around those that store nothing: of conditions that hold now and then every other
branch is mispredicted. Storing what an element holds is nothing to anybody: no other iteration touches it.

Where stores to one array may be to one element, or to several, as in ``a[i, j] = 0; a[(i + 1) % n, j] = 1``, each is done in
its turn, with its value or with what the element holds by then (predicated stores: Park and Schlansker, On Predicated Execution,
1991).

Both arms are executed symbolically: variables and elements that they change are looked up in what they have been changed to, and
where arms join each is a choice between two values (the φ of static single assignment). What is stored to is stored to in every
iteration, once, at the end of the outermost condition. So everything has to be speculable: it raises nothing, and elements exist.
Stores under a condition are to elements that exist anyway, for nests with others are refused; of loops that run in their own
order that has to be known.

In loops that are gone through in strips, powers and functions may be called under conditions (predication). Such a call keeps the
conjunction of the conditions that it stands under as another operand, and ``distribution`` calls the function where that holds;
what raises does so there alone. Arms that compute alike, of other operands, do so once, of the operands chosen (branch fusion:
Coutinho, Sampaio, Pereira and Meira, PACT 2011).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lapwing.codegen.body.expression import strip_function
from lapwing.loopnest.binding import powers
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.binding.effects import is_speculable
from lapwing.loopnest.guards import occurrences
from lapwing.tiling.branches import IsBranch
from lapwing.tiling.invariants import is_invariant

_MOST_DIVISIONS = 6  # that are computed whatever conditions say
_MOST_DIVISIONS_IN_STRIPS = 12  # of which functions are called besides: they take longer

_ALWAYS = t.Literal("bool", True)

# Whether an element exists in every iteration, so that it may be loaded whatever conditions say.
Exists = Callable[[t.Load], bool]


def without_branches(
    bound: BoundNest,
    body: t.TypedBody,
    exists: Exists = lambda _: False,
    in_strips: bool = False,
    stays: IsBranch = lambda _: False,
) -> t.TypedBody:
    """The body with conditional statements as values where these may always be computed.

    bound: its nest; exists: which elements every iteration has, beside those that are known to; in_strips: whether functions may
    be called where conditions hold; stays: which conditions are branches anyway.
    """
    known = _Known(elements_that_exist(bound, body, exists), bound.nest.is_sequential, stays=stays)
    statements, _ = _converted_all(body, known, in_strips)
    return replace(body, statements=tuple(statements))


def for_lanes(bound: BoundNest, exists: Exists) -> tuple[t.TypedBody, str | None]:
    """The body of a nest without branches for the lanes of a step, if none has to stay; else as it is, and why one has to.

    exists: which elements have a place of their own in every iteration, beside those that are in their arrays anyway.
    """
    body, is_there = bound.body, elements_that_exist(bound, bound.body, exists)
    statements, reason = _converted_all(body, _Known(is_there, bound.nest.is_sequential, in_lanes=True))
    if reason is not None:
        return body, reason
    freed = (t.with_values(s, lambda value: _freed(value, is_there)) for s in statements)
    return replace(body, statements=tuple(freed)), None


def elements_that_exist(bound: BoundNest, body: t.TypedBody, exists: Exists = lambda _: False) -> Exists:
    """Which elements exist in every iteration: those that every one touches, and those whose indices are inside of their arrays
    although no condition on indices stands around them, as was checked."""
    touched = frozenset(_always_loaded(body.statements))
    unguarded = {(o.access.array, o.access.affine) for o in occurrences(bound.nest) if not (o.guards or o.loops)}

    def is_known(load: t.Load) -> bool:
        if load in touched or exists(load):
            return True
        affine = tuple(s.affine if isinstance(s, t.AffineSubscript) and not s.wrap else None for s in load.subscripts)
        return None not in affine and (load.array, affine) in unguarded

    return is_known


@dataclass(frozen=True)
class _Known:
    """exists: which elements are there in every iteration; is_sequential: whether the nest is one of which elements may be stored
    to that exist under their conditions alone; in_lanes: whether iterations are those of lanes in buffers; stays: which
    conditions are branches anyway."""

    exists: Exists
    is_sequential: bool
    in_lanes: bool = False
    stays: IsBranch = lambda _: False

    def may_be_stored(self, target: t.Load) -> bool:
        """Whether an element may be stored to in every iteration."""
        if self.is_sequential and not self.in_lanes:
            return self.exists(target)
        return is_speculable(target) or (self.exists(target) and not self.in_lanes)


def _converted_all(
    body: t.TypedBody, known: _Known, in_strips: bool = False
) -> tuple[list[t.TypedStatement], str | None]:
    """The statements without the conditions that can be values, and why the first other one cannot."""
    return _converted(body.statements, known, _Tests.after(body), {a.name: a for a in body.accumulators}, in_strips)


def _converted(
    statements: Sequence[t.TypedStatement],
    known: _Known,
    tests: _Tests,
    accumulators: Mapping[str, t.Accumulator],
    in_strips: bool = False,
) -> tuple[list[t.TypedStatement], str | None]:
    found: list[t.TypedStatement] = []
    reason, joined = None, set[t.Local]()
    for statement in statements:
        if isinstance(statement, t.SimpleStatement) and in_strips and calls_somewhere((statement,)):
            given = replace(tests)
            try:
                found += _Converter(statement, known, tests, accumulators, in_strips).statements()
            except _Unfit:
                tests.count, tests.values = given.count, given.values
                found.append(statement)
        elif isinstance(statement, t.TypedIf):
            given = replace(tests)
            try:
                if known.stays(statement):
                    raise _Unfit("it is better a branch")
                if _assigned(statement) - {s.local for s in found if isinstance(s, t.TypedVariable)}:
                    raise _Unfit("a variable of a loop around is set")
                done = _Converter(statement, known, tests, accumulators, in_strips).statements()
            except _Unfit as unfit:
                reason = reason or str(unfit)
                tests.count, tests.values = given.count, given.values
                arms = (_converted(arm, known, tests, accumulators)[0] for arm in (statement.then, statement.otherwise))
                then, otherwise = map(tuple, arms)
                found.append(replace(statement, then=then, otherwise=otherwise))
                continue
            joined |= {s.local for s in done if isinstance(s, t.TypedLocal)}
            found += done
        else:
            if not isinstance(statement, t.SimpleStatement | t.TypedVariable):
                reason = reason or "there are loops inside, or iterations that end early"
            found.append(statement)
    # A variable in which two arms join is given its value once.
    return [s for s in found if not (isinstance(s, t.TypedVariable) and s.local in joined)], reason


def _assigned(statement: t.TypedIf) -> set[t.Local]:
    """The variables that a statement sets and does not declare."""
    inside = list(t.all_statements((statement,)))
    declared = {s.local for s in inside if isinstance(s, t.TypedVariable)}
    return {s.local for s in inside if isinstance(s, t.TypedAssign)} - declared


_TEST, _CHOSEN = " test", " chosen"  # not names that Python allows


class _Unfit(Exception):
    """Some statement has to stay under its condition; the text says why."""


@dataclass
class _Tests:
    """Hands out locals for the truth of conditions, and for values: with names that no variable of a nest has."""

    count: int = 0
    values: int = 0

    @classmethod
    def after(cls, body: t.TypedBody) -> _Tests:
        """Others than those that a body has from an earlier conversion."""
        simple = (s for s in t.all_statements(body.statements) if isinstance(s, t.TypedLocal))
        given = [s.local for s in simple]
        return cls(
            *(max((local.version for local in given if local.name == name), default=0) for name in (_TEST, _CHOSEN))
        )

    def new(self) -> t.Local:
        self.count += 1
        return t.Local("bool", _TEST, self.count)

    def value(self, dtype: str) -> t.Local:
        self.values += 1
        return t.Local(dtype, _CHOSEN, self.values)


_Changed = dict[t.Local | t.Load, t.Typed]
_Path = tuple[tuple[t.Local, bool], ...]  # conditions that hold, or do not, where something stands


@dataclass
class _Arm:
    """What an arm does: ``always``, to be done in any case; ``changed``, what variables and elements are at its end; ``added``,
    what it adds to reductions. ``path``: what has to hold for it."""

    path: _Path = ()
    always: list[t.TypedStatement] = field(default_factory=list)
    changed: _Changed = field(default_factory=dict)
    added: list[t.TypedAccumulate] = field(default_factory=list)


class _Converter:
    """One statement with a condition and all inside it, or one with functions under conditions in its expression. in_strips:
    whether these may be called where a condition holds."""

    def __init__(
        self,
        statement: t.TypedIf | t.SimpleStatement,
        known: _Known,
        tests: _Tests,
        accumulators: Mapping[str, t.Accumulator],
        in_strips: bool,
    ) -> None:
        self._whole, self._exists, self._tests, self._accumulators = statement, known.exists, tests, accumulators
        self._in_strips = in_strips
        inside = list(t.all_statements((statement,)))
        self._stores = {s.target: s for s in inside if isinstance(s, t.TypedStore)}
        self._named: dict[t.Typed, t.Typed] = {}  # what variables were set to
        self._conditions: dict[_Path, t.Local] = {}  # that hold on paths, where one was asked for
        self._paths: dict[t.Typed, _Path] = {}
        self._calls: dict[t.Typed, t.Local] = {}  # where they are called
        self._fused: dict[tuple[t.Typed, t.Typed, t.Typed], t.Typed | None] = {}
        self._unions: dict[tuple[t.Typed, t.Typed], t.Typed] = {}
        divisions = sum(
            isinstance(node, t.Operation) and node.operator in ("/", "sqrt")
            for s in inside
            for value in t.own_values(s)
            for node in t.walk(value)
        )
        if divisions > (_MOST_DIVISIONS_IN_STRIPS if in_strips else _MOST_DIVISIONS):
            raise _Unfit("there are many divisions or roots under conditions")
        self._in_order: list[tuple[t.TypedStore, t.Local, t.Typed]] = []  # stores, when they are done, and their values
        self._mixed: set[str] = set()  # arrays of which stores may be to one element, or to several
        for target in self._stores:
            if known.in_lanes:
                self._check_apart(target, self._stores)
            elif any(other != target and not _are_apart(target, other) for other in self._stores):
                self._mixed.add(target.array)
            if not known.may_be_stored(target):
                raise _Unfit(f"{target.array} is stored to under a condition at indices that are looked up")

    def statements(self) -> list[t.TypedStatement]:
        """What is done in its place."""
        arm = _Arm()
        if not isinstance(self._whole, t.TypedIf):
            value = self._value(self._whole.value, {}, arm)
            return [*arm.always, replace(self._whole, value=value)]
        self._join(self._whole, arm, {})
        line, text = self._whole.line, self._whole.text
        values = [t.TypedLocal(line, text, k, v) for k, v in arm.changed.items() if isinstance(k, t.Local)]
        stores = [replace(self._stores[k], value=v) for k, v in arm.changed.items() if isinstance(k, t.Load)]
        for number, store in enumerate(stores):
            # What is stored first may be what a later value is made of.
            if any(not _are_apart(load, before.target) for load in t.loads(store) for before in stores[:number]):
                local = self._tests.value(store.value.dtype)
                values.append(t.TypedLocal(store.line, store.text, local, store.value))
                stores[number] = replace(store, value=local)
        in_order = [
            replace(store, value=t.Select(store.target.dtype, where, value, store.target, speculable=True))
            for store, where, value in self._in_order
        ]
        return [*arm.always, *values, *arm.added, *stores, *in_order]

    def _join(self, statement: t.TypedIf, arm: _Arm, before: _Changed) -> None:
        """Both arms of a condition, as a part of the arm that it stands in. before: what that has changed so far."""
        test = self._tests.new()
        value = self._value(statement.test, before, arm)
        arm.always.append(t.TypedLocal(statement.line, statement.text, test, value))
        then, otherwise = (
            self._arm(block, before, (*arm.path, (test, holds)))
            for block, holds in ((statement.then, True), (statement.otherwise, False))
        )
        arm.always += [*then.always, *otherwise.always]
        for key in otherwise.changed | then.changed:
            values = []
            for side in (then, otherwise):
                if key not in side.changed and key not in before and isinstance(key, t.Local):
                    raise _Unfit("a variable is set in one arm alone")
                values.append(side.changed.get(key, before.get(key, key)))
            one, other = values
            arm.changed[key] = self._either(test, one, other, arm)
        for side, is_then in ((then, True), (otherwise, False)):
            for added in side.added:
                nothing = t.Literal(added.value.dtype, self._nothing(added))
                is_sum = self._accumulators[added.name].operator in ("+", "terms")
                if is_sum and (counted := _truth_of(added.value)) is not None:
                    # Compilers make vectors of that whatever sizes elements have, and none of a choice.
                    holds: t.Typed = test if is_then else t.Operation("bool", "not", (test,))
                    both = holds if counted is _ALWAYS else t.Operation("bool", "&", (holds, counted))
                    arm.added.append(replace(added, value=t.Convert(added.value.dtype, both)))
                    continue
                one, other = (added.value, nothing) if is_then else (nothing, added.value)
                arm.added.append(replace(added, value=t.Select(nothing.dtype, test, one, other, speculable=True)))

    def _arm(self, block: Sequence[t.TypedStatement], before: _Changed, path: _Path) -> _Arm:
        arm, own = _Arm(path), set[t.Local]()
        for statement in block:
            now = before | arm.changed
            match statement:
                case t.TypedLocal(local=local, value=value):
                    self._name(arm, replace(statement, value=self._value(value, now, arm)))
                case t.TypedVariable(local=local, value=None):
                    own.add(local)
                case t.TypedAssign(local=local, value=value):
                    arm.changed[local] = self._value(value, now, arm)
                case t.TypedStore(target=target, value=value):
                    if value.dtype != target.dtype:
                        raise _Unfit(f"what is stored to {target.array} under a condition is of another type")
                    if target.array in self._mixed:
                        value = self._held(self._value(value, now, arm), arm)
                        self._in_order.append((statement, self._condition(path, arm), value))
                        continue
                    self._check_apart(target, now)
                    arm.changed[target] = self._value(value, now, arm)
                case t.TypedAccumulate(value=value) if not statement.position and not statement.payload:
                    self._nothing(statement)
                    arm.added.append(replace(statement, value=self._value(value, now, arm)))
                case t.TypedIf():
                    self._join(statement, arm, now)
                    # Variables of this arm's own are nobody's besides.
                    for local in [key for key in arm.changed if key in own]:
                        joined = t.TypedLocal(statement.line, statement.text, local, arm.changed.pop(local))
                        self._name(arm, joined)
                case _:
                    raise _Unfit("there are loops inside, or iterations that end early")
        return arm

    def _name(self, arm: _Arm, statement: t.TypedLocal) -> None:
        arm.always.append(statement)
        self._named[statement.local] = statement.value

    def _new(self, arm: _Arm, value: t.Typed) -> t.Local:
        """A local with a value."""
        local = self._tests.new() if value.dtype == "bool" else self._tests.value(value.dtype)
        self._name(arm, t.TypedLocal(self._whole.line, self._whole.text, local, value))
        return local

    def _value(self, node: t.Typed, now: _Changed, arm: _Arm) -> t.Typed:
        """An expression where an arm has changed so much; what it takes of that has a name from then on."""

        def visit(node: t.Typed, path: _Path) -> t.Typed:
            if isinstance(node, t.Load):
                self._check_apart(node, now)
                if any(store.target.array == node.array for store, _, _ in self._in_order):
                    raise _Unfit(f"{node.array} is stored to under a condition, and read after")
            if isinstance(node, t.Load | t.Local) and node in now:
                if not isinstance(now[node], t.Local | t.Literal | t.Scalar | t.Index):
                    local = self._tests.value(node.dtype)
                    self._name(arm, t.TypedLocal(self._whole.line, self._whole.text, local, now[node]))
                    now[node] = arm.changed[node] = local
                return now[node]
            if not self._in_strips:
                return t.mapped(node, lambda child: visit(child, path))
            match node:
                case t.Select(test=test, then=then, otherwise=otherwise) if _calls(then) or _calls(otherwise):
                    local = self._new(arm, _freed(visit(test, path), self._exists))
                    one, other = (visit(a, (*path, (local, h))) for a, h in ((then, True), (otherwise, False)))
                    self._check_speculable(one, other)
                    return self._either(local, one, other, arm)
                case t.Operation(operator="&&" | "||" as operator, operands=(first, *others)) if any(
                    map(_calls, others)
                ):
                    found = visit(first, path)
                    for other in others:
                        local = self._new(arm, _freed(found, self._exists))
                        value = visit(other, (*path, (local, operator == "&&")))
                        self._check_speculable(value)
                        found = t.Operation("bool", operator[0], (local, value))
                    return found
                case t.Operation(operands=operands) if path and is_called(node):
                    operands = tuple(visit(operand, path) for operand in operands)
                    return self._called(replace(node, operands=operands), path, arm)
            return t.mapped(node, lambda child: visit(child, path))

        if arm.path or not self._in_strips:
            self._check_elements(node)
        value = _freed(visit(node, arm.path), self._exists)
        if arm.path or not self._in_strips:
            self._check_speculable(value)
        return value

    def _check_elements(self, node: t.Typed) -> None:
        for part in t.walk(node):
            if isinstance(part, t.Load) and part not in self._stores and not self._exists(part):
                raise _Unfit(f"{part.array} is read under a condition, and may have no such element elsewhere")

    def _check_speculable(self, *nodes: t.Typed) -> None:
        for node in nodes:
            if self._in_strips:
                self._check_elements(node)
            node = _freed(_looked_up_surely(node, self._exists), lambda _: True)
            if not is_speculable(_known_apart(node) if self._in_strips else node, with_divisions=True):
                raise _Unfit("what is computed under a condition may raise, or calls a function")

    @staticmethod
    def _check_apart(load: t.Load, changed: Iterable[t.Typed]) -> None:
        """That an element is none of those that have been changed under another index."""
        if any(isinstance(key, t.Load) and key != load and not _are_apart(load, key) for key in changed):
            raise _Unfit(f"{load.array} is stored to under a condition, and may be read there by another index")

    # -- functions that are called where a condition holds ------------------------------------------------------------

    def _called(self, node: t.Operation, path: _Path, arm: _Arm) -> t.Typed:
        """What a function gives on a path. It raises there alone."""
        self._check_speculable(*node.operands)
        call = replace(node, trap=None)
        condition = self._condition(path, arm)
        result: t.Typed = call
        if strip_function(call) is not None and not is_invariant(call):
            where = t.Operation(call.dtype, "where", (call, condition))
            if where not in self._calls:
                self._calls[where] = self._new(arm, where)
            result = self._calls[where]
        if node.trap is None:
            return result
        zero = t.Literal(node.dtype, 0.0)
        certain = t.Select(node.dtype, condition, self._held(result, arm), zero, speculable=True)
        return self._new(arm, replace(node, operator="checked", operands=(certain, *node.operands)))

    def _held(self, node: t.Typed, arm: _Arm) -> t.Typed:
        return node if isinstance(node, t.Local) else self._new(arm, node)

    def _condition(self, path: _Path, arm: _Arm) -> t.Local:
        """A local that says whether a path is taken."""
        if path not in self._conditions:
            (test, holds), before = path[-1], path[:-1]
            value: t.Typed = test if holds else t.Operation("bool", "not", (test,))
            if before:
                value = t.Operation("bool", "&", (self._condition(before, arm), value))
            condition = value if isinstance(value, t.Local) else self._new(arm, value)
            self._conditions[path], self._paths[condition] = condition, path
        return self._conditions[path]

    def _either_path(self, one: t.Typed, other: t.Typed, arm: _Arm) -> t.Typed | None:
        """What says whether one of two paths is taken: None where one always is."""
        a, b = self._paths.get(one), self._paths.get(other)
        if a and b and a[:-1] == b[:-1] and a[-1][0] == b[-1][0]:
            return self._condition(a[:-1], arm) if a[:-1] else None
        if one != other and (one, other) not in self._unions:
            self._unions[one, other] = self._new(arm, t.Operation("bool", "|", (one, other)))
        return self._unions.get((one, other), one)

    # -- where arms join ---------------------------------------------------------------------------------------------

    def _either(self, test: t.Typed, one: t.Typed, other: t.Typed, arm: _Arm) -> t.Typed:
        """One value or the other; of two quotients, the quotient of dividends and divisors: dividing takes long."""
        if one == other:
            return one
        a, b = map(self._meant, (one, other))
        if isinstance(a, t.Operation) and isinstance(b, t.Operation) and _is_quotient(a) and _is_quotient(b):
            pairs = list(zip(a.operands, b.operands, strict=True))
            if a.dtype == b.dtype and all(x.dtype == y.dtype == a.dtype for x, y in pairs):
                return replace(a, operands=tuple(self._either(test, x, y, arm) for x, y in pairs))
        if self._in_strips and (fused := self._fusion(test, one, other, arm)) is not None:
            return fused
        if one.dtype == "bool":  # compilers have no vectors of them, but masks
            negated = t.Operation("bool", "not", (test,))
            return t.Operation(
                "bool",
                "|",
                (t.Operation("bool", "&", (test, one)), t.Operation("bool", "&", (negated, other))),
            )
        return t.Select(one.dtype, test, one, other, speculable=True)

    def _meant(self, value: t.Typed) -> t.Typed:
        """What stands behind the names of a value."""
        while isinstance(value, t.Local) and value in self._named:
            value = self._named[value]
        return value

    def _fusion(self, test: t.Typed, one: t.Typed, other: t.Typed, arm: _Arm) -> t.Typed | None:
        """One of two values that are computed alike, where that takes a root, a quotient or a function: computed of one or the
        other of what they are computed from."""
        key = (test, one, other)
        if key not in self._fused:
            a, b = map(self._meant, (one, other))
            found = self._fusion_of(test, a, b, arm)
            self._fused[key] = found if found is None else self._held(found, arm)
        return self._fused[key]

    def _fusion_of(self, test: t.Typed, a: t.Typed, b: t.Typed, arm: _Arm) -> t.Typed | None:
        if isinstance(b, t.Select) and b.speculable and not isinstance(a, t.Select):
            # a if test else (then if b's test else otherwise)
            inner = self._fusion(test, a, b.then, arm)
            any_of = t.Operation("bool", "|", (test, b.test))
            return None if inner is None else t.Select(b.dtype, self._new(arm, any_of), inner, b.otherwise, True)
        if not (isinstance(a, t.Operation) and isinstance(b, t.Operation)) or a.trap is not None or b.trap is not None:
            return None
        if (a.operator, a.dtype) != (b.operator, b.dtype) or len(a.operands) != len(b.operands):
            return None
        pairs = list(zip(a.operands, b.operands, strict=True))
        if any(x.dtype != y.dtype for x, y in pairs) or (powers.is_power(a) and a.operands[1] != b.operands[1]):
            return None
        if a.operator == "where":
            (call, other), (one_path, other_path) = pairs
            fused = self._fusion_of(test, call, other, arm)
            if fused is None:
                return None
            condition = self._either_path(one_path, other_path, arm)
            return fused if condition is None else replace(a, operands=(fused, condition))
        found = is_called(a) or a.operator in ("/", "sqrt", "math.sqrt")
        operands = []
        for x, y in pairs:
            fused = None if x == y else self._fusion(test, x, y, arm)
            found = found or fused is not None
            operands.append(self._either(test, x, y, arm) if fused is None else fused)
        return replace(a, operands=tuple(operands)) if found else None

    def _nothing(self, statement: t.TypedAccumulate) -> int | float:
        """What leaves a reduction as it is."""
        kind, dtype = self._accumulators[statement.name], statement.value.dtype
        if kind.is_shared or kind.dtype != dtype or not dtype.startswith(("int", "float")):
            raise _Unfit(f"{kind.name} is brought up to date under a condition")
        if kind.operator in ("+", "terms"):
            return 0
        if kind.operator not in ("max", "min") or kind.term is None:
            raise _Unfit(f"{kind.name} is brought up to date under a condition")
        if dtype.startswith("float"):
            return -np.inf if kind.operator == "max" else np.inf
        ends = np.iinfo(dtype)
        return int(ends.min if kind.operator == "max" else ends.max)


def _truth_of(value: t.Typed) -> t.Typed | None:
    """The condition whose truth is a number that is added up; None where it is none."""
    match value:
        case t.Literal(value=1, dtype=dtype) if dtype.startswith("int"):
            return _ALWAYS
        case t.Convert(operand=operand, dtype=dtype) if operand.dtype == "bool" and dtype.startswith("int"):
            return operand
    return None


def _freed(node: t.Typed, exists: Exists) -> t.Typed:
    """An expression whose choices evaluate both sides, and whose ``and`` and ``or`` all operands, where that does no harm."""
    node = t.mapped(node, lambda child: _freed(child, exists))
    match node:
        case t.Select(then=then, otherwise=otherwise, speculable=False):
            return replace(node, speculable=all(_is_free(arm, exists) for arm in (then, otherwise)))
        case t.Operation(operator="&&" | "||" as operator, operands=operands) if all(
            o.dtype == "bool" and _is_free(o, exists) for o in operands
        ):
            return replace(node, operator=operator[0])
    return node


def _looked_up_surely(node: t.Typed, exists: Exists) -> t.Typed:
    """An expression with numbers for elements that exist in every iteration, at indices that may be computed in each."""
    match node:
        case t.Load(subscripts=subscripts) if exists(node):
            indices = [s.index for s in subscripts if isinstance(s, t.LookupSubscript) and s.trap is None]
            if all(isinstance(s, t.AffineSubscript) or s.trap is None for s in subscripts) and all(
                map(is_speculable, indices)
            ):
                return t.Literal(node.dtype, 0)
    return t.mapped(node, lambda child: _looked_up_surely(child, exists))


def _is_free(node: t.Typed, exists: Exists) -> bool:
    return is_speculable(_looked_up_surely(node, exists)) and all(
        exists(part) for part in t.walk(node) if isinstance(part, t.Load)
    )


def _known_apart(node: t.Typed) -> t.Typed:
    """An expression without what is computed before the loops and raises nothing."""
    if is_invariant(node) and not any(map(t.may_raise, t.walk(node))):
        return t.Literal(node.dtype, 0)
    return t.mapped(node, _known_apart)


def is_free(node: t.Typed, exists: Exists) -> bool:
    """Whether an expression may be evaluated in every iteration: that raises nothing, takes little, and elements exist."""
    if any(isinstance(part, t.Load) and not exists(part) for part in t.walk(node)):
        return False
    return is_speculable(_known_apart(_freed(node, lambda _: True)), with_divisions=True)


def _calls(node: t.Typed) -> bool:
    return any(is_called(part) for part in t.walk(node))


def is_called(node: t.Typed) -> bool:
    """Whether an operation is a power or a function, which may raise and take long."""
    if not isinstance(node, t.Operation):
        return False
    return strip_function(node) is not None or (node.operator.startswith("math.") and node.trap is not None)


def calls_somewhere(statements: Sequence[t.TypedStatement]) -> bool:
    return any(_calls(value) for s in t.all_statements(statements) for value in t.own_values(s))


def _are_apart(one: t.Load, other: t.Load) -> bool:
    """Whether two accesses are to different elements in every iteration."""
    if one.array != other.array:
        return True
    for a, b in zip(one.subscripts, other.subscripts, strict=True):
        if isinstance(a, t.AffineSubscript) and isinstance(b, t.AffineSubscript):
            difference = a.affine + a.wrap - b.affine - b.wrap
            if difference.constant and not difference.terms:
                return True
    return False


def _is_quotient(node: t.Typed) -> bool:
    return isinstance(node, t.Operation) and node.operator == "/" and node.trap is None


def _always_loaded(statements: Sequence[t.TypedStatement]) -> Iterator[t.Load]:
    """Elements that every iteration looks at or stores to: what stands behind ``and`` may not be."""
    for statement in statements:
        if any(isinstance(inner, t.TypedJump) for inner in t.all_statements((statement,))):
            return
        if isinstance(statement, t.SimpleStatement):
            yield from _loads_in(statement.value)
            yield from (statement.target,) if isinstance(statement, t.TypedStore) else ()
        elif isinstance(statement, t.TypedIf):
            yield from _loads_in(statement.test)


def _loads_in(node: t.Typed) -> Iterator[t.Load]:
    match node:
        case t.Load():
            yield node
        case t.Select(test=test):
            yield from _loads_in(test)
        case t.Operation(operator="&&" | "||", operands=operands):
            yield from _loads_in(operands[0])
        case _:
            for child in t.children(node):
                yield from _loads_in(child)


def folded(value: t.Typed) -> t.Typed:
    """An expression without conditions of which the truth is known."""
    match value:
        case t.Select(test=t.Literal(value=known), then=then, otherwise=otherwise):
            return then if known else otherwise
        case t.Operation(operator="not", operands=(t.Literal(value=known),), dtype="bool"):
            return t.Literal("bool", not known)
        case t.Operation(operator="&" | "&&" | "|" | "||" as operator, operands=operands, dtype="bool"):
            absorbing = operator in ("|", "||")
            left: list[t.Typed] = []
            for operand in operands:
                if not isinstance(operand, t.Literal):
                    left.append(operand)
                elif bool(operand.value) == absorbing and (not left or operator in ("|", "&")):
                    return t.Literal("bool", absorbing)
                elif bool(operand.value) == absorbing:
                    left.append(operand)
            if not left:
                return t.Literal("bool", not absorbing)
            return left[0] if len(left) == 1 else replace(value, operands=tuple(left))
    return value
