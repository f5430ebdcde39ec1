"""Cellular automata and lattice models."""

from __future__ import annotations

from typing import Any

import numpy as np

import lapwing as lw


@lw.nest
def game_of_life(Z, N, steps):
    """Conway's game: neighbours counted into one array, then the cells changed in place.

    Source: M. Gardner, "Mathematical games", Scientific American 223 (1970);
      github.com/rougier/from-python-to-numpy, game of life.
    Uses: two nests a step, if/elif with guarded writes of integers, boundary cells left dead.
    """
    rows, cols = Z.shape
    for step in range(steps):
        for x in range(1, rows - 1):
            for y in range(1, cols - 1):
                N[x, y] = (
                    Z[x - 1, y - 1]
                    + Z[x, y - 1]
                    + Z[x + 1, y - 1]
                    + Z[x - 1, y]
                    + Z[x + 1, y]
                    + Z[x - 1, y + 1]
                    + Z[x, y + 1]
                    + Z[x + 1, y + 1]
                )
        for x in range(1, rows - 1):
            for y in range(1, cols - 1):
                if Z[x, y] == 1 and (N[x, y] < 2 or N[x, y] > 3):
                    Z[x, y] = 0
                elif Z[x, y] == 0 and N[x, y] == 3:
                    Z[x, y] = 1


@game_of_life.problem
def game_of_life_problem(n: int = 24, steps: int = 10) -> dict[str, Any]:
    Z = np.zeros((n, n), int)
    Z[1:-1, 1:-1] = np.random.default_rng(101).random((n - 2, n - 2)) < 0.35
    return {"Z": Z, "N": np.zeros_like(Z), "steps": steps}


@lw.nest
def life_on_a_torus(grid, steps):
    """The same on a torus: inner loops over the neighbours, a new board each step.

    Source: E. R. Berlekamp, J. H. Conway, R. K. Guy, "Winning Ways" (1982), chapter 25.
    Uses: inner loops with continue, % on both axes, an inner counter, chained conditions, swap, uint8.
    """
    n, m = grid.shape
    new = np.zeros_like(grid)
    for step in range(steps):
        for i in range(n):
            for j in range(m):
                alive = 0
                for di in (-1, 0, 1):
                    for dj in (-1, 0, 1):
                        if di == 0 and dj == 0:
                            continue
                        if grid[(i + di) % n, (j + dj) % m]:
                            alive += 1
                if alive == 3 or (alive == 2 and grid[i, j]):
                    new[i, j] = 1
                else:
                    new[i, j] = 0
        grid, new = new, grid
    return grid


@life_on_a_torus.problem
def life_on_a_torus_problem(n: int = 18, steps: int = 6) -> dict[str, Any]:
    return {"grid": (np.random.default_rng(102).random((n, n + 2)) < 0.35).astype(np.uint8), "steps": steps}


@lw.nest
def elementary(history, rule):
    """Wolfram's elementary automata on a ring, each step a row.

    Source: S. Wolfram, "Statistical mechanics of cellular automata", Rev. Mod. Phys. 55 (1983).
    Uses: bit operations >> and &, indices with % in the row before.
    """
    steps, n = history.shape
    for t in range(1, steps):
        for i in range(n):
            left, centre, right = history[t - 1, (i - 1) % n], history[t - 1, i], history[t - 1, (i + 1) % n]
            history[t, i] = (rule >> (4 * left + 2 * centre + right)) & 1


