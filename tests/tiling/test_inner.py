"""Inner forms of a tile: which are legal, that all have the plain loop's bits, and how one is chosen."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from everyday import everyday
from inner_forms import in_form

import lapwing as lw
from lapwing.api.calls import decide
from lapwing.api.calls.run import run
from lapwing.calibrate import forms as forms_module
from lapwing.calibrate.forms import FormProber
from lapwing.calibrate.tile import Probe
from lapwing.codegen.tile import forms_of
from lapwing.errors import RunError
from lapwing.loopnest.array_shape import ArrayShape
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.skew import find_skew
from lapwing.machine.machine import Quantity
from lapwing.machine.vectors import vector_bytes
from lapwing.planner.inner import InnerChoice, choice_by_measurement, choice_by_rule, joined_sweeps
from lapwing.planner.rates import Shape
from lapwing.runtime import alone
from lapwing.runtime.arrays.storage import copied_as_it_lies
from lapwing.tiling import transposed
from lapwing.tiling.inner import is_legal, legal_forms
from lapwing.tiling.skewing import skewed_dependences, skewed_nest
from lapwing.tiling.sweep_lanes import lanes_of_sweeps, sweep_lanes


@lw.nest
def gauss_seidel(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


@lw.nest
def aligned(h, a, b):
    best = 0
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            s = 2 if a[i - 1] == b[j - 1] else -1
            h[i, j] = max(0, h[i - 1, j - 1] + s, h[i - 1, j] - 1, h[i, j - 1] - 1)
            best = max(best, h[i, j])
    return best


@lw.nest
def cube(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                for k in range(1, u.shape[2] - 1):
                    u[i, j, k] = 0.2 * (u[i - 1, j, k] + u[i, j - 1, k] + u[i, j, k - 1] + u[i + 1, j, k] + u[i, j, k])


@lw.nest
def nine_points(u):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            u[i, j] = 0.25 * (u[i - 1, j - 1] + u[i - 1, j] + u[i - 1, j + 1] + u[i, j - 1])


@lw.nest
def across(a, b):
    for i in range(1, a.shape[1]):
        for j in range(a.shape[0]):
            a[j, i] = 0.5 * b[j, i] + a[j, i - 1]


@lw.nest
def solved(x, b, p, q, r, s):
    for i in range(1, x.shape[0]):
        for j in range(1, x.shape[1]):
            rest = p[i, j] * x[i - 1, j] + q[i, j] * x[i, j - 1]
            x[i, j] = (b[i, j] - rest) / (r[i, j] * s[i, j])


@lw.nest
def upwards(u, c):
    for i in range(u.shape[0] - 2, -1, -1):
        for j in range(u.shape[1] - 2, -1, -1):
            u[i, j] = u[i, j + 1] * c[j] + u[i + 1, j]


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).uniform(0.5, 1.5, shape)


def letters(n: int) -> np.ndarray:
    return np.random.default_rng(n).integers(0, 4, n).astype(np.uint8)


CASES: dict[str, tuple[lw.Nest, Callable[[], dict[str, Any]]]] = {
    "gauss_seidel": (gauss_seidel, lambda: {"u": floats(39, 41), "sweeps": 2}),
    "aligned": (aligned, lambda: {"h": np.zeros((38, 41), np.int32), "a": letters(37), "b": letters(40)}),
    "nine_points": (nine_points, lambda: {"u": floats(24, 25)}),
    "across": (across, lambda: {"a": floats(30, 20), "b": floats(30, 20)}),
    "upwards": (upwards, lambda: {"u": floats(19, 37), "c": floats(37)}),
}


def in_tiles(nest: lw.Nest, arguments: dict[str, Any]) -> tuple[BoundNest, tuple[Any, ...]]:
    """The nest and its dependences as they are cut into tiles."""
    bound, skew = nest.bind(arguments), find_skew(nest.loops, nest.dependences)
    return skewed_nest(bound, skew), skewed_dependences(nest.dependences, skew)


def rule(nest: lw.Nest, **arguments: Any) -> InnerChoice:
    return choice_by_rule(*in_tiles(nest, arguments))


# -- legality --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "lanes", "vectors", "legal"),
    [
        ((0, 1), 1, [(1, 0), (0, 1)], True),
        ((1, 0), 1, [(1, 0), (0, 1)], True),
        ((0, 1), 16, [(1, 0), (0, 1)], True),
        ((0, 1), 4, [(1, -1)], False),  # would join the points of one step
        ((1, 0), 1, [(1, -1)], False),  # would point backwards
        ((0, 1), 1, [(1, -1)], True),
        ((0, 1), 4, [(1, -2)], False),
        ((0, 1, 2), 4, [(1, -1, 0), (0, 1, 0), (0, 0, 1)], True),  # carried by the loop outside
        ((1, 0, 2), 1, [(1, -1, 0)], False),
    ],
)
def test_an_order_is_legal_where_all_dependences_point_forwards(
    order: tuple[int, ...], lanes: int, vectors: list[tuple[int, ...]], legal: bool
) -> None:
    assert is_legal(order, lanes, vectors) is legal


def test_chains_have_lanes_and_independent_loops_none() -> None:
    assert [f.lanes for f in legal_forms(*in_tiles(*_called("gauss_seidel")))] == [1, 4, 16, 64]
    found = legal_forms(*in_tiles(*_called("across")))
    assert [(f.order, f.lanes, f.independent) for f in found] == [
        ((0, 1), 1, True),
        ((1, 0), 1, False),
        ((1, 0), 4, True),
        ((1, 0), 16, True),
        ((1, 0), 64, True),
    ]


def _called(name: str) -> tuple[lw.Nest, dict[str, Any]]:
    nest, made = CASES[name]
    return nest, made()


@pytest.mark.usefixtures("little_optimised")
@pytest.mark.parametrize(
    "name", [*CASES, *(pytest.param(name, marks=pytest.mark.long, id=f"{name}, as for users") for name in CASES)]
)
def test_every_form_has_the_bits_of_the_plain_loop(name: str) -> None:
    nest, arguments = _called(name)
    expected = {key: v.copy() if isinstance(v, np.ndarray) else v for key, v in arguments.items()}
    result = nest.python(**expected)
    plan = nest.plan(**arguments)
    forms = legal_forms(*in_tiles(nest, arguments))
    assert len(forms) > 1
    for form in forms:
        given = {key: v.copy() if isinstance(v, np.ndarray) else v for key, v in CASES[name][1]().items()}
        outcome = run(nest, given, plan=in_form(plan, nest.bind(given), form))
        assert all(np.array_equal(given[key], expected[key]) for key in expected), form
        assert result is None or outcome.results["best"] == result


# -- the rule --------------------------------------------------------------------------------------------------------


def test_long_chains_take_lanes_and_short_ones_the_plain_loop() -> None:
    chosen = rule(gauss_seidel, u=floats(9, 9), sweeps=1)
    assert (chosen.form.lanes, chosen.rule) == (16, "along j each point waits about 16 cycles for the one before it")
    chosen = rule(aligned, h=np.zeros((9, 9), np.int32), a=letters(8), b=letters(8))
    assert (chosen.form.lanes, chosen.rule) == (1, "along j each point waits about 3 cycles for the one before it")


def test_many_arrays_side_by_side_take_the_plain_loop() -> None:
    chosen = rule(solved, **{name: floats(9, 9) for name in "xbpqrs"})
    assert chosen.form.lanes == 1
    assert chosen.rule.endswith("but rows of so many arrays side by side are more than the prefetchers can follow")


def test_descending_chains_are_seen() -> None:
    assert rule(upwards, u=floats(9, 9), c=floats(9)).rule.startswith("along j each point waits about 8 cycles")


def test_loops_are_interchanged_where_arrays_are_contiguous_along_the_outer_one() -> None:
    chosen = rule(across, a=floats(9, 9), b=floats(9, 9))
    assert chosen.form.order == (1, 0)
    assert chosen.describe(["i", "j"]).startswith("plain along i: ")


# -- measuring -------------------------------------------------------------------------------------------------------


def test_the_fastest_form_measured_is_taken_and_told() -> None:
    by_rule = rule(gauss_seidel, u=floats(9, 9), sweeps=1)
    plain, four, sixteen, _ = legal_forms(*in_tiles(gauss_seidel, {"u": floats(9, 9), "sweeps": 1}))
    chosen = choice_by_measurement(by_rule, {sixteen: 3e-9, plain: 0.7e-9, four: 3.4e-9})
    assert chosen.form == plain
    assert chosen.describe(["i", "j"]) == "plain, measured 0.7 ns a point; lanes of 16 3; lanes of 4 3.4"
    assert choice_by_measurement(by_rule, {sixteen: 1.02e-9, plain: 1e-9, four: 3e-9}).form == sixteen, (
        "no more than noise"
    )
    assert by_rule.is_guess
    assert not chosen.is_guess


def _counted(monkeypatch: pytest.MonkeyPatch, fastest: int) -> list[Any]:
    """Counts what is measured; forms with so many lanes are the fastest."""
    calls: list[Any] = []

    def measured(bound: Any, candidate: Any, forms: Any, budget: float, **options: Any) -> list[Probe]:
        calls.append(candidate)
        return [Probe(*candidate, 100, 10, 800, Quantity(1e-7 * (1 + abs(f.lanes - fastest))), ()) for f in forms]

    monkeypatch.setattr(forms_module, "probe_forms", measured)
    return calls


@lw.nest
def in_space(u):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            for k in range(1, u.shape[2]):
                u[i, j, k] = (u[i - 1, j, k] + u[i, j - 1, k] + u[i, j, k - 1]) / 3


def test_what_was_measured_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAPWING_CACHE", str(tmp_path))
    calls = _counted(monkeypatch, fastest=4)
    nest = in_tiles(gauss_seidel, {"u": floats(9, 9), "sweeps": 1})
    shape, larger = Shape((7, 7), 0, 7), Shape((700, 700), 0, 7)
    assert FormProber(*nest, 1).nearest(shape) == {}
    assert {form.lanes for form in FormProber(*nest, 1).measure(shape, 0.1)} == {1, 4, 16, 64}
    later = FormProber(*nest, 1)
    assert min(later.known(shape).items(), key=lambda item: item[1])[0].lanes == 4
    assert later.known(larger) == {}
    assert later.nearest(larger) == later.known(shape)
    assert len(calls) == 1
    (file,) = (tmp_path / "probes").iterdir()
    sound = file.read_text()
    for odd in (
        "",
        '{"version": 1, "shapes": [{"block": [7, 7], "mapping": 0, "tile": 7, "forms": 5}]}',
        sound.replace("[7, 7]", "[7]"),
        sound.replace("[7, 7]", "[7, 0]"),
        sound.replace('"mapping": 0', '"mapping": [0]'),
        re.sub(r"\d\.?\d*e-\d+", "NaN", sound),
    ):
        assert odd != sound
        file.write_text(odd)
        assert FormProber(*nest, 1).nearest(shape) == {}


def test_every_form_is_remembered_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAPWING_CACHE", str(tmp_path))
    _counted(monkeypatch, fastest=4)
    nest = in_tiles(in_space, {"u": floats(6, 9, 9)})
    shape = Shape((5, 8, 8), 0, 5)
    measured = FormProber(*nest, 1).measure(shape, 0.1)
    assert sum(form.transposed for form in measured) == 2
    assert FormProber(*nest, 1).known(shape).keys() == measured.keys()


def test_forms_are_compared_once_calls_have_taken_long_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAPWING_CACHE", str(tmp_path))
    calls = _counted(monkeypatch, fastest=4)
    arguments = {"u": ArrayShape("float64", (50, 50)), "sweeps": 3}
    bound, nest = gauss_seidel.bind(arguments), gauss_seidel.using()
    planned = nest.planned(bound, 1, 1, 1, arguments)
    assert planned.plan.inner.is_guess
    planned.note_run(0.6 * decide.FORMS_SECONDS)
    again = nest.planned(bound, 1, 1, 1, arguments).plan
    assert again.inner.is_guess
    assert nest.planned(bound, 1, 1, 1, arguments).plan is again
    assert not calls
    planned.note_run(0.6 * decide.FORMS_SECONDS)
    second = nest.planned(bound, 1, 1, 1, arguments).plan
    assert (second.inner.form.lanes, second.inner.is_guess, len(calls)) == (4, False, 1)
    planned.note_run(100.0)
    assert nest.planned(bound, 1, 1, 1, arguments).plan is second


@pytest.mark.usefixtures("little_optimised")
def test_forms_are_measured_on_the_real_tiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAPWING_CACHE", str(tmp_path))
    nest, arguments = _called("gauss_seidel")
    before = arguments["u"].copy()
    found = FormProber(*in_tiles(nest, arguments), 1, arguments=arguments).measure(Shape((37, 39), 0, 37), 0.01)
    assert len(found) == 5
    assert all(0 < seconds < 1e-3 for seconds in found.values())
    assert np.array_equal(arguments["u"], before), "the user's arrays are left alone"


# -- crowded rows ----------------------------------------------------------------------------------------------------


def _crowded(sweeps: int) -> dict[str, Any]:
    """Rows a power of two apart."""
    return {"u": floats(70, 512), "sweeps": sweeps}


@pytest.mark.usefixtures("little_optimised")
@pytest.mark.parametrize("sweeps", everyday([1, 9], [9]))
def test_crowded_rows_are_worked_on_where_they_lie(
    sweeps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All forms, whichever was found the fastest, have the bits of the plain loop; only padded ones have a copy."""
    monkeypatch.setenv("LAPWING_CACHE", str(tmp_path))
    arguments = _crowded(sweeps)
    nest = in_tiles(gauss_seidel, arguments)
    expected = arguments["u"].copy()
    gauss_seidel.python(expected, sweeps)
    bound = gauss_seidel.bind(arguments)
    forms = FormProber(*nest, 1, is_alone=True, arguments=arguments).forms
    assert [form.lanes for form in forms if form.in_place] == [4, 16, 64]
    for form in forms:
        plan = gauss_seidel.plan(**arguments)
        plan = replace(plan, inner=replace(plan.inner, form=form))
        u = arguments["u"].copy()
        prepared = alone.PreparedRun(bound, plan, [u], None)
        prepared.run([u], [u.ctypes.data])
        assert np.array_equal(u, expected), form
        assert bool(prepared._copies) == (form.lanes > 1 and not form.in_place)


