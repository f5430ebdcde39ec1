"""A parsed file: names, texts and spans of its nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tree_sitter import Node

from lapwing.overlap.languages.fortran.parsing.parse import Parsed
from lapwing.overlap.source.spans import Source, Span


class Unreadable(Exception):
    """A statement or expression the model has no word for; its statement becomes an Opaque. Never leaves this package."""


@dataclass(frozen=True, eq=False)
class File:
    """``number``: of its source in the program. ``macros``: what the preprocessor puts for a name. The parsed text may spell
    names otherwise than the file, so texts are taken from the file."""

    source: Source
    number: int
    parsed: Parsed
    macros: dict[str, str] = field(default_factory=dict)
    data: bytes = field(init=False, repr=False)
    shift: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # Asked for at every node.
        object.__setattr__(self, "data", self.source.data)
        object.__setattr__(self, "shift", self.parsed.shift)

    @property
    def path(self) -> Path:
        return self.source.path

    def text(self, node: Node) -> str:
        return self.data[node.start_byte - self.shift : node.end_byte - self.shift].decode("latin-1")

    def name(self, node: Node) -> str:
        return self.text(node).lower()

    def span(self, node: Node) -> Span:
        return Span(self.number, node.start_byte - self.shift, node.end_byte - self.shift)

    def start(self, node: Node) -> int:
        return node.start_byte - self.parsed.shift

    def end(self, node: Node) -> int:
        return node.end_byte - self.parsed.shift

    def statement_span(self, node: Node) -> Span:
        """The whole statement that begins at ``node``: its label and semicolon included."""
        return Span(self.number, *self.parsed.view.statement_at(self.start(node)))

    def last_byte(self, node: Node) -> int:
        """Where the last statement in ``node`` ends; nodes themselves may end in the line ends after them."""
        while node.children:
            node = node.children[-1]
        _, end = self.parsed.view.statement_at(self.start(node))
        return end

    def line_after(self, offset: int) -> int:
        """Where the line after the one that holds ``offset`` begins; the file's end if there is none."""
        found = self.source.data.find(b"\n", offset)
        return len(self.source.data) if found < 0 else found + 1

    def line_start(self, offset: int) -> int:
        return self.source.data.rfind(b"\n", 0, offset) + 1

    def starts_line(self, offset: int) -> bool:
        return not self.source.data[self.line_start(offset) : offset].strip()


def child_of(node: Node, *kinds: str) -> Node | None:
    """The first child that is of one of ``kinds``."""
    return next((child for child in node.children if child.type in kinds), None)


def children_of(node: Node, *kinds: str) -> list[Node]:
    return [child for child in node.children if child.type in kinds]


def height(node: Node, most: int) -> int:
    """How many levels of nodes there are from ``node`` down; ``most``: no more are looked for."""
    if node.end_byte - node.start_byte < 2 * most:  # every level takes an operator or a parenthesis
        return 0
    level, depth = [node], 0
    while level and depth < most:
        level = [child for parent in level for child in parent.children]
        depth += 1
    return depth


def identifiers_of(node: Node) -> Iterator[Node]:
    if node.type == "identifier":
        yield node
    for child in node.children:
        yield from identifiers_of(child)
