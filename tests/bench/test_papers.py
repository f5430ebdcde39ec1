"""The programs of bench/papers run, and what simulators and models find there is what docs/papers.md says.

Simulated times depend on nothing of this machine, so they are held to; what a disk takes here is not.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from everyday import one_of
from limits import scaled
from needs import SIMGRID

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "bench" / "papers"
PAGE = ROOT / "docs" / "papers.md"
needs_simgrid = pytest.mark.skipif(not SIMGRID.is_here, reason=SIMGRID.reason)


def run(program: str, *options: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    own = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return subprocess.run(
        [sys.executable, str(PROGRAMS / program), *options],
        capture_output=True,
        text=True,
        timeout=scaled(280),
        env={**os.environ, "PATH": path or own},
    )


def quick(program: str, folder: Path, *options: str) -> dict[str, Any]:
    pictures, figures = folder / "pictures", folder / "figures.json"
    drawn = ("--pictures", str(pictures)) if _has_matplotlib() else ()
    done = run(program, "--quick", "--json", str(figures), *drawn, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    for picture in pictures.glob("*"):
        assert ElementTree.parse(picture).getroot().tag.endswith("svg")
        assert picture.stat().st_size < 60_000
    assert not drawn or any(pictures.glob("*.svg"))
    document: dict[str, Any] = json.loads(figures.read_text())
    assert document["claims"]
    return document


def _has_matplotlib() -> bool:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


@pytest.mark.parametrize("program", one_of(4, ["p0.py", "p1.py", "p3.py", "p4.py"]))
def test_help(program: str) -> None:
    done = run(program, "--help")
    assert done.returncode == 0
    assert "--pictures" in done.stdout


@pytest.mark.long
@needs_simgrid
def test_p0_overlap_is_faster_as_in_figure_5(tmp_path: Path) -> None:
    (space,) = quick("p0.py", tmp_path)["spaces"]
    assert space["reduction"] > 0.3
    assert space["reduction_by_hand"] > 0.3
    assert space["eq4_error"] < 0.1
    best = {row["z"]: row for row in space["rows"]}[256]
    # Lapwing's overlap and the paper's ProcNB are the same program, and eq. 3 with all transmissions is ProcB.
    assert best["overlap"] == pytest.approx(best["ProcNB"], rel=0.02)
    assert best["eq3_both"] == pytest.approx(best["ProcB"], rel=0.05)
    assert best["timeline_overlap"] == pytest.approx(best["overlap"], rel=0.02)


@pytest.mark.long
@needs_simgrid
def test_p1_runs_as_its_equation_says(tmp_path: Path) -> None:
    rows = quick("p1.py", tmp_path)["spaces"]["12x12x512K"]
    assert [row["z"] for row in rows] == [2048, 4096]
    for row in rows:
        assert row["overlap"] == pytest.approx(row["eq7"], rel=0.005)
        assert row["blocking"] == pytest.approx(row["eq1"], rel=0.01)
        assert row["overlap"] < 0.7 * row["blocking"]
        assert row["lapwing_onesided"] == pytest.approx(row["overlap"], rel=0.03)
    pure = 0.3375
    assert rows[0]["computing"] > rows[1]["computing"] > pure  # fewer interrupts where tiles are higher


@pytest.mark.long
@needs_simgrid
def test_p4_the_papers_two_schedules_are_alike(tmp_path: Path) -> None:
    (row,) = quick("p4.py", tmp_path)["spaces"]["128x128x128"]
    assert row["OVRLP"] == pytest.approx(row["STD"], rel=0.05)
    assert row["overlap_smpi"] == pytest.approx(row["OVRLP"], rel=0.05)
    assert row["overlap_smpi"] == pytest.approx(row["overlap"], rel=0.05)
    assert row["computing"] < row["helper"] < row["overlap"] < row["blocking"]
    assert list(row["slower"].values()) == sorted(row["slower"].values())


def test_p3_the_model_and_a_disk(tmp_path: Path) -> None:
    document = quick("p3.py", tmp_path, "--disk", str(tmp_path))
    rows = document["figure_11"]
    assert min(rows, key=lambda row: row["element_wise"])["NB"] == 1024  # as measured in the paper
    for once, thrice in zip(rows, document["figure_12"], strict=True):
        assert thrice["element_wise"] == pytest.approx(3 * once["element_wise"], rel=0.02)
    for row in document["figures_13_14"]:
        assert row["element_wise"] > 1.4 * row["read_write"]
        assert row["own"] < 1.02 * row["read_write"]
    (here,) = document["this_disk"]
    assert all(here[way] > 0 for way in ("read and write", "one block", "three blocks"))


@pytest.mark.mpi
@pytest.mark.long
def test_p3_runs_in_core_and_out_of_core(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    document = quick("p3.py", tmp_path, "--runs", str(tmp_path / "disk"))
    runs, claims = document["runs"], {(claim["figure"], claim["here"]) for claim in document["claims"]}
    assert [(row["sweeps"], row["ranks"]) for row in runs] == [(1, 1), (1, 2), (3, 2)]
    for row in runs:
        assert row["out_of_core"] > 0
        assert row["read_write"] > 0
        assert row["in_core"] is None or row["in_core"] > 0
    assert runs[-1]["passes"] <= 3
    in_core = {row["in_core"] is None for row in runs}
    assert len(in_core) == 1  # everywhere, or the claim has the reason
    assert any(figure == "P3 11, 12" and ("measured" in here) is not in_core.pop() for figure, here in claims)
    assert not list((tmp_path / "disk").iterdir())


def test_p3_a_control_group_limits_memory() -> None:
    sys.path.insert(0, str(PROGRAMS))
    import _control_group

    from lapwing.errors import LapwingError

    try:
        with _control_group.control_group() as group:
            group.allow(64 << 20)
            taking = [sys.executable, "-c", "print(len(bytearray(b'x') * (1 << 28)))"]
            done = subprocess.run(group.command(taking), capture_output=True, text=True, timeout=scaled(60))
            assert done.returncode != 0 or len(Path("/proc/swaps").read_text().splitlines()) > 1
            group.allow(1 << 30)
            done = subprocess.run(group.command(taking), capture_output=True, text=True, timeout=scaled(60))
            assert done.stdout == f"{1 << 28}\n", done.stderr
        assert not group.path.exists()
    except LapwingError as error:
        pytest.skip(f"no control group: {error}")


def test_p3_three_blocks_compute_what_one_does(tmp_path: Path) -> None:
    sys.path.insert(0, str(PROGRAMS))
    import _disk_blocks

    results = []
    for way in ("one block", "three blocks"):
        with _disk_blocks.matrix(tmp_path, 1 << 20, 5) as held:
            _disk_blocks.seconds(way, held)
            held.read(4)
            results.append(bytes(held.buffers[4 % 3]))
            held.read(0)
            results.append(bytes(held.buffers[0]))
    assert results[:2] == results[2:]


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    done = run("p3.py", "--quick", "--disk", str(tmp_path / "none"))
    assert done.returncode == 1
    assert "No such file or directory" in done.stderr
    assert "Traceback" not in done.stderr


def test_results_that_cannot_be_written_are_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for option in ("--json", "--pictures"):
        done = run("p3.py", option, str(tmp_path / "file" / "folder" / "figures"))
        assert done.returncode == 1
        assert "cannot be made" in done.stderr
        assert not done.stdout


@pytest.mark.parametrize("program", one_of(3, ["p0.py", "p1.py", "p4.py"]))
def test_without_simgrid_it_says_what_to_install(program: str, tmp_path: Path) -> None:
    for tool in ("make", "cc", "gcc"):
        if found := shutil.which(tool):
            (tmp_path / tool).symlink_to(found)
    done = run(program, "--quick", path=str(tmp_path))
    assert done.returncode == 1
    assert "libsimgrid-dev" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_page_has_every_figure_and_its_pictures() -> None:
    text = PAGE.read_text()
    for figures in ("5–7", "11–15", "7–11", "11–14"):
        assert figures in text
    shown = set(re.findall(r"\]\((papers/[\w-]+\.svg)\)", text))
    assert shown == {f"papers/{path.name}" for path in (ROOT / "docs" / "papers").glob("*.svg")}
