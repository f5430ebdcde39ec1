"""The transfer function from statements to effects: goes through statements in order, tracking the values of variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from lapwing.affine.affine import Affine, Condition
from lapwing.affine.sections import Section
from lapwing.overlap import mpi
from lapwing.overlap.analysis.effects import messages
from lapwing.overlap.analysis.effects.actual_formal import call_effects, is_place
from lapwing.overlap.analysis.effects.effects import OUT_OF_LOOPS, Effects, out_of_loop, together
from lapwing.overlap.analysis.effects.state import State
from lapwing.overlap.analysis.effects.value_numbering import Environment
from lapwing.overlap.ir.accesses import Access
from lapwing.overlap.ir.expressions import (
    AddressOf,
    Assignment,
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
from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.ir.rewriter import has_explicit_shape
from lapwing.overlap.ir.split_phase import SplitPhaseOperation, Written
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
    Nothing,
    Opaque,
    Select,
    Statement,
    While,
)
from lapwing.overlap.libraries.summaries import LibrarySummary
from lapwing.overlap.source.spans import Span


class Transfer(State):
    """The transfer function of statements: the effects of each, and the environment after it."""

    # ---- statements ---------------------------------------------------------------------------------------------------

    def statement(self, statement: Statement) -> Effects:
        """The effects of the statement; afterwards the environment is the one behind it."""
        match statement:
            case Nothing():
                return Effects()
            case If(condition=condition, then=then, otherwise=otherwise):
                return self._branches(condition, then, otherwise, statement.span)
            case Loop():
                return self._loop(statement)
            case While(parts=parts, body=body):
                return self._unknown_iterations(parts, body, statement)
            case Select(selector=selector, cases=cases):
                head = self._simple(lambda: self.value(selector), statement.span)
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
                    head = self._simple(lambda: self.value(value), statement.span)
                far = kind in ("break", "continue") and statement.to is not None
                leaves = f"{OUT_OF_LOOPS} to {statement.to}" if far else kind
                return replace(head, leaves=leaves, where=statement.span)
            case SplitPhaseOperation():
                return self._simple(lambda: messages.of_split_phase(self, statement), statement.span)
            case Written():
                return self._simple(lambda: self._written(statement), statement.span)
            case Opaque(reason=reason):
                self.environment.forget(set(), everything=True)
                return Effects(barrier=reason, where=statement.span)
        return self._simple(lambda: self._do(statement), statement.span)

    def _simple(self, work: object, span: Span) -> Effects:
        self.found, self._scalars, self.operations, self.states = [], set(), [], set()
        self._io, self.barrier, self.where = False, None, span
        work()  # type: ignore[operator]
        return Effects(
            tuple(dict.fromkeys(self.found)),
            tuple(self.operations),
            self._io,
            frozenset(self.states),
            None,
            self.barrier,
            span if self.barrier else None,
        )

    def _block(self, block: Block) -> Effects:
        self.depth += 1
        effects = together(in_sequence([self.inner(s) for s in block.statements]))
        self.depth -= 1
        return effects

    def inner(self, statement: Statement) -> Effects:
        """The effects of a statement of a block. Without sections, those of a loop nest do not depend on where it stands."""
        if not (self.sectionless and isinstance(statement, Loop) and self.analysis.is_nest(statement, self.procedure)):
            return self.statement(statement)
        keys, everything = self.analysis.written(statement.body, self.procedure)
        self.environment.forget(keys, everything)
        self.environment.assign(statement.variable, None)
        return self.analysis.plain(statement, self.procedure)

    def _branches(self, condition: Expression, then: Block, otherwise: Block | None, span: Span) -> Effects:
        head = self._simple(lambda: self.value(condition), span)
        before = self.environment
        value_then = before.condition(condition)
        value_else = before.condition(condition, holds=False)
        self.environment = before.copy()
        one = self._guarded(self._block(then), value_then)
        after_one = self.environment
        self.environment = before.copy()
        two = self._guarded(self._block(otherwise), value_else) if otherwise is not None else Effects()
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
        # Terms in the section itself are bound already.
        names = frozenset(n for part in condition for form, _ in part for n in form.names)
        bound, conditions, origins = self.environment.terms.needed(names.difference(access.section.bound))
        new = [name for name in bound if name not in access.section.bound]
        section = access.section.constrained(new, (condition, *conditions), origins)
        return access.within(section, access.must and self.runs_through(section))

    @staticmethod
    def _impossible(condition: Condition) -> bool:
        def false(form: Affine, op: str) -> bool:
            return not form.terms and (form.constant != 0 if op == "=" else form.constant < 0)

        return all(any(false(form, op) for form, op in part) for part in condition)

    def _loop(self, loop: Loop) -> Effects:
        def read_header() -> None:
            for part in (loop.lower, loop.upper, loop.step):
                self.value(part)
            self.access_scalar(loop.variable, writes=True)

        head = self._simple(read_header, loop.span)
        lower, upper = self.environment.ends(loop)
        step = self.environment.affine(loop.step)
        keys, everything = self.analysis.written(loop.body, self.procedure)
        if self.language().rechecks_bounds and (everything or self._kept_in((loop.upper, loop.step)) & keys):
            upper = None
        self.environment.forget(keys - {loop.variable.key}, everything)
        terms = self.environment.terms
        own = terms.of_iteration(loop, (lower, upper, step))
        name = own.terms[0][0]
        terms.iterations.add(name)
        conditions: list[Condition] = []
        exact = False
        if step is not None and not step.terms and step.constant != 0:
            low, high = (lower, upper) if step.constant > 0 else (upper, lower)
            if low is not None and terms.is_natural(low):
                terms.natural.add(name)
            if low is not None:
                conditions.append((((own - low, ">="),),))
            if high is not None:
                conditions.append((((high - own, ">="),),))
            exact = low is not None and high is not None
            if abs(step.constant) != 1 and lower is not None:
                iterations = terms.define()
                terms.iterations |= iterations.names
                conditions.append((((own - lower - iterations * step.constant, "="),),))
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
        accesses = tuple(self._in_iterations(a, name, exact) for a in body.accesses)
        return together([head, replace(body, accesses=accesses, leaves=leaves)])

    def _kept_in(self, expressions: Iterable[Expression]) -> frozenset[str]:
        """Keys of the variables in the expressions, and of the memory that members in them lie in."""
        parts = [e for expression in expressions for e in expression.walk()]
        memory = (self.environment.terms.memory_of(e) or frozenset() for e in parts if isinstance(e, Member))
        return frozenset(e.symbol.key for e in parts if isinstance(e, Name)).union(*memory)

    def _in_iterations(self, access: Access, name: str, exact: bool) -> Access:
        """An access in a loop's body, over all iterations. One that does not depend on the iteration happens only if there is
        one."""
        if access.section is None or not access.must or not exact:
            return access.uncertain()
        section = access.section
        if name not in section.bound:
            section = section.constrained(*self.environment.terms.needed(frozenset({name})))
        return access.within(section, self.runs_through(section))

    def _unknown_iterations(self, parts: Iterable[Expression], body: Block, statement: Statement) -> Effects:
        span, label = statement.span, statement.label
        parts = tuple(parts)
        keys, everything = self.analysis.written(body, self.procedure)
        plain = Transfer(
            self.analysis, self.procedure, Environment(self.environment.terms, lost=True), sectionless=True
        )
        header = plain._simple(lambda: plain._values(parts), span)
        keys |= header.written_keys
        everything = everything or header.barrier is not None

        def read_header() -> None:
            # What a part sets holds only in this iteration.
            for part in parts:
                self.environment.forget(keys, everything)
                self.value(part)
            self.environment.forget(keys, everything)

        head = self._simple(read_header, span)
        before = self.environment.copy()
        inner = self._block(body)
        self.environment = before
        return _perhaps(together([head, replace(inner, leaves=out_of_loop(inner.leaves, label))]))

    def _values(self, parts: Iterable[Expression]) -> None:
        for part in parts:
            self.value(part)

    def _do(self, statement: Statement) -> None:
        match statement:
            case Assign(target=target, value=value, operator=operator):
                self._assign(target, value, operator)
            case Call():
                self._call(statement)
            case Evaluate(value=value):
                self.value(value)
            case Declare(variables=variables):
                for symbol, initial in variables:
                    if initial is not None:
                        self.value(initial)
                    self.access_scalar(symbol, writes=True)
                    self.environment.assign(symbol, None if initial is None else self.environment.affine(initial))
                    if initial is not None:
                        self._exchange(Name(symbol), initial)
            case InputOutput(reads=reads, writes=writes, files=files):
                self._io = True
                if files:
                    self.states.add("synchronisation")
                for part in reads:
                    self.value(part)
                for part in writes:
                    self.target(part, must=False)
            case Allocate(objects=objects, reads=reads, writes=writes):
                self.states.add("heap")
                for part in reads:
                    self.value(part)
                for part in writes:
                    self.target(part, must=False)
                for item in objects:
                    for index in item.operands()[1:]:
                        self.value(index)
                    base = item.base if isinstance(item, Element) else item
                    self.target(base, must=False)
            case _:
                self.barrier = f"{type(statement).__name__} is not understood"

    # ---- expressions --------------------------------------------------------------------------------------------------

    def _assign(self, target: Expression, value: Expression, operator: str | None) -> None:
        self.value(value)
        if operator is not None:
            self.value(target)
        new = None
        if isinstance(target, Name) and target.symbol.type.base == "integer":
            kind = target.symbol.type
            wraps = kind.bytes or 0 if kind.unsigned else 0
            given = value if operator is None else Operation(operator, (target, value), wraps=wraps)
            new = self.environment.affine(given)
        self.target(target, must=True, value=new)
        self._exchange(target, value)

    def _exchange(self, target: Expression, value: Expression) -> None:
        """Part of a pointer swap: since no use of either pointer may come between, every statement of it writes both."""
        for part in (target, value):
            if isinstance(part, Name) and part.symbol.pointer:
                for symbol in self.analysis.aliases.exchanged(part.symbol):
                    own = self.objects(Name(symbol))
                    self.found.append(Access(symbol, None, True, False, False, own, self.where))
                    self.environment.assign(symbol, None)

    def value(self, expression: Expression) -> None:
        """The expression is read."""
        match expression:
            case Number() | Text() | Constant():
                return
            case Name(symbol=symbol):
                if symbol.storage is Storage.CONSTANT:
                    return
                if symbol.dimensions is not None and not symbol.pointer:
                    self.access(expression, None, writes=False, must=False)
                else:
                    self.access_scalar(symbol, writes=False)
            case Operation(operator="&&" | "||" | "?:", arguments=(first, *others)):
                self.value(first)
                for part in others:
                    self._value_perhaps(part)
            case Operation(arguments=arguments):
                for part in arguments:
                    self.value(part)
            case Element(base=base, indices=indices):
                for index in indices:
                    self.value(index)
                if not (isinstance(base, Name) and not base.symbol.pointer):
                    self.value(base)
                self.access(expression, self.section(expression), writes=False, must=False)
            case Member(base=base):
                self.subexpressions(base)
                self.access(expression, None, writes=False, must=False)
            case Deref(pointer=pointer):
                self.value(pointer)
                self.access(expression, None, writes=False, must=False)
            case AddressOf(object=inner):
                self.subexpressions(inner)
            case Assignment(target=target, operator=operator, value=value):
                self._assign(target, value, operator)
            case Invocation():
                self._invoke(expression.name, expression.arguments, None)
            case Unread(mentions=mentions):
                self.barrier = self.barrier or f"{expression.text[:40]} is not understood"
                for part in mentions:
                    self.value(part)
                self.environment.forget(set(), everything=True)
            case _:
                for part in expression.operands():
                    self.value(part)

    def _value_perhaps(self, expression: Expression) -> None:
        """The expression may be read, or may not."""
        if not any(isinstance(e, Assignment | Invocation | Unread) for e in expression.walk()):
            self.value(expression)
            return
        before, found = self.environment.copy(), len(self.found)
        self.value(expression)
        self.found[found:] = [access.uncertain() for access in self.found[found:]]
        joined = before.copy()
        joined.join(before, self.environment)
        self.environment = joined

    # ---- calls --------------------------------------------------------------------------------------------------------

    def _call(self, call: Call) -> None:
        if call.keywords:
            self.barrier = f"the order of the keyword arguments of {call.name} is not known"
        self._invoke(call.name, call.arguments, call)
        if call.result is not None:
            self.target(call.result, must=True)

    def _invoke(self, name: str | None, arguments: Sequence[Expression], call: Call | None) -> None:
        if name is None:
            self.barrier = self.barrier or "a call through a pointer"
        callee = self.analysis.program.resolve(name, self.procedure)
        if callee is not None:
            self._call_procedure(callee, arguments)
            return
        message = mpi.lookup(name) if name is not None and mpi.is_mpi_name(name) else None
        if message is not None:
            messages.of_call(self, message, arguments, call)
            return
        library = self.language().library(name) if name is not None else None
        if library is None:
            self.barrier = self.barrier or f"{name} is not in the sources"
            for argument in arguments:
                self.value(argument)
            self.environment.forget(set(), everything=True)
            return
        self._library(library, arguments)

    def _library(self, library: LibrarySummary, arguments: Sequence[Expression]) -> None:
        read, written = library.arguments_read(arguments), library.arguments_written(arguments)
        for number, argument in enumerate(arguments):
            if self.language().by_reference:
                if number in written:
                    self.target(argument, must=False)
                elif library.inquiry and isinstance(argument, Name):
                    self._asked(argument, library)
                else:
                    self.value(argument)
                continue
            self.value(argument)
            if number in read:
                self.pointee(argument, writes=False)
            if number in written:
                self.pointee(argument, writes=True)
        for number in library.calls:
            self._called_back(library.name, arguments[number] if number < len(arguments) else None)
        self._io = self._io or library.io
        if library.state and not (_is_of_standard_stream(library, arguments) and not self.analysis.redirects):
            self.states.add(library.state)
        if library.io and self.analysis.unbuffers:
            self.states.add("synchronisation")
        if library.allocates or library.frees:
            self.states.add("heap")
        if library.ends:
            self.barrier = self.barrier or f"{library.name} ends the program"

    def _asked(self, argument: Name, library: LibrarySummary) -> None:
        """Fortran: an inquiry about a variable."""
        if not library.reads_nothing_of(argument):
            self._shape(argument)

    def _shape(self, place: Expression) -> None:
        """Fortran: an inquiry about an array's shape or status. Whatever changes these writes the whole array; assignments to
        elements change neither."""
        dimensions = place.symbol.dimensions if isinstance(place, Name) else None
        if not isinstance(place, Name) or dimensions is None or place.symbol.pointer or self.sectionless:
            self.value(place)
        else:
            nothing = Section((None,) * len(dimensions), conditions=(_NEVER,))
            self.access(place, nothing, writes=False, must=False)

    def _called_back(self, name: str, function: Expression | None) -> None:
        """A library may call this function any number of times, with any arguments."""
        function = without_casts(function)
        function = function.object if isinstance(function, AddressOf) else function
        callee = self.analysis.program.resolve(getattr(function, "name", None), self.procedure)
        summary = None if callee is None else self.analysis.summary(callee)
        if summary is None or summary.barrier or summary.leaves or summary.operations:
            self.barrier = self.barrier or f"{name} may call a procedure of the program"
            self.environment.forget(set(), everything=True)
            return
        for access in summary.accesses:
            self.found.append(Access(None, None, access.writes, False, False, access.memory, self.where))
        self.environment.forget({key for key in summary.written_keys if self._is_scalar(key)})
        self.environment.changed |= summary.written_keys
        self._io = self._io or summary.io
        self.states |= summary.states

    def _written(self, statement: Written) -> None:
        """The declared effects of text that a transformation wrote: variables, without sections."""
        self.barrier = statement.barrier
        self.found += statement.accesses
        for access in statement.accesses:
            if access.writes:
                keys = {m.key for m in access.memory}
                keys |= {access.symbol.key} if access.symbol is not None and not access.through else set()
                self.environment.forget({key for key in keys if self._is_scalar(key)})
                self.environment.changed |= keys
                self.forget_scalars(access.memory)

    # ---- calls of the program's own procedures ------------------------------------------------------------------------

    def _call_procedure(self, callee: Procedure, arguments: Sequence[Expression]) -> None:
        summary = self.analysis.summary(callee)
        by_reference = self.language().by_reference
        for number, argument in enumerate(arguments):
            by_value = number < len(callee.parameters) and callee.parameters[number].by_value
            if by_reference and is_place(argument) and not by_value:
                self.subexpressions(argument)
            elif by_reference:
                self.value(argument)
            else:
                self._argument_by_value(argument)
        does = call_effects(self, callee, arguments, self.where)
        if self.language().has_assumed_shape:
            self._hand_shapes(callee, arguments, does.accesses)
        self.found += does.accesses
        self.operations += does.operations
        self.environment.forget({key for key in does.written if self._is_scalar(key)})
        self.environment.changed |= does.written
        self.environment.forget_requests(does.written)
        if does.everything:
            self.environment.forget(set(), everything=True)
        self._io = self._io or summary.io
        self.states |= summary.states
        if summary.leaves:
            self.barrier = self.barrier or f"{callee.name} may end the program"
        if summary.barrier:
            known = summary.barrier.startswith((f"{callee.name}: ", f"{callee.name} calls itself"))
            self.barrier = self.barrier or (summary.barrier if known else f"{callee.name}: {summary.barrier}")
            self.environment.forget(set(), everything=True)

    def _hand_shapes(self, callee: Procedure, arguments: Sequence[Expression], accesses: Sequence[Access]) -> None:
        """Fortran: a callee may inquire about the shape or status even of an argument that it does not access."""
        for number, argument in enumerate(arguments):
            asked = number >= len(callee.parameters) or _has_shape_of_argument(callee.parameters[number])
            if asked and is_place(argument) and _may_be_reshaped(argument):
                memory = self.objects(argument)
                if not any(memory & access.memory for access in accesses):
                    self._shape(argument)

    def _argument_by_value(self, argument: Expression) -> None:
        if isinstance(argument, AddressOf):
            self.subexpressions(argument.object)
        else:
            self.value_of_pointer(argument)

    def _is_scalar(self, key: str) -> bool:
        symbol = self.analysis.program.globals.get(key) or self._own.get(key)
        return symbol is None or symbol.dimensions is None

    @cached_property
    def _own(self) -> Mapping[str, Symbol]:
        return {symbol.key: symbol for symbol in self.procedure.symbols.values()}


def _is_of_standard_stream(library: LibrarySummary, arguments: Sequence[Expression]) -> bool:
    """Whether the call uses a standard stream, which is no file that other ranks share."""
    if library.stream is None or library.stream >= len(arguments):
        return False
    stream = without_casts(arguments[library.stream])
    return isinstance(stream, Name) and stream.symbol.key in _STANDARD_STREAMS


def _has_shape_of_argument(dummy: Symbol) -> bool:
    """Fortran: whether the dummy argument also conveys properties of its actual argument: a shape, a length, a status."""
    shaped = dummy.dimensions is not None and not has_explicit_shape(dummy.dimensions)
    plain = dummy.type.base in ("integer", "real", "complex", "logical")
    return shaped or not plain or dummy.allocatable or dummy.pointer or dummy.optional


def _may_be_reshaped(place: Expression) -> bool:
    """Fortran: whether a statement may change its shape, or associate it with another variable. For components that is
    unknown."""
    while isinstance(place, Element):
        place = place.base
    return not isinstance(place, Name) or place.symbol.allocatable or place.symbol.pointer


def in_sequence(parts: Sequence[Effects]) -> list[Effects]:
    """The effects of a list; those after an exit may not happen."""
    found: list[Effects] = []
    left = False
    for part in parts:
        found.append(_perhaps(part) if left else part)
        left = left or part.leaves is not None
    return found


def _perhaps(effects: Effects) -> Effects:
    """The effects, weakened to possible ones."""
    return replace(effects, accesses=tuple(a.uncertain() for a in effects.accesses))


_NEVER: Condition = (((Affine(-1), ">="),),)
_STANDARD_STREAMS = frozenset({"stdin", "stdout", "stderr"})
