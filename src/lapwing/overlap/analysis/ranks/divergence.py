"""Rank divergence: which variables' values, and which executed statements, differ between ranks.

A forward analysis of the program; its state is the set of variables that may have different values on different ranks
(divergent ones). Sources of divergence are results of MPI (a rank, a received message), files and clocks, other divergent
variables, and assignments under divergent control. Broadcasts, all-reductions and all-gathers make variables uniform again on
all ranks of their communicator.

Procedures are analysed with the join of their callers' states, and like loops iterated to a fixed point. The whole world of
ranks is analysed first; for the ranks of a group, only procedures where the answer may differ are analysed again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from lapwing.overlap import mpi
from lapwing.overlap.analysis.manager import Analysis
from lapwing.overlap.analysis.memory.aliases import Aliases
from lapwing.overlap.analysis.ranks.communicators import WORLD, Communicators, same_values
from lapwing.overlap.dataflow.call_graph import Target, is_external
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
    Storage,
    Symbol,
    Text,
    Unread,
    without_casts,
)
from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.ir.statements import (
    Allocate,
    Assign,
    Block,
    Call,
    Compound,
    Declare,
    Evaluate,
    If,
    InputOutput,
    Jump,
    Loop,
    Opaque,
    Select,
    Statement,
    While,
)
from lapwing.overlap.languages.language import Language
from lapwing.overlap.languages.registry import language_of, language_of_procedure
from lapwing.overlap.libraries.summaries import LibrarySummary
from lapwing.overlap.source.spans import Span


@dataclass(frozen=True)
class Divergence:
    """Why ranks may diverge: ``what`` they differ in, and the statement ``where`` they do."""

    what: str
    where: Span | None


@dataclass(frozen=True)
class CollectiveSite:
    """A collective's call, or (``name`` is None) code that may contain one. ``divergence``: why not all ranks reach it
    uniformly."""

    name: str | None
    procedure: str
    span: Span
    divergence: Divergence | None
    communicator: Expression | None = None


SiteKey = tuple[str, int, int, int, str | None]
"""Identifies a collective site: its procedure, its place and its name."""

State = set[str]
"""Keys of the memory whose contents may be divergent."""


# By the id of an expression: keys and names of the memory it reads; None if it has other effects.
_Reads = dict[int, tuple[Expression, tuple[tuple[str, str], ...] | None]]


@dataclass
class _Frame:
    """One pass over a procedure. ``loops``: the enclosing ones, innermost last. ``left``: why some ranks may have left
    already."""

    procedure: Procedure
    language: Language
    labels: dict[str, int]  # targets of forward jumps, by their position
    reads: _Reads
    loops: list[Statement] = field(default_factory=list)
    jumps: dict[str, tuple[State, Divergence | None]] = field(default_factory=dict)
    returned: State = field(default_factory=set)
    left: Divergence | None = None
    loose: bool = False  # other jumps: nothing becomes uniform again


@dataclass
class Memories:
    """Facts of a program that do not depend on the set of ranks: the memory that expressions read. Computed on demand; ids are
    of expressions that are kept."""

    at: dict[tuple[int, str], tuple[Expression, frozenset[str]]] = field(default_factory=dict)
    reads: dict[str, _Reads] = field(default_factory=dict)  # by procedure
    known: set[str] = field(default_factory=set)
    escaped: set[str] = field(default_factory=set)  # of the known memory
    groups: dict[str, set[str]] = field(
        default_factory=dict
    )  # of communicators, by the procedure that calls MPI with them
    reached: dict[str, frozenset[str]] = field(default_factory=dict)
    related: dict[tuple[str, str], bool] = field(
        default_factory=dict
    )  # procedures: whether both call, or are, the same one
    named: dict[str, frozenset[str]] = field(default_factory=dict)
    jumps: dict[str, tuple[dict[str, int], bool]] = field(default_factory=dict)
    own: dict[str, tuple[frozenset[str], frozenset[str]]] = field(default_factory=dict)

    def learn(self, memory: Memory, aliases: Aliases) -> None:
        if memory.key not in self.known:
            self.known.add(memory.key)
            if aliases.escaped(memory):
                self.escaped.add(memory.key)

    def jumps_of(self, procedure: Procedure) -> tuple[dict[str, int], bool]:
        """The targets of forward jumps, by their position; and whether there are other jumps."""
        if procedure.key not in self.jumps:
            labels = _forward_labels(procedure)
            self.jumps[procedure.key] = labels, _has_other_jumps(procedure, labels)
        return self.jumps[procedure.key]

    def own_of(self, procedure: Procedure) -> tuple[frozenset[str], frozenset[str]]:
        """Keys of a procedure's dummy arguments, and of its variables that no other code can access."""
        if procedure.key not in self.own:
            self.own[procedure.key] = (
                frozenset(p.key for p in procedure.parameters),
                frozenset(s.key for s in procedure.symbols.values() if s.storage is Storage.LOCAL and not s.target),
            )
        return self.own[procedure.key]


