"""The pipeline of passes: from a program to the outcome of its communications and the changed files."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

from lapwing.overlap.analysis.dependence import Conflict, barrier_advice
from lapwing.overlap.analysis.manager import Analysis
from lapwing.overlap.analysis.motion_barriers import MotionBarriers
from lapwing.overlap.analysis.ranks.uniformity import Uniformity
from lapwing.overlap.dataflow.call_graph import Target, is_static
from lapwing.overlap.emission import undefined_macros
from lapwing.overlap.emission.renderer import Renderer
from lapwing.overlap.ir.expressions import Name
from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.ir.rewriter import called_in, has_messages, message_of
from lapwing.overlap.ir.rewriter import rewrite as rewrite_tree
from lapwing.overlap.ir.split_phase import (
    NOWHERE,
    Drain,
    OutlinedCall,
    Part,
    Progress,
    SplitPhaseOperation,
    StripMinedLoop,
)
from lapwing.overlap.ir.statements import Block, Call, Statement
from lapwing.overlap.languages.registry import language_of, language_outside
from lapwing.overlap.languages.shared.emitter import Emitter
from lapwing.overlap.languages.shared.support_requirements import SupportRequirements
from lapwing.overlap.report.outcome import Options, Outcome
from lapwing.overlap.source.patch import FileChange, with_line_ends
from lapwing.overlap.source.replacements import Edit, apply_edits
from lapwing.overlap.source.spans import Span
from lapwing.overlap.survey import survey, without_source
from lapwing.overlap.transforms.code_motion import CodeMotion, Move
from lapwing.overlap.transforms.context import Context, Note, procedures_with_messages
from lapwing.overlap.transforms.eligibility import Eligibility
from lapwing.overlap.transforms.outlining.split_procedure import OutlinedProcedure, SplitProcedures
from lapwing.overlap.transforms.progress.callees import CalledMeanwhile
from lapwing.overlap.transforms.progress.calls import ProgressCalls
from lapwing.overlap.transforms.progress.in_flight import Events, InFlight
from lapwing.overlap.transforms.revert_unprofitable import reverted
from lapwing.overlap.transforms.software_pipelining.pipeline_loop import pipeline_loops
from lapwing.overlap.transforms.software_pipelining.prologue_text import Insertion
from lapwing.overlap.transforms.split_phase.blocking_calls import BlockingCalls
from lapwing.overlap.transforms.split_phase.collectives import Collectives
from lapwing.overlap.transforms.split_phase.direct_messages import DirectMessages
from lapwing.overlap.transforms.split_phase.request_arrays import take_over_array
from lapwing.overlap.transforms.split_phase.waits import take_over


def rewrite(program: Program, options: Options) -> Outcome:
    """Run all passes on a program. Writes no file: the outcome holds the files' new contents."""
    began = time.perf_counter()
    rewriter = _Rewriter(program, options)
    rewriter.run()
    changes = rewriter.changes()
    communications = survey(program, rewriter.context)
    return Outcome(
        communications,
        changes,
        program.problems,
        time.perf_counter() - began,
        progress_calls=rewriter.progress_calls(),
        undefined=tuple(program.undefined),
        without_source=without_source(rewriter.context.analysis.graph),
    )


