"""What is refused, and how: every message names the place, what was found and a way out, and no array is touched.

Each nest is written to a file of its own. The line that the message has to name is marked ``# <-``; without a mark it
is the line of the function.
"""

from __future__ import annotations

import decimal
import fractions
import importlib.util
import linecache
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import lapwing as lw

HEADING = "import functools\nimport math\n\nimport numpy as np\n\nimport lapwing as lw\n\n\n"


@dataclass(frozen=True)
class Refusal:
    """A nest called ``f`` and its arguments; ``found`` and ``way_out`` stand in the message, in this order."""

    name: str
    source: str
    found: str
    way_out: str
    arguments: Callable[[], tuple[Any, ...]]
    options: dict[str, Any] = field(default_factory=dict)


REFUSALS: list[Refusal] = []


def grid_of(*shape: int, dtype: Any = float) -> np.ndarray:
    shape = shape or (5, 6)
    return (np.arange(np.prod(shape)).reshape(shape) % 7 + 1).astype(dtype)


def table() -> tuple[np.ndarray, np.ndarray]:
    return grid_of(), grid_of(5)


def refuse(
    name: str,
    source: str,
    found: str,
    way_out: str,
    arguments: Callable[[], tuple[Any, ...]] = lambda: (grid_of(),),
    **options: Any,
) -> None:
    REFUSALS.append(Refusal(name, textwrap.dedent(source).lstrip("\n"), found, way_out, arguments, options))


def body(
    name: str,
    statements: str,
    found: str,
    way_out: str,
    arguments: Callable[[], tuple[Any, ...]] = lambda: (grid_of(),),
    *,
    signature: str = "u",
    before: str = "",
    after: str = "",
    heading: str = "",
    **options: Any,
) -> None:
    """A refusal in a nest of two loops over the inside of ``u``."""
    refuse(name, two_loops(statements, signature, before, after, heading), found, way_out, arguments, **options)


def two_loops(statements: str, signature: str = "u", before: str = "", after: str = "", heading: str = "") -> str:
    lines = [
        *([heading] if heading else []),
        "@lw.nest",
        f"def f({signature}):",
        *(f"    {line}" for line in before.splitlines()),
        "    for i in range(1, u.shape[0] - 1):",
        "        for j in range(1, u.shape[1] - 1):",
        *(f"            {line}" for line in statements.splitlines()),
        *(f"    {line}" for line in after.splitlines()),
    ]
    return "\n".join(lines) + "\n"


def loops(
    name: str, outer: str, found: str, way_out: str, arguments: Any = None, *, inner: str = "", sig: str = "u"
) -> None:
    """A refusal in the heading of the outer or of the inner of two loops."""
    mark = ("", "  # <-") if inner else ("  # <-", "")
    source = f"""
        @lw.nest
        def f({sig}):
            for {outer}:{mark[0]}
                for {inner or "j in range(6)"}:{mark[1]}
                    u[i, j] = 1.0
        """
    refuse(name, source, found, way_out, arguments or (lambda: (grid_of(),)))


GOOD = two_loops("u[i, j] = 0.5 * u[i - 1, j]")
HUNDRED_DIGITS = "9" * 100

# -- not a function with loops ---------------------------------------------------------------------------------------

refuse(
    "while loop",
    """
    @lw.nest
    def f(u):  # <-
        i = 0
        while i < 3:
            u[i, 0] = 1.0
    """,
    "no for loop was found",
    "one perfect nest of for loops",
)
refuse("docstring only", '@lw.nest\ndef f(u):  # <-\n    """Nothing."""\n', "no for loop", "one perfect nest")
refuse("pass only", "@lw.nest\ndef f(u):  # <-\n    pass\n", "no for loop", "one perfect nest")
refuse("lambda", "f = lw.nest(lambda u: u)  # <-\n", "not a plain function", "Write def")
refuse(
    "async function",
    """
    @lw.nest  # <-
    async def f(u):
        for i in range(5):
            u[i, 0] = 1.0
    """,
    "not a plain function",
    "Write def f(…)",
)
refuse(
    "generator",
    """
    @lw.nest
    def f(u):
        for i in range(5):
            yield i  # <-
    """,
    "yield i in the loops",
    "assignments to array elements",
)
refuse("class", "@lw.nest\nclass f:\n    pass\n", "found type", "directly above def", nowhere=True)
refuse("builtin", "f = lw.nest(len)\n", "found builtin_function_or_method", "directly above def", nowhere=True)
refuse("None", "f = lw.nest(None)\n", "found NoneType", "directly above def", nowhere=True)
refuse("a name", "f = lw.nest('f')\n", "found str", "directly above def", nowhere=True)
refuse("a nest", "@lw.nest\n" + GOOD, "found Nest", "directly above def", nowhere=True)
refuse("a partial", "f = lw.nest(functools.partial(max))\n", "found partial", "directly above def", nowhere=True)
refuse(
    "a static method",
    """
    class C:
        @lw.nest
        @staticmethod
        def f(u):
            pass
    """,
    "found staticmethod",
    "directly above def",
    nowhere=True,
)
refuse(
    "another decorator",
    """
    def doubled(function):
        @functools.wraps(function)
        def wrapper(u):
            u *= 2
            return function(u)
        return wrapper

    @lw.nest
    @doubled
    def f(u):
        for i in range(5):
            for j in range(6):
                u[i, j] = 1.0
    """,
    "wrapped by another decorator",
    "directly above def",
    nowhere=True,
)
refuse(
    "no source",
    "exec('def g(u):\\n    for i in range(5):\\n        u[i] = 1.0')\nf = lw.nest(g)\n",
    "the source of g cannot be read",
    "Define the function in a file or a notebook cell",
    nowhere=True,
)
refuse(
    "a closure without its value",
    """
    def make():
        @lw.nest
        def f(u):  # <-
            for i in range(5):
                for j in range(6):
                    u[i, j] = k
        k = 2.0
        return f
    f = make()
    """,
    "k has no value yet",
    "Set it before",
)
body("*args", "u[i, j] = 1.0", "*args in the signature", "Name every argument", signature="u, *args", def_line=True)
body(
    "**kwargs",
    "u[i, j] = 1.0",
    "**kwargs in the signature",
    "Name every argument",
    signature="u, **kwargs",
    def_line=True,
)