def test_forms_that_need_a_padded_copy_have_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAPWING_CACHE", str(tmp_path))
    _counted(monkeypatch, fastest=4)
    monkeypatch.setattr(forms_module, "padding_seconds", lambda bound, names, arguments: 1e-2 * len(names))
    for sweeps in (1, 100):
        arguments = _crowded(sweeps)
        nest, shape = in_tiles(gauss_seidel, arguments), Shape((68, 510), 0, 68)
        prober = FormProber(*nest, 1, is_alone=True, arguments=arguments)
        measured = prober.measure(shape, 0.1)
        padded = {form.lanes: s for form, s in measured.items() if form.pads}
        in_place = {form.lanes: s for form, s in measured.items() if not form.pads}
        for lanes, seconds in padded.items():
            assert seconds == pytest.approx(in_place[lanes] + 1e-2 / (68 * 510 * sweeps))
        again = FormProber(*nest, 1, is_alone=True, arguments=arguments).known(shape)
        assert again == pytest.approx(measured)
        # Another one, whose rows are not crowded, has fewer forms, and nothing was measured of it.
        other = FormProber(*nest, 1, is_alone=True, arguments={"u": floats(70, 520), "sweeps": sweeps})
        assert not any(form.in_place for form in other.forms)
        assert other.known(shape) == {}


