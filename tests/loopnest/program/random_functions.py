"""Random functions of scalars and lists with loops in all sorts of control flow, as Python source."""

from __future__ import annotations

import random
from collections.abc import Iterator

NAMES = ("a", "b", "c", "d")


class Writer:
    """Writes one function ``f(a, b, w)``: numbers a and b, and a list w of 5 numbers.

    It ends, and raises nothing but ZeroDivisionError and UnboundLocalError.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.counter = 0

    def source(self) -> str:
        body = [*self.block(1, 4, False), *self.block(1, 4, False), "    return (a, b, [c, d], w)"]
        return "\n".join(["def f(a, b, w):", "    c = d = 1", *body]) + "\n"

    def pick(self, *options: str) -> str:
        return self.random.choice(options)

    def block(self, depth: int, most: int, in_loop: bool) -> Iterator[str]:
        for _ in range(self.random.randint(1, most)):
            yield from self.statement(depth, in_loop)

    def statement(self, depth: int, in_loop: bool) -> Iterator[str]:
        pad = "    " * depth
        kinds = ["assign"] * 5 + ["swap", "augmented", "element", "call", "walrus", "comprehension"]
        if depth < 5:
            kinds += ["for"] * 4 + ["while", "if", "if", "try", "with", "def", "match"]
        if in_loop:
            kinds += ["break", "continue"]
        kinds += ["return"] if self.random.random() < 0.1 else []
        kinds += ["delete"] if self.random.random() < 0.1 else []
        match self.random.choice(kinds):
            case "assign":
                yield f"{pad}{self.name()} = {self.value()}"
            case "swap":
                one, other = self.name(), self.name()
                yield f"{pad}{one}, {other} = {other}, {self.value()}"
            case "augmented":
                yield f"{pad}{self.name()} += {self.value()}"
            case "element":
                yield f"{pad}w[{self.random.randrange(5)}] = {self.value()}"
            case "call":
                yield f"{pad}note({self.name()})"
            case "walrus":
                yield f"{pad}note({self.name()} > 0 and ({self.name()} := {self.value()}))"
            case "comprehension":
                yield f"{pad}{self.name()} = sum([{self.name()} + {self.pick('a', 'e')} for e in range(3)])"
            case "delete":
                yield f"{pad}del {self.name()}"
            case "return":
                yield f"{pad}return {self.value()}"
            case "break" | "continue" as word:
                yield f"{pad}if {self.value()} > 3: {word}"
            case "for":
                index = self.pick(self.name(), "i", "j", "k")
                yield f"{pad}for {index} in range({self.random.randint(0, 3)}):"
                yield from self.block(depth + 1, 3, True)
                if self.random.random() < 0.1:
                    yield f"{pad}else:"
                    yield from self.block(depth + 1, 2, in_loop)
            case "while":
                self.counter += 1
                yield f"{pad}n{self.counter} = 0"
                yield f"{pad}while n{self.counter} < 3 and {self.value()} < 5:"
                yield f"{pad}    n{self.counter} += 1"
                yield from self.block(depth + 1, 3, True)
            case "if":
                yield f"{pad}if {self.value()} > {self.random.randint(-2, 3)}:"
                yield from self.block(depth + 1, 3, in_loop)
                if self.random.random() < 0.5:
                    yield f"{pad}else:"
                    yield from self.block(depth + 1, 3, in_loop)
            case "try":
                yield f"{pad}try:"
                yield from self.block(depth + 1, 3, in_loop)
                yield f"{pad}    1 // ({self.value()})"
                yield from self.block(depth + 1, 2, in_loop)
                yield f"{pad}except ZeroDivisionError{self.pick('', ' as e')}:"
                yield from self.block(depth + 1, 2, in_loop)
                if self.random.random() < 0.4:
                    yield f"{pad}finally:"
                    yield from self.block(depth + 1, 2, False)
            case "with":
                yield f"{pad}with swallowing({self.value()}) as {self.name()}:"
                yield from self.block(depth + 1, 3, in_loop)
                yield f"{pad}    1 // ({self.value()})"
            case "def":
                yield f"{pad}def g(x={self.value()}):"
                yield f"{pad}    return x + {self.name()}"
                yield f"{pad}note(g())"
            case "match":
                yield f"{pad}match ({self.name()}, {self.value()}):"
                yield f"{pad}    case ({self.random.randint(0, 1)}, {self.name()}):"
                yield from self.block(depth + 2, 2, in_loop)
                yield f"{pad}    case ({self.name()}, _) if {self.value()} > 0:"
                yield from self.block(depth + 2, 2, in_loop)

    def name(self) -> str:
        return self.pick(*NAMES)

    def value(self) -> str:
        return self.pick(
            self.name(),
            str(self.random.randint(-2, 3)),
            f"{self.name()} + {self.pick(*NAMES, '1')}",
            f"{self.name()} - {self.name()}",
            f"w[{self.random.randrange(5)}] - {self.name()}",
            f"({self.name()} if {self.name()} > 0 else {self.name()})",
            f"max({self.name()}, {self.name()})",
            f"{self.name()} % 3",
        )