class _Rewriter:
    def __init__(self, program: Program, options: Options) -> None:
        self.read = program
        self.context = Context(Analysis(program, reassociates=options.reassociate), options)
        self.splits = SplitProcedures(self.context)
        self._outlined: dict[str, list[OutlinedProcedure]] = {}  # callers may split it differently
        self.insertions: tuple[Insertion, ...] = ()
        self._moves: list[tuple[Procedure, Statement]] = []  # starts that were moved up, and what they now precede
        self._remarks: dict[Span, str] = {}  # comments for unchanged statements that were moved
        self._left = frozenset[int]()  # sources that are left unchanged
        self._finalizing = frozenset[int]()  # those that call drain procedures

    @property
    def now(self) -> Program:
        return self.context.analysis.program

    def run(self) -> None:
        unsuitable = Eligibility(self.context, self.read)
        if unsuitable.whole():
            return
        collectives = Collectives(self.context, Uniformity(self.context.analysis))
        self._left = unsuitable.sources()
        self.splits.left = self._left
        self.insertions = pipeline_loops(self.context, collectives.split, self._left, self._stem)
        for procedure in list(procedures_with_messages(self.context.analysis)):
            if procedure.source in self._left:
                continue
            body = take_over(self.context, procedure)
            body = take_over_array(self.context, replace(procedure, body=body))
            body = rewrite_tree(body, BlockingCalls(self.context, procedure).change)
            body = rewrite_tree(body, partial(collectives.split, procedure=procedure))
            self._replace(replace(procedure, body=body))
        # From here on the procedures' externally visible effects no longer change.
        self.context.analysis.forget_changed()
        for key in self._bottom_up():
            if self.now.procedures[key].source not in self._left:
                self._move_code(self.now.procedures[key])
                if self.context.analysis.graph.callers(key):
                    # Callers need the summary next, and most of it has just been analysed here.
                    self.context.analysis.summary(self.now.procedures[key])
                self.context.analysis.forget_prefixes()
        for key in self.read.procedures:
            self._revert_unprofitable(self.now.procedures[key])
        self._use_outlined()
        self._leave_out_copies()
        self._drain()
        self._say_split_phase()
        self._progress()

    def _replace(self, procedure: Procedure) -> None:
        analysis = self.context.analysis
        analysis.program = replace(self.now, procedures={**self.now.procedures, procedure.key: procedure})

    def _bottom_up(self) -> Sequence[str]:
        graph = self.context.analysis.graph
        return [key for key in graph.bottom_up if graph.reaches_mpi(key)]

    def _move_code(self, procedure: Procedure) -> None:
        def refused(statement: Statement, reason: Conflict) -> None:
            for inner in statement.walk():
                site = inner.call if isinstance(inner, SplitPhaseOperation) else None
                site = inner.original if isinstance(inner, OutlinedCall) else site
                if site is not None:
                    self.context.refuse(
                        site.span,
                        "split-producer" if reason.kind in ("iterations", "rounding") else "start-earlier",
                        _OBLIGATIONS.get(reason.kind, "nothing in between may matter"),
                        reason.what,
                        _advice(reason, site),
                        reason.where,
                    )

        def refused_work(wait: Statement, reason: Conflict) -> None:
            obligation, advice = _WORK[reason.kind]
            for site in self._sites(wait, procedure):
                self.context.refuse(site, "split-loop", obligation, reason.what, advice, reason.where)

        code_motion = CodeMotion(
            self.context.analysis,
            procedure,
            self.splits.split_call,
            self.splits.split_against,
            self.splits.split_work_before,
            refused,
            refused_work,
            MotionBarriers(self.read, self.read.procedures[procedure.key]),
            self.context.allowed,
        )
        body = code_motion.body()
        if body is not procedure.body:
            self._replace(replace(self.now.procedures[procedure.key], body=body))
            for move in code_motion.moved:
                self._say(move, procedure)
                self._remark(move, procedure)
                if move.transformation in ("start-earlier", "together", "split-producer"):
                    self._moves.append((procedure, move.statement))

    def _say(self, move: Move, procedure: Procedure) -> None:
        line = self._line(move.past)
        if move.transformation in ("start-earlier", "together"):
            for site in self._sites(move.statement, procedure):
                self.context.made(site, move.transformation, f"starts before line {line}")
            return
        if move.transformation == "split-producer":
            for site in self._sites(move.statement, procedure):
                self.context.made(
                    site, move.transformation, f"what it needs of line {line} is done first, the rest after its start"
                )
            return
        for site in self._sites(move.past, procedure):
            self.context.made(
                site, move.transformation, f"the work of line {self._line(move.statement)} is done before it"
            )

    def _remark(self, move: Move, procedure: Procedure) -> None:
        """A comment for a statement that was moved but not rewritten; split-phase operations have comments of their own."""
        if move.transformation in ("start-earlier", "together"):
            moved, where = move.statement, "comes before what it does not need"
        elif move.transformation == "wait-later":
            moved, where = move.past, "comes after work that does not need it"
        else:
            return
        name = self._communicating(moved, procedure)
        if name is not None and not any(
            isinstance(inner, SplitPhaseOperation | OutlinedCall) for inner in moved.walk()
        ):
            self._remarks[moved.span] = f"lapwing: {name} {where}"

    def _communicating(self, statement: Statement, procedure: Procedure) -> str | None:
        """The name of the first call in the statement that communicates, directly or in the program's own procedures."""
        for inner in statement.walk():
            if isinstance(inner, Call) and self._communicates(inner, procedure):
                message = message_of(inner)
                return inner.name if message is None else message.name
        return None

    def _communicates(self, call: Call, procedure: Procedure) -> bool:
        callee = self.now.resolve(call.name, procedure)
        return message_of(call) is not None if callee is None else self.context.analysis.graph.reaches_mpi(callee.key)

    def _sites(self, statement: Statement, procedure: Procedure) -> Iterable[Span]:
        """The original places of the MPI calls, and the calls of communicating procedures, that the statement is made of."""
        for inner in statement.walk():
            if isinstance(inner, SplitPhaseOperation):
                yield inner.call.span
            elif isinstance(inner, OutlinedCall):
                if inner.original is not None:
                    yield inner.original.span
            elif isinstance(inner, Call) and self._communicates(inner, procedure):
                yield inner.span

    def _leave_out_copies(self) -> None:
        """Removes the copies of messages that turn out to need none."""
        self.context.analysis.forget_changed()
        # A pipelined loop changes the order of everything in it.
        blocking = set() if self.insertions else {id(s) for p in self.read.procedures.values() for s in p.body.walk()}

        def refuse(call: Call, obligation: str, found: str, advice: str) -> None:
            self.context.refuse(call.span, "nonblocking", obligation, found, advice)

        analysis = self.context.analysis
        messages = DirectMessages(analysis, refuse, blocking, self._moved_slots(), self._spread_slots())
        for key in self._written():
            changed = messages.change(self.now.procedures[key])
            if changed is not self.now.procedures[key]:
                self._replace(changed)

    def _moved_slots(self) -> frozenset[tuple[int, int]]:
        """Source and slot of all communications that were moved before others, themselves or with a call of their procedure,
        and of all in outlined procedures, to which code motion was applied once more when they were split."""
        found: set[tuple[int, int]] = set()
        seen: set[str] = set()
        split = [self.now.procedures[part.key] for part in self._outlined_procedures()]
        waiting = [(statement, procedure) for procedure, statement in self._moves]
        waiting += [(statement, part) for part in split for statement in part.body.statements]
        while waiting:
            statement, procedure = waiting.pop()
            for inner in statement.walk():
                if isinstance(inner, SplitPhaseOperation):
                    found.add((procedure.source, inner.slot))
                for name in called_in(inner):
                    callee = self.now.resolve(name, procedure)
                    if callee is not None and callee.key not in seen:
                        seen.add(callee.key)
                        waiting += [(s, callee) for s in callee.body.statements]
        return frozenset(found)

    def _spread_slots(self) -> frozenset[tuple[int, int]]:
        """Source and slot of receives whose operations are in several procedures: a loop's last iteration may be in another
        outlined part."""
        found: Counter[tuple[int, int]] = Counter()
        for key in self._written():
            procedure = self.now.procedures[key]
            operations = (
                s for s in procedure.body.walk() if isinstance(s, SplitPhaseOperation) and s.part is not Part.SEND
            )
            found.update({(procedure.source, operation.slot) for operation in operations})
        return frozenset(slot for slot, procedures in found.items() if procedures > 1)

    def _written(self) -> list[str]:
        """Keys of the procedures that keep a body; the others are replaced by their outlined parts."""
        keys = [*self.read.procedures, *(part.key for part in self._outlined_procedures())]
        return [key for key in keys if key not in self._outlined]

    def _progress(self) -> None:
        """Inserts progress calls into loops that run while moved communication is in flight; callers first, since they
        determine what is in flight in their callees."""
        self.context.analysis.forget_changed()
        moved = self._moved_sites()
        if not moved:
            return
        split = {part.name: self.now.procedures[part.key] for part in self._outlined_procedures()}
        events = Events(self.context, split, self._with_starts(moved, Events(self.context, split)))
        lasts = {d.last.name for divisions in self._outlined.values() for d in divisions}
        in_flight: dict[str, InFlight] = {}
        called = CalledMeanwhile(self.context, self._left)
        for key in self._top_down(self._written()):
            procedure = self.now.procedures[key]
            begun = in_flight.get(key, {})
            calls = ProgressCalls(self.context, procedure, events, called=called)
            if procedure.name in lasts:
                begun = events.in_flight_in(procedure) | begun
            work = bool(begun) and procedure.name not in split
            if work:
                if not called.may_help(procedure, begun):
                    continue
                calls.strips = False
            if procedure.source in self._left:
                continue
            body = calls.block(procedure.body, begun)
            for callee, messages in calls.meanwhile.items():
                in_flight.setdefault(callee, {}).update(messages)
            if body is not procedure.body:
                self._replace(replace(procedure, body=body))
            elif work:
                called.is_short(procedure, begun)
        called.say_short()

    def _moved_sites(self) -> frozenset[Span]:
        """The places of the MPI calls of which an operation was moved, by itself or with a call of its procedure."""
        made = {note.site for note in self.context.notes if note.made}
        graph = self.context.analysis.graph
        called = {
            site.callee
            for sites in graph.sites.values()
            for site in sites
            if site.callee is not None and (site.call.span or site.statement.span) in made
        }
        inside = (site for key in graph.with_callees(called) for site in graph.sites.get(key, ()))
        return frozenset(made | {s.call.span or s.statement.span for s in inside if s.target is Target.MPI})

    def _with_starts(self, moved: frozenset[Span], events: Events) -> frozenset[Span]:
        """The sites, with those of the transfers whose waits were moved, for which notes are added."""
        found = set(moved)
        made: dict[Span, list[Note]] = {}
        for note in self.context.notes:
            if note.made and note.transformation in ("wait-later", "split-loop"):
                made.setdefault(note.site, []).append(note)
        for key in self._top_down(self._written()):
            procedure = self.now.procedures[key]
            calls = ProgressCalls(self.context, procedure, events)
            calls.follow(procedure.body, {})
            for wait, starts in calls.completed.items():
                found |= starts if wait in moved else set()
                for note in made.get(wait, ()):
                    for start in sorted(starts - moved, key=lambda span: (span.source, span.start)):
                        self.context.made(start, note.transformation, note.text.replace("before it", "before its wait"))
        return frozenset(found)

    def progress_calls(self) -> int:
        """The number of loops with progress calls."""
        bodies = (self.now.procedures[key].body for key in self._written())
        return sum(isinstance(statement, Progress | StripMinedLoop) for body in bodies for statement in body.walk())

    def _lenders(self) -> Iterable[int]:
        """Numbers of the files whose progress procedures other files call."""
        for key in self._written():
            for statement in self.now.procedures[key].body.walk():
                if isinstance(statement, Progress) and statement.lender is not None:
                    yield statement.lender

    def _top_down(self, keys: Sequence[str]) -> list[str]:
        """Callers before callees; outlined parts take the place of the whole."""
        analysis = self.context.analysis
        rank = {key: number for number, key in enumerate(analysis.graph.bottom_up)}
        whole = {key: analysis.origin(self.now.procedures[key]).key for key in keys}
        return sorted(keys, key=lambda key: rank.get(whole[key], 0), reverse=True)

    def _say_split_phase(self) -> None:
        """Notes every blocking call that remains split-phase."""
        for procedure in (*(self.now.procedures[key] for key in self.read.procedures), *self._outlined_procedures()):
            for statement in procedure.body.walk():
                if not isinstance(statement, SplitPhaseOperation) or statement.part not in _OUTLINED:
                    continue
                if statement.wait is None:
                    self.context.made(statement.call.span, "nonblocking", "does not wait where it starts")
                if statement.copies:
                    self.context.made(statement.call.span, "clone-buffer", "travels in memory of its own")

    def _line(self, statement: Statement) -> int:
        span = statement.span
        for inner in statement.walk():
            if span != NOWHERE:
                break
            span = inner.call.span if isinstance(inner, SplitPhaseOperation) else inner.span
            if isinstance(inner, OutlinedCall) and inner.original is not None:
                span = inner.original.span
        return 0 if span == NOWHERE else self.read.sources[span.source].line_of(span.start)

    def _revert_unprofitable(self, procedure: Procedure) -> None:
        body = reverted(procedure.body, self.read.procedures[procedure.key])
        if body is not procedure.body:
            self._replace(replace(procedure, body=body))

    # ---- outlined procedures ------------------------------------------------------------------------------------------

    def _use_outlined(self) -> None:
        """Finds the procedures whose outlined parts are called; their bodies become calls of both."""
        every = {
            part.key: d
            for d in (*self.splits.outlined.values(), *self.splits.by_conflict.values())
            if d is not None
            for part in (d.first, d.last)
        }
        waiting = list(self.read.procedures)
        seen: set[str] = set()
        while waiting:
            key = waiting.pop()
            if key in seen:
                continue
            seen.add(key)
            procedure = self.now.procedures[key]
            for statement in procedure.body.walk():
                if isinstance(statement, OutlinedCall):
                    part = self.now.resolve(statement.name, procedure)
                    assert part is not None, statement.name
                    outlined = every[part.key]
                    divisions = self._outlined.setdefault(outlined.whole.key, [])
                    if outlined not in divisions:
                        divisions.append(outlined)
                    waiting += [outlined.first.key, outlined.last.key]

    def _outlined_procedures(self) -> list[Procedure]:
        return [part for divisions in self._outlined.values() for d in divisions for part in (d.first, d.last)]

    # ---- text ---------------------------------------------------------------------------------------------------------

    def changes(self) -> tuple[FileChange, ...]:
        emitters: dict[int, Emitter] = {}
        edits: dict[int, list[Edit]] = {}
        for key, original in self.read.procedures.items():
            number = original.source
            source = self.read.sources[number]
            emitter = emitters.setdefault(number, self._emitter(number))
            emitter.requirements.interface = emitter.requirements.interface or original.mpi_interface
            now = self.now.procedures[key]
            if key not in self._outlined and now.body is original.body:
                continue
            renderer = Renderer(source, original, emitter, self._remarks)
            if key in self._outlined:
                edits.setdefault(number, []).append(self._outlined_text(renderer, original, self._outlined[key]))
            else:
                text = renderer.block(now.body)
                if not self.insertions:
                    language = language_of(source)
                    before = language.count_words(source.data[original.body.span.start : original.body.span.end])
                    text = language.without_unused(text, source, now.body, self._words_of_macros, before)
                edits.setdefault(number, []).append(Edit(original.body.span.start, original.body.span.end, text))
        for inserted in self.insertions:
            edit = Edit(inserted.offset, inserted.offset, inserted.text)
            edits.setdefault(inserted.source, []).append(edit)
            emitters[inserted.source].requirements.progresses |= inserted.progresses
            emitters[inserted.source].requirements.memcpy |= inserted.copies
        for number in set(self._lenders()):
            requirements = emitters.setdefault(number, self._emitter(number)).requirements
            requirements.progresses = requirements.lends = True
            edits.setdefault(number, [])
        self._prototypes(edits)
        self._check_macros(edits, emitters)
        every = (self._changed(number, edits, emitters) for number in sorted(edits))
        return tuple(change for change in every if change.after != change.before)

    def _check_macros(self, edits: dict[int, list[Edit]], emitters: Mapping[int, Emitter]) -> None:
        """Inserts checks that make compilers reject a macro that was taken as undefined."""
        changed = [n for n, found in edits.items() if found or (n in emitters and emitters[n].requirements.anything)]
        for number, check in undefined_macros.checks(self.read, changed).items():
            source = self.read.sources[number]
            place = self._place_of_support(number, edits.setdefault(number, []))
            first = undefined_macros.beginning(source)
            edits[number] = [
                *([Edit(first, first, check.first)] if check.first else ()),
                *([Edit(place, place, check.after_includes)] if check.after_includes else ()),
                *edits[number],
            ]

    @cached_property
    def _words_of_macros(self) -> Collection[str] | None:
        return language_outside(self.read).words_of_macros(self.read)

    def _emitter(self, number: int) -> Emitter:
        requirements = SupportRequirements(self._stem(number), drained_here=self._finalizing == {number})
        source = self.read.sources[number]
        return language_of(source).emitter(source, requirements, self._stem)

    def _stem(self, number: int) -> str:
        """The file's name as an identifier, with its number where two files share one, or the name it forms is taken."""
        mine = self._stems[number]
        free = self._stems.count(mine) == 1 and not _SUPPORT_NAMES.fullmatch(mine)
        return mine if free else f"{mine}_{number}"

    @cached_property
    def _stems(self) -> Sequence[str]:
        return [re.sub(r"\W", "_", source.path.stem.lower())[:_LONGEST_STEM] for source in self.read.sources]

    def _outlined_text(self, renderer: Renderer, original: Procedure, divisions: Sequence[OutlinedProcedure]) -> Edit:
        source, language = renderer.source, language_of(renderer.source)
        # From the beginning of the line, as columns matter in fixed form.
        start, end = source.data.rfind(b"\n", 0, original.span.start) + 1, original.span.end
        head = source.data[start : original.body.span.start].decode("latin-1")
        foot = source.data[original.body.span.end : end].decode("latin-1")
        texts = []
        for part, body in self._with_outlined(original, divisions):
            inner = renderer.block(body)
            inner = language.without_unused(inner, source, body, self._words_of_macros)
            text = language.renamed_head(renamed(head, original.name, part.name), source) + inner
            text += _ended(foot, original.name, part.name)
            texts.append(language.part_without_unused(text, source))
        return Edit(start, end, "\n\n".join(texts))

    def _with_outlined(
        self, whole: Procedure, divisions: Sequence[OutlinedProcedure]
    ) -> Iterable[tuple[Procedure, Block]]:
        """The outlined parts of the procedure, then the procedure itself, as calls of two parts, if it may still be called."""
        needed = self._may_be_called(whole)
        for part in (part for outlined in divisions for part in (outlined.first, outlined.last)):
            if part.key not in self._outlined:
                yield part, self.now.procedures[part.key].body
                continue
            *inner, itself = self._with_outlined(part, self._outlined[part.key])
            yield from inner
            if itself[0] is not part or needed or part.name in self._called:
                yield itself
        if not needed:
            return
        arguments = tuple(Name(p) for p in whole.parameters)
        calls = (
            OutlinedCall(part.name, arguments, original=_as_call(whole), span=NOWHERE)
            for part in (divisions[0].first, divisions[0].last)
        )
        yield whole, replace(whole.body, statements=tuple(calls))

    def _may_be_called(self, whole: Procedure) -> bool:
        """Whether an outlined procedure may be called as a whole: all calls of C's static functions are visible."""
        if not is_static(whole.key) or whole.key not in self.read.procedures or whole.name in self._called:
            return True
        # A prototype, a pointer to it or a macro names it where it is neither defined nor called.
        source = self.read.sources[whole.source]
        return language_of(source).is_named_elsewhere(source, whole.name, self._calls[whole.source, whole.name])

    @cached_property
    def _calls(self) -> Counter[tuple[int, str]]:
        """The number of calls of each name in the sources."""
        return Counter(
            (procedure.source, name)
            for procedure in self.read.procedures.values()
            for statement in procedure.body.walk()
            for name in called_in(statement)
        )

    @cached_property
    def _called(self) -> frozenset[str]:
        """The names that the final procedures call."""
        bodies = (self.now.procedures[key].body for key in self._written())
        return frozenset(name for body in bodies for statement in body.walk() for name in called_in(statement))

    def _prototypes(self, edits: dict[int, list[Edit]]) -> None:
        """Every file that calls an outlined part declares it before the first caller, if the language requires that and it is
        not defined before."""
        for number, source in enumerate(self.read.sources):
            language = language_of(source)
            if not language.declares_parts or number not in edits:
                continue
            callers: dict[str, list[int]] = {}  # by the outlined parts that they call
            for key in self._written():
                procedure = self.now.procedures[key]
                if procedure.source != number:
                    continue
                for statement in procedure.body.walk():
                    if isinstance(statement, OutlinedCall):
                        part = self.now.resolve(statement.name, procedure)
                        assert part is not None, key
                        callers.setdefault(part.key, []).append(self.context.analysis.origin(procedure).span.start)
            heads: dict[int, str] = {}
            for key, places in callers.items():
                part, first = self.now.procedures[key], min(places)
                whole = self.context.analysis.origin(part)
                if part.source == number and whole.span.start < first:
                    continue  # it is defined before all of them
                head = language.declaration(self.read, whole, number, first)
                assert head is not None, key  # checked by outlining/split_procedure.py
                heads[first] = heads.get(first, "") + f"{renamed(head, whole.name, part.name)};\n"
            edits[number] += [Edit(first, first, text) for first, text in heads.items()]

    def _drain(self) -> None:
        """Inserts waits, before MPI is finalised, for copies that may still be in flight."""
        keys = [*self.read.procedures, *(part.key for part in self._outlined_procedures())]
        copying = sorted(
            {
                self.now.procedures[key].source
                for key in keys
                for s in self.now.procedures[key].body.walk()
                if isinstance(s, SplitPhaseOperation) and s.part is Part.SEND and s.copies
            }
        )
        if not copying:
            return
        finalizing: set[int] = set()

        def change(statement: Statement) -> Sequence[Statement]:
            message = message_of(statement)
            if message is None or message.name != "MPI_Finalize":
                return (statement,)
            return (Drain(tuple(copying), statement.span, span=NOWHERE), statement)

        for key in self.read.procedures:
            procedure = self.now.procedures[key]
            body = rewrite_tree(procedure.body, change)
            if body is not procedure.body:
                self._replace(replace(procedure, body=body))
                finalizing.add(procedure.source)
        self._finalizing = frozenset(finalizing)

    def _changed(self, number: int, edits: dict[int, list[Edit]], emitters: dict[int, Emitter]) -> FileChange:
        source = self.read.sources[number]
        emitter = emitters.get(number)
        mine = list(edits[number])
        mine += language_of(source).declarations_of_calls(source, [edit.text for edit in mine])
        place = self._place_of_support(number, mine)
        support = emitter.support(place) if emitter is not None else ""
        if support:
            mine.append(Edit(place, place, support))
        after = with_line_ends(source.data, apply_edits(source.data, mine))
        return FileChange(source.path, source.data, after)

    def _place_of_support(self, number: int, edits: Sequence[Edit]) -> int:
        source = self.read.sources[number]
        starts = [edit.start for edit in edits] or [
            p.span.start for p in self.read.procedures.values() if p.source == number and has_messages(p)
        ]
        return language_of(source).place_of_support(source, min(starts, default=0))


