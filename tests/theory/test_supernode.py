"""Supernode transformations and shapes: the papers' examples, cases worked out by hand, and what is refused."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from fractions import Fraction as F

import islpy as isl
import numpy as np
import pytest

from lapwing.errors import RefusedError
from lapwing.theory.shapes import best_rays, best_shape, best_sides, extreme_rays, facet_normals, whole_sides
from lapwing.theory.supernode import Supernode, TileSpace, determinant, inverse

UNIT = ((1, 0, 0), (0, 1, 0), (0, 0, 1))  # P0's test loop
SKEWED = Supernode.of_sides([[2, 1], [0, 3]])  # sides (2, 0) and (1, 3)

# -- matrices ----------------------------------------------------------------------------------------------------------


def test_inverse_and_determinant_are_exact() -> None:
    hilbert = tuple(tuple(F(1, i + k + 1) for k in range(5)) for i in range(5))
    found = inverse(hilbert)
    assert found is not None
    assert determinant(hilbert) == F(1, 266716800000)
    assert [found[0][0], found[0][1], found[4][4]] == [25, -300, 44100]
    assert determinant([[0, 1], [1, 0]]) == -1
    assert inverse(((F(1), F(2)), (F(2), F(4)))) is None


# -- the transformation ------------------------------------------------------------------------------------------------


def test_rectangular_tiles() -> None:
    supernode = Supernode.rectangular((4, 4, 16))
    assert list(supernode.H) == [(F(1, 4), 0, 0), (0, F(1, 4), 0), (0, 0, F(1, 16))]
    assert supernode.transform((5, -1, 40)) == ((1, -1, 2), (1, 3, 8))
    assert supernode.computation == 256
    assert supernode.is_integral
    assert supernode.tile_dependences(UNIT) == ((0, 0, 1), (0, 1, 0), (1, 0, 0))
    # P0, eq. 1: two faces of 4 x 16 points and one of 4 x 4; eq. 2: those of 4 x 16.
    assert supernode.communication(UNIT) == 144
    assert supernode.communication(UNIT, mapping=2) == 128


def test_oblique_tiles() -> None:
    assert list(SKEWED.H) == [(F(1, 2), F(-1, 6)), (0, F(1, 3))]
    assert SKEWED.P == ((2, 1), (0, 3))
    assert SKEWED.transform((5, 7)) == ((1, 2), (1, 1))
    assert SKEWED.computation == 6
    assert SKEWED.shares((1, 3)) == (0, 1)
    assert Supernode(SKEWED.H) == SKEWED


def test_diagonal_neighbours_are_tile_dependences() -> None:
    assert Supernode.rectangular((3, 3)).tile_dependences([(1, 2)]) == ((0, 1), (1, 0), (1, 1))
    # A dependence longer than a tile reaches past the nearest neighbour.
    assert Supernode.rectangular((2, 2)).tile_dependences([(0, 3)]) == ((0, 1), (0, 2))
    assert Supernode.rectangular((2, 2)).tile_dependences([(0, 4)]) == ((0, 2),)


def test_tiles_that_differ() -> None:
    """Sides of 5/2: tiles of two and three points in turn. The first holds 0, 1, 2; the second 3, 4."""
    supernode = Supernode.rectangular((F(5, 2),))
    assert not supernode.is_integral
    assert [supernode.tile_of((j,))[0] for j in range(6)] == [0, 0, 0, 1, 1, 2]
    assert supernode.computation == F(5, 2)
    assert supernode.transform((3,)) == ((1,), (F(1, 2),))
    assert supernode.tile_dependences([(3,)]) == ((1,), (2,))


def test_dependences_between_any_two_tiles_that_differ() -> None:
    """Sides of 5/3: tiles {0, 1}, {2, 3}, {4}. Two steps from the first lead to the second only, but from 3 past {4}."""
    supernode = Supernode.rectangular((F(5, 3),))
    assert [supernode.tile_of((j,))[0] for j in range(6)] == [0, 0, 1, 1, 2, 3]
    assert supernode.tile_dependences([(2,)]) == ((1,), (2,))


def test_whole_numbers_of_numpy_do_not_overflow() -> None:
    big = np.int64(4_000_000_000)
    supernode = Supernode.rectangular((big, big, big))
    assert supernode.computation == 64 * 10**27


def test_legality_and_containment() -> None:
    supernode = Supernode.rectangular((4, 4))
    supernode.check_legal([(1, 0), (3, 3)])
    supernode.check_contained([(1, 0), (3, 3), (-3, 1)])
    assert supernode.contains([(3, 3)])
    assert not supernode.contains([(4, 0)])
    Supernode(((F(1, 4), 0), (F(1, 4), F(1, 4)))).check_legal([(1, -1), (0, 1)])


# -- the tile space ----------------------------------------------------------------------------------------------------


def test_a_box_of_rectangular_tiles() -> None:
    space = TileSpace.of_box(Supernode.rectangular((4, 4, 512)), [(0, 16), (0, 16), (0, 16384)])
    assert space.bounds == ((0, 4), (0, 4), (0, 32))
    assert space.partial.is_empty()
    assert space.full.count_val().to_python() == 512


def test_partial_tiles_at_the_border() -> None:
    space = TileSpace.of_box(Supernode.rectangular((3, 4)), [(1, 10), (0, 6)])
    assert space.bounds == ((0, 4), (0, 2))
    assert space.full.is_equal(isl.Set("{ [i, 0] : 1 <= i <= 2 }"))
    assert space.partial.count_val().to_python() == 6
    assert space.iterations_of((0, 1)) == ((1, 4), (1, 5), (2, 4), (2, 5))
    assert space.iterations_of((7, 7)) == ()


def test_a_triangle() -> None:
    space = TileSpace(Supernode.rectangular((2, 2)), isl.Set("{ S[i, j] : 0 <= i < 5 and 0 <= j <= i }"))
    assert space.tile_coordinates() == ((0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2))
    assert space.full.is_equal(isl.Set("{ [1, 0] }"))
    assert sum(len(space.iterations_of(tile)) for tile in space.tile_coordinates()) == 15


def test_an_empty_iteration_space() -> None:
    space = TileSpace.of_box(SKEWED, [(0, 0), (0, 5)])
    assert space.bounds == ((0, 0), (0, 0))
    assert space.tile_coordinates() == ()
    assert space.full.is_empty()


# -- shapes ------------------------------------------------------------------------------------------------------------

SKEWED_SOR = [(0, 1), (1, -1), (1, 0)]  # lexicographically positive, but not rectangular
STENCIL_1D = [(1, -1), (1, 0), (1, 1)]  # three points in time
STENCIL_2D = [(1, 0, 0), (1, 1, 0), (1, -1, 0), (1, 0, 1), (1, 0, -1)]  # five points in time: a cone of four rays


def test_unit_dependences_want_cubes() -> None:
    """P0, section 5.4: with unitary dependences the optimal tiling is a rectangular one."""
    assert best_rays(UNIT) == UNIT
    shape = best_shape(1000, UNIT)
    assert shape.sides == pytest.approx((10, 10, 10))
    assert shape.communication == pytest.approx(300)
    assert best_shape(1000, UNIT, whole=True).sides == (10, 10, 10)


def test_sides_are_proportional_to_what_crosses_them() -> None:
    dependences = [(1, 0), (1, 1), (2, 0)]  # four points' worth across the first loop, one across the second
    shape = best_shape(400, dependences)
    assert shape.sides == pytest.approx((40, 10))
    assert shape.communication == pytest.approx(400 * (4 / 40 + 1 / 10))
    assert float(shape.supernode.communication(dependences)) == pytest.approx(shape.communication)


def test_the_mapping_dimension_is_left_out() -> None:
    """P0, eq. 2: tiles are as flat as dependences allow, unless the other sides are bounded, as by a grid of processors."""
    flat = best_shape(2048, UNIT, mapping=2)
    assert flat.sides == pytest.approx((math.sqrt(1024), math.sqrt(1024), 2))
    bounded = best_shape(2048, UNIT, mapping=2, upper=(4, 4, math.inf))
    assert bounded.sides == pytest.approx((4, 4, 128))
    assert bounded.communication == 2 * 4 * 128
    assert bounded.supernode.communication(UNIT, mapping=2) == bounded.communication


def test_rays_of_a_simplicial_cone_are_the_sides() -> None:
    assert facet_normals(STENCIL_1D) == ((1, 1), (1, -1))
    assert extreme_rays(STENCIL_1D) == best_rays(STENCIL_1D) == ((1, 1), (1, -1))
    assert set(best_rays(SKEWED_SOR)) == set(extreme_rays(SKEWED_SOR)) == {(0, 1), (1, -1)}
    assert best_rays([(3, 1), (1, 4), (4, 5)]) == ((3, 1), (1, 4))


def test_diamonds_of_the_stencil_in_time() -> None:
    """V = 2 a b for sides a (1, 1) and b (1, -1); the three dependences add up to (3, 0) = 3/2 of each."""
    shape = best_shape(1000, STENCIL_1D, best_rays(STENCIL_1D))
    assert shape.volume == pytest.approx(1000)
    assert shape.sides == pytest.approx((math.sqrt(500), math.sqrt(500)))
    assert shape.communication == pytest.approx(2 * math.sqrt(500) * 2 * 1.5)
    whole = best_shape(1000, STENCIL_1D, best_rays(STENCIL_1D), whole=True)
    assert whole.supernode.is_integral
    assert whole.supernode.communication(STENCIL_1D) == pytest.approx(whole.communication)
    whole.supernode.check_contained(STENCIL_1D)


def test_a_cone_with_more_rays_than_loops() -> None:
    assert extreme_rays(STENCIL_2D) == ((1, 1, 0), (1, 0, 1), (1, 0, -1), (1, -1, 0))
    assert facet_normals(STENCIL_2D) == ((1, 1, 1), (1, 1, -1), (1, -1, 1), (1, -1, -1))
    rays = best_rays(STENCIL_2D)
    # By symmetry all four choices of three normals are equal: |det| = 4, each normal's product with (5, 0, 0) is 5.
    shape = best_shape(1000, STENCIL_2D, rays)
    assert shape.communication == pytest.approx(3 * (1000**2 * 5**3 / 4) ** (1 / 3))
    shape.supernode.check_legal(STENCIL_2D)


def test_many_dependences_on_every_facet() -> None:
    """All neighbours of four dimensions one time step before: 81 vectors, and a cube's eight facets."""
    dependences = [(1, *neighbour) for neighbour in itertools.product((-1, 0, 1), repeat=4)]
    facets = [(1, *(sign * int(i == k) for i in range(4))) for k in range(4) for sign in (1, -1)]
    assert set(facet_normals(dependences)) == set(facets)
    assert set(extreme_rays(dependences)) == {(1, *corner) for corner in itertools.product((-1, 1), repeat=4)}


