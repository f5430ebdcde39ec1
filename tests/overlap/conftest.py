"""How much of a rewritten program's behaviour is looked at: one run every day, all schedules in the long tests."""

from __future__ import annotations

import pytest


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.long)], ids=["once", "thorough"])
def thorough(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)
