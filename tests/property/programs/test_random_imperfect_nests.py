"""Nests with something beside the inner loop: the bits of plain Python, and an error where it raises."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from random_imperfect_nests import imperfect_nests
from randomness import first_seed, wanted
from searching import search
from test_random_regions import check_case

import lapwing as lw
from lapwing.codegen.compilation.toolchain import find_c_compiler, find_cxx_compiler
from lapwing.errors import BuildError


@pytest.fixture(autouse=True)
def _needs_compilers(little_optimised: None) -> None:
    try:
        find_c_compiler(), find_cxx_compiler()
    except BuildError as error:
        pytest.skip(str(error))


def check_nest(data: st.DataObject) -> None:
    check_case(data.draw(imperfect_nests(), label="nest"), lw.nest)


def test_imperfect_nests_are_the_plain_loop() -> None:
    search(check_nest, wanted(15), first_seed())


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_imperfect_nests_are_the_plain_loop_at_length() -> None:
    search(check_nest, wanted(3000), first_seed() + 1)
