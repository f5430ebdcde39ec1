"""Random programs in Fortran: fixed form with mpif.h and COMMON, free form with modules."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

from _terms import Out, Section, Variable, lift
from _writers import INDENT, Body, Writer

OPERATOR = {
    "<": ".lt.",
    "<=": ".le.",
    ">": ".gt.",
    ">=": ".ge.",
    "==": ".eq.",
    "!=": ".ne.",
    "and": ".and.",
    "or": ".or.",
}


class Fortran(Writer):
    """``form``: "fixed" (mpif.h, COMMON), "mpi" (use mpi, free form) or "mpi_f08"."""

    language = "fortran"

    def __init__(self, random: Random, constants: dict[str, int], shared: Sequence[Variable], form: str) -> None:
        super().__init__(random, constants, shared)
        self.form = form
        self.fixed = form == "fixed"
        self.contained = not self.fixed and random.random() < 0.5  # in a module
        self.include = self.fixed and random.random() < 0.5
        self.shouts = self.fixed and random.random() < 0.3
        self.implicit = self.fixed and random.random() < 0.4

    # ---- expressions ----

    def operator(self, operator: str) -> str:
        return OPERATOR.get(operator, operator)

    def show_number(self, value: float) -> str:
        return f"{value!r}d0" if isinstance(value, float) else str(value)

    def show_constant(self, name: str) -> str:
        return name

    def show_at(self, array: Variable, *indices: Any) -> str:
        return f"{self.show(array)}({', '.join(self.index(array, index) for index in reversed(indices))})"

    def index(self, array: Variable, index: Any) -> str:
        if isinstance(index, tuple):
            return ":".join(self.index(array, part) for part in index)
        return self.show(lift(index) + array.first)

    def show_mod(self, value: Any, by: Any) -> str:
        return f"mod({self.show(value)}, {self.show(by)})"

    def show_call(self, name: str, *arguments: Any) -> str:
        if not name.startswith("MPI_"):
            self.body.functions[name] = "double precision"
        return f"{name}({', '.join(map(self.show, arguments))})"

    def show_abs(self, value: Any) -> str:
        return f"abs({self.show(value)})"

    def show_double(self, value: Any) -> str:
        return f"dble({self.show(value)})"

    def show_int(self, value: Any) -> str:
        return f"int({self.show(value)})"

    def show_pick(self, status: Variable, name: str) -> str:
        return f"{self.show(status)}%{name}" if self.form == "mpi_f08" else f"{self.show(status)}({name})"

    def argument(self, value: Any) -> str:
        if isinstance(value, Section):
            self.show(value.array)
            return (
                f"{value.array.name}({', '.join(self.index(value.array, index) for index in reversed(value.indices))})"
            )
        return self.show(value.target if isinstance(value, Out) else value)

    # ---- statements ----

    def assign(self, target: Any, value: Any) -> None:
        self.line(f"{self.show(target)} = {self.show(value)}")

    @contextmanager
    def loop(self, variable: Variable, lower: Any, upper: Any, step: int = 1) -> Iterator[None]:
        by = "" if step == 1 else f", {step}"
        label = ""
        if self.fixed and self.chance(0.2):
            self.labels += 10
            label = f"{self.labels} "
        self.line(f"do {label}{self.show(variable)} = {self.show(lower)}, {self.show(upper)}{by}")
        with self.indented():
            yield
        self.line(f"{label}continue" if label else "enddo" if self.fixed else "end do")

    @contextmanager
    def when(self, condition: Any, followed: bool = False) -> Iterator[None]:
        self.line(f"if ({self.show(condition)}) then")
        start = len(self.body.lines)
        with self.indented():
            yield
        inside = self.body.lines[start:]
        simple = len(inside) == 1 and not inside[0].strip().startswith("!")
        if simple and not followed and self.chance(0.3):
            self.body.lines[start - 1 :] = [self.body.lines[start - 1].removesuffix("then") + inside[0].strip()]
        else:
            self.line("endif" if self.fixed else "end if")

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        self.body.lines.pop()
        self.line("else")
        with self.indented():
            yield
        self.line("endif" if self.fixed else "end if")

    def leave(self) -> None:
        self.line("exit")

    def go_back(self) -> None:
        self.line("return")

    def mpi(self, name: str, *arguments: Any) -> None:
        texts = list(map(self.argument, arguments))
        if self.form != "mpi_f08" or self.random.random() < 0.5:
            texts.append(self.show(Variable("ierr", "int")))
        self.line(f"call MPI_{name}({', '.join(texts)})")

    def call(self, name: str, *arguments: Any) -> None:
        self.line(f"call {name}({', '.join(map(self.argument, arguments))})" if arguments else f"call {name}()")

    def comment(self, text: str) -> None:
        self.line(f"!{text}")

    def put(self, value: Any) -> None:
        self.line(f"write(*,'(I8)') {self.show(value)}")

    def put_double(self, value: Any) -> None:
        self.line(f"write(*,'(Z16.16)') transfer({self.show(value)}, 0_8)")

    def start(self) -> None:
        self.mpi("Init")

    def result(self, value: Any) -> None:
        self.assign(Variable("bump", "double", place="result"), value)

    # ---- declarations ----

    def type_of(self, variable: Variable) -> str:
        handle = {"request": "MPI_Request", "status": "MPI_Status", "comm": "MPI_Comm", "type": "MPI_Datatype"}
        if variable.kind in handle and self.form == "mpi_f08":
            return f"type({handle[variable.kind]})"
        return {"double": "double precision"}.get(variable.kind, "integer")

    def declarator(self, variable: Variable) -> str:
        bounds = []
        for extent in reversed(variable.shape):
            upper = self.show(lift(extent) + (variable.first - 1))
            bounds.append(upper if variable.first == 1 else f"{variable.first}:{upper}")
        if variable.kind == "status" and self.form != "mpi_f08":
            bounds.insert(0, "MPI_STATUS_SIZE")
        return variable.name + (f"({', '.join(bounds)})" if bounds else "")

    def declaration(self, variable: Variable) -> str:
        colons = " " if self.fixed else " :: "
        return f"{self.type_of(variable)}{colons}{self.declarator(variable)}"

    def may_be_implicit(self, variable: Variable) -> bool:
        return self.implicit and not variable.shape and variable.kind == "int" and variable.name[0] in "ijklmn"

    def environment(self) -> list[str]:
        """What every procedure needs to know of the others' data."""
        if not self.fixed:
            return []
        common = [v for v in self.shared.values() if v.overlays is None]
        lines = [f"integer {', '.join(self.constants)}"]
        lines += [f"parameter ({', '.join(f'{name} = {value}' for name, value in self.constants.items())})"]
        lines += [self.declaration(v) for v in self.shared.values()]
        lines += [f"common /pool/ {', '.join(v.name for v in common if v.kind == 'double')}"]
        lines += [f"common /rest/ {', '.join(v.name for v in common if v.kind != 'double')}"]
        return lines + self.equivalences()

    def equivalences(self) -> list[str]:
        lines = []
        for variable in self.shared.values():
            if variable.overlays is not None:
                array, element = variable.overlays
                lines.append(
                    f"equivalence ({variable.name}({variable.first}), {array}({element + self.shared[array].first}))"
                )
        return lines

    def header(self, shares: bool = True, implicit: bool = False) -> list[str]:
        """After a procedure's first line."""
        if not self.fixed:
            module = [f"use {self.form}"] + (["use pool"] if shares else [])
            return [*([] if self.contained and shares else module), "implicit none"]
        if implicit:
            return [
                "implicit double precision (a-h, o-z)",
                "include 'mpif.h'",
                *(["include 'pool.inc'"] if self.include else self.environment()),
            ]
        return ["implicit none", "include 'mpif.h'", *(["include 'pool.inc'"] if self.include else self.environment())]

    def finish(self, body: Body, result: str | None) -> str:
        names = ", ".join(v.name for v in body.parameters)
        if body.name == "main":
            head, end = "program main", "end" if self.fixed else "end program main"
        elif result:
            head, end = (
                f"double precision function {body.name}({names})",
                "end" if self.fixed else f"end function {body.name}",
            )
        else:
            head, end = f"subroutine {body.name}({names})", "end" if self.fixed else f"end subroutine {body.name}"
        declared = [v for v in (*body.parameters, *self.locals_of(body)) if not self.may_be_implicit(v)]
        inside = [self.declaration(v) for v in declared]
        inside += [f"save {v.name}" for v in declared if v.place == "saved"]
        if not self.contained:
            inside += [f"{kind}{' ' if self.fixed else ' :: '}{name}" for name, kind in body.functions.items()]
            inside += [f"external {name}" for name in body.functions]
        top = [" " * INDENT + text for text in [*self.header(implicit=self.implicit), *inside]]
        if self.contained and body.name == "main":
            top = [f"  use {self.form}", "  use pool", "  use phases", *top]
        return self.laid_out([head, *top, *body.lines, end, ""])

    # ---- layout ----

    def laid_out(self, lines: Sequence[str]) -> str:
        return "\n".join(piece for line in lines for piece in self.wrapped(line))

    def wrapped(self, line: str) -> list[str]:
        text = line.strip()
        if text.startswith("!"):
            return [f"c {text[1:]}" if self.fixed else line]
        if self.shouts and not text.startswith("include"):
            text = text.upper()
        lead = len(line) - len(line.lstrip())
        indent, limit = (6 + lead, 72) if self.fixed else (lead, 88)
        mark = "     &" + " " * lead if self.fixed else " " * (indent + 4)
        label, rest = text.split(" ", 1) if self.fixed and text[:1].isdigit() else ("", text)
        pieces = textwrap.wrap(rest, limit - indent - 4, break_long_words=False, break_on_hyphens=False) or [""]
        out = []
        for number, piece in enumerate(pieces):
            last = number == len(pieces) - 1
            start = f"{label:{indent}}" if number == 0 else mark
            out.append((start + piece + ("" if last or self.fixed else " &")).rstrip())
        return out

    def report_procedures(self) -> None:
        for name, kind, lines in (
            (
                "report",
                "double precision",
                [
                    "h = 0",
                    "do i = 1, n",
                    "  h = ieor(ishftc(h, 5), transfer(x(i), h))",
                    "enddo",
                    "write(*,'(I6,1X,Z16.16)') tag, h",
                ],
            ),
            (
                "report_int",
                "integer",
                ["h = 0", "do i = 1, n", "  h = mod(h * 31 + x(i), 9973_8)", "enddo", "write(*,'(I6,1X,I8)') tag, h"],
            ),
            (
                "fill",
                "double precision",
                ["do i = 1, n", "  x(i) = mod((i - 1) * 7 + tag * 13 + me * 31, 101) / 101.0d0", "enddo"],
            ),
            ("fill_int", "integer", ["do i = 1, n", "  x(i) = mod((i - 1) * 7 + tag * 13 + me * 31, 101)", "enddo"]),
        ):
            colons = " " if self.fixed else " :: "
            declared = [f"integer{colons}tag, n, i", f"{kind}{colons}x(n)"]
            declared += [f"integer*8{colons}h"] if name.startswith("report") else []
            end = "end" if self.fixed else f"end subroutine {name}"
            inside = ["  " + text for text in (*self.header(), *declared, *lines)]
            self.finished.append(self.laid_out([f"subroutine {name}(tag, x, n)", *inside, end, ""]))

    def module(self) -> str:
        lines = ["module pool", f"  use {self.form}", "  implicit none"]
        lines += [f"  integer, parameter :: {name} = {value}" for name, value in self.constants.items()]
        lines += ["  " + self.declaration(v) for v in self.shared.values()]
        lines += ["  " + text for text in self.equivalences()]
        return self.laid_out([*lines, "end module pool", ""])

    def files(self) -> dict[str, str]:
        if self.fixed:
            files = {"program.f": "\n".join(self.finished)}
            return files | ({"pool.inc": self.laid_out(self.environment()) + "\n"} if self.include else {})
        *procedures, main = self.finished
        parts = [self.module()]
        if self.contained:
            parts += [
                f"module phases\n  use {self.form}\n  use pool\n  implicit none\ncontains\n",
                *procedures,
                "end module phases\n",
            ]
        else:
            parts += procedures
        return {"program.f90": "\n".join([*parts, main])}
