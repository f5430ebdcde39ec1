"""Splits a procedure into an outlined start and end, so that its caller can put computation, or other exchanges, between them.

before:  subroutine exchange(g); post; send; arrive; unpack; end        call exchange(u) ; work
after:   subroutine exchange_first(g); post; send; end                  call exchange_first(u) ; work
         subroutine exchange_last(g); arrive; unpack; end               call exchange_last(u)

Obligations. No local variable is live across the cut (live_across_cut.py); the procedure has no saved variables, is not a
function, has no exit but its end, and its variables have the same shapes on entry to both parts. In Fortran both parts can be
named where the procedure is called, and need no interface that only the procedure itself has. Arguments have the same values at
both calls: those whose value is a known number are passed as that number, and the operands of the others are read by both
calls, so no code motion changes them in between. Memory that MPI keeps from the first part to the last is the caller's own:
Fortran may pass sections with gaps, pointers and assumed shapes as copies, another one in each call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import zip_longest

from lapwing.affine.sections import Chosen
from lapwing.overlap import mpi
from lapwing.overlap.analysis.dependence import Conflict, conflict
from lapwing.overlap.analysis.effects.effects import Effects, is_only_read
from lapwing.overlap.analysis.effects.value_numbering import Environment
from lapwing.overlap.analysis.motion_barriers import MotionBarriers
from lapwing.overlap.ir.expressions import AddressOf, Cast, Element, Expression, Name, Number, Storage, Symbol
from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.ir.rewriter import (
    called_in,
    declared_in,
    hidden_name,
    is_for_its_block,
    message_of,
    shaping,
    variables_of,
    works,
)
from lapwing.overlap.ir.split_phase import NOWHERE, OutlinedCall, PartialLoop, SplitPhaseOperation
from lapwing.overlap.ir.statements import Call, Declare, Evaluate, Jump, Loop, Nothing, Opaque, Statement
from lapwing.overlap.languages.language import Language
from lapwing.overlap.languages.registry import language_of_procedure
from lapwing.overlap.source.spans import Span
from lapwing.overlap.transforms.code_motion import CodeMotion, Ends, Independent, Split
from lapwing.overlap.transforms.context import Context
from lapwing.overlap.transforms.index_set_splitting.boundary_first import split_producer
from lapwing.overlap.transforms.index_set_splitting.interior import Edges
from lapwing.overlap.transforms.index_set_splitting.loop_fission import split_loop
from lapwing.overlap.transforms.outlining.live_across_cut import is_local, live_across_cut, own_variables
from lapwing.overlap.transforms.software_pipelining.prologue_text import words
from lapwing.overlap.transforms.split_phase.blocking_calls import is_contiguous

TRANSFORMATION = "start-earlier"
FIRST, LAST = "_first", "_last"
_KEPT = frozenset(
    {
        mpi.Role.SEND_BUFFER,
        mpi.Role.RECV_BUFFER,
        mpi.Role.BOTH_BUFFER,
        mpi.Role.COUNTS,
        mpi.Role.DISPLACEMENTS,
        mpi.Role.TYPES,
    }
)


@dataclass(frozen=True)
class OutlinedProcedure:
    """A procedure and its outlined parts. ``whole``: after code motion; ``first`` and ``last``: equivalent to it in sequence."""

    whole: Procedure
    first: Procedure
    last: Procedure


@dataclass
class SplitProcedures:
    """Splits procedures on callers' demand, each once. ``left``: sources that are left unchanged. ``lent``: which arguments of
    a first part MPI keeps until the last."""

    context: Context
    left: frozenset[int] = frozenset()
    outlined: dict[str, OutlinedProcedure | None] = field(default_factory=dict)
    by_conflict: dict[tuple[str, tuple[Statement, ...], tuple[Statement, ...]], OutlinedProcedure] = field(
        default_factory=dict
    )
    lent: dict[str, frozenset[int]] = field(default_factory=dict)

    def split_call(self, call: Call, caller: Procedure, values: Environment) -> Split | None:
        program = self.context.analysis.program
        callee = program.resolve(call.name, caller)
        if callee is None or isinstance(call, OutlinedCall) or not _may_be_two(call):
            return None
        if callee.key not in self.outlined:
            self.outlined[callee.key] = None  # for recursion
            self.outlined[callee.key] = self._divide(callee)
        parts = self.outlined[callee.key]
        if parts is None:
            return None
        if not self._sees_outlined(caller, callee):
            self._refuse_hidden(call, callee)
            return None
        return self._calls(self._with_numbers(call, callee, values), parts, caller)

    def _refuse_hidden(self, call: Call, callee: Procedure) -> None:
        obligation = "parts of its procedure can be named where it is called"
        found, advice = language_of_procedure(self.context.analysis.program, callee).unseen_parts(callee.name)
        self._refuse_messages(callee, obligation, found, advice, call.span)

    def _refuse_messages(self, callee: Procedure, obligation: str, found: str, advice: str, where: Span) -> None:
        for statement in callee.body.walk():
            message = statement.call if isinstance(statement, SplitPhaseOperation) else statement
            if message_of(message) is not None:
                self.context.refuse(message.span, TRANSFORMATION, obligation, found, advice, where)

    def _with_numbers(self, call: Call, callee: Procedure, values: Environment) -> Call:
        """The call with numbers in place of arguments with known values that the callee only reads."""
        written = self.context.analysis.summary(callee).written_keys
        arguments = []
        for number, argument in enumerate(call.arguments):
            dummy = callee.parameters[number] if number < len(callee.parameters) else None
            value = (
                values.affine(argument) if isinstance(argument, Name) and self._may_change(argument.symbol) else None
            )
            read_only = (
                dummy is not None and dummy.key not in written and _is_plain(dummy) and dummy.intent in (None, "in")
            )
            if read_only and value is not None and not value.terms:
                argument = Number(value.constant)
            arguments.append(argument)
        return replace(call, arguments=tuple(arguments))

    def _may_change(self, symbol: Symbol) -> bool:
        """Whether the scalar may change before the second part."""
        return _is_plain(symbol) and symbol.key not in self.context.analysis.terms.invariants

    def _divide(self, callee: Procedure) -> OutlinedProcedure | None:
        if not self._may_be_outlined(callee):
            return None
        barriers = MotionBarriers(self.context.analysis.program, callee)
        for lean in (True, False):
            code_motion = CodeMotion(
                self.context.analysis,
                callee,
                self.split_call,
                self.split_against,
                self.split_work_before,
                lambda *_: None,
                lambda *_: None,
                barriers,
                self.context.allowed,
                lean=lean,
            )
            split = code_motion.split(callee.body, must_split=True)
            if split is None:
                return None
            rough = self.context.analysis.effects_of(split.first, callee)
            started = any(not o.call.blocking and o.call.kind in _STARTED for e in rough for o in e.operations)
            if not started:
                return None
            parts = self._register(callee, split)
            if parts is not None:
                return parts
        return None

    def _may_be_outlined(self, callee: Procedure) -> bool:
        saved = any(s.storage is Storage.SAVED for s in callee.symbols.values())
        jumps = [s for s in callee.body.walk() if isinstance(s, Jump) and s.kind in ("return", "goto", "stop")]
        trailing = callee.body.statements[-1:] if callee.body.statements else ()
        only_end = all(any(j is t for t in trailing) for j in jumps)
        is_procedure = callee.kind == "subroutine" or (callee.kind == "function" and callee.result is None)
        returns = any(j.value is not None for j in jumps)
        if callee.source in self.left or self._is_declared_elsewhere(callee):
            return False
        if callee.inline and language_of_procedure(self.context.analysis.program, callee).inline_may_be_undefined:
            return False  # an inline function's parts might lack external definitions
        if self.context.analysis.graph.recursive(self.context.analysis.origin(callee).key):
            return False
        behind_barrier = MotionBarriers(self.context.analysis.program, callee).any
        if any(self._is_for_the_whole(statement) for statement in callee.body.walk()):
            return False
        plain = is_procedure and not callee.variadic and self._may_be_renamed(callee)
        return (
            plain
            and not behind_barrier
            and not saved
            and only_end
            and not returns
            and not self._may_leave_unread(callee)
        )

    def _may_leave_unread(self, callee: Procedure) -> bool:
        """Whether a statement that could not be read may be an exit, or a jump from one part into the other."""
        source = self.context.analysis.program.sources[callee.source]
        unread = [s for s in callee.body.walk() if isinstance(s, Opaque)]
        labelled = any(s.label is not None for s in callee.body.walk())
        return any(labelled or _RETURN.search(source.text(s.span)) for s in unread)

    def _is_for_the_whole(self, statement: Statement) -> bool:
        """Whether a statement concerns the whole procedure: a FORMAT, a FINAL procedure's call at its end, or the creation of
        an object that lives to the procedure's end."""
        if isinstance(statement, Opaque):
            return statement.span.start == statement.span.end
        if is_for_its_block(statement) or not _OWN_MEMORY.isdisjoint(called_in(statement)):
            return True
        text = self.context.analysis.program.sources[statement.span.source].text(statement.span)
        return isinstance(statement, Nothing) and _FORMAT.match(text) is not None

    def _may_be_renamed(self, callee: Procedure) -> bool:
        """Whether a procedure with this head can be renamed, as its text does not use its name."""
        analysis = self.context.analysis
        source = analysis.program.sources[callee.source]
        head = source.text(Span(callee.source, callee.span.start, callee.body.span.start))
        language = language_of_procedure(analysis.program, callee)
        return language.can_take_other_name(callee, head) and not analysis.names_itself(callee)

    def _sees_outlined(self, caller: Procedure, callee: Procedure) -> bool:
        """Whether the outlined parts, which are placed beside the callee, can be named in the caller."""
        analysis = self.context.analysis
        language = language_of_procedure(analysis.program, callee)
        original, place = analysis.origin(callee), analysis.origin(caller).span.start
        return language.sees_parts(analysis.program, caller, callee, original, place)

    def _is_declared_elsewhere(self, callee: Procedure) -> bool:
        """Whether a declaration made from its head would declare another procedure, or be ill-formed."""
        program = self.context.analysis.program
        return language_of_procedure(program, callee).is_declared_elsewhere(callee, program.sources[callee.source])

    def _register(self, callee: Procedure, split: Split) -> OutlinedProcedure | None:
        """Registers the two procedures, if no local variable is live across the cut."""
        first, last = split.first, split.last
        # The second part needs the initialised declarations, too.
        declared = _declarations_for(last, first)
        if not self._repeatable(declared, first, callee):
            return None
        own = own_variables(self.context.analysis, callee)
        handed_on = live_across_cut(self.context.analysis, callee, own, declared, first, last)
        if handed_on is None or not self._may_be_entered_again(callee, own, first):
            return None
        lent = self._lent(callee, first, last)
        memory = {m.key for e in lent for m in self.context.analysis.memory_of(e, callee)}
        handed_on |= {key for key in memory & own.keys() if is_local(own[key])}
        if handed_on:
            self.context.refuse(
                callee.span,
                TRANSFORMATION,
                "no local variable is needed by both parts of the procedure",
                f"{', '.join(sorted(own[key].name for key in handed_on))} of {callee.name}",
                "make it an argument, or compute it in both parts",
            )
            return None
        return self._named(callee, first, (*declared, *last), _dummies(callee, lent))

    def _may_be_entered_again(self, callee: Procedure, own: Mapping[str, Symbol], first: Sequence[Statement]) -> bool:
        """Whether its arguments and variables are the same on entry to a procedure that starts after ``first``: they have the
        same shapes, and are not reinitialised as INTENT(OUT) ones are."""
        fresh = [s.name for s in callee.parameters if s.intent == "out"]
        if fresh:
            found, advice = f"{', '.join(fresh)} of {callee.name} is INTENT(OUT)", "make it INTENT(INOUT)"
        else:
            reshaped = self._reshaped(callee, own, first)
            if not reshaped:
                return True
            found = f"what gives {', '.join(reshaped)} of {callee.name} a shape may change"
            advice = "shape them by a variable that does not change"
        self.context.refuse(
            callee.span,
            TRANSFORMATION,
            "both parts of the procedure start with the same arguments and shapes",
            found,
            advice,
        )
        return False

    def _reshaped(self, callee: Procedure, own: Mapping[str, Symbol], first: Sequence[Statement]) -> list[str]:
        """Names of the variables whose bounds or length may differ after these statements from those on entry."""
        analysis = self.context.analysis
        values = [(s.name, Evaluate(e, span=callee.span)) for s in own.values() for e in shaping(s)]
        effects = analysis.effects_of([*(value for _, value in values), *first], callee)
        done = effects[len(values) :]
        return sorted(
            {
                name
                for (name, _), value in zip(values, effects, strict=False)
                if not is_only_read(value) or any(conflict(value, e, analysis.aliases) is not None for e in done)
            }
        )

    def _repeatable(self, declared: Sequence[Declare], first: Sequence[Statement], callee: Procedure) -> bool:
        """Whether the declarations, repeated after ``first``, give their variables the same values."""
        analysis = self.context.analysis
        effects = analysis.effects_of(first, callee)
        for statement in declared:
            values = [Evaluate(v, span=statement.span) for _, v in statement.variables if v is not None]
            place = next(n for n, s in enumerate(first) if s is statement)
            for value in analysis.effects_of([*first[:place], *values], callee)[place:]:
                if not is_only_read(value):
                    return False
                if any(conflict(value, e, analysis.aliases) is not None for e in effects[place + 1 :]):
                    return False
        return True

    def _lent(self, callee: Procedure, first: Sequence[Statement], last: Sequence[Statement]) -> list[Expression]:
        """Memory that is passed to MPI in the first part and belongs to it until the last."""
        starts, ends = (
            {s.slot: s for part in part for s in part.walk() if isinstance(s, SplitPhaseOperation) and not s.copies}
            for part in (first, last)
        )
        found = [e for slot in starts.keys() & ends.keys() for e in self._kept_by_mpi(starts[slot].call, callee)]
        for statement in (s for part in first for s in part.walk()):
            if isinstance(statement, OutlinedCall):
                found += [statement.arguments[n] for n in self.lent.get(statement.name or "", ())]
        return found

    def _kept_by_mpi(self, call: Call, callee: Procedure) -> list[Expression]:
        """The arguments whose memory a communication may read and write until it completes."""
        message = mpi.lookup(call.name or "")
        assert message is not None
        parameters = language_of_procedure(self.context.analysis.program, callee).parameters(message)
        return [a for parameter, a in zip(parameters, call.arguments, strict=False) if parameter.role in _KEPT]

    def _named(
        self, callee: Procedure, first: Sequence[Statement], last: Sequence[Statement], lent: frozenset[int]
    ) -> OutlinedProcedure:
        def part(suffix: str, statements: Sequence[Statement]) -> Procedure:
            name = self._fresh(callee.name[:_LONGEST] + suffix)
            key = callee.key[: len(callee.key) - len(callee.name)] + name
            return replace(callee, name=name, key=key, body=replace(callee.body, statements=tuple(statements)))

        result = OutlinedProcedure(callee, part(FIRST, first), part(LAST, last))
        self.lent[result.first.name] = lent
        self.context.analysis.add(result.first, callee)
        self.context.analysis.add(result.last, callee)
        return result

    def _fresh(self, wanted: str) -> str:
        name, number = wanted, 2
        while name.lower() in self._taken:
            name, number = f"{wanted}{number}", number + 1
        self._taken.add(name.lower())
        return name

    @cached_property
    def _taken(self) -> set[str]:
        """All identifiers of the program, macros and types included, in lower case."""
        return {word.lower() for word in words(self.context.analysis.program.sources)}

    def _calls(self, call: Call, parts: OutlinedProcedure, caller: Procedure, *, work: bool = False) -> Split | None:
        """Calls of both parts; None if the arguments might differ between them, or be copies of the caller's."""
        first = OutlinedCall(parts.first.name, call.arguments, original=call, work=work, span=NOWHERE)
        last = OutlinedCall(parts.last.name, call.arguments, original=call, work=work, span=call.span)
        analysis = self.context.analysis
        language = language_of_procedure(analysis.program, caller)
        if not all(_is_not_copied(call.arguments[n], language) for n in self.lent[parts.first.name]):
            self._refuse_messages(
                parts.whole,
                "its buffer is contiguous memory",
                f"an argument of {parts.whole.name} that the compiler may copy",
                "pass an array, or the first element of a contiguous array",
                call.span,
            )
            return None
        pairs = zip_longest(call.arguments, parts.whole.parameters[: len(call.arguments)])
        again = [Evaluate(e, span=call.span) for a, dummy in pairs for e in _evaluated(a, dummy, language)]
        done, *looked_up = analysis.effects_of([first, *again], caller)
        if any(not is_only_read(e) or conflict(done, e, analysis.aliases) is not None for e in looked_up):
            return None
        return Split((first,), (last,))

    # ---- splitting computation ----------------------------------------------------------------------------------------

    def split_against(self, statement: Statement, ends: Ends, caller: Procedure) -> Split | Conflict | None:
        """Splits computation into the part that is independent of ``ends``, and the rest; or says why there is none."""
        analysis = self.context.analysis
        # Duplicated code pays only where it runs repeatedly.
        once = analysis.graph.runs_once(statement, analysis.origin(caller))
        written = [a for e in ends.effects for a in e.accesses if a.writes]
        edges = Edges(written, ends.values, caller, limits=not once)
        if isinstance(statement, Loop):
            return split_loop(analysis, statement, caller, self._early(ends, caller), edges)
        if isinstance(statement, Call):
            return self._split_call_against(statement, self._early(ends, caller), caller, edges)
        return None

    def split_work_before(
        self, statement: Statement, caller: Procedure, start: Ends, apart: Independent
    ) -> Split | Conflict | None:
        """Splits computation into the part that a start needs, and the rest, which may follow it; or says why not."""
        return split_producer(self.context.analysis, statement, caller, start, apart)

    def _split_call_against(
        self, call: Call, caller_early: Independent, caller: Procedure, edges: Edges
    ) -> Split | Conflict | None:
        analysis = self.context.analysis
        callee = analysis.program.resolve(call.name, caller)
        if callee is None:
            return None
        if not self._may_be_outlined(callee) or not _may_be_two(call):
            return Conflict("parts", f"{callee.name} gives a result, or ends at several places", call.span)
        if not self._sees_outlined(caller, callee):
            return None

        probes: dict[int, tuple[Statement, OutlinedCall]] = {}

        def early(inner: Statement, chosen: Chosen | None = ()) -> bool:
            if rest:
                *before, own = analysis.effects_of([*rest, inner], callee)
                private = self._local(callee, inner, rest)
                if any(conflict(e, own, analysis.aliases, private=private, chosen=chosen) is not None for e in before):
                    return False
            key = f"{callee.key} trial"
            if id(inner) not in probes:
                probes[id(inner)] = inner, OutlinedCall(key, call.arguments, original=call, span=call.span)
            program = analysis.program
            analysis.add(replace(callee, key=key, body=replace(callee.body, statements=(inner,))), callee)
            try:
                return caller_early(probes[id(inner)][1], chosen)
            finally:
                analysis.program = program

        first: list[Statement] = []
        rest: list[Statement] = []
        reason: Conflict | None = None
        for inner in callee.body.statements:
            if any(hidden_name(r, inner) for r in rest):
                rest.append(inner)
                continue
            if not rest and isinstance(inner, Declare):
                first.append(inner)
                continue
            work = works([inner], analysis.program, callee)
            if analysis.communicates(inner, callee) or (rest and not work):
                rest.append(inner)
                continue
            if early(inner):
                first.append(inner)
                continue
            if not work:
                rest.append(inner)
                continue
            split = split_loop(analysis, inner, callee, early, edges) if isinstance(inner, Loop) else None
            if isinstance(split, Split):
                first += split.first
                rest += split.last
            else:
                rest.append(inner)
                reason = reason or split
        if not works(first, analysis.program, callee) or not rest:
            return reason
        key = (callee.key, tuple(first), tuple(rest))
        parts = self.by_conflict.get(key) or self._register(callee, Split(tuple(first), tuple(rest)))
        if parts is None:
            return None
        self.by_conflict[key] = parts
        self.context.made(
            call.span, "split-loop", f"what of {callee.name} needs nothing from others is done during the transfer"
        )
        return self._calls(call, parts, caller, work=True)

    def _local(self, procedure: Procedure, moved: Statement, passed: Sequence[Statement]) -> frozenset[str]:
        """Local variables that each of these writes before reading them, and that are dead after the moved statement."""
        liveness = self.context.analysis.liveness(procedure)
        whole = moved.whole if isinstance(moved, PartialLoop) and moved.whole is not None else moved
        after = liveness.after(whole)
        if after is None:
            return frozenset()
        free = liveness.followed - after - liveness.exposed(moved)
        for statement in passed:
            free -= liveness.exposed(statement)
        return free

    def _early(self, ends: Ends, caller: Procedure) -> Independent:
        """A test whether a statement at the computation's place is independent of the ends."""
        analysis = self.context.analysis
        asked: dict[int, tuple[Statement, Effects, frozenset[str]]] = {}

        def early(statement: Statement, chosen: Chosen | None = ()) -> bool:
            if id(statement) not in asked:
                effects = analysis.after(ends.values, [statement], caller)[0]
                asked[id(statement)] = statement, effects, self._local(caller, statement, ends.statements)
            _, effects, private = asked[id(statement)]
            return all(
                conflict(e, effects, analysis.aliases, private=private, chosen=chosen) is None for e in ends.effects
            )

        return early


