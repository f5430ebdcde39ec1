"""The C front end: statements, blocks and loops."""

from __future__ import annotations

import pytest
from _c_programs import function, statement, statements

from lapwing.overlap.ir.expressions import Name, Number, Operation
from lapwing.overlap.ir.statements import Assign, Compound, Declare, If, Jump, Loop, Nothing, Opaque, Select, While


def test_branches() -> None:
    found = statement("if (n) { i = 1; } else if (j) i = 2; else { }")
    assert isinstance(found, If)
    assert found.then.form == "lines"
    assert found.otherwise is not None
    assert found.otherwise.form == "chain"
    inner = found.otherwise.statements[0]
    assert isinstance(inner, If)
    assert inner.then.form == "single"
    assert inner.otherwise is not None
    assert inner.otherwise.statements == ()


def test_block_spans_lie_between_the_braces() -> None:
    program, procedure = function("int n = 0; if (n) { /* a */ n = 1; /* b */ }")
    found = procedure.body.statements[1]
    assert isinstance(found, If)
    assert program.sources[0].text(found.then.span) == " /* a */ n = 1; /* b */ "
    assert program.sources[0].text(found.span) == "if (n) { /* a */ n = 1; /* b */ }"
    assert program.sources[0].data[procedure.declarations_end - 1 : procedure.declarations_end] == b"{"


def test_jumps_labels_and_compounds() -> None:
    found = statements("again: n = 1; if (n) goto again; { int k = 2; n = k; } while (n) { break; } return;")
    assert found[0].label == "again"
    assert isinstance(found[1], If)
    jump = found[1].then.statements[0]
    assert isinstance(jump, Jump)
    assert (jump.kind, jump.to) == ("goto", "again")
    assert isinstance(found[2], Compound)
    assert isinstance(found[2].body.statements[0], Declare)
    assert isinstance(found[3], While)
    assert isinstance(found[4], Jump)


def test_two_labels_on_one_statement() -> None:
    found = statements("one: two: n = 1;")
    assert [(type(s), s.label) for s in found] == [(Nothing, "one"), (Assign, "two")]


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("for (i = 0; i < n; i++) v[i] = 0;", ("0", "n-1", 1)),
        ("for (i = 1; i <= n; ++i) v[i] = 0;", ("1", "n", 1)),
        ("for (i = n; i > 0; i--) v[i] = 0;", ("n", "1", -1)),
        ("for (i = n; i >= 2; i -= 2) v[i] = 0;", ("n", "2", -2)),
        ("for (i = 0; n > i; i = i + 3) v[i] = 0;", ("0", "n-1", 3)),
        ("for (i = 0; i != n; i++) v[i] = 0;", ("0", "n-1", 1)),
        ("for (int k = 0; k < 10; k += 2) v[k] = 0;", ("0", "9", 2)),
        ("for (u = 0; u < n; u++) v[u] = 0;", ("0", "n-1", 1)),
        ("for (i = 0; i < s.in.depth; i++) v[i] = 0;", None),  # bound shown otherwise
        ("for (i = 0; i < *p; i++) rows[i][0] = 0;", None),
    ],
)
def test_counted_loops(text: str, bounds: tuple[str, str, int] | None) -> None:
    found = statement(text)
    assert isinstance(found, Loop)
    if bounds is None:
        return

    def brief(value: object) -> str:
        if isinstance(value, Number):
            return str(value.value)
        if isinstance(value, Name):
            return value.symbol.name
        assert isinstance(value, Operation)
        return value.operator.join(brief(part) for part in value.arguments)

    assert isinstance(found.step, Number)
    assert (brief(found.lower), brief(found.upper), found.step.value) == bounds
    assert found.declares is ("int k" in text)


