"""From statements to effects: a walk through a list of statements, in order, with what variables are worth."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from lapwing.overlap import known, mpi
from lapwing.overlap.aliases import UNKNOWN, Memory
from lapwing.overlap.bindings import called, is_place
from lapwing.overlap.effects import OUT_OF_LOOPS, Access, Effects, MessageOperation, out_of_loop, together
from lapwing.overlap.environment import Environment
from lapwing.overlap.message_buffers import section_of, slots_of
from lapwing.overlap.phases import Part, Phase, Written
from lapwing.overlap.program import (
    AddressOf,
    Allocate,
    Assign,
    Assignment,
    Block,
    Call,
    Cast,
    Compound,
    Constant,
    Declare,
    Deref,
    Element,
    Evaluate,
    Expression,
    If,
    InputOutput,
    Invocation,
    Jump,
    Loop,
    Member,
    Name,
    Nothing,
    Number,
    Opaque,
    Operation,
    Procedure,
    Select,
    Slice,
    Span,
    Statement,
    Storage,
    Symbol,
    Text,
    Unread,
    While,
    without_casts,
)
from lapwing.overlap.sections import Condition, Linear, Section
from lapwing.overlap.shapes import shape_of
from lapwing.overlap.tree import has_explicit_shape

if TYPE_CHECKING:
    from lapwing.overlap.analysis import Analysis


class Walker:
    """Walks statements in order and keeps the environment."""

    def __init__(
        self, analysis: Analysis, procedure: Procedure, environment: Environment, *, sectionless: bool = False
    ) -> None:
        self.analysis = analysis
        self.procedure = procedure
        self.environment = environment
        self.sectionless = sectionless
        self._found: list[Access] = []
        # Found already in the statement: most of what it reads are subscripts, again and again.
        self._scalars: set[tuple[int, bool]] = set()
        self._depth = 0  # of blocks around the statement
        self._operations: list[MessageOperation] = []
        self._io = False
        self._states: set[str] = set()
        self._barrier: str | None = None
        self._where: Span | None = None

    # ---- statements ---------------------------------------------------------------------------------------------------

    def statement(self, statement: Statement) -> Effects:
        """The effects of the statement; the environment is then what it leaves."""
        match statement:
            case Nothing():
                return Effects()
            case If(condition=condition, then=then, otherwise=otherwise):
                return self._branches(condition, then, otherwise, statement.span)
            case Loop():
                return self._loop(statement)
            case While(parts=parts, body=body):
                return self._unknown_turns(parts, body, statement)
            case Select(selector=selector, cases=cases):
                head = self._simple(lambda: self._value(selector), statement.span)
                before = self.environment
                results, left = [], before.copy()
                for case in cases:
                    self.environment = before.copy()
                    results.append(_perhaps(self._block(case)))
                    left.join(left.copy(), self.environment)
                self.environment = left
                return together([head, *results])
            case Compound(body=body):
                return self._block(body)
            case Jump(kind=kind, value=value):
                head = Effects()
                if value is not None:
                    head = self._simple(lambda: self._value(value), statement.span)
                far = kind in ("break", "continue") and statement.to is not None
                leaves = f"{OUT_OF_LOOPS} to {statement.to}" if far else kind
                return replace(head, leaves=leaves, where=statement.span)
            case Phase():
                return self._simple(lambda: self._phase(statement), statement.span)
            case Written():
                return self._simple(lambda: self._written(statement), statement.span)
            case Opaque(reason=reason):
                self.environment.forget(set(), everything=True)
                return Effects(barrier=reason, where=statement.span)
        return self._simple(lambda: self._do(statement), statement.span)

    def _simple(self, work: object, span: Span) -> Effects:
        self._found, self._scalars, self._operations, self._states = [], set(), [], set()
        self._io, self._barrier, self._where = False, None, span
        work()  # type: ignore[operator]
        return Effects(
            tuple(dict.fromkeys(self._found)),
            tuple(self._operations),
            self._io,
            frozenset(self._states),
            None,
            self._barrier,
            span if self._barrier else None,
        )

    def _block(self, block: Block) -> Effects:
        self._depth += 1
        effects = together(in_sequence([self.inner(s) for s in block.statements]))
        self._depth -= 1
        return effects

    def inner(self, statement: Statement) -> Effects:
        """The effects of a statement of a block. Without sections, those of a nest of loops are the same wherever it stands."""
        if not (self.sectionless and isinstance(statement, Loop) and self.analysis.is_nest(statement, self.procedure)):
            return self.statement(statement)
        keys, everything = self.analysis.written(statement.body, self.procedure)
        self.environment.forget(keys, everything)
        self.environment.assign(statement.variable, None)
        return self.analysis.plain(statement, self.procedure)

    def _branches(self, condition: Expression, then: Block, otherwise: Block | None, span: Span) -> Effects:
        head = self._simple(lambda: self._value(condition), span)
        before = self.environment
        known_then = before.condition(condition)
        known_else = before.condition(condition, holds=False)
        self.environment = before.copy()
        one = self._guarded(self._block(then), known_then)
        after_one = self.environment
        self.environment = before.copy()
        two = self._guarded(self._block(otherwise), known_else) if otherwise is not None else Effects()
        after_two = self.environment
        joined = before.copy()
        joined.join(after_one, after_two)
        self.environment = joined
        return together([head, one, two])

    def _guarded(self, effects: Effects, condition: Condition | None) -> Effects:
        if condition is None:
            return _perhaps(effects)
        if not condition or self._impossible(condition):
            return Effects()
        return replace(effects, accesses=tuple(self._under(a, condition) for a in effects.accesses))

    def _under(self, access: Access, condition: Condition) -> Access:
        if access.section is None:
            return access.uncertain()
        # What the section itself mentions is bound already.
        names = frozenset(n for part in condition for linear, _ in part for n in linear.names())
        bound, conditions, origins = self.environment.terms.needed(names.difference(access.section.bound))
        new = [name for name in bound if name not in access.section.bound]
        section = access.section.constrained(new, (condition, *conditions), origins)
        return access.within(section, access.must and self._runs_through(section))

    @staticmethod
    def _impossible(condition: Condition) -> bool:
        def false(linear: Linear, op: str) -> bool:
            return not linear.terms and (linear.constant != 0 if op == "=" else linear.constant < 0)

        return all(any(false(linear, op) for linear, op in part) for part in condition)

    def _loop(self, loop: Loop) -> Effects:
        def read_header() -> None:
            for part in (loop.lower, loop.upper, loop.step):
                self._value(part)
            self._touch_scalar(loop.variable, writes=True)

        head = self._simple(read_header, loop.span)
        lower, upper = self.environment.ends(loop)
        step = self.environment.linear(loop.step)
        keys, everything = self.analysis.written(loop.body, self.procedure)
        bounds = {e.symbol.key for e in (*loop.upper.walk(), *loop.step.walk()) if isinstance(e, Name)}
        if self._language() != "fortran" and (everything or bounds & keys):
            upper = None  # C evaluates its bound at every turn
        self.environment.forget(keys - {loop.variable.key}, everything)
        terms = self.environment.terms
        own = terms.of_turn(loop, (lower, upper, step))
        name = own.terms[0][0]
        terms.turns.add(name)
        conditions: list[Condition] = []
        exact = False
        if step is not None and not step.terms and step.constant != 0:
            low, high = (lower, upper) if step.constant > 0 else (upper, lower)
            if low is not None and terms.is_natural(low):
                terms.natural.add(name)
            if low is not None:
                conditions.append((((own.plus(low, -1), ">="),),))
            if high is not None:
                conditions.append((((high.plus(own, -1), ">="),),))
            exact = low is not None and high is not None
            if abs(step.constant) != 1 and lower is not None:
                turns = terms.define()
                terms.turns |= turns.names()
                conditions.append((((own.plus(lower, -1).plus(turns, -step.constant), "="),),))
            elif abs(step.constant) != 1:
                exact = False
        terms.defined[name] = tuple(conditions)
        before = self.environment.copy()
        self.environment.values[loop.variable.key] = own
        self.environment.changed.add(loop.variable.key)
        body = self._block(loop.body)
        self.environment = before
        self.environment.assign(loop.variable, None)
        leaves = out_of_loop(body.leaves, loop.label)
        if body.leaves:
            body = _perhaps(body)
        accesses = tuple(self._in_turns(a, name, exact) for a in body.accesses)
        return together([head, replace(body, accesses=accesses, leaves=leaves)])

    def _in_turns(self, access: Access, name: str, exact: bool) -> Access:
        """An access of a loop's body. What does not depend on the turn happens only if there is one."""
        if access.section is None or not access.must or not exact:
            return access.uncertain()
        section = access.section
        if name not in section.bound:
            section = section.constrained(*self.environment.terms.needed(frozenset({name})))
        return access.within(section, self._runs_through(section))

    def _unknown_turns(self, parts: Iterable[Expression], body: Block, statement: Statement) -> Effects:
        span, label = statement.span, statement.label
        parts = tuple(parts)
        keys, everything = self.analysis.written(body, self.procedure)
        plain = Walker(self.analysis, self.procedure, Environment(self.environment.terms, lost=True), sectionless=True)
        header = plain._simple(lambda: plain._values(parts), span)
        keys |= header.written_keys
        everything = everything or header.barrier is not None

        def read_header() -> None:
            # What a part sets holds for this turn alone.
            for part in parts:
                self.environment.forget(keys, everything)
                self._value(part)
            self.environment.forget(keys, everything)

        head = self._simple(read_header, span)
        before = self.environment.copy()
        inner = self._block(body)
        self.environment = before
        return _perhaps(together([head, replace(inner, leaves=out_of_loop(inner.leaves, label))]))

    def _values(self, parts: Iterable[Expression]) -> None:
        for part in parts:
            self._value(part)

    def _do(self, statement: Statement) -> None:
        match statement:
            case Assign(target=target, value=value, operator=operator):
                self._assign(target, value, operator)
            case Call():
                self._call(statement)
            case Evaluate(value=value):
                self._value(value)
            case Declare(variables=variables):
                for symbol, initial in variables:
                    if initial is not None:
                        self._value(initial)
                    self._touch_scalar(symbol, writes=True)
                    self.environment.assign(symbol, None if initial is None else self.environment.linear(initial))
                    if initial is not None:
                        self._exchange(Name(symbol), initial)
            case InputOutput(reads=reads, writes=writes, files=files):
                self._io = True
                if files:
                    self._states.add("synchronisation")
                for part in reads:
                    self._value(part)
                for part in writes:
                    self._target(part, must=False)
            case Allocate(objects=objects, reads=reads, writes=writes):
                self._states.add("heap")
                for part in reads:
                    self._value(part)
                for part in writes:
                    self._target(part, must=False)
                for item in objects:
                    for index in item.operands()[1:]:
                        self._value(index)
                    base = item.base if isinstance(item, Element) else item
                    self._target(base, must=False)
            case _:
                self._barrier = f"{type(statement).__name__} is not understood"

    # ---- expressions --------------------------------------------------------------------------------------------------

    def _assign(self, target: Expression, value: Expression, operator: str | None) -> None:
        self._value(value)
        if operator is not None:
            self._value(target)
        new = None
        if isinstance(target, Name) and target.symbol.type.base == "integer":
            kind = target.symbol.type
            wraps = kind.bytes or 0 if kind.unsigned else 0
            given = value if operator is None else Operation(operator, (target, value), wraps=wraps)
            new = self.environment.linear(given)
        self._target(target, must=True, value=new)
        self._exchange(target, value)

    def _exchange(self, target: Expression, value: Expression) -> None:
        """A part of an exchange of pointers: as nothing that uses either may come in between, all of it writes both."""
        for part in (target, value):
            if isinstance(part, Name) and part.symbol.pointer:
                for symbol in self.analysis.aliases.exchanged(part.symbol):
                    own = self._objects(Name(symbol))
                    self._found.append(Access(symbol, None, True, False, False, own, self._where))
                    self.environment.assign(symbol, None)

    def _value(self, expression: Expression) -> None:
        """The expression is read."""
        match expression:
            case Number() | Text() | Constant():
                return
            case Name(symbol=symbol):
                if symbol.storage is Storage.CONSTANT:
                    return
                if symbol.dimensions is not None and not symbol.pointer:
                    self._touch(expression, None, writes=False, must=False)
                else:
                    self._touch_scalar(symbol, writes=False)
            case Operation(operator="&&" | "||" | "?:", arguments=(first, *others)):
                self._value(first)
                for part in others:
                    self._value_perhaps(part)
            case Operation(arguments=arguments):
                for part in arguments:
                    self._value(part)
            case Element(base=base, indices=indices):
                for index in indices:
                    self._value(index)
                if not (isinstance(base, Name) and not base.symbol.pointer):
                    self._value(base)
                self._touch(expression, self._section(expression), writes=False, must=False)
            case Member(base=base):
                self._subexpressions(base)
                self._touch(expression, None, writes=False, must=False)
            case Deref(pointer=pointer):
                self._value(pointer)
                self._touch(expression, None, writes=False, must=False)
            case AddressOf(object=inner):
                self._subexpressions(inner)
            case Assignment(target=target, operator=operator, value=value):
                self._assign(target, value, operator)
            case Invocation():
                self._invoke(expression.name, expression.arguments, None)
            case Unread(mentions=mentions):
                self._barrier = self._barrier or f"{expression.text[:40]} is not understood"
                for part in mentions:
                    self._value(part)
                self.environment.forget(set(), everything=True)
            case _:
                for part in expression.operands():
                    self._value(part)

    def _value_perhaps(self, expression: Expression) -> None:
        """The expression is read, or it is not."""
        if not any(isinstance(e, Assignment | Invocation | Unread) for e in expression.walk()):
            self._value(expression)
            return
        before, found = self.environment.copy(), len(self._found)
        self._value(expression)
        self._found[found:] = [access.uncertain() for access in self._found[found:]]
        joined = before.copy()
        joined.join(before, self.environment)
        self.environment = joined

    def _subexpressions(self, place: Expression) -> None:
        """What is read to find a place, the place itself not included."""
        match place:
            case Element(base=base, indices=indices):
                for index in indices:
                    self._value(index)
                if isinstance(base, Name):
                    if base.symbol.pointer:
                        self._value(base)
                else:
                    self._subexpressions(base)
            case Member(base=base):
                self._subexpressions(base)
            case Deref(pointer=pointer):
                self._value(pointer)
            case Name():
                return
            case _:
                self._value(place)

    def _target(self, place: Expression, *, must: bool, value: Linear | None = None) -> None:
        """The place is written."""
        match place:
            case Name(symbol=symbol) if symbol.dimensions is None or symbol.pointer:
                self._touch_scalar(symbol, writes=True)
                self.environment.assign(symbol, value if symbol.type.base == "integer" else None)
            case Name() | Element():
                self._subexpressions(place)
                base = place.base if isinstance(place, Element) else place
                self.environment.forget_requests({base.symbol.key} if isinstance(base, Name) else None)
                section = self._section(place) if isinstance(place, Element) else None
                exact = self._is_exact(section) and not _leaves_gaps(place)
                self._touch(place, section, writes=True, must=must and exact)
            case Member() | Deref():
                self._subexpressions(place)
                self._touch(place, None, writes=True, must=False)
            case Cast(value=inner):
                self._target(inner, must=False)
            case _:
                self._barrier = self._barrier or "an assignment to something that is not understood"
                self.environment.forget(set(), everything=True)

    def _is_exact(self, section: Section | None) -> bool:
        """Every subscript is known in terms of the beginning and of loops that surely take all their turns."""
        return section is not None and None not in section.subscripts and self._runs_through(section)

    def _runs_through(self, section: Section) -> bool:
        """Whether what is bound in the section takes on all its values, not one of them that nobody knows."""
        return self.environment.terms.turns.issuperset(section.bound)

    def _section(self, element: Element) -> Section | None:
        if self.sectionless or not isinstance(element.base, Name):
            return None
        symbol = element.base.symbol
        if symbol.pointer and self.environment.is_changed(symbol):
            return None
        return self._bound(Section(tuple(map(self.environment.subscript, element.indices))))

    def declared(self, bound: Expression | None) -> Linear | None:
        """What an array's declared bound is worth, where nothing has changed it since the procedure began."""
        if bound is None or (self.sectionless and not isinstance(bound, Number)):
            return None
        return self.environment.linear(bound) if self.analysis.stays(bound, self.procedure) else None

    def _bound(self, section: Section) -> Section:
        bound, conditions, origins = self.environment.terms.needed(section.names())
        return section.constrained(bound, conditions, origins) if bound or origins else section

    def _touch_scalar(self, symbol: Symbol, *, writes: bool) -> None:
        if (id(symbol), writes) in self._scalars:
            return
        self._scalars.add((id(symbol), writes))
        if symbol.target or symbol.pointer or (symbol.storage is Storage.ARGUMENT and not symbol.by_value):
            memory = self._objects(Name(symbol))
            self._found.append(Access(symbol, None, writes, writes, False, memory, self._where))
        else:
            self._found.append(self.analysis.scalar(symbol, writes=writes).at(self._where))
        if symbol.volatile:
            self._states.add(_VOLATILE)

    def _touch(self, place: Expression, section: Section | None, *, writes: bool, must: bool) -> None:
        base = place.base if isinstance(place, Element) else place
        symbol = base.symbol if isinstance(base, Name) else None
        through = symbol is not None and symbol.pointer and symbol.type.base == "pointer"
        memory = self._objects(place)
        stale = through and symbol is not None and self.environment.is_changed(symbol)
        self._found.append(Access(symbol, section, writes, must, through, memory, self._where, stale=stale))
        if any(s is not None and s.volatile for s in (symbol, *(m.symbol for m in memory))):
            self._states.add(_VOLATILE)
        if writes:
            self.environment.changed |= {m.key for m in memory}
            if symbol is not None:
                # Of a pointer it is what it points to that changes.
                self.environment.changed |= set() if through else {symbol.key}
            self._forget_scalars(memory)

    def _forget_scalars(self, memory: Iterable[Memory]) -> None:
        """Scalars that were written through a pointer or by an unknown hand are worth something else now."""
        environment = self.environment
        for item in memory:
            if item == UNKNOWN:
                environment.forget({k for k in environment.values}, everything=True)
            elif item.symbol is not None and item.symbol.dimensions is None:
                environment.forget({item.symbol.key})

    def _objects(self, place: Expression) -> frozenset[Memory]:
        return self.analysis.aliases.objects(place, self.analysis.origin(self.procedure))

    # ---- calls --------------------------------------------------------------------------------------------------------

    def _call(self, call: Call) -> None:
        if call.keywords:
            self._barrier = f"the order of the keyword arguments of {call.name} is not known"
        self._invoke(call.name, call.arguments, call)
        if call.result is not None:
            self._target(call.result, must=True)

    def _invoke(self, name: str | None, arguments: Sequence[Expression], call: Call | None) -> None:
        if name is None:
            self._barrier = self._barrier or "a call through a pointer"
        callee = self.analysis.program.resolve(name, self.procedure)
        if callee is not None:
            self._call_known(callee, arguments)
            return
        message = mpi.lookup(name) if name is not None and mpi.is_mpi_name(name) else None
        if message is not None:
            self._message(message, arguments, call)
            return
        library = known.lookup(name, self._language()) if name is not None else None
        if library is None:
            self._barrier = self._barrier or f"{name} is not in the sources"
            for argument in arguments:
                self._value(argument)
            self.environment.forget(set(), everything=True)
            return
        self._library(library, arguments)

    def _language(self) -> str:
        return self.analysis.program.sources[self.procedure.source].language

    def _library(self, library: known.Known, arguments: Sequence[Expression]) -> None:
        read, written = library.arguments_read(arguments), library.arguments_written(arguments)
        for number, argument in enumerate(arguments):
            if self._language() == "fortran":
                if number in written:
                    self._target(argument, must=False)
                elif library.inquiry and isinstance(argument, Name):
                    self._asked(argument, library)
                else:
                    self._value(argument)
                continue
            self._value(argument)
            if number in read:
                self._pointee(argument, writes=False)
            if number in written:
                self._pointee(argument, writes=True)
        for number in library.calls:
            self._called_back(library.name, arguments[number] if number < len(arguments) else None)
        self._io = self._io or library.io
        if library.state and not (_is_of_standard_stream(library, arguments) and not self.analysis.redirects):
            self._states.add(library.state)
        if library.io and self.analysis.unbuffers:
            self._states.add("synchronisation")
        if library.allocates or library.frees:
            self._states.add("heap")
        if library.ends:
            self._barrier = self._barrier or f"{library.name} ends the program"

    def _asked(self, argument: Name, library: known.Known) -> None:
        """Fortran: an inquiry about a variable."""
        if not library.reads_nothing_of(argument):
            self._shape(argument)

    def _shape(self, place: Expression) -> None:
        """Fortran: the shape or the status of an array is asked for. What changes these writes all of it; what is put into its
        elements changes neither."""
        dimensions = place.symbol.dimensions if isinstance(place, Name) else None
        if not isinstance(place, Name) or dimensions is None or place.symbol.pointer or self.sectionless:
            self._value(place)
        else:
            nothing = Section((None,) * len(dimensions), conditions=(_NEVER,))
            self._touch(place, nothing, writes=False, must=False)

    def _called_back(self, name: str, function: Expression | None) -> None:
        """A library calls this function as often as it likes, with what it likes."""
        function = without_casts(function)
        function = function.object if isinstance(function, AddressOf) else function
        callee = self.analysis.program.resolve(getattr(function, "name", None), self.procedure)
        summary = None if callee is None else self.analysis.summary(callee)
        if summary is None or summary.barrier or summary.leaves or summary.operations:
            self._barrier = self._barrier or f"{name} may call a procedure of the program"
            self.environment.forget(set(), everything=True)
            return
        for access in summary.accesses:
            self._found.append(Access(None, None, access.writes, False, False, access.memory, self._where))
        self.environment.forget({key for key in summary.written_keys if self._is_scalar(key)})
        self.environment.changed |= summary.written_keys
        self._io = self._io or summary.io
        self._states |= summary.states

    def _pointee(self, argument: Expression, *, writes: bool) -> None:
        """C: what an argument points to is touched, in a part that is not known."""
        if isinstance(argument, AddressOf) and isinstance(argument.object, Name):
            target = argument.object
            if target.symbol.dimensions is None and not writes:
                self._touch(target, None, writes=False, must=False)
                return
        memory = self.analysis.aliases.pointees(argument, self.analysis.origin(self.procedure))
        symbol, through = None, False
        inner, addressed = argument, False
        inner = without_casts(inner)
        if isinstance(inner, AddressOf):
            inner, addressed = inner.object, True
            if isinstance(inner, Element):
                inner, addressed = inner.base, False
        if isinstance(inner, Name):
            symbol, through = inner.symbol, inner.symbol.pointer and not addressed
        stale = through and symbol is not None and self.environment.is_changed(symbol)
        self._found.append(Access(symbol, None, writes, False, through, memory, self._where, stale=stale))
        if writes:
            self.environment.changed |= {m.key for m in memory}
            self._forget_scalars(memory)

    def _message(self, message: mpi.MpiCall, arguments: Sequence[Expression], call: Call | None) -> None:
        fortran = self._language() == "fortran"
        parameters = mpi.fortran_parameters(message) if fortran else message.parameters
        if message.kind is mpi.Kind.COMPLETION or message.name in ("MPI_Start", "MPI_Startall"):
            # First: the call itself changes the requests.
            self._found += self._in_flight(message, arguments)
        for number, argument in enumerate(arguments):
            parameter = parameters[number] if number < len(parameters) else None
            if parameter is None:
                self._barrier = f"{message.name} has more arguments than expected"
                continue
            if not self._buffer_argument(message, number, arguments, parameter):
                self._message_argument(argument, parameter, fortran)
            self._touch_beyond(message, number, arguments, parameter)
        if not message.blocking and mpi.index_of(message, mpi.Role.REQUEST) is not None:
            self._remember_started(message, arguments)
        if message.kind in (mpi.Kind.ONE_SIDED, mpi.Kind.IO, mpi.Kind.OTHER):
            self._barrier = f"{message.name} may touch memory it does not name"
        if message.synchronises and message.kind is not mpi.Kind.SETUP:
            self._states.add("synchronisation")
        if message.kind in (mpi.Kind.ABORT,) or message.name in ("MPI_Init", "MPI_Init_thread", "MPI_Finalize"):
            self._barrier = f"{message.name} begins or ends MPI"
        if message.kind is mpi.Kind.LOCAL and not message.buffers:
            self._states.add("clock" if "time" in message.name.lower() else "mpi")
        if message.kind in _TRAFFIC or (message.kind is mpi.Kind.SETUP and message.collective):
            self._operations.append(self._operation(message, arguments, call))
        place = mpi.index_of(message, mpi.Role.OP)
        if place is not None and place < len(arguments):
            operator = arguments[place]
            if not isinstance(operator, Constant) or operator.name not in mpi.CONSTANTS:
                self._barrier = self._barrier or f"{message.name} may call a procedure of the program"
        if _CALLING_BACK.match(message.name) and self.analysis.has_key_values:
            self._barrier = self._barrier or f"{message.name} may call a procedure of the program"
        for number, argument in enumerate(arguments):
            if isinstance(argument, Constant) and argument.name == "MPI_IN_PLACE":
                for buffer in mpi.buffers_in_place(message, number):
                    if buffer.reads and buffer.argument < len(arguments):
                        self._read_buffer(arguments[buffer.argument])

    def _read_buffer(self, argument: Expression) -> None:
        if self._language() == "fortran":
            base = argument.base if isinstance(argument, Element) else argument
            self._touch(base, None, writes=False, must=False)
        else:
            self._pointee(argument, writes=False)

    def _buffer_argument(
        self, message: mpi.MpiCall, number: int, arguments: Sequence[Expression], parameter: mpi.Parameter
    ) -> bool:
        """A buffer of which it is certain what elements it is."""
        if parameter.role not in _BUFFER_ROLES or self.sectionless:
            return False
        found = section_of(message, number, arguments, self.environment, self.declared, self._language() == "fortran")
        if found is None:
            return False
        symbol, section = found
        self._subexpressions(_without_address(arguments[number]))
        if symbol.pointer:
            self._touch_scalar(symbol, writes=False)
        place = Element(Name(symbol), (Number(0),)) if symbol.pointer else Name(symbol)
        for wanted, writes in ((parameter.reads, False), (parameter.writes, True)):
            if wanted:
                self._touch(place, self._bound(section), writes=writes, must=False)
        return True

    def _touch_beyond(
        self, message: mpi.MpiCall, number: int, arguments: Sequence[Expression], parameter: mpi.Parameter
    ) -> None:
        buffer = next((b for b in message.buffers if b.argument == number), None)
        memory = frozenset[Memory]() if buffer is None else self.analysis.beyond(buffer, arguments)
        for wanted, writes in ((parameter.reads, False), (parameter.writes, True)):
            if wanted and memory:
                self._found.append(Access(None, None, writes, False, False, memory, self._where))
                if writes:
                    self.environment.changed |= {m.key for m in memory}
                    self._forget_scalars(memory)

    def _remember_started(self, message: mpi.MpiCall, arguments: Sequence[Expression]) -> None:
        """What the request of a nonblocking call stands for from here on."""
        slots = slots_of(message, arguments, self.environment, self.declared)
        if slots is None:
            self.environment.forget_requests()
            return
        if self._depth > 0 or self.sectionless or not message.buffers:
            self.environment.forget_requests({slot[0] for slot in slots})
            return
        buffers = []
        for buffer in message.buffers:
            if buffer.argument >= len(arguments):
                continue
            found = section_of(
                message, buffer.argument, arguments, self.environment, self.declared, self._language() == "fortran"
            )
            memory = self.analysis.memory_of(arguments[buffer.argument], self.procedure)
            symbol, section = (None, None) if found is None else (found[0], self._bound(found[1]))
            through = symbol is not None and symbol.pointer
            buffers.append(Access(symbol, section, buffer.writes, False, through, memory, self._where))
        for slot in slots:
            self.environment.started[slot] = tuple(buffers)

    def _in_flight(self, message: mpi.MpiCall, arguments: Sequence[Expression]) -> list[Access]:
        """Buffers of the nonblocking calls that this one may complete, or start: in between they belong to MPI."""
        place = mpi.index_of(message, mpi.Role.REQUEST)
        place = mpi.index_of(message, mpi.Role.REQUESTS) if place is None else place
        if place is None or place >= len(arguments):
            return []
        copied = self.analysis.copies_requests
        slots = None if copied else slots_of(message, arguments, self.environment, self.declared)
        if slots is not None and all(slot in self.environment.started for slot in slots):
            return [self._still(a).at(self._where) for slot in slots for a in self.environment.started[slot]]
        requests = self.analysis.memory_of(arguments[place], self.procedure)
        found = []
        for started in self.analysis.started():
            if copied or self.analysis.aliases.may_overlap(requests, started.requests):
                for memory, writes in started.buffers:
                    found.append(Access(None, None, writes, False, False, memory, self._where))
        return found

    def _still(self, access: Access) -> Access:
        """An access that lasts; what a pointer pointed to then it may point to no more."""
        if access.symbol is None or not access.through or not self.environment.is_changed(access.symbol):
            return access
        return replace(access, section=None, stale=True)

    def _written(self, statement: Written) -> None:
        """What a motion says of text it wrote: variables, without sections."""
        self._barrier = statement.barrier
        self._found += statement.accesses
        for access in statement.accesses:
            if access.writes:
                keys = {m.key for m in access.memory}
                keys |= {access.symbol.key} if access.symbol is not None and not access.through else set()
                self.environment.forget({key for key in keys if self._is_scalar(key)})
                self.environment.changed |= keys
                self._forget_scalars(access.memory)

    def _phase(self, phase: Phase) -> None:
        """A communication's part touches its buffers when it copies, or as long as they are in use."""
        call = phase.call
        assert call.name is not None
        message = mpi.lookup(call.name)
        assert message is not None
        arguments = list(call.arguments)
        if phase.part in _ENDINGS and phase.wait is not None:
            wait = mpi.lookup(phase.wait.name or "")
            assert wait is not None
            for number, argument in enumerate(phase.wait.arguments):
                parameters = mpi.fortran_parameters(wait) if self._language() == "fortran" else wait.parameters
                if number < len(parameters) and parameters[number].role not in (mpi.Role.REQUEST, mpi.Role.REQUESTS):
                    self._message_argument(argument, parameters[number], self._language() == "fortran")
        if phase.part is not Part.SEND:
            # One communication's parts keep their order, and its next one waits for its end.
            slot = frozenset({Memory(f"slot {self.procedure.source}:{phase.slot}")})
            self._found.append(Access(None, None, True, False, False, slot, self._where))
        fortran = self._language() == "fortran"
        parameters = mpi.fortran_parameters(message) if fortran else message.parameters
        for number, argument in enumerate(arguments):
            if number >= len(parameters):
                break
            parameter = parameters[number]
            if not phase.copies and parameter.role in _BUFFER_ROLES:
                # It must be the same memory at the start and at the end, as if each read what the other left.
                parameter = replace(parameter, reads=True)
            if self._concerns(phase, parameter):
                if not self._buffer_argument(message, number, arguments, parameter):
                    self._message_argument(argument, parameter, fortran)
                self._touch_beyond(message, number, arguments, parameter)
        if phase.call.result is not None and phase.part in _ENDINGS | {Part.SEND} and phase.wait is None:
            self._target(phase.call.result, must=True)
        name = "MPI_Wait" if phase.part in _ENDINGS else (message.nonblocking or message.name)
        started = mpi.lookup(name)
        assert started is not None
        if phase.part in _ENDINGS:
            self._operations.append(MessageOperation(started, call, self.procedure.key, None, None, None))
        else:
            self._operations.append(self._operation(started, arguments, call))

    @staticmethod
    def _concerns(phase: Phase, parameter: mpi.Parameter) -> bool:
        """Whether this part of a communication reads or writes the argument."""
        role = parameter.role
        if role in (mpi.Role.REQUEST, mpi.Role.REQUESTS):
            return False
        starting = phase.part in (Part.POST, Part.SEND, Part.START)
        if role is mpi.Role.SEND_BUFFER:
            return starting or not phase.copies
        if role in (mpi.Role.RECV_BUFFER, mpi.Role.BOTH_BUFFER):
            # In place, memory belongs to MPI from the start to the end.
            return not phase.copies or phase.part in _ENDINGS or role is mpi.Role.BOTH_BUFFER
        if role in (mpi.Role.STATUS, mpi.Role.STATUSES, mpi.Role.IERROR):
            return phase.part in _ENDINGS or phase.part is Part.SEND
        if role in (mpi.Role.COUNTS, mpi.Role.DISPLACEMENTS, mpi.Role.TYPES):
            return True  # they must not change while MPI may still look at them
        return starting

    def _operation(self, message: mpi.MpiCall, arguments: Sequence[Expression], call: Call | None) -> MessageOperation:
        def text(*roles: mpi.Role) -> str | None:
            for role in roles:
                place = mpi.index_of(message, role)
                if place is not None and place < len(arguments):
                    return self.environment.canonical(arguments[place])
            return None

        return MessageOperation(
            message,
            call,
            self.procedure.key,
            text(mpi.Role.COMM),
            text(mpi.Role.DEST, mpi.Role.SOURCE, mpi.Role.ROOT),
            text(mpi.Role.SEND_TAG, mpi.Role.RECV_TAG),
            self._is_in_turn(message),
        )

    def _is_in_turn(self, message: mpi.MpiCall) -> bool:
        """Whether it may matter to a receive from anyone what this call lets others send, or what it sends, and when."""
        releases = message.kind is mpi.Kind.RECV and self.analysis.has_synchronous_sends
        return (releases or message.kind in _SENDING) and self.analysis.wildcards.any

    def _message_argument(self, argument: Expression, parameter: mpi.Parameter, fortran: bool) -> None:
        inner = argument
        inner = without_casts(inner)
        if isinstance(inner, Constant | Number | Text):
            return
        if fortran:
            if parameter.writes and is_place(argument):
                self._target_or_part(argument, parameter)
            if parameter.reads or not parameter.writes:
                self._read_part(argument, parameter)
            return
        if isinstance(inner, AddressOf):
            self._subexpressions(inner.object)
            place = inner.object
            if isinstance(place, Name) and place.symbol.dimensions is None:
                if parameter.reads:
                    self._touch(place, None, writes=False, must=False)
                if parameter.writes:
                    self._touch(place, None, writes=True, must=False)
                return
        else:
            self._value_of_pointer(argument)
        pointer_like = _points(inner)
        if pointer_like and (parameter.reads or parameter.writes):
            if parameter.reads:
                self._pointee(argument, writes=False)
            if parameter.writes:
                self._pointee(argument, writes=True)

    def _value_of_pointer(self, argument: Expression) -> None:
        if isinstance(argument, Name) and argument.symbol.dimensions is not None and not argument.symbol.pointer:
            return  # an array's address, not its elements
        self._value(argument)

    def _target_or_part(self, argument: Expression, parameter: mpi.Parameter) -> None:
        """Fortran: MPI writes from this element on; scalars take a value nobody knows."""
        if isinstance(argument, Element) and parameter.role in _BUFFER_ROLES:
            self._subexpressions(argument)
            self._touch(argument, None, writes=True, must=False)
        elif isinstance(argument, Name) and argument.symbol.dimensions is None:
            self._touch_scalar(argument.symbol, writes=True)
            self.environment.assign(argument.symbol, None)
        else:
            self._target(argument, must=False)

    def _read_part(self, argument: Expression, parameter: mpi.Parameter) -> None:
        if isinstance(argument, Element) and parameter.role in _BUFFER_ROLES:
            self._subexpressions(argument)
            self._touch(argument, None, writes=False, must=False)
        else:
            self._value(argument)

    # ---- calls of the program's own procedures ------------------------------------------------------------------------

    def _call_known(self, callee: Procedure, arguments: Sequence[Expression]) -> None:
        summary = self.analysis.summary(callee)
        fortran = self._language() == "fortran"
        for number, argument in enumerate(arguments):
            by_value = number < len(callee.parameters) and callee.parameters[number].by_value
            if fortran and is_place(argument) and not by_value:
                self._subexpressions(argument)
            elif fortran:
                self._value(argument)
            else:
                self._argument_by_value(argument)
        does = called(self, callee, arguments, self._where)
        if fortran:
            self._hand_shapes(callee, arguments, does.accesses)
        self._found += does.accesses
        self._operations += does.operations
        self.environment.forget({key for key in does.written if self._is_scalar(key)})
        self.environment.changed |= does.written
        self.environment.forget_requests(does.written)
        if does.everything:
            self.environment.forget(set(), everything=True)
        self._io = self._io or summary.io
        self._states |= summary.states
        if summary.leaves:
            self._barrier = self._barrier or f"{callee.name} may end the program"
        if summary.barrier:
            self._barrier = self._barrier or f"{callee.name}: {summary.barrier}"
            self.environment.forget(set(), everything=True)

    def _hand_shapes(self, callee: Procedure, arguments: Sequence[Expression], accesses: Sequence[Access]) -> None:
        """Fortran: of an argument that a callee does not touch it may still ask for the shape or the status."""
        for number, argument in enumerate(arguments):
            asked = number >= len(callee.parameters) or _has_shape_of_argument(callee.parameters[number])
            if asked and is_place(argument) and _may_be_reshaped(argument):
                memory = self._objects(argument)
                if not any(memory & access.memory for access in accesses):
                    self._shape(argument)

    def _argument_by_value(self, argument: Expression) -> None:
        if isinstance(argument, AddressOf):
            self._subexpressions(argument.object)
        else:
            self._value_of_pointer(argument)

    def _is_scalar(self, key: str) -> bool:
        symbol = self.analysis.program.globals.get(key) or self._own.get(key)
        return symbol is None or symbol.dimensions is None

    @cached_property
    def _own(self) -> Mapping[str, Symbol]:
        return {symbol.key: symbol for symbol in self.procedure.symbols.values()}


