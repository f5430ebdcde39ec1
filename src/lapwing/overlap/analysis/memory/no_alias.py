"""No-alias analysis: C pointers that certainly never alias each other.

aliases.py distinguishes memory by allocation site, and tells where a pointer may point at any time. After ``t = u; u = v; v =
t;``, or from the same allocating function, ``u`` and ``v`` are one memory to it. They never alias: each is assigned only fresh
memory of its own, and at most swapped with another such pointer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Protocol

from lapwing.overlap.dataflow.call_graph import CallGraph, Target, arguments_of, is_static
from lapwing.overlap.ir.accesses import Memory
from lapwing.overlap.ir.expressions import (
    AddressOf,
    Assignment,
    Element,
    Expression,
    Invocation,
    Name,
    Number,
    Storage,
    Symbol,
    without_casts,
)
from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.ir.statements import Assign, Call, Declare, Jump, Statement, definitions, is_unread
from lapwing.overlap.languages.language import Language
from lapwing.overlap.languages.registry import language_of_procedure

_EXCHANGE = 3  # statements: t = a; a = b; b = t;
_MEMORY_OF_MPI = 2  # the argument of MPI_Alloc_mem that is the pointer's address


class PointsTo(Protocol):
    """Where expressions may point (aliases.py)."""

    def pointees(self, expression: Expression, procedure: Procedure) -> frozenset[Memory]: ...
    def may_overlap(self, one: Iterable[Memory], other: Iterable[Memory]) -> bool: ...


class NoAlias:
    """Answers for the pointers of one procedure: its local variables, or its arguments."""

    def __init__(self, program: Program, graph: CallGraph, aliases: PointsTo) -> None:
        self._program = program
        self._graph = graph
        self._aliases = aliases
        self._fresh: dict[str, bool] = {}  # of procedures: whether they return fresh memory
        self._asked: set[tuple[str, str]] = set()
        self._told: dict[tuple[str, str], bool] = {}

    def never_alias(self, one: Symbol, other: Symbol) -> bool:
        """Whether the two point to different memory at any one time."""
        pair = (one.key, other.key)
        if pair not in self._told:
            self._told[pair] = one.key != other.key and self._find(one, other)
        return self._told[pair]

    def exchanged(self, symbol: Symbol) -> tuple[Symbol, ...]:
        """The pointers that it may swap memory with, itself included; empty if it keeps its own."""
        return self._exchanged.get(symbol.key, ())

    def _find(self, one: Symbol, other: Symbol) -> bool:
        if one.key in self._owners and other.key in self._owners:
            return self._owners[one.key] == self._owners[other.key]
        home = self._arguments.get(one.key)
        if home is None or home is not self._arguments.get(other.key):
            return False
        # Nothing that is written is accessed both through a restrict argument and through another (C 2011, 6.7.3.1).
        return one.restricted or other.restricted or self._are_passed_no_alias(home, one, other)

    # ---- arguments ----------------------------------------------------------------------------------------------------

    @cached_property
    def _arguments(self) -> dict[str, Procedure]:
        """Pointer arguments that are never reassigned, with their procedures."""
        return {
            symbol.key: procedure
            for procedure in self._procedures()
            for symbol in procedure.parameters
            if symbol.by_value and _leads_to_elements(symbol) and symbol.key not in self._written(procedure)
        }

    def _are_passed_no_alias(self, callee: Procedure, one: Symbol, other: Symbol) -> bool:
        """Whether every call passes the two arguments pointers that do not alias."""
        calls = self._graph.calls_of(callee.key)
        pair = (one.key, other.key)
        if not calls or pair in self._asked or callee.key in self._graph.address_taken:
            return False
        if self._language(callee).has_hidden_calls and callee.key != callee.name and not is_static(callee.key):
            return False  # a method, which may be called as another class's
        if self._graph.external_code and not is_static(callee.key):
            return False
        self._asked.add(pair)
        found = all(self._passes_no_alias(site.procedure, dict(self._bound(site.call, callee)), pair) for site in calls)
        self._asked.discard(pair)
        return found

    @staticmethod
    def _bound(call: Call | Invocation, callee: Procedure) -> Iterator[tuple[str, Expression]]:
        return ((dummy.key, argument) for dummy, argument in arguments_of(call, callee))

    def _passes_no_alias(self, caller: str, passed: Mapping[str, Expression], pair: tuple[str, str]) -> bool:
        if not passed.keys() >= set(pair):
            return False
        procedure = self._program.procedures[caller]
        one, other = (without_casts(passed[key]) for key in pair)
        if isinstance(one, Name) and isinstance(other, Name) and self._never_alias_now(one.symbol, other.symbol):
            return True
        return not self._aliases.may_overlap(
            self._aliases.pointees(one, procedure), self._aliases.pointees(other, procedure)
        )

    def _never_alias_now(self, one: Symbol, other: Symbol) -> bool:
        return one.pointer and other.pointer and one.key != other.key and self._find(one, other)

    # ---- local variables ----------------------------------------------------------------------------------------------

    @cached_property
    def _owners(self) -> dict[str, str]:
        """Local pointers that own their memory, with their procedures."""
        return self._found[0]

    @cached_property
    def _exchanged(self) -> dict[str, tuple[Symbol, ...]]:
        return self._found[1]

    @cached_property
    def _found(self) -> tuple[dict[str, str], dict[str, tuple[Symbol, ...]]]:
        owners: dict[str, str] = {}
        exchanged: dict[str, tuple[Symbol, ...]] = {}
        for procedure in self._procedures():
            pointers = [s for s in _symbols(procedure) if s.storage is Storage.LOCAL and _leads_to_elements(s)]
            if len(pointers) < 2:
                continue
            own, groups = self._of_procedure(procedure, {s.key: s for s in pointers})
            owners |= dict.fromkeys(own, procedure.key)
            exchanged |= groups
        return owners, exchanged

    def _of_procedure(
        self, procedure: Procedure, pointers: dict[str, Symbol]
    ) -> tuple[set[str], dict[str, tuple[Symbol, ...]]]:
        swaps = [*_exchanges(procedure.body.statements)]
        swapping = {id(statement) for statements, _, _ in swaps for statement in statements}
        # The temporary of a swap points where one of the two does.
        own = pointers.keys() - {s.key for statements, _, _ in swaps for s in _passed_through(statements)}
        if not self._is_followed(procedure):
            return set(), {}
        for statement in procedure.body.walk():
            filled = self._filled(statement, procedure)
            for target, value in definitions(statement):
                fresh = target == filled or (value is not None and self._is_fresh(value, procedure))
                if id(statement) not in swapping and not fresh:
                    own.discard(target.key)
        # A pointer swapped with one that is no owner is no owner, either.
        while strangers := {k for _, a, b in swaps for k in (a.key, b.key) if not own >= {a.key, b.key}} & own:
            own -= strangers
        groups: dict[str, tuple[Symbol, ...]] = {}
        for _, a, b in swaps:
            if a.key in own:
                members = dict.fromkeys((*groups.get(a.key, (a,)), *groups.get(b.key, (b,))))
                groups |= {member.key: tuple(members) for member in members}
        return own, groups

    def _is_fresh(self, value: Expression, procedure: Procedure) -> bool:
        """Whether the value is a null pointer, or points to fresh memory."""
        value = without_casts(value)
        if value == Number(0) or getattr(value, "name", None) in ("NULL", "nullptr"):
            return True
        if not isinstance(value, Invocation) or value.name is None:
            return False
        target, callee, through = self._graph.resolve(value.name, procedure)
        if callee is not None:
            return not through and self._returns_fresh(self._program.procedures[callee])
        function = self._language(procedure).library(value.name) if target is Target.LIBRARY else None
        return function is not None and function.allocates and function.fills is None and function.returns is None

    def _filled(self, statement: Statement, procedure: Procedure) -> Symbol | None:
        """The pointer that a statement sets to newly allocated memory: ``posix_memalign(&u, …)``."""
        parts = statement.every_expression()
        calls = [e for e in (statement, *parts) if isinstance(e, Call | Invocation) and e.name is not None]
        if len(calls) != 1 or sum(isinstance(e, AddressOf) for e in parts) != 1:
            return None
        place = self._filled_argument(str(calls[0].name), procedure)
        passed = None if place is None else without_casts(calls[0].arguments[place])
        return passed.object.symbol if isinstance(passed, AddressOf) and isinstance(passed.object, Name) else None

    def _filled_argument(self, name: str, procedure: Procedure) -> int | None:
        target, _, _ = self._graph.resolve(name, procedure)
        if target is Target.MPI:
            return _MEMORY_OF_MPI if name.removeprefix("P") == "MPI_Alloc_mem" else None
        function = self._language(procedure).library(name) if target is Target.LIBRARY else None
        return function.fills if function is not None and function.allocates else None

    def _returns_fresh(self, procedure: Procedure) -> bool:
        """Whether all that the procedure returns is newly allocated and has not escaped."""
        if procedure.key not in self._fresh:
            self._fresh[procedure.key] = False  # for recursion
            self._fresh[procedure.key] = self._find_fresh(procedure)
        return self._fresh[procedure.key]

    def _find_fresh(self, procedure: Procedure) -> bool:
        if not self._language(procedure).has_addresses or not self._is_followed(procedure):
            return False
        values = [s.value for s in procedure.body.walk() if isinstance(s, Jump) and s.kind == "return"]
        returned = {v.symbol for v in map(_plain, values) if isinstance(v, Name)}
        if not all(s.storage is Storage.LOCAL and _leads_to_elements(s) for s in returned):
            return False
        for statement in procedure.body.walk():
            for target, value in definitions(statement):
                if target in returned and not (value is not None and self._is_fresh(value, procedure)):
                    return False
            if isinstance(statement, Call):
                told = self._tells(Invocation(statement.name, statement.arguments), returned, procedure)
            else:
                told = any(self._tells(top, returned, procedure) for top in statement.expressions())
            if told and not isinstance(statement, Jump):
                return False
        return all(
            value is not None and (isinstance(_plain(value), Name) or self._is_fresh(value, procedure))
            for value in values
        ) and bool(values)

    def _tells(self, expression: Expression, pointers: set[Symbol], procedure: Procedure) -> bool:
        """Whether the value of one of the pointers may be stored: it is not only dereferenced, compared, or passed to a
        library."""
        match expression:
            case Name(symbol):
                return symbol in pointers
            case Element(Name(), indices):
                return any(self._tells(index, pointers, procedure) for index in indices)
            case Assignment(Name(symbol), None, value) if symbol in pointers:
                return self._tells(value, pointers, procedure)
            case Invocation(name, arguments):
                target, callee, _ = self._graph.resolve(name, procedure)
                function = (
                    self._language(procedure).library(name) if name is not None and target is Target.LIBRARY else None
                )
                harmless = callee is None and function is not None and not (function.stores or function.calls)
                rest = [a for a in arguments if not (harmless and isinstance(without_casts(a), Name))]
                return any(self._tells(a, pointers, procedure) for a in rest)
        if getattr(expression, "operator", None) in ("==", "!=", "!", "&&", "||"):
            return False
        return any(self._tells(part, pointers, procedure) for part in expression.operands())

    # ---- both ---------------------------------------------------------------------------------------------------------

    def _language(self, procedure: Procedure) -> Language:
        return language_of_procedure(self._program, procedure)

    def _procedures(self) -> Iterator[Procedure]:
        """The procedures of languages with addresses."""
        return (p for p in self._program.procedures.values() if self._language(p).has_addresses)

    def _written(self, procedure: Procedure) -> set[str]:
        """Keys of the variables that the procedure assigns; all, where that is unknown."""
        if not self._is_followed(procedure):
            return {s.key for s in procedure.parameters}
        return {target.key for statement in procedure.body.walk() for target, _ in definitions(statement)}

    @staticmethod
    def _is_followed(procedure: Procedure) -> bool:
        return not any(map(is_unread, procedure.body.walk()))


def _leads_to_elements(symbol: Symbol) -> bool:
    """Whether it is a pointer to non-pointers whose own value is changed only by its name."""
    own = symbol.pointer and symbol.dimensions is None and not (symbol.target or symbol.volatile)
    return own and symbol.element.holds_values


def _symbols(procedure: Procedure) -> Iterator[Symbol]:
    return iter(dict.fromkeys((*procedure.symbols.values(), *procedure.parameters)))


def _plain(value: Expression | None) -> Expression | None:
    return None if value is None else without_casts(value)


def _exchanges(statements: Sequence[Statement]) -> Iterator[tuple[Sequence[Statement], Symbol, Symbol]]:
    """Pointer swaps, ``t = a; a = b; b = t;`` in sequence and C++'s swap: the statements, and a and b."""
    for place in range(len(statements) - _EXCHANGE + 1):
        three = statements[place : place + _EXCHANGE]
        copies = [copy for statement in three if (copy := _copy(statement)) is not None]
        if len(copies) == _EXCHANGE:
            (t, a), (to, b), (last, back) = copies
            if t == back and a == to and b == last and len({t.key, a.key, b.key}) == _EXCHANGE:
                yield three, a, b
    for statement in statements:
        match statement:
            case Call("std::swap", (AddressOf(Name(a)), AddressOf(Name(b)))) if a.pointer and b.pointer and a != b:
                yield (statement,), a, b
        for block in statement.blocks():
            yield from _exchanges(block.statements)


def _passed_through(statements: Sequence[Statement]) -> Iterator[Symbol]:
    """The temporary of a swap in three statements."""
    if len(statements) == _EXCHANGE and (first := _copy(statements[0])) is not None:
        yield first[0]


def _copy(statement: Statement) -> tuple[Symbol, Symbol] | None:
    """The target and the source of a statement that only copies a pointer."""
    match statement:
        case Declare(((to, Name(origin)),)) | Assign(target=Name(to), operator=None, value=Name(origin)):
            private = to.storage is Storage.LOCAL and not to.target and statement.label is None
            return (to, origin) if private and origin.pointer else None
    return None
