"""The C front end: C++."""

from __future__ import annotations

import pytest
from _c_programs import said

from lapwing.overlap.ir.expressions import AddressOf, Deref, Element, Invocation, Member, Name, Unread
from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.ir.statements import Assign, Call, Declare, Loop, Opaque, Statement, While
from lapwing.overlap.languages.c.reading import read_c_text

CLASSES = """
extern "C" int MPI_Barrier(int);
namespace app {
class Grid {
 public:
  Grid(int n) : n_(n) { MPI_Barrier(0); }
  ~Grid() {}
  double &at(int i) { return data_[i]; }
  virtual void step();
  void exchange(double *buffer, int n);
  double &operator[](int i);
  static int count;
  static void hello();
  int n_;
  double *data_;
};
}
struct Plain { int a; double b; };
static void bump(int &x) { x++; }
template <class T> T twice(T x) { MPI_Barrier(0); return x + x; }
int value();
"""


def read(body: str, before: str = "") -> tuple[Program, Procedure]:
    program = read_c_text(f"{CLASSES}{before}\nvoid f(app::Grid &g, int n, double *v) {{\n{body}\n}}\n", "program.cpp")
    return program, program.procedures["f"]


def last(body: str, before: str = "") -> Statement:
    return read(body, before)[1].body.statements[-1]


def test_methods() -> None:
    program, _ = read(
        "", "void app::Grid::exchange(double *b, int n) { MPI_Barrier(0); n_ = n; this->n_ = data_[1]; count++; }"
    )
    method = program.procedures["app::Grid::exchange"]
    assert [p.name for p in method.parameters] == ["this", "b", "n"]
    assert method.parameters[0].pointer
    barrier, first, second, third = method.body.statements
    assert isinstance(barrier, Call)
    assert isinstance(first, Assign)
    assert isinstance(second, Assign)
    assert first.target == second.target == Member(Deref(Name(method.parameters[0])), "n_")
    assert isinstance(second.value, Element)
    assert isinstance(third, Assign)
    assert third.target == Name(program.globals["app::Grid::count"])


def test_calls_of_methods() -> None:
    program, procedure = read("g.exchange(v, 3); g.step(); app::Grid::hello(); app::Grid *p = &g; p->exchange(v, 2);")
    exchange, step, hello, _, through = procedure.body.statements
    assert isinstance(exchange, Call)
    assert isinstance(exchange.arguments[0], AddressOf)
    assert (exchange.name, len(exchange.arguments)) == ("app::Grid::exchange", 3)
    assert isinstance(step, Call)
    assert step.name is None  # virtual
    assert isinstance(hello, Call)
    assert (hello.name, hello.arguments) == ("app::Grid::hello", ())
    assert isinstance(through, Call)
    assert isinstance(through.arguments[0], Name)
    assert "app::Grid::at" in program.procedures


def test_references() -> None:
    program, procedure = read("int &r = n; r = 4; bump(n); g.at(3) = 2; g[1] = 5;")
    declared, through, call, method, operator = procedure.body.statements
    assert isinstance(declared, Declare)
    assert isinstance(declared.variables[0][1], AddressOf)
    assert isinstance(through, Assign)
    assert isinstance(through.target, Deref)
    assert isinstance(call, Call)
    assert call.arguments == (Name(procedure.parameters[1]),)
    for found in (method, operator):
        assert isinstance(found, Assign)
        assert isinstance(found.target, Deref)
        assert isinstance(found.target.pointer, Invocation)
    parameter = program.procedures["program.cpp::bump"].parameters[0]
    assert not parameter.by_value
    assert not parameter.pointer
    assert procedure.parameters[1].target


def test_a_reference_may_change_a_loops_variable() -> None:
    assert isinstance(last("for (int i = 0; i < n; i++) { bump(i); }"), While)
    assert isinstance(last("for (int i = 0; i < n; i++) { value(); }"), Loop)


