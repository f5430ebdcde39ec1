"""The objects that exported programs share."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from exporting import OBJECTS, make

import lapwing as lw
from lapwing.export.driver.partial_evaluation.specialisation import specialise
from lapwing.export.driver.program import export_driver
from lapwing.export.stand_alone import export


@lw.nest
def some(u):
    for i in range(1, u.shape[0]):
        u[i] = u[i - 1]


@lw.nest
def several(u, v):
    for i in range(1, u.shape[0]):
        u[i] = u[i - 1]
    for i in range(1, u.shape[0]):
        v[i] = v[i - 1] + u[i]


def once(temporary: pytest.TempPathFactory, name: str, fill: Callable[[Path], None]) -> Path:
    """A folder that the first of the processes that share the tests fills, and the others wait for."""
    own = temporary.getbasetemp()
    session = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with (session / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (session / name).exists():
            fill(temporary.mktemp(name) / "any")
            (own / f"{name}0" / "any").rename(session / name)
    return session / name


def unoptimised(folder: Path) -> str:
    flags = re.search(r"^RUNTIME_FLAGS := (.*)$", (folder / "Makefile").read_text(), re.MULTILINE)
    assert flags is not None
    return f"RUNTIME_FLAGS={flags[1]} -O0"


@pytest.fixture(scope="session")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the objects that all programs share: compiling them takes longest, so it is not optimised."""

    def fill(folder: Path) -> None:
        arguments = {"u": np.zeros(3)}
        export(folder, some.bind(arguments), some.plan(**arguments), arguments)
        make(folder, "-j2", unoptimised(folder), *(f"build/{name}.o" for name in OBJECTS))

    return once(tmp_path_factory, "objects", fill) / "build"


@pytest.fixture(scope="session")
def driver_objects(objects: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same of programs of several nests."""
    folder = tmp_path_factory.mktemp("driver") / "any"
    arguments = {"u": np.zeros(3), "v": np.zeros(3)}
    export_driver(folder, specialise(several, arguments, 1), "overlap", arguments)
    shutil.copytree(objects, folder / "build")
    (folder / "build" / "main.o").unlink()
    (folder / "build" / "mpi.o").touch()
    make(folder, unoptimised(folder), "build/main.o")
    return folder / "build"
