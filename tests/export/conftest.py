"""The objects that exported programs share."""

from __future__ import annotations

import re
import shutil
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


@pytest.fixture(scope="session")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the objects that all programs share: compiling them takes longest, so it is not optimised."""
    folder = tmp_path_factory.mktemp("objects") / "any"
    arguments = {"u": np.zeros(3)}
    export(folder, some.bind(arguments), some.plan(**arguments), arguments)
    makefile = (folder / "Makefile").read_text()
    flags = re.search(r"^RUNTIME_FLAGS := (.*)$", makefile, re.MULTILINE)[1]  # type: ignore[index]
    make(folder, f"RUNTIME_FLAGS={flags} -O0", *(f"build/{name}.o" for name in OBJECTS))
    return folder / "build"


@pytest.fixture(scope="session")
def driver_objects(objects: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same of programs of several nests."""
    folder = tmp_path_factory.mktemp("objects") / "any"
    arguments = {"u": np.zeros(3), "v": np.zeros(3)}
    export_driver(folder, specialise(several, arguments, 1), "overlap", arguments)
    shutil.copytree(objects, folder / "build")
    (folder / "build" / "main.o").unlink()
    (folder / "build" / "mpi.o").touch()
    flags = re.search(r"^RUNTIME_FLAGS := (.*)$", (folder / "Makefile").read_text(), re.MULTILINE)[1]  # type: ignore[index]
    make(folder, f"RUNTIME_FLAGS={flags} -O0", "build/main.o")
    return folder / "build"
