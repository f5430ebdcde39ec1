"""Declarations: types, bounds, storage, COMMON, EQUIVALENCE, modules, implicit typing, include files."""

from __future__ import annotations

import pytest
from _fortran import body, bounds, opaques, short, subroutine, symbol, text

from lapwing.overlap.ir.expressions import Storage
from lapwing.overlap.languages.fortran.reading import read_text


@pytest.mark.parametrize(
    ("declaration", "base", "size"),
    [
        ("integer a", "integer", 4),
        ("integer*8 a", "integer", 8),
        ("integer(kind=2) :: a", "integer", 2),
        ("real a", "real", 4),
        ("real*8 a", "real", 8),
        ("real(8) a", "real", 8),
        ("double precision a", "real", 8),
        ("doubleprecision a", "real", 8),
        ("complex a", "complex", 8),
        ("complex*16 a", "complex", 16),
        ("complex(8) a", "complex", 16),
        ("double complex a", "complex", 16),
        ("logical a", "logical", 4),
        ("character a", "character", 1),
        ("character*80 a", "character", 80),
        ("character a*5", "character", 5),
        ("character(len=7) :: a", "character", 7),
        ("character*(*) a", "character", None),
        ("character(kind=1, len=7) :: a", "character", 7),
        ("character(kind=1) :: a", "character", 1),
        ("integer, parameter :: dp = kind(1.0d0)\nreal(dp) a", "real", 8),
        ("integer, parameter :: dp = selected_real_kind(15)\nreal(dp) a", "real", 8),
        ("use iso_fortran_env\nreal(real64) a", "real", 8),
        ("use, intrinsic :: iso_c_binding, only: c_double_complex\ncomplex(c_double_complex) a", "complex", 16),
        ("integer(MPI_OFFSET_KIND) a", "integer", 8),
        ("type(MPI_Request) a", "struct", 4),
        ("type t\ninteger k\nend type\ntype(t) a", "struct", None),
    ],
)
def test_types(declaration: str, base: str, size: int | None) -> None:
    found = symbol(declaration)
    assert (found.type.base, found.type.bytes) == (base, size)


@pytest.mark.parametrize(
    ("declaration", "shape"),
    [
        ("real a", None),
        ("real a(10)", ["1:10"]),
        ("real a(0:n, -1:*)", ["0:n", "-1:"]),
        ("real a(:, 2:)", [":", "2:"]),
        ("real, dimension(3, n+1) :: a", ["1:3", "1:(+ n 1)"]),
        ("real, dimension(3) :: b, a(4)", ["1:4"]),
        ("dimension a(5)", ["1:5"]),
        ("integer, parameter :: m = 3*4 - 2**2\nreal a(m/3, mod(m, 3))", ["1:2", "1:2"]),
        ("integer m\nparameter (m = (-7)/2)\nreal a(m:max(m, 4))", ["-3:4"]),
        ("real, allocatable :: a(:)", [":"]),
        ("allocatable a(:)", [":"]),
        ("integer a(MPI_STATUS_SIZE)", ["1:@MPI_STATUS_SIZE"]),
    ],
)
def test_bounds(declaration: str, shape: list[str] | None) -> None:

    assert bounds(symbol(declaration)) == shape


@pytest.mark.parametrize(
    ("declaration", "storage"),
    [
        ("real a", Storage.LOCAL),
        ("real, save :: a", Storage.SAVED),
        ("real a\nsave a", Storage.SAVED),
        ("real a\nsave", Storage.SAVED),
        ("real a\nsave /c/, b", Storage.LOCAL),
        ("real :: a = 1.0", Storage.SAVED),
        ("real a /1.0/", Storage.SAVED),
        ("real a(3)\ndata (a(i), i=1,3) /3*0.0/", Storage.SAVED),
        ("type(t) :: a\ndata a%b, a%c(1) /2*0/", Storage.SAVED),
        ("common /c/ a", Storage.GLOBAL),
        ("parameter (a = 3)", Storage.CONSTANT),
    ],
)
def test_storage(declaration: str, storage: Storage) -> None:
    assert symbol(declaration).storage is storage


def test_attributes_of_dummy_arguments() -> None:
    program = read_text(
        "subroutine s(a, b, c, d)\n real, intent(in out) :: a\n integer, value :: b\n optional c\n"
        " real, target, volatile :: d\n real, pointer :: p(:)\n end\n"
    )
    a, b, c, d = program.procedures["s"].parameters
    assert (a.storage, a.intent) == (Storage.ARGUMENT, "inout")
    assert b.by_value
    assert c.optional
    assert d.target
    assert d.volatile
    assert program.procedures["s"].symbols["p"].pointer