# -- loops -----------------------------------------------------------------------------------------------------------

loops("step 2", "i in range(0, 5, 2)", "loop step 2", "Steps are 1 or -1")
loops("step 0", "i in range(0, 5, 0)", "loop step 0", "Steps are 1 or -1")
loops("step is an argument", "i in range(0, 5, s)", "loop step s", "written as a number", sig="u, s=1")
loops("bound of two indices", "i in range(5)", "loop bound i * i", "affine", inner="j in range(i * i)")
loops("bound divided", "i in range(5)", "loop bound i // 2", "affine", inner="j in range(i // 2)")
loops("bound is a minimum", "i in range(5)", "loop bound min(i, 3)", "affine", inner="j in range(min(i, 3))")
loops(
    "bound from an array",
    "i in range(5)",
    "loop bound n[i]",
    "affine",
    lambda: (grid_of(), np.ones(5, int)),
    inner="j in range(n[i])",
    sig="u, n",
)
loops("bound is a float", "i in range(n)", "depends on n", "not an integer", lambda: (grid_of(), 3.0), sig="u, n")
loops(
    "bound is a NumPy float",
    "i in range(n)",
    "depends on n",
    "not an integer",
    lambda: (grid_of(), np.float64(3)),
    sig="u, n",
)
loops("bound is a quotient", "i in range(u.shape[0] / 2)", "depends on u.shape[0] / 2", "not an integer")
loops("bound is a float literal", "i in range(3.0)", "loop bound 3.0", "affine")
loops("starred bounds", "i in range(*s)", "loop bound *s", "affine", lambda: (grid_of(), (1, 5)), sig="u, s")
loops("range of nothing", "i in range()", "range()", "one to three arguments")
loops("range of four", "i in range(1, 2, 3, 4)", "range(1, 2, 3, 4)", "one to three arguments")
loops("range by keyword", "i in range(stop=5)", "range(stop=5)", "range(stop)")
loops("zip", "i, k in zip(range(5), range(5))", "loop over i, k", "one index")
loops("enumerate", "i, row in enumerate(u)", "loop over i, row", "one index")
loops("over an array", "i in u", "loop over u", "range(stop)")
loops("over a list", "i in [1, 2, 3]", "loop over [1, 2, 3]", "range(stop)")
loops("reversed", "i in reversed(range(5))", "loop over reversed(range(5))", "1 or -1")
loops("numpy.arange", "i in np.arange(5)", "loop over np.arange(5)", "range(stop)")
loops("an argument called range", "i in range(5)", "loop over range(5)", "range(stop)", sig="u, range=range")
loops(
    "index is an argument",
    "i in range(5)",
    "loop index i already means something else",
    "a name of its own",
    sig="u, i=1",
)
loops("index used twice", "i in range(5)", "loop index i already means", "a name of its own", inner="i in range(6)")
for described, value in (
    ("str", "5"),
    ("NoneType", None),
    ("an array of shape (1,)", np.array([3])),
    ("an array of shape ()", np.array(3)),
):
    refuse(
        f"bound is {described}",
        """
        @lw.nest
        def f(u, n):  # <-
            for i in range(n):
                for j in range(6):
                    u[i, j] = 1.0
        """,
        f"n is {described}",
        "expected a number",
        lambda value=value: (grid_of(), value),
    )
refuse(
    "bound of 31 digits",
    """
    @lw.nest
    def f(u, n):
        for i in range(n):
            for j in range(6):
                u[i, j] = 1.0  # <-
    """,
    "index 1 reaches 999999999999999999999999999999",
    "Shorten the loop's range",
    lambda: (grid_of(), 10**30),
)
refuse(
    "for and else",
    """
    @lw.nest
    def f(u):
        for i in range(5):  # <-
            for j in range(6):
                u[i, j] = 1.0
        else:
            pass
    """,
    "for … else",
    "no else",
)
refuse(
    "statement beside a loop",
    """
    @lw.nest
    def f(u):
        for i in range(5):
            u[i, 0] = 0.0  # <-
            for j in range(1, 6):
                u[i, j] = u[i, j - 1]
    """,
    "u[i, 0] = 0.0 stands beside an inner loop",
    "a nest of its own",
)
refuse(
    "two inner loops",
    """
    @lw.nest
    def f(u):
        for i in range(5):
            for j in range(6):
                u[i, j] = 1.0
            for j in range(6):  # <-
                u[i, j] = 2.0
    """,
    "stands beside an inner loop",
    "a nest of its own",
)
refuse(
    "two nests",
    """
    @lw.nest
    def f(u):
        for i in range(5):
            for j in range(6):
                u[i, j] = 1.0
        for i in range(5):  # <-
            for j in range(6):
                u[i, j] = 2.0
    """,
    "for i in range(5): … after the loops",
    "Only return may follow",
)
refuse(
    "nine loops",
    "@lw.nest\ndef f(u):\n"
    + "".join("    " * (k + 1) + f"for i{k} in range(2):{'  # <-' if k == 8 else ''}\n" for k in range(9))
    + "    " * 10
    + "u["
    + ", ".join(f"i{k}" for k in range(9))
    + "] = 1.0\n",
    "more than 8 loops",
    "At most 8 loops are supported",
    lambda: (np.zeros((2,) * 9),),
)

# -- statements ------------------------------------------------------------------------------------------------------

