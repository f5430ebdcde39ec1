"""A program with the results of its analyses: effects of statements, summaries of procedures."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property

from lapwing.affine.affine import Affine
from lapwing.affine.sections import Section
from lapwing.overlap import mpi
from lapwing.overlap.analysis.effects.callee import Asked, Called
from lapwing.overlap.analysis.effects.coalescing import in_boxes
from lapwing.overlap.analysis.effects.effects import OUT_OF_LOOPS, Effects, together
from lapwing.overlap.analysis.effects.transfer import Transfer, in_sequence
from lapwing.overlap.analysis.effects.value_numbering import Environment, Terms
from lapwing.overlap.analysis.invariants import invariants
from lapwing.overlap.analysis.liveness import Liveness, only_counted
from lapwing.overlap.analysis.memory.aliases import Aliases
from lapwing.overlap.analysis.messages.request_copies import are_copied
from lapwing.overlap.analysis.messages.wildcards import Wildcards
from lapwing.overlap.dataflow.call_graph import CallGraph, Target
from lapwing.overlap.ir.accesses import ANYTHING, UNKNOWN, Access, Memory
from lapwing.overlap.ir.expressions import (
    Assignment,
    Constant,
    Expression,
    Invocation,
    Member,
    Name,
    Number,
    Storage,
    Symbol,
    Unread,
)
from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.ir.rewriter import called_in, done_on_entry, shaping
from lapwing.overlap.ir.split_phase import SplitPhaseOperation
from lapwing.overlap.ir.statements import Assign, Block, Call, Loop, Statement
from lapwing.overlap.languages.registry import language_of_procedure
from lapwing.overlap.languages.spelling import spellings

_MANY_ACCESSES = 200  # of one procedure's summary; beyond it, sections that differ in numbers alone are merged
_MOST_ACCESSES = 500  # beyond it, sections of a variable are merged into the whole
# Calls that report whether a message has arrived or is complete, or which came first.
_ASKING = frozenset(
    """MPI_IPROBE MPI_IMPROBE MPI_TEST MPI_TESTALL MPI_TESTANY MPI_TESTSOME MPI_WAITANY MPI_WAITSOME MPI_PARRIVED MPI_CANCEL
    MPI_REQUEST_GET_STATUS MPI_REQUEST_GET_STATUS_ALL MPI_REQUEST_GET_STATUS_ANY MPI_REQUEST_GET_STATUS_SOME""".split()
)


@dataclass(frozen=True)
class _NonblockingCall:
    requests: frozenset[Memory]
    buffers: tuple[tuple[frozenset[Memory], bool], ...]  # with whether MPI writes them


@dataclass
class Prefix:
    """An analysed prefix of a statement list, in a trie of all such lists: transformations try many that differ only at their
    ends.

    ``effects``: of its last statement, ``statement``. ``values``: the environment after it. ``steps``: by the id of the next
    statement.
    """

    effects: Effects
    values: Environment
    statement: Statement | None = None  # keeps its id from being reused
    steps: dict[int, Prefix] = field(default_factory=dict)


class Analysis:
    """A program with the results of this package's analyses, computed on demand."""

    def __init__(self, program: Program, *, reassociates: bool = False) -> None:
        self.program = program
        self.reassociates = reassociates  # floating-point reductions may be reassociated
        self.graph = CallGraph.of(program)
        self.aliases = Aliases.of(program, self.graph)
        self.terms = Terms()
        self.terms.invariants = invariants(program)
        self.terms.memory_of = self._memory_of_member
        self.terms.redefined = frozenset(p.name.lower() for p in program.procedures.values())
        self._summaries: dict[str, Effects] = {}
        self._names_itself: dict[str, Callable[[Procedure], bool]] = {}
        self._open: set[str] = set()
        self._written: dict[int, tuple[Block, frozenset[str], bool, str]] = {}  # the last is the procedure, as in:
        self._plain: dict[int, tuple[Statement, Effects, str]] = {}
        self._nests: dict[int, tuple[Loop, bool]] = {}
        self._liveness: dict[int, tuple[Block, Liveness]] = {}
        self._prefixes: dict[str, Prefix] = {}
        self._scalars: dict[tuple[int, bool], Access] = {}
        self._nonblocking_calls: tuple[_NonblockingCall, ...] | None = None
        self._origins: dict[str, Procedure] = {}
        self._remembered = program.procedures  # those still valid
        self._read = program
        self._shared: dict[str, frozenset[str]] = {}  # by procedure
        self._counting: dict[str, frozenset[str]] = {}  # by host
        self._statements_read: dict[str, frozenset[int]] = {}  # the statements' ids, by procedure
        self.calls: dict[Hashable, tuple[Effects, Sequence[Expression], Called]] = {}  # see actual_formal.call_effects
        self._asked: dict[tuple[int, int], tuple[Effects, Sequence[Expression], Asked]] = {}
        self._first: dict[str, tuple[Statement, ...]] = {}  # what procedures execute on entry
        self._on_entry: dict[int, tuple[Expression, Affine | None]] = {}
        self._names: dict[int, tuple[Expression, frozenset[str]]] = {}
        self._members: dict[Expression, frozenset[str] | None] = {}  # by the expressions they are members of

    def effects_of(self, statements: Sequence[Statement], procedure: Procedure) -> list[Effects]:
        """The effects of each statement of a list, comparable with each other: in terms of values before the first."""
        return [effects for effects, _ in self.effects_with_values(statements, procedure)]

    def effects_with_values(
        self, statements: Sequence[Statement], procedure: Procedure
    ) -> list[tuple[Effects, Environment]]:
        """The same, with the environment before each statement."""
        place = self.beginning(procedure)
        found = []
        for statement in statements:
            before, place = place, self.step(place, statement, procedure)
            found.append((place.effects, before.values))
        return found

    def beginning(self, procedure: Procedure) -> Prefix:
        """The empty prefix: before the first statement of any list of the procedure."""
        return self._prefixes.setdefault(procedure.key, Prefix(Effects(), Environment(self.terms)))

    def step(self, place: Prefix, statement: Statement, procedure: Procedure) -> Prefix:
        """The prefix extended by one statement. Memoised."""
        step = place.steps.get(id(statement))
        if step is None:
            walker = Transfer(self, procedure, place.values.copy())
            step = Prefix(walker.statement(statement), walker.environment, statement)
            place.steps[id(statement)] = step
        return step

    def communicates(self, statement: Statement, procedure: Procedure) -> bool:
        """Whether the statement calls MPI to communicate, itself or in procedures it calls."""
        return self._may_communicate(statement, procedure) and bool(self.plain(statement, procedure).operations)

    def _may_communicate(self, statement: Statement, procedure: Procedure) -> bool:
        """A cheap test by names alone: most statements do not."""
        for inner in statement.walk():
            if isinstance(inner, SplitPhaseOperation):
                return True
            for name in called_in(inner):
                callee = self.program.resolve(name, procedure)
                if mpi.is_mpi_name(name) if callee is None else self.origin(callee).key not in self.graph.without_mpi:
                    return True
        return False

    def is_nest(self, loop: Loop, procedure: Procedure) -> bool:
        """Whether the loop and those in it hold nothing but assignments, and call no procedure of the program: it then accesses
        the same variables whatever their values are. Memoised."""
        entry = self._nests.get(id(loop))
        if entry is None:
            statements = [*loop.walk()]
            entry = (
                loop,
                all(isinstance(s, Loop | Assign) for s in statements)
                and not any(
                    isinstance(e, Assignment | Unread)
                    or (isinstance(e, Invocation) and self.graph.resolve(e.name, procedure)[0] is not Target.LIBRARY)
                    for s in statements
                    for e in s.every_expression()
                ),
            )
            self._nests[id(loop)] = entry
        return entry[1]

    def liveness(self, procedure: Procedure) -> Liveness:
        """The liveness of the procedure's local variables. Memoised."""
        entry = self._liveness.get(id(procedure.body))
        if entry is None:
            shared, counting = self.shared(procedure), self.counting(procedure)
            entry = (procedure.body, Liveness(procedure, lambda s: self.plain(s, procedure), shared, counting))
            self._liveness[id(procedure.body)] = entry
        return entry[1]

    def after(self, values: Environment, statements: Sequence[Statement], procedure: Procedure) -> list[Effects]:
        """The effects of statements that start from these values, comparable with those of the statements before."""
        walker = Transfer(self, procedure, values.copy())
        return [walker.statement(statement) for statement in statements]

    def plain(self, statement: Statement, procedure: Procedure) -> Effects:
        """The effects of one statement by itself, without sections: which variables, certainly or possibly. Memoised."""
        entry = self._plain.get(id(statement))
        if entry is None:
            walker = Transfer(self, procedure, Environment(self.terms, lost=True), sectionless=True)
            entry = (statement, walker.statement(statement), self.origin(procedure).key)
            self._plain[id(statement)] = entry
        return entry[1]

    def summary(self, procedure: Procedure) -> Effects:
        """The summary of a procedure: the effects of a call in terms of arguments and globals, without its own variables."""
        if procedure.key in self._open:
            return Effects(barrier=f"{procedure.name} calls itself", where=procedure.span)
        if procedure.key not in self._summaries:
            self._open.add(procedure.key)
            prefix = together(
                [*self._entered(procedure), *in_sequence(self.effects_of(procedure.body.statements, procedure))]
            )
            self._open.discard(procedure.key)
            self._summaries[procedure.key] = _outside(prefix, self.origin(procedure))
        return self._summaries[procedure.key]

    def _entered(self, procedure: Procedure) -> list[Effects]:
        """The effects of a call of the procedure, or of a part of one, before its first statement."""
        origin = self.origin(procedure)
        if origin.key not in self._first:
            on_entry = language_of_procedure(self.program, origin).declares_on_entry
            self._first[origin.key] = done_on_entry(origin) if on_entry else ()
        return self.effects_of(self._first[origin.key], procedure)

    def scalar(self, symbol: Symbol, *, writes: bool) -> Access:
        """An access to a scalar with memory of its own. Memoised, as most accesses are of this kind."""
        access = self._scalars.get((id(symbol), writes))
        if access is None:
            access = Access(symbol, None, writes, writes, False, frozenset({Memory(symbol.key, symbol)}))
            hash(access)  # so that all copies have it
            self._scalars[id(symbol), writes] = access
        return access

    def memory_of(self, argument: Expression, procedure: Procedure) -> frozenset[Memory]:
        """All memory that an MPI call's argument may denote, including the callers' memory behind a dummy argument."""
        if not language_of_procedure(self.program, procedure).by_reference:
            return self.aliases.pointees(argument, self.origin(procedure))
        return self.aliases.everywhere(self.aliases.objects(argument, self.origin(procedure)))

    def beyond(self, buffer: mpi.Buffer, arguments: Sequence[Expression]) -> frozenset[Memory]:
        """Memory that a buffer may extend to beyond its argument: through addresses in its datatype or, in Fortran, where a
        variable of a COMMON block stands for those behind it, too."""
        if max(buffer.argument, buffer.type) >= len(arguments):
            return frozenset()
        found: set[Memory] = set()
        kind, argument = arguments[buffer.type], arguments[buffer.argument]
        if self._keeps_addresses and not (isinstance(kind, Constant) and kind.name in mpi.TYPE_SIZES):
            found.add(UNKNOWN)
        if isinstance(argument, Name) and argument.symbol.dimensions is None:
            block, _, _ = argument.symbol.key.rpartition("::")
            several = buffer.count is None or arguments[buffer.count] != Number(1)
            if several and block.startswith("common "):
                members = (s for s in self.program.globals.values() if s.key.startswith(f"{block}::"))
                found |= {Memory(symbol.key, symbol) for symbol in members}
        return frozenset(found)

    def _memory_of_member(self, member: Member) -> frozenset[str] | None:
        """C: keys of the memory that a struct's member lies in, and of what may alias it; None if that may be any memory, or
        may change unseen. Memoised."""
        if member.base not in self._members:
            memory = self.aliases.objects(member, self._any_with_addresses)
            symbols = [m.symbol for m in memory if m.symbol is not None]
            hidden = any(s.volatile or s.overlay is not None for s in symbols)
            lost = any(m.symbol is None and m.heap is None for m in memory)
            others = {ANYTHING, UNKNOWN} if any(map(self.aliases.escaped, memory)) else {ANYTHING}
            self._members[member.base] = None if hidden or lost else frozenset(m.key for m in memory | others)
        return self._members[member.base]

    @cached_property
    def _any_with_addresses(self) -> Procedure:
        """Only members in a language with addresses have a type."""
        return next(p for p in self._read.procedures.values() if language_of_procedure(self._read, p).has_addresses)

    @cached_property
    def _keeps_addresses(self) -> bool:
        """Whether the program takes MPI addresses, as it must for datatypes that span several variables."""
        return self._calls_any({"MPI_GET_ADDRESS", "MPI_ADDRESS"})

    @cached_property
    def has_key_values(self) -> bool:
        """Whether the program registers callbacks that MPI calls when attributes change."""
        return self._calls_any(
            {f"MPI_{kind}_CREATE_KEYVAL" for kind in ("COMM", "TYPE", "WIN")} | {"MPI_KEYVAL_CREATE"}
        )

    def _names_any(self, names: Set[str]) -> bool:
        """Whether the program calls any of these, or names one in text that could not be read."""
        pattern = re.compile(rf"\bP?(?:{'|'.join(names)})\b".encode(), re.IGNORECASE)
        return self._calls_any(names) or any(map(pattern.search, spellings(self._read.sources, self._read.included)))

    def _calls_any(self, names: Set[str]) -> bool:
        return any((site.name or "").upper() in names for sites in self.graph.sites.values() for site in sites)

    @cached_property
    def copies_requests(self) -> bool:
        """Whether any variable may hold a copy of a request."""
        return are_copied(self._read, self.graph, self.aliases, self.memory_of)

    def nonblocking_calls(self) -> tuple[_NonblockingCall, ...]:
        """Every nonblocking call of the program, with the memory of its request and its buffers."""
        if self._nonblocking_calls is None:
            self._nonblocking_calls = tuple(self._find_nonblocking_calls())
        return self._nonblocking_calls

    def _find_nonblocking_calls(self) -> Iterable[_NonblockingCall]:
        for procedure in self.program.procedures.values():
            for statement in procedure.body.walk():
                if not isinstance(statement, Call) or statement.name is None or not mpi.is_mpi_name(statement.name):
                    continue
                call = mpi.lookup(statement.name)
                place = None if call is None else mpi.index_of(call, mpi.Role.REQUEST)
                if call is None or place is None or call.blocking or not call.buffers:
                    continue
                if place >= len(statement.arguments):
                    yield self._nonblocking_by_keyword(statement, procedure)
                    continue
                buffers = tuple(
                    (
                        self.memory_of(statement.arguments[b.argument], procedure)
                        | self.beyond(b, statement.arguments),
                        b.writes,
                    )
                    for b in call.buffers
                    if b.argument < len(statement.arguments)
                )
                yield _NonblockingCall(self.memory_of(statement.arguments[place], procedure), buffers)

    def _nonblocking_by_keyword(self, call: Call, procedure: Procedure) -> _NonblockingCall:
        """A call that passes its request, and perhaps its buffer, by keyword: any argument may be the buffer."""
        arguments = (*call.arguments, *(value for _, value in call.keywords))
        return _NonblockingCall(frozenset({ANYTHING}), tuple((self.memory_of(a, procedure), True) for a in arguments))

    @cached_property
    def wildcards(self) -> Wildcards:
        """The wildcards of the program as it was read."""
        return Wildcards(self._read, self.graph)

    @cached_property
    def rank_counts(self) -> frozenset[Symbol]:
        """Variables that hold the number of ranks."""
        sites = (site for found in self.graph.sites.values() for site in found)
        calls = (site.call for site in sites if (site.name or "").upper() == "MPI_COMM_SIZE")
        return frozenset(e.symbol for call in calls for a in call.arguments for e in a.walk() if isinstance(e, Name))

    @cached_property
    def has_synchronous_sends(self) -> bool:
        """Whether any send of the program completes only once its receive has started."""
        return self._names_any({"MPI_SSEND", "MPI_ISSEND", "MPI_SSEND_INIT"})

    @cached_property
    def shows_order(self) -> bool:
        """Whether the program may observe the order of sends: it receives from any source, or asks what has arrived or is
        complete."""
        return self.wildcards.any or self._names_any(_ASKING)

    def names_itself(self, procedure: Procedure) -> bool:
        """Whether the text of the procedure, as it was read, uses the procedure's own name."""
        origin = self.origin(procedure)
        language = language_of_procedure(self._read, origin)
        if language.linkage not in self._names_itself:
            self._names_itself[language.linkage] = language.names_itself(self._read)
        return self._names_itself[language.linkage](origin)

    @cached_property
    def disconnects(self) -> bool:
        """Whether the program ends communicators, which completes all their messages, before it finalizes MPI."""
        return self._names_any({"MPI_COMM_DISCONNECT", "MPI_SESSION_FINALIZE"})

    @cached_property
    def redirects(self) -> bool:
        """Whether the program may redirect C's standard streams to files."""
        return self._calls_any({"FREOPEN", "DUP2", "DUP3"})

    @cached_property
    def unbuffers(self) -> bool:
        """Whether the program changes the buffering of streams: what it writes may be in the file at once."""
        return self._calls_any({"SETBUF", "SETVBUF", "SETBUFFER", "SETLINEBUF"})

    def add(self, part: Procedure, whole: Procedure) -> None:
        """Registers a procedure made from another, with the same variables."""
        self._origins[part.key] = self.origin(whole)
        self.program = replace(self.program, procedures={**self.program.procedures, part.key: part})
        self.forget(part.key)

    def origin(self, procedure: Procedure) -> Procedure:
        """The procedure of the program as it was read that this one is, or was made from."""
        return self._origins.get(procedure.key, procedure)

    def is_as_read(self, statement: Statement, procedure: Procedure) -> bool:
        """Whether the statement, with all in it, is in the program as it was read: nothing in its text has been moved."""
        key = self.origin(procedure).key
        if key not in self._statements_read:
            read = self._read.procedures.get(key)
            self._statements_read[key] = frozenset(map(id, read.body.walk() if read is not None else ()))
        return id(statement) in self._statements_read[key]

    def shared(self, procedure: Procedure) -> frozenset[str]:
        """Keys of the variables that procedures contained in this one name."""
        host = self.origin(procedure).key
        if host not in self._shared:
            inner = [p for key, p in self._read.procedures.items() if key.startswith(f"procedure {host}::")]
            self._shared[host] = frozenset(
                e.symbol.key for p in inner for s in p.body.walk() for e in s.every_expression() if isinstance(e, Name)
            )
        return self._shared[host]

    def counting(self, procedure: Procedure) -> frozenset[str]:
        """Keys of the variables that are only loop counters in this procedure's host and in all procedures it contains."""
        host = (self.origin(procedure).host or "").removeprefix("procedure ")
        if host not in self._counting:
            inside = (
                p for key, p in self._read.procedures.items() if key == host or key.startswith(f"procedure {host}::")
            )
            self._counting[host] = (
                only_counted(p.body for p in inside) if host in self._read.procedures else frozenset()
            )
        return self._counting[host]

    def named_elsewhere(self, procedure: Procedure) -> set[str]:
        """Keys of the variables named by contained procedures, or in text that could not be read."""
        unread = self.graph.hidden.get(self.origin(procedure).key, ())
        return {symbol.key for part in unread for symbol in part.symbols} | self.shared(procedure)

    def is_invariant(self, expression: Expression, procedure: Procedure) -> bool:
        """Whether the expression is invariant in the procedure: it has the value it had on entry."""
        names = self._that_may_change(expression)
        if not names:
            return True
        read = self._read.procedures.get(self.origin(procedure).key, procedure)
        written, everything = self.written(read.body, read)
        return not everything and not names & written

    def _that_may_change(self, expression: Expression) -> frozenset[str]:
        """Keys of the variables in the expression that are not invariant during a call. Memoised, as every call that is passed
        an array asks for its bounds."""
        entry = self._names.get(id(expression))
        if entry is None:
            names = (e.symbol for e in expression.walk() if isinstance(e, Name))
            members = (self._memory_of_member(e) or frozenset() for e in expression.walk() if isinstance(e, Member))
            keys = frozenset(s.key for s in names if s.storage is not Storage.CONSTANT).union(*members)
            entry = self._names[id(expression)] = expression, keys.difference(self.terms.invariants)
        return entry[1]

    def on_entry(self, expression: Expression) -> Affine | None:
        """The value of an expression on entry to its procedure. Memoised."""
        entry = self._on_entry.get(id(expression))
        if entry is None:
            entry = self._on_entry[id(expression)] = expression, Environment(self.terms).affine(expression)
        return entry[1]

    def asked_by(self, callee: Procedure, arguments: Sequence[Expression]) -> Asked:
        """Which of its caller's values the effects of a call depend on. Memoised."""
        summary = self.summary(callee)
        entry = self._asked.get((id(summary), id(arguments)))
        if entry is None:
            bounds = (self.on_entry(e) for dummy in callee.parameters for e in shaping(dummy))
            asked = Asked.of(summary, (b for b in bounds if b is not None), arguments, self.terms)
            entry = self._asked[id(summary), id(arguments)] = summary, arguments, asked
        return entry[-1]

    def forget(self, key: str) -> None:
        """The procedure with this key has changed."""
        self._summaries.pop(key, None)

    def forget_prefixes(self) -> None:
        """Frees the analysed prefixes, which hold more memory than all else and are not needed again soon."""
        self._prefixes.clear()
        self.calls.clear()
        self._asked.clear()

    def forget_changed(self) -> None:
        """Procedures have changed: forgets every result that may no longer hold.

        A procedure's summary still holds if neither it nor any callee has changed, and none of them calls MPI: the effects of
        MPI's calls depend on the whole program. The same goes for parts of it that call only such procedures.
        """
        now, before = self.program.procedures, self._remembered
        changed = {self.origin(procedure).key for key, procedure in now.items() if before.get(key) is not procedure}
        is_invariant = self.graph.without_mpi - self.graph.with_callers(changed)
        self._summaries = {key: summary for key, summary in self._summaries.items() if key in is_invariant}
        self._written = {number: entry for number, entry in self._written.items() if entry[-1] in is_invariant}
        self._plain = {number: entry for number, entry in self._plain.items() if entry[-1] in is_invariant}
        self._remembered = now
        self._liveness.clear()
        self.forget_prefixes()
        self._nonblocking_calls = None

    def written(self, block: Block, procedure: Procedure) -> tuple[frozenset[str], bool]:
        """Keys of the variables the block may write, and whether it may write anything."""
        entry = self._written.get(id(block))
        if entry is None:
            # Only the variables matter here, not their values: an environment without values suffices.
            environment = Environment(self.terms, lost=True)
            walker = Transfer(self, procedure, environment, sectionless=True)
            effects = together([walker.inner(s) for s in block.statements])
            # The entry keeps the block, so that its id cannot be reused.
            entry = (block, effects.written_keys, effects.barrier is not None, self.origin(procedure).key)
            self._written[id(block)] = entry
        return entry[1], entry[2]


