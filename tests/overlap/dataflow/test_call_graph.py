"""The call graph on programs made by hand: who calls whom, what may communicate, which variables travel in messages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from _model import DOUBLE, INT, POINTER, Maker, at

from lapwing.overlap.dataflow.call_graph import CallGraph, Target, message_variables
from lapwing.overlap.ir.expressions import AddressOf, Constant, Name, Number, Operation, Symbol, Text, Unread
from lapwing.overlap.ir.statements import Assign, Block, If
from lapwing.overlap.languages.c.reading import read_c, read_c_text
from lapwing.overlap.source.spans import Span

pytestmark = pytest.mark.usefixtures("own_header")

COMM = Constant("MPI_COMM_WORLD")


@pytest.fixture
def c() -> Maker:
    return Maker("c")


@pytest.fixture
def fortran() -> Maker:
    return Maker("fortran")


def graph(maker: Maker) -> CallGraph:
    return CallGraph.of(maker.program())


def names(variables: frozenset[Symbol]) -> set[str]:
    return {symbol.name for symbol in variables}


def test_calls_in_statements_expressions_and_blocks_are_found(c: Maker) -> None:
    x = c.variable("x")
    for name in ("f", "g", "h"):
        c.procedure(name)
    block = Block((c.call("h"),), Span(0, 0, 0))
    condition = Operation("<", (c.apply("g", x), Number(1)))
    c.main(c.let(x, Operation("+", (c.apply("f"), Number(1)))), If(condition, block, span=c.span()))
    found = graph(c)
    assert found.callees("main") == {"f", "g", "h"}
    assert found.callers("h") == {"main"}
    assert [site.procedure for site in found.calls_of("g")] == ["main"]
    assert found.calls_of("g")[0].call == c.apply("g", x)


def test_functions_that_go_by_longer_names_are_found(tmp_path: Path) -> None:
    (tmp_path / "tools.h").write_text("static int twice(int n) { return 2 * n; }\n")
    main = tmp_path / "main.c"
    main.write_text('#include "tools.h"\nint main(void) { return twice(2); }\n')
    found = CallGraph.of(read_c([main]))
    assert [site.target for site in found.calls_of("tools.h::twice")] == [Target.PROCEDURE]
    text = "namespace n { void f(int) {} void f(double) {} }\nint main() { n::f(1); n::f(1.0); return 0; }\n"
    found = CallGraph.of(read_c_text(text, "program.cpp"))
    assert not found.unknown_calls()
    assert len(found.callees("main")) == 2


def test_calls_are_told_apart(c: Maker) -> None:
    c.procedure("sqrt", key="sqrt")
    c.main(
        c.call("sqrt", Number(2)), c.call("cbrt", Number(2)), c.call("MPI_Barrier", COMM), c.call("PMPI_Barrier", COMM),
        c.call("mystery"), c.call(None, Number(1)),
    )  # fmt: skip
    found = graph(c)
    assert [site.target for site in found.sites["main"]] == [
        Target.PROCEDURE, Target.LIBRARY, Target.MPI, Target.MPI, Target.UNKNOWN, Target.UNKNOWN,
    ]  # fmt: skip
    assert [site.name for site in found.unknown_calls()] == ["mystery", None]
    assert [site.pointer for site in found.unknown_calls()] == [False, True]
    assert found.reaches_unknown("main")
    assert not found.reaches_unknown("sqrt")


def test_an_intrinsic_of_fortran_is_no_function_of_c(c: Maker, fortran: Maker) -> None:
    c.main(c.call("random_number", Number(1)))
    fortran.main(fortran.call("random_number", Number(1)), fortran.call("malloc", Number(1)))
    assert [site.target for site in graph(c).sites["main"]] == [Target.UNKNOWN]
    assert [site.target for site in graph(fortran).sites["main"]] == [Target.LIBRARY, Target.UNKNOWN]


def test_a_static_function_comes_before_another_file_s(c: Maker) -> None:
    c.procedure("f", key="f")
    c.procedure("f", key="main.c::f")
    c.main(c.call("f"))
    assert graph(c).callees("main") == {"main.c::f"}


def test_order_is_callees_first_and_recursion_is_one_component(c: Maker) -> None:
    c.procedure("leaf")
    c.procedure("even", body=(c.call("odd"), c.call("leaf")))
    c.procedure("odd", body=(c.call("even"),))
    c.procedure("self", body=(c.call("self"),))
    c.main(c.call("even"), c.call("self"))
    found = graph(c)
    order = found.bottom_up
    assert sorted(order) == ["even", "leaf", "main", "odd", "self"]
    assert order.index("leaf") < order.index("even") < order.index("main")
    assert any(set(component) == {"even", "odd"} for component in found.components)
    assert [found.recursive(name) for name in ("leaf", "even", "odd", "self", "main")] == [
        False, True, True, True, False,
    ]  # fmt: skip


def test_a_long_chain_of_calls_needs_no_deep_stack(c: Maker) -> None:
    for number in range(5000):
        c.procedure(f"f{number}", body=(c.call(f"f{number + 1}"),))
    c.procedure("f5000", body=(c.call("MPI_Barrier", COMM),))
    c.main(c.call("f0"))
    found = graph(c)
    assert found.bottom_up[0] == "f5000"
    assert found.reaches_mpi("main")


def test_communication_is_reached_through_calls_and_address_taken_procedures(c: Maker) -> None:
    c.procedure("talk", body=(c.call("MPI_Barrier", COMM),))
    c.procedure("through", body=(c.call("talk"),))
    c.procedure("quiet")
    c.procedure("indirect", body=(c.call(None),))
    c.main(c.call("through"), c.call("quiet"), c.call("indirect"))
    found = graph(c)
    assert [found.reaches_mpi(name) for name in ("talk", "through", "main", "quiet", "indirect")] == [
        True, True, True, False, False,
    ]  # fmt: skip
    c.main(c.call("through"), c.call("indirect"), c.call("mystery", Constant("talk")))
    found = graph(c)
    assert found.address_taken == {"talk"}
    assert found.reaches_mpi("indirect")


def test_a_sort_calls_back(c: Maker) -> None:
    a = c.variable("a", DOUBLE, 4)
    c.procedure("compare", body=(c.call("MPI_Barrier", COMM),))
    c.procedure("sort", body=(c.call("qsort", a, Number(4), Number(8), Constant("compare")),))
    c.main(c.call("sort"))
    found = graph(c)
    assert found.callees("sort") == {"compare"}
    assert found.reaches_mpi("main")


def test_a_dummy_procedure_is_not_the_procedure_of_its_name(fortran: Maker) -> None:
    f = fortran.argument("work", key="procedure apply::work")
    fortran.procedure("work")
    fortran.procedure("apply", (f,), (fortran.call("work"),))
    fortran.main(fortran.call("apply", Constant("other")))
    found = graph(fortran)
    assert found.callees("apply") == set()
    assert found.sites["apply"][0].pointer


def test_what_could_not_be_read_may_call_and_communicate(c: Maker) -> None:
    c.procedure("f")
    c.procedure("plain", body=(c.opaque("switch (n) { case 1: f(); default: n = 2; }"),))
    c.procedure("talks", body=(c.opaque("for (;;) MPI_Barrier(MPI_COMM_WORLD); /* mystery(x) */"),))
    c.procedure("unread", body=(Assign(Name(c.variable("x")), Unread('f(1) + "g()"'), span=c.span()),))
    c.main(c.call("plain"), c.call("talks"))
    found = graph(c)
    assert found.callees("plain") == found.callees("unread") == {"f"}
    assert found.reaches_mpi("talks")
    assert found.reaches_mpi("main")
    assert not found.reaches_mpi("plain")
    assert found.reaches_unknown("main")
    assert not found.external_code


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("mystery(1);", True),
        ("EVERYTHING;", True),
        ("printf(\"mystery(1)\"); // mystery(2)", False),
        ("#pragma omp parallel num_threads(4)\n{ x = omp_get_thread_num(); }", False),
        ("#define x y\n", True),
        ("#ifdef FAST\nprintf(\"\");\n#endif", False),
        ("s.call(1); s->call(2);", False),
    ],
)  # fmt: skip
def test_what_an_unread_text_may_hold(c: Maker, text: str, unknown: bool) -> None:
    body = Block((c.opaque(text),), Span(0, 0, 0))
    c.main(*body.statements)
    (hidden,) = graph(c).hidden["main"]
    assert hidden.unknown == unknown


@pytest.mark.parametrize(
    ("definition", "unknown"),
    [
        ("#define COUNT 4", False), ("#  define COUNT (4 * 2)", False), ("#define COUNT", False), ("#define OTHER 4", True),
        ("#define COUNT mystery()", True), ("#define COUNT(x) 4", True), ("#define COUNT 4\n#define COUNT work", True),
    ],
)  # fmt: skip
def test_a_macro_that_is_a_number_hides_nothing(c: Maker, definition: str, unknown: bool) -> None:
    c.span(definition)
    c.main(c.opaque("x = COUNT;"))
    assert graph(c).hidden["main"][0].unknown == unknown


def test_fortran_s_unread_text(fortran: Maker) -> None:
    a = fortran.variable("a", DOUBLE, 4)
    fortran.procedure("work")
    text = "CALL Work(A) ; call other ! call third\nif (x .and. y) s%f(1) = sqrt(a(1))"
    fortran.main(fortran.opaque(text), symbols=(a,))
    (hidden,) = graph(fortran).hidden["main"]
    assert names(hidden.symbols) == {"a"}
    assert hidden.procedures == {"work"}
    assert hidden.unknown
    fortran.main(fortran.opaque(text.replace("call other", "")), symbols=(a,))
    assert not graph(fortran).hidden["main"][0].unknown


def test_procedures_that_others_may_call(c: Maker) -> None:
    c.procedure("used")
    c.procedure("unused")
    c.procedure("hidden", key="main.c::hidden")
    body = (c.call("used"), c.call("hidden"))
    c.main(*body)
    assert graph(c).entries == {"main", "unused"}
    c.main(*body, c.call("mystery"))
    assert graph(c).entries == {"main", "unused", "used"}
    del c.procedures["main"]
    found = graph(c)
    assert not found.whole
    assert found.external_code


# ---- message-passing variables (P2, figure 3) -------------------------------------------------------------------------


def bcast(maker: Maker, *buffer: Symbol | AddressOf | Operation) -> object:
    return maker.call("MPI_Bcast", *buffer, Number(4), Constant("MPI_DOUBLE"), Number(0), COMM)


def test_buffers_and_what_they_are_in_callers_and_callees(fortran: Maker) -> None:
    d, n = (
        fortran.argument("d", DOUBLE, 4, key="procedure send::d"),
        fortran.argument("n", INT, key="procedure send::n"),
    )
    e = fortran.argument("e", DOUBLE, 4, key="procedure use::e")
    a, b, i = fortran.variable("a", DOUBLE, 4), fortran.variable("b", DOUBLE, 4), fortran.variable("i", INT)
    fortran.procedure("send", (d, n), (bcast(fortran, at(d, Name(n))),))  # type: ignore[arg-type]
    fortran.procedure("use", (e,))
    fortran.main(fortran.call("send", at(a, Name(i)), i), fortran.call("use", a), fortran.call("use", b))
    program = fortran.program()
    found = message_variables(program, CallGraph.of(program))
    # b is a caller's name for what e may be, and e is one.
    assert {key: names(symbols) for key, symbols in found.items()} == {"send": {"d"}, "use": {"e"}, "main": {"a", "b"}}


def test_a_global_buffer_is_one_wherever_it_can_be_named(c: Maker) -> None:
    g, p, other = c.common("g", POINTER), c.variable("p", POINTER), c.common("other", DOUBLE, 4)
    c.procedure("send", body=(bcast(c, AddressOf(at(g, 3))),))  # type: ignore[arg-type]
    c.procedure("use")
    c.main(bcast(c, Operation("+", (Name(p), Number(1)))), c.call("printf", Text('"%f"'), at(other, 0)))  # type: ignore[arg-type]
    program = c.program()
    found = message_variables(program, CallGraph.of(program))
    assert {key: names(symbols) for key, symbols in found.items()} == {"send": {"g"}, "use": {"g"}, "main": {"g", "p"}}


def test_arguments_that_are_no_buffers_are_not_communicated(c: Maker) -> None:
    a, n = c.variable("a", DOUBLE, 4), c.variable("n", INT)
    c.main(c.call("MPI_Send", a, n, Constant("MPI_DOUBLE"), n, n, COMM))
    program = c.program()
    assert names(message_variables(program, CallGraph.of(program))["main"]) == {"a"}


# ---- what runs once -----------------------------------------------------------------------------------------------------

ONCE = """\
#include <stdio.h>
static void set_up(void) { puts("set up"); }
static void twice(void) { puts("twice"); }
static void turn(void) { puts("turn"); }
static void again(int n) { puts("again"); if (n) again(n - 1); }
static void later(void) { puts("later"); }
static void handler(void) { puts("handler"); }
void library(void) { puts("library"); }
static void (*kept)(void) = handler;
static void deep(void) { set_up(); puts("deep"); }
int main(int argc, char **argv)
{
    deep();
    twice();
    if (argc > 1) twice();
    for (int i = 0; i < argc; i++) { turn(); puts("loop"); }
    again(2);
    handler();
    puts("before");
back:
    later();
    if (argc-- > 7) goto back;
    if (argc < 0) goto forth;
    puts("between");
forth:
    puts("after");
    kept();
    return 0;
}
"""


def test_what_runs_once() -> None:
    program = read_c_text(ONCE)
    found = CallGraph.of(program)
    once = {
        word: found.runs_once(statement, procedure)
        for procedure in program.procedures.values()
        for statement in procedure.body.walk()
        if not statement.blocks()
        for word in re.findall(r'puts\("(.*)"\);?$', program.sources[0].text(statement.span))
    }
    assert {word for word, runs_once in once.items() if runs_once} == {"set up", "deep", "before", "between", "after"}
    assert {"twice", "turn", "loop", "again", "later", "handler", "library"} <= set(once)
