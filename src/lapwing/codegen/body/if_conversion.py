"""Statements under conditions as values (if-conversion: Allen, Kennedy, Porterfield and Warren, POPL 1983), in loops whose
iterations are independent.

    if a[i] == 1:                        is_one, is_three = a[i] == 1, b[i] == 3
        a[i] = 0                         r = p[i] / q if is_one else 0.0
        r = p[i] / q                     a[i] = 0 if is_one else 1 if is_three else a[i]
    elif b[i] == 3:                →
        a[i] = 1
        r = 0.0

Compilers do that with masked stores, and branch around those that store nothing: of conditions that hold now and then every other
branch is mispredicted. Storing what an element holds is nothing to anybody: no other iteration touches it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.effects import is_speculable

_MOST_DIVISIONS = 6  # that are computed whatever conditions say


def without_branches(body: t.TypedBody) -> t.TypedBody:
    """The body with conditional statements as values where these may always be computed."""
    known = frozenset(_always_loaded(body.statements))
    names = _Tests()
    found = [s for statement in body.statements for s in _converted(statement, known, names)]
    return replace(body, statements=tuple(found))


class _Unfit(Exception):
    """Some statement has to stay under its condition."""


@dataclass
class _Tests:
    """Hands out locals for the truth of conditions."""

    count: int = 0

    def new(self) -> t.Local:
        self.count += 1
        return t.Local("bool", "test", self.count)


@dataclass
class _Arm:
    """What an arm does: ``always``, to be done in any case; the values that variables and elements have at its end."""

    always: list[t.TypedStatement] = field(default_factory=list)
    assigned: dict[t.Local, t.TypedAssign] = field(default_factory=dict)
    stored: dict[t.Load, t.TypedStore] = field(default_factory=dict)


def _converted(statement: t.TypedStatement, known: frozenset[t.Load], tests: _Tests) -> list[t.TypedStatement]:
    if not isinstance(statement, t.TypedIf):
        return [statement]
    stores = list(_stores(statement))
    targets = {store.target for store in stores}
    divisions = sum(
        isinstance(node, t.Operation) and node.operator in ("/", "sqrt")
        for s in t.all_statements((statement,))
        for value in t.own_values(s)
        for node in t.walk(value)
    )
    if len(targets) != len({target.array for target in targets}) or divisions > _MOST_DIVISIONS:
        return [statement]
    if not all(_is_alone(store, targets) for store in stores):
        return [statement]
    done = _Arm()
    try:
        _do(statement, known | targets, tests, done)
    except _Unfit:
        return [statement]
    return [*done.always, *done.assigned.values(), *done.stored.values()]


def _is_alone(store: t.TypedStore, targets: set[t.Load]) -> bool:
    """Whether an element may always be stored to, and its value has nothing of the others that are."""
    others = {target.array for target in targets} - {store.target.array}
    loads = [node for node in t.walk(store.value) if isinstance(node, t.Load)]
    return is_speculable(store.target) and not any(
        load.array in others or (load.array == store.target.array and load != store.target) for load in loads
    )


def _do(statement: t.TypedIf, known: frozenset[t.Load], tests: _Tests, arm: _Arm) -> None:
    """Both arms of a condition, as a part of the arm that it stands in."""
    _check(statement.test, known)
    test = tests.new()
    arm.always.append(t.TypedLocal(statement.line, statement.text, test, statement.test))
    then, otherwise = (_arm(block, known, tests) for block in (statement.then, statement.otherwise))
    arm.always += [*then.always, *otherwise.always]
    for local, one in (otherwise.assigned | then.assigned).items():
        if local not in then.assigned or local not in otherwise.assigned:
            raise _Unfit
        arm.assigned[local] = replace(
            one, value=_either(test, then.assigned[local].value, otherwise.assigned[local].value)
        )
    for target, store in (otherwise.stored | then.stored).items():
        values = (of.stored[target].value if target in of.stored else target for of in (then, otherwise))
        arm.stored[target] = replace(store, value=_either(test, *values))


def _arm(block: Sequence[t.TypedStatement], known: frozenset[t.Load], tests: _Tests) -> _Arm:
    arm = _Arm()
    for statement in block:
        if any(
            _depends(value, arm)
            for value in t.own_values(statement)[: 1 if isinstance(statement, t.TypedStore) else None]
        ):
            raise _Unfit
        match statement:
            case t.TypedLocal(value=value):
                _check(value, known)
                arm.always.append(statement)
            case t.TypedVariable(value=None):
                arm.always.append(statement)
            case t.TypedAssign(local=local, value=value):
                _check(value, known)
                arm.assigned[local] = replace(statement, value=_quotient(value, arm.always))
            case t.TypedStore(target=target, value=value) if target not in arm.stored and value.dtype == target.dtype:
                _check(value, known)
                arm.stored[target] = statement
            case t.TypedIf():
                if arm.stored.keys() & {store.target for store in _stores(statement)}:
                    raise _Unfit
                _do(statement, known, tests, arm)
                # Variables of this arm's own are nobody's besides.
                own = [s.local for s in arm.always if isinstance(s, t.TypedVariable)]
                arm.always += [arm.assigned.pop(local) for local in own if local in arm.assigned]
            case _:
                raise _Unfit
    return arm


def _depends(value: t.Typed, arm: _Arm) -> bool:
    """Whether a value is made of what the arm has changed."""
    arrays = {target.array for target in arm.stored}
    return any(
        (isinstance(node, t.Load) and node.array in arrays) or (isinstance(node, t.Local) and node in arm.assigned)
        for node in t.walk(value)
    )


def _either(test: t.Local, one: t.Typed, other: t.Typed) -> t.Typed:
    """One value or the other; of two quotients, the quotient of dividends and divisors: dividing takes long."""
    if isinstance(one, t.Operation) and isinstance(other, t.Operation) and _is_quotient(one) and _is_quotient(other):
        pairs = zip(one.operands, other.operands, strict=True)
        if one.dtype == other.dtype and all(a.dtype == b.dtype == one.dtype for a, b in pairs):
            operands = (_either(test, a, b) for a, b in zip(one.operands, other.operands, strict=True))
            return replace(one, operands=tuple(operands))
    return t.Select(one.dtype, test, one, other, speculable=True)


def _quotient(value: t.Typed, before: Sequence[t.TypedStatement]) -> t.Typed:
    """A value, as a quotient where it is the name of one."""
    named = (s.value for s in before if isinstance(s, t.TypedLocal) and s.local == value)
    return next((found for found in named if _is_quotient(found)), value)


def _is_quotient(node: t.Typed) -> bool:
    return isinstance(node, t.Operation) and node.operator == "/" and node.trap is None


def _check(node: t.Typed, known: frozenset[t.Load]) -> None:
    """known: elements that every iteration may look at."""
    loads = (part for part in t.walk(node) if isinstance(part, t.Load))
    if not is_speculable(node, with_divisions=True) or not all(load in known for load in loads):
        raise _Unfit


def _stores(statement: t.TypedStatement) -> Iterator[t.TypedStore]:
    return (s for s in t.all_statements((statement,)) if isinstance(s, t.TypedStore))


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