def test_constants_have_values() -> None:
    assert text(symbol("integer, parameter :: b = 4, a = b*b").value) == "16"
    assert text(symbol("double precision a\nparameter (a = 1.5d0)").value) == "1.5"
    assert text(symbol("character*3, parameter :: a = 'xyz'").value) == "'xyz'"


@pytest.mark.parametrize(
    ("declaration", "length"),
    [
        ("character(len=n + 1) :: a", "(+ n 1)"),
        ("character(kind=1, len=n) :: a", "n"),
        ("character(len=7) :: a", None),
        ("character(len=*) :: a", None),
        ("character*(*) a", None),
        ("character(len=:), allocatable :: a", None),
    ],
)
def test_lengths_that_are_no_numbers_are_kept(declaration: str, length: str | None) -> None:
    found = symbol(declaration).length
    assert (None if found is None else text(found)) == length


def test_implicit_typing() -> None:
    _, procedure = subroutine("  i = x\n  zz = 1", "  implicit real*8 (a-h, o-z), logical (l)\n  dimension l(2)")
    assert (procedure.symbols["i"].type.base, procedure.symbols["x"].type.bytes) == ("integer", 8)
    assert procedure.symbols["l"].type.base == "logical"
    assert procedure.symbols["zz"].key == "procedure s::zz"


def test_what_is_declared_in_two_ways_is_not_known() -> None:
    declaration = "#if SINGLE(1)\n  real*4 a(3)\n#else\n  real*8 a(4)\n#endif"
    found = symbol(declaration)
    assert found.type.bytes is None
    assert bounds(found) == [":"]


# ---- storage shared -------------------------------------------------------------------------------------------------------


def test_common_laid_out_alike_is_one_set_of_variables() -> None:
    program = read_text(
        "subroutine s\n parameter (n=2)\n common /b/ u(n), k\n common v\n end\n"
        "subroutine t\n common /b/ u(2), k\n common v\n end\n"
    )
    first, second = program.procedures["s"].symbols, program.procedures["t"].symbols
    assert first["u"] == second["u"]
    assert first["u"].key == "common b::u"
    assert first["u"].overlay is None
    assert first["v"] == second["v"]
    assert set(program.globals) == {"common b::u", "common b::k", "common //::v"}


@pytest.mark.parametrize("other", ["u(3), k", "k, u(2)", "w(2), k", "u(2)", "u(2), x"])
def test_common_laid_out_differently_shares_storage(other: str) -> None:
    program = read_text(f"subroutine s\n common /b/ u(2), k\n end\nsubroutine t\n common /b/ {other}\n end\n")
    first, second = program.procedures["s"].symbols, program.procedures["t"].symbols
    assert first["u"] not in second.values()
    overlays = {variable.overlay for variable in (*first.values(), *second.values())}
    assert overlays == {"common b"}


def test_block_data_counts_for_the_layout() -> None:
    program = read_text("subroutine s\n common /b/ u(2)\n end\nblock data\n common /b/ u(3)\n end\n")
    assert program.procedures["s"].symbols["u"].overlay == "common b"
    assert list(program.procedures) == ["s"]


def test_equivalence() -> None:
    declarations = "real a(2), b(2), c, d, e\nequivalence (a(1), b(2)), (c, d)\nequivalence (b(1), e)"
    _, procedure = subroutine("", declarations)
    shared = {name: procedure.symbols[name].overlay for name in "abcde"}
    assert shared["a"] == shared["b"] == shared["e"] is not None
    assert shared["c"] == shared["d"] is not None
    assert shared["a"] != shared["c"]


def test_equivalence_with_common() -> None:
    _, procedure = subroutine("", "real a, b, c\ncommon /blk/ a, c\nequivalence (a, b)")
    assert {procedure.symbols[name].overlay for name in "abc"} == {"common blk"}


def test_what_is_laid_over_common_or_saved_outlasts_the_call() -> None:
    declarations = "real a, b, c, d, e, f, g\ncommon /blk/ a\nequivalence (a, b), (c, d), (e, f, g)\nsave d\n"
    _, procedure = subroutine("", declarations)
    storages = {name: symbol.storage for name, symbol in procedure.symbols.items()}
    assert storages["a"] is storages["b"] is Storage.GLOBAL
    assert storages["c"] is storages["d"] is Storage.SAVED
    assert storages["e"] is storages["f"] is storages["g"] is Storage.LOCAL


