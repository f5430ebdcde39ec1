"""Random programs in C99 whose arrays of doubles are allocated, flat, and reached by pointers."""

from __future__ import annotations

from typing import Any

from _c_writer import C
from _terms import Out, Variable


class Flat(C):
    sizing = False  # an array is declared, whose size has to be a constant

    def show_constant(self, name: str) -> str:
        return name if name in ("nx", "ny") and not self.sizing else super().show_constant(name)

    def is_flat(self, variable: Variable) -> bool:
        return (
            variable.kind == "double"
            and bool(variable.shape)
            and variable.place in ("shared", "main")
            and variable.overlays is None
        )

    def show_at(self, array: Variable, *indices: Any) -> str:
        if not self.is_flat(array) or len(indices) == 1:
            return super().show_at(array, *indices)
        row, place = indices
        if sum(self.constants.values()) % 2:
            return f"{self.show(array)}[IDX({self.show(row)}, {self.show(place)})]"
        return f"{self.show(array)}[{self.inside(row, '*')} * (nx + 2) + {self.inside(place, '+')}]"

    def argument(self, value: Any) -> str:
        if isinstance(value, Out) and isinstance(value.target, Variable) and self.is_flat(value.target):
            return self.show(value.target)
        return super().argument(value)

    def sized(self, size: Any) -> str:
        self.sizing = True
        text = self.show(size)
        self.sizing = False
        return text

    def declaration(self, variable: Variable, prefix: str = "") -> str:
        if self.is_flat(variable):
            value = f" = make({self.sized(variable.elements())})" if variable.place == "main" else ""
            return f"{prefix}double *{variable.name}{value};"
        self.sizing = True
        text = super().declaration(variable, prefix)
        self.sizing = False
        return text

    def parameter(self, variable: Variable) -> str:
        return f"double *{variable.name}" if self.is_flat(variable) else super().parameter(variable)

    def start(self) -> None:
        self.line("nx = NX;")
        self.line("ny = NY;")
        for variable in self.shared.values():
            if self.is_flat(variable):
                self.line(f"{variable.name} = malloc(sizeof(double) * ({self.sized(variable.elements())}));")
        super().start()

    def exchange(self, one: Variable, other: Variable) -> None:
        """The two pointers change places."""
        names = self.show(one), self.show(other)
        with self.block("if (step % 2)"):
            self.line(f"double *t = {names[0]};")
            self.line(f"{names[0]} = {names[1]};")
            self.line(f"{names[1]} = t;")

    def files(self) -> dict[str, str]:
        ((name, text),) = super().files().items()
        head = """\
#include <stdlib.h>
#define IDX(i, j) ((i) * (nx + 2) + (j))
static int nx, ny;
static double *make(int n) {
  double *made = malloc(sizeof(double) * n);
  if (!made) exit(3);
  return made;
}
"""
        return {name: text.replace("\nstatic", f"\n{head}\nstatic", 1)}
