"""Value numbering: the values of integer variables at each point of a statement list, in terms of values at its beginning."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from lapwing.affine.affine import Affine, Condition
from lapwing.affine.sections import Lookup, Origin, Product, Range, Subscript, fresh_term
from lapwing.overlap.ir.accesses import Access
from lapwing.overlap.ir.expressions import (
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
    Slice,
    Storage,
    Symbol,
    Text,
    Type,
)
from lapwing.overlap.ir.statements import Loop

_MOST_CHOICES = 4
INT = 4  # bytes
_SMALL = 127  # every integer type can represent these
_RING = ("+", "-", "neg", "*")
_MIRRORED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


class Terms:
    """Value numbers: one for each variable's value at the beginning of a list, one for each non-affine expression of such values.

    ``origin`` maps a term to the variables it depends on. A term in ``defined`` is not a value at the beginning but one chosen
    later, subject to the condition there; a section that mentions it has to bind it.
    """

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self.origin: dict[str, frozenset[str]] = {}
        self.variable: dict[str, str] = {}  # term → key of the variable whose value it is
        self.defined: dict[str, tuple[Condition, ...]] = {}
        self.origins: dict[str, Origin] = {}
        self._looked_up: dict[tuple[str, tuple[Affine, ...]], str] = {}
        self._iterations: dict[tuple[int, tuple[Affine | None, ...]], tuple[Loop, Affine]] = {}
        self._products: dict[tuple[Affine, Affine], str] = {}
        self._needed: dict[frozenset[str], tuple[tuple[str, ...], tuple[Condition, ...], tuple[Origin, ...]]] = {}
        self.natural: set[str] = set()  # terms that are never negative
        self.relied: set[str] = set()  # of those: the ones for which this was relied on
        self.redefined = frozenset[str]()  # names of the program's own procedures
        # The values of variables that are invariant during a call of their procedure; None: unknown, but constant.
        self.invariants: Mapping[str, Expression | None] = {}
        # Keys of the memory that a member of a C struct lies in, and of what may alias it, if known.
        self.memory_of: Callable[[Member], frozenset[str] | None] = lambda _: None
        self.members: dict[str, Member] = {}  # by the terms for their values
        self.iterations: set[str] = (
            set()
        )  # of those: loop variables, which take every value that their conditions allow

    def of_variable(self, symbol: Symbol) -> str:
        name = self._named(f"= {symbol.key}", "v", frozenset({symbol.key}))
        self.variable[name] = symbol.key
        if symbol.type.unsigned:
            self.natural.add(name)
        return name

    def existing(self, key: str) -> str | None:
        return self._names.get(f"= {key}")

    def of_expression(self, text: str, depends: frozenset[str]) -> str:
        return self._named(text, "o", depends)

    def _named(self, text: str, prefix: str, depends: frozenset[str]) -> str:
        if text not in self._names:
            name = f"{prefix}{len(self._names)}"
            self._names[text] = name
            self.origin[name] = depends
        return self._names[text]

    def define(self, *conditions: Condition) -> Affine:
        name = fresh_term()
        self.defined[name] = conditions
        return Affine.of(name)

    def of_iteration(self, loop: Loop, bounds: tuple[Affine | None, ...]) -> Affine:
        """The term for the value of a loop's variable in some iteration, given the loop's bounds."""
        entry = self._iterations.get((id(loop), bounds))
        if entry is None:
            entry = self._iterations[id(loop), bounds] = loop, self.define()
        return entry[-1]

    def look_up(self, array: str, subscripts: tuple[Affine, ...]) -> Affine:
        """The term for the value of an array element whose subscripts are bound later."""
        name = self._looked_up.get((array, subscripts))
        if name is None:
            name = self._looked_up[array, subscripts] = fresh_term()
            self.defined[name] = ()
            self.origins[name] = Lookup(name, array, subscripts)
        return Affine.of(name)

    def is_natural(self, value: Affine) -> bool:
        """Whether it is certainly not negative."""
        if value.constant < 0 or not all(factor > 0 and self._is_natural(name) for name, factor in value.terms):
            return False
        self.relied |= value.names
        return True

    def _is_natural(self, name: str) -> bool:
        origin = self.origins.get(name)
        if isinstance(origin, Product):
            return all(map(self.is_natural, origin.forms()))
        return name in self.natural

    def multiply(self, one: Affine, other: Affine) -> Affine:
        """The term for the product of two values that are bound later."""
        name = self._products.get((one, other))
        if name is None:
            name = self._products[one, other] = fresh_term()
            self.defined[name] = ()
            self.origins[name] = Product(name, (one, other))
        return Affine.of(name)

    def needed(self, names: frozenset[str]) -> tuple[tuple[str, ...], tuple[Condition, ...], tuple[Origin, ...]]:
        """The defined terms among ``names`` and those that their conditions mention, with these conditions, and the origins of
        all of them. Memoised: conditions are set before the first query and never change."""
        if self.defined.keys().isdisjoint(names) and self.origins.keys().isdisjoint(names):
            return (), (), ()
        if names not in self._needed:
            self._needed[names] = self._find_needed(names)
        return self._needed[names]

    def _find_needed(self, names: frozenset[str]) -> tuple[tuple[str, ...], tuple[Condition, ...], tuple[Origin, ...]]:
        seen: set[str] = set()
        bound: list[str] = []
        conditions: list[Condition] = []
        origins: list[Origin] = []
        waiting = sorted(names)
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            if name in self.origins:
                origins.append(self.origins[name])
                for form in self.origins[name].forms():
                    waiting += sorted(form.names)
            if name in self.defined:
                bound.append(name)
                for condition in self.defined[name]:
                    conditions.append(condition)
                    for part in condition:
                        for form, _ in part:
                            waiting += sorted(form.names)
        return tuple(bound), tuple(conditions), tuple(origins)


@dataclass
class Environment:
    """``values``: of variables assigned since the beginning. ``changed``: keys of variables and memory that were written, whose
    terms are stale; ``lost``: anything may have been written."""

    terms: Terms
    values: dict[str, Affine] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    lost: bool = False
    # The requests that were certainly started since the beginning, and the accesses that last until their completion.
    in_flight: dict[tuple[str, int | None], tuple[Access, ...]] = field(default_factory=dict)

    def copy(self) -> Environment:
        return Environment(self.terms, dict(self.values), set(self.changed), self.lost, dict(self.in_flight))

    def forget_requests(self, keys: set[str] | frozenset[str] | None = None) -> None:
        """Requests in these variables (None: in any) are no longer known."""
        self.in_flight = {} if keys is None else {s: a for s, a in self.in_flight.items() if s[0] not in keys}

    def forget_request(self, slot: tuple[str, int | None]) -> None:
        """This request is no longer known."""
        self.in_flight.pop(slot, None)

    def assign(self, symbol: Symbol, value: Affine | None) -> None:
        kept = value is not None and self.holds(symbol, value)
        self.values[symbol.key] = value if value is not None and kept else self.terms.define()
        self.changed.add(symbol.key)
        self.forget_requests({symbol.key})

    def forget(self, keys: set[str] | frozenset[str], everything: bool = False) -> None:
        """The values of these variables are unknown from here on."""
        for key in keys:
            self.values[key] = self.terms.define()
            self.changed.add(key)
        self.forget_requests(None if everything else keys)
        if everything:
            self.values.clear()
            self.lost = True

    def join(self, one: Environment, other: Environment) -> None:
        """Become the join of the environments after two branches."""
        merged: dict[str, Affine] = {}
        for key in one.values.keys() | other.values.keys():
            a, b = one.values.get(key), other.values.get(key)
            if a is None or b is None:
                # Assigned in one branch only: in the other it keeps its value.
                missing = self._unassigned(key)
                a, b = a or missing, b or missing
            if a is not None and a == b:
                merged[key] = a
            elif a is None or b is None:
                merged[key] = self.terms.define()
            else:
                merged[key] = self._either(a, b)
        self.in_flight = {s: a for s, a in one.in_flight.items() if other.in_flight.get(s) == a}
        self.values, self.changed, self.lost = merged, one.changed | other.changed, one.lost or other.lost

    def _unassigned(self, key: str) -> Affine | None:
        if self.lost or key in self.changed:
            return self.values.get(key)
        name = self.terms.existing(key)
        return self.values.get(key) or (Affine.of(name) if name else None)

    def _either(self, a: Affine, b: Affine) -> Affine:
        name = fresh_term()
        own = Affine.of(name)
        self.terms.defined[name] = (tuple(((own - value, "="),) for value in (a, b)),)
        return own

    def of(self, keys: Sequence[str], whole: Sequence[str] = ()) -> Hashable:
        """A key of the environment's knowledge of variables: which of the first have changed, and the values of the second."""
        changed, values = self.changed, self.values
        return self.lost, tuple(key in changed for key in keys), tuple(map(values.get, whole))

    def is_changed(self, symbol: Symbol) -> bool:
        """Whether the variable's value may differ from that at the beginning."""
        return self.lost or symbol.key in self.changed

    # ---- expressions --------------------------------------------------------------------------------------------------

    def value(self, symbol: Symbol) -> Affine | None:
        if symbol.storage is Storage.CONSTANT and symbol.value is not None:
            # A real variable may be assigned an integer, and a whole array one value.
            plain = symbol.type.base not in ("real", "complex") and symbol.dimensions is None
            return self.affine(symbol.value) if plain else None
        if symbol.type.base not in ("integer", "logical") or symbol.dimensions is not None or symbol.volatile:
            return None
        if symbol.overlay is not None or _stands_for_target(symbol):
            return None  # it may have been assigned through an alias
        if symbol.key in self.terms.invariants:
            return self._invariant(symbol)
        if symbol.key in self.values:
            return self.values[symbol.key]
        if self.lost or symbol.key in self.changed or symbol.overlay is not None or symbol.target:
            return None
        return Affine.of(self.terms.of_variable(symbol))

    def _invariant(self, symbol: Symbol) -> Affine:
        given = self.terms.invariants[symbol.key]
        value = None if given is None else self.affine(given)
        return value if value is not None and self.holds(symbol, value) else Affine.of(self.terms.of_variable(symbol))

    def holds(self, symbol: Symbol, value: Affine) -> bool:
        """Whether a variable of this type can certainly represent the value."""
        size = symbol.type.bytes
        if symbol.type.base == "logical" and size == 1:
            return not value.terms and value.constant in (0, 1)
        if size is not None and size < INT:
            return not value.terms and 0 <= value.constant <= _SMALL
        if not symbol.type.unsigned:
            return True
        # Numbers as wide as addresses are not converted to wider types: negative ones may stand for large ones.
        return self.terms.is_natural(value) or (bool(value.terms) and size != INT)

    def ends(self, loop: Loop) -> tuple[Affine | None, Affine | None]:
        """A loop's first and last bound; None where one is unknown, or may be negative where C compares unsigned numbers."""
        lower, upper = self.affine(loop.lower), self.affine(loop.upper)
        if loop.wraps:
            bound = self.affine(_compared_with(loop))
            lower = lower if lower is not None and self.terms.is_natural(lower) else None
            upper = upper if bound is not None and self.terms.is_natural(bound) else None
        return lower, upper

    def affine(self, expression: Expression) -> Affine | None:
        """The expression in terms of values at the beginning, or None."""
        match expression:
            case Operation() if _wraps_around(expression):
                return self._opaque(expression)
            case Number(value=int(number)):
                return Affine(number)
            case Name(symbol=symbol):
                return self.value(symbol)
            case Cast(value=inner, keeps=True):
                return self.affine(inner)
            case Operation(operator="neg", arguments=(only,)):
                value = self.affine(only)
                return None if value is None else -value
            case Operation(operator="+" | "-" as sign, arguments=(left, right)):
                a, b = self.affine(left), self.affine(right)
                return None if a is None or b is None else a + b if sign == "+" else a - b
            case Operation(operator="*", arguments=(left, right)):
                a, b = self.affine(left), self.affine(right)
                if a is not None and b is not None:
                    if not a.terms:
                        return b * a.constant
                    if not b.terms:
                        return a * b.constant
                    return self._product(expression, a, b)
        return self._opaque(expression)

    def _product(self, expression: Expression, one: Affine, other: Affine) -> Affine:
        found = self._opaque(expression)
        if found is None:
            return self.terms.multiply(one, other)
        self.terms.origins.setdefault(found.terms[0][0], Product(found.terms[0][0], (one, other)))
        return found

    def subscript(self, index: Expression) -> Subscript:
        """The same, or the range of a section; None where it is unknown."""
        if not isinstance(index, Slice):
            return self.affine(index)
        given = (index.lower, index.upper)
        lower, upper = (None if end is None else self.affine(end) for end in given)
        step = Affine(1) if index.step is None else self.affine(index.step)
        if (
            step is None
            or step.terms
            or any(e is not None and v is None for e, v in zip(given, (lower, upper), strict=True))
        ):
            return None
        return Range(lower, upper) if step.constant > 0 else Range(upper, lower)

    def _opaque(self, expression: Expression) -> Affine | None:
        if not _is_whole(expression):
            return None
        found = self._canonical(expression)
        looked_up = self._subscripts_looked_up(expression)
        if found is None:
            return None if looked_up is None else self.terms.look_up(*looked_up)
        text, depends = found
        name = self.terms.of_expression(text, depends)
        if isinstance(expression, Member):
            self.terms.members[name] = expression
        if looked_up is not None:
            self.terms.origins.setdefault(name, Lookup(name, *looked_up))
        return Affine.of(name)

    def _subscripts_looked_up(self, expression: Expression) -> tuple[str, tuple[Affine, ...]] | None:
        """The key and the subscripts of an element of an integer array that is unchanged since the beginning."""
        match expression:
            case Element(base=Name(symbol=symbol), indices=indices) if not symbol.pointer and not self._stale(symbol):
                subscripts = tuple(self.affine(index) for index in indices)
                if None not in subscripts and symbol.type.base == "integer":
                    return symbol.key, tuple(s for s in subscripts if s is not None)
        return None

    def _canonical(self, expression: Expression) -> tuple[str, frozenset[str]] | None:
        """A canonical text, equal only for equal values, in terms of the beginning; with the variables it depends on."""
        nothing: frozenset[str] = frozenset()
        match expression:
            case Number(value=number):
                return repr(number), nothing
            case Constant(name=name) | Text(text=name):
                return f"'{name}'", nothing
            case Name(symbol=symbol) if symbol.dimensions is None:
                if symbol.type.base in ("integer", "logical"):
                    value = self.value(symbol)
                    if value is None or value.names & self.terms.defined.keys():
                        return None
                    origin = self.terms.origin
                    return canonical_text(value), frozenset(k for n in value.names for k in origin.get(n, nothing))
                return None if self._stale(symbol) else (f"={symbol.key}", frozenset({symbol.key}))
            case Element(base=Name(symbol=symbol), indices=indices):
                if self._stale(symbol) or symbol.pointer:
                    return None
                return self._joined(f"{symbol.key}", indices, frozenset({symbol.key}))
            case Member(base=Name(symbol=symbol), field_name=name) if not self._stale(symbol):
                return f"{symbol.key}.{name}", frozenset({symbol.key})
            case Member(type=kind) if kind is not None and kind.base in ("integer", "logical"):
                return self._of_member(expression)
            case Operation(operator="sizeof"):
                return None  # its computation could not be read
            case Operation(operator=operator, arguments=arguments):
                if not all(map(_is_whole, arguments)) and any(map(_is_unsigned, expression.walk())):
                    return None  # converted to real, a negative number would be a large one
                sort = _sort(expression)
                form = self.affine(expression) if operator in ("+", "-", "neg") and not sort else None
                if form is not None and not (form.names & self.terms.defined.keys()):
                    origin = self.terms.origin
                    return canonical_text(form), frozenset(k for n in form.names for k in origin.get(n, nothing))
                return self._joined(f"op{operator}{sort}", arguments, nothing)
            case Invocation(name=str(name), arguments=arguments) if is_pure(expression):
                if name.lower() in self.terms.redefined:
                    return None
                return self._joined(f"f {name.lower()}", arguments, nothing)
            case Cast(value=inner, keeps=True):
                return self._canonical(inner)
            case Cast(type=kind, value=inner) if kind.holds_values:
                if not _is_whole(inner) and any(map(_is_unsigned, inner.walk())):
                    return None  # the same
                found = self._canonical(inner)
                return None if found is None else (f"({_named(kind)}) {found[0]}", found[1])
        return None

    def _of_member(self, place: Member) -> tuple[str, frozenset[str]] | None:
        """The same for a struct's member that may also be written through its address, or that a pointer leads to."""
        match place.base:
            case Name(symbol=symbol) if not (symbol.pointer or symbol.volatile or symbol.overlay):
                depends, text = frozenset({symbol.key}), f"{symbol.key}.{place.field_name}"
            case Deref(pointer=Name(symbol=symbol)) if symbol.pointer and not self._stale(symbol):
                depends, text = frozenset({symbol.key}), f"{symbol.key}->{place.field_name}"
            case _:
                return None
        memory = self.terms.memory_of(place)
        if memory is None or self.lost or not self.changed.isdisjoint(depends | memory):
            return None
        return text, depends | memory

    def _stale(self, symbol: Symbol) -> bool:
        shared = symbol.overlay is not None or symbol.volatile or symbol.target or _stands_for_target(symbol)
        return self.lost or symbol.key in self.changed or shared

    def _joined(
        self, head: str, parts: tuple[Expression, ...], depends: frozenset[str]
    ) -> tuple[str, frozenset[str]] | None:
        texts = []
        for part in parts:
            found = self._canonical(part)
            if found is None:
                return None
            texts.append(found[0])
            depends |= found[1]
        return f"{head}({', '.join(texts)})", depends

    def canonical(self, expression: Expression) -> str | None:
        """A text that two expressions share only if their values are equal; None where nothing is known."""
        found = self._canonical(expression)
        return None if found is None else found[0]

    def condition(self, expression: Expression, holds: bool = True) -> Condition | None:
        """The condition on terms under which the expression is true (or false); None where there is no exact one."""
        match expression:
            case Operation(operator="!", arguments=(inner,)):
                return self.condition(inner, not holds)
            case Operation(operator="&&" | "||" as operator, arguments=(left, right)):
                one, other = self.condition(left, holds), self.condition(right, holds)
                if one is None or other is None:
                    return None
                if (operator == "||") == holds:
                    return (*one, *other)
                crossed = tuple((*p, *q) for p in one for q in other)
                return crossed if len(crossed) <= _MOST_CHOICES**2 else None
            case Operation(operator=operator, arguments=(left, right), wraps=0) if operator in _MIRRORED:
                if any(isinstance(e, Member) and e.type is None for side in (left, right) for e in side.walk()):
                    return None  # of a type that is not known
                a, b = self.affine(left), self.affine(right)
                if a is None or b is None:
                    return None
                return _compared(a, operator if holds else _MIRRORED[operator], b)
        return None


