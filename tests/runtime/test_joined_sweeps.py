"""Several sweeps in a call of a tile, with every engine: on all ranks, and on one of several while the others idle.

As a program this file is what the ranks run.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from everyday import everyday_together
from limits import scaled
from optimising import optimise_little
from processes import WITH_HELPERS
from randomness import THOROUGHLY

import lapwing as lw
from lapwing.api.calls.run import run
from lapwing.codegen.compilation.toolchain import find_mpi
from lapwing.errors import BuildError
from lapwing.planner.plan import ENGINES
from lapwing.runtime.mpi import communicator

# Most of the time goes into the plain loops, which every rank does in Python.
SHAPE, SWEEPS = (150, 300) if "LAPWING_ALL_ROUNDS" in os.environ else (90, 170), 10


@lw.nest
def gauss_seidel(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


@lw.nest
def nine_points(u, sweeps):
    best = -1.0
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.125 * (
                    u[i - 1, j - 1] + u[i - 1, j] + u[i - 1, j + 1] + u[i, j - 1] + u[i, j + 1]
                    + u[i + 1, j - 1] + u[i + 1, j] + u[i + 1, j + 1]
                )  # fmt: skip
                best = max(best, u[i, j])
    return best


@lw.nest
def rooted(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + math.sqrt(u[i + 1, j] - 0.2) + u[i, j + 1])


@pytest.mark.mpi
@pytest.mark.parametrize(("ranks", "thorough"), everyday_together([(2, False), (2, True), (3, True)], [(2, False)]))
def test_ranks_do_several_sweeps_at_once(ranks: int, thorough: bool) -> None:
    try:
        mpiexec = str(find_mpi().mpiexec)
    except BuildError as error:
        pytest.skip(str(error))
    done = subprocess.run(
        [mpiexec, "-n", str(ranks), sys.executable, __file__], capture_output=True, text=True, timeout=scaled(240), check=False,
        stdin=subprocess.DEVNULL, env={**os.environ, **WITH_HELPERS, **(THOROUGHLY if thorough else {})},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("done") == ranks


def main() -> None:
    ranks = communicator.world().Get_size()
    one_does_all(ranks)
    for nest in (gauss_seidel, nine_points):
        together(nest, ranks)
        again_and_again(nest)
    an_error_is_that_of_the_plain_loop(ranks)
    print("done", flush=True)


def one_does_all(ranks: int) -> None:
    values = np.random.default_rng(1).random((66, 70))
    expected = values.copy()
    gauss_seidel.python(expected, 20)
    for engine in ENGINES:
        nest, found = gauss_seidel.using(engine=engine), values.copy()
        plan = replace(nest.plan(found, 20, ranks=1), idle=ranks - 1)
        assert plan.joined > 1
        run(nest, {"u": found, "sweeps": 20}, plan=plan)
        assert np.array_equal(found, expected), engine


def together(nest: lw.Nest, ranks: int) -> None:
    values = np.random.default_rng(2).random(SHAPE)
    expected = values.copy()
    right = nest.python(expected, SWEEPS)
    for engine in ENGINES:
        chosen, found = nest.using(engine=engine), values.copy()
        plan = chosen.plan(found, SWEEPS, ranks=ranks)
        assert plan.joined > 1, str(plan)
        outcome = run(chosen, {"u": found, "sweeps": SWEEPS}, plan=plan)
        assert np.array_equal(found, expected), (nest.name, engine)
        assert right is None or outcome.results["best"] == right


def again_and_again(nest: lw.Nest) -> None:
    """On an array that stays distributed: in the end every rank has what it owns."""
    values = np.random.default_rng(3).random(SHAPE)
    expected, found = values.copy(), lw.DistributedArray(values)
    for sweeps in (SWEEPS, SWEEPS, 1):
        nest.python(expected, sweeps)
        nest(found, sweeps)
    whole = found.numpy()
    assert communicator.world().Get_rank() or np.array_equal(whole, expected), nest.name


def an_error_is_that_of_the_plain_loop(ranks: int) -> None:
    """Python raises at one element; the array is as it was."""
    values = 0.5 + np.random.default_rng(4).random(SHAPE)
    values[70, 150] = 0.1
    found = values.copy()
    assert rooted.plan(found, SWEEPS, ranks=ranks).joined > 1
    with pytest.raises(lw.RunError, match="sqrt"):
        rooted(found, SWEEPS)
    assert np.array_equal(found, values)


if __name__ == "__main__":
    optimise_little()
    main()
