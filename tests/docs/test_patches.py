"""The patches and the words of reports that pages about `lapwing overlap` show are those of the tool."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from lapwing.cli.overlap import command
from lapwing.overlap.languages.c.reading import read_c
from lapwing.overlap.pipeline import rewrite
from lapwing.overlap.report.outcome import Options
from lapwing.overlap.source.patch import unified_diff

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "overlap"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What the programs of the tests say of themselves.
MARK = re.compile(r" *(?:/\*|!) (?:overlap|left): [\w-]+(?: \*/)?")
MAIN = """
int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int t = 0; t < 20; t++) step((rank + size - 1) % size, (rank + 1) % size);
    printf("%d: %a\\n", rank, u[N / 2][N / 2]);
    MPI_Finalize();
    return 0;
}
"""


def shown_patches() -> list[tuple[str, str]]:
    """The program that each diff of the page is said to be from, and the diff."""
    text = (PAGES / "transformations.md").read_text(encoding="utf-8")
    found = []
    for block in BLOCK.finditer(text):
        if block[1] == "diff":
            names = re.findall(r"From\s+`([\w.]+)`", text[: block.start()])
            found.append((names[-1], block[2]))
    return found


def change_of(name: str) -> list[str]:
    """The lines of a program's golden diff, without its marks."""
    (path,) = (ROOT / "tests").rglob(f"{name}.diff")
    lines = [MARK.sub("", line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line not in ("", "+", "-")]


def is_in(piece: Sequence[str], whole: Sequence[str]) -> bool:
    return any(list(whole[n : n + len(piece)]) == list(piece) for n in range(len(whole)))


@pytest.mark.parametrize(("name", "patch"), shown_patches(), ids=[name for name, _ in shown_patches()])
def test_shown_patch_is_part_of_the_golden_one(name: str, patch: str) -> None:
    for piece in re.split(r"^@@\n", patch, flags=re.MULTILINE):
        lines = [line for line in piece.splitlines() if line not in ("", "+", "-")]
        assert is_in(lines, change_of(name)), piece


def test_every_transformation_is_shown() -> None:
    headings = re.findall(r"^## .*\(([\w, -]+)\)$", (PAGES / "transformations.md").read_text("utf-8"), re.MULTILINE)
    shown = {name for heading in headings for name in heading.split(", ")}
    said = CliRunner().invoke(command, ["--only", "nothing", "heat.c"]).output
    expected = re.search(r"expected one of ([\w\s,-]+)\.", said)
    assert expected is not None
    assert shown == set(re.split(r",\s+", expected[1]))


def test_patch_of_the_guide(tmp_path: Path) -> None:
    text = (PAGES / "guide.md").read_text(encoding="utf-8")
    program = next(block[2] for block in BLOCK.finditer(text) if block[1] == "c")
    patch = next(block[2] for block in BLOCK.finditer(text) if block[1] == "diff")
    source = tmp_path / "src" / "heat.c"
    source.parent.mkdir()
    head = "#include <mpi.h>\n#include <stdio.h>\n#include <string.h>\n#define N 512\n\n"
    source.write_text(head + program + MAIN, encoding="utf-8")
    outcome = rewrite(read_c([source], (), {}, None), Options())
    change = unified_diff(outcome.changes, tmp_path).decode()
    file, hunk = patch.split("@@", 1)
    assert change.startswith(file)
    assert hunk in change


def test_obligations_of_the_guide_are_those_of_reports() -> None:
    text = (PAGES / "guide.md").read_text(encoding="utf-8")
    table = text.split("| not proved | advice |\n|---|---|\n")[1].split("\n\n")[0]
    named = [row.strip("| ").split(" | ")[0] for row in table.splitlines()]
    sources = "\n".join(p.read_text("utf-8") for p in (ROOT / "src" / "lapwing" / "overlap").rglob("*.py"))
    assert not [obligation for obligation in named if f'"{obligation}"' not in sources]
