"""Calibration: fits find the parameters of made-up measurements, probes work on real tiles, and the command as a user has it.

No test looks at how long anything took.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from limits import scaled
from processes import default_signals

import lapwing as lw
from lapwing.calibrate import disk, nests
from lapwing.calibrate.fingerprint import here
from lapwing.calibrate.messages import Samples, fit_link
from lapwing.calibrate.rig import times_of
from lapwing.calibrate.statistics import median_quantity, relative_noise, typical
from lapwing.calibrate.tile import Probe, kernel_key, measure_kernel, probe
from lapwing.calibrate.tiles import fit_copies, fit_operations, noise_of, subject_of
from lapwing.cli.main import main
from lapwing.errors import RefusedError
from lapwing.launch import launch
from lapwing.launch.job import Report
from lapwing.machine import stored
from lapwing.machine.document import from_document, links_document, links_from, to_document
from lapwing.machine.machine import Curve, Quantity
from lapwing.planner.choose import Wishes
from lapwing.trace.events import ACTIVITIES, EVENT

LIMIT = scaled(200)  # seconds for one command, builds included


# -- statistics ------------------------------------------------------------------------------------------------------


def test_the_interval_holds_the_true_median_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    for count in (6, 15, 40):
        inside = 0
        for _ in range(400):
            found = median_quantity(rng.exponential(size=count))
            assert found.low is not None
            assert found.high is not None
            inside += found.low <= np.log(2) <= found.high
        assert inside >= 0.93 * 400


def test_the_interval_narrows_with_more_samples() -> None:
    rng = np.random.default_rng(2)
    few, many = (median_quantity(rng.normal(10, 1, count)) for count in (8, 800))
    assert many.high - many.low < few.high - few.low  # type: ignore[operator]


def test_few_samples_are_all_in_the_interval() -> None:
    found = median_quantity([3.0, 1.0, 2.0])
    assert (found.value, found.low, found.high) == (2.0, 1.0, 3.0)
    with pytest.raises(ValueError, match="no samples"):
        median_quantity([])


def test_interruptions_do_not_count_but_alternation_does() -> None:
    assert typical([1.0] * 9 + [50.0]) == 1.0
    assert typical([1.0, 3.0] * 8) == pytest.approx(2.0, rel=0.35)
    assert typical([]) == 0.0


def test_noise_is_told_with_what_was_seen() -> None:
    quiet = noise_of(np.array([1.0, 1.01, 0.99, 1.0] * 25))
    assert quiet.warning is None
    loud = noise_of(np.array([1e-3] * 60 + [9e-3] * 40))
    assert loud.warning is not None
    assert "of 100 equal computations of 1 ms" in loud.warning
    assert "9.0 times as long" in loud.warning
    assert relative_noise([1.0]) == 0.0


# -- fits ------------------------------------------------------------------------------------------------------------

SIZES = (8, 512, 4096, 65536, 1 << 20)


def made_samples(
    send: Curve, receive: Curve, wire: Curve, latency: float, rounds: int = 9, noise: float = 0.02, wait: float = 0.0
) -> dict[int, Samples]:
    """What a machine with these parameters gives; noise only ever adds, and some rounds are interrupted."""
    rng = np.random.default_rng(3)
    found = {}
    for size in SIZES:
        s, r, w = send(size), receive(size), wire(size)

        def rounds_of(seconds: float, noise: float = noise) -> list[float]:
            values = seconds * (1 + noise * rng.random(rounds))
            values[rng.integers(rounds)] += 1e-3
            return [float(v) for v in values]

        found[size] = Samples(
            hop=rounds_of(s + w + latency + r),
            period=rounds_of(max(s, w, r)),
            send=rounds_of(2e-4 + s, 1e-4),
            receive=rounds_of(2e-4 + r, 1e-4),
            idle=rounds_of(2e-4, 1e-4),
            post_wait=rounds_of(w + latency + wait) if wait else [],
        )
    return found


def test_the_parameters_of_a_network_are_found_again() -> None:
    send, receive, wire = Curve.line(10e-6, 1e-10), Curve.line(15e-6, 2e-10), Curve.line(0.0, 4e-8)
    link = fit_link("overlap", made_samples(send, receive, wire, 30e-6), 32768)
    assert link.latency.value == pytest.approx(30e-6, rel=0.1)
    assert link.latency.low <= link.latency.value <= link.latency.high  # type: ignore[operator]
    for size in SIZES:
        assert link.send_cpu(size) == pytest.approx(send(size), rel=0.05)
        assert link.receive_cpu(size) == pytest.approx(receive(size), rel=0.05)
        assert link.wire(size) == pytest.approx(wire(size), rel=0.05, abs=3e-6)
    assert link.rendezvous_bytes == 32768
    assert link.synchronisation.value == 0.0


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_link_is_as_fast_as_its_stream(factor: float) -> None:
    """Be it that it holds several messages at a time, or that a message by itself passes in a burst."""
    samples = made_samples(Curve.line(1e-6), Curve.line(1e-6), Curve.line(0.0, 1e-8), 1e-6)
    for of_size in samples.values():
        of_size.period = [factor * p for p in of_size.period]
    assert fit_link("overlap", samples, None).wire(1 << 20) == pytest.approx(factor * 1e-8 * (1 << 20), rel=0.05)


def test_what_synchronous_sends_wait_for_on_top_is_found_again() -> None:
    line = Curve.line(5e-6)
    link = fit_link("blocking", made_samples(line, line, Curve.line(0.0, 1e-9), 20e-6, wait=25e-6), 4096)
    assert link.synchronisation.value == pytest.approx(25e-6, rel=0.1)
    assert link.rendezvous_bytes is None  # every message is synchronous


def test_a_link_on_which_cpus_do_all_has_no_wire() -> None:
    send, receive = Curve.line(1e-6), Curve.line(1e-6, 1e-10)
    link = fit_link("overlap", made_samples(send, receive, Curve.line(0.0), 2e-7), None)
    assert link.wire(1 << 20) < 0.05 * receive(1 << 20)


def test_interrupted_steps_of_large_messages_do_not_hide_the_wire() -> None:
    cpu, wire = Curve.line(8e-6, 1e-10), Curve.line(0.0, 4e-8)
    samples = made_samples(cpu, cpu, wire, 2e-5)
    samples[1 << 20].send = samples[1 << 20].receive = [30e-3] * 9
    link = fit_link("overlap", samples, None)
    assert link.wire(65536) == pytest.approx(wire(65536), rel=0.05)
    assert link.send_cpu(1 << 20) < 30 * cpu(1 << 20)


def test_noise_larger_than_the_figures_gives_no_nonsense() -> None:
    samples = {8: Samples([1e-6], [1e-6], [1e-3], [5e-3], [4e-3]), 4096: Samples([2e-6], [1e-6], [3e-3], [0.0], [1e-3])}
    link = fit_link("overlap", samples, None)
    for curve in (link.send_cpu, link.receive_cpu, link.wire):
        assert all(0 <= seconds <= 2e-6 for _, seconds in curve.samples)
    assert link.latency.value >= 0


@pytest.mark.parametrize("engine", ["blocking", "overlap"])
def test_a_fitted_link_can_be_written_and_read(engine: str) -> None:
    rng = np.random.default_rng(4)
    for _ in range(50):
        samples = {
            size: Samples(*(list(rng.normal(1e-6, 1e-6, 4)) for _ in range(6))) for size in (8, 512, 4096, 1 << 20)
        }
        for of_size in samples.values():
            of_size.hop, of_size.period = [abs(h) for h in of_size.hop], [abs(p) for p in of_size.period]
        links = {"node": {engine: fit_link(engine, samples, 8192)}}
        document = links_document(links)
        assert links_document(links_from(document, "made up")) == document


def test_copies_and_operations_are_found_again() -> None:
    contiguous = [(b, 4e-8 + 2e-11 * b) for b in (128, 1024, 8192, 65536)]
    strided = [(b, 4e-8 + 1.5e-9 * b / 8) for b in (128, 1024, 8192)]
    copies = fit_copies(contiguous, strided, itemsize=8)
    assert copies.contiguous_seconds_per_byte.value == pytest.approx(2e-11)
    assert copies.strided_seconds_per_element.value == pytest.approx(1.5e-9)
    assert copies.seconds_per_part.value == pytest.approx(4e-8)
    measured = {
        "load": Quantity(1e-9, 1e-9, 1e-9),
        "add": Quantity(9e-9, 9e-9, 9e-9),
        "sqrt": Quantity(33e-9, 33e-9, 33e-9),
    }
    costs = fit_operations(measured)
    assert costs["add"].value == pytest.approx(1e-9)
    assert costs["sqrt"].value == pytest.approx(4e-9)
    assert costs["load"].value == costs["store"].value == pytest.approx(0.5e-9)


def test_times_of_a_trace() -> None:
    def event(activity: str, begin: float, seconds: float, thread: int = 0) -> Any:
        found = np.zeros(1, EVENT)
        found["activity"], found["begin"], found["seconds"], found["thread"] = (
            ACTIVITIES.index(activity),
            begin,
            seconds,
            thread,
        )
        return found

    events = np.concatenate([
        event("wait", 0.0, 1.0), event("compute", 1.0, 1.0), event("post", 2.0, 0.5), event("wait", 2.5, 0.5),
        event("compute", 3.0, 1.0), event("wait", 4.0, 2.0, thread=1), event("pack", 4.0, 0.5), event("compute", 5.0, 1.0),
        event("wait", 6.0, 9.0),
    ])  # fmt: skip
    times = times_of(events)
    assert times.periods.tolist() == [2.0, 2.0]
    assert times.busy.tolist() == [1.5, 2.0]
    assert times.post_waits.tolist() == [0.5]


def test_the_curve_of_a_disk_is_the_median_of_rounds() -> None:
    curve = disk.disk_curve({8192: [2.0, 9.0, 1.0], 4096: [1.0]}, "made up")
    assert curve.samples == ((4096.0, 1.0), (8192.0, 2.0))
    assert curve.high == (1.0, 9.0)


# -- probes of real tiles --------------------------------------------------------------------------------------------


@lw.nest
def backwards(u, w):  # type: ignore[no-untyped-def]
    """Descends, reads ahead and behind, and has rows of its own length."""
    for i in range(u.shape[0] - 2, 0, -1):
        for j in range(1, u.shape[1] - 1):
            u[i, j] = 0.5 * (u[i + 1, j] + u[i, j - 1]) + w[j]


@lw.nest
def triangle(u):  # type: ignore[no-untyped-def]
    for i in range(1, u.shape[0]):
        for j in range(1, i + 1):
            u[i, j] = 0.5 * (u[i - 1, j] + u[i, j - 1])


@lw.nest
def table(u, at, values):  # type: ignore[no-untyped-def]
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = u[i - 1, j] + values[at[j]]


def _one_probe(nest: lw.Nest, candidate: Any, **arguments: Any) -> Probe:
    bound = nest.bind(arguments)
    (found,) = probe(bound, nest.dependences, [candidate], 0.02, arguments=arguments)
    assert found.step.low <= found.step.value <= found.step.high  # type: ignore[operator]
    assert found.step.value > 0
    return found


def test_a_probe_knows_its_step_and_its_faces() -> None:
    found = _one_probe(nests.gauss_seidel, ((30, 100), 1, 10), u=np.ones((66, 130)), sweeps=3)
    assert (found.points, found.run) == (300, 10)
    assert found.working_set_bytes == 32 * 102 * 8
    # Rows of ten values go to the next rank and, old ones, to the former; nothing leaves along the mapping loop.
    assert [(f.axis, f.direction, f.bytes, f.parts) for f in found.faces] == [(0, -1, 80, 1), (0, 1, 80, 1)]


def test_a_step_along_time_is_several_sweeps() -> None:
    found = _one_probe(nests.gauss_seidel, ((30, 100), None, 4), u=np.ones((66, 130)), sweeps=8)
    assert found.points == 4 * 30 * 100
    assert {(f.axis, f.bytes) for f in found.faces} == {(0, 4 * 800), (1, 4 * 240)}


@pytest.mark.parametrize("mapping", [0, 1])
def test_descending_loops_and_other_arrays(mapping: int) -> None:
    found = _one_probe(backwards, ((16, 24), mapping, 4), u=np.ones((40, 60)), w=np.ones(60))
    assert found.points == 4 * (24 if mapping == 0 else 16)
    assert [(f.axis, f.direction) for f in found.faces] == [(1 - mapping, 1)]


def test_only_points_of_the_domain_count() -> None:
    found = _one_probe(triangle, ((60, 60), 0, 10), u=np.ones((61, 61)))
    assert found.points == pytest.approx(60 * 61 / 2 / 6, rel=0.05)


def test_made_up_arrays_lead_nowhere_outside_of_tables() -> None:
    arguments = {"u": np.ones((9, 20)), "at": np.arange(20) % 5, "values": np.ones(5)}
    bound = table.bind(arguments)
    (found,) = probe(bound, table.dependences, [((4, 20), 1, 5)], 0.01)
    assert found.points == 20


def test_a_block_larger_than_the_domain_is_cut_to_it() -> None:
    found = _one_probe(backwards, ((1000, 1000), 1, 5000), u=np.ones((40, 60)), w=np.ones(60))
    assert found.points == 38 * 58


@pytest.mark.parametrize("candidate", [((4,), 0, 1), ((4, 4), 2, 1), ((4, 4), 0, 0), ((0, 4), 0, 1)])
def test_what_is_no_tile_is_refused(candidate: Any) -> None:
    bound = backwards.bind({"u": np.ones((9, 9)), "w": np.ones(9)})
    with pytest.raises(RefusedError, match=r"backwards: block .* expected 2 extents"):
        probe(bound, backwards.dependences, [candidate], 0.01)


def test_a_nest_without_iterations_is_refused() -> None:
    bound = backwards.bind({"u": np.ones((2, 9)), "w": np.ones(9)})
    with pytest.raises(RefusedError, match="backwards: a loop has no iterations"):
        probe(bound, backwards.dependences, [((4, 4), 0, 1)], 0.01)


def test_probes_come_in_the_order_of_candidates() -> None:
    bound = nests.bound_to(nests.gauss_seidel, u=("float64", (66, 130)), sweeps=1)
    candidates = [((30, 100), 1, 10), ((20, 20), 0, 5), ((30, 100), 0, 7)]
    found = probe(bound, nests.gauss_seidel.dependences, candidates, 0.02)
    assert [(p.block, p.mapping, p.tile) for p in found] == candidates


def test_a_kernel_is_known_by_its_source_not_its_sizes() -> None:
    def key(nest: lw.Nest, dtype: str, n: int) -> str:
        return kernel_key(nests.bound_to(nest, u=(dtype, (n, n)), sweeps=1), nest.dependences)

    assert key(nests.gauss_seidel, "float64", 20) == key(nests.gauss_seidel, "float64", 50)
    assert key(nests.gauss_seidel, "float64", 20) != key(nests.gauss_seidel, "float32", 20)
    bound = nests.bound_to(nests.gauss_seidel, u=("float64", (66, 130)), sweeps=1)
    kernel = measure_kernel(bound, nests.gauss_seidel.dependences, [((30, 100), 1, 10), ((30, 100), 1, 50)], 0.02)
    assert kernel.key == key(nests.gauss_seidel, "float64", 20)
    assert [s.points_a_step for s in kernel.samples] == [300, 1500]
    assert kernel.seconds_per_point(300, 10, kernel.samples[0].working_set_bytes) == kernel.samples[0].seconds_per_point


def test_a_nest_of_the_users_gets_tiles_around_its_own() -> None:
    subject = subject_of(nests.gauss_seidel, {"u": np.ones((514, 514)), "sweeps": 4}, Wishes(), 2)
    heights = [height for _, _, height in subject.candidates]
    assert len(heights) == len(set(heights)) >= 2
    assert all(len(block) == 2 for block, _, _ in subject.candidates)


def test_the_fingerprint_names_cpu_and_mpi() -> None:
    assert here(with_mpi=False).mpi == ""
    assert here(with_mpi=False).cpu == here(with_mpi=True).cpu != ""
    assert here(with_mpi=True).mpi != ""


# -- disks -----------------------------------------------------------------------------------------------------------


def test_a_disk_is_measured_and_left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_FILE_BYTES", 8 << 20)
    shares: list[float] = []
    found = disk.measure_disk(tmp_path, 0.05, shares.append, sizes=(4096, 65536))
    assert [size for size, _ in found.both.samples] == [4096.0, 65536.0]
    assert all(seconds > 0 for mode in disk.MODES for _, seconds in getattr(found, mode).samples)
    assert str(tmp_path) in found.source
    assert list(tmp_path.iterdir()) == []
    assert shares == sorted(shares)


def test_no_disk_without_room_or_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RefusedError, match="does not exist; expected a directory"):
        disk.check_directory(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(RefusedError, match="is no directory"):
        disk.check_directory(tmp_path / "file")
    monkeypatch.setattr(disk, "_FILE_BYTES", 1 << 60)
    with pytest.raises(RefusedError, match="MiB are free, but measuring takes a file of"):
        disk.check_directory(tmp_path)


# -- the command -----------------------------------------------------------------------------------------------------

MINE = """
import lapwing as lw
import numpy as np

