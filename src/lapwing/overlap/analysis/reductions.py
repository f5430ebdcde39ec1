"""Reductions: scalars whose final value does not depend on the order of the iterations that add to them, or keep the maximum or
the minimum.

    count++; count += k; if (e > most) most = e; most = e > most ? e : most; same = 0;

Obligations. Nothing else in the nest accesses the scalar, under any name, and what is added or compared does not depend on it.
All updates of it are of one kind:

* Integers are added (or subtracted): the result does not depend on the order, even where a partial sum wraps around.
* The maximum of integers is kept, or the minimum, where both are of one type.
* The maximum of floating-point numbers is kept, or the minimum, by comparisons whose false outcome keeps the scalar, and no
  number loses digits in between: what is compared is what is stored. Each number's sign bit is clear unless it is a NaN.
  Then a NaN is never stored, since it compares false, and a scalar that is a NaN initially stays one. Of all
  other numbers the largest is stored, if it exceeds the initial value: equal numbers have equal bits, since zeros are
  distinguished by the sign bit alone. (The scalar may be -0 initially. Whether a +0 is stored then depends on there
  being one in an iteration that compares with >=, and on nothing larger, but not on the order.)
* C's fmax and fmin do the same, where the scalar is an ordinary number before the nest: it then never becomes a NaN, and of a
  number and a NaN they return the number. (Signaling NaNs, which no operation produces, aside.)
* It is assigned one constant.

Sums of floating-point numbers depend on the order, as do Fortran's MAX and MIN of them, whose result with a NaN is unspecified;
--reassociate permits them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lapwing.overlap.analysis.dependence import may_overlap
from lapwing.overlap.analysis.manager import Analysis
from lapwing.overlap.ir.expressions import (
    Assignment,
    Cast,
    Element,
    Expression,
    Invocation,
    Name,
    Number,
    Operation,
    Storage,
    Symbol,
    Text,
    Type,
    Unread,
)
from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.ir.rewriter import rewrite
from lapwing.overlap.ir.statements import Assign, Block, Call, Compound, Declare, Evaluate, If, Loop, Statement
from lapwing.overlap.languages.language import Language
from lapwing.overlap.languages.registry import language_of_procedure
from lapwing.overlap.languages.shared.extremes import Extreme

_SORTS = {">": "largest", ">=": "largest", "<": "least", "<=": "least"}
_MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">=", "!", "&&", "||"})
_ARITHMETIC = frozenset({"+", "-", "*", "/", "neg"})
_WHOLE = _ARITHMETIC | {"%", "<<", ">>", "&", "|", "^", "~"}
_INT = 4  # bytes


@dataclass(frozen=True)
class Reductions:
    """``keys``: of the reduction scalars. ``rounding``: statements that would be reductions, too, but for the rounding in
    another order, with their variables' names."""

    keys: frozenset[str] = frozenset()
    rounding: tuple[tuple[Statement, str], ...] = ()


@dataclass(frozen=True)
class _Update:
    """A reduction's update of a scalar: its ``sort``, and the values used. ``exact``: in any order."""

    symbol: Symbol
    sort: str
    values: tuple[Expression, ...]
    exact: bool = True


def reductions(analysis: Analysis, loop: Loop, procedure: Procedure) -> Reductions:
    """The reduction scalars of the loop and the loops in it."""
    updates = _Updates(analysis, procedure, loop)
    updates.look(loop.body, ())
    if not updates.found:
        return Reductions()
    others = rewrite(loop.body, lambda s: _evaluated(s, updates.found))
    accessed = analysis.plain(replace(loop, body=others), procedure)
    alone: dict[str, bool] = {}
    for _, update in updates.found.values():
        own = analysis.plain(Evaluate(Name(update.symbol), span=loop.span), procedure).accesses
        alone[update.symbol.key] = accessed.barrier is None and not any(
            may_overlap(a, b, analysis.aliases) for a in accessed.accesses for b in own
        )
    every = [u for _, u in updates.found.values()]
    sorts = {key: {u.sort for u in every if u.symbol.key == key} for key in alone}
    inexact = frozenset[str]() if analysis.reassociates else frozenset(u.symbol.key for u in every if not u.exact)
    orderless = frozenset(key for key, holds in alone.items() if holds and len(sorts[key]) == 1)
    rounding = ((s, u.symbol.name) for s, u in updates.found.values() if u.symbol.key in orderless & inexact)
    return Reductions(orderless - inexact, tuple(rounding))


