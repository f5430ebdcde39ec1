"""Indices that need no look under conditions that say where they are: random loops in their own order, with conditions on
integers around elements and rows looked up by them, give what the plain loop gives, or raise where it does, with arrays as they
were.

LAPWING_EXAMPLES sets how many are tried, LAPWING_SEED which ones.
"""

from __future__ import annotations

import numpy as np
import pytest
from comparing import check_arrays
from hypothesis import strategies as st
from loading import nest_of
from randomness import first_seed, wanted
from searching import search

import lapwing as lw

pytestmark = pytest.mark.usefixtures("little_optimised")
INTEGERS = ("x", "x", "x", "y", "k")
COLUMNS = 11  # of rows that are looked up
OPERATORS = ("<", "<=", ">", ">=", "==", "!=")


@st.composite
def integers(draw: st.DrawFn) -> str:
    """A scalar, or something near one."""
    name = draw(st.sampled_from(INTEGERS))
    if draw(st.integers(0, 2)):
        return name
    return draw(
        st.sampled_from((f"{name} + 1", f"{name} - 1", f"{name} + 2", f"2 * {name}", f"x - {name}", f"-{name}"))
    )


@st.composite
def conditions(draw: st.DrawFn, depth: int = 1) -> str:
    if depth and draw(st.integers(0, 2)) == 0:
        joined = draw(st.sampled_from((" and ", " or ")))
        return f"({draw(conditions(depth - 1))}{joined}{draw(conditions(depth - 1))})"
    kind = draw(st.integers(0, 12))
    if kind > 7:
        low, high = draw(st.sampled_from((0, 0, 0, 1, -1, 2))), draw(st.sampled_from(("n", "n", "n", "n - 1", "n + 1")))
        name = draw(integers())
        return draw(st.sampled_from((f"{low} <= {name} < {high}", f"{name} >= {low} and {high} > {name}")))
    bound = draw(st.sampled_from(("0", "0", "n", "n", "n - 1", "3", "-1", "y", "x")))
    if kind == 0:
        return f"not {draw(integers())} {draw(st.sampled_from(OPERATORS))} {bound}"
    if kind == 1:
        return f"0 <= {draw(integers())} < n"
    if kind == 2:
        return f"{draw(st.sampled_from(('x', 'y')))} >= 0 and u[{draw(st.sampled_from(('x', 'y')))}] > 0.5"
    if kind == 3:
        return f"{bound} {draw(st.sampled_from(OPERATORS))} {draw(integers())}"
    return f"{draw(integers())} {draw(st.sampled_from(OPERATORS))} {bound}"


@st.composite
def row_loops(draw: st.DrawFn, indent: str) -> list[str]:
    """A loop over two rows, with conditions on where it is in them."""
    head = [f"{indent}for j in range({draw(st.sampled_from(('COLUMNS', 'COLUMNS - 1', '1, COLUMNS')))}):"]
    found = list[str]()
    to, other = draw(st.sampled_from((("x", "y"), ("x", "y"), ("y", "x"), ("x", "x - 1"), ("x", "x"), ("y + 1", "y"))))
    for _ in range(draw(st.integers(1, 3))):
        beside = draw(st.sampled_from(("", "", " - 1", " + 1")))
        where = {"": "j", " - 1": "j > 0", " + 1": "j < COLUMNS - 1"}[beside]
        read = f"{draw(st.sampled_from('wwr'))}[{other}, j{beside}]"
        value = draw(st.sampled_from((read, f"min(w[{to}, j], {read} + 0.5)", "u[0]")))
        stored = f"w[{to}, j] = {value}" if draw(st.integers(0, 3)) else f"w[{to}, j{beside}] = w[{other}, j]"
        if draw(st.integers(0, 3)) == 0:
            value, stored = value.replace(f"w[{other}, ", "b["), stored.replace(f"w[{to}, ", "a[")
            head = [f"{indent}a = w[{to}]", f"{indent}b = w[{other}, :]", head[-1]]
        found += [f"{indent}    if {where if draw(st.integers(0, 5)) else 'j >= 2'}:", f"{indent}        {stored}"]
    return [*head, *found]