def is_pure(call: Invocation) -> bool:
    """Whether the function is pure: depends on its arguments only, and has no effects."""
    return call.name is not None and call.name.lower() in _PURE


def _compared_with(loop: Loop) -> Expression:
    """C: the expression that a loop's variable is compared with, given an end that may be off by one."""
    match loop.upper:
        case Operation("+" | "-", (bound, Number(1)), span=None):
            return bound
    return loop.upper


def _sort(operation: Operation) -> str:
    """Distinguishes an operation from the same one on another type, where that matters. Numbers as wide as addresses are added
    and multiplied the same way, signed or unsigned."""
    alike = operation.operator in _RING and operation.wraps > INT and not _wraps_around(operation)
    return f":{operation.wraps}" if operation.wraps and not alike else ""


def _wraps_around(operation: Operation) -> bool:
    """Whether it has an unsigned number that stands for a negative one: u[i + 4294967295u] is u[i - 1]."""
    least = 2 ** (8 * operation.wraps - 1)
    return operation.wraps > 0 and any(isinstance(a, Number) and a.value >= least for a in operation.arguments)


def _is_unsigned(expression: Expression) -> bool:
    match expression:
        case Operation(wraps=wraps):
            return wraps > 0
        case Cast(type=kind):
            return kind.unsigned
        case Name(symbol) | Element(Name(symbol)):
            return symbol.element.unsigned
        case Member(type=kind) if kind is not None:
            return kind.unsigned
    return isinstance(expression, Member | Invocation)  # of a type that is not known


