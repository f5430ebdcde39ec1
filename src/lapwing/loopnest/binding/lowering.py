"""Statements of the IR as typed ones: control flow, and which value a scalar has where its paths join.

As in SSA form, each assignment to a scalar makes a new local. Where the arms of an ``if`` join, or a loop comes back to its
head, a variable takes the place of those that differ and are read later (a φ): its type is the join of theirs, found for loops
by iterating to a fixed point.

A scalar that not every way gives a value to has none in a tiled nest. In a sequential region another variable says whether it
has one, and reading it where it has none ends the run.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import reduce

from lapwing.loopnest import ir
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.complex_numbers import has_complex
from lapwing.loopnest.binding.expressions import ExpressionLowering, Surroundings
from lapwing.loopnest.binding.promotion import (
    CARRIED_LIMIT,
    COUNTED_FROM,
    INT64_MAX,
    INT64_MIN,
    NUMPY_FLOAT,
    PARTS,
    PY_BOOL,
    PY_INT,
    Interval,
    ScalarType,
    scalar_type,
)
from lapwing.loopnest.binding.signs import sign_of
from lapwing.loopnest.binding.values import Counted, Value, as_start, literal_of
from lapwing.loopnest.liveness import liveness, temporaries
from lapwing.loopnest.refusals import Refusals, Stopped

Values = dict[str, Value | None]

_NO_VALUE = Value(t.Literal("bool", False), frozenset())  # of a scalar that nothing has been assigned to
_KIND_UNKNOWN = Value(t.Literal("int64", 0), frozenset({PY_INT}), (0, 0))
_NO, _YES = (Value(t.Literal("bool", known), frozenset({PY_BOOL}), (0, 1)) for known in (False, True))


def lower(nest: ir.LoopNest, surroundings: Surroundings, refusals: Refusals) -> t.TypedBody:
    """Type the body of a nest.

    Every type that is not supported or depends on values is noted in refusals, and its statement left out.
    """
    lowering = _Lowering(nest, surroundings, refusals)
    body = lowering.body()
    if lowering.of_several_types:
        of_known_kind = _with_what_they_are_set_to(nest.body, lowering.of_several_types)
        body = _Lowering(nest, surroundings, refusals, of_known_kind).body()
    return body


def _with_what_they_are_set_to(body: Sequence[ir.Statement], names: Collection[str]) -> frozenset[str]:
    """Scalars, and those whose types are theirs: what they are set to, or computed of."""

    def scalars_of(node: ir.Expression) -> Iterator[str]:
        match node:
            case ir.Temporary(name=name):
                yield name
            case ir.Call(function="max" | "min", arguments=parts):
                for part in parts:
                    yield from scalars_of(part)
            case ir.Conditional(then=then, otherwise=otherwise):
                yield from (*scalars_of(then), *scalars_of(otherwise))
            case ir.Binary(left=left, right=right):
                yield from (*scalars_of(left), *scalars_of(right))
            case ir.Unary(operand=operand) | ir.Call(function="abs", arguments=(operand,)):
                yield from scalars_of(operand)

    found = frozenset(names)
    while True:
        sets = [s for s in ir.all_statements(body) if isinstance(s, ir.SetTemporary) and s.name in found]
        more = found.union(*(scalars_of(s.value) for s in sets))
        if more == found:
            return found
        found = more


def _parts_of_indices(body: Sequence[ir.Statement]) -> frozenset[str]:
    """Scalars that indices are computed of, or the ranges that they are in."""
    names = set[str]()
    for statement in ir.all_statements(body):
        if isinstance(statement, ir.For):
            names.update(*map(temporaries, (statement.start, statement.stop, statement.step)))
        targets = (statement.target,) if isinstance(statement, ir.Store) else ()
        for access in (*ir.statement_reads(statement), *targets):
            names.update(*map(temporaries, access.subscripts))
    return _with_what_they_are_set_to(body, names)


@dataclass
class _LoopFrame:
    """A loop whose body is being typed. heads: the variables it carries, by name; ends: the scalars' values wherever an iteration
    ends; unset: names without a value before the first; counting: those that count in it."""

    heads: dict[str, Value]
    unset: frozenset[str]
    counting: set[str]
    ends: list[Values] = field(default_factory=list)


@dataclass(frozen=True)
class _Arm:
    """A way that control may come from: the scalars' values at its end, and its statements."""

    values: Values
    statements: list[t.TypedStatement]


