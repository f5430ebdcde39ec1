"""Queries on statement trees, and rewriting of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from lapwing.overlap import mpi
from lapwing.overlap.ir.expressions import (
    Dimension,
    Element,
    Expression,
    Invocation,
    Member,
    Name,
    Number,
    Operation,
    Storage,
    Symbol,
    Type,
)
from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.ir.split_phase import PartialLoop, SplitPhaseOperation
from lapwing.overlap.ir.statements import (
    Allocate,
    Block,
    Call,
    Compound,
    Declare,
    Evaluate,
    If,
    Loop,
    Select,
    Statement,
    While,
)

_SIGNED = frozenset("const static register volatile signed short int long".split())


def with_blocks(statement: Statement, blocks: Sequence[Block]) -> Statement:
    """The statement with other blocks in place of its own, in order; itself if they are its own."""
    if all(new is old for new, old in zip(blocks, statement.blocks(), strict=True)):
        return statement
    match statement:
        case If(otherwise=None):
            return replace(statement, then=blocks[0])
        case If():
            return replace(statement, then=blocks[0], otherwise=blocks[1])
        case Loop() | While() | Compound():
            return replace(statement, body=blocks[0])
        case Select():
            return replace(statement, cases=tuple(blocks))
    raise TypeError(f"{type(statement).__name__} has no blocks")


def with_statements(block: Block, statements: Iterable[Statement]) -> Block:
    """The block with these statements; itself if they are its own."""
    new = tuple(statements)
    if len(new) == len(block.statements) and all(a is b for a, b in zip(new, block.statements, strict=True)):
        return block
    return replace(block, statements=new)


def rewrite(block: Block, change: Callable[[Statement], Sequence[Statement]]) -> Block:
    """The block with every statement replaced by what ``change`` makes of it, innermost first."""
    new: list[Statement] = []
    for statement in block.statements:
        inner = [rewrite(b, change) for b in statement.blocks()]
        new += change(with_blocks(statement, inner) if inner else statement)
    return with_statements(block, new)


def substitute_block(body: Block, old: Block, new: Block) -> Block:
    """``body`` with the block ``old`` (by identity), wherever it is in it, replaced."""
    if body is old:
        return new
    statements = []
    for statement in body.statements:
        inner = [substitute_block(b, old, new) for b in statement.blocks()]
        statements.append(with_blocks(statement, inner) if inner else statement)
    return with_statements(body, statements)


def shaping(symbol: Symbol) -> tuple[Expression, ...]:
    """The expressions of a variable's bounds and length."""
    bounds = [b for d in symbol.dimensions or () for b in (d.lower, d.upper)]
    return tuple(e for e in (*bounds, symbol.length) if e is not None and not isinstance(e, Number))


def has_explicit_shape(dimensions: Sequence[Dimension] | None) -> bool:
    """Explicit shape or assumed size: contiguous by the language's rules. An assumed shape, a(:), may have gaps."""
    if dimensions is None:
        return False
    # Only the last dimension may be open, which means a(*): an assumed shape, a(:), has no explicit lower bound of 1.
    last = dimensions[-1]
    sized = last.upper is not None or len(dimensions) > 1 or last.lower == Number(1)
    return sized and all(d.upper is not None for d in dimensions[:-1])


def done_on_entry(procedure: Procedure) -> tuple[Statement, ...]:
    """Fortran: what a call executes before the procedure's first statement: local variables and the result get their shapes,
    and INTENT(OUT) arguments are freed, or get the initial values of their type."""
    symbols = [*procedure.symbols.values(), *([procedure.result] if procedure.result is not None else [])]
    prefix = f"procedure {procedure.key}::"  # a host's variables already have their shapes
    own = [s for s in symbols if s.storage in (Storage.LOCAL, Storage.ARGUMENT) and s.key.startswith(prefix)]
    # The bounds of an ALLOCATABLE are evaluated in its ALLOCATE.
    shapes = dict.fromkeys(e for s in own for e in shaping(replace(s, dimensions=None) if s.allocatable else s))
    fresh = tuple(Name(s) for s in own if s.intent == "out" and (s.allocatable or _has_components(s)))
    freed = (Allocate(fresh, frees=True, span=procedure.span),) if fresh else ()
    return (*(Evaluate(value, span=procedure.span) for value in shapes), *freed)


def _has_components(symbol: Symbol) -> bool:
    """Whether it may have components with default initialisation; MPI's handles have none."""
    return symbol.type.base in ("struct", "other") and symbol.type.bytes is None


def has_messages(procedure: Procedure) -> bool:
    return any(message_of(statement) is not None for statement in procedure.body.walk())


def message_of(statement: Statement) -> mpi.MpiCall | None:
    """The MPI call that the statement is, if it is one."""
    if isinstance(statement, Call) and statement.name is not None and mpi.is_mpi_name(statement.name):
        return mpi.lookup(statement.name)
    return None


def works(statements: Iterable[Statement], program: Program, procedure: Procedure, depth: int = 8) -> bool:
    """Whether the statements run loops: computation that can hide a transfer."""
    for statement in statements:
        for inner in statement.walk():
            if isinstance(inner, Loop | While):
                return True
            if isinstance(inner, Call) and depth > 0:
                callee = program.resolve(inner.name, procedure)
                if callee is not None and works(callee.body.statements, program, callee, depth - 1):
                    return True
    return False


