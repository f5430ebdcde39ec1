"""Small functions, each for a construct as people write it, with what makes their arguments; all are accepted."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Case = tuple[Callable[..., Any], Callable[[], dict[str, Any]]]
CASES: dict[str, Case] = {}


def case(**arguments: Callable[[], Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A function, and what makes each of its arguments."""

    def noted(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES[function.__name__] = function, lambda: {name: make() for name, make in arguments.items()}
        return function

    return noted


def grid(*shape: int, seed: int = 0) -> Callable[[], np.ndarray]:
    return lambda: np.random.default_rng(seed).random(shape)


def integers(low: int, high: int, *shape: int, dtype: str = "int64") -> Callable[[], np.ndarray]:
    return lambda: np.random.default_rng(3).integers(low, high, shape).astype(dtype)


WEIGHTS = [0.5, 0.25, 0.125, -2.0]
STEPS = [(0, 1), (-1, 0), (1, 1)]


# -- small sequences of scalars ------------------------------------------------------------------------------------------


@case(u=integers(0, 2, 9, 11), out=integers(0, 1, 9, 11))
def ring_of_neighbours(u, out):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            p2, p3, p4 = u[i - 1, j], u[i - 1, j + 1], u[i, j + 1]
            ring = [p2, p3, p4, u[i + 1, j], p2]
            turns = 0
            for p, q in zip(ring, ring[1:]):
                if p == 0 and q == 1:
                    turns += 1
            for k in range(4):
                if ring[k] == 1 and ring[k + 1] == 0:
                    turns += 10
            out[i, j] = turns + 100 * sum(ring) + 1000 * max(ring) + len(ring) + min(ring[0], ring[-1])


@case(u=grid(9, 11), out=grid(9, 11, seed=1))
def sums_of_comprehensions(u, out):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            total = sum(u[i + k, j] for k in range(-1, 2))
            total += sum([w * u[i + di, j + dj] for w, (di, dj) in zip(WEIGHTS, STEPS)], 0.5)
            low = min(u[i + di, j + dj] for di, dj in STEPS)
            out[i, j] = total * low + max(abs(u[i, j + k]) for k in (-1, 1))


@case(u=integers(0, 3, 9, 11), out=integers(0, 1, 9, 11))
def any_and_all_of_neighbours(u, out):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            near = any(u[i + di, j + dj] == 2 for di in (-1, 0, 1) for dj in (-1, 0, 1) if (di, dj) != (0, 0))
            full = all(u[i + d, j] for d in (-1, 0, 1))
            odd = any([u[i, j] == 1, u[i - 1, j] == 1])
            out[i, j] = (1 if near else 0) + (2 if full else 0) + (4 if odd else 0)


@case(u=grid(40), out=grid(40, seed=1))
def values_of_a_stencil(u, out):
    n = u.shape[0]
    for i in range(n):
        v = [0.5 * u[(i + k) % n] for k in (-2, -1, 0, 1, 2)]
        a = [0.1 / (1.0 + v[0] ** 2), 0.6 / (1.0 + v[2] ** 2)]
        a[1] = a[1] + a[0]
        out[i] = (a[0] * v[1] + a[1] * v[3]) / sum(a)


@case(u=grid(9, 11), out=grid(9, 11, seed=1))
def window_that_moves(u, out):
    for i in range(u.shape[0]):
        last = [0.0, 0.0, 0.0]
        for j in range(u.shape[1]):
            last = [last[1], last[2], u[i, j]]
            first, _, third = last
            out[i, j] = max(last) - first + third


@case(u=grid(9, 11), out=grid(9, 11, seed=1))
def nested_table(u, out):
    table = [[0.05, 0.2, 0.05], [0.2, -1.0, 0.2], [1 / 3, 2 / 3, 0.05]]
    n, m = u.shape
    for i in range(n):
        for j in range(m):
            s = 0.0
            for di in range(-1, 2):
                for dj in range(-1, 2):
                    s += table[di + 1][dj + 1] * u[(i + di) % n, (j + dj) % m]
            out[i, j] = s


@case(u=grid(9, 11), out=grid(9, 11, seed=1))
def loop_over_expressions(u, out):
    for i in range(1, u.shape[0] - 1):
        for j in range(u.shape[1]):
            s = 0.0
            for k, q in enumerate((u[i - 1, j], 0.5, u[i + 1, j])):
                if q < 0.3:
                    continue
                s = s * 0.5 + q * k
            out[i, j] = s


def _weighted(k, x):
    return WEIGHTS[k] * x + STEPS[k % 3][1]


@case(u=grid(9, 11), out=grid(9, 11, seed=1))
def table_in_a_helper(u, out):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            s = 0.0
            for k in range(4):
                s += WEIGHTS[k] * _weighted(k, u[i, j])
            out[i, j] = s


# -- scalars, rows and helpers -------------------------------------------------------------------------------------------


@case(u=grid(9, 11), out=grid(9, 11, seed=1), steps=lambda: 3, option=lambda: 2)
def set_under_one_option(u, out, steps, option):
    for t in range(steps):
        for i in range(u.shape[0]):
            for j in range(u.shape[1]):
                if option == 1:
                    g = u[i, j] * 0.5
                elif option == 2:
                    g = u[i, j] ** 2
                out[i, j] = g * t
        for i in range(1, u.shape[0]):
            for j in range(u.shape[1]):
                u[i, j] += 0.5 * (out[i - 1, j] - out[i, j])


def _all_near(u, table, i, j):
    n, m = table.shape
    for a in range(n):
        for b in range(m):
            if table[a, b] and not u[i + a - n // 2, j + b - m // 2]:
                return False
    return True


def _first_above(u, i, limit):
    k = 0
    while k < u.shape[1]:
        if u[i, k] > limit:
            return k * 2
        k += 1
    return -1


@case(u=integers(0, 2, 9, 11), out=integers(0, 1, 9, 11), table=integers(0, 2, 3, 3, dtype="uint8"))
def helper_that_returns_from_its_loops(u, out, table):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            out[i, j] = _all_near(u, table, i, j) + 10 * _first_above(u, i, j % 2)


@case(grid=integers(0, 4, 8, 8), drops=integers(0, 8, 20, 2))
def rows_as_a_stack(grid, drops):
    n, m = grid.shape
    stack = np.zeros((400, 2), dtype=int)
    sizes = np.zeros(len(drops), dtype=int)
    for k, (r, c) in enumerate(drops):
        grid[r, c] += 1
        stack[0] = r, c
        top = 1
        while top > 0:
            top -= 1
            i, j = stack[top]
            if grid[i, j] < 4:
                continue
            grid[i, j] -= 4
            sizes[k] += 1
            for di, dj in ((-1, 0), (1, 0), (0, -1), (0, 1)):
                if 0 <= i + di < n and 0 <= j + dj < m:
                    grid[i + di, j + dj] += 1
                    stack[top] = i + di, j + dj
                    top += 1
    return sizes


@case(p=grid(20), root=integers(0, 1, 21, 21), e=grid(22, 22))
def bounds_from_a_table(p, root, e):
    n = p.shape[0]
    for size in range(1, n + 1):
        for i in range(1, n - size + 1):
            j = i + size - 1
            if size == 1:
                low, high = i, i
            else:
                low, high = root[i, j - 1], root[i + 1, j]
            best = 1e300
            for r in range(low, high + 1):
                t = e[i, r - 1] + e[r + 1, j] + p[j]
                if t < best:
                    best = t
                    root[i, j] = r
            e[i, j] = best


@case(u=integers(0, 3, 9, 11), w=grid(9, 11), out=integers(0, 1, 9, 11))
def truth_of_numbers(u, w, out):
    for i in range(1, u.shape[0] - 1):
        for j in range(u.shape[1]):
            hit = False
            for k in (-1, 1):
                hit |= bool(u[i + k, j] and w[i, j] - 0.5)
            out[i, j] = hit + 2 * (not (u[i, j] or w[i, j] > 0.9))


# -- windows -------------------------------------------------------------------------------------------------------------


def with_nans(*shape: int) -> Callable[[], np.ndarray]:
    def make() -> np.ndarray:
        u = np.random.default_rng(7).random(shape) - 0.5
        u[3, 4] = np.nan
        return u

    return make


@case(u=with_nans(9, 12), out=grid(9, 12, seed=1))
def extrema_of_windows(u, out):
    for i in range(1, u.shape[0] - 1):
        for j in range(2, u.shape[1] - 2):
            w = u[i - 1 : i + 2, j - 2 : j + 3]
            low = np.min(u[i, j - 1 : j + 2])
            out[i, j] = w.max() - low + w[0, -1] + np.max(np.abs(u[i - 1 : i + 2, j] - u[i, j]))


@case(u=integers(0, 3, 9, 12, dtype="uint8"), seen=integers(0, 2, 9, 12, dtype="bool"), out=integers(0, 1, 9, 12))
def truths_and_sums_of_windows(u, seen, out):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            total = np.sum(u[i - 1 : i + 2, j - 1 : j + 2]) + 100 * seen[i, j - 1 : j + 2].sum()
            out[i, j] = total + 1000 * np.all(u[i - 1 : i + 2, j] < 2) + np.max(u[:2, j])
            seen[i, j] = u[i, j] > 1 and not np.any(seen[i - 1, j - 1 : j + 2])


@case(u=grid(9, 12), at=integers(1, 8, 9), out=grid(9, 12, seed=1))
def windows_where_a_table_says(u, at, out):
    for i in range(u.shape[0]):
        k = at[i]
        for j in range(u.shape[1]):
            out[i, j] = np.max(u[k - 1 : k + 1, j])


# -- lists whose length the driver finds ---------------------------------------------------------------------------------


@case(u=grid(12, 11), out=grid(12, 11, seed=1), radius=lambda: 2)
def lists_of_offsets_and_weights(u, out, radius):
    n, m = u.shape
    offsets = [(dy, dx) for dy in range(-radius, radius + 1) for dx in range(-radius, radius + 1)]
    weights = [np.exp(-(dy**2 + dx**2) / 4.5) for dy, dx in offsets]
    for y in range(n):
        for x in range(m):
            num = 0.0
            den = 0.0
            for (dy, dx), w in zip(offsets, weights):
                yy = min(max(y + dy, 0), n - 1)
                xx = min(max(x + dx, 0), m - 1)
                num += w * u[yy, xx]
                den += w
            out[y, x] = num / den


@case(spins=lambda: np.random.default_rng(2).choice([-1, 1], (8, 8)), rnd=grid(3, 8, 8), beta=lambda: 0.44)
def list_as_a_table(spins, rnd, beta):
    size = spins.shape[0]
    chance = [2.0 ** (-2 * beta * k) for k in range(5)]
    energies = []
    for s in range(rnd.shape[0]):
        for i in range(size):
            for j in range(size):
                near = spins[(i + 1) % size, j] + spins[i - 1, j] + spins[i, (j + 1) % size] + spins[i, j - 1]
                d = spins[i, j] * near
                if d <= 0 or rnd[s, i, j] < chance[d]:
                    spins[i, j] = -spins[i, j]
        e = 0
        for i in range(size):
            for j in range(size):
                e -= spins[i, j] * spins[i - 1, j]
        energies.append(e)
    return energies


@case(u=lambda: np.random.default_rng(2).random((8, 9)).astype("float32"), factors=lambda: [0.1, 0.7, 1.3])
def list_of_pythons_floats(u, factors):
    """A float32 times a float of Python's stays one."""
    total = 0
    for k in range(len(factors)):
        total += k
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            s = u[i, j]
            for k in range(3):
                s = s * factors[k] + factors[-1]
            u[i, j] = s * total
    return total


# -- loops ---------------------------------------------------------------------------------------------------------------


@case(out=grid(9, 14), top=lambda: 1.25)
def over_points_that_numpy_makes(out, top):
    n, m = out.shape
    inside = 0
    for i, y in enumerate(np.linspace(-1.2, top, n)):
        for j, x in enumerate(np.linspace(-2.2, 0.8, num=m)):
            c = complex(x, y)
            z = 0j
            for k in range(20):
                z = z * z + c
                if abs(z) > 4:
                    out[i, j] = k
                    break
            else:
                out[i, j] = 20
                inside += 1
    return inside


@case(u=integers(0, 5, 9, 11), out=integers(0, 1, 9, 11))
def loops_with_an_else(u, out):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            k = 0
            while k < 4:
                for m in range(3):
                    if u[i, j] == k * m:
                        break
                else:
                    k += 1
                    continue
                if k == 2:
                    break
                k += 2
            else:
                out[i, j] += 100
            out[i, j] += k


@case(u=grid(9, 11), v=grid(9, 11, seed=1), most=lambda: 40)
def until_it_changes_little(u, v, most):
    if most < 0:
        return None
    for sweep in range(most):
        change = 0.0
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])
                if new > 9.0:
                    return i, j, sweep
                change = max(change, abs(new - u[i, j]))
                u[i, j] = new
        if change < 0.01:
            return sweep
        while v[0, 0] < u[1, 1]:
            v[0, 0] += 0.125
            if v[0, 0] == 0.5:
                return change, sweep
    return most


