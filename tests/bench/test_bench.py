"""The benchmarks run and their figures can be read. How fast anything is, is not tested."""

from __future__ import annotations

import importlib
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from everyday import one_of
from limits import scaled

from lapwing.errors import LapwingError
from lapwing.launch.lab import find_lab

BENCH = Path(__file__).parents[2] / "bench"


def run(program: str, *options: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    command = [sys.executable, str(BENCH / program), *options]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=scaled(240), env={**os.environ, "PATH": path}
    )


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


@pytest.mark.parametrize(
    "program",
    one_of(
        4,
        [
            "core/kernels",
            "core/literature",
            "core/forms",
            "core/alignment",
            "calls/small",
            "core/bandwidth",
            "core/idioms",
            "calls/calls",
            "ranks/scaling",
            "ranks/many_sweeps",
            "core/time_loops",
            "overlap/overlap",
            "ranks/programs",
        ],
    ),
)
def test_help(program: str) -> None:
    done = run(f"{program}.py", "--help")
    assert done.returncode == 0
    assert "--json" in done.stdout


@pytest.mark.long
@pytest.mark.mpi
def test_streaming(tmp_path: Path) -> None:
    document = quick("disk/streaming.py", tmp_path, "--disk", str(tmp_path))
    assert set(document["parts"]) == {"ring", "slabs", "passes", "tiles"}
    assert all(number >= 0 for number in numbers(document["parts"]["ring"]))


@pytest.mark.long
@pytest.mark.mpi
def test_meeting(tmp_path: Path) -> None:
    ways = quick("ranks/meeting.py", tmp_path)["seconds"]
    assert {"on rank 0 alone", "on every rank", "distributed"} < set(ways)
    assert all(math.isfinite(number) and number > 0 for number in numbers(ways))


@pytest.mark.long
@pytest.mark.mpi
def test_creation(tmp_path: Path) -> None:
    runs = quick("ranks/creation.py", tmp_path)["runs"]
    between = {way: {run["figures"][0] for run in found} for way, found in runs.items()}
    assert between["from_function"] == between["load"] == {0.0}
    assert min(between["from rank 0"]) > 0


