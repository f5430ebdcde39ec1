"""Which affine conditions hold where an array element is read.

``u[i - 1] if i > 0 else 0.0`` reads u only where i > 0: bounds are checked under that guard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from lapwing.affine.affine import Affine
from lapwing.loopnest import ir


@dataclass(frozen=True)
class NotZero:
    """An affine condition with a hole: ``i != 0``. Where the loops leave one side of it alone, it is a bound."""

    affine: Affine


Guards = tuple[Affine | NotZero, ...]  # what holds where an access is evaluated: an affine expression is >= 0

# Guards of statements are over quotients, too, with guards that say what these are: where (i + j) % 2 == 0, twice some number is
# i + j. These are names that nobody else has.
_QUOTIENT = "⌊({}) / {}⌋"


def is_quotient(name: str) -> bool:
    """Whether a name in a guard is that of a quotient, an integer that the guards themselves say all about."""
    return name.startswith("⌊")


@dataclass(frozen=True)
class Occurrence:
    """An access where it stands: under affine guards, inside inner loops, the outermost first. ``is_certain``: whether it is
    evaluated in every iteration of the nest's loops."""

    access: ir.Access
    guards: Guards
    loops: tuple[ir.For, ...]
    is_certain: bool


@dataclass(frozen=True)
class _Where:
    """What holds where something stands; see Occurrence."""

    guards: Guards = ()
    loops: tuple[ir.For, ...] = ()
    is_certain: bool = True

    def given(self, test: ir.Expression, truth: bool) -> _Where:
        """Where a test has the given truth as well, inside an expression."""
        return _Where(self.guards + holds(test, truth), self.loops, is_certain=False)

    def under(self, test: ir.Expression, truth: bool) -> _Where:
        """The same of the test of a statement."""
        return _Where(self.guards + holds(test, truth, quasi_affine), self.loops, is_certain=False)

    def inside(self, loop: ir.For) -> _Where:
        return _Where(self.guards, (*self.loops, loop), is_certain=False)


def occurrences(nest: ir.LoopNest) -> list[Occurrence]:
    """Every access of the body in textual order, writes last in a statement."""
    found: list[Occurrence] = []
    _visit_block(nest.body, _Where(), found)
    return found


def around_all(nest: ir.LoopNest) -> Guards:
    """What holds wherever an iteration of the nest's loops does anything."""
    where, body = _Where(), nest.body
    while len(body) == 1 and isinstance(only := body[0], ir.If) and not only.otherwise and not ir.reads(only.test):
        tests = only.test.operands if _is_conjunction(only.test) else (only.test,)
        for test in tests:
            if _may_raise(test):  # also where what comes after it does not hold
                return where.guards
            where = where.under(test, True)
        body = only.then
    return where.guards


def _is_conjunction(test: ir.Expression) -> TypeGuard[ir.Boolean]:
    return isinstance(test, ir.Boolean) and test.operator == "and"


def _may_raise(node: ir.Expression) -> bool:
    """Whether computing a number may raise, or warn."""
    match node:
        case ir.Binary(operator="/" | "//" | "%" | "**" | "<<" | ">>", right=right):
            if not (isinstance(right, ir.Constant) and right.value):
                return True
        case ir.Call():
            return True
    return any(map(_may_raise, ir.children(node)))


def _visit_block(statements: Sequence[ir.Statement], where: _Where, found: list[Occurrence]) -> None:
    for statement in statements:
        if isinstance(statement, ir.Store):
            _visit(statement.value, where, found)
            _visit(statement.target, where, found)
        else:
            for expression in ir.own_expressions(statement):
                _visit(expression, where, found)
        match statement:
            case ir.If(test=test, then=then, otherwise=otherwise):
                _visit_block(then, where.under(test, True), found)
                _visit_block(otherwise, where.under(test, False), found)
                if _jumps(then):  # only the other way leads to what follows
                    where = where.under(test, False)
                elif _jumps(otherwise):
                    where = where.under(test, True)
            case ir.For(body=body):
                _visit_block(body, where.inside(statement), found)
            case ir.While(test=test, body=body):
                _visit_block(body, where.under(test, True), found)


def _jumps(statements: Sequence[ir.Statement]) -> bool:
    """Whether control never comes to the end of statements."""
    for statement in statements:
        match statement:
            case ir.Break() | ir.Continue():
                return True
            case ir.If(then=then, otherwise=otherwise) if _jumps(then) and _jumps(otherwise):
                return True
    return False


def guards_access(node: ir.Boolean, place: int) -> bool:
    """Whether an operand reads elements whose bounds were checked under what the operands before it say."""
    guards = [g for o in node.operands[:place] for g in holds(o, node.operator == "and")]
    return bool(guards) and _reads(node.operands[place])


