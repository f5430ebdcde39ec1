"""Loop lifting: a loop of a function becomes a function of its own, called in its place.

    before                                   after
    for i in range(1, n):                    best = f_1(u, best, n)
        best = max(best, u[i])
                                             def f_1(u, best_before, n):
                                                 best = best_before
                                                 for i in range(1, n):
                                                     best = max(best, u[i])
                                                 return best

Parameters are what the loop may read before it assigns it; returned is what it assigns and what may be read after it.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from dataclasses import dataclass

from lapwing.loopnest.program.invariants import Lifted, fresh_name, lifted
from lapwing.loopnest.program.liveness import exposed_reads
from lapwing.loopnest.program.names import bound_names
from lapwing.loopnest.program.surroundings import Around, Code, Control
from lapwing.loopnest.refusals import Refusals
from lapwing.loopnest.source import FunctionSource
from lapwing.syntax_places import placed


@dataclass(frozen=True)
class Outlined:
    """A loop as a function. inputs: what the driver passes, an expression a parameter. outputs: the names that the call
    assigns, in the order in which the function returns them. rows, looks_at: see invariants.Lifted."""

    source: FunctionSource
    inputs: tuple[ast.expr, ...]
    outputs: tuple[str, ...]
    rows: frozenset[str]
    looks_at: frozenset[str]


def outline(
    around: Around,
    statement: ast.For | ast.While,
    name: str,
    control: Control,
    lift: bool = True,
    sequential: bool = False,
) -> Outlined:
    """The loop as a function of this name. Nothing is said of whether that is a nest.

    lift: whether what is the same for the whole loop is taken out of it (invariants). sequential: whether it is to run in its own
    order, on one rank. Raises RefusedError where a function could not do what the loop does.
    """
    own = bound_names([statement])
    before = exposed_reads([statement]) & around.locals
    outputs = tuple(_in_order(statement, around.live_after(statement) & own))
    left = set() if sequential else set(outputs) - before
    _check_names(around, statement, own - around.locals, left, before - around.set_outside(statement))
    carried = [name for name in _in_order(statement, before) if name in own]
    given = [name for name in _in_order(statement, before) if name not in own]
    taken = {*around.locals, *before, *_all_names(statement)}
    loop = Lifted(copy.deepcopy(statement))
    if lift and isinstance(statement, ast.For):
        loop = lifted(statement, own, control, taken)
    still_read = exposed_reads([loop.statement])
    starts = {variable: fresh_name(f"{variable}_before", taken) for variable in carried}
    parameters = {name: _read(name, statement) for name in given if name in still_read}
    parameters |= loop.parameters
    parameters |= {start: _read(variable, statement) for variable, start in starts.items()}
    body: list[ast.stmt] = [
        placed(statement, ast.Assign([ast.Name(variable, ast.Store())], ast.Name(start, ast.Load())))
        for variable, start in starts.items()
    ]
    body.append(loop.statement)
    if outputs:
        names: list[ast.expr] = [ast.Name(output, ast.Load()) for output in outputs]
        body.append(placed(statement, ast.Return(names[0] if len(names) == 1 else ast.Tuple(names, ast.Load()))))
    tree = _definition(name, list(parameters), body, statement)
    source = around.source
    function = Code.of(tree, source.function).function(defaults=False)
    outlined = FunctionSource(function, source.file, source.first, source.lines, tree, sequential)
    return Outlined(outlined, tuple(parameters.values()), outputs, frozenset(loop.rows), frozenset(loop.looks_at))


def _check_names(
    around: Around, statement: ast.stmt, elsewhere: set[str], left: set[str], unset: frozenset[str]
) -> None:
    """elsewhere: names that it assigns and that are not the function's. left: those that it does not go on with, but leaves.
    unset: those that it goes on with, but nothing gives a value to before."""
    refusals, text = Refusals(around.source.file), around.source.text(statement)
    if elsewhere:
        found = f"{text} assigns {', '.join(sorted(elsewhere))}, which is declared global or nonlocal"
        refusals.note(
            statement.lineno, found, "use a variable of the function in the loops, and set that one after them"
        )
    if unset:
        found = f"{text} reads {', '.join(sorted(unset))} before anything gives it a value"
        refusals.note(statement.lineno, found, "set it before the loops")
    if left:
        refusals.note(
            statement.lineno,
            f"{text} leaves {', '.join(sorted(left))} with the value of the last iteration, which is read after it",
            "loops leave elements of arrays, and reductions: best = 0 before them, best = max(best, x) inside; keep any other "
            "value in an array",
        )
    refusals.raise_if_any()


def _definition(name: str, parameters: Sequence[str], body: list[ast.stmt], where: ast.stmt) -> ast.FunctionDef:
    arguments = ast.arguments([], [ast.arg(p) for p in parameters], None, [], [], None, [])
    return placed(where, ast.FunctionDef(name, arguments, body, [], None))


def _read(name: str, where: ast.stmt) -> ast.expr:
    return ast.copy_location(ast.Name(name, ast.Load()), where)


def _in_order(statement: ast.stmt, names: frozenset[str]) -> list[str]:
    """Names in the order in which they stand in the loop."""
    found = [node.id for node in ast.walk(statement) if isinstance(node, ast.Name)]
    return [name for name in dict.fromkeys(found) if name in names]


def _all_names(statement: ast.stmt) -> set[str]:
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
