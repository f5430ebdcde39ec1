"""The call graph: who calls whom, who communicates, and which variables are sent in messages (P2, figure 3)."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from lapwing.overlap import mpi
from lapwing.overlap.ir.expressions import (
    AddressOf,
    Cast,
    Constant,
    Deref,
    Element,
    Expression,
    Invocation,
    Member,
    Name,
    Operation,
    Symbol,
    Unread,
)
from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.ir.statements import Call, Jump, Loop, Opaque, Statement, While
from lapwing.overlap.languages.language import Language
from lapwing.overlap.languages.registry import language_of, language_of_procedure, language_outside
from lapwing.overlap.languages.shared.words import Word


class Target(enum.Enum):
    """What a call calls. UNKNOWN: a function that is neither in the sources nor in libraries/summaries.py, or one reached through
    a pointer."""

    PROCEDURE = enum.auto()
    MPI = enum.auto()
    LIBRARY = enum.auto()
    UNKNOWN = enum.auto()


@dataclass(frozen=True, eq=False)
class CallSite:
    """A call in ``procedure`` (a key). ``callee``: the key of a procedure of the program, or None.

    ``pointer``: the callee is reached through a pointer or a dummy procedure.
    """

    procedure: str
    statement: Statement
    call: Call | Invocation
    target: Target
    callee: str | None = None
    pointer: bool = False

    @property
    def name(self) -> str | None:
        return self.call.name


@dataclass(frozen=True)
class Hidden:
    """What source text that could not be read mentions, by its identifiers.

    ``unknown``: it may contain more, above all calls of functions without source.
    """

    symbols: frozenset[Symbol]
    procedures: frozenset[str]
    mpi: bool
    unknown: bool


@dataclass(frozen=True, eq=False)
class CallGraph:
    """Who calls whom. Procedures go by their keys.

    ``sites``: every call, by the procedure it is in, in the order of the source. ``address_taken``: procedures that are arguments
    or values somewhere: any call through a pointer and any unknown function may call them. ``hidden``: what each procedure's
    unread parts mention. ``components``: recursion's strongly connected components, callees first.
    """

    program: Program
    sites: Mapping[str, tuple[CallSite, ...]]
    address_taken: frozenset[str]
    hidden: Mapping[str, tuple[Hidden, ...]]
    components: tuple[tuple[str, ...], ...]
    _resolver: _Resolver

    @staticmethod
    def of(program: Program) -> CallGraph:
        resolver = _Resolver(program)
        sites: dict[str, tuple[CallSite, ...]] = {}
        hidden: dict[str, tuple[Hidden, ...]] = {}
        taken: set[str] = set()
        for key, procedure in program.procedures.items():
            reading = _Reading(resolver, procedure)
            sites[key], hidden[key] = tuple(reading.sites), tuple(reading.hidden)
            taken |= reading.taken
        for value in program.initial.values():
            taken.update(*(resolver.called(p.name, None) for p in value.walk() if isinstance(p, Constant)))
        graph = CallGraph(program, sites, frozenset(taken), hidden, (), resolver)
        return replace(graph, components=_components(program.procedures, graph.callees))

    def resolve(self, name: str | None, caller: Procedure | None) -> tuple[Target, str | None, bool]:
        """What a call of ``name`` is: a CallSite's target, callee and pointer. ``caller``: None in a C file-scope declaration."""
        return self._resolver.target(name, caller)

    def callees(self, key: str) -> frozenset[str]:
        """Procedures of the program that one procedure may call directly."""
        return self._callees[key]

    def callers(self, key: str) -> frozenset[str]:
        return self._callers.get(key, frozenset())

    def calls_of(self, key: str) -> tuple[CallSite, ...]:
        """Every place where a procedure is called by its name."""
        return self._calls_of.get(key, ())

    def unknown_calls(self, key: str | None = None) -> tuple[CallSite, ...]:
        """Calls of unknown functions: in one procedure, or in the whole program."""
        keys: Iterable[str] = self.sites if key is None else (key,)
        return tuple(site for k in keys for site in self.sites[k] if site.target is Target.UNKNOWN)

    @property
    def bottom_up(self) -> tuple[str, ...]:
        """The procedures, callees before callers, recursion aside."""
        return tuple(key for component in self.components for key in component)

    def recursive(self, key: str) -> bool:
        """Whether a procedure may call itself, directly or through others."""
        return key in self._recursive

    def reaches_mpi(self, key: str) -> bool:
        """Whether a procedure may communicate, directly or through procedures of the program.

        Unknown functions may communicate, too: see ``reaches_unknown``.
        """
        return key in self._reaches_mpi

    def reaches_unknown(self, key: str) -> bool:
        """Whether a procedure may, directly or not, run code without source or code that could not be read."""
        return key in self._reaches_unknown

    def runs_once(self, statement: Statement, procedure: Procedure) -> bool:
        """Whether a statement runs at most once in a run of the program, as far as calls and loops show."""
        return not _repeats(statement, procedure) and self._called_once(procedure.key)

    def _called_once(self, key: str) -> bool:
        known = self._once.get(key)
        if known is None:
            self._once[key] = False  # for recursion
            procedure, calls = self.program.procedures[key], self.calls_of(key)
            if _is_main(procedure):
                known = not calls
            else:
                one = len(calls) == 1 and key not in self.entries
                known = one and self.runs_once(calls[0].statement, self.program.procedures[calls[0].procedure])
            self._once[key] = known
        return known

    @cached_property
    def _once(self) -> dict[str, bool]:
        return {}

    @cached_property
    def whole(self) -> bool:
        """Whether the sources contain the main program; otherwise they are a library that others call."""
        return any(map(_is_main, self.program.procedures.values()))

    @cached_property
    def external_code(self) -> bool:
        """Whether code outside the sources, other than libraries with summaries, may change externally visible variables."""
        unknown = any(not site.pointer and site.name not in self.program.libraries for site in self.unknown_calls())
        return not self.whole or unknown or any(h.unknown for hidden in self.hidden.values() for h in hidden)

    @cached_property
    def entries(self) -> frozenset[str]:
        """Procedures that may be called from outside the known call sites, with any arguments."""
        uncalled = {key for key in self.program.procedures if not self.calls_of(key)}
        named = {key for key, p in self.program.procedures.items() if self.external_code and is_external(p)}
        return self.address_taken | self._mentioned | uncalled | named

    @cached_property
    def _mentioned(self) -> frozenset[str]:
        """Procedures named in text that could not be read."""
        return frozenset(key for hidden in self.hidden.values() for h in hidden for key in h.procedures)

    @cached_property
    def _callees(self) -> dict[str, frozenset[str]]:
        callees: dict[str, frozenset[str]] = {}
        for key, sites in self.sites.items():
            found = {site.callee for site in sites if site.callee is not None}
            found.update(name for hidden in self.hidden[key] for name in hidden.procedures)
            found.update(*(self._called_back(site) for site in sites))
            if any(h.unknown for h in self.hidden[key]):
                found |= self.address_taken
            callees[key] = frozenset(found)
        return callees

    def _called_back(self, site: CallSite) -> frozenset[str]:
        """The program's procedures that a function outside it may call back."""
        if site.target is Target.LIBRARY and site.name is not None:
            function = language_of_procedure(self.program, self.program.procedures[site.procedure]).library(site.name)
            return self.address_taken if function is not None and function.calls else frozenset()
        if site.target is not Target.UNKNOWN:
            return frozenset()
        return self._passed_to_libraries if site.name in self.program.libraries else self.address_taken

    @cached_property
    def _passed_to_libraries(self) -> frozenset[str]:
        """The procedures that may have been passed to system functions as callbacks."""
        sites = [site for found in self.sites.values() for site in found if self.program.libraries.get(site.name or "")]
        return self.address_taken if any(site.target is Target.UNKNOWN for site in sites) else frozenset()

    @cached_property
    def _callers(self) -> dict[str, frozenset[str]]:
        callers: dict[str, set[str]] = {}
        for caller, callees in self._callees.items():
            for callee in callees:
                callers.setdefault(callee, set()).add(caller)
        return {key: frozenset(found) for key, found in callers.items()}

    @cached_property
    def _calls_of(self) -> dict[str, tuple[CallSite, ...]]:
        calls: dict[str, list[CallSite]] = {}
        for sites in self.sites.values():
            for site in sites:
                if site.callee is not None:
                    calls.setdefault(site.callee, []).append(site)
        return {key: tuple(found) for key, found in calls.items()}

    @cached_property
    def _recursive(self) -> frozenset[str]:
        several = {key for component in self.components if len(component) > 1 for key in component}
        return frozenset(several | {key for key, callees in self._callees.items() if key in callees})

    @cached_property
    def _reaches_mpi(self) -> frozenset[str]:
        direct = {key for key, sites in self.sites.items() if any(site.target is Target.MPI for site in sites)}
        return self.with_callers(direct | {key for key, hidden in self.hidden.items() if any(h.mpi for h in hidden)})

    @cached_property
    def _reaches_unknown(self) -> frozenset[str]:
        return self.with_callers({key for key in self.sites if self.unknown_calls(key) or self.hidden[key]})

    @cached_property
    def without_mpi(self) -> frozenset[str]:
        """Procedures that certainly call no MPI, directly or not."""
        return frozenset(self.sites) - self._reaches_mpi - self._reaches_unknown

    @cached_property
    def in_threads(self) -> frozenset[str]:
        """Procedures that several threads may run at once. Threads are started by a directive, whose text is not read, or by a
        function that takes a callback."""
        return _reached(self._mentioned | self.address_taken, self.callees)

    @cached_property
    def from_elsewhere(self) -> frozenset[str]:
        """Procedures without MPI that code outside the sources may run, in any thread."""
        procedures = self.program.procedures.items() if self.external_code else ()
        return _reached(
            (key for key, p in procedures if is_external(p) and not _is_main(p) and not self.reaches_mpi(key)),
            self.callees,
        )

    def with_callees(self, keys: Iterable[str]) -> frozenset[str]:
        """These procedures, and all that they may call, directly or not."""
        return _reached(keys, self.callees)

    def with_callers(self, keys: Iterable[str]) -> frozenset[str]:
        """These procedures, and all that may call them, directly or not."""
        return _reached(keys, self.callers)


