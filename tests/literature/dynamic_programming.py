"""Dynamic programming over intervals, capacities and graphs."""

from __future__ import annotations

from typing import Any

import numpy as np

import lapwing as lw


@lw.nest
def knapsack(K, weights, values, capacity):
    """The 0/1 knapsack as a table of items by capacity.

    Source: T. H. Cormen et al., "Introduction to Algorithms" (MIT, 2009), exercise 16.2-2;
      github.com/TheAlgorithms/Python.
    Uses: an index shifted by a value read from an array, if/elif/else, an element returned.
    """
    n = len(weights)
    for i in range(n + 1):
        for w in range(capacity + 1):
            if i == 0 or w == 0:
                K[i, w] = 0
            elif weights[i - 1] <= w:
                K[i, w] = max(values[i - 1] + K[i - 1, w - weights[i - 1]], K[i - 1, w])
            else:
                K[i, w] = K[i - 1, w]
    return K[n, capacity]


@knapsack.problem
def knapsack_problem(n: int = 16, capacity: int = 120) -> dict[str, Any]:
    rng = np.random.default_rng(61)
    K = np.full((n + 1, capacity + 1), -1)
    return {"K": K, "weights": rng.integers(3, 30, n), "values": rng.integers(1, 50, n), "capacity": capacity}


@lw.nest
def knapsack_row(best, weights, values):
    """The same in one row, capacities in descending order so that no item is taken twice.

    Source: H. Kellerer, U. Pferschy, D. Pisinger, "Knapsack Problems" (Springer, 2004), section 2.3.
    Uses: a descending range that ends at a value read from an array, an index shifted by it, in place.
    """
    capacity = len(best) - 1
    for k in range(len(weights)):
        for c in range(capacity, weights[k] - 1, -1):
            best[c] = max(best[c], best[c - weights[k]] + values[k])
    return best[capacity]


@knapsack_row.problem
def knapsack_row_problem(n: int = 16, capacity: int = 150) -> dict[str, Any]:
    rng = np.random.default_rng(62)
    return {"best": np.zeros(capacity + 1, int), "weights": rng.integers(3, 30, n), "values": rng.integers(1, 50, n)}


@lw.nest
def coin_change(ways, coins):
    """In how many ways coins add up to each amount.

    Source: R. L. Graham, D. E. Knuth, O. Patashnik, "Concrete Mathematics" (1994), section 7.1;
      github.com/TheAlgorithms/Python.
    Uses: a range that begins at a value read from an array, int64 in place.
    """
    ways[0] = 1
    for i in range(len(coins)):
        for amount in range(coins[i], len(ways)):
            ways[amount] += ways[amount - coins[i]]


@coin_change.problem
def coin_change_problem(amount: int = 200) -> dict[str, Any]:
    return {"ways": np.zeros(amount + 1, np.int64), "coins": np.array([1, 2, 5, 10, 20, 50])}


@lw.nest
def matrix_chain(m, s, p):
    """The cheapest order of a product of matrices, interval by interval.

    Source: T. H. Cormen et al., "Introduction to Algorithms" (MIT, 2009), section 15.2, MATRIX-CHAIN-ORDER.
    Uses: a loop over lengths, j = i + length - 1, an inner argmin by if, writes to two triangles.
    """
    n = len(p) - 1
    for length in range(2, n + 1):
        for i in range(1, n - length + 2):
            j = i + length - 1
            m[i, j] = np.iinfo(np.int64).max
            for k in range(i, j):
                q = m[i, k] + m[k + 1, j] + p[i - 1] * p[k] * p[j]
                if q < m[i, j]:
                    m[i, j] = q
                    s[i, j] = k
    return m[1, n]


@matrix_chain.problem
def matrix_chain_problem(n: int = 24) -> dict[str, Any]:
    p = np.random.default_rng(63).integers(5, 50, n + 1)
    return {"m": np.zeros((n + 1, n + 1), np.int64), "s": np.zeros((n + 1, n + 1), np.int64), "p": p}


@lw.nest
def optimal_bst(e, w, root, p, q):
    """Optimal binary search trees: expected cost, weights and roots of every interval of keys.

    Source: T. H. Cormen et al., "Introduction to Algorithms" (MIT, 2009), section 15.5, OPTIMAL-BST.
    Uses: three triangular arrays, an argmin by if over an inner loop, a diagonal set first.
    """
    n = len(p) - 1
    for i in range(1, n + 2):
        e[i, i - 1] = q[i - 1]
        w[i, i - 1] = q[i - 1]
    for length in range(1, n + 1):
        for i in range(1, n - length + 2):
            j = i + length - 1
            e[i, j] = np.inf
            w[i, j] = w[i, j - 1] + p[j] + q[j]
            for r in range(i, j + 1):
                t = e[i, r - 1] + e[r + 1, j] + w[i, j]
                if t < e[i, j]:
                    e[i, j] = t
                    root[i, j] = r


