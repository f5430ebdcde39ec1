"""Lines of C: how they are indented and broken, and what they mention."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_WIDTH = 120
_BREAKS = re.compile(r"(?<=,) | (?=(?:[-+*/%?:&|^<>]|&&|\|\||[<>=!]=) )")


def element(array: str, strides: Sequence[str], subscripts: Sequence[str]) -> str:
    """The C text of an array element, from the C names of the array and of its strides but the last, which is 1."""
    parts = [f"{_factor(text)} * {stride}" for text, stride in zip(subscripts, strides, strict=False)]
    return f"{array}[{' + '.join([*parts, subscripts[-1]])}]"


def indented(lines: Iterator[str] | Sequence[str], depth: int = 1) -> Iterator[str]:
    for line in lines:
        yield "    " * depth + line if line else line


def _factor(text: str) -> str:
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def mentions(text: str, name: str) -> bool:
    position = text.find(name)
    while position >= 0:
        before = text[position - 1] if position else " "
        after = text[position + len(name)] if position + len(name) < len(text) else " "
        if not (before.isalnum() or before in "_.>") and not (after.isalnum() or after == "_"):
            return True
        position = text.find(name, position + 1)
    return False


def wrapped(line: str) -> Iterator[str]:
    """A line of C broken where it is too long to read: after commas and before operators."""
    indent = line[: len(line) - len(line.lstrip())]
    current, *pieces = _BREAKS.split(line)
    for piece in pieces:
        if len(current) + 1 + len(piece) > _WIDTH:
            yield current
            current = f"{indent}        {piece}"
        else:
            current = f"{current} {piece}"
    yield current


def signed(number: int) -> str:
    return f"{'+' if number > 0 else '-'} {abs(number)}"


def plus(text: str, number: int) -> str:
    """The C text of a sum, as short as can be; no text stands for zero."""
    if text.lstrip("-").isdigit():
        text, number = "", int(text) + number
    if not text:
        return str(number)
    return text if number == 0 else f"{text} {signed(number)}"


def times(number: int, text: str) -> str:
    """The C text of a product, as short as can be."""
    return text if number == 1 else f"{number} * {text}"


class Lines:
    """Lines of C with the indentation of the blocks they stand in."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._depth = 0

    def add(self, *texts: str) -> None:
        self.texts.extend("    " * self._depth + text for text in texts)

    def include(self, other: Lines) -> None:
        """Adds the lines of another one."""
        self.add(*other.texts)

    def open(self, text: str) -> None:
        self.add(text)
        self._depth += 1

    def close(self) -> None:
        self._depth -= 1
        self.add("}")

    def close_all(self) -> None:
        while self._depth:
            self.close()
