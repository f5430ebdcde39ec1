"""Arrays that are made in the pool: they are as NumPy's own, and have memory of those before them."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.runtime.memory_pool import MOST_KEPT_BYTES, pooled

LARGE = 1 << 20


def address(values: Any) -> int:
    return int(values.ctypes.data)


def handler(values: Any) -> Any:
    from numpy._core.multiarray import get_handler_name

    return get_handler_name(values)


def test_memory_is_given_out_again_and_zeros_are_zeros() -> None:
    with pooled():
        first = np.full(LARGE, 7.0)
        before = address(first)
        del first
        second = np.zeros(LARGE)
        assert address(second) == before
        assert not second.any()
        other = np.zeros(LARGE)
        assert address(other) != before
        assert before % 64 == 0


def test_arrays_outlive_the_block_and_return_to_the_pool() -> None:
    with pooled():
        kept = np.arange(LARGE)
    assert handler(kept) == "lapwing"
    assert handler(np.zeros(LARGE)) != "lapwing"
    assert kept.flags.owndata
    before = address(kept)
    assert kept[-1] == LARGE - 1
    del kept
    with pooled():
        assert address(np.empty(LARGE, np.int64)) == before


def test_the_handler_before_is_set_again_where_something_raises() -> None:
    with pytest.raises(KeyError), pooled(), pooled():
        raise KeyError
    assert handler(np.zeros(LARGE)) != "lapwing"


@pytest.mark.parametrize(
    ("size", "new"), [(10, 1000), (10, LARGE), (LARGE, LARGE + 3), (LARGE, 3 * LARGE), (LARGE, 10)]
)
def test_resizing_keeps_elements(size: int, new: int) -> None:
    with pooled():
        values = np.arange(size, dtype=np.float64)
        values.resize(new, refcheck=False)
    common = min(size, new)
    assert np.array_equal(values[:common], np.arange(common))
    assert not values[common:].any()


def test_sizes_around_the_smallest_that_is_mapped_and_none_at_all() -> None:
    with pooled():
        for size in (0, 1, (256 << 10) - 65, (256 << 10) - 64, (256 << 10) - 63, 300_000):
            for _ in range(2):  # the second one has the first one's memory
                values = np.zeros(size, np.uint8)
                assert not values.any()
                values[...] = 255
                del values


def test_what_is_larger_than_all_that_is_kept_is_given_back() -> None:
    with pooled():
        values = np.empty(MOST_KEPT_BYTES + 1, np.uint8)
        values[0] = 1
        del values
        assert np.zeros(MOST_KEPT_BYTES + 1, np.uint8)[0] == 0
        with pytest.raises(MemoryError):
            np.empty(1 << 60, np.uint8)


def test_threads_share_it() -> None:
    wrong: list[int] = []

    def work(mark: int) -> None:
        with pooled():
            for number in range(40):
                values = np.zeros(40_000 + 3_000 * (number % 5))
                if values.any():
                    wrong.append(mark)
                values[...] = mark
                if not (values == mark).all():
                    wrong.append(mark)

    threads = [threading.Thread(target=work, args=(mark,)) for mark in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@lw.nest
def tables(a, n):
    for k in range(2):
        a[k] = k
    table = np.zeros((n, n))
    for i in range(1, n):
        for j in range(1, n):
            table[i, j] = max(table[i - 1, j], table[i, j - 1]) + a[(i + j) % 2]
    counted = np.ones((n, n))
    for i in range(n):
        for j in range(n):
            counted[i, j] += table[i, j]
    return counted


def test_programs_make_their_arrays_there() -> None:
    expected = tables.python(np.zeros(2), 300)
    addresses = set()
    for _ in range(4):
        found = tables(np.zeros(2), 300)
        assert np.array_equal(found, expected)
        assert handler(found) == "lapwing"
        addresses.add(address(found))
        del found
        gc.collect()
    assert len(addresses) <= 2