@pytest.mark.usefixtures("little_optimised")
def test_crowded_rows_are_probed_as_they_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAPWING_CACHE", str(tmp_path))
    arguments = _crowded(1)
    before = arguments["u"].copy()
    strides: set[int] = set()

    def noted(array: Any, values: Any, box: Any) -> Any:
        local = copied_as_it_lies(array, values, box)
        strides.update(local.values.strides)
        assert np.array_equal(local.values, before[tuple(slice(*ends) for ends in box)])
        return local

    monkeypatch.setattr("lapwing.calibrate.tile.copied_as_it_lies", noted)
    prober = FormProber(*in_tiles(gauss_seidel, arguments), 1, is_alone=True, arguments=arguments)
    found = prober.measure(Shape((68, 510), 0, 68), 0.01)
    assert strides == {512 * 8, 8}
    assert len(found) == 8
    assert np.array_equal(arguments["u"], before), "the user's arrays are left alone"


def test_few_sweeps_over_crowded_rows_take_few_lanes_by_rule() -> None:
    for sweeps, in_place in ((1, True), (3, True), (40, False)):
        arguments = _crowded(sweeps)
        bound = gauss_seidel.bind(arguments)
        inner = gauss_seidel.using().planned(bound, 1, 1, 1, arguments).plan.inner
        assert inner.form.in_place is in_place
        assert ("padded" in inner.rule) is in_place
        assert inner.form.sweeps > 1 or in_place
    arguments = {"u": floats(70, 520), "sweeps": 1}
    assert not gauss_seidel.using().planned(gauss_seidel.bind(arguments), 1, 1, 1, arguments).plan.inner.form.in_place