class RankDivergence:
    """The solution for the ranks of each group ``among`` (see communicators.py). ``world``: the solution for all ranks, if that
    is another."""

    def __init__(
        self,
        analysis: Analysis,
        program: Program,
        communicators: Communicators,
        memories: Memories,
        among: str,
        parents: tuple[str, ...],
        world: RankDivergence | None,
    ) -> None:
        self._program, self._graph, self._aliases = program, analysis.graph, analysis.aliases
        self._communicators = communicators
        self._among, self._parents = among, parents
        self._world = world
        self._taken_over: set[str] = set()  # procedures whose results, with their callees', are taken from the world's
        self._adopted: set[str] = set()  # these and their callees
        self._entries: dict[str, State] = {}
        self._exits: dict[str, State] = {}
        self._written: dict[str, set[str]] = {}
        self._controls: dict[str, Divergence | None] = {}
        self._heads: dict[int, State] = {}
        self._broken: dict[int, Divergence] = {}  # loops with divergent exits
        self._left: dict[str, Divergence] = {}  # procedures with divergent exits
        self._memories = memories
        self._memory, self._known, self._named = memories.at, memories.known, memories.named
        self._overlays = _overlays(program)
        self._alone = _alone(program)
        self._visible = {k for k, s in program.globals.items() if self._aliases.escaped(Memory(k, s))}
        self._waiting: set[str] = set()
        self._running: set[str] = set()
        self._callers: dict[str, set[str]] = {}
        self.collectives: dict[SiteKey, CollectiveSite] = {}
        self.reasons: dict[tuple[str, int, int, int], Divergence | None] = {}
        self._state: State = set()
        self._control: Divergence | None = None
        self._frame: _Frame
        self._changed = False
        self._probe: Callable[[Statement], None] | None = None
        self._solve()

    # ---- answers ------------------------------------------------------------------------------------------------------

    def statement(self, statement: Statement, procedure: Procedure) -> Divergence | None:
        """Why ranks may diverge at the statement; None if all run it uniformly."""
        if self._world is not None and procedure.key in self._adopted:
            return self._world.statement(statement, procedure)
        return self.reasons.get(_place(statement, procedure), Divergence("it is never called", statement.span))

    def call(self, key: SiteKey) -> Divergence | None:
        """Why not all ranks reach a collective site uniformly."""
        found = self._world if self._world is not None and key[0] in self._adopted else self
        return found.collectives[key].divergence

    def value(self, expression: Expression, at: Statement, procedure: Procedure) -> Divergence | None:
        """Why the expression may be divergent before the statement ``at``."""
        if self._world is not None and procedure.key in self._adopted:
            return self._world.value(expression, at, procedure)
        found: list[Divergence | None] = []

        def look(statement: Statement) -> None:
            if _place(statement, procedure) == _place(at, procedure):
                kept, control = set(self._state), self._control
                what = self._value(expression)
                found.append(
                    None if what is None else Divergence(f"{what} is not proved to be the same on all ranks", at.span)
                )
                self._state, self._control = kept, control

        self._probe = look
        if procedure.key in self._entries:
            self._walk(procedure)
        self._probe = None
        if not found:
            return Divergence("it is never called", at.span)
        return next((f for f in found if f is not None), None)

    # ---- the whole program --------------------------------------------------------------------------------------------

    def _solve(self) -> None:
        for key in self._start:
            self._begin(key)
        while self._waiting:
            order = [key for key in reversed(self._graph.bottom_up) if key in self._waiting]
            for key in order:
                if key in self._waiting:  # not analysed yet: its callers come first
                    self._waiting.discard(key)
                    self._run(self._program.procedures[key])

    def _begin(self, key: str) -> None:
        """The entry state of a procedure that is called from nowhere in the sources."""
        self._entries[key] = {UNKNOWN.key, ANYTHING.key}
        self._controls[key] = self._start[key]
        self._waiting.add(key)

    @cached_property
    def _start(self) -> dict[str, Divergence | None]:
        """Procedures that are called from nowhere in the sources, with why not all ranks may call them."""
        mains = [key for key, p in self._program.procedures.items() if _is_main(p)]
        roots: dict[str, Divergence | None] = dict.fromkeys(mains)
        if len(mains) > 1:
            span = self._program.procedures[mains[1]].span
            return dict.fromkeys(mains, Divergence("there are several main programs", span))
        for key in self._graph.entries - set(mains):
            procedure = self._program.procedures[key]
            mentioned = any(key in h.procedures for hidden in self._graph.hidden.values() for h in hidden)
            strange = self._graph.external_code and is_external(procedure)
            if not mains or key in self._graph.address_taken or mentioned or strange:
                roots[key] = self._called_from_elsewhere(procedure, bool(mains), mentioned)
        return roots

    def _called_from_elsewhere(self, procedure: Procedure, whole: bool, mentioned: bool) -> Divergence:
        """A divergence that says its callers are unknown, with the code responsible."""
        if not whole:
            return Divergence(f"no main program is given, so who calls {procedure.name} is not known", procedure.span)
        if procedure.key in self._graph.address_taken or mentioned:
            return Divergence(f"who calls {procedure.name} is not known", procedure.span)
        what, where = self._stranger()
        return Divergence(f"{what} may call {procedure.name}", where or procedure.span)

    def _stranger(self) -> tuple[str, Span | None]:
        """The first unknown code: a procedure without source, or text that could not be read."""
        for site in self._graph.unknown_calls():
            if not site.pointer:
                return f"{site.name or 'a function'}, whose source is not given,", site.statement.span
        for key, hidden in self._graph.hidden.items():
            if any(h.unknown for h in hidden):
                procedure = self._program.procedures[key]
                unread = next((s.span for s in procedure.body.walk() if isinstance(s, Opaque)), procedure.span)
                return "what could not be read here", unread
        return "code that is not known", None

    def _run(self, procedure: Procedure) -> None:
        """Analyses a procedure to a fixed point."""
        outer = self._changed
        self._running.add(procedure.key)
        before = (len(self._exits.get(procedure.key, ())), len(self._written.get(procedure.key, ())))
        for _ in range(_MOST_PASSES):
            self._changed = False
            known_before = len(self._known)
            end = self._walk(procedure)
            exits = self._exits.setdefault(procedure.key, set())
            exits |= end
            if not self._changed and known_before == len(self._known):
                break
        if before != (len(self._exits[procedure.key]), len(self._written.get(procedure.key, ()))) or before == (0, 0):
            self._waiting |= self._callers.get(procedure.key, set())
        self._running.discard(procedure.key)
        self._changed = outer

    def _walk(self, procedure: Procedure) -> State:
        """One pass over a procedure; returns the state at its end."""
        key = procedure.key
        kept = self._state, self._control, getattr(self, "_frame", None)
        labels, loose = self._memories.jumps_of(procedure)
        reads = self._memories.reads.setdefault(key, {})
        frame = _Frame(procedure, language_of_procedure(self._program, procedure), labels, reads, loose=loose)
        self._frame = frame
        entry = self._heads.setdefault(id(procedure), set()) if frame.loose else set()
        self._state = entry | self._entries[key]
        self._control = self._controls.get(key) or (self._left.get(key) if frame.loose else None)
        self._block(procedure.body)
        end = self._state | frame.returned
        if frame.loose and not end <= entry:
            entry |= end
            self._changed = True
        self._state, self._control = kept[0], kept[1]
        if kept[2] is not None:
            self._frame = kept[2]
        return end

    # ---- statements ---------------------------------------------------------------------------------------------------

    def _block(self, block: Block) -> None:
        for statement in block.statements:
            self._statement(statement)

    def _statement(self, statement: Statement) -> None:
        frame = self._frame
        if statement.label is not None and statement.label in frame.jumps:
            state, control = frame.jumps.pop(statement.label)
            self._state |= state
            if control is not None and not any(c is not None for _, c in frame.jumps.values()):
                frame.left = self._left.get(frame.procedure.key)
        outer = self._control
        self._control = outer or frame.left or self._broken_around()
        self.reasons[_place(statement, frame.procedure)] = self._control
        if self._probe is not None:
            self._probe(statement)
        match statement:
            case If(condition=condition, then=then, otherwise=otherwise):
                self._branches(
                    condition, (then,) if otherwise is None else (then, otherwise), otherwise is None, statement
                )
            case Select(selector=selector, cases=cases):
                self._branches(selector, cases, True, statement)
            case Loop():
                self._loop(statement)
            case While():
                self._while(statement)
            case Compound(body=body):
                self._block(body)
            case Jump():
                self._jump(statement)
            case Opaque():
                self._opaque(statement)
            case _:
                self._simple(statement)
        self._control = outer

    def _simple(self, statement: Statement) -> None:
        match statement:
            case Assign(target=target, value=value, operator=operator):
                self._assign(target, value, operator)
            case Call():
                what = self._call(statement, statement.name, statement.arguments)
                for _, argument in statement.keywords:
                    self._value(argument)
                    self._write(argument, "what keyword arguments bring")
                if statement.result is not None:
                    self._write(statement.result, what)
            case Evaluate(value=value):
                self._value(value)
            case Declare(variables=variables):
                for symbol, initial in variables:
                    static = symbol.storage is Storage.SAVED
                    if not static:
                        self._write(Name(symbol), None if initial is None else self._value(initial))
            case InputOutput(reads=reads, writes=writes):
                for part in reads:
                    self._value(part)
                for part in writes:
                    self._write(part, "what is read from a file")
            case Allocate(reads=reads, writes=writes):
                for part in reads:
                    self._value(part)
                for part in writes:
                    self._write(part, None)

    def _diverged(self, what: str | None, statement: Statement) -> Divergence | None:
        return None if what is None else Divergence(f"{what} is not proved to be the same on all ranks", statement.span)

    def _branches(self, condition: Expression, blocks: Sequence[Block], none: bool, statement: Statement) -> None:
        what = self._value(condition)
        outer = self._control
        self._control = outer or self._diverged(what, statement)
        before = self._state
        after: State = set(before) if none else set()
        for block in blocks:
            self._state = set(before)
            self._block(block)
            after |= self._state
        self._state, self._control = after, outer

    def _loop(self, loop: Loop) -> None:
        what = next((w for w in [self._value(e) for e in (loop.lower, loop.upper, loop.step)] if w), None)
        start = self._value(loop.lower) or self._value(loop.step)
        self._write(Name(loop.variable), start)
        self._iterations(loop, loop.body, lambda: self._value(loop.upper) or what, loop.variable, start)

    def _while(self, loop: While) -> None:
        def test() -> str | None:
            return next((w for w in [self._value(part) for part in loop.parts] if w is not None), None)

        self._iterations(loop, loop.body, test, None, None)

    def _iterations(
        self, loop: Statement, body: Block, test: Callable[[], str | None], variable: Symbol | None, start: str | None
    ) -> None:
        """Iterates a loop's body to a fixed point of the state at its header."""
        head = self._heads.setdefault(id(loop), set())
        head |= self._state
        self._state = set(head)
        outer = self._control
        what = test()
        around = self._diverged(what, loop)
        self._frame.loops.append(loop)
        self._control = outer or around or self._broken.get(id(loop))
        self._block(body)
        self._frame.loops.pop()
        self._control = outer or around
        if variable is not None:
            self._write(Name(variable), start or what)
        self._control = outer
        if not self._state <= head:
            head |= self._state
            self._changed = True
        if self._broken.get(id(loop)) is not None and variable is not None:
            self._mark({variable.key})
        self._state |= head

    def _jump(self, jump: Jump) -> None:
        frame = self._frame
        what = None if jump.value is None else self._value(jump.value)
        match jump.kind:
            case "return":
                if self._control is not None or what is not None:
                    frame.returned.add(_result_key(frame.procedure))
                frame.returned |= self._state
                if self._control is not None and not self._ends_here(None):
                    self._leave(self._control)
            case "break" | "continue":
                loops = frame.loops if jump.to is not None else frame.loops[-1:]
                for loop in loops:
                    head = self._heads[id(loop)]
                    if not self._state <= head:
                        head |= self._state
                        self._changed = True
                if self._control is not None:
                    self._break(self._control, loops)
            case "goto":
                self._goto(jump)

    def _goto(self, jump: Jump) -> None:
        frame = self._frame
        if frame.loose or jump.to is None or jump.to not in frame.labels:
            if self._control is not None:
                self._leave(self._control)
            return
        if self._ends_here(jump.to):
            return
        state, control = frame.jumps.get(jump.to, (set(), None))
        frame.jumps[jump.to] = (state | self._state, control or self._control)
        for loop in frame.loops:
            self._heads[id(loop)] |= self._state
        if self._control is not None:
            frame.left = frame.left or self._control
            self._break(self._control, frame.loops)

    def _break(self, why: Divergence, loops: Iterable[Statement]) -> None:
        for loop in loops:
            if id(loop) not in self._broken:
                self._broken[id(loop)] = why
                self._changed = True

    def _leave(self, why: Divergence) -> None:
        """Divergent control: some ranks leave the procedure, or jump anywhere in it, while others go on."""
        frame = self._frame
        if frame.procedure.key not in self._left:
            self._left[frame.procedure.key] = why
            self._changed = True
        frame.left = frame.left or self._left[frame.procedure.key]
        self._break(why, frame.loops)

    def _ends_here(self, label: str | None) -> bool:
        """Whether ranks that leave the main program here, or jump to the label, call no further collective.

        Then control is uniform among the rest: all ranks of a communicator must reach its collectives.
        """
        procedure = self._frame.procedure
        if not _is_main(procedure):
            return False
        rest: list[Statement] = []
        if label is not None:
            names = [s.label for s in procedure.body.statements]
            rest = list(procedure.body.statements[names.index(label) :]) if label in names else []
        return not any(self._collects(s, procedure) for s in rest) and (label is None or bool(rest))

    def _collects(self, statement: Statement, procedure: Procedure, depth: int = 8) -> bool:
        for inner in statement.walk():
            if isinstance(inner, Opaque):
                return True
            for call in _calls(inner):
                target, callee, _ = self._graph.resolve(call.name, procedure)
                message = mpi.lookup(call.name or "") if target is Target.MPI else None
                if target is Target.UNKNOWN or (message is not None and message.kind in _COLLECTIVE_KINDS):
                    return True
                if callee is not None:
                    body = self._program.procedures[callee]
                    if depth == 0 or any(self._collects(s, body, depth - 1) for s in body.body.statements):
                        return True
        return False

    def _broken_around(self) -> Divergence | None:
        return next((self._broken[id(loop)] for loop in self._frame.loops if id(loop) in self._broken), None)

    def _opaque(self, statement: Opaque) -> None:
        """It may assign or call whatever it mentions, and jump anywhere."""
        procedure = self._frame.procedure
        why = self._control or Divergence(f"what this does is not known: {statement.reason}", statement.span)
        hidden = self._graph.hidden[procedure.key]
        self._mark({s.key for h in hidden for s in h.symbols} | self._escaped())
        if any(h.unknown or h.mpi or any(self._graph.reaches_mpi(k) for k in h.procedures) for h in hidden):
            self._mark({s.key for s in procedure.symbols.values()} | set(self._program.globals))
            self._record_collective(None, statement.span, why, None)
        if _JUMPS.search(self._program.sources[statement.span.source].text(statement.span)):
            self._leave(why)

    # ---- values -------------------------------------------------------------------------------------------------------

    def _value(self, expression: Expression) -> str | None:
        """What of the expression is divergent, in words; None if it is uniform. Applies the assignments in it."""
        entry = self._frame.reads.get(id(expression))
        if entry is None:
            entry = (expression, self._all_read(expression))
            self._frame.reads[id(expression)] = entry
        if entry[1] is None:
            return self._value_with_effects(expression)
        for key, name in entry[1]:
            if key in self._state:
                return name
        return None

    def _all_read(self, expression: Expression) -> tuple[tuple[str, str], ...] | None:
        """Keys and names of the memory that an expression reads; None if it has other effects."""
        found: dict[str, str] = {}
        for part in expression.walk():
            match part:
                case Assignment() | Unread() | AddressOf():
                    return None
                case Invocation(name=name):
                    target = self._graph.resolve(name, self._frame.procedure)[0]
                    language = self._frame.language
                    library = language.library(name) if name is not None and target is Target.LIBRARY else None
                    if library is None or not library.pure or library.reads or library.writes:
                        return None
                case Name(symbol=symbol):
                    if self._is_command_line(symbol):
                        return None
                    address = symbol.dimensions is not None and self._frame.language.has_addresses
                    if symbol.storage is not Storage.CONSTANT and not address:
                        found.update(dict.fromkeys(self._keys(part), symbol.name))
                case Element() | Member() | Deref():
                    base = next((e for e in part.walk() if isinstance(e, Name)), None)
                    name = base.symbol.name if base is not None else "memory"
                    found.update(dict.fromkeys(self._keys(part), name))
        return tuple(found.items())

    def _value_with_effects(self, expression: Expression) -> str | None:
        match expression:
            case Number() | Text() | Constant():
                return None
            case Name(symbol=symbol):
                address = symbol.dimensions is not None and self._frame.language.has_addresses
                if symbol.storage is Storage.CONSTANT or address or self._is_command_line(symbol):
                    return None
                return symbol.name if self._differs(expression) else None
            case Element(base=base, indices=indices):
                found = [self._value(index) for index in indices]
                found.append(self._value(base))
                return next((w for w in found if w), None) or self._place(expression)
            case Member(base=base):
                return self._value(base) or self._place(expression)
            case Deref(pointer=pointer):
                return self._value(pointer) or self._place(expression)
            case AddressOf(object=inner):
                return next((w for w in [self._value(i) for i in _indices(inner)] if w), None)
            case Operation(operator="&&" | "||" | "?:", arguments=(first, *others)):
                return self._conditional(first, others)
            case Assignment(target=target, operator=operator, value=value):
                return self._assign(target, value, operator)
            case Invocation(name=name, arguments=arguments):
                return self._call(expression, name, arguments)
            case Unread(mentions=mentions):
                return self._unread(expression, mentions)
        found = [self._value(part) for part in expression.operands()]
        return next((w for w in found if w), None)

    def _conditional(self, first: Expression, others: Sequence[Expression]) -> str | None:
        what = self._value(first)
        outer = self._control
        if what is not None:
            self._control = outer or Divergence(f"{what} is not proved to be the same on all ranks", first.span)
        before = set(self._state)
        found = [self._value(part) for part in others]
        self._state |= before
        self._control = outer
        return what or next((w for w in found if w), None)

    def _unread(self, expression: Unread, mentions: Sequence[Expression]) -> str:
        for part in mentions:
            self._value(part)
            self._write(part, "what is not understood")
        self._mark(self._escaped())
        self._record_collective(
            None,
            expression.span or self._frame.procedure.span,
            self._control or Divergence(f"what this does is not known: {expression.text[:40]}", expression.span),
            None,
        )
        return expression.text[:40]

    def _place(self, place: Expression) -> str | None:
        if not self._differs(place):
            return None
        base = next((e for e in place.walk() if isinstance(e, Name)), None)
        return base.symbol.name if base is not None else "memory"

    def _differs(self, place: Expression) -> bool:
        if any(isinstance(e, Name) and self._is_command_line(e.symbol) for e in place.walk()):
            return False  # all ranks are started with one command line
        return not self._state.isdisjoint(self._keys(place))

    def _is_command_line(self, symbol: Symbol) -> bool:
        procedure = self._frame.procedure
        return _is_main(procedure) and symbol.storage is Storage.ARGUMENT and procedure.kind != "program"

    def _keys(self, place: Expression, *, pointed: bool = False) -> frozenset[str]:
        """Keys of the memory of a place, or of what a pointer's value points to."""
        if isinstance(place, Name) and not pointed and (self._frame.language.has_addresses or not place.symbol.pointer):
            reference = (
                place.symbol.storage is Storage.ARGUMENT
                and not place.symbol.by_value
                and not self._frame.language.by_reference
            )
            if not reference:
                if place.symbol.key not in self._known:
                    self._memories.learn(Memory(place.symbol.key, place.symbol), self._aliases)
                return frozenset({place.symbol.key})
        entry = self._memory.get((id(place), "to" if pointed else "at"))
        if entry is None:
            procedure = self._frame.procedure
            found = self._aliases.pointees(place, procedure) if pointed else self._aliases.objects(place, procedure)
            for memory in found:
                self._memories.learn(memory, self._aliases)
            entry = (place, frozenset(m.key for m in found))
            self._memory[(id(place), "to" if pointed else "at")] = entry
        return entry[1]

    # ---- what is written ----------------------------------------------------------------------------------------------

    def _assign(self, target: Expression, value: Expression, operator: str | None) -> str | None:
        what = self._value(value)
        if operator is not None:
            what = self._value(target) or what
        self._write(target, what)
        return what

    def _write(self, place: Expression, what: str | None, *, whole: bool | None = None, pointed: bool = False) -> None:
        """Assigns to the place, or to what a pointer points to; ``what``: what of the value is divergent.

        ``whole``: the variable is overwritten entirely. None: if the place is a scalar variable.
        """
        place = without_casts(place)
        if isinstance(place, AddressOf) and pointed:
            place, pointed = place.object, False
        if isinstance(place, Name) and place.symbol.dimensions is not None and not place.symbol.by_value:
            pointed = False  # an array's name points to all of it
        if not pointed:
            for index in _indices(place):
                what = self._value(index) or what
            if isinstance(place, Deref):
                what = self._value(place.pointer) or what
        if not isinstance(place, Name | Element | Member | Deref) and not pointed:
            return
        keys = self._keys(place, pointed=pointed)
        if what is not None or self._control is not None or (pointed and self._value(place) is not None):
            self._mark(keys)
            return
        self._note(keys)
        base = _first_of(place) if isinstance(place, Element) else place
        if pointed or not isinstance(base, Name) or len(keys) != 1 or self._frame.loose:
            return
        symbol = base.symbol
        all_of_it = symbol.dimensions is None and base is place if whole is None else whole
        if (
            all_of_it
            and symbol.overlay is None
            and not symbol.volatile
            and (self._frame.language.has_addresses or not symbol.pointer)
        ):
            self._state -= keys

    def _mark(self, keys: Iterable[str]) -> None:
        found = set(keys)
        for key in keys:
            found |= self._overlays.get(key, frozenset())
        self._note(found)
        self._state |= found

    def _note(self, keys: Iterable[str]) -> None:
        self._written.setdefault(self._frame.procedure.key, set()).update(keys)

    def _escaped(self) -> set[str]:
        """Memory that code without source may write."""
        return self._visible | self._memories.escaped

    # ---- calls --------------------------------------------------------------------------------------------------------

    def _call(self, call: Call | Invocation, name: str | None, arguments: Sequence[Expression]) -> str | None:
        """What of the result is divergent."""
        target, callee, pointer = self._graph.resolve(name, self._frame.procedure)
        if target is Target.PROCEDURE and callee is not None:
            return self._procedure(self._program.procedures[callee], arguments)
        if target is Target.MPI and name is not None:
            message = mpi.lookup(name)
            if message is not None:
                return self._message(message, call, arguments)
        if target is Target.LIBRARY and name is not None:
            library = self._frame.language.library(name)
            if library is not None and not library.calls:
                return self._library(library, arguments)
            if library is not None and self._calls_without_mpi(library, arguments):
                return self._unknown(call, name, arguments, pointer, may_communicate=False)
        return self._unknown(call, name, arguments, pointer)

    def _calls_without_mpi(self, library: LibrarySummary, arguments: Sequence[Expression]) -> bool:
        """Whether the callbacks passed to the library function are the program's own, and call no MPI."""
        given = [without_casts(arguments[number]) for number in library.calls if number < len(arguments)]
        functions = [argument.object if isinstance(argument, AddressOf) else argument for argument in given]
        named = [getattr(function, "name", None) for function in functions]
        found = [self._graph.resolve(name, self._frame.procedure)[1] for name in named]
        return len(found) == len(library.calls) and all(key in self._graph.without_mpi for key in found)

    def _library(self, library: LibrarySummary, arguments: Sequence[Expression]) -> str | None:
        found = [None if library.reads_nothing_of(a) else self._value(a) for a in arguments]
        reads = library.arguments_read(arguments)
        if self._frame.language.has_addresses:
            found += [self._pointed(arguments[n]) for n in reads]
        what = next((w for w in found if w), None)
        if library.name in _SAME_EVERYWHERE or library.name in ("sprintf", "snprintf", "sscanf"):
            pass
        elif library.io or library.state not in (None, "heap", "signgam"):
            what = f"what {library.name} gives"
        for number in library.arguments_written(arguments):
            self._write(arguments[number], what, pointed=self._frame.language.has_addresses)
        return what

    def _pointed(self, argument: Expression) -> str | None:
        """C: what of the memory that an argument points to is divergent."""
        argument = without_casts(argument)
        if isinstance(argument, AddressOf):
            return self._value(argument.object)
        if isinstance(argument, Text | Number | Constant):
            return None
        if any(isinstance(e, Name) and self._is_command_line(e.symbol) for e in argument.walk()):
            return None
        base = next((e for e in argument.walk() if isinstance(e, Name)), None)
        keys = self._keys(argument, pointed=True)
        return None if self._state.isdisjoint(keys) else (base.symbol.name if base is not None else "memory")

    def _unknown(
        self,
        call: Call | Invocation,
        name: str | None,
        arguments: Sequence[Expression],
        pointer: bool,
        *,
        may_communicate: bool = True,
    ) -> str:
        what = f"what {name or 'a function'} gives"
        for argument in arguments:
            self._value(argument)
            if self._frame.language.by_reference:
                self._write(argument, what)
            else:
                self._mark(self._keys(argument, pointed=True) if _may_point(argument) else ())
        self._mark(self._escaped())
        span = call.span or self._frame.procedure.span
        if may_communicate and (self._control is not None or pointer):
            why = self._control or Divergence("which function is called is not known", span)
            self._record_collective(None, span, why, None)
        return what

    def _procedure(self, callee: Procedure, arguments: Sequence[Expression]) -> str | None:
        by_reference = language_of_procedure(self._program, callee).by_reference
        caller = self._frame.procedure
        # Without memory that the callee cannot access: otherwise every procedure's state would hold the whole program's
        # variables.
        others = {key for key in self._state - self._alone if self._may_come_to(key, callee.key)}
        entry = (self._state & self._named_in(callee.key)) | others
        places: list[tuple[Symbol, Expression]] = []
        for number, dummy in enumerate(callee.parameters):
            entry.discard(dummy.key)
            if number >= len(arguments):
                continue
            argument = arguments[number]
            what = self._value(argument)
            if not dummy.by_value:
                places.append((dummy, argument))
            if what is not None:
                entry.add(dummy.key)
                if not by_reference and not dummy.by_value:
                    continue
        for argument in arguments[len(callee.parameters) :]:
            self._value(argument)
        self._enter(callee, entry, caller)
        if callee.key in self._waiting and callee.key not in self._running and not self._adopt(callee.key):
            self._waiting.discard(callee.key)
            self._run(callee)
        exits = self._exits.get(callee.key, set())  # a recursive one is analysed again once its exit state is known
        self._after(callee, exits, places, by_reference)
        result = {_result_key(callee)} if callee.result is None else {callee.result.key, _result_key(callee)}
        return f"what {callee.name} gives" if result & exits else None

    def _named_in(self, key: str) -> frozenset[str]:
        """Keys of the variables that the procedure and its callees can name."""
        if key not in self._named:
            procedures = (self._program.procedures[k] for k in self._reached(key))
            self._named[key] = frozenset(s.key for p in procedures for s in p.symbols.values())
        return self._named[key]

    def _may_come_to(self, key: str, callee: str) -> bool:
        """Whether the callee, or its callees, may access the memory: memory with a call's lifetime only during that call."""
        owner = self._owners.get(key)
        if owner is None:
            return True
        question = (owner, callee)
        if question not in self._memories.related:
            self._memories.related[question] = not self._reached(owner).isdisjoint(self._reached(callee))
        return self._memories.related[question]

    @cached_property
    def _owners(self) -> dict[str, str]:
        """The procedure whose dummy argument, local variable or constant a key is."""
        return {
            symbol.key: key
            for key, procedure in self._program.procedures.items()
            for symbol in procedure.symbols.values()
            if symbol.storage in _OWN and symbol.key.startswith(f"procedure {key}::")
        }

    def _reached(self, key: str) -> frozenset[str]:
        """The procedure and its direct and indirect callees."""
        known = self._memories.reached
        if key not in known:
            reached, waiting = {key}, [key]
            while waiting:
                new = self._graph.callees(waiting.pop()) - reached
                reached |= new
                waiting += new
            known[key] = frozenset(reached)
        return known[key]

    def _adopt(self, key: str) -> bool:
        """Takes over the world's results for a procedure and its callees, if they hold here; returns whether they do.

        They do where these call MPI with no communicator that matters to this group alone, nothing else calls the procedure's
        callees, and its entry state is the world's: the result depends on nothing else, since the analysis starts at the same
        procedures.
        """
        world = self._world
        if world is None:
            return False
        inside = self._reached(key)
        alike = (
            world._entries.get(key) == self._entries[key]
            and world._controls.get(key) == self._controls.get(key)
            and not any(self._counts_here(inner) for inner in inside)
            and self._only_called_by(inside, key)
        )
        if not alike:
            self._give_back(key)
            return False
        self._taken_over.add(key)
        self._adopted |= inside
        self._waiting -= inside
        exits, written = world._exits[key], world._written.get(key, set())
        if self._exits.get(key) != exits or self._written.get(key) != written:
            self._exits[key], self._written[key] = set(exits), set(written)
            self._waiting |= self._callers[key]
        return True

    def _give_back(self, key: str) -> None:
        """The world's results no longer hold: the procedure is analysed from the beginning."""
        if key in self._taken_over:
            self._taken_over.remove(key)
            inside = self._reached(key)
            self._adopted -= inside
            for inner in inside - {key}:
                self._entries.pop(inner, None)
                if inner in self._start:
                    self._begin(inner)

    def _counts_here(self, key: str) -> bool:
        """Whether the procedure itself calls MPI with a communicator whose ranks share more here than in the world."""
        groups = self._memories.groups.get(key, set())
        return any(group != WORLD and (group == self._among or group in self._parents) for group in groups)

    def _only_called_by(self, inside: frozenset[str], key: str) -> bool:
        """Whether of the analysed procedures only those inside call any of them except ``key``, which none of them calls."""
        return not self._graph.recursive(key) and all(
            inner == key or self._graph.callers(inner) & self._walked <= inside for inner in inside
        )

    @cached_property
    def _walked(self) -> frozenset[str]:
        """Procedures that are called at all."""
        return frozenset[str]().union(*(self._reached(key) for key in self._start))

    def _enter(self, callee: Procedure, entry: State, caller: Procedure) -> None:
        self._callers.setdefault(callee.key, set()).add(caller.key)
        new = callee.key not in self._entries
        before = self._entries.setdefault(callee.key, set())
        control = self._controls.get(callee.key)
        if new or not entry <= before or (control is None and self._control is not None):
            before |= entry
            self._controls[callee.key] = control or self._control
            self._waiting.add(callee.key)

    def _after(
        self, callee: Procedure, exits: State, places: Sequence[tuple[Symbol, Expression]], by_reference: bool
    ) -> None:
        """The state after a call: what the callee wrote is as at its exit."""
        dummies, own = self._memories.own_of(callee)
        written = self._written.get(callee.key, set())
        lasting = written - dummies
        if not self._graph.recursive(callee.key):
            lasting -= own
        differing = lasting & exits
        self._note(lasting)
        if self._control is not None:
            self._mark(lasting)
        elif self._frame.loose:
            self._mark(differing)
        else:
            self._state -= lasting - differing - self._shared(lasting)
            self._mark(differing)
        for dummy, argument in places:
            if dummy.key in written:
                whole = None if dummy.dimensions is None and by_reference else False
                self._write(argument, dummy.name if dummy.key in exits else None, whole=whole)

    def _shared(self, keys: Iterable[str]) -> set[str]:
        return {key for key in keys if key in self._overlays}

    # ---- MPI ----------------------------------------------------------------------------------------------------------

    def _message(self, message: mpi.MpiCall, call: Call | Invocation, arguments: Sequence[Expression]) -> str | None:
        by_reference = self._frame.language.by_reference
        parameters = self._frame.language.parameters(message)
        inputs = [
            self._value(argument)
            for argument, parameter in zip(arguments, parameters, strict=False)
            if not (by_reference and parameter.writes)
        ]
        place = mpi.index_of(message, mpi.Role.COMM)
        communicator = arguments[place] if place is not None and place < len(arguments) else None
        sent = None if communicator is None else self._communicators.of(communicator, self._frame.procedure)
        if sent is not None:
            self._memories.groups.setdefault(self._frame.procedure.key, set()).add(sent.group)
        if message.collective:
            span = call.span or self._frame.procedure.span
            why = self._control
            if why is None and communicator is not None:
                why = self._communicator_differs(communicator, span)
            self._record_collective(message.name, span, why, communicator)
        if message.name in _OTHER_PROGRAMS:
            span = call.span or self._frame.procedure.span
            self._record_collective(None, span, Divergence(f"other programs may take part: {message.name}", span), None)
        shared = communicator is None or same_values(sent, self._among, self._parents)
        same = shared and (message.name in _FOR_ALL or (message.name in _SAME_EVERYWHERE and not any(inputs)))
        for number, (argument, parameter) in enumerate(zip(arguments, parameters, strict=False)):
            if not parameter.writes or (isinstance(argument, Constant) and not by_reference):
                continue
            constant = parameter.role in _ALWAYS_THE_SAME
            what = None if same or constant else f"what {message.name} gives"
            whole = self._fills(message, number, arguments) if parameter.role in _BUFFER_ROLES else None
            self._write(argument, what, whole=whole, pointed=not by_reference)
        if any(parameter.writes for parameter in parameters) and message.name == "MPI_Wtime":
            return "the clock"
        return None if message.ierror else f"what {message.name} gives"

    def _communicator_differs(self, communicator: Expression, span: Span) -> Divergence | None:
        if self._communicators.of(communicator, self._frame.procedure) is not None:
            return None
        what = self._value(communicator)
        return (
            None
            if what is None
            else Divergence(f"the communicator {what} is not proved to be the same on all ranks", span)
        )

    def _fills(self, message: mpi.MpiCall, number: int, arguments: Sequence[Expression]) -> bool:
        """Whether a call overwrites the variable that is its buffer entirely."""
        buffer = next((b for b in message.buffers if b.argument == number), None)
        place = arguments[number]
        while isinstance(place, Cast | AddressOf):
            place = place.value if isinstance(place, Cast) else place.object
        base = _first_of(place) if isinstance(place, Element) else place
        if buffer is None or buffer.count is None or not isinstance(base, Name):
            return False
        count, kind = arguments[buffer.count], arguments[buffer.type]
        elements = _elements(base.symbol)
        if not isinstance(count, Number) or elements is None or base.symbol.pointer:
            return False
        size = mpi.TYPE_SIZES.get(kind.name, ("", "", None))[2] if isinstance(kind, Constant) else None
        bytes_ = base.symbol.type.bytes
        if size is None or bytes_ is None:
            return elements == 1 and count.value >= 1 and base.symbol.type.base in _SIMPLE
        return int(count.value) * size >= bytes_ * elements

    def _record_collective(
        self, name: str | None, span: Span, why: Divergence | None, communicator: Expression | None
    ) -> None:
        key = self._frame.procedure.key
        self.collectives[(key, span.source, span.start, span.end, name)] = CollectiveSite(
            name, key, span, why, communicator
        )


