"""Loops that end where the program goes on, and nowhere else: a ``return`` in a loop stands behind it (structured control flow:
Böhm and Jacopini, CACM 9, 1966; Peterson, Kasami and Tokura, CACM 16, 1973).

before                                   after
for it in range(most):                   left = 0
    …                                    for it in range(most):
    if change < eps:                         …
        return it                            if change < eps:
                                                 left = 1
                                                 break
                                         if left == 1:
                                             return it

What is returned is evaluated behind the loop, where all variables are as they were when it ended. Such a loop can be compiled
as a whole, where one that leaves the function cannot.
"""

from __future__ import annotations

import ast
import copy

from lapwing.loopnest.normalisation.depth import is_deep
from lapwing.loopnest.normalisation.names import all_names, fresh_name
from lapwing.syntax_places import placed


def with_single_exits(tree: ast.FunctionDef) -> ast.FunctionDef:
    """The function with returns behind its loops; the same where there are none in loops."""
    if is_deep(tree):
        return tree
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For | ast.While)]
    if not any(isinstance(node, ast.Return) for loop in loops for node in ast.walk(loop)):
        return tree
    new = copy.deepcopy(tree)
    new.body = _Leaving(all_names(tree)).block(new.body)
    return new


class _Leaving:
    def __init__(self, taken: set[str]) -> None:
        self._taken = taken

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        return [new for statement in statements for new in self._statement(statement)]

    def _statement(self, statement: ast.stmt) -> list[ast.stmt]:
        match statement:
            case ast.If():
                statement.body, statement.orelse = self.block(statement.body), self.block(statement.orelse)
            case ast.For() | ast.While():
                # What stands behind an inner loop then is a return of this one.
                statement.body, statement.orelse = self.block(statement.body), self.block(statement.orelse)
                return self._loop(statement)
        return [statement]  # others may do something when they are left, as ``with`` does

    def _loop(self, loop: ast.For | ast.While) -> list[ast.stmt]:
        returns: list[ast.Return] = []
        name = ""

        def left(statements: list[ast.stmt]) -> list[ast.stmt]:
            nonlocal name
            found: list[ast.stmt] = []
            for statement in statements:
                if isinstance(statement, ast.Return):
                    name = name or fresh_name("left", self._taken)
                    returns.append(statement)
                    noted = ast.Assign([ast.Name(name, ast.Store())], ast.Constant(len(returns)))
                    found += [placed(statement, noted), placed(statement, ast.Break())]
                    break  # nothing comes behind it
                if isinstance(statement, ast.If):
                    statement.body, statement.orelse = left(statement.body), left(statement.orelse)
                found.append(statement)
            return found

        loop.body = left(loop.body)
        if not returns:
            return [loop]
        begin = placed(loop, ast.Assign([ast.Name(name, ast.Store())], ast.Constant(0)))
        return [begin, loop, *(_if_left(name, number, returned) for number, returned in enumerate(returns, 1))]


def _if_left(name: str, number: int, returned: ast.Return) -> ast.stmt:
    test = ast.Compare(ast.Name(name, ast.Load()), [ast.Eq()], [ast.Constant(number)])
    return placed(returned, ast.If(test, [returned], []))
