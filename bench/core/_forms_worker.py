"""One tree of Lapwing in a process of its own, for forms.py: runs kernels when it is told to, a line of JSON each time."""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from typing import Any

from _kernels import KERNELS

from lapwing.api.calls.run import run

SETTLED_SECONDS = 3.0  # at most, until the inner form has been measured


class Kernel:
    def __init__(self, name: str, size: int) -> None:
        self.nest, _, made = KERNELS[name]
        self.arguments = made(size)
        self.points = self.nest.bind(self.arguments).domain.box_volume
        self.form, self.may_change = "–", False
        self.jitted: Any = None

    def settle(self, quick: bool) -> None:
        """Until the plan is what it stays: the first runs build the tile and compare its forms."""
        begin = time.perf_counter()
        self.own()
        while not quick and self.may_change and time.perf_counter() - begin < SETTLED_SECONDS:
            self.own()

    def own(self) -> float:
        outcome = run(self.nest, self.arguments)
        inner = getattr(outcome.plan, "inner", None)
        if inner is not None:
            self.may_change = inner.is_guess
            self.form = inner.form.describe(outcome.plan.space_loops) + (" (measured)" if inner.measured else "")
        return outcome.seconds

    def numba(self) -> float | None:
        if importlib.util.find_spec("numba") is None:
            return None
        import numba

        self.jitted = self.jitted or numba.njit(self.nest.python)
        begin = time.perf_counter()
        self.jitted(**self.arguments)
        return time.perf_counter() - begin


def main() -> None:
    kernel: Kernel | None = None
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["do"] == "load":
            kernel = Kernel(asked["kernel"], asked["size"])
            kernel.settle(asked["quick"])
            answer: dict[str, Any] = {"points": kernel.points, "form": kernel.form}
        else:
            assert kernel is not None
            answer = {"seconds": kernel.numba() if asked["do"] == "numba" else kernel.own()}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
