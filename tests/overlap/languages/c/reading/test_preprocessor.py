"""The C front end: macros, MPI's constants and conditional compilation."""

from __future__ import annotations

import json

import pytest
from _c_programs import function, said, statement

from lapwing.overlap.ir.expressions import Constant, Invocation, Number, Operation
from lapwing.overlap.ir.statements import Assign, Call, Declare, If, Opaque, Statement, While
from lapwing.overlap.languages.c.parsing import toolchain
from lapwing.overlap.languages.c.reading import read_c, read_c_text

MPI = "#include <mpi.h>\n"


@pytest.fixture(params=["the MPI that is here", "no MPI"])
def any_mpi(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With the real mpi.h, if there is one, and with Lapwing's own."""
    kind = str(request.param)
    if kind == "no MPI":
        monkeypatch.setattr(toolchain, "mpi_includes", lambda: ())
    return kind


def constants(found: Statement) -> list[str]:
    return [part.name for e in found.expressions() for part in e.walk() if isinstance(part, Constant)]


@pytest.mark.parametrize(
    ("before", "call", "expected"),
    [
        ("", "MPI_Send(b, n, MPI_INT, 0, 0, MPI_COMM_WORLD)", ["MPI_INT", "MPI_COMM_WORLD"]),
        (
            "#define KEY MPI_INT\n#define KEYS (KEY)\n",
            "MPI_Send(b, n, KEYS, MPI_PROC_NULL, 0, MPI_COMM_SELF)",
            ["MPI_INT", "MPI_PROC_NULL", "MPI_COMM_SELF"],
        ),
        (
            "#define SEND(b, n) MPI_Send(b, n, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD)\n",
            "SEND(b, n)",
            ["MPI_DOUBLE", "MPI_COMM_WORLD"],
        ),
        ("#define TAIL MPI_SUM, 0, MPI_COMM_WORLD\n", "MPI_Reduce(b, b, n, MPI_INT, TAIL)",
         ["MPI_INT", "MPI_SUM", "MPI_COMM_WORLD"]),
        ("", "MPI_Recv(b, n, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE)",
         ["MPI_INT", "MPI_ANY_SOURCE", "MPI_ANY_TAG", "MPI_COMM_WORLD", "MPI_STATUS_IGNORE"]),
        ("#define ID(x) x\n", "MPI_Barrier(ID(MPI_COMM_WORLD))", ["MPI_COMM_WORLD"]),
        ("", "MPI_Allreduce(MPI_IN_PLACE, b, n, MPI_INT, MPI_MAX, MPI_COMM_WORLD)",
         ["MPI_IN_PLACE", "MPI_INT", "MPI_MAX", "MPI_COMM_WORLD"]),
    ],
)  # fmt: skip
def test_constants_of_mpi(any_mpi: str, before: str, call: str, expected: list[str]) -> None:
    program = read_c_text(f"{MPI}{before}void f(int *b, int n) {{ {call}; }}")
    found = program.procedures["f"].body.statements[0]
    assert isinstance(found, Call)
    assert found.name is not None
    assert found.name.startswith("MPI_")
    assert constants(found) == expected


def test_constants_keep_the_spelling_of_the_source(any_mpi: str) -> None:
    program = read_c_text(f"{MPI}#define KEY MPI_INT\nvoid f(int *b) {{ MPI_Send(b, 1, KEY, 0, 0, MPI_COMM_WORLD); }}")
    found = program.procedures["f"].body.statements[0]
    assert isinstance(found, Call)
    spans = [argument.span for argument in found.arguments]
    assert [program.sources[0].text(span) for span in spans if span] == ["b", "1", "KEY", "0", "0", "MPI_COMM_WORLD"]


def test_arithmetic_with_a_constant(any_mpi: str) -> None:
    program = read_c_text(f"{MPI}void f(int *b) {{ *b = MPI_ANY_TAG + 1; }}")
    found = program.procedures["f"].body.statements[0]
    assert isinstance(found, Assign)
    assert found.value == Operation("+", (Constant("MPI_ANY_TAG"), Number(1)))


def test_a_program_without_mpi_h_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "mpi_includes", lambda: ())
    program = read_c_text(f"{MPI}double f(void) {{ MPI_Status s; MPI_Barrier(MPI_COMM_WORLD); return MPI_Wtime(); }}")
    assert [type(s) for s in program.procedures["f"].body.statements][:2] == [Declare, Call]
    assert [problem.line for problem in program.problems] == [1]
    assert "mpi.h" in program.problems[0].message
    assert not read_c_text("void f(void) {}").problems


