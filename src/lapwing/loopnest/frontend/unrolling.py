"""Full unrolling of short inner loops over offsets, after which accesses are uniform (Allen and Kennedy, chapter 8).

for d in range(-1, 2):              s += u[i + -1, j]
    s += u[i + d, j]        →       s += u[i + 0, j]
                                    s += u[i + 1, j]
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lapwing.loopnest import ir

MOST_COPIES = 32  # of one statement

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_CALLS: dict[str, Callable[..., Any]] = {"abs": abs, "min": min, "max": max}

Statements = tuple[ir.Statement, ...]


def unrolled(nest: ir.LoopNest) -> ir.LoopNest:
    """The nest without inner loops whose index moves accesses along a loop around them, where these loops have few iterations,
    as many in every call, and end early in none or all of them; and of conditions on integers of the text, as loops over tuples
    leave them (``normalisation.tuple_loops``), only what is done."""
    body, _ = _block(tuple(_decided(nest.body)) or nest.body, frozenset(nest.loop_names))
    return nest if body == nest.body else replace(nest, body=body)


def _decided(statements: Sequence[ir.Statement]) -> Iterator[ir.Statement]:
    """Statements, and of conditions that are known only what is done."""
    for statement in statements:
        match statement:
            case ir.If(test=test, then=then, otherwise=otherwise):
                known = _expression(test, {})
                if isinstance(known, ir.Constant):
                    yield from _decided(then if known.value else otherwise)
                    continue
                yield replace(statement, then=tuple(_decided(then)), otherwise=tuple(_decided(otherwise)))
            case ir.For(body=body) | ir.While(body=body):
                yield replace(statement, body=tuple(_decided(body)))
            case _:
                yield statement


def _block(statements: Statements, around: frozenset[str]) -> tuple[Statements, int]:
    """The statements, and how often the one that is repeated most stands there. around: the indices of loops around them."""
    found: list[ir.Statement] = []
    most = 1
    for statement in statements:
        one, copies = _statement(statement, around)
        found += one
        most = max(most, copies)
    return tuple(found), most


def _statement(statement: ir.Statement, around: frozenset[str]) -> tuple[Statements, int]:
    match statement:
        case ir.If(then=then, otherwise=otherwise):
            (then, first), (otherwise, second) = _block(then, around), _block(otherwise, around)
            return (replace(statement, then=then, otherwise=otherwise),), max(first, second)
        case ir.While(body=body):
            body, copies = _block(body, around)
            return (replace(statement, body=body),), copies
        case ir.For(body=body):
            values = _values(statement)
            if values is not None and _moves_accesses(statement, around) and not _adds_exactly(statement):
                iterations = _iterations(statement, values)
                parts = [_block(iteration, around) for iteration in iterations or ()]
                copies = sum(number for _, number in parts)
                if iterations is not None and copies <= MOST_COPIES:
                    return tuple(s for part, _ in parts for s in part), copies
            body, copies = _block(body, around | {statement.index})
            return (replace(statement, body=body),), copies
    return (statement,), 1


def _values(loop: ir.For) -> range | None:
    """The values of the index, where they are the same in every call and not many."""
    start, stop = loop.affine
    step = loop.fixed_step
    if step is None or start is None or stop is None or start.terms or stop.terms:
        return None
    values = range(start.constant, stop.constant, step)
    return values if len(values) <= MOST_COPIES else None


def _moves_accesses(loop: ir.For, around: frozenset[str]) -> bool:
    """Whether a subscript holds the loop's index and that of a loop around it."""
    accesses = [access for _, access in ir.body_reads(loop.body)]
    accesses += [s.target for s in ir.all_statements(loop.body) if isinstance(s, ir.Store)]
    return any(
        loop.index in affine.names and affine.names & around
        for access in accesses
        for affine in access.affine
        if affine is not None
    )


def _adds_exactly(loop: ir.For) -> bool:
    """Whether it adds terms to a sum that is rounded behind a loop."""
    return any(isinstance(statement, ir.AddTerm) for statement in ir.all_statements(loop.body))


def _iterations(loop: ir.For, values: Sequence[int]) -> list[Statements] | None:
    """What each iteration does; None where one ends early in some runs only."""
    found: list[Statements] = []
    for value in values:
        statements: list[ir.Statement] = []
        last: ir.Statement | None = None
        for last in _with_values(loop.body, {loop.index: value}):
            if isinstance(last, ir.Break | ir.Continue):
                break
            if _jumps([last]):
                return None
            statements.append(last)
        found.append(tuple(statements))
        if isinstance(last, ir.Break):
            break
    return found


def _jumps(statements: Sequence[ir.Statement]) -> bool:
    """Whether statements hold a jump that is about the loop around them."""
    for statement in statements:
        if isinstance(statement, ir.Break | ir.Continue):
            return True
        if isinstance(statement, ir.If) and (_jumps(statement.then) or _jumps(statement.otherwise)):
            return True
    return False


