"""One rank of several does all of a nest, several sweeps in a call of its tile, with every engine; the others idle.

As a program this file is what the ranks run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from limits import scaled
from processes import WITH_HELPERS

import lapwing as lw
from lapwing.api.calls.run import run
from lapwing.codegen.compilation.toolchain import find_mpi
from lapwing.errors import BuildError
from lapwing.planner.plan import ENGINES


@lw.nest
def gauss_seidel(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


@pytest.mark.mpi
def test_one_rank_of_two_does_all_sweeps() -> None:
    try:
        mpiexec = str(find_mpi().mpiexec)
    except BuildError as error:
        pytest.skip(str(error))
    done = subprocess.run(
        [mpiexec, "-n", "2", sys.executable, __file__], capture_output=True, text=True, timeout=scaled(120), check=False,
        stdin=subprocess.DEVNULL, env={**os.environ, **WITH_HELPERS},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("done") == 2


def main() -> None:
    values = np.random.default_rng(1).random((66, 70))
    expected = values.copy()
    gauss_seidel.python(expected, 20)
    for engine in ENGINES:
        nest, found = gauss_seidel.using(engine=engine), values.copy()
        plan = replace(nest.plan(found, 20, ranks=1), idle=1)
        assert plan.inner.form.sweeps > 1
        run(nest, {"u": found, "sweeps": 20}, plan=plan)
        assert np.array_equal(found, expected), engine
    print("done", flush=True)


if __name__ == "__main__":
    main()