def declared_in(statement: Statement) -> frozenset[Symbol]:
    """The variables the statement declares for those after it in its list."""
    return frozenset(symbol for symbol, _ in statement.variables) if isinstance(statement, Declare) else frozenset()


def variables_of(statement: Statement) -> frozenset[Symbol]:
    """All variables that the statement names, including in its blocks and in the calls it was made from."""
    found: set[Symbol] = set()
    for inner in statement.walk():
        named: list[Statement | None] = [inner]
        if isinstance(inner, SplitPhaseOperation):
            named += [inner.call, inner.wait]
        if isinstance(inner, Loop):
            found.add(inner.variable)
        if isinstance(inner, PartialLoop):
            named.append(inner.whole)
        found |= {e.symbol for s in named if s is not None for e in s.every_expression() if isinstance(e, Name)}
    return frozenset(found)


def is_for_its_block(statement: Statement) -> bool:
    """C: whether it, its blocks aside, creates something with block scope other than a variable: a type's name, say, or a
    compound literal."""
    if isinstance(statement, Declare):
        # The braces of an array's or a struct's initial value create nothing.
        unnamed = any(
            symbol.pointer and value is not None and _has_braces(value) for symbol, value in statement.variables
        )
        return statement.names or unnamed
    return any(map(_is_braces, statement.every_expression()))


def _has_braces(value: Expression) -> bool:
    return any(map(_is_braces, value.walk()))


def _is_braces(expression: Expression) -> bool:
    return isinstance(expression, Operation) and expression.operator == "{}"


def hidden_name(earlier: Statement, later: Statement) -> str | None:
    """The name that would denote another variable, or none, if ``later`` preceded ``earlier``."""
    if not isinstance(earlier, Declare) and not isinstance(later, Declare):
        return None
    if any(isinstance(s, Declare) and s.names for s in (earlier, later)):
        return "a type or a function"
    declared, mentioned = declared_in(earlier), variables_of(later)
    if declared & mentioned:
        return min(symbol.name for symbol in declared & mentioned)
    names = {symbol.name for symbol in declared_in(later)}
    return min((symbol.name for symbol in variables_of(earlier) if symbol.name in names), default=None)


def is_intrinsic(name: str, program: Program, procedure: Procedure) -> bool:
    """Fortran: whether the name of an intrinsic function denotes the intrinsic in the procedure."""
    return name not in procedure.symbols and program.resolve(name, procedure) is None


def is_spelled_signed(kind: Type) -> bool:
    """C: whether the type is spelled as a signed one; typedefs are not resolved."""
    return _SIGNED.issuperset(kind.text.split())


def types_in(expression: Expression) -> Iterator[Type | None]:
    """C: the types of the scalars and of the structs' members in the expression; None for unknown ones."""
    match expression:
        case Member(type=kind):
            yield kind
        case Name(symbol):
            if symbol.dimensions is None:
                yield symbol.type
        case _:
            for part in expression.operands():
                yield from types_in(part)


def is_default_integer(symbol: Symbol) -> bool:
    return symbol.type.base == "integer" and symbol.type.bytes == 4


def is_hosts(symbol: Symbol, procedure: Procedure) -> bool:
    """Whether it is a local variable of the host procedure, which outlives a call of this one."""
    return symbol.storage is Storage.LOCAL and symbol.key.startswith(f"{procedure.host}::")


def is_seen_by_its_name(symbol: Symbol, procedure: Procedure) -> bool:
    """Whether the name denotes this variable throughout the procedure: USE may rename it, and C's blocks may shadow it."""
    if sum(other.name.lower() == symbol.name.lower() for other in procedure.symbols.values()) > 1:
        return False
    known = procedure.symbols.get(symbol.name, procedure.symbols.get(symbol.name.lower()))
    if symbol.storage is Storage.LOCAL:
        declared = frozenset[Symbol]().union(*(declared_in(s) for s in procedure.body.walk()))
        at_the_top = frozenset[Symbol]().union(*(declared_in(s) for s in procedure.body.statements))
        return known == symbol and (symbol not in declared or symbol in at_the_top)
    return known == symbol


def counts_plainly(loop: Loop) -> bool:
    """Whether its bounds are default integers, as required for comparing them by Fortran's max and min."""
    parts = [e for end in (loop.lower, loop.upper) for e in end.walk()]
    symbols = [loop.variable, *(e.symbol for e in parts if isinstance(e, Name))]
    return all(map(is_default_integer, symbols)) and all(
        isinstance(e, Name | Number | Operation | Element) for e in parts
    )


def called_in(statement: Statement) -> Iterator[str]:
    """Names that the statement calls, including in expressions and in text that could not be read, without its blocks."""
    if isinstance(statement, Call) and statement.name is not None:
        yield statement.name
    for inner in statement.every_expression():
        if isinstance(inner, Invocation) and inner.name is not None:
            yield inner.name


def argument_of(call: Call, *roles: mpi.Role) -> Expression | None:
    """The argument of an MPI call that plays the first of these roles it has."""
    message = mpi.lookup(call.name or "")
    if message is None:
        return None
    for role in roles:
        place = mpi.index_of(message, role)
        if place is not None and place < len(call.arguments):
            return call.arguments[place]
    return None
