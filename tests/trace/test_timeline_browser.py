"""The timeline page in a real browser, without a screen: what is drawn, and what the mouse and the keyboard do."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chromium import Chromium, find_chromium
from made_traces import many_events, out_of_core, pipeline, run_of, two_ranks
from needs import CHROMIUM

from lapwing.trace.timeline import timeline_page

PROGRAM = find_chromium()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason=CHROMIUM.reason)

SHIFT = 8
DISK = ("disk", "read", "write")
COLOURS = """(() => {
  const pixels = picture.getContext("2d").getImageData(0, 0, picture.width, picture.height).data;
  const counts = {};
  for (let k = 0; k < pixels.length; k += 4) {
    const colour = `rgb(${pixels[k]}, ${pixels[k + 1]}, ${pixels[k + 2]})`;
    counts[colour] = (counts[colour] || 0) + 1;
  }
  const probe = document.createElement("i");
  document.body.append(probe);
  const named = {};
  for (const [name] of LEGEND) {
    probe.style.color = `var(--${name})`;
    named[name] = counts[getComputedStyle(probe).color] || 0;
  }
  probe.remove();
  return named;
})()"""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    assert PROGRAM is not None
    with Chromium(PROGRAM, tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture
def browser(chromium: Chromium) -> Iterator[Chromium]:
    """The browser; what it complains about fails the test."""
    chromium.complaints.clear()
    chromium.requests.clear()
    chromium.scheme("light")
    yield chromium
    assert chromium.complaints == []
    assert all(url.startswith(("file:", "data:")) for url in chromium.requests)


@pytest.fixture
def page(browser: Chromium, tmp_path: Path) -> Chromium:
    """A page with a blocking and an overlapping run, the latter with a prediction."""
    overlap = replace(pipeline("overlap", steps=40), predicted=pipeline("overlap", steps=40, uneven=0.1).ranks)
    show(browser, tmp_path, pipeline("blocking", steps=40), overlap)
    return browser


def show(browser: Chromium, folder: Path, *runs: Any) -> None:
    path = folder / "timeline.html"
    path.write_text(timeline_page(runs), encoding="utf-8")
    browser.open(path)


def visible(browser: Chromium) -> tuple[float, float]:
    """The visible range in seconds, as the page says it."""
    data = json.loads(browser.run("JSON.stringify(document.getElementById('range').dataset)"))
    return float(data["from"]), float(data["to"])


def point(browser: Chromium, row: str, event: int) -> tuple[float, float]:
    """Where on the screen the middle of an event is. row: a condition in JavaScript on a row and its track."""
    place = browser.run(
        f"""(() => {{
          chart.scrollIntoView();
          const row = view.rows.find((row) => row.kind === "track" && ({row}));
          const run = row.run, event = row.track.first + {event}, box = chart.getBoundingClientRect();
          const middle = (run.begin[event] + run.length[event] / 2) * run.unit;
          return [box.left + 1 + xOf(middle), box.top + row.y + row.height / 2 - chart.scrollTop];
        }})()"""
    )
    return round(place[0]), round(place[1])


def tooltip(browser: Chromium) -> list[str]:
    """The lines of the tooltip; none where it is hidden."""
    text = browser.run("tooltip.hidden ? '' : tooltip.innerText")
    return [line.strip() for line in text.splitlines() if line.strip()]


def rows(browser: Chromium) -> list[str]:
    found: list[str] = browser.run(
        """view.rows.filter((row) => row.kind === "track")
             .map((row) => `${row.run.engine} ${row.rank.rank}${row.rank.predicted ? "p" : ""} ${row.track.kind}`)"""
    )
    return found


def test_every_rank_has_its_tracks(page: Chromium) -> None:
    way = "messages on their way"
    assert rows(page) == [
        "blocking 0 compute", "blocking 0 communication",
        f"blocking 1 {way}", "blocking 1 compute", "blocking 1 communication",
        "overlap 0 compute", "overlap 0 communication", "overlap 0p compute", "overlap 0p communication",
        f"overlap 1 {way}", "overlap 1 compute", "overlap 1 communication",
        f"overlap 1p {way}", "overlap 1p compute", "overlap 1p communication",
    ]  # fmt: skip
    assert page.run("document.querySelectorAll('#tables tbody tr').length") == 4
    assert page.run("document.querySelectorAll('#figures tbody tr').length") == 2
    assert page.run("document.title").startswith("smooth: blocking, overlap")


@pytest.mark.parametrize(("width", "height"), [(1400, 1000), (1280, 720)])
def test_the_timeline_of_four_engines_stands_on_the_first_screen(
    browser: Chromium, tmp_path: Path, width: int, height: int
) -> None:
    engines = ("blocking", "overlap", "onesided", "helper")
    runs = [replace(pipeline("overlap", ranks=4), engine=engine) for engine in engines]
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
    try:
        show(browser, tmp_path, *runs)
        assert browser.run("chart.getBoundingClientRect().top") < 0.65 * height
        assert browser.run("document.documentElement.scrollWidth <= innerWidth")
        assert browser.run("document.getElementById('summary').scrollHeight - summary.clientHeight") <= 1
    finally:
        browser.call("Emulation.setDeviceMetricsOverride", width=1400, height=1000, deviceScaleFactor=1, mobile=False)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_activity_is_drawn_in_both_schemes(page: Chromium, tmp_path: Path, scheme: str) -> None:
    page.scheme(scheme)
    page.run("show(0.01, 0.013)")
    page.settle()
    drawn = page.run(COLOURS)
    assert all(count > 10 for name, count in drawn.items() if name not in ("late", *DISK)), drawn
    assert drawn["compute"] > 5000
    page.screenshot(tmp_path / "shot.png")
    assert distinct_colours(page, tmp_path / "shot.png") > 20


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_reads_and_writes_are_drawn(browser: Chromium, tmp_path: Path, scheme: str) -> None:
    browser.scheme(scheme)
    show(browser, tmp_path, out_of_core())
    browser.settle()
    drawn = browser.run(COLOURS)
    assert all(drawn[name] > 10 for name in DISK), drawn
    x, y = point(browser, "row.track.kind === 'writes'", 0)
    browser.mouse("mouseMoved", x, y)
    assert tooltip(browser)[0] == "slab being written, rank 0"
    assert "wait: disk" in browser.run("document.getElementById('legend').innerText")


def test_schemes_differ(page: Chromium) -> None:
    light = page.run("colours.compute + getComputedStyle(document.body).color")
    page.scheme("dark")
    assert page.run("colours.compute + getComputedStyle(document.body).color") != light


def distinct_colours(browser: Chromium, picture: Path) -> int:
    """Of a screenshot, which the browser itself decodes; on a page of its own, since the timeline's may load nothing."""
    encoded = base64.b64encode(picture.read_bytes()).decode()
    page = picture.with_suffix(".html")
    page.write_text(
        f'<html data-ready="yes"><link rel="icon" href="data:,"><img src="data:image/png;base64,{encoded}">'
    )
    browser.open(page)
    count: int = browser.run(
        """document.images[0].decode().then(() => {
             const canvas = new OffscreenCanvas(document.images[0].width, document.images[0].height);
             const pen = canvas.getContext("2d");
             pen.drawImage(document.images[0], 0, 0);
             return new Set(new Uint32Array(pen.getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size;
           })"""
    )
    return count


