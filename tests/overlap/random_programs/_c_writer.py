"""Random programs in C99."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from _terms import Out, Term, Variable, lift
from _writers import Body, Writer

OPERATOR = {"and": "&&", "or": "||"}
MPI_NAMES = {"MPI_DOUBLE_PRECISION": "MPI_DOUBLE", "MPI_INTEGER": "MPI_INT"}


class C(Writer):
    language = "c"
    types = {  # noqa: RUF012
        "double": "double",
        "int": "int",
        "request": "MPI_Request",
        "status": "MPI_Status",
        "comm": "MPI_Comm",
        "type": "MPI_Datatype",
    }

    def operator(self, operator: str) -> str:
        return OPERATOR.get(operator, operator)

    def show_number(self, value: float) -> str:
        return repr(value)

    def show_constant(self, name: str) -> str:
        return MPI_NAMES.get(name, name.upper() if name in self.constants else name)

    def show_at(self, array: Variable, *indices: Any) -> str:
        return self.show(array) + "".join(f"[{self.show(index)}]" for index in indices)

    def show_mod(self, value: Any, by: Any) -> str:
        return f"({self.inside(value, '*')} % {self.inside(by, '*')})"

    def show_call(self, name: str, *arguments: Any) -> str:
        return f"{name}({', '.join(map(self.show, arguments))})"

    def show_abs(self, value: Any) -> str:
        return f"fabs({self.show(value)})"

    def show_double(self, value: Any) -> str:
        return f"(double){self.inside(value, '*')}"

    def show_int(self, value: Any) -> str:
        return f"(int)({self.show(value)})"

    def show_pick(self, status: Variable, name: str) -> str:
        return f"{self.show(status)}.{name}"

    def argument(self, value: Any) -> str:
        if not isinstance(value, Out):
            return self.show(value)
        if isinstance(value.target, Variable) and value.target.shape:
            self.show(value.target)
            return (
                value.target.name
                if len(value.target.shape) == 1
                else "&" + value.target.name + "[0]" * len(value.target.shape)
            )
        return "&" + self.show(value.target)

    def assign(self, target: Any, value: Any) -> None:
        if isinstance(value, Term) and value.operator == "+" and value.parts[0] == target and self.chance(0.5):
            self.line(f"{self.show(target)} += {self.show(value.parts[1])};")
        else:
            self.line(f"{self.show(target)} = {self.show(value)};")

    @contextmanager
    def loop(self, variable: Variable, lower: Any, upper: Any, step: int = 1) -> Iterator[None]:
        name, upper = self.show(variable), lift(upper)
        if step < 0:
            head = f"{name} = {self.show(lower)}; {name} >= {self.show(upper)}; {name}--"
        elif isinstance(upper, Term) and upper.operator == "-" and upper.parts[1] == lift(1):
            head = f"{name} = {self.show(lower)}; {name} < {self.show(upper.parts[0])}; {name}++"
        else:
            more = self.random.choice((f"{name}++", f"{name}++", f"++{name}", f"{name} += 1"))
            head = f"{name} = {self.show(lower)}; {name} <= {self.show(upper)}; {more}"
        with self.block(f"for ({head})"):
            yield

    @contextmanager
    def when(self, condition: Any, followed: bool = False) -> Iterator[None]:
        with self.block(f"if ({self.show(condition)})"):
            yield

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """In braces, or without where it holds a single line."""
        self.line(f"{head} {{")
        start = len(self.body.lines)
        with self.indented():
            yield
        inside = self.body.lines[start:]
        if len(inside) == 1 and inside[0].endswith(";") and self.chance(0.3):
            self.body.lines[start - 1 :] = [self.body.lines[start - 1].removesuffix(" {"), *inside]
        else:
            self.line("}")

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        braced = self.body.lines[-1].strip() == "}"
        if braced:
            self.body.lines.pop()
        with self.block("} else" if braced else "else"):
            yield

    def leave(self) -> None:
        self.line("break;")

    def go_back(self) -> None:
        self.line("return;")

    def point(self, pointer: Variable, target: Variable) -> None:
        self.line(f"{self.show(pointer)} = {self.show(target)};")

    def mpi(self, name: str, *arguments: Any) -> None:
        kept = f"{self.show(Variable('err', 'int'))} = " if self.chance(0.15) else ""
        self.line(f"{kept}MPI_{name}({', '.join(map(self.argument, arguments))});")

    def call(self, name: str, *arguments: Any) -> None:
        self.line(f"{name}({', '.join(map(self.argument, arguments))});")

    def comment(self, text: str) -> None:
        self.line(f"// {text}" if self.random.random() < 0.5 else f"/* {text} */")

    def put(self, value: Any) -> None:
        self.line(f'printf("%d\\n", {self.show(value)});')

    def put_double(self, value: Any) -> None:
        self.line(f'printf("%a\\n", {self.show(value)});')

    def declaration(self, variable: Variable, prefix: str = "") -> str:
        if variable.overlays is not None:
            return f"{prefix}{self.types[variable.kind]} *{variable.name};"
        shape = "".join(f"[{self.show(extent)}]" for extent in variable.shape)
        return f"{prefix}{self.types[variable.kind]} {variable.name}{shape};"

    def parameter(self, variable: Variable) -> str:
        kind = self.types[variable.kind]
        if not variable.shape:
            return f"{kind} {variable.name}"
        if len(variable.shape) == 1:
            return f"{kind} *{variable.name}"
        return f"{kind} {variable.name}" + "".join(f"[{self.show(extent)}]" for extent in variable.shape)

    def finish(self, body: Body, result: str | None) -> str:
        names = ", ".join(map(self.parameter, body.parameters)) or "void"
        head = (
            "int main(int argc, char **argv) {"
            if body.name == "main"
            else f"static {result or 'void'} {body.name}({names}) {{"
        )
        inside = [self.declaration(v, "  static " if v.place == "saved" else "  ") for v in self.locals_of(body)]
        end = ["  return 0;"] if body.name == "main" else []
        return "\n".join([head, *inside, *body.lines, *end, "}", ""])

    def start(self) -> None:
        self.line("MPI_Init(&argc, &argv);")
        for variable in self.shared.values():
            if variable.overlays is not None:
                array, element = variable.overlays
                self.line(f"{variable.name} = &{array}[{element}];")

    def result(self, value: Any) -> None:
        self.line(f"return {self.show(value)};")

    def report_procedures(self) -> None:
        self.finished.append(
            textwrap.dedent("""\
            static void report(int tag, const double *x, int n) {
              uint64_t h = 0, bits;
              int i;
              for (i = 0; i < n; i++) {
                memcpy(&bits, &x[i], sizeof bits);
                h = ((h << 5) | (h >> 59)) ^ bits;
              }
              printf("%d %016llX\\n", tag, (unsigned long long)h);
            }

            static void report_int(int tag, const int *x, int n) {
              int h = 0;
              int i;
              for (i = 0; i < n; i++) h = (h * 31 + x[i]) % 9973;
              printf("%d %d\\n", tag, h);
            }

            static void fill(int seed, double *x, int n) {
              int i;
              for (i = 0; i < n; i++) x[i] = ((i * 7 + seed * 13 + me * 31) % 101) / 101.0;
            }

            static void fill_int(int seed, int *x, int n) {
              int i;
              for (i = 0; i < n; i++) x[i] = (i * 7 + seed * 13 + me * 31) % 101;
            }
            """)
        )

    def files(self) -> dict[str, str]:
        head = [
            "#include <math.h>",
            "#include <mpi.h>",
            "#include <stdint.h>",
            "#include <stdio.h>",
            "#include <string.h>",
            "",
        ]
        head += [f"#define {name.upper()} {value}" for name, value in self.constants.items()]
        head += ["", *(self.declaration(variable, "static ") for variable in self.shared.values()), ""]
        return {"program.c": "\n".join([*head, *self.finished])}
