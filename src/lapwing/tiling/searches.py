"""Conditions by which a loop finds the largest of something, or the first, as ``if x[k] > best: best = x[k]``, where the
best may be an element, too.

Of n values in any order a new largest one is met about log n times, so that in a long loop such a branch is predicted well and
costs nothing, where a choice between values has every iteration wait for the one before it. Of few values every other one is a
new one. What other conditions test is data: half of the branches on it may be mispredicted, which takes longer than both arms.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Set

from lapwing.loopnest.binding import typed as t

_MOST_OF_A_SHORT_LOOP = 16  # iterations


def searches(loop: t.TypedFor, carried: Set[t.Local]) -> Callable[[t.TypedIf], bool]:
    """Which statements of a loop are such conditions, or have them inside. carried: the variables that its iterations hand on."""
    if _is_short(loop):
        return lambda _: False
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

    def is_search(statement: t.TypedIf) -> bool:
        inside = list(t.all_statements((statement,)))
        set_there = {s.local for s in inside if isinstance(s, t.TypedAssign)}
        stored = {
            s.target for s in inside if isinstance(s, t.TypedStore) and loop.index.name not in t.indices_of(s.target)
        }
        return any(
            node in stored or (isinstance(node, t.Local) and not set_there.isdisjoint(ends.get(node, ())))
            for node in t.walk(statement.test)
        )

    def has_search(statement: t.TypedIf) -> bool:
        return any(is_search(one) for one in t.all_statements((statement,)) if isinstance(one, t.TypedIf))

    return has_search


def _is_short(loop: t.TypedFor) -> bool:
    ends = [end.value for end in (loop.start, loop.stop, loop.step) if isinstance(end, t.Literal)]
    numbers = [end for end in ends if isinstance(end, int)]
    return len(numbers) == 3 and len(range(*numbers)) <= _MOST_OF_A_SHORT_LOOP