def test_a_cpp_program_without_mpi_h(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "mpi_includes", lambda: ())
    program = read_c_text(f"{MPI}void f(int *b) {{ MPI_Bcast(b, 1, MPI_INT, 0, MPI_COMM_WORLD); }}", "program.cpp")
    found = program.procedures["f"].body.statements[0]
    assert isinstance(found, Call)
    assert (found.name, len(found.arguments)) == ("MPI_Bcast", 5)


def test_calls_through_function_pointers(any_mpi: str) -> None:
    before = "int (*send)(int) = MPI_Send; struct { int (*go)(int); } table;"
    program = read_c_text(f"{MPI}{before} void f(int (*own)(int)) {{ send(1); table.go(2); (*own)(3); }}")
    calls = program.procedures["f"].body.statements
    assert [(call.name, call.arguments) for call in calls if isinstance(call, Call)] == [
        (None, (Number(number),)) for number in (1, 2, 3)
    ]
    assert program.initial["send"] == Constant("MPI_Send")


def test_functions_that_are_macros_in_mpi_h() -> None:
    text = "#define MPI_Comm_c2f(comm) (int)(comm)\nvoid f(int c) { int n = MPI_Comm_c2f(c) + 1; }"
    found = read_c_text(text).procedures["f"].body.statements[0]
    (value,) = found.expressions()
    assert any(isinstance(part, Invocation) and part.name == "MPI_Comm_c2f" for part in value.walk())


def test_a_statement_a_macro_writes() -> None:
    before = "static int on; void timer(int);\n#define TIMER(x) if (on) timer(x)\n"
    program, procedure = function("TIMER( 3 );\nif (on) TIMER(4);\n", before)
    first, second = procedure.body.statements
    assert isinstance(first, If)
    assert program.sources[0].text(first.span) == "TIMER( 3 );"
    assert first.then.form == "chain"
    assert isinstance(first.then.statements[0], Call)
    assert isinstance(second, If)
    assert isinstance(second.then.statements[0], If)


def test_a_block_a_macro_writes() -> None:
    before = "int check(int); void stop(int);\n#define CHECK(x) do { int e = (x); if (e) stop(e); } while (0)\n"
    program, procedure = function("int n = 0;\nCHECK(check(n));\nn = 1;", before)
    found = procedure.body.statements[1]
    assert isinstance(found, While)
    assert found.body.form == "chain"
    assert program.sources[0].text(found.span) == "CHECK(check(n));"
    assert [type(s) for s in found.body.statements] == [Declare, If]


def test_macros_that_write_braces_or_several_statements() -> None:
    before = (
        "void a(void), b(void);\n#define BEGIN for (int i = 0; i < 9; i++) {\n#define END }\n#define TWO a(); b()\n"
    )
    program, procedure = function("BEGIN\na();\nEND\nTWO;\nif (1) TWO;\na();", before)
    assert said(program, procedure) == [
        "Loop: BEGIN\na();\nEND",
        "Call: a();",
        "Opaque: TWO;",
        "Opaque: if (1) TWO;",
        "Call: a();",
    ]
    loop = procedure.body.statements[0]
    assert loop.blocks()[0].form == "chain"


def test_macros_that_are_nothing() -> None:
    program, procedure = function(
        "int n = 0;\nNOTHING\nUNUSED(n)\nNOTHING;\nn = 1;", "#define NOTHING\n#define UNUSED(x)\n"
    )
    assert [text.split(":")[0] for text in said(program, procedure)] == ["Declare", "Nothing", "Assign"]


def test_macros_that_write_pragmas_and_macros_with_errors() -> None:
    before = "#define OMP(x) _Pragma(#x)\n#define BOTH OMP(omp simd)\n#define BAD(x) x = unknown\n"
    program, procedure = function(
        'int i, n = 0;\nBOTH\nfor (i = 0; i < 3; i++) n++;\n_Pragma("omp parallel") n = 2;\n'
        "BAD(n);\nif (n) BOTH n = 3;\nn = 4;",
        before,
    )
    assert said(program, procedure)[1:] == [
        "Opaque: BOTH\nfor (i = 0; i < 3; i++) n++;",
        'Opaque: _Pragma("omp parallel") n = 2;',
        "Opaque: BAD(n);",
        "Opaque: if (n) BOTH n = 3;",
        "Assign: n = 4;",
    ]


