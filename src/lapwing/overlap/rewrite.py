"""A program in, its communications' fate and the changed files out."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property, partial

from lapwing.overlap import mpi
from lapwing.overlap.analysis import Analysis
from lapwing.overlap.arrange import Arranger, Move
from lapwing.overlap.c import toolchain
from lapwing.overlap.c.includes import after_includes
from lapwing.overlap.conflicts import Conflict
from lapwing.overlap.emit import Emitter, c_prototype, renamed
from lapwing.overlap.external import external_statements
from lapwing.overlap.fences import Fences
from lapwing.overlap.motions.blocking_calls import BlockingCalls
from lapwing.overlap.motions.collectives import Collectives
from lapwing.overlap.motions.context import Context, procedures_with_messages
from lapwing.overlap.motions.direct_messages import DirectMessages
from lapwing.overlap.motions.early_text import Insertion
from lapwing.overlap.motions.pipeline_loop import pipeline_loops
from lapwing.overlap.motions.progress import UnderWay, started_in, with_progress_calls
from lapwing.overlap.motions.split_procedure import DividedProcedure, SplitProcedures
from lapwing.overlap.motions.waits import take_over
from lapwing.overlap.phases import NOWHERE, DividedCall, Drain, Part, Phase
from lapwing.overlap.program import Block, Call, Constant, Name, Procedure, Program, Source, Span, Statement
from lapwing.overlap.render import Edit, Renderer, apply_edits
from lapwing.overlap.report import FileChange, Options, Outcome
from lapwing.overlap.survey import survey
from lapwing.overlap.tree import called_in, message_of
from lapwing.overlap.tree import rewrite as rewrite_tree
from lapwing.overlap.uniform import Uniformity


def rewrite(program: Program, options: Options) -> Outcome:
    """Move what may be moved. Nothing is written: the outcome holds the files' new contents."""
    began = time.perf_counter()
    rewriter = _Rewriter(program, options)
    rewriter.run()
    changes = rewriter.changes()
    communications = survey(program, rewriter.context)
    return Outcome(communications, changes, program.problems, time.perf_counter() - began)


