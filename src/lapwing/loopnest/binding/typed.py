"""Typed expressions: every conversion explicit, every operation with the dtype it computes in.

Made by ``lowering`` from the IR and the argument types, printed as C by ``codegen``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeGuard

from lapwing.affine.affine import Affine
from lapwing.loopnest.binding.promotion import ScalarType
from lapwing.loopnest.functions import NUMPY_COMPLEX_LOOPS, NUMPY_LOOPS


@dataclass(frozen=True)
class Typed:
    """Base; ``dtype`` is the NumPy name of the C representation."""

    dtype: str


@dataclass(frozen=True, eq=False)
class Literal(Typed):
    """Equal to those of the same type and bits: 0.0 is not -0.0."""

    value: bool | int | float | complex

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        return self.dtype == other.dtype and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash((self.dtype, self.value))


@dataclass(frozen=True)
class Scalar(Typed):
    """A parameter, by its name in the nest."""

    name: str


@dataclass(frozen=True)
class Index(Typed):
    """A loop index with the value the user's loop gives it."""

    name: str


@dataclass(frozen=True)
class Local(Typed):
    """A temporary; each assignment makes a new version."""

    name: str
    version: int


@dataclass(frozen=True)
class AffineValue(Typed):
    """The value of an affine expression over loop indices and symbols."""

    affine: Affine


@dataclass(frozen=True)
class AffineSubscript:
    """``affine`` over loop indices and symbols, plus ``wrap`` for a negative index that counts from the end."""

    affine: Affine
    wrap: int = 0


@dataclass(frozen=True)
class LookupSubscript:
    """A computed index; ``trap`` is raised when it is out of range, None where it cannot be.

    ``counts_from_end``: whether it may be negative. ``guarded``: whether it is inside wherever conditions hold that it stands
    under, so that nothing need look at it there.
    """

    index: Typed
    axis: int
    trap: int | None
    counts_from_end: bool = False
    guarded: bool = False

    @property
    def is_checked(self) -> bool:
        """Whether it is looked at where it stands."""
        return self.trap is not None and not self.guarded


@dataclass(frozen=True)
class Load(Typed):
    array: str
    subscripts: tuple[AffineSubscript | LookupSubscript, ...]


@dataclass(frozen=True)
class Convert(Typed):
    """Value conversion; one to an integer carries a trap where a value that does not fit is an error."""

    operand: Typed
    trap: int | None = None


@dataclass(frozen=True)
class Operation(Typed):
    """``operator`` on operands that all have the computing dtype; ``trap`` where Python would raise."""

    operator: str
    operands: tuple[Typed, ...]
    trap: int | None = None


@dataclass(frozen=True)
class Select(Typed):
    """``speculable``: both arms may be evaluated whatever the test says, as vectors do."""

    test: Typed
    then: Typed
    otherwise: Typed
    speculable: bool = False


@dataclass(frozen=True)
class TypedStore:
    line: int
    text: str
    target: Load
    value: Typed


@dataclass(frozen=True)
class TypedLocal:
    line: int
    text: str
    local: Local
    value: Typed


@dataclass(frozen=True)
class TypedAccumulate:
    """``position``: of the iteration, in the order of the plain loop, where that decides between equal values; ``payload``: what
    other accumulators take then."""

    line: int
    text: str
    name: str
    value: Typed
    position: tuple[Typed, ...] = ()
    payload: tuple[tuple[str, Typed], ...] = ()


@dataclass(frozen=True)
class TypedRounded:
    """A local with the exact sum of a value and of all terms that an accumulator has taken, rounded once; it has none left then.
    ``noted``: a local that says whether there were any."""

    line: int
    text: str
    local: Local
    value: Typed
    accumulator: str
    noted: Local


@dataclass(frozen=True)
class TypedVariable:
    """Declares a local that ``TypedAssign`` gives its values: one that paths of control flow join in (a φ of SSA form).

    ``value``: of one that a loop carries, before the first iteration.
    """

    line: int
    text: str
    local: Local
    value: Typed | None = None


@dataclass(frozen=True)
class TypedAssign:
    line: int
    text: str
    local: Local
    value: Typed


@dataclass(frozen=True)
class TypedIf:
    line: int
    text: str
    test: Typed
    then: tuple[TypedStatement, ...]
    otherwise: tuple[TypedStatement, ...]


