"""Loop lifting: a loop of a function becomes a function of its own, called in its place.

    before                                   after
    for i in range(1, n):                    best = f_1(u, best, n)
        best = max(best, u[i])
                                             def f_1(u, best_before, n):
                                                 best = best_before
                                                 for i in range(1, n):
                                                     best = max(best, u[i])
                                                 return best

Parameters are what the loop may read before it assigns it; returned is what it assigns and what may be read after it. A
loop that runs in its own order is also given what it may leave as it was, and is told where that has no value.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lapwing.loopnest.normalisation.names import fresh_name
from lapwing.loopnest.program.invariants import Lifted, lifted
from lapwing.loopnest.program.surroundings import Around, Code, Control
from lapwing.loopnest.program.variables.assignment import Assigned
from lapwing.loopnest.program.variables.liveness import exposed_reads, first_reads, live_before
from lapwing.loopnest.program.variables.names import bound_names
from lapwing.loopnest.refusals import Refusals
from lapwing.loopnest.source import FunctionSource
from lapwing.syntax_places import placed


@dataclass(frozen=True)
class Outlined:
    """A loop as a function. inputs: what the driver passes, an expression a parameter. outputs: the names that the call
    assigns, in the order in which the function returns them. rows, looks_at, may_meet: see invariants.Lifted. perhaps:
    variables that may have no value before: the inputs are called ``value_of`` and ``is_set_of`` them. unset: those that may
    have none after it, for which the function returns ``...`` then."""

    source: FunctionSource
    inputs: tuple[ast.expr, ...]
    outputs: tuple[str, ...]
    rows: frozenset[str]
    looks_at: frozenset[str]
    perhaps: tuple[str, ...] = ()
    unset: tuple[str, ...] = ()
    may_meet: bool = False


@dataclass(frozen=True)
class Rewritten:
    """What is done in the place of a loop. begins: variables that only it has, with what they are before it; they are returned,
    too. made: arrays that only it has, with the names by which the driver has them."""

    loop: ast.For | ast.While
    begins: Mapping[str, ast.expr] = field(default_factory=dict)
    made: Mapping[str, str] = field(default_factory=dict)


def outline(
    around: Around,
    place: ast.stmt,
    name: str,
    control: Control,
    lift: bool = True,
    sequential: bool = False,
    rewritten: Rewritten | None = None,
) -> Outlined:
    """The loop at a place as a function of this name. Nothing is said of whether that is a nest.

    lift: whether what is the same for the whole loop is taken out of it (invariants). sequential: whether it is to run in its own
    order, on one rank. rewritten: what is done there in place of what is. Raises RefusedError where a function could not do what
    the loop does.
    """
    statement = place if rewritten is None else rewritten.loop
    assert isinstance(statement, ast.For | ast.While)
    begins, made = (rewritten.begins, rewritten.made) if rewritten is not None else ({}, {})
    if statement.orelse and any(isinstance(n, ast.Break | ast.Continue) for s in statement.orelse for n in ast.walk(s)):
        refusals = Refusals(around.source.file)
        refusals.note(statement.lineno, "loop … else", "a loop has no else; move what stands there behind the loop")
        refusals.raise_if_any()  # it may jump out of the loops around
    own = bound_names([statement])
    before = exposed_reads([statement]) & (around.locals | made.keys())
    outputs = tuple(_in_order(statement, around.live_after(place) & own))
    left = set() if sequential else set(outputs) - before
    perhaps, left_as_before = frozenset[str](), frozenset[str]()
    earlier = around.set_outside(place)  # and what the loop itself may have set, in an iteration of one around it
    earlier |= made.keys()
    assigned = around.assigned_before(place)
    if sequential:
        left_as_before = live_before([statement], frozenset(outputs)) & own - begins.keys()
        before = _without_unset(assigned, statement, before | left_as_before, own)
        earlier |= (own & assigned.perhaps) - first_reads(statement)
        perhaps = _scalars(statement, before & earlier) - assigned.surely - made.keys()
    _check_names(around, statement, set() if rewritten else own - around.locals, left, before - earlier)
    carried = [name for name in _in_order(statement, before) if name in own | perhaps]
    given = [name for name in _in_order(statement, before) if name not in own | perhaps]
    taken = {*around.locals, *before, *_all_names(statement)}
    loop = Lifted(copy.deepcopy(statement))
    if lift and isinstance(statement, ast.For):
        loop = lifted(statement, own, control, taken)
    still_read = exposed_reads([loop.statement])
    starts = {variable: fresh_name(f"{variable}_before", taken) for variable in carried}
    parameters = {name: _read(made.get(name, name), statement) for name in given if name in still_read}
    parameters |= loop.parameters
    body: list[ast.stmt] = []
    for variable, start in starts.items():
        parameters[start] = _read(value_of(variable) if variable in perhaps else variable, statement)
        go_on: ast.stmt = ast.Assign([ast.Name(variable, ast.Store())], ast.Name(start, ast.Load()))
        if variable in perhaps:
            is_set = fresh_name(f"{variable}_is_set", taken)
            parameters[is_set] = _read(is_set_of(variable), statement)
            go_on = ast.If(ast.Name(is_set, ast.Load()), [go_on], [])
        body.append(placed(statement, go_on))
    body += [placed(statement, ast.Assign([ast.Name(n, ast.Store())], value)) for n, value in begins.items()]
    body.append(loop.statement)
    outputs += tuple(begins)
    if outputs:
        names: list[ast.expr] = [ast.Name(output, ast.Load()) for output in outputs]
        body.append(placed(statement, ast.Return(names[0] if len(names) == 1 else ast.Tuple(names, ast.Load()))))
    tree = _definition(name, list(parameters), body, statement)
    source = around.source
    function = Code.of(tree, source.function).function(defaults=False)
    outlined = FunctionSource(
        function, source.file, source.first, source.lines, tree, sequential, as_written=source.as_written
    )
    inputs, rows, looks_at = tuple(parameters.values()), frozenset(loop.rows), frozenset(loop.looks_at)
    unset = tuple(n for n in outputs if sequential and n in left_as_before and n not in assigned.surely)
    return Outlined(outlined, inputs, outputs, rows, looks_at, tuple(sorted(perhaps)), unset, loop.may_meet)


def value_of(variable: str) -> str:
    """The name, not one that Python allows, of the driver's for the value that a variable has, or of any where it has none."""
    return f"{variable} before"


def is_set_of(variable: str) -> str:
    """The driver's name for whether the variable has a value."""
    return f"{variable} is set"


def _without_unset(
    assigned: Assigned, statement: ast.For | ast.While, names: frozenset[str], own: set[str]
) -> frozenset[str]:
    """What a sequential region goes on with of what it reads, or may leave as it was: what nothing gives a value to before, it
    finds out by itself where it reads it, and so says whether the plain loop would raise. What its first iteration reads surely
    would."""
    return names - (own - assigned.perhaps - first_reads(statement))


def _scalars(statement: ast.stmt, names: frozenset[str]) -> frozenset[str]:
    """Those of the names that stand for no array in a loop."""
    wholes: list[ast.expr] = []
    for node in ast.walk(statement):
        if isinstance(node, ast.Subscript | ast.Attribute):
            wholes.append(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
            wholes += node.args
    return names - {whole.id for whole in wholes if isinstance(whole, ast.Name)}


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
