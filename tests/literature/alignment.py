"""Comparing sequences: alignments with linear and affine gaps, in a band, edit distances, warping."""

from __future__ import annotations

from typing import Any

import numpy as np

import lapwing as lw

ALPHABET = 4


def sequences(n: int, m: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two sequences with a common origin."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, ALPHABET, n)
    b = np.where(rng.random(n) < 0.7, a, rng.integers(0, ALPHABET, n))
    return a, np.concatenate([b[3:], b])[:m]


@lw.nest
def needleman_wunsch(F, a, b, S, d):
    """Global alignment with a substitution matrix and a linear gap cost, its borders filled in the same function.

    Source: S. B. Needleman, C. D. Wunsch, J. Mol. Biol. 48 (1970); R. Durbin et al., "Biological Sequence Analysis"
      (1998), section 2.3.
    Uses: two border loops, then the nest; a two-dimensional table looked up by two sequences; an element returned.
    """
    n, m = len(a), len(b)
    for i in range(n + 1):
        F[i, 0] = -d * i
    for j in range(m + 1):
        F[0, j] = -d * j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            match = F[i - 1, j - 1] + S[a[i - 1], b[j - 1]]
            delete = F[i - 1, j] - d
            insert = F[i, j - 1] - d
            F[i, j] = max(match, delete, insert)
    return F[n, m]


@needleman_wunsch.problem
def needleman_wunsch_problem(n: int = 50, m: int = 46) -> dict[str, Any]:
    a, b = sequences(n, m, 51)
    S = np.full((ALPHABET, ALPHABET), -3) + 8 * np.eye(ALPHABET, dtype=int)
    return {"F": np.zeros((n + 1, m + 1), int), "a": a, "b": b, "S": S, "d": 4}


@lw.nest
def smith_waterman(H, a, b, match, mismatch, gap):
    """Local alignment: the best cell is remembered, then the alignment is followed back to where it begins.

    Source: T. F. Smith, M. S. Waterman, J. Mol. Biol. 147 (1981).
    Uses: argmax with two indices by if, zeros made inside, a traceback by while with a chain of branches, a tuple
      returned.
    """
    best = 0
    bi = bj = 0
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            s = match if a[i - 1] == b[j - 1] else mismatch
            h = max(0, H[i - 1, j - 1] + s, H[i - 1, j] - gap, H[i, j - 1] - gap)
            H[i, j] = h
            if h > best:
                best = h
                bi = i
                bj = j
    i, j = bi, bj
    length = 0
    while H[i, j] > 0:
        s = match if a[i - 1] == b[j - 1] else mismatch
        if H[i, j] == H[i - 1, j - 1] + s:
            i, j = i - 1, j - 1
        elif H[i, j] == H[i - 1, j] - gap:
            i -= 1
        else:
            j -= 1
        length += 1
    return best, bi, bj, i, j, length


@smith_waterman.problem
def smith_waterman_problem(n: int = 50, m: int = 46) -> dict[str, Any]:
    a, b = sequences(n, m, 52)
    return {"H": np.zeros((n + 1, m + 1), np.int32), "a": a, "b": b, "match": 2, "mismatch": -1, "gap": 2}


@lw.nest
def gotoh(M, Ix, Iy, trace, a, b, match, mismatch, gap_open, gap_extend):
    """Affine gaps: three matrices, and where the best of the three came from.

    Source: O. Gotoh, "An improved algorithm for matching biological sequences", J. Mol. Biol. 162 (1982).
    Uses: four arrays written in a nest, if/elif/else that writes one of them, infinities, int8 directions.
    """
    n, m = len(a), len(b)
    for i in range(1, n + 1):
        M[i, 0] = -np.inf
        Ix[i, 0] = -gap_open - (i - 1) * gap_extend
        Iy[i, 0] = -np.inf
    for j in range(1, m + 1):
        M[0, j] = -np.inf
        Ix[0, j] = -np.inf
        Iy[0, j] = -gap_open - (j - 1) * gap_extend
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            score = match if a[i - 1] == b[j - 1] else mismatch
            M[i, j] = score + max(M[i - 1, j - 1], Ix[i - 1, j - 1], Iy[i - 1, j - 1])
            Ix[i, j] = max(M[i - 1, j] - gap_open, Ix[i - 1, j] - gap_extend)
            Iy[i, j] = max(M[i, j - 1] - gap_open, Iy[i, j - 1] - gap_extend)
            if M[i, j] >= Ix[i, j] and M[i, j] >= Iy[i, j]:
                trace[i, j] = 0
            elif Ix[i, j] >= Iy[i, j]:
                trace[i, j] = 1
            else:
                trace[i, j] = 2
    return max(M[n, m], Ix[n, m], Iy[n, m])


@gotoh.problem
def gotoh_problem(n: int = 40, m: int = 44) -> dict[str, Any]:
    a, b = sequences(n, m, 53)
    M, Ix, Iy = np.zeros((3, n + 1, m + 1))
    costs = {"match": 1.0, "mismatch": -1.0, "gap_open": 2.0, "gap_extend": 0.5}
    return {"M": M, "Ix": Ix, "Iy": Iy, "trace": np.zeros((n + 1, m + 1), np.int8), "a": a, "b": b, **costs}


@lw.nest
def banded_alignment(F, a, b, band, match, mismatch, gap):
    """Global alignment inside a band around the diagonal; cells outside stay at minus infinity.

    Source: J. W. Fickett, "Fast optimal alignment", Nucleic Acids Res. 12 (1984).
    Uses: bounds with max and min of an outer index, guards at the rim of the band, an element returned.
    """
    n, m = len(a), len(b)
    for i in range(n + 1):
        for j in range(max(0, i - band), min(m, i + band) + 1):
            if i == 0:
                F[i, j] = gap * j
                continue
            if j == 0:
                F[i, j] = gap * i
                continue
            best = F[i - 1, j - 1] + (match if a[i - 1] == b[j - 1] else mismatch)
            if j < i + band:
                best = max(best, F[i - 1, j] + gap)
            if j > i - band:
                best = max(best, F[i, j - 1] + gap)
            F[i, j] = best
    return F[n, m]


@banded_alignment.problem
def banded_alignment_problem(n: int = 120, band: int = 8) -> dict[str, Any]:
    a, b = sequences(n, n - 3, 54)
    F = np.full((n + 1, n - 2), -10_000, np.int32)
    return {"F": F, "a": a, "b": b, "band": band, "match": 2, "mismatch": -1, "gap": -2}


@lw.nest
def longest_common_subsequence(c, direction, x, y):
    """Lengths of longest common subsequences and an arrow in each cell.

    Source: T. H. Cormen et al., "Introduction to Algorithms" (MIT, 2009), section 15.4, LCS-LENGTH.
    Uses: if/elif/else with two arrays written in each branch, c[i][j].
    """
    m = len(x)
    n = len(y)
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            if x[i - 1] == y[j - 1]:
                c[i][j] = c[i - 1][j - 1] + 1
                direction[i][j] = 3
            elif c[i - 1][j] >= c[i][j - 1]:
                c[i][j] = c[i - 1][j]
                direction[i][j] = 1
            else:
                c[i][j] = c[i][j - 1]
                direction[i][j] = 2
    return c[m][n]


@longest_common_subsequence.problem
def longest_common_subsequence_problem(n: int = 52, m: int = 48) -> dict[str, Any]:
    x, y = sequences(n, m, 55)
    return {"c": np.zeros((n + 1, m + 1), int), "direction": np.zeros((n + 1, m + 1), np.uint8), "x": x, "y": y}


@lw.nest
def levenshtein(a, b):
    """The edit distance with two rows that are swapped.

    Source: R. A. Wagner, M. J. Fischer, "The string-to-string correction problem", J. ACM 21 (1974).
    Uses: two rows of their own swapped in an outer loop, a first element set apart, np.arange, an element returned.
    """
    previous = np.arange(len(b) + 1)
    current = np.zeros(len(b) + 1, dtype=int)
    for i in range(1, len(a) + 1):
        current[0] = i
        for j in range(1, len(b) + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            current[j] = min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + cost)
        previous, current = current, previous
    return previous[len(b)]


@levenshtein.problem
def levenshtein_problem(n: int = 60, m: int = 54) -> dict[str, Any]:
    a, b = sequences(n, m, 56)
    return {"a": a, "b": b}


@lw.nest
def restricted_damerau(d, a, b):
    """Edit distance with transpositions of neighbours.

    Source: F. J. Damerau, "A technique for computer detection and correction of spelling errors", Comm. ACM 7 (1964).
    Uses: a guard of four conditions before elements two rows and columns back are read, an element improved twice.
    """
    n, m = len(a), len(b)
    for i in range(n + 1):
        d[i, 0] = i
    for j in range(m + 1):
        d[0, j] = j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = int(a[i - 1] != b[j - 1])
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                d[i, j] = min(d[i, j], d[i - 2, j - 2] + 1)
    return d[n, m]


@restricted_damerau.problem
def restricted_damerau_problem(n: int = 44, m: int = 48) -> dict[str, Any]:
    a, b = sequences(n, m, 57)
    return {"d": np.zeros((n + 1, m + 1), int), "a": a, "b": b}


@lw.nest
def dynamic_time_warping(D, x, y, window):
    """The cost of warping one series on another inside Sakoe and Chiba's window.

    Source: H. Sakoe, S. Chiba, "Dynamic programming algorithm optimization for spoken word recognition", IEEE
      Trans. ASSP 26 (1978).
    Uses: two nests, the first fills with infinity; bounds with max and min; abs; the root of an element returned.
    """
    n, m = len(x), len(y)
    for i in range(n + 1):
        for j in range(m + 1):
            D[i, j] = np.inf
    D[0, 0] = 0.0
    w = max(window, abs(n - m))
    for i in range(1, n + 1):
        for j in range(max(1, i - w), min(m, i + w) + 1):
            cost = (x[i - 1] - y[j - 1]) ** 2
            D[i, j] = cost + min(D[i - 1, j], D[i, j - 1], D[i - 1, j - 1])
    return np.sqrt(D[n, m])


@dynamic_time_warping.problem
def dynamic_time_warping_problem(n: int = 50, m: int = 46, window: int = 12) -> dict[str, Any]:
    x, y = np.sin(np.linspace(0, 9, n)), np.sin(np.linspace(0.5, 9, m) ** 1.02)
    return {"D": np.ones((n + 1, m + 1)), "x": x, "y": y, "window": window}


@lw.nest
def edit_distance_table(d, s, t):
    """The edit distance as a table whose borders were filled before.

    Source: D. Jurafsky, J. H. Martin, "Speech and Language Processing" (2009), section 3.11.
    Uses: one nest, a comparison as a number.
    """
    for i in range(1, d.shape[0]):
        for j in range(1, d.shape[1]):
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + 2 * (s[i - 1] != t[j - 1]))