body("if statement", "if u[i, j] > 1:  # <-\n    u[i, j] = 0.0", "an if statement", "x = a if condition else b")
body("while in the body", "while u[i, j] > 1:  # <-\n    u[i, j] = 0.5", "while u[i, j] > 1", "The body holds")
body("try", "try:  # <-\n    u[i, j] = 1.0\nexcept ValueError:\n    pass", "try: …", "The body holds")
body("with", "with np.errstate():  # <-\n    u[i, j] = 1.0", "with np.errstate(): …", "The body holds")
for statement in (
    "pass",
    "...",
    "break",
    "continue",
    "return",
    "del u",
    "assert u[i, j] > 0",
    "print(u[i, j])",
    "yield u",
    "global G",
    "a = b = u[i - 1, j]",
    "a: float",
    "import math",
    "raise ValueError",
):
    body(f"statement {statement}", f"u[i, j] = 1.0\n{statement}  # <-", f"{statement} in the loops", "The body holds")
refuse(
    "nonlocal",
    """
    def make():
        total = 0.0
        @lw.nest
        def f(u):
            nonlocal total  # <-
            for i in range(5):
                for j in range(6):
                    u[i, j] = total
        return f
    f = make()
    """,
    "nonlocal total before the loops",
    "Only scalars may be set before the loops",
)
refuse(
    "string as the body",
    two_loops('"""nothing"""').replace("def f(u):", "def f(u):  # <-"),
    "the loops write no array and reduce nothing",
    "assigns array elements",
)
body(
    "tuple assignment",
    "a, b = u[i - 1, j], u[i, j]  # <-\nu[i, j] = a + b",
    "u[i - 1, j], u[i, j]",
    "Expressions are made of",
)
body("starred assignment", "a, *b = 1.0, 2.0  # <-\nu[i, j] = a", "1.0, 2.0", "Expressions are made of")
body("index assigned", "i = 3  # <-\nu[i, j] = 1.0", "i is assigned in the loops", "keep their value")
body(
    "argument assigned",
    "a = 3  # <-\nu[i, j] = a",
    "a is assigned in the loops",
    "keep their value",
    signature="u, a=1",
)
body("array assigned", "u = 1.0  # <-", "u is assigned in the loops", "keep their value")
body("shape assigned", "u.shape[0] = 3  # <-", "u.shape[0]", "Index an array by its name")
body("attribute assigned", "u.x = 3  # <-", "assignment to u.x", "an array element or to a name")
body(
    "statement after the loops",
    "u[i, j] = 1.0",
    "u[0, 0] = 2.0 after the loops",
    "Only return may follow",
    after="u[0, 0] = 2.0  # <-",
)

# -- before the loops ------------------------------------------------------------------------------------------------

for statement in ("global G", "import math", "print(u)", "a: float", "a = b = 1"):
    body(
        f"before: {statement}",
        "u[i, j] = 1.0",
        f"{statement} before the loops",
        "Only scalars may be set",
        before=f"{statement}  # <-",
    )
body("before: augmented", "u[i, j] = a", "a += 1 before the loops", "Only scalars", before="a = 1\na += 1  # <-")
body("before: if", "u[i, j] = 1.0", "if True: …", "Only scalars", before="if True:  # <-\n    a = 1")
body(
    "before: nested function",
    "u[i, j] = g(u[i, j])",
    "def g(x): …",
    "do other work before the call",
    before="def g(x):  # <-\n    return x",
)
body(
    "before: argument again",
    "u[i, j] = a",
    "a is an argument and is assigned again",
    "Use another name",
    signature="u, a=1",
    before="a = a + 1  # <-",
)
for expression in ("u[0, 0]", "'x'", "foo + 1", "None", "[1, 2]", "u.copy()", "f(u)", "open('x')", "1j", "u.T.shape"):
    body(
        f"before: {expression}",
        "u[i, j] = a",
        "outside the loops",
        "Supported are numbers, arguments, array shapes",
        before=f"a = {expression}  # <-",
    )
body(
    "before: division by zero",
    "u[i, j] = a",
    "1 / 0 cannot be computed: division by zero",
    "Check the arguments",
    before="a = 1 / 0  # <-",
)
body(
    "before: too many names",
    "u[i, j] = 1.0",
    "u.shape gives (5, 6)",
    "expected 3 values for n, m, k",
    before="n, m, k = u.shape  # <-",
)
for expression in ("np.zeros(u.shape)", "u", "u.copy()", "(1, 2)"):
    body(
        f"an array made before: {expression}",
        "u[i, j] = v[i, j]  # <-",
        "v is indexed",
        "Only array arguments",
        before=f"v = {expression}",
    )

# -- reductions and return -------------------------------------------------------------------------------------------

BEST = {"before": "best = 0.0", "after": "return best"}
body(
    "reduction read",
    "best = max(best, u[i, j])\nu[i, j] = best  # <-",
    "reduction best is read in the loops",
    "only best = max(best, x)",
    **BEST,
)
body(
    "reduction of itself", "best = max(best, best + u[i, j])  # <-", "reduction best is read", "only best = max", **BEST
)
body(
    "reduction second",
    "best = max(u[i, j], best)  # <-",
    "best = max(u[i, j], best)",
    "Put the reduction first",
    **BEST,
)
body("product", "best *= u[i, j]  # <-", "best *= u[i, j] updates best", "Reductions are", **BEST)
body("numpy.maximum", "best = np.maximum(best, u[i, j])  # <-", "updates best", "Reductions are best = max", **BEST)
body("conditional reduction", "best = u[i, j] if u[i, j] > 1 else 0.0  # <-", "updates best", "Reductions are", **BEST)
body(
    "two operators",
    "best = max(best, u[i, j])\nbest += 1.0  # <-",
    "reduced by both max and +",
    "Use two reductions",
    **BEST,
)
body(
    "sum of two types",
    "best += max(0, u[i, j])  # <-",
    "changes its type with the values",
    "give all terms one type",
    lambda: (grid_of(dtype=np.int32),),
    before="best = 0",
    after="return best",
)
body(
    "reduction not set",
    "best = max(best, u[i, j])  # <-",
    "best is used before it is assigned",
    "keep such values in an array",
    after="return best",
)
body(
    "reduction from None",
    "best = max(best, u[i, j])",
    "None outside the loops",
    "Supported are numbers",
    before="best = None  # <-",
    after="return best",
)
for returned in ("u", "1", "best + 1", "[best]", "{'b': best}", "n", "()", "None, best"):
    body(
        f"return {returned}",
        "best = max(best, u[i, j])",
        f"return of {returned.split(',')[0]}",
        "A nest returns",
        signature="u, n=1",
        before="best = 0.0",
        after=f"return {returned}  # <-",
    )