@case(x=grid(9), y=grid(9, seed=1), n=lambda: 3)
def nests_in_both_arms(x, y, n):
    for i in range(1, len(x)):
        x[i] = 0.25 * (x[i - 1] + x[i])
    if n > 2:
        for i in range(y.shape[0]):
            y[i] = 0.5 * (y[i] + 1)
    else:
        for i in range(1, len(x)):
            x[i] = 0.25 * (x[i - 1] + x[i])
        n = max(n, y[1])
    return n


@case(u=grid(3, 5, 6))
def slices_of_shapes(u):
    n, m = u.shape[1:]
    rows, columns = u.shape[-2:]
    for k in range(u.shape[:1][0]):
        for i in range(1, n):
            for j in range(m):
                u[k, i, j] = u[k, i - 1, j] + columns - rows


@case(u=grid(9, 11), weights=grid(3, 3, seed=1), out=grid(9, 11, seed=2))
def weights_of_a_window(u, weights, out):
    n, m = u.shape
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            s = 0.0
            for di in range(-1, 2):
                for dj in range(-1, 2):
                    if di == 0 and dj == 0:
                        continue
                    s += weights[di + 1, dj + 1] * u[i + di, j + dj]
            out[i, j] = s


@case(u=grid(9, 11), out=grid(9, 11, seed=2))
def functions_of_both_zeros(u, out):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            out[i, j] = math.atan2(0.0, -u[i, j]) + 2 * math.atan2(-0.0, -u[i, j])


@case(state=integers(0, 3, 9, 11), out=integers(0, 1, 9, 11))
def first_of_the_neighbours(state, out):
    n, m = state.shape
    for i in range(n):
        for j in range(m):
            for di, dj in ((-1, 0), (1, 0), (0, -1), (0, 1)):
                if not (0 <= i + di < n and 0 <= j + dj < m):
                    continue
                if state[i + di, j + dj] == 2:
                    out[i, j] = 10 + di
                    break
            for d in (-1, 1, 0):
                if state[max(i + d, 0) % n, j] == 1:
                    break
                out[i, j] += 100
            out[i, j] += d