def _reached(keys: Iterable[str], following: Callable[[str], frozenset[str]]) -> frozenset[str]:
    found = set(keys)
    waiting = list(found)
    while waiting:
        new = following(waiting.pop()) - found
        found |= new
        waiting += new
    return frozenset(found)


def is_external(procedure: Procedure) -> bool:
    """Whether code in other files can name a procedure: true of all but C's static and Fortran's internal ones."""
    return not procedure.key.startswith("procedure ") and not is_static(procedure.key)


def _is_main(procedure: Procedure) -> bool:
    return procedure.kind == "program" or (procedure.name == "main" and is_external(procedure))


def _repeats(statement: Statement, procedure: Procedure) -> bool:
    """Whether a loop, or a jump back, may run a statement of the procedure again."""
    at = statement.span.start
    labels = {other.label: other.span.start for other in procedure.body.walk() if other.label is not None}
    for other in procedure.body.walk():
        if isinstance(other, Loop | While) and other is not statement and other.span.contains(statement.span):
            return True
        if isinstance(other, Opaque):
            return True
        back = (
            isinstance(other, Jump) and other.kind == "goto" and labels.get(other.to or "", 0) <= at <= other.span.start
        )
        if back:
            return True
    return False


def is_static(key: str) -> bool:
    """Whether a key is that of a C function or variable that is static at file scope: "file.c::name", "folder/file.c::name"."""
    prefix, separator, _ = key.partition("::")
    return bool(separator) and ("." in prefix or "/" in prefix) and " " not in prefix