def test_plain_structs_are_variables() -> None:
    _, procedure = read("Plain p{1, 2.0}; Plain q; q = p; p.a = 3;")
    assert [type(s) for s in procedure.body.statements] == [Declare, Declare, Assign, Assign]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("app::Grid local(3);", "constructor"),
        ("auto h = [&](int a) { MPI_Barrier(0); return a + n; };", "lambda"),
        ("try { MPI_Barrier(0); } catch (...) { }", "exceptions"),
        ("throw 3;", "exceptions"),
        ("int *p = new int[3];", "new"),
        ("delete v;", "new"),
        ("int a[3]; for (int x : a) n += x;", "range-based"),
        ("if (int z = value()) n = z;", "declaration in its condition"),
        ("while (int z = value()) n = z;", "declaration in its condition"),
        ("Plain p; auto [a, b] = p;", "declaration that is not supported"),
        ("if constexpr (sizeof(int) == 4) n = 1;", None),
    ],
)
def test_what_is_opaque(text: str, reason: str | None) -> None:
    found = last(text)
    assert isinstance(found, Opaque)
    if reason:
        assert reason in found.reason


def test_constructors_are_opaque() -> None:
    program, _ = read("")
    assert isinstance(program.procedures["app::Grid::Grid"].body.statements[0], Opaque)


def test_templates_are_there_but_not_read() -> None:
    program, procedure = read("double y = twice(3.0);")
    assert [type(s) for s in program.procedures["twice"].body.statements] == [Opaque]
    assert any("twice" in problem.message and "MPI_Barrier" in problem.message for problem in program.problems)
    assert [type(s) for s in procedure.body.statements] == [Declare]


def test_overloads_are_different_procedures() -> None:
    program, procedure = read(
        "over(1); over(2.0);", "void over(int) { MPI_Barrier(1); }\nvoid over(double) { MPI_Barrier(2); }"
    )
    names = [s.name for s in procedure.body.statements if isinstance(s, Call)]
    assert len(set(names)) == 2
    assert all(program.resolve(name, procedure) for name in names)


def test_text_of_statements() -> None:
    program, procedure = read("n = 1;\ng.at(n) = 2;")
    assert said(program, procedure) == ["Assign: n = 1;", "Assign: g.at(n) = 2;"]


OBJECTS = """
struct Counted { int n; ~Counted() { hits++; } static int hits; };
struct Holder { Counted inside; };
struct Made { Made(int); int n; };
Counted counted(); Holder holder(); Made made(int);
void take(Counted); void look(const Counted &); void see(Made);
"""


@pytest.mark.parametrize(
    "call", ["counted();", "holder();", "n = counted().n;", "take({3});", "look(Counted{3});", "look({3});"]
)
def test_objects_that_are_unmade_at_once(call: str) -> None:
    assert any(isinstance(e, Unread) for top in last(call, OBJECTS).expressions() for e in top.walk())


def test_objects_whose_end_does_nothing() -> None:
    for call in ("made(3);", "see(3);"):
        assert isinstance(last(call, OBJECTS), Call)


def test_a_reference_keeps_an_object() -> None:
    assert isinstance(last("const Counted &kept = counted();", OBJECTS), Opaque)
    assert isinstance(last("const Counted &old = *(Counted *)v;", OBJECTS), Declare)


@pytest.mark.parametrize("value", ["v[3]", "value()", "*v", "n"])
def test_static_variables_that_get_a_value_when_control_passes(value: str) -> None:
    assert isinstance(last(f"static double first = {value};"), Opaque)
    assert isinstance(last(f"thread_local double first = {value};"), Opaque)


@pytest.mark.parametrize(
    "declared", ["bool x = true", "double x[2] = {1, 2}", "double *x = table + 3", "double &x = table[3]"]
)
def test_static_variables_that_have_their_value_from_the_start(declared: str) -> None:
    assert isinstance(last(f"static {declared};", "static double table[9];"), Declare)


def test_an_assignment_of_the_class_s_own() -> None:
    own = "struct Sum { double d; Sum &operator=(double); Sum &operator+=(double); }; static Sum s, t;"
    assert isinstance(last("s = t;", own), Assign)
    for call in ("s = 3.0;", "s += 3.0;"):
        assert isinstance(last(call, own), Call)
