"""The loop nest as data: what the front end makes of a Python function.

Everything is a frozen dataclass. Nothing here knows sizes or dtypes: those come when the nest is bound to arguments.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lapwing.affine.affine import Affine
from lapwing.loopnest.normalisation.counted_loops import Unpacking
from lapwing.loopnest.normalisation.nests.forward_substitution import Taken

# Comparisons that hold where others do not, and of operands in the other order.
OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


@dataclass(frozen=True)
class Expression:
    """Base of all expressions; ``line`` is the line in the user's file."""

    line: int = field(compare=False, kw_only=True)


@dataclass(frozen=True, eq=False)
class Constant(Expression):
    """Equal to those of the same type and bits: 0.0 is not -0.0, and no 1."""

    value: bool | int | float | complex

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constant):
            return NotImplemented
        return type(self.value) is type(other.value) and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash(self.value)


@dataclass(frozen=True)
class Parameter(Expression):
    """A scalar whose value is fixed for a whole call: an argument, a global number, a name set before the loops."""

    name: str


@dataclass(frozen=True)
class LoopIndex(Expression):
    name: str


@dataclass(frozen=True)
class Temporary(Expression):
    """A scalar assigned earlier in the same iteration."""

    name: str


@dataclass(frozen=True)
class Access(Expression):
    """One element of an array. ``affine`` holds, per axis, the subscript as an affine expression, or None for a look-up.
    ``from_end``: the axes along which the text counts from the end, and the subscript from the start. ``taken``: where the text
    takes it besides."""

    array: str
    subscripts: tuple[Expression, ...]
    affine: tuple[Affine | None, ...]
    text: str = field(compare=False)
    from_end: tuple[int, ...] = ()
    taken: tuple[Taken, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Unary(Expression):
    """``operator`` is one of ``-``, ``+``, ``~``, ``not``."""

    operator: str
    operand: Expression


@dataclass(frozen=True)
class Binary(Expression):
    """``operator`` is one of ``+ - * / // % ** & | ^``."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Comparison(Expression):
    """``operator`` is one of ``< <= > >= == !=``."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Boolean(Expression):
    """``operator`` is ``and`` or ``or``; evaluation stops early as in Python."""

    operator: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True)
class Conditional(Expression):
    """``then if test else otherwise``; only the chosen branch is evaluated."""

    test: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True)
class Call(Expression):
    """A call of a supported function, by its canonical name: ``min``, ``math.exp``, ``numpy.sqrt``, ``numpy.float32``.

    Parts of complex numbers are among them: ``z.real`` is a call of ``real``, ``z.conjugate()`` one of ``conjugate``.
    """

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Statement:
    """One assignment of the loop body; ``text`` is the user's source line."""

    line: int
    text: str


@dataclass(frozen=True)
class Store(Statement):
    target: Access
    value: Expression


@dataclass(frozen=True)
class SetTemporary(Statement):
    name: str
    value: Expression


@dataclass(frozen=True)
class AddTerm(SetTemporary):
    """``name = name + term`` in a sequential region, where the sum of floats is exact: ``Rounded`` follows behind the loop.

    ``value`` is that sum as the plain loop adds it.
    """

    term: Expression


@dataclass(frozen=True)
class Rounded(SetTemporary):
    """``value`` is the scalar itself; where terms have been added exactly, the sum is rounded here."""


@dataclass(frozen=True)
class Accumulate(Statement):
    """``name = operator(name, value)`` with operator ``max``, ``min`` or ``+``; with ``set``, ``name = value``, a constant.

    With operator ``>``, ``>=``, ``<`` or ``<=``: ``if value operator name``, name takes the value, and each scalar of the payload
    its own (argmax and the like). Of equal values the first iteration's counts, with ``>=`` and ``<=`` the last one's.
    """

    name: str
    operator: str
    value: Expression
    payload: tuple[tuple[str, Expression], ...] = ()


@dataclass(frozen=True)
class If(Statement):
    """``text`` is the line of its head."""

    test: Expression
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]


@dataclass(frozen=True)
class For(Statement):
    """An inner loop, ``for index in range(start, stop, step)``: each iteration of the loops around it does all of it.

    ``affine``: its bounds as affine expressions, None where they are not, or the step is no number in the text. ``independent``:
    whether no dependence joins two of its iterations.
    """

    index: str
    start: Expression
    stop: Expression
    step: Expression
    affine: tuple[Affine | None, Affine | None]
    body: tuple[Statement, ...]
    independent: bool = False

    @property
    def fixed_step(self) -> int | None:
        """The step where it is a number in the text."""
        match self.step:
            case Constant(value=int() as value):
                return int(value)
        return None