# ---- reading a procedure ----------------------------------------------------------------------------------------------


class _Resolver:
    """``Program.resolve``, fast for many names of which most denote no procedure of the program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        # C's static functions of other files, and C++'s members of classes and namespaces, are called by their keys.
        self._names = {procedure.name for procedure in program.procedures.values()} | program.procedures.keys()
        self._found: dict[tuple[str, str], str | None] = {}
        self._numbers = _macros_that_are_numbers(program)

    def key(self, name: str | None, caller: Procedure) -> str | None:
        if name is None or name not in self._names:
            return None
        question = (caller.key, name)
        if question not in self._found:
            procedure = self.program.resolve(name, caller)
            self._found[question] = None if procedure is None else procedure.key
        return self._found[question]

    def possible(self, name: str) -> frozenset[str]:
        """Every procedure of this name, for places where no procedure is the caller."""
        if name not in self._names:
            return frozenset()
        return frozenset(key for key, procedure in self.program.procedures.items() if procedure.name == name)

    def target(self, name: str | None, caller: Procedure | None) -> tuple[Target, str | None, bool]:
        # A called dummy argument is a dummy procedure, even if it has the name of an actual one.
        if name is None or (caller is not None and any(name == symbol.name for symbol in caller.parameters)):
            return Target.UNKNOWN, None, True
        callee = self.key(name, caller) if caller is not None else next(iter(self.possible(name)), None)
        if callee is not None:
            return Target.PROCEDURE, callee, False
        language = language_outside(self.program) if caller is None else language_of_procedure(self.program, caller)
        if language.library(name) is not None:
            return Target.LIBRARY, None, False
        return (Target.MPI if mpi.is_mpi_name(name) else Target.UNKNOWN), None, False

    def mentioned(self, text: str, caller: Procedure) -> Hidden:
        """What a text in a procedure mentions."""
        language = language_of_procedure(self.program, caller)
        words = language.words(text)
        names = {word.name for word in words}
        symbols = frozenset(symbol for symbol in caller.symbols.values() if symbol.name in names)
        procedures = {name: keys for name in names if (keys := self.called(name, caller))}
        explained = {symbol.name for symbol in symbols} | procedures.keys() | self._numbers
        unknown = any(_unexplained(word, language) for word in words if word.name not in explained)
        is_mpi = any(mpi.is_mpi_name(name) for name in names)
        return Hidden(symbols, frozenset().union(*procedures.values()), is_mpi, unknown)

    def called(self, name: str, caller: Procedure | None) -> frozenset[str]:
        """The procedure that a name denotes; all with that name, where it is uncertain."""
        key = self.key(name, caller) if caller is not None else None
        return self.possible(name) if key is None else frozenset({key})


class _Reading:
    """The calls, hidden parts and address-taken procedures of one procedure."""

    def __init__(self, resolver: _Resolver, procedure: Procedure) -> None:
        self.sites: list[CallSite] = []
        self.hidden: list[Hidden] = []
        self.taken: set[str] = set()
        self._resolver = resolver
        self._procedure = procedure
        for statement in procedure.body.walk():
            self._read(statement)

    def _read(self, statement: Statement) -> None:
        if isinstance(statement, Opaque):
            source = self._resolver.program.sources[statement.span.source]
            self.hidden.append(self._mentioned(source.text(statement.span)))
        if isinstance(statement, Call):
            self.sites.append(self._site(statement, statement))
        for part in statement.every_expression():
            if isinstance(part, Invocation):
                self.sites.append(self._site(part, statement))
            elif isinstance(part, Constant):
                self.taken |= self._resolver.called(part.name, self._procedure)
            elif isinstance(part, Unread):
                self.hidden.append(self._mentioned(part.text))

    def _site(self, call: Call | Invocation, statement: Statement) -> CallSite:
        target, callee, pointer = self._resolver.target(call.name, self._procedure)
        return CallSite(self._procedure.key, statement, call, target, callee, pointer)

    def _mentioned(self, text: str) -> Hidden:
        text = _DIRECTIVE.sub("", text)
        found = self._resolver.mentioned(text, self._procedure)
        # C++ calls functions implicitly; a preprocessor line, or a missing file, may hold anything.
        language = language_of_procedure(self._resolver.program, self._procedure)
        more = language.has_hidden_calls or "#" in text or not text.strip()
        return replace(found, unknown=found.unknown or more)


_NUMERIC = re.compile(r"[ \t]+[(\d][\d.()+\-*/ \t\r]*|[ \t\r]*")
# Lines of the preprocessor's that cannot hide a statement.
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(?:pragma|if|ifdef|ifndef|elif|else|endif)\b.*$", re.MULTILINE)


def _macros_that_are_numbers(program: Program) -> frozenset[str]:
    """Macros that every definition in the sources makes a number, or empty."""
    found = [
        define
        for source in program.sources
        for define in language_of(source).macro_definitions(source.data.decode("latin-1"))
    ]
    return frozenset(name for name, _ in found) - {name for name, body in found if not _NUMERIC.fullmatch(body)}


def _unexplained(word: Word, language: Language) -> bool:
    """Whether a name unknown to the program may be a function or a macro."""
    return word.may_call and not mpi.is_mpi_name(word.name) and language.library(word.name) is None


def _components(
    procedures: Mapping[str, Procedure], callees: Callable[[str], frozenset[str]]
) -> tuple[tuple[str, ...], ...]:
    """Strongly connected components, callees first (Tarjan 1972, with a stack of its own: call chains may be long)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[tuple[str, ...]] = []
    on_stack: set[str] = set()
    for root in procedures:
        work = [(root, iter(sorted(callees(root))))] if root not in number else []
        while work:
            key, rest = work[-1]
            if key not in number:
                number[key] = low[key] = len(number)
                stack.append(key)
                on_stack.add(key)
            following = next(rest, None)
            if following is not None:
                if following not in number:
                    work.append((following, iter(sorted(callees(following)))))
                elif following in on_stack:
                    low[key] = min(low[key], number[following])
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[key])
            if low[key] == number[key]:
                cut = stack.index(key)
                found.append(tuple(stack[cut:]))
                on_stack.difference_update(stack[cut:])
                del stack[cut:]
    return tuple(found)