def _with_values(statements: Sequence[ir.Statement], values: Mapping[str, int]) -> Iterator[ir.Statement]:
    """Statements with numbers in place of indices; of conditions that are then known only what is done."""
    for statement in statements:
        match statement:
            case ir.If(test=test, then=then, otherwise=otherwise):
                test = _expression(test, values)
                if isinstance(test, ir.Constant):
                    yield from _with_values(then if test.value else otherwise, values)
                    continue
                arms = (tuple(_with_values(arm, values)) for arm in (then, otherwise))
                yield ir.If(statement.line, statement.text, test, *arms)
            case ir.Store(target=target, value=value):
                yield replace(statement, target=_access(target, values), value=_expression(value, values))
            case ir.AddTerm(value=value, term=term):
                yield replace(statement, value=_expression(value, values), term=_expression(term, values))
            case ir.SetTemporary(value=value):
                yield replace(statement, value=_expression(value, values))
            case ir.Accumulate(value=value, payload=payload):
                kept = tuple((name, _expression(its, values)) for name, its in payload)
                yield replace(statement, value=_expression(value, values), payload=kept)
            case ir.While(test=test, body=body):
                yield replace(statement, test=_expression(test, values), body=tuple(_with_values(body, values)))
            case ir.For(start=start, stop=stop, step=step, affine=affine, body=body):
                first, last = (None if bound is None else bound.substitute(values) for bound in affine)
                yield replace(
                    statement,
                    start=_expression(start, values),
                    stop=_expression(stop, values),
                    step=_expression(step, values),
                    affine=(first, last),
                    body=tuple(_with_values(body, values)),
                )
            case _:
                yield statement


def _expression(node: ir.Expression, values: Mapping[str, int]) -> ir.Expression:
    """An expression with numbers in place of indices, and what they alone make computed: Python's integers, exactly."""
    match node:
        case ir.LoopIndex(name=name) if name in values:
            return ir.Constant(values[name], line=node.line)
        case ir.Access():
            return _access(node, values)
        case ir.Unary(operator=sign, operand=operand):
            operand = _expression(operand, values)
            known = _known(operand)
            if sign in ("-", "not") and known is not None:
                return ir.Constant(-known if sign == "-" else not known, line=node.line)
            return replace(node, operand=operand)
        case ir.Binary(operator=sign, left=left, right=right) | ir.Comparison(operator=sign, left=left, right=right):
            left, right = _expression(left, values), _expression(right, values)
            a, b = _known(left), _known(right)
            if sign in _OPERATORS and a is not None and b is not None and not (sign in ("//", "%") and b == 0):
                return ir.Constant(_OPERATORS[sign](a, b), line=node.line)
            return replace(node, left=left, right=right)
        case ir.Boolean(operator=sign, operands=operands):
            return _boolean(node, sign == "and", [_expression(operand, values) for operand in operands])
        case ir.Conditional(test=test, then=then, otherwise=otherwise):
            test, then, otherwise = (_expression(part, values) for part in (test, then, otherwise))
            if isinstance(test, ir.Constant):
                return then if test.value else otherwise
            return replace(node, test=test, then=then, otherwise=otherwise)
        case ir.Call(function=function, arguments=arguments):
            arguments = tuple(_expression(argument, values) for argument in arguments)
            numbers = [number for number in map(_known, arguments) if number is not None]
            if function in _CALLS and len(numbers) == len(arguments):
                return ir.Constant(_CALLS[function](*numbers), line=node.line)
            return replace(node, arguments=arguments)
    return node


def _boolean(node: ir.Boolean, is_and: bool, operands: Sequence[ir.Expression]) -> ir.Expression:
    """``and`` and ``or``: operands that decide nothing are left out, and so is what comes after one that decides."""
    kept: list[ir.Expression] = []
    for operand in operands:
        if isinstance(operand, ir.Constant) and type(operand.value) is bool:
            if operand.value == is_and:
                continue
            kept.append(operand)
            break
        kept.append(operand)
    if not kept:
        return ir.Constant(is_and, line=node.line)
    return kept[0] if len(kept) == 1 else replace(node, operands=tuple(kept))


def _known(node: ir.Expression) -> int | None:
    """A constant integer or bool."""
    return node.value if isinstance(node, ir.Constant) and isinstance(node.value, int) else None


def _access(access: ir.Access, values: Mapping[str, int]) -> ir.Access:
    subscripts = tuple(_expression(subscript, values) for subscript in access.subscripts)
    affine = tuple(None if index is None else index.substitute(values) for index in access.affine)
    return ir.Access(access.array, subscripts, affine, _text(access.text, values), line=access.line)


class _Named(ast.NodeTransformer):
    def __init__(self, values: Mapping[str, int]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(self.values[node.id]) if node.id in self.values else node


def _text(text: str, values: Mapping[str, int]) -> str:
    tree = ast.parse(text, mode="eval")
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return ast.unparse(_Named(values).visit(tree)) if names & set(values) else text
