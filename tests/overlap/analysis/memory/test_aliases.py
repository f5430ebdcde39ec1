"""Aliases on programs made by hand: every trap of C's pointers and of Fortran's storage that the transformations could fall
into."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from _model import DOUBLE, INT, POINTER, SIZE, STRUCT, Maker, at, pointer_to
from _pointers import Interpreter, random_pointers
from randomness import seeds

from lapwing.overlap.analysis.memory.aliases import Aliases
from lapwing.overlap.dataflow.call_graph import CallGraph
from lapwing.overlap.ir.accesses import ANYTHING, UNKNOWN, Memory
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
    Slice,
    Symbol,
    Text,
    Type,
    Unread,
)
from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.ir.statements import Allocate, Evaluate

pytestmark = pytest.mark.usefixtures("own_header")

DOUBLE_POINTER = pointer_to(POINTER)


class Asked:
    """The aliases of a program, asked by names of procedures."""

    def __init__(self, maker: Maker | Program) -> None:
        self.program = maker.program() if isinstance(maker, Maker) else maker
        self.aliases = Aliases.of(self.program, CallGraph.of(self.program))

    def procedure(self, name: str) -> Procedure:
        return self.program.procedures[name]

    def behind(self, pointer: Symbol | Expression, procedure: str = "main") -> set[str]:
        """What ``pointer[0]`` lies in."""
        base = Name(pointer) if isinstance(pointer, Symbol) else pointer
        found = self.aliases.objects(Element(base, (Number(0),)), self.procedure(procedure))
        assert found == self.aliases.pointees(base, self.procedure(procedure))
        return keys(found)

    def objects(self, place: Symbol | Expression, procedure: str = "main") -> set[str]:
        expression = Name(place) if isinstance(place, Symbol) else place
        return keys(self.aliases.objects(expression, self.procedure(procedure)))

    def may_alias(self, one: Symbol, two: Symbol) -> bool:
        return self.aliases.may_alias(Memory(one.key, one), Memory(two.key, two))


def keys(memories: frozenset[Memory]) -> set[str]:
    return {memory.key for memory in memories}


def site(call: Invocation) -> str:
    assert call.span is not None
    return f"heap 0:{call.span.start}"


@pytest.fixture
def c() -> Maker:
    return Maker("c")


@pytest.fixture
def fortran() -> Maker:
    return Maker("fortran")


# ---- C: variables and plain pointers ----------------------------------------------------------------------------------


def test_an_array_a_scalar_and_their_elements_are_their_own_memory(c: Maker) -> None:
    a, x = c.variable("a", DOUBLE, 10), c.variable("x")
    c.main()
    asked = Asked(c)
    assert asked.objects(a) == asked.objects(at(a, 3)) == asked.behind(a) == {a.key}
    assert asked.objects(x) == {x.key}
    assert keys(asked.aliases.pointees(AddressOf(Name(x)), asked.procedure("main"))) == {x.key}
    assert not asked.may_alias(a, x)


def test_two_allocation_sites_are_two_objects(c: Maker) -> None:
    p, q = c.variable("p", POINTER), c.variable("q", POINTER)
    first, second = c.malloc(), c.malloc()
    c.main(c.let(p, Cast(POINTER, first)), c.let(q, second))
    asked = Asked(c)
    assert asked.behind(p) == {site(first)}
    assert asked.behind(q) == {site(second)}
    one, two = (asked.aliases.pointees(Name(s), asked.procedure("main")) for s in (p, q))
    assert not asked.aliases.may_overlap(one, two)
    assert asked.aliases.may_overlap(one, one | two)


def test_a_call_with_a_result_allocates_too(c: Maker) -> None:
    p = c.variable("p", POINTER)
    call = c.call("calloc", Number(10), Number(8), result=Name(p))
    c.main(call)
    assert Asked(c).behind(p) == {f"heap 0:{call.span.start}"}


def test_pointer_arithmetic_stays_in_the_object_and_an_index_is_no_pointer(c: Maker) -> None:
    a, displs = c.variable("a", DOUBLE, 10), c.variable("displs", SIZE, 4)
    p = c.variable("p", POINTER)
    c.main(c.let(p, Operation("+", (AddressOf(at(a, 3)), at(displs, 1)))))
    asked = Asked(c)
    assert asked.behind(p) == {a.key}
    assert asked.behind(Operation("-", (Name(p), Number(2)))) == {a.key}


def test_a_pointer_that_went_through_an_integer(c: Maker) -> None:
    a, p, n = c.variable("a", DOUBLE, 10), c.variable("p", POINTER), c.variable("n", SIZE)
    aligned = Operation("&", (Operation("+", (Cast(SIZE, Name(a)), Number(63))), Operation("~", (Number(63),))))
    c.main(c.let(n, aligned), c.let(p, Cast(POINTER, Name(n))))
    assert Asked(c).behind(p) == {a.key}


def test_either_branch_of_a_conditional_and_the_last_of_a_comma(c: Maker) -> None:
    a, b, d, p = (*(c.variable(n, DOUBLE, 4) for n in "abd"), c.variable("p", POINTER))
    choice = Operation("?:", (Name(d), Name(a), Operation(",", (Name(d), Name(b)))))
    c.main(c.let(p, choice))
    assert Asked(c).behind(p) == {a.key, b.key}


def test_a_pointer_that_nothing_gives_a_value_leads_anywhere(c: Maker) -> None:
    p, n, a = c.variable("p", POINTER), c.variable("n", SIZE), c.variable("a", DOUBLE, 4)
    c.main(c.let(p, Number(0)))
    asked = Asked(c)
    assert asked.objects(at(p, 1)) == asked.behind(Operation("+", (Name(p), Name(n)))) == {UNKNOWN.key, ANYTHING.key}
    assert asked.aliases.may_alias(ANYTHING, Memory(a.key, a))
    assert asked.aliases.may_alias(Memory(a.key, a), ANYTHING)
    assert not asked.aliases.pointees(Name(n), asked.procedure("main"))
    assert not asked.aliases.pointees(Number(0), asked.procedure("main"))


def test_swapped_pointers_may_both_be_either(c: Maker) -> None:
    p, q, t = (c.variable(name, POINTER) for name in "pqt")
    first, second = c.malloc(), c.malloc()
    c.main(c.let(p, first), c.let(q, second), c.let(t, Name(p)), c.let(p, Name(q)), c.let(q, Name(t)))
    asked = Asked(c)
    assert asked.behind(p) == asked.behind(q) == {site(first), site(second)}


def test_assignments_inside_expressions_count(c: Maker) -> None:
    p, q = c.variable("p", POINTER), c.variable("q", POINTER)
    a, n = c.variable("a", DOUBLE, 4), c.variable("n", INT)
    inner = Assignment(Name(p), None, Assignment(Name(q), None, Name(a)))
    c.main(c.let(n, Operation("!=", (inner, Number(0)))), Evaluate(Assignment(Name(p), "+", Number(1)), span=c.span()))
    asked = Asked(c)
    assert asked.behind(p) == asked.behind(q) == {a.key}


def test_a_declaration_s_initial_value_counts(c: Maker) -> None:
    a, p = c.variable("a", DOUBLE, 4), c.variable("p", POINTER)
    c.main(c.declare(p, AddressOf(at(a, 2))))
    assert Asked(c).behind(p) == {a.key}


# ---- C: through memory ------------------------------------------------------------------------------------------------


def test_a_pointer_copied_through_a_struct(c: Maker) -> None:
    s, t = c.variable("s", STRUCT), c.variable("t", STRUCT)
    p, q = c.variable("p", POINTER), c.variable("q", POINTER)
    block = c.malloc()
    c.main(c.let(p, block), c.let(Member(Name(s), "x"), Name(p)), c.let(t, Name(s)), c.let(q, Member(Name(t), "x")))
    asked = Asked(c)
    assert site(block) in asked.behind(q)
    assert site(block) in asked.behind(Member(Name(t), "x"))
    assert asked.objects(Member(Name(s), "x")) == {s.key}


def test_a_struct_s_members_through_a_pointer(c: Maker) -> None:
    s, r = c.variable("s", STRUCT), c.variable("r", pointer_to(STRUCT))
    a, q = c.variable("a", DOUBLE, 4), c.variable("q", POINTER)
    member = Member(Deref(Name(r)), "x")
    c.main(c.let(r, AddressOf(Name(s))), c.let(member, Name(a)), c.let(q, Member(Name(s), "x")))
    asked = Asked(c)
    assert a.key in asked.behind(q)
    assert asked.objects(member) == {s.key}


def test_two_levels_of_pointers(c: Maker) -> None:
    rows, p = c.variable("rows", DOUBLE_POINTER), c.variable("p", POINTER)
    table, row = c.malloc(), c.malloc()
    c.main(c.let(rows, table), c.let(at(rows, 3), row), c.let(p, Deref(Name(rows))))
    asked = Asked(c)
    assert asked.objects(at(rows, 0)) == {site(table)}
    assert asked.objects(at(rows, 0, 1)) == asked.objects(at(at(rows, 0), 1)) == asked.behind(p) == {site(row)}


def test_an_array_of_pointers_is_not_what_they_point_to(c: Maker) -> None:
    table, a = c.variable("table", POINTER, 4), c.variable("a", DOUBLE, 8)
    c.main(c.let(at(table, 1), Name(a)))
    asked = Asked(c)
    assert asked.objects(at(table, 2)) == {table.key}
    assert asked.objects(at(table, 2, 5)) == {a.key}


def test_a_pointer_to_rows_is_one_object_whatever_the_indices(c: Maker) -> None:
    row = Type("other", 40, "double[5]", DOUBLE)
    p, grid = c.variable("p", Type("pointer", 8, "double (*)[5]", row)), c.variable("grid", DOUBLE, 4, 5)
    q = c.variable("q", POINTER)
    c.main(c.let(p, Name(grid)), c.let(q, at(p, 1)))
    asked = Asked(c)
    assert asked.objects(at(p, 1, 2)) == asked.objects(at(grid, 1)) == asked.behind(q) == {grid.key}
    assert keys(asked.aliases.pointees(at(grid, 1), asked.procedure("main"))) == {grid.key}


def test_a_pointer_to_rows_of_pointers(c: Maker) -> None:
    row = Type("other", 24, "double *[3]", POINTER)
    some, a = c.variable("some", Type("pointer", 8, "double *(*)[3]", row)), c.variable("a", DOUBLE, 4)
    table = c.variable("table", POINTER, 2, 3)
    c.main(c.let(some, Name(table)), c.let(at(table, 1, 2), Name(a)))
    asked = Asked(c)
    assert asked.objects(at(some, 1, 2)) == {table.key}
    assert asked.objects(at(some, 1, 2, 0)) == {a.key}


def test_an_address_written_through_a_pointer_to_the_pointer(c: Maker) -> None:
    p, a = c.variable("p", POINTER), c.variable("a", DOUBLE, 4)
    out = c.argument("out", DOUBLE_POINTER, key="procedure allocate::out")
    block = c.malloc()
    c.procedure("allocate", (out,), (c.let(Deref(Name(out)), block),))
    c.main(c.let(p, Name(a)), c.call("allocate", AddressOf(Name(p))))
    assert Asked(c).behind(p) == {a.key, site(block)}


def test_memcpy_copies_the_pointers_inside(c: Maker) -> None:
    s, t, a = c.variable("s", STRUCT), c.variable("t", STRUCT), c.variable("a", DOUBLE, 4)
    copy = c.call("memcpy", AddressOf(Name(t)), AddressOf(Name(s)), Number(16))
    c.main(c.let(Member(Name(s), "x"), Name(a)), copy)
    assert a.key in Asked(c).behind(Member(Name(t), "x"))


def test_a_linked_list_and_its_cycle(c: Maker) -> None:
    node = pointer_to(STRUCT)
    head, here = c.variable("head", node), c.variable("here", node)
    first, second = c.malloc(), c.malloc()
    following = Member(Deref(Name(here)), "next")
    c.main(
        c.let(head, first), c.let(here, Name(head)), c.let(following, second), c.let(here, following),
        c.let(following, Name(head)),
    )  # fmt: skip
    asked = Asked(c)
    assert asked.objects(Deref(Name(here))) == {site(first), site(second)}
    assert asked.objects(Deref(Name(head))) == {site(first)}


# ---- C: calls ---------------------------------------------------------------------------------------------------------


def test_a_pointer_through_a_callee_s_return(c: Maker) -> None:
    x, a, p = c.argument("x", POINTER, key="procedure same::x"), c.variable("a", DOUBLE, 4), c.variable("p", POINTER)
    c.procedure("same", (x,), (c.give_back(Operation("+", (Name(x), Number(1)))),))
    c.main(c.let(p, c.apply("same", a)))
    assert Asked(c).behind(p) == {a.key}


def test_a_parameter_may_be_any_call_s_argument(c: Maker) -> None:
    x, a, b = c.argument("x", DOUBLE, 10, key="procedure f::x"), c.variable("a", DOUBLE, 4), c.variable("b", DOUBLE, 4)
    c.procedure("f", (x,), ())
    c.main(c.call("f", a), c.call("f", AddressOf(at(b, 2))))
    assert Asked(c).behind(x, "f") == {a.key, b.key}


def test_recursion_that_swaps_its_arguments(c: Maker) -> None:
    x, y = (c.argument(name, POINTER, key=f"procedure f::{name}") for name in "xy")
    a, b = c.variable("a", DOUBLE, 4), c.variable("b", DOUBLE, 4)
    c.procedure("f", (x, y), (c.call("f", y, x),))
    c.main(c.call("f", a, b))
    asked = Asked(c)
    assert asked.behind(x, "f") == asked.behind(y, "f") == {a.key, b.key}


def test_realloc_gives_the_old_block_or_a_new_one_with_the_same_contents(c: Maker) -> None:
    p, q, a = c.variable("p", DOUBLE_POINTER), c.variable("q", DOUBLE_POINTER), c.variable("a", DOUBLE, 4)
    old, new = c.malloc(), c.apply("realloc", p, Number(160))
    c.main(c.let(p, old), c.let(at(p, 0), Name(a)), c.let(q, new))
    asked = Asked(c)
    assert asked.behind(q) == {site(old), site(new)}
    assert asked.objects(at(q, 0, 0)) == {a.key}


def test_what_a_variable_argument_list_takes_has_escaped(c: Maker) -> None:
    n, a, b = c.argument("n", INT, key="procedure f::n"), c.variable("a", DOUBLE, 4), c.variable("b", DOUBLE, 4)
    c.procedure("f", (n,))
    c.main(c.call("f", Number(1), a), c.let(b, Number(0)))
    asked = Asked(c)
    assert [asked.aliases.escaped(Memory(s.key, s)) for s in (a, b)] == [True, False]


def test_an_allocator_by_address(c: Maker) -> None:
    p, q = c.variable("p", POINTER), c.variable("q", POINTER)
    library = c.call("posix_memalign", AddressOf(Name(p)), Number(64), Number(80))
    message = c.call("MPI_Alloc_mem", Number(80), Constant("MPI_INFO_NULL"), AddressOf(Name(q)))
    c.main(library, message)
    asked = Asked(c)
    assert asked.behind(p) == {f"heap 0:{library.span.start}"}
    assert asked.behind(q) == {f"heap 0:{message.span.start}"}


def test_a_reference_is_what_the_caller_gave(c: Maker) -> None:
    r = c.argument("r", DOUBLE, key="procedure f::r", by_value=False)
    x, y = c.variable("x"), c.variable("y")
    c.procedure("f", (r,), ())
    c.main(c.call("f", x), c.call("f", y))
    asked = Asked(c)
    assert asked.objects(r, "f") == {x.key, y.key}
    assert keys(asked.aliases.actuals(r)) == {x.key, y.key}


def test_string_functions_return_their_argument(c: Maker) -> None:
    text, p = c.variable("text", Type("character", 1, "char"), 10), c.variable("p", POINTER)
    c.main(c.let(p, c.apply("strchr", text, Number(32))))
    assert Asked(c).behind(p) == {text.key}


def test_a_reference_to_one_of_two_arguments(c: Maker) -> None:
    a, b, d, p = (*(c.variable(n, DOUBLE, 4) for n in "abd"), c.variable("p", POINTER))
    larger = c.apply("std::max", at(a, 1), at(b, 2))
    c.main(c.let(p, AddressOf(Operation("?:", (Number(1), at(d, 1), larger)))))
    assert Asked(c).behind(p) == {a.key, b.key, d.key}


def test_one_of_two_pointers(c: Maker) -> None:
    a, b, p = c.variable("a", DOUBLE, 4), c.variable("b", DOUBLE, 4), c.variable("p", POINTER)
    c.main(c.let(p, c.apply("std::min", a, b)))
    assert Asked(c).behind(p) == {a.key, b.key}


@pytest.mark.parametrize("together", [True, False])
def test_a_value_that_is_not_modelled_beside_one_that_is(c: Maker, together: bool) -> None:
    a, p, n = c.variable("a", DOUBLE, 4), c.variable("p", POINTER), c.variable("n", SIZE)
    number = Cast(POINTER, c.apply("labs", n))
    both = [c.let(p, Operation("?:", (Name(n), Name(a), number)))]
    c.main(*(both if together else [c.let(p, Name(a)), c.let(p, number)]))
    assert Asked(c).behind(p) == {a.key, ANYTHING.key}


def test_null_pointers_and_texts_beside_other_values(c: Maker) -> None:
    a, p, n = c.variable("a", DOUBLE, 4), c.variable("p", POINTER), c.variable("n", SIZE)
    rest = [c.let(p, value) for value in (Number(0), Cast(POINTER, Constant("NULL")), Text('"text"'))]
    c.main(*rest, c.let(p, Operation("?:", (Name(n), Name(a), Cast(POINTER, Number(0))))))
    assert Asked(c).behind(p) == {a.key}


def test_a_pointer_computed_from_null_or_by_division(c: Maker) -> None:
    a, b = (c.variable(name, DOUBLE, 4) for name in "ab")
    p, q = (c.variable(name, POINTER) for name in "pq")
    from_null = Operation("+", (Cast(POINTER, Number(0)), Cast(SIZE, Name(a))))
    aligned = Operation("*", (Operation("/", (Cast(SIZE, Name(a)), Number(64))), Number(64)))
    c.main(c.let(p, from_null), c.let(p, Name(b)), c.let(q, Cast(POINTER, aligned)), c.let(q, Name(b)))
    assert Asked(c).behind(p) == Asked(c).behind(q) == {a.key, b.key}


# ---- C: what is not in the sources ------------------------------------------------------------------------------------


def test_what_an_unknown_function_got_has_escaped_and_nothing_else(c: Maker) -> None:
    a, b, p = c.variable("a", DOUBLE, 4), c.variable("b", DOUBLE, 4), c.variable("p", POINTER)
    c.main(c.call("mystery", a), c.let(p, c.apply("mystery")))
    asked = Asked(c)
    assert asked.behind(p) == {UNKNOWN.key}
    assert asked.aliases.may_alias(UNKNOWN, Memory(a.key, a))
    assert not asked.aliases.may_alias(UNKNOWN, Memory(b.key, b))


def test_what_escaped_memory_points_to_escapes_and_may_be_changed(c: Maker) -> None:
    s, p, a = c.variable("s", STRUCT), c.variable("p", POINTER), c.variable("a", DOUBLE, 4)
    c.main(c.let(Member(Name(s), "x"), Name(a)), c.call("mystery", AddressOf(Name(s))), c.let(p, Member(Name(s), "x")))
    asked = Asked(c)
    assert asked.aliases.escaped(Memory(a.key, a))
    assert {a.key, UNKNOWN.key} <= asked.behind(p)


def test_a_global_pointer_is_the_program_s_own_until_unknown_code_runs(c: Maker) -> None:
    shared, own = c.common("shared", POINTER), c.common("own", POINTER, key="main.c::own")
    first, second = c.malloc(), c.malloc()
    body = (c.let(shared, first), c.let(own, second))
    c.main(*body)
    assert Asked(c).behind(shared) == {site(first)}
    c.main(*body, c.call("mystery"))
    asked = Asked(c)
    assert asked.behind(shared) == {site(first), UNKNOWN.key}
    assert asked.behind(own) == {site(second)}


def test_mpi_and_known_functions_are_not_unknown(c: Maker) -> None:
    shared, block = c.common("shared", POINTER), c.malloc()
    c.main(
        c.let(shared, block), c.call("MPI_Bcast", shared, Number(1), Constant("MPI_DOUBLE"), Number(0)),
        c.call("printf", Text('"%f"'), at(shared, 0)),
    )  # fmt: skip
    asked = Asked(c)
    assert asked.behind(shared) == {site(block)}
    assert not asked.aliases.escaped(Memory(site(block)))


def test_memory_that_mpi_keeps_escapes(c: Maker) -> None:
    a, b = c.variable("a", DOUBLE, 4), c.variable("b", DOUBLE, 4)
    c.main(c.call("MPI_Win_create", a, Number(32), Number(8)), c.call("MPI_Send", b, Number(4)))
    asked = Asked(c)
    assert asked.aliases.escaped(Memory(a.key, a))
    assert not asked.aliases.escaped(Memory(b.key, b))
    assert asked.aliases.pointees(Constant("MPI_BOTTOM"), asked.procedure("main")) == {UNKNOWN}


def test_a_library_s_parameters_may_point_anywhere(c: Maker) -> None:
    x, a = c.argument("x", POINTER, key="procedure f::x"), c.common("a", DOUBLE, 4)
    c.procedure("f", (x,), ())
    asked = Asked(c)
    assert asked.behind(x, "f") == {UNKNOWN.key}
    assert asked.aliases.may_alias(UNKNOWN, Memory(a.key, a))


def test_a_procedure_called_through_a_pointer_gets_anything(c: Maker) -> None:
    x, a, f = c.argument("x", POINTER, key="procedure f::x"), c.variable("a", DOUBLE, 4), c.variable("fp", POINTER)
    c.procedure("f", (x,), ())
    c.main(c.let(f, Constant("f")), c.call(None, a))
    asked = Asked(c)
    memory = asked.aliases.pointees(Name(x), asked.procedure("f"))
    assert asked.aliases.may_overlap(memory, {Memory(a.key, a)})


def test_a_function_that_a_sort_calls_gets_what_is_sorted(c: Maker) -> None:
    x, a = c.argument("x", POINTER, key="procedure compare::x"), c.variable("a", DOUBLE, 4)
    c.procedure("compare", (x,))
    c.main(c.call("qsort", a, Number(4), Number(8), Constant("compare")))
    asked = Asked(c)
    memory = asked.aliases.pointees(Name(x), asked.procedure("compare"))
    assert asked.aliases.may_overlap(memory, {Memory(a.key, a)})


def test_what_could_not_be_read_may_do_anything_to_what_it_mentions(c: Maker) -> None:
    p, q, a, b = (*(c.variable(n, POINTER) for n in "pq"), *(c.variable(n, DOUBLE, 4) for n in "ab"))
    c.main(c.let(p, Name(a)), c.let(q, Name(b)), c.opaque("p = q + 1;"), symbols=(p, q, a, b))
    asked = Asked(c)
    assert asked.aliases.may_overlap(asked.aliases.pointees(Name(p), asked.procedure("main")), {Memory(b.key, b)})
    c.main(c.let(p, Name(a)), c.let(q, Name(b)), c.opaque("while (1) { break; }"), symbols=(p, q, a, b))
    assert Asked(c).behind(p) == {a.key}


@pytest.mark.parametrize("text", ["mystery(1);", "SWAP_ALL;", "MACRO(1)"])
def test_what_could_not_be_read_may_be_a_macro_for_anything(c: Maker, text: str) -> None:
    p, a = c.variable("p", POINTER), c.variable("a", DOUBLE, 4)
    c.main(c.let(p, Name(a)), c.opaque(text), symbols=(p, a))
    assert UNKNOWN.key in Asked(c).behind(p)


def test_an_unread_expression_may_be_and_may_change_what_it_mentions(c: Maker) -> None:
    p, a, b = c.variable("p", POINTER), c.variable("a", DOUBLE, 4), c.variable("b", DOUBLE, 4)
    c.main(c.let(p, Unread("({ a; })", (Name(a),))), symbols=(p, a, b))
    asked = Asked(c)
    assert {a.key, UNKNOWN.key} <= asked.behind(p)
    assert asked.aliases.escaped(Memory(a.key, a))
    assert not asked.aliases.escaped(Memory(b.key, b))


# ---- Fortran ----------------------------------------------------------------------------------------------------------


def test_a_dummy_is_itself_and_stands_for_every_actual(fortran: Maker) -> None:
    d = fortran.argument("d", DOUBLE, 4, key="procedure inner::d")
    e = fortran.argument("e", DOUBLE, 4, key="procedure outer::e")
    a, b = fortran.variable("a", DOUBLE, 4), fortran.common("b", DOUBLE, 4)
    fortran.procedure("inner", (d,), ())
    fortran.procedure("outer", (e,), (fortran.call("inner", e),))
    fortran.main(fortran.call("outer", at(a, 2)), fortran.call("inner", b))
    asked = Asked(fortran)
    assert asked.objects(d, "inner") == asked.objects(at(d, 1), "inner") == {d.key}
    assert keys(asked.aliases.actuals(d)) == {a.key, b.key, e.key}
    assert keys(asked.aliases.actuals(e)) == {a.key}


def test_dummies_share_with_nothing_unless_both_are_targets(fortran: Maker) -> None:
    d, e = (fortran.argument(name, DOUBLE, 4, key=f"procedure s::{name}") for name in "de")
    t, u = (fortran.argument(name, DOUBLE, 4, key=f"procedure s::{name}", target=True) for name in "tu")
    g = fortran.common("g", DOUBLE, 4)
    fortran.procedure("s", (d, e, t, u), ())
    fortran.main(fortran.call("s", g, g, g, g))
    asked = Asked(fortran)
    assert not asked.may_alias(d, e)
    assert not asked.may_alias(d, g)
    assert not asked.may_alias(d, t)
    assert asked.may_alias(t, u)


def test_expressions_are_passed_as_copies(fortran: Maker) -> None:
    d, a = fortran.argument("d", key="procedure s::d"), fortran.variable("a")
    fortran.procedure("s", (d,), ())
    fortran.main(fortran.call("s", Operation("()", (Name(a),))), fortran.call("s", Number(1)))
    assert not Asked(fortran).aliases.actuals(d)


def test_equivalence_and_differently_laid_out_common_share(fortran: Maker) -> None:
    a, b = (fortran.variable(name, DOUBLE, 4, overlay="procedure p 1") for name in "ab")
    other = fortran.variable("c", DOUBLE, 4, overlay="procedure p 2")
    plain = fortran.variable("d", DOUBLE, 4)
    fortran.main(symbols=(a, b, other, plain))
    asked = Asked(fortran)
    assert asked.may_alias(a, b)
    assert not asked.may_alias(a, other)
    assert not asked.may_alias(a, plain)
    assert not asked.may_alias(plain, other)


def test_a_pointer_may_be_any_target_of_its_type_or_what_pointers_were_allocated(fortran: Maker) -> None:
    p, q = (fortran.variable(name, DOUBLE, 4, pointer=True) for name in "pq")
    t, n = fortran.variable("t", DOUBLE, 4, target=True), fortran.variable("n", INT, 4, target=True)
    plain = fortran.variable("a", DOUBLE, 4)
    fortran.main(symbols=(p, q, t, n, plain))
    asked = Asked(fortran)
    found = asked.objects(at(p, 1))
    assert t.key in found
    assert not {n.key, plain.key, UNKNOWN.key} & found
    memory = [asked.aliases.objects(Name(s), asked.procedure("main")) for s in (p, q, plain)]
    assert asked.aliases.may_overlap(memory[0], memory[1])
    assert not asked.aliases.may_overlap(memory[0], memory[2])


def test_a_component_may_be_a_pointer(fortran: Maker) -> None:
    s, t = fortran.variable("s", STRUCT), fortran.variable("t", DOUBLE, 4, target=True)
    fortran.main(symbols=(s, t))
    assert {s.key, t.key} <= Asked(fortran).objects(at(Member(Name(s), "x"), 1))


def test_unknown_code_may_reach_common_and_what_it_is_given(fortran: Maker) -> None:
    g, a, b = fortran.common("g"), fortran.variable("a", DOUBLE, 4), fortran.variable("b")
    d = fortran.argument("d", DOUBLE, 4, key="procedure s::d")
    fortran.procedure("s", (d,), (fortran.call("mystery", d),))
    fortran.main(fortran.call("s", a), symbols=(a, b))
    asked = Asked(fortran)
    assert [asked.aliases.escaped(Memory(s.key, s)) for s in (g, a, d, b)] == [True, True, True, False]


# ---- two languages ----------------------------------------------------------------------------------------------------


def test_fortran_passes_its_variables_to_c(c: Maker) -> None:
    from dataclasses import replace

    from lapwing.overlap.ir.program import Program

    x = c.argument("x", POINTER, key="procedure work_::x")
    c.procedure("work_", (x,), ())
    fortran = Maker("fortran")
    d, a = fortran.argument("d", DOUBLE, 4, key="procedure s::d"), fortran.variable("a", DOUBLE, 4)
    t = fortran.variable("t", DOUBLE, 4, target=True)
    fortran.procedure("s", (d,), (fortran.call("work_", d),))
    fortran.main(fortran.call("s", a), symbols=(a, t))
    made, other = c.program(), fortran.program()
    fortran_procedures = {key: replace(p, source=1) for key, p in other.procedures.items()}
    program = Program((*made.sources, *other.sources), {**made.procedures, **fortran_procedures}, {})
    aliases = Aliases.of(program, CallGraph.of(program))
    memory = aliases.pointees(Name(x), program.procedures["work_"])
    assert {a.key, d.key} <= keys(memory)
    # Its address may come as a C_PTR.
    assert aliases.may_overlap(memory, {Memory(t.key, t)})


# ---- a pointer's only value -------------------------------------------------------------------------------------------


def test_the_only_value_of_a_pointer(c: Maker) -> None:
    p, q, block = c.common("p", POINTER), c.common("q", POINTER), c.malloc()
    c.procedure("allocate", (), (c.let(p, block),))
    c.main(c.let(p, Number(0)), c.call("allocate"), c.let(q, Name(p)), c.let(q, Name(p), "+"))
    asked = Asked(c)
    assert asked.aliases.only_definition(p) == block
    assert asked.aliases.only_definition(q) is None


def test_a_pointer_whose_address_is_taken_has_no_only_value(c: Maker) -> None:
    p = c.variable("p", POINTER)
    c.main(c.let(p, c.malloc()), c.call("MPI_Alloc_mem", Number(8), Number(0), AddressOf(Name(p))))
    assert Asked(c).aliases.only_definition(p) is None


def test_nor_has_a_reference_s_actual_an_argument_or_what_unknown_code_can_name(c: Maker) -> None:
    p, q, g = c.variable("p", POINTER), c.variable("q", POINTER), c.common("g", POINTER)
    r = c.argument("r", POINTER, key="procedure f::r", by_value=False)
    x = c.argument("x", POINTER, key="procedure h::x")
    c.procedure("f", (r,), (c.let(r, c.malloc()),))
    c.procedure("h", (x,), (c.let(x, c.malloc()),))
    c.main(c.let(p, c.malloc()), c.call("f", p), c.let(q, c.malloc()), c.let(g, c.malloc()), c.call("mystery"))
    asked = Asked(c)
    assert [asked.aliases.only_definition(s) is not None for s in (p, q, g, x)] == [False, True, False, False]


def test_the_only_allocation_of_an_allocatable(fortran: Maker) -> None:
    a, b, d = (fortran.common(name, DOUBLE, 4, allocatable=True) for name in "abd")
    shape = Slice(Number(1), Number(10), None)
    first = Allocate((at(a, shape), at(b, shape), at(d, shape)), span=fortran.span())
    fortran.main(first, Allocate((at(b, shape),), span=fortran.span()), fortran.call("move_alloc", d, a))
    asked = Asked(fortran)
    assert asked.aliases.only_definition(a) is None
    fortran.main(first, Allocate((at(b, shape),), span=fortran.span()), fortran.let(a, Number(0)), symbols=(a,))
    asked = Asked(fortran)
    assert asked.aliases.only_definition(a) == at(a, shape)
    assert asked.aliases.only_definition(b) is None
    fortran.main(first, fortran.let(a, Name(d)))
    assert Asked(fortran).aliases.only_definition(a) is None


# ---- programs as the C front end reads them ---------------------------------------------------------------------------


def read(text: str, name: str = "program.c") -> Asked:
    pytest.importorskip("clang.cindex")
    from lapwing.overlap.languages.c.reading import read_c_text

    return Asked(read_c_text(text, name))


def behind(asked: Asked, pointer: str, procedure: str = "main") -> set[str]:
    """What a variable points to: names of variables, "line N" for what is allocated there."""
    program = asked.program
    symbol = next(s for s in program.procedures[procedure].symbols.values() if s.name == pointer)
    found = asked.aliases.pointees(Name(symbol), program.procedures[procedure])
    return {
        f"line {program.sources[m.heap.source].line_of(m.heap.start)}" if m.heap is not None
        else m.symbol.name if m.symbol is not None else m.key
        for m in found
    }  # fmt: skip


def test_initial_values_outside_functions_and_of_static_variables() -> None:
    asked = read(
        """double buf[8], other[8], far_away[8];