def _named(kind: Type) -> str:
    """A unique name for a C arithmetic type: two typedefs may have one name."""
    return f"{'unsigned ' if kind.unsigned else ''}{kind.base} {kind.bytes}"


def _stands_for_target(symbol: Symbol) -> bool:
    """Whether its name denotes its target rather than an address."""
    return symbol.pointer and symbol.type.base != "pointer"


def _is_whole(expression: Expression) -> bool:
    """Whether the expression is certainly an integer: other values do not compare like integers."""
    match expression:
        case Number(value=value):
            return isinstance(value, int)
        case Name(symbol=symbol) | Element(base=Name(symbol=symbol)):
            return symbol.type.base in ("integer", "logical")
        case Cast(type=kind):
            return kind.base == "integer"
        case Member(type=kind) if kind is not None:
            return kind.base in ("integer", "logical")
        case Operation(operator="?:", arguments=(_, one, other)):
            return _is_whole(one) and _is_whole(other)
        case Operation(arguments=arguments):
            return all(_is_whole(a) for a in arguments)
        case Invocation(name=str(name), arguments=arguments):
            return name.lower() in _WHOLE or all(_is_whole(a) for a in arguments)
        case Member() | Constant():
            return True  # seen in subscripts, bounds and MPI's arguments, which are integers; see condition()
    return False


def canonical_text(value: Affine) -> str:
    """A text that no other value has, and of which ``terms_in`` tells the terms."""
    return f"[{' + '.join([*(f'{c}*{n}' for n, c in value.terms), f'({value.constant})'])}]"


def _compared(a: Affine, operator: str, b: Affine) -> Condition:
    below, above = b - a, a - b
    match operator:
        case "==":
            return (((above, "="),),)
        case "!=":
            return (((below - 1, ">="),), ((above - 1, ">="),))
        case "<":
            return (((below - 1, ">="),),)
        case "<=":
            return (((below, ">="),),)
        case ">":
            return (((above - 1, ">="),),)
        case _:
            return (((above, ">="),),)


# Functions in integer expressions whose value depends on their arguments' values only.
_WHOLE = frozenset("int nint iabs min0 max0 ishft iand ior ieor".split())
_PURE = frozenset("mod modulo abs iabs min max min0 max0 int nint ishft iand ior ieor".split())
