"""Evaluates what stands before the loops (``n, m = u.shape``) and the symbols of affine expressions.

Only a small set of expressions is understood; nothing of the user's function is executed.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from lapwing.loopnest import ir
from lapwing.loopnest.functions import canonical_name

_BINARY = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
}  # fmt: skip
_UNARY: dict[type, Any] = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_}
_COMPARISON = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip


class UnsupportedSetup(Exception):
    """The expression is not one that may stand before the loops; the text names the part."""


def evaluate(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """The value of a set-up expression; ``names`` gives arguments, globals and earlier set-ups.

    Raises UnsupportedSetup for expressions outside the supported set, and whatever Python raises while computing.
    """
    match node:
        case ast.Constant(value=bool() | int() | float() | complex() as value):
            return value
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.Tuple(elts=elements):
            return tuple(evaluate(e, names) for e in elements)
        case ast.Attribute(value=ast.Name(id=name), attr="shape" | "ndim" | "size" as attribute) if name in names:
            if isinstance(names[name], np.ndarray) or hasattr(names[name], "shape"):
                return getattr(names[name], attribute)
        case ast.Attribute(value=ast.Name(id=name), attr=attribute) if names.get(name) is math or names.get(name) is np:
            constant = getattr(names[name], attribute, None)
            if isinstance(constant, float):
                return constant
        case ast.Attribute(value=of, attr="real" | "imag" as part):
            number = evaluate(of, names)
            if isinstance(number, int | float | complex | np.number):
                return getattr(number, part)
        case ast.Subscript(value=subscripted, slice=index):
            owner = evaluate(subscripted, names)
            if isinstance(owner, tuple):
                return owner[_slice(index, names) if isinstance(index, ast.Slice) else evaluate(index, names)]
        case ast.Call(func=ast.Name(id="len"), args=[argument], keywords=[]):
            value = evaluate(argument, names)
            return len(value) if isinstance(value, tuple) else value.shape[0]
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            return _UNARY[type(op)](evaluate(operand, names))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](evaluate(left, names), evaluate(right, names))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISON:
            return _COMPARISON[type(op)](evaluate(left, names), evaluate(right, names))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return evaluate(body if evaluate(test, names) else orelse, names)
        case ast.Call(func=function, args=arguments, keywords=[]):
            resolved = resolve(function, names)
            if resolved is not None and canonical_name(resolved) is not None:
                return resolved(*(evaluate(a, names) for a in arguments))
    raise UnsupportedSetup(ast.unparse(node))


def _slice(node: ast.Slice, names: Mapping[str, Any]) -> slice:
    ends = (node.lower, node.upper, node.step)
    return slice(*(None if end is None else evaluate(end, names) for end in ends))


def resolve(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """What a name, or a name in a module, stands for; None where that is nothing, and for any other expression."""
    match node:
        case ast.Name(id=name):
            return names.get(name)
        case ast.Attribute(value=ast.Name(id=name), attr=attribute):
            return getattr(names.get(name), attribute, None)
    return None


def needs_driver(nest: ir.LoopNest) -> bool:
    """Whether something stands before the loops that only Python can do: calls, methods, elements of arrays."""
    return any(_needs_python(setup.value, set(nest.arrays)) for setup in nest.setups)


def _needs_python(node: ast.AST, arrays: set[str]) -> bool:
    match node:
        case ast.Subscript(value=ast.Name(id=name)) if name in arrays:
            return True
        case ast.Call(func=ast.Name() | ast.Attribute(value=ast.Name(id="math" | "np" | "numpy"))):
            pass
        case ast.Call() | ast.ListComp() | ast.GeneratorExp() | ast.DictComp() | ast.SetComp() | ast.NamedExpr():
            return True
        case ast.Attribute(attr="T"):
            return True
    return any(_needs_python(child, arrays) for child in ast.iter_child_nodes(node))