def test_macros_that_are_defined_again() -> None:
    before = "#define SIZE 1\n#undef SIZE\n#define SIZE 2\n#define A B\n#define B A\nint A;\n"
    program, procedure = function("int n = 0;\nif (n == SIZE) n = A;\nn = 4;", before)
    assert [text.split(":")[0] for text in said(program, procedure)] == ["Declare", "If", "Assign", "Assign"]


def test_a_pragma_between_loops_without_braces() -> None:
    program, procedure = function(
        "int i, j, n = 3;\nfor (i = 0; i < n; i++)\n#pragma omp simd\nfor (j = 0; j < n; j++) n++;\nn = 4;"
    )
    assert [text.split(":")[0] for text in said(program, procedure)[1:]] == ["Opaque", "Assign"]
    assert isinstance(procedure.body.statements[1], Opaque)
    assert procedure.body.statements[1].reason == "OpenMP"


@pytest.mark.parametrize(
    ("before", "text", "spans"),
    [
        ("#define TEN 10\n", "n + TEN", ["n + TEN", "n", "TEN"]),
        # n + (3 * 2): no text stands for the product, nor for what the macro gives to either side
        ("#define SUM n + m\n", "SUM * 2", ["SUM * 2", None, None, None, "2"]),
        ("#define SQUARE(x) ((x) * (x))\n", "SQUARE(n + 1)", ["SQUARE(n + 1)", "n + 1", "n", "1", "n + 1", "n", "1"]),
        ("#define ADD(x, y) x + y\n", "ADD(n,n)", ["ADD(n,n)", "n", "n"]),
        ("#define TWICE(x) x + x\n", "TWICE(n)", ["TWICE(n)", "n", "n"]),
        ("#define PLUS(x, y) (x + y * 2)\n", "PLUS(n, n)", ["PLUS(n, n)", "n", None, "n", None]),
    ],
)
def test_spans_in_macros(before: str, text: str, spans: list[str | None]) -> None:
    program, procedure = function(f"int n = 0, m; m = {text};", before)
    found = procedure.body.statements[1]
    assert isinstance(found, Assign)
    source = program.sources[0]
    got = [None if part.span is None else source.text(part.span) for part in found.value.walk()]
    assert got == spans


def test_assert_keeps_its_condition() -> None:
    program, procedure = function("int n = 0;\nassert(n > 1);", "#include <assert.h>\n")
    found = procedure.body.statements[1]
    assert isinstance(found, Call)
    assert found.name == "assert"
    assert program.sources[0].text(found.span) == "assert(n > 1);"
    assert isinstance(found.arguments[0], Operation)


def conditional(body: str) -> list[str]:
    program, procedure = function(f"int n = 0;\n{body}\n")
    return said(program, procedure)[1:]


UNCERTAIN = "#if __GNUC__ < 2"  # what compilers define, another one may define otherwise


def test_code_that_is_left_out_is_opaque_where_that_is_not_certain() -> None:
    assert conditional(f"{UNCERTAIN}\nn = 1;\n#endif\nn = 2;") == [
        f"Opaque: {UNCERTAIN}\nn = 1;\n#endif",
        "Assign: n = 2;",
    ]
    found = conditional(f"{UNCERTAIN}\nn = 1;\n#else\nn = 3;\n#endif\nn = 2;")
    assert found == [f"Opaque: {UNCERTAIN}\nn = 1;\n#else\nn = 3;\n#endif", "Assign: n = 2;"]


def test_code_that_is_in_everywhere_is_read() -> None:
    assert conditional("#ifndef A\nn = 1;\n#endif\nn = 2;") == ["Assign: n = 1;", "Assign: n = 2;"]


@pytest.mark.parametrize(
    ("body", "decided"),
    [
        ("#ifdef A\nn = 1;\n#else\nn = 3;\n#endif", "n = 1;"),
        ("#ifndef A\nn = 1;\n#else\nn = 3;\n#endif", "n = 3;"),
        ("#if A > 1 && defined(A)\nn = 1;\n#elif A\nn = 2;\n#else\nn = 3;\n#endif", "n = 1;"),
        ("#if 0\nn = 1;\n#else\nn = 3;\n#endif", "n = 3;"),
        ("#ifdef A\nif (n) { n = 1; }\n#else\nif (n) { n = 3; }\n#endif", "if (n) { n = 1; }"),
        ("#if 0\n#ifdef B\n}\n#endif\n{\n#endif\nn = 3;", "n = 3;"),
        ("#if defined(A) && defined(B)\nn = 1;\n#else\nn = 3;\n#endif", "n = 3;"),
        ("#if defined(A) && __GNUC__ < 2\nn = 1;\n#else\nn = 3;\n#endif", None),
        ("#ifdef A\nif (n)\n#else\nif (!n)\n#endif\nn = 1;", None),
        ("#ifdef A\nif (n) {\n#else\nif (!n) {\n#endif\nn = 1; }", None),
    ],
)
def test_what_is_given_decides_what_is_left_out(body: str, decided: str | None) -> None:
    """``B`` is taken as undefined; what compilers define may differ."""
    text = f"void f(int n) {{\n{body}\n}}\n"
    program = read_c_text(text, defines={"A": "2"})
    procedure = program.procedures["f"]
    opaque = any(isinstance(s, Opaque) for s in procedure.body.walk())
    assert opaque == (decided is None)
    if decided is not None:
        assert program.sources[0].text(procedure.body.statements[0].span) == decided


