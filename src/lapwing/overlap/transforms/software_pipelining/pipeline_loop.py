"""Pipelines a loop: the next iteration's independent work runs while this iteration's transfer is in flight.

before:  for (t = a; t <= b; t++) step(t);        step: work; MPI_Allreduce; counts; MPI_Alltoallv; rest
after:   for (t = a; t <= b; t++) { step_next = t + 1 <= b; step(t); }
         step: if it was not done early, step_early (work; MPI_Allreduce; counts); take over what it wrote;
               MPI_Ialltoallv; if (step_next) step_early(t + 1); MPI_Wait; rest

Obligations. Between the transfer's start and the original place of the next iteration's work, nothing is written that the work
needs, and variables that the work writes and others access there have double buffers (double_buffers.py). The next iteration
certainly follows: the loop's bounds are known before the iteration, nothing leaves the loop or the program in between, and the
procedure is called once per iteration, unconditionally, with arguments known beforehand. Collectives before the transfer are
early, too, if nothing communicates from the transfer to them: their order is kept. split_phase/collectives.py decides whether
the transfer may become nonblocking, and lookahead.py whether it may even start before the rest of the previous iteration.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from lapwing.overlap import mpi
from lapwing.overlap.analysis.dependence import barrier_advice
from lapwing.overlap.analysis.effects.value_numbering import Environment
from lapwing.overlap.analysis.manager import Analysis
from lapwing.overlap.analysis.messages.sites import sites_of
from lapwing.overlap.analysis.recomputable import is_invariant, is_simple, written_keys
from lapwing.overlap.ir.accesses import Access, Memory
from lapwing.overlap.ir.expressions import Cast, Expression, Name, Number, Storage, Symbol
from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.ir.rewriter import argument_of, declared_in, is_for_its_block, message_of, rewrite
from lapwing.overlap.ir.split_phase import NOWHERE, SplitPhaseOperation, Written
from lapwing.overlap.ir.statements import Block, Call, Declare, Jump, Loop, Nothing, Statement
from lapwing.overlap.languages.registry import language_of_procedure
from lapwing.overlap.source.spans import Span
from lapwing.overlap.transforms.context import Context
from lapwing.overlap.transforms.progress.calls import done_meanwhile
from lapwing.overlap.transforms.software_pipelining.double_buffers import (
    Allocation,
    DoubleBuffer,
    DoubleBufferFinder,
    Obstacle,
    accessed,
    is_own,
)
from lapwing.overlap.transforms.software_pipelining.lookahead import Lookahead, find_lookahead
from lapwing.overlap.transforms.software_pipelining.prologue import Prologue, PrologueFinder, unused
from lapwing.overlap.transforms.software_pipelining.prologue_text import (
    Insertion,
    PrologueText,
    next_iteration_lines,
    words,
)

TRANSFORMATION = "pipeline-loop"
SplitCollective = Callable[[Call, Procedure], Sequence[Statement]]


@dataclass(frozen=True)
class Iteration:
    """A loop of ``caller`` that calls ``callee`` once per iteration; ``transfer`` is a collective in that."""

    caller: Procedure
    loop: Loop
    call: Call
    callee: Procedure
    transfer: Call


@dataclass
class Refused(Exception):
    """An obligation that does not hold."""

    obligation: str
    found: str
    advice: str
    where: Span | None = None


def pipeline_loops(
    context: Context, split_collective: SplitCollective, unread: frozenset[int], stem_of: Callable[[int], str]
) -> tuple[Insertion, ...]:
    """Pipeline every loop that can be, but for those in the sources ``unread``. Replaces the program in ``context``, which must
    be as it was read, by the changed one; returns the text to insert outside the procedures that were read. ``stem_of``: the
    files' stems in names of support code."""
    return _Pipeliner(context, split_collective, unread, stem_of).run() if context.allowed(TRANSFORMATION) else ()


