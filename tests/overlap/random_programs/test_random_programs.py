"""Random MPI programs, rewritten by ``lapwing overlap``, behave as they did: same output of every rank, bit for bit.

A failing case is named by its form and seed: ``python _programs.py FORM SEED DIRECTORY``, in this folder,
writes it again. Seeds that are multiples of seven give the smallest programs.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from _building import write
from _programs import FORMS, random_program
from _running import PLAIN, SLOWLY, STRICTLY, Reference, first_difference, overlap, required
from everyday import everyday
from randomness import first_seed

from lapwing.overlap.languages.shared import strip_mining

pytestmark = pytest.mark.mpi
# One of each form; the smallest program in mpi_f08, whose modules take long to compile. Those after it were wrong once: a receive
# whose end is also in another half; a local variable laid over a COMMON block.
EVERYDAY = [("flat", 6), ("mpi", 6), ("mpi_f08", 7), ("c", 62), ("c", 308), ("fixed", 65)]
FIRST = 1000 * (1 + first_seed())
LONG = [(form, seed) for seed in range(FIRST, FIRST + 220) for form in (("c", "flat")[seed % 2], FORMS[2 + seed % 3])]


def reference(form: str, seed: int, directory: Path) -> Reference:
    program = random_program(seed, form)
    required(program.language)
    return Reference(write(program.files, directory / "sources"))


def check(form: str, seed: int, directory: Path, thorough: bool, strip: int = strip_mining.STRIP) -> None:
    original = reference(form, seed, directory)
    rewritten = overlap(original.sources, directory / "rewritten", strip=strip)
    assert rewritten.status == 0, rewritten.messages
    json.loads(rewritten.report)
    if rewritten.changed:
        original.assert_unchanged_by(rewritten.sources, thorough, 3)


@pytest.mark.parametrize(("form", "seed"), EVERYDAY)
def test_behaves_as_before(form: str, seed: int, tmp_path: Path, thorough: bool) -> None:
    check(form, seed, tmp_path, thorough)


@pytest.mark.parametrize("form", everyday(["c", "fixed"], ["c"]))
def test_short_loops_in_strips(form: str, tmp_path: Path, thorough: bool) -> None:
    """The programs' loops are too short for strips of the usual length."""
    check(form, 9, tmp_path, thorough, strip=3)


@pytest.mark.long
@pytest.mark.parametrize(("form", "seed"), LONG)
def test_behaves_as_before_long(form: str, seed: int, tmp_path: Path) -> None:
    check(form, seed, tmp_path, True, strip=3 if seed % 2 else strip_mining.STRIP)


@pytest.mark.parametrize("form", FORMS)
def test_a_seed_is_one_program(form: str) -> None:
    assert random_program(5, form) == random_program(5, form)
    assert random_program(5, form).files != random_program(6, form).files


@pytest.mark.parametrize("form", everyday(FORMS, ["c", "mpi"]))
def test_originals_are_right_under_every_schedule(form: str, tmp_path: Path, thorough: bool) -> None:
    """A generated program must neither deadlock, nor touch what is in flight, nor depend on timing, or it tests nothing."""
    original = reference(form, 11, tmp_path)
    for ranks in (2, 3) if thorough else (3,):
        plain = original.outcome(ranks, PLAIN)
        assert plain.ended_well, plain.failure()
        assert all(len(output.splitlines()) > 15 for output in plain.outputs)
        for schedule in (STRICTLY, SLOWLY) if thorough else (STRICTLY,):
            assert first_difference(plain, original.outcome(ranks, schedule)) is None