@dataclass(frozen=True)
class While(Statement):
    test: Expression
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Break(Statement):
    """Ends the innermost For or While."""


@dataclass(frozen=True)
class Continue(Statement):
    """Ends an iteration of the innermost For or While, or of the nest's loops where there is none."""


@dataclass(frozen=True)
class Loop:
    """``for name in range(start, stop, step)`` with step 1 or -1; bounds are affine in outer indices and symbols.

    Of several ``starts`` the last in the loop's direction counts, of several ``stops`` the first: ``max(1, i - k)`` and
    ``min(n, i + k + 1)``. ``integers``: symbols besides that Python's own bounds hold. ``leaves_out``: whether the body is under
    conditions that Python's iterations fulfil, and not all within the bounds.
    """

    name: str
    starts: tuple[Affine, ...]
    stops: tuple[Affine, ...]
    step: int
    line: int
    integers: frozenset[str] = frozenset()
    leaves_out: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether Python's own bounds are affine and its step is 1 or -1."""
        return not self.leaves_out and len(self.bounds) == 2

    @property
    def bounds(self) -> tuple[Affine, ...]:
        return (*self.starts, *self.stops)

    @property
    def bound_names(self) -> frozenset[str]:
        """The indices and symbols that the bounds depend on."""
        return frozenset().union(*(bound.names for bound in self.bounds))


WHOLE = "whole region"  # the loop of a sequential region: not a name that Python allows, so nobody else's


@dataclass(frozen=True)
class Setup:
    """An assignment before the loops, evaluated once a call from the arguments: ``n, m = u.shape``."""

    targets: tuple[str, ...]
    value: ast.expr = field(compare=False)
    line: int


@dataclass(frozen=True)
class LoopNest:
    """Loops that are cut into tiles, and what an iteration of them does.

    ``symbols`` maps the names that occur in affine expressions to the Python expression that gives their value.
    ``sweep_depth`` counts the outermost loops that some written array is not indexed by. ``axis_loops`` has, for every written
    array, the loop that indexes each axis, plus a constant, in all accesses; None for a *local* axis, which no rank cuts and
    which may be indexed in any way.

    ``unpackings``: the axes whose length is the number of names that take their elements.

    A *sequential region* is a nest of one loop of one iteration, which does everything in its own order on one rank.
    ``is_generic``: whether nothing is made of the values of its integer arguments but ``kept``, so that calls with others are
    alike.
    ``leaves_unset``: whether a sequential region may return scalars that have no value. ``dead``: arrays of which nobody reads
    elements after the loops. ``of_one_type``: whether it is refused where a scalar may have several types, but for those in
    ``of_any_type``. ``by_sweep``: whether
    every sweep has reductions of its own, which begin anew: the value of each is a tuple then, one of every sweep.
    ``assumed``: what must not be negative in any iteration of so many outer loops, for the nest to be what was written.
    """

    name: str
    file: str
    line: int
    parameters: tuple[str, ...]
    setups: tuple[Setup, ...]
    loops: tuple[Loop, ...]
    body: tuple[Statement, ...]
    arrays: tuple[str, ...]
    written: tuple[str, ...]
    accumulators: tuple[str, ...]
    returns: tuple[str, ...]
    returns_tuple: bool
    symbols: tuple[tuple[str, ast.expr], ...] = field(compare=False)
    sweep_depth: int
    is_generic: bool = False
    kept: frozenset[str] = frozenset()
    leaves_unset: bool = False
    axis_loops: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict, compare=False)
    unpackings: tuple[Unpacking, ...] = ()
    dead: tuple[str, ...] = ()
    of_one_type: bool = False
    of_any_type: frozenset[str] = frozenset()
    by_sweep: bool = False
    assumed: tuple[tuple[int, Affine], ...] = ()

    @property
    def loop_names(self) -> tuple[str, ...]:
        return tuple(loop.name for loop in self.loops)

    @property
    def has_open_loops(self) -> bool:
        """Whether some inner loop has no known number of iterations."""
        return any(isinstance(s, While) for s in all_statements(self.body))

    @property
    def symbol_names(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.symbols)

    @property
    def sweep_loops(self) -> tuple[Loop, ...]:
        return self.loops[: self.sweep_depth]

    @property
    def space_loops(self) -> tuple[Loop, ...]:
        return self.loops[self.sweep_depth :]

    @property
    def stores(self) -> tuple[Store, ...]:
        return tuple(s for s in simple_statements(self.body) if isinstance(s, Store))

    @property
    def is_sequential(self) -> bool:
        return self.loop_names == (WHOLE,)

    def returned(self, results: Mapping[str, Any]) -> Any:
        """What the function returns, from the values of reductions by name."""
        if not self.returns:
            return None
        if not self.returns_tuple:
            return results[self.returns[0]]
        return tuple(results[name] for name in self.returns)

    def where(self, line: int) -> str:
        """``file:line`` for messages, with the file as a person would type it."""
        return f"{self.file}:{line}"


