"""Compiled nests of these tests, hundreds of them, stay out of the user's cache."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def cache_of_the_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = os.environ.get("LAPWING_CACHE")
    own = tmp_path_factory.getbasetemp()
    # Processes that share the tests share the cache: the directory above theirs is that of their session.
    session = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    os.environ["LAPWING_CACHE"] = str(session / "cache-of-property-tests")
    yield
    if before is None:
        del os.environ["LAPWING_CACHE"]
    else:
        os.environ["LAPWING_CACHE"] = before
