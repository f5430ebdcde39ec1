"""The C front end: expressions."""

from __future__ import annotations

import pytest
from _c_programs import expression, function, statement, statements

from lapwing.overlap.ir.expressions import (
    AddressOf,
    Assignment,
    Cast,
    Constant,
    Deref,
    Element,
    Expression,
    Invocation,
    Member,
    Name,
    Number,
    Operation,
    Storage,
    Text,
    Unread,
)
from lapwing.overlap.ir.statements import Assign, Call, Declare, Evaluate, Opaque


def brief(value: Expression) -> str:
    """An expression on one line: prefix operators, elements in brackets."""
    match value:
        case Number():
            return repr(value.value)
        case Name():
            return value.symbol.name
        case Constant():
            return f"`{value.name}`"
        case Text():
            return value.text
        case Element():
            return f"{brief(value.base)}[{', '.join(map(brief, value.indices))}]"
        case Member():
            return f"{brief(value.base)}.{value.field_name}"
        case Deref():
            return f"*{brief(value.pointer)}"
        case AddressOf():
            return f"&{brief(value.object)}"
        case Operation():
            return f"({' '.join([value.operator, *map(brief, value.arguments)])})"
        case Cast():
            return f"<{value.type.text}>{brief(value.value)}"
        case Invocation():
            return f"{value.name}({', '.join(map(brief, value.arguments))})"
        case Assignment():
            return (
                f"{brief(value.target)} {value.operator or ''}={'old' if value.gives_old else ''} {brief(value.value)}"
            )
        case Unread():
            return f"unread({', '.join(map(brief, value.mentions))})"
    raise AssertionError(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0x1F + 010 + 12uL", "51"),
        ("1.5e3f", "1500.0"),
        ("'a'", "97"),
        ("-3", "-3"),
        ("-n", "(neg n)"),
        ("GREEN * 2", "8"),
        ("limit + n", "(+ 7 n)"),
        ("sizeof(double) * n", "(* 8 n)"),
        ("sizeof v", "800"),
        ("(long) n", "<long>n"),
        ("!n && ~n || n >> 2", "(|| (&& (! n) (~ n)) (>> n 2))"),
        ("n ? i : j", "(?: n i j)"),
        ("n % 3 == 1 != 0", "(!= (== (% n 3) 1) 0)"),
        ("v[i + 1]", "v[(+ i 1)]"),
        ("i[v]", "v[i]"),
        ("grid[i][j]", "grid[i, j]"),
        ("rows[i][j]", "rows[i, j]"),
        ("pp[i][j]", "pp[i][j]"),
        ("*p", "*p"),
        ("*(p + i)", "p[i]"),
        ("*(i + p)", "p[i]"),
        ("*v", "v[0]"),
        ("*(grid[i] + j)", "grid[i, j]"),
        ("**pp", "**pp"),
        ("*&n", "n"),
        ("(&s)->x", "s.x"),
        ("s.in.depth", "s.in.depth"),
        ("q->x", "*q.x"),
        ("q->next->ids[3]", "**q.next.ids[3]"),
        ("(*q).x", "*q.x"),
        ("q[i].x", "q[i].x"),
        ("called(n) + called(3)", "(+ called(n) called(3))"),
        ("g(n)", "None(n)"),
        ("(*g)(n)", "None(n)"),
        ("(i = 3, j++)", "(, i = 3 j +=old 1)"),
        ("--n", "n -= 1"),
        ("(n += 2) * 2", "(* n += 2 2)"),
        ("p - &n", "(- p &n)"),
        ("((struct point){1, p}).x", "({} 1 p).x"),
    ],
)
def test_expression(text: str, expected: str) -> None:
    found = statement(f"d = {text};")
    if isinstance(found, Call):  # a function's value
        assert brief(Invocation(found.name, found.arguments)) == expected
    else:
        assert isinstance(found, Assign)
        assert brief(found.value) == expected


def test_pointer_arithmetic_stays_an_operation() -> None:
    found = statement("p = p + n;")
    assert isinstance(found, Assign)
    assert brief(found.value) == "(+ p n)"


def test_spans_are_the_text() -> None:
    program, procedure = function("int n; double v[9]; n = 2 *\n  (n + 3); v[n] = called( n ) * 2;")
    source = program.sources[0]
    first, second = (s for s in procedure.body.statements if isinstance(s, Assign))
    assert source.text(first.span) == "n = 2 *\n  (n + 3);"
    assert isinstance(first.value, Operation)
    assert [source.text(part.span) for part in first.value.arguments if part.span] == ["2", "(n + 3)"]
    assert second.target.span is not None
    assert source.text(second.target.span) == "v[n]"
    assert [source.text(part.span) for part in second.value.walk() if part.span] == [
        "called( n ) * 2",
        "called( n )",
        "n",
        "2",
    ]