def _evaluated(statement: Statement, found: dict[int, tuple[Statement, _Update]]) -> Sequence[Statement]:
    """What the statement evaluates besides the reduction's update."""
    if id(statement) not in found:
        return [statement]
    return [Evaluate(value, span=statement.span) for value in found[id(statement)][1].values]


@dataclass
class _Updates:
    """Statements of a nest that may be reductions. ``found``: by their ids."""

    analysis: Analysis
    procedure: Procedure
    nest: Loop
    found: dict[int, tuple[Statement, _Update]] = field(default_factory=dict)

    @property
    def _language(self) -> Language:
        return language_of_procedure(self.analysis.program, self.procedure)

    def look(self, block: Block, before: Sequence[Statement]) -> None:
        """``before``: statements certainly executed before the block in the same iteration, in order."""
        done = [*before]
        for statement in block.statements:
            update = None if isinstance(statement, Declare) else self._update(statement, done)
            if update is not None and _may_reduce(update.symbol):
                self.found[id(statement)] = statement, update
            else:
                for inner in statement.blocks():
                    self.look(inner, _within(statement, done))
            done.append(statement)

    def _update(self, statement: Statement, before: Sequence[Statement]) -> _Update | None:
        match statement:
            case If(Operation(operator, (one, other)), Block(statements=(inner,)), None) if operator in _SORTS:
                target, value = _assignment(inner)
                if target is None or value is None:
                    return None
                return self._kept(operator, one, other, target.symbol, value, before)
            case Assign(Name(symbol), value, str(operator)):
                return self._sum(symbol, [value]) if operator in ("+", "-") else None
        target, value = _assignment(statement)
        if target is None or value is None:
            return None
        symbol = target.symbol
        match value:
            case Operation("?:", (Operation(operator, (one, other)), chosen, Name(same))) if same == symbol:
                return self._kept(operator, one, other, symbol, chosen, before) if operator in _SORTS else None
            case Invocation(str(name), (one, other)) if extreme := self._language.extreme(_plain_name(name)):
                return self._chosen(extreme, _plain_name(name), one, other, symbol, before)
            case Number() | Text():
                constant = self._constant(value)
                return None if constant is None else _Update(symbol, f"given {constant}", ())
        added = _added(value, symbol)
        return None if added is None else self._sum(symbol, added)

    def _constant(self, value: Number | Text) -> str | None:
        """Identifies a constant: an integer by its value, others by their spelling, as numbers have precisions."""
        if isinstance(value, Number) and isinstance(value.value, int):
            return f"{value.value}"
        text = "" if value.span is None else self.analysis.program.sources[value.span.source].text(value.span)
        return text if text[:1].isdigit() or text[:1] in ("-", ".", "'", '"') else None

    def _sum(self, symbol: Symbol, added: Sequence[Expression]) -> _Update | None:
        if symbol.type.base == "integer":
            return _Update(symbol, "sum", tuple(added)) if all(map(_is_integer, added)) else None
        # Also for operands of which only the value is known.
        return _Update(symbol, "sum", tuple(added), exact=False) if symbol.type.base == "real" else None

    def _kept(
        self,
        operator: str,
        one: Expression,
        other: Expression,
        symbol: Symbol,
        value: Expression,
        before: Sequence[Statement],
    ) -> _Update | None:
        """Of ``if (one > other) symbol = value;``."""
        if other == Name(symbol):
            sort, compared = _SORTS[operator], one
        elif one == Name(symbol):
            sort, compared = _SORTS[_MIRRORED[operator]], other
        else:
            return None
        if compared != value or not self._is_pure(value) or not self._keeps_digits(value, symbol):
            return None
        exact = symbol.type.base == "integer" or self._has_no_sign(value, before)
        return _Update(symbol, sort, (value,), exact)

    def _chosen(
        self,
        extreme: Extreme,
        name: str,
        one: Expression,
        other: Expression,
        symbol: Symbol,
        before: Sequence[Statement],
    ) -> _Update | None:
        """Of ``symbol = max(one, other)``."""
        own = Name(symbol)
        if (one == own) == (other == own):
            return None
        value = other if one == own else one
        kind = symbol.type
        if not self._is_function(name):
            return None
        if extreme.bytes is None:
            if not self._keeps_digits(value, symbol):
                return None
            return _Update(symbol, extreme.sort, (value,), exact=kind.base == "integer")
        if kind.base != "real" or kind.bytes != extreme.bytes:
            return None
        exact = self._has_no_sign(value, before) and self._begins_as_number(symbol)
        return _Update(symbol, f"{extreme.sort} by {name}", (value,), exact)

    def _begins_as_number(self, symbol: Symbol) -> bool:
        """Whether the variable is assigned a literal number before the nest, in the same statement list."""
        for statement in reversed(_before(self.procedure.body, self.nest) or ()):
            target, value = _assignment(statement)
            if target is not None and target.symbol == symbol:
                return isinstance(value, Number)
            if self._may_write(statement, symbol):
                return False
        return False

    def _may_write(self, statement: Statement, symbol: Symbol) -> bool:
        effects = self.analysis.plain(statement, self.procedure)
        own = self.analysis.plain(Evaluate(Name(symbol), span=statement.span), self.procedure).accesses
        return effects.barrier is not None or any(
            a.writes and may_overlap(a, b, self.analysis.aliases) for a in effects.accesses for b in own
        )

    # ---- what is known of values --------------------------------------------------------------------------------------

    def _is_pure(self, value: Expression) -> bool:
        """Whether the expression is pure: has the same value when it is evaluated again."""
        return not any(isinstance(e, Assignment | Unread) for e in value.walk()) and all(
            e.name is not None and self._is_function(e.name) and self._depends_on_arguments(e.name)
            for e in value.walk()
            if isinstance(e, Invocation)
        )

    def _depends_on_arguments(self, name: str) -> bool:
        found = self._language.library(name)
        return found is not None and found.pure

    def _is_function(self, name: str) -> bool:
        """Whether the name denotes the library function, or the intrinsic."""
        return self._language.is_library_name(name, self.analysis.program, self.procedure)

    def _keeps_digits(self, value: Expression, symbol: Symbol) -> bool:
        """Whether the variable can hold any value of the expression, and is compared with it, without conversion loss."""
        kind = self._type(value)
        own = symbol.type
        if kind is None or kind.base != own.base or kind.bytes is None or own.bytes is None:
            return False
        return kind.bytes <= own.bytes and kind.unsigned == own.unsigned and own.base in ("integer", "real")

    def _type(self, value: Expression) -> Type | None:
        """The type of the expression's value, or a wider one; None if it is unknown."""
        match value:
            case Name(symbol) if symbol.dimensions is None and not symbol.pointer:
                return symbol.type
            case Element(Name(symbol)):
                return symbol.element
            case Cast(type=kind):
                return kind
            case Operation(operator, arguments) if operator in _ARITHMETIC:
                # Integers do not widen a floating-point operand.
                types = [self._type(a) for a in arguments if not _is_whole_number(a)]
                known_types = [t for t in types if t is not None]
                if not types or len(types) != len(known_types):
                    return None
                reals = [t for t in known_types if t.base == "real"]
                if reals and all(t.base in ("integer", "real") and t.bytes is not None for t in known_types):
                    return max(reals, key=lambda t: t.bytes or 0)
                return self._integer_type(known_types) if len(types) == len(arguments) else None
            case Invocation(str(name), arguments) if self._is_function(name):
                return self._type_of_result(_plain_name(name), arguments)
        return None

    def _integer_type(self, types: Sequence[Type]) -> Type | None:
        one = types[0]
        same = all((t.base, t.bytes, t.unsigned) == ("integer", one.bytes, one.unsigned) for t in types)
        return one if same and one.bytes is not None and one.bytes >= _INT else None

    def _type_of_result(self, name: str, arguments: Sequence[Expression]) -> Type | None:
        return self._language.type_of_result(name, self._type(arguments[0])) if arguments else None

    def _has_no_sign(self, value: Expression, before: Sequence[Statement]) -> bool:
        """Whether the sign bit of the floating-point value is certainly clear, unless it is a NaN."""
        match value:
            case Number(number):
                return math.copysign(1, number) > 0
            case Cast(type=kind, value=inner):
                return kind.base == "real" and self._has_no_sign(inner, before)
            case Operation("*", (one, other)) if one == other and self._is_floating(one):
                return _is_made_of_reals(one)
            case Operation("+" | "*" | "/", (one, other)):
                return self._has_no_sign(one, before) and self._has_no_sign(other, before)
            case Invocation(str(name), arguments) if arguments and self._is_function(name):
                return self._gives_no_sign(_plain_name(name), arguments, before)
            case Name(symbol):
                return self._was_given_no_sign(symbol, before)
        return False

    def _gives_no_sign(self, name: str, arguments: Sequence[Expression], before: Sequence[Statement]) -> bool:
        if self._language.clears_sign(name, self._is_floating(arguments[0])):
            return True
        return name in ("sqrt", "sqrtf", "dsqrt") and self._has_no_sign(arguments[0], before)

    def _was_given_no_sign(self, symbol: Symbol, before: Sequence[Statement]) -> bool:
        """Whether the variable was assigned such a number, earlier in the same iteration."""
        if not _may_reduce(symbol) or not symbol.alone or symbol.type.base != "real":
            return False
        for place, statement in reversed([*enumerate(before)]):
            target, value = _assignment(statement)
            if target is not None and target.symbol == symbol:
                return value is not None and self._has_no_sign(value, before[:place])
            if self._may_write(statement, symbol):
                return False
        return False

    def _is_floating(self, value: Expression) -> bool:
        """Whether it is certainly not an integer."""
        match value:
            case Number(number):
                return isinstance(number, float)
            case Name(symbol) | Element(Name(symbol)):
                return symbol.element.base in ("real", "complex")
            case Operation(operator, arguments) if operator in _ARITHMETIC:
                return any(map(self._is_floating, arguments))
        return False


