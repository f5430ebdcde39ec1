"""Small tables for notebooks: HTML that needs nothing from elsewhere and takes the page's own colours, light or dark."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

_TABLE = "border-collapse:collapse;text-align:left"
_NAME = "text-align:left;vertical-align:top;padding:1px 1em 1px 0;font-weight:normal;opacity:.7"
_VALUE = "text-align:left;padding:1px 0;white-space:pre-wrap"


def table(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """A title above names with their values; of several rows in turn with one name, only the first shows it."""
    lines, before = [], ""
    for name, value in rows:
        shown, before = ("" if name == before else name), name
        lines.append(f'<tr><th style="{_NAME}">{escape(shown)}</th><td style="{_VALUE}">{escape(value)}</td></tr>')
    return f'<div><b>{escape(title)}</b><table style="{_TABLE}">{"".join(lines)}</table></div>'