def _declarations_for(statements: Sequence[Statement], others: Sequence[Statement]) -> tuple[Declare, ...]:
    """The declarations among ``others`` that the statements need, transitively."""
    named = frozenset[Symbol]().union(*(variables_of(s) for s in statements))
    kept: list[Declare] = []
    for statement in reversed(others):
        if isinstance(statement, Declare) and declared_in(statement) & named:
            kept.insert(0, statement)
            named |= variables_of(statement)
    return tuple(kept)


def _dummies(procedure: Procedure, arguments: Sequence[Expression]) -> frozenset[int]:
    """The numbers of the dummy arguments that these are, or are parts of."""
    bases = [a.base if isinstance(a, Element) else a for a in arguments]
    return frozenset(n for n, dummy in enumerate(procedure.parameters) if Name(dummy) in bases)


def _is_not_copied(argument: Expression, language: Language) -> bool:
    """Whether a procedure is certainly passed the argument's own memory, and no copy."""
    if not language.copies_arguments:
        return True
    constant = isinstance(argument, Name) and argument.symbol.storage is Storage.CONSTANT
    return is_contiguous(argument, language) and not constant


def _may_be_two(call: Call) -> bool:
    """Whether two calls can replace this one: a label, or a result, would belong to one of them."""
    return not call.keywords and call.result is None and call.label is None