def renamed(text: str, old: str, new: str) -> str:
    """Renames a procedure in its head from ``old`` to ``new``: the word before the arguments, else its first occurrence."""
    name = rf"\b{re.escape(old)}\b"
    called = re.search(rf"{name}(?=\s*\()", text, re.IGNORECASE)
    found = called or re.search(name, text, re.IGNORECASE)
    return text if found is None else text[: found.start()] + new + text[found.end() :]


def _ended(foot: str, old: str, new: str) -> str:
    return re.sub(rf"(?i)(end\s*(?:subroutine|function)\s+){re.escape(old)}\b", rf"\g<1>{new}", foot)


def _advice(reason: Conflict, call: Call) -> str:
    """The advice where an operation of ``call`` cannot pass something."""
    if reason.kind == "unknown":
        return barrier_advice(reason.what)
    needed = {e.symbol.name for argument in call.arguments for e in argument.walk() if isinstance(e, Name)}
    if reason.kind == "data" and reason.what.endswith(" is written here and read there") and reason.name in needed:
        return _ADVICE_ON_PRODUCERS
    return _ADVICE.get(reason.kind, "move it apart by hand if you know better")


def _as_call(procedure: Procedure) -> Call:
    return Call(procedure.name, (), span=NOWHERE)


_LONGEST_STEM = 24  # Fortran's names have at most 63 characters; the longest with a stem are the collectives'
# File names for which a support module's name would equal that of an entity in one, or of a procedure beside one.
_SUPPORT_NAMES = re.compile(
    r"slot|copy(_array|_in|_out)?|touch(_array|_scalar)?|.*_(post|status|room|bytes|hold|settle|drain|progress)(_if_long)?"
    r"|.*_(send|receive|received|receive_held|arrive)(_if_long)?_\d+"
)
_OUTLINED = frozenset({Part.POST, Part.SEND, Part.START})
_OBLIGATIONS = {
    "data": "what it needs is not written in between",
    "messages": "messages keep their order",
    "order": "visible effects keep their order",
    "control": "control cannot leave in between",
    "unknown": "everything in between is known",
    "iterations": "the loop that produces what is sent carries no dependence",
    "rounding": "the loop's reductions do not depend on the order of its iterations",
}
# The same for computation after a wait that could not be split.
_WORK = {
    "iterations": (
        "the loop that needs the message carries no dependence",
        "compute what one iteration passes to another, or what the last one leaves, in a loop of its own",
    ),
    "rounding": (
        "the loop's reductions do not depend on the order of its iterations",
        "use --reassociate if it may round differently, or accumulate it in a loop of its own",
    ),
    "bounds": (
        "the loop counts by one between invariant bounds",
        "let it count a signed integer, up or down by one, to variables that it does not change",
    ),
    "interior": (
        "most of the loop is independent of what the message delivers",
        "receive into an array of its own, or into rows that the loop's bounds name",
    ),
    "control": ("no iteration leaves the loop", "leave the loop at its end"),
    "order": ("iterations only compute", "print, communicate and allocate in a loop of its own"),
    "unknown": ("all effects of the iterations are known", "give the source of what is called there"),
    "parts": ("the procedure that needs the message can be split", "return its result in an argument, at its end"),
}
_ADVICE_ON_PRODUCERS = (
    "nothing: this computes what the call needs, and nothing independent stands between the two; if it is about other elements, "
    "use another variable for them"
)
_ADVICE = {
    "data": "use another variable, or move the statement yourself if the values cannot be the same",
    "messages": "give the messages different constant tags, or different communicators",
    "order": "nothing: the order is part of what the program does",
    "control": "leave the procedure at one place, at its end",
    "iterations": "compute what is sent in a loop of its own, before the rest",
    "rounding": "use --reassociate if it may round differently, or accumulate it in a loop of its own",
}
