"""Programs of others, known to be correct, go through ``lapwing overlap`` unharmed: no crash, same behaviour.

LAPWING_CORRBENCH and LAPWING_MBI name checkouts of tudasc/MPI-Corrbench and of the MPI Bugs Initiative. Nothing of theirs is
here: without them these tests are skipped.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from _building import BuildFailed
from _running import PLAIN, STRICTLY, Reference, overlap, required
from limits import scaled

pytestmark = pytest.mark.mpi
SECONDS = scaled(20)
EVERYDAY = 6  # of each corpus
GENERATORS_LEFT_OUT = ("RMA",)  # one-sided communication is no subject here


@functools.cache
def corrbench() -> tuple[Path, ...]:
    """Its correct programs, OpenMP's included."""
    root = os.environ.get("LAPWING_CORRBENCH")
    if not root:
        return ()
    base = Path(root) / "micro-benches" / "0-level"
    return tuple(sorted([*base.glob("correct/*/*.c"), *base.glob("openmp/**/correct/**/*.c")]))


@functools.cache
def bugs_initiative() -> tuple[Path, ...]:
    """Its programs without errors, which its scripts write."""
    root = os.environ.get("LAPWING_MBI")
    if not root:
        return ()
    target = Path(tempfile.mkdtemp(prefix="lapwing-mbi-"))
    for script in sorted(Path(root).resolve().glob("scripts/*Generator*.py")):
        if not script.name.startswith(GENERATORS_LEFT_OUT):
            subprocess.run(
                [sys.executable, str(script)], cwd=target, capture_output=True, timeout=scaled(120), check=False
            )
    written = sorted(target.glob("*.c"))
    return tuple(path for path in written if "\n  | OK" in path.read_text(encoding="utf-8", errors="replace"))


def options_for(path: Path) -> list[str]:
    near = [
        place
        for parent in list(path.parents)[:5]
        for place in (parent, parent / "include", parent / "correct" / "include")
    ]
    headers = [f"-I{place}" for place in dict.fromkeys(near) if any(place.glob("*.h"))]
    return [*headers, *(["-fopenmp"] if "openmp" in path.parts else [])]


def check(path: Path, directory: Path, ranks: tuple[int, ...]) -> bool:
    """Whether the tool changed anything in this program, which must not change what it does."""
    required("c")
    source = directory / "sources" / path.name
    source.parent.mkdir(parents=True)
    shutil.copy(path, source)
    options = options_for(path)
    original = Reference([source], options, SECONDS)
    try:
        original.build.executable(strict=False)
    except BuildFailed as failure:
        pytest.skip(f"the original does not compile: {str(failure)[:200]}")
    rewritten = overlap([source], directory / "rewritten", [option for option in options if option.startswith("-I")])
    assert rewritten.status == 0, rewritten.messages
    assert "Traceback" not in rewritten.messages
    json.loads(rewritten.report)
    if rewritten.changed:
        found = original.differences(rewritten.sources, ranks, (PLAIN, STRICTLY))
        assert not found, f"{path}: {found[0]}"
    return rewritten.changed


def sample(paths: tuple[Path, ...]) -> list[Path]:
    """A few, of as many kinds as there are: a kind is a directory and the first word of a name."""
    kinds: dict[tuple[str, str], list[Path]] = {}
    for path in paths:
        kinds.setdefault((path.parent.name, path.stem.partition("_")[0]), []).append(path)
    groups = list(kinds.values())
    step = max(1, len(groups) // EVERYDAY)
    chosen = [group[len(group) // 2] for group in groups[::step]]
    return [*chosen, *paths][:EVERYDAY]


def need(paths: tuple[Path, ...], variable: str) -> None:
    if not paths:
        pytest.skip(f"{variable} names no such checkout")


@pytest.mark.parametrize("number", range(EVERYDAY))
def test_corrbench(number: int, tmp_path: Path) -> None:
    need(corrbench(), "LAPWING_CORRBENCH")
    check(sample(corrbench())[number], tmp_path, (2,))


@pytest.mark.parametrize("number", range(EVERYDAY))
def test_bugs_initiative(number: int, tmp_path: Path) -> None:
    need(bugs_initiative(), "LAPWING_MBI")
    check(sample(bugs_initiative())[number], tmp_path, (2,))


def all_of(paths: tuple[Path, ...], directory: Path) -> None:
    """All programs in turn; what failed is told in the end, all of it."""
    wrong = []
    changed = 0
    for number, path in enumerate(paths):
        try:
            changed += check(path, directory / str(number), (2, 4))
        except pytest.skip.Exception:
            continue
        except Exception as failure:
            wrong.append(f"{path}: {str(failure)[:300]}")
        shutil.rmtree(directory / str(number), ignore_errors=True)
    print(f"{changed} of {len(paths)} programs changed")
    assert not wrong, "\n".join(wrong)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_all_of_corrbench(tmp_path: Path) -> None:
    need(corrbench(), "LAPWING_CORRBENCH")
    all_of(corrbench(), tmp_path)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_all_of_bugs_initiative(tmp_path: Path) -> None:
    need(bugs_initiative(), "LAPWING_MBI")
    all_of(bugs_initiative(), tmp_path)