# ---- message-passing variables ----------------------------------------------------------------------------------------


def passed_variables(expression: Expression) -> Iterator[Symbol]:
    """The variables whose memory an argument passes: ``a`` in ``a(i)``, ``&a[i]``, ``a + i``, ``a%x``; not ``i``."""
    if isinstance(expression, Name):
        yield expression.symbol
    elif isinstance(expression, Element | Member):
        yield from passed_variables(expression.base)
    elif isinstance(expression, Deref):
        yield from passed_variables(expression.pointer)
    elif isinstance(expression, AddressOf):
        yield from passed_variables(expression.object)
    elif isinstance(expression, Cast):
        yield from passed_variables(expression.value)
    elif isinstance(expression, Operation | Unread):
        for operand in expression.operands():
            yield from passed_variables(operand)


def message_variables(program: Program, callgraph: CallGraph) -> dict[str, frozenset[Symbol]]:
    """The variables of each procedure that may be communicated (P2, figure 3).

    A variable is one if it is a buffer of an MPI call, or an argument that its callee or its caller has among its message-passing
    variables; a variable that several procedures can name is one in all of them.
    """
    found: dict[str, set[Symbol]] = {key: set() for key in program.procedures}
    waiting: list[tuple[str, Symbol]] = []
    named = _procedures_by_variable(program)
    related = _arguments_and_dummies(program, callgraph)

    def add(key: str, symbol: Symbol) -> None:
        if symbol in found[key]:
            return
        for place in named.get(symbol.key, {key}) | {key}:
            if symbol not in found[place]:
                found[place].add(symbol)
                waiting.append((place, symbol))

    for key, sites in callgraph.sites.items():
        for site in sites:
            for argument in _communicated(site):
                for symbol in passed_variables(argument):
                    add(key, symbol)
    while waiting:
        key, symbol = waiting.pop()
        for other, related_symbol in related.get((key, symbol.key), ()):
            add(other, related_symbol)
    return {key: frozenset(symbols) for key, symbols in found.items()}