# -- conditions ------------------------------------------------------------------------------------------------------


@lw.nest
def life(new, old):
    for i in range(1, old.shape[0] - 1):
        for j in range(1, old.shape[1] - 1):
            n = old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1]
            new[i, j] = 1 if n == 3 or (old[i, j] == 1 and n == 2) else 0


@lw.nest
def bordered(new, old):
    for i in range(old.shape[0]):
        new[i] = 1 if i > 0 and old[i - 1] > 0 else 0


@lw.nest
def either(new, a, b, at):
    for i in range(new.shape[0]):
        new[i] = (a[i] > 0) + (b[int(at[i])] > 0)


def _text(nest: lw.Nest, **arguments: Any) -> str:
    from lapwing.codegen.plain import plain_source

    return plain_source(nest.bind(arguments))


def test_conditions_without_effects_take_no_branches() -> None:
    arguments = {name: np.random.default_rng(1).integers(0, 2, (20, 20)).astype(np.uint8) for name in ("new", "old")}
    text = _text(life, **arguments)
    assert "&&" not in text
    assert "||" not in text
    expected = {name: value.copy() for name, value in arguments.items()}
    life.python(**expected)
    life(**arguments)
    assert np.array_equal(arguments["new"], expected["new"])


def test_elements_that_exist_under_a_condition_alone_are_read_under_it() -> None:
    assert "&&" in _text(bordered, new=np.zeros(9), old=np.ones(9))


