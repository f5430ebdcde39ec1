"""Tile shapes with the least communication for a given volume (P0, section 2.4; Boulet et al., P0 [7]; Xue, P0 [16]).

A shape is n directions, the rays of its sides, and n numbers, the sides as multiples of them: P = R diag(sides). With
R the matrix of rays, V = |det R| times the product of the sides, and costs c = row sums of R^-1 D, P0's eq. 1 reads

    V_comm = V * sum of c_i / side_i

Eq. 2 is the same with c_x = 0 for the mapping dimension x. Two questions follow.

*How long should the sides be?* By the inequality of arithmetic and geometric means side_i is proportional to c_i: the
same amount then crosses every boundary. Bounds on sides clamp the proportion (``best_sides``). Proved optimal.

*Which directions?* Let sigma be the sum of all dependences. With sides at their best, V_comm depends on the rows h_i of H
through |det H| / product of (h_i sigma) alone, which is to be large. Rows may be scaled so that h_i sigma = 1; legal rows
(h d >= 0 for all d) then fill a bounded polytope whose corners are the normals of the dependence cone's facets. A
determinant is linear in each row, so its greatest value is found at corners: n normals of facets. If the cone has n
extreme rays there is one such choice, and the sides are the rays; if it has more, all are tried (``best_rays``). Proved
optimal among all legal tilings, for volumes large enough that no side is at a bound. Which of several equally good
choices is taken is arbitrary: the first in descending order of the normals.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from lapwing.errors import RefusedError
from lapwing.loopnest.dependences import Vector
from lapwing.theory.supernode import (
    Matrix,
    Supernode,
    as_text,
    check_vectors,
    determinant,
    dot,
    inverse,
    rational_matrix,
    reduced_rows,
)

# -- the dependence cone -----------------------------------------------------------------------------------------------


def facet_normals(vectors: Sequence[Sequence[int]]) -> tuple[Vector, ...]:
    """Normals of the facets of the cone the vectors generate, h d >= 0 for each of them: the extreme rays of its dual.

    Whole numbers without common divisor, in descending order; exact, for any number of vectors of any one length.
    Raises RefusedError for vectors that span fewer dimensions than they have.
    """
    check_vectors(vectors)
    distinct = sorted({_primitive(vector) for vector in vectors if any(vector)}, reverse=True)
    n = len(vectors[0])
    independent = reduced_rows(list(zip(*distinct, strict=True)), len(distinct))[1]
    if len(independent) < n:
        raise RefusedError(
            f"the dependences {_list_as_text(vectors)} span {len(independent)} of {n} dimensions: expected all of them. Without "
            "that, cuts along the dependences send nothing and no shape is best. Run those loops in parallel and tile the "
            "others, or take rectangular tiles with bounds."
        )
    # The double description method: n independent vectors first, whose normals are known, then one more at a time.
    inside = [distinct[k] for k in independent]
    first = inverse(rational_matrix(list(zip(*inside, strict=True)), "D"))
    assert first is not None
    normals = [_primitive(row) for row in first]
    for k, vector in enumerate(distinct):
        if k not in independent:
            normals = _with_vector(normals, inside, vector)
            inside.append(vector)
    return tuple(sorted(normals, reverse=True))


def _with_vector(normals: list[Vector], inside: list[Vector], vector: Vector) -> list[Vector]:
    """Normals of the cone of ``inside`` and one more vector.

    Facets the vector lies in front of stay. Every edge between one of these and one it lies behind makes a facet with
    the vector: its normal is the positive combination of the two that the vector is perpendicular to.
    """
    products = {normal: _whole_dot(normal, vector) for normal in normals}
    made = []
    for front, behind in itertools.product(normals, normals):
        if products[front] > 0 > products[behind] and _share_an_edge(front, behind, inside):
            pairs = zip(front, behind, strict=True)
            made.append(_primitive([products[front] * y - products[behind] * x for x, y in pairs]))
    return [normal for normal in normals if products[normal] >= 0] + made


def _share_an_edge(a: Vector, b: Vector, inside: list[Vector]) -> bool:
    """Whether the vectors on both facets span n - 2 dimensions."""
    n = len(a)
    common = [vector for vector in inside if not _whole_dot(a, vector) and not _whole_dot(b, vector)]
    return len(common) >= n - 2 and len(reduced_rows(common, n)[1]) == n - 2


def _whole_dot(a: Vector, b: Vector) -> int:
    return sum(x * y for x, y in zip(a, b, strict=True))


def extreme_rays(vectors: Sequence[Sequence[int]]) -> tuple[Vector, ...]:
    """The extreme rays of the cone the vectors generate: whole numbers without common divisor, in descending order.

    Raises RefusedError as facet_normals does, and for a cone that holds a whole line.
    """
    return facet_normals(_legal_normals(vectors))


def _legal_normals(vectors: Sequence[Sequence[int]]) -> tuple[Vector, ...]:
    normals = facet_normals(vectors)
    n = len(vectors[0])
    rank = len(reduced_rows(normals, n)[1])
    if rank < n:
        raise RefusedError(
            f"no tiling is legal: the dependences {_list_as_text(vectors)} leave {rank} independent directions h with "
            f"hd >= 0 for all of them, expected {n}. Some combination of them leads back to where it began; check their signs "
            "(each must be lexicographically positive)."
        )
    return normals


def _primitive(vector: Sequence[Fraction | int]) -> Vector:
    """The shortest vector of whole numbers in the same direction."""
    scale = math.lcm(*(Fraction(x).denominator for x in vector))
    whole = [int(x * scale) for x in vector]  # int: NumPy's whole numbers overflow
    divisor = math.gcd(*whole)
    return tuple(x // divisor for x in whole)


# -- directions --------------------------------------------------------------------------------------------------------


def unit_rays(loops: int) -> tuple[Vector, ...]:
    """Sides along the loops: rectangular tiles."""
    return tuple(tuple(int(i == k) for k in range(loops)) for i in range(loops))


def best_rays(dependences: Sequence[Sequence[int]], normal: Sequence[int] | None = None) -> tuple[Vector, ...]:
    """Directions of the sides of the parallelepiped tile with the least communication.

    normal: a row of H that is given, across which tiles stay on one processor (P0, eq. 2); its side comes last, and
    the other n - 1 rows are the best for it. Raises RefusedError for dependences no tile respects, for some that do not
    span all dimensions, and for a normal against a dependence.
    """
    normals = _legal_normals(dependences)
    n = len(normals[0])
    total = [sum(component) for component in zip(*dependences, strict=True)]
    sums = {row: dot(row, total) for row in normals}
    given = [] if normal is None else [_given_row(normal, dependences, n)]
    best: tuple[Fraction, Matrix] | None = None
    for rows in itertools.combinations(normals, n - len(given)):
        candidate = tuple(tuple(Fraction(x) for x in row) for row in (*rows, *given))
        value = abs(determinant(candidate)) / math.prod(sums[row] for row in rows)
        if value and (best is None or value > best[0]):
            best = value, candidate
    assert best is not None  # n independent normals exist, and n - 1 of them complete any row
    sides = inverse(best[1])
    assert sides is not None
    return tuple(_primitive(column) for column in zip(*sides, strict=True))


def _given_row(normal: Sequence[int], dependences: Sequence[Sequence[int]], n: int) -> Vector:
    if len(normal) != n or not any(normal):
        raise RefusedError(f"normal {as_text(normal)} of the mapping dimension: expected {n} components, not all zero.")
    for dependence in dependences:
        if dot(normal, dependence) < 0:
            raise RefusedError(
                f"normal {as_text(normal)} of the mapping dimension: dependence {as_text(dependence)} points backwards across "
                "it, expected hd >= 0. Take a sum of the normals of the dependence cone's facets."
            )
    return tuple(normal)


# -- lengths -----------------------------------------------------------------------------------------------------------


def best_sides(
    volume: float, costs: Sequence[float | Fraction], lower: Sequence[float], upper: Sequence[float]
) -> tuple[float, ...]:
    """Real sides with this product that minimise the sum of cost / side within bounds (Lagrange).

    side_i = cost_i * t, clamped to its bounds, with t such that the product is right. Sides that cost nothing are as
    short as they may be, and grow, all by one factor (a choice), only when the others are at their upper bounds.
    Raises RefusedError where the bounds leave no room for the volume.
    """
    _check_bounds(volume, lower, upper)
    free = [k for k, cost in enumerate(costs) if not cost]
    dear = [k for k, cost in enumerate(costs) if cost]
    sides = [float(x) for x in lower]
    available = volume / math.prod(sides[k] for k in free)
    most = math.prod(upper[k] for k in dear)
    weights = [float(costs[k]) for k in dear]
    if available < most:
        found = _proportional(available, weights, [lower[k] for k in dear], [upper[k] for k in dear])
    else:
        found = [float(upper[k]) for k in dear]
        rest = volume / most
        grown = _proportional(rest, [sides[k] for k in free], [lower[k] for k in free], [upper[k] for k in free])
        for k, side in zip(free, grown, strict=True):
            sides[k] = side
    for k, side in zip(dear, found, strict=True):
        sides[k] = side
    return tuple(sides)


def _proportional(
    product: float, weights: Sequence[float], lower: Sequence[float], upper: Sequence[float]
) -> list[float]:
    """t * weights, clamped, with this product: between two neighbouring clamping points the sides that move are known."""

    def clamped(t: float) -> list[float]:
        return [min(max(t * w, low), high) for w, low, high in zip(weights, lower, upper, strict=True)]

    points = sorted({bound / w for w, *bounds in zip(weights, lower, upper, strict=True) for bound in bounds})
    # The first t at which the product is reached lies in the stretch that ends at this point.
    last = next((t for t in points if math.prod(clamped(t)) >= product), math.inf)
    first = max((t for t in points if t < last), default=0.0)
    moving = [k for k, w in enumerate(weights) if lower[k] / w <= first and upper[k] / w >= last]
    if not moving:
        return clamped(last)
    still = math.prod(side for k, side in enumerate(clamped(first)) if k not in moving)
    t = (product / still / math.prod(weights[k] for k in moving)) ** (1 / len(moving))
    return clamped(t)


def whole_sides(
    volume: float, costs: Sequence[float | Fraction], lower: Sequence[int], upper: Sequence[float]
) -> tuple[int, ...]:
    """Whole sides with a product of at most ``volume`` that minimise the sum of cost / side within bounds.

    Found by branch and bound on the real optimum, so proved best. Sides that cost nothing are as short as they
    may be, then fill what volume is left, the last first (a choice). Raises RefusedError as best_sides does.
    """
    volume = min(volume, math.prod(upper))
    _check_bounds(volume, lower, upper)
    dear = [k for k, cost in enumerate(costs) if cost]
    sides = list(lower)
    room = Fraction(volume) / math.prod(low for k, low in enumerate(lower) if k not in dear)
    search = _Search([float(costs[k]) for k in dear], [lower[k] for k in dear], [upper[k] for k in dear])
    for k, side in zip(dear, search.best(room), strict=True):
        sides[k] = side
    for k in reversed(range(len(sides))):
        if k not in dear:
            others = math.prod(side for i, side in enumerate(sides) if i != k)
            sides[k] = int(min(upper[k], Fraction(volume) // others))
    return tuple(sides)


@dataclass(frozen=True)
class _Search:
    """Branch and bound: side by side, outwards from the real optimum, whose value bounds what a branch can reach."""

    costs: list[float]
    lower: list[int]
    upper: list[float]

    def best(self, room: Fraction) -> tuple[int, ...]:
        return self._from(0, room, math.inf)[1]

    def _from(self, k: int, room: Fraction, limit: float) -> tuple[float, tuple[int, ...]]:
        """The least cost below ``limit`` of the sides from k on, and these sides; the limit and () if there is none."""
        if k == len(self.costs):
            return 0.0, ()
        if k == len(self.costs) - 1:
            side = int(min(self.upper[k], room // 1))
            return self.costs[k] / side, (side,)
        middle = int(self._real(k, room)[0])
        best: tuple[float, tuple[int, ...]] = limit, ()
        for candidates in (range(middle, self.lower[k] - 1, -1), itertools.count(middle + 1)):
            for side in candidates:
                rest = room / side
                if side > self.upper[k] or rest < math.prod(self.lower[k + 1 :]):
                    break
                own = self.costs[k] / side
                if own + self._bound(k + 1, rest) >= best[0]:
                    break  # the bound is convex in this side: further out it only grows
                cost, sides = self._from(k + 1, rest, best[0] - own)
                if sides and own + cost < best[0]:
                    best = own + cost, (side, *sides)
        return best

    def _real(self, k: int, room: Fraction) -> tuple[float, ...]:
        volume = min(float(room), math.prod(self.upper[k:]))
        return best_sides(volume, self.costs[k:], self.lower[k:], self.upper[k:])

    def _bound(self, k: int, room: Fraction) -> float:
        return sum(cost / side for cost, side in zip(self.costs[k:], self._real(k, room), strict=True))


def _check_bounds(volume: float, lower: Sequence[float], upper: Sequence[float]) -> None:
    if any(not 0 < low <= high for low, high in zip(lower, upper, strict=True)):
        raise RefusedError(
            f"sides of a tile from {_bounds_as_text(lower)} to {_bounds_as_text(upper)}: expected 0 < lower bound <= upper bound "
            "for each. Dependences must be shorter than the iteration space."
        )
    least, most = math.prod(lower), math.prod(upper)
    # The product of bounds that were rounded may miss the volume by a rounding.
    if not (math.isfinite(volume) and least * (1 - 1e-12) <= volume <= most * (1 + 1e-12)):
        raise RefusedError(
            f"no tile of volume {float(volume):g} has sides from {_bounds_as_text(lower)} to {_bounds_as_text(upper)}: expected "
            f"a finite volume from {float(least):g} to {float(most):g}. Choose one of these, or other bounds."
        )


# -- shapes ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    """A tile: side i is ``sides[i]`` times ``rays[i]``; ``costs[i]``, in the same order, are c of the module's text."""

    rays: tuple[Vector, ...]
    sides: tuple[float, ...]
    costs: tuple[Fraction, ...]

    @property
    def volume(self) -> float:
        """V_comp, points."""
        return float(abs(determinant(self.rays))) * math.prod(self.sides)

    @property
    def communication(self) -> float:
        """V_comm by P0's eq. 1, or eq. 2 where a mapping dimension was given: points sent a tile."""
        return self.volume * sum(float(cost) / side for cost, side in zip(self.costs, self.sides, strict=True))

    @cached_property
    def supernode(self) -> Supernode:
        """The transformation: exact for whole sides, else for sides as near as floating point numbers are."""
        return Supernode.of_sides(
            [
                [Fraction(side) * ray[i] for ray, side in zip(self.rays, self.sides, strict=True)]
                for i in range(len(self.rays))
            ]
        )


