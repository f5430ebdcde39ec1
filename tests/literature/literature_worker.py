"""Runs programs of the literature as nests and compares them with plain Python; as a program, on all ranks of an MPI run.

    mpiexec -n 2 python literature_worker.py REPORT SECONDS FAMILY.PROGRAM...

Every rank passes arrays of its own. REPORT receives a line of JSON for every program, engine and rank as soon as it has run;
standard output says which program is being run. After SECONDS every rank shows where it is and ends.
"""

from __future__ import annotations

import faulthandler
import importlib.util
import json
import sys
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import lapwing as lw
from lapwing.planner.plan import ENGINES

HERE = Path(__file__).parent
FAMILIES = sorted({path.stem for path in HERE.glob("*.py")} - {"literature_worker", "test_literature"})
ALONE = "alone"  # in the place of an engine: each rank by itself

# A float sum over all elements is the exact sum rounded once, not the sum in the loop's order: what follows from it is compared
# to a relative tolerance with plain Python, and bit for bit between runs.
FLOAT_SUMS = {"cahn_hilliard": 1e-12, "conjugate_gradient": 1e-9, "hmm_forward": 1e-12, "schrodinger": 1e-12}


@dataclass(frozen=True)
class Outcome:
    """What came of one call: an error's text in ``refused`` or ``failed``, a text in ``differences`` for each wrong value."""

    program: str
    engine: str
    refused: str = ""
    failed: str = ""
    differences: tuple[str, ...] = ()


@cache
def programs(family: str) -> dict[str, lw.Nest]:
    """The programs of a file, in its order."""
    specification = importlib.util.spec_from_file_location(f"literature_{family}", HERE / f"{family}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return {name: value for name, value in vars(module).items() if isinstance(value, lw.Nest)}


Values = dict[str, Any]  # arrays by the argument's name, what is returned by "returned" or "returned[k]"


def values_after(nest: Any, arguments: dict[str, Any]) -> Values:
    """Call a nest, or its plain function; every array that was passed and every value that came back."""
    returned = nest(**arguments)
    parts = (
        {f"returned[{k}]": v for k, v in enumerate(returned)} if isinstance(returned, tuple) else {"returned": returned}
    )
    return {**arrays_of(arguments), **parts}


def arrays_of(arguments: dict[str, Any]) -> Values:
    return {name: value for name, value in arguments.items() if isinstance(value, np.ndarray)}


def differences(found: Values, expected: Values, tolerance: float = 0.0) -> tuple[str, ...]:
    """Arrays bit for bit, scalars by value, both to a relative tolerance where one is given."""
    texts = [f"{name} is there, not expected" for name in found.keys() - expected.keys()]
    for name, right in expected.items():
        here = found.get(name)
        if isinstance(right, np.ndarray):
            if not isinstance(here, np.ndarray) or (here.dtype, here.shape) != (right.dtype, right.shape):
                texts.append(f"{name} is {here!r:.80}, expected {right.dtype} of shape {right.shape}")
            elif not (np.allclose(here, right, tolerance, 0.0) if tolerance else here.tobytes() == right.tobytes()):
                apart = np.argwhere(here != right)
                index = tuple(map(int, apart[0])) if len(apart) else "a zero's sign"
                texts.append(f"{name} differs in {len(apart)} of {right.size} elements, first at {index}")
        elif not (here == right or (tolerance and np.isclose(here, right, tolerance, 0.0))):
            texts.append(f"{name} is {here!r}, expected {right!r}")
    return tuple(texts)


def outcome(nest: lw.Nest, name: str, **wishes: Any) -> tuple[Outcome, Values]:
    """Run a program as a nest with its own small problem; and what it left and returned, empty where it did not run."""
    engine = wishes.get("engine", ALONE)
    arguments, before = nest.problem_function(), nest.problem_function()
    expected = values_after(nest.python, nest.problem_function())
    try:
        found = values_after(nest.using(**wishes), arguments)
    except lw.RefusedError as error:
        touched = differences(arrays_of(arguments), arrays_of(before))
        return Outcome(name, engine, refused=str(error), differences=touched), {}
    except lw.LapwingError as error:
        return Outcome(name, engine, failed=str(error)), {}
    return Outcome(name, engine, differences=differences(found, expected, FLOAT_SUMS.get(name, 0.0))), found


def outcomes(nest: lw.Nest, name: str) -> list[Outcome]:
    """Each rank by itself, then all together with every engine; what is refused at first is not tried again."""
    first, alone = outcome(nest, name, comm=lw.SELF)
    results = [first]
    for engine in ENGINES if alone else ():
        here, together = outcome(nest, name, engine=engine)
        apart = differences(together, alone) if together and name in FLOAT_SUMS else ()
        results.append(replace(here, differences=here.differences + apart))
    return results


def main() -> int:
    report, seconds, names = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    faulthandler.dump_traceback_later(seconds, exit=True)
    from mpi4py import MPI

    comm = MPI.COMM_WORLD.Dup()  # its messages never meet the nests' own
    rank = comm.Get_rank()
    with report.open("w") if rank == 0 else open("/dev/null", "w") as stream:
        for family, name in (word.split(".") for word in names):
            if rank == 0:
                print(f"{family}: {name}", flush=True)
            for result in outcomes(programs(family)[name], name):
                everywhere = comm.gather(result)
                for k, other in enumerate(everywhere or ()):
                    stream.write(json.dumps({"rank": k, **asdict(other)}) + "\n")
                stream.flush()
    return 0


if __name__ == "__main__":
    from optimising import optimise_little  # benchmarks import this file without the other helpers of tests

    optimise_little()
    sys.exit(main())
