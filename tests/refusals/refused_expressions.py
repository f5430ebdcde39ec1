"""Refused: array accesses and expressions."""

from __future__ import annotations

import numpy as np
from refusal_cases import HUNDRED_DIGITS, body, grid_of, refuse, table

# -- array accesses ----------------------------------------------------------------------------------------------------

for access in ("u[2*j, i]", "u[j, i]"):
    body(
        f"read {access}",
        f"u[i, j] = {access}  # <-",
        f"{access} is not a uniform access: index",
        "read-only array",
        lambda: (grid_of(6, 6), 1, np.arange(6)),
        signature="u, n, t",
    )
for access in ("u[2*i]", "u[0]", "u[-1]", "u[-i]", "u[n]", "u[u.shape[0]-i]", "u[t[i]]", "u[i//2]", "u[i + 0.5]"):
    refuse(
        f"read {access}",
        f"""
        @lw.nest
        def f(u, n, t):
            for i in range(1, u.shape[0] // 2):
                u[i] = {access}  # <-
        """,
        f"{access} is not a uniform access: index",
        "read-only array",
        lambda: (grid_of(9), 1, np.arange(9)),
    )
for access, way_out in (
    ("u[2*i]", "keep the others: u[i, j] = x if condition"),
    ("u[t[i]]", "make loop i the outermost"),
    ("u[0]", "make loop i the outermost"),
):
    refuse(
        f"write {access}",
        f"""
        @lw.nest
        def f(u, n, t):
            for i in range(1, u.shape[0] // 2):
                {access} = 1.0  # <-
        """,
        access,
        way_out,
        lambda: (grid_of(9), 1, np.arange(9)),
    )
body("index is a float", "u[i, j] = u[i, u[i, j]]  # <-", "index 2 of u[i, u[i, j]] is float64", "write int(x)")
body("index is half", "u[i, j] = u[i + 0.5, j]  # <-", "index 1 of u[i + 0.5, j] is Python float", "write int(x)")
body("every second", "u[i, j] = u[i, 2*j]  # <-", "u[i, 2*j]: index 2 reaches 8", "Shorten the loop's range")
body("every second row", "u[i, j] = u[2*i][j]  # <-", "u[2*i][j]: index 1 reaches 6", "Shorten the loop's range")
for access in ("u[i, :]", "u[i, ...]", "u[i, None]", "u[1:, j]", "u[*p]"):
    body(
        f"slice {access}",
        f"u[i, j] = {access}  # <-",
        f"{access} takes a slice",
        "one index per axis",
        signature="u, p=1",
    )
body("slice written", "u[i, :] = 1.0  # <-", "u[i, :] takes a slice", "one index per axis")
body("index after a call", "u[i, j] = u.copy()[i][j]  # <-", "u.copy()[i][j]", "Index an array by its name: u[i, j]")
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
body("dict indexed", "u[i, j] = S[j]  # <-", "S is indexed", "Only array arguments", heading="S = {0: 1, 1: 2}")
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

# -- expressions -------------------------------------------------------------------------------------------------------