def test_the_wheel_zooms_around_the_pointer(page: Chromium) -> None:
    begin, end = visible(page)
    x, y = point(page, "row.track.kind === 'compute'", 20)
    at = page.run(f"timeAt(positionOf({{ clientX: {x}, clientY: {y} }}).x)")
    page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-400)
    closer = visible(page)
    assert closer[1] - closer[0] == pytest.approx((end - begin) / 2.71828, rel=1e-3)
    assert page.run(f"timeAt(positionOf({{ clientX: {x}, clientY: {y} }}).x)") == pytest.approx(at)
    page.mouse("mouseWheel", x, y, deltaX=0, deltaY=4000)
    assert visible(page) == (begin, end)


def test_dragging_moves_and_with_shift_selects(page: Chromium) -> None:
    page.run("show(0.02, 0.04)")
    page.settle()
    x, y = point(page, "row.track.kind === 'compute'", 20)
    width = page.run("plotWidth()")
    page.drag((x, y), (x - width / 4, y))
    assert visible(page) == pytest.approx((0.025, 0.045))
    left = page.run("chart.getBoundingClientRect().left + 1 + GUTTER")
    page.drag((left + 0.5 * width, y), (left + 0.75 * width, y), modifiers=SHIFT)
    assert visible(page) == pytest.approx((0.035, 0.04), rel=1e-3)


def test_the_keyboard_moves_and_zooms(page: Chromium) -> None:
    whole = visible(page)
    page.run("chart.focus()")
    page.key("+")
    closer = visible(page)
    assert closer[1] - closer[0] == pytest.approx(0.6 * (whole[1] - whole[0]))
    page.key("ArrowRight")
    moved = visible(page)
    assert moved[0] > closer[0]
    assert moved[1] - moved[0] == pytest.approx(closer[1] - closer[0])
    page.key("-")
    page.key("0")
    assert visible(page) == whole


def test_buttons_zoom_and_show_the_whole_run(page: Chromium) -> None:
    begin, end = visible(page)
    page.click("#zoom-in")
    assert visible(page) == pytest.approx((0.25 * end, 0.75 * end))
    page.click("#zoom-out")
    page.click("#zoom-in")
    page.click("#reset")
    assert visible(page) == (begin, end)


def test_a_double_click_zooms_to_an_event(page: Chromium) -> None:
    x, y = point(page, "row.run.engine === 'blocking' && row.track.kind === 'compute'", 5)
    for kind, count in (("mousePressed", 1), ("mouseReleased", 1), ("mousePressed", 2), ("mouseReleased", 2)):
        page.mouse(kind, x, y, button="left", clickCount=count)
    begin, end = visible(page)
    assert end - begin == pytest.approx(3e-3, rel=1e-3)