# -- array accesses --------------------------------------------------------------------------------------------------

for access in (
    "u[2*j, i]",
    "u[i, 2*j]",
    "u[j, i]",
    "u[0, j]",
    "u[-1, j]",
    "u[i, i]",
    "u[i+j, j]",
    "u[i, -j]",
    "u[n, j]",
    "u[u.shape[0]-i, j]",
    "u[t[i], j]",
    "u[i//2, j]",
    "u[i % 2, j]",
    "u[i, u[i, j]]",
    "u[i + 0.5, j]",
):
    body(
        f"read {access}",
        f"u[i, j] = {access}  # <-",
        f"{access} is not a uniform access: index",
        "read-only array",
        lambda: (grid_of(), 1, np.arange(5)),
        signature="u, n, t",
    )
for access in ("u[-1, j]", "u[2*i, j]", "u[t[i], j]", "u[i, i]", "u[0, j]", "u[n, j]"):
    body(
        f"write {access}",
        f"{access} = 1.0  # <-",
        f"{access} is not a uniform access: index",
        "plus a constant",
        lambda: (grid_of(), 1, np.arange(5)),
        signature="u, n, t",
    )
for access in ("u[i, :]", "u[i, ...]", "u[i, None]", "u[1:, j]", "u[*p]"):
    body(
        f"slice {access}",
        f"u[i, j] = {access}  # <-",
        f"{access} takes a slice",
        "one index per axis",
        signature="u, p=1",
    )
body("slice written", "u[i, :] = 1.0  # <-", "u[i, :] takes a slice", "one index per axis")
body("index after index", "u[i, j] = u[i - 1][j]  # <-", "u[i - 1][j]", "Index an array by its name: u[i, j]")
body("index after index written", "u[i][j] = 1.0  # <-", "u[i][j]", "Index an array by its name: u[i, j]")
body("transposed", "u[i, j] = u.T[i, j]  # <-", "u.T[i, j]", "Expressions are made of")
body("one index", "u[i, j] = u[i]  # <-", "u[i] has 1 indices, elsewhere u has 2", "Index every axis")
body(
    "three indices",
    "u[i, j] = c[i, j, 1]  # <-",
    "c[i, j, 1] has 3 indices but c has 1 axes",
    "Index every axis",
    table,
    signature="u, c",
)
body(
    "row written",
    "s[i] = u[i, j]  # <-",
    "s[i] is written but not indexed by the innermost loop j",
    "or use a reduction",
    table,
    signature="u, s",
)
refuse(
    "matrix product",
    """
    @lw.nest
    def f(c, a, b):
        for i in range(c.shape[0]):
            for j in range(c.shape[1]):
                for k in range(a.shape[1]):
                    c[i, j] += a[i, k] * b[k, j]  # <-
    """,
    "c[i, j] is written but not indexed by the innermost loop k",
    "make the missing loop the outermost",
    lambda: (grid_of(4, 4), grid_of(4, 4), grid_of(4, 4)),
)
body("typo in an array", "u[i, j] = U[i - 1, j]  # <-", "U is indexed", "Only array arguments and global NumPy arrays")
body(
    "global array written",
    "G[i, j] = u[i, j]",
    "G is written but is not an argument",
    "Pass it as an argument",
    signature="u, v=1",
    heading="G = np.zeros((5, 6))",
    def_line=True,
)
body("list indexed", "u[i, j] = S[j]  # <-", "S is indexed", "Only array arguments", heading="S = [1, 2, 3, 4, 5, 6]")
body(
    "array as a number",
    "u[i, j] = v + 1.0",
    "v is an array of shape (5, 6)",
    "expected a number",
    lambda: (grid_of(), grid_of()),
    signature="u, v",
    def_line=True,
)
body(
    "number as an array",
    "u[i, j] = a[i]",
    "argument a of f is float",
    "expected a NumPy array",
    lambda: (grid_of(), 3.0),
    signature="u, a",
    def_line=True,
)
for access, worst in (("u[i-2, j]", -1), ("u[i+2, j]", 5), ("u[i, j+2]", 6)):
    body(
        f"outside: {access}",
        f"u[i, j] = {access}  # <-",
        f"{access}: index {1 + ('j+' in access)} reaches {worst}",
        "Shorten the loop's range or enlarge the array",
    )
body("written outside", "u[i-2, j] = 1.0  # <-", "u[i-2, j]: index 1 reaches -1", "Shorten the loop's range")
for index, worst in (
    ("7", 7),
    ("-6", -6),
    ("i-3", -2),
    ("i + 10**30", 10**30 + 3),
    ("i*2", 6),
    (HUNDRED_DIGITS, HUNDRED_DIGITS),
):
    body(
        f"look-up outside: {index[:10]}",
        f"u[i, j] = c[{index}]  # <-",
        f"reaches {worst}, but c has 5 elements",
        "enlarge the array",
        table,
        signature="u, c",
    )
for index, kind in (
    ("1.0", "Python float"),
    ("True", "Python bool"),
    ("u[i, j]", "float64"),
    ("u[i, j] > 0", "bool"),
    ("i / 2", "Python float"),
):
    body(
        f"index {index}",
        f"u[i, j] = c[{index}]  # <-",
        f"index 1 of c[{index}] is {kind}",
        "An index is an integer",
        table,
        signature="u, c",
    )
for value in (1.0, True, np.True_):
    body(
        f"index argument {value!r}",
        "u[i, j] = c[k]  # <-",
        "index 1 of c[k]",
        "is not an integer",
        lambda value=value: (*table(), value),
        signature="u, c, k",
    )

# -- expressions -----------------------------------------------------------------------------------------------------

