"""Machine descriptions: what curves and kernels say between samples, files and what is wrong with them, known clusters."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_cores import made_core

from lapwing.errors import LapwingError, RefusedError
from lapwing.machine import stored
from lapwing.machine.document import from_text, links_document, links_from, to_document, to_text
from lapwing.machine.machine import (
    Copies,
    Curve,
    Disk,
    Fingerprint,
    Kernel,
    KernelSample,
    Link,
    Machine,
    Quantity,
)


def made_link(latency: float = 2e-6) -> Link:
    return Link(
        send_cpu=Curve(((8.0, 1e-6), (4096.0, 2e-6)), (0.9e-6, 1.8e-6), (1.2e-6, 2.5e-6), "made up"),
        receive_cpu=Curve.line(1e-6, 1e-10),
        wire=Curve.line(0.0, 1e-9),
        latency=Quantity(latency, latency / 2, 2 * latency, "made up"),
        synchronisation=Quantity(1e-6),
        rendezvous_bytes=8192,
    )


def made_machine() -> Machine:
    kernel = Kernel("abc", "smooth", (KernelSample(1000, 10, 80_000, 1e-9, 0.9e-9, 1.1e-9),), Quantity(1e-7), "made up")
    line = Curve.line(1e-4, 1e-9)
    return Machine(
        name="made up",
        source="a test",
        cores_a_node=2,
        links={"node": {"*": made_link()}, "network": {"overlap": made_link(5e-5), "*": made_link(9e-5)}},
        copies=Copies(Quantity(1e-10), Quantity(2e-9), Quantity(5e-8)),
        seconds_per_operation={"add": Quantity(1e-9), "sqrt": Quantity(4e-9)},
        disk=Disk(line, line, line, line, line, "made up"),
        core=made_core(window=70.0),
        kernels={"abc": kernel},
        known_nests={"sqrt3d": Quantity(4.41e-7)},
        noise=0.02,
        created="today",
        fingerprint=Fingerprint("a CPU", "an MPI"),
    )


# -- numbers ---------------------------------------------------------------------------------------------------------


def test_a_curve_is_linear_between_samples_constant_below_and_goes_on_beyond() -> None:
    curve = Curve(((10.0, 1.0), (20.0, 3.0), (40.0, 4.0)))
    assert [curve(b) for b in (0, 10, 15, 30, 40, 60)] == [1.0, 1.0, 2.0, 3.5, 4.0, 5.0]


def test_a_curve_takes_arrays() -> None:
    curve = Curve.line(1e-6, 1e-9)
    sizes = np.array([[0, 1000], [2_000_000, 5]])
    np.testing.assert_allclose(curve(sizes), 1e-6 + 1e-9 * sizes)
    assert isinstance(curve(7), float)


def test_a_curve_never_falls_beyond_its_samples() -> None:
    assert Curve(((10.0, 2.0), (20.0, 1.0)))(1e6) == 1.0


def test_a_curve_of_one_sample_is_constant() -> None:
    assert Curve.line(3.0)(0) == Curve.line(3.0)(1e9) == 3.0


def test_a_kernel_gives_its_samples_and_what_lies_between_two() -> None:
    samples = tuple(KernelSample(64 * z, z, 1 << 20, s) for z, s in ((16, 4e-9), (64, 2e-9), (256, 1e-9)))
    kernel = Kernel("k", "n", samples, Quantity(0.0))
    for sample in samples:
        assert kernel.seconds_per_point(*sample[:3]) == pytest.approx(sample.seconds_per_point)
    assert kernel.seconds_per_point(64 * 32, 32, 1 << 20) == pytest.approx(3e-9)  # half way by logarithms
    assert kernel.seconds_per_point(64 * 4096, 4096, 1 << 20) == pytest.approx(1e-9)  # nothing is extrapolated


def test_a_kernel_tells_blocks_in_cache_from_others() -> None:
    samples = (KernelSample(4096, 64, 1 << 20, 1e-9), KernelSample(4096, 64, 1 << 30, 3e-9))
    kernel = Kernel("k", "n", samples, Quantity(0.0))
    assert kernel.seconds_per_point(4096, 64, 1 << 21) < 1.5e-9 < 2.5e-9 < kernel.seconds_per_point(4096, 64, 1 << 29)


def test_links_by_engine_or_for_all() -> None:
    machine = made_machine()
    assert machine.link("network", "overlap").latency.value == 5e-5
    assert machine.link("network", "helper").latency.value == 9e-5
    alone = replace(machine, links={"node": machine.links["node"]})
    with pytest.raises(RefusedError, match=r"made up has no link at place 'network' for engine overlap; it has node"):
        alone.link("network", "overlap")


def test_another_cpu_or_mpi_is_noticed() -> None:
    before = Fingerprint("EPYC", "MPICH 5")
    assert before.changes(Fingerprint("EPYC", "MPICH 5")) == ()
    assert before.changes(Fingerprint("EPYC", "")) == ()
    assert before.changes(Fingerprint("Xeon", "Open MPI")) == (
        "CPU: measured on EPYC, now Xeon",
        "MPI: measured on MPICH 5, now Open MPI",
    )


# -- files -----------------------------------------------------------------------------------------------------------


def test_a_machine_survives_its_file(tmp_path: Path) -> None:
    machine = made_machine()
    path = tmp_path / "deep" / "machine.json"
    stored.write(machine, path)
    assert stored.read(path) == machine
    assert stored.find(str(path)) == machine
    assert to_text(stored.read(path)) == path.read_text()


def test_numbers_are_as_long_as_they_are_known() -> None:
    link = replace(made_link(), latency=Quantity(1.23456789e-6, 1.23456712e-6, 1.23456799e-6))
    written = links_document({"node": {"*": link}})["node"]["*"]["latency_seconds"]
    assert (written["low"], written["value"], written["high"]) == (1.23457e-6, 1.23457e-6, 1.23457e-6)


def test_links_travel_alone() -> None:
    links = made_machine().links
    assert links_from(json.loads(json.dumps(links_document(links))), "the ranks") == links


def test_units_stand_in_the_keys() -> None:
    document = to_document(made_machine())
    assert document["links"]["node"]["*"]["latency_seconds"]["value"] == 2e-6
    assert document["copies"]["contiguous_seconds_per_byte"]["source"] == ""
    assert document["kernels"]["abc"]["samples"][0]["working_set_bytes"] == 80_000


def _edit(*keys: Any, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        for key in keys[:-1]:
            document = document[key]
        document[keys[-1]] = value

    return change


def _drop(*keys: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        for key in keys[:-1]:
            document = document[key]
        del document[keys[-1]]

    return change


_LATENCY = ("links", "node", "*", "latency_seconds")
_WRONG = {
    "no-links": (_drop("links"), "links is missing"),
    "no-latency": (_drop(*_LATENCY), r"links.node.\*.latency_seconds is missing"),
    "absurd-latency": (_edit(*_LATENCY, "value", value=1e9), r"latency_seconds.value: found 1000000000.0, expected seconds"),
    "microseconds": (_edit(*_LATENCY, "value", value=49.2), "latency_seconds.value: found 49.2, expected seconds, from 0 to 1"),
    "negative": (_edit(*_LATENCY, "value", value=-1e-6), "found -1e-06, expected seconds"),
    "nan": (_edit(*_LATENCY, "value", value=math.nan), "found NaN, expected seconds"),
    "text": (_edit(*_LATENCY, "value", value="2 us"), 'found "2 us", expected seconds'),
    "truth": (_edit(*_LATENCY, "value", value=True), "found true, expected seconds"),
    "low-above": (_edit(*_LATENCY, "low", value=1.0), "latency_seconds.low: found 1.0, .*lower end of an interval"),
    "high-below": (_edit(*_LATENCY, "high", value=0.0), "latency_seconds.high: found 0.0, .*upper end of an interval"),
    "unknown-key": (_edit("colour", value="red"), "colour is not known; expected format, version"),
    "unknown-unit": (_edit("links", "node", "*", "latency_us", value=2), r"latency_us is not known"),
    "unknown-place": (_edit("links", "moon", value={}), "links.moon is not known; expected places: node, network"),
    "unknown-engine": (_edit("links", "node", "psychic", value={}), "links.node.psychic is not known; expected engines"),
    "no-places": (_edit("links", value={}), "links: found {}, expected at least one place"),
    "slow-bytes": (_edit("links", "node", "*", "wire", "seconds", value=[0.0, 1e6]), r"wire.seconds\[1\]: found 1000000.0"),
    "short-column": (_edit("links", "node", "*", "wire", "seconds", value=[0.0]), "wire.seconds: .*expected 2 numbers"),
    "unsorted": (_edit("links", "node", "*", "wire", "bytes", value=[9, 3]), "wire.bytes: .*expected sizes that ascend"),
    "no-samples": (_edit("kernels", "abc", "samples", value=[]), r"samples: found \[\], expected a list"),
    "half-a-point": (_edit("kernels", "abc", "samples", 0, "points_a_step", value=0.5), "points_a_step: found 0.5"),
    "slow-point": (_edit("kernels", "abc", "samples", 0, "seconds_per_point", value=3.0), "seconds_per_point: found 3.0"),
    "cores": (_edit("cores_a_node", value=0), "cores_a_node: found 0, expected cores of a node, a whole number"),
    "operation": (_edit("seconds_per_operation", "dance", value={}), "seconds_per_operation.dance is not known"),
    "core": (_drop("core", "latency_seconds", "sqrt float64"), "core.latency_seconds.sqrt float64 is missing"),
    "vectors": (_edit("core", "vector_bytes", value=0.5), "core.vector_bytes: found 0.5, expected bytes"),
    "no-pair": (_edit("core", "read_seconds_per_byte", value=[[1, 2, 3]]), r"read_seconds_per_byte\[0\]: .*expected a size"),
    "list": (_edit("copies", value=[]), r"copies: found \[\], expected an object with"),
    "old-version": (_edit("version", value=99), "version: found 99, expected 1. Calibrate again"),
    "format": (_edit("format", value="cake"), "is no machine description"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "message"), _WRONG.values(), ids=_WRONG)
def test_a_file_that_makes_no_sense_is_refused_key_by_key(
    change: Callable[[dict[str, Any]], None], message: str
) -> None:
    document = json.loads(to_text(made_machine()))
    change(document)
    with pytest.raises(RefusedError, match=message) as error:
        from_text(json.dumps(document), "some.json")
    assert str(error.value).startswith("some.json")


@pytest.mark.parametrize("text", ["", "no JSON", "[1, 2", "[1]", "3", "null", '"machine"', "[" * 100_000])
def test_what_is_no_description_is_refused(text: str) -> None:
    with pytest.raises(RefusedError, match=r"^some.json is (not JSON|no machine description)"):
        from_text(text, "some.json")


def test_files_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name in (str(tmp_path), str(tmp_path / "binary")):
        with pytest.raises(RefusedError, match="cannot be read"):
            stored.find(name)
    with pytest.raises(RefusedError, match=r"no machine nowhere: expected a file, or one of .*p0-fastethernet"):
        stored.find("nowhere")
    with pytest.raises(LapwingError, match="cannot be written"):
        stored.write(made_machine(), tmp_path / "binary" / "machine.json")


def test_the_machine_here_is_known_once_it_was_measured(tmp_path: Path) -> None:
    assert stored.own(tmp_path) is None
    stored.write(made_machine(), stored.own_path(tmp_path))
    assert stored.own(tmp_path) == made_machine()


def test_what_was_not_measured_again_is_kept() -> None:
    before = made_machine()
    kernel = replace(before.kernels["abc"], key="new", name="fresh")
    measured = replace(before, links={"node": {"*": made_link(7e-6)}}, disk=None, kernels={"new": kernel}, noise=0.5)
    joined, said = stored.joined(measured, before)
    assert joined.links == {"node": {"*": made_link(7e-6)}, "network": before.links["network"]}
    assert joined.disk == before.disk
    assert set(joined.kernels) == {"abc", "new"}
    assert joined.noise == 0.5
    assert [text.split(":")[1].split()[0] for text in said] == ["messages", "the", "tiles"]
    assert stored.joined(before, before) == (before, [])


# -- clusters --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", stored.cluster_names())
def test_every_number_of_a_known_cluster_has_a_source(name: str) -> None:
    machine = stored.find(name)
    assert machine.name == name
    document = to_document(machine)

    def without_source(value: Any, key: str) -> list[str]:
        if not isinstance(value, dict):
            return []
        if "value" in value or "bytes" in value:
            return [] if value["source"] else [key]
        return [found for k, item in value.items() for found in without_source(item, f"{key}.{k}")]

    assert machine.source
    assert without_source(document, name) == []


def test_the_papers_clusters_have_the_papers_numbers() -> None:
    p0 = stored.find("p0-fastethernet")
    link = p0.link("network", "overlap")
    assert link.send_cpu(1000) == pytest.approx(60e-6 + 1e-5)
    assert link.wire(12_500_000) == pytest.approx(1.0)  # 100 Mbit/s
    assert p0.known_nests["sqrt3d"].value == 0.441e-6
    sci = stored.find("p1-sci").link("network", "onesided")
    assert sci.send_cpu(1 << 20) == pytest.approx(49.2e-6)  # t_start_dma
    assert sci.synchronisation.value == pytest.approx(4 * 18.8e-6)  # four interrupts
    disk = stored.find("p3-fastethernet").disk
    assert disk is not None
    assert disk.read(37_060_000) == pytest.approx(1.0, rel=1e-5)