# ---- modules ----------------------------------------------------------------------------------------------------------------

MODULES = """\
subroutine user
  use second, only: n => m, b
  use hidden
  call inner
  b = n
contains
  subroutine inner
    n = here
    here = secret
  end subroutine
end subroutine
module second
  use first
contains
  subroutine of_module
    m = 1
  end subroutine
end module
module first
  implicit none
  integer m
  real :: b
end module
module hidden
  private
  integer, public :: seen
  integer secret
end module
"""


def test_modules_in_any_order_with_renaming() -> None:
    program = read_text(MODULES)
    user = program.procedures["user"]
    assert user.symbols["n"].key == "module first::m"
    assert user.symbols["b"].key == "module first::b"
    assert "m" not in user.symbols
    assert user.symbols["seen"].key == "module hidden::seen"
    assert "secret" not in user.symbols
    assert program.procedures["module second::of_module"].host == "module second"
    assert {"module first::m", "module first::b", "module hidden::secret"} <= set(program.globals)


def test_internal_procedures_share_their_hosts_variables() -> None:
    program = read_text(MODULES)
    inner = program.procedures["procedure user::inner"]
    assert inner.host == "procedure user"
    assert inner.symbols["n"].key == "module first::m"
    assert inner.symbols["here"].key == "procedure procedure user::inner::here"
    assert program.resolve("inner", program.procedures["user"]) is inner


def test_functions_and_their_results() -> None:
    program = read_text(
        "module m\ncontains\nreal(8) function f(x)\n f = g(x)\nend function\n"
        "function g(x) result(r)\n integer r\n r = x\nend function\nend module\n"
    )
    f, g = program.procedures["module m::f"], program.procedures["module m::g"]
    assert short(f.body) == ["f = g<x>"]
    assert f.result is not None
    assert f.result.type.bytes == 8
    assert g.result is not None
    assert (g.result.name, g.result.type.base) == ("r", "integer")


@pytest.mark.parametrize(
    ("declaration", "interface"),
    [
        ("  include 'mpif.h'", "mpif.h"),
        ("#include <mpif.h>", "mpif.h"),
        ("  use mpi", "mpi"),
        ("  use mpi_f08, only: MPI_Send", "mpi_f08"),
        ("  use wrapper", "mpif.h"),
        ("", None),
    ],
)
def test_mpi_interface(declaration: str, interface: str | None) -> None:
    program = read_text(f"module wrapper\n  include 'mpif.h'\nend module\nsubroutine s\n{declaration}\nend\n")
    assert program.procedures["s"].mpi_interface == interface
    assert not program.problems


def test_a_missing_module_is_reported_and_its_names_are_shared() -> None:
    program, procedure = subroutine("  w = 1", "  use elsewhere\n  implicit none")
    assert procedure.symbols["w"].storage is Storage.GLOBAL
    assert procedure.symbols["w"].overlay == "unknown module elsewhere"
    assert [problem.line for problem in program.problems] == [2]


# ---- include files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["#include 'a.h'\nsubroutine s\n{}\nend\n", "subroutine s\n#include 'a.h'\n{}\nend\n"])
def test_macros_and_declarations_of_files_that_included_ones_include(text: str) -> None:
    others = {
        "a.h": '#include "b.h"\n',
        "b.h": '#include "c.h"\n',
        "c.h": "#define HALO h(n)\ninteger :: k\n",
    }
    read = read_text(text.replace("'", '"').format("  x = HALO"), "s.F90", others)
    assert short(read.procedures["s"].body) == ["opaque: the macro HALO"]
    assert ("k" in read.procedures["s"].symbols) == text.startswith("subroutine")


def test_include_files_are_declarations_in_place() -> None:
    others = {"a.h": "      integer n\n      include 'b.h'\n", "b.h": "      parameter (n = 3)\n"}
    program = read_text(
        "      subroutine s\n      include 'a.h'\n      real a(n)\n      a(1) = n\n      end\n", "s.f", others
    )
    assert not program.problems
    procedure = program.procedures["s"]
    assert bounds(procedure.symbols["a"]) == ["1:3"]
    where = procedure.symbols["n"].where
    assert where is not None
    assert program.sources[where.source].path.name in ("a.h", "b.h")
    assert program.sources[where.source].text(where).lower() == "n"


