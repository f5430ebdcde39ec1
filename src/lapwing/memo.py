"""A table of results by what they follow from, with no more in it than is worth keeping."""

from __future__ import annotations

import threading
from typing import Any, TypeVar

_Result = TypeVar("_Result")

KEPT = 64  # the levels of a multigrid cycle, and the ways each is called


class Memo(dict[Any, _Result]):
    """A dictionary whose oldest entries go when ``keep`` adds one too many. Threads may keep at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()

    def keep(self, key: Any, result: _Result) -> None:
        with self._lock:
            self[key] = result
            while len(self) > KEPT:
                del self[next(iter(self))]