for expression in (
    "(s := u[i - 1, j])",
    "f'{i}'",
    "'a'",
    "b'a'",
    "None",
    "1j",
    "[1][0]",
    "(1, 2)",
    "{1: 2}[1]",
    "lambda: 1",
    "[k for k in range(3)]",
    "{i}",
    "u.shape[i]",
    "await_",
):
    words = (
        ("await_ is not known here", "Names are")
        if expression == "await_"
        else ("in the loops", "Expressions are made of")
    )
    body(f"expression {expression}", f"u[i, j] = {expression}  # <-", *words)
for expression in ("u[i, j] @ u[i, j]", "i << 2", "i >> 1"):
    body(f"operator {expression}", f"u[i, j] = {expression}  # <-", expression, "Supported operators are + -")
body("operator @=", "u[i, j] @= u[i, j]  # <-", "u[i, j] @= u[i, j]", "Supported operators are + -")
for test in ("i in (1, 2)", "i is j", "i not in (1, 2)", "u[i, j] is None"):
    body(f"test {test}", f"u[i, j] = 1.0 if {test} else 0.0  # <-", test, "Supported comparisons are")
for name, text in (("I", "u[I, j]"), ("alpah", "alpah * u[i, j]"), ("LATE", "LATE")):
    body(f"unknown {name}", f"u[i, j] = 1.0 + {text}  # <-", f"{name} is not known here", "Names are loop indices")
body("global text", "u[i, j] = S  # <-", "S is str", "Names are loop indices", heading="S = 'a'")
for attribute in ("np.pie", "u.foo", "u.ndim", "u.size", "u.dtype", "i.real"):
    body(
        f"attribute {attribute}",
        f"u[i, j] = {attribute}  # <-",
        f"{attribute} in the loops",
        "Constants such as math.pi",
    )
body(
    "temporary before it is set",
    "u[i, j] = s  # <-\ns = u[i - 1, j]",
    "s is used before it is assigned",
    "keep such values in an array",
)
body(
    "temporary added to before it is set",
    "s += 1.0  # <-\nu[i, j] = s",
    "s is used before it is assigned",
    "in an array",
)
body("and of numbers", "u[i, j] = u[i, j] and 1.0  # <-", "and of numbers", "Write a if condition else b")
body("minus of bools", "u[i, j] = (u[i, j] > 1) - (u[i - 1, j] > 1)  # <-", "- of bool and bool", "convert one of them")
body("minus of a bool", "u[i, j] = -(u[i, j] > 1)  # <-", "- of bool", "Apply it to a number")
body("inverted float", "u[i, j] = ~u[i, j]  # <-", "~ of float64", "Apply it to a number")
body("bits of a float", "u[i, j] = u[i, j] & 1  # <-", "& of float64 and Python int", "convert one of them")
body("abs of a bool", "u[i, j] = abs(u[i, j] > 1)  # <-", "abs of bool", "Apply it to a number")
body("great integer power", "u[i, j] = i ** 20  # <-", "an integer power", "a constant from 1 to 16")
body("integer power of an index", "u[i, j] = i ** j  # <-", "an integer power", "use floats otherwise")
body("integer too great", "u[i, j] = i * 9223372036854775807  # <-", "may exceed 64 bits", "Compute in float64")
body(
    "element too small",
    "u[i, j] = 300  # <-",
    "meets u[i, j] of dtype int8",
    "use a wider dtype",
    lambda: (grid_of(dtype=np.int8),),
)
body("number of 100 digits", f"u[i, j] = {HUNDRED_DIGITS}  # <-", f"the number {HUNDRED_DIGITS}", "at most 64 bits")
body(
    "float of two types",
    "u[i, j] = -max(0, u[i - 1, j])  # <-",
    "the type of a value depends on the values",
    "Write the constant in the other type",
    lambda: (grid_of(dtype=np.float32),),
)
for described, text in (
    ("sum", "0.0" + " + 0.5 * u[i - 1, j]" * 1000),
    ("minus signs", "-" * 900 + "u[i, j]"),
    ("conditions", "".join(f"{k}.0 if i == {k} else " for k in range(300)) + "1.0"),
):
    body(f"endless {described}", f"u[i, j] = {text}  # <-", "more than 200 levels", "scalar temporaries")
body(
    "endless sum before",
    "u[i, j] = a",
    "more than 200 levels",
    "scalar temporaries",
    before=f"a = 0{' + 1' * 1000}  # <-",
)
body(
    "endless index",
    f"u[i, j] = c[0{' + 0' * 1000}]  # <-",
    "more than 200 levels",
    "scalar temporaries",
    table,
    signature="u, c",
)

# -- calls -----------------------------------------------------------------------------------------------------------

for call, way_out in (
    ("np.exp(u[i, j])", "write math.exp"),
    ("np.arcsin(u[i, j])", "write math.asin"),
    ("np.fabs(u[i, j])", "write math.fabs"),
    ("np.where(u[i, j] > 1, 1.0, 0.0)", "Write a if condition else b"),
    ("np.minimum(u[i, j], 1.0)", "Write min(a, b)"),
    ("np.maximum(u[i, j], 1.0)", "Write max(a, b)"),
    ("np.clip(u[i, j], 0, 1)", "in a read-only array"),
    ("np.uint16(i)", "in a read-only array"),
    ("np.float16(u[i, j])", "in a read-only array"),
    ("math.hypot(u[i, j], 1.0)", "in a read-only array"),
    ("math.nope(u[i, j])", "Supported are min, max"),
    ("round(u[i, j])", "in a read-only array"),
    ("sum(u[i, k] for k in range(3))", "in a read-only array"),
    ("helper(u[i, j])", "in a read-only array"),
    ("squareroot(u[i, j])", "Supported are min, max"),
    ("u.sum()", "Supported are min, max"),
    ("u[i, j].sqrt()", "Supported are min, max"),
    ("(lambda x: x)(1.0)", "Supported are min"),
):
    body(f"call {call}", f"u[i, j] = {call}  # <-", "call of ", way_out, heading="def helper(x):\n    return x\n")