class _Lowering(ExpressionLowering):
    def __init__(
        self,
        nest: ir.LoopNest,
        surroundings: Surroundings,
        refusals: Refusals,
        of_known_kind: frozenset[str] = frozenset(),
    ) -> None:
        """of_known_kind: scalars of which another variable says which of several types they have."""
        super().__init__(nest, surroundings, refusals)
        self.of_known_kind, self.of_several_types = of_known_kind, set[str]()
        self.kinds: list[ScalarType] = []
        self.versions: dict[str, int] = {}
        self.accumulators: dict[str, t.Accumulator] = {}
        self.of_numpy: dict[str, bool] = {}  # by accumulator of terms, whether these are NumPy's
        self.constants: dict[str, t.Typed] = {}  # what accumulators are set to
        self.parts_of_indices = _parts_of_indices(nest.body)
        self.live = liveness(nest.body, nest.returns if nest.is_sequential else ())
        self.loops: list[_LoopFrame] = []
        self.added = _surely_updated(nest.body)
        self.reduced = Counter(s.name for s in ir.all_statements(nest.body) if isinstance(s, ir.Accumulate))
        self.is_reached = True  # whether control comes to where we are

    def body(self) -> t.TypedBody:
        statements = list(t.without_early_ends(tuple(self._block(self.nest.body))))
        if self.nest.is_sequential:
            for name in self.nest.returns:
                with self.refusals.recovering():
                    statements += self._given_back(name)
                    statements += self._its_kind(name)
        return t.TypedBody(tuple(statements), tuple(self.accumulators.values()), tuple(self.traps))

    # -- statements --------------------------------------------------------------------------------------------------

    def _block(self, statements: Sequence[ir.Statement]) -> list[t.TypedStatement]:
        """Statements in a row; what comes after a jump is never reached, and left out."""
        found: list[t.TypedStatement] = []
        with self._scope():
            for statement in statements:
                if not self.is_reached:
                    break
                with self.refusals.recovering():
                    self._statement(statement, found)
        return found

    def _statement(self, statement: ir.Statement, found: list[t.TypedStatement]) -> None:
        line, text = statement.line, statement.text
        match statement:
            case ir.Store(target=target, value=value):
                lowered, element = self._operands(value, target)
                stored = self._store(lowered, self.around.dtypes[target.array], line, target.text)
                load = element.code
                assert isinstance(load, t.Load)
                found.append(t.TypedStore(line, text, load, stored))
            case ir.AddTerm() if self._add_exactly(statement, found):
                pass
            case ir.Rounded(name=name):
                if self._has_terms(name, line):
                    self._round(statement, found)
            case ir.SetTemporary(name=name, value=value):
                try:
                    lowered = self._lower(value)
                    # In 64 bits compilers see that neighbouring iterations take neighbouring elements.
                    lowered = lowered if name in self.parts_of_indices else self._narrowed(lowered, line)
                except Stopped:
                    self.values[name] = None
                    raise
                local = self._new_local(name, lowered.code.dtype)
                kind = self._kind(value, lowered) if name in self.of_known_kind else None
                self.values[name] = replace(lowered, code=local)
                self.signs[local] = sign_of(lowered.code, self.signs)
                if kind is not None:
                    kind_local = self._new_local(_kind_name(name), "int64")
                    self.values[_kind_name(name)] = Value(kind_local, kind.types, kind.interval)
                    found.append(t.TypedLocal(line, text, kind_local, kind.code))
                self.values.pop(_flag(name), None)
                found.append(t.TypedLocal(line, text, local, lowered.code))
            case ir.Accumulate():
                found += self._accumulate(statement)
                found += self._noted(statement)
            case ir.If():
                self._if(statement, found)
            case ir.For():
                self._for(statement, found)
            case ir.While():
                self._while(statement, found)
            case ir.Break() | ir.Continue():
                self._jump(statement, found)
            case _:
                raise AssertionError(statement)

    def _kind(self, node: ir.Expression, value: Value) -> Value:
        """Which of the ``kinds`` a value has, as far as that follows from what it is made of."""
        code = self._kind_code(node, value)
        self._check_kind(code)
        return Value(code, frozenset({PY_INT}), (0, _MOST_KINDS))

    def _kind_code(self, node: ir.Expression, value: Value) -> t.Typed:
        """The number of that kind; 0 where it is not known."""
        match node:
            case _ if value.only is not None:
                return self._number_of(value.only)
            case ir.Temporary(name=name) if name in self.of_known_kind:
                return self._kind_of(name)
            case ir.Conditional(then=then, otherwise=otherwise):
                return self._kind_of_either(value, then, otherwise)
            case ir.Call(function="max" | "min", arguments=(*others, second)) if others:
                first = others[0] if len(others) == 1 else replace(node, arguments=tuple(others))
                return self._kind_of_either(value, second, first)
            case ir.Binary(left=left, right=right):
                return self._kind_of_result(value, (left, right))
            case ir.Unary(operand=operand) | ir.Call(function="abs", arguments=(operand,)):
                return self._kind_of_result(value, (operand,))
        return _NO_KIND

    def _kind_of_result(self, value: Value, operands: Sequence[ir.Expression]) -> t.Typed:
        """The same of what is computed of operands: Python's, if all of these are, else NumPy's."""
        pythons = [kind for kind in value.types if kind.weak]
        numpys = [kind for kind in value.types if not kind.weak]
        if len(pythons) != 1 or len(numpys) != 1:
            return _NO_KIND
        tests: list[t.Typed] = []
        for lowered, code in self._parts_with_kinds(operands):
            if all(kind.weak for kind in lowered.types):
                continue
            if code == _NO_KIND:
                return _NO_KIND
            own = [self._number_of(k) for k in sorted(lowered.types, key=str) if k.weak]
            tests.append(_combined("|", [t.Operation("bool", "==", (code, number)) for number in own]))
        return t.Select("int64", _combined("&", tests), self._number_of(pythons[0]), self._number_of(numpys[0]))

    def _kind_of_either(self, value: Value, one: ir.Expression, other: ir.Expression) -> t.Typed:
        """The same of a value that is the first of two where the test holds by which it is chosen."""
        test = _test_of(value.code)
        kinds = [kind for _, kind in self._parts_with_kinds((one, other))]
        for part, kind in zip((one, other), kinds, strict=True):
            if kind == _NO_KIND and not isinstance(part, ir.Temporary):
                return _NO_KIND
        return _NO_KIND if test is None else t.Select("int64", test, kinds[0], kinds[1])

    def _parts_with_kinds(self, parts: Sequence[ir.Expression]) -> list[tuple[Value, t.Typed]]:
        """Parts of a value that has been lowered, each with the number of its kind."""
        traps = len(self.traps)
        found = [(lowered, self._kind_code(part, lowered)) for part in parts for lowered in (self._lower(part),)]
        self.traps = self.traps[:traps]  # those of the value itself are there
        return found

    def _check_kind(self, code: t.Typed) -> None:
        """Raise RefusedError where a scalar of a nest that is to have none of several types has one that is not known."""
        if self.nest.of_one_type and code == _NO_KIND:
            self._refuse(self.nest.line, "which type a scalar has is not known", "set it to one type, as x = float(x)")

    def _kind_of(self, name: str) -> t.Typed:
        known = self.values.get(_kind_name(name))
        return _NO_KIND if known is None else known.code

    def _number_of(self, kind: ScalarType) -> t.Typed:
        if kind not in self.kinds:
            self.kinds.append(kind)
        return t.Literal("int64", self.kinds.index(kind) + 1)

    def _new_local(self, name: str, dtype: str) -> t.Local:
        self.versions[name] = self.versions.get(name, 0) + 1
        return t.Local(dtype, name, self.versions[name])

    def _if(self, statement: ir.If, found: list[t.TypedStatement]) -> None:
        line, text = statement.line, statement.text
        test = self._test(statement.test)
        before = self.values
        paths, arms = [], []
        ways: list[bool] = []
        for body, holds in ((statement.then, True), (statement.otherwise, False)):
            self.values, self.is_reached = dict(before), True
            with self._where(statement.test, holds):
                arm = self._block(body)
            arms.append(arm)
            if self.is_reached:
                paths.append(_Arm(self.values, arm))
                ways.append(holds)
        self.is_reached = bool(paths)
        declared: list[t.TypedStatement] = []
        self.values = self._joined(statement, before, paths, declared) if paths else before
        found += declared
        found.append(t.TypedIf(line, text, test, tuple(arms[0]), tuple(arms[1])))
        if len(ways) == 1:  # the other arm jumps; what this one has set is another value than the test was of
            after, self.values = self.values, before
            self._learn(statement.test, ways[0])
            self.values = after

    def _joined(
        self, statement: ir.Statement, before: Values, arms: Sequence[_Arm], declared: list[t.TypedStatement]
    ) -> Values:
        """The values of scalars that are read later, where arms join."""
        values: Values = {}
        for name in dict.fromkeys(name for arm in arms for name in arm.values):
            if _without_flag(name) not in self.live.after(statement):
                continue
            ways = [self._way(name, arm.values) for arm in arms]
            if all(way is before.get(name) for way in ways):  # what an arm has set is known only inside it
                values[name] = ways[0]
            elif way_is_sure := [way for way in ways if way is not _NO_VALUE]:
                if len(way_is_sure) < len(ways) and not self.nest.is_sequential:
                    continue
                values[name] = None
                with self.refusals.recovering():
                    values[name] = self._phi(statement, name, ways, arms, declared)
        if self.nest.is_sequential:
            for name in [name for name in values if _flag(name) not in values]:
                self._join_flags(statement, name, arms, values, declared)
        return values

    def _way(self, name: str, values: Values) -> Value | None:
        """What a scalar, or the flag of one, is on a way."""
        if name in values:
            return values[name]
        if name == _without_flag(name):
            return _NO_VALUE
        if name == _kind_name(_without_flag(name)):
            if _without_flag(name) in values:
                self._check_kind(_KIND_UNKNOWN.code)
            return _KIND_UNKNOWN
        return _YES if _without_flag(name) in values else _NO

    def _join_flags(
        self,
        statement: ir.Statement,
        name: str,
        arms: Sequence[_Arm],
        values: Values,
        declared: list[t.TypedStatement],
    ) -> None:
        flag = _flag(name)
        ways = [self._way(flag, arm.values) for arm in arms]
        if name == _without_flag(name) and any(way is _NO for way in ways):
            values[flag] = self._phi(statement, flag, ways, arms, declared)

    def _phi(
        self,
        statement: ir.Statement,
        name: str,
        ways: Sequence[Value | None],
        arms: Sequence[_Arm],
        declared: list[t.TypedStatement],
    ) -> Value | None:
        known = [way for way in ways if way is not None]
        if len(known) < len(ways):
            return None
        joined = self._join(known, statement.line)
        self._check_types(name, joined, statement.line)
        extents = [way.extent_here for way in known]
        if any(way.here is not None for way in known) and None not in extents:
            joined = replace(joined, here=reduce(_hull, (extent for extent in extents if extent is not None)))
        local = self._new_local(name, joined.code.dtype)
        declared.append(t.TypedVariable(statement.line, statement.text, local))
        for way, arm in zip(known, arms, strict=True):
            code = self._convert(way.code, local.dtype, statement.line)
            arm.statements.append(t.TypedAssign(statement.line, statement.text, local, code))
        self.signs[local] = min(sign_of(way.code, self.signs) for way in known)
        return replace(joined, code=local)

    def _jump(self, statement: ir.Break | ir.Continue, found: list[t.TypedStatement]) -> None:
        kind = "break" if isinstance(statement, ir.Break) else "continue"
        if self.loops:
            found += self._end_of_iteration(statement, self.loops[-1])
        else:
            kind = "return"
        found.append(t.TypedJump(statement.line, statement.text, kind))
        self.is_reached = False

    # -- inner loops -------------------------------------------------------------------------------------------------

    def _for(self, statement: ir.For, found: list[t.TypedStatement]) -> None:
        line, text = statement.line, statement.text
        start, stop, step = self._operands(statement.start, statement.stop, statement.step)
        ends = ((start, statement.start, "bound"), (stop, statement.stop, "bound"), (step, statement.step, "step"))
        for value, node, what in ends:
            if not all(k.is_integer or k.is_bool for k in value.types):
                self._refuse(
                    node.line, f"a {what} of loop {statement.index} is {value.describe()}",
                    "range takes integers: write int(x), or a // b for a quotient",
                )  # fmt: skip
        low, high, by = start.extent, stop.extent, step.extent
        reached = self._reached(low, high, by)
        outer = self.index_ranges.get(statement.index)
        self.index_ranges[statement.index] = reached
        index = t.Index("int64", statement.index)
        first, last, each = (self._convert(v.code, "int64", line) for v in (start, stop, step))
        if by[0] <= 0 <= by[1]:
            trap = self._trap(line, "range with a step of zero; the plain loop raises ValueError here")
            each = t.Operation("int64", "not zero", (each,), trap)

        def loop(body: Sequence[t.TypedStatement]) -> t.TypedStatement:
            inside = t.without_early_ends(tuple(body), "continue")
            independent = statement.independent and not _may_come_round(inside)
            return t.TypedFor(line, text, index, first, last, each, inside, independent)

        begins = (by[0] > 0 and low[1] < high[0]) or (by[1] < 0 and low[0] > high[1])
        with self._scope():
            self.known_here.pop(statement.index, None)  # of a loop around of that name
            self._loop(statement, statement.body, lambda: None, lambda test, body: loop(body), found, begins)
        if outer is None:
            del self.index_ranges[statement.index]
        else:
            self.index_ranges[statement.index] = outer

    @staticmethod
    def _reached(low: Interval, high: Interval, by: Interval) -> Interval:
        """What the index of a range can be, of which start, stop and step are in these intervals."""
        up = (low[0], max(low[0], high[1] - 1)) if by[1] > 0 else (low[0], low[0])
        down = (min(high[0] + 1, low[1]), low[1]) if by[0] < 0 else (low[1], low[1])
        if by[0] >= 0:
            return up
        return down if by[1] <= 0 else (min(up[0], down[0]), max(up[1], down[1]))

    def _while(self, statement: ir.While, found: list[t.TypedStatement]) -> None:
        def loop(test: t.Typed | None, body: Sequence[t.TypedStatement]) -> t.TypedStatement:
            assert test is not None
            return t.TypedWhile(statement.line, statement.text, test, tuple(body))

        begins = isinstance(statement.test, ir.Constant) and bool(statement.test.value)
        self._loop(statement, statement.body, lambda: self._test(statement.test), loop, found, begins, statement.test)

    def _loop(
        self,
        statement: ir.Statement,
        body: Sequence[ir.Statement],
        head: Callable[[], t.Typed | None],
        loop: Callable[[t.Typed | None, Sequence[t.TypedStatement]], t.TypedStatement],
        found: list[t.TypedStatement],
        begins: bool,
        holds: ir.Expression | None = None,
    ) -> None:
        """A loop: scalars that it carries become variables, whose types its own body may widen. begins: whether it surely has an
        iteration; holds: what does in all of them."""
        assigned = ir.assigned_names(body)
        # Those that were refused stay so.
        kept = {n: value for n, value in self.values.items() if _without_flag(n) not in assigned or value is None}
        carried = assigned & self.live.head(statement)
        entry = self._at_entry(carried)
        unset = frozenset() if self.nest.is_sequential else carried - set(self.values)
        versions, accumulators = dict(self.versions), dict(self.accumulators)
        traps, refused = len(self.traps), self.refusals.count()
        joins = dict(entry)
        for attempt in itertools.count():  # types only widen, and there are few
            self.versions, self.accumulators = dict(versions), dict(accumulators)
            self.traps = self.traps[:traps]
            self.refusals.forget_after(refused)
            heads = {name: self._head(name, value, entry[name]) for name, value in joins.items()}
            frame = _LoopFrame(heads, unset, {name for name, value in heads.items() if value.counted is not None})
            set_at_head = {name: value for name, value in frame.heads.items() if name not in unset}
            self.values, self.is_reached = {**kept, **set_at_head}, True
            self.loops.append(frame)
            test = head()
            with nullcontext() if holds is None else self._where(holds, True):
                typed = self._block(body)
            self.loops.pop()
            if self.is_reached:
                typed += self._end_of_iteration(statement, frame)
            wider = {name: self._wider(statement, name, value, frame, attempt) for name, value in joins.items()}
            if wider == joins:
                break
            joins = wider
        for name, value in frame.heads.items():
            local = value.code
            assert isinstance(local, t.Local)
            start = self._convert(entry[name].code, local.dtype, statement.line)
            found.append(t.TypedVariable(statement.line, statement.text, local, start))
        found.append(loop(test, typed))
        refused_inside = dict.fromkeys(n for end in frame.ends for n, value in end.items() if value is None)
        for name, value in frame.heads.items():  # they count on in the loop around
            frame.heads[name] = replace(value, counted=entry[name].counted if name in frame.counting else None)
        set_at_head = {name: frame.heads[name] for name in set_at_head}
        self.values, self.is_reached = {**kept, **set_at_head, **refused_inside}, True
        if begins and frame.ends:
            self.values.update(self._after_iterations(frame, carried))

    def _after_iterations(self, frame: _LoopFrame, carried: frozenset[str]) -> Values:
        """Scalars after a loop that has had an iteration at least: what they were before it no longer counts."""
        values: Values = {}
        for name in carried & set(frame.heads):
            ways = [end[name] for end in frame.ends if self._way(_flag(name), end) is _YES]
            known = [way for way in ways if way is not None]
            if len(known) < len(frame.ends):
                continue
            head = frame.heads[name]
            types = known[0].types.union(*(way.types for way in known))
            interval = head.interval if PY_INT in types or PY_BOOL in types else None
            values[name] = Value(head.code, types, interval, counted=head.counted)
            self.values.pop(_flag(name), None)
        return values

    def _at_entry(self, carried: Collection[str]) -> dict[str, Value]:
        """What scalars that a loop carries are before it, with the flags of those that may have no value."""
        entry: dict[str, Value] = {}
        for name in sorted(carried):
            value = self._way(name, self.values)
            if value is None:
                continue
            entry[name] = value
            flag = self._way(_flag(name), self.values)
            if self.nest.is_sequential and flag is not None and flag is not _YES:
                entry[_flag(name)] = flag
            if name in self.of_known_kind:
                kind = self._way(_kind_name(name), self.values)
                assert kind is not None
                entry[_kind_name(name)] = kind
        return entry

    def _head(self, name: str, value: Value, entry: Value) -> Value:
        """The variable of a loop. entry: what it is before."""
        local, counted = self._new_local(name, value.code.dtype), None
        if value.only == PY_INT and entry.interval is not None:
            start = entry.interval if entry.counted is None else entry.counted.start
            counted = Counted(local, start) if _within(start, (-COUNTED_FROM, COUNTED_FROM)) else None
        return Value(local, value.types, value.interval, counted=counted)

    def _end_of_iteration(self, statement: ir.Statement, frame: _LoopFrame) -> list[t.TypedStatement]:
        """Assignments to the variables that the loop carries, where an iteration ends."""
        frame.ends.append(self.values)
        found: list[t.TypedStatement] = []
        for name, head in frame.heads.items():
            value, local = self._way(name, self.values), head.code
            if value is None or value.counted != head.counted:
                frame.counting.discard(name)
            if value is None or value is _NO_VALUE or value.code == local:
                continue
            assert isinstance(local, t.Local)
            code = self._carried(name, value, head, statement.line)
            found.append(t.TypedAssign(statement.line, statement.text, local, code))
        return found

    def _carried(self, name: str, value: Value, head: Value, line: int) -> t.Typed:
        """A value as the variable of a loop takes it. Python integers grow without limit, and these must not."""
        code = self._convert(value.code, head.code.dtype, line)
        if PY_INT not in value.types or head.interval != _CARRIED:
            return code
        if _within(value.interval, _CARRIED) or (value.here is not None and _within(value.here, _CARRIED)):
            return code
        if head.counted is not None and value.counted == head.counted:
            return code
        message = f"{name} goes beyond 2**50 in this loop; Lapwing carries no larger Python integers"
        return t.Operation(code.dtype, "carried", (code,), self._trap(line, message, is_beyond=True))

    def _wider(self, statement: ir.Statement, name: str, value: Value, frame: _LoopFrame, attempt: int) -> Value:
        """What a scalar may be at the head of a loop, now that its body has been seen once more."""
        known = [self._way(name, values) for values in frame.ends]
        ways = [way for way in known if way is not None and way is not _NO_VALUE]
        types = value.types.union(*(way.types for way in ways))
        interval = value.interval
        if interval != _CARRIED:
            for way in ways:
                interval = way.interval if interval is None else _hull(interval, way.interval)
            if interval != value.interval and attempt > 0 and PY_INT in types:
                interval = _CARRIED
        if types == value.types and interval == value.interval:
            return value
        values = [Value(v.code, v.types, interval) for v in (value, *ways)]
        try:
            self._check_types(name, Value(value.code, types, interval), statement.line)
            dtype = "int64" if types == {PY_INT} else self._join(values, statement.line).code.dtype
        except Stopped:
            return value
        return Value(literal_of(dtype, 0), types, interval)

    def _temporary(self, name: str, line: int) -> Value:
        value = super()._temporary(name, line)
        flag = self.values.get(_flag(name))
        if flag is None:
            return value
        if not value.types:
            self._refuse(line, f"{name} has no value here", f"set it before, as {name} = 0")
        trap = self._trap(line, f"{name} has no value here; the plain loop raises UnboundLocalError")
        code = t.Operation(value.code.dtype, "assigned", (value.code, flag.code), trap)
        return Value(code, value.types, value.interval)

    def _add_exactly(self, statement: ir.AddTerm, found: list[t.TypedStatement]) -> bool:
        """A term of a sum that is exact, since it begins as a float and so are all terms; False where they are integers. Raises
        RefusedError where that depends on which there are."""
        name, line, traps = statement.name, statement.line, len(self.traps)
        start, term = self._temporary(name, line), self._lower(statement.term)
        kinds = start.types | term.types
        if kinds == {PY_INT} and _within(term.interval, _SMALL_TERM):
            self._note_terms(name, "int64")
            value = self._convert(term.code, "int64", line)
            found.append(t.TypedAccumulate(line, statement.text, _terms_name(name), value))
            return True
        if not any(kind.is_inexact or kind.is_complex for kind in kinds):
            self.traps = self.traps[:traps]
            return False
        if {kind.dtype for kind in kinds} != {"float64"}:
            self._refuse(
                line, f"{name} adds numbers of several types", "start the sum with a value of the type of its terms"
            )
        terms = _terms_name(name)
        self._note_terms(name, "float64")
        self.of_numpy[terms] = any(not kind.weak for kind in term.types)
        found.append(t.TypedAccumulate(line, statement.text, terms, term.code))
        return True

    def _has_terms(self, name: str, line: int) -> bool:
        """Whether the terms that the loop before has added to a scalar are in an accumulator."""
        terms, types = self.accumulators.get(_terms_name(name)), self._temporary(name, line).types
        if terms is None:
            return False
        return types == {PY_INT} if terms.dtype == "int64" else {kind.dtype for kind in types} == {"float64"}

    def _note_terms(self, name: str, dtype: str) -> None:
        terms = _terms_name(name)
        before = self.accumulators.setdefault(terms, t.Accumulator(terms, "terms", dtype, True, 0))
        if before.dtype != dtype:
            self._refuse(self.nest.line, f"{name} is a sum of integers and of floats", "use two names")

    def _round(self, statement: ir.Rounded, found: list[t.TypedStatement]) -> None:
        """The scalar that a loop has added terms to: NumPy's where these are, else of the type that it had."""
        name, line, text, terms = statement.name, statement.line, statement.text, _terms_name(statement.name)
        start = self._temporary(name, line)
        dtype = self.accumulators[terms].dtype
        local, noted = self._new_local(name, dtype), self._new_local(terms, "bool")
        found.append(t.TypedRounded(line, text, local, self._convert(start.code, dtype, line), terms, noted))
        types = start.types
        if dtype == "int64":
            low, high = start.integers(PY_INT)
            self.values[name] = Value(local, types, (low - _MOST_OF_TERMS, high + _MOST_OF_TERMS))
            return
        if self.of_numpy[terms]:
            types |= {NUMPY_FLOAT}
            if name in self.of_known_kind:
                kind = t.Select("int64", noted, self._number_of(NUMPY_FLOAT), self._kind_of(name))
                kind_local = self._new_local(_kind_name(name), "int64")
                found.append(t.TypedLocal(line, text, kind_local, kind))
                self.values[_kind_name(name)] = Value(kind_local, frozenset({PY_INT}), (0, _MOST_KINDS))
        self.values.pop(_flag(name), None)
        self.values[name] = Value(local, types)

    # -- reductions, and what is given back ------------------------------------------------------------------------------

    def _given_back(self, name: str) -> list[t.TypedStatement]:
        """The last value of a scalar of a sequential region."""
        line, flag = self.nest.line, self.values.get(_flag(name))
        if flag is None or not self.nest.leaves_unset:
            return self._last_value(name, self._temporary(name, line))
        value = super()._temporary(name, line)
        if not value.types:
            self._refuse(line, f"{name} has no value here", f"set it before, as {name} = 0")
        found = self._last_value(name, value)
        self.accumulators[_flag(name)] = t.Accumulator(_flag(name), "is set", "bool", True, False, of=name)
        return [*found, t.TypedAccumulate(line, f"return {name}", _flag(name), flag.code)]

    def _its_kind(self, name: str) -> list[t.TypedStatement]:
        kind = _kind_name(name)
        if name not in self.of_known_kind:
            return []
        self.accumulators[kind] = t.Accumulator(kind, "kind", "int64", True, 0, of=name, kinds=tuple(self.kinds))
        return [t.TypedAccumulate(self.nest.line, f"return {name}", kind, self._kind_of(name))]

    def _last_value(self, name: str, value: Value) -> list[t.TypedStatement]:
        weak = all(kind.weak for kind in value.types)
        dtypes = {kind.dtype for kind in value.types if weak or not kind.weak}
        dtype = min(dtypes)
        strong = ScalarType(dtype, weak)
        widens = any(k.is_inexact > strong.is_inexact or k.is_complex > strong.is_complex for k in value.types)
        if len(dtypes) > 1 or widens:  # x was numpy.int32(3) and is 0.5
            self._mixed(value, self.nest.line)
        if len(value.types) > 1:
            dtype = "int64" if dtype == "int64" else value.code.dtype  # temporaries may have been narrowed
            self._check_types(name, value, self.nest.line)
            self.of_several_types.add(name)
        code = self._convert(value.code, dtype, self.nest.line)
        line, text = self.nest.line, f"return {name}"
        parts, found = self._in_parts(t.Accumulator(name, "=", dtype, weak, 0), code, line, text)
        return [*found, *(t.TypedAccumulate(line, text, part, its) for part, its in parts)]

    def _check_types(self, name: str, value: Value, line: int) -> None:
        """Raise RefusedError for a scalar of several types where the nest is to have none. With Python's numbers is computed as
        with NumPy's of the same kind."""
        nest = self.nest
        if nest.of_one_type and name not in nest.of_any_type and len({kind.dtype for kind in value.types}) > 1:
            self._refuse(line, f"{name} is of several types", f"set it to one type, as {name} = float({name})")

    def _accumulate(self, statement: ir.Accumulate) -> list[t.TypedStatement]:
        line, text, name, operator = statement.line, statement.text, statement.name, statement.operator
        parts, found = self._into(name, operator, statement.value, line, text)
        if operator == "set":
            for part, value in parts:
                constant = self.constants.setdefault(part, value)
                if constant != value:
                    self._refuse(line, f"{name} is set to different numbers", "set it to one number in all places")
        if operator in ("max", "min", "+", "set"):
            return [*found, *(t.TypedAccumulate(line, text, part, value) for part, value in parts)]
        position = []
        for loop in self.nest.loops:
            index: t.Typed = t.Index("int64", loop.name)
            position.append(index if loop.step == 1 else t.Operation("int64", "unary -", (index,)))
            at = f"{name} at {loop.name}"
            self.accumulators[at] = t.Accumulator(at, "at", "int64", True, INT64_MIN, leader=name)
        payload: list[tuple[str, t.Typed]] = []
        for kept, its in statement.payload:
            kept_parts, before = self._into(kept, "with", its, line, text, leader=name)
            payload += kept_parts
            found += before
        ((_, value),) = parts  # of complex numbers none is the largest
        return [*found, t.TypedAccumulate(line, text, name, value, tuple(position), tuple(payload))]

    def _noted(self, statement: ir.Accumulate) -> list[t.TypedStatement]:
        """Notes that a sum of integers has had a term, where its type shows that and not every iteration adds one."""
        name, line = statement.name, statement.line
        total = self.accumulators.get(name)
        if total is None:  # of complex numbers: two of their parts
            return []
        start = scalar_type(self.around.parameters[name])
        if (
            total.operator != "+"
            or total.exact_sum
            or start == ScalarType(total.dtype, total.weak)
            or name in self.added
        ):
            return []
        flag = f"{name} has terms"
        self.accumulators[flag] = t.Accumulator(flag, "noted", "bool", True, False, of=name)
        return [t.TypedAccumulate(line, statement.text, flag, t.Literal("bool", True))]

    def _into(
        self, name: str, operator: str, node: ir.Expression, line: int, text: str, leader: str | None = None
    ) -> tuple[list[tuple[str, t.Typed]], list[t.TypedStatement]]:
        """A value as an accumulator takes it, which is noted; see _in_parts."""
        if operator in (">", ">=", "<", "<="):
            leader = name
        if name not in self.around.parameters:
            raise Stopped
        initial = self.around.parameters[name]
        start_type = scalar_type(initial)
        if start_type is None:
            self._refuse(line, f"reduction {name} starts as {type(initial).__name__}", "start it as a number")
        term = self._lower(node)
        start_interval = (int(initial), int(initial)) if not start_type.is_inexact else None
        start = Value(literal_of(start_type.dtype, initial), frozenset({start_type}), start_interval)
        if operator not in ("+", "with", "=") and has_complex(start, term):
            self._refuse_order(line, f"a reduction with {operator}")
        if operator == "+":
            dtype, weak = self._sum_type(start, term, line)
        else:
            if not self._is_alike_in_all_types(term):
                self._mixed(term, line)  # NumPy compares and computes otherwise with each of them
            joined = self._join([start, term], line)
            dtype, weak = joined.code.dtype, all(k.weak for k in joined.types)
            is_weak = start_type == ScalarType("float64", weak=True)
            if is_weak and self.reduced[name] == 1 and term.only == ScalarType("float32"):
                dtype = "float32"  # to which NumPy rounds a Python float where it compares the two
            if weak and dtype.startswith("int"):
                dtype = "int64"  # whatever a temporary was narrowed to
        before = self.accumulators.get(name)
        kind = None if operator == "+" or (before is not None and before.term != term.only) else term.only
        accumulator = t.Accumulator(name, operator, dtype, weak, as_start(initial, dtype), kind, leader)
        return self._in_parts(accumulator, self._convert(term.code, dtype, line), line, text)

    @staticmethod
    def _is_alike_in_all_types(value: Value) -> bool:
        """Whether a number of either of its types is compared and computed with alike: a Python int is as a double, too."""
        dtypes = {kind.dtype for kind in value.types}
        return len(dtypes) == 1 or (dtypes == {"int64", "float64"} and PY_INT in value.types)

    def _in_parts(
        self, accumulator: t.Accumulator, value: t.Typed, line: int, text: str
    ) -> tuple[list[tuple[str, t.Typed]], list[t.TypedStatement]]:
        """Note an accumulator; a value for it, by name, and statements that go before. A complex one is two of floats."""
        name, dtype = accumulator.name, accumulator.dtype
        if dtype not in PARTS:
            self._note(accumulator, line)
            return [(name, value)], []
        local = self._new_local(f"{name} term", dtype)
        initial = complex(accumulator.initial)
        values: list[tuple[str, t.Typed]] = []
        for part, start in (("real", initial.real), ("imag", initial.imag)):
            self._note(replace(accumulator, name=f"{name} {part}", dtype=PARTS[dtype], initial=start, part=part), line)
            values.append((f"{name} {part}", t.Operation(PARTS[dtype], part, (local,))))
        return values, [t.TypedLocal(line, text, local, value)]

    def _note(self, accumulator: t.Accumulator, line: int) -> None:
        result, operator, leader = accumulator.result, accumulator.operator, accumulator.leader
        for known in [known for known in self.accumulators.values() if known.result == result]:
            if (known.operator, known.leader) != (operator, leader):
                same = known.operator == operator
                ways = f"{known.leader} and {leader}" if same else f"{known.operator} and {operator}"
                self._refuse(line, f"{result} is reduced by both {ways}", "use two reductions")
            types = [(a.dtype, a.weak, a.part is None) for a in (known, accumulator)]
            if types[0] != types[1]:
                before, here = (self._type_of(a) for a in (known, accumulator))
                self.refusals.refuse(  # in their own order the loops know which type it has
                    line, f"{result} is {before} in one term and {here} in another", "give every term the same dtype",
                    tiled_only=True,
                )  # fmt: skip
        self.accumulators[accumulator.name] = accumulator

    def _type_of(self, accumulator: t.Accumulator) -> ScalarType:
        dtype = accumulator.dtype
        if accumulator.part is not None:
            dtype = next(whole for whole, part in PARTS.items() if part == dtype)
        return ScalarType(dtype, accumulator.weak)

    def _sum_type(self, start: Value, term: Value, line: int) -> tuple[str, bool]:
        """The dtype of a running sum, and whether it is a Python number."""
        bounds = None
        if PY_INT in start.types and PY_INT in term.types:
            terms = max(map(abs, term.integers(PY_INT))) * self.around.iterations
            most = terms + max(map(abs, start.integers(PY_INT)))
            if most > INT64_MAX:
                self._refuse(
                    line, "the sum may exceed 64 bits, and a Python int has no limit", "start it as a float: s = 0.0"
                )
            bounds = (-most, most)
        types = self._binary("+", start, term, line).types
        running = Value(t.Literal(next(iter(types)).dtype, 0), types, bounds)
        dtypes = {kind.dtype for kind in types | self._binary("+", running, term, line, check_overflow=False).types}
        if len(dtypes) > 1 or (len(types) > 1 and not all(kind.is_inexact for kind in types)):
            self._refuse(
                line,
                f"the sum of {start.describe()} and terms of {term.describe()} changes its type with the values",
                "start the reduction with a value of the type of its terms, and give all terms one type",
            )
        return dtypes.pop(), all(kind.weak for kind in types)