def test_statements_that_are_expressions() -> None:
    kinds = [
        ("n = called(3);", Call),
        ("(void) called(3);", Call),
        ("p = (int *) called(3);", Assign),
        ("n += 3;", Assign),
        ("n++;", Assign),
        ("i = 1, j = 2;", Evaluate),
        ("n == 3;", Evaluate),
    ]
    for text, kind in kinds:
        assert isinstance(statement(text), kind), text
    chained = statement("i = j = 0;")
    assert isinstance(chained, Assign)
    assert brief(chained.value) == "j = 0"
    call = statement("n = called(3);")
    assert isinstance(call, Call)
    assert call.result is not None
    assert brief(call.result) == "n"


def test_sizes_of_variable_arrays() -> None:
    _, procedure = function("double w[k][3]; k = sizeof w;", parameters="int k")
    found = procedure.body.statements[1]
    assert isinstance(found, Assign)
    assert brief(found.value) == "<int>(* (* 8 (+ (- k 1) 1)) (+ 2 1))", "a size is wider than an int"


def test_sizes_with_effects_are_opaque() -> None:
    _, procedure = function("double w[called(k)]; double x[k++];", parameters="int k")
    assert [type(s) for s in procedure.body.statements] == [Opaque, Opaque]


def test_designated_initialisers() -> None:
    found = statement("struct point t = {.ids = p, .x = d};")
    assert isinstance(found, Declare)
    value = found.variables[0][1]
    assert value is not None
    assert brief(value) == "({} p d)"
    array = statement("int t[4] = {[2] = n, j};")
    assert isinstance(array, Declare)
    assert array.variables[0][1] is not None
    assert brief(array.variables[0][1]) == "({} n j)"


def test_arguments_without_names_are_not_read() -> None:
    _, procedure = function(
        "__builtin_va_list list; __builtin_va_start(list, k); k = __builtin_va_arg(list, int);", parameters="int k, ..."
    )
    assert procedure.variadic
    found = procedure.body.statements[-1]
    assert isinstance(found, Assign)
    assert isinstance(found.value, Unread)


def test_what_is_not_read_mentions_what_is_in_it() -> None:
    found = expression("({ int z = called(n); z + v[i]; })")
    assert isinstance(found, Unread)
    names = {part.symbol.name for part in found.walk() if isinstance(part, Name)}
    assert {"n", "v", "i"} <= names
    assert any(isinstance(part, Invocation) and part.name == "called" for part in found.walk())


def test_symbols() -> None:
    program, procedure = function(
        "static int kept = 3; int n = 1; double w[n][4]; { int n = 2; n++; } shared = n; volatile int flag;",
        parameters="double a[], const double (*m)[5], number k",
    )
    symbols = procedure.symbols
    assert [p.name for p in procedure.parameters] == ["a", "m", "k"]
    assert all(p.storage is Storage.ARGUMENT and p.by_value for p in procedure.parameters)
    assert symbols["a"].pointer
    assert symbols["a"].dimensions is None
    assert symbols["a"].type.target is not None
    assert symbols["a"].type.target.base == "real"
    assert symbols["k"].type.text == "number"
    assert symbols["k"].type.bytes == 4
    assert symbols["kept"].storage is Storage.SAVED
    assert program.initial["procedure f::kept"] == Number(3)
    assert symbols["w"].dimensions is not None
    assert [brief(d.upper) for d in symbols["w"].dimensions if d.upper] == ["(- n 1)", "3"]
    assert symbols["flag"].volatile
    assert symbols["n"].key == "procedure f::n"
    assert len({s.key for s in symbols.values() if s.name == "n"}) == 2
    assert program.globals["program.c::shared"].storage is Storage.GLOBAL
    assert program.globals["program.c::limit"].storage is Storage.CONSTANT
    assert program.globals["program.c::grid"].dimensions is not None


