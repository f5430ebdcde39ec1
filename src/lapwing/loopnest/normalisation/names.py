"""What passes that change a function's syntax tree ask of it: its names, all of them, its own, and those that always stand for
the same; its loops, blocks and jumps."""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator

from lapwing.loopnest.inlining.helpers import stored_names

BLOCKS = ("body", "orelse", "finalbody")


def argument_names(tree: ast.AST) -> set[str]:
    return {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}


def own_names(tree: ast.FunctionDef) -> set[str]:
    """The arguments, and what statements assign."""
    return argument_names(tree) | stored_names(tree.body)


def all_names(tree: ast.AST) -> set[str]:
    """Those that stand anywhere in a function, or a statement: new ones must be others."""
    return argument_names(tree) | {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def names_set_once(tree: ast.FunctionDef) -> set[str]:
    """Arguments that nothing assigns to, and names that one assignment sets, outside of all loops."""
    stores = Counter(n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    stores.update(argument_names(tree))
    first = stored_names([statement for statement in tree.body if isinstance(statement, ast.Assign)])
    return {name for name in first | argument_names(tree) if stores[name] == 1}


def fresh_name(wanted: str, taken: set[str]) -> str:
    """A name that nothing has yet, and now has."""
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    taken.add(name)
    return name


def count_names(nodes: Iterable[ast.AST], *contexts: type[ast.expr_context]) -> Counter[str]:
    """How often each name stands in statements in one of some contexts."""
    parts = (part for node in nodes for part in ast.walk(node))
    return Counter(part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, contexts))


def jumps(statement: ast.stmt) -> bool:
    """Whether what follows a statement may be left out after it."""
    return any(isinstance(node, ast.Continue | ast.Break | ast.Return | ast.Raise) for node in ast.walk(statement))


def is_builtin(name: str, own: Container[str], meaning: Callable[[str], object]) -> bool:
    """Whether a name stands for what Python calls so. own: the function's names; meaning: of names that are not its own."""
    return name not in own and hasattr(builtins, name) and meaning(name) is getattr(builtins, name)


def loop_index(statement: ast.stmt) -> str | None:
    """The index of a loop over a range that ends in one way; None of any other statement."""
    match statement:
        case ast.For(target=ast.Name(id=name), iter=iterable, orelse=[]) if is_range(iterable):
            return name
    return None


def blocks_in(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks directly inside of a statement."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    for block in BLOCKS:
        yield getattr(statement, block, [])
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


def is_range(node: ast.expr) -> bool:
    """Whether it is a call of what goes by the name of range."""
    match node:
        case ast.Call(func=ast.Name(id="range"), args=[_, *_]):
            return True
    return False


def range_ends(loop: ast.For) -> tuple[ast.expr, ast.expr, int] | None:
    """Where a range with step 1 or -1 begins and ends, and which of them it has."""
    match loop.iter:
        case ast.Call(args=[stop], keywords=[]):
            return ast.Constant(0), stop, 1
        case (
            ast.Call(args=[start, stop], keywords=[]) | ast.Call(args=[start, stop, ast.Constant(value=1)], keywords=[])
        ):
            return start, stop, 1
        case ast.Call(args=[start, stop, ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1))], keywords=[]):
            return start, stop, -1
    return None
