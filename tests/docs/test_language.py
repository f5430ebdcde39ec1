"""The table in docs/language.md is what becomes of its rows: every one is tried, and what is refused has a way out that helps.

python -m pytest tests/docs -k language --refresh-golden     # writes the table anew
"""

from __future__ import annotations

import inspect
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from everyday import one_of
from language_rows import ROWS, Row, arguments

import lapwing as lw
from lapwing.loopnest.functions import supported_names
from lapwing.planner.plan import Plan

PAGE = Path(__file__).parents[2] / "docs" / "language.md"
HEAD = "| construct | for example | what becomes of it |\n|---|---|---|\n"
TILED = "tiled on ranks"
ONE_RANK = "one rank, in its own order"
DRIVER = "driver"
MARK = "<!-- the table: tests/docs/language_rows.py -->\n"


@cache
def became(index: int) -> str:
    row = ROWS[index]
    try:
        plan = row.nest.plan(**arguments(row.nest), ranks=2)
    except lw.RefusedError:
        assert row.instead is not None, f"{row.construct} is refused and has no way out"
        return f"refused; instead `{shown(row.instead)}`"
    if isinstance(plan, Plan):
        return kind(plan)
    kinds = {kind(region.plan) if region.plan is not None else TILED for region in plan.regions}
    return DRIVER if TILED in kinds else ONE_RANK


def kind(plan: Any) -> str:
    if getattr(plan, "is_sequential", False):
        return ONE_RANK
    return TILED if plan.ranks == 2 else f"{TILED} (here: one)"


def shown(nest: lw.Nest) -> str:
    """The innermost statement of a way out."""
    lines = [line.strip() for line in inspect.getsource(nest.python).splitlines() if line.strip()]
    return next(line for line in reversed(lines) if not line.startswith("return"))


def table() -> str:
    lines, before = [], ""
    for index, row in enumerate(ROWS):
        if row.group != before:
            lines.append(f"\n## {row.group}\n\n{HEAD.rstrip()}")
            before = row.group
        snippet = row.snippet.replace("|", "\\|")
        lines.append(f"| {row.construct} | `{snippet}` | {became(index)} |")
    names = ", ".join(f"`{name}`" for name in supported_names())
    lines.append(f"\nFunctions that loop bodies may call: {names}.")
    return "\n".join(lines) + "\n"


def test_the_page_has_the_table(pytestconfig: pytest.Config) -> None:
    head, mark, tail = PAGE.read_text(encoding="utf-8").partition(MARK)
    inside, after, rest = tail.partition(MARK)
    assert mark == after == MARK
    if pytestconfig.getoption("--refresh-golden"):
        PAGE.write_text(head + mark + table() + "\n" + after + rest, encoding="utf-8")
    else:
        assert inside == table() + "\n", "write it anew: pytest tests/docs -k language --refresh-golden"


def is_refused(nest: lw.Nest) -> bool:
    """Whether a call is refused, in words that name the line."""
    try:
        nest(**arguments(nest))
    except lw.RefusedError as refused:
        return re.search(r"language_rows\.py:\d+", str(refused)) is not None
    return False


def values_after(nest: Any, given: dict[str, Any]) -> list[Any]:
    returned = nest(**given)
    values = [returned] if not isinstance(returned, tuple) else [*returned]
    return [*given.values(), *values]


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, np.ndarray):
        return found.dtype == expected.dtype and found.tobytes() == expected.tobytes()
    return bool(found == expected)


@pytest.mark.parametrize("row", one_of(4, ROWS), ids=lambda row: row.nest.name)
def test_row(row: Row) -> None:
    """What is accepted has the bits of plain Python, what is refused a way out that is accepted."""
    assert row.snippet in inspect.getsource(row.nest.python)
    nest = row.nest
    if is_refused(nest):
        assert row.instead is not None
        nest = row.instead
    expected = values_after(nest.python, arguments(nest))
    found = values_after(nest.using(tile=5), arguments(nest))
    assert len(found) == len(expected)
    assert all(same(*pair) for pair in zip(found, expected, strict=True))