@pytest.mark.mpi
@pytest.mark.long
def test_filling(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    runs = quick("disk/filling.py", tmp_path, "--disk", str(tmp_path / "disk"))["runs"]
    assert set(runs) == {"create and write", "from_function, save", "run --memory"}
    assert all(len(run["peak_bytes"]) == 2 and run["correct"] for run in runs.values())
    assert not list((tmp_path / "disk").iterdir())


@pytest.mark.long
def test_forms(tmp_path: Path) -> None:
    document = quick("core/forms.py", tmp_path, "--kernel", "LCS", "--kernel", "transposed")
    assert [kernel["kernel"] for kernel in document["kernels"]] == ["LCS", "transposed"]
    for kernel in document["kernels"]:
        assert len(kernel["figures"]["now"]["seconds"]) == kernel["rounds"]
    assert all(map(math.isfinite, numbers(document["kernels"])))


@pytest.mark.long
def test_alignment(tmp_path: Path) -> None:
    document = quick("core/alignment.py", tmp_path)
    assert [(case["nest"], case["size"]) for case in document["cases"]] == [
        ("linear", 40),
        ("affine", 40),
        ("looked_up", 40),
    ]
    for case in document["cases"]:
        assert list(case["figures"])[:3] == ["the plain loop in C", "all stored", "score alone"]
    assert all(map(math.isfinite, numbers(document["cases"])))


def test_literature(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    document = quick("core/literature.py", tmp_path, "--program", "edit_distance_table", "--program", "levenshtein")
    table, refused = document["programs"]
    assert table["same_bits"]
    assert table["heaviest"]["kind"] == "chained"
    assert all(len(seconds) == 2 for seconds in table["seconds"].values())
    assert "numba_refuses" in refused


def test_every_program_of_the_literature_has_a_size() -> None:
    sizes = (BENCH / "core" / "_literature.py").read_text(encoding="utf-8")
    text = "\n".join(path.read_text(encoding="utf-8") for path in (BENCH.parent / "tests" / "literature").glob("*.py"))
    names = re.findall(r"^@lw\.nest\ndef (\w+)\(", text, re.MULTILINE)
    assert len(names) > 100
    assert [name for name in names if f'"{name}": {{' not in sizes] == []


def test_another_tree_has_to_be_one(tmp_path: Path) -> None:
    done = run("core/forms.py", "--before", str(tmp_path))
    assert done.returncode == 2
    assert "holds no src/lapwing" in done.stderr


@pytest.mark.long
def test_small(tmp_path: Path) -> None:
    document = quick("calls/small.py", tmp_path, "--nest", "time_warping")
    (case,) = document["cases"]
    assert case["points"] == 319 * 319
    assert all(math.isfinite(number) and number > 0 for number in numbers(case))


def test_after_large(tmp_path: Path) -> None:
    document = quick("calls/after_large.py", tmp_path)
    assert [case["case"] for case in document["cases"]] == ["a nest", "a program"]
    assert all(math.isfinite(number) and number > 0 for number in numbers(document["cases"]))


def test_kernels(tmp_path: Path) -> None:
    document = quick("core/kernels.py", tmp_path, "--nest", "sor3d", "--nest", "smith_waterman")
    assert [(c["nest"], c["size"]) for c in document["cases"]] == [
        (nest, size) for nest in ("sor3d", "smith_waterman") for size in ("L2-resident", "beyond the cache")
    ]
    for case in document["cases"]:
        assert case["memory_ns"] > 0
        measured = {f["name"]: f for f in case["figures"] if not f["quoted"]}
        assert list(measured)[:2] == ["Lapwing, tile", "Lapwing, whole call"]
        assert len(measured) >= 4
        assert measured["Lapwing, tile"]["identical"]
        assert all(len(f["seconds"]) == case["rounds"] == 2 for f in measured.values())
        limits = {name: f.pop("limit") for name, f in measured.items()}
        assert all(limits[name]["seconds_per_point"] > 0 for name in list(measured)[:4])
        assert all(math.isfinite(n) and n > 0 for f in case["figures"] for n in numbers(f))
    assert document["machine"]["cpu"]


@pytest.mark.long
def test_calls(tmp_path: Path) -> None:
    document = quick("calls/calls.py", tmp_path)
    assert len(document["cases"]) >= 4
    for case in document["cases"]:
        assert all(len(case["microseconds"][name]) == 2 for name in ("call", "run", "overhead", "plain"))
        assert all(math.isfinite(n) for n in numbers(case["microseconds"]))


@pytest.mark.long
@pytest.mark.mpi
def test_calls_on_ranks(tmp_path: Path) -> None:
    document = quick("calls/calls.py", tmp_path, "--ranks", "2")
    assert len(document["cases"]) >= 5
    for case in document["cases"]:
        assert all(
            len(case["microseconds"][name]) == count for name, count in (("call", 2), ("run", 3), ("overhead", 2))
        )
        assert all(math.isfinite(n) for n in numbers(case["microseconds"]))


@pytest.mark.long
@pytest.mark.mpi
def test_scaling(tmp_path: Path) -> None:
    document = quick("ranks/scaling.py", tmp_path, "--nest", "gauss_seidel", "--nest", "smith_waterman")
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


def test_bandwidth(tmp_path: Path) -> None:
    (case,) = quick("core/bandwidth.py", tmp_path, "--nest", "jacobi")["cases"]
    assert case["reached"]["median"] > 0
    assert {"copy", "whole_call"} <= set(case["ns"])


def test_idioms(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    (found,) = quick("core/idioms.py", tmp_path, "--nest", "window")["nests"]
    assert found["over_numba"]["median"] > 0


def test_time_loops(tmp_path: Path) -> None:
    (case,) = quick("core/time_loops.py", tmp_path, "--program", "jacobi_2d")["cases"]
    assert case["over"]["not fused"]["median"] > 0


@pytest.mark.long
@pytest.mark.mpi
def test_many_sweeps(tmp_path: Path) -> None:
    (case,) = quick("ranks/many_sweeps.py", tmp_path, "--nest", "gauss_seidel", "--sweeps", "9")["cases"]
    assert case["speedup"]["median"] > 0
    assert all(run["joined"] > 1 and len(run["seconds"]) == 2 for run in case["runs"].values())


def lab_is_up() -> bool:
    try:
        return len(find_lab().hosts) > 1
    except LapwingError:
        return False


def check_races(document: dict[str, Any], part: str) -> list[dict[str, Any]]:
    """The races of a part: every contender ran as often as the others, and times add up."""
    races = [race for race in document["races"] if race["part"] == part]
    for race in races:
        assert set(race["runs"]) == {c["name"] for c in race["job"]["contenders"]}
        for runs in race["runs"].values():
            assert len(runs) == document["repeat"] == 2
            for times in (times for run in runs for times in run["ranks"]):
                assert 0 < times["fill"] + times["drain"] <= times["total"] * 1.001
                assert times["compute"] <= times["total"]
        messages = {name: runs[0]["ranks"][0]["messages"] for name, runs in race["runs"].items()}
        assert messages.pop("compute") == 0
        assert min(messages.values()) == max(messages.values()) > 1  # the peer and the limits send what Lapwing sends
    return races


@pytest.mark.long
@pytest.mark.mpi
def test_overlap_on_one_node(tmp_path: Path) -> None:
    parts = ("--part", "node", "--part", "cost", "--part", "helper")
    document = quick(
        "overlap/overlap.py", tmp_path, *parts, "--setting", "advection3d-large=8x3", "--setting", "sqrt3d=8x32"
    )
    assert {race["job"]["case"]["tile"] for race in check_races(document, "node")} == {4, 8}
    helper = check_races(document, "helper")
    assert {"helper, auto", "helper, none"} < set(helper[0]["runs"])
    assert {race["plan"]["mapping"] for race in helper} == {"k", "t"}
    split = next(race for race in check_races(document, "cost") if "peer, 16 KiB" in race["runs"])
    assert split["job"]["case"]["tile"] == 3
    for race in helper:
        assert min(times["compute"] for times in race["runs"]["compute"][0]["ranks"]) > 0
        assert max(times["compute"] for times in race["runs"]["wire"][0]["ranks"]) < 1e-3


@pytest.mark.long
def test_programs_on_one_core(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    document = quick("ranks/programs.py", tmp_path, "--part", "core")
    assert len(document["core"]) == 8
    assert min(numbers(document["core"])) > 0


@pytest.mark.mpi
def test_the_peer_is_built_with_the_header_of_the_runtime() -> None:
    """In a process of its own: it brings MPI along."""
    build = "import _overlap_worker as worker; print(worker.peer_runtime(None).lw_run.argtypes)"
    command = [sys.executable, "-c", build]
    done = subprocess.run(command, cwd=BENCH / "overlap", capture_output=True, text=True, timeout=scaled(240))
    assert done.returncode == 0, done.stderr
    assert "Program" in done.stdout


@pytest.mark.mpi
@pytest.mark.skipif(not lab_is_up(), reason="needs the lab: make lab-up, as root")
def test_overlap_in_the_lab(tmp_path: Path) -> None:
    document = quick("overlap/overlap.py", tmp_path, "--part", "lab", "--setting", "sqrt3d", "--setting", "advection3d")
    races = check_races(document, "lab")
    assert [race["job"]["case"]["nest"] for race in races] == ["sqrt3d", "advection3d"]
    engines = {"blocking", "overlap", "onesided", "helper", "peer", "peer, blocking"}
    assert all(engines < set(race["runs"]) and race["place"] == "lab" for race in races)
    assert all(search[0]["compute"] > 0 < search[0]["transfer"] for search in document["searches"].values())


def test_overlap_needs_the_lab_for_its_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAPWING_LAB", "nosuchlab")
    done = run("overlap/overlap.py", "--part", "lab")
    assert done.returncode == 1
    assert "part lab cannot run: no lab is up" in done.stderr
    assert "make lab-up" in done.stderr


@pytest.mark.parametrize(
    "setting", ["sor", *(pytest.param(s, marks=pytest.mark.long) for s in ("sqrt3d=0x4", "sqrt3d=4"))]
)
def test_overlap_names_its_settings(setting: str) -> None:
    done = run("overlap/overlap.py", "--setting", setting)
    assert done.returncode == 2
    assert "expected sqrt3d, advection3d, sqrt3d-large, advection3d-large" in done.stderr


@pytest.fixture
def modules_of_rewriting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH / "rewriting"))


@pytest.mark.usefixtures("modules_of_rewriting")
@pytest.mark.parametrize(
    ("said", "version"),
    [
        (
            "HYDRA build details:\n    Version:      4.0.2\n    Configure options: '--with-device=ch4:ucx' 'FFLAGS='\n",
            "MPICH 4.0.2 (ch4:ucx)",
        ),
        ("HYDRA build details:\n    Version:      5.0.2\n", "MPICH 5.0.2"),
        ("mpiexec (OpenRTE) 4.1.4\n", None),
        ("", None),
    ],
)
def test_npb_knows_mpich_by_its_launcher(said: str, version: str | None) -> None:
    lab = importlib.import_module("_npb_lab")
    assert lab.mpich_version(said) == version


@pytest.mark.usefixtures("modules_of_rewriting")
def test_npb_reads_what_a_run_prints() -> None:
    runs = importlib.import_module("_npb_run")
    output = " Time in seconds =   4.32\n Mop/s total     =   19.41\n Verification    =   SUCCESSFUL\n"
    reading = runs.reading_of("is.A.x", 0, output)
    assert (reading.seconds, reading.rate, reading.verified) == (4.32, 19.41, True)
    assert not runs.reading_of("is.A.x", 0, output.replace("SUCCESSFUL", "UNSUCCESSFUL")).verified
    for status, text in ((1, output), (0, output.partition("Verification")[0])):
        with pytest.raises(LapwingError, match=f"is.A.x failed with status {status}"):
            runs.reading_of("is.A.x", status, text)


@pytest.mark.usefixtures("modules_of_rewriting")
def test_npb_compares_runs_of_the_same_round() -> None:
    npb, runs = importlib.import_module("npb"), importlib.import_module("_npb_run")

    def readings(*seconds: float, verdict: str = "SUCCESSFUL") -> list[Any]:
        return [runs.Reading(s, 100 / s, verdict) for s in seconds]

    found = {
        ("original", "lab"): readings(4.0, 8.0),
        ("original", "free"): readings(1.0, 2.0),
        ("transformed", "lab"): readings(3.0, 4.0),
        ("other", "lab"): readings(5.0, 10.0, verdict="UNSUCCESSFUL"),
    }
    row = npb.row("IS", 2, "lab", "transformed", found, 100.0)
    assert row["gain"] == pytest.approx({"median": 37.5, "min": 25, "max": 50})
    assert row["ceiling"]["median"] == pytest.approx(75)
    assert row["verified"]
    other = npb.row("IS", 2, "lab", "other", found, 100.0)
    assert other["gain"]["median"] == pytest.approx(-25)
    assert not other["verified"]
    assert npb.row("IS", 2, "lab", "absent", found, 100.0)["gain"] is None


@pytest.mark.usefixtures("modules_of_rewriting")
def test_npb_names_classes_where_they_differ() -> None:
    npb = importlib.import_module("npb")
    assert npb.class_text({"IS": "A", "MG": "A"}) == "A"
    assert npb.class_text({"IS": "A", "LU": "W"}) == "IS A, LU W"


def test_npb_needs_the_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAPWING_LAB", "nosuchlab")
    done = run("rewriting/npb.py", str(tmp_path), "--lab")
    assert done.returncode == 1
    assert "--lab cannot run: no lab is up" in done.stderr
    done = run("rewriting/npb.py", str(tmp_path), "--lab", "--slower", "2")
    assert done.returncode == 2
    assert "make lab-up" in done.stderr
