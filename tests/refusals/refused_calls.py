"""Refused: calls of functions, and calls of nests with wrong arguments."""

from __future__ import annotations

import decimal
import fractions
from collections.abc import Callable
from typing import Any

import numpy as np
from refusal_cases import GOOD, body, grid_of, refuse, two_loops

# -- calls -------------------------------------------------------------------------------------------------------------

for call, way_out in (
    ("np.round(u[i, j])", "Write numpy.rint(x)"),
    ("np.uint64(i)", "Write numpy.int64(x)"),
    ("np.float16(u[i, j])", "Write numpy.float32(x)"),
    ("math.hypot(u[i, j], 1.0)", "Write numpy.hypot(x, y)"),
    ("math.nope(u[i, j])", "Supported are min, max"),
    ("sum(u[i, k] for k in range(j))", "Write its terms out"),
    ("helper(u[i, j])", "in a read-only array"),
    ("squareroot(u[i, j])", "Supported are min, max"),
    ("u.sum()", "Supported are min, max"),
    ("u[i, j].sqrt()", "Supported are min, max"),
    ("(lambda x: x)(1.0)", "Supported are min"),
):
    body(
        f"call {call}",
        f"u[i, j] = {call}  # <-",
        "call of ",
        way_out,
        heading="def helper(x):\n    print(x)\n    return x\n",
    )
body("call with a keyword", "u[i, j] = max(u[i, j], 0.0, key=abs)  # <-", "key=abs", "plain positional arguments")
body("call with a star", "u[i, j] = max(*t)  # <-", "max(*t)", "plain positional arguments", signature="u, t=(1, 2)")
body(
    "where changed in place",
    "a = np.where(u[i, j] > 1, u[i, j], 1)\na += 1  # <-\nu[i, j] = a",
    "numpy.where gives, an array",
    "Write a = a + x",
)
body("max of one", "u[i, j] = max(u[i, j])  # <-", "max(u[i, j])", "takes 2 arguments")
body("sqrt of two", "u[i, j] = math.sqrt(u[i, j], 2)  # <-", "math.sqrt(u[i, j], 2)", "takes 1 argument")
body("float of nothing", "u[i, j] = float()  # <-", "float()", "takes 1 argument")
body(
    "call of an argument",
    "u[i, j] = min(u[i, j], 1.0)  # <-",
    "call of min",
    "call that something else",
    signature="u, min=3",
)
body("call over three lines", "u[i, j] = (\n    0.5 +\n    helper(u[i, j])  # <-\n)", "call of helper", "Supported are")

# -- arguments ---------------------------------------------------------------------------------------------------------


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
call("string", "argument u of f is str", "numpy.array(list(u)).view('int32')", lambda: ("abc",))
call("bytes", "argument u of f is bytes", "numpy.frombuffer(u, 'uint8')", lambda: (b"abc",))
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
for dtype, way_out in (
    ("clongdouble", "u.astype('complex128')"),
    ("float16", "u.astype('float32')"),
    ("longdouble", "u.astype('float64')"),
    ("object", "u.astype('float64')"),
    ("uint64", "u.astype('int64')"),
    ("datetime64[s]", "u.view('int64')"),
    ("U1", "u.view('int32')"),
):
    call(
        f"dtype {dtype}",
        f"array u has dtype {np.dtype(dtype).name}",
        way_out,
        lambda dtype=dtype: (grid_of().astype(int).astype(dtype),),
    )
call("structured", "array u has dtype void64", "u['a'].copy()", lambda: (np.zeros((5, 6), [("a", float)]),))
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
    np.clongdouble(1),
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