@dataclass(frozen=True)
class TypedFor:
    """An inner loop over int64 bounds, and by a step, that are evaluated once, before it; ``independent``: see ``ir.For``;
    ``exist``: elements that are known to exist in all iterations."""

    line: int
    text: str
    index: Index
    start: Typed
    stop: Typed
    step: Typed
    body: tuple[TypedStatement, ...]
    independent: bool = False
    exist: frozenset[Load] = frozenset()


@dataclass(frozen=True)
class TypedWhile:
    line: int
    text: str
    test: Typed
    body: tuple[TypedStatement, ...]


@dataclass(frozen=True)
class TypedCheck:
    """Looks whether evaluating an expression raises, and does nothing else. array: whether the value is an index of one's axis,
    counted from the start."""

    line: int
    text: str
    value: Typed
    array: str | None = None
    axis: int = 0


@dataclass(frozen=True)
class TypedStrips:
    """Declares arrays with an element for every iteration of a strip, by their names, with their dtypes: nobody else has them."""

    line: int
    text: str
    arrays: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class TypedJump:
    """``kind`` is ``break``, ``continue``, or ``return``: the end of an iteration of the nest's own loops."""

    line: int
    text: str
    kind: str


SimpleStatement = TypedStore | TypedLocal | TypedAssign | TypedAccumulate | TypedRounded  # what gives something a value
TypedStatement = (
    SimpleStatement | TypedVariable | TypedIf | TypedFor | TypedWhile | TypedCheck | TypedStrips | TypedJump
)


@dataclass(frozen=True)
class Accumulator:
    """A reduction: ``operator`` is max, min, + or set; ``initial`` the value before the loops; ``dtype`` of the result;
    ``term``: of an extremum, the type of what it is taken of, where that is always the same.

    Of a sequential region, a scalar that it gives back: ``operator`` is =; whether the one that it is ``of`` has a value: is set;
    which of several types it has, by its number among ``kinds`` from 1 on, or 0 where that is not known: kind.

    Of a sum of integers, whether there has been a term: noted. The terms of a sum that is rounded inside of a sequential
    region: terms.

    Where the argument of an extremum is wanted, ``operator`` is >, >=, < or <=, and accumulators that follow this ``leader``
    hold where it was found (``at``, one for every loop) and what was to be kept of that iteration (``with``).

    A complex result has an accumulator for each ``part``, real and imag.
    """

    name: str
    operator: str
    dtype: str
    weak: bool
    initial: bool | int | float
    term: ScalarType | None = None
    leader: str | None = None
    part: str | None = None
    of: str | None = None
    kinds: tuple[ScalarType, ...] = ()

    @property
    def result(self) -> str:
        """The name of what the function returns."""
        return self.name if self.part is None else self.name.removesuffix(f" {self.part}")

    @property
    def is_shared(self) -> bool:
        """Whether it is updated in place by whatever is computed at the same time: others have a partial result each."""
        return self.exact_sum or self.leader is not None or self.operator in ("set", "noted")

    @property
    def exact_sum(self) -> bool:
        """Float sums are accumulated exactly and rounded once, so no order of adding can show."""
        return self.operator in ("+", "terms") and self.dtype.startswith("float")


@dataclass(frozen=True)
class Trap:
    """A place where the plain loop would raise: what to tell the user. ``is_beyond``: where it may go on, with a number that
    there is none of in C."""

    line: int
    message: str
    is_beyond: bool = False


@dataclass(frozen=True)
class TypedBody:
    statements: tuple[TypedStatement, ...]
    accumulators: tuple[Accumulator, ...]
    traps: tuple[Trap, ...]

    @cached_property
    def simple(self) -> tuple[SimpleStatement, ...]:
        """Every statement that gives something a value, those inside others too, in textual order."""
        return tuple(s for s in all_statements(self.statements) if isinstance(s, SimpleStatement))

    @property
    def is_straight(self) -> bool:
        """Whether all statements are done in every iteration, once."""
        return all(isinstance(s, SimpleStatement) for s in self.statements)


