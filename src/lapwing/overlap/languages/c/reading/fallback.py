"""What can be said of a C file that libclang cannot read: its functions, and where they call MPI (by tree-sitter)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import tree_sitter
import tree_sitter_c
import tree_sitter_cpp

_MPI_CALL = re.compile(rb"\b(P?MPI_\w+)\s*\(")


# What a function definition may stand in; all else, long tables of numbers above all, is not walked through.
_HOLDERS = frozenset(
    """translation_unit ERROR linkage_specification declaration_list namespace_definition template_declaration
    class_specifier struct_specifier field_declaration_list preproc_if preproc_ifdef preproc_else preproc_elif
    preproc_elifdef""".split()
)


@dataclass(frozen=True)
class Found:
    """A function definition. ``body_start`` and ``body_end``: its braces included."""

    name: str
    start: int
    end: int
    body_start: int
    body_end: int
    mpi_calls: tuple[tuple[str, int], ...]


def functions_in(data: bytes, cpp: bool) -> list[Found]:
    """Every function definition tree-sitter sees, whatever else is wrong with the file."""
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_cpp.language() if cpp else tree_sitter_c.language()))
    found: list[Found] = []
    pending: list[Any] = [parser.parse(data).root_node]
    while pending:
        node = pending.pop()
        if node.type == "function_definition":
            body = node.child_by_field_name("body")
            if body is not None and body.type == "compound_statement":
                found.append(_found(node, body, data))
        elif node.type in _HOLDERS:
            pending.extend(node.children)
    return sorted(found, key=lambda function: function.start)


def _found(node: Any, body: Any, data: bytes) -> Found:
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type not in ("identifier", "field_identifier", "qualified_identifier"):
        declarator = declarator.child_by_field_name("declarator")
    name = declarator.text.decode("latin-1") if declarator is not None else f"function at byte {node.start_byte}"
    calls = tuple(
        (match.group(1).decode(), match.start()) for match in _MPI_CALL.finditer(data, body.start_byte, body.end_byte)
    )
    return Found(name, node.start_byte, node.end_byte, body.start_byte, body.end_byte, calls)