def _outside(effects: Effects, procedure: Procedure) -> Effects:
    """The effects without those on memory that dies with the call, and without returns, which end only the procedure."""
    lasting = in_boxes([a for a in effects.accesses if not _dies(a, procedure)])
    if len(lasting) > _MANY_ACCESSES:
        lasting = _merged(lasting, lambda section: section.coarse)
    if len(lasting) > _MOST_ACCESSES:
        lasting = _merged(lasting, lambda _: None)
    inside = effects.leaves == "return" or (effects.leaves or "").startswith(OUT_OF_LOOPS)
    return replace(effects, accesses=tuple(lasting), leaves=None if inside else effects.leaves)


def _merged(accesses: Iterable[Access], blurred: Callable[[Section], Section | None]) -> list[Access]:
    """The accesses with less exact sections, without duplicates."""
    sections = [(a, None if a.section is None else blurred(a.section)) for a in accesses]
    return [*dict.fromkeys(replace(a, section=section, must=False, where=None) for a, section in sections)]


def _dies(access: Access, procedure: Procedure) -> bool:
    symbol = access.symbol
    if symbol is None or access.through:
        return False
    # The variables that it can name include its host's.
    own = symbol.key.startswith(f"procedure {procedure.key}::") and all(m.key == symbol.key for m in access.memory)
    return own and (symbol.storage is Storage.LOCAL or (symbol.storage is Storage.ARGUMENT and symbol.by_value))
