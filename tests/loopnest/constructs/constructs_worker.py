"""Runs all constructs on all ranks of an MPI run, and says which differ from plain Python.

mpiexec -n 2 python constructs_worker.py
"""

from __future__ import annotations

import sys
from typing import Any

from constructs import CASES
from equal import equal
from optimising import optimise_little

import lapwing as lw


def wrong(name: str) -> str:
    function, arguments = CASES[name]
    found, expected = arguments(), arguments()
    right = function(**expected)
    try:
        result = lw.nest(function).using(tile=3)(**found)
    except lw.LapwingError as error:
        return f"{name}: {error}"
    pairs: list[tuple[Any, Any]] = [(result, right), *((found[key], expected[key]) for key in expected)]
    return "" if all(equal(a, b) for a, b in pairs) else f"{name} differs"


def main() -> int:
    from mpi4py import MPI

    optimise_little()
    everything = [text for name in CASES if (text := wrong(name))]
    together = MPI.COMM_WORLD.Dup().allgather(everything)
    if MPI.COMM_WORLD.Get_rank() == 0:
        print("\n".join(f"rank {rank}: {text}" for rank, texts in enumerate(together) for text in texts))
    return int(any(together))


if __name__ == "__main__":
    sys.exit(main())
