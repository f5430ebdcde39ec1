"""The supernode (tile) transformation of P0, section 2.3, in exact rational arithmetic, for any number of loops.

H is an n x n matrix of rationals: row i is perpendicular to one family of hyperplanes that cut the iteration space.
P = H^-1 holds the sides of a tile as columns. Dependences come as vectors: the columns of the dependence matrix D.
Everything is exact. Sets of points and tiles are isl sets, so that what is said about them needs no enumeration.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from numbers import Integral, Rational

from lapwing.affine.affine import Affine
from lapwing.affine.integer_sets import Map, Set, Space, all_points, related
from lapwing.errors import RefusedError
from lapwing.loopnest.dependences import Vector
from lapwing.tiling.partition import Range

Row = tuple[Fraction, ...]
Matrix = tuple[Row, ...]


# -- rational matrices -------------------------------------------------------------------------------------------------


def rational_matrix(rows: Sequence[Sequence[Rational | int]], name: str) -> Matrix:
    """The rows as fractions. Raises RefusedError, calling the matrix ``name``, unless it is square and rational."""
    n = len(rows)
    lengths = [len(row) for row in rows]
    if n == 0 or lengths != [n] * n:
        raise RefusedError(
            f"{name} has {n} rows of lengths {lengths}: expected a square matrix, one row and one column for every loop. "
            f"Give {name} as many rows and columns as the nest has loops."
        )
    return tuple(tuple(_fraction(entry, name, i, k) for k, entry in enumerate(row)) for i, row in enumerate(rows))


def _fraction(entry: object, name: str, i: int, k: int) -> Fraction:
    if not isinstance(entry, Rational):
        raise RefusedError(
            f"{name}[{i}][{k}] is {entry!r}: expected a whole number or a fraction, since tiles are exact. "
            "Write it as fractions.Fraction(numerator, denominator)."
        )
    # NumPy's integers are rational numbers, too, but their products overflow.
    return Fraction(int(entry.numerator), int(entry.denominator))


def reduced_rows(rows: Sequence[Sequence[Fraction | int]], columns: int) -> tuple[list[list[Fraction]], list[int]]:
    """The reduced row echelon form without its zero rows, and the columns of the pivots among the first ``columns``."""
    work = [[Fraction(x) for x in row] for row in rows]
    pivots: list[int] = []
    for column in range(columns):
        rank = len(pivots)
        found = next((i for i in range(rank, len(work)) if work[i][column]), None)
        if found is None:
            continue
        work[rank], work[found] = work[found], work[rank]
        head = work[rank][column]
        work[rank] = [x / head for x in work[rank]]
        for i, row in enumerate(work):
            if i != rank and row[column]:
                work[i] = [x - row[column] * y for x, y in zip(row, work[rank], strict=True)]
        pivots.append(column)
    return work[: len(pivots)], pivots


def determinant(matrix: Sequence[Sequence[Fraction | int]]) -> Fraction:
    """By Gaussian elimination."""
    work = [[Fraction(x) for x in row] for row in matrix]
    result = Fraction(1)
    while work:
        found = next((i for i, row in enumerate(work) if row[0]), None)
        if found is None:
            return Fraction(0)
        head = work.pop(found)
        result *= head[0] * (-1) ** found
        work = [[x - row[0] / head[0] * y for x, y in zip(row[1:], head[1:], strict=True)] for row in work]
    return result


def inverse(matrix: Matrix) -> Matrix | None:
    """The inverse, None for a singular matrix."""
    n = len(matrix)
    widened = [[*row, *(Fraction(i == k) for k in range(n))] for i, row in enumerate(matrix)]
    rows, pivots = reduced_rows(widened, n)
    return tuple(tuple(row[n:]) for row in rows) if len(pivots) == n else None


def dot(a: Sequence[Fraction | int], b: Sequence[Fraction | int]) -> Fraction:
    return sum((Fraction(x) * y for x, y in zip(a, b, strict=True)), Fraction(0))


def check_vectors(dependences: Sequence[Sequence[int]]) -> None:
    """Raise RefusedError unless there are dependences, all of one length and of whole numbers."""
    if not dependences:
        raise RefusedError(
            "no dependences are given: expected at least one. Without any, nothing is sent: tile as you like."
        )
    for dependence in dependences:
        if len(dependence) != len(dependences[0]) or not all(isinstance(x, Integral) for x in dependence):
            raise RefusedError(
                f"dependence {as_text(dependence)}: expected {len(dependences[0])} whole numbers, one for every loop, as the "
                f"first dependence has."
            )


def as_text(numbers: Sequence[Fraction | int]) -> str:
    """[1, -1/2]: a vector as messages show it."""
    return f"[{', '.join(str(x) for x in numbers)}]"


# -- the transformation ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Supernode:
    """A supernode transformation, given by H: rows of rationals (whole numbers or fractions).

    Raises RefusedError for an H that is not square, not rational or singular.
    """

    H: Matrix

    def __post_init__(self) -> None:
        rows = rational_matrix(self.H, "H")
        object.__setattr__(self, "H", rows)
        if inverse(rows) is None:
            raise RefusedError(
                f"H = {_rows_as_text(rows)} is singular: its rows are not linearly independent, so its hyperplanes enclose no "
                "tile. Expected n independent rows: replace one that is a combination of the others."
            )

    @classmethod
    def of_sides(cls, P: Sequence[Sequence[Rational | int]]) -> Supernode:
        """From P, whose columns are the sides of a tile. Raises RefusedError as Supernode does."""
        sides = rational_matrix(P, "P")
        rows = inverse(sides)
        if rows is None:
            raise RefusedError(
                f"P = {_rows_as_text(sides)} is singular: the sides (its columns) are not linearly independent, so a tile has "
                "no volume. Expected n independent sides: replace one that is a combination of the others."
            )
        return cls(rows)

    @classmethod
    def rectangular(cls, sides: Sequence[Rational | int]) -> Supernode:
        """Tiles with these extents along the loops: H = diag(1/sides). Raises RefusedError for a side <= 0."""
        for k, side in enumerate(sides):
            if not isinstance(side, Rational) or side <= 0:
                raise RefusedError(f"side {k} of a tile is {side!r}: expected a whole number or a fraction, above 0.")
        n = len(sides)
        return cls.of_sides([[side if i == k else 0 for k in range(n)] for i, side in enumerate(sides)])

    @property
    def loops(self) -> int:
        """n, the number of loops."""
        return len(self.H)

    @cached_property
    def P(self) -> Matrix:
        """The sides of a tile, as columns: H^-1 (P0, section 2.3)."""
        found = inverse(self.H)
        assert found is not None  # a singular H has been refused
        return found

    @property
    def is_integral(self) -> bool:
        """Whether P is integral: then every tile is the first one moved, with the same points."""
        return all(x.denominator == 1 for row in self.P for x in row)

    def tile_of(self, point: Sequence[int]) -> Vector:
        """The tile that holds an iteration: floor(Hj) (P0, section 2.3)."""
        self._check_vector("iteration", point)
        return tuple(math.floor(dot(row, point)) for row in self.H)

    def transform(self, point: Sequence[int]) -> tuple[Vector, Row]:
        """r(j) of P0, section 2.3: the tile, floor(Hj), and the place in it, j - P floor(Hj).

        The place is relative to the tile's origin, which is no iteration where P is not integral.
        """
        tile = self.tile_of(point)
        return tile, tuple(x - dot(row, tile) for x, row in zip(point, self.P, strict=True))

    # -- dependences

    def shares(self, dependence: Sequence[int]) -> Row:
        """Hd: what share of a tile's extent, in every direction, the dependence covers."""
        self._check_vector("dependence", dependence)
        return tuple(dot(row, dependence) for row in self.H)

    def check_legal(self, dependences: Sequence[Sequence[int]]) -> None:
        """Raise RefusedError unless HD >= 0 (P0, section 2.3), naming the dependence and the row of H."""
        for dependence in dependences:
            for i, share in enumerate(self.shares(dependence)):
                if share < 0:
                    raise RefusedError(
                        f"the tiling is illegal: dependence {as_text(dependence)} points backwards across row {i} of H, "
                        f"{as_text(self.H[i])}: their product is {share}, expected >= 0 (HD >= 0), or tiles would wait for "
                        "each other in a circle. Skew that row, or take the normals of the dependence cone's facets as rows."
                    )

    def check_contained(self, dependences: Sequence[Sequence[int]]) -> None:
        """Raise RefusedError unless |HD| < 1 (P0, section 2.3), so that tiles depend on nearest neighbours only."""
        for dependence in dependences:
            for i, share in enumerate(self.shares(dependence)):
                if abs(share) >= 1:
                    raise RefusedError(
                        f"tiles are too small: dependence {as_text(dependence)} covers {abs(share)} of a tile across row {i} of "
                        f"H, {as_text(self.H[i])}; expected less than 1 (|HD| < 1). Make tiles longer across that row."
                    )

    def contains(self, dependences: Sequence[Sequence[int]]) -> bool:
        """Whether |HD| < 1: no dependence is longer than a tile."""
        return all(abs(share) < 1 for dependence in dependences for share in self.shares(dependence))

    def tile_dependences(self, dependences: Sequence[Sequence[int]]) -> tuple[Vector, ...]:
        """D^S of P0, section 2.3: floor(H(j0 + d)) for every dependence d and point j0 of the first tile; sorted.

        The zero vector, a dependence inside a tile, is left out. Where P is not integral the tiles differ, and the first
        does not speak for them: then these are the differences floor(H(j + d)) - floor(Hj) over all integer points j, so
        that every dependence between any two tiles is among them. Raises RefusedError where HD < 0.
        """
        self.check_legal(dependences)
        found: set[Vector] = set()
        for dependence in dependences:
            moved = _shift(dependence)
            between = self.map.reverse().apply_range(moved).apply_range(self.map).deltas()
            # floor(x + s) - floor(x) is floor(s) or ceil(s): isl has a few points to look for instead of a set to enumerate.
            rounded = [sorted({math.floor(share), math.ceil(share)}) for share in self.shares(dependence)]
            found.update(v for v in itertools.product(*rounded) if not between.intersect(_point(v)).is_empty())
        return tuple(sorted(vector for vector in found if any(vector)))

    # -- volumes

    @cached_property
    def computation(self) -> Fraction:
        """V_comp = |det P|, points a tile (P0, section 2.4): of every tile if P is integral, else on average."""
        return abs(determinant(self.P))

    def communication(self, dependences: Sequence[Sequence[int]], mapping: int | None = None) -> Fraction:
        """V_comm, the number of times dependences cross a boundary of a tile on their way out (P0, eq. 1).

        mapping: the row of H across which tiles stay on one processor, so that nothing is sent (P0, eq. 2). A
        dependence that leaves across several boundaries at once counts for each, as in P0; the count is exact where P
        is integral, else a tile's average. Raises RefusedError where HD < 0, or for a mapping that is no row.
        """
        self.check_legal(dependences)
        if mapping is not None and not 0 <= mapping < self.loops:
            raise RefusedError(f"mapping dimension {mapping}: expected 0 to {self.loops - 1}, a row of H, or None.")
        crossings = Fraction(0)
        for dependence in dependences:
            shares = self.shares(dependence)
            crossings += sum(share for i, share in enumerate(shares) if i != mapping)
        return self.computation * crossings

    # -- isl

    @cached_property
    def map(self) -> Map:
        """{ j -> floor(Hj) } over all integer points, as an isl map."""
        points, tiles = _names("j", self.loops), _names("s", self.loops)
        remainders = []
        for tile, row in zip(tiles, self.H, strict=True):
            scale = math.lcm(*(x.denominator for x in row))
            product = sum((Affine.of(j) * int(scale * x) for j, x in zip(points, row, strict=True)), Affine())
            remainder = product - Affine.of(tile) * scale
            remainders += [remainder, -remainder + (scale - 1)]
        return related(Space((), [*points, *tiles]).where_nonnegative(remainders), self.loops)

    def _check_vector(self, what: str, vector: Sequence[int]) -> None:
        if len(vector) != self.loops:
            raise RefusedError(
                f"{what} {as_text(vector)} has {len(vector)} components, H has {self.loops} rows: expected as many of one as of "
                "the other, one for every loop."
            )
        if not all(isinstance(x, Integral) for x in vector):
            raise RefusedError(f"{what} {as_text(vector)}: expected whole numbers, since iterations are counted.")


