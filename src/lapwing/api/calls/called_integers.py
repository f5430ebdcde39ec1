"""The integers that a nest has been called with: a sequential region that is called with ever others is made for any."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

MOST_BINDINGS = 4  # of a sequential region to the integers of its calls, before it is made for any

Integers = frozenset[tuple[str, int]]


def integers_of(arguments: Mapping[str, Any]) -> Integers:
    """The integers among the arguments of a call, Python's and NumPy's."""
    numbers = ((n, v) for n, v in arguments.items() if isinstance(v, int | np.integer) and not isinstance(v, bool))
    return frozenset((name, int(value)) for name, value in numbers)


class CalledIntegers:
    """By the ranks of the calls, since these have to choose alike: of other calls each rank may have made others."""

    def __init__(self) -> None:
        # By the identity of communicators, which are kept.
        self._by_ranks: dict[int, tuple[Any, dict[Integers, None]]] = {}
        self.are_many_somewhere = False  # whether any ranks have called it with ever others

    def note(self, comm: Any, arguments: Mapping[str, Any]) -> None:
        """comm: of the ranks of a call (mpi4py, Lapwing's own); None for this one alone."""
        _, found = self._by_ranks.setdefault(id(comm), (comm, {}))
        if len(found) <= MOST_BINDINGS:
            found[integers_of(arguments)] = None
            self.are_many_somewhere |= len(found) > MOST_BINDINGS

    def on(self, comm: Any) -> tuple[Integers, ...]:
        """Those of the first calls of these ranks, each once."""
        known = self._by_ranks.get(id(comm))
        return () if known is None else tuple(known[1])

    def are_many(self, comm: Any) -> bool:
        """Whether these ranks have called it with ever others."""
        known = self._by_ranks.get(id(comm))
        return known is not None and len(known[1]) > MOST_BINDINGS

    def clear(self) -> None:
        self._by_ranks.clear()
        self.are_many_somewhere = False
