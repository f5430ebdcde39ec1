"""Pictures of plans and runs: as files in scripts, in cells of notebooks; drawn in a real browser, without a screen."""

from __future__ import annotations

import base64
import logging
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from chromium import Chromium, find_chromium
from needs import CHROMIUM

import lapwing as lw
from lapwing.planner.plan import Plan
from lapwing.tiling.picture import stacked

in_browser = pytest.mark.skipif(find_chromium() is None, reason=CHROMIUM.reason)


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
def back(u):
    for i in range(u.shape[0] - 2, -1, -1):
        for j in range(u.shape[1] - 2, -1, -1):
            u[i, j] += 0.5 * (u[i + 1, j] + u[i, j + 1])


@lw.nest
def advect(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0]):
            for j in range(1, u.shape[1]):
                u[i, j] = 0.5 * u[i, j] + 0.25 * (u[i - 1, j] + u[i, j - 1])


@lw.nest
def volume(u):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            for k in range(1, u.shape[2]):
                u[i, j, k] = u[i - 1, j, k] + u[i, j - 1, k] + u[i, j, k - 1]


@lw.nest
def line(u):
    for i in range(1, u.shape[0]):
        u[i] = 0.5 * u[i - 1]


def u() -> np.ndarray:
    return np.ones((202, 302))


PLANS: dict[str, Any] = {
    "one rank": lambda: smooth.plan(u(), 10),
    "four ranks": lambda: smooth.plan(u(), 10, ranks=4),
    "the pipelined loop cut too": lambda: smooth.using(grid=(2, 3)).plan(u(), 10, ranks=6),
    "more ranks than are drawn": lambda: smooth.plan(u(), 10, ranks=64),
    "downwards": lambda: back.plan(u(), ranks=3),
    "along time": lambda: advect.using(grid=(2, 2)).plan(u(), 40, ranks=4),
    "three loops": lambda: volume.plan(np.ones((50, 50, 90)), ranks=4),
    "one loop": lambda: line.plan(np.ones(300)),
    "empty": lambda: smooth.plan(np.ones((2, 2)), 10),
}


class Notebook:
    """What IPython is in a kernel, as far as it is asked for something; ``cells`` are what it showed."""

    def __init__(self) -> None:
        self.cells: list[str] = []
        self.display = SimpleNamespace(HTML=lambda text: text, display=self.cells.append)

    def get_ipython(self) -> Any:
        return SimpleNamespace(kernel=object())


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    made = Notebook()
    monkeypatch.setitem(sys.modules, "IPython", made)  # type: ignore[arg-type]
    return made


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def picture_of(name: str) -> tuple[Plan, ElementTree.Element]:
    plan = PLANS[name]()
    return plan, ElementTree.fromstring(plan.picture())


def texts(picture: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in picture.iter() if element.tag.endswith("}text")]


# -- plans ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_has_a_picture(name: str) -> None:
    plan, picture = picture_of(name)
    said = texts(picture)
    assert said[0] == str(plan).splitlines()[0]
    assert any(text.startswith("pipelined:") for text in said)
    assert any(text.startswith("schedule") for text in said)
    for element in picture.iter():
        for size in ("width", "height"):
            assert float(element.get(size, 1)) > 0, element.attrib


def blocks(picture: ElementTree.Element) -> list[str]:
    return [text for text in texts(picture) if text.startswith("rank ")]


def steps(picture: ElementTree.Element, row: int) -> list[tuple[float, float]]:
    """Where the steps of a rank begin and end, from left to right, as shares of the schedule."""
    rows = [e for e in picture.iter() if e.get("class") == "row"]
    left, width, y = (float(rows[row].get(name, "")) for name in ("x", "width", "y"))
    drawn = [e for e in picture.iter() if e.get("fill") and float(e.get("y", -1)) == y and float(e.get("x", 0)) >= left]
    found = [(float(e.get("x", "")), float(e.get("width", ""))) for e in drawn]
    return [((x - left) / width, (x - left + length) / width) for x, length in found]


def test_every_rank_has_its_block_and_its_row() -> None:
    plan, picture = picture_of("four ranks")
    assert blocks(picture) == ["rank 0", "rank 1", "rank 2", "rank 3"]
    for rank in range(4):
        assert len(steps(picture, rank)) == plan.steps
    begins = [steps(picture, rank)[0][0] for rank in range(4)]
    step = 1 / (plan.steps + 3)
    assert begins == pytest.approx([rank * step for rank in range(4)], abs=1e-3)


def test_blocks_along_the_pipelined_loop_come_one_after_the_other() -> None:
    plan, picture = picture_of("the pipelined loop cut too")
    assert plan.grid == (2, 3)
    # Ranks are numbered row by row: rank 3 is the block after rank 0 along i, which is pipelined.
    assert steps(picture, 3)[0][0] >= steps(picture, 0)[-1][0]


def test_loops_downwards_begin_with_the_last_rank() -> None:
    _, picture = picture_of("downwards")
    begins = [steps(picture, rank)[0][0] for rank in range(3)]
    assert begins == sorted(begins, reverse=True)
    assert begins[0] > begins[2] == 0


def test_what_is_not_drawn_is_said() -> None:
    _, picture = picture_of("more ranks than are drawn")
    assert any("the first 12 of 64 ranks" in text for text in texts(picture))
    assert len([e for e in picture.iter() if e.get("class") == "row"]) == 12


