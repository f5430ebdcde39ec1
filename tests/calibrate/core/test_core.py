"""The ceilings of this core: measured, and remembered."""

from __future__ import annotations

import shutil
from dataclasses import fields
from pathlib import Path

import pytest

from lapwing.calibrate.core import kept
from lapwing.calibrate.core.ceilings import SIZES, measure_core
from lapwing.machine.core import ACCESSES, LATENCIES, THROUGHPUTS, Core, kinds

needs_cxx = pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler here")


@needs_cxx
def test_every_ceiling_is_measured() -> None:
    core = measure_core()
    assert core.latency.keys() == set(kinds(LATENCIES))
    assert core.scalar.keys() == core.vector.keys() == {*kinds(THROUGHPUTS), *ACCESSES}
    assert [size for size, _ in core.read] == [size for size, _ in core.update] == list(SIZES)
    seconds = [core.cycle, *core.latency.values(), *core.scalar.values(), *core.vector.values()]
    assert all(0 < s < 1e-6 for s in (*seconds, *(s for _, s in (*core.read, *core.update))))
    assert core.vector_bytes in (16, 32, 64)
    assert core.window >= 0


@needs_cxx
def test_ceilings_are_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = measure_core()
    measured: list[Core] = []

    def again(announce: object) -> Core:
        measured.append(found)
        return found

    monkeypatch.setenv("LAPWING_CACHE", str(tmp_path))
    monkeypatch.setattr(kept, "measure_core", again)
    first, second = kept.core_here(), kept.core_here()
    assert len(measured) == 1
    for field in fields(Core):
        one, other = getattr(first, field.name), getattr(second, field.name)
        if isinstance(one, dict):
            assert one == pytest.approx(other, rel=1e-5)
        elif isinstance(one, tuple):
            assert [size for size, _ in one] == [size for size, _ in other]
        else:
            assert one == pytest.approx(other, rel=1e-5)
    (file,) = (tmp_path / "cores").iterdir()
    for odd in ("", "[]", "{}", file.read_text().replace("latency", "latencies"), file.read_text().replace("e-", "e+")):
        file.write_text(odd)
        count = len(measured)
        kept.core_here()
        assert len(measured) == count + 1, odd