@pytest.mark.parametrize(
    "text",
    [
        "for (i = 0; i < n; i++) i = 3;",
        "for (i = 0; i < n; i++) n--;",
        "for (i = 0; i < n; i++) { if (j) { n = 3; } }",
        "for (i = 0; i < n; i++) called(i++);",
        "for (i = 0; i < n; i++) scanf(0, &i);",
        "for (i = 0; i < n; i++) scanf(0, &n);",
        "for (i = 0; i < *p; i++) p[i] = 0;",
        "for (i = 0; i < s.in.depth; i++) s.in.depth = 0;",
        "p = &i; for (i = 0; i < n; i++) called(n);",
        "p = &i; for (i = 0; i < n; i++) *p = 3;",
        'for (i = 0; i < n; i++) { asm(""); }',
        "for (i = 0; i < called(n); i++) v[i] = 0;",
        "for (i = 0; i < n; i += j) v[i] = 0;",
        "for (i = 0; i < n; i--) v[i] = 0;",
        "for (i = 0; i < n && j; i++) v[i] = 0;",
        "for (i = 0, j = 0; i < n; i++) v[i] = 0;",
        "for (i = 0; j < n; i++) v[i] = 0;",
        "for (i = 0; i < i + 1; i++) v[i] = 0;",
        "for (u = 0; u < n - 1; u++) v[u] = 0;",
        "for (u = n; u >= 0; u--) v[u] = 0;",
        "for (d = 0; d < n; d++) v[i] = 0;",
        "for (shared = 0; shared < n; shared++) v[i] = 0;",
        "for (; i < n; i++) v[i] = 0;",
        "for (;;) { break; }",
        "do { n--; } while (n);",
    ],
)
def test_other_loops(text: str) -> None:
    found = statements(text)[-1]
    assert isinstance(found, While)


def test_a_loop_before_its_variables_address_is_taken() -> None:
    found = statements("while (n) { for (i = 0; i < n; i++) { called(n); } p = &i; }")
    outer = found[0]
    assert isinstance(outer, While)
    assert isinstance(outer.body.statements[0], While)


def test_pointers_lead_to_their_own_type_only() -> None:
    kept = statement("for (i = 0; i < q->in.depth; i++) rows[i][0] = 0.0;")
    assert isinstance(kept, Loop)
    lost = statement("for (i = 0; i < q->in.depth; i++) pp[i][0] = 0;")
    assert isinstance(lost, While)


def test_switch() -> None:
    found = statement("switch (n) { case 1: i = 1; break; case 2: case RED: { i = 2; break; } default: return; }")
    assert isinstance(found, Select)
    assert [len(case.statements) for case in found.cases] == [1, 1, 1]


def test_inserting_at_the_end_of_a_case_comes_before_its_break() -> None:
    program, procedure = function("int n = 0; switch (n) { case 1: n = 1; break; case 2: n = 2; }")
    found = procedure.body.statements[1]
    assert isinstance(found, Select)
    assert "break" not in program.sources[0].text(found.cases[0].span)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("switch (n) { case 1: i = 1; case 2: i = 2; break; }", "runs into the next"),
        ("switch (n) { case 1: if (i) break; i = 2; break; case 2: i = 2; }", "break inside a case"),
        ("switch (n) { i = 0; case 1: i = 1; }", "before its first case"),
        ("switch (n) { case 1: while (i) { case 2: i = 1; } }", "case inside another statement"),
        ("switch (n) case 1: i = 2;", "not in braces"),
        ('asm("nop");', "assembler"),
        ("__builtin_longjmp(0, 1);", None),
        ("longjmp(0, 1);", "longjmp"),
    ],
)
def test_opaque_statements(text: str, reason: str | None) -> None:
    found = statement(text)
    if reason is not None:
        assert isinstance(found, Opaque)
        assert reason in found.reason


@pytest.mark.parametrize("text", ["void *t = &&here; here: goto *t;", "if (setjmp(p)) n = 1;", "vfork();"])
def test_functions_that_are_opaque_as_a_whole(text: str) -> None:
    _, procedure = function(f"int n = 0, *p; {text}")
    assert [type(s) for s in procedure.body.statements] == [Opaque]


def test_openmp_is_opaque_and_other_pragmas_go_with_their_statement() -> None:
    program, procedure = function(
        "int i, n = 3; double v[9];\n#pragma omp parallel for\nfor (i = 0; i < n; i++) v[i] = 0;\n"
        "#pragma omp barrier\nn = 1;\n#pragma GCC ivdep\nfor (i = 0; i < n; i++) v[i] = 0;\nn = 2;"
    )
    source = program.sources[0]
    found = procedure.body.statements[2:]
    assert [type(s) for s in found] == [Opaque, Opaque, Assign, Loop, Assign]
    assert source.text(found[0].span).startswith("#pragma omp parallel for\nfor")
    assert source.text(found[1].span) == "#pragma omp barrier"
    assert source.text(found[3].span).startswith("#pragma GCC ivdep\nfor")