def test_both_sides_of_a_sum_of_bools_are_evaluated() -> None:
    arguments = {"new": np.zeros(4, bool), "a": np.ones(4), "b": np.ones(3), "at": np.array([0.0, 1.0, 2.0, 7.0])}
    with pytest.raises(IndexError):
        either.python(**arguments)
    with pytest.raises(RunError, match="IndexError"):
        either(**arguments)


# -- powers ----------------------------------------------------------------------------------------------------------


@lw.nest
def other_powers(u, x):
    for k in range(1):
        for i in range(x.shape[0]):
            u[k, i] = x[i] ** 3 + x[i] ** 4 * 8.0 + x[i] ** 0.5 * 64.0 + x[i] ** -1 * 512.0


@lw.nest
def one_power(u, x):
    for i in range(x.shape[0]):
        u[i] = x[i] ** 2


def test_powers_have_the_bits_of_the_library() -> None:
    """Also where the library's square is not the product rounded: one number in a thousand."""
    x = np.random.default_rng(5).uniform(0.5, 8, 50_000)
    special = [0.0, -0.0, 1.0, 2.0, 4.0, 1e-200, 1e200, 5e-324, math.inf, math.nan]
    x = np.concatenate([[v for v in x.tolist() if math.pow(v, 2) != v * v], x[:300], special])
    assert len(x) > 325
    for dtype in (np.float64, np.float32):
        with np.errstate(all="ignore"):
            values = x.astype(dtype)
        found = np.zeros(len(values), dtype)
        with np.errstate(all="ignore"):
            expected = np.array([v**2 for v in values], dtype)
            one_power(found, values)
        assert np.array_equal(found, expected, equal_nan=True)
        assert np.array_equal(np.signbit(found)[values == 0], np.signbit(expected)[values == 0])
        several = np.zeros((1, 300), dtype)
        whole = several.copy()
        other_powers.python(whole, values[-310:-10])
        other_powers(several, values[-310:-10])
        assert np.array_equal(several, whole)