@elementary.problem
def elementary_problem(n: int = 61, steps: int = 40, rule: int = 110) -> dict[str, Any]:
    history = np.zeros((steps, n), int)
    history[0, n // 2] = 1
    return {"history": history, "rule": rule}


@lw.nest
def sandpile(z, critical):
    """Sand topples, each pile of four giving one grain to each neighbour, until all are stable; grains fall off the
    edge.

    Source: P. Bak, C. Tang, K. Wiesenfeld, "Self-organized criticality", Phys. Rev. A 38 (1988).
    Uses: while on a flag, writes at five offsets behind a guard, a count of all topplings.
    """
    n, m = z.shape
    topplings = 0
    unstable = True
    while unstable:
        unstable = False
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                if z[i, j] >= critical:
                    z[i, j] -= critical
                    z[i - 1, j] += 1
                    z[i + 1, j] += 1
                    z[i, j - 1] += 1
                    z[i, j + 1] += 1
                    topplings += 1
                    unstable = True
    return topplings


@sandpile.problem
def sandpile_problem(n: int = 16, critical: int = 4) -> dict[str, Any]:
    z = np.zeros((n, n), int)
    z[1:-1, 1:-1] = np.random.default_rng(103).integers(1, 6, (n - 2, n - 2))
    return {"z": z, "critical": critical}


@lw.nest
def forest_fire(state, new, chance, grow, lightning):
    """Trees grow, burn and spread fire; the random numbers are drawn before, one for each cell and step.

    Source: B. Drossel, F. Schwabl, "Self-organized critical forest-fire model", Phys. Rev. Lett. 69 (1992).
    Uses: if/elif/else of three states, a nested guard over four neighbours, an array of three axes read, two arrays
      swapped, a count each step.
    """
    steps, n, m = chance.shape
    burning = np.zeros(steps, dtype=int)
    for t in range(steps):
        for i in range(n):
            for j in range(m):
                if state[i, j] == 2:
                    new[i, j] = 0
                elif state[i, j] == 1:
                    fire = (
                        (i > 0 and state[i - 1, j] == 2)
                        or (i < n - 1 and state[i + 1, j] == 2)
                        or (j > 0 and state[i, j - 1] == 2)
                        or (j < m - 1 and state[i, j + 1] == 2)
                    )
                    if fire or chance[t, i, j] < lightning:
                        new[i, j] = 2
                    else:
                        new[i, j] = 1
                else:
                    new[i, j] = 1 if chance[t, i, j] < grow else 0
                if new[i, j] == 2:
                    burning[t] += 1
        state, new = new, state
    return burning


@forest_fire.problem
def forest_fire_problem(n: int = 20, steps: int = 12) -> dict[str, Any]:
    rng = np.random.default_rng(104)
    state = (rng.random((n, n)) < 0.6).astype(np.int8)
    return {"state": state, "new": state.copy(), "chance": rng.random((steps, n, n)), "grow": 0.05, "lightning": 0.002}


@lw.nest
def ising(spin, chance, beta, J):
    """The Ising model by Metropolis's rule on a checkerboard, the random numbers drawn before; energy and
    magnetisation after.

    Source: M. E. J. Newman, G. T. Barkema, "Monte Carlo Methods in Statistical Physics" (1999), chapter 3 and
      section 13.2.
    Uses: a loop over two colours, j from (i + colour) % 2 in steps of 2, % on both axes, or with np.exp, two
      integer sums.
    """
    sweeps, n, m = chance.shape
    for t in range(sweeps):
        for colour in range(2):
            for i in range(n):
                for j in range((i + colour) % 2, m, 2):
                    near = spin[(i + 1) % n, j] + spin[i - 1, j] + spin[i, (j + 1) % m] + spin[i, j - 1]
                    dE = 2 * J * spin[i, j] * near
                    if dE <= 0 or chance[t, i, j] < np.exp(-beta * dE):
                        spin[i, j] = -spin[i, j]
    energy, magnetisation = 0, 0
    for i in range(n):
        for j in range(m):
            energy -= J * spin[i, j] * (spin[(i + 1) % n, j] + spin[i, (j + 1) % m])
            magnetisation += spin[i, j]
    return energy, magnetisation


@ising.problem
def ising_problem(n: int = 20, sweeps: int = 8) -> dict[str, Any]:
    rng = np.random.default_rng(105)
    return {"spin": rng.choice([-1, 1], (n, n)), "chance": rng.random((sweeps, n, n)), "beta": 0.5, "J": 1}


@lw.nest
def traffic(road, steps):
    """Cars of two kinds on a torus: those that go right move on even steps, those that go down on odd ones.

    Source: O. Biham, A. A. Middleton, D. Levine, "Self-organization and a dynamical transition in traffic-flow
      models" (1992).
    Uses: a branch on t % 2 around whole nests, guarded writes of two cells of another array, copies, % on both axes.
    """
    n, m = road.shape
    moved = 0
    for t in range(steps):
        before = road.copy()
        if t % 2 == 0:
            for i in range(n):
                for j in range(m):
                    if before[i, j] == 1 and before[i, (j + 1) % m] == 0:
                        road[i, j] = 0
                        road[i, (j + 1) % m] = 1
                        moved += 1
        else:
            for i in range(n):
                for j in range(m):
                    if before[i, j] == 2 and before[(i + 1) % n, j] == 0:
                        road[i, j] = 0
                        road[(i + 1) % n, j] = 2
                        moved += 1
    return moved


@traffic.problem
def traffic_problem(n: int = 20, steps: int = 12) -> dict[str, Any]:
    road = np.random.default_rng(106).choice([0, 1, 2], (n, n), p=[0.6, 0.2, 0.2]).astype(np.int8)
    return {"road": road, "steps": steps}
