"""What is known of library functions and intrinsics."""

from __future__ import annotations

import pytest

from lapwing.overlap.ir.expressions import Name, Number, Storage, Symbol, Text, Type
from lapwing.overlap.libraries.summaries import LibrarySummary, lookup

X = Name(Symbol("x", "x", Storage.LOCAL, Type("real", 8, "double")))


def known(name: str, language: str = "c") -> LibrarySummary:
    found = lookup(name, language)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "name", ["sqrt", "fabsf", "powl", "cexp", "abs", "isalpha", "__builtin_sqrt", "std::abs", "std::sqrt"]
)
def test_c_s_pure_functions(name: str) -> None:
    function = known(name)
    assert function.pure
    assert function == LibrarySummary(function.name, pure=True)


@pytest.mark.parametrize(
    "name", ["mod", "MAX", "sqrt", "dsqrt", "sum", "matmul", "real", "ishft", "dot_product", "transfer"]
)
def test_fortran_s_pure_functions(name: str) -> None:
    assert known(name, "fortran").pure
    assert not known(name, "fortran").inquiry


@pytest.mark.parametrize("name", ["size", "allocated", "present", "lbound", "huge", "kind", "len"])
def test_inquiries_do_not_look_at_contents(name: str) -> None:
    assert known(name, "fortran").inquiry


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("mystery", "c"), ("system", "c"), ("longjmp", "c"), ("signal", "c"), ("strtok", "c"), ("__errno_location", "c"),
        ("fesetround", "c"), ("pthread_create", "c"), ("SQRT", "c"), ("max", "c"), ("size", "c"), ("MPI_Send", "c"),
        ("execute_command_line", "fortran"), ("system", "fortran"), ("malloc", "fortran"), ("printf", "fortran"),
        ("mpi_send", "fortran"), ("ran", "fortran"), ("ieee_set_rounding_mode", "fortran"),
    ],
)  # fmt: skip
def test_functions_that_may_do_anything(name: str, language: str) -> None:
    assert lookup(name, language) is None


@pytest.mark.parametrize(
    ("name", "language", "state"),
    [
        ("rand", "c", "random"), ("drand48", "c", "random"), ("srand", "c", "random"), ("random_number", "fortran", "random"),
        ("random_seed", "fortran", "random"), ("malloc", "c", "heap"), ("free", "c", "heap"), ("move_alloc", "fortran", "heap"),
        ("time", "c", "clock"), ("gettimeofday", "c", "clock"), ("clock_gettime", "c", "clock"), ("MPI_Wtime", "c", "clock"),
        ("system_clock", "fortran", "clock"), ("cpu_time", "fortran", "clock"), ("MPI_WTIME", "fortran", "clock"),
        ("getenv", "c", "environment"),
    ],
)  # fmt: skip
def test_hidden_states(name: str, language: str, state: str) -> None:
    function = lookup(name, language)
    assert function is not None
    assert function.state == state
    assert not function.pure


def test_memory_and_strings() -> None:
    copy = known("memcpy")
    assert (copy.writes, copy.reads, copy.returns, copy.copies) == ((0,), (1,), 0, ((0, 1),))
    assert known("memset").writes == (0,)
    assert known("memset").reads == ()
    assert known("strlen").reads == (0,)
    assert not known("strlen").pure
    assert known("modf").writes == known("frexpf").writes == (1,)
    assert known("strtol").stores == ((1, 0),)


def test_the_heap() -> None:
    assert known("malloc").allocates
    assert known("free").frees
    again = known("realloc")
    assert again.allocates
    assert again.frees
    assert again.returns == 0
    assert known("posix_memalign").fills == 0


def test_ends_and_callbacks() -> None:
    assert all(known(name).ends for name in ("exit", "abort", "_exit"))
    assert known("exit", "fortran").ends
    assert known("qsort").calls == (3,)
    assert known("bsearch").calls == (4,)


def test_variable_argument_lists() -> None:
    text = Text('"%d %s"')
    assert known("printf").io
    assert known("printf").arguments_read((text, X, X)) == (0, 1, 2)
    assert known("printf").arguments_written((text, X, X)) == ()
    assert known("sprintf").arguments_read((X, text, X)) == (1, 2)
    assert known("sprintf").arguments_written((X, text, X)) == (0,)
    assert known("sscanf").arguments_written((X, text, X, X)) == (2, 3)
    assert known("scanf").arguments_written((text, X)) == (1,)
    assert known("memcpy").arguments_read((X,)) == ()


def test_printf_may_store_how_much_it_printed() -> None:
    assert known("printf").arguments_written((Text('"%d%n"'), Number(1), X)) == (1, 2)
    assert known("sprintf").arguments_written((X, Text('"%n"'), X)) == (0, 2)
    assert known("printf").arguments_written((Text('"100%%n"'), X)) == ()


def test_fortran_s_subroutines_write_their_arguments_by_position_and_keyword() -> None:
    clock = known("system_clock", "fortran")
    assert clock.writes == (0, 1, 2)
    assert clock.position("count_rate") == 1
    assert clock.position("no_such") is None
    assert known("random_number", "fortran").writes == (0,)
    assert known("mvbits", "fortran").writes == (3,)
    seed = known("random_seed", "fortran")
    assert seed.position("put") not in seed.writes
    assert seed.position("get") in seed.writes


def test_builtins_are_known_by_their_whole_names_only() -> None:
    assert known("__builtin_expect").pure
    assert lookup("expect", "c") is None