def guards_arm(node: ir.Conditional) -> bool:
    """Whether an arm reads elements whose bounds were checked under what the test says."""
    arms = ((node.then, True), (node.otherwise, False))
    return any(holds(node.test, truth) and _reads(arm) for arm, truth in arms)


def _reads(node: ir.Expression) -> bool:
    return isinstance(node, ir.Access) or any(map(_reads, ir.children(node)))


def _visit(node: ir.Expression, where: _Where, found: list[Occurrence]) -> None:
    match node:
        case ir.Conditional(test=test, then=then, otherwise=otherwise):
            _visit(test, where, found)
            _visit(then, where.given(test, True), found)
            _visit(otherwise, where.given(test, False), found)
        case ir.Boolean(operator=operator, operands=operands):
            for operand in operands:
                _visit(operand, where, found)
                where = where.given(operand, operator == "and")
        case _:
            for child in ir.children(node):
                _visit(child, where, found)
            if isinstance(node, ir.Access):
                found.append(Occurrence(node, where.guards, where.loops, where.is_certain))


def _affine(node: ir.Expression) -> tuple[Affine, Guards] | None:
    form = affine_of(node)
    return None if form is None else (form, ())


def quasi_affine(node: ir.Expression) -> tuple[Affine, Guards] | None:
    """An integer expression as an affine one over indices, scalars and quotients, with what holds of these; or None."""
    if (form := affine_of(node)) is not None:
        return form, ()
    match node:
        case ir.Unary(operator="-", operand=operand) if (inner := quasi_affine(operand)) is not None:
            return -inner[0], inner[1]
        case ir.Binary(operator=operator, left=left, right=right):
            a, b = quasi_affine(left), quasi_affine(right)
            if a is None or b is None:
                return None
            (first, of_first), (second, of_second) = a, b
            known = of_first + of_second
            match operator:
                case "+":
                    return first + second, known
                case "-":
                    return first - second, known
                case "*" if not second.terms:
                    return first * second.constant, known
                case "*" if not first.terms:
                    return second * first.constant, known
                case "&" if not second.terms and second.constant > 0 and not second.constant & (second.constant + 1):
                    return _divided("%", first, second.constant + 1, known)
                case "//" | "%" if not second.terms and second.constant > 0:
                    return _divided(operator, first, second.constant, known)
    return None


def _divided(operator: str, value: Affine, divisor: int, known: Guards) -> tuple[Affine, Guards]:
    """``value // divisor`` or ``value % divisor``, of a positive number."""
    quotient = Affine.of(_QUOTIENT.format(value, divisor))
    remainder = value - quotient * divisor
    return quotient if operator == "//" else remainder, (*known, remainder, -remainder + (divisor - 1))


def holds(
    test: ir.Expression,
    truth: bool,
    form: Callable[[ir.Expression], tuple[Affine, Guards] | None] = _affine,
) -> Guards:
    """Conditions implied by the test having the given truth; nothing where its operands have no such form."""
    match test:
        case ir.Unary(operator="not", operand=operand):
            return holds(operand, not truth, form)
        case ir.Boolean(operator=operator, operands=operands) if (operator == "and") == truth:
            return tuple(g for o in operands for g in holds(o, truth, form))
        case ir.Comparison(operator=operator, left=left, right=right):
            a, b = form(left), form(right)
            if a is None or b is None:
                return ()
            if not truth:
                operator = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}[operator]
            return _compared(operator, a[0], b[0]) + a[1] + b[1]
    return ()


def _compared(operator: str, a: Affine, b: Affine) -> Guards:
    match operator:
        case "<":
            return (b - a - 1,)
        case "<=":
            return (b - a,)
        case ">":
            return (a - b - 1,)
        case ">=":
            return (a - b,)
        case "==":
            return (a - b, b - a)
        case "!=":
            return (NotZero(a - b),)
    raise AssertionError(operator)


def affine_of(node: ir.Expression) -> Affine | None:
    """An integer expression as an affine one over loop indices and scalars, or None."""
    match node:
        case ir.Constant(value=value) if type(value) is int:
            return Affine(value)
        case ir.LoopIndex(name=name) | ir.Parameter(name=name):
            return Affine.of(name)
        case ir.Unary(operator="-", operand=operand):
            inner = affine_of(operand)
            return None if inner is None else -inner
        case ir.Binary(operator="+" | "-" as operator, left=left, right=right):
            a, b = affine_of(left), affine_of(right)
            if a is None or b is None:
                return None
            return a + b if operator == "+" else a - b
        case ir.Binary(operator="*", left=left, right=right):
            a, b = affine_of(left), affine_of(right)
            if a is None or b is None or (a.terms and b.terms):
                return None
            return b * a.constant if not a.terms else a * b.constant
    return None