def _is_of_standard_stream(library: known.Known, arguments: Sequence[Expression]) -> bool:
    """Whether the call works on a stream that is no file of other ranks', too."""
    if library.stream is None or library.stream >= len(arguments):
        return False
    stream = without_casts(arguments[library.stream])
    return isinstance(stream, Name) and stream.symbol.key in _STANDARD_STREAMS


def _has_shape_of_argument(dummy: Symbol) -> bool:
    """Fortran: whether something of what it is given is seen in it besides its memory: a shape, a length, a status."""
    shaped = dummy.dimensions is not None and not has_explicit_shape(dummy.dimensions)
    plain = dummy.type.base in ("integer", "real", "complex", "logical")
    return shaped or not plain or dummy.allocatable or dummy.pointer or dummy.optional


def _may_be_reshaped(place: Expression) -> bool:
    """Fortran: whether a statement may give it another shape, or make it another variable. Of components that is not known."""
    while isinstance(place, Element):
        place = place.base
    return not isinstance(place, Name) or place.symbol.allocatable or place.symbol.pointer


def _leaves_gaps(place: Expression) -> bool:
    """Whether a section of the array has a stride."""
    return any(isinstance(e, Slice) and e.step not in (None, Number(1), Number(-1)) for e in place.walk())


def in_sequence(parts: Sequence[Effects]) -> list[Effects]:
    """Effects of a list; what comes after a way out may not happen."""
    found: list[Effects] = []
    left = False
    for part in parts:
        found.append(_perhaps(part) if left else part)
        left = left or part.leaves is not None
    return found


