"""Which of many alike cases are tried every day; the long tests try all."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def everyday(cases: Iterable[Any], chosen: Collection[Any]) -> list[Any]:
    """All cases as parameters, and all but the chosen ones for the long tests."""
    cases = list(cases)
    strange = [case for case in chosen if case not in cases]
    assert not strange, f"no such case: {strange}"
    return [case if case in chosen else pytest.param(case, marks=pytest.mark.long) for case in cases]


def everyday_together(cases: Iterable[tuple[Any, ...]], chosen: Collection[tuple[Any, ...]]) -> list[Any]:
    """The same for several parameters at once: each case has a value for each."""
    cases = list(cases)
    strange = [case for case in chosen if case not in cases]
    assert not strange, f"no such case: {strange}"
    return [case if case in chosen else pytest.param(*case, marks=pytest.mark.long) for case in cases]


def one_of(number: int, cases: Iterable[Any]) -> list[Any]:
    """The first of so many cases each as a parameter, and the others for the long tests."""
    return [pytest.param(case, marks=() if k % number == 0 else pytest.mark.long) for k, case in enumerate(cases)]
