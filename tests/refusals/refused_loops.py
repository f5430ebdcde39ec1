"""Refused: what is not a function with loops, and loops."""

from __future__ import annotations

import numpy as np
from refusal_cases import GOOD, body, grid_of, loops, refuse

# -- not a function with loops -----------------------------------------------------------------------------------------

refuse(
    "while loop",
    """
    @lw.nest
    def f(u):
        i = 0
        while i < 3:  # <-
            u[i, 0] = 1.0
    """,
    "while i < 3: … before any for loop",
    "loops are for i in range(…)",
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
        return f
        k = 2.0
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

# -- loops -------------------------------------------------------------------------------------------------------------

loops("step 2", "i in range(0, 5, 2)", "loop step 2", "Steps are 1 or -1")
loops("step 0", "i in range(0, 5, 0)", "loop step 0", "Steps are 1 or -1")
loops("step is an argument", "i in range(0, 5, s)", "loop step s", "written as a number", sig="u, s=1")
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
loops("reversed", "i in reversed(range(5))", "loop over reversed(range(5))", "downwards over range(n - 1, -1, -1)")
loops("numpy.arange", "i in np.arange(5)", "loop over np.arange(5)", "range(stop)")
refuse(
    "an argument called range",
    """
    @lw.nest
    def f(u, range=range):
        for i in range(5):  # <-
            u[i] = 1.0
    """,
    "loop over range(5)",
    "give the argument range another name",
)
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
    "array beside a loop",
    """
    @lw.nest
    def f(u, v, n=3):
        for t in range(n):
            for i in range(1, u.shape[0] - 1):
                v[i] = 0.5 * (u[i - 1] + u[i + 1])
            u, v = v, u  # <-
    """,
    "u, v are assigned in the loops: u, v = v, u",
    "call a nest of the inner ones from it",
    lambda: (grid_of(9), grid_of(9)),
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
    "nine axes",
    "@lw.nest\ndef f(u):  # <-\n"
    + "".join("    " * (k + 1) + f"for i{k} in range(2):\n" for k in range(9))
    + "    " * 10
    + "u["
    + ", ".join(f"i{k}" for k in range(9))
    + "] = 1.0\n",
    "array u has 9 axes",
    "At most 8 are supported",
    lambda: (np.zeros((2,) * 9),),
)

# -- around the loops --------------------------------------------------------------------------------------------------

refuse(
    "value of the last iteration",
    """
    @lw.nest
    def f(u):
        for i in range(5):  # <-
            for j in range(6):
                u[i, j] = 1.0
        return j
    """,
    "leaves j with the value of the last iteration, which is read after it",
    "best = max(best, x) inside; keep any other value in an array",
)
refuse(
    "global in the loops",
    """
    G = 0.0

    @lw.nest
    def f(u):
        global G
        for i in range(5):  # <-
            for j in range(6):
                G = u[i, j]
                u[i, j] = 2.0 * G
    """,
    "assigns G, which is declared global or nonlocal",
    "Use a variable of the function in the loops",
)
refuse(
    "second nest refused",
    """
    @lw.nest
    def f(u):
        for i in range(5):
            for j in range(6):
                u[i, j] = 1.0
        for i in range(5):
            for j in range(6):
                u[i, j] = np.exp(u[i, j])  # <-
    """,
    "call of np.exp",
    "write math.exp",
)
refuse(
    "rows of a matrix",
    """
    @lw.nest
    def f(u):
        for i in range(5):
            for j in range(1, 6):
                u[i, j] = u[i, j - 1]
            for j in range(4, -1, -1):  # <-
                u[i, j] = u[i, j + 1]
    """,
    "stands beside an inner loop",
    "a nest of its own",
)
