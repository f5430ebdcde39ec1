"""The gallery: every program runs, is drawn and has its page at a tiny size, and docs/gallery.md has them all.

python -m pytest tests/docs -k gallery --refresh-golden     # writes the list anew
"""

from __future__ import annotations

import importlib.util
import io
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from everyday import one_of

import lapwing as lw

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "gallery.md"
MARK = "<!-- the programs: docs/site/gallery.py -->\n"
TINY = 16
MANY = 20


def loaded() -> ModuleType:
    specification = importlib.util.spec_from_file_location("gallery", ROOT / "docs" / "site" / "gallery.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["gallery"] = module
    specification.loader.exec_module(module)
    return module


gallery = loaded()
NAMES = [entry.name for entry in gallery.ENTRIES]


def entry_of(name: str) -> gallery.Entry:  # type: ignore[name-defined]
    return gallery.ENTRIES[NAMES.index(name)]


def test_there_are_many_and_each_once() -> None:
    assert len(set(NAMES)) == len(NAMES) >= MANY


def test_the_page_has_them_all(pytestconfig: pytest.Config) -> None:
    head, inside, tail = PAGE.read_text(encoding="utf-8").split(MARK)
    if pytestconfig.getoption("--refresh-golden"):
        PAGE.write_text(head + MARK + gallery.table() + "\n" + MARK + tail, encoding="utf-8")
    else:
        assert inside == gallery.table() + "\n", "write it anew: pytest tests/docs -k gallery --refresh-golden"


@pytest.mark.parametrize("name", one_of(4, NAMES))
def test_entry(name: str) -> None:
    entry = entry_of(name)
    try:
        values = entry.run(TINY)
    except lw.RefusedError as refused:
        pytest.xfail(f"left out of the gallery while it is refused: {refused.refusals[0]}")
    plain = entry.problem(entry.nest.problem_function, TINY)
    entry.nest.python(**plain)
    for key, value in plain.items():
        if isinstance(value, np.ndarray) and name not in ("cahn_hilliard",):  # a float sum
            assert values[key].tobytes() == value.tobytes(), key
    pytest.importorskip("matplotlib")
    file = io.BytesIO()
    gallery.draw(entry, values, file)
    assert file.getvalue().startswith(b"\x89PNG")
    text = gallery.page(entry)
    assert f"def {name}(" in text
    assert "Source: " in text


def test_enough_are_accepted() -> None:
    def is_accepted(entry: gallery.Entry) -> bool:  # type: ignore[name-defined]
        nest = entry.nest
        try:
            nest.plan(**entry.problem(nest.problem_function, TINY), ranks=2)
        except lw.RefusedError:
            return False
        return True

    assert sum(map(is_accepted, gallery.ENTRIES)) >= MANY
