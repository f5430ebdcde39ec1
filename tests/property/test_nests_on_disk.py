"""Random nests on arrays on disk, on 1 to 6 ranks, streamed in any way: the very bits of the plain loop.

LAPWING_EXAMPLES sets how many nests are run in all, LAPWING_SEED which ones.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from randomness import wanted
from starting import DELAYS, Variant, run_worker

# Shares of the nests.
SHARES = {1: 40, 2: 40, 3: 30, 4: 20, 6: 10}
SHORT, LONG = 9, 3000
LEAST = 0.4  # of the runs that were tried come to their end; the others are refused, with a reason that is checked


def check(variant: Variant, directory: Path) -> None:
    report = run_worker("disk_worker.py", variant, directory)
    if not report["complete"]:
        return
    refused = {reason: count for reason, count in report.items() if reason.startswith("refused: ")}
    ran = report.get("collective runs", 0)
    assert ran >= LEAST * (ran + sum(refused.values())), f"{ran} runs, {refused}"
    assert ran >= variant.nests, f"{ran} runs, {refused}"


def examples(total: int, ranks: int) -> int:
    return max(1, wanted(total) * SHARES[ranks] // sum(SHARES.values()))


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [n if n == 3 else pytest.param(n, marks=pytest.mark.long) for n in SHARES])
def test_bits_of_the_plain_loop(ranks: int, tmp_path: Path) -> None:
    check(Variant(ranks, examples(SHORT, ranks), DELAYS), tmp_path)


@pytest.mark.mpi
@pytest.mark.long
@pytest.mark.timeout(14400)
@pytest.mark.parametrize("settings", [{}, DELAYS], ids=["", "delays"])
@pytest.mark.parametrize("ranks", SHARES)
def test_bits_of_the_plain_loop_at_length(ranks: int, settings: dict[str, str], tmp_path: Path) -> None:
    check(Variant(ranks, examples(LONG, ranks), settings, seed=len(settings)), tmp_path)
