"""Options of the tests, their limits, and one line at the end on what was skipped."""

from __future__ import annotations

import random
import time
from collections import Counter

import pytest
from limits import scaled
from randomness import first_seed


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--refresh-golden",
        action="store_true",
        help="write the files of tests/golden anew instead of comparing with them",
    )
    parser.addoption("--minutes", type=float, help="begin no test later than this: the rest counts as skipped")


def pytest_configure(config: pytest.Config) -> None:
    minutes = config.getoption("minutes")
    # Processes that share the tests share the moment: it travels with the options.
    if minutes is not None and not hasattr(config, "workerinput"):
        config.option.minutes = time.time() / 60 + minutes


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A limit is for a quick machine: a slow or busy one gets longer."""
    everyday = float(config.getini("timeout"))
    if config.getoption("minutes") is not None:
        random.Random(first_seed()).shuffle(items)  # what there is no time for today comes another day
    for item in items:
        own = item.get_closest_marker("timeout")
        item.add_marker(pytest.mark.timeout(scaled(own.args[0] if own else everyday)), append=False)


def pytest_runtest_setup(item: pytest.Item) -> None:
    end = item.config.getoption("minutes")
    if end is not None and time.time() / 60 > end:
        pytest.skip("no time was left for it")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reasons = Counter(
        str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr).removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", ())
    )
    if reasons:
        counted = "; ".join(f"{count} {reason}" for reason, count in reasons.most_common())
        terminalreporter.write_line(f"Skipped {reasons.total()}: {counted}")
