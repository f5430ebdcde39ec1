"""Functions that a driver calls and that have loops of their own: they are programs as well."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lapwing.errors import RefusedError
from lapwing.loopnest.program.variables.names import local_names, own_nodes
from lapwing.loopnest.source import FunctionSource


def procedures(source: FunctionSource) -> dict[str, Callable[..., Any]]:
    """The plain functions with loops that a function calls by names of its surroundings, by those names."""
    local = local_names(source.tree)
    around = inspect.getclosurevars(source.function)
    known: Mapping[str, Any] = {**around.globals, **around.nonlocals}
    called = {node.func.id for node in _calls(source.tree) if isinstance(node.func, ast.Name)}
    names = sorted(name for name in called - local if inspect.isfunction(known.get(name)))
    return {name: known[name] for name in names if _has_loops(known[name])}


def with_procedures(tree: ast.FunctionDef, names: Mapping[str, str]) -> None:
    """Let the calls of such functions go to other names; the tree is changed."""
    for node in _calls(tree):
        if isinstance(node.func, ast.Name) and node.func.id in names:
            node.func.id = names[node.func.id]


def _calls(tree: ast.FunctionDef) -> Iterator[ast.Call]:
    return (node for node in own_nodes(tree) if isinstance(node, ast.Call))


def _has_loops(function: Callable[..., Any]) -> bool:
    try:
        tree = FunctionSource.of(function).tree
    except RefusedError:
        return False
    return any(isinstance(node, ast.For | ast.While) for node in own_nodes(tree))
