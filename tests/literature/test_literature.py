"""Programs of the literature, as people write them: the bits of plain Python in one process and on 2 and 4 ranks, or refused.

EXPECTED_REFUSED holds what is not accepted yet, and shrinks: a program that is accepted has to leave it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from everyday import one_of
from limits import scaled
from literature_worker import ALONE, FAMILIES, FLOAT_SUMS, HERE, outcome, programs
from processes import WITH_HELPERS
from randomness import THOROUGHLY

import lapwing as lw
from lapwing.codegen.compilation.toolchain import find_c_compiler, find_cxx_compiler, find_mpi
from lapwing.errors import BuildError
from lapwing.loopnest.program import short_loops
from lapwing.planner.plan import ENGINES

REFUSED_FOR: dict[str, str] = {}
EXPECTED_REFUSED = {name: reason for reason, names in REFUSED_FOR.items() for name in names.split()}

FAMILY_OF = {name: family for family in FAMILIES for name in programs(family)}
ONE_OF = 9  # programs is run every day
SECONDS_A_PROGRAM = 15  # a limit for a loaded machine, not an estimate


@pytest.fixture(autouse=True)
def short_loops_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tested is compiled code, however small the arrays are."""
    monkeypatch.setattr(short_loops, "BUDGET", -1)


def nest_of(name: str) -> lw.Nest:
    return programs(FAMILY_OF[name])[name]


# -- the list ------------------------------------------------------------------------------------------------------------


def test_names_are_unique_and_tables_know_no_others() -> None:
    assert len(FAMILY_OF) == sum(len(programs(family)) for family in FAMILIES)
    assert EXPECTED_REFUSED.keys() <= FAMILY_OF.keys()
    assert len(EXPECTED_REFUSED) == sum(len(names.split()) for names in REFUSED_FOR.values())
    assert FLOAT_SUMS.keys() <= FAMILY_OF.keys()


def description(name: str) -> tuple[str, str, str]:
    """What a program's docstring says: what it is, its source, what it uses."""
    text = " ".join((nest_of(name).python.__doc__ or "").split())
    what, _, rest = text.partition(" Source: ")
    source, _, uses = rest.partition(" Uses: ")
    assert what, name
    assert source, name
    assert uses, name
    return what, source, uses


def table() -> str:
    rows = []
    for name, family in FAMILY_OF.items():
        _, source, uses = (part.rstrip(".").replace("|", "\\|").replace("*", "\\*") for part in description(name))
        rows.append(f"| [`{name}`]({family}.py) | {source} | {uses} |")
    return "\n".join(["| program | source | uses |", "|---|---|---|", *rows]) + "\n"


def test_readme_has_every_program(pytestconfig: pytest.Config) -> None:
    readme = HERE / "README.md"
    head, mark, tail = readme.read_text(encoding="utf-8").partition("| program |")
    if pytestconfig.getoption("--refresh-golden"):
        readme.write_text(head + table(), encoding="utf-8")
    else:
        assert mark + tail == table(), "write it anew: pytest tests/literature -k readme --refresh-golden"


# -- what they compute ---------------------------------------------------------------------------------------------------


def check_refusal(name: str, refused: str) -> None:
    """A program is refused if and only if the table says so, and for that reason."""
    if name not in EXPECTED_REFUSED:
        assert not refused, f"{name} is refused: {refused}"
        return
    assert refused, f"{name} is accepted now: take it out of REFUSED_FOR"
    assert EXPECTED_REFUSED[name] in refused, f"{name} is refused for another reason: {refused}"


@pytest.mark.parametrize("name", one_of(ONE_OF, FAMILY_OF))
def test_in_one_process(name: str) -> None:
    result, _ = outcome(nest_of(name), name)
    assert not result.failed
    assert not result.differences
    check_refusal(name, result.refused)


@pytest.mark.parametrize(
    ("engine", "number"), [("overlap", ONE_OF), *(pytest.param(e, 1, marks=pytest.mark.long) for e in ENGINES)]
)
def test_tiles_do_not_matter(engine: str, number: int) -> None:
    """One process again, with tiles that are small enough for there to be several."""
    left_out = EXPECTED_REFUSED.keys() | FLOAT_SUMS.keys()
    for name in [name for name in list(FAMILY_OF)[::number] if name not in left_out]:
        result, _ = outcome(nest_of(name), name, engine=engine, tile=5)
        wrong = result.refused or result.failed or result.differences
        assert not wrong, f"{name}: {wrong}"


def check_on_ranks(names: list[str], ranks: int, directory: Path, thorough: bool = True) -> None:
    """Some programs, with every engine, in one MPI run."""
    try:
        find_c_compiler(), find_cxx_compiler()
        mpiexec = find_mpi().mpiexec
    except BuildError as error:
        pytest.skip(str(error))
    limit = round(scaled(300 + SECONDS_A_PROGRAM * len(names)))
    report, log = directory / "report.jsonl", directory / "log.txt"
    worker = HERE / "literature_worker.py"
    command = [
        mpiexec,
        "-n",
        ranks,
        sys.executable,
        worker,
        report,
        limit,
        *(f"{FAMILY_OF[name]}.{name}" for name in names),
    ]
    with log.open("w") as stream:
        process = subprocess.Popen(
            list(map(str, command)),
            stdout=stream,
            stderr=subprocess.STDOUT,
            env={**os.environ, **WITH_HELPERS, **(THOROUGHLY if thorough else {}), "LAPWING_PATIENCE": "120"},
        )
        try:
            status = process.wait(limit + 30)
        finally:
            if process.poll() is None:
                process.terminate()  # the launcher then ends its ranks
                process.wait(30)
    if status != 0:
        pytest.fail(f"{ranks} ranks: status {status}\n\n{log.read_text()[-6000:]}", pytrace=False)
    results = [json.loads(line) for line in report.read_text().splitlines()]
    wrong = [result for result in results if result["failed"] or result["differences"]]
    assert not wrong, "\n".join(map(str, wrong))
    for result in results:
        check_refusal(result["program"], result["refused"])
    expected = {
        (name, engine, rank)
        for name in names
        for engine in ((ALONE,) if name in EXPECTED_REFUSED else (ALONE, *ENGINES))
        for rank in range(ranks)
    }
    assert {(result["program"], result["engine"], result["rank"]) for result in results} == expected


@pytest.mark.mpi
@pytest.mark.timeout(1800)
def test_some_on_two_ranks(tmp_path: Path) -> None:
    """One program of every seventh family."""
    check_on_ranks([next(iter(programs(family))) for family in FAMILIES[::7]], 2, tmp_path, thorough=False)


@pytest.mark.mpi
@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("family", FAMILIES)
def test_on_two_ranks(family: str, tmp_path: Path) -> None:
    check_on_ranks(list(programs(family)), 2, tmp_path)


@pytest.mark.mpi
@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("family", FAMILIES)
def test_on_four_ranks(family: str, tmp_path: Path) -> None:
    check_on_ranks(list(programs(family)), 4, tmp_path)
