"""C's local variables and arguments that are invariant during a call of their procedure.

``int ld = ny + 2;`` then explains ``u[i * ld + j]`` in every loop, wherever an analysis starts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set

from lapwing.overlap.ir.expressions import Cast, Expression, Name, Number, Operation, Storage, Symbol
from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.ir.statements import Declare, Jump, Statement, definitions, is_unread
from lapwing.overlap.languages.registry import language_of_procedure

_ARITHMETIC = frozenset({"+", "-", "*", "neg"})


def invariants(program: Program) -> dict[str, Expression | None]:
    """By their keys: the value, where a declaration computes it from other invariants; else None."""
    found: dict[str, Expression | None] = {}
    for procedure in program.procedures.values():
        if not language_of_procedure(program, procedure).declares_on_entry:
            found |= _of_procedure(procedure)
    return found


def _of_procedure(procedure: Procedure) -> dict[str, Expression | None]:
    statements = [*procedure.body.walk()]
    if any(map(is_unread, statements)):
        return {}
    written = Counter(symbol.key for s in statements for symbol, _ in definitions(s))
    found: dict[str, Expression | None] = {
        s.key: None for s in procedure.parameters if s.by_value and _is_followed(s) and s.key not in written
    }
    jumps = any(s.label is not None or (isinstance(s, Jump) and s.kind == "goto") for s in statements)
    last = {} if jumps else _last_written(procedure.body.statements)
    place = {id(s): number for number, s in enumerate(procedure.body.statements)}
    for statement in statements:
        if not isinstance(statement, Declare):
            continue
        here = place.get(id(statement), 0)
        for symbol, value in statement.variables:
            once = written[symbol.key] == 1 and symbol.storage is Storage.LOCAL and _is_followed(symbol)
            if value is None or not once:
                continue
            if _is_made_of(value, {key for key, number in last.items() if number < here} | found.keys()):
                found[symbol.key] = value
            elif id(statement) in place and not jumps:
                found[symbol.key] = None  # once a call
    return found


def _last_written(statements: Sequence[Statement]) -> dict[str, int]:
    """The number of the last statement that writes each variable."""
    return {
        symbol.key: number
        for number, statement in enumerate(statements)
        for inner in statement.walk()
        for symbol, _ in definitions(inner)
        if _is_followed(symbol) and symbol.storage is Storage.LOCAL
    }


def _is_followed(symbol: Symbol) -> bool:
    """Whether the variable can be written only by statements that name it."""
    whole = symbol.type.base == "integer" and symbol.dimensions is None and not symbol.pointer
    return whole and not (symbol.target or symbol.volatile or symbol.overlay)


def _is_made_of(value: Expression, known: Set[str]) -> bool:
    match value:
        case Number():
            return isinstance(value.value, int)
        case Name(symbol):
            return symbol.storage is Storage.CONSTANT or symbol.key in known
        case Cast(value=inner, keeps=keeps):
            return keeps and _is_made_of(inner, known)
        case Operation(operator, parts):
            return operator in _ARITHMETIC and all(_is_made_of(part, known) for part in parts)
    return False