def _place(statement: Statement, procedure: Procedure) -> tuple[str, int, int, int]:
    span = statement.span
    return procedure.key, span.source, span.start, span.end


def _is_main(procedure: Procedure) -> bool:
    return procedure.kind == "program" or (
        procedure.name == "main" and is_external(procedure) and procedure.kind == "function"
    )


def _result_key(procedure: Procedure) -> str:
    return f"result of {procedure.key}"


def _indices(place: Expression) -> tuple[Expression, ...]:
    """The subscripts evaluated to locate a place."""
    match place:
        case Element(base=base, indices=indices):
            return (*_indices(base), *indices)
        case Member(base=base):
            return _indices(base)
    return ()


def _first_of(place: Element) -> Expression | None:
    """The array whose first element the place is."""
    symbol = place.base.symbol if isinstance(place.base, Name) else None
    if symbol is None or symbol.dimensions is None or len(symbol.dimensions) != len(place.indices):
        return None
    firsts = [Number(0) if d.lower is None else d.lower for d in symbol.dimensions]
    return place.base if all(i == f for i, f in zip(place.indices, firsts, strict=True)) else None


def _elements(symbol: Symbol) -> int | None:
    """The number of elements of an array, or 1; None if it is not a number in the source."""
    elements = 1
    for dimension in symbol.dimensions or ():
        bounds = [_number(dimension.lower), _number(dimension.upper)]
        if bounds[1] is None or (bounds[0] is None and dimension.lower is not None):
            return None
        elements *= bounds[1] - (bounds[0] or 0) + 1
    return elements


