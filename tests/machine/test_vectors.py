"""What is known of the processor's vectors, by what the system says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lapwing.machine import vectors

WIDE = "avx2 avx512f avx512bw avx512dq avx512vl"


@pytest.mark.parametrize(
    ("text", "wide", "waits", "halves"),
    [
        ("vendor_id : AuthenticAMD\nflags\t\t: fma avx avx2\n\nvendor_id: Another\nflags: sse2\n", 32, True, False),
        ("vendor_id : AuthenticAMD\ncpu family\t: 25\nflags : avx2\n", 32, True, False),
        (f"vendor_id : AuthenticAMD\ncpu family\t: 25\nflags : {WIDE}\n", 64, False, True),
        (f"vendor_id : AuthenticAMD\ncpu family\t: 26\nflags : {WIDE}\n", 64, False, False),
        ("vendor_id : GenuineIntel\nflags : fma avx2 avx512f\n", 32, False, False),
        (f"vendor_id : GenuineIntel\ncpu family\t: 6\nflags : {WIDE}\n", 64, False, False),
        ("vendor_id : AuthenticAMD\nflags : sse2\n", 16, False, False),
        ("CPU implementer : 0x41\n", 16, False, False),
    ],
)
def test_width_and_what_loops_wait_for(
    text: str, wide: int, waits: bool, halves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: text)
    monkeypatch.setattr(vectors, "vector_bytes", vectors.vector_bytes.__wrapped__)
    assert (vectors.vector_bytes(), vectors.has_slow_line_splits.__wrapped__()) == (wide, waits)
    assert vectors.computes_in_halves.__wrapped__() is halves


def test_where_the_system_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", missing)
    assert vectors.vector_bytes.__wrapped__() == 16
