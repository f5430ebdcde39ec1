"""A function around its loops: its arguments, and what is set before the loops."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lapwing.loopnest import ir
from lapwing.loopnest.frontend.expressions import Scope
from lapwing.loopnest.frontend.statements import StatementParser, bound_names
from lapwing.loopnest.inlining.inliner import meaning
from lapwing.loopnest.normalisation.depth import nodes_below
from lapwing.loopnest.normalisation.names import own_names
from lapwing.loopnest.refusals import Refusals, Stopped
from lapwing.loopnest.source import FunctionSource, unset_names

MAX_DEPTH = 200  # levels of nesting in an expression; Python's own recursion limit is a few times that


class FunctionParser(StatementParser):
    """Parses what stands around a function's loops. tree: what is compiled of it, where that is another one."""

    def __init__(
        self, source: FunctionSource, carries_scalars: bool = False, tree: ast.FunctionDef | None = None
    ) -> None:
        self.tree = tree or source.counted.tree
        self.function = source.function
        refusals = Refusals(source.file)
        parameters = tuple(inspect.signature(self.function).parameters)
        scope = Scope(parameters, _surroundings(source, refusals), carries_scalars=carries_scalars)
        super().__init__(source, scope, refusals)
        self.setups: list[ir.Setup] = []

    @contextmanager
    def refusing(self, statement: ast.stmt, known: Collection[str] = ()) -> Iterator[None]:
        """Where a statement is refused, go on after it; what the names mean that it sets is not known. known: all but these."""
        try:
            yield
        except Stopped:
            self.scope.refused |= bound_names(statement).difference(known)

    def check_signature(self) -> None:
        """Note what no nest has, of the signature and of the whole text."""
        self._check_depth()
        self._check_len()
        for k, parameter in enumerate(inspect.signature(self.function).parameters.values()):
            with self.refusals.recovering():
                if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                    self.refuse(self.tree, f"{parameter} in the signature", "name every argument")
                if k == 0 and parameter.name in ("self", "cls") and "." in self.function.__qualname__:
                    self.scope.refused.add(parameter.name)
                    self.refuse(
                        self.tree,
                        f"{parameter.name} in the signature: a nest's arguments are arrays and numbers, not objects",
                        f"put @staticmethod above @lw.nest, leave out {parameter.name}, and pass what is used of it",
                    )

    def _check_depth(self) -> None:
        """Refuse what the recursion in later steps could not go down."""
        if level := too_deep(self.tree):
            node = next((node for node in level if hasattr(node, "lineno")), self.tree)
            self.refusals.note(
                getattr(node, "lineno", self.tree.lineno),
                f"an expression of more than {MAX_DEPTH} levels, such as a sum of as many terms",
                "take it apart with scalar temporaries: a = …, then b = a + …",
            )
            self.refusals.raise_if_any()

    def _check_len(self) -> None:
        """Lengths of arrays are known by the name of the function that gives them."""
        tree = self.source.tree
        calls = [
            n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "len"
        ]
        if calls and ("len" in own_names(tree) or meaning(self.function, "len") is not len):
            with self.refusals.recovering():
                self.refuse(calls[0], "len is not Python's own here", "call what it is something else")

    def setup(self, statement: ast.stmt) -> None:
        """An assignment before the loops: scalars, ``n, m = u.shape``, and where reductions start."""
        match statement:
            case ast.Assign(targets=targets, value=value) if all(names_of(t) for t in targets):
                pass
            case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value):
                targets = [target]
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=operand):
                value = ast.copy_location(ast.BinOp(ast.Name(name, ast.Load()), op, operand), statement)
                targets = [target]
            case ast.While():
                self.refuse(
                    statement,
                    f"{self.source.text(statement)} before any for loop",
                    "a nest's loops are for i in range(…); a while loop around them is written in Python and calls the nest",
                )
            case _:
                self.refuse(
                    statement,
                    f"{self.source.text(statement)} before the loops",
                    "only scalars may be set before the loops, such as n, m = u.shape or best = 0; "
                    "do other work before the call",
                )
        for names in map(names_of, targets):
            for name in names:
                if name in self.scope.parameters:
                    self.refuse(statement, f"{name} is an argument and is assigned again", "use another name")
                self.scope.setup_names[name] = value
            self.setups.append(ir.Setup(names, value, statement.lineno))
        self.note_shape_uses(value)

    def deleted(self, statements: Sequence[ast.stmt]) -> tuple[tuple[str, ...], list[ast.stmt]]:
        """The arrays of which nobody reads elements after the loops, of which ``del`` says so behind them, and the statements
        that are no ``del``. To be called when the loops are known."""
        found, rest = list(self.source.dead), [s for s in statements if not isinstance(s, ast.Delete)]
        for statement in statements:
            for target in statement.targets if isinstance(statement, ast.Delete) else ():
                for node in target.elts if isinstance(target, ast.Tuple | ast.List) else (target,):
                    if isinstance(node, ast.Name) and node.id in self.arrays and node.id in self.scope.parameters:
                        found.append(node.id)
                    elif not (isinstance(node, ast.Name) and node.id in self.scope.refused):
                        with self.refusals.recovering():
                            self.refuse(
                                node,
                                f"del {self.source.text(node)} after the loops",
                                "there it names arguments, arrays of the loops whose elements nobody reads afterwards: del h; "
                                "leave out any other",
                            )
        return tuple(dict.fromkeys(found)), rest


def names_of(target: ast.expr) -> tuple[str, ...]:
    """The names of a target that is a name or a row of names; () for any other."""
    elements = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    names = tuple(e.id for e in elements if isinstance(e, ast.Name))
    return names if len(names) == len(elements) else ()


def _surroundings(source: FunctionSource, refusals: Refusals) -> dict[str, Any]:
    """The globals, closure variables and builtins that a function names. Raises RefusedError where one has no value."""
    try:
        names = inspect.getclosurevars(source.function)
    except ValueError:  # an empty cell
        unset = ", ".join(unset_names(source.function))
        refusals.note(source.tree.lineno, f"{unset} has no value yet", "set it before the nest is used")
        refusals.raise_if_any()
    of_helpers = {name: meaning(source.function, name) for name in source.inlined.names}
    return {**of_helpers, **names.builtins, **names.globals, **names.nonlocals}


def too_deep(tree: ast.FunctionDef) -> list[ast.AST]:
    """What of a function lies deeper than recursion should go."""
    return nodes_below(tree, MAX_DEPTH)