def test_pictures_stand_one_below_the_other() -> None:
    one, other = (PLANS[name]().picture() for name in ("four ranks", "one loop"))
    both = ElementTree.fromstring(stacked([one, other]))
    first, second = both.findall("{http://www.w3.org/2000/svg}svg")
    assert first.get("y") == "0"
    assert second.get("y") == first.get("height")
    assert int(both.get("height", "")) == int(first.get("height", "")) + int(second.get("height", ""))


def test_a_script_writes_a_file_and_says_where(caplog: pytest.LogCaptureFixture) -> None:
    plan = PLANS["four ranks"]()
    with caplog.at_level(logging.INFO, "lapwing"):
        assert plan.show() == Path("smooth-plan.svg")
        assert plan.show("other.svg") == Path("other.svg")
    assert Path("other.svg").read_text() == Path("smooth-plan.svg").read_text() == plan.picture()
    assert [record.message for record in caplog.records] == [
        "plan of smooth: smooth-plan.svg", "plan of smooth: other.svg",
    ]  # fmt: skip


def test_a_file_that_cannot_be_written_is_an_error() -> None:
    with pytest.raises(lw.LapwingError, match=r"nowhere/plan\.svg: cannot be written"):
        PLANS["one rank"]().show("nowhere/plan.svg")


def test_a_notebook_shows_the_plan(notebook: Notebook) -> None:
    plan = PLANS["four ranks"]()
    assert plan.show() is None
    (cell,) = notebook.cells
    (data,) = re.findall('src="data:image/svg\\+xml;base64,([^"]+)"', cell)
    assert base64.b64decode(data).decode() == plan.picture()
    assert not list(Path().iterdir())
    assert plan.show("kept.svg") == Path("kept.svg")


def test_interactive_python_without_pictures_writes_a_file(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook, "get_ipython", lambda: SimpleNamespace())  # IPython on a terminal
    assert PLANS["one rank"]().show() == Path("smooth-plan.svg")


# -- runs ----------------------------------------------------------------------------------------------------------------


def test_a_run_gives_results_and_a_timeline() -> None:
    one, other = u(), u()
    expected = smooth.python(other, 3)
    outcome = smooth.run(one, 3)
    assert isinstance(outcome, lw.Outcome)
    assert outcome.results == {"best": expected}
    assert np.array_equal(one, other)
    assert outcome.timeline() == Path("smooth-timeline.html")
    assert "<title>smooth" in Path("smooth-timeline.html").read_text()


def test_a_notebook_shows_the_timeline(notebook: Notebook) -> None:
    assert smooth.run(u(), 3).timeline() is None
    (cell,) = notebook.cells
    assert cell.startswith('<div><iframe title="timeline of smooth"')


def test_a_rank_without_events_draws_nothing() -> None:
    outcome = smooth.run(u(), 3)
    outcome.trace = outcome.trace.without_events()
    assert outcome.timeline() is None
    assert not list(Path().iterdir())


# -- in a browser --------------------------------------------------------------------------------------------------------


@pytest.fixture
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    program = find_chromium()
    assert program is not None
    with Chromium(program, tmp_path_factory.mktemp("profile")) as started:
        yield started
        assert started.complaints == []
        assert all(url.startswith(("file:", "data:", "about:")) for url in started.requests), started.requests


def open_cell(browser: Chromium, cell: str, path: Path) -> None:
    path.write_text(f'<!doctype html><html data-ready="yes"><link rel="icon" href="data:,"><body>{cell}</body></html>')
    browser.open(path)


@in_browser
def test_a_browser_draws_the_plan_of_a_cell(browser: Chromium, notebook: Notebook, tmp_path: Path) -> None:
    PLANS["four ranks"]().show()
    open_cell(browser, notebook.cells[0], tmp_path / "cell.html")
    colours = browser.run(
        """document.images[0].decode().then(() => {
             const image = document.images[0], canvas = new OffscreenCanvas(image.naturalWidth, image.naturalHeight);
             const pen = canvas.getContext("2d");
             pen.drawImage(image, 0, 0);
             const counts = {}, pixels = pen.getImageData(0, 0, canvas.width, canvas.height).data;
             for (let k = 0; k < pixels.length; k += 4) {
               const name = [pixels[k], pixels[k + 1], pixels[k + 2]].join();
               counts[name] = (counts[name] || 0) + 1;
             }
             return counts;
           })"""
    )
    for of_rank in ("0,114,178", "0,158,115", "230,159,0", "204,121,167"):
        assert colours[of_rank] > 5000, of_rank


@in_browser
def test_no_text_of_a_plan_leaves_its_picture(browser: Chromium, tmp_path: Path) -> None:
    for name in PLANS:
        open_cell(browser, PLANS[name]().picture(), tmp_path / "plan.html")
        outside = browser.run(
            """[...document.querySelectorAll("text")].filter((text) => {
                 const box = text.getBBox(), room = text.ownerSVGElement.viewBox.baseVal;
                 return box.x < 0 || box.y < 0 || box.x + box.width > room.width || box.y + box.height > room.height;
               }).map((text) => text.textContent)"""
        )
        assert outside == [], name


@in_browser
def test_a_browser_draws_the_timeline_of_a_cell(browser: Chromium, notebook: Notebook, tmp_path: Path) -> None:
    smooth.run(u(), 20).timeline()
    open_cell(browser, notebook.cells[0], tmp_path / "cell.html")
    ready = browser.run(
        """new Promise((done) => {
             const frame = document.querySelector("iframe");
             const drawn = () => frame.contentDocument?.documentElement?.dataset.ready === "yes"
               && frame.contentDocument.getElementById("picture").width;
             const look = () => drawn() > 300 ? done(drawn()) : setTimeout(look, 50);  // 300: nothing is drawn yet
             look();
           })"""
    )
    assert ready > 300
