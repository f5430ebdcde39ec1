"""From a function's source to a sequential region: loops of any form, done in their own order on one rank."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from typing import Any

from lapwing.affine.affine import Affine
from lapwing.loopnest import ir
from lapwing.loopnest.frontend.expressions import Scope
from lapwing.loopnest.frontend.statements import StatementParser, assigned
from lapwing.loopnest.refusals import Refusals
from lapwing.loopnest.source import FunctionSource, unset_names


def parse_region(source: FunctionSource) -> ir.LoopNest:
    """Parse a function of loops, conditions and assignments, which may end in ``return`` of scalars, into a sequential
    region.

    Raises RefusedError with every part, by file and line, that is not supported.
    """
    refusals = Refusals(source.file)
    parameters = tuple(inspect.signature(source.function).parameters)
    scope = Scope(parameters, surroundings_of(source, refusals), carries_scalars=True)
    parser = StatementParser(source, scope, refusals)
    tree = source.tree
    *statements, last = tree.body
    returned: list[ast.Name] = []
    if isinstance(last, ast.Return):
        value = last.value
        elements = value.elts if isinstance(value, ast.Tuple) else [] if value is None else [value]
        returned = [e for e in elements if isinstance(e, ast.Name)]
        assert len(returned) == len(elements)
    else:
        statements.append(last)
    scope.assigned_in_body = assigned(statements)
    given_back = tuple(name.id for name in returned)
    given = [name for name in parameters if name in scope.assigned_in_body or name in given_back]
    start = tuple(ir.SetTemporary(tree.lineno, name, name, ir.Parameter(name, line=tree.lineno)) for name in given)
    body = parser.block(statements, ())
    refusals.raise_if_any()
    return ir.LoopNest(
        name=tree.name,
        file=source.file,
        line=tree.lineno,
        parameters=parameters,
        setups=(),
        loops=(ir.Loop(ir.WHOLE, Affine(0), Affine(1), 1, tree.lineno),),
        body=(*start, *body),
        arrays=tuple(parser.arrays),
        written=ir.written_arrays(body),
        accumulators=(),
        returns=given_back,
        returns_tuple=isinstance(last, ast.Return) and isinstance(last.value, ast.Tuple),
        symbols=tuple(parser.symbols.items()),
        sweep_depth=0,
        axis_loops=_local_axes(body),
    )


def surroundings_of(source: FunctionSource, refusals: Refusals) -> dict[str, Any]:
    """The globals, closure variables and builtins that a function names. Raises RefusedError where one has no value."""
    try:
        names = inspect.getclosurevars(source.function)
    except ValueError:  # an empty cell
        unset = ", ".join(unset_names(source.function))
        refusals.note(source.tree.lineno, f"{unset} has no value yet", "set it before the nest is used")
        refusals.raise_if_any()
    return {**names.builtins, **names.globals, **names.nonlocals}


def _local_axes(body: Sequence[ir.Statement]) -> dict[str, tuple[str | None, ...]]:
    stores = (s for s in ir.all_statements(body) if isinstance(s, ir.Store))
    return {store.target.array: (None,) * len(store.target.affine) for store in stores}