def test_squares_do_not_wait_for_the_library() -> None:
    assert "lw_square_f64(x[i])" in _text(one_power, u=np.zeros(4), x=np.ones(4))
    assert "lw_square_f32(x[i])" in _text(one_power, u=np.zeros(4, np.float32), x=np.ones(4, np.float32))


@lw.nest
def slow_power(u, e):
    for i in range(1, u.shape[0]):
        u[i] = u[i - 1] ** 1.5 + u[i] ** e + u[i] ** 2


def test_powers_are_noted() -> None:
    plan = slow_power.plan(np.ones(9), 0.3)
    line = slow_power.loops.line + 2
    assert [note.split(": ", 1)[0].split("/")[-1] for note in plan.notes] == [f"{Path(__file__).name}:{line}"] * 3
    assert "x**1.5 calls C's pow at every point; x*sqrt(x) is several times faster" in str(plan)
    assert "x**y calls C's pow at every point" in str(plan)
    assert "x**2 has the bits of C's pow, by a test at every point; x*x needs none" in str(plan)
    assert not gauss_seidel.plan(floats(9, 9), 1).notes


@lw.nest
def odd_powers(u, x, flags):
    for i in range(u.shape[0]):
        u[i] = x[i] ** 1e999 + flags[i] ** 2 + flags[i] ** 1 + max(0, x[i]) ** 0.5


def test_odd_powers() -> None:
    """An exponent without end has no formula; a bool to the power of an int is an integer."""
    found, x, flags = np.zeros(3), np.array([0.5, 1.0, -0.5]), np.array([True, True, False])
    expected = found.copy()
    odd_powers.python(expected, x, flags)
    odd_powers(found, x, flags)
    assert found.tolist() == expected.tolist() == [2.0 + math.sqrt(0.5), 4.0, 0.0]
    assert "x**inf calls C's pow" in str(odd_powers.plan(found, x, flags))


def test_rows_a_power_of_two_apart_are_copied_for_lanes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Padding keeps rows that advance together out of each other's cache sets; the plain loop would pay for nothing."""
    made: list[str] = []
    allocated = alone.allocate
    monkeypatch.setattr(alone, "allocate", lambda array, *rest: made.append(array.name) or allocated(array, *rest))
    u = floats(12, 512)
    plan, bound = gauss_seidel.plan(u, 1), gauss_seidel.bind({"u": u, "sweeps": 1})
    for form in legal_forms(*in_tiles(gauss_seidel, {"u": u, "sweeps": 1}))[:2]:
        run(gauss_seidel, {"u": u, "sweeps": 1}, plan=in_form(plan, bound, form))
        assert made == ["u"] * (form.lanes > 1)