def children(expression: Expression) -> tuple[Expression, ...]:
    """The direct sub-expressions, in evaluation order."""
    match expression:
        case Unary(operand=operand):
            return (operand,)
        case Binary(left=left, right=right) | Comparison(left=left, right=right):
            return (left, right)
        case Boolean(operands=operands):
            return operands
        case Conditional(test=test, then=then, otherwise=otherwise):
            return (test, then, otherwise)
        case Call(arguments=arguments):
            return arguments
        case Access(subscripts=subscripts):
            return subscripts
        case _:
            return ()


def reads(expression: Expression) -> tuple[Access, ...]:
    """Every array element the expression may read, left to right, those inside subscripts first."""
    found: list[Access] = []

    def visit(node: Expression) -> None:
        for child in children(node):
            visit(child)
        if isinstance(node, Access):
            found.append(node)

    visit(expression)
    return tuple(found)


def own_expressions(statement: Statement) -> tuple[Expression, ...]:
    """What a statement evaluates itself, in order: not what the statements inside it do."""
    match statement:
        case Store(target=target, value=value):
            return (value, *target.subscripts)
        case SetTemporary(value=value):
            return (value,)
        case Accumulate(value=value, payload=payload):
            return (value, *(its for _, its in payload))
        case If(test=test) | While(test=test):
            return (test,)
        case For(start=start, stop=stop, step=step):
            return (start, stop, step)
    return ()


def inner_bodies(statement: Statement) -> tuple[tuple[Statement, ...], ...]:
    """The statements inside a statement."""
    match statement:
        case If(then=then, otherwise=otherwise):
            return (then, otherwise)
        case For(body=body) | While(body=body):
            return (body,)
    return ()


def all_statements(body: Iterable[Statement]) -> Iterator[Statement]:
    """Every statement, those inside others after them, in textual order."""
    for statement in body:
        yield statement
        for inner in inner_bodies(statement):
            yield from all_statements(inner)


def simple_statements(body: Iterable[Statement]) -> Iterator[Statement]:
    """Those that hold no others."""
    return (s for s in all_statements(body) if not inner_bodies(s))


def written_arrays(body: Iterable[Statement]) -> tuple[str, ...]:
    """The arrays that statements write, in textual order."""
    return tuple(dict.fromkeys(s.target.array for s in all_statements(body) if isinstance(s, Store)))


def statement_reads(statement: Statement) -> tuple[Access, ...]:
    """The array elements a statement may read itself."""
    return tuple(access for expression in own_expressions(statement) for access in reads(expression))


def body_reads(body: Iterable[Statement], in_part: Collection[str] = ()) -> Iterator[tuple[int, Access]]:
    """Every element that statements may read, each with the place of its statement among all of them, in textual order.

    A store that may not be done leaves an element as it is, as if it were read and stored again: it is among them. So it is of
    arrays stored ``in_part``: of what counts as one element.
    """
    place = 0
    stack = [(statement, False) for statement in reversed(tuple(body))]
    while stack:
        statement, guarded = stack.pop()
        for access in statement_reads(statement):
            yield place, access
        if isinstance(statement, Store) and (guarded or statement.target.array in in_part):
            yield place, statement.target
        inner = [s for block in inner_bodies(statement) for s in block]
        stack += [(s, True) for s in reversed(inner)]
        place += 1


def assigned_names(body: Iterable[Statement]) -> frozenset[str]:
    """The scalars that statements assign to."""
    return frozenset(s.name for s in all_statements(body) if isinstance(s, SetTemporary))
