"""Innermost loops that are done as several: the bits of plain Python, whatever order their stores are done in."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from random_inner_loops import inner_loops, windows
from randomness import first_seed, wanted
from searching import search
from test_random_regions import check_case

from lapwing.codegen.compilation.toolchain import find_c_compiler, find_cxx_compiler
from lapwing.errors import BuildError

pytestmark = pytest.mark.usefixtures("little_optimised")


@pytest.fixture(autouse=True)
def _needs_compilers() -> None:
    try:
        find_c_compiler(), find_cxx_compiler()
    except BuildError as error:
        pytest.skip(str(error))


def check_loop(data: st.DataObject) -> None:
    check_case(data.draw(inner_loops(), label="loop"))


def check_window(data: st.DataObject) -> None:
    check_case(data.draw(windows(), label="window"))


def test_inner_loops_are_the_plain_loop() -> None:
    search(check_loop, wanted(8), first_seed())


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_inner_loops_are_the_plain_loop_at_length() -> None:
    search(check_loop, wanted(3000), first_seed() + 1)


def test_windows_are_the_plain_loop() -> None:
    search(check_window, wanted(6), first_seed())


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_windows_are_the_plain_loop_at_length() -> None:
    search(check_window, wanted(1500), first_seed() + 1)
