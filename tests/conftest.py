"""Options of the tests, their limits, and one line at the end on what was skipped."""

from __future__ import annotations

import gc
import math
import random
import time
from collections import Counter
from typing import Any

import pytest
from limits import scaled
from optimising import little_optimised as little_optimised_flags
from randomness import first_seed

from lapwing.machine import caches
from lapwing.runtime.binding import native
from lapwing.tiling import transposed

END = pytest.StashKey[float]()  # after which no test begins; seconds since the epoch


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--refresh-golden",
        action="store_true",
        help="write all files in folders called golden anew instead of comparing with them",
    )
    parser.addoption("--minutes", type=float, help="begin no test later than this: the rest counts as skipped")


def pytest_configure(config: pytest.Config) -> None:
    minutes = config.getoption("minutes")
    if minutes is not None:
        config.stash[END] = getattr(config, "workerinput", {}).get("end", time.time() + 60 * minutes)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Processes that share the tests share the moment."""
    if END in node.config.stash:
        node.workerinput["end"] = node.config.stash[END]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A limit is for a quick machine: a slow or busy one gets longer."""
    everyday = float(config.getini("timeout"))
    if config.getoption("minutes") is not None:
        random.Random(first_seed()).shuffle(items)  # what there is no time for today comes another day
    for item in items:
        own = item.get_closest_marker("timeout")
        item.add_marker(pytest.mark.timeout(scaled(own.args[0] if own else everyday)), append=False)


def pytest_collection_finish() -> None:
    """Collections of garbage pass over the tests themselves, a million objects, and come more seldom."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if time.time() > item.config.stash.get(END, math.inf):
        pytest.skip("no time was left for it")


@pytest.fixture(autouse=True)
def _no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that a test runs in this process does not make one of it for the tests after."""
    monkeypatch.setattr("lapwing.notices._in_command", False)


@pytest.fixture(autouse=True)
def _one_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans are those of one machine, wherever the tests run."""
    monkeypatch.setattr(caches, "near_bytes", lambda: 2 << 20)
    monkeypatch.setattr(caches, "second_bytes", lambda: 1 << 20)
    monkeypatch.setattr(transposed, "vector_bytes", lambda: 64)


@pytest.fixture
def little_optimised(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Generated code that runs for a moment is compiled in a quarter of the time. Random expressions, golden files and the long
    tests have it compiled as for users."""
    if request.node.get_closest_marker("long") is not None:
        return
    monkeypatch.setattr(native, "TILE_FLAGS", little_optimised_flags())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reasons = Counter(
        str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr).removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", ())
    )
    if reasons:
        counted = "; ".join(f"{count} {reason}" for reason, count in reasons.most_common())
        terminalreporter.write_line(f"Skipped {reasons.total()}: {counted}")