@st.composite
def statements(draw: st.DrawFn, depth: int, indent: str) -> list[str]:
    found: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.integers(0, 9 if depth else 3))
        index = draw(integers())
        if kind == 0:
            found.append(f"{indent}u[{index}] = u[{draw(integers())}] + 0.5")
        elif kind == 1:
            found.append(f"{indent}s += u[{index}] if {draw(conditions())} else 1.0")
        elif kind == 2:
            moved = draw(st.sampled_from((index, "p[k]", "int(q[k])", "min(x, y)", "max(y, 0)", "abs(x)")))
            found.append(f"{indent}{draw(st.sampled_from(('x', 'y')))} = {moved}")
        elif kind == 3:
            found.append(f"{indent}v[{index}] += 1")
        elif kind == 4:
            negated = draw(st.sampled_from(("", "not ", "not ")))
            found += [f"{indent}if {negated}({draw(conditions())}):", f"{indent}    continue"]
            if draw(st.booleans()):
                found += [f"{indent}else:", *draw(statements(0, indent + "    "))]
        elif kind == 5:
            found += [f"{indent}c = 0", f"{indent}while {draw(conditions())} and c < 3:", f"{indent}    c += 1"]
            found += draw(statements(0, indent + "    "))
        elif kind == 6:
            found += [f"{indent}if {draw(conditions())}:", *draw(row_loops(indent + "    "))]
        else:
            found += [f"{indent}if {draw(conditions())}:", *draw(statements(depth - 1, indent + "    "))]
            if draw(st.booleans()):
                found += [f"{indent}else:", *draw(statements(depth - 1, indent + "    "))]
    return found


def check(data: st.DataObject) -> None:
    body = "\n".join(data.draw(statements(2, "        "), label="body"))
    text = (
        f"import lapwing as lw\nCOLUMNS = {COLUMNS}\n@lw.nest\ndef nest(u, v, w, r, p, q, n):\n"
        "    s = 0.0\n    x = 0\n    y = 1\n"
        f"    for k in range(p.shape[0]):\n        x = p[k]\n        y = int(q[k])\n{body}\n    return s\n"
    )
    length = data.draw(st.integers(3, 9), label="elements")
    n = data.draw(st.sampled_from((length, length, length, length - 1, length + 1)), label="n")
    kinds = data.draw(st.tuples(*[st.sampled_from(("int64", "int32", "int8"))] * 2), label="types")
    low, high = data.draw(st.sampled_from(((0, length - 1), (0, length - 1), (-2, length + 1))), label="integers")
    seed = data.draw(st.integers(0, 99), label="seed")
    nest = nest_of(text)

    def arguments() -> dict[str, np.ndarray | int]:
        rng = np.random.default_rng(seed)
        p, q = (rng.integers(low, high, 12, kind, endpoint=True) for kind in kinds)
        w, r = rng.random((2, length, COLUMNS))
        return {"u": rng.random(length), "v": rng.integers(0, 9, length), "w": w, "r": r, "p": p, "q": q, "n": n}

    expected, found, before = arguments(), arguments(), arguments()
    right, raises = None, False
    try:
        right = nest.python(**expected)
    except IndexError:
        raises = True
    try:
        result = nest(**found)
    except lw.RefusedError:
        return
    except lw.RunError:
        assert raises
        if "for j" not in body:  # where loops run one by one, arrays are as they were before the one that raises
            check_arrays(found, before)
        return
    except IndexError:  # of what Python runs
        assert raises
        return
    assert not raises
    check_arrays(found, expected)
    assert result == pytest.approx(right, rel=1e-14)


def test_what_the_plain_loop_does() -> None:
    search(check, wanted(6), first_seed(), simplest=False)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_what_the_plain_loop_does_at_length() -> None:
    search(check, wanted(4000), first_seed())
