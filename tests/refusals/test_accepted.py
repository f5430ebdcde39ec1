"""What was refused once and is accepted now does what plain Python does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from everyday import one_of
from refusal_cases import Refusal, load
from refused import ACCEPTED, FAILING

pytestmark = pytest.mark.usefixtures("little_optimised")


def copied(arguments: tuple[Any, ...]) -> list[Any]:
    return [value.copy() if isinstance(value, np.ndarray) else value for value in arguments]


@pytest.mark.parametrize("case", one_of(3, ACCEPTED), ids=[case.name for case in ACCEPTED])
def test_as_plain_python(case: Refusal, tmp_path: Path) -> None:
    nest = load(case.source, tmp_path / "their.py").f
    if case.options.get("using") or case.options.get("ranks"):
        return
    found, expected = copied(case.arguments()), copied(case.arguments())
    returned, right = nest(*found), nest.python(*expected)
    for one, other in zip(found, expected, strict=True):
        if isinstance(one, np.ndarray):
            assert np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    assert returned is None if right is None else np.array_equal(returned, right)


@pytest.mark.parametrize("case", FAILING, ids=[case.name for case in FAILING])
def test_raises_as_plain_python(case: Refusal, tmp_path: Path) -> None:
    nest = load(case.source, tmp_path / "their.py").f
    with pytest.raises(Exception):  # noqa: B017, PT011
        nest.python(*copied(case.arguments()))
    with pytest.raises(Exception):  # noqa: B017, PT011
        nest(*copied(case.arguments()))
