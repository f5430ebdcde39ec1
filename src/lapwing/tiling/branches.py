"""Which conditions in a loop that runs in its own order are better branches than choices between values.

Those by which the loop finds the largest of something, or the first, as ``if x[k] > best: best = x[k]``, where the best may be
an element, too. Of n values in any order a new largest one is met about log n times, so that in a long loop such a branch is
predicted well and costs nothing, where a choice has every iteration wait for the one before it. Of few values every other one is
a new one.

Those that store to an element, or leave it as it is, of which a later iteration looks at the element: stored to in every
iteration, with what it holds already, it has that one wait for its store.

Those whose arms take long, as a division does. What other conditions test is data: half of the branches on it may be
mispredicted, which takes longer than both arms.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Set

from lapwing.loopnest.binding import typed as t
from lapwing.tiling.chains import distance_behind

_MOST_OF_A_SHORT_LOOP = 16  # iterations
_MOST_OPERATIONS = 16  # of both arms: a mispredicted branch takes about as many cycles
_LONG = frozenset({"/", "//", "%", "**", "sqrt"})

IsBranch = Callable[[t.TypedIf], bool]


def branches(loop: t.TypedFor, carried: Set[t.Local]) -> IsBranch:
    """Which statements of a loop are such conditions, or have one inside. carried: the variables that its iterations hand on."""
    # An element is better not stored to in every iteration and loaded in the next one, however few there are.
    finds = _finds(loop, frozenset() if _is_short(loop) else carried)

    def is_branch(statement: t.TypedIf) -> bool:
        inside = (one for one in t.all_statements((statement,)) if isinstance(one, t.TypedIf))
        left = _stored_somewhere((statement,)) - _stored_anyway((statement,))
        return _takes_long(statement) or any(_is_handed_on(one, loop) for one in left) or any(map(finds, inside))

    return is_branch


def _is_handed_on(target: t.Load, loop: t.TypedFor) -> bool:
    """Whether what is stored to an element is looked at so many iterations later."""
    step = loop.step.value if isinstance(loop.step, t.Literal) else None
    if not isinstance(step, int):
        return False
    loads = (
        node
        for statement in t.all_statements(loop.body)
        for value in t.own_values(statement)
        for node in t.walk(value)
        if isinstance(node, t.Load)
    )
    return any(distance_behind(load, target, loop.index.name) * step > 0 for load in loads)


def _stored_somewhere(statements: Iterable[t.TypedStatement]) -> set[t.Load]:
    return {one.target for one in t.all_statements(tuple(statements)) if isinstance(one, t.TypedStore)}


def _stored_anyway(statements: Iterable[t.TypedStatement]) -> set[t.Load]:
    """What is stored to whatever conditions say."""
    found: set[t.Load] = set()
    for statement in statements:
        match statement:
            case t.TypedStore(target=target):
                found.add(target)
            case t.TypedIf(then=then, otherwise=otherwise):
                found |= _stored_anyway(then) & _stored_anyway(otherwise)
    return found


def _finds(loop: t.TypedFor, carried: Set[t.Local]) -> IsBranch:
    """Which conditions test what their arms may change for the next iteration."""
    sources: dict[t.Local, set[t.Local]] = defaultdict(set)
    for statement in t.all_statements(loop.body):
        if isinstance(statement, t.TypedAssign | t.TypedLocal):
            value = statement.value.operand if isinstance(statement.value, t.Convert) else statement.value
            if isinstance(value, t.Local):
                sources[statement.local].add(value)

    def becomes(local: t.Local) -> set[t.Local]:
        found, left = {local}, [local]
        while left:
            new = sources[left.pop()] - found
            found |= new
            left += new
        return found

    ends = {local: becomes(local) for local in carried}

    def finds(statement: t.TypedIf) -> bool:
        inside = list(t.all_statements((statement,)))
        set_there = {s.local for s in inside if isinstance(s, t.TypedAssign)}
        stored = {
            s.target for s in inside if isinstance(s, t.TypedStore) and loop.index.name not in t.indices_of(s.target)
        }
        return any(
            node in stored or (isinstance(node, t.Local) and not set_there.isdisjoint(ends.get(node, ())))
            for node in t.walk(statement.test)
        )

    return finds


def _takes_long(statement: t.TypedIf) -> bool:
    """Whether the arms of a condition take longer than a branch that is mispredicted."""
    inside = t.all_statements((*statement.then, *statement.otherwise))
    values = (value for one in inside for value in t.own_values(one))
    operators = [node.operator for value in values for node in t.walk(value) if isinstance(node, t.Operation)]
    return len(operators) > _MOST_OPERATIONS or not _LONG.isdisjoint(operators)


def _is_short(loop: t.TypedFor) -> bool:
    ends = [end.value for end in (loop.start, loop.stop, loop.step) if isinstance(end, t.Literal)]
    numbers = [end for end in ends if isinstance(end, int)]
    return len(numbers) == 3 and len(range(*numbers)) <= _MOST_OF_A_SHORT_LOOP
