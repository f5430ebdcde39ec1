"""Writing a random program: what printing C and printing Fortran have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from _terms import Term, Variable, lift

BINARY = {"+", "-", "*", "/", "<", "<=", ">", ">=", "==", "!=", "and", "or"}
FORTRAN_OPERATOR = {
    "<": ".lt.",
    "<=": ".le.",
    ">": ".gt.",
    ">=": ".ge.",
    "==": ".eq.",
    "!=": ".ne.",
    "and": ".and.",
    "or": ".or.",
}
INDENT = 2


@dataclass
class Body:
    """A procedure being written: its lines so far and what it uses."""

    name: str
    parameters: list[Variable]
    lines: list[str] = field(default_factory=list)
    used: dict[str, Variable] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    depth: int = 1


class Writer:
    """Statements go to the procedure that is open; ``files()`` gives the program."""

    language = ""

    def __init__(self, random: Random, constants: dict[str, int], shared: Sequence[Variable]) -> None:
        self.random = random
        self.constants = constants
        self.shared = {variable.name: variable for variable in shared}
        self.finished: list[str] = []
        self.parameters: dict[str, list[Variable]] = {}  # of finished procedures, in order
        self.body = Body("", [])
        self.labels = 100

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    # ---- expressions ----

    def show(self, value: Any) -> str:
        value = lift(value)
        if isinstance(value, Variable):
            self.body.used[value.name] = value
            return self.variable(value)
        if value.operator in BINARY:
            left, right = (self.inside(part, value.operator) for part in value.parts)
            return f"{left} {self.operator(value.operator)} {right}"
        return str(getattr(self, f"show_{value.operator}")(*value.parts))

    def inside(self, part: Any, operator: str) -> str:
        text = self.show(part)
        simple = not isinstance(part, Term) or part.operator not in BINARY
        return text if simple or (operator == "+" and part.operator in "+*") else f"({text})"

    def variable(self, variable: Variable) -> str:
        return variable.name

    def operator(self, operator: str) -> str:
        raise NotImplementedError

    # ---- statements ----

    def line(self, text: str) -> None:
        self.body.lines.append(" " * (INDENT * self.body.depth) + text)

    @contextmanager
    def indented(self) -> Iterator[None]:
        self.body.depth += 1
        yield
        self.body.depth -= 1

    @contextmanager
    def procedure(self, name: str, parameters: Sequence[Variable] = (), result: str | None = None) -> Iterator[None]:
        outer, self.body = self.body, Body(name, list(parameters))
        yield
        passed = [v for v in self.body.used.values() if v.place == "main" and v not in parameters]
        if name != "main":
            self.body.parameters += sorted(passed, key=lambda v: v.name)
        self.parameters[name] = self.body.parameters
        self.finished.append(self.finish(self.body, result))
        self.body = outer

    def finish(self, body: Body, result: str | None) -> str:
        raise NotImplementedError

    def locals_of(self, body: Body) -> list[Variable]:
        places = ("local", "saved", "main") if body.name == "main" else ("local", "saved")
        return [v for v in body.used.values() if v.place in places and v not in body.parameters]
