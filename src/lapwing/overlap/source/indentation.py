"""How a file is indented."""

from __future__ import annotations

import re
from collections import Counter

from lapwing.overlap.source.spans import Source


def indentation(source: Source, offset: int) -> str:
    """The blanks before the first word of the line that holds ``offset``, as they are written."""
    start = source.data.rfind(b"\n", 0, offset) + 1
    found = re.compile(rb"[ \t]*").match(source.data, start)
    assert found is not None  # the pattern matches nothing, too
    return found.group().decode("latin-1")


def indentation_step(source: Source) -> str:
    """What one level of a file is indented by: a tab, or the usual number of blanks (4 where nothing tells)."""
    lines = source.data.split(b"\n")
    if sum(line.startswith(b"\t") for line in lines) > sum(line.startswith(b"  ") for line in lines):
        return "\t"
    steps: Counter[int] = Counter()
    before = 0
    for line in lines:
        text = line.lstrip(b" ")
        if not text.strip() or text.startswith((b"*", b"#", b"/")):
            continue
        depth = len(line) - len(text)
        if depth > before:
            steps[depth - before] += 1
        before = depth
    plausible = {step: count for step, count in steps.items() if step in (2, 3, 4, 8)}
    return " " * max(plausible, key=lambda step: plausible[step], default=4)