def _perhaps(effects: Effects) -> Effects:
    """Effects that may not happen."""
    return replace(effects, accesses=tuple(a.uncertain() for a in effects.accesses))


def _without_address(argument: Expression) -> Expression:
    argument = without_casts(argument)
    return argument.object if isinstance(argument, AddressOf) else argument


def _points(expression: Expression) -> bool:
    """C: the expression's value may be an address that is handed on."""
    return not shape_of(expression).plain


# What was given with a key value is called when an attribute is given another value, or its object goes.
_CALLING_BACK = re.compile(
    r"MPI_((Comm|Type|Win)_(set|delete)_attr|Attr_(put|delete)|(Type|Win|Comm)_(free|dup\w*|idup))\Z"
)
_SENDING = frozenset({mpi.Kind.SEND, mpi.Kind.SENDRECV, mpi.Kind.COLLECTIVE})
_NEVER: Condition = (((Linear.number(-1), ">="),),)
_VOLATILE = "volatile variables"
_STANDARD_STREAMS = frozenset({"stdin", "stdout", "stderr"})
_ENDINGS = frozenset({Part.ARRIVE, Part.END})
_BUFFER_ROLES = frozenset({mpi.Role.SEND_BUFFER, mpi.Role.RECV_BUFFER, mpi.Role.BOTH_BUFFER})
_TRAFFIC = frozenset(
    {
        mpi.Kind.SEND,
        mpi.Kind.RECV,
        mpi.Kind.SENDRECV,
        mpi.Kind.COLLECTIVE,
        mpi.Kind.BARRIER,
        mpi.Kind.COMPLETION,
        mpi.Kind.PROBE,
        mpi.Kind.ONE_SIDED,
        mpi.Kind.PERSISTENT,
        mpi.Kind.IO,
    }
)
