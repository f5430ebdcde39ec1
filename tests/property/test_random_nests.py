"""Random nests on 1, 2, 3, 4 and 6 ranks, with random tiles, grids and all engines: the very bits of the plain loop.

LAPWING_EXAMPLES sets how many nests are run in all, LAPWING_SEED which ones.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from randomness import wanted
from starting import APART, DELAYS, PAIRS, Variant, run_worker

# Shares of the nests: many ranks on few cores take turns, so most nests are run on few. Whatever the number of ranks, every
# nest is run on one first.
SHARES = {1: 60, 2: 80, 3: 30, 4: 25, 6: 10}

VARIANTS = {
    "delays, 2 ranks": Variant(2, 500, DELAYS, 1),
    "delays, 4 ranks": Variant(4, 300, DELAYS, 2),
    "delays, 6 ranks": Variant(6, 160, DELAYS, 3),
    "no shared memory, 2 ranks": Variant(2, 360, APART, 4, 1),
    "no shared memory and delays, 3 ranks": Variant(3, 360, {**APART, **DELAYS}, 5, 1),
    "two nodes, 4 ranks": Variant(4, 240, PAIRS, 6, 2),
    "two nodes and delays, 4 ranks": Variant(4, 240, {**PAIRS, **DELAYS}, 7, 2),
}
EVERYDAY = ("two nodes and delays, 4 ranks",)
FEW = 2  # nests of each of these
ENOUGH = 40  # nests, for some of them to be skewed
SHORT, LONG = 16, 4000


def examples(total: int, ranks: int) -> int:
    return max(1, wanted(total) * SHARES[ranks] // sum(SHARES.values()))


def check(variant: Variant, directory: Path) -> None:
    report = run_worker("nest_worker.py", variant, directory)
    if report["complete"] and variant.nests >= ENOUGH:
        assert report.get("skewed", 0), "no nest was skewed"


@pytest.mark.mpi
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("ranks", [n if n == 3 else pytest.param(n, marks=pytest.mark.long) for n in SHARES])
def test_bits_of_the_plain_loop(ranks: int, tmp_path: Path) -> None:
    check(Variant(ranks, examples(SHORT, ranks)), tmp_path)


@pytest.mark.mpi
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", EVERYDAY)
def test_bits_otherwise(name: str, tmp_path: Path) -> None:
    check(replace(VARIANTS[name], nests=FEW), tmp_path)


@pytest.mark.mpi
@pytest.mark.long
@pytest.mark.timeout(14400)
@pytest.mark.parametrize("name", VARIANTS)
def test_bits_otherwise_at_length(name: str, tmp_path: Path) -> None:
    check(VARIANTS[name], tmp_path)


@pytest.mark.mpi
@pytest.mark.long
@pytest.mark.timeout(14400)
@pytest.mark.parametrize("ranks", SHARES)
def test_bits_of_the_plain_loop_at_length(ranks: int, tmp_path: Path) -> None:
    check(Variant(ranks, examples(LONG, ranks)), tmp_path)