extern double *later;
double *first = buf, *second = &other[2];
static double *table[] = { buf, 0, far_away + 1 };
double *none = NULL;
double *later = far_away;
int main(void) {
  static double *kept = other;
  double *p = table[1];
  none = (double *)0;
  return first[0] + second[0] + later[0] + kept[0] + p[0] > 0;
}
"""
    )
    assert behind(asked, "first") >= {"buf"}
    assert behind(asked, "second") == {"other"}
    assert behind(asked, "later") == {"far_away"}
    assert behind(asked, "kept") == {"other"}
    assert behind(asked, "p") == {"buf", "far_away"}
    assert behind(asked, "none") == {UNKNOWN.key, ANYTHING.key}


def test_a_table_of_functions_has_their_addresses() -> None:
    asked = read(
        """static void work(double *x) { x[0] = 1; }
static void (*handlers[])(double *) = { work };
int main(void) { double a[4], b[4]; handlers[0](a); return b[0] > 0; }
"""
    )
    assert asked.aliases._model.callgraph.address_taken == {"program.c::work"}
    memory = asked.aliases.pointees(
        Name(asked.procedure("program.c::work").parameters[0]), asked.procedure("program.c::work")
    )
    symbols = {s.name: s for s in asked.procedure("main").symbols.values()}
    assert asked.aliases.may_overlap(memory, {Memory(symbols["a"].key)})
    assert not asked.aliases.may_overlap(memory, {Memory(symbols["b"].key)})


def test_pointers_to_rows_and_tables_of_rows() -> None:
    asked = read(
        """#include <stdlib.h>