def _number(bound: Expression | None) -> int | None:
    if isinstance(bound, Name) and bound.symbol.storage is Storage.CONSTANT:
        bound = bound.symbol.value
    return int(bound.value) if isinstance(bound, Number) else None


def _calls(statement: Statement) -> Iterable[Call | Invocation]:
    if isinstance(statement, Call):
        yield statement
    yield from (e for e in statement.every_expression() if isinstance(e, Invocation))


def _may_point(argument: Expression) -> bool:
    return any(isinstance(e, Name | AddressOf | Invocation) for e in argument.walk())


def _overlays(program: Program) -> dict[str, frozenset[str]]:
    """For every variable that shares storage, all that share it."""
    groups: dict[str, set[str]] = {}
    symbols = [s for p in program.procedures.values() for s in p.symbols.values()]
    for symbol in (*symbols, *program.globals.values()):
        if symbol.overlay is not None:
            groups.setdefault(symbol.overlay, set()).add(symbol.key)
    return {key: frozenset(group) for group in groups.values() for key in group}


def _alone(program: Program) -> frozenset[str]:
    """Keys of the variables that only code which can name them may access. Where an array's name is its address, arrays are
    passed on without an address operator."""
    has_addresses = any(language_of(source).has_addresses for source in program.sources)
    symbols = [s for p in program.procedures.values() for s in p.symbols.values()]
    return frozenset(
        s.key for s in (*symbols, *program.globals.values()) if s.alone and (not has_addresses or s.dimensions is None)
    )


