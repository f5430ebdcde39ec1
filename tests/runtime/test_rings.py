"""Periodic axes on ranks: the programs everyone knows, on two, three and four ranks, every engine, both axes cut.

Started by mpiexec as a program, this file runs all of them on the ranks of that run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from limits import scaled
from optimising import optimise_little
from processes import WITH_HELPERS
from randomness import THOROUGHLY, rounds

import lapwing as lw
from lapwing.codegen.compilation.toolchain import find_mpi
from lapwing.errors import BuildError
from lapwing.loopnest.dependences import inside_sweep
from lapwing.planner.plan import ENGINES
from lapwing.runtime.mpi import communicator

pytestmark = pytest.mark.usefixtures("little_optimised")

SECONDS = scaled(240)


@lw.nest
def advection(u, v, c, steps):
    n = u.shape[0]
    for t in range(steps):
        for i in range(n):
            v[i] = u[i] - c * (u[i] - u[i - 1])
        u, v = v, u
    return u


@lw.nest
def jacobi(u, v, steps):
    n, m = u.shape
    for t in range(steps):
        for i in range(n):
            for j in range(m):
                v[i, j] = 0.25 * (u[(i - 1) % n, j] + u[(i + 1) % n, j] + u[i, (j - 1) % m] + u[i, (j + 1) % m])
        for i in range(n):
            for j in range(m):
                u[i, j] = v[i, j]


@lw.nest
def life(old, new, steps):
    n, m = old.shape
    for t in range(steps):
        for i in range(n):
            for j in range(m):
                up, down, left, right = (i - 1) % n, (i + 1) % n, (j - 1) % m, (j + 1) % m
                alive = old[up, left] + old[up, j] + old[up, right] + old[i, left]
                alive += old[i, right] + old[down, left] + old[down, j] + old[down, right]
                new[i, j] = 1 if alive == 3 or (alive == 2 and old[i, j] == 1) else 0
        old, new = new, old
    return old


@lw.nest
def streaming(f, g, omega, steps):
    """Lattice Boltzmann with five velocities: collide into g, stream back into f."""
    _, n, m = f.shape
    for t in range(steps):
        for i in range(n):
            for j in range(m):
                rho = f[0, i, j] + f[1, i, j] + f[2, i, j] + f[3, i, j] + f[4, i, j]
                for k in range(5):
                    g[k, i, j] = f[k, i, j] + omega * (0.2 * rho - f[k, i, j])
        for i in range(n):
            for j in range(m):
                f[0, i, j] = g[0, i, j]
                f[1, i, j] = g[1, (i - 1) % n, j]
                f[2, i, j] = g[2, (i + 1) % n, j]
                f[3, i, j] = g[3, i, (j - 1) % m]
                f[4, i, j] = g[4, i, (j + 1) % m]


@lw.nest
def ising(s, chance, sweeps):
    n, m = s.shape
    for t in range(sweeps):
        for colour in range(2):
            for i in range(n):
                for j in range((i + colour) % 2, m, 2):
                    near = s[(i + 1) % n, j] + s[i - 1, j] + s[i, (j + 1) % m] + s[i, j - 1]
                    if s[i, j] * near <= 0 or chance[t, i, j] < 0.1:
                        s[i, j] = -s[i, j]


@lw.nest
def seidel(u, sweeps):
    n, m = u.shape
    for t in range(sweeps):
        for i in range(n):
            for j in range(m):
                u[i, j] = 0.25 * (u[(i - 1) % n, j] + u[(i + 1) % n, j] + u[i, j - 1] + u[i, (j + 1) % m])


@lw.nest
def slanted(u, sweeps):
    n, m = u.shape
    for t in range(sweeps):
        for i in range(n):
            for j in range(m):
                u[i, j] = 0.5 * (u[i, j] + u[(i - 1) % n, (j - 1) % m])


def arguments() -> dict[lw.Nest, dict[str, Any]]:
    random = np.random.default_rng(7)
    field, cells = random.random((18, 16)), random.integers(0, 2, (18, 16))
    return {
        advection: {"u": random.random(37), "v": np.zeros(37), "c": 0.4, "steps": 5},
        jacobi: {"u": field.copy(), "v": np.zeros_like(field), "steps": 4},
        life: {"old": cells.copy(), "new": np.zeros_like(cells), "steps": 5},
        streaming: {"f": random.random((5, 18, 16)), "g": np.zeros((5, 18, 16)), "omega": 0.7, "steps": 4},
        ising: {"s": 2 * cells - 1, "chance": random.random((3, 18, 16)), "sweeps": 3},
        seidel: {"u": field.copy(), "sweeps": 3},
    }


def copied(values: dict[str, Any]) -> dict[str, Any]:
    return {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in values.items()}


def check(nest: lw.Nest, values: dict[str, Any], run: Callable[..., Any]) -> None:
    expected, found = copied(values), copied(values)
    wanted, returned = nest.python(**expected), run(**found)
    if communicator.world().Get_rank() == 0:
        for name, value in expected.items():
            assert np.array_equal(found[name], value), (nest.name, name)
        if wanted is not None:
            assert np.array_equal(returned, wanted), nest.name


@pytest.mark.parametrize("nest", arguments(), ids=lambda nest: nest.name)
def test_in_one_process(nest: lw.Nest) -> None:
    check(nest, arguments()[nest], nest)


def test_an_odd_torus_has_no_two_colours() -> None:
    """Points of one colour are neighbours where the axis goes around: the last row waits for the first."""
    values = arguments()[ising]
    assert not inside_sweep(ising.plan(**values, ranks=2).dependences, 2)
    values["s"], values["chance"] = values["s"][:17].copy(), values["chance"][:, :17].copy()
    inside = inside_sweep(ising.plan(**values, ranks=2).dependences, 2)
    assert {d.vector for d in inside} == {(0, 0, 16, 0)}
    check(ising, values, ising)


def test_what_cannot_be_cut_runs_in_its_own_order_and_says_why() -> None:
    """Along the diagonal the wrap points backwards along j by all of it but one."""
    values = {"u": np.random.default_rng(3).random((9, 8)), "sweeps": 3}
    assert "goes around an axis" in str(slanted.plan(**values, ranks=2))
    check(slanted, values, slanted)


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("ranks", "thorough"), [(4, False), *(pytest.param(n, True, marks=pytest.mark.long) for n in (2, 3, 4))]
)
def test_on_ranks(ranks: int, thorough: bool) -> None:
    try:
        mpiexec = str(find_mpi().mpiexec)
    except BuildError as error:
        pytest.skip(str(error))
    done = subprocess.run(
        [mpiexec, "-n", str(ranks), sys.executable, __file__], capture_output=True, text=True, timeout=SECONDS, check=False,
        stdin=subprocess.DEVNULL, env={**os.environ, **WITH_HELPERS, **(THOROUGHLY if thorough else {})},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("done\n") == ranks


def main() -> None:
    for number, (nest, values) in enumerate(arguments().items()):
        for k in rounds(1, len(ENGINES)):
            check(nest, values, nest.using(engine=ENGINES[(number + k) % len(ENGINES)]))
        if nest in (ising, seidel) and communicator.world().Get_size() == 4:
            for k in rounds(1, len(ENGINES)):
                check(nest, values, nest.using(engine=ENGINES[(number + k) % len(ENGINES)], grid=(2, 2), tile=3))


if __name__ == "__main__":
    optimise_little()
    main()
    os.write(sys.stdout.fileno(), b"done\n")  # in one piece: ranks share it