class _Rewriter:
    def __init__(self, program: Program, options: Options) -> None:
        self.read = program
        self.context = Context(Analysis(program), options)
        self.splits = SplitProcedures(self.context)
        self._halved: dict[str, list[DividedProcedure]] = {}  # callers may have divided it differently
        self.insertions: tuple[Insertion, ...] = ()
        self._moves: list[tuple[Procedure, Statement]] = []  # starts that were put before what came first
        self._left = frozenset[int]()  # sources that stay as they are

    @property
    def now(self) -> Program:
        return self.context.analysis.program

    def run(self) -> None:
        if self._handles_errors() or self._has_threads() or self._shares_memory():
            return
        collectives = Collectives(self.context, Uniformity(self.context.analysis))
        self._left = self._refuse_unread() | self._refuse_headers()
        self.splits.left = self._left
        self.insertions = pipeline_loops(self.context, collectives.divide, self._left)
        for procedure in list(procedures_with_messages(self.context.analysis)):
            if procedure.source in self._left:
                continue
            body = take_over(self.context, procedure)
            body = rewrite_tree(body, BlockingCalls(self.context, procedure).change)
            body = rewrite_tree(body, partial(collectives.divide, procedure=procedure))
            self._replace(replace(procedure, body=body))
        # From here on what procedures do, seen from outside, stays what it is.
        self.context.analysis.forget_all()
        for key in self._bottom_up():
            if self.now.procedures[key].source not in self._left:
                self._arrange(self.now.procedures[key])
                self.context.analysis.forget_walks()
        for key in self.read.procedures:
            self._settle(self.now.procedures[key])
        self._use_halves()
        self._leave_out_copies()
        self._drain()
        self._say_divided()
        self._progress()

    def _refuse_unread(self) -> frozenset[int]:
        """Sources of which an include is missing, which may hold declarations or macros, and those that use mpi_f08 beside an
        older interface, whose handles are of another type. They are left as they are."""
        paths = {p.path for p in self.read.problems if "not found" in p.message}
        unread = frozenset(number for number, source in enumerate(self.read.sources) if source.path in paths)
        self._refuse_messages(
            self._statements_of(unread),
            "all its file includes is there",
            "an included file was not found",
            "give its folder with -I",
        )
        interfaces = {
            (p.source, p.mpi_interface == "mpi_f08") for p in self.read.procedures.values() if p.mpi_interface
        }
        mixed = frozenset(number for number, new in interfaces if new and (number, False) in interfaces)
        self._refuse_messages(
            [s for p in self.read.procedures.values() if p.source in mixed for s in p.body.walk()],
            "its file uses one interface of MPI",
            "mpi_f08 and an older one",
            "use mpi_f08 everywhere in the file, or nowhere",
        )
        return unread | mixed

    def _refuse_headers(self) -> frozenset[int]:
        """C's headers. Every file that includes one would have its own slots, and all would define the same drain."""
        headers = frozenset(
            number
            for number, source in enumerate(self.read.sources)
            if source.language == "c" and toolchain.is_header(source.path)
        )
        self._refuse_messages(
            self._statements_of(headers),
            "its file is compiled by itself",
            "a header, which every file that includes it compiles again",
            "define the function in a source file, and declare it in the header",
        )
        return headers

    def _statements_of(self, sources: frozenset[int]) -> list[Statement]:
        return [s for p in self.read.procedures.values() if p.source in sources for s in p.body.walk()]

    def _refuse_messages(self, statements: Iterable[Statement], obligation: str, found: str, advice: str) -> None:
        """The same of every MPI call among them."""
        for statement in statements:
            if message_of(statement) is not None:
                self.context.refuse(statement.span, "nonblocking", obligation, found, advice)

    def _handles_errors(self) -> bool:
        """Programs that look at MPI's error codes would see other ones."""
        for procedure in self.read.procedures.values():
            for statement in procedure.body.walk():
                if any(_sets_handler(name) for name in called_in(statement)):
                    self.context.refuse(
                        statement.span,
                        "nonblocking",
                        "an error of MPI ends the program",
                        "the program sets an error handler",
                        "leave MPI's default error handler in place",
                    )
                    return True
        return False

    def _has_threads(self) -> bool:
        """Programs whose threads may all call MPI: they would share requests and copies."""
        statements = [s for procedure in self.read.procedures.values() for s in procedure.body.walk()]
        # MPI_Init asks for no level: where nothing else does, or asks which one there is, its name decides nothing.
        asks = any(_THREAD_CALLS.search(source.data) for source in self.read.sources)
        plain = any((message := message_of(s)) is not None and message.name == "MPI_Init" for s in statements)
        named = (asks or not plain) and any(_MANY_THREADS.search(source.data) for source in self.read.sources)
        if not named and all(_thread_level(s) in (None, *_ONE_THREAD) for s in statements):
            return False
        self._refuse_messages(
            statements,
            "one thread calls MPI",
            "MPI_THREAD_MULTIPLE or MPI_THREAD_SERIALIZED, or a level that is not known",
            "ask for MPI_THREAD_FUNNELED, by that name, if no more is needed",
        )
        return True

    def _shares_memory(self) -> bool:
        """Programs whose ranks may read what others have written into memory of theirs or into windows, without a call at their
        own end: a message tells them when, so nothing may change places with it."""
        found = next((m for source in self.read.sources if (m := _SHARED_MEMORY.search(source.data))), None)
        if found is None:
            return False
        self._refuse_messages(
            [s for procedure in self.read.procedures.values() for s in procedure.body.walk()],
            "ranks share no memory",
            found[0].decode("latin-1"),
            "nothing: a message may say that other ranks have written what is shared",
        )
        return True

    def _replace(self, procedure: Procedure) -> None:
        analysis = self.context.analysis
        analysis.program = replace(self.now, procedures={**self.now.procedures, procedure.key: procedure})

    def _bottom_up(self) -> Sequence[str]:
        graph = self.context.analysis.graph
        return [key for key in graph.bottom_up if graph.reaches_mpi(key)]

    def _arrange(self, procedure: Procedure) -> None:
        def refused(statement: Statement, reason: Conflict) -> None:
            for inner in statement.walk():
                site = inner.call if isinstance(inner, Phase) else None
                site = inner.original if isinstance(inner, DividedCall) else site
                if site is not None:
                    self.context.refuse(
                        site.span,
                        "split-producer" if reason.kind == "turns" else "start-earlier",
                        _OBLIGATIONS.get(reason.kind, "nothing in between may matter"),
                        reason.what,
                        _ADVICE.get(reason.kind, "move it apart by hand if you know better"),
                        reason.where,
                    )

        arranger = Arranger(
            self.context.analysis,
            procedure,
            self.splits.divide_call,
            self.splits.divide_against,
            self.splits.divide_producer,
            refused,
            Fences(self.read, self.read.procedures[procedure.key]),
            self.context.allowed,
        )
        body = arranger.body()
        if body is not procedure.body:
            self._replace(replace(self.now.procedures[procedure.key], body=body))
            for move in arranger.moved:
                self._say(move)
                if move.motion in ("start-earlier", "together", "split-producer"):
                    self._moves.append((procedure, move.statement))

    def _say(self, move: Move) -> None:
        line = self._line(move.past)
        if move.motion in ("start-earlier", "together"):
            for site in _sites(move.statement):
                self.context.made(site, move.motion, f"starts before line {line}")
            return
        if move.motion == "split-producer":
            for site in _sites(move.statement):
                self.context.made(
                    site, move.motion, f"what it needs of line {line} is done first, the rest after its start"
                )
            return
        for site in _sites(move.past):
            self.context.made(site, move.motion, f"the work of line {self._line(move.statement)} is done before it")

    def _leave_out_copies(self) -> None:
        """Of messages that turn out to need none."""
        self.context.analysis.forget_all()
        # A pipelined loop changes the order of all that is in it.
        blocking = set() if self.insertions else {id(s) for p in self.read.procedures.values() for s in p.body.walk()}
        messages = DirectMessages(self.context.analysis, blocking, self._moved_slots())
        for key in self._written():
            changed = messages.change(self.now.procedures[key])
            if changed is not self.now.procedures[key]:
                self._replace(changed)

    def _moved_slots(self) -> frozenset[tuple[int, int]]:
        """Source and slot of all communications that were put before others, themselves or with a call of their procedure."""
        found: set[tuple[int, int]] = set()
        seen: set[str] = set()
        waiting = [(statement, procedure) for procedure, statement in self._moves]
        while waiting:
            statement, procedure = waiting.pop()
            for inner in statement.walk():
                if isinstance(inner, Phase):
                    found.add((procedure.source, inner.slot))
                for name in called_in(inner):
                    callee = self.now.resolve(name, procedure)
                    if callee is not None and callee.key not in seen:
                        seen.add(callee.key)
                        waiting += [(s, callee) for s in callee.body.statements]
        return frozenset(found)

    def _written(self) -> list[str]:
        """Keys of the procedures that have a body in the end; the others are divided."""
        keys = [*self.read.procedures, *(half.key for half in self._halves())]
        return [key for key in keys if key not in self._halved]

    def _progress(self) -> None:
        """Progress calls into loops that run while something is under way; callers first, who say what is for their callees."""
        self.context.analysis.forget_all()
        halves = {half.name: self.now.procedures[half.key] for half in self._halves()}
        lasts = {d.last.name for divisions in self._halved.values() for d in divisions}
        under_way: dict[str, UnderWay] = {}
        for key in self._top_down(self._written()):
            procedure = self.now.procedures[key]
            if procedure.source in self._left:
                continue
            begun = under_way.get(procedure.name, {}) if procedure.name in halves else {}
            if procedure.name in lasts:
                begun = started_in(procedure, self.context, halves) | begun
            changed, meanwhile = with_progress_calls(self.context, procedure, halves, begun)
            for name, messages in meanwhile.items():
                under_way.setdefault(name, {}).update(messages)
            if changed is not procedure:
                self._replace(changed)

    def _top_down(self, keys: Sequence[str]) -> list[str]:
        """Callers before what they call; halves stand where the whole stood."""
        analysis = self.context.analysis
        rank = {key: number for number, key in enumerate(analysis.graph.bottom_up)}
        whole = {key: analysis.origin(self.now.procedures[key]).key for key in keys}
        return sorted(keys, key=lambda key: rank.get(whole[key], 0), reverse=True)

    def _say_divided(self) -> None:
        """Of every blocking call that stayed taken apart."""
        for procedure in (*(self.now.procedures[key] for key in self.read.procedures), *self._halves()):
            for statement in procedure.body.walk():
                if not isinstance(statement, Phase) or statement.part not in _DIVIDED:
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
            span = inner.call.span if isinstance(inner, Phase) else inner.span
            if isinstance(inner, DividedCall) and inner.original is not None:
                span = inner.original.span
        return 0 if span == NOWHERE else self.read.sources[span.source].line_of(span.start)

    # ---- what gained nothing goes back --------------------------------------------------------------------------------

    def _settle(self, procedure: Procedure) -> None:
        original = self.read.procedures[procedure.key]
        calls = {s.span: s for s in original.body.walk() if isinstance(s, Call)}
        body = _settled(procedure.body, calls)
        restored = _restored(body, original.body)
        if restored is not procedure.body:
            self._replace(replace(procedure, body=restored))

    # ---- divided procedures -------------------------------------------------------------------------------------------

    def _use_halves(self) -> None:
        """Finds the procedures whose halves are called; they become calls of both."""
        every = {
            half.key: d
            for d in (*self.splits.divided.values(), *self.splits.by_conflict.values())
            if d is not None
            for half in (d.first, d.last)
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
                if isinstance(statement, DividedCall):
                    half = self.now.resolve(statement.name, procedure)
                    assert half is not None, statement.name
                    divided = every[half.key]
                    divisions = self._halved.setdefault(divided.whole.key, [])
                    if divided not in divisions:
                        divisions.append(divided)
                    waiting += [divided.first.key, divided.last.key]

    def _halves(self) -> list[Procedure]:
        return [half for divisions in self._halved.values() for d in divisions for half in (d.first, d.last)]

    # ---- text ---------------------------------------------------------------------------------------------------------

    def changes(self) -> tuple[FileChange, ...]:
        emitters: dict[int, Emitter] = {}
        edits: dict[int, list[Edit]] = {}
        for key, original in self.read.procedures.items():
            number = original.source
            source = self.read.sources[number]
            emitter = emitters.setdefault(number, self._emitter(number))
            emitter.interface = emitter.interface or original.mpi_interface
            now = self.now.procedures[key]
            if key not in self._halved and now.body is original.body:
                continue
            renderer = Renderer(source, original, emitter)
            if key in self._halved:
                edits.setdefault(number, []).append(self._halved_text(renderer, original, self._halved[key]))
            else:
                text = renderer.block(now.body)
                edits.setdefault(number, []).append(Edit(original.body.span.start, original.body.span.end, text))
        for inserted in self.insertions:
            edit = Edit(inserted.offset, inserted.offset, inserted.text)
            edits.setdefault(inserted.source, []).append(edit)
        self._prototypes(edits)
        every = (self._changed(number, edits, emitters) for number in sorted(edits))
        return tuple(change for change in every if change.after != change.before)

    def _emitter(self, number: int) -> Emitter:
        return Emitter(self.read.sources[number], self._stem(number), self._stem)

    def _stem(self, number: int) -> str:
        """The file's name as an identifier, with its number where two files have the same one, or what it names is something
        else, too."""
        mine = self._stems[number]
        free = self._stems.count(mine) == 1 and not _SUPPORT_NAMES.fullmatch(mine)
        return mine if free else f"{mine}_{number}"

    @cached_property
    def _stems(self) -> Sequence[str]:
        return [re.sub(r"\W", "_", source.path.stem.lower())[:_LONGEST_STEM] for source in self.read.sources]

    def _halved_text(self, renderer: Renderer, original: Procedure, divisions: Sequence[DividedProcedure]) -> Edit:
        source = renderer.source
        # From the line's beginning: fixed form means something by its columns.
        start, end = source.data.rfind(b"\n", 0, original.span.start) + 1, original.span.end
        head = source.data[start : original.body.span.start].decode("latin-1")
        foot = source.data[original.body.span.end : end].decode("latin-1")
        texts = []
        for part, body in self._with_halves(original, divisions):
            texts.append(
                _fitting(renamed(head, original.name, part.name), source)
                + renderer.block(body)
                + _ended(foot, original.name, part.name)
            )
        return Edit(start, end, "\n\n".join(texts))

    def _with_halves(
        self, whole: Procedure, divisions: Sequence[DividedProcedure]
    ) -> Iterable[tuple[Procedure, Block]]:
        """What the procedure was divided into, then the procedure itself, which calls two halves."""
        for part in (half for divided in divisions for half in (divided.first, divided.last)):
            if part.key in self._halved:
                yield from self._with_halves(part, self._halved[part.key])
            else:
                yield part, self.now.procedures[part.key].body
        arguments = tuple(Name(p) for p in whole.parameters)
        calls = (
            DividedCall(part.name, arguments, original=_as_call(whole), span=NOWHERE)
            for part in (divisions[0].first, divisions[0].last)
        )
        yield whole, replace(whole.body, statements=tuple(calls))

    def _prototypes(self, edits: dict[int, list[Edit]]) -> None:
        """C: every file that calls a half declares it before the first function that does, where its types are known."""
        for number, source in enumerate(self.read.sources):
            if source.language == "fortran" or number not in edits:
                continue
            needed: dict[str, str] = {}
            callers: list[int] = []
            for key, procedure in self.now.procedures.items():
                if procedure.source != number:
                    continue
                for statement in procedure.body.walk():
                    if isinstance(statement, DividedCall):
                        callers.append(self.context.analysis.origin(procedure).span.start)
                        half = self.now.resolve(statement.name, procedure)
                        assert half is not None, key
                        original = self.read.procedures[self.context.analysis.origin(half).key]
                        needed[half.name] = c_prototype(self.read.sources[half.source], original, half.name)
            if needed:
                first = min(callers)
                text = "".join(f"{head};\n" for head in needed.values())
                edits[number].append(Edit(first, first, text))

    def _drain(self) -> None:
        """Copies that may still be on their way are waited for before MPI ends."""
        keys = [*self.read.procedures, *(half.key for half in self._halves())]
        copying = sorted(
            {
                self.now.procedures[key].source
                for key in keys
                for s in self.now.procedures[key].body.walk()
                if isinstance(s, Phase) and s.part is Part.SEND and s.copies
            }
        )
        if not copying:
            return

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

    def _changed(self, number: int, edits: dict[int, list[Edit]], emitters: dict[int, Emitter]) -> FileChange:
        source = self.read.sources[number]
        emitter = emitters.get(number)
        mine = list(edits[number])
        if source.language == "fortran":
            mine += external_statements(source, [edit.text for edit in mine])
        support = emitter.support() if emitter is not None else ""
        if support:
            place = self._place_of_support(source, mine)
            mine.append(Edit(place, place, support))
        return FileChange(source.path, source.data, apply_edits(source.data, mine))

    def _place_of_support(self, source: Source, edits: Sequence[Edit]) -> int:
        if source.language == "fortran":
            return len(source.data)
        return after_includes(source.data, min(edit.start for edit in edits), toolchain.is_cpp(source.path))


def _sets_handler(name: str) -> bool:
    message = mpi.lookup(name) if mpi.is_mpi_name(name) else None
    return message is not None and message.name in _ERROR_HANDLERS


def _thread_level(statement: Statement) -> str | None:
    """The level of threads that MPI_Init_thread is asked for here, "" if it is not one of its constants; None if it is not."""
    if not any(name.upper().endswith("MPI_INIT_THREAD") for name in called_in(statement)):
        return None
    words = (e.name for top in statement.expressions() for e in top.walk() if isinstance(e, Constant))
    return next((word for word in words if word.startswith("MPI_THREAD_")), "")


def _sites(statement: Statement) -> Iterable[Span]:
    """Where the MPI calls, and the calls of divided procedures, stood that the statement is made of."""
    for inner in statement.walk():
        if isinstance(inner, Phase):
            yield inner.call.span
        elif isinstance(inner, DividedCall):
            if inner.original is not None:
                yield inner.original.span
        elif message_of(inner) is not None:
            yield inner.span


def _settled(block: Block, calls: dict[Span, Call]) -> Block:
    """Communications whose start and end stand side by side are put together again, if they were one of the ``calls``."""
    statements: list[Statement] = []
    for statement in block.statements:
        call = calls.get(statement.call.span) if isinstance(statement, Phase) else None
        parts = 0 if call is None else _parts_before(statement, statements, call)
        if call is not None and parts:
            statements[-parts:] = [call]
            continue
        statements.append(statement)
    inner = [_with_settled_blocks(s, calls) for s in statements]
    if len(inner) == len(block.statements) and all(a is b for a, b in zip(inner, block.statements, strict=True)):
        return block
    return replace(block, statements=tuple(inner))


def _parts_before(end: Statement, before: Sequence[Statement], call: Call) -> int:
    """How many of the last statements are, with this end, all of one blocking call; 0 if they are not."""
    if not isinstance(end, Phase) or end.wait is not None or end.part not in (Part.ARRIVE, Part.END):
        return 0
    message = message_of(call)
    sends = message is not None and message.kind is mpi.Kind.SENDRECV
    parts = 2 if sends else 1
    near = [s for s in before[-parts:] if isinstance(s, Phase) and s.call.span == end.call.span]
    if len(near) < parts or near[0].slot != end.slot:
        return 0
    return parts if not sends or near[1].part is Part.SEND else 0


def _with_settled_blocks(statement: Statement, calls: dict[Span, Call]) -> Statement:
    from lapwing.overlap.tree import with_blocks

    blocks = [_settled(b, calls) for b in statement.blocks()]
    return with_blocks(statement, blocks) if blocks else statement


def _restored(body: Block, original: Block) -> Block:
    """Pairs of calls become the calls again where all that stands between their phases is as it was between them."""
    slots = {s.slot for s in body.walk() if isinstance(s, Phase) and s.wait is not None}
    if not slots:
        return original if body == original else body
    plain = _as_calls(body, slots, sends=True)
    if plain == original:
        return _as_calls(body, slots)
    runs = {id(s): block.statements[place:] for block in _blocks(original) for place, s in enumerate(block.statements)}
    while slots:
        still = {slot for slot in slots if any(_undisturbed(block, slot, slots, runs) for block in _blocks(body))}
        if still == slots:
            return _as_calls(body, slots)
        slots = still
    return body


def _undisturbed(block: Block, slot: int, slots: set[int], runs: dict[int, tuple[Statement, ...]]) -> bool:
    """Whether the block holds both phases, and from one to the other what the original has, once ``slots`` are calls again."""
    places = [
        n for n, s in enumerate(block.statements) if isinstance(s, Phase) and s.wait is not None and s.slot == slot
    ]
    if len(places) != 2:
        return False
    start = block.statements[places[0]]
    assert isinstance(start, Phase)
    between = replace(block, statements=block.statements[places[0] : places[1] + 1])
    now = _as_calls(between, slots, sends=True).statements
    return now == runs.get(id(start.call), ())[: len(now)]


def _as_calls(body: Block, slots: set[int], *, sends: bool = False) -> Block:
    """The body with the phases of these pairs, or all sends, as calls."""

    def back(statement: Statement) -> Sequence[Statement]:
        if isinstance(statement, Phase) and statement.wait is not None and statement.slot in slots:
            return (statement.wait if statement.part is Part.ARRIVE else statement.call,)
        if sends and isinstance(statement, Phase) and statement.part is Part.SEND:
            return (statement.call,)
        return (statement,)

    return rewrite_tree(body, back)


def _blocks(block: Block) -> Iterable[Block]:
    yield block
    for statement in block.statements:
        for inner in statement.blocks():
            yield from _blocks(inner)


def _fitting(head: str, source: Source) -> str:
    """A procedure's head whose new name may have made its first line too long, continued after the parenthesis."""
    limit = 72 if source.form == "fixed" else 132
    lines = head.split("\n")
    for number, line in enumerate(lines):
        name, parenthesis, rest = line.partition("(")
        if (
            source.language == "fortran"
            and len(line) > limit
            and parenthesis
            and not line.lstrip().startswith(("!", "*"))
        ):
            lines[number] = f"{name}(\n     &{rest}" if source.form == "fixed" else f"{name}( &\n      {rest}"
            break
    return "\n".join(lines)


def _ended(foot: str, old: str, new: str) -> str:
    return re.sub(rf"(?i)(end\s*(?:subroutine|function)\s+){re.escape(old)}\b", rf"\g<1>{new}", foot)


def _as_call(procedure: Procedure) -> Call:
    return Call(procedure.name, (), span=NOWHERE)


_LONGEST_STEM = 24  # Fortran's names have 63 characters, the longest around it are those of collectives
# File names that would make a support module's name that of something in one, or of a procedure beside one.
_SUPPORT_NAMES = re.compile(
    r"slot|copy(_array|_in|_out)?|touch(_array|_scalar)?|.*_(post|status|room|bytes|hold|settle|drain|progress)(_if_long)?"
    r"|.*_(send|receive|received|receive_held|arrive)(_if_long)?_\d+"
)
_DIVIDED = frozenset({Part.POST, Part.SEND, Part.START})
_ONE_THREAD = frozenset({"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED"})
_MANY_THREADS = re.compile(rb"MPI_THREAD_(?:MULTIPLE|SERIALIZED)", re.IGNORECASE)
_THREAD_CALLS = re.compile(rb"MPI_(?:Init|Query)_thread", re.IGNORECASE)
_SHARED_MEMORY = re.compile(
    rb"\b(?:MPI_Win_(?:allocate_shared|shared_query|lock|lock_all)|shm_open|shmget|shmat|MAP_SHARED)\b", re.IGNORECASE
)
_ERROR_HANDLERS = frozenset({"MPI_Comm_set_errhandler", "MPI_Errhandler_set"})
_OBLIGATIONS = {
    "data": "what it needs is not written in between",
    "messages": "messages keep their order",
    "order": "visible effects keep their order",
    "control": "control cannot leave in between",
    "unknown": "everything in between is known",
    "turns": "turns of the loop that makes what is sent may change places",
}
_ADVICE = {
    "data": "use another variable, or move the statement yourself if the values cannot be the same",
    "messages": "give the messages different constant tags, or different communicators",
    "order": "nothing: the order is part of what the program does",
    "control": "leave the procedure at one place, at its end",
    "unknown": "give the source of what is called there",
    "turns": "compute what is sent in a loop of its own, before the rest",
}
