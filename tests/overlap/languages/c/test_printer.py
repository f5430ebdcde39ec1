"""Writing C."""

from __future__ import annotations

from pathlib import Path

import pytest

from lapwing.overlap.ir.split_phase import Part
from lapwing.overlap.ir.statements import If
from lapwing.overlap.languages.c.parsing.text import named_words
from lapwing.overlap.languages.c.reading import read_c_text
from lapwing.overlap.languages.c.writing import printer
from lapwing.overlap.languages.c.writing.support import c_support
from lapwing.overlap.languages.shared.support_requirements import SupportRequirements
from lapwing.overlap.source.indentation import indentation_step
from lapwing.overlap.source.spans import Source


@pytest.mark.parametrize(
    ("type_text", "dimensions", "expected"),
    [
        ("double", (), "double b;"),
        ("double", ("5", "n"), "double b[5][n];"),
        ("char **", ("3",), "char **b[3];"),
        ("struct point", (), "struct point b;"),
        ("double (*)[5]", (), "double (*b)[5];"),
        ("double (*)[5]", ("2",), "double (*b[2])[5];"),
        ("int[3]", ("2",), "int b[2][3];"),
        ("void (*)(int, char *)", (), "void (*b)(int, char *);"),
        ("unsigned long", (), "unsigned long b;"),
    ],
)
def test_declarations(type_text: str, dimensions: tuple[str, ...], expected: str) -> None:
    text = printer.declaration(type_text, "b", dimensions)
    assert text == expected
    program = read_c_text(f"struct point {{ int x; }};\nvoid f(int n) {{ {text} }}")
    assert program.problems == ()
    symbol = program.procedures["f"].symbols["b"]
    assert len(symbol.dimensions or ()) >= len(dimensions)


def test_fresh_names() -> None:
    assert printer.fresh_name("copy", ()) == "copy"
    assert printer.fresh_name("copy", ("copy", "copy_2")) == "copy_3"
    assert printer.fresh_name("int", ()) == "int_2"
    assert printer.fresh_name("s.x[3]", ()) == "s_x_3_"
    assert printer.fresh_name("3d", ()) == "_3d"


def test_comments_cannot_be_ended_early() -> None:
    assert printer.comment_line("moved up", "  ") == "  /* moved up */\n"
    assert printer.comment_line("a */ b").count("*/") == 1


def test_indentation() -> None:
    text = "void f(int n) {\n\tif (n) {\n\t\tn = 1; n = 2;\n\t    n = 4;\n\t\tn = 3;\n\t}\n\tif (n) { }\n}\n"
    program = read_c_text(text)
    procedure, source = program.procedures["f"], program.sources[0]
    assert printer.block_indentation(source, procedure.body) == "\t"
    branch, empty = procedure.body.statements
    assert isinstance(branch, If)
    assert isinstance(empty, If)
    assert printer.block_indentation(source, branch.then) == "\t\t"
    assert printer.block_indentation(source, empty.then) == "\t\t"
    assert printer.starts_line(source, branch.then.statements[0].span.start)
    assert not printer.starts_line(source, branch.then.statements[1].span.start)


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("void f() {\n   a();\n   if (b) {\n      c();\n   }\n}\n", "   "),
        ("void f() {\n  a();\n}\n", "  "),
        ("void f() {\n\ta();\n}\n", "\t"),
        ("", "    "),
    ],
)
def test_the_step_of_indentation(text: str, step: str) -> None:
    assert indentation_step(Source(Path("a.c"), text.encode(), "c")) == step


def test_support_code_has_no_plain_words_for_names() -> None:
    plain = {(part, copies) for part in (Part.POST, Part.SEND) for copies in (True, False)}
    needs = SupportRequirements("a", 2, {Part.SEND, Part.POST}, direct=True, plain=plain, progresses=True)
    words = {
        w
        for w in named_words(c_support(needs, cpp=False, included=()).encode())
        if not w.startswith(("MPI_", "lapwing_", "lw_"))
    }
    spoken = {"char", "const", "double", "for", "if", "int", "return", "sizeof", "static", "struct", "void"}
    assert words - spoken == {"NULL", "free", "h", "malloc", "memcpy", "size_t", "stdlib", "string"}


def test_words_of_comments_and_strings_name_nothing() -> None:
    text = b"/* f */ void f(void) { puts(\"f\"); } // f\n#define CALL f()\nint g(void) { return L'f'; }"
    assert named_words(text)["f"] == 2
    assert named_words(text + b'\nvoid h(void) __attribute__((alias("f")));')["f"] == 4