double grid[4][5];
int main(void) {
  double (*rows)[5] = grid;
  double *row = rows[2];
  double *again = *(grid + 1);
  double **table = malloc(8);
  table[0] = malloc(8);
  double *found = table[3];
  double *pointers[2][3];
  double *(*some)[3] = pointers;
  pointers[1][2] = grid[0];
  double *through = some[1][2];
  return through[0] + row[0] + again[0] + found[0] > 0;
}
"""
    )
    assert behind(asked, "rows") == behind(asked, "row") == behind(asked, "again") == {"grid"}
    assert behind(asked, "table") == {"line 7"}
    assert behind(asked, "found") == {"line 8"}
    assert behind(asked, "some") == {"pointers"}
    assert behind(asked, "through") == {"grid"}


def test_structs_by_value_by_pointer_and_inside_arrays() -> None:
    asked = read(
        """#include <string.h>
typedef struct { int n; double *data; } block;
static double a[8], b[8], c[8], d[8];
static block make(double *x) { block made; made.data = x; made.n = 1; return made; }
static double *data_of(const block *from) { return from->data; }
int main(void) {
  block one = make(a), many[3], copy;
  many[1].data = b;
  memcpy(&copy, &many[1], sizeof copy);
  block two = { 2, c };
  double *p = one.data, *q = many[2].data, *r = copy.data, *s = two.data, *t = data_of(&one);
  double *u = d;
  return p[0] + q[0] + r[0] + s[0] + t[0] + u[0] > 0;
}
"""
    )
    for pointer, target in {"p": "a", "q": "b", "r": "b", "s": "c", "t": "a"}.items():
        assert target in behind(asked, pointer), pointer
        assert "d" not in behind(asked, pointer), pointer
    assert behind(asked, "u") == {"d"}


def test_swapping_through_pointers_to_pointers() -> None:
    asked = read(
        """#include <stdlib.h>
