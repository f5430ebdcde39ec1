"""Compiled nests of these tests, hundreds of them, stay out of the user's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lapwing.loopnest.program import short_loops

# In a process of its own: a runtime brings MPI along.
BUILD = """
from lapwing.runtime.binding import native
from lapwing.codegen.compilation.cache import cache_directory
native.serial_runtime(), native.mpi_runtime()
print(cache_directory())
"""


def take_runtimes(cache: Path) -> None:
    """What all programs need is built once, in the user's cache; where that fails, tests say what is missing."""
    if cache.exists():
        return
    done = subprocess.run([sys.executable, "-c", BUILD], capture_output=True, text=True, check=False)
    cache.mkdir(mode=0o700, exist_ok=True)
    for library in Path(done.stdout.strip()).glob("runtime-*.so") if done.returncode == 0 else ():
        shutil.copy(library, cache / f".{library.name}.{os.getpid()}")
        (cache / f".{library.name}.{os.getpid()}").rename(cache / library.name)  # in one step: see below


@pytest.fixture(autouse=True, scope="session")
def cache_of_the_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = os.environ.get("LAPWING_CACHE")
    own = tmp_path_factory.getbasetemp()
    # Processes that share the tests share the cache: the directory above theirs is that of their session.
    session = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    cache = session / "cache-of-property-tests"
    take_runtimes(cache)
    os.environ["LAPWING_CACHE"] = str(cache)
    yield
    if before is None:
        del os.environ["LAPWING_CACHE"]
    else:
        os.environ["LAPWING_CACHE"] = before


@pytest.fixture(autouse=True)
def short_loops_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tested is compiled code, however small the arrays are."""
    monkeypatch.setattr(short_loops, "BUDGET", -1)
