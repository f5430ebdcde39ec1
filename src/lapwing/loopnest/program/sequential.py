"""Loops that cannot be tiled, compiled to run as they are on one rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lapwing.loopnest.source import FunctionSource


def sequential_region(source: FunctionSource) -> Callable[..., Any] | None:
    """The outlined loops, compiled; None where they cannot be, which is everywhere so far."""
    return None
