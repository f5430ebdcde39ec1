"""Which affine conditions hold where an array element is read.

``u[i - 1] if i > 0 else 0.0`` reads u only where i > 0: bounds are checked under that guard.
"""

from __future__ import annotations

from lapwing.affine.affine import Affine
from lapwing.loopnest import ir

Guards = tuple[Affine, ...]  # each is >= 0 where the access is evaluated


def guarded_accesses(nest: ir.LoopNest) -> list[tuple[ir.Access, Guards]]:
    """Every access of the body with the affine guards it stands under, in textual order, writes last in a statement."""
    found: list[tuple[ir.Access, Guards]] = []
    for statement in nest.body:
        if isinstance(statement, ir.Store | ir.SetTemporary | ir.Accumulate):
            _visit(statement.value, (), found)
        if isinstance(statement, ir.Store):
            _visit(statement.target, (), found)
    return found


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


def _visit(node: ir.Expression, guards: Guards, found: list[tuple[ir.Access, Guards]]) -> None:
    match node:
        case ir.Conditional(test=test, then=then, otherwise=otherwise):
            _visit(test, guards, found)
            _visit(then, guards + _holds(test, True), found)
            _visit(otherwise, guards + _holds(test, False), found)
        case ir.Boolean(operator=operator, operands=operands):
            for operand in operands:
                _visit(operand, guards, found)
                guards += _holds(operand, operator == "and")
        case _:
            for child in ir.children(node):
                _visit(child, guards, found)
            if isinstance(node, ir.Access):
                found.append((node, guards))


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
