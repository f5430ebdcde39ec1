"""The nests a machine is measured with: messages of chosen sizes, and a few tiles that stand for many."""

from __future__ import annotations

from typing import Any

import numpy as np

from lapwing.loopnest.array_shape import ArrayShape
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.binding.function import NestFunction

# What their tiles would compute is left out: messages are what is measured (cpp/spin.c). An element is a byte.


@NestFunction
def stream(u):  # type: ignore[no-untyped-def]
    """A message a step, from every rank to the next."""
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = u[i - 1, j]


@NestFunction
def relay(u, sweeps):  # type: ignore[no-untyped-def]
    """A message a sweep to the next rank, and the old value back."""
    for t in range(sweeps):  # noqa: B007
        for i in range(1, u.shape[0] - 1):
            for j in range(u.shape[1]):
                u[i, j] = max(u[i - 1, j], u[i + 1, j])


# Tiles that stand for many: a long chain of operations, a stencil in place, one with three axes, small integers.


@NestFunction
def sqrt3d(a):  # type: ignore[no-untyped-def]
    """The loop of P0's experiments."""
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            for k in range(1, a.shape[2]):
                a[i, j, k] = np.sqrt(a[i - 1, j, k]) + np.sqrt(a[i, j - 1, k]) + np.sqrt(a[i, j, k - 1])


@NestFunction
def gauss_seidel(u, sweeps):  # type: ignore[no-untyped-def]
    """Five points in two dimensions."""
    for t in range(sweeps):  # noqa: B007
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


@NestFunction
def sor3d(u, sweeps, omega):  # type: ignore[no-untyped-def]
    """Seven points in three dimensions, overrelaxed."""
    for t in range(sweeps):  # noqa: B007
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                for k in range(1, u.shape[2] - 1):
                    mean = u[i - 1, j, k] + u[i, j - 1, k] + u[i, j, k - 1]
                    mean = mean + u[i + 1, j, k] + u[i, j + 1, k] + u[i, j, k + 1]
                    u[i, j, k] = (1 - omega) * u[i, j, k] + omega / 6 * mean


# The cost of single operations: each nest has eight of one kind more than `copied`.


@NestFunction
def copied(u, v):  # type: ignore[no-untyped-def]
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = v[i, j]


@NestFunction
def added(u, v, c):  # type: ignore[no-untyped-def]
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = v[i, j] + c + c + c + c + c + c + c + c


@NestFunction
def multiplied(u, v, c):  # type: ignore[no-untyped-def]
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = v[i, j] * c * c * c * c * c * c * c * c


@NestFunction
def divided(u, v, c):  # type: ignore[no-untyped-def]
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = v[i, j] / c / c / c / c / c / c / c / c


@NestFunction
def rooted(u, v):  # type: ignore[no-untyped-def]
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = np.sqrt(np.sqrt(np.sqrt(np.sqrt(np.sqrt(np.sqrt(np.sqrt(np.sqrt(v[i, j]))))))))


def bound_to(nest: NestFunction, **arguments: Any) -> BoundNest:
    """The nest on arrays of which only shapes count: a pair (dtype, shape) stands for one."""
    return nest.bind({n: ArrayShape(*v) if isinstance(v, tuple) else v for n, v in arguments.items()})
