"""Expressions, and what tells arrays, functions, constants and literals apart."""

from __future__ import annotations

import pytest
from _fortran import body, subroutine

from lapwing.overlap.ir.expressions import Name
from lapwing.overlap.ir.statements import Assign

DECLARED = """\
  integer i, j, n
  integer, parameter :: five = 5
  real a(10), b(10, 10), f
  character(len=8) s
  logical p, q
  type t
    integer k(3)
    real z
  contains
    procedure :: method
  end type
  type(t) o, os(4)
"""


@pytest.mark.parametrize(
    ("source", "read"),
    [
        ("-x**2 + y*z", "(+ (neg (** x 2)) (* y z))"),
        ("x**y**2**z", "(** x (** y (** 2 z)))"),
        ("(x**y)**2", "(** (** x y) 2)"),
        ("x - y - z/x/y", "(- (- x y) (/ (/ z x) y))"),
        ("-x*y", "(neg (* x y))"),
        ("-x - y", "(- (neg x) y)"),
        ("a(i+1) / b(:, j)", "(/ a[(+ i 1)] b[:, j])"),
        ("b(1:n:2, 3:)", "b[1:n:2, 3:]"),
        ("f(i) + g(j)", "(+ f<i> g<j>)"),
        ("max(i, five)", "max<i, five>"),
        ("p .and. .not. q .or. i .LE. 3", "(|| (&& p (! q)) (<= i 3))"),
        ("p .eqv. q .neqv. .true.", "(!= (== p q) .true.)"),
        ("i /= 1", "(!= i 1)"),
        ("1.5d-3 + 2_8 + 1e2 + .5", "(+ (+ (+ 0.0015 2) 100.0) 0.5)"),
        ("-5", "-5"),
        ("s(2:3) // 'it''s'", "(// s[2:3] 'it''s')"),
        ("(1.0, 2.0)", "cmplx<1.0, 2.0>"),
        ("(/ 1, i /)", "([] 1 i)"),
        ("[real :: 1, 2]", "([] 1 2)"),
        ("(/ (a(j)*j, j = 1, n) /)", "([] ([] (* a[1:n:1] j) n))"),
        ("(/ (a(j+1), j = 1, n) /)", "([] ([] a[:] n))"),
        ("o%k(2) + os(i)%z", "(+ o%k[2] os[i]%z)"),
        ("o%method(i)", "None<o, i>"),
        ("x .cross. y", "unread{x, y}"),
        ("mpi_comm_world", "@MPI_COMM_WORLD"),
        ("kind(1.0d0)", "8"),
        ("z'ff'", "z'ff'"),
    ],
)
def test_expression(source: str, read: str) -> None:
    assert body(f"  x = {source}", DECLARED) == [f"x = {read}"]


def test_blanks_inside_operators_of_fixed_form() -> None:
    assert body("      if (i . eq. 3) x = 1", name="a.f")[0] == "if (== i 3)"


def test_spans_are_as_spelled() -> None:
    program, procedure = subroutine("  X = (Alpha) * beta(1)", "  real beta(3)")
    statement = procedure.body.statements[0]
    assert isinstance(statement, Assign)
    spelled = [program.sources[0].text(part.span) for part in statement.value.walk() if part.span]
    assert spelled == ["(Alpha) * beta(1)", "(Alpha)", "beta(1)", "beta", "1"]


def test_names_are_one_variable_in_any_case() -> None:
    _, procedure = subroutine("  ABC = abc")
    statement = procedure.body.statements[0]
    assert isinstance(statement, Assign)
    assert isinstance(statement.target, Name)
    assert statement.target == statement.value


def test_statement_functions_read_the_variables_in_them() -> None:
    lines = "      sf(x) = x*scale\n      y = sf(z)"
    assert body(lines, name="a.f") == ["y = unread{z, scale}"]


def test_an_undeclared_name_that_is_assigned_is_an_array() -> None:
    _, procedure = subroutine("  if (x > 1) w(i) = 1", "  use elsewhere")
    assert procedure.symbols["w"].overlay == "unknown module elsewhere"


def test_operators_of_derived_types_may_call_anything() -> None:
    overloaded = "  interface operator(+)\n    procedure add\n  end interface\n" + DECLARED
    assert body("  x = o + 1", DECLARED) == ["x = (+ o 1)"]
    assert body("  x = o + 1", overloaded) == ["x = unread{o, 1}"]
