"""Lapwing hides communication behind computation.

A loop nest written as plain Python loops runs tiled and pipelined over MPI ranks, with the very bits of the plain loop:

    import lapwing as lw

    @lw.nest
    def smooth(u, sweeps): ...
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lapwing.api.nest import Nest, nest
    from lapwing.api.program_run import ProgramOutcome
    from lapwing.errors import BuildError, LapwingError, Refusal, RefusedError, RunError
    from lapwing.loopnest.dependences import Dependence
    from lapwing.planner.plan import Plan
    from lapwing.runtime.arrays.creation import from_function, from_local, full, load, zeros
    from lapwing.runtime.arrays.distributed import DistributedArray
    from lapwing.runtime.execute import Outcome
    from lapwing.runtime.mpi.communicator import SELF
    from lapwing.scratch_arrays import scratch
    from lapwing.store.array import StoredArray
    from lapwing.store.opening import create
    from lapwing.store.opening import open as open

__version__ = "0.1.0"

# Without open: `from lapwing import *` leaves Python's own alone.
__all__ = [
    "SELF",
    "BuildError",
    "Dependence",
    "DistributedArray",
    "LapwingError",
    "Nest",
    "Outcome",
    "Plan",
    "ProgramOutcome",
    "Refusal",
    "RefusedError",
    "RunError",
    "StoredArray",
    "__version__",
    "create",
    "from_function",
    "from_local",
    "full",
    "load",
    "nest",
    "scratch",
    "zeros",
]

# Public names load on first use: the command line answers at once, and MPI stays away until it is needed.
_HOMES = {
    "BuildError": "lapwing.errors",
    "Dependence": "lapwing.loopnest.dependences",
    "DistributedArray": "lapwing.runtime.arrays.distributed",
    "LapwingError": "lapwing.errors",
    "Nest": "lapwing.api.nest",
    "Outcome": "lapwing.runtime.execute",
    "Plan": "lapwing.planner.plan",
    "ProgramOutcome": "lapwing.api.program_run",
    "Refusal": "lapwing.errors",
    "RefusedError": "lapwing.errors",
    "RunError": "lapwing.errors",
    "SELF": "lapwing.runtime.mpi.communicator",
    "StoredArray": "lapwing.store.array",
    "create": "lapwing.store.opening",
    "from_function": "lapwing.runtime.arrays.creation",
    "from_local": "lapwing.runtime.arrays.creation",
    "full": "lapwing.runtime.arrays.creation",
    "load": "lapwing.runtime.arrays.creation",
    "nest": "lapwing.api.nest",
    "open": "lapwing.store.opening",
    "scratch": "lapwing.scratch_arrays",
    "zeros": "lapwing.runtime.arrays.creation",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'lapwing' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_HOMES})
