"""Indices that are affine piece by piece are, at every point, what Python makes of them."""

from __future__ import annotations

import ast

import pytest

from lapwing.affine.affine import Affine
from lapwing.loopnest import ir
from lapwing.loopnest.pieces import Surroundings, pieces_of

N = 7
RANGES = {"i": (0, N - 1), "j": (0, 2)}
DEFINITIONS = {"down": "(i - 1) % n"}
BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Mod: "%", ast.FloorDiv: "//"}
COMPARISON = {ast.Lt: "<", ast.Gt: ">", ast.Eq: "==", ast.NotEq: "!="}


def expression(text: str) -> ir.Expression:
    return _expression(ast.parse(text, mode="eval").body)


def _expression(node: ast.expr) -> ir.Expression:
    match node:
        case ast.Constant(value=int() as value):
            return ir.Constant(value, line=1)
        case ast.Name(id=name) if name in RANGES:
            return ir.LoopIndex(name, line=1)
        case ast.Name(id=name) if name in DEFINITIONS:
            return ir.Temporary(name, line=1)
        case ast.Name(id=name):
            return ir.Parameter(name, line=1)
        case ast.UnaryOp(operand=operand):
            return ir.Unary("-", _expression(operand), line=1)
        case ast.BinOp(left=left, op=op, right=right):
            return ir.Binary(BINARY[type(op)], _expression(left), _expression(right), line=1)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return ir.Comparison(COMPARISON[type(op)], _expression(left), _expression(right), line=1)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return ir.Conditional(_expression(test), _expression(body), _expression(orelse), line=1)
        case ast.Call(func=ast.Name(id=name), args=args):
            return ir.Call(name, tuple(map(_expression, args)), line=1)
    raise AssertionError(ast.dump(node))


AROUND = Surroundings({"n": N, "k": 2}, RANGES, {name: expression(text) for name, text in DEFINITIONS.items()})


def holds(guards: tuple[Affine, ...], point: dict[str, int]) -> bool:
    return all(guard.evaluate(point) >= 0 for guard in guards)


@pytest.mark.parametrize(
    "text",
    [
        "(i + 1) % n",
        "(i - 3) % n",
        "(i + j) % n",
        "(1 - i) % n",
        "(down + k) % n",
        "down",
        "i - 1",
        "-1 - i",
        "1 + (i - 1) % (n - 2)",
        "i + 1 if i < n - 1 else 0",
        "0 if i == n - 1 else i + 1",
        "i - 1 if i != 0 else n - 1",
        "max(i - k, 0)",
        "min(n - 1, i + j)",
        "i * 2 % n",
    ],
)
def test_pieces_are_what_python_makes_of_them(text: str) -> None:
    pieces = pieces_of(expression(text), N, AROUND)
    assert pieces
    for i in range(N):
        for j in range(3):
            values = {"i": i, "j": j, "n": N, "k": 2, "down": (i - 1) % N}
            index = eval(text, {"max": max, "min": min}, values)
            expected = index + N if index < 0 else index
            point = {"i": i, "j": j}
            assert {p.index.evaluate(point) for p in pieces if holds(p.guards, point)} == {expected}, (text, point)


@pytest.mark.parametrize("text", ["i // 2", "i * i", "unknown", "(i * 3) % 2"])
def test_what_is_not_known_by_a_few_pieces(text: str) -> None:
    assert pieces_of(expression(text), N, AROUND) == ()


def test_pieces_say_where_they_hold() -> None:
    first, second = pieces_of(expression("(i + 1) % n"), N, AROUND)
    assert first.within(RANGES) == {"i": (0, N - 2), "j": (0, 2)}
    assert second.within(RANGES) == {"i": (N - 1, N - 1), "j": (0, 2)}
    assert second.within({"i": (0, 3), "j": (0, 2)}) is None
