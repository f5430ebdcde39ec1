"""For every refused nest, what its advice leads to when it is followed to the letter: another nest, or another call.

Keys are the names of the cases, or how several of them begin. A repaired nest runs, and agrees with the plain loop.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from refusal_cases import GOOD, Refusal, grid_of, table, two_loops


@dataclass(frozen=True)
class Repair:
    """The source of the nest, and arguments and choices; what is None stays as it was."""

    source: str | None = None
    arguments: Callable[[], tuple[Any, ...]] | None = None
    options: dict[str, Any] = field(default_factory=dict)


def body(
    statements: str,
    signature: str = "u",
    before: str = "",
    after: str = "",
    heading: str = "",
    arguments: Callable[[], tuple[Any, ...]] | None = None,
) -> Repair:
    return Repair(two_loops(statements, signature, before, after, heading), arguments)


def nest(source: str, arguments: Callable[[], tuple[Any, ...]] | None = None) -> Repair:
    return Repair(textwrap.dedent(source).lstrip("\n"), arguments)


def loops(outer: str, inner: str, statement: str = "u[i, j] = 1.0", sig: str = "u", arguments: Any = None) -> Repair:
    return nest(
        f"""
        @lw.nest
        def f({sig}):
            for {outer}:
                for {inner}:
                    {statement}
        """,
        arguments,
    )


def call(*arguments: Any) -> Repair:
    """The same nest, called with other arguments."""
    return Repair(arguments=lambda: arguments)


def choice(ranks: Any = 1, **using: Any) -> Repair:
    """The same nest and arguments, other choices by hand."""
    return Repair(options={"ranks": ranks, "using": using})


PLAIN = Repair(GOOD)
ONE_LOOP = "@lw.nest\ndef f(u):\n    for i in range(u.shape[0]):\n        u[i] = 0.5\n"
WHOLE = loops("i in range(5)", "j in range(6)")
BEST = {"before": "best = 0.0", "after": "return best"}
BEST_ONLY = body("best = max(best, u[i, j])", **BEST)


def from_copy(index: str) -> Repair:
    return body(
        f"u[i, j] = v[{index}]", "u, n, t, v", arguments=lambda: (grid_of(6, 6), 1, np.arange(6), grid_of(99, 99))
    )


def row(statement: str, signature: str = "u", arguments: Callable[[], tuple[Any, ...]] | None = None) -> Repair:
    """A nest of one loop."""
    source = f"@lw.nest\ndef f({signature}):\n    for i in range(1, u.shape[0] // 2):\n        {statement}\n"
    return Repair(source, arguments or (lambda: (grid_of(9),)))


REPAIRS: dict[str, Repair] = {
    # -- not a function with loops
    "while loop": nest(
        """
        @lw.nest
        def f(u):
            for i in range(3):
                for j in range(1):
                    u[i, j] = 1.0
        """
    ),
    "docstring only": WHOLE,
    "pass only": WHOLE,
    "lambda": nest("@lw.nest\ndef f(u):\n    for i in range(5):\n        u[i] = 1.0\n", lambda: (grid_of(5),)),
    "async function": WHOLE,
    "generator": WHOLE,
    "another decorator": nest(
        """
        def doubled(function):
            @functools.wraps(function)
            def wrapper(u):
                u *= 2
                return function(u)
            return wrapper

        @doubled
        @lw.nest
        def g(u):
            for i in range(5):
                for j in range(6):
                    u[i, j] = 1.0
        f = g.__wrapped__
        """
    ),
    "no source": WHOLE,
    "a closure without its value": nest(
        """
        def make():
            k = 2.0
            @lw.nest
            def f(u):
                for i in range(5):
                    for j in range(6):
                        u[i, j] = k
            return f
        f = make()
        """
    ),
    "*args": body("u[i, j] = 1.0", "u, a=1"),
    "**kwargs": body("u[i, j] = 1.0", "u, a=1"),
    # -- loops
    "step 2": loops("i in range(5)", "j in range(6)", "u[i, j] = 1.0 if i % 2 == 0 else u[i, j]"),
    "step 0": loops("i in range(0, 5, 1)", "j in range(6)"),
    "step is an argument": loops("i in range(0, 5, 1)", "j in range(6)"),
    "bound is a float": Repair(arguments=lambda: (grid_of(), 3)),
    "bound is a NumPy float": nest(
        """
        @lw.nest
        def f(u, n):
            m = int(n)
            for i in range(m):
                for j in range(6):
                    u[i, j] = 1.0
        """
    ),
    "bound is a quotient": loops("i in range(u.shape[0] // 2)", "j in range(6)"),
    "bound is a float literal": loops("i in range(3)", "j in range(6)"),
    "starred bounds": loops("i in range(a, b)", "j in range(6)", sig="u, a, b", arguments=lambda: (grid_of(), 1, 5)),
    "range of nothing": WHOLE,
    "range of four": WHOLE,
    "range by keyword": WHOLE,
    "zip": WHOLE,
    "enumerate": WHOLE,
    "over an array": loops("i in range(len(u))", "j in range(6)"),
    "over a list": loops("i in range(1, 4)", "j in range(6)"),
    "reversed": loops("i in range(4, -1, -1)", "j in range(6)"),
    "numpy.arange": WHOLE,
    "an argument called range": nest(
        "@lw.nest\ndef f(u, count=5):\n    for i in range(count):\n        u[i] = 1.0\n", lambda: (grid_of(5),)
    ),
    "bound is ": Repair(arguments=lambda: (grid_of(), 3)),
    "bound of 31 digits in a triangle": Repair(arguments=lambda: (*table(), 5)),
    "index of 31 digits in a triangle": Repair(arguments=lambda: (*table(), 0)),
    "bound of 31 digits": Repair(arguments=lambda: (grid_of(), 5)),
    "for and else": WHOLE,
    "two nests": WHOLE,
    "nine axes": nest(
        "@lw.nest\ndef f(u):\n"
        + "".join("    " * (k + 1) + f"for i{k} in range(2):\n" for k in range(8))
        + "    " * 9
        + "u["
        + ", ".join(f"i{k}" for k in range(8))
        + "] = 1.0\n",
        lambda: (np.zeros((2,) * 9)[1],),
    ),
    # -- around the loops
    "value of the last iteration": nest(
        """
        @lw.nest
        def f(u):
            last = 0
            for i in range(5):
                for j in range(6):
                    u[i, j] = 1.0
                    last = max(last, j)
            return last
        """
    ),
    "global in the loops": nest(
        """
        @lw.nest
        def f(u):
            for i in range(5):
                for j in range(6):
                    g = u[i, j]
                    u[i, j] = 2.0 * g
        """
    ),
    "second nest refused": nest(
        """
        @lw.nest
        def f(u):
            for i in range(5):
                for j in range(6):
                    u[i, j] = 1.0
            for i in range(5):
                for j in range(6):
                    u[i, j] = math.exp(u[i, j])
        """
    ),
    "rows of a matrix": nest(
        """
        @lw.nest
        def f(u):
            for i in range(5):
                for j in range(1, 6):
                    u[i, j] = u[i, j - 1]
            for i in range(5):
                for j in range(4, -1, -1):
                    u[i, j] = u[i, j + 1]
        """
    ),
    # -- statements
    "statement raise ValueError": body("worst = max(worst, u[i, j])", before="worst = 0.0", after="return worst"),
    "statement assert u[i, j] > 0": body("worst = max(worst, -u[i, j])", before="worst = -9.0", after="return worst"),
    "break out of the nest": row("if u[i] <= 6:\n            u[i] = 1.0"),
    "try": body("u[i, j] = 1.0"),
    "with": body("u[i, j] = 1.0"),
    "statement ": body("u[i, j] = 1.0"),
    "del ": body("u[i, j] = 1.0"),
    "string as the body": PLAIN,
    "tuple of a call": body("a = i // 2\nb = i % 2\nu[i, j] = a + b"),
    "three values for two": body("a, b = 1.0, 2.0\nu[i, j] = a"),
    "starred assignment": body("a = 1.0\nb = 2.0\nu[i, j] = a"),
    "reduction assigned twice": body("s = s + u[i, j]", before="s = 0.0", after="return s"),
    "index assigned": body("k = 3\nu[i, j] = 1.0"),
    "shape assigned": body("u[i, j] = 3"),
    "attribute assigned": body("x = 3\nu[i, j] = x"),
    # -- before the loops
    "before: nested function": body("u[i, j] = u[i, j] + 1.0"),
    "before: division by zero": body("u[i, j] = a", before="a = 1 / 2"),
    "before: too many names": body("u[i, j] = 1.0", before="n, m = u.shape"),
    "before: ": body("u[i, j] = a", "u, a=1.0"),
    "an array made before: ": body("u[i, j] = v[i, j]", "u, v", arguments=lambda: (grid_of(), grid_of())),
    # -- reductions
    "reduction read": body("best = max(best, u[i, j])\nu[i, j] = u[i, j - 1]", **BEST),
    "reduction of itself": BEST_ONLY,
    "reduction second": BEST_ONLY,
    "product": body("best += math.log(u[i, j])", **BEST),
    "numpy.maximum": BEST_ONLY,
    "conditional reduction": body("x = u[i, j] if u[i, j] > 1 else 0.0\nbest = max(best, x)", **BEST),
    "two operators": body(
        "best = max(best, u[i, j])\ntotal += 1.0", before="best = 0.0\ntotal = 0.0", after="return best, total"
    ),
    "sum of two types": body(
        "best += max(np.int32(0), u[i, j])",
        before="best = np.int32(0)",
        after="return best",
        arguments=lambda: (grid_of(dtype=np.int32),),
    ),
    "reduction not set": BEST_ONLY,
    "reduction from None": BEST_ONLY,
    # -- array accesses
    "read u[j, i]": from_copy("j, i"),
    "read u[2*j, i]": from_copy("2 * j, i"),
    "read u[": row("u[i] = v[2 * i]", "u, v", lambda: (grid_of(9), grid_of(18))),
    "write u[2*i]": row("u[i] = 1.0 if i % 2 == 0 else u[i]"),
    "write u[": row("u[i] = max(u[i], 1.0)"),
    "index is a float": body("u[i, j] = u[i, int(0.5 * u[i, j])]"),
    "index is half": body("u[i, j] = u[i + 1 // 2, j]"),
    "every second": Repair(
        two_loops("u[i, j] = u[i, 2*j]").replace("u.shape[1]", "u.shape[1] // 2"), lambda: (grid_of(12, 12),)
    ),
    "every second row": Repair(source=two_loops("u[i, j] = u[2*i][j]").replace("u.shape[0]", "u.shape[0] // 2")),
    "slice ": body("u[i, j] = u[i, j - 1]", "u, p=1"),
    "index after a call": body("u[i, j] = u[i][j]"),
    "array beside a loop": nest(
        """
        @lw.nest
        def f(u, v):
            for i in range(1, u.shape[0] - 1):
                v[i] = 0.5 * (u[i - 1] + u[i + 1])
        """,
        lambda: (grid_of(9), grid_of(9)),
    ),
    "string": call(np.array(["ab", "cd"]).view("int32").reshape(2, 2)),
    "bytes": Repair(ONE_LOOP, lambda: (np.frombuffer(bytearray(b"abcd"), "uint8"),)),
    "transposed": body("u[i, j] = v[i, j]", "u, v", arguments=lambda: (grid_of(), grid_of(6, 5).T)),
    "one index": body("u[i, j] = u[i, j - 1]"),
    "three indices": body("u[i, j] = c[i]", "u, c"),
    "typo in an array": body("u[i, j] = u[i - 1, j]"),
    "global array written": body("G[i, j] = u[i, j]", "u, G", arguments=lambda: (grid_of(), np.zeros((5, 6)))),
    "dict indexed": body("u[i, j] = S[j]", "u, S", arguments=lambda: (grid_of(), np.array([1, 2, 3, 4, 5, 6]))),
    "array as a number": body("u[i, j] = v[i, j] + 1.0", "u, v"),
    "number as an array": Repair(arguments=lambda: (grid_of(), np.array(3.0, ndmin=1).repeat(5))),
    "outside: u[i-2, j]": body("u[i, j] = u[i-2, j] if i > 1 else u[i, j]"),
    "outside: u[i+2, j]": Repair(two_loops("u[i, j] = u[i+2, j]").replace("u.shape[0] - 1", "u.shape[0] - 2")),
    "outside: u[i, j+2]": Repair(two_loops("u[i, j] = u[i, j+2]").replace("u.shape[1] - 1", "u.shape[1] - 2")),
    "written outside": Repair(two_loops("u[i-2, j] = 1.0").replace("range(1, u.shape[0]", "range(2, u.shape[0]")),
    "look-up outside: 7": Repair(arguments=lambda: (grid_of(), grid_of(8))),
    "look-up outside: i*2": Repair(arguments=lambda: (grid_of(), grid_of(8))),
    "look-up outside: ": body("u[i, j] = c[i - 1]", "u, c"),
    "index i / 2": body("u[i, j] = c[i // 2]", "u, c"),
    "index u[i, j] > 0": body("u[i, j] = c[int(u[i, j] > 0)]", "u, c"),
    "index u[i, j]": body("u[i, j] = c[int(0.5 * u[i, j])]", "u, c"),
    "index 1.0": body("u[i, j] = c[int(1.0)]", "u, c"),
    "index True": body("u[i, j] = c[int(True)]", "u, c"),
    "index argument ": Repair(arguments=lambda: (*table(), 1)),
    # -- expressions
    "expression u.shape[i]": body("u[i, j] = u.shape[0]"),
    "expression ": body("u[i, j] = 1.0"),
    "operator i << 2": body("u[i, j] = i * 4"),
    "operator i >> 1": body("u[i, j] = i // 2"),
    "operator ": body("u[i, j] = u[i, j] * u[i, j]"),
    "test i in (1, 2)": body("u[i, j] = 1.0 if i == 1 or i == 2 else 0.0"),
    "test i not in (1, 2)": body("u[i, j] = 1.0 if i != 1 and i != 2 else 0.0"),
    "test ": body("u[i, j] = 1.0 if i == j else 0.0"),
    "unknown ": body("u[i, j] = 1.0 + alpah * u[i, j]", "u, alpah=0.5"),
    "global text": body("u[i, j] = S", "u, S=0.5"),
    "attribute np.pie": body("u[i, j] = np.pi"),
    "attribute u.ndim": body("u[i, j] = n", before="n = u.ndim"),
    "attribute u.size": body("u[i, j] = n", before="n = u.size"),
    "attribute ": body("u[i, j] = foo", "u, foo=0.5"),
    "temporary ": body(
        "s[i, j] = u[i - 1, j]\nu[i, j] = s[i, j - 1]", "u, s", arguments=lambda: (grid_of(), grid_of())
    ),
    "and of numbers": body("u[i, j] = 1.0 if u[i, j] else u[i, j]"),
    "minus of bools": body("u[i, j] = int(u[i, j] > 1) - int(u[i - 1, j] > 1)"),
    "minus of a bool": body("u[i, j] = -int(u[i, j] > 1)"),
    "inverted float": body("u[i, j] = ~int(u[i, j])"),
    "bits of a float": body("u[i, j] = int(u[i, j]) & 1"),
    "abs of a bool": body("u[i, j] = abs(int(u[i, j] > 1))"),
    "great integer power": body("u[i, j] = float(i) ** 20"),
    "integer power of an index": body("u[i, j] = float(i) ** j"),
    "power of two types": body("u[i, j] = np.float64(max(1.0, u[i, j])) ** -1"),
    "integer too great": body("u[i, j] = float(i) * 9223372036854775807.0"),
    "element too small": Repair(arguments=lambda: (grid_of(dtype=np.int16),)),
    "number of 100 digits": body(f"u[i, j] = {float('9' * 100)!r}"),
    "float of two types": body("u[i, j] = -max(np.float32(0), u[i - 1, j])"),
    "complement of a bool or a number": body(
        "u[i, j] = ~min(np.uint8(v[i, j]), u[i - 1, j])",
        "u, v",
        arguments=lambda: (grid_of(dtype=np.uint8), grid_of(dtype=bool)),
    ),
    "endless sum before": body("u[i, j] = b", before=f"a = 0{' + 1' * 100}\nb = a{' + 1' * 100}"),
    "endless sum": body(
        "\n".join(["a0 = 0.0", *(f"a{k} = a{k - 1} + 0.5 * u[i-1, j]" for k in range(1, 9)), "u[i, j] = a8"])
    ),
    "endless minus signs": body("a = -u[i, j]\nu[i, j] = -a"),
    "endless conditions": body("a = 1.0 if i == 1 else 2.0\nu[i, j] = 0.0 if i == 0 else a"),
    "endless index": body("a = 0 + i\nu[i, j] = c[a]", "u, c"),
    "condition of 70 bits": Repair(arguments=lambda: (*table(), 1)),
    # -- calls of functions
    "call np.round": body("u[i, j] = np.rint(u[i, j])"),
    "call np.uint64": body("u[i, j] = np.int64(i)"),
    "call np.float16": body("u[i, j] = np.float32(u[i, j])"),
    "call math.hypot": body("u[i, j] = np.hypot(u[i, j], 1.0)"),
    "call sum": body("u[i, j] = u[i, j] + u[i, j - 1] + u[i, j + 1]"),
    "call helper": body("u[i, j] = u[i, j]"),
    "call over three lines": body("u[i, j] = (\n    0.5 +\n    u[i, j]\n)"),
    "call (lambda": body("u[i, j] = 1.0"),
    "call u.sum()": body("s += u[i, j]", before="s = 0.0", after="return s"),
    "call with a keyword": body("u[i, j] = max(u[i, j], 0.0)"),
    "call with a star": body("u[i, j] = max(a, b)", "u, a=1, b=2"),
    "call of an argument": body("u[i, j] = min(u[i, j], 1.0)", "u, least=3"),
    "call ": body("u[i, j] = math.sqrt(u[i, j])"),
    "where changed in place": body("a = np.where(u[i, j] > 1, u[i, j], 1)\na = a + 1\nu[i, j] = a"),
    "max of one": body("u[i, j] = max(u[i, j], 0.0)"),
    "sqrt of two": body("u[i, j] = math.sqrt(u[i, j])"),
    "float of nothing": body("u[i, j] = float(0)"),
    # -- arguments
    "no argument": call(grid_of()),
    "two arguments": call(grid_of()),
    "unknown keyword": call(grid_of()),
    "list": call(np.array([[1.0] * 6] * 5)),
    "nothing": call(grid_of()),
    "no axes": Repair(ONE_LOOP, lambda: (np.array(1.0, ndmin=1),)),
    "NumPy scalar": Repair(ONE_LOOP, lambda: (np.array(np.float64(1.0), ndmin=1),)),
    "one axis": call(grid_of()),
    "masked array": call(np.asarray(np.ma.masked_array(grid_of(), True))),
    "tensor": call(np.asarray(grid_of().tolist())),
    "data frame": call(np.asarray(grid_of().tolist())),
    "foreign byte order": call(grid_of(dtype=">f8").astype("float64")),
    "complex stored": body("r[i, j] = u[i, j].real", "u, r"),
    "complex order": body("r[i, j] = 1.0 if abs(u[i, j]) > 0 else 2.0", "u, r"),
    "complex extremum": body("u[i, j] = u[i, j] if u[i, j].real > u[i - 1, j].real else u[i - 1, j]", "u, r"),
    "complex numpy extremum": body("u[i, j] = u[i, j] if abs(u[i, j]) > 1 else 1j", "u, r"),
    "complex floor": body("u[i, j] = u[i, j].real // 2", "u, r"),
    "complex float": body("r[i, j] = float(u[i, j].real)", "u, r"),
    "complex math": body("u[i, j] = np.exp(u[i, j])", "u, r"),
    "complex cast": body("r[i, j] = np.float32(u[i, j].real)", "u, r"),
    "complex real function": body("u[i, j] = np.cbrt(u[i, j].real)", "u, r"),
    "complex power": body("u[i, j] = np.complex128(r[i, j]) ** 0.5", "u, r"),
    "complex both parts": body("u[i, j] = u[i, j] + 1j * 1.0", "u, r"),
    "complex conj": body("u[i, j] = (2j * i).conjugate()", "u, r"),
    "complex imag": body("r[i, j] = 0.0", "u, r"),
    "complex types": body("u[i, j] = -(u[i, j] if i > 1 else np.complex128(0.5))", "u, r"),
    "complex conjugate": body("u[i, j] = u[i, j].conjugate()", "u, r"),
    "complex reduction": body("best = max(best, abs(u[i, j]))", before="best = 0.0", after="return best"),
    "dtype clongdouble": call(grid_of(dtype="clongdouble").astype("complex128")),
    "dtype float16": call(grid_of(dtype="float16").astype("float32")),
    "dtype longdouble": call(grid_of(dtype="longdouble").astype("float64")),
    "dtype object": call(grid_of().astype(object).astype("float64")),
    "dtype uint64": call(grid_of(dtype="uint64").astype("int64")),
    "dtype datetime64": call(grid_of(dtype=int).astype("datetime64[s]").view("int64")),
    "dtype U1": call(grid_of(dtype=int).astype("U1").view("int32")),
    "structured": call(np.zeros((5, 6), [("a", float)])["a"].copy()),
    "read-only": call(grid_of()),
    "broadcast": call(np.broadcast_to(1.0, (5, 6)).copy()),
    "overlapping rows": call(np.lib.stride_tricks.as_strided(grid_of(40), (5, 6), (8, 8)).copy()),
    "three axes": nest(
        """
        @lw.nest
        def f(u):
            for i in range(5):
                for j in range(6):
                    for k in range(7):
                        u[i, j, k] = 0.5
        """
    ),
    "shared memory, a global": Repair(
        "G = np.ones((5, 6))\n" + two_loops("u[i, j] = G[i - 1, j]", "u=G.copy()"), lambda: ()
    ),
    "shared memory, a row": Repair(arguments=lambda: (grid_of(), grid_of(6, 6)[2].copy())),
    "shared memory, ": Repair(arguments=lambda: (grid_of(), grid_of(6, 6)[:5].copy())),
    "scalar of 100 digits": Repair(arguments=lambda: (grid_of(), 10**18)),
    "scalar array(1.)": Repair(arguments=lambda: (grid_of(), float(np.array(1.0)))),
    "scalar ": Repair(arguments=lambda: (grid_of(), 0.5)),
    # -- choices by hand
    "plan: engine": choice(engine="blocking"),
    "plan: tile": choice(tile=2),
    "plan: ranks": choice(2),
    "plan: grid too long": choice(6, grid=(2, 3)),
    "plan: grid for other ranks": choice(2, grid=(2,)),
    "plan: grid with empty blocks": choice(3, grid=(3, 1)),
    "plan: grid for too many ranks": choice(7, grid=(3, 2)),
    "plan: grid": choice(2, grid=(2, 1)),
    # -- dependences
    "flow backwards, descending": nest(
        """
        @lw.nest
        def f(u):
            for i in range(1, 5):
                for j in range(4, 0, -1):
                    u[i, j] = u[i-1, j-1]
        """
    ),
    "flow backwards": body("u[i, j] = u[i-1, j+1]"),
    "anti backwards": body("u[i, j] = u[i+1, j-1]"),
    "output backwards": body("u[i, j] = 1.0"),
    "two write offsets in a triangle": nest(
        """
        @lw.nest
        def f(u):
            for i in range(1, 4):
                for j in range(1, 5):
                    u[i, j] = 1.0
                    u[i + 1, j + 1] = 2.0
        """
    ),
}

# What is no function at all has no nest to be repaired: the decorator moves to one.
NO_FUNCTION = {"class", "builtin", "None", "a name", "a nest", "a partial", "a static method"}


def key_of(case: Refusal) -> str:
    """The key that is the case's name, or the longest beginning of it."""
    return max((key for key in REPAIRS if case.name.startswith(key)), key=len)
