"""How long the points of a loop wait for one another: recurrences of the body, and the longest of their cycles.

A recurrence is a cycle of elements each of which is computed from another, some iterations before. In the long run the loop takes
for each iteration as long as the operations on such a cycle take one after the other, divided by the iterations that it spans,
however many are under way (the recurrence bound of modulo scheduling: Rau, MICRO 1994).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from lapwing.loopnest.binding import typed as t
from lapwing.tiling.chains import distance_behind

Latency = Callable[[t.Typed], float]  # of a node alone, its operands being there
_Source = tuple[str, int]  # an array, and so many iterations ago
_Edges = Mapping[tuple[str, str, int], float]  # from an array to one computed from it so many iterations later


def recurrence(body: t.TypedBody, loop: str, step: int, latency: Latency) -> float:
    """For an iteration of a loop, in the unit of latency; 0 where none waits for another. step: that of the loop, 1 or -1.

    Of statements that only some iterations do nothing is counted.
    """
    edges = _Paths(body, loop, step, latency).edges()
    arrays = sorted({array for edge in edges for array in edge[:2]})
    return max((ratio for start in arrays for ratio in _cycles(edges, start, start, (), 0.0, 0)), default=0.0)


def _cycles(
    edges: _Edges, start: str, at: str, passed: tuple[str, ...], weight: float, distance: int
) -> Iterator[float]:
    """What each cycle through start takes for an iteration; those through arrays that come before it are found from there."""
    for (origin, to, apart), seconds in edges.items():
        if origin != at:
            continue
        if to == start:
            yield (weight + seconds) / (distance + apart)
        elif to > start and to not in passed:
            yield from _cycles(edges, start, to, (*passed, to), weight + seconds, distance + apart)


class _Paths:
    """The longest path from every element of an earlier iteration to what a statement computes from it."""

    def __init__(self, body: t.TypedBody, loop: str, step: int, latency: Latency) -> None:
        self._loop, self._step, self._latency = loop, step, latency
        self._always = [s for s in body.statements if isinstance(s, t.SimpleStatement)]
        self._stores = [s.target for s in self._always if isinstance(s, t.TypedStore)]
        self._known: dict[t.Typed, Mapping[_Source, float]] = {}  # of temporaries and elements set so far

    def edges(self) -> _Edges:
        found: dict[tuple[str, str, int], float] = {}
        for statement in self._always:
            paths = self._paths(statement.value)
            match statement:
                case t.TypedStore(target=target):
                    self._known[target] = paths
                    for (array, apart), seconds in paths.items():
                        key = array, target.array, apart
                        found[key] = max(found.get(key, 0.0), seconds)
                case t.TypedLocal(local=local):
                    self._known[local] = paths
        return found

    def _paths(self, node: t.Typed) -> Mapping[_Source, float]:
        if node in self._known:
            return self._known[node]
        if isinstance(node, t.Load):
            behind = (distance_behind(node, target, self._loop) * self._step for target in self._stores)
            return {(node.array, distance): 0.0 for distance in behind if distance > 0}
        own, longest = self._latency(node), dict[_Source, float]()
        for child in t.children(node):
            for source, seconds in self._paths(child).items():
                longest[source] = max(longest.get(source, 0.0), seconds + own)
        return longest
