"""What objects say of themselves: a line for ``repr``, a small table for notebooks."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from limits import scaled

import lapwing as lw
from lapwing.api.calls.run import run
from lapwing.html import table


@lw.nest
def smooth(u, sweeps):
    best = 0.0
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])
                best = max(best, u[i, j])
    return best


@lw.nest
def refused(u):
    for i in range(u.shape[0]):
        u[i] = u["<b>"]


class _Text(HTMLParser):
    """Checks that tags close in order; collects the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ("div", "b", "table", "tr", "th", "td")
        assert [name for name, _ in attrs] in ([], ["style"])
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data + "\n"


def text_of(html: str) -> str:
    parser = _Text()
    parser.feed(html)
    parser.close()
    assert parser.open == []
    assert "color" not in html
    assert len(html) < 5000
    return parser.text


def u() -> np.ndarray:
    return np.ones((50, 60))


def test_a_nest() -> None:
    assert repr(smooth).startswith("<nest smooth (")
    text = text_of(smooth._repr_html_())
    assert "t › i › j" in text
    assert "flow [0, 1, 0]: u[i, j]" in text


def test_a_refused_nest_escapes_what_it_quotes() -> None:
    assert repr(refused).endswith(", refused>")
    assert '"<b>" in the loops' in text_of(refused._repr_html_())
    assert text_of(table("<i>", [("a & b", "x < y"), ("a & b", "'\"")])).split() == [
        "<i>",
        "a",
        "&",
        "b",
        "x",
        "<",
        "y",
        "'\"",
    ]


def test_a_plan_is_short_and_explains_itself_when_printed() -> None:
    plan = smooth.plan(u(), 10, ranks=4)
    assert repr(plan).startswith("<plan of smooth: 4 ranks, grid 4; overlap; i pipelined, tiles of ")
    assert "\n" not in repr(plan)
    assert len(repr(plan)) < 120
    assert "because" in str(plan)
    text = text_of(plan._repr_html_())
    for line in str(plan).splitlines()[1:]:
        assert re.split(" {2,}", line.strip(), maxsplit=1)[1] in text


def test_a_plan_of_nothing() -> None:
    plan = smooth.plan(u(), 0)
    assert repr(plan).startswith("<plan of smooth: one rank;")
    text_of(plan._repr_html_())


def test_an_outcome() -> None:
    outcome = run(smooth, smooth.arguments(u(), 1))
    assert repr(outcome).startswith("<run of smooth: ")
    assert repr(outcome).endswith(" on one rank, overlap, best = np.float64(1.0)>")
    assert "best = np.float64(1.0)" in text_of(outcome._repr_html_())


def test_a_distributed_array() -> None:
    array = lw.DistributedArray(u())
    assert repr(array) == "<DistributedArray float64 of shape (50, 60), in this process>"
    assert "50 × 60" in text_of(array._repr_html_())


def test_the_public_names() -> None:
    assert dir(lw) == sorted([*lw.__all__, "open"])
    for name in dir(lw):
        assert getattr(lw, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nets'"):
        _ = lw.nets


def test_listing_names_loads_nothing() -> None:
    code = "import sys, lapwing; dir(lapwing); assert not {'numpy', 'mpi4py', 'islpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=scaled(60))
