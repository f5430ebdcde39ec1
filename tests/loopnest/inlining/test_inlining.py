"""Calls of helpers in loops become what the helpers compute."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.loopnest.source import FunctionSource

pytestmark = pytest.mark.usefixtures("little_optimised")

SCALE = 0.5
FAR = math.inf


def flux(u):
    return SCALE * u * u


def sign(x):
    if x > 0:
        return 1.0
    elif x < 0:
        return -1.0
    return 0.0


def limited(v, i, most=1.0):
    """With a local variable, and a default."""
    d = v[i] - v[i - 1]
    if d > most:
        return most
    d += flux(d)
    return d


def neighbours(v, i):
    total = 0.0
    for k in range(-1, 2):
        total += v[i + k]
    return total


def wrapped(i, n):
    return (i + 1) % n


def both(a, b):
    if a > b:
        return a, b
    return b, a


def deep(x):
    return sign(flux(x) - 1.0)


def loops_of(function: Callable[..., Any]) -> list[str]:
    """The statements of a function, but for its docstring, with helpers inlined."""
    return [ast.unparse(statement) for statement in FunctionSource.of(function).tree.body]


def check(function: Callable[..., Any], *arguments: Any) -> None:
    """The nest does what the function does, to the bit."""
    mine, theirs = ([a.copy() if isinstance(a, np.ndarray) else a for a in arguments] for _ in range(2))
    got, expected = lw.nest(function)(*mine), function(*theirs)
    assert np.array_equal(got, expected) if expected is not None else got is None
    assert type(got) is type(expected)
    for a, b in zip(mine, theirs, strict=True):
        assert np.array_equal(a, b, equal_nan=isinstance(a, np.ndarray))


def values(n: int = 12) -> np.ndarray:
    return np.random.default_rng(n).standard_normal(n)


# -- before and after --------------------------------------------------------------------------------------------------


def test_an_expression_in_place() -> None:
    def f(u, v, n):
        for i in range(1, n):
            v[i] = flux(u[i]) - flux(u[i - 1])

    assert loops_of(f) == ["for i in range(1, n):\n    v[i] = 0.5 * u[i] * u[i] - 0.5 * u[i - 1] * u[i - 1]"]
    check(f, values(), values(), 12)


def test_early_returns_and_local_variables() -> None:
    def f(u, v, n):
        for i in range(1, n):
            v[i] += limited(u, i)

    assert loops_of(f) == [
        "for i in range(1, n):\n"
        "    limited_d = u[i] - u[i - 1]\n"
        "    if limited_d > 1.0:\n"
        "        limited_result = 1.0\n"
        "    else:\n"
        "        limited_d += 0.5 * limited_d * limited_d\n"
        "        limited_result = limited_d\n"
        "    v[i] += limited_result"
    ]
    check(f, values(), values(), 12)


def test_an_index_stays_one() -> None:
    def f(u, v, n):
        for i in range(n):
            v[i] = u[wrapped(i + 1, n)]

    assert loops_of(f) == ["for i in range(n):\n    v[i] = u[(i + 1 + 1) % n]"]
    check(f, values(), values(), 12)


def test_arguments_are_computed_once() -> None:
    def f(u, v, n):
        for i in range(n):
            v[i] = sign(u[i] * 3.0 - 1.0)

    assert loops_of(f)[0].count("u[i]") == 1
    check(f, values(), values(), 12)


def test_keywords_and_defaults() -> None:
    def f(u, v, n):
        for i in range(1, n):
            v[i] = limited(most=0.25, i=i, v=u) + limited(u, i - 0, 0.5)

    check(f, values(), values(), 12)


def test_helpers_of_helpers() -> None:
    def f(u, v, n):
        for i in range(n):
            v[i] = deep(u[i]) + sign(sign(u[i]) * u[i])

    assert "(" not in loops_of(f)[0].replace("range(n)", "").replace("u[i]", "").replace(" ", "")
    check(f, values(), values(), 12)


def test_tuples() -> None:
    def f(u, v, n):
        for i in range(1, n):
            high, low = both(u[i], u[i - 1])
            v[i] = high - 2 * low

    check(f, values(), values(), 12)


def test_a_helper_with_a_loop() -> None:
    def f(u, v, n):
        for i in range(1, n - 1):
            v[i] = neighbours(u, i) / 3

    check(f, values(), values(), 12)


def test_rows_of_a_matrix() -> None:
    def f(u, v, n):
        for i in range(n):
            for j in range(1, n):
                v[i, j] = limited(u[i], j)

    check(f, values(36).reshape(6, 6), values(36).reshape(6, 6), 6)


def test_a_nest_as_a_helper() -> None:
    halved = lw.nest(flux)

    def f(u, v, n):
        for i in range(n):
            v[i] = halved(u[i])

    u, v = values(), values()
    lw.nest(f)(u, v, 12)
    assert np.array_equal(v, [flux(x) for x in u])


def test_in_bounds_conditions_and_reductions() -> None:
    def f(u, n):
        best = -1.0
        for i in range(n):
            if flux(u[i]) > best:
                best = flux(u[i])
        return best

    check(f, values(), 12)


# -- conditions --------------------------------------------------------------------------------------------------------


def test_only_where_the_condition_holds() -> None:
    def f(u, v, n):
        for i in range(n):
            v[i] = limited(u, i) if i > 0 else 0.0

    assert loops_of(f)[0].startswith("for i in range(n):\n    if i > 0:\n        limited_d = u[i] - u[i - 1]")
    check(f, values(), values(), 12)


def test_short_circuit() -> None:
    def f(u, v, n):
        for i in range(n):
            if i > 0 and limited(u, i) > 0.0 and sign(u[i]) > 0:
                v[i] = 1.0
            elif i == 0 or sign(u[i - 1] * 2) < 0:
                v[i] = 2.0

    check(f, values(), values(), 12)


def test_chained_comparisons() -> None:
    def f(u, v, n):
        for i in range(n):
            v[i] = 1.0 if -2.0 < sign(u[i] * 1.5) < sign(u[i] * 0.5 + 0.1) < 2.0 else 0.0

    check(f, values(), values(), 12)


def test_a_while_loop() -> None:
    def f(u, v, n):
        for i in range(n):
            k = 0
            while limited(u, i) > 0.0 and k < 3:
                k += 1
                if k == 2:
                    continue
            v[i] = k

    check(f, values(), values(), 12)


def test_a_helper_with_a_while_loop() -> None:
    def f(u, v, n):
        for i in range(n):
            x = 3 * i % n
            v[i] = collatz(x + 1)

    check(f, values(), values(), 12)


def collatz(x):
    steps = 0
    while x != 1:
        x = x // 2 if x % 2 == 0 else 3 * x + 1
        steps += 1
    return steps


def test_an_argument_under_a_condition_is_computed_before() -> None:
    def f(u, v, n):
        for i in range(n):
            v[i] = guarded(u[i], 1.0 / u[i])

    assert loops_of(f)[0].index("1.0 / u[i]") < loops_of(f)[0].index("if")


def guarded(x, y):
    return y if x > 0 else 0.0


# -- names -------------------------------------------------------------------------------------------------------------


def test_names_do_not_clash() -> None:
    def f(u, v, n):
        for i in range(1, n):
            limited_d = 3.0
            d = limited(u, i)
            v[i] = limited_d + d

    check(f, values(), values(), 12)


def test_a_number_that_means_something_else_here() -> None:
    def f(u, v, SCALE, n):
        for i in range(n):
            v[i] = flux(u[i]) * SCALE

    check(f, values(), values(), 4.0, 12)


def test_closures_of_one_definition() -> None:
    def times(factor):
        def inner(x):
            return factor * x

        return inner

    twice, thrice = times(2.0), times(3.0)

    def f(u, v, n):
        for i in range(n):
            v[i] = twice(u[i]) + thrice(u[i])

    check(f, values(), values(), 12)


def test_what_helpers_mean_is_looked_at_in_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(u, v, n):
        for i in range(n):
            v[i] = deep(u[i]) + flux(u[i])

    nest, u = lw.nest(f), values()

    def check_now() -> None:
        mine, theirs = values(), values()
        nest(u, mine, 12)
        f(u, theirs, 12)
        assert np.array_equal(mine, theirs)

    check_now()
    monkeypatch.setitem(globals(), "SCALE", 2.5)
    check_now()
    monkeypatch.setitem(globals(), "sign", guarded_sign)
    check_now()


def guarded_sign(x):
    return math.sqrt(x) if x > 0 else -7.0


def test_the_names_of_a_helper_need_not_be_the_nest_s() -> None:
    def f(u, v, n):
        for i in range(n):
            v[i] = guarded_sign(u[i])

    check(f, values(), values(), 12)


# -- what stays --------------------------------------------------------------------------------------------------------


def writes(u, i):
    u[i] = 0.0
    return 1.0


def without_value(x):
    if x > 0:
        return 1.0


def unset(x):
    if x > 0:
        y = x
    return y


def from_a_loop(u, i):
    for k in range(3):
        if u[k] > 0:
            return u[k]
    else:
        return 0.0


def again(x):
    return again(x - 1) if x > 0 else 0.0


def prints(x):
    print(x)
    return x


def starred(*x):
    return 1.0


def raises(x):
    if x > 1000:
        raise ValueError
    return x


def calls_another(x):
    return prints(x)


@pytest.mark.parametrize(
    ("helper", "arguments", "why"),
    [
        (writes, "u, i", "it writes to arrays, and its call is not all of a statement"),
        (without_value, "u[i]", "it does not always return a value"),
        (unset, "u[i]", "y may have no value in it where it is read"),
        (from_a_loop, "u, i", "its loops have an else"),
        (again, "u[i]", "it calls itself"),
        (prints, "u[i]", "it calls print"),
        (starred, "u[i]", "it takes any number of arguments"),
        (raises, "u[i]", "it has a raise statement"),
        (calls_another, "u[i]", "prints cannot be inlined, since it calls print"),
        (flux, "", "u is not passed"),
        (flux, "u[i], 2", "it takes other arguments"),
        (flux, "v=u[i]", "it takes other arguments"),
        (lambda x: x, "u[i]", "its source cannot be read"),
    ],
)
def test_refused(helper: Callable[..., Any], arguments: str, why: str, tmp_path: Any) -> None:
    path = tmp_path / "their.py"
    path.write_text(
        f"def f(u, v, n):\n    for i in range(n):\n        for j in range(n):\n            v[i, j] = helper({arguments}) + 1\n"
    )
    names = {"helper": helper}
    exec(compile(path.read_text(), str(path), "exec"), names)
    with pytest.raises(lw.RefusedError, match=f"cannot be inlined, since .*{why}"):
        lw.nest(names["f"]).check()


def test_a_helper_whose_text_has_changed_since(tmp_path: Any) -> None:
    path = tmp_path / "theirs.py"
    path.write_text("def helper(x):\n    return x + 1.0\n")
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    helper = names["helper"]
    path.write_text("def helper(x):\n    return x + 2.0\n")

    def f(u, v, n):
        for i in range(n):
            for j in range(n):
                v[i, j] = helper(u[i, j])

    with pytest.raises(lw.RefusedError, match="has changed since it was made"):
        lw.nest(f).check()


def test_what_is_refused_in_a_helper_names_it() -> None:
    def f(u, v, n):
        for i in range(n):
            for j in range(n):
                v[i, j] = spaced(u[i, j])

    with pytest.raises(lw.RefusedError, match=r"test_inlining.py:\d+: in spaced: call of np.spacing"):
        lw.nest(f).check()


def spaced(x):
    y = np.spacing(x)
    return y + 1


def swept(line, scratch, n, first=0.0):
    """Rows of what its caller does, with an early end."""
    if n < 2:
        return
    scratch[0] = first
    for k in range(1, n):
        scratch[k] = 0.5 * scratch[k - 1] + line[k]
    for k in range(n):
        line[k] = scratch[k]


def counted_down(line, i):
    left = 0
    for k in range(i):
        line[k] -= 1.0
        left += 1
    return left, line[0]


def test_procedures_of_rows() -> None:
    def f(u, scratch, out):
        n, m = u.shape
        for i in range(n):
            swept(u[i], scratch, m, u[i, 0] * 2.0)
        for j in range(m):
            for i in range(n):
                out[i] = u[i, j]
            swept(out, scratch, n)
            count, first = counted_down(out, j)
            for i in range(n):
                u[i, j] = out[i] + count * first

    assert not any(isinstance(node, ast.Name) and node.id == "swept" for node in ast.walk(FunctionSource.of(f).tree))
    check(f, values(30).reshape(5, 6), values(), values())


def test_procedures_that_stay_calls() -> None:
    """Whose loops are nests by themselves, or that are called beside such."""

    def smoothed(u):
        for i in range(1, u.shape[0]):
            for j in range(u.shape[1]):
                u[i, j] += u[i - 1, j]

    def edges(u):
        for j in range(u.shape[1]):
            u[0, j] = 0.5

    def f(u):
        for _ in range(3):
            smoothed(u)
            edges(u)
            for i in range(1, u.shape[0]):
                for j in range(u.shape[1]):
                    u[i, j] *= u[i - 1, j]

    called = {
        node.func.id
        for node in ast.walk(FunctionSource.of(f).tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert {"smoothed", "edges"} <= called
    check(f, values(36).reshape(6, 6))


def test_python_s_own_statements_keep_their_calls() -> None:
    """Calls outside of loops, and in statements of which other calls have an effect."""

    def f(u, n):
        a = flux(u[0])
        for i in range(n):
            flux(i)
            u[i] = seen.append(i) or flux(u[i])
        return a + flux(u[1])

    seen: list[int] = []
    assert loops_of(f) == [
        "a = flux(u[0])",
        "for i in range(n):\n    flux(i)\n    u[i] = seen.append(i) or flux(u[i])",
        "return a + flux(u[1])",
    ]


def test_the_function_is_untouched() -> None:
    nest = lw.nest(writes)
    assert nest.python is writes


def first_positive(u, i):
    for k in range(3):
        for m in range(2):
            if u[k + m] > i:
                return u[k] * m
    return -1.0


def test_what_is_returned_from_a_loop_is_computed_after_it(tmp_path: Any) -> None:
    path = tmp_path / "theirs.py"
    path.write_text("def f(u, v, n):\n    for i in range(n):\n        v[i] = helper(u, i)\n")
    names: dict[str, Any] = {"helper": first_positive}
    exec(compile(path.read_text(), str(path), "exec"), names)
    tree = ast.unparse(FunctionSource.of(names["f"]).tree.body[0])
    assert tree == (
        "for i in range(n):\n    first_positive_way_1_out = 0\n    for first_positive_k in range(3):\n"
        "        for first_positive_m in range(2):\n            if u[first_positive_k + first_positive_m] > i:\n"
        "                first_positive_way_1_out = 1\n                break\n"
        "        if first_positive_way_1_out != 0:\n            break\n"
        "    if first_positive_way_1_out == 1:\n        first_positive_result = u[first_positive_k] * first_positive_m\n"
        "    else:\n        first_positive_result = -1.0\n    v[i] = first_positive_result"
    )
