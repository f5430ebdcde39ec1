"""Small programs with traps for the tool: what their rewritten text must be like, and that they behave as they did.

Each is in ``traps/``. The texts are looked at without a compiler and without an MPI.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from _building import language_of
from _running import Reference, required
from _transformed import Transformed, transformed
from everyday import everyday

TRAPS = Path(__file__).parent / "traps"
STARTS = re.compile(r"lapwing: MPI_Recv starts here \((\d+)\)")
ARRIVES = re.compile(r"lapwing: what MPI_Recv brings must be here now \((\d+)\)")


@dataclass(frozen=True)
class Trap:
    """What a program guards against, and what its rewritten text must be like.

    ``waits``: statements that stand nowhere while a receive is under way. ``waits_at_last``: those whose last does not.
    ``lacks``: pieces that are nowhere. ``in_order``: pairs of which no second piece stands before the first.
    """

    against: str
    waits: tuple[str, ...] = ()
    waits_at_last: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    in_order: tuple[tuple[str, str], ...] = ()


PROGRAMS = {
    "condition_counted.c": Trap(
        "conditions taken for lasting that the head of an if, a while or a for changes",
        lacks=("MPI_Irecv starts here",),
    ),
    "polled_messages.c": Trap(
        "messages sent sooner where a probe asks whether they have come", waits=("u, N, MPI_DOUBLE, 0, 2,",)
    ),
    "polled_send.c": Trap(
        "the same of tests, and receives started sooner",
        in_order=(("MPI_Test(&q", "u, N, MPI_DOUBLE, 1, 12"),),
    ),
    "disconnected.c": Trap("copies that travel when their communicator ends", lacks=("does not wait",)),
    "type_declared_later.c": Trap("halves declared before the types that their own heads name"),
    "calls_itself.c": Trap("halves of a procedure that calls itself", lacks=("exchange_first",)),
    "inline_definition.c": Trap("halves that are inline, and defined nowhere", lacks=("exchange_first",)),
    "struct_of_its_own.c": Trap("halves whose heads declare other types", lacks=("exchange_first",)),
    "own_name.c": Trap("halves that say another name", lacks=("exchange_first",)),
    "copied_request.f90": Trap(
        "requests related to their buffers by the first variable only",
        in_order=(("call MPI_Waitall(2, reqs", "+ z(0)"), ("call MPI_Wait(theirs%request", "+ mine%ghost")),
    ),
    "copied_request.c": Trap(
        "the same in C",
        in_order=(
            ("MPI_Wait(&b,", "+= z[0]"),
            ("MPI_Wait(&theirs.request", "2 * z[1]"),
            ("MPI_Wait(&c,", "3 * z[2]"),
            ("complete(a[3])", "4 * z[3]"),
        ),
    ),
    "requests_in_parts.f90": Trap(
        "a request of an array, of which it is not known which, taken for the one before",
        in_order=(("call MPI_Waitall(2, r(1)", "c(i) + 0.5d0"), ("call MPI_Waitall(2, r(1)", "y(i) + a(")),
    ),
    "accumulated.c": Trap(
        "sums of floating-point numbers, and places of maxima, taken for the same in any order",
        waits=("sum += u[i - 1][j] * v[i][j]", "where = 1000 * i + j"),
    ),
    "accumulated.f90": Trap(
        "the same in Fortran, and MAX of what may be a NaN", waits=("most_of_all = max(", "total = total +")
    ),
    "bounds_in_struct.c": Trap("a struct's member taken for the same after it was changed"),
    "persistent_request.f90": Trap(
        "MPI_Start taken for a call that starts nothing", in_order=(("call MPI_Wait(rr", "+ z(1)"),)
    ),
    "request_by_keyword.f90": Trap("the same of calls with keywords", in_order=(("call MPI_Wait(rq", "+ z(1)"),)),
    "request_by_another_name.f90": Trap(
        "requests taken over that other statements complete",
        lacks=("overlaid_first", "polled_first", "mpi_irecv starts here"),
    ),
    "format_in_halves.f90": Trap("a FORMAT that is in one half only", lacks=("exchange_first",)),
    "text_in_component.f90": Trap(
        "internal files taken for read",
        in_order=(
            ("write (t%text", "ichar(t%text"),
            ("write (names(3)", "ichar(names(3)"),
        ),
    ),
    "forall_index.f90": Trap(
        "the index of a FORALL taken for the variable of that name",
        waits=("forall (i = 1:n) w(i)", "b = b + w", "where (w"),
    ),
    "real_parameter.f90": Trap("a real constant taken for an integer", waits_at_last=("w(i) + u(n - 2 + i)",)),
    "defined_operations.f90": Trap(
        "operations on components, numbers and characters taken for intrinsic",
        waits=("o%a = p%a", "w(i) = a", "(o%a + p%a)", "(c - 'b')"),
    ),
    "final_procedure.f90": Trap("FINAL procedures", waits=("call work(step)",)),
    "defined_output.f90": Trap("output that calls a procedure", in_order=(("write (*, *) x", "r(i) + w(1)"),)),
    "shared_generic.f90": Trap(
        "a generic's procedure taken for the only one of that name", waits=("part(1d0)", "w(i) + sum(u)")
    ),
    "allocated_elsewhere.f90": Trap(
        "bounds given to an allocatable under another name", waits=("call work(v, r)", "call work(x, s)")
    ),
    "negative_stride.f90": Trap(
        "sections that run downwards, taken for empty ones",
        waits=("sum(u(n + 1:i:-1))",),
        waits_at_last=("s(i, j) + v(i + 1, j)",),
    ),
    "strided_scratch.f90": Trap(
        "a line taken for set anew by each turn that sets half of it", waits=("w(j) + line(i)",)
    ),
    "contained_reads_host.f90": Trap(
        "variables taken for unread that contained procedures read",
        waits=("t = 0.5d0 * u(i + 1)", "line(i) = u(j + 1) + i"),
    ),
    "do_concurrent.f90": Trap("a name taken for set by the DO CONCURRENT that has its own", lacks=("exchange_first",)),
    "renamed_by_use.f90": Trap(
        "names of a module where USE has given them to others",
        lacks=("min(last, nx", "k = k, k + min("),
    ),
    "shaped_on_entry.f90": Trap(
        "halves of procedures whose arrays have the shape that a bound had on entry",
        lacks=("dummy_first", "automatic_first", "letters_first"),
    ),
    "allocated_in_first_half.f90": Trap("halves of a procedure that share an allocatable", lacks=("work_first",)),
    "unread_in_first_half.f90": Trap(
        "halves of procedures that share what a statement sets, or end at a statement, that is not understood",
        lacks=("in_block_first", "renamed_first", "from_namelist_first", "ended_first"),
    ),
    "pointers_between_halves.f90": Trap(
        "halves of procedures of which one leaves a pointer to the other",
        lacks=("local_pointer_first", "local_target_first", "handed_on_first"),
    ),
    "parts_of_locals.f90": Trap(
        "halves of procedures that share a part of a variable, or its memory by another name",
        lacks=("component_first", "of_an_array_first", "complex_part_first", "equivalent_first"),
    ),
    "components_of_locals.c": Trap(
        "halves of functions that share a component, or what a pointer leads to",
        lacks=("component_first", "of_an_array_first", "kept_address_first"),
    ),
    "shaped_by_more.f90": Trap(
        "halves of procedures whose arrays have the shape that a function or a component had on entry",
        lacks=("by_function_first", "by_component_first", "by_length_first"),
    ),
    "copied_arguments.f90": Trap(
        "halves of procedures that are given a copy each, which a message travels to",
        lacks=("call exchange_first(u(", "call add_first(u(", "call both_first(u("),
    ),
    "host_variables.f90": Trap(
        "variables of the host taken for unneeded at a contained procedure's end", waits=("t = 2 * u",)
    ),
    "host_requests.f90": Trap(
        "requests of the host taken for a contained procedure's own", lacks=("lapwing: mpi_irecv starts here",)
    ),
    "intent_out.f90": Trap(
        "halves of procedures with INTENT(OUT), which the second half would undo",
        lacks=("freed_first", "initial_first", "plain_first"),
    ),
    "function_as_bound.f90": Trap(
        "loops with functions as bounds divided", waits=("s(j, i) + 0.5d0 * i", "s(j, i) + 0.25d0 * i")
    ),
    "pointer_as_bound.f90": Trap(
        "bounds taken for unchanged that change by another name", waits=("do i = 1, p\n", "do i = 1, q%n\n")
    ),
    "bounds_of_allocatables.f90": Trap("allocatable arguments taken for arrays from 1", waits=("call work(v)",)),
    "bounds_on_entry.f90": Trap(
        "the bounds of an array by what its argument is now", waits=("call work(v)", "0.5d0 * h(i)")
    ),
    "own_max.f90": Trap("variables called max and min called as functions", lacks=("max(last", "min(last")),
    "value_read.f90": Trap(
        "arguments passed by value taken for unread",
        waits=("call add(u(n + 1)", "call add_boxed(b", "w(i) + more(y)", "2 * more(y)"),
    ),
    "evaluated_again.f90": Trap(
        "arguments that the first half of a procedure makes others", lacks=("changed_first", "pointed_first")
    ),
    "value_changed.f90": Trap(
        "what is passed by value taken for unread by the second half",
        lacks=("y = y + i\n    end do\n    ! lapwing: exchange",),
    ),
    "shaped_by_received.f90": Trap(
        "bounds and lengths taken for unread that a procedure evaluates on entry",
        waits=("call work(w, 5, m)", "len(letters(i))", "w(i) + elements()"),
    ),
    "freed_on_entry.f90": Trap(
        "what a call does to INTENT(OUT) arguments before the first statement",
        waits=("if (allocated(v)) w(i)", "w(i) + b%x"),
    ),
    "inquiries.f90": Trap(
        "inquiries taken to read nothing",
        waits=("w(i) + size(v)", "w(i) + elements(v)", "w(i) + len(s)", "w(i) + size(p)", "is_iostat_end(status))"),
    ),
    "implied_loops.f90": Trap(
        "what implied loops read in bounds and indices",
        waits=("j = 1, which(n + 1))", "r(which(j))", "(v(which(n + 1) + j)"),
    ),
    "left_out_argument.f90": Trap(
        "an argument with a keyword taken for one that is left out", waits=("combined(1d0, c=u)",)
    ),
    "named_like_function.f90": Trap(
        "variables taken for functions of the same name", waits=("w(i) + last", "w(i) + other")
    ),
    "names_in_scopes.f90": Trap(
        "variables taken for functions, subroutines and kinds of the same name",
        waits=("w(i) + total", "if (t >= 0)", "2 * total", "2 * declared", "2 * real64"),
    ),
    "from_hosts.f90": Trap(
        "a NAMELIST and a statement function that are a host's or a module's",
        waits=("w(i) + x", "call inner()"),
    ),
    "reallocated_by_bound_function.f90": Trap(
        "an ALLOCATE's bounds taken for those that a type's function gives", waits=("w(i) + z(i, 5)",)
    ),
    "allocated_otherwise.f90": Trap(
        "an ALLOCATE's bounds taken for those of what is assigned or passed", waits=("w(i) + v(3, 2)", "w(i) + a(3, 2)")
    ),
    "pure_caller.f90": Trap(
        "calls that keep MPI going in PURE procedures", lacks=("call lapwing_pure_caller_progress",)
    ),
    "component_of_argument.f90": Trap("components of arguments taken for nobody's", waits=("call smooth(g)",)),
    "component_received.f90": Trap(
        "receives into components of arguments taken for nobody's",
        in_order=(("call finish(req)", "r(i) = r(i)"), ("call finish(req)", "g%u(i) = g%u(i)")),
    ),
    "addresses_in_type.f90": Trap(
        "memory that MPI reaches beyond its argument", lacks=("call lapwing_addresses_in_type_bcast",)
    ),
    "common_as_one.f": Trap("the rest of a COMMON block that is sent", in_order=(("ierr)\n         do", "p2*i"),)),
    "called_twice.f90": Trap(
        "the turns of a procedure's loop taken for the same in two calls",
        in_order=(("call f(a, b, c)", "call f(b, a, d)"),),
    ),
    "converted_integers.c": Trap(
        "conversions taken to change nothing",
        in_order=tuple((f"({number + 1});", f"+= h[{number}]") for number in range(5)),
    ),
    "called_by_library.c": Trap(
        "what functions that a library calls read and write",
        in_order=(("(1);", "descending);"), ("(2);", "counting);"), ("(3);", "_delete_attr")),
    ),
    "assigned_perhaps.c": Trap(
        "assignments beside && and ?: taken for made", waits=("+ g[k][j]", "+ g[l][j]", "(t = s[i][j])")
    ),
    "unsigned_condition.c": Trap(
        "conditions between unsigned numbers read with signs",
        waits=("h[i > 0][j] + 1",),
        waits_at_last=("h[where[i]][j]",),
    ),
    "narrow_types.c": Trap("values that a type is too narrow for", waits=("+ g[k][j]", "+ f[l][j]")),
    "unsigned_constant_bound.c": Trap("a bound without a sign, compared with one below zero", lacks=("relax_first",)),
    "written_by_address.c": Trap(
        "variables taken for unchanged that others write by their addresses",
        in_order=(("(1);", "+= h[0]"), ("(2);", "+= h[1]"), ("(3);", "+= h[2]")),
    ),
    "sizes_with_effects.c": Trap(
        "what the sizes in a type's name change", in_order=tuple((f"({n + 1});", f"+= h[{n}]") for n in range(4))
    ),
    "unsigned_operations.c": Trap(
        "operations on unsigned numbers taken for those on others",
        in_order=(
            ("8u, 1);", "g[x % 8 + 8]"),
            ("2, 2);", "g[(x < 5 ? 1 : 2) + 1]"),
            ("8, 3);", "g[(a - 3) % 8]"),
            ("16, 4);", "g[b >> 60]"),
            ("(3, 5);", "g[k][i]"),
            ("u, 6);", "g[k - 1]"),
            ("(k, 7);", "g[(T)x]"),
            ("16, 8);", "g[b][i]"),
        ),
    ),
    "unsigned_loops.c": Trap(
        "loops that compare unsigned numbers taken for others",
        waits=("v[k] += h[k]", "add(n)", "v[i] += r[k]"),
    ),
    "unrestricted.c": Trap("pointers to one memory taken for distinct", waits=("t[j * ld + i]", "relax(u, u, nx, ny)")),
    "exchanged_by_swap.cpp": Trap(
        "std::swap taken to exchange what pointers lead to",
        in_order=(("MPI_Waitall(2, q", "u[i] = 0.25"),),
    ),
    "swapped_numbers.cpp": Trap("std::swap taken to change no numbers", waits=("g[k][i]",)),
    "made_type.c": Trap("types taken for basic ones that other calls make", lacks=("MPI_Recv starts here",)),
    "chosen_variable.cpp": Trap("assignments to a variable that an expression chooses", waits=("+= h[i]",)),
    "macro_bound.c": Trap("a macro as bound, without parentheses", lacks=("(LIMIT - 1)",)),
    "name_of_another_block.c": Trap("variables named outside their blocks", lacks=("(m - 1)", "(m_too - 1)")),
    "bound_through_pointer.c": Trap(
        "a bound taken for unchanged that changes by another name", waits=("i <= grid->n",)
    ),
    "label_before_finalize.c": Trap("the last messages' end jumped past", in_order=(("\nout:", "_drain();"),)),
    "sendrecv_takes_message.c": Trap(
        "receives started before one that takes the message",
        in_order=(
            ("MPI_Sendrecv_replace(h[0], C, MPI_DOUBLE, rank + 1", "MPI_Recv starts here (1)"),
            ("MPI_Sendrecv(h[0], 1, row, 1, 4", "MPI_Recv starts here (3)"),
        ),
    ),
    "comment_in_head.c": Trap(
        "comments and ends of lines copied with bounds, and names changed in comments",
        lacks=("the last)", "(\\ R)", "/* exchange_first */"),
    ),
    "kr_definition.c": Trap(
        "prototypes of functions whose parameters are declared after the head", lacks=("exchange_first",)
    ),
    "taken_names.c": Trap("new names that are macros' names", lacks=("exchange_first(u)", "exchange_last(u)")),
    "macro_words.c": Trap("macros that are plain words, in what is added", lacks=("->type", "int count", "now =")),
    "halves_not_called.c": Trap("prototypes of parts that nobody wrote", lacks=("exchange_first", "exchange_last")),
    "named_in_string.c": Trap(
        "names in strings and comments taken for calls", lacks=("static void exchange(double a[][C])",)
    ),
    "wait_in_procedure.f90": Trap(
        "a wait that moves without a word", in_order=(("w(i) = 0.5d0*w(i) + i", "finish comes after work"),)
    ),
    "empty_else.f": Trap(
        "branches without anything to do, and a line that is added before a label",
        lacks=("else\n         end if", "10\n\n"),
    ),
    "unnamed_argument.cpp": Trap("a parameter without a name passed on", lacks=("(a, )",)),
    "cleanup_function.c": Trap(
        "the call of a cleanup function overlooked", waits=("{\n        int k __attr", "u[i] * base")
    ),
    "made_at_first_use.cpp": Trap(
        "initial values taken for given before the program starts",
        waits=("double first = h[4]", "base += own", "u[i] * base"),
    ),
    "own_assignment.cpp": Trap("a class's own assignment taken for C's", waits=("total = 3.0", "u[i] * base")),
    "short_lived_objects.cpp": Trap(
        "the destructors of results and arguments overlooked", waits=("make();\n", "use({4})", "u[i] * base")
    ),
    "object_in_half.cpp": Trap("halves of a function with an object in the first", lacks=("exchange_first",)),
    "either_of_two.cpp": Trap("a reference taken to lead to one array only", waits=("base += larger", "u[i] * base")),
    "second_name.c": Trap("one array taken for two", waits=("other[3]", "u[i] * base")),
    "name_for_assembler.c": Trap("one array taken for two by an assembler's name", waits=("other[3]", "u[i] * base")),
    "named_like_mpi.c": Trap(
        "the program's macros taken for constants of MPI",
        waits=("* MPI_SCALE",),
        in_order=(
            ("from = (rank + size - step % size) % size;", "MPI_FROM, 3"),
            ("row = rows[step % 2];", "MPI_Comm_rank(MPI_COMM_ROW"),
        ),
    ),
    "before_and_after_mpi.c": Trap(
        "progress calls where MPI is not there, and in several threads",
        lacks=("+ from[i][j + 1]);\n        lapwing",),
    ),
    "other_wildcards.c": Trap(
        "wildcards known by one name only", in_order=(("ANYBODY, HELLO", "MPI_DOUBLE, 1, HELLO"),)
    ),
    "other_wildcards.f90": Trap("the same in Fortran", lacks=("_receive_1(3",)),
    "released_send.c": Trap(
        "receives that let a synchronous send go on", in_order=(("MPI_Recv(ack", "MPI_DOUBLE, 0, 1, MPI_COMM_WORLD"),)
    ),
    "ready_send.c": Trap("sends that wait for a receive to begin", lacks=("lapwing",)),
    "flushed_file.c": Trap(
        "files that stay open", waits=("fread(&table",), in_order=(("fflush(file)", "&lapwing_slots[0], b"),)
    ),
    "flushed_file.f90": Trap("the same in Fortran", waits=("read (10",)),
    "names_of_blocks.c": Trap(
        "declarations without variables taken for nothing",
        lacks=("exchange_first",),
        in_order=(("        enum turn { SHIFT = 11 }", "2 * u[i][j] + (real)j / SHIFT"),),
    ),
    "unnamed_memory.c": Trap("halves that outlive the memory they share", lacks=("exchange_first", "mirror_first")),
    "standard_unit.f90": Trap("a standard unit that is a file", in_order=(("flush (6)", "a, n, MPI_DOUBLE"),)),
}


def under_way(text: str) -> set[str]:
    """The receives that this beginning of a text starts and does not wait for."""
    return {m[1] for m in STARTS.finditer(text)} - {m[1] for m in ARRIVES.finditer(text)}


def places(piece: str, text: str) -> list[int]:
    return [m.start() for m in re.finditer(re.escape(piece), text)]


def wrong(trap: Trap, text: str) -> list[str]:
    """What the text of a rewritten program should not be like."""
    found = [
        f"{piece} while a message travels"
        for piece in trap.waits
        if any(under_way(text[:p]) for p in places(piece, text))
    ]
    found += [
        f"{piece} done before its message" for piece in trap.waits_at_last if under_way(text[: text.rindex(piece)])
    ]
    found += [f"{piece} is there" for piece in trap.lacks if piece in text]
    found += [f"{second} before {first}" for first, second in trap.in_order if second in text[: text.rindex(first)]]
    return found


@pytest.fixture(scope="module")
def rewritten(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Transformed]:
    """A program of ``traps/``, rewritten once."""

    @functools.cache
    def rewrite(name: str) -> Transformed:
        return transformed((TRAPS / name).read_text(), name, tmp_path_factory.mktemp("trap"))

    return rewrite


@pytest.mark.parametrize("name", PROGRAMS)
def test_text(name: str, rewritten: Callable[[str], Transformed]) -> None:
    trap, original = PROGRAMS[name], (TRAPS / name).read_text()
    for piece in (*trap.waits, *trap.waits_at_last, *(piece for pair in trap.in_order for piece in pair[:1])):
        assert piece in original
    assert wrong(trap, rewritten(name).text) == []


def test_a_procedures_wait_that_moved_is_reported(tmp_path: Path) -> None:
    result = transformed((TRAPS / "wait_in_procedure.f90").read_text(), "a.f90", tmp_path)
    assert result.made("call MPI_Waitall") == ["wait-later"]
    assert "! lapwing: finish comes after work that does not need it\n    call finish()" in result.text


@pytest.mark.parametrize("name", ["negative_stride.f90", "macro_bound.c"])
def test_messages_under_way_are_seen(name: str, rewritten: Callable[[str], Transformed]) -> None:
    text = rewritten(name).text
    started = [bool(under_way(text[: p.start()])) for p in re.finditer("\n", text)]
    assert any(started)
    assert not started[-1]


# Every day each text is looked at, and those run whose mistakes would show in no piece of it: what might not compile, halves
# that share what they should not, messages in another order.
RUN = """
    type_declared_later.c bounds_in_struct.c copied_request.c components_of_locals.c name_of_another_block.c comment_in_head.c
    kr_definition.c taken_names.c halves_not_called.c released_send.c before_and_after_mpi.c unnamed_argument.cpp
    object_in_half.cpp
    renamed_by_use.f90 shaped_on_entry.f90 unread_in_first_half.f90 copied_arguments.f90 host_variables.f90 own_max.f90
    negative_stride.f90 names_in_scopes.f90 pure_caller.f90 empty_else.f common_as_one.f
""".split()


@pytest.mark.mpi
@pytest.mark.parametrize("name", everyday(PROGRAMS, RUN))
def test_behaves_as_before(name: str, rewritten: Callable[[str], Transformed], thorough: bool) -> None:
    language = language_of(Path(name))
    required(language)
    result = rewritten(name)
    if not result.outcome.changes:
        return
    original = Reference([result.before], ("-lstdc++",) if name.endswith(".cpp") else ())
    original.assert_unchanged_by([result.after], thorough, 2)