def _is_made_of_reals(value: Expression) -> bool:
    """Whether it is arithmetic on reals and integers: the square of a complex number may have either sign."""
    return all(
        e.symbol.element.base in ("real", "integer")
        if isinstance(e, Name)
        else isinstance(e, Element | Number | Operation)
        for e in value.walk()
    )


def _within(statement: Statement, before: Sequence[Statement]) -> Sequence[Statement]:
    """The statements certainly executed in the same iteration before a block of the statement."""
    match statement:
        case If(condition=condition):
            return [*before, Evaluate(condition, span=statement.span)]
        case Compound():
            return before
    return ()


def _may_reduce(symbol: Symbol) -> bool:
    plain = symbol.dimensions is None and not (symbol.pointer or symbol.allocatable or symbol.volatile)
    return plain and symbol.overlay is None and symbol.storage is not Storage.CONSTANT


def _plain_name(name: str) -> str:
    return name.lower().removeprefix("std::").removeprefix("__builtin_")


def _assignment(statement: Statement) -> tuple[Name | None, Expression | None]:
    """The variable that a statement assigns, and the value."""
    match statement:
        case Assign(Name() as target, value, None):
            return target, value
        case Call(name=name, arguments=arguments, result=Name() as target):
            return target, Invocation(name, arguments)
        case Declare(((symbol, value),)) if value is not None:
            return Name(symbol), value
    return None, None