@pytest.mark.parametrize(("tile", "together"), [(64, 9), (16, 9), (3, 4), (1, 2)])
def test_sweeps_of_one_rank_share_what_is_copied(tile: int, together: int) -> None:
    """Eighteen of them in two turns; ends of steps move by a row a sweep, and the first step is to be as long as all of that."""
    u = np.ones((66, 66))
    bound = gauss_seidel.bind({"u": u, "sweeps": 18})
    form = next(f for f in legal_forms(*in_tiles(gauss_seidel, {"u": u, "sweeps": 18})) if f.transposed)
    plan = gauss_seidel.using(tile=tile).plan(u, 18)
    plan = in_form(plan, bound, form)
    assert alone.PreparedRun(bound, plan, [u], None)._runner.program.c.joined_sweeps == plan.joined == together


def test_polls_come_between_blocks_of_lanes() -> None:
    u = np.ones((66, 66))
    bound = gauss_seidel.bind({"u": u, "sweeps": 9})
    plan = gauss_seidel.plan(u, 9)
    for form in legal_forms(*in_tiles(gauss_seidel, {"u": u, "sweeps": 9}))[-2:]:
        runner = alone.PreparedRun(bound, in_form(plan, bound, form), [u], None)._runner
        assert runner.program.c.phase[0].slice_grain == form.lanes


@pytest.mark.parametrize("vector", [16, 32, 64])
@pytest.mark.parametrize(("width", "sweeps", "many"), [(162, 8, True), (162, 2, False), (40, 8, False)])
def test_more_sweeps_than_near_caches_hold_are_tried(
    width: int, sweeps: int, many: bool, vector: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transposed, "vector_bytes", lambda: vector)
    bound = cube.bind({"u": np.zeros((80, 162, width)), "sweeps": sweeps})
    forms = [form for form in legal_forms(bound, cube.dependences) if form.coalesced]
    found = {(form.lanes, form.sweeps) for form in forms}
    assert (forms[0].lanes, forms[0].sweeps < 8) == (64, width == 162)
    assert ({(64, 8), (32, 8)} <= found and forms[0].sweeps < 8) == many
    assert len({form.describe("ijk") for form in forms}) == len(forms)


# -- sweeps as lanes -------------------------------------------------------------------------------------------------