@edit_distance_table.problem
def edit_distance_table_problem(n: int = 50, m: int = 54) -> dict[str, Any]:
    s, t = sequences(n, m, 58)
    d = np.zeros((n + 1, m + 1), int)
    d[:, 0], d[0] = np.arange(n + 1), np.arange(m + 1)
    return {"d": d, "s": s, "t": t}


@lw.nest
def warping_path_length(D, steps, x, y):
    """Warping without a window: accumulated cost, and how long the cheapest path to each cell is.

    Source: M. Müller, "Information Retrieval for Music and Motion" (Springer, 2007), chapter 4.
    Uses: argmin of three by if/elif/else with temporaries, two arrays written.
    """
    n, m = D.shape
    for i in range(1, n):
        for j in range(1, m):
            if D[i - 1, j - 1] <= D[i - 1, j] and D[i - 1, j - 1] <= D[i, j - 1]:
                cost, length = D[i - 1, j - 1], steps[i - 1, j - 1]
            elif D[i - 1, j] <= D[i, j - 1]:
                cost, length = D[i - 1, j], steps[i - 1, j]
            else:
                cost, length = D[i, j - 1], steps[i, j - 1]
            D[i, j] = abs(x[i - 1] - y[j - 1]) + cost
            steps[i, j] = length + 1
    return D[n - 1, m - 1], steps[n - 1, m - 1]


@warping_path_length.problem
def warping_path_length_problem(n: int = 44, m: int = 48) -> dict[str, Any]:
    D = np.full((n + 1, m + 1), 1e9)
    D[0, 0] = 0.0
    x, y = np.cos(np.linspace(0, 8, n)), np.cos(np.linspace(0.3, 8.5, m))
    return {"D": D, "steps": np.zeros((n + 1, m + 1), int), "x": x, "y": y}
