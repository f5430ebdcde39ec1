"""Refused nests as data: what the tables of this folder are made of, and how a nest of theirs is loaded and used.

Each nest is written to a file of its own. The line that the message has to name is marked ``# <-``; without a mark it
is the line of the function.
"""

from __future__ import annotations

import importlib.util
import linecache
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

HEADING = "import functools\nimport math\n\nimport numpy as np\n\nimport lapwing as lw\n\n\n"


@dataclass(frozen=True)
class Refusal:
    """A nest called ``f`` and its arguments; ``found`` and ``way_out`` stand in the message, in this order."""

    name: str
    source: str
    found: str
    way_out: str
    arguments: Callable[[], tuple[Any, ...]]
    options: dict[str, Any] = field(default_factory=dict)


REFUSALS: list[Refusal] = []


def grid_of(*shape: int, dtype: Any = float) -> np.ndarray:
    shape = shape or (5, 6)
    return (np.arange(np.prod(shape)).reshape(shape) % 7 + 1).astype(dtype)


def table() -> tuple[np.ndarray, np.ndarray]:
    return grid_of(), grid_of(5)


def refuse(
    name: str,
    source: str,
    found: str,
    way_out: str,
    arguments: Callable[[], tuple[Any, ...]] = lambda: (grid_of(),),
    **options: Any,
) -> None:
    REFUSALS.append(Refusal(name, textwrap.dedent(source).lstrip("\n"), found, way_out, arguments, options))


def body(
    name: str,
    statements: str,
    found: str,
    way_out: str,
    arguments: Callable[[], tuple[Any, ...]] = lambda: (grid_of(),),
    *,
    signature: str = "u",
    before: str = "",
    after: str = "",
    heading: str = "",
    **options: Any,
) -> None:
    """A refusal in a nest of two loops over the inside of ``u``."""
    refuse(name, two_loops(statements, signature, before, after, heading), found, way_out, arguments, **options)


def two_loops(statements: str, signature: str = "u", before: str = "", after: str = "", heading: str = "") -> str:
    lines = [
        *([heading] if heading else []),
        "@lw.nest",
        f"def f({signature}):",
        *(f"    {line}" for line in before.splitlines()),
        "    for i in range(1, u.shape[0] - 1):",
        "        for j in range(1, u.shape[1] - 1):",
        *(f"            {line}" for line in statements.splitlines()),
        *(f"    {line}" for line in after.splitlines()),
    ]
    return "\n".join(lines) + "\n"


def loops(
    name: str, outer: str, found: str, way_out: str, arguments: Any = None, *, inner: str = "", sig: str = "u"
) -> None:
    """A refusal in the heading of the outer or of the inner of two loops."""
    mark = ("", "  # <-") if inner else ("  # <-", "")
    source = f"""
        @lw.nest
        def f({sig}):
            for {outer}:{mark[0]}
                for {inner or "j in range(6)"}:{mark[1]}
                    u[i, j] = 1.0
        """
    refuse(name, source, found, way_out, arguments or (lambda: (grid_of(),)))


GOOD = two_loops("u[i, j] = 0.5 * u[i - 1, j]")
HUNDRED_DIGITS = "9" * 100


def load(source: str, path: Path) -> ModuleType:
    path.write_text(HEADING + source, encoding="utf-8")
    linecache.checkcache(str(path))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def define_and_use(case: Refusal, path: Path, arguments: tuple[Any, ...]) -> None:
    nest = load(case.source, path).f.using(**case.options.get("using", {}))
    if "ranks" in case.options:
        nest.plan(*arguments, ranks=case.options["ranks"])
    nest(*arguments, **case.options.get("keywords", {}))


def copies(arguments: tuple[Any, ...]) -> list[bytes]:
    return [a.tobytes() for a in arguments if isinstance(a, np.ndarray) and not a.dtype.hasobject]


def compare_with_plain_loop(source: str, tmp_path: Path) -> None:
    # A file each: Python remembers the lines of a file by its size and time.
    nest = load(source, tmp_path / f"their_{len(list(tmp_path.iterdir()))}.py").f
    found, expected = grid_of(), grid_of()
    assert nest(found) == nest.python(expected)
    assert found.tobytes() == expected.tobytes()