@lw.nest
def corners(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.2 * (u[i - 1, j + 1] + u[i, j - 1] + u[i + 1, j - 1] + u[i + 1, j + 1])


@lw.nest
def edges(u, f, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(u.shape[1] - 2, 0, -1):
                for k in range(2, u.shape[2]):
                    u[i, j, k] = u[i, j, k - 2] + u[i - 1, j + 1, k] + u[i, j - 1, k] + u[i + 1, j + 1, k] - f[i, k]


def test_sweeps_are_as_far_behind_each_other_as_they_have_to_be() -> None:
    """Offsets of old values: [1, 0] and [0, 1]; [1, -1] and [1, 1]; [0, 1, 0] and [1, -1, 0], as j counts down."""
    found = {}
    for nest, arguments in (
        (gauss_seidel, {"u": floats(9, 70), "sweeps": 8}),
        (corners, {"u": floats(9, 70), "sweeps": 8}),
        (edges, {"u": floats(6, 7, 70), "f": floats(6, 70), "sweeps": 8}),
    ):
        lanes = sweep_lanes(in_tiles(nest, arguments)[0], 1)
        assert lanes is not None
        found[nest.name] = lanes.skew, lanes.halo
    assert found == {
        "gauss_seidel": ((1, 2), ((1, 1), (1, 1))),
        "corners": ((1, 3), ((1, 1), (1, 1))),
        "edges": ((1, 0, 0), ((1, 1), (1, 1), (2, 0))),
    }


@lw.nest
def planes(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                for k in range(1, u.shape[2] - 1):
                    u[i, j, k] = u[i - 1, j, k] + u[i, j - 1, k] + u[i, j, k - 1] + u[i + 1, j, k] + u[i, j, k + 1]


def test_rows_of_a_group_are_as_far_behind_each_other_as_they_have_to_be() -> None:
    """What is read of the row before was written a step ago, or two where it lies at the next position. Lanes are as many groups
    and positions behind each other; those over planes are a row of them, and at the same position."""
    found = {}
    for nest, arguments in (
        (gauss_seidel, {"u": floats(90, 70), "sweeps": 8}),
        (corners, {"u": floats(90, 70), "sweeps": 8}),
        (planes, {"u": floats(6, 90, 70), "sweeps": 8}),
    ):
        bound, dependences = in_tiles(nest, arguments)
        lanes = [sweep_lanes(bound, rows) for rows in (1, 2, 4)]
        assert {form.rows for form in forms_of(bound, dependences)} >= {1, 2}
        found[nest.name] = [(one.lag, one.skew) for one in lanes if one is not None]
    assert found == {
        "gauss_seidel": [(0, (1, 2)), (1, (1, 1)), (1, (1, 0))],
        "corners": [(0, (1, 3)), (2, (1, 1)), (2, (1, 0))],
        "planes": [(0, (1, 1, 0)), (1, (1, 1, 0)), (1, (1, 1, 0))],
    }


def test_groups_need_rows() -> None:
    for rows, expected in ((9, {1}), (90, {1, 2, 4})):
        bound, _ = in_tiles(gauss_seidel, {"u": floats(rows, 70), "sweeps": 8})
        width = vector_bytes() // 8
        assert {turns for _, turns in lanes_of_sweeps(bound, max(4, width))} == expected


@pytest.mark.parametrize("nest", [gauss_seidel, corners], ids=["gauss_seidel", "corners"])
def test_sweeps_are_lanes_where_rows_are_long(nest: lw.Nest) -> None:
    for columns, joined in ((18, 1), (70, 8)):
        arguments = {"u": floats(90, columns), "sweeps": 8}
        bound, dependences = in_tiles(nest, arguments)
        form = next(form for form in forms_of(bound, dependences) if form.skewed and form.sweeps == 8)
        plan = nest.plan(**arguments)
        assert joined_sweeps(bound, form, plan.partition, plan.mapping, plan.tile) == joined


def test_what_a_part_takes_says_what_all_would_take() -> None:
    """Eight lanes over some rows begin and end a row behind each other: with what lies around them, these are nine more."""
    lanes = sweep_lanes(in_tiles(gauss_seidel, {"u": floats(9, 70), "sweeps": 8})[0], 1)
    assert lanes is not None
    assert [lanes.share_at_work(0, rows, 8) for rows in (9, 91)] == [0.5, 0.91]
    assert lanes.share_at_work(1, 98, 8) == 0.98  # lanes go from row to row without a pause
    in_pairs = sweep_lanes(in_tiles(gauss_seidel, {"u": floats(9, 70), "sweeps": 8})[0], 2)
    assert in_pairs is not None
    assert in_pairs.share_at_work(0, 84, 8) == 84 / (86 + 2 * 7)
    arguments = {"u": floats(900, 900), "sweeps": 8}
    bound, dependences = in_tiles(gauss_seidel, arguments)
    prober = FormProber(bound, dependences, 1, joins=True, is_alone=True, arguments=arguments)
    form = next(form for form in prober.forms if form.lanes_are_sweeps and form.sweeps == 8)
    found = prober._share_of_part(replace(form, rows=1), Shape((898, 898), 0, 91))
    assert found == 0.91 / lanes.share_at_work(0, 898, 8)
    others = [other for other in prober.forms if not other.lanes_are_sweeps]
    assert {prober._share_of_part(other, Shape((898, 898), 0, 91)) for other in others} == {1.0}
    # In steps of ranks ends move by a row a sweep; of ten sweeps, five are done in a turn.
    of_ten = in_tiles(gauss_seidel, {**arguments, "sweeps": 10})
    of_ranks = FormProber(*of_ten, 2, joins=True)._share_of_part(replace(form, rows=1), Shape((898, 449), 0, 91))
    assert of_ranks == 0.91 / lanes.share_at_work(0, 91, 8, moves=1) * 8 / 5
    assert lanes.share_at_work(0, 91, 8, moves=1) == 91 / (91 + 2 + 2 * 7)
