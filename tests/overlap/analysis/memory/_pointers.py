"""Random C programs of nothing but pointers, in the program model, and an interpreter that runs them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from _model import DOUBLE, POINTER, STRUCT, Maker, at, pointer_to

from lapwing.overlap.ir.expressions import (
    AddressOf,
    Cast,
    Deref,
    Element,
    Expression,
    Invocation,
    Member,
    Name,
    Number,
    Operation,
    Storage,
    Symbol,
)
from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.ir.statements import Assign, Call, Jump, Statement

TWO = pointer_to(POINTER)
TO_STRUCT = pointer_to(STRUCT)


def random_pointers(seed: int) -> Program:
    """A main program and two functions that copy pointers about: through variables, memory, structs, calls and returns."""
    return _Random(seed).program()


class _Random:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.c = Maker("c")
        self.shared = [
            *(self.c.common(name, POINTER) for name in ("g", "h")), self.c.common("buf", DOUBLE, 2),
            self.c.common("gg", TWO), self.c.common("tab", POINTER, 2), self.c.common("gs", STRUCT),
        ]  # fmt: skip

    def program(self) -> Program:
        for name in ("f", "k"):
            parameters = tuple(
                self.c.argument(n, t, key=f"procedure {name}::{n}")
                for n, t in (("x", POINTER), ("y", TWO), ("z", TO_STRUCT))
            )
            variables = self.variables(name, parameters)
            body = (*self.statements(variables, 6, inner=name == "k"), self.c.give_back(self.one(variables)))
            self.c.procedure(name, parameters, body)
        variables = self.variables("main", ())
        self.c.main(*self.statements(variables, 14))
        return self.c.program()

    def variables(self, name: str, parameters: tuple[Symbol, ...]) -> list[Symbol]:
        kinds = (("p", POINTER), ("q", POINTER), ("pp", TWO), ("s", STRUCT), ("t", STRUCT), ("r", TO_STRUCT))
        local = [self.c.variable(n, type_, key=f"procedure {name}::{n}") for n, type_ in kinds]
        arrays = [self.c.variable(n, DOUBLE, 2, key=f"procedure {name}::{n}") for n in ("a", "b")]
        return [*self.shared, *local, *arrays, *parameters]

    def statements(self, variables: list[Symbol], count: int, *, inner: bool = False) -> tuple[Statement, ...]:
        return tuple(self.statement(variables, inner) for _ in range(count))

    def statement(self, variables: list[Symbol], inner: bool) -> Statement:
        choice = self.random.randrange(10)
        if choice < 5:
            return self.c.let(self.place_of_one(variables), self.one(variables, inner))
        if choice < 7:
            return self.c.let(self.pick(variables, TWO), self.two(variables))
        if choice == 7:
            return self.c.let(self.pick(variables, TO_STRUCT), AddressOf(Name(self.of(variables, STRUCT))))
        structs = [Name(self.of(variables, STRUCT)) for _ in range(2)]
        if choice == 8:
            return self.c.let(structs[0], structs[1])
        return self.c.call("memcpy", AddressOf(structs[0]), AddressOf(structs[1]), Number(16))

    def of(self, variables: list[Symbol], type_: Any) -> Symbol:
        return self.random.choice([s for s in variables if s.type == type_ and s.dimensions is None])

    def pick(self, variables: list[Symbol], type_: Any) -> Expression:
        return Name(self.of(variables, type_))

    def place_of_one(self, variables: list[Symbol]) -> Expression:
        return self.random.choice(self.places(variables))()

    def places(self, variables: list[Symbol]) -> list[Callable[[], Expression]]:
        """Where a pointer to numbers may be stored."""
        index = self.random.randrange(2)
        return [
            lambda: self.pick(variables, POINTER),
            lambda: self.pick(variables, POINTER),
            lambda: Deref(self.pick(variables, TWO)),
            lambda: at(self.pick(variables, TWO), index),
            lambda: at(next(s for s in variables if s.name == "tab"), index),
            lambda: Member(self.pick(variables, STRUCT), self.random.choice("uv")),
            lambda: Member(Deref(self.pick(variables, TO_STRUCT)), self.random.choice("uv")),
        ]

    def one(self, variables: list[Symbol], inner: bool = True) -> Expression:
        """A pointer to numbers."""
        arrays = [s for s in variables if s.dimensions is not None and s.type == DOUBLE]
        choices: list[Callable[[], Expression]] = [
            *self.places(variables),
            lambda: Name(self.random.choice(arrays)),
            lambda: AddressOf(at(self.random.choice(arrays), 1)),
            lambda: Operation("+", (self.pick(variables, POINTER), Number(1))),
            lambda: Cast(POINTER, self.c.malloc()),
            lambda: self.c.apply("realloc", self.pick(variables, POINTER), Number(8)),
        ]
        if not inner:
            name = self.random.choice(list(self.c.procedures) or ["malloc"])
            choices += [lambda: self.called(name, variables)] * 3
        return self.random.choice(choices)()

    def called(self, name: str, variables: list[Symbol]) -> Expression:
        if name == "malloc":
            return self.c.malloc()
        given = AddressOf(Name(self.of(variables, STRUCT)))
        return self.c.apply(name, self.one(variables), self.two(variables), given)

    def two(self, variables: list[Symbol]) -> Expression:
        """A pointer to a pointer."""
        tab = next(s for s in variables if s.name == "tab")
        choices: list[Callable[[], Expression]] = [
            lambda: self.pick(variables, TWO),
            lambda: AddressOf(self.pick(variables, POINTER)),
            lambda: Name(tab),
            lambda: AddressOf(Member(self.pick(variables, STRUCT), "u")),
            lambda: self.c.malloc(),
        ]
        return self.random.choice(choices)()


@dataclass(eq=False)
class Object:
    key: str
    cells: dict[object, Any] = field(default_factory=dict)


class NullPointer(Exception):
    """A null pointer was followed: the statement is left out."""


class Interpreter:
    """``visit`` is told of every place that is looked at, and of the object it is in."""

    def __init__(self, program: Program, visit: Callable[[Expression, Procedure, str], None]) -> None:
        self.program = program
        self.visit = visit
        self.shared: dict[str, Object] = {}

    def run(self, turns: int) -> None:
        main = self.program.procedures["main"]
        local: dict[str, Object] = {}
        for _ in range(turns):
            self.body(main, local)

    def body(self, procedure: Procedure, local: dict[str, Object]) -> Any:
        for statement in procedure.body.statements:
            try:
                if isinstance(statement, Jump) and statement.value is not None:
                    return self.value(statement.value, procedure, local)
                self.statement(statement, procedure, local)
            except NullPointer:
                continue
        return None

    def statement(self, statement: Statement, procedure: Procedure, local: dict[str, Object]) -> None:
        if isinstance(statement, Call):
            to, origin = (self.value(argument, procedure, local)[0] for argument in statement.arguments[:2])
            to.cells = dict(origin.cells)
        elif isinstance(statement, Assign):
            if isinstance(statement.target, Name) and statement.target.symbol.type == STRUCT:
                origin = self.place(statement.value, procedure, local)[0]
                self.place(statement.target, procedure, local)[0].cells = dict(origin.cells)
                return
            value = self.value(statement.value, procedure, local)
            place, cell = self.place(statement.target, procedure, local)
            place.cells[cell] = value

    def place(self, expression: Expression, procedure: Procedure, local: dict[str, Object]) -> tuple[Object, object]:
        found = self.found(expression, procedure, local)
        self.visit(expression, procedure, found[0].key)
        return found

    def found(self, expression: Expression, procedure: Procedure, local: dict[str, Object]) -> tuple[Object, object]:
        match expression:
            case Name(symbol):
                objects = self.shared if symbol.storage is Storage.GLOBAL else local
                return objects.setdefault(symbol.key, Object(symbol.key)), 0
            case Element(base, (Number(index),)):
                start, cell = self.value(base, procedure, local)
                return start, self.moved(cell, int(index))
            case Deref(pointer):
                found: tuple[Object, object] = self.value(pointer, procedure, local)
                return found
            case Member(base, name):
                return self.place(base, procedure, local)[0], 0 if name == "u" else 1
        raise AssertionError(expression)

    def moved(self, cell: object, distance: int) -> object:
        assert isinstance(cell, int)
        return (cell + distance) % 2

    def value(self, expression: Expression, procedure: Procedure, local: dict[str, Object]) -> Any:
        match expression:
            case Name(symbol) if symbol.dimensions is not None:
                found: Any = self.place(expression, procedure, local)
            case Name() | Element() | Deref() | Member():
                place, cell = self.place(expression, procedure, local)
                found = place.cells.get(cell)
            case AddressOf(inner):
                found = self.place(inner, procedure, local)
            case Cast(_, inner):
                found = self.value(inner, procedure, local)
            case Operation("+", (pointer, _)):
                place, cell = self.value(pointer, procedure, local)
                found = place, self.moved(cell, 1)
            case Invocation("malloc" | "realloc") if expression.span is not None:
                found = Object(f"heap 0:{expression.span.start}"), 0
            case Invocation(str() as name, arguments):
                callee = self.program.procedures[name]
                given = [self.value(argument, procedure, local) for argument in arguments]
                inner_local = {
                    symbol.key: Object(symbol.key, {0: value})
                    for symbol, value in zip(callee.parameters, given, strict=True)
                }
                found = self.body(callee, inner_local)
        if found is None:
            raise NullPointer
        return found
