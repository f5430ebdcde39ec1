"""What the documentation names exists: files, modules and functions in pages about the architecture, and every relative link."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "lapwing"
# Not those that are made for the site.
PAGES = [ROOT / "README.md", *(p for p in sorted((ROOT / "docs").rglob("*.md")) if p.parent.name != "_gallery")]
ARCHITECTURE = [ROOT / "docs" / "architecture.md", *sorted((ROOT / "docs" / "architecture").glob("*.md"))]
ENDINGS = (".py", ".hpp", ".h", ".cpp", ".c", ".def", ".md", ".sh")
# Dotted names of others, and of what users write.
FOREIGN = frozenset("ufunc.resolve_dtypes ui.perfetto.dev mpi.h lw.nest lw.open lw.SELF manifest.json".split())
# Files that are not the project's own.
ELSEWHERE = frozenset("heat.c mpi.h".split())
LINK = re.compile(r"\[[^\]]*\]\(([^()\s]+)\)")
TOKEN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
REFERENCE = re.compile(r"[A-Za-z_.][\w.-]*(?:/[\w.-]+)*/?")


def prose(page: Path) -> Iterator[tuple[int, str]]:
    """The lines of a page, by number, without those of code blocks."""
    inside = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            inside = not inside
        elif not inside:
            yield number, line


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    return {slug(line.lstrip("#")) for _, line in prose(page) if line.startswith("#")}


@cache
def files() -> frozenset[str]:
    """All files and folders that references may be of, from the project's folder."""
    found = {ROOT / name for name in ("src", "tests", "docs", "examples", "bench", "lab", "scripts", ".ci")}
    every = [path for folder in found for path in folder.rglob("*") if "__pycache__" not in path.parts]
    return frozenset(path.relative_to(ROOT).as_posix() for path in (*found, *every, *ROOT.glob("*")))


@cache
def ends() -> frozenset[str]:
    """The paths of those files by every ending of them that begins with a whole name, those of Python also without .py."""
    parts = [PurePosixPath(path).parts for path in files()]
    whole = {"/".join(one[n:]) for one in parts for n in range(len(one))}
    return frozenset(whole | {path.removesuffix(".py") for path in whole})


@cache
def modules_named(path: str) -> list[Path]:
    """The package's modules whose path ends with this one."""
    return [p for p in SOURCES.rglob("*.py") if f"/{p.with_suffix('').as_posix()}".endswith(f"/{path}")]


@cache
def defined_in(module: Path) -> frozenset[str]:
    """What a module defines at its top, and what its classes define, as Class.name."""
    found = set()
    for node in ast.parse(module.read_text(encoding="utf-8")).body:
        found |= set(_names(node))
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{name}" for inner in node.body for name in _names(inner)}
    return frozenset(found)


def _names(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id
    elif isinstance(node, ast.Assign):
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))


@cache
def words() -> frozenset[str]:
    """All words of the package's sources and of the tests."""
    every = [p for folder in (SOURCES, ROOT / "tests") for p in folder.rglob("*") if p.suffix in {".py", *ENDINGS}]
    return frozenset(
        word for p in every for word in re.findall(r"\w+", p.read_text(encoding="utf-8", errors="replace"))
    )


def broken(token: str) -> str | None:
    """What is wrong with a name in backticks; None where it exists, or is no reference."""
    if not REFERENCE.fullmatch(token) or token in FOREIGN or token in ELSEWHERE:
        return None
    if token.strip("/") in ends():
        return None
    folder, _, last = token.rpartition("/")
    module, dot, name = last.partition(".")
    if dot and not token.endswith(ENDINGS):
        homes = modules_named(f"{folder}/{module}" if folder else module)
        if not homes:
            return f"there is no module {folder}{'/' if folder else ''}{module}"
        return None if any(name in defined_in(home) for home in homes) else f"{module} has no {name}"
    if folder or token.endswith(ENDINGS):
        return "there is no such file"
    is_name = "_" in token.strip("_") or re.fullmatch(r"(?:[A-Z][a-z]+)+", token)
    return "no source has this word" if is_name and token not in words() else None


def rows(page: Path) -> Iterator[tuple[int, list[Path], str]]:
    """The rows of tables that begin with folders of the package: number, folders and the last cell."""
    for number, line in prose(page):
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")] if line.startswith("|") else [""]
        named = [name.strip("/") for name in TOKEN.findall(cells[0]) if name.endswith("/")]
        folders = [home / name for name in named for home in (SOURCES, SOURCES / "overlap", SOURCES.parent)]
        if named and (found := [folder for folder in folders if folder.is_dir()]):
            yield number, found, cells[-1]


@pytest.mark.parametrize("page", ARCHITECTURE, ids=lambda page: page.name)
def test_names_in_backticks_exist(page: Path) -> None:
    found = [
        f"{page.relative_to(ROOT)}:{number}: `{token}`: {reason}"
        for number, line in prose(page)
        for token in TOKEN.findall(line)
        if (reason := broken(token)) is not None
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("page", ARCHITECTURE, ids=lambda page: page.name)
def test_modules_are_in_the_folders_of_their_rows(page: Path) -> None:
    found = []
    for number, folders, cell in rows(page):
        inside = {path.stem for folder in folders for path in folder.rglob("*")}
        names = [token for token in TOKEN.findall(cell) if re.fullmatch(r"[a-z_]+", token)]
        found += [f"{page.relative_to(ROOT)}:{number}: {name}" for name in names if name not in inside]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_relative_links_lead_somewhere(page: Path) -> None:
    found = []
    for number, line in prose(page):
        for link in LINK.findall(line):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.exists():
                found.append(f"{page.relative_to(ROOT)}:{number}: {link}: there is no such file")
            elif anchor and anchor not in anchors(target):
                found.append(f"{page.relative_to(ROOT)}:{number}: {link}: there is no such heading")
    assert not found, "\n".join(found)


def test_every_package_is_in_the_picture() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    picture = text.split("```")[1]
    packages = {path.parent.name for path in SOURCES.glob("*/__init__.py")}
    passes = {path.parent.name for path in (SOURCES / "overlap").glob("*/__init__.py")}
    assert not {name for name in packages | passes if not re.search(rf"\b{name}\b", picture)}


def test_what_is_missing_is_seen() -> None:
    assert broken("overlap/pipeline.rewrite") is None
    assert broken("overlap/pipeline.rewritten") == "pipeline has no rewritten"
    assert broken("overlap/pipelines.rewrite") == "there is no module overlap/pipelines"
    assert broken("CodeMotion") is None
    assert broken("NoSuch" + "Word") == "no source has this word"
    assert broken("tiling/nowhere") == broken("nowhere.hpp") == "there is no such file"
    assert broken("no_such_" + "word") == "no source has this word"
