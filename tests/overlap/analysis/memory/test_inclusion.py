"""The solver of inclusion constraints against the definition: rules applied one by one until nothing changes."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest
from randomness import seeds

from lapwing.overlap.analysis.memory.inclusion import UNKNOWN_NODE, Constraints

Rule = tuple[str, int, int]


def least_solution(count: int, rules: list[Rule]) -> list[set[int]]:
    sets: list[set[int]] = [set() for _ in range(count)]
    sets[UNKNOWN_NODE].add(UNKNOWN_NODE)

    def contents(node: int) -> set[int]:
        # What unknown code hands out is unknown; what it was given is for it alone.
        return {UNKNOWN_NODE} if node == UNKNOWN_NODE else sets[node]

    before = -1
    while before != sum(map(len, sets)):
        before = sum(map(len, sets))
        for kind, one, two in rules:
            if kind == "point":
                sets[one].add(two)
            elif kind == "copy":
                sets[one] |= contents(two)
            elif kind == "load":
                sets[one].update(*(contents(target) for target in sets[two]))
            else:
                for target in set(sets[one]):
                    sets[target] |= contents(two)
        for target in sets[UNKNOWN_NODE] - {UNKNOWN_NODE}:
            sets[target].add(UNKNOWN_NODE)
            sets[UNKNOWN_NODE] = sets[UNKNOWN_NODE] | sets[target]
    return sets


def random_rules(random: Random, count: int) -> list[Rule]:
    nodes = range(1, count)
    rules: list[Rule] = [("point", random.choice(nodes), random.choice(nodes)) for _ in range(count // 2)]
    rules += [("copy", random.choice(nodes), random.choice(nodes)) for _ in range(count)]
    rules += [(random.choice(("load", "store")), random.choice(nodes), random.choice(nodes)) for _ in range(count // 3)]
    if random.random() < 0.5:
        rules += [("copy", UNKNOWN_NODE, random.choice(nodes)), ("point", random.choice(nodes), UNKNOWN_NODE)]
    return rules


def check(seeds: Iterable[int]) -> None:
    for seed in seeds:
        random = Random(seed)
        count = random.randint(4, 30)
        rules = random_rules(random, count)
        constraints = Constraints()
        for _ in range(count - 1):
            constraints.node()
        for kind, one, two in rules:
            getattr(constraints, kind)(one, two)
        constraints.solve()
        expected = least_solution(count, rules)
        found = [constraints.targets(node) for node in range(count)]
        assert found == expected, seed
        for node in range(count):
            reached = set().union(*({UNKNOWN_NODE} if t == UNKNOWN_NODE else expected[t] for t in expected[node]))
            assert constraints.contents(expected[node]) == reached, seed


def test_random_constraints_have_their_least_solution() -> None:
    check(range(400))


@pytest.mark.long
def test_many_random_constraints_have_their_least_solution() -> None:
    check(seeds(10000))