static void swap(double **x, double **y) { double *t = *x; *x = *y; *y = t; }
int main(void) {
  double *p = malloc(8),
         *q = malloc(8);
  double *r = malloc(8);
  swap(&p, &q);
  return p[0] + q[0] + r[0] > 0;
}
"""
    )
    assert behind(asked, "p") == behind(asked, "q") == {"line 4", "line 5"}
    assert behind(asked, "r") == {"line 6"}


def test_references_of_c_plus_plus() -> None:
    asked = read(
        """static double a[8], b[8];
static void set(double *&out, double (&whole)[8]) { out = whole; }
static double &pick(double *x) { return x[1]; }
int main() {
  double *p;
  set(p, a);
  double &r = pick(b);
  double *q = &r;
  return p[0] + q[0] > 0;
}
""",
        "program.cpp",
    )
    assert behind(asked, "p") == {"a"}
    assert "b" in behind(asked, "q")


# ---- random programs, run ---------------------------------------------------------------------------------------------


def check_random(seeds: Iterable[int]) -> None:
    """Every place that a run looks at lies in memory that the analysis says it may."""
    followed = programs = 0
    for seed in seeds:
        program = random_pointers(seed)
        aliases = Aliases.of(program, CallGraph.of(program))

        def visit(
            place: Expression, procedure: Procedure, key: str, seed: int = seed, aliases: Aliases = aliases
        ) -> None:
            nonlocal followed
            followed += not isinstance(place, Name)
            assert key in keys(aliases.objects(place, procedure)), (seed, procedure.key, place)

        Interpreter(program, visit).run(turns=4)
        programs += 1
    assert followed > 10 * programs


def test_random_programs_stay_inside_what_is_said() -> None:
    check_random(range(150))


@pytest.mark.long
def test_many_random_programs_stay_inside_what_is_said() -> None:
    check_random(seeds(4000))
