"""An element that all iterations of a loop store to, as a variable (scalar replacement: Callahan, Carr and Kennedy, PLDI 1990).

    for k:                             kept = c[i, j]
        c[i, j] += a[i, k] * b[k]  →   for k: kept += a[i, k] * b[k]
                                       c[i, j] = kept

It takes loops that look at no other element of the array that may be the same one; and elements that exist where the loop has no
iterations, too: what statements beside it touch, or where a condition says that it has some.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lapwing.codegen.outer_loops.independence import accesses_in, are_apart, stores_in
from lapwing.codegen.outer_loops.ranges import NOTHING, Ranges, within
from lapwing.loopnest.binding import typed as t


def with_scalars(
    statements: Sequence[t.TypedStatement], ranges: Ranges | None = None, counted: list[int] | None = None
) -> tuple[t.TypedStatement, ...]:
    """Statements of which innermost loops store to elements that do not change in them once, behind them."""
    ranges, counted = ranges or NOTHING, [0] if counted is None else counted
    touched = {load for s in statements if isinstance(s, t.SimpleStatement) for load in accesses_in((s,))}
    found: list[t.TypedStatement] = []
    held: dict[t.Load, t.Typed] = {}  # what elements have just been set to
    for statement in statements:
        match statement:
            case t.TypedFor(body=body) if all(isinstance(s, t.SimpleStatement | t.TypedVariable) for s in body):
                found += _replaced(statement, within(statement, ranges), touched, held, counted)
            case t.TypedFor(body=body):
                found.append(replace(statement, body=with_scalars(body, within(statement, ranges), counted)))
            case _:
                found.append(statement)
        match statement:
            case t.TypedStore(target=target, value=t.Literal() | t.Scalar() | t.Local() as value) if (
                value.dtype == target.dtype
            ):
                held = {load: given for load, given in held.items() if load.array != target.array} | {target: value}
            case t.TypedStore(target=target):
                held = {load: given for load, given in held.items() if load.array != target.array}
            case t.TypedLocal() | t.TypedVariable():
                pass
            case _:
                held = {}
    return tuple(found)


def _replaced(
    loop: t.TypedFor, ranges: Ranges, touched: set[t.Load], held: Mapping[t.Load, t.Typed], counted: list[int]
) -> list[t.TypedStatement]:
    targets = [target for target in dict.fromkeys(stores_in(loop.body)) if _may_be_kept(target, loop, ranges)]
    before: list[t.TypedStatement] = []
    behind: list[t.TypedStatement] = []
    for target in targets:
        counted[0] += 1
        kept = t.Local(target.dtype, f"{target.array} kept", counted[0])
        loop = replace(loop, body=tuple(_with_variable(s, target, kept) for s in loop.body))
        own: list[t.TypedStatement] = [t.TypedVariable(loop.line, loop.text, kept, held.get(target, target))]
        last: list[t.TypedStatement] = [t.TypedStore(loop.line, loop.text, target, kept)]
        before, behind = before + own, behind + last
    whole = [*before, loop, *behind]
    if targets and not touched >= set(targets):
        some = t.Operation("bool", "<", (loop.start, loop.stop))
        return [t.TypedIf(loop.line, loop.text, some, tuple(whole), ())]
    return whole


def _may_be_kept(target: t.Load, loop: t.TypedFor, ranges: Ranges) -> bool:
    if not (isinstance(loop.step, t.Literal) and loop.step.value == 1):
        return False
    for subscript in target.subscripts:
        if not isinstance(subscript, t.AffineSubscript) or loop.index.name in subscript.affine.names:
            return False
    return all(access == target or are_apart(target, access, ranges) for access in accesses_in(loop.body))


def _with_variable(statement: t.TypedStatement, target: t.Load, kept: t.Local) -> t.TypedStatement:
    def visit(node: t.Typed) -> t.Typed:
        return kept if node == target else t.mapped(node, visit)

    if isinstance(statement, t.TypedStore) and statement.target == target:
        return t.TypedAssign(statement.line, statement.text, kept, visit(statement.value))
    if isinstance(statement, t.TypedStore):
        stored_to = t.mapped(statement.target, visit)
        assert isinstance(stored_to, t.Load)
        return replace(statement, value=visit(statement.value), target=stored_to)
    return t.with_values(statement, visit)