@dataclass
class _Pipeliner:
    context: Context
    split_collective: SplitCollective
    unread: frozenset[int]
    stem_of: Callable[[int], str]
    insertions: list[Insertion] = field(default_factory=list)
    done: set[str] = field(default_factory=set)
    taken: set[str] = field(default_factory=set)

    @property
    def analysis(self) -> Analysis:
        return self.context.analysis

    def run(self) -> tuple[Insertion, ...]:
        tried: set[tuple[str, Span]] = set()
        self.taken |= words(self.analysis.program.sources)
        while (
            iteration := next((t for t in self._iterations() if (t.callee.key, t.loop.span) not in tried), None)
        ) is not None:
            tried.add((iteration.callee.key, iteration.loop.span))
            if iteration.callee.key in self.done:
                continue
            try:
                self._pipeline(iteration)
            except Refused as why:
                self._refuse(iteration, why)
        return tuple(self.insertions)

    def _refuse(self, iteration: Iteration, why: Refused) -> None:
        self.context.refuse(iteration.transfer.span, TRANSFORMATION, why.obligation, why.found, why.advice, why.where)

    # ---- what could be pipelined --------------------------------------------------------------------------------------

    def _iterations(self) -> Iterator[Iteration]:
        program = self.analysis.program
        for caller in program.procedures.values():
            if not language_of_procedure(program, caller).pipelines_loops or caller.source in self.unread:
                continue
            for loop in caller.body.walk():
                if not isinstance(loop, Loop):
                    continue
                for call in loop.body.statements:
                    callee = program.resolve(call.name, caller) if isinstance(call, Call) else None
                    transfer = _transfer_of(callee) if callee is not None else None
                    if callee is None or transfer is None or not isinstance(call, Call):
                        continue
                    if callee.source in self.unread:
                        continue
                    if language_of_procedure(program, callee).pipelines_loops and callee.key != caller.key:
                        yield Iteration(caller, loop, call, callee, transfer)

    def _pipeline(self, iteration: Iteration) -> None:
        if not self.context.allowed("nonblocking"):
            raise Refused(
                "blocking calls may become nonblocking ones",
                "the transformation nonblocking is left out",
                "allow it, too",
            )
        self._check_loop(iteration)
        self._check_callee(iteration)
        self._check_memory(iteration)
        arguments = self._next_arguments(iteration)
        work, double_buffers = self._early_with_collectives(iteration)
        count = argument_of(iteration.transfer, mpi.Role.COUNT)
        if double_buffers and isinstance(count, Number) and count.value <= _FEW:
            raise Refused(
                "the transfer takes longer than the copies it needs",
                f"{count.value} elements",
                "nothing: so small a transfer is soon over",
            )
        operations = self.split_collective(iteration.transfer, iteration.callee)
        if len(operations) == 2:
            self._change(iteration, arguments, work, double_buffers, operations)

    # ---- obligations --------------------------------------------------------------------------------------------------

    def _check_loop(self, iteration: Iteration) -> None:
        """Checks that the next iteration certainly follows if its number is within the bounds."""
        loop, analysis = iteration.loop, self.analysis
        if not isinstance(loop.step, Number) or loop.step.value == 0 or loop.body.form == "chain":
            raise Refused("the loop counts by a known number", "it does not", "count by a constant", loop.span)
        if loop.variable.storage is not Storage.LOCAL or loop.variable.target:
            raise Refused(
                "only the loop counts its variable",
                f"{loop.variable.name} can be reached from elsewhere",
                "count in a local variable",
                loop.span,
            )
        effects = [analysis.plain(s, iteration.caller) for s in loop.body.statements]
        for statement, effect in zip(loop.body.statements, effects, strict=True):
            if effect.leaves is not None or any(isinstance(s, Jump) and s.kind != "break" for s in statement.walk()):
                raise Refused(
                    "the next iteration certainly follows",
                    "the loop may be left, or its iteration cut short",
                    "put what ends the loop into its condition",
                    statement.span,
                )
            if effect.barrier is not None:
                raise Refused(
                    "all that the loop does is known",
                    effect.barrier,
                    barrier_advice(effect.barrier),
                    statement.span,
                )
            if statement is not iteration.call and self._reaches(statement, iteration.caller, iteration.callee):
                raise Refused(
                    "the procedure is called once per iteration",
                    f"{iteration.callee.name} is called again",
                    "call it once",
                    statement.span,
                )
        if not is_simple(loop.upper) or not is_invariant(loop.upper, written_keys(effects)):
            raise Refused(
                "the loop's bounds do not change in an iteration",
                "they may",
                "keep the bound in a local variable",
                loop.span,
            )
        if analysis.graph.recursive(iteration.callee.key):
            raise Refused(
                "the procedure is called once per iteration",
                f"{iteration.callee.name} calls itself",
                "write it as a loop",
                loop.span,
            )

    def _reaches(self, statement: Statement, caller: Procedure, wanted: Procedure) -> bool:
        graph, waiting, seen = self.analysis.graph, set[str](), set[str]()
        for site in graph.sites[caller.key]:
            if statement.span.contains(site.statement.span) and site.callee is not None:
                waiting.add(site.callee)
        while waiting:
            key = waiting.pop()
            seen.add(key)
            waiting |= graph.callees(key) - seen
        return wanted.key in seen

    def _next_arguments(self, iteration: Iteration) -> tuple[int, ...]:
        """By how much each argument grows in the next iteration."""
        effects = [self.analysis.plain(s, iteration.caller) for s in iteration.loop.body.statements]
        written = written_keys(effects)
        values = Environment(self.analysis.terms)
        variable = self.analysis.terms.of_variable(iteration.loop.variable)
        assert isinstance(iteration.loop.step, Number)
        step = int(iteration.loop.step.value)
        differences = []
        if (
            len(iteration.call.arguments) != len(iteration.callee.parameters)
            or iteration.call.keywords
            or iteration.callee.variadic
        ):
            raise Refused(
                "the next iteration's arguments are known",
                "a call with other arguments",
                "give it a prototype",
                iteration.call.span,
            )
        for argument, dummy in zip(iteration.call.arguments, iteration.callee.parameters, strict=True):
            if is_simple(argument) and is_invariant(argument, written | {iteration.loop.variable.key}):
                differences.append(0)
                continue
            counted = is_simple(argument) and _fits(iteration.loop.variable, dummy)
            counted = counted and not any(isinstance(e, Cast) for e in argument.walk())
            form = values.affine(argument) if counted else None
            others = set() if form is None else set(form.names) - {variable}
            origins = {key for name in others for key in self.analysis.terms.origin.get(name, {"?"})}
            if form is None or not is_invariant(argument, written) or origins & {iteration.loop.variable.key, "?"}:
                raise Refused(
                    "the next iteration's arguments are known",
                    f"{dummy.name} is not known an iteration ahead",
                    "pass the loop's variable, or what does not change in the loop",
                    iteration.call.span,
                )
            differences.append(form.coefficient(variable) * step)
        return tuple(differences)

    def _early_with_collectives(self, iteration: Iteration) -> tuple[Prologue, tuple[DoubleBuffer, ...]]:
        """The early work including the collectives before the transfer, unless these leave less other work early."""
        without = self._early(iteration, collectives=False)
        if self._communicates_after(iteration):
            return without
        try:
            found = self._early(iteration, collectives=True)
        except Refused:
            return without
        return found if all(any(s is t for t in found[0].early) for s in without[0].early) else without

    def _communicates_after(self, iteration: Iteration, staying: Sequence[Statement] = ()) -> bool:
        """Whether anything communicates between the transfer and the next iteration, or in what stays before the next
        transfer."""
        statements = iteration.callee.body.statements
        place = next(n for n, s in enumerate(statements) if s is iteration.transfer)
        effects = [self.analysis.plain(s, iteration.callee) for s in (*statements[place + 1 :], *staying)]
        effects += [
            self.analysis.plain(s, iteration.caller) for s in iteration.loop.body.statements if s is not iteration.call
        ]
        return any(e.operations or e.states & {"synchronisation"} for e in effects)

    def _early(self, iteration: Iteration, *, collectives: bool) -> tuple[Prologue, tuple[DoubleBuffer, ...]]:
        """As much early work as possible, with the double buffers it needs."""
        finder = PrologueFinder(self.analysis, iteration.callee, iteration.transfer, collectives=collectives)
        banned: set[int] = set()
        first: Obstacle | None = None
        while True:
            work = finder.find(frozenset(banned))
            if not work.has_work(self.analysis):
                break
            found = DoubleBufferFinder(self.analysis, work, iteration.transfer, self._between(iteration, work)).find()
            if not isinstance(found, Obstacle):
                if first is not None:  # the rest of it might be early, too
                    self._refuse(iteration, _refusal(first))
                return work, found
            first = first or found
            places = {finder.place_of(s) for s in found.statements}
            if not places - banned:
                break
            banned |= places
        if first is not None:
            raise _refusal(first)
        raise Refused(
            "there is work before the transfer that needs nothing of it",
            "none",
            "compute what the next iteration sends from what the transfer does not deliver",
        )

    def _check_callee(self, iteration: Iteration) -> None:
        """Checks that every call reaches the transfer, with its arguments unchanged."""
        callee = iteration.callee
        if self.analysis.names_itself(callee):
            raise Refused(
                "a procedure's text means the same in another", "its own name, as __func__", "write it out", callee.span
            )
        for statement in callee.body.statements:
            if statement is iteration.transfer:
                break
            # The text of what has no effect, such as a directive, is omitted.
            unseen = isinstance(statement, Nothing) and self._text(statement, callee).strip() not in ("", ";")
            if unseen or is_for_its_block(statement):
                raise Refused(
                    "a procedure's types are known to others", "a declaration in it", "move it out", statement.span
                )
            if self.analysis.plain(statement, callee).leaves is not None:
                raise Refused(
                    "the transfer is made at every call", "it may not come to it", "leave at its end", statement.span
                )
        for statement in callee.body.walk():
            if isinstance(statement, Jump) and statement.kind in ("goto", "stop"):
                raise Refused(
                    "the next iteration certainly follows", f"a {statement.kind}", "use no jumps", statement.span
                )
        dummies = {dummy.key for dummy in callee.parameters}
        for statement in callee.body.statements:
            if statement is iteration.transfer:
                break
            for access in self.analysis.plain(statement, callee).accesses:
                symbol = access.symbol
                if (
                    symbol is not None
                    and symbol.key in dummies
                    and (symbol.target or (access.writes and not access.through))
                ):
                    raise Refused(
                        "the procedure keeps its arguments",
                        f"{symbol.name} is changed",
                        "change a copy of it",
                        statement.span,
                    )

    def _check_memory(self, iteration: Iteration) -> None:
        """Checks that no other rank writes into this one's memory."""
        analysis = self.analysis
        sites = sites_of(analysis.program, analysis.graph)
        if any(s.message.kind is mpi.Kind.ONE_SIDED for s in sites):
            raise Refused(
                "only the program's own statements access its memory", "one-sided communication", "use messages"
            )

    def _text(self, statement: Statement, procedure: Procedure) -> str:
        return self.analysis.program.sources[procedure.source].text(statement.span)

    def _between(self, iteration: Iteration, work: Prologue, *, transfer: bool = True) -> list[Access]:
        """All accesses from the transfer's start to the original place of the next iteration's work; with or without the
        transfer's."""
        analysis, callee = self.analysis, iteration.callee
        statements = callee.body.statements
        place = next(n for n, s in enumerate(statements) if s is iteration.transfer)
        own = [analysis.plain(s, callee) for s in statements[place if transfer else place + 1 :]]
        first = next(s for s in work.early if not _declares(s))
        for statement in work.staying:
            if not transfer or _declares(statement) or statement.span.start < first.span.start:
                own.append(analysis.plain(statement, callee))
        for effects in own:
            if effects.barrier is not None:
                raise Refused("all that the loop does is known", effects.barrier, barrier_advice(effects.barrier))
        found = accessed(own, callee)
        header = iteration.loop
        for statement in header.body.statements:
            if statement is iteration.call:
                found += [a for argument in iteration.call.arguments for a in self._reads(argument, iteration)]
            else:
                found += accessed([analysis.plain(statement, iteration.caller)], callee)
        found.append(Access(header.variable, None, True, False, False, frozenset()))
        for started in analysis.nonblocking_calls():
            found += [Access(None, None, writes, False, False, memory) for memory, writes in started.buffers]
        return list(dict.fromkeys(found))

    def _reads(self, argument: Expression, iteration: Iteration) -> list[Access]:
        return [
            Access(e.symbol, None, False, False, False, self.analysis.aliases.objects(e, iteration.caller))
            for e in argument.walk()
            if isinstance(e, Name)
        ]

    # ---- the change ---------------------------------------------------------------------------------------------------

    def _change(
        self,
        iteration: Iteration,
        differences: tuple[int, ...],
        work: Prologue,
        double_buffers: tuple[DoubleBuffer, ...],
        operations: Sequence[Statement],
    ) -> None:
        program = self.analysis.program
        external = iteration.caller.source != iteration.callee.source
        lookahead = self._lookahead(iteration, work, double_buffers)
        meanwhile = done_meanwhile(self.context, iteration.callee, work.early, iteration.transfer)
        text = PrologueText(
            program,
            work,
            double_buffers,
            iteration.transfer,
            lookahead,
            meanwhile,
            self.stem_of,
            shared=external,
            taken=self.taken,
        )
        insertions = text.insertions()
        flag = next_iteration_lines(program, iteration.loop, text.next_name)
        if flag is None:
            raise Refused(
                "the loop's condition stands in its header", "a macro", "write the loop out", iteration.loop.span
            )
        if any(_DIRECTIVE.search(i.text) for i in insertions):
            raise Refused("the early work's text has no preprocessor lines", "one", "move it out of the procedure")
        start, end = operations
        self._replace(iteration.callee, self._new_callee(iteration, work, text, differences, start, end))
        self.insertions += insertions
        caller = self.analysis.program.procedures[iteration.caller.key]
        before = Written(flag, (_flag(iteration.callee),), span=NOWHERE)

        def with_flag(statement: Statement) -> Sequence[Statement]:
            return (before, statement) if statement is iteration.call else (statement,)

        self._replace(caller, rewrite(caller.body, with_flag))
        if external:
            self.insertions.append(text.declaration_for(iteration.caller))
        for double_buffer in double_buffers:
            if double_buffer.allocation is not None:
                self._allocate(iteration, text, double_buffer.symbol, double_buffer.allocation)
        if lookahead is not None:
            self._allocate(iteration, text, lookahead.received, lookahead.allocation)
        self.analysis.forget_changed()
        self.done.add(iteration.callee.key)
        self._say(iteration, work)
        if lookahead is not None:
            self.context.made(
                iteration.transfer.span, TRANSFORMATION, "starts before the rest of the previous iteration"
            )

    def _new_callee(
        self,
        iteration: Iteration,
        work: Prologue,
        text: PrologueText,
        differences: tuple[int, ...],
        start: Statement,
        end: Statement,
    ) -> Block:
        assert isinstance(start, SplitPhaseOperation)
        body = iteration.callee.body
        place = next(n for n, s in enumerate(body.statements) if s is iteration.transfer)
        first = next(s for s in work.early if not _declares(s))
        head = [s for s in work.staying if _declares(s) or s.span.start < first.span.start]
        rest = [s for s in work.staying if all(s is not h for h in head)]
        # A declaration after the work's place stays after it.
        late = [s for s in head if s.span.start > first.span.start]
        head = [s for s in head if all(s is not x for x in late)]
        mod_ref = _accesses(work, iteration.callee)
        barrier = "the next iteration's collective calls" if work.collectives else None
        tail = sorted([*late, *rest], key=lambda s: s.span.start)
        left = set(unused([*head, *rest, *late, *body.statements[place:]])) - {
            v.name for s in late for v in declared_in(s)
        }
        return replace(
            body,
            statements=(
                *head,
                Written(text.taking_over(sorted(left)), mod_ref, barrier, span=NOWHERE),
                *tail,
                replace(text.start(start), span=iteration.transfer.span),
                Written(text.doing_early(differences), mod_ref, barrier, span=NOWHERE),
                replace(end, span=NOWHERE),
                *self._starting_ahead(iteration, text, start, mod_ref),
                *body.statements[place + 1 :],
            ),
        )

    def _lookahead(
        self, iteration: Iteration, work: Prologue, double_buffers: tuple[DoubleBuffer, ...]
    ) -> Lookahead | None:
        """How the transfer starts an iteration ahead, if it can."""
        if self._communicates_after(iteration, work.staying):
            return None
        rest = self._between(iteration, work, transfer=False)
        found = find_lookahead(self.analysis, work, double_buffers, iteration.transfer, rest)
        if isinstance(found, str):
            self._refuse(
                iteration,
                Refused(
                    "the next iteration's transfer may start before the rest of this one",
                    found,
                    "receive into memory of one malloc that the rest of the loop only reads, by its elements",
                ),
            )
            return None
        return found

    def _starting_ahead(
        self, iteration: Iteration, text: PrologueText, start: SplitPhaseOperation, mod_ref: tuple[Access, ...]
    ) -> tuple[Statement, ...]:
        lines = text.starting_ahead(start)
        if not lines:
            return ()
        own = tuple(accessed([self.analysis.plain(iteration.transfer, iteration.callee)], iteration.callee))
        barrier = "the next iteration's collective calls"
        return (Written(lines, (*mod_ref, *own), barrier, starts=start, span=NOWHERE),)

    def _allocate(self, iteration: Iteration, text: PrologueText, symbol: Symbol, allocation: Allocation) -> None:
        procedure = self.analysis.program.procedures[allocation.procedure.key]
        room = Access(None, None, True, False, False, frozenset({Memory(f"shadow of {symbol.key}")}))
        made = Written(text.allocating(symbol, allocation), (room, _flag(iteration.callee)), span=NOWHERE)

        def with_second_buffer(statement: Statement) -> Sequence[Statement]:
            return (statement, made) if statement is allocation.statement else (statement,)

        self._replace(procedure, rewrite(procedure.body, with_second_buffer))

    def _replace(self, procedure: Procedure, body: Block) -> None:
        analysis = self.analysis
        changed = replace(analysis.program.procedures[procedure.key], body=body)
        analysis.program = replace(analysis.program, procedures={**analysis.program.procedures, procedure.key: changed})

    def _say(self, iteration: Iteration, work: Prologue) -> None:
        source = self.analysis.program.sources[iteration.callee.source]
        lines = [source.line_of(s.span.start) for s in work.early if not _declares(s)]
        self.context.made(
            iteration.transfer.span,
            TRANSFORMATION,
            f"the next iteration's work of lines {min(lines)} to {max(lines)} is done while it travels",
        )
        for call in work.collectives:
            text = f"made in the previous iteration, while {iteration.transfer.name} travels"
            self.context.made(call.span, TRANSFORMATION, text)


