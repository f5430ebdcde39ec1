"""The C front end: several files as one program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lapwing.overlap.ir.expressions import Name, Number
from lapwing.overlap.ir.statements import Assign, Call
from lapwing.overlap.languages.c.reading import read_c


def write(folder: Path, **files: str) -> list[Path]:
    for name, text in files.items():
        (folder / f"{name}.{'h' if name.endswith('_h') else 'c'}").write_text(text)
    return [folder / f"{name}.c" for name in files if not name.endswith("_h")]


def test_globals_are_shared_and_static_ones_are_not(tmp_path: Path) -> None:
    paths = write(
        tmp_path,
        one="int shared; static int own; void f(void) { shared = 1; own = 1; g(); }",
        two="extern int shared; static int own; static int *p = &shared; void g(void) { shared = 2; own = 2; }",
    )
    program = read_c(paths)
    assert {"shared", "one.c::own", "two.c::own", "two.c::p"} <= set(program.globals)
    first, second = program.procedures["f"].body.statements[:2]
    third, fourth = program.procedures["g"].body.statements
    assert all(isinstance(s, Assign) for s in (first, second, third, fourth))
    targets = [s.target for s in (first, second, third, fourth) if isinstance(s, Assign)]
    assert targets[0] == targets[2]
    assert targets[1] != targets[3]
    # What one file does with a variable's address counts in the other, too.
    assert isinstance(targets[0], Name)
    assert targets[0].symbol.target
    assert program.resolve("g", program.procedures["f"]) is program.procedures["g"]


def test_static_functions_of_one_name(tmp_path: Path) -> None:
    paths = write(
        tmp_path,
        one="static void help(void) {} void f(void) { help(); }",
        two="static void help(void) {} void g(void) { help(); }",
    )
    program = read_c(paths)
    assert {"one.c::help", "two.c::help"} <= set(program.procedures)
    for caller, callee in (("f", "one.c::help"), ("g", "two.c::help")):
        call = program.procedures[caller].body.statements[0]
        assert isinstance(call, Call)
        found = program.resolve(call.name, program.procedures[caller])
        assert found is program.procedures[callee]


def test_files_of_one_name_in_two_folders(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "part.c").write_text(
            f"static int n; static void help(void) {{}} void {folder}(void) {{ help(); n = 1; }}"
        )
    program = read_c([tmp_path / "a" / "part.c", tmp_path / "b" / "part.c"])
    called = {}
    for name in ("a", "b"):
        call, assign = program.procedures[name].body.statements
        assert isinstance(call, Call)
        assert isinstance(assign, Assign)
        found = program.resolve(call.name, program.procedures[name])
        assert found is not None
        called[name] = (found.source, assign.target)
    assert called["a"][0] != called["b"][0]
    assert called["a"][1] != called["b"][1]


def test_functions_in_headers_are_read_once(tmp_path: Path) -> None:
    header = "static inline int twice(int n) { return 2 * n; }\nint outside(int);\n"
    paths = write(
        tmp_path,
        help_h=header,
        one='#include "help_h.h"\nvoid f(int n) { n = twice(n); }',
        two='#include "help_h.h"\nvoid g(int n) { n = twice(n); outside(n); }',
    )
    program = read_c(paths)
    assert [path.path.name for path in program.sources] == ["one.c", "help_h.h", "two.c"]
    for caller in ("f", "g"):
        call = program.procedures[caller].body.statements[0]
        assert isinstance(call, Call)
        found = program.resolve(call.name, program.procedures[caller])
        assert found is not None
        assert program.sources[found.source].path.name == "help_h.h"
    assert "outside" not in program.procedures


def test_headers_of_the_system_are_not_read(tmp_path: Path) -> None:
    paths = write(tmp_path, one="#include <stdlib.h>\n#include <ctype.h>\nint f(char *s) { return atoi(s); }")
    assert list(read_c(paths).procedures) == ["f"]


def test_include_folders_and_macros(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "size.h").write_text("#define SIZE (WIDTH * 2)\n")
    paths = write(tmp_path, one="#include <size.h>\nint n;\n#ifdef ON\nvoid f(void) { n = SIZE; }\n#endif\n")
    program = read_c(paths, [tmp_path / "include"], {"WIDTH": "4", "ON": None})
    found = program.procedures["f"].body.statements[0]
    assert isinstance(found, Assign)
    assert found.value == Number(8)


@pytest.mark.parametrize("form", ["arguments", "command"])
def test_a_compilation_database(tmp_path: Path, form: str) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "size.h").write_text("#define SIZE (WIDTH * 2)\n")
    paths = write(tmp_path, one='#include "size.h"\nint n;\nvoid f(void) { n = SIZE; }\n')
    words = ["cc", "-O2", "-Iinclude", "-D", "WIDTH=4", "-std=c99", "-c", "one.c", "-o", "one.o"]
    entry = {"directory": str(tmp_path), "file": "one.c"}
    entry[form] = words if form == "arguments" else " ".join(words)  # type: ignore[assignment]
    (tmp_path / "compile_commands.json").write_text(json.dumps([entry]))
    program = read_c(paths, compile_commands=tmp_path / "compile_commands.json")
    assert program.problems == ()
    found = program.procedures["f"].body.statements[0]
    assert isinstance(found, Assign)
    assert found.value == Number(8)


def test_two_definitions_of_one_function(tmp_path: Path) -> None:
    program = read_c(write(tmp_path, one="void f(void) { }", two="void f(void) { int n; }"))
    assert program.procedures["f"].body.statements == ()
    assert any("f is defined here and" in problem.message for problem in program.problems)


def test_old_style_definitions(tmp_path: Path) -> None:
    program = read_c(write(tmp_path, one="int f(n, x) int n; double x; { return g(n) + x; }"))
    assert [p.type.text for p in program.procedures["f"].parameters] == ["int", "double"]
    assert program.problems == ()
