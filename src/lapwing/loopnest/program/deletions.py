"""Which arguments a program deletes at its end, and after which of its loops nobody reads their elements any more."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence

from lapwing.loopnest.frontend.statements import does_nothing
from lapwing.loopnest.program.variables.names import bound_names, captured_names, own_nodes, parameter_names

_SHAPES = frozenset({"shape", "ndim", "dtype", "size"})


def last_deletions(tree: ast.FunctionDef) -> tuple[ast.Delete, ...]:
    """The ``del`` statements that a function ends in, before a last ``return``."""
    statements = [s for s in tree.body if not does_nothing(s)]
    if statements and isinstance(statements[-1], ast.Return):
        statements.pop()
    found: list[ast.Delete] = []
    while statements and isinstance(last := statements.pop(), ast.Delete):
        found.append(last)
    return tuple(reversed(found))


def deleted_arguments(tree: ast.FunctionDef, regions: Iterable[ast.stmt]) -> frozenset[str]:
    """The arguments whose elements nobody reads when the function has ended: those that it deletes as the last it does, where
    nothing else in it stands for their memory. regions: its loops that are compiled."""
    deletions = last_deletions(tree)
    names = {node.id for s in deletions for node in ast.walk(s) if isinstance(node, ast.Name)}
    names &= {*parameter_names(tree.args)}
    names -= bound_names(s for s in tree.body if s not in deletions) | captured_names(tree)
    inside = {id(node) for region in regions for node in ast.walk(region)}
    others = [node for node in own_nodes(tree) if id(node) not in inside]
    return frozenset(names) - _stood_for(others)


def dead_after(
    tree: ast.FunctionDef, region: ast.stmt, passed: Sequence[tuple[str, ast.expr]], deleted: Collection[str]
) -> tuple[str, ...]:
    """The parameters of a region for arguments whose elements nobody reads after it. passed: its parameters, with what is passed
    for them; deleted: ``deleted_arguments``."""
    place = next((k for k, statement in enumerate(tree.body) if statement is region), None)
    if place is None:  # it may be done again
        return ()
    later = {n.id for s in tree.body[place + 1 :] for n in _looked_at(s) if isinstance(n, ast.Name)}
    found = [(p, value.id) for p, value in passed if isinstance(value, ast.Name) and value.id in deleted]
    names = [name for _, name in found]
    return tuple(parameter for parameter, name in found if name not in later and names.count(name) == 1)


def _stood_for(nodes: Sequence[ast.AST]) -> set[str]:
    """The names that a driver does more with than to ask for shapes and to set elements: others may then stand for the same
    memory."""
    harmless: set[int] = set()
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name() as name, attr=attribute) if attribute in _SHAPES:
                harmless.add(id(name))
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name() as name], keywords=[]):
                harmless.add(id(name))
            case ast.Subscript(value=ast.Name() as name, ctx=ast.Store()):
                harmless.add(id(name))
    return {
        node.id
        for node in nodes
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in harmless
    }


def _looked_at(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement, without what only asks for shapes or deletes."""
    if isinstance(statement, ast.Delete):
        return
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        match node:
            case ast.Attribute(value=ast.Name(), attr=attribute) if attribute in _SHAPES:
                continue
        yield node
        waiting += ast.iter_child_nodes(node)
