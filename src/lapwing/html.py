"""Small tables for notebooks: HTML that needs nothing from elsewhere and takes the page's own colours, light or dark."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

# Notebooks drop style sheets of cells they do not trust, not style attributes.
_CELL = "text-align:left;vertical-align:top;padding:1px 1em 1px 0"
_NAME = f"{_CELL};font-weight:normal;opacity:.7"
_VALUE = f"{_CELL};white-space:pre-wrap"


def table(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """A title above names with their values; of several rows in turn with one name, only the first shows it."""
    lines, before = [], ""
    for name, value in rows:
        shown, before = ("" if name == before else name), name
        lines.append(f'<tr><th style="{_NAME}">{escape(shown)}</th><td style="{_VALUE}">{escape(value)}</td></tr>')
    return f"<div><b>{escape(title)}</b><table>{''.join(lines)}</table></div>"