def test_a_missing_include_file_is_a_barrier() -> None:
    program, procedure = subroutine("  x = w", "  include 'gone.h'\n  real x")
    assert opaques(procedure) == ["the include file gone.h was not found"]
    assert short(procedure.body)[1] == "x = w"
    assert procedure.symbols["w"].overlay == "unknown gone.h"
    assert procedure.symbols["x"].overlay is None
    assert (program.problems[0].line, "gone.h" in program.problems[0].message) == (2, True)


def test_users_of_a_module_with_a_missing_include_file_have_the_barrier_too() -> None:
    program = read_text("module m\n include 'gone.h'\nend module\nsubroutine s\n use m\n x = 1\nend\n")
    assert opaques(program.procedures["s"]) == ["the include file gone.h was not found"]


def test_include_files_that_hold_procedures() -> None:
    program = read_text("      include 's.inc'\n", "all.f", {"s.inc": "      subroutine s\n      x = 1\n      end\n"})
    assert short(program.procedures["s"].body) == ["x = 1"]


# ---- allocatable bounds -------------------------------------------------------------------------------------------------------

ALLOCATED = """\
module m
  integer n
  real, allocatable :: a(:,:), b(:), c(:), d(:), e(:)
end module
subroutine first(k)
  use m
  allocate(a(0:n, 5), b(k), c(n), d(n), e(n))
  b = 0
end
subroutine second
  use m
  deallocate(c)
  allocate(c(2*n))
  d = e*2
  if (n > 1) e(1) = 2
end
"""


def test_bounds_of_the_only_allocate_statement() -> None:
    symbols = read_text(ALLOCATED).procedures["second"].symbols
    assert bounds(symbols["a"]) == ["0:n", "1:5"]
    assert symbols["a"].dimensions is not None
    assert bounds(symbols["b"]) == ["1:"], "k means nothing outside of its procedure"
    assert bounds(symbols["c"]) == [":"], "it is allocated twice"
    assert bounds(symbols["d"]) == [":"], "an assignment may give it another shape"
    assert bounds(symbols["e"]) == ["1:n"]


def test_bounds_are_open_where_a_procedure_may_allocate() -> None:
    text = (
        ALLOCATED
        + "subroutine third(x)\n real, allocatable :: x(:)\n end\nsubroutine f\n use m\n call third(e)\n end\n"
    )
    assert bounds(read_text(text).procedures["f"].symbols["e"]) == [":"]


# ---- places for new text ------------------------------------------------------------------------------------------------------


def test_places_for_declarations() -> None:
    source = (
        "      subroutine s(a)\n      use m ! why\n      implicit none\n"
        "      real\n     &  a(3)\nc comment\n      a(1) = 0\n      end\n"
    )
    program = read_text(source, "s.f")
    procedure, data = program.procedures["s"], program.sources[0].data
    assert data[: procedure.header_end].endswith(b"s(a)\n")
    assert data[: procedure.uses_end].endswith(b"! why\n")
    assert data[: procedure.declarations_end].endswith(b"a(3)\n")
    assert procedure.body.span.start == procedure.declarations_end
    assert data[procedure.body.span.start : procedure.body.span.end] == b"c comment\n      a(1) = 0\n"


def test_declarations_go_before_statement_functions() -> None:
    source = "      subroutine s\n      real y\n      sf(x) = 2*x\n      y = sf(1.0)\n      end\n"
    program = read_text(source, "s.f")
    procedure, data = program.procedures["s"], program.sources[0].data
    assert data[: procedure.declarations_end].endswith(b"real y\n")
    assert data[: procedure.body.span.start].endswith(b"2*x\n")
    assert body("      y = 1\n      sf(2) = 3", "      dimension sf(3)", "a.f") == ["y = 1", "sf[2] = 3"]


def test_a_program_without_a_first_statement() -> None:
    program = read_text("! comment\n      x = 1\n      end\n")
    (procedure,) = program.procedures.values()
    assert procedure.kind == "program"
    assert program.sources[0].text(procedure.body.span) == "      x = 1\n"


def test_line_lengths() -> None:
    assert read_text("      end\n", "a.f").procedures.popitem()[1].line_length == 72
    assert read_text("end\n", "a.f90").procedures.popitem()[1].line_length == 132
