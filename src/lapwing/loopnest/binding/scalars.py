"""Where a nest's scalars come from, which of them may change without the nest being bound anew, and how tiles have them."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import accumulate
from typing import Any

from lapwing.affine.affine import Affine
from lapwing.loopnest import ir
from lapwing.loopnest.binding.promotion import scalar_type
from lapwing.loopnest.guards import occurrences


def names_from_outside(nest: ir.LoopNest) -> tuple[str, ...]:
    """The globals, closure variables and builtins that binding looks up, in order of their names."""
    read = {*nest.arrays, *used_parameters(nest), *nest.accumulators, *names_in(node for _, node in nest.symbols)}
    read |= names_in(setup.value for setup in nest.setups)
    own = {*nest.parameters, *(target for setup in nest.setups for target in setup.targets)}
    return tuple(sorted(name for name in read - own if name.isidentifier()))


def free_scalars(nest: ir.LoopNest, begun: Collection[str] = ()) -> frozenset[str]:
    """Arguments and globals of which, where they are floats or complex, binding looks at the type and not at the value.

    Not among them are those that a loop bound, an index or the start of a reduction comes from. Of a generic region the integers
    are free as well. begun: reductions whose starts may be other numbers.
    """
    if nest.is_generic:
        return frozenset(nest.parameters) - {*nest.arrays} - nest.kept
    bounds = [bound for loop in nest.loops for bound in (*loop.bounds, *map(Affine.of, loop.integers))]
    for statement in ir.all_statements(nest.body):
        if isinstance(statement, ir.For):
            bounds += [bound for bound in statement.affine if bound is not None]
    indices = [index for o in occurrences(nest) for index in o.access.affine if index is not None]
    integers = set().union(*(affine.names for affine in (*bounds, *indices)))
    starts = set(nest.accumulators) - set(begun)
    fixed = {*nest.arrays, *starts, *names_in(node for name, node in nest.symbols if name in integers)}
    for setup in reversed(nest.setups):
        if fixed.intersection(setup.targets):
            fixed |= names_in([setup.value])
    return frozenset({*nest.parameters, *names_from_outside(nest)} - fixed)


def extrema_and_sums(nest: ir.LoopNest) -> frozenset[str]:
    """The reductions that are a largest or least value or a sum, and nothing else."""
    found = [s for s in ir.all_statements(nest.body) if isinstance(s, ir.Accumulate)]
    others = {s.name for s in found if s.operator not in ("max", "min", "+")}
    return frozenset(nest.accumulators) - others - {name for s in found for name, _ in s.payload}


def set_again(nest: ir.LoopNest, changed: Iterable[str]) -> tuple[ir.Setup, ...]:
    """The set-ups, in order, that must be done again where names have other values.

    Those of a name that is set more than once are all among them, since each of its values counts for a while.
    """
    times = Counter(target for setup in nest.setups for target in setup.targets)
    names, found = {*changed, *(name for name, count in times.items() if count > 1)}, []
    for setup in nest.setups:
        if names & {*setup.targets, *names_in([setup.value])}:
            names |= set(setup.targets)
            found.append(setup)
    return tuple(found)


def used_parameters(nest: ir.LoopNest) -> tuple[str, ...]:
    """The scalars the loop body reads, in the order in which it does."""
    found: dict[str, None] = {}

    def visit(expression: ir.Expression) -> None:
        if isinstance(expression, ir.Parameter):
            found[expression.name] = None
        for child in ir.children(expression):
            visit(child)

    for statement in ir.all_statements(nest.body):
        if isinstance(statement, ir.Store):
            visit(statement.target)
        for expression in ir.own_expressions(statement):
            visit(expression)
    return tuple(found)


def scalar_places(parameters: Mapping[str, Any]) -> dict[str, int]:
    """The first word of each parameter among the scalars of a tile: a complex number has two."""
    counts = accumulate((len(scalar_words(value)) for value in parameters.values()), initial=0)
    return dict(zip(parameters, counts, strict=False))


def scalar_words(value: Any) -> tuple[int | float, ...]:
    """A parameter as the scalars of a tile have it: an integer, a float, or the two parts of a complex number."""
    kind = scalar_type(value)
    assert kind is not None
    if kind.is_complex:
        return float(value.real), float(value.imag)
    return (float(value),) if kind.is_float else (int(value),)


def names_in(nodes: Iterable[ast.expr]) -> set[str]:
    """The names that expressions mention."""
    return {name.id for node in nodes for name in ast.walk(node) if isinstance(name, ast.Name)}