def _combined(operator: str, tests: Sequence[t.Typed]) -> t.Typed:
    """Tests joined by ``&`` or ``|``."""
    found: t.Typed = t.Literal("bool", operator == "&")
    for test in tests:
        found = t.Operation("bool", operator, (found, test))
    return found


def _test_of(value: t.Typed) -> t.Typed | None:
    """What decides between two values; of a larger or smaller one, whether it is the second."""
    match value:
        case t.Convert(operand=operand):
            return _test_of(operand)
        case t.Select(test=test):
            return test
        case t.Operation(operator="max" | "min" as operator, operands=(first, second)):
            return t.Operation("bool", ">" if operator == "max" else "<", (second, first))
    return None


def _surely_updated(body: Sequence[ir.Statement]) -> frozenset[str]:
    """The reductions that every iteration updates."""
    found: set[str] = set()
    for statement in body:
        if isinstance(statement, ir.Accumulate):
            found.add(statement.name)
        if any(isinstance(one, ir.Break | ir.Continue) for one in ir.all_statements([statement])):
            break
    return frozenset(found)


_SET, _KIND, _TERMS = "is set", "kind", "terms"
_NO_KIND = t.Literal("int64", 0)
_MOST_KINDS = 16
_SMALL_TERM: Interval = (-(2**31), 2**31)
_MOST_OF_TERMS = (
    2**59
)  # of a nest that is small enough to be compiled with the loop around it: it has no 2**28 iterations
_CARRIED: Interval = (-CARRIED_LIMIT, CARRIED_LIMIT)


