"""Pictures of plans and runs: shown in a notebook's cell, or written to a file that any browser opens."""

from __future__ import annotations

import base64
import sys
from html import escape
from pathlib import Path
from typing import Any

from lapwing.files import write_text
from lapwing.launcher import launcher_rank
from lapwing.notices import say

_HEIGHT = 640  # of a page in a notebook's cell, in pixels


def in_notebook() -> bool:
    """Whether this process is a notebook's kernel, which shows pictures."""
    interactive = sys.modules.get("IPython")
    shell = None if interactive is None else interactive.get_ipython()
    return getattr(shell, "kernel", None) is not None


def show_picture(svg: str, title: str, path: str | Path | None, otherwise: str) -> Path | None:
    """A picture as SVG; see ``_show``."""
    data = base64.b64encode(svg.encode()).decode()
    image = f'<img alt="{escape(title)}" style="max-width:100%" src="data:image/svg+xml;base64,{data}">'
    return _show(svg, image, title, path, otherwise)


def show_page(page: str, title: str, path: str | Path | None, otherwise: str) -> Path | None:
    """A page of its own, with its scripts; see ``_show``."""
    style = f"width:100%;height:{_HEIGHT}px;border:0"
    frame = f'<div><iframe title="{escape(title)}" style="{style}" srcdoc="{escape(page)}"></iframe></div>'
    return _show(page, frame, title, path, otherwise)


def _show(text: str, cell: str, title: str, path: str | Path | None, otherwise: str) -> Path | None:
    """Show a text as this cell in a notebook, or write it: to the path if there is one, in a notebook too, else to a file of the
    name ``otherwise`` in the working directory.

    Returns the file, and says which it is; None where it is shown, and on all but the first of ranks that were started together,
    which would write it all at the same time. Raises LapwingError where it cannot be written.
    """
    if launcher_rank() > 0:
        return None
    if path is None and in_notebook():
        display: Any = sys.modules["IPython"].display
        display.display(display.HTML(cell))
        return None
    file = Path(path if path is not None else otherwise)
    write_text(file, text, "path")
    say(f"{title}: {file}")
    return file
