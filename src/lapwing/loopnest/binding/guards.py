"""Which affine conditions hold where an array element is read.

``u[i - 1] if i > 0 else 0.0`` reads u only where i > 0: bounds are checked under that guard.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lapwing.affine.affine import Affine
from lapwing.loopnest import ir


@dataclass(frozen=True)
class NotZero:
    """An affine condition with a hole: ``i != 0``. Where the loops leave one side of it alone, it is a bound."""

    affine: Affine


Guards = tuple[Affine | NotZero, ...]  # what holds where an access is evaluated: an affine expression is >= 0


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
        """Where a test has the given truth as well."""
        return _Where(self.guards + _holds(test, truth), self.loops, is_certain=False)

    def inside(self, loop: ir.For) -> _Where:
        return _Where(self.guards, (*self.loops, loop), is_certain=False)


def occurrences(nest: ir.LoopNest) -> list[Occurrence]:
    """Every access of the body in textual order, writes last in a statement."""
    found: list[Occurrence] = []
    _visit_block(nest.body, _Where(), found)
    return found


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
                _visit_block(then, where.given(test, True), found)
                _visit_block(otherwise, where.given(test, False), found)
                if _jumps(then):  # only the other way leads to what follows
                    where = where.given(test, False)
                elif _jumps(otherwise):
                    where = where.given(test, True)
            case ir.For(body=body):
                _visit_block(body, where.inside(statement), found)
            case ir.While(test=test, body=body):
                _visit_block(body, where.given(test, True), found)


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
    guards = [g for o in node.operands[:place] for g in _holds(o, node.operator == "and")]
    return bool(guards) and _reads(node.operands[place])


def guards_arm(node: ir.Conditional) -> bool:
    """Whether an arm reads elements whose bounds were checked under what the test says."""
    arms = ((node.then, True), (node.otherwise, False))
    return any(_holds(node.test, truth) and _reads(arm) for arm, truth in arms)


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


def _holds(test: ir.Expression, truth: bool) -> Guards:
    """Affine conditions implied by the test having the given truth; nothing where that is not affine."""
    match test:
        case ir.Unary(operator="not", operand=operand):
            return _holds(operand, not truth)
        case ir.Boolean(operator=operator, operands=operands) if (operator == "and") == truth:
            return tuple(g for o in operands for g in _holds(o, truth))
        case ir.Comparison(operator=operator, left=left, right=right):
            a, b = affine_of(left), affine_of(right)
            if a is None or b is None:
                return ()
            if not truth:
                operator = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}[operator]
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
    return ()


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