@lw.nest
def mine(u):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = 0.5 * (u[i - 1, j] + u[i, j - 1])

@mine.problem
def problem(n: int = 64):
    return {"u": np.ones((n, n))}
"""


def _lapwing(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lapwing", "calibrate", *words], cwd=cwd, capture_output=True, text=True, timeout=LIMIT
    )


@pytest.mark.mpi
def test_calibrate_end_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    words = ["mine.py", "-p", "n=80", "--seconds", "1", "-o", "here.json", "--json", "out/here.json"]
    done = _lapwing(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    machine = stored.read(tmp_path / "here.json")
    assert from_document(json.loads((tmp_path / "out" / "here.json").read_text()), "here") == machine
    assert set(machine.links["node"]) == {"blocking", "overlap", "onesided", "helper"}
    assert {kernel.name for kernel in machine.kernels.values()} == {"sqrt3d", "gauss_seidel", "sor3d", "mine"}
    assert machine.fingerprint == here(with_mpi=True)
    assert machine.seconds_per_operation["sqrt"].value >= 0
    for text in ("messages on a node", "tiles", "mine", "written to here.json"):
        assert text in done.stdout

    # What is not measured again stays.
    again = replace(machine, kernels={key: k for key, k in machine.kernels.items() if k.name != "mine"})
    report = Report({"machine": to_document(again), "warnings": []}, ())
    monkeypatch.setattr(launch, "launch", lambda *_: report)
    with pytest.raises(SystemExit) as stop:
        main(["calibrate", "-o", str(tmp_path / "here.json")])
    assert stop.value.code == 0
    assert "tiles of mine" in capsys.readouterr().out
    assert "mine" in {kernel.name for kernel in stored.read(tmp_path / "here.json").kernels.values()}


@pytest.mark.mpi
def test_interrupted_it_leaves_nothing(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "lapwing", "calibrate", "--seconds", "300", "-o", "here.json"]
    mark = f"LAPWING_TEST_MARK={uuid.uuid4()}"
    environment = {**os.environ, "LAPWING_TEST_MARK": mark.partition("=")[2]}
    process = subprocess.Popen(
        words, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True, preexec_fn=default_signals
    )
    deadline = time.monotonic() + LIMIT
    while len(_workers(mark)) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(_workers(mark)) == 2
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=scaled(30)) == 130
    assert process.stderr is not None
    assert "interrupted" in process.stderr.read()
    assert list(tmp_path.iterdir()) == []
    assert _workers(mark) == []


def _workers(mark: str) -> list[int]:
    """The ranks' processes that have a mark in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            marked = mark.encode() in (entry / "environ").read_bytes().split(b"\0") if words else False
        except OSError:
            continue
        if marked and b"lapwing.session.calibrate_worker" in words and b"-m" in words[:3]:
            found.append(int(entry.name))
    return found


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere.py"], "nowhere.py does not exist"),
        (["-n", "1"], "Invalid value for '-n'"),
        (["-p", "n=3"], "there is no nest to set parameters of"),
        (["--disk", "/nowhere"], "--disk /nowhere: it does not exist"),
        (["--seconds", "0"], "Invalid value for '--seconds'"),
        (["-o", "/proc/nothing.json"], "-o /proc/nothing.json: cannot write there"),
        (["--hosts", "nowhere"], "Invalid value for '--hosts'"),
    ],
)
def test_wrong_usage_is_refused_before_anything_is_measured(words: list[str], message: str, tmp_path: Path) -> None:
    done = _lapwing(*words, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr


def test_not_under_a_launcher(tmp_path: Path) -> None:
    environment = {**os.environ, "PMI_SIZE": "2"}
    words = [sys.executable, "-m", "lapwing", "calibrate"]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 2
    assert "starts the ranks itself" in done.stderr
