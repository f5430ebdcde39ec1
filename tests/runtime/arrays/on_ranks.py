"""Nests that tests of distributed arrays run on several ranks, and what ranks ask of one another."""

from __future__ import annotations

import importlib.util
import shutil

import numpy as np
import pytest

import lapwing as lw


@lw.nest
def smooth(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


@lw.nest
def back(u):
    largest = 0.0
    for i in range(u.shape[0] - 2, 0, -1):
        for j in range(u.shape[1] - 2, -1, -1):
            u[i, j] = 0.5 * u[i + 1, j] + 0.25 * u[i, j + 1]
            largest = max(largest, u[i, j])
    return largest


@lw.nest
def other_order(u, c):
    total = 0.0
    for j in range(1, u.shape[1] - 1):
        for i in range(u.shape[0] - 1):
            u[i, j] = 0.5 * (u[i + 1, j] + u[i, j - 1]) + c[j]
            total += u[i, j]
    return total


@lw.nest
def written_twice(u):
    for i in range(2, u.shape[0] - 3):
        for j in range(2, u.shape[1] - 3):
            u[i, j] = u[i, j] + u[i - 1, j]
            u[i + 2, j + 1] = 0.5 * u[i, j - 1]


@lw.nest
def slanted(u, v, sweeps):
    """Skewed: every rank gets a parallelogram, so u is brought together and distributed anew."""
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(u.shape[1] - 2, 0, -1):
                u[i, j] = 0.5 * u[i - 1, j - 1] + 0.25 * (u[i, j + 1] + u[i + 1, j + 1]) + v[i, j]


@lw.nest
def only_read(u, v):
    for i in range(2, v.shape[0] - 1):
        for j in range(1, v.shape[1]):
            v[i, j] = 0.5 * v[i - 1, j] + u[i - 2, j] * u[i + 1, j - 1]


def rank_and_size() -> tuple[int, int]:
    from mpi4py import MPI

    return MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size()


def on_rank_0(values: np.ndarray) -> np.ndarray | None:
    return values.copy() if rank_and_size()[0] == 0 else None


def numbers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).random(shape)


def same(found: np.ndarray | None, expected: np.ndarray) -> None:
    if rank_and_size()[0]:
        assert found is None
    else:
        assert found is not None
        assert found.tobytes() == expected.tobytes()


def mpiexec() -> str:
    program = shutil.which("mpiexec")
    if program is None or shutil.which("mpicxx") is None or importlib.util.find_spec("mpi4py") is None:
        pytest.skip("no MPI here: mpiexec, mpicxx and mpi4py are needed")
    return program