def best_shape(
    volume: float,
    dependences: Sequence[Sequence[int]],
    rays: Sequence[Vector] | None = None,
    mapping: int | None = None,
    lower: Sequence[int] | None = None,
    upper: Sequence[float] | None = None,
    whole: bool = False,
) -> Shape:
    """The tile of this volume (points) with the least V_comm among those with sides along ``rays`` (default: the loops).

    mapping: the side along which tiles stay on one processor (P0, eq. 2). lower, upper: bounds of the sides, as
    multiples of the rays; sides are never so short that a dependence is longer (|HD| < 1), the default of ``lower``.
    whole: sides are whole numbers and the volume is an upper bound. With rays from best_rays, P is then integral.
    Raises RefusedError where the tiling is illegal or no tile of the volume keeps the bounds.
    """
    check_vectors(dependences)
    rays = unit_rays(len(dependences[0])) if rays is None else tuple(rays)
    directions = Supernode.of_sides(list(zip(*rational_matrix(rays, "rays"), strict=True)))
    directions.check_legal(dependences)
    if mapping is not None and not 0 <= mapping < len(rays):
        raise RefusedError(
            f"mapping dimension {mapping}: expected 0 to {len(rays) - 1}, one of the tile's sides, or None."
        )
    for bounds in (lower, upper):
        if bounds is not None and len(bounds) != len(rays):
            raise RefusedError(
                f"bounds {_bounds_as_text(bounds)} of the sides: expected {len(rays)} of them, one for every side."
            )
    shares = list(zip(*(directions.shares(d) for d in dependences), strict=True))
    costs = tuple(Fraction(0) if i == mapping else sum(row, Fraction(0)) for i, row in enumerate(shares))
    contained = [math.floor(max(row)) + 1 for row in shares]
    least = contained if lower is None else [max(a, b) for a, b in zip(contained, lower, strict=True)]
    most = [math.inf] * len(rays) if upper is None else list(upper)
    multiples = volume / float(directions.computation)
    found = (whole_sides if whole else best_sides)(multiples, costs, least, most)
    return Shape(rays, tuple(found), costs)


def _list_as_text(vectors: Sequence[Sequence[int]]) -> str:
    return ", ".join(as_text(vector) for vector in vectors) or "(none)"


def _bounds_as_text(bounds: Sequence[float]) -> str:
    return f"[{', '.join(f'{float(x):g}' for x in bounds)}]"
