"""The pages of the site: all are in its table of contents, and the reference has every public name."""

from __future__ import annotations

import re
from pathlib import Path

import lapwing

DOCS = Path(__file__).parents[2] / "docs"
CONTENTS = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def contents() -> set[str]:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    lines = [line for block in CONTENTS.findall(index) for line in block.splitlines()]
    return {line for line in lines if line and not line.startswith(":")}


def test_every_page_is_in_the_contents() -> None:
    pages = {path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")}
    assert {page for page in pages if not page.startswith("_gallery/")} - {"index"} == contents()


def test_every_public_name_is_in_the_reference() -> None:
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    named = re.findall(r"^\.\. auto\w+:: (\w+)$", page, re.MULTILINE)
    assert len(named) == len(set(named))
    assert set(named) == {*lapwing.__all__, "open"} - {"__version__"}