def _forward_labels(procedure: Procedure) -> dict[str, int]:
    """Labels at the top level of the body that all jumps to them precede."""
    labels = {s.label: s.span.start for s in procedure.body.statements if s.label is not None}
    for inner in procedure.body.walk():
        if (
            isinstance(inner, Jump)
            and inner.kind == "goto"
            and inner.to in labels
            and inner.span.start > labels[inner.to]
        ):
            del labels[inner.to]
    return labels


def _has_other_jumps(procedure: Procedure, labels: dict[str, int]) -> bool:
    return any(isinstance(s, Jump) and s.kind == "goto" and s.to not in labels for s in procedure.body.walk())


_MOST_PASSES = 200
_OWN = (Storage.LOCAL, Storage.ARGUMENT, Storage.CONSTANT)
_JUMPS = re.compile(r"(?i)\b(go\s*to|return|break|continue|exit|cycle|end)\b")
_BUFFER_ROLES = frozenset({mpi.Role.SEND_BUFFER, mpi.Role.RECV_BUFFER, mpi.Role.BOTH_BUFFER})
_SIMPLE = ("integer", "real", "logical", "complex")
_ALWAYS_THE_SAME = frozenset({mpi.Role.IERROR, mpi.Role.NEW_COMM, mpi.Role.NEW_TYPE})
_FOR_ALL = frozenset({"MPI_Bcast", "MPI_Allreduce", "MPI_Allgather", "MPI_Allgatherv"})
_COLLECTIVE_KINDS = frozenset({mpi.Kind.COLLECTIVE, mpi.Kind.ONE_SIDED, mpi.Kind.IO})
_OTHER_PROGRAMS = frozenset(
    "MPI_Comm_spawn MPI_Comm_spawn_multiple MPI_Comm_connect MPI_Comm_accept MPI_Comm_join MPI_Comm_get_parent".split()
)
# Given uniform arguments, these have uniform results; those of MPI, on all ranks of a communicator.
_SAME_EVERYWHERE = frozenset(
    """MPI_Comm_size MPI_Type_size MPI_Initialized MPI_Finalized MPI_Get_version MPI_Dims_create MPI_Init MPI_Init_thread
    MPI_Query_thread MPI_Type_get_extent MPI_Op_create MPI_Cart_create
    get_command_argument command_argument_count getarg iargc""".split()
)