for expression in (
    "f'{i}'",
    "'a'",
    "b'a'",
    "None",
    "[1][0]",
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
body("expression (1,)", "u[i, j] = (1,)  # <-", "u[i, j, 0] has 3 indices but u has 2 axes", "Index every axis")
for expression in ("u[i, j] @ u[i, j]", "i << 2", "i >> 1"):
    body(f"operator {expression}", f"u[i, j] = {expression}  # <-", expression, "Supported operators are + -")
body("operator @=", "u[i, j] @= u[i, j]  # <-", "u[i, j] @= u[i, j]", "Supported operators are + -")
for test in ("i in (1, 2)", "i is j", "i not in (1, 2)", "u[i, j] is None"):
    body(f"test {test}", f"u[i, j] = 1.0 if {test} else 0.0  # <-", test, "Supported comparisons are")
for name, text in (("I", "u[I, j]"), ("alpah", "alpah * u[i, j]"), ("LATE", "LATE")):
    body(f"unknown {name}", f"u[i, j] = 1.0 + {text}  # <-", f"{name} is not known here", "Names are loop indices")
body("global text", "u[i, j] = S  # <-", "S is str", "Names are loop indices", heading="S = 'a'")
for attribute in ("np.pie", "u.foo", "u.ndim", "u.size", "u.dtype"):
    body(
        f"attribute {attribute}",
        f"u[i, j] = {attribute}  # <-",
        f"{attribute} in the loops",
        "Attributes are constants such as math.pi",
    )
# -- complex numbers ---------------------------------------------------------------------------------------------------

for name, statement, found, way_out in (
    ("stored", "r[i, j] = u[i, j]", "a complex number where one of dtype float64 is expected", "as z.real"),
    ("order", "r[i, j] = 1.0 if u[i, j] > 0 else 2.0", "> of complex numbers", "compare z.real, z.imag or abs(z)"),
    ("extremum", "u[i, j] = max(u[i, j], u[i - 1, j])", "> of complex numbers", "They have no order"),
    ("numpy extremum", "u[i, j] = np.maximum(u[i, j], 1j)", "numpy.maximum of complex numbers", "abs(z)"),
    ("floor", "u[i, j] = u[i, j] // 2", "// of complex numbers", "z.real"),
    ("float", "r[i, j] = float(u[i, j])", "float of a complex number", "as z.real"),
    ("math", "u[i, j] = math.exp(u[i, j])", "math.exp of a complex number", "NumPy's function of that name"),
    ("cast", "r[i, j] = np.float32(u[i, j])", "numpy.float32 of a complex number", "as z.real"),
    ("real function", "u[i, j] = np.cbrt(u[i, j])", "numpy.cbrt of complex128", "as z.real"),
    ("power", "u[i, j] = complex(r[i, j]) ** 0.5", "a power of Python's complex numbers", "numpy.complex128(z) ** x"),
    ("both parts", "u[i, j] = complex(u[i, j], 1.0)", "complex(x, y) of a complex number", "x + 1j * y"),
    ("conj", "u[i, j] = (2j * i).conj()", ".conj() of Python complex", "z.conjugate()"),
    ("imag", "r[i, j] = r[i, j].imag", ".imag of float64", "0.0 for x.imag"),
    (
        "types",
        "u[i, j] = -(u[i, j] if i > 1 else 0.5)",
        "it is Python float or complex128",
        "numpy.complex128(0) or 0j",
    ),
    ("conjugate", "u[i, j] = u[i, j].conjugate(1)", "u[i, j].conjugate(1)", "takes no arguments"),
):
    body(
        f"complex {name}",
        f"{statement}  # <-",
        found,
        way_out,
        lambda: (grid_of(dtype=complex), grid_of()),
        signature="u, r",
    )
body(
    "complex reduction",
    "best = max(best, u[i, j])  # <-",
    "a reduction with max of complex numbers",
    "compare z.real",
    lambda: (grid_of(dtype=complex),),
    before="best = 0.0",
    after="return best",
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
body("minus of a bool", "u[i, j] = -(u[i, j] > 1)  # <-", "- of bool", "Apply it to an int: write int(x)")
body("inverted float", "u[i, j] = ~u[i, j]  # <-", "~ of float64", "write int(x)")
body("bits of a float", "u[i, j] = u[i, j] & 1  # <-", "& of float64 and Python int", "write int(x)")
body("abs of a bool", "u[i, j] = abs(u[i, j] > 1)  # <-", "abs of bool", "Apply it to a number")
body("great integer power", "u[i, j] = i ** 20  # <-", "an integer power", "a constant from 1 to 16")
body("integer power of an index", "u[i, j] = i ** j  # <-", "an integer power", "write float(x)")
body(
    "power of two types",
    "u[i, j] = max(0.0, u[i, j]) ** -1  # <-",
    "** is between Python numbers or NumPy numbers depending on the values",
    "numpy.float64",
)
body("integer too great", "u[i, j] = 1 << (i + 70)  # <-", "may exceed 64 bits", "Compute in floats")
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
body(
    "complement of a bool or a number",
    "u[i, j] = ~min(u[i - 1, j], v[i, j])  # <-",
    "the type of a value depends on the values",
    "Write the constant in the other type",
    lambda: (grid_of(dtype=np.uint8), grid_of(dtype=bool)),
    signature="u, v",
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
