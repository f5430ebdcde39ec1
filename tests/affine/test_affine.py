"""Affine forms mean what they are worth, whatever their names are worth."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

from lapwing.affine.affine import Affine

NAMES = ("a", "b'", "u.shape[0] + 1")
SIDE = range(-3, 4)


def form(generator: random.Random, names: tuple[str, ...] = NAMES) -> Affine:
    return sum((Affine.of(name) * generator.randint(-2, 2) for name in names), Affine(generator.randint(-4, 4)))


def worlds(names: tuple[str, ...] = NAMES) -> Iterator[dict[str, int]]:
    return (dict(zip(names, point, strict=True)) for point in itertools.product(SIDE, repeat=len(names)))


def test_arithmetic_is_that_of_the_values() -> None:
    generator = random.Random(1)
    for _ in range(50):
        one, other, factor = form(generator), form(generator), generator.randint(-3, 3)
        part = {"a": other, "b'": Affine(factor)}
        for values in itertools.islice(worlds(), 0, None, 29):
            a, b = one.evaluate(values), other.evaluate(values)
            assert (one + other).evaluate(values) == a + b
            assert (one - other).evaluate(values) == a - b
            assert (one - factor).evaluate(values) == a - factor
            assert (-one).evaluate(values) == -a
            assert (one * factor).evaluate(values) == a * factor
            assert one.substitute(part).evaluate(values) == one.evaluate({**values, "a": b, "b'": factor})
            assert one.substitute(values) == Affine(a)


def test_equal_forms_are_one() -> None:
    assert Affine.of("a") - Affine.of("a") == Affine()
    assert Affine.of("a") * 0 == Affine(0)
    assert len({Affine.of("b") + Affine.of("a"), Affine.of("a") + Affine.of("b")}) == 1
    assert Affine.of("a").is_name
    assert not (Affine.of("a") + 1).is_name
    assert not (Affine.of("a") * 2).is_name
