"""How deep a function's syntax tree is: copying one and changing its nodes go down it in several calls a level."""

from __future__ import annotations

import ast

_MOST_LEVELS = 120


def nodes_below(tree: ast.FunctionDef, levels: int) -> list[ast.AST]:
    """What of a function lies deeper than so many levels of its body."""
    level: list[ast.AST] = list(tree.body)
    for _ in range(levels):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return level


def is_deep(tree: ast.FunctionDef) -> bool:
    """Whether the recursion that changes trees might not come down to the bottom of this one; it is left as it is."""
    return bool(nodes_below(tree, _MOST_LEVELS))
