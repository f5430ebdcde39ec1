"""Settings of Sphinx for the site that `make docs` builds from the pages in docs/."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.errors import ExtensionError

import lapwing

DOCS = Path(__file__).parents[1]
# What stands between in docs/gallery.md is for those who read it without pictures.
MARK = "<!-- the programs: docs/site/gallery.py -->\n"
REMOTE = re.compile(r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=\"(?:https?:)?//[^\"]*\"")
LINK = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+[^()\s#]+)(?:#[^()\s]*)?\)")

project = "Lapwing"
author = "The Lapwing authors"
copyright = "The Lapwing authors, Apache-2.0"
release = lapwing.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["site"]
# Headings have the anchors that GitHub gives them, so that links work there as well as here.
myst_heading_anchors = 4
# Command lines, reports and plans are no program of any language.
highlight_language = "text"

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90

html_theme = "furo"
html_title = "Lapwing"
html_show_sourcelink = False
html_copy_source = False


def without_links_out(app: Any, page: str, source: list[str]) -> None:
    """Files beside docs/ are no pages of the site: a link to one becomes its path."""

    def replaced(link: re.Match[str]) -> str:
        target = (DOCS / page).parent.joinpath(link[2]).resolve()
        if target.is_relative_to(DOCS):
            return link[0]
        path = target.relative_to(DOCS.parent).as_posix()
        return link[1] if link[1].strip("`") == path else f"{link[1]} (`{path}`)"

    source[0] = LINK.sub(replaced, source[0])


def with_pictures(app: Any, page: str, source: list[str]) -> None:
    """The gallery shows pictures in the place of its table."""
    if page == "gallery":
        head, _, after = source[0].split(MARK)
        source[0] = head + (DOCS / "_gallery" / "grid.txt").read_text(encoding="utf-8") + after


def without_network(app: Any, error: Exception | None) -> None:
    """No page loads anything from elsewhere."""
    for page in Path(app.outdir).rglob("*.html") if error is None else ():
        if (found := REMOTE.search(page.read_text(encoding="utf-8"))) is not None:
            raise ExtensionError(f"{page}: {found[0]} needs a network")


def setup(app: Any) -> None:
    app.connect("build-finished", without_network)
    app.connect("source-read", with_pictures)
    app.connect("source-read", without_links_out)