def _before(block: Block, statement: Statement) -> Sequence[Statement] | None:
    """The statements before this one in its list; None if it is not there."""
    for place, other in enumerate(block.statements):
        if other is statement:
            return block.statements[:place]
        for inner in other.blocks():
            found = _before(inner, statement)
            if found is not None:
                return [*block.statements[:place], *found] if isinstance(other, Compound) else found
    return None


def _added(value: Expression, symbol: Symbol) -> list[Expression] | None:
    """What is added to the variable to obtain the value; None if it has another form."""
    match value:
        case Cast(type=kind, value=inner) if symbol.type.base == kind.base == "integer":
            wide = kind.bytes is not None and symbol.type.bytes is not None and kind.bytes >= symbol.type.bytes
            return _added(inner, symbol) if wide else None
        case Name(same):
            return [] if same == symbol else None
        case Operation("+" | "-" as operator, (one, other)):
            found = _added(one, symbol)
            if found is not None:
                return None if _names(other, symbol) else [*found, other]
            found = _added(other, symbol) if operator == "+" else None
            return None if found is None or _names(one, symbol) else [one, *found]
    return None


def _names(value: Expression, symbol: Symbol) -> bool:
    return any(e == Name(symbol) for e in value.walk())


def _is_whole_number(value: Expression) -> bool:
    return isinstance(value, Number) and isinstance(value.value, int)


def _is_integer(value: Expression) -> bool:
    match value:
        case Number(number):
            return isinstance(number, int)
        case Name(symbol) | Element(Name(symbol)):
            return symbol.element.base in ("integer", "logical")
        case Cast(type=kind):
            return kind.base in ("integer", "logical")
        case Operation(operator) if operator in _COMPARISONS:
            return True
        case Operation("?:", (_, one, other)):
            return _is_integer(one) and _is_integer(other)
        case Operation(operator, arguments) if operator in _WHOLE:
            return all(map(_is_integer, arguments))
    return False