# -- the tile space ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TileSpace:
    """J^S of P0, section 2.3: the tiles of an iteration space, which is a bounded isl set without parameters.

    Raises RefusedError for a set that is not bounded or has another number of dimensions than H.
    """

    supernode: Supernode
    points: Set

    def __post_init__(self) -> None:
        dimensions, n = self.points.n_dim(), self.supernode.loops
        if dimensions != n:
            raise RefusedError(
                f"the iteration space {self.points} has {dimensions} dimensions, H has {n} rows: expected as many of one as of "
                "the other, one for every loop."
            )
        if self.points.n_param() or not self.points.is_bounded():
            raise RefusedError(
                f"the iteration space {self.points} is not bounded: expected finitely many points. Give every loop a bound "
                "and every parameter its value."
            )
        # Names in the space would keep it from meeting the map, whose spaces have none.
        object.__setattr__(self, "points", self.points.reset_tuple_id())

    @classmethod
    def of_box(cls, supernode: Supernode, ranges: Sequence[Range]) -> TileSpace:
        """Of a rectangular iteration space, one half-open range a loop."""
        names = _names("j", len(ranges))
        inside = [
            side
            for j, (low, high) in zip(map(Affine.of, names), ranges, strict=True)
            for side in (j - low, -j + (high - 1))
        ]
        return cls(supernode, Space((), names).where_nonnegative(inside))

    @cached_property
    def tiles(self) -> Set:
        """The coordinates of all tiles that hold a point."""
        return self.points.apply(self.supernode.map)

    @cached_property
    def partial(self) -> Set:
        """Tiles some of whose integer points lie outside the iteration space."""
        return self.points.complement().apply(self.supernode.map).intersect(self.tiles)

    @cached_property
    def full(self) -> Set:
        """Tiles all of whose integer points lie in the iteration space."""
        return self.tiles.subtract(self.partial)

    @cached_property
    def bounds(self) -> tuple[Range, ...]:
        """The least box around the tiles: one half-open range a dimension; (0, 0) for an empty iteration space."""
        if self.tiles.is_empty():
            return ((0, 0),) * self.supernode.loops
        return tuple(
            (self.tiles.dim_min_val(k).to_python(), self.tiles.dim_max_val(k).to_python() + 1)
            for k in range(self.supernode.loops)
        )

    def points_of(self, tile: Sequence[int]) -> Set:
        """The iterations of one tile: an empty set where there is no such tile."""
        return _point(tile).apply(self.supernode.map.reverse()).intersect(self.points)

    def tile_coordinates(self) -> tuple[Vector, ...]:
        """All tiles, sorted: an enumeration, for spaces of few tiles."""
        return tuple(sorted(all_points(self.tiles)))

    def iterations_of(self, tile: Sequence[int]) -> tuple[Vector, ...]:
        """The iterations of one tile in the loops' order: an enumeration, for small tiles."""
        return tuple(sorted(all_points(self.points_of(tile))))


def _names(letter: str, n: int) -> list[str]:
    return [f"{letter}{k}" for k in range(n)]


def _shift(vector: Sequence[int]) -> Map:
    names = _names("j", len(vector))
    space = Space((), names)
    moved = [Affine.of(name) + int(x) for name, x in zip(names, vector, strict=True)]
    return space.map(space.where(()), moved)


def _point(vector: Sequence[int]) -> Set:
    names = _names("j", len(vector))
    return Space((), names).where(
        [(tuple((Affine.of(name) - int(x), "=") for name, x in zip(names, vector, strict=True)),)]
    )


def _rows_as_text(matrix: Matrix) -> str:
    return f"[{', '.join(as_text(row) for row in matrix)}]"