def children(node: Typed) -> tuple[Typed, ...]:
    """The direct sub-expressions."""
    match node:
        case Operation(operands=operands):
            return operands
        case Convert(operand=operand):
            return (operand,)
        case Select(test=test, then=then, otherwise=otherwise):
            return (test, then, otherwise)
        case Load(subscripts=subscripts):
            return tuple(s.index for s in subscripts if isinstance(s, LookupSubscript))
    return ()


def mapped(node: Typed, of: Callable[[Typed], Typed]) -> Typed:
    """The expression with something else in the place of each direct sub-expression."""
    match node:
        case Operation(operands=operands):
            return replace(node, operands=tuple(map(of, operands)))
        case Convert(operand=operand):
            return replace(node, operand=of(operand))
        case Select(test=test, then=then, otherwise=otherwise):
            return replace(node, test=of(test), then=of(then), otherwise=of(otherwise))
        case Load(subscripts=subscripts):
            parts = (replace(s, index=of(s.index)) if isinstance(s, LookupSubscript) else s for s in subscripts)
            return replace(node, subscripts=tuple(parts))
    return node


def may_raise(node: Typed) -> bool:
    """Whether evaluating an expression itself may raise: not what its sub-expressions may."""
    match node:
        case Operation(trap=trap) | Convert(trap=trap):
            return trap is not None
        case Load(subscripts=subscripts):
            return any(isinstance(s, LookupSubscript) and s.trap is not None for s in subscripts)
    return False


def walk(node: Typed) -> Iterator[Typed]:
    """The expression and all its sub-expressions."""
    yield node
    for child in children(node):
        yield from walk(child)


def indices_of(node: Typed) -> Iterator[str]:
    """The names of loop indices in an expression, those that only its sub-expressions have left out; one may come twice."""
    match node:
        case Index(name=name):
            yield name
        case AffineValue(affine=affine):
            yield from sorted(affine.names)
        case Load(subscripts=subscripts):
            for subscript in subscripts:
                if isinstance(subscript, AffineSubscript):
                    yield from sorted(subscript.affine.names)


def is_contiguous(load: Load, loop: str) -> bool:
    """Whether the next iteration of a loop touches the next element."""
    steps = [s.affine.coefficient(loop) if isinstance(s, AffineSubscript) else None for s in load.subscripts]
    return steps == [0] * (len(steps) - 1) + [1]


def numpy_loops(body: TypedBody) -> list[tuple[str, str]]:
    """NumPy's own loops that a body calls: names of functions and the dtypes they compute in."""
    nodes = (n for s in all_statements(body.statements) for value in own_values(s) for n in walk(value))
    found = set()
    for node in nodes:
        if is_numpy_loop(node):
            found.add((node.operator.removeprefix("numpy."), node.operands[0].dtype))
        elif isinstance(node, Operation) and node.operator == "scaled":  # where a part of the product vanishes
            found.add(("multiply", node.dtype))
    return sorted(found)


def is_numpy_loop(node: Typed) -> TypeGuard[Operation]:
    """Whether NumPy's own code computes an operation."""
    if not (isinstance(node, Operation) and node.operator.startswith("numpy.")):
        return False
    name = node.operator.removeprefix("numpy.")
    return name in NUMPY_LOOPS or (
        name in NUMPY_COMPLEX_LOOPS and node.operands[0].dtype in ("complex64", "complex128")
    )


def own_values_may_raise(statement: TypedStatement) -> bool:
    """Whether any expression that a statement evaluates itself may raise, or a part of it."""
    return any(may_raise(node) for value in own_values(statement) for node in walk(value))


def own_values_raise_nothing_there(statement: TypedStatement) -> bool:
    """Whether no expression that a statement evaluates itself raises under the conditions that it stands under."""
    return not any(
        any(isinstance(s, LookupSubscript) and s.is_checked for s in node.subscripts)
        if isinstance(node, Load)
        else may_raise(node)
        for value in own_values(statement)
        for node in walk(value)
    )


def own_values(statement: TypedStatement) -> tuple[Typed, ...]:
    """The expressions a statement evaluates itself, in order; not those of statements inside it."""
    match statement:
        case TypedStore(target=target, value=value):
            return (value, target)
        case TypedLocal(value=value) | TypedAssign(value=value) | TypedRounded(value=value):
            return (value,)
        case TypedAccumulate(value=value, position=position, payload=payload):
            return (value, *position, *(its for _, its in payload))
        case TypedVariable(value=Typed() as value) | TypedCheck(value=value):
            return (value,)
        case TypedIf(test=test) | TypedWhile(test=test):
            return (test,)
        case TypedFor(start=start, stop=stop, step=step):
            return (start, stop, step)
    return ()


