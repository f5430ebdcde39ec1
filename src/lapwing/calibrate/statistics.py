"""Robust figures from noisy measurements: medians with 95 % intervals, and how noisy the machine was."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lapwing.machine.machine import Quantity

_CONFIDENCE = 0.95
_INTERRUPTED = 1.5


def median_quantity(samples: Sequence[float] | npt.NDArray[np.float64], source: str = "") -> Quantity:
    """The median with an interval that holds the true median with a probability of 95 % or more, whatever the
    distribution: the ends are order statistics. Fewer than six samples cannot tell that much: then all of them.

    Raises ValueError where there are none.
    """
    values = np.sort(np.asarray(samples, np.float64))
    if len(values) == 0:
        raise ValueError("no samples")
    rank = _lower_rank(len(values))
    return Quantity(float(np.median(values)), float(values[rank]), float(values[len(values) - 1 - rank]), source)


def _lower_rank(count: int) -> int:
    """The largest k with P(fewer than k + 1 of ``count`` fair coins show heads) <= 2.5 %; 0 where there is none."""
    tail, rank = 0.0, 0
    for k in range(count // 2):
        tail += math.comb(count, k) / 2**count
        if tail > (1 - _CONFIDENCE) / 2:
            break
        rank = k
    return rank


def relative_noise(rounds: Sequence[float] | npt.NDArray[np.float64]) -> float:
    """Half the width of the middle half of repeated measurements, relative to their median."""
    values = np.asarray(rounds, np.float64)
    if len(values) < 2:
        return 0.0
    low, middle, high = np.percentile(values, [25, 50, 75])
    return float((high - low) / (2 * middle)) if middle > 0 else 0.0


def typical(seconds: Sequence[float] | npt.NDArray[np.float64]) -> float:
    """The mean of repeated steps without those that something else interrupted: up to a quarter, of those that took half as
    long again as the median. (A median alone would not do: messages may come two at a time.)"""
    values = np.sort(np.asarray(seconds, np.float64))
    if len(values) == 0:
        return 0.0
    interrupted = int(np.sum(values > _INTERRUPTED * np.median(values)))
    return float(np.mean(values[: len(values) - min(interrupted, len(values) // 4)]))