@optimal_bst.problem
def optimal_bst_problem(n: int = 20) -> dict[str, Any]:
    rng = np.random.default_rng(64)
    p, q = rng.random(n + 1), rng.random(n + 1)
    total = p[1:].sum() + q.sum()
    tables = {"e": np.zeros((n + 2, n + 1)), "w": np.zeros((n + 2, n + 1)), "root": np.zeros((n + 1, n + 1), int)}
    return {**tables, "p": p / total, "q": q / total}


@lw.nest
def nussinov(N, seq, min_loop):
    """The most base pairs that an RNA can fold into.

    Source: R. Nussinov, A. B. Jacobson, PNAS 77 (1980); PolyBench/C 4.2, medley/nussinov.
    Uses: i descending and j ascending from i, a helper on two bases, a bifurcation maximum over an inner loop,
      continue.
    """
    n = len(seq)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            if j - i <= min_loop:
                continue
            N[i, j] = max(N[i + 1, j], N[i, j - 1])
            if pairs(seq[i], seq[j]):
                N[i, j] = max(N[i, j], N[i + 1, j - 1] + 1)
            for k in range(i + 1, j):
                N[i, j] = max(N[i, j], N[i, k] + N[k + 1, j])
    return N[0, n - 1]


def pairs(a, b):
    return a + b == 3


@nussinov.problem
def nussinov_problem(n: int = 36) -> dict[str, Any]:
    return {"N": np.zeros((n, n), int), "seq": np.random.default_rng(65).integers(0, 4, n), "min_loop": 3}


@lw.nest
def floyd_warshall(dist, successor):
    """All shortest paths and the next vertex on each.

    Source: R. W. Floyd, "Algorithm 97: shortest path", Comm. ACM 5 (1962); PolyBench/C 4.2, medley/floyd-warshall.
    Uses: a whole row and a whole column of the step before read, a guarded update of two arrays.
    """
    n = dist.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                through = dist[i, k] + dist[k, j]
                if through < dist[i, j]:
                    dist[i, j] = through
                    successor[i, j] = successor[i, k]


@floyd_warshall.problem
def floyd_warshall_problem(n: int = 24) -> dict[str, Any]:
    rng = np.random.default_rng(66)
    dist = np.where(rng.random((n, n)) < 0.25, rng.integers(1, 20, (n, n)), 10_000)
    np.fill_diagonal(dist, 0)
    return {"dist": dist, "successor": np.tile(np.arange(n), (n, 1))}


@lw.nest
def longest_increasing_subsequence(x, length, before):
    """The longest increasing subsequence in quadratic time, with the element before each.

    Source: D. Gusfield, "Algorithms on Strings, Trees, and Sequences" (Cambridge, 1997), section 12.5.
    Uses: a triangular inner loop with a guard of two conditions, an argmax over the result, two values returned.
    """
    n = len(x)
    for i in range(n):
        length[i] = 1
        before[i] = -1
        for j in range(i):
            if x[j] < x[i] and length[j] + 1 > length[i]:
                length[i] = length[j] + 1
                before[i] = j
    best, last = 0, -1
    for i in range(n):
        if length[i] > best:
            best = length[i]
            last = i
    return best, last


@longest_increasing_subsequence.problem
def longest_increasing_subsequence_problem(n: int = 90) -> dict[str, Any]:
    x = np.random.default_rng(67).integers(0, 1000, n)
    return {"x": x, "length": np.zeros(n, int), "before": np.zeros(n, int)}


@lw.nest
def minimum_path(cost):
    """The cheapest way through a table from its top left corner, in place, with steps right, down and slanting.

    Source: J. Kleinberg, É. Tardos, "Algorithm Design" (2006), section 6.8; github.com/TheAlgorithms/Python.
    Uses: one nest, in place, min of three.
    """
    for i in range(1, cost.shape[0]):
        for j in range(1, cost.shape[1]):
            cost[i, j] += min(cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1])


@minimum_path.problem
def minimum_path_problem(n: int = 50, m: int = 46) -> dict[str, Any]:
    cost = np.random.default_rng(68).random((n, m))
    cost[0], cost[:, 0] = np.cumsum(cost[0]), np.cumsum(cost[:, 0])
    return {"cost": cost}


@lw.nest
def largest_square(mask, side):
    """The largest square of ones: the side of the one that ends in each cell, and the largest of all.

    Source: github.com/TheAlgorithms/Python, matrix/largest_square_area_in_matrix.py.
    Uses: if/else with a guarded write, edges by or, a maximum returned squared.
    """
    best = 0
    for i in range(mask.shape[0]):
        for j in range(mask.shape[1]):
            if not mask[i, j]:
                side[i, j] = 0
            elif i == 0 or j == 0:
                side[i, j] = 1
            else:
                side[i, j] = 1 + min(side[i - 1, j], side[i, j - 1], side[i - 1, j - 1])
            best = max(best, side[i, j])
    return best * best


@largest_square.problem
def largest_square_problem(n: int = 44, m: int = 48) -> dict[str, Any]:
    return {"mask": np.random.default_rng(69).random((n, m)) < 0.85, "side": np.zeros((n, m), int)}