def with_values(statement: TypedStatement, of: Callable[[Typed], Typed]) -> TypedStatement:
    """The statement, and those inside it, with other expressions in the place of those that they evaluate."""

    def block(statements: tuple[TypedStatement, ...]) -> tuple[TypedStatement, ...]:
        return tuple(with_values(s, of) for s in statements)

    match statement:
        case TypedStore(target=target, value=value):
            stored_to = of(target)
            assert isinstance(stored_to, Load)
            return replace(statement, value=of(value), target=stored_to)
        case TypedLocal(value=value) | TypedAssign(value=value) | TypedCheck(value=value) | TypedRounded(value=value):
            return replace(statement, value=of(value))
        case TypedAccumulate(value=value, position=position, payload=payload):
            places, kept = tuple(map(of, position)), tuple((name, of(its)) for name, its in payload)
            return replace(statement, value=of(value), position=places, payload=kept)
        case TypedVariable(value=Typed() as value):
            return replace(statement, value=of(value))
        case TypedIf(test=test, then=then, otherwise=otherwise):
            return replace(statement, test=of(test), then=block(then), otherwise=block(otherwise))
        case TypedFor(start=start, stop=stop, step=step, body=body):
            return replace(statement, start=of(start), stop=of(stop), step=of(step), body=block(body))
        case TypedWhile(test=test, body=body):
            return replace(statement, test=of(test), body=block(body))
    return statement


def without_early_ends(statements: tuple[TypedStatement, ...], kind: str = "return") -> tuple[TypedStatement, ...]:
    """The statements of an iteration, with what follows a condition that may end it in the arm that does not. As they are where
    both arms may go on, and may end. kind: of the jump that ends it."""
    for place, statement in enumerate(statements):
        if not (isinstance(statement, TypedIf) and _may_end(statement, kind)):
            continue
        then, otherwise, later = statement.then, statement.otherwise, statements[place + 1 :]
        if _ends(then, kind):
            otherwise = (*otherwise, *later)
        elif _ends(otherwise, kind):
            then = (*then, *later)
        elif later:
            return statements
        then, otherwise = (_without_jump(without_early_ends(arm, kind)) for arm in (then, otherwise))
        if not then:
            negated = Operation("bool", "not", (statement.test,))
            statement, then, otherwise = replace(statement, test=negated), otherwise, ()
        return (*statements[:place], replace(statement, then=then, otherwise=otherwise))
    return statements


def _may_end(statement: TypedStatement, kind: str) -> bool:
    """Whether an iteration may end in a condition."""
    if isinstance(statement, TypedIf):
        return any(_may_end(inner, kind) for inner in (*statement.then, *statement.otherwise))
    return isinstance(statement, TypedJump) and statement.kind == kind


def _ends(statements: tuple[TypedStatement, ...], kind: str) -> bool:
    """Whether control never comes to what follows."""
    last = statements[-1] if statements else None
    if isinstance(last, TypedIf):
        return _ends(last.then, kind) and _ends(last.otherwise, kind)
    return isinstance(last, TypedJump) and last.kind == kind


def _without_jump(statements: tuple[TypedStatement, ...]) -> tuple[TypedStatement, ...]:
    """Without the jump at the end of an iteration's last statements, which says nothing there."""
    return statements[:-1] if statements and isinstance(statements[-1], TypedJump) else statements


def all_statements(statements: Iterable[TypedStatement]) -> Iterator[TypedStatement]:
    """Every statement, those inside others after them, in textual order."""
    for statement in statements:
        yield statement
        match statement:
            case TypedIf(then=then, otherwise=otherwise):
                yield from all_statements((*then, *otherwise))
            case TypedFor(body=body) | TypedWhile(body=body):
                yield from all_statements(body)


def loads(statement: SimpleStatement) -> frozenset[Load]:
    """The array elements a statement reads."""
    values = own_values(statement)[:1] if isinstance(statement, TypedStore) else own_values(statement)
    return frozenset(node for value in values for node in walk(value) if isinstance(node, Load))