def _is_plain(symbol: Symbol) -> bool:
    """Whether a literal number in its place has the same type."""
    return symbol.type.base == "integer" and symbol.type.bytes == 4 and symbol.dimensions is None and not symbol.pointer


def _evaluated(argument: Expression, dummy: Symbol | None, language: Language) -> tuple[Expression, ...]:
    """The expressions evaluated to pass the argument; of memory only its address is passed."""
    by_reference = language.by_reference
    if by_reference and dummy is not None and (dummy.by_value or (_is_pointer(argument) and not dummy.pointer)):
        return (argument,)
    return _computed(argument, by_reference)


def _is_pointer(argument: Expression) -> bool:
    return isinstance(argument, Name) and argument.symbol.pointer


def _computed(argument: Expression, by_reference: bool) -> tuple[Expression, ...]:
    if isinstance(argument, Cast):
        return _computed(argument.value, by_reference)
    if isinstance(argument, AddressOf):
        return _computed(argument.object, True)
    if isinstance(argument, Name) and (
        by_reference or (argument.symbol.dimensions is not None and not argument.symbol.pointer)
    ):
        return ()
    if isinstance(argument, Element) and isinstance(argument.base, Name) and by_reference:
        base = (argument.base,) if argument.base.symbol.pointer else ()
        return (*base, *argument.indices)
    return (argument,)


_STARTED = frozenset({mpi.Kind.SEND, mpi.Kind.RECV, mpi.Kind.COLLECTIVE})
_LONGEST = 50  # of the 63 characters that a name may have
_RETURN = re.compile(r"(?i)\b(?:return|entry)\b")
_OWN_MEMORY = frozenset({"alloca", "__builtin_alloca", "__builtin_alloca_with_align", "_alloca"})
_FORMAT = re.compile(r"(?i)\s*\d+\s*format\s*\(")
