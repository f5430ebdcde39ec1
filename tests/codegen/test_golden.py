"""The C that is generated, held in ``golden`` for people to read: ``pytest --refresh-golden`` writes it anew."""

from __future__ import annotations

import dataclasses
import difflib
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from everyday import everyday
from limits import scaled

import lapwing as lw
from lapwing.codegen import tile
from lapwing.codegen.compilation.toolchain import Compiler
from lapwing.codegen.lanes import points
from lapwing.codegen.plain import plain_source
from lapwing.codegen.rows import outer_loops, tile_loops
from lapwing.codegen.temporal import steps, vector_body
from lapwing.codegen.tile import forms_of, tile_source
from lapwing.planner.choose import make_plan
from lapwing.runtime.binding.native import TILE_FLAGS
from lapwing.tiling import sweep_lanes
from lapwing.tiling.faces import Faces, faces_of
from lapwing.tiling.skewing import skewed_dependences, skewed_nest

GOLDEN = Path(__file__).parent / "golden"
PACKAGE = Path(tile.__file__).parents[1]
WIDTH = 120


@lw.nest
def gauss_seidel(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


@lw.nest
def nine_points(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(u.shape[1] - 2, 0, -1):
                u[i, j] = 0.25 * (u[i - 1, j - 1] + u[i - 1, j + 1] + u[i, j + 1] + u[i + 1, j - 1]) + j


@lw.nest
def sqrt3d(a):
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            for k in range(1, a.shape[2]):
                a[i, j, k] = np.sqrt(a[i - 1, j, k]) + np.sqrt(a[i, j - 1, k]) + np.sqrt(a[i, j, k - 1])


@lw.nest
def averaged(u, h):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1] - 1):
            u[i, j] = (u[i - 1, j] + u[i, j - 1] + u[i, j + 1]) / 3.0 - u[i, j] / h