@pytest.mark.parametrize(
    ("use", "taken"),
    [
        ("p = &n;", True),
        ("called(n);", False),
        ("outside(&n);", True),
        ("MPI_Comm_rank(0, &n);", False),
        ("MPI_Win_create(&n);", True),
        ("scanf(0, &n);", False),
        ("n = *&n;", True),
    ],
)
def test_whose_address_is_taken(use: str, taken: bool) -> None:
    _, procedure = function(f"int n; int *p; {use}")
    assert procedure.symbols["n"].target is taken


@pytest.mark.parametrize(
    ("use", "taken"),
    [
        ("p = a[1];", True),
        ("p = (int *) a;", True),
        ("a[3][1] = **a;", False),
        ("MPI_Send(a, 3);", False),
        ("MPI_Send(a[1] + 2, 3);", False),
        ("MPI_Send((char *) a + 8, 3);", False),
        ("MPI_Send(&a[1][2], 3);", False),
        ("outside(a[1]);", True),
        ("MPI_Send(outside(a[1]), 3);", True),
    ],
)
def test_whose_address_is_an_arrays(use: str, taken: bool) -> None:
    _, procedure = function(f"int a[4][4]; int *p; {use}")
    assert procedure.symbols["a"].target is taken


def test_initial_values_at_file_scope() -> None:
    before = (
        "static int *alias = &shared; int (*table[])(int) = {called, 0}; int many[3] = {1, 2, 3}; double scale = 2.5;"
    )
    program, _ = function(";", before)
    assert brief(program.initial["program.c::alias"]) == "&shared"
    assert brief(program.initial["table"]) == "({} `called` 0)"
    assert brief(program.initial["scale"]) == "2.5"
    assert "many" not in program.initial  # a table of numbers
    assert program.globals["program.c::shared"].target


def test_labels_and_locals_of_two_functions() -> None:
    program, _ = function("int i; i = 1;", "static void other(void) { int i; i = 2; }")
    keys = {s.key for p in program.procedures.values() for s in p.symbols.values() if s.name == "i"}
    assert keys == {"procedure f::i", "procedure program.c::other::i"}


def test_calls_of_static_functions_resolve() -> None:
    program, procedure = function("other(); f();", "static void other(void) {}")
    first, second = procedure.body.statements
    assert isinstance(first, Call)
    assert isinstance(second, Call)
    assert program.resolve(first.name, procedure) is program.procedures["program.c::other"]
    assert program.resolve(second.name, procedure) is procedure


def test_many_statements_keep_their_order() -> None:
    found = statements("n = 1; n = 2; ; n = 3;")
    assert [type(s).__name__ for s in found] == ["Assign", "Assign", "Nothing", "Assign"]


def test_a_function_of_the_programs_may_keep_addresses_whatever_its_name() -> None:
    _, procedure = function("int n; read(&n);", "static int *kept; static void read(int *p) { kept = p; }")
    assert procedure.symbols["n"].target


def test_what_a_library_writes_through_references_is_given_by_address() -> None:
    before = "namespace std { template <class T> void swap(T &, T &); }"
    found = statement("std::swap(n, m);", before + " int n, m;", name="program.cpp")
    assert isinstance(found, Call)
    assert all(isinstance(argument, AddressOf) for argument in found.arguments)


@pytest.mark.parametrize(
    ("text", "keeps"),
    [
        ("(unsigned)n", True),
        ("(size_t)n", True),
        ("(long)k", True),
        ("(int)k", False),
        ("(long)(k - 1)", False),
        ("(long)(size_t)n", True),
    ],
)
def test_conversions_that_keep_a_number(text: str, keeps: bool) -> None:
    found = expression(text, "typedef unsigned long size_t; int n; unsigned k;")
    cast = next(e for e in found.walk() if isinstance(e, Cast))
    assert cast.keeps is keeps


@pytest.mark.parametrize(("text", "wraps"), [("n % 8", 0), ("n % 8u", 4), ("n / 8ul", 8), ("n < k", 4), ("-k", 4)])
def test_operations_on_unsigned_numbers_say_so(text: str, wraps: int) -> None:
    found = expression(text, "int n; unsigned k;")
    assert [e.wraps for e in found.walk() if isinstance(e, Operation)] == [wraps]


@pytest.mark.parametrize(
    ("text", "operator"),
    [("n += 1u", "+"), ("n += m", "+"), ("n += 4294967295u", None), ("n += l", None), ("l += n", "+")],
)
def test_compound_assignments_that_convert(text: str, operator: str | None) -> None:
    found = statement(f"{text};", "int n, m; long l;")
    assert isinstance(found, Assign)
    assert found.operator == operator
    assert isinstance(found.value, Cast) is (operator is None)