body("call with a keyword", "u[i, j] = max(u[i, j], 0.0, key=abs)  # <-", "key=abs", "plain positional arguments")
body("call with a star", "u[i, j] = max(*t)  # <-", "max(*t)", "plain positional arguments", signature="u, t=(1, 2)")
body("max of one", "u[i, j] = max(u[i, j])  # <-", "max(u[i, j])", "takes 2 arguments")
body("sqrt of two", "u[i, j] = math.sqrt(u[i, j], 2)  # <-", "math.sqrt(u[i, j], 2)", "takes 1 argument")
body("float of nothing", "u[i, j] = float()  # <-", "float()", "takes 1 argument")
body("call of an argument", "u[i, j] = min(u[i, j], 1.0)  # <-", "call of min", "Supported are", signature="u, min=3")
body("call over three lines", "u[i, j] = (\n    0.5 +\n    helper(u[i, j])  # <-\n)", "call of helper", "Supported are")

# -- arguments -------------------------------------------------------------------------------------------------------


def call(name: str, found: str, way_out: str, arguments: Callable[[], tuple[Any, ...]], **options: Any) -> None:
    refuse(name, GOOD.replace("def f(u):", "def f(u):  # <-"), found, way_out, arguments, **options)


def read_only() -> tuple[np.ndarray]:
    values = grid_of()
    values.flags.writeable = False
    return (values,)


class Tensor:
    """Stands for another library's array: a dtype that NumPy does not know."""

    dtype, shape = "tensor.float32", (5, 6)


class Frame:
    """Stands for another library's array with NumPy's dtype."""

    dtype, shape = np.dtype(float), (5, 6)


call("no argument", "missing a required argument: 'u'", "Expected f(u)", lambda: ())
call("two arguments", "too many positional arguments", "Expected f(u)", lambda: (grid_of(), 3))
call(
    "unknown keyword",
    "unexpected keyword argument 'sweps'",
    "Expected f(u)",
    lambda: (grid_of(),),
    keywords={"sweps": 3},
)
call("list", "argument u of f is list", "expected a NumPy array", lambda: ([[1.0] * 6] * 5,))
call("nothing", "argument u of f is NoneType", "expected a NumPy array", lambda: (None,))
call("no axes", "argument u of f is an array of shape ()", "with axes", lambda: (np.array(1.0),))
call("NumPy scalar", "argument u of f is float64", "with axes", lambda: (np.float64(1.0),))
call("one axis", "u.shape[1] cannot be computed", "u has shape (5,)", lambda: (grid_of(5),))
call(
    "masked array",
    "array u is a numpy.ma.MaskedArray",
    "numpy.asarray(u)",
    lambda: (np.ma.masked_array(grid_of(), True),),
)
call("tensor", "argument u of f is Tensor of tensor.float32", "numpy.asarray(u)", lambda: (Tensor(),))
call("data frame", "Frame, expected a NumPy array", "numpy.asarray(u)", lambda: (Frame(),))
call("foreign byte order", "foreign byte order (>f8)", "u.astype('float64')", lambda: (grid_of(dtype=">f8"),))
for dtype in (
    "complex128",
    "complex64",
    "float16",
    "longdouble",
    "object",
    "uint16",
    "uint32",
    "uint64",
    "datetime64[s]",
    "U1",
):
    call(
        f"dtype {dtype}",
        f"array u has dtype {np.dtype(dtype).name}",
        "u.astype(…)",
        lambda dtype=dtype: (grid_of().astype(int).astype(dtype),),
    )
call("structured", "array u has dtype void64", "u.astype(…)", lambda: (np.zeros((5, 6), [("a", float)]),))
call("read-only", "array u is written by f but is read-only", "Pass a writable array", read_only)
call(
    "broadcast",
    "array u is written by f but is read-only",
    "Pass a writable array",
    lambda: (np.broadcast_to(1.0, (5, 6)),),
)
call(
    "overlapping rows",
    "elements of array u overlap in memory",
    "u.copy()",
    lambda: (np.lib.stride_tricks.as_strided(grid_of(40), (5, 6), (8, 8)),),
)
refuse(
    "three axes",
    two_loops("u[i, j] = 0.5  # <-"),
    "u[i, j] has 2 indices but u has 3 axes",
    "Index every axis",
    lambda: (grid_of(5, 6, 7),),
)


def shared(of: Callable[[np.ndarray], Any]) -> Callable[[], tuple[Any, ...]]:
    def make() -> tuple[Any, ...]:
        values = grid_of(6, 6)
        return values[:5], of(values)

    return make


for described, of in (("same", lambda v: v), ("shifted", lambda v: v[1:]), ("reversed", lambda v: v[::-1])):
    body(
        f"shared memory, {described}",
        "u[i, j] = v[i, j]",
        "arrays u and v share memory, and u is written",
        "Pass v.copy()",
        shared(of),
        signature="u, v",
        def_line=True,
    )
body(
    "shared memory, a row",
    "u[i, j] = v[j]",
    "arrays u and v share memory",
    "Pass v.copy()",
    shared(lambda v: v[2]),
    signature="u, v",
    def_line=True,
)
body(
    "shared memory, both written",
    "u[i, j] = 1.0\nv[i, j] = 2.0",
    "arrays u and v share memory",
    "copy()",
    shared(lambda v: v),
    signature="u, v",
    def_line=True,
)
refuse(
    "shared memory, a global",
    "G = np.ones((5, 6))\n" + two_loops("u[i, j] = G[i - 1, j]", "u=G").replace("def f(u=G):", "def f(u=G):  # <-"),
    "arrays u and G share memory",
    "Pass G.copy()",
    lambda: (),
)
for value in (
    "x",
    None,
    1j,
    np.float16(1),
    np.uint64(1),
    np.array(1.0),
    fractions.Fraction(1, 2),
    decimal.Decimal(1),
    (1, 2),
):
    described = "an array of shape ()" if isinstance(value, np.ndarray) else type(value).__name__
    body(
        f"scalar {value!r}",
        "u[i, j] = a",
        f"a is {described}",
        "expected a number",
        lambda value=value: (grid_of(), value),
        signature="u, a",
        def_line=True,
    )