def test_the_compilers_own_command_decides_all(tmp_path) -> None:  # type: ignore[no-untyped-def]
    source = tmp_path / "program.c"
    source.write_text(f"void f(int n) {{\n{UNCERTAIN}\nn = 1;\n#else\nn = 3;\n#endif\n}}\n")
    commands = tmp_path / "compile_commands.json"
    commands.write_text(
        json.dumps([{"directory": str(tmp_path), "file": "program.c", "arguments": ["cc", "-c", "program.c"]}])
    )
    (found,) = read_c([source]).procedures["f"].body.statements
    assert isinstance(found, Opaque)
    (found,) = read_c([source], compile_commands=commands).procedures["f"].body.statements
    assert isinstance(found, Assign)


@pytest.mark.parametrize(
    ("body", "opaque"),
    [
        (
            "if (n) n = 1;\n#if __GNUC__ < 2\nelse n = 2;\n#endif\nn = 3;",
            "if (n) n = 1;\n#if __GNUC__ < 2\nelse n = 2;\n#endif",
        ),
        ("#if __GNUC__ < 2\nif (n)\n#endif\nn = 1;\nn = 3;", "#if __GNUC__ < 2\nif (n)\n#endif\nn = 1;"),
        ("#if __GNUC__ < 2\nif (n) {\n#else\nif (!n)\n#endif\nn = 1;\nn = 3;", None),
        (
            "called(n,\n#if __GNUC__ < 2\n1\n#else\n2\n#endif\n);\nn = 3;",
            "called(n,\n#if __GNUC__ < 2\n1\n#else\n2\n#endif\n);",
        ),
        (
            "if (n\n#if __GNUC__ < 2\n&& 1\n#endif\n) { n = 1; }\nn = 3;",
            "if (n\n#if __GNUC__ < 2\n&& 1\n#endif\n) { n = 1; }",
        ),
        (
            "if (n)\n#if __GNUC__ < 2\nn = 1;\n#else\nn = 2;\n#endif\nn = 3;",
            "if (n)\n#if __GNUC__ < 2\nn = 1;\n#else\nn = 2;\n#endif",
        ),
        ("#if __GNUC__ < 2\n#define B 1\n#endif\nn = 3;", "#if __GNUC__ < 2\n#define B 1\n#endif"),
        ("#if __GNUC__ < 2\n#ifdef A\n}\n#endif\n{\n#endif\nn = 3;", None),
    ],
)
def test_code_that_is_left_out_in_the_middle(body: str, opaque: str | None) -> None:
    found = conditional(body)
    if opaque is None:  # braces in a branch that is left out: the statement around, here the function
        assert len(found) == 0
        return
    assert found == [f"Opaque: {opaque}", "Assign: n = 3;"]


def test_braces_in_a_branch_that_is_left_out() -> None:
    found = statement("if (n) {\n#if __GNUC__ < 2\nif (i) {\n#endif\nn = 1;\n#if __GNUC__ < 2\n}\n#endif\n}")
    assert isinstance(found, Opaque)
    assert "braces" in found.reason


def test_an_include_inside_a_body(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "part.inc").write_text("n = 4;\n")
    program = read_c_text('void f(int n) {\nn = 1;\n#include "part.inc"\nn = 2;\n}\n', include_dirs=[tmp_path])
    assert said(program, program.procedures["f"]) == ["Assign: n = 1;", 'Opaque: #include "part.inc"', "Assign: n = 2;"]


def test_functions_left_out_by_conditional_compilation() -> None:
    program = read_c_text("#ifdef A\nvoid g(void) { MPI_Barrier(0); }\n#endif\nvoid f(void) {}\n")
    assert list(program.procedures) == ["f"]
    assert [(problem.line, "g is left out" in problem.message) for problem in program.problems] == [(2, True)]
