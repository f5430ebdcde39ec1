"""Reading Fortran in tests, and the program model in short."""

from __future__ import annotations

from collections.abc import Iterator

from lapwing.overlap.ir.expressions import (
    Assignment,
    Constant,
    Element,
    Expression,
    Invocation,
    Member,
    Name,
    Number,
    Operation,
    Slice,
    Symbol,
    Text,
    Unread,
)
from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.ir.statements import (
    Allocate,
    Assign,
    Block,
    Call,
    Compound,
    Evaluate,
    If,
    InputOutput,
    Jump,
    Loop,
    Nothing,
    Opaque,
    Select,
    Statement,
    While,
)
from lapwing.overlap.languages.fortran.reading import read_text


def body(lines: str, declarations: str = "", name: str = "text.f90") -> list[str]:
    """The statements of a subroutine with these declarations and lines, in short."""
    program, procedure = subroutine(lines, declarations, name)
    assert not program.problems, program.problems
    return short(procedure.body)


def subroutine(lines: str, declarations: str = "", name: str = "text.f90") -> tuple[Program, Procedure]:
    margin = " " * 6
    program = read_text(f"{margin}subroutine s\n{declarations}\n{lines}\n{margin}end\n", name)
    return program, program.procedures["s"]


def symbol(declarations: str, name: str = "a") -> Symbol:
    """What the declarations make of a name."""
    program, procedure = subroutine("", declarations)
    assert not program.problems, program.problems
    return procedure.symbols[name]


def opaques(procedure: Procedure) -> list[str]:
    return [statement.reason for statement in procedure.body.walk() if isinstance(statement, Opaque)]


# ---- in short -----------------------------------------------------------------------------------------------------------


def short(block: Block) -> list[str]:
    return [line for statement in block.statements for line in _statement(statement)]


def _statement(statement: Statement) -> Iterator[str]:
    label = f"{statement.label}: " if statement.label else ""
    yield label + _heading(statement)
    for number, block in enumerate(statement.blocks()):
        if number > 0 or block.form != "lines":
            yield f"  ({block.form})"
        yield from (f"  {line}" for line in short(block))


def _heading(statement: Statement) -> str:
    match statement:
        case Assign(target=target, value=value):
            return f"{text(target)} = {text(value)}"
        case Call(name=name, arguments=arguments, keywords=keywords):
            named = [f"{word}={text(value)}" for word, value in keywords]
            return f"call {name}({', '.join([*map(text, arguments), *named])})"
        case If(condition=condition):
            return f"if {text(condition)}"
        case Loop(variable=variable, lower=lower, upper=upper, step=step):
            return f"do {variable.name} = {text(lower)}, {text(upper)}, {text(step)}"
        case While(parts=parts):
            return f"while {many(parts)}".strip()
        case Select(selector=selector):
            return f"select {text(selector)}"
        case Jump(kind=kind, to=to):
            return f"{kind} {to}" if to else kind
        case InputOutput(reads=reads, writes=writes):
            return f"reads {many(reads)} writes {many(writes)}"
        case Allocate(objects=objects, frees=frees, reads=reads, writes=writes):
            return f"{'free' if frees else 'allocate'} {many(objects)} reads {many(reads)} writes {many(writes)}"
        case Opaque(reason=reason):
            return f"opaque: {reason}"
        case Evaluate(value=value):
            return text(value)
        case Compound():
            return "compound"
        case Nothing():
            return "nothing"
    raise AssertionError(statement)


def many(values: tuple[Expression, ...]) -> str:
    return ", ".join(map(text, values))


def text(value: Expression | None) -> str:
    match value:
        case None:
            return ""
        case Number(value=number):
            return str(number)
        case Text(text=literal):
            return literal
        case Name(symbol=variable):
            return variable.name
        case Constant(name=name):
            return f"@{name}"
        case Slice(lower=lower, upper=upper, step=step):
            return f"{text(lower)}:{text(upper)}" + (f":{text(step)}" if step else "")
        case Element(base=base, indices=indices):
            return f"{text(base)}[{many(indices)}]"
        case Member(base=base, field_name=field):
            return f"{text(base)}%{field}"
        case Operation(operator=operator, arguments=arguments):
            return f"({operator} {' '.join(map(text, arguments))})"
        case Assignment(target=target, value=assigned):
            return f"{text(target)} = {text(assigned)}"
        case Invocation(name=name, arguments=arguments):
            return f"{name}<{many(arguments)}>"
        case Unread(mentions=mentions):
            return f"unread{{{many(mentions)}}}"
    raise AssertionError(value)


def bounds(variable: Symbol) -> list[str] | None:
    if variable.dimensions is None:
        return None
    return [f"{text(dimension.lower)}:{text(dimension.upper)}" for dimension in variable.dimensions]