body(
    "scalar of 100 digits",
    "u[i, j] = a  # <-",
    "a = 1000",
    "at most 64 bits",
    lambda: (grid_of(), 10**100),
    signature="u, a",
)

# -- plans -----------------------------------------------------------------------------------------------------------


def plan(name: str, found: str, way_out: str, ranks: Any = 1, **using: Any) -> None:
    refuse(f"plan: {name}", GOOD, found, way_out, nowhere=True, ranks=ranks, using=using)


plan("engine", "engine 'turbo'", "blocking, overlap", engine="turbo")
plan("engine without a name", "engine ''", "blocking, overlap", engine="")
for tile in (0, -1, 1.5, "8", True):
    plan(f"tile {tile!r}", f"tile {tile!r}", "a whole number of at least 1", tile=tile)
for ranks in (0, -1, 2.0, "2", None):
    plan(f"ranks {ranks!r}", f"{ranks!r} ranks", "a whole number of at least 1", ranks)
for grid in (2, "2x1", (1.0,), (0,), (-1, -1), (None, 1)):
    plan(f"grid {grid!r}", f"grid {grid!r}", "whole numbers of at least 1", grid=grid)
plan("grid too long", "grid 1x2x3 has 3 entries", "or 2 (i, j)", 6, grid=(1, 2, 3))
plan("grid for other ranks", "grid 3 is for 3 ranks, but there are 2", "multiply to 2", 2, grid=(3,))
plan("grid with empty blocks", "grid 4x1 cuts loop i in 4, but it has 3 rows", "at least one", 4, grid=(4, 1))
plan(
    "grid for too many ranks",
    "grid 2 is for 2 ranks, but there are 7",
    "multiply to 7, or to 6, which is",
    7,
    grid=(2,),
)

# -- dependences -----------------------------------------------------------------------------------------------------

body(
    "flow backwards",
    "u[i, j] = u[i-1, j+1]  # <-\nu[i, j-1] = 0.5",
    "flow dependence [1, -2] from u[i, j-1] to u[i-1, j+1]",
    "Reverse loop j",
)
body(
    "anti backwards",
    "u[i, j] = u[i+1, j-1]  # <-\nu[i, j-1] = 0.5",
    "anti dependence [1, -1] from u[i+1, j-1] to u[i, j]",
    "Reverse loop j",
)
body("output backwards", "u[i, j] = 1.0  # <-\nu[i+1, j-1] = 2.0", "output dependence [1, -1]", "write u at one offset")
refuse(
    "flow backwards, descending",
    """
    @lw.nest
    def f(u):
        for i in range(1, 5):
            for j in range(4, 0, -1):
                u[i, j] = u[i-1, j-1]  # <-
                u[i, j-1] = 0.5
    """,
    "flow dependence [1, -1]",
    "Reverse loop j",
)
refuse(
    "two write offsets in a triangle",
    """
    @lw.nest
    def f(u):
        for i in range(1, 4):
            for j in range(i, 5):
                u[i, j] = 1.0
                u[i + 1, j + 1] = 2.0  # <-
    """,
    "u is written at several offsets",
    "Write the array at one offset",
)


# -- numbers beyond 64 bits where isl computes bounds ------------------------------------------------------------------

for described, bound, index in (("bound", "k", "0"), ("index", "6", "i + k")):
    refuse(
        f"{described} of 31 digits in a triangle",
        f"""
        @lw.nest
        def f(u, c, k):
            for i in range(1, 5):
                for j in range(i, {bound}):
                    u[i, j] = c[{index}]  # <-
        """,
        f"reaches {10**30 - 1 if described == 'bound' else 10**30 + 4}",
        "Shorten the loop's range or enlarge the array",
        lambda: (*table(), 10**30),
    )
body(
    "condition of 70 bits",
    "u[i, j] = c[i] if i + k < 3 else 0.0  # <-",
    f"k = {2**70}",
    "at most 64 bits",
    lambda: (*table(), 2**70),
    signature="u, c, k",
)


# -- the tests -------------------------------------------------------------------------------------------------------


def load(source: str, path: Path) -> ModuleType:
    path.write_text(HEADING + source, encoding="utf-8")
    linecache.checkcache(str(path))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def define_and_use(case: Refusal, path: Path, arguments: tuple[Any, ...]) -> None:
    nest = load(case.source, path).f.using(**case.options.get("using", {}))
    if "ranks" in case.options:
        nest.plan(*arguments, ranks=case.options["ranks"])
    nest(*arguments, **case.options.get("keywords", {}))