def test_tooltips_have_the_numbers(browser: Chromium, tmp_path: Path) -> None:
    show(browser, tmp_path, two_ranks())
    browser.mouse("mouseMoved", *point(browser, "row.rank.rank === 1 && row.track.kind === 'communication'", 0))
    assert tooltip(browser) == [
        "wait, rank 1", "began\t0 s", "took\t3.25 s", "message on its way\t1 s", "sweep\t0", "step\t0", "other rank\t0",
    ]  # fmt: skip
    browser.mouse("mouseMoved", *point(browser, "row.track.kind === 'messages on their way'", 0))
    assert tooltip(browser) == [
        "message on its way, rank 1", "began\t2.25 s", "took\t1 s", "from\trank 0, sweep 0, step 0",
        "seen in\tsweep 0, step 0", "bytes\t80",
    ]  # fmt: skip
    browser.mouse("mouseMoved", *point(browser, "row.rank.rank === 1 && row.track.kind === 'compute'", 0))
    assert tooltip(browser)[:3] == ["compute, rank 1", "began\t3.5 s", "took\t3 s"]
    browser.mouse("mouseMoved", 5, 5)
    assert tooltip(browser) == []


def test_events_that_share_a_pixel_say_so(browser: Chromium, tmp_path: Path) -> None:
    show(browser, tmp_path, many_events(50_000))
    browser.mouse("mouseMoved", *point(browser, "row.track.kind === 'compute'", 9000))
    assert tooltip(browser)[-1].endswith("events share this pixel: zoom in")


def test_figures_explain_themselves(page: Chromium) -> None:
    place = page.run(
        """(() => {
          const box = document.querySelector("th[data-meaning]:last-child").getBoundingClientRect();
          return [box.left + 5, box.top + 5];
        })()"""
    )
    page.mouse("mouseMoved", *place)
    shown = page.run("getComputedStyle(document.querySelector('th[data-meaning]:last-child'), '::after').content")
    assert "the run time on a network that takes no time" in shown


def test_switching_between_runs(page: Chromium) -> None:
    whole = visible(page)
    page.click("#switches button:nth-child(3)")
    assert {row.split()[0] for row in rows(page)} == {"overlap"}
    assert visible(page)[1] < whole[1]
    pressed = "[...document.querySelectorAll('#switches button')].map((b) => b.getAttribute('aria-pressed'))"
    assert page.run(pressed) == ["false", "false", "true"]
    page.click("#predicted")
    assert len(rows(page)) == 5
    page.click("#switches button:nth-child(1)")
    assert {row.split()[0] for row in rows(page)} == {"blocking", "overlap"}
    assert visible(page) == whole


def test_many_ranks_scroll(browser: Chromium, tmp_path: Path) -> None:
    show(browser, tmp_path, pipeline("overlap", ranks=64, steps=10))
    assert browser.run("chart.scrollHeight > chart.clientHeight")
    assert browser.run("picture.height") < 1200
    before = browser.run("picture.toDataURL()")
    x, y = point(browser, "row.track.kind === 'compute'", 0)
    browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=900, modifiers=SHIFT)
    assert browser.run("chart.scrollTop") > 100
    assert browser.run("picture.toDataURL()") != before


def test_many_events_are_never_drawn_one_by_one(browser: Chromium, tmp_path: Path) -> None:
    show(browser, tmp_path, many_events(300_000))
    browser.run(
        """(() => {
          const draw = CanvasRenderingContext2D.prototype.fillRect;
          window.drawn = 0;
          CanvasRenderingContext2D.prototype.fillRect = function (...box) {
            ++window.drawn;
            return draw.apply(this, box);
          };
          drawAll();
        })()"""
    )
    assert 1000 < browser.run("window.drawn") < 10_000
    assert browser.run(COLOURS)["compute"] > 5000


@pytest.mark.parametrize("ranks", [0, 1])
def test_pages_without_events_open(browser: Chromium, tmp_path: Path, ranks: int) -> None:
    show(browser, tmp_path, run_of(pipeline("overlap", ranks=1, steps=ranks).ranks[:ranks]))
    assert visible(browser)[0] == 0
    browser.click("#zoom-in")
    browser.click("#reset")


def test_evil_names_do_nothing(browser: Chromium, tmp_path: Path) -> None:
    evil = "</script><img src=x onerror=\"document.title='bad'\"><script>document.title='bad'</script>"
    run = two_ranks()
    ranks = tuple(replace(rank, host=evil) for rank in run.ranks)
    show(browser, tmp_path, replace(run, nest=evil, engine=evil, ranks=ranks))
    browser.mouse("mouseMoved", *point(browser, "row.track.kind === 'compute'", 0))
    assert tooltip(browser)
    assert browser.run("document.title") != "bad"
    assert browser.run("document.images.length") == 0