def _flag(name: str) -> str:
    """The name of what says whether a scalar has a value: not one that Python allows."""
    return f"{name} {_SET}"


def _without_flag(name: str) -> str:
    return name.removesuffix(f" {_SET}").removesuffix(f" {_KIND}")


def _terms_name(name: str) -> str:
    """The name of the accumulator that takes the terms of a sum."""
    return f"{name} {_TERMS}"


def _kind_name(name: str) -> str:
    """The name of what says which type a scalar has."""
    return f"{name} {_KIND}"


def _may_come_round(body: Sequence[t.TypedStatement]) -> bool:
    """Whether an index that may count from the end could be another one, of an array that is stored to."""
    statements = list(t.all_statements(body))
    stored = {s.target.array for s in statements if isinstance(s, t.TypedStore)}
    nodes = (node for s in statements for value in t.own_values(s) for node in t.walk(value))
    loads = (node for node in nodes if isinstance(node, t.Load) and node.array in stored)
    places: dict[tuple[str, int], set[t.AffineSubscript | t.LookupSubscript]] = {}
    for load in loads:
        for axis, subscript in enumerate(load.subscripts):
            places.setdefault((load.array, axis), set()).add(subscript)
    return any(
        isinstance(subscript, t.LookupSubscript) and subscript.counts_from_end
        for there in places.values()
        if len(there) > 1
        for subscript in there
    )


def _within(interval: Interval | None, other: Interval) -> bool:
    return interval is not None and other[0] <= interval[0] and interval[1] <= other[1]


def _hull(interval: Interval, other: Interval | None) -> Interval:
    return interval if other is None else (min(interval[0], other[0]), max(interval[1], other[1]))