def test_a_cone_where_choices_differ() -> None:
    """Four normals of which some triples enclose less than others: the best is better than the first."""
    dependences = [(1, 0, 0), (1, 2, 0), (1, 0, 1), (1, 1, 1)]
    normals = facet_normals(dependences)
    assert len(normals) == 4
    total = [4, 3, 2]

    def value(rows: tuple[tuple[int, ...], ...]) -> float:
        return abs(determinant(rows)) / math.prod(sum(a * b for a, b in zip(row, total, strict=True)) for row in rows)

    values = sorted({value(normals[:k] + normals[k + 1 :]) for k in range(4)})
    assert values[0] < values[-1]
    chosen = best_shape(8000, dependences, best_rays(dependences))
    assert chosen.communication == pytest.approx(3 * (8000**2 / float(values[-1])) ** (1 / 3))


def test_a_given_row_comes_last() -> None:
    rays = best_rays(STENCIL_1D, normal=(1, 0))
    supernode = Supernode.of_sides(list(zip(*rays, strict=True)))
    assert supernode.H[-1][1] == 0
    supernode.check_legal(STENCIL_1D)
    assert best_rays(UNIT, normal=(0, 0, 1)) == UNIT


def test_one_loop() -> None:
    assert extreme_rays([(2,), (3,)]) == facet_normals([(2,)]) == ((1,),)
    assert best_shape(7, [(2,), (3,)], whole=True).sides == (7,)


