"""What stands in the else of a loop inside of another comes after it, where no break has ended it.

before                                   after
for k in range(n):                       is_broken = 0
    if x[k] > 4:                         for k in range(n):
        break                                if x[k] > 4:
else:                                            is_broken = 1
    u[i] = n                                     break
                                         if is_broken == 0:
                                             u[i] = n
"""

from __future__ import annotations

import ast
import copy

from lapwing.loopnest.normalisation.names import all_names, fresh_name
from lapwing.syntax_places import placed


def without_else(tree: ast.FunctionDef) -> ast.FunctionDef:
    """The function without else of such loops; the same where it has none."""
    if not any(isinstance(node, ast.For | ast.While) and node.orelse for node in ast.walk(tree)):
        return tree
    new = _Moving(all_names(tree)).visit(copy.deepcopy(tree))
    assert isinstance(new, ast.FunctionDef)
    return new


class _Moving(ast.NodeTransformer):
    def __init__(self, taken: set[str]) -> None:
        self.taken = taken
        self.depth = 0

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        return self._loop(node)

    def visit_While(self, node: ast.While) -> ast.AST | list[ast.stmt]:
        return self._loop(node)

    def _loop(self, node: ast.For | ast.While) -> ast.AST | list[ast.stmt]:
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1
        if not node.orelse or not self.depth:
            return node
        moved, node.orelse = node.orelse, []
        name = fresh_name("is_broken", self.taken)
        noting = _Noting(name)
        node.body = [s for one in node.body for s in noting.statements(one)]
        if not noting.found:
            return [node, *moved]
        test = ast.Compare(ast.Name(name, ast.Load()), [ast.Eq()], [ast.Constant(0)])
        before = ast.Assign([ast.Name(name, ast.Store())], ast.Constant(0))
        return [placed(node, before), node, placed(moved[0], ast.If(test, moved, []))]


class _Noting(ast.NodeTransformer):
    """Notes the breaks of a loop itself in a variable."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.found = False

    def statements(self, node: ast.stmt) -> list[ast.stmt]:
        new = self.visit(node)
        return new if isinstance(new, list) else [new]

    def visit_For(self, node: ast.For) -> ast.AST:
        return self._inner(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        return self._inner(node)

    def _inner(self, node: ast.For | ast.While) -> ast.AST:
        """Its own breaks are another loop's, but for those in its else."""
        node.orelse = [s for one in node.orelse for s in self.statements(one)]
        return node

    def visit_Break(self, node: ast.Break) -> list[ast.stmt]:
        self.found = True
        return [placed(node, ast.Assign([ast.Name(self.name, ast.Store())], ast.Constant(1))), node]
