"""The benchmarks run and their figures can be read. How fast anything is, is not tested."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parents[1] / "bench"


def run(program: str, *options: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    command = [sys.executable, str(BENCH / program), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, env={**os.environ, "PATH": path})


def quick(program: str, folder: Path, *options: str) -> dict[str, Any]:
    done = run(program, "--quick", "--json", str(folder / "new" / "figures.json"), *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Quick: sizes too small" in done.stdout
    document: dict[str, Any] = json.loads((folder / "new" / "figures.json").read_text())
    return document


def numbers(node: Any) -> Iterator[float]:
    if isinstance(node, dict):
        node = list(node.values())
    if isinstance(node, list):
        for value in node:
            yield from numbers(value)
    elif isinstance(node, float):
        yield node


@pytest.mark.parametrize("program", ["core.py", "scaling.py"])
def test_help(program: str) -> None:
    done = run(program, "--help")
    assert done.returncode == 0
    assert "--json" in done.stdout


def test_core(tmp_path: Path) -> None:
    document = quick("core.py", tmp_path, "--nest", "sor3d", "--nest", "smith_waterman")
    assert [(c["nest"], c["size"]) for c in document["cases"]] == [
        (nest, size) for nest in ("sor3d", "smith_waterman") for size in ("L2-resident", "beyond the cache")
    ]
    for case in document["cases"]:
        measured = {f["name"]: f for f in case["figures"] if not f["quoted"]}
        assert list(measured)[:2] == ["Lapwing, tile", "Lapwing, whole call"]
        assert len(measured) >= 4
        assert measured["Lapwing, tile"]["identical"]
        assert all(len(f["seconds"]) == case["rounds"] == 2 for f in measured.values())
        assert all(math.isfinite(n) and n > 0 for f in case["figures"] for n in numbers(f))
    assert document["machine"]["cpu"]


@pytest.mark.mpi
def test_scaling(tmp_path: Path) -> None:
    document = quick("scaling.py", tmp_path, "--nest", "gauss_seidel", "--nest", "smith_waterman")
    assert [n["nest"] for n in document["nests"]] == ["gauss_seidel", "smith_waterman"]
    for nest in document["nests"]:
        heights = {r["tile"] for r in nest["runs"]}
        assert len(nest["runs"]) == 2 * len(heights) >= 4  # both engines at every height
        timed = [*nest["one_rank_before"], *nest["one_rank_after"], *nest["runs"]]
        assert all(len(r["seconds"]) == 2 and min(r["seconds"]) > 0 for r in timed)
        found = nest["summary"]
        assert found["bound"] > 0
        assert all(found[engine]["speedup"] > 0 for engine in ("blocking", "overlap"))
        assert found["overlap_over_blocking"]["median"] > 0
