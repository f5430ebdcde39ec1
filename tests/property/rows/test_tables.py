"""Random nests with functions of some of their indices: the bits of plain Python, and an error where it raises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st
from random_nests import ArraySpec
from random_regions import RegionCase
from randomness import first_seed, wanted
from searching import search
from test_random_regions import check_case, region_of

import lapwing as lw
from lapwing.codegen.compilation.toolchain import find_c_compiler, find_cxx_compiler
from lapwing.errors import BuildError
from lapwing.tiling import tabulation


@pytest.fixture(autouse=True)
def _of_small_nests(little_optimised: None, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        find_c_compiler(), find_cxx_compiler()
    except BuildError as error:
        pytest.skip(str(error))
    monkeypatch.setattr(tabulation, "_FEWEST_ITERATIONS", 1)
    monkeypatch.setattr(tabulation, "_FEWEST_USES", 1)


class _Builder:
    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.indices = ["i", "j"]
        self.variables: list[str] = []

    def pick(self, *options: str) -> str:
        return self.draw(st.sampled_from(options))

    def chance(self, percent: int) -> bool:
        return self.draw(st.integers(0, 99)) >= 100 - percent

    def place(self) -> str:
        """A function of indices that may be any number."""
        index, other = self.pick(*self.indices), self.pick(*self.indices)
        return self.pick(
            index, index, f"{index} - {other}", f"{index} + {other} + 1", f"2 * {index} - 3", f"m - {index}", f"{index} * p",
            f"k[{index}]", f"k[{index}]", f"k[{index} - 1]", f"w[{index}]", "p", f"-{index}", *self.variables,
        )  # fmt: skip

    def function(self) -> str:
        x = self.place()
        return self.pick(
            f"math.exp(-{x})", f"math.exp({x} * 0.25)", f"np.cos({x})", f"np.exp({x})", f"math.sin({x})", f"abs(p) ** ({x})",
            f"({x}) ** 2", f"abs({x}) ** 0.5", f"math.log({x} + 4)", f"math.log({x})", f"np.float32({x}) ** 2", f"({x}) ** -1",
            f"math.atan2({x}, {self.pick('0.0', '-0.0', '1')})", f"math.cos({x}) * {self.place()}", f"s ** ({x})",
            f"math.exp({x}) / {self.place()}", f"max(math.cos({x}), {self.place()})", f"np.tanh({x}) + math.exp(p)",
        )  # fmt: skip

    def value(self) -> str:
        read = self.pick("u[i - 1, j]", "u[i, j]", "v[i, j]", "u[i, j - 1]", "0.5", "v[i - 1, j - 1]")
        return self.pick(
            f"{read} * {self.function()}", f"{self.function()} + {read} * {self.function()}", f"{read} - {self.function()}",
            f"({read} if {self.function()} > 0.5 else {self.function()})", f"{self.function()} * {self.function()} + {read}",
            f"{read} / {self.function()}",
        )  # fmt: skip

    def body(self) -> list[str]:
        lines: list[str] = []
        for number in range(self.draw(st.sampled_from([0, 0, 1, 2]))):
            lines.append(f"t{number} = {self.pick(self.function(), self.place())}")
            self.variables.append(f"t{number}")
        if self.chance(25):
            self.indices.append("q")
            lines += ["r = 0.0", f"for q in range({self.pick('3', '1, m - 1', 'j', '2, -1, -1', 'i + 1')}):"]
            lines.append(f"    r = r + {self.function()} * {self.pick('k[q]', 'v[i, j]', 'q')}")
            self.indices.pop()
            self.variables.append("r")
        store = f"u[i, j] = {self.value()}"
        if self.chance(25):
            test = self.pick("w[i] > 1", "v[i, j] > 0.3", "i != j", f"{self.function()} > 0.5")
            return [*lines, f"if {test}:", f"    {store}"]
        return [*lines, store]

    def case(self) -> RegionCase:
        n, m = self.draw(st.integers(2, 7)), self.draw(st.integers(2, 7))
        dtype = self.pick("float64", "float64", "float32")
        longest, seeds = max(n, m), [self.draw(st.integers(0, 99)) for _ in range(2)]
        arrays = (
            ArraySpec("u", dtype, (n, m), "tame", 1),
            ArraySpec("v", self.pick(dtype, "float64"), (n, m), "tame", 2),
            ArraySpec(
                "k",
                self.pick("float64", "float64", "float32", "int64"),
                (longest,),
                "tame",
                self.draw(st.integers(0, 99)),
            ),
            ArraySpec("w", "int64", (longest,), "tame", seeds[1]),
        )
        rows = self.pick("1, n", "1, n", "n - 1, 0, -1", "1, n, 2")
        columns = self.pick("1, m", "1, m", "m - 1, 0, -1", "1, min(m, i + 1)", "i, m")
        lines = ["import math", "import numpy as np", "def region(u, v, k, w, p, s):", "    n, m = u.shape"]
        indent = "    "
        if self.chance(25):
            self.indices.append("t")
            lines.append(f"{indent}for t in range(3):")
            indent += "    "
        lines += [f"{indent}for i in range({rows}):", f"{indent}    for j in range({columns}):"]
        lines += [f"{indent}        {line}" for line in self.body()]
        number = self.draw(st.sampled_from([1.5, 0.0, -0.75, 2, np.float64(1.25), np.float32(0.5)]))
        return RegionCase(
            "\n".join(lines) + "\n", arrays, (("p", number), ("s", self.draw(st.sampled_from([0.5, 0.0, 3]))))
        )


@st.composite
def nests(draw: st.DrawFn) -> RegionCase:
    return _Builder(draw).case()


def check_nest(data: st.DataObject) -> None:
    check_case(data.draw(nests(), label="nest"), lw.nest)


def check_region(data: st.DataObject) -> None:
    check_case(data.draw(nests(), label="region"), region_of)


def test_nests_with_tables_are_the_plain_loop() -> None:
    search(check_nest, wanted(15), first_seed())


def test_regions_with_tables_are_the_plain_loop() -> None:
    search(check_region, wanted(8), first_seed())


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_nests_with_tables_are_the_plain_loop_at_length() -> None:
    search(check_nest, wanted(3000), first_seed() + 1)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_regions_with_tables_are_the_plain_loop_at_length() -> None:
    search(check_region, wanted(3000), first_seed() + 2)