@lw.nest
def over_relaxed(u, f, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                for k in range(1, u.shape[2] - 1):
                    before = u[i - 1, j, k] + u[i, j - 1, k] + u[i, j, k - 1]
                    after = u[i + 1, j, k] + u[i, j + 1, k] + u[i, j, k + 1]
                    u[i, j, k] = f[i, j, k] - 0.5 * u[i, j, k] + 0.25 * (before + after)


@lw.nest
def align(h, a, b, match=2, mismatch=-1, gap=1):
    n, m = h.shape
    best = 0
    for i in range(1, n):
        for j in range(1, m):
            s = match if a[i - 1] == b[j - 1] else mismatch
            h[i, j] = max(0, h[i - 1, j - 1] + s, h[i - 1, j] - gap, h[i, j - 1] - gap)
            best = max(best, h[i, j])
    return best


@lw.nest
def scored(h, a, b):
    best = 0
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            h[i, j] = max(0, h[i - 1, j - 1] + (2 if a[i - 1] == b[j - 1] else -1), h[i, j - 1] - 1)
            best = max(best, h[i, j])
    del h
    return best


@lw.nest
def subsequence(c, x, y):
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            if i == 0 or j == 0:
                c[i, j] = 0
            elif x[i - 1] == y[j - 1]:
                c[i, j] = c[i - 1, j - 1] + 1
            else:
                c[i, j] = max(c[i - 1, j], c[i, j - 1])


@lw.nest
def triangle(u):
    n = u.shape[0]
    for i in range(n - 2, 0, -1):
        for j in range(i, n - 1):
            u[i, j] = 0.5 * u[i + 1, j] + 0.25 * u[i, j - 1]


@lw.nest
def looked_up(u, table, kind):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = u[i - 1, j] / table[kind[i, j]] + table[-1]


@lw.nest
def total(u):
    above = 0.0
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = u[i - 1, j] * u[i, j - 1]
            above += u[i, j]
    return above


@lw.nest
def columns(u, c):
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = 0.5 * u[i - 1, j] + c[j]


@lw.nest
def relaxed(u, q):
    best, row, column = 0.0, -1, -1
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            if u[i, j] == 0.0:
                continue
            change = 0
            for c in range(q.shape[2]):
                q[i, j, c] = 0.5 * (q[i - 1, j, c] + q[i, j - 1, c - 1])
                if q[i, j, c] > 1.0:
                    break
                change += q[i, j, c]
            for d in range(-1, 1):
                u[i, j] += 0.25 * u[i + d, j - 1]
            if change > best:
                best, row, column = change, i, j
    return best, row, column


@lw.nest
def damped(u, f, k):
    power = 0.0
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            new = (u[i - 1, j] + u[i, j - 1] + 0.5j * f[i, j]) / (4 - k * (1 - 0.5j))
            u[i, j] = new * u[i - 1, j].conjugate() if new != 0 else k
            power += abs(new) ** 2
    return power


@lw.nest
def diffused(u, old, kappa, lam):
    n = old.shape[0]
    for i in range(n):
        for j in range(1, u.shape[1]):
            west, north = old[i, j - 1] - old[i, j], old[(i + 1) % n, j] - old[i, j]
            u[i, j] += lam * np.exp(-((west / kappa) ** 2)) * west + (kappa**3 * north if north > 0 else 0.0)
            s = 0.0
            for k in range(u.shape[1]):
                s += (old[i, k] ** 2 - old[i, k + 1] ** 2) * old[0, k] ** 0.5
            u[i, j] += s


@lw.nest
def reinitialised(phi, old, sign, dt):
    for i in range(1, old.shape[0]):
        for j in range(1, old.shape[1] - 1):
            west, east = old[i, j] - old[i, j - 1], old[i, j + 1] - old[i, j]
            if sign[i, j] > 0.0:
                slope = np.sqrt(max(west, 0.0) ** 2 + min(east, 0.0) ** 2)
            elif sign[i, j] < 0.0:
                slope = np.sqrt(min(west, 0.0) ** 2 + max(east, 0.0) ** 2)
            else:
                slope = np.exp(-old[i, j])
            phi[i, j] = old[i, j] - dt * sign[i, j] * (slope - 1.0)
            total = 0.0
            for k in range(old.shape[1]):
                if old[i, k] > 0.5:
                    total = total * 0.5 + np.exp(sign[i, k])
            phi[i, j] += total


def collatz(steps, most):
    longest = 0
    for k in range(1, steps.shape[0]):
        x = k
        count = 0
        while x != 1 and count < most:
            x = x // 2 if x % 2 == 0 else 3 * x + 1
            count += 1
        steps[k] = count
        if count >= steps[longest]:
            longest = k
            last = x
    return longest, last


@lw.nest
def shortest(d, e, w, via):
    for i in range(d.shape[0]):
        for j in range(w.shape[1]):
            best = d[i, j]
            arg = -1
            for k in range(w.shape[0]):
                length = d[i, k] + w[k, j]
                if length < best:
                    best = length
                    arg = k
            e[i, j] = best
            via[i, j] = arg


def substituted(L, b, x):
    for i in range(b.shape[0]):
        s = b[i]
        for j in range(i):
            s -= L[i, j] * x[j]
        x[i] = s / L[i, i]


def region_of(function: Callable[..., Any]) -> lw.Nest:
    nest = lw.Nest(function)
    nest.source = dataclasses.replace(nest.source, sequential=True)
    return nest


def floats(*shape: int, dtype: Any = float) -> np.ndarray:
    return np.ones(shape, dtype)


CASES: dict[str, tuple[lw.Nest, tuple[Any, ...]]] = {
    "gauss_seidel": (gauss_seidel, (floats(9, 10), 3)),
    "nine_points": (nine_points, (floats(9, 10), 3)),
    "sqrt3d": (sqrt3d, (floats(5, 6, 7, dtype=np.float32),)),
    "averaged": (averaged, (floats(9, 10), 0.1)),
    "over_relaxed": (over_relaxed, (floats(5, 6, 7), floats(5, 6, 7), 3)),
    "align": (align, (floats(5, 6, dtype=np.int32), floats(4, dtype=np.uint8), floats(5, dtype=np.uint8))),
    "scored": (scored, (floats(5, 6, dtype=np.int32), floats(4, dtype=np.uint8), floats(5, dtype=np.uint8))),
    "subsequence": (subsequence, (floats(9, 9, dtype=np.int64), floats(8, dtype=np.int64), floats(8, dtype=np.int64))),
    "triangle": (triangle, (floats(9, 9),)),
    "looked_up": (looked_up, (floats(5, 6), floats(4), floats(5, 6, dtype=np.int8))),
    "total": (total, (floats(5, 6),)),
    "columns": (columns, (floats(5, 6), floats(6))),
    "relaxed": (relaxed, (floats(5, 6), floats(5, 6, 3))),
    "damped": (damped, (floats(5, 6, dtype=complex), floats(5, 6), 0.3j)),
    "diffused": (diffused, (floats(5, 6), floats(5, 7), np.float64(0.5), 0.25)),
    "reinitialised": (reinitialised, (floats(5, 6), floats(5, 6), floats(5, 6), 0.25)),
    "shortest": (shortest, (floats(9, 9), floats(9, 9), floats(9, 9), floats(9, 9, dtype=np.int64))),
    "substituted": (region_of(substituted), (floats(9, 9), floats(9), floats(9))),
    "collatz": (region_of(collatz), (floats(9, dtype=np.int32), 100)),
}


def tile_of(
    nest: lw.Nest,
    arguments: tuple[Any, ...],
    lanes: int | None = None,
    coalesced: bool = False,
    scanned: bool = False,
    skewed: bool = False,
    rows: int = 1,
) -> str:
    """lanes, coalesced, scanned, skewed, rows: of the inner form; without lanes it is the one taken by rule."""
    bound = nest.bind(nest.arguments(*arguments))
    plan = make_plan(bound, nest.dependences, 1)
    bound = skewed_nest(bound, plan.skew)
    if lanes is not None:
        forms = forms_of(bound, skewed_dependences(nest.dependences, plan.skew))
        wanted = (lanes, coalesced, scanned, skewed, rows)
        form = next(
            form
            for form in reversed(forms)
            if (form.lanes, form.coalesced, form.scanned, form.skewed, form.rows) == wanted
        )
        return tile_source(bound, faces_of(bound), form)
    return tile_source(bound, Faces(bound, plan.partition, plan.mapping, plan.tile).faces, plan.inner.form)


def plain_of(nest: lw.Nest, arguments: tuple[Any, ...]) -> str:
    return plain_source(nest.bind(nest.arguments(*arguments)))


FILES: dict[str, Callable[[], str]] = {
    **{
        f"{name}.tile.c": lambda case=case: tile_of(*case)
        for name, case in CASES.items()
        if name not in ("averaged", "subsequence")
    },
    **{f"{name}.lanes.c": lambda name=name: tile_of(*CASES[name], lanes=16) for name in ("align", "total", "triangle")},
    **{
        f"{name}.transposed.c": lambda name=name: tile_of(*CASES[name], lanes=64)
        for name in ("align", "averaged", "gauss_seidel", "scored", "sqrt3d")
    },
    **{
        f"{name}.scan.c": lambda name=name: tile_of(*CASES[name], lanes=1, scanned=True)
        for name in ("align", "subsequence")
    },
    "over_relaxed.sweeps.c": lambda: tile_of(over_relaxed, (*CASES["over_relaxed"][1][:2], 16), lanes=1, skewed=True),
    "over_relaxed.rows.c": lambda: tile_of(over_relaxed, (*[floats(5, 40, 40)] * 2, 8), lanes=1, skewed=True, rows=2),
    "over_relaxed.coalesced.c": lambda: tile_of(*CASES["over_relaxed"], lanes=64, coalesced=True),
    **{f"{name}.plain.c": lambda name=name: plain_of(*CASES[name]) for name in ("align", "triangle", "collatz")},
}


@pytest.mark.parametrize("name", FILES)
def test_generated_c_is_the_golden_file(
    name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (points, outer_loops, vector_body, sweep_lanes, tile_loops):
        monkeypatch.setattr(module, "vector_bytes", lambda: 64)
    monkeypatch.setattr(tile_loops, "has_slow_line_splits", lambda: False)
    monkeypatch.setattr(steps, "has_fast_gathers", lambda: "rows" in name)
    text, path = FILES[name](), GOLDEN / name
    if request.config.getoption("--refresh-golden"):
        path.write_text(text, encoding="utf-8")
    golden = path.read_text(encoding="utf-8") if path.exists() else ""
    difference = "\n".join(
        difflib.unified_diff(golden.splitlines(), text.splitlines(), f"golden/{name}", "now", lineterm="")
    )
    assert not difference, f"refresh with pytest --refresh-golden if this is meant:\n{difference}"


# Long to compile, and of the kinds of statements that others have.
LIKE_OTHERS = {"align.transposed.c", "averaged.transposed.c", "sqrt3d.transposed.c"}


def test_every_golden_file_is_checked() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == set(FILES)


@pytest.mark.parametrize(
    ("compiler", "optimised"), [("gcc", True), ("clang", False), pytest.param("clang", True, marks=pytest.mark.long)]
)
@pytest.mark.parametrize("name", everyday(FILES, FILES.keys() - LIKE_OTHERS))
def test_golden_file_compiles_without_warnings(name: str, compiler: str, optimised: bool, tmp_path: Path) -> None:
    """clang warns before it optimises, which takes it most of the time; gcc while it does."""
    program = shutil.which(compiler)
    if program is None:
        pytest.skip(f"no {compiler} here")
    # clang tells where it does not vectorise what it was asked to, and of gcc's own pragmas.
    quiet = ["-Wno-pass-failed", "-Wno-unknown-pragmas"] if compiler == "clang" else []
    flags = [flag for flag in Compiler((program,), compiler).spelled(TILE_FLAGS) if flag != "-lm"]
    flags += [] if optimised else ["-O0"]
    headers = ["-I", str(PACKAGE / "codegen"), "-I", str(PACKAGE / "runtime/cpp")]
    done = subprocess.run(
        [
            program,
            *flags,
            "-Wall",
            "-Wextra",
            *quiet,
            *headers,
            "-c",
            str(GOLDEN / name),
            "-o",
            str(tmp_path / "golden.o"),
        ],
        capture_output=True,
        text=True,
        timeout=scaled(120),
        check=False,
    )
    assert done.stderr == ""
    assert done.returncode == 0


@pytest.mark.parametrize("name", FILES)
def test_golden_file_reads_well(name: str) -> None:
    for number, line in enumerate((GOLDEN / name).read_text(encoding="utf-8").splitlines(), 1):
        assert len(line) <= WIDTH, f"{name}:{number} has {len(line)} columns"
        assert line == line.rstrip(), f"{name}:{number} ends in spaces"


def test_sizes_do_not_show() -> None:
    """Runs of other sizes share one compiled tile."""
    assert tile_of(gauss_seidel, (floats(9, 10), 5)) == tile_of(gauss_seidel, (floats(90, 33), 7))
    assert tile_of(looked_up, (floats(5, 6), floats(4), floats(5, 6, dtype=np.int8))) == tile_of(
        looked_up, (floats(7, 8), floats(4), floats(7, 8, dtype=np.int8))
    )
