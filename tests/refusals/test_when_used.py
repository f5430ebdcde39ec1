"""A function that is no supported nest is refused when it is used as one, not when it is decorated."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from refusal_cases import HEADING, grid_of, load, two_loops

import lapwing as lw
from lapwing.cli.main import main

pytestmark = pytest.mark.usefixtures("little_optimised")

REFUSED = two_loops("import cmath\nu[i, j] = min(u[i, j], 1.0)")
FINE = two_loops("u[i, j] = 0.5 * u[i - 1, j]")

USES: dict[str, Callable[[Any], Any]] = {
    "called": lambda nest: nest(grid_of()),
    "called without arguments": lambda nest: nest(),
    "planned": lambda nest: nest.plan(grid_of(), ranks=2),
    "dependences": lambda nest: nest.dependences,
    "loops": lambda nest: nest.loops,
    "with choices": lambda nest: nest.using(tile=3)(grid_of()),
    "bound": lambda nest: nest.bind({"u": grid_of()}),
}


@pytest.mark.parametrize("use", USES)
def test_every_use_raises_the_same(use: str, tmp_path: Path) -> None:
    nest = load(REFUSED, tmp_path / "their.py").f
    line = HEADING.count("\n") + 5
    for _ in range(2):
        with pytest.raises(lw.RefusedError, match=rf"their.py:{line}: import cmath in the loops\."):
            USES[use](nest)


def test_the_plain_function_works(tmp_path: Path) -> None:
    u = grid_of()
    load(REFUSED, tmp_path / "their.py").f.python(u)
    assert u[1:-1, 1:-1].max() <= 1


def test_what_it_says_of_itself(tmp_path: Path) -> None:
    nest = load(REFUSED, tmp_path / "their.py").f
    assert repr(nest) == f"<nest f ({tmp_path / 'their.py'}:{HEADING.count(chr(10)) + 2}), refused>"
    (refusal,) = nest.refusals
    assert refusal.line == HEADING.count("\n") + 5
    assert "import cmath" in nest._repr_html_()
    fine = load(FINE, tmp_path / "fine.py").f
    assert fine.refusals == ()
    assert repr(fine).endswith(">")
    assert "refused" not in repr(fine)


def test_a_constant_may_be_defined_later(tmp_path: Path) -> None:
    module = load(two_loops("u[i, j] = HALF * u[i - 1, j]"), tmp_path / "their.py")
    with pytest.raises(lw.RefusedError, match="HALF is not known here"):
        module.f(grid_of())
    module.HALF = 0.5
    found, expected = grid_of(), grid_of()
    module.f(found)
    module.f.python(expected)
    assert found.tobytes() == expected.tobytes()


def test_the_source_is_the_one_that_was_imported(tmp_path: Path) -> None:
    path = tmp_path / "their.py"
    nest = load(FINE, path).f
    path.write_text("# edited while the program runs\n")
    found, expected = grid_of(), grid_of()
    nest(found)
    nest.python(expected)
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("command", [["plan"], ["run"], ["run", "--check"]])
def test_of_several_nests_only_the_one_that_was_asked_for(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "several.py"
    problem = "\n@{0}.problem\ndef {0}_problem():\n    return dict(u=np.ones((5, 6)))\n\n"
    renamed = {name: source.replace("def f(", f"def {name}(") for name, source in (("bad", REFUSED), ("good", FINE))}
    path.write_text(HEADING + "".join(source + problem.format(name) for name, source in renamed.items()))
    for name, status in (("good", 0), ("bad", 2)):
        with pytest.raises(SystemExit) as end:
            main([*command, f"{path}:{name}"])
        said = capsys.readouterr().err
        assert end.value.code == status, said
        assert ("import cmath" in said) == (name == "bad")


def test_without_a_problem_the_command_line_says_what_else_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "their.py"
    path.write_text(HEADING + REFUSED)
    with pytest.raises(SystemExit) as end:
        main(["run", str(path)])
    assert end.value.code == 2
    first, second = capsys.readouterr().err.splitlines()
    assert "import cmath in the loops" in first
    assert "nest f has no problem to run" in second


@pytest.mark.parametrize("thing", [type, len, None, "text", lw])
def test_what_is_no_function_is_refused_at_once(thing: Any) -> None:
    with pytest.raises(lw.RefusedError, match="expected a plain Python function"):
        lw.nest(thing)


class TestInAClass:
    class Solver:
        @staticmethod
        @lw.nest
        def halve(u):
            for i in range(1, u.shape[0]):
                for j in range(u.shape[1]):
                    u[i, j] = 0.5 * u[i - 1, j]

        @lw.nest
        def with_self(self, u):
            for i in range(u.shape[0]):
                u[i] = self.factor * u[i]

    def test_a_static_method(self) -> None:
        found, expected = grid_of(), grid_of()
        self.Solver().halve(found)
        self.Solver.halve.python(expected)
        assert found.tobytes() == expected.tobytes()

    def test_a_method_is_refused_with_one_reason(self) -> None:
        with pytest.raises(lw.RefusedError, match=r"self in the signature: .* Put @staticmethod above") as refusal:
            self.Solver.with_self(None, grid_of(5))
        assert len(refusal.value.refusals) == 1


def test_building_is_logged_where_nobody_watches(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PALS_RANKID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LAPWING_CACHE", str(tmp_path))
    nest = load(FINE, tmp_path / "their.py").f
    with caplog.at_level(logging.INFO, "lapwing"):
        nest(grid_of())
    assert any("building the tile of f with " in record.message for record in caplog.records)
    assert capsys.readouterr() == ("", "")
