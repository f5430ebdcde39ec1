"""Progress calls in long loops that run while a communication is in flight.

before:  start … ; for (s …) for (i …) work ; end
after:   start … ; for (s …) { for (i …) work ; progress } ; end

Most MPI libraries advance a transfer only while the program is inside one of their calls. The progress call probes for a
message (MPI_Iprobe receives none), at most once every few tens of microseconds (the support code of languages/).

The same goes for loops in procedures that are called between start and end and do not communicate (callees.py).

Iterations of an innermost loop are too short, and compilers vectorise it: a long one is strip-mined
(languages/shared/strip_mining.py), except in procedures that may also be called for very little work.

Obligations. A transfer that was moved may be in flight (overlap in the original program is its author's business); the loop
calls no MPI itself; no directive makes threads run it (front ends read those as Opaque), nor its procedure, unless that
communicates itself. The progress call checks that MPI is initialised, since the procedure may also be called before and after.
For strips: the loop's bound is invariant in it, and no iteration leaves it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from lapwing.overlap.analysis.recomputable import is_invariant, is_simple, written_keys
from lapwing.overlap.ir.expressions import Dimension, Element, Name, Number, Symbol
from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.ir.rewriter import called_in, message_of, with_blocks, with_statements
from lapwing.overlap.ir.split_phase import (
    NOWHERE,
    OutlinedCall,
    PartialLoop,
    Progress,
    SplitPhaseOperation,
    StripMinedLoop,
)
from lapwing.overlap.ir.statements import (
    Block,
    Call,
    Compound,
    If,
    Jump,
    Loop,
    Nothing,
    Opaque,
    Select,
    Statement,
    While,
)
from lapwing.overlap.languages.registry import language_of, language_of_procedure
from lapwing.overlap.languages.shared import strip_mining
from lapwing.overlap.source.spans import Span
from lapwing.overlap.transforms.context import Context
from lapwing.overlap.transforms.progress.callees import TRANSFORMATION, CalledMeanwhile
from lapwing.overlap.transforms.progress.in_flight import Events, InFlight, Key, happens

_FEW_ITERATIONS = 8
_FEW_STRIPS = 2
_SOME_WORK = 64  # the trip count assumed if unknown, and enough iterations to be worth a call


@dataclass
class ProgressCalls:
    """Inserts progress calls into one procedure. ``meanwhile``: what is in flight when procedures are called, by their keys:
    outlined parts, and others that do not communicate. ``strips``: whether innermost loops may be strip-mined. ``called``:
    decides which file's progress procedure is called; without, its own. ``completed``: by the sites of waits, the sites of what
    they complete.
    """

    context: Context
    procedure: Procedure
    events: Events
    strips: bool = True
    called: CalledMeanwhile | None = None
    completed: dict[Span, set[Span]] = field(default_factory=dict)
    meanwhile: dict[str, InFlight] = field(default_factory=dict)
    _found: set[Span] = field(default_factory=set)
    _inserts: bool = True
    _starts: dict[Key, Span] = field(default_factory=dict)  # where what is in flight was started, if in this procedure

    def follow(self, block: Block, in_flight: InFlight) -> None:
        """Only determines what is in flight when procedures are called, and what waits complete."""
        self._inserts = False
        self._block(block, dict(in_flight))

    def block(self, block: Block, in_flight: InFlight) -> Block:
        """A block of the procedure with progress calls; ``in_flight``: at its beginning."""
        if not self.context.allowed(TRANSFORMATION) or not self.context.options.progress_calls:
            return block
        source = self.context.analysis.program.sources[self.procedure.source]
        if language_of(source).is_pure(self.procedure, source) or self._may_run_in_threads():
            return block
        changed = self._block(block, dict(in_flight))
        for site in sorted(self._found, key=lambda span: (span.source, span.start)):
            self.context.made(site, TRANSFORMATION, "loops that run meanwhile let MPI work on it")
        return changed

    def _may_run_in_threads(self) -> bool:
        graph, key = self.context.analysis.graph, self.context.analysis.origin(self.procedure).key
        return key in graph.in_threads and not graph.reaches_mpi(key)

    # ---- where --------------------------------------------------------------------------------------------------------

    def _block(self, block: Block, in_flight: InFlight) -> Block:
        """Updates ``in_flight`` to the block's end."""
        statements = []
        for statement in block.statements:
            statements.append(self._statement(statement, in_flight))
        return with_statements(block, statements)

    def _statement(self, statement: Statement, in_flight: InFlight) -> Statement:
        match statement:
            case Loop() | While():
                if self._inserts and in_flight and self._is_quiet(statement):
                    return self._long_loop(statement, in_flight)
                # Communication started in an iteration may still be in flight in the next one.
                again = dict(in_flight)
                self._block(statement.body, again)
                in_flight |= again
                return with_blocks(statement, [self._block(statement.body, in_flight)])
            case If() | Select():
                # Communication that completes under a condition was most likely started under it.
                after: InFlight = {} if isinstance(statement, If) else dict(in_flight)
                blocks = []
                for block in statement.blocks():
                    inside = dict(in_flight)
                    blocks.append(self._block(block, inside))
                    after |= inside
                in_flight.clear()
                in_flight |= after
                return with_blocks(statement, blocks)
            case Compound(body=body):
                return with_blocks(statement, [self._block(body, in_flight)])
        self._follow(statement, in_flight)
        return statement

    def _is_quiet(self, loop: Statement) -> bool:
        """Whether the loop calls no MPI, and all of it is known."""
        if isinstance(loop, Loop) and self.context.analysis.is_nest(loop, self.procedure):
            return True
        if any(isinstance(s, Opaque) or _is_mpi(s) for s in loop.walk()):
            return False
        effects = self.context.analysis.plain(loop, self.procedure)
        return effects.barrier is None and not effects.operations

    def _long_loop(self, loop: Loop | While, in_flight: InFlight) -> Statement:
        inner = [s for block in loop.blocks() for s in block.walk() if isinstance(s, Loop | While)]
        calls = [s for block in loop.blocks() for s in block.walk() if self._calls_work(s)]
        # Copied sends have mostly left at once: short loops need not help them.
        waiting = not all(map(_is_copy, in_flight))
        if not (inner or calls):
            strips = waiting and self.strips and (self.called is None or self.called.uses_mpi(self.procedure))
            return self._strips(loop, in_flight) if strips and isinstance(loop, Loop) else loop
        if loop.body.form == "chain":
            return loop
        if isinstance(loop, PartialLoop) and not loop.inside:
            return loop  # the boundary is short, and shares the whole nest's text
        iterations = _trip_count(loop)
        if iterations is not None and iterations <= _FEW_ITERATIONS:
            if isinstance(loop, PartialLoop):
                return loop
            return with_blocks(loop, [self._block(block, dict(in_flight)) for block in loop.blocks()])
        enough = _SOME_WORK if waiting else _SOME_WORK**2
        if not calls and max(_work(s) for s in inner) < enough:
            return loop
        lender = None
        if self.called is not None and not self.called.uses_mpi(self.procedure):
            lender = self.called.lender(self.procedure, in_flight)
            if lender is None:
                self.called.refuse_lending(self.procedure, in_flight)
                return loop
        self._found |= {span for spans in in_flight.values() for span in spans}
        return with_blocks(loop, [_with_call(loop.body, lender)])

    def _strips(self, loop: Loop, in_flight: InFlight) -> Loop:
        """The innermost loop strip-mined, if it may be long and that is possible."""
        analysis = self.context.analysis
        if isinstance(loop, PartialLoop) or _is_short(loop, analysis.rank_counts):
            return loop
        written = written_keys([analysis.plain(s, self.procedure) for s in loop.body.statements])
        if not is_simple(loop.upper) or not is_invariant(loop.upper, written):
            return loop
        if any(s.label is not None or (isinstance(s, Jump) and s.kind != "continue") for s in loop.walk()):
            return loop
        if not language_of_procedure(analysis.program, self.procedure).can_strip(
            analysis.program, self.procedure, loop
        ):
            return loop
        self._found |= {span for spans in in_flight.values() for span in spans}
        return StripMinedLoop(
            loop.variable, loop.lower, loop.upper, loop.step, loop.body, loop.declares, wraps=loop.wraps, span=loop.span
        )

    def _calls_work(self, statement: Statement) -> bool:
        """Whether it calls a procedure of the program that contains loops."""
        if not isinstance(statement, Call):
            return False
        callee = self.context.analysis.program.resolve(statement.name, self.procedure)
        return callee is not None and any(isinstance(s, Loop | While) for s in callee.body.walk())

    # ---- what is in flight --------------------------------------------------------------------------------------------

    def _called(self, statement: Statement) -> Iterable[tuple[str, bool]]:
        """Keys of the procedures that the statement itself calls, with whether they are outlined parts: those, and others that
        do not communicate."""
        analysis = self.context.analysis
        for name in called_in(statement):
            callee = analysis.program.resolve(name, self.procedure)
            outlined = isinstance(statement, OutlinedCall) and name in self.events.outlined
            if callee is not None and (outlined or not analysis.graph.reaches_mpi(analysis.origin(callee).key)):
                yield callee.key, outlined

    def _follow(self, statement: Statement, in_flight: InFlight) -> None:
        for key, outlined in self._called(statement) if in_flight else ():
            waiting = {k: sites for k, sites in in_flight.items() if outlined or not _is_copy(k)}
            if waiting:
                self.meanwhile.setdefault(key, {}).update(waiting)
        events = self.events.of(statement, self.procedure)
        sites = tuple({event.site for event in events})
        for event in events:
            before = set(in_flight)
            happens(event, sites, in_flight)
            self._starts.update((new, event.site) for new in in_flight.keys() - before if event.starts)
            ended = {self._starts[old] for old in before - in_flight.keys() if old in self._starts}
            self.completed.setdefault(event.site, set()).update(ended)


