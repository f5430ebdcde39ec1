"""Programs, functions of several nests with other statements around them, in one process: what plain Python does."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusal_cases import HEADING, load

import lapwing as lw

pytestmark = pytest.mark.usefixtures("little_optimised")


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape)


SWEEP = """
for i in range(1, u.shape[0] - 1):
    for j in range(1, u.shape[1] - 1):
        u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])
"""
COPY = """
for i in range(1, u.shape[0] - 1):
    for j in range(1, u.shape[1] - 1):
        v[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])
"""


def indented(text: str, depth: int = 1) -> str:
    return "".join(f"{'    ' * depth}{line}\n" for line in text.strip("\n").splitlines())


def program(*parts: str | tuple[int, str], signature: str = "u, v, n=3") -> str:
    """A function of parts; a part with a number stands so much deeper."""
    body = "".join(indented(p) if isinstance(p, str) else indented(p[1], 1 + p[0]) for p in parts)
    return f"@lw.nest\ndef f({signature}):\n{body}"


PROGRAMS: dict[str, tuple[str, int]] = {  # with the number of regions
    "two nests": (program(SWEEP, COPY), 2),
    "a time loop around two nests": (program("for t in range(n):", (1, SWEEP), (1, COPY)), 2),
    "a swap": (program("for t in range(n):", (1, COPY), "    u, v = v, u", "return u"), 1),
    "three names in turn": (
        program("w = np.zeros_like(u)", "for t in range(n):", (1, COPY), "    u, v, w = v, w, u", "return u, v, w"), 1,
    ),
    "while with a residual": (
        program(
            "err, k = 1.0, 0",
            "while err > 1e-3 and k < 5:",
            "    err = 0.0",
            (1, COPY.rstrip() + "\n        err = max(err, abs(v[i, j] - u[i, j]))"),
            "    u[:] = v",
            "    k += 1",
            "return k, err",
        ), 1,
    ),
    "while with NumPy's residual": (
        program("old = u + 1", "while np.abs(u - old).max() > 1e-2:", "    old[:] = u", (1, SWEEP), "return old"), 1,
    ),
    "time levels": (
        program(
            "for t in range(n):",
            "    for i in range(1, u.shape[1] - 1):",
            "        for j in range(1, u.shape[2] - 1):",
            "            u[(t + 1) % 2, i, j] = 0.5 * (u[t % 2, i - 1, j] + u[t % 2, i, j + 1]) + 0.125 * t",
            "    u[(t + 1) % 2, 0] = 1.0",
            "return u[n % 2]",
            signature="u, n=5",
        ), 1,
    ),
    "levels in names": (
        program(
            "old, new = u[0], u[1]",
            "for t in range(n):",
            "    for i in range(1, old.shape[0] - 1):",
            "        for j in range(1, old.shape[1] - 1):",
            "            new[i, j] = 0.5 * (old[i - 1, j] + old[i, j + 1])",
            "    old, new = new, old",
            "return old",
            signature="u, n=5",
        ), 1,
    ),
    "a branch around nests": (
        program(
            "for t in range(n):", "    if t % 2 == 0:", (2, SWEEP), "    elif n > 2:", (2, COPY), "    else:", "        u += 1",
        ), 2,
    ),
    "break, continue and else": (
        program(
            "for t in range(9):", "    if t == 1: continue", (1, SWEEP), "    if t > n: break", "else:", "    u += 1", "return t",
        ), 1,
    ),
    "an early return": (program(SWEEP, "if n > 2: return u[2, 2]", COPY, "return v"), 2),
    "local arrays": (
        program("w = u.copy()", "v = np.zeros(u.shape)", COPY, "w[1:-1, 1:-1] += v[1:-1, 1:-1]", "return w, v"), 1,
    ),
    "slices and rows": (
        program(SWEEP, "u[0, :] = u[-1, :]", "row = u[1]", SWEEP, "row[2] = 7.0", "return row, u[1:3, ::2]"), 2,
    ),
    "an argument again": (program("n = n + 1", "u = np.asarray(u)", "for t in range(n):", (1, SWEEP)), 1),
    "an index that is an argument": (program(SWEEP, "return i", signature="u, i=7").replace("return i", "return u"), 1),
    "one name for several loops": (program("for i in range(2):", "    u += i", (1, SWEEP), "return u"), 1),
    "nine loops": (
        "@lw.nest\ndef f(u):\n"
        + "".join("    " * (k + 1) + f"for i{k} in range(2):\n" for k in range(9))
        + "    " * 10 + "u[" + ", ".join(f"i{k}" for k in range(9)) + "] += 1.0\n", 1,
    ),
    "an import": (program("import math as m", COPY, "return m.pi"), 1),
    "print": (program("print(n)", SWEEP, "print(u[0, 0])"), 1),
    "a global counter": ("COUNT = 0\n" + program("global COUNT", "COUNT += 1", SWEEP, "return COUNT > 0"), 1),
    "with and try": (
        program(
            "try:", "    with np.errstate(all='ignore'):", (2, SWEEP), "    raise ValueError", "except ValueError:", "    u += 1",
        ), 1,
    ),
    "a helper function": (
        "def edges(a, x):\n    a[0] = x\n    return a\n" + program("for t in range(n):", (1, SWEEP), "    edges(u, t)"), 1,
    ),
    "a helper defined inside": (program("def edge(x): u[0] = x", "for t in range(n):", (1, SWEEP), "    edge(t)"), 1),
    "another nest": ("@lw.nest\ndef g(u):\n" + indented(SWEEP) + program("for t in range(n):", (1, COPY), "    g(v)"), 1),
    "itself": (
        program(
            SWEEP, "if n > 0:", "    w = u[::2, ::2].copy()", "    f(w, v, n - 1)", "    u[::2, ::2] += w", "return u",
        ), 1,
    ),
    "a list of levels": (
        program("levels = [u, v]", "for w in levels:", (1, SWEEP.replace("u", "w")), "return levels[0][1, 1]"), 1,
    ),
    "constants as indices": (
        program("for i in range(u.shape[0]):", "    u[i, 0] = u[i, 1]", "    u[i, -1] = u[i, -2]"), 1,
    ),
    "a source at every step": (
        program(
            "for t in range(len(f0)):",
            "    for i in range(1, u.shape[0] - 1):",
            "        for j in range(1, u.shape[1] - 1):",
            "            u[i, j] = 0.5 * u[i - 1, j] + f0[t]",
            signature="u, f0=np.arange(4.0)",
        ).replace("@lw", "@lw"), 1,
    ),
    "bounds that grow": (
        program(
            "for k in range(1, n):",
            "    u[0] += k",
            "    for i in range(k, u.shape[0]):",
            "        for j in range(k, u.shape[1]):",
            "            u[i, j] = 0.5 * u[i - 1, j] + k",
        ), 1,
    ),
    "two reductions": (
        program(
            "low, high, k = 9.0, 0.0, 1",
            "for i in range(u.shape[0]):",
            "    for j in range(u.shape[1]):",
            "        low, high = min(low, u[i, j]), max(high, u[i, j])",
            "        k += int(u[i, j] > 1.0)",
            "return {'range': [low, high], 'k': k}",
        ), 1,
    ),
    "a walrus": (program("if (m := n + 1) > 2:", (1, SWEEP), "return m"), 1),
    "a comprehension": (program(SWEEP, "return [u[k, k] for k in range(3)]"), 1),
    "returned expressions": (program(SWEEP, "return u.max() + 1, None, [u[1, 1]]"), 1),
    "positional and keyword only": (program("k = a", COPY, "return k", signature="u, v, /, *, a=0.5"), 1),
    "a closure": (
        "def make():\n    c = np.ones((6, 7))\n"
        + indented(program("for t in range(n):", "    u += t", (1, COPY.replace("0.25", "c[i, j]"))))
        + "    return f\nf = make()\n", 1,
    ),
}  # fmt: skip


def compare(nest: Any, arguments: Callable[[], tuple[Any, ...]]) -> None:
    given, expected = arguments(), arguments()
    found, right = nest(*given), nest.python(*expected)
    check_same(found, right)
    check_same(given, expected)


def check_same(found: Any, right: Any) -> None:
    assert type(found) is type(right)
    if isinstance(right, np.ndarray):
        assert found.dtype == right.dtype
        assert found.tobytes() == right.tobytes()
    elif isinstance(right, tuple | list):
        assert len(found) == len(right)
        for one, other in zip(found, right, strict=True):
            check_same(one, other)
    elif isinstance(right, dict):
        assert found.keys() == right.keys()
        check_same([*found.values()], [*right.values()])
    else:
        assert found == right


def arguments_of(name: str) -> Callable[[], tuple[Any, ...]]:
    if name in ("time levels", "levels in names"):
        return lambda: (numbers(2, 6, 7),)
    if name == "nine loops":
        return lambda: (np.zeros((2,) * 9),)
    if "u, v" in PROGRAMS[name][0]:
        return lambda: (numbers(6, 7), numbers(6, 7, seed=1))
    return lambda: (numbers(6, 7),)


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_plain_python(name: str, tmp_path: Path) -> None:
    source, regions = PROGRAMS[name]
    nest = load(source, tmp_path / "their.py").f
    assert len(nest.regions) == regions
    assert nest.program is None or not nest.program.program.interpreted
    compare(nest, arguments_of(name))
    compare(nest.using(tile=2), arguments_of(name))


# -- loops that Python runs ------------------------------------------------------------------------------------------------

INTERPRETED = {
    "a vector": "for i in range(1, n):\n    v[i, 0] = v[i, 0] if v[i, 0] > u[i, 1] else v[i, 1] ** v[i - 1, 2]; print(end='')",
    "a while loop": "i, rows = 0, []\nwhile i < n:\n    rows.append(v[i, 0])\n    i += 1",
}


@pytest.mark.parametrize("name", INTERPRETED)
def test_what_python_runs_is_said_once(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    nest = load(program(SWEEP, INTERPRETED[name]), tmp_path / "their.py").f
    (loop,) = nest.program.program.interpreted
    assert f":{loop.line}: " in str(nest.plan(numbers(6, 7), numbers(6, 7)))
    with caplog.at_level(logging.INFO, "lapwing"):
        compare(nest, arguments_of("two nests"))
        compare(nest, arguments_of("two nests"))
    assert sum("is run by Python" in record.message for record in caplog.records) <= 1


def test_whole_arrays_in_loops_are_nothing_to_speak_of(tmp_path: Path) -> None:
    nest = load(program(SWEEP, "for a in (u, v):\n    for k in range(2):\n        a[0] += k"), tmp_path / "their.py").f
    assert not nest.program.program.interpreted
    compare(nest, arguments_of("two nests"))


# -- refusals ----------------------------------------------------------------------------------------------------------------


def refusal(source: str, tmp_path: Path, *arguments: Any) -> str:
    nest = load(source, tmp_path / "their.py").f
    with pytest.raises(lw.RefusedError) as refused:
        nest(*arguments)
    return str(refused.value)


def test_a_nest_that_does_not_compile_is_refused_before_anything_runs(tmp_path: Path) -> None:
    source = program(SWEEP, "for i in range(6):\n    for j in range(7):\n        v[i, j] = np.sinc(u[i, j])")
    given = numbers(6, 7)
    text = refusal(source, tmp_path, given, numbers(6, 7))
    assert f"their.py:{HEADING.count(chr(10)) + 8}: call of np.sinc" in text
    assert "\n" not in text
    assert given.tobytes() == numbers(6, 7).tobytes()


def test_a_value_of_the_last_iteration_keeps_loops_in_their_own_order(tmp_path: Path) -> None:
    nest = load(program(SWEEP, COPY, "return j"), tmp_path / "their.py").f
    assert [region.loops.is_sequential for region in nest.program.nests] == [True, True]
    assert "leaves j with the value of the last iteration" in str(nest.plan(numbers(6, 7), numbers(6, 7)))
    compare(nest, arguments_of("two nests"))


def test_arrays_that_share_memory_are_refused(tmp_path: Path) -> None:
    text = refusal(program("v = u", COPY), tmp_path, numbers(6, 7), None)
    assert "share memory, and v is written" in text


def test_arguments_that_do_not_fit(tmp_path: Path) -> None:
    assert "missing a required argument: 'v'. Expected f(u, v, n)." in refusal(
        program(SWEEP, COPY), tmp_path, numbers(6, 7)
    )


def test_a_program_is_no_nest(tmp_path: Path) -> None:
    nest = load(program(SWEEP, COPY), tmp_path / "their.py").f
    with pytest.raises(lw.RefusedError, match="f is a program of 2 nests, and this takes a nest alone"):
        _ = nest.loops


@pytest.mark.parametrize(("ranks", "grid"), [(1, ()), (4, (2, 2))])
def test_a_plan_knows_loops_that_are_one_pipeline(ranks: int, grid: tuple[int, ...], tmp_path: Path) -> None:
    nest = load(program("for t in range(n):", (1, SWEEP), (1, COPY), SWEEP), tmp_path / "their.py").f
    plan = nest.plan(numbers(60, 70), numbers(60, 70), ranks=ranks)
    (pipeline,) = plan.pipelines
    assert (pipeline.line, pipeline.regions) == (nest.regions[0].loops.line - 1, ("f_1", "f_2"))
    assert pipeline.plan.ranks == ranks
    assert "the loop around f_1, f_2 is one pipeline" in str(plan)
    (found,) = plan.to_json()["pipelines"]
    assert (found["name"], found["regions"]) == ("f_1_sweep", ["f_1", "f_2"])
    assert len(found["tiles"]) == 2


def test_a_loop_that_does_more_is_no_pipeline(tmp_path: Path) -> None:
    nest = load(program("for t in range(n):", (1, SWEEP), (1, COPY), "    u[0] = t"), tmp_path / "their.py").f
    assert nest.plan(numbers(6, 7), numbers(6, 7)).pipelines == ()


# -- errors --------------------------------------------------------------------------------------------------------------------


def test_errors_name_the_line_that_the_user_wrote(tmp_path: Path) -> None:
    nest = load(program(SWEEP, "k = 1 // (n - 3)", COPY), tmp_path / "their.py").f
    with pytest.raises(ZeroDivisionError) as error:
        nest(numbers(6, 7), numbers(6, 7))
    (frame,) = (f for f in traceback.extract_tb(error.value.__traceback__) if f.name == "f")
    assert (frame.filename, frame.line) == (str(tmp_path / "their.py"), "k = 1 // (n - 3)")


def test_a_region_that_raises_leaves_arrays_as_they_were_before_it(tmp_path: Path) -> None:
    divide = "for i in range(6):\n    for j in range(7):\n        v[i, j] = 1 // (i - 3)"
    nest = load(program("v[0, 0] = 3", divide), tmp_path / "their.py").f
    v = np.ones((6, 7), int)
    with pytest.raises(lw.RunError, match=r"their\.py"):
        nest(numbers(6, 7), v)
    assert v[0, 0] == 3
    assert (v.flat[1:] == 1).all()


# -- the face ------------------------------------------------------------------------------------------------------------------


def test_what_it_says_of_itself(tmp_path: Path) -> None:
    nest = load(program("for t in range(n):", (1, SWEEP), (1, COPY)), tmp_path / "their.py").f
    assert repr(nest).startswith("<program f (")
    assert nest.refusals == ()
    assert [region.name for region in nest.regions] == ["f_1", "f_2"]
    assert {d.vector for d in nest.regions[0].dependences} == {(1, 0), (0, 1)}
    assert nest.dependences == (*nest.regions[0].dependences, *nest.regions[1].dependences)
    assert "f_2" in nest._repr_html_()
    plan = nest.plan(numbers(6, 7), numbers(6, 7), ranks=2)
    assert [region.plan.ranks for region in plan.regions] == [2, 2]
    assert str(plan).startswith("f: a program of 2 nests on 2 ranks\n")
    assert plan._repr_html_()
    assert plan.to_json()["regions"][1]["plan"]["nest"] == "f_2"


@pytest.mark.parametrize(
    "name", ["a time loop around two nests", "a swap", "while with a residual", "another nest", "itself"]
)
def test_a_watched_run_does_the_same(name: str, tmp_path: Path) -> None:
    nest = load(PROGRAMS[name][0], tmp_path / "their.py").f
    given, expected = arguments_of(name)(), arguments_of(name)()
    outcome, right = nest.run(*given), nest.python(*expected)
    assert isinstance(outcome, lw.ProgramOutcome)
    check_same((outcome.returned, *given), (right, *expected))
    assert outcome.regions
    assert all(noted.calls and noted.plan is not None for noted in outcome.regions.values())
    assert outcome.seconds >= sum(noted.seconds for noted in outcome.regions.values()) * 0.5
    assert outcome.hidden is None
    assert repr(outcome).startswith("<run of f: ")
    assert outcome._repr_html_()
    assert outcome.timeline(tmp_path / "timeline.html") == tmp_path / "timeline.html"


def test_a_watched_run_of_loops_that_python_runs(tmp_path: Path) -> None:
    nest = load(
        program(SWEEP, "g(v)") + "\ndef g(a):\n" + indented(COPY.replace("v", "a").replace("u", "a")),
        tmp_path / "their.py",
    ).f
    given, expected = arguments_of("two nests")(), arguments_of("two nests")()
    outcome = nest.run(*given)
    nest.python(*expected)
    check_same(given, expected)
    assert {"f_1", "g"} <= outcome.regions.keys()


def test_plans_of_what_is_not_known_before(tmp_path: Path) -> None:
    nest = load(program("w = sorted([u, v], key=id)[0]", SWEEP.replace("u[", "w[")), tmp_path / "their.py").f
    (region,) = nest.plan(numbers(6, 7), numbers(6, 7)).regions
    assert region.plan is None
    assert region.unknown == "w"


EXPECTED = {
    "local arrays": (6, 7),
    "time levels": (6, 7),
    "levels in names": (6, 7),
    "bounds that grow": (6, 7),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_plans_follow_the_driver(name: str, tmp_path: Path) -> None:
    nest = load(PROGRAMS[name][0], tmp_path / "their.py").f
    (region,) = nest.plan(*arguments_of(name)()).regions
    assert region.plan is not None
    assert all(extent <= most for extent, most in zip(region.plan.extents, EXPECTED[name], strict=True))


def test_a_region_is_a_nest_of_its_own(tmp_path: Path) -> None:
    nest = load(program("for t in range(n):", (1, SWEEP)), tmp_path / "their.py").f
    (region,) = nest.regions if nest.program else (nest,)
    compare(region, lambda: (numbers(6, 7), 2) if nest.program is None else (numbers(6, 7),))


def test_a_function_that_is_one_nest_has_itself_as_its_region(tmp_path: Path) -> None:
    nest = load(program(SWEEP), tmp_path / "their.py").f
    assert nest.program is None
    assert nest.regions == (nest,)


def test_functions_that_become_others_are_looked_at_again(tmp_path: Path) -> None:
    module = load("def g(a): a += 1\n" + program(SWEEP, "g(u)"), tmp_path / "their.py")
    compare(module.f, arguments_of("two nests"))
    module.g = lambda a: np.subtract(a, 1, out=a)
    compare(module.f, arguments_of("two nests"))


def test_rows_that_may_be_the_same_one(tmp_path: Path) -> None:
    """In any order: a call like the one before it is soon made, and rows that were two may be one in the next."""
    lines = ["for j in range(1, u.shape[1]):", "    u[n, j] = u[n, j - 1] + 0.5 * u[1, j] + u[-n, j]"]
    nest = load(program(COPY, *lines), tmp_path / "their.py").f
    for n in (3, 3, 3, 1, 1, 1, 2, 0, -1, -5, 5):
        compare(nest, lambda n=n: (numbers(6, 7), numbers(6, 7, seed=1), n))


def test_a_distributed_array_in_one_process(tmp_path: Path) -> None:
    nest = load(program(COPY, "u, v = v, u", SWEEP), tmp_path / "their.py").f
    given, expected = (numbers(6, 7), numbers(6, 7, seed=1)), (numbers(6, 7), numbers(6, 7, seed=1))
    nest(*map(lw.DistributedArray, given))
    nest.python(*expected)
    check_same(given, expected)


@lw.nest
def smoothed_twice(u, v, weight, steps=2):
    for t in range(steps):
        print(end="")
        for i in range(1, len(u) - 1):
            v[i] = u[i] + weight * (u[i - 1] + u[i + 1])
        for i in range(1, len(u) - 1):
            u[i] = v[i] - weight * v[i - 1]


def test_a_program_called_again_keeps_its_driver() -> None:
    """Whatever way its arguments are given, and with the choices of each call."""
    nest = lw.nest(smoothed_twice.python)
    calls = [
        lambda f, u, v: f(u, v, 0.25, 2),
        lambda f, u, v: f(u, v, 0.5, 3),
        lambda f, u, v: f(u, v, 0.5),
        lambda f, u, v: f(u=u, v=v, weight=0.5, steps=4),
        lambda f, u, v: f(steps=1, weight=0.125, v=v, u=u),
        lambda f, u, v: f(u, v, weight=0.75, steps=1),
        lambda f, u, v: f(u, v, 0.25, 0),
    ]
    drivers = []
    for called in (nest, nest, nest.using(tile=3), nest):
        for call in calls:
            given, expected = (np.random.default_rng(0).random((2, 30)) for _ in range(2))
            call(called, *given)
            call(nest.python, *expected)
            assert np.array_equal(given, expected)
        drivers.append(nest.program._alone[-1])
    assert nest.program._alone[0] == nest.chosen
    assert drivers[0] is not drivers[2]
    with pytest.raises(lw.RefusedError, match="missing a required argument"):
        nest(*given)


def test_arrays_of_a_program_called_again_may_be_distributed() -> None:
    u, v = (np.random.default_rng(k).random(30) for k in range(2))
    expected = u.copy(), v.copy()
    smoothed_twice(u.copy(), v.copy(), 0.25, 2)
    found = lw.DistributedArray(u), lw.DistributedArray(v)
    smoothed_twice(*found, 0.25, 2)
    smoothed_twice.python(*expected, 0.25, 2)
    assert all(np.array_equal(np.asarray(one), other) for one, other in zip(found, expected, strict=True))
