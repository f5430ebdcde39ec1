"""Arrays that loops go over and that NumPy makes of numbers are made before the loops.

before                                           after
for i in range(n):                               y_values = np.linspace(a, b, m)
    for j, y in enumerate(np.linspace(a, b, m)): for i in range(n):
        u[i, j] = y                                  for j, y in enumerate(y_values):
                                                         u[i, j] = y
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable

import numpy as np

from lapwing.loopnest.normalisation.names import all_names, fresh_name, own_names
from lapwing.syntax_places import placed

_MAKERS = (np.linspace, np.arange, np.logspace, np.geomspace)
_PLAIN = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.expr_context, ast.operator, ast.unaryop)


def with_made_arrays(tree: ast.FunctionDef, meaning: Callable[[str], object]) -> ast.FunctionDef:
    """The function with such arrays by names of their own; the same where it has none. meaning: of names that are not its own."""
    making = _Making(tree, meaning)
    new = making.visit(copy.deepcopy(tree))
    assert isinstance(new, ast.FunctionDef)
    return new if making.found else tree


class _Making(ast.NodeTransformer):
    def __init__(self, tree: ast.FunctionDef, meaning: Callable[[str], object]) -> None:
        self.own, self.meaning, self.taken = own_names(tree), meaning, all_names(tree)
        self.found = False
        self.around: list[
            tuple[set[str], list[ast.stmt]]
        ] = []  # of each loop: what it sets, and what is made before it

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        return self._loop(node)

    def visit_While(self, node: ast.While) -> ast.AST | list[ast.stmt]:
        return self._loop(node)

    def _loop(self, node: ast.For | ast.While) -> ast.AST | list[ast.stmt]:
        stored = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        made: list[ast.stmt] = []
        self.around.append((stored, made))
        if isinstance(node, ast.For):
            node.iter = self._over(node.iter, node)
        self.generic_visit(node)
        self.around.pop()
        return [*made, node] if made else node

    def _over(self, node: ast.expr, loop: ast.For) -> ast.expr:
        match node:
            case ast.Call(func=ast.Name(id="enumerate" | "zip" | "reversed"), args=arguments):
                node.args = [self._over(argument, loop) for argument in arguments]
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name), keywords=keywords) if (
                module not in self.own and self.meaning(module) is np and getattr(np, name, None) in _MAKERS
            ):
                parts = [part for a in (*node.args, *(k.value for k in keywords)) for part in ast.walk(a)]
                if all(isinstance(part, _PLAIN) for part in parts):
                    return self._made(node, loop, {part.id for part in parts if isinstance(part, ast.Name)})
        return node

    def _made(self, node: ast.Call, loop: ast.For, names: set[str]) -> ast.expr:
        """A name for an array, which is made before the outermost loop that leaves what it is made of as it is."""
        self.found = True
        of = next((n.id for n in reversed([*ast.walk(loop.target)]) if isinstance(n, ast.Name)), "array")
        name = fresh_name(f"{of}_values", self.taken)
        place = self.around[-1][1]
        for stored, made in reversed(self.around):
            if stored & names:
                break
            place = made
        place.append(placed(loop, ast.Assign([ast.Name(name, ast.Store())], node)))
        return placed(node, ast.Name(name, ast.Load()), with_end=True)
