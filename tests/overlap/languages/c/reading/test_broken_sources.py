"""The C front end: sources that are broken, and what is left of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from _c_programs import function, said
from _mpi_calls import calls_in_text, unrepresented

from lapwing.errors import LapwingError, RefusedError
from lapwing.overlap.ir.expressions import Unread
from lapwing.overlap.ir.program import Program
from lapwing.overlap.ir.statements import Assign, Declare, Opaque
from lapwing.overlap.languages.c.reading import libclang, read_c, read_c_text, units

BARRIER = "int MPI_Barrier(int);\n"


def test_unknown_names_are_opaque_and_nothing_is_lost() -> None:
    program, procedure = function("int n;\nn = 1;\nunknown = n;\nmystery x;\nn = 2;\nif (unknown) n = 3;\nn = 4;")
    assert said(program, procedure)[1:] == [
        "Assign: n = 1;",
        "Opaque: unknown = n;\nmystery x;",
        "Assign: n = 2;",
        "Opaque: if (unknown) n = 3;",
        "Assign: n = 4;",
    ]
    assert {problem.line for problem in program.problems} >= {15, 16, 18}


def test_an_error_inside_a_block_leaves_the_rest_readable() -> None:
    program, procedure = function("int n = 1;\nif (n) {\nn = 2;\nunknown();;\nn = unknown2;\nn = 3;\n}")
    assert said(program, procedure)[1:] == [
        "If: if (n) {\nn = 2;\nunknown();;\nn = unknown2;\nn = 3;\n}",
        "Assign: n = 2;",
        "Call: unknown();",  # a call declares its function in old C
        "Nothing: ;",
        "Opaque: n = unknown2;",
        "Assign: n = 3;",
    ]


def test_an_error_between_statements_counts_for_both() -> None:
    program, procedure = function("int n;\nn = 0;\nn = 1;\n#error this cannot be\nn = 2;\nn = 3;")
    assert said(program, procedure)[1:] == ["Assign: n = 0;", "Opaque: n = 1;", "Opaque: n = 2;", "Assign: n = 3;"]


def test_a_missing_include() -> None:
    program = read_c_text('#include "nowhere.h"\nint f(int n) {\nn = 1;\nWHAT(n);\nn = SIZE;\nreturn n;\n}\n')
    assert said(program, program.procedures["f"]) == [
        "Assign: n = 1;",
        "Call: WHAT(n);",
        "Opaque: n = SIZE;",
        "Jump: return n;",
    ]
    assert program.problems[0].line == 1
    assert "nowhere.h" in program.problems[0].message


def test_the_check_for_lost_calls_sees_lost_calls() -> None:
    program = read_c_text(BARRIER + "void f(int n) { MPI_Barrier(n); n = MPI_Barrier(1) + 1; /* MPI_Barrier(2); */ }")
    procedure = program.procedures["f"]
    assert unrepresented(program) == []
    for kept in procedure.body.statements:
        body = replace(procedure.body, statements=(kept,))
        lossy = replace(program, procedures={"f": replace(procedure, body=body)})
        assert unrepresented(lossy) == ["program.c:2: MPI_Barrier"]


@pytest.mark.parametrize(
    "text",
    [
        BARRIER + "int f(int n) { if (n { MPI_Barrier(1); } return n; }\n",
        BARRIER + "int f(int n) { MPI_Barrier(1) n = 2; MPI_Barrier(2); return n; }\n",
        BARRIER + "int f(int n) { n = (3; MPI_Barrier(1); }\n",
        BARRIER + "int f(int n) { else MPI_Barrier(1); n = 2; }\n",
        BARRIER + "int f(int n) { for (n = 0; n < 3, n++) MPI_Barrier(n); }\n",
        BARRIER + "int f(int n) { case 3: MPI_Barrier(n); }\n",
        BARRIER + "int f(int n) { int k[MPI_Barrier(n)] = what; }\n",
        BARRIER + "int f(int n) { @ MPI_Barrier(n); }\n",
        BARRIER + 'int f(int n) { _Pragma("omp parallel") MPI_Barrier(n); }\n',
        BARRIER + "int f(int n) { int g(int m) { MPI_Barrier(m); } g(1); MPI_Barrier(2); }\n",
        BARRIER + "missing f(int n) { MPI_Barrier(n); }\n",
        BARRIER + "int f(missing n) { MPI_Barrier(n); }\n",
        BARRIER + "int f(int n) { missing_t k = MPI_Barrier(n); missing_t (*p)(void) = 0; MPI_Barrier(2); }\n",
    ],
)
def test_calls_of_mpi_are_never_lost(text: str) -> None:
    program = read_c_text(text)
    assert unrepresented(program) == []
    assert all_inside_procedures(program)


def all_inside_procedures(program: Program) -> bool:
    data = program.sources[0].data
    spans = [procedure.span for procedure in program.procedures.values()]
    places = [at for _, at in calls_in_text(data, data.index(b"\n"), len(data))]
    return all(any(span.start <= at < span.end for span in spans) for at in places)


@pytest.mark.parametrize(
    "text",
    [
        "int f(int n) { if (n) { MPI_Barrier(1);\nint g(void) { MPI_Barrier(2); }\n",
        "int f(int n) {\n#ifdef A\nMPI_Barrier(1); }\n",
        "int f(int n) { MPI_Barrier(1); /* } \n",
        "int f(int n) { } }\nvoid g(void) { MPI_Barrier(1); }\n",
        "}{",
        "",
        "\x00\x01\xff",
        "#if\n",
        '#include "\n',
        'char *s = "',
    ],
)
def test_no_source_is_too_broken(text: str) -> None:
    program = read_c_text(text)
    for procedure in program.procedures.values():
        statements = list(procedure.body.walk())
        assert all(procedure.body.span.contains(s.span) for s in statements)
    assert unrepresented(program) == []


def test_what_is_nested_too_deeply_is_opaque() -> None:
    _, procedure = function(f"int n = 0;\nn = {'(' * 220}n{')' * 220};\nn = {' + '.join(['n'] * 900)};\nn = 2;")
    assert [type(s) for s in procedure.body.statements] == [Declare, Opaque, Opaque, Assign]
    program = read_c_text(f"int n; int *p = &n + {' + '.join(['0'] * 900)};")
    assert isinstance(program.initial["p"], Unread)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "latin.c"
    path.write_bytes(b"/* \xe9t\xe9 */ int MPI_Barrier(int);\nvoid f(int n) { /* \xff */ n = 1; MPI_Barrier(n); }\n")
    program = read_c([path])
    assert said(program, program.procedures["f"]) == ["Assign: n = 1;", "Call: MPI_Barrier(n);"]
    path.write_bytes(
        b"\xef\xbb\xbf#if 1\r\nvoid f(int n) {\r\n#if __GNUC__ < 2\r\nn = 1;\r\n#endif\r\nn = 2;\r\n}\r\n#endif\r\n"
    )
    program = read_c([path])
    assert said(program, program.procedures["f"]) == ["Opaque: #if __GNUC__ < 2\r\nn = 1;\r\n#endif", "Assign: n = 2;"]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"nowhere\.c"):
        read_c([tmp_path / "nowhere.c"])


def test_a_compilation_database_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("void f(void) {}")
    (tmp_path / "compile_commands.json").write_text('[{"file": 3}]')
    with pytest.raises(RefusedError, match=r"compile_commands\.json"):
        read_c([tmp_path / "a.c"], compile_commands=tmp_path / "compile_commands.json")


def test_where_libclang_fails_the_functions_are_still_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(libclang.Unit):
        def __init__(self, *_: object) -> None:
            raise LapwingError("libclang could not read the file")

    monkeypatch.setattr(units, "Unit", Failing)
    program = read_c_text("static int f(int n) { MPI_Barrier(n); return n; }\nvoid g(void) { }\n")
    assert set(program.procedures) == {"f", "g"}
    body = program.procedures["f"].body
    assert [type(s) for s in body.statements] == [Opaque]
    assert program.sources[0].text(body.span) == " MPI_Barrier(n); return n; "
    assert any("MPI_Barrier (line 1)" in problem.message for problem in program.problems)
    assert unrepresented(program) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{bad", "no JSON"),
        ('{"a": 1}', "an object; expected a list with an object for each file"),
        ("3", "a number; expected a list"),
        ("[]", "it lists no file"),
        ("[3]", "entry 1: a number; expected an object"),
        ('[{"file": "a.c"}]', 'entry 1: "directory" is missing; expected a text'),
        ('[{"directory": "/", "file": 3}]', 'entry 1: "file" is a number; expected a text'),
        (
            '[{"directory": "/", "file": "a.c"}]',
            'entry 1: "command" is missing; expected a text, or a list "arguments"',
        ),
        ('[{"directory": "/", "file": "a.c", "command": null}]', '"command" is null'),
        ('[{"directory": "/", "file": "a.c", "command": "cc \'"}]', "a quote that does not end"),
        ('[{"directory": "/", "file": "a.c", "arguments": "cc"}]', '"arguments" is no list of texts'),
        ('[{"directory": "/", "file": "a.c", "arguments": [true]}]', '"arguments" is no list of texts'),
    ],
)
def test_what_is_wrong_with_compile_commands(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "a.c").write_text("void f(void) {}\n")
    path = tmp_path / "compile_commands.json"
    path.write_text(text)
    with pytest.raises(RefusedError) as raised:
        read_c([tmp_path / "a.c"], compile_commands=path)
    assert str(raised.value).startswith(f"{path}: ")
    assert said in str(raised.value)