_FEW = 16  # elements of a transfer that is over before copies are made
_DIRECTIVE = re.compile(r"^[ \t]*#", re.MULTILINE)


def _refusal(obstacle: Obstacle) -> Refused:
    return Refused(obstacle.obligation, obstacle.found, obstacle.advice, obstacle.where)


def _flag(callee: Procedure) -> Access:
    """The flag by which a procedure's calls and its loop communicate."""
    return Access(None, None, True, False, False, frozenset({Memory(f"pipeline {callee.key}")}))


def _accesses(work: Prologue, callee: Procedure) -> tuple[Access, ...]:
    """All externally visible accesses of the early work, with double buffers taken for their variables; and those to the
    arguments."""
    dummies = {dummy.key for dummy in callee.parameters}
    found = [
        replace(a, section=None, must=False, where=None)
        for effects in work.effects
        for a in effects.accesses
        if not is_own(a, callee) or (a.symbol is not None and a.symbol.key in dummies)
    ]
    arguments = [Access(d, None, False, False, False, frozenset({Memory(d.key, d)})) for d in callee.parameters]
    return tuple(dict.fromkeys([*found, *arguments, _flag(callee)]))


# ---- helpers ----------------------------------------------------------------------------------------------------------


def _transfer_of(procedure: Procedure) -> Call | None:
    """The collective that probably moves most: one with counts is preferred, and the last of equal ones."""
    best: tuple[int, Call] | None = None
    for statement in procedure.body.statements:
        message = message_of(statement)
        if message is None or not isinstance(statement, Call) or message.kind is not mpi.Kind.COLLECTIVE:
            continue
        if not message.blocking or message.nonblocking is None or not message.buffers:
            continue
        weight = 1 if mpi.index_of(message, mpi.Role.COUNTS) is not None else 0
        if best is None or weight >= best[0]:
            best = (weight, statement)
    return None if best is None else best[1]


def _declares(statement: Statement) -> bool:
    return isinstance(statement, Declare)


def _fits(variable: Symbol, dummy: Symbol) -> bool:
    """Whether every value of the loop's variable is one of the argument's."""
    one, other = variable.type, dummy.type
    return one.base == other.base == "integer" and (one.bytes or 8) <= (other.bytes or 0)
