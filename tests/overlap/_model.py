"""Programs of the program model built by hand, for tests of analyses that come after the front ends."""

from __future__ import annotations

from pathlib import Path

from lapwing.overlap.ir.expressions import (
    Dimension,
    Element,
    Expression,
    Invocation,
    Name,
    Number,
    Storage,
    Symbol,
    Type,
)
from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.ir.statements import Assign, Block, Call, Declare, Jump, Opaque, Statement
from lapwing.overlap.source.spans import Source, Span

INT = Type("integer", 4, "int")
SIZE = Type("integer", 8, "size_t")
DOUBLE = Type("real", 8, "double")
STRUCT = Type("struct", 16, "struct pair")


def pointer_to(target: Type) -> Type:
    return Type("pointer", 8, f"{target.text} *", target)


POINTER = pointer_to(DOUBLE)


class Maker:
    """One program in one language, piece by piece. Every statement and call gets a span of its own."""

    def __init__(self, language: str = "c", file: str | None = None) -> None:
        self.language = language
        self.file = file or ("main.c" if language == "c" else "main.f90")
        self.text = ""
        self.procedures: dict[str, Procedure] = {}
        self.globals: dict[str, Symbol] = {}

    # variables

    def variable(self, name: str, type_: Type = DOUBLE, *sizes: int, key: str | None = None, **more: object) -> Symbol:
        """A local variable; ``sizes`` make it an array. ``key`` and any field of Symbol may be given."""
        fields: dict[str, object] = {"storage": Storage.LOCAL, "pointer": type_.base == "pointer"}
        dimensions = tuple(Dimension(Number(0), Number(size - 1)) for size in sizes) or None
        fields |= {"dimensions": dimensions} | more
        return Symbol(key or f"procedure p::{name}", name, type=type_, **fields)  # type: ignore[arg-type]

    def argument(self, name: str, type_: Type = DOUBLE, *sizes: int, **more: object) -> Symbol:
        defaults: dict[str, object] = {"storage": Storage.ARGUMENT, "by_value": self.language == "c"}
        return self.variable(name, type_, *sizes, **(defaults | more))  # type: ignore[arg-type]

    def common(self, name: str, type_: Type = DOUBLE, *sizes: int, key: str | None = None, **more: object) -> Symbol:
        """A global variable."""
        key = key or (name if self.language == "c" else f"common block::{name}")
        symbol = self.variable(name, type_, *sizes, key=key, storage=Storage.GLOBAL, **more)
        self.globals[key] = symbol
        return symbol

    # statements

    def span(self, text: str = "") -> Span:
        start = len(self.text)
        self.text += (text or "?") + "\n"
        return Span(0, start, len(self.text) - 1)

    def let(self, target: Symbol | Expression, value: Expression, operator: str | None = None) -> Assign:
        return Assign(_expression(target), value, operator, span=self.span())

    def call(self, name: str | None, *arguments: Symbol | Expression, result: Expression | None = None) -> Call:
        return Call(name, tuple(_expression(a) for a in arguments), result, span=self.span())

    def apply(self, name: str | None, *arguments: Symbol | Expression) -> Invocation:
        return Invocation(name, tuple(_expression(a) for a in arguments), span=self.span())

    def malloc(self) -> Invocation:
        return self.apply("malloc", Number(80))

    def declare(self, symbol: Symbol, value: Expression | None = None) -> Declare:
        return Declare(((symbol, value),), span=self.span())

    def give_back(self, value: Symbol | Expression) -> Jump:
        return Jump("return", value=_expression(value), span=self.span())

    def opaque(self, text: str) -> Opaque:
        return Opaque("not read", span=self.span(text))

    # procedures

    def procedure(
        self,
        name: str,
        parameters: tuple[Symbol, ...] = (),
        body: tuple[Statement, ...] = (),
        *,
        symbols: tuple[Symbol, ...] = (),
        key: str | None = None,
        kind: str | None = None,
        result: Symbol | None = None,
    ) -> Procedure:
        """``symbols``: what it can name beside its parameters and the global variables made so far."""
        kind = kind or ("function" if self.language == "c" else "subroutine")
        named = {symbol.name: symbol for symbol in (*self.globals.values(), *parameters, *symbols)}
        block = Block(body, Span(0, 0, 0))
        made = Procedure(name, key or name, kind, 0, Span(0, 0, 0), parameters, named, block, result)
        self.procedures[made.key] = made
        return made

    def main(self, *body: Statement, symbols: tuple[Symbol, ...] = ()) -> Procedure:
        kind = "function" if self.language == "c" else "program"
        return self.procedure("main", body=body, symbols=symbols, kind=kind)

    def program(self) -> Program:
        source = Source(Path(self.file), self.text.encode(), self.language)
        return Program((source,), self.procedures, self.globals)


def at(base: Symbol | Expression, *indices: int | Expression) -> Element:
    return Element(_expression(base), tuple(Number(i) if isinstance(i, int) else i for i in indices))


def _expression(value: Symbol | Expression) -> Expression:
    return Name(value) if isinstance(value, Symbol) else value