def _is_copy(key: Key) -> bool:
    """Whether it is a copied send that nothing waits for."""
    return isinstance(key, str) and key.startswith("send")


def done_meanwhile(
    context: Context, procedure: Procedure, statements: Sequence[Statement], transfer: Call
) -> tuple[Statement, ...]:
    """Statements of the procedure that run while ``transfer`` is in flight, rewritten one for one with progress calls."""
    block = Block(tuple(statements), procedure.body.span)
    return ProgressCalls(context, procedure, Events(context, {})).block(block, {"slot": (transfer.span,)}).statements


def _is_mpi(statement: Statement) -> bool:
    return isinstance(statement, SplitPhaseOperation | OutlinedCall) or message_of(statement) is not None


def _trip_count(loop: Statement) -> int | None:
    """The loop's trip count, if it is a number in the source."""
    if not isinstance(loop, Loop):
        return None
    bounds = [loop.lower, loop.upper, loop.step]
    if not all(isinstance(b, Number) for b in bounds):
        return None
    lower, upper, step = (int(b.value) for b in bounds if isinstance(b, Number))
    return max((upper - lower) // step + 1, 0) if step else None


def _is_short(loop: Loop, rank_counts: Collection[Symbol]) -> bool:
    """Whether the loop's bounds and arrays suggest few iterations: a row of a grid or one iteration per rank, for instance."""
    iterations = _trip_count(loop)
    if iterations is not None:
        return iterations <= _FEW_STRIPS * strip_mining.STRIP
    if any(isinstance(s, Call) for s in loop.body.walk()):
        return True  # those with much work usually contain loops
    if any(isinstance(e, Name) and e.symbol in rank_counts for e in loop.upper.walk()):
        return True
    counted = Name(loop.variable)
    for expression in (e for s in loop.body.walk() for e in s.every_expression()):
        if isinstance(expression, Element) and counted in expression.indices and isinstance(expression.base, Name):
            dimensions = expression.base.symbol.dimensions or ()
            if len(expression.indices) > 1 or len(dimensions) > 1 or any(map(_is_few, dimensions)):
                return True
    return False


def _is_few(dimension: Dimension) -> bool:
    lower, upper = dimension.lower, dimension.upper
    if not isinstance(lower, Number) or not isinstance(upper, Number):
        return False
    return upper.value - lower.value < _FEW_STRIPS * strip_mining.STRIP


def _work(loop: Statement) -> int:
    """An estimate of the iterations of the loop and those in it, along the longest path."""
    inner = [s for block in loop.blocks() for s in block.walk() if isinstance(s, Loop | While)]
    iterations = _trip_count(loop)
    return (_SOME_WORK if iterations is None else iterations) * max((_work(s) for s in inner), default=1)


def _with_call(block: Block, lender: int | None) -> Block:
    """The loop's body with a progress call at its end, before a statement that must be last, such as a label or a jump."""
    statements = list(block.statements)
    place = len(statements)
    while place and _must_end(statements[place - 1]):
        place -= 1
    return replace(block, statements=(*statements[:place], Progress(lender, span=NOWHERE), *statements[place:]))


def _must_end(statement: Statement) -> bool:
    return statement.label is not None or isinstance(statement, Jump | Nothing)
