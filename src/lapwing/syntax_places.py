"""Places in the user's file of syntax nodes that were made: errors and tracebacks name them."""

from __future__ import annotations

import ast
from typing import TypeVar

Node = TypeVar("Node", bound=ast.AST)


def placed(where: ast.stmt | ast.expr, node: Node, with_end: bool = False) -> Node:
    """A node that is made, and what is in it that has no place yet, where another is. with_end: whether it is the same text."""
    for part in ast.walk(node):
        if "lineno" in part._attributes and not hasattr(part, "lineno"):
            if with_end:
                ast.copy_location(part, where)
            else:
                part.lineno, part.col_offset = where.lineno, where.col_offset  # type: ignore[attr-defined]
    return node


def with_ends(tree: ast.FunctionDef) -> ast.FunctionDef:
    """With places that compiling takes, also of nodes that were made: they are where what is around them is."""

    def place(node: ast.AST, line: int, column: int) -> None:
        if isinstance(node, ast.stmt | ast.expr | ast.excepthandler | ast.pattern | ast.arg | ast.keyword | ast.alias):
            node.lineno = line = getattr(node, "lineno", line)
            node.col_offset = column = getattr(node, "col_offset", column)
            if getattr(node, "end_lineno", None) is None:
                node.end_lineno, node.end_col_offset = line, column
        for child in ast.iter_child_nodes(node):
            place(child, line, column)

    place(tree, 1, 0)
    return tree