def test_whole_sides_fill_the_volume() -> None:
    assert whole_sides(10, (1, 1), (1, 1), (100, 100)) == (3, 3)
    assert whole_sides(100, (1, 1, 0), (1, 1, 2), (100, 100, 100)) == (7, 7, 2)
    assert whole_sides(100, (1, 1, 0), (1, 1, 1), (4, 4, 100)) == (4, 4, 6)
    assert whole_sides(100, (0, 0), (2, 3), (10, 10)) == (10, 10)
    side = whole_sides(10**12, (1, 3, 7, 2), (1,) * 4, (math.inf,) * 4)  # huge volumes need no enumeration
    assert math.prod(side) <= 10**12
    assert best_sides(10, (1, 1), (1, 1), (2, 100)) == pytest.approx((2, 5))


# -- what is refused ---------------------------------------------------------------------------------------------------

BOX = [(0, 8), (0, 8)]
REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "singular H": (lambda: Supernode(((F(1), F(2)), (F(2), F(4)))), "H = [[1, 2], [2, 4]] is singular"),
    "singular P": (lambda: Supernode.of_sides([[1, 1], [1, 1]]), "P = [[1, 1], [1, 1]] is singular: the sides"),
    "not square": (lambda: Supernode(((F(1), F(2)),)), "H has 1 rows of lengths [2]: expected a square matrix"),
    "ragged": (lambda: Supernode.of_sides([[1, 2], [3]]), "P has 2 rows of lengths [2, 1]"),
    "empty": (lambda: Supernode(()), "H has 0 rows of lengths []"),
    "floating point": (
        lambda: Supernode(((0.25, 0), (0, 1))),  # type: ignore[arg-type]
        "H[0][0] is 0.25: expected a whole number or a fraction",
    ),
    "no side": (
        lambda: Supernode.rectangular((4, 0)),
        "side 1 of a tile is 0: expected a whole number or a fraction, above 0",
    ),
    "illegal": (
        lambda: Supernode.rectangular((4, 4)).check_legal([(1, 0), (1, -1)]),
        "dependence [1, -1] points backwards across row 1 of H, [0, 1/4]: their product is -1/4, expected >= 0 (HD >= 0)",
    ),
    "illegal tile dependences": (lambda: SKEWED.tile_dependences([(0, 1)]), "row 0 of H, [1/2, -1/6]"),
    "illegal communication": (lambda: SKEWED.communication([(0, 1)]), "row 0 of H, [1/2, -1/6]"),
    "too small": (
        lambda: Supernode.rectangular((4, 4)).check_contained([(1, 0), (1, 5)]),
        "dependence [1, 5] covers 5/4 of a tile across row 1 of H",
    ),
    "as long as a tile": (
        lambda: Supernode.rectangular((4, 4)).check_contained([(4, 0)]),
        "covers 1 of a tile across row 0",
    ),
    "length of a dependence": (
        lambda: SKEWED.check_legal([(1, 0, 0)]),
        "dependence [1, 0, 0] has 3 components, H has 2 rows",
    ),
    "length of an iteration": (lambda: SKEWED.tile_of((1,)), "iteration [1] has 1 components, H has 2 rows"),
    "half a dependence": (lambda: SKEWED.shares((1, 0.5)), "dependence [1, 0.5]: expected whole numbers"),  # type: ignore[arg-type]
    "no such row": (lambda: SKEWED.communication([(2, 3)], mapping=2), "mapping dimension 2: expected 0 to 1"),
    "dimensions of a space": (lambda: TileSpace.of_box(SKEWED, [*BOX, (0, 1)]), "has 3 dimensions, H has 2 rows"),
    "unbounded space": (lambda: TileSpace(SKEWED, isl.Set("{ [i, j] : i >= 0 }")), "is not bounded"),
    "space with a parameter": (
        lambda: TileSpace(SKEWED, isl.Set("[n] -> { [i, j] : 0 <= i, j < n }")),
        "is not bounded",
    ),
    "flat cone": (lambda: best_rays([(1, 0, 0), (0, 1, 0)]), "span 2 of 3 dimensions: expected all of them"),
    "line": (
        lambda: best_rays([(1, 0), (-1, 0), (0, 1)]),
        "no tiling is legal: the dependences [1, 0], [-1, 0], [0, 1]",
    ),
    "no dependences": (lambda: best_rays([]), "no dependences are given: expected at least one"),
    "ragged cone": (lambda: facet_normals([(1, 0), (1,)]), "dependence [1]: expected 2 whole numbers"),
    "no dependence at all": (lambda: extreme_rays([(0, 0)]), "span 0 of 2 dimensions"),
    "ragged dependences": (lambda: best_shape(9, [(1, 0), (1,)]), "dependence [1]: expected 2 whole numbers"),
    "normal against a dependence": (
        lambda: best_rays([(1, 0), (0, 1)], (1, -1)),
        "dependence [0, 1] points backwards across it",
    ),
    "normal of another length": (
        lambda: best_rays([(1, 0), (0, 1)], (1,)),
        "normal [1] of the mapping dimension: expected 2",
    ),
    "rays against a dependence": (
        lambda: best_shape(9, [(1, -1), (0, 1)]),
        "the tiling is illegal: dependence [1, -1]",
    ),
    "dependent rays": (lambda: best_shape(9, [(1, 0)], [(1, 0), (2, 0)]), "is singular: the sides"),
    "mapping": (lambda: best_shape(9, UNIT, mapping=3), "mapping dimension 3: expected 0 to 2"),
    "small volume": (
        lambda: best_shape(3, [(1, 0), (0, 2)]),
        "no tile of volume 3 has sides from [2, 3] to [inf, inf]",
    ),
    "large volume": (lambda: best_shape(99, [(1, 0), (0, 2)], upper=(5, 4)), "expected a finite volume from 6 to 20"),
    "endless volume": (lambda: best_shape(math.inf, UNIT), "no tile of volume inf"),
    "no volume": (lambda: best_shape(math.nan, UNIT, whole=True), "no tile of volume nan"),
    "ragged rays": (lambda: best_shape(9, [(1, 0)], [(1, 0), (2,)]), "rays has 2 rows of lengths [2, 1]"),
    "number of bounds": (lambda: best_shape(9, UNIT, upper=(4, 4)), "bounds [4, 4] of the sides: expected 3 of them"),
    "bounds": (lambda: best_shape(9, [(1, 0), (0, 2)], upper=(5, 2)), "expected 0 < lower bound <= upper bound"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises(RefusedError, match=re.escape(message)):
        call()