def _communicated(site: CallSite) -> list[Expression]:
    """The buffers of an MPI call; all its arguments where it is unknown."""
    if site.target is not Target.MPI or site.name is None:
        return []
    call = mpi.lookup(site.name)
    arguments: Sequence[Expression] = site.call.arguments
    if call is None:
        return list(arguments)
    return [arguments[b.argument] for b in call.buffers if b.argument < len(arguments)]


def _arguments_and_dummies(
    program: Program, callgraph: CallGraph
) -> dict[tuple[str, str], dict[tuple[str, Symbol], None]]:
    """Maps an actual argument to its dummies, and a dummy to its actual arguments, by procedure and variable."""
    related: dict[tuple[str, str], dict[tuple[str, Symbol], None]] = {}
    for site in (site for sites in callgraph.sites.values() for site in sites):
        if site.callee is None:
            continue
        for dummy, argument in arguments_of(site.call, program.procedures[site.callee]):
            for symbol in passed_variables(argument):
                related.setdefault((site.procedure, symbol.key), {})[site.callee, dummy] = None
                related.setdefault((site.callee, dummy.key), {})[site.procedure, symbol] = None
    return related


def arguments_of(call: Call | Invocation, callee: Procedure) -> Iterator[tuple[Symbol, Expression]]:
    """The dummy arguments of a procedure of the program with a call's actual arguments."""
    yield from zip(callee.parameters, call.arguments, strict=False)
    by_name = {symbol.name: symbol for symbol in callee.parameters}
    for keyword, value in call.keywords if isinstance(call, Call) else ():
        if keyword in by_name:
            yield by_name[keyword], value


def _procedures_by_variable(program: Program) -> dict[str, set[str]]:
    """The procedures that can name a variable, for variables that more than one can."""
    named: dict[str, set[str]] = {}
    for key, procedure in program.procedures.items():
        for symbol in procedure.symbols.values():
            named.setdefault(symbol.key, set()).add(key)
    return {symbol: keys for symbol, keys in named.items() if len(keys) > 1}
