"""Refused: statements in and around the loops, and reductions."""

from __future__ import annotations

import numpy as np
from refusal_cases import body, grid_of, refuse, two_loops

# -- statements --------------------------------------------------------------------------------------------------------

body("try", "try:  # <-\n    u[i, j] = 1.0\nexcept ValueError:\n    pass", "try: …", "The body holds")
body("with", "with np.errstate():  # <-\n    u[i, j] = 1.0", "with np.errstate(): …", "The body holds")
for statement in (
    "del u",
    "print(u[i, j])",
    "yield u",
    "global G",
    "import math",
):
    body(f"statement {statement}", f"u[i, j] = 1.0\n{statement}  # <-", f"{statement} in the loops", "The body holds")
for statement in ("raise ValueError", "assert u[i, j] > 0"):
    body(
        f"statement {statement}",
        f"u[i, j] = 1.0\n{statement}  # <-",
        f"{statement} in the loops",
        "keep what shows that something is wrong in a reduction",
    )
refuse(
    "break out of the nest",
    """
    @lw.nest
    def f(u):
        for i in range(u.shape[0]):
            if u[i] > 6:
                break  # <-
            u[i] = 1.0
    """,
    "break in the loops",
    "put what is not always done under an if",
    lambda: (grid_of(9),),
)
refuse(
    "string as the body",
    two_loops('"""nothing"""').replace("def f(u):", "def f(u):  # <-"),
    "the loops write no array and reduce nothing",
    "assigns array elements",
)
body("tuple of a call", "a, b = divmod(i, 2)  # <-\nu[i, j] = a + b", "a, b = divmod(i, 2)", "2 targets take 2 values")
body(
    "three values for two", "a, b = 1.0, 2.0, 3.0  # <-\nu[i, j] = a", "a, b = 1.0, 2.0, 3.0", "2 targets take 2 values"
)
body("starred assignment", "a, *b = 1.0, 2.0  # <-\nu[i, j] = a", "a, *b = 1.0, 2.0", "one assignment for each")
body(
    "reduction assigned twice",
    "s = s = s + u[i, j]  # <-",
    "s = s = s + u[i, j] assigns to s twice",
    "on a line of its own",
    before="s = 0.0",
    after="return s",
)
body("index assigned", "i = 3  # <-\nu[i, j] = 1.0", "i is assigned in the loops", "keep their value")
body("shape assigned", "u.shape[0] = 3  # <-", "u.shape[0]", "Index an array by its name")
body("attribute assigned", "u.x = 3  # <-", "assignment to u.x", "an array element or to a name")

# -- behind the loops --------------------------------------------------------------------------------------------------

for target in ("n", "u[0]", "v"):
    body(
        f"del {target} behind the loops",
        "u[i, j] = 1.0",
        f"del {target} after the loops",
        "arrays of the loops whose elements nobody reads afterwards",
        signature="u, v=None",
        before="n = 3",
        after=f"del {target}  # <-",
    )

# -- before the loops --------------------------------------------------------------------------------------------------

body(
    "before: unknown array",
    "u[i, j] = n",
    "V is not known to f",
    "Pass V as an argument",
    before="n = V.shape[0]",
    def_line=True,
)
body(
    "before: nested function",
    "u[i, j] = g(u[i, j])  # <-",
    "call of g",
    "write out what it computes",
    before="def g(x):\n    return x",
)
for expression in ("'x'", "foo + 1", "None", "[1, 2]", "f(u)", "open('x')"):
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
for expression, found, way_out in (
    ("u", "arrays u and v share memory", "Pass v.copy()"),
    ("(1, 2.0)", "argument v of f_1 is tuple", "numpy.array(v"),
):
    body(
        f"an array made before: {expression}",
        "u[i, j] = v[i, j]",
        found,
        way_out,
        before=f"v = {expression}",
        loop_line=True,
    )
for expression, found in (("u.copy()", "a is an array of shape (5, 6)"), ("u.T.shape", "a is tuple")):
    body(
        f"before: {expression}",
        "u[i, j] = a",
        found,
        "Convert it",
        before=f"a = {expression}",
        loop_line=True,
    )

# -- reductions and return ---------------------------------------------------------------------------------------------

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