def copies(arguments: tuple[Any, ...]) -> list[bytes]:
    return [a.tobytes() for a in arguments if isinstance(a, np.ndarray) and not a.dtype.hasobject]


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Messages show paths below the current folder without it; keep the files of the tests outside."""
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))


@pytest.mark.parametrize("case", REFUSALS, ids=[case.name for case in REFUSALS])
def test_refused_with_place_finding_and_way_out(case: Refusal, tmp_path: Path) -> None:
    path = tmp_path / "their.py"
    arguments = case.arguments()
    before = copies(arguments)
    options = case.options
    with pytest.raises(lw.RefusedError) as refusal:
        define_and_use(case, path, arguments)
    message = str(refusal.value)
    if not options.get("nowhere"):
        lines = (HEADING + case.source).splitlines()
        mark = "def f(" if options.get("def_line") else "# <-"
        marked = next(number for number, line in enumerate(lines, 1) if mark in line)
        assert message.startswith(f"{path}:{marked}: "), message
    assert case.found in message
    assert case.way_out in message[message.index(case.found) + len(case.found) :]
    assert "\n" not in message
    assert copies(arguments) == before


def test_names_in_the_table_differ() -> None:
    names = [case.name for case in REFUSALS]
    assert len(set(names)) == len(names)


def test_paths_are_relative_below_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(lw.RefusedError, match=re.escape("their.py:10: no for loop")):
        load("@lw.nest\ndef f(u):\n    pass\n", tmp_path / "their.py")


def test_typed_at_a_prompt() -> None:
    typed = "import lapwing as lw\n@lw.nest\ndef f(u):\n    for i in range(5):\n        u[i] = 1.0\n\n"
    done = subprocess.run([sys.executable, "-i"], input=typed, capture_output=True, text=True, timeout=120, check=False)
    assert "RefusedError: " in done.stderr
    assert "the source of f cannot be read" in done.stderr
    assert "Define the function in a file or a notebook cell" in done.stderr


# -- what looks odd and works ----------------------------------------------------------------------------------------

C_WORDS = [
    "int", "double", "register", "tile", "box", "INFINITY", "lw_tile", "trap", "NULL", "main", "INT64_MAX",
    "INT64_C", "int64_t", "signbit", "LW_INLINE", "array", "dense", "full", "x0", "elements", "block",
    "lanes", "step", "lane", "isnan", "sqrtf", "u_s0", "minus_i", "out", "HUGE_VAL", "FP_NAN", "UINT8_MAX",
    "f_point", "_", "__", "unix",
]  # fmt: skip
ODD = {
    "a docstring in a loop": two_loops('"""What it does."""\nu[i, j] = 0.5 * u[i-1, j]'),
    "two statements on a line": two_loops("a = 0.5; u[i, j] = a * u[i-1, j]"),
    "an annotated temporary": two_loops("a: float = 0.5\nu[i, j] = a * u[i-1, j]"),
    "a continued line": two_loops("u[i, j] = 0.5 + \\\n    u[i-1, j]"),
    "the end of a C comment": two_loops("u[i, j] = 0.5 * u[i-1, j]  # */"),
    "a temporary called min": two_loops("min = 0.5 * u[i-1, j]\nu[i, j] = max(min, 0.5)"),
    "unicode names": two_loops("γ = 0.5 * u[i-1, j]\nδ = γ + 1.0\nu[i, j] = δ + λ", "u, λ=0.5"),
    "a very long name": two_loops(f"{'a' * 1000} = 0.5 * u[i-1, j]\nu[i, j] = {'a' * 1000}"),
    "a sum of 190 terms": two_loops("u[i, j] = 0.0" + " + 0.5 * u[i-1, j]" * 190),
    "190 calls in each other": two_loops("u[i, j] = " + "max(" * 190 + "u[i-1, j]" + ", 0.5)" * 190),
    "an empty range": two_loops("u[i, j] = u[i+100, j]").replace("range(1, u.shape[1] - 1)", "range(3, 1)"),
    "from the end of a table": two_loops("u[i, j] = T[-1] + u[i-1, j]", heading="T = np.arange(5.0)"),
    "positional and keyword only": two_loops("u[i, j] = a * u[i-1, j]", "u, /, *, a=0.5"),
    "a constant of a module": two_loops("u[i, j] = max(np.pi * u[i-1, j], -math.inf)"),
    "an argument with a default array": two_loops("u[i, j] = a[i] * u[i-1, j]", "u, a=np.arange(5.0)"),
    "a closure": "def make(k):\n"
    + textwrap.indent(two_loops("u[i, j] = k * u[i-1, j]"), "    ")
    + "    return f\nf = make(0.5)\n",
}


@pytest.mark.parametrize("name", ODD)
def test_odd_but_fine(name: str, tmp_path: Path) -> None:
    compare_with_plain_loop(ODD[name], tmp_path)


def test_names_that_mean_something_in_c(tmp_path: Path) -> None:
    """One nest for each way a word is used; the words of one nest take each other's names as well."""
    odd, even = C_WORDS[::2], C_WORDS[1::2]
    terms = " + ".join(f"0.01 * {word}" for word in even)
    assignments = "\n".join(f"{word} = u[i, j-1] + {k}" for k, word in enumerate(odd))
    compare_with_plain_loop(
        two_loops(f"{assignments}\nu[i, j] = {terms} + {' + '.join(odd)}", "u, " + ", ".join(f"{w}=0.5" for w in even)),
        tmp_path,
    )
    reductions = "\n".join(f"{word} = max({word}, u[i, j] + {k})" for k, word in enumerate(C_WORDS))
    compare_with_plain_loop(
        two_loops(
            f"u[i, j] = 0.5 * u[i, j-1]\n{reductions}",
            before="\n".join(f"{word} = 0.0" for word in C_WORDS),
            after=f"return {', '.join(C_WORDS)}",
        ),
        tmp_path,
    )


@pytest.mark.parametrize("words", [C_WORDS[k::3] for k in range(3)], ids=["first", "second", "third"])
def test_arrays_indices_and_functions_with_names_of_c(words: list[str], tmp_path: Path) -> None:
    for word, index in zip(words, [*words[1:], words[0]], strict=True):
        source = two_loops("u[i, j] = 0.5 * u[i, j-1] + i").replace("range(1, u.shape[0] - 1)", "range(3, 0, -1)")
        swapped = re.sub(r"\bu\b", word, re.sub(r"\bi\b", index, source))
        compare_with_plain_loop(re.sub(r"\bf\b", word, swapped) + f"f = {word}\n", tmp_path)


def compare_with_plain_loop(source: str, tmp_path: Path) -> None:
    # A file each: Python remembers the lines of a file by its size and time.
    nest = load(source, tmp_path / f"their_{len(list(tmp_path.iterdir()))}.py").f
    found, expected = grid_of(), grid_of()
    assert nest(found) == nest.python(expected)
    assert found.tobytes() == expected.tobytes()


def test_the_sign_of_a_zero_is_not_remembered_from_another_call(tmp_path: Path) -> None:
    nest = load(two_loops("u[i, j] = a", "u, a"), tmp_path / "their.py").f
    for value in (0.0, -0.0, 0, np.float32(0.0), np.float32(-0.0)):
        found, expected = grid_of(), grid_of()
        nest(found, value)
        nest.python(expected, value)
        assert found.tobytes() == expected.tobytes()
