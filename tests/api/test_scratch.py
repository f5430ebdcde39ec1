"""Arrays of which nobody reads afterwards what a call wrote: those that a function deletes, and those made by lw.scratch."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from inner_forms import in_form

import lapwing as lw
from lapwing import scratch_arrays
from lapwing.api.calls.run import run
from lapwing.api.check import array_differences, make_reference
from lapwing.api.check_program import program_reference
from lapwing.codegen.tile import tile_source
from lapwing.tiling.faces import faces_of
from lapwing.tiling.inner import legal_forms

N = 150
pytestmark = pytest.mark.usefixtures("little_optimised")


@lw.nest
def deleting(h, a, b):
    best = 0
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            same = 2 if a[i - 1] == b[j - 1] else -1
            h[i, j] = max(0, h[i - 1, j - 1] + same, h[i - 1, j] - 1, h[i, j - 1] - 1)
            best = max(best, h[i, j])
    del h
    return best


@lw.nest
def keeping(h, a, b):
    best = 0
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            same = 2 if a[i - 1] == b[j - 1] else -1
            h[i, j] = max(0, h[i - 1, j - 1] + same, h[i - 1, j] - 1, h[i, j - 1] - 1)
            best = max(best, h[i, j])
    return best


@lw.nest
def reading(h, out, a, b):
    best = keeping(h, a, b)
    for i in range(1, h.shape[0]):
        for j in range(h.shape[1]):
            out[i, j] = 2 * h[i, j] + out[i - 1, j]
    del h
    return best


@lw.nest
def two_loops(h, out, x):
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            h[i, j] = x[i, j] + 0.5 * h[i - 1, j] + 0.25 * h[i, j - 1]
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            h[i, j] = h[i - 1, j] + 0.5 * h[i, j - 1] + x[i, j]
            out[i, j] = h[i, j]
    del h


@lw.nest
def looked_up(h, a, b, score):
    best = 0
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            h[i, j] = max(0, h[i - 1, j - 1] + score[a[i - 1], b[j - 1]], h[i - 1, j] - 1, h[i, j - 1] - 1)
            best = max(best, h[i, j])
    del h
    return best


def letters() -> tuple[Any, Any]:
    generator = np.random.default_rng(3)
    return generator.integers(0, 4, N - 1), generator.integers(0, 4, N - 1)


def in_buffers(nest: lw.Nest, *args: Any) -> Any:
    """Run with buffers of transposed elements; the outcome."""
    arguments = nest.arguments(*args)
    plan = nest.plan(*args)
    forms = legal_forms(nest.bind(arguments), nest.dependences)
    form = next(form for form in forms if form.transposed)
    return run(nest, arguments, plan=in_form(plan, nest.bind(arguments), form))


def test_only_what_other_blocks_read_is_stored() -> None:
    a, b = letters()
    whole = np.zeros((N, N), np.int32)
    right = keeping.python(whole, a, b)
    for nest, h in ((deleting, np.zeros((N, N), np.int32)), (keeping, lw.scratch((N, N), np.int32))):
        assert in_buffers(nest, h, a, b).results == {"best": right}
        stored = np.flatnonzero(np.any(h[:, :-1] != 0, axis=1))
        assert list(stored) == [64, 128, N - 1]
        assert np.array_equal(h[stored], whole[stored])
        assert np.array_equal(h[:, -1], whole[:, -1])
        assert in_buffers(nest, h, a, b).results == {"best": right}  # what is not written is as it was
    kept = np.zeros((N, N), np.int32)
    assert in_buffers(keeping, kept, a, b).results == {"best": right}
    assert np.array_equal(kept, whole)


def test_a_nest_that_may_raise_does_so_and_copies_nothing() -> None:
    a, b = letters()
    score = np.random.default_rng(2).integers(-3, 4, (4, 4)).astype(np.int32)
    h = np.zeros((N, N), np.int32)
    right = looked_up.python(h.copy(), a, b, score)
    assert in_buffers(looked_up, h, a, b, score).results == {"best": right}
    assert not h[1:64, 1:-1].any()
    assert h[64].any()
    a[100] = 4
    for _ in range(2):
        with pytest.raises(lw.RunError, match=r"test_scratch\.py:\d+"):
            in_buffers(looked_up, h, a, b, score)
    a[100] = 0
    assert in_buffers(looked_up, h, a, b, score).results["best"] == looked_up.python(h * 0, a, b, score)


def test_calls_on_scratch_arrays_are_not_like_others() -> None:
    a, b = letters()
    right = keeping.python(expected := np.zeros((N, N), np.int32), a, b)
    for values in (lw.scratch((N, N), np.int32), np.zeros((N, N), np.int32), lw.scratch((N, N), np.int32)):
        assert keeping(values, a, b) == right
        assert scratch_arrays.is_scratch(values) or np.array_equal(values, expected)
    plain = {"h": np.zeros((N, N), np.int32), "a": a, "b": b}
    marked = {**plain, "h": lw.scratch((N, N), np.int32)}
    assert keeping.bind(plain).dead == frozenset()
    assert keeping.bind(marked).dead == deleting.bind(plain).dead == {"h"}


def test_views_and_copies_are_arrays_like_any_other() -> None:
    values = lw.scratch((3, 4), np.float32)
    assert type(values) is np.ndarray
    assert values.dtype == np.float32
    assert not values.any()
    assert scratch_arrays.is_scratch(values)
    for other in (values[:], values.copy(), values + 1, np.zeros(3)):
        assert not scratch_arrays.is_scratch(other)
    assert scratch_arrays.is_scratch(scratch_arrays.copy_of(values))
    assert not scratch_arrays.is_scratch(scratch_arrays.copy_of(np.zeros(3)))
    before = len(scratch_arrays._known)
    del values
    gc.collect()
    assert len(scratch_arrays._known) == before - 1


def test_a_program_reads_what_its_nests_have_left_in_scratch_arrays() -> None:
    a, b = letters()
    expected = np.zeros((N, N), np.int64)
    right = reading.python(np.zeros((N, N), np.int64), expected, a, b)
    for h in (np.zeros((N, N), np.int64), lw.scratch((N, N), np.int64)):
        out = np.zeros((N, N), np.int64)
        assert reading(h, out, a, b) == right
        assert np.array_equal(out, expected)
    assert reading.program is not None
    assert reading.program.program.deleted == frozenset()  # it is passed on


def test_the_last_region_of_a_program_knows_what_is_deleted() -> None:
    assert two_loops.program is not None
    assert two_loops.program.program.deleted == {"h"}
    assert [region.loops.dead for region in two_loops.regions] == [(), ("h",)]
    x = np.random.default_rng(1).random((N, N))
    expected, out = np.zeros((N, N)), np.zeros((N, N))
    two_loops.python(np.zeros((N, N)), expected, x)
    two_loops(np.zeros((N, N)), out, x)
    assert np.array_equal(out, expected)


def test_what_is_deleted_shares_no_memory_with_other_arguments() -> None:
    h = np.zeros((N, N))
    with pytest.raises(
        lw.RefusedError, match=r"test_scratch\.py:\d+: arrays h and out share memory, and two_loops deletes h"
    ):
        two_loops(h, h, np.ones((N, N)))


def test_comparisons_leave_it_out() -> None:
    a, b = letters()
    h = np.zeros((N, N), np.int32)
    arguments = deleting.arguments(h, a, b)
    reference = make_reference(deleting.source, deleting.bind(arguments), arguments, None)
    assert reference.arrays.keys() == set()
    assert array_differences(reference, {"h": None}) == []
    assert two_loops.program is not None
    given = {"h": h.astype(float), "out": np.zeros((N, N)), "x": np.ones((N, N))}
    found = program_reference(two_loops.program.program, two_loops.regions, given, None)
    after = {**given, "out": found.arguments["out"], "h": np.full((N, N), np.nan)}
    assert found.differences(after, None) == []


def test_a_tile_that_stores_all() -> None:
    a, b = letters()
    bound = deleting.bind(deleting.arguments(np.zeros((N, N), np.int32), a, b))
    form = next(form for form in legal_forms(bound, deleting.dependences) if form.transposed)
    assert "lw_store_read" in tile_source(bound, faces_of(bound), form)
    assert "lw_store_read" not in tile_source(bound, faces_of(bound), form, stores_all=True)


def test_nests_in_their_own_order_may_delete_arrays() -> None:
    @lw.nest
    def histogram(hist, codes, work):
        for i in range(codes.shape[0]):
            work[codes[i]] = i
            hist[codes[i]] += 1
        del work

    codes = np.random.default_rng(0).integers(0, 5, 40)
    found, expected = np.zeros(5, np.int64), np.zeros(5, np.int64)
    histogram(found, codes, np.zeros(5, np.int64))
    histogram.python(expected, codes, np.zeros(5, np.int64))
    assert np.array_equal(found, expected)


@lw.nest
def longest(h, a, b):
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            h[i, j] = max(h[i - 1, j - 1] + (a[i - 1] == b[j - 1]), h[i - 1, j], h[i, j - 1])


def test_an_array_after_scratch_ones_of_its_layout_is_stored() -> None:
    letters = np.ones(300, np.int8)
    scratch = lw.scratch((301, 301), np.int32)
    for _ in range(3):
        longest(scratch, letters, letters)
    found, right = np.zeros((301, 301), np.int32), np.zeros((301, 301), np.int32)
    longest(found, letters, letters)
    longest.python(right, letters, letters)
    assert np.array_equal(found, right)
