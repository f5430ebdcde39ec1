"""Loops of random functions made functions of their own: what is computed, left and raised stays the same."""

from __future__ import annotations

import ast
import contextlib
import linecache
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from random_functions import Writer
from randomness import first_seed, wanted

from lapwing.errors import RefusedError
from lapwing.loopnest.program.outlining import outline
from lapwing.loopnest.program.program import with_calls
from lapwing.loopnest.program.surroundings import Around, Control
from lapwing.loopnest.source import FunctionSource

SAME_AT_LEAST, UNSET_AT_MOST = 0.2, 0.1  # of the loops


@contextlib.contextmanager
def swallowing(value: Any) -> Iterator[Any]:
    with contextlib.suppress(ZeroDivisionError):
        yield value


def made(source: str, path: Path, noted: list[Any]) -> Callable[..., Any]:
    path.write_text(source)
    linecache.checkcache(str(path))
    names: dict[str, Any] = {"note": noted.append, "swallowing": swallowing}
    exec(compile(source, str(path), "exec"), names)
    found: Callable[..., Any] = names["f"]
    return found


def outcome(function: Callable[..., Any], noted: list[Any]) -> Any:
    noted.clear()
    given = [1, -1, 2, 0, 3]
    try:
        value: Any = function(2, 1, given)
    except (ZeroDivisionError, NameError) as error:
        value = type(error)
    return repr(value), list(map(repr, noted)), given


class Watched:
    """A region that notes whether an error left it: its variables are then as they were before it, unlike a loop's."""

    def __init__(self, region: Callable[..., Any]) -> None:
        self.region, self.raised = region, False

    def __call__(self, *values: Any) -> Any:
        try:
            return self.region(*values)
        except Exception:
            self.raised = True
            raise


def check(seed: int, path: Path, lift: bool, count: Counter[str]) -> None:
    source, noted = Writer(seed).source(), list[Any]()
    function = made(source, path, noted)
    around = Around(FunctionSource.of(function))
    right = outcome(function, noted)
    for loop in [node for node in ast.walk(around.source.tree) if isinstance(node, ast.For)]:
        count["loops"] += 1
        if leaves(loop):
            continue  # parsing refuses it
        try:
            region = outline(around, loop, "region", Control(), lift)
        except RefusedError:
            continue
        watched = Watched(region.source.function)
        found = outcome(with_calls(around.source, {"region": (loop, region)}).function(watched), noted)
        if watched.raised:
            count["raised"] += 1
        elif found != right and found[0] == repr(UnboundLocalError):
            count["unset"] += 1  # what the loop would not have read in this run is passed all the same
        else:
            count["same"] += 1
            assert found == right, f"seed {seed}, line {loop.lineno} of\n{source}\n{ast.unparse(region.source.tree)}"


def leaves(loop: ast.For) -> bool:
    """Whether the loop can be left for another place than the one behind it."""
    return any(isinstance(node, ast.Return) for node in ast.walk(loop)) or _breaks_out(loop.orelse)


def _breaks_out(statements: list[ast.stmt]) -> bool:
    for node in statements:
        if isinstance(node, ast.Break | ast.Continue):
            return True
        if isinstance(node, ast.For | ast.While):
            if _breaks_out(node.orelse):
                return True
        elif _breaks_out([child for child in ast.walk(node) if isinstance(child, ast.Break | ast.Continue)]):
            return True
    return False


@pytest.mark.parametrize("lift", [False, True], ids=["plain", "lifted"])
def test_random_functions_with_one_loop_outlined(lift: bool, tmp_path: Path) -> None:
    begin, count = first_seed() * 1_000_000, Counter[str]()
    for seed in range(begin, begin + wanted(12)):
        check(seed, tmp_path / f"f{seed}.py", lift, count)
    assert count["same"] >= SAME_AT_LEAST * count["loops"], count
    assert count["unset"] <= UNSET_AT_MOST * count["loops"], count
