"""Times, sizes, rates and shares as people read them: at all magnitudes, at the edges of rounding, and where nothing is known."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.units import duration, durations, in_seconds, number, rate, share, size, traffic

TIMES = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9, "ps": 1e-12}
magnitudes = st.builds(
    lambda m, e, sign: sign * m * 10.0**e, st.floats(1, 10), st.integers(-14, 7), st.sampled_from([1, -1])
)


@given(magnitudes)
def test_a_duration_is_a_number_below_a_thousand_with_the_value_it_had(seconds: float) -> None:
    text = duration(seconds)
    found = re.fullmatch(r"(-?[\d,]+(?:\.\d+)?) (s|ms|µs|ns|ps)", text)
    assert found, text
    value, unit = float(found[1].replace(",", "")), found[2]
    assert abs(value) < 1000 or unit == "s"
    assert abs(value) >= 1 or unit == "ps" or value == 0
    assert value * TIMES[unit] == pytest.approx(seconds, rel=6e-3, abs=0.5e-12)


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_no_figure_has_an_exponent(value: float) -> None:
    for text in (duration(value), in_seconds(value), rate(value), size(value), traffic(value), number(value)):
        assert not re.search(r"\d[eE]|nan|inf", text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1.4049, "1.4 s"), (0.99999999, "1 s"), (0.0021, "2.1 ms"), (3e-6, "3 µs"), (4e-9, "4 ns"), (0, "0 s"),
        (999.6e-12, "1 ns"), (999.4e-12, "999 ps"), (999.6e-9, "1 µs"), (999.96e-6, "1 ms"), (0.9996, "1 s"),
        (59.99, "60 s"), (12345.6, "12,346 s"), (-0.0012, "-1.2 ms"), (3e-13, "0 s"), (1e-12, "1 ps"),
        (math.nan, "–"), (None, "–"), (math.inf, "∞ s"), (-math.inf, "-∞ s"),
    ],
)  # fmt: skip
def test_durations_by_hand(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_several_durations_share_the_first_ones_unit() -> None:
    assert durations([1.234e-6, 0.9e-6, 12e-6]) == ("µs", ("1.23", "0.9", "12"))
    assert durations([0.0, 0.0, 3e-9]) == ("ns", ("0", "0", "3"))
    assert durations([999.6e-12, 0.0, 2e-9]) == ("ns", ("1", "0", "2"))
    assert durations([None, math.nan]) == ("s", ("–", "–"))


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.00001391, "0.0000139"), (1.40512, "1.41"), (1234.5, "1,234"), (0.2e-9, "0"), (None, "–"), (math.nan, "–")],
)
def test_columns_of_seconds(value: float | None, text: str) -> None:
    assert in_seconds(value) == text


def test_sizes_and_rates() -> None:
    assert [size(b) for b in (0, 8, 4096, 65536, 3 << 19, 1 << 30)] == [
        "0 B",
        "8 B",
        "4 KiB",
        "64 KiB",
        "1.5 MiB",
        "1 GiB",
    ]
    assert [traffic(b) for b in (0, 999, 12_345, 25_000_000)] == ["0 B", "999 B", "12.3 KB", "25 MB"]
    assert rate(1.43e9) == "1.43 GB/s"
    assert rate(None) == size(math.nan) == "–"


@pytest.mark.parametrize(
    ("part", "text"),
    [(0.974, "97%"), (0.998, "99.8%"), (0.9999, "100%"), (1, "100%"), (0, "0%"), (0.004, "0.4%"), (None, "–")],
)
def test_shares(part: float | None, text: str) -> None:
    assert share(part) == text
