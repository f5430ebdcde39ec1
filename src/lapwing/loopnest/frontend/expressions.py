"""Expressions of a nest: from Python's syntax tree to the IR, and which of them are affine."""

from __future__ import annotations

import ast
import builtins
import inspect
import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from lapwing.affine.affine import Affine
from lapwing.loopnest import ir
from lapwing.loopnest.functions import SUPPORTED_TEXT, argument_counts, canonical_name, way_out
from lapwing.loopnest.normalisation.counted_loops import Unpacking
from lapwing.loopnest.normalisation.nests.forward_substitution import taken_of
from lapwing.loopnest.refusals import Refusals, Stopped
from lapwing.loopnest.source import FunctionSource

BINARY = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
_OF_INTEGERS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod, "**": operator.pow,
    "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
}  # fmt: skip
_NUMBERS = bool | int | float | complex
_PARTS = ("real", "imag")  # attributes of numbers
_CONJUGATES = ("conjugate", "conj")  # their methods
MAX_AXES = 8  # LW_MAX_LOOPS of lapwing.h
_REDUCING = {"max": "maximum", "min": "minimum", "any": "logical_or", "all": "logical_and"}
_COMPARISON = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_UNARY = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not"}


@dataclass
class Scope:
    """What names mean while parsing: filled as the parser goes down the function.

    surroundings: globals, closure variables and builtins. inner_indices: of the inner loops that we are in. assigned_in_body: by
    any statement of the innermost body. carries_scalars: whether scalars keep their value from one iteration of the nest's
    loops to the next: it has none. assigned_in_loop: by any statement of an inner loop that we are in; what one of its iterations
    assigns the next may read, under a condition, which must not hold in the first (is_conditional). refused: names that something
    refused gives a value to: what they mean is not known, and nothing is said about them. changed: scalars that an augmented
    assignment changes; from_where: those that may be what numpy.where gives, an array without axes, which it changes in place.
    """

    parameters: tuple[str, ...]
    surroundings: Mapping[str, Any]
    setup_names: dict[str, ast.expr] = field(default_factory=dict)
    loops: list[ir.Loop] = field(default_factory=list)
    inner_indices: list[str] = field(default_factory=list)
    temporaries: set[str] = field(default_factory=set)
    assigned_in_body: set[str] = field(default_factory=set)
    carries_scalars: bool = False
    assigned_in_loop: frozenset[str] = frozenset()
    is_conditional: bool = False
    refused: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    from_where: set[str] = field(default_factory=set)

    @property
    def loop_names(self) -> list[str]:
        return [*(loop.name for loop in self.loops), *self.inner_indices]


class ExpressionParser:
    """Parses expressions of one function; notes which arrays and symbols they use."""

    def __init__(self, source: FunctionSource, scope: Scope, refusals: Refusals) -> None:
        self.source = source
        self.scope = scope
        self.refusals = refusals
        self.arrays: dict[str, None] = {}
        self.symbols: dict[str, ast.expr] = {}
        self.unpackings: list[Unpacking] = []
        self.lists = {name: kind for name, kind in source.lists if kind}

    def expression(self, node: ast.expr) -> ir.Expression:
        line = node.lineno
        match node:
            case ast.Constant(value=bool() | int() | float() | complex() as value):
                return ir.Constant(value, line=line)
            case ast.Name(id=name):
                return self._name(node, name)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript(value=ast.Name(id=name)) if name in self.lists:
                return self._listed(node, self.lists[name])
            case ast.Subscript(value=ast.Name()):
                return self.access(node)
            case ast.Subscript() if self._shape_symbol(node) is not None:
                return self._symbol_parameter(node)
            case ast.Subscript(
                value=ast.Call(func=ast.Name(id="range") as function, args=[extent], keywords=[]), slice=index
            ) if self.resolve(function) is range and not isinstance(index, ast.Slice):
                return ir.Call("range item", (self.expression(index), self.expression(extent)), line=line)
            case ast.Subscript(value=ast.Subscript()):
                kind = self.lists.get(subscripts(node)[0] or "")
                return self.access(node) if kind is None else self._listed(node, kind)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() | complex() as number)) if (
                type(number) is not bool
            ):
                return ir.Constant(-number, line=line)
            case ast.UnaryOp(op=op, operand=operand):
                return ir.Unary(_UNARY[type(op)], self.expression(operand), line=line)
            case ast.BinOp(left=left, op=op, right=right):
                symbol = BINARY.get(type(op))
                if symbol is None:
                    self.refuse(node, self.source.text(node), f"supported operators are {' '.join(BINARY.values())}")
                a, b = self.expressions(left, right)
                return _folded(symbol, a, b, line) or ir.Binary(symbol, a, b, line=line)
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                return self._comparison(node, [left, *comparators], ops)
            case ast.BoolOp(op=op, values=values):
                operands = tuple(self.expressions(*values))
                return ir.Boolean("and" if isinstance(op, ast.And) else "or", operands, line=line)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                with self.conditionally():
                    return ir.Conditional(*self.expressions(test, body, orelse), line=line)
            case ast.Call():
                return self._call(node)
            case ast.NamedExpr(target=target):
                self.refuse(
                    node, f"{self.source.text(node)} in the loops", f"set {target.id} on a line of its own before"
                )
        self.refuse(
            node,
            f"{self.source.text(node)} in the loops",
            "expressions are made of numbers, names, array elements, arithmetic, comparisons, "
            f"a if c else b, and calls; {SUPPORTED_TEXT}",
        )

    def expressions(self, *nodes: ast.expr) -> list[ir.Expression]:
        """Several expressions, all of which are looked at before a refused one stops their parent."""
        return self.refusals.each(self.expression, nodes)

    def _name(self, node: ast.expr, name: str) -> ir.Expression:
        line = node.lineno
        if name in self.scope.refused:
            raise Stopped
        if name in self.scope.loop_names:
            return ir.LoopIndex(name, line=line)
        if name in self.scope.temporaries or self._is_carried(name):
            return ir.Temporary(name, line=line)
        if name in self.scope.assigned_in_body:
            if name in self.scope.parameters:
                self.refuse(
                    node,
                    f"{name} is an argument and is assigned in the loops",
                    "arguments keep their value there: assign to its elements, or to another name; where arrays change places, "
                    "write that loop in Python and call a nest of the inner ones from it",
                )
            if name in self.scope.setup_names:
                self.refuse(
                    node,
                    f"reduction {name} is read in the loops",
                    f"its value is only known after them: only {name} = max({name}, x), min or {name} += x may use it; "
                    "a value that goes from one iteration to the next is kept in an array",
                )
            self.refuse(
                node,
                f"{name} is used before it is assigned in the same iteration",
                "scalars do not carry values from one iteration to the next; keep such values in an array",
            )
        if name in self.scope.setup_names or name in self.scope.parameters:
            return ir.Parameter(name, line=line)
        value = self.scope.surroundings.get(name)
        if isinstance(value, _NUMBERS) or _is_numpy_scalar(value):
            self.symbols.setdefault(name, node)
            return ir.Parameter(name, line=line)
        self.refuse(
            node,
            f"{name} is not known here" if value is None else f"{name} is {type(value).__name__}",
            "names are loop indices, arguments, temporaries, scalars set before the loops, and global numbers; "
            f"pass {name} as an argument that is a number",
        )

    def _is_carried(self, name: str) -> bool:
        """Whether a name may have a value although nothing above assigns to it."""
        scope = self.scope
        if scope.carries_scalars:
            return name in scope.assigned_in_body
        return scope.is_conditional and name in scope.assigned_in_loop and name not in scope.setup_names

    @contextmanager
    def conditionally(self) -> Iterator[None]:
        """What is parsed in the block is not always done."""
        before = self.scope.is_conditional
        self.scope.is_conditional = True
        yield
        self.scope.is_conditional = before

    def _attribute(self, node: ast.Attribute) -> ir.Expression:
        value = self._constant(node)
        if value is not None:
            return ir.Constant(value, line=node.lineno)  # math.pi, np.finfo(float).eps and the like
        if node.attr in _PARTS and not self._is_of_module(node):
            return ir.Call(node.attr, (self.expression(node.value),), line=node.lineno)
        if self.rests_on_refused(node):
            raise Stopped
        text = self.source.text(node)
        self.refuse(
            node,
            f"{text} in the loops",
            "attributes are constants such as math.pi, and shapes such as u.shape[0]; pass its value as an argument, "
            f"or set n = {text} before the loops if it is an array's size or ndim",
        )

    def _is_of_module(self, node: ast.Attribute) -> bool:
        return inspect.ismodule(self.resolve(node.value))

    def _constant(self, node: ast.expr) -> bool | int | float | complex | None:
        """What an attribute of a module, or of what NumPy says of a type, is: a number, or None."""
        match node:
            case ast.Attribute(value=ast.Call(func=function, args=[kind], keywords=[]), attr=attribute) if self.resolve(
                function
            ) in (np.finfo, np.iinfo):
                described = self.resolve(kind)
                if described is None or not isinstance(described, type):
                    return None
                value = getattr(self.resolve(function)(described), attribute, None)
            case ast.Call(func=function, args=[ast.Constant(value=str() as text)], keywords=[]) if (
                self.resolve(function) is float
            ):
                try:
                    value = float(text)
                except ValueError:
                    return None
            case _:
                value = self.resolve(node)
        return value if isinstance(value, _NUMBERS) or _is_numpy_scalar(value) else None

    def _comparison(self, node: ast.expr, operands: list[ast.expr], ops: list[ast.cmpop]) -> ir.Expression:
        if len(ops) == 1 and isinstance(ops[0], ast.In | ast.NotIn) and _is_display(operands[1]):
            return self._membership(node, operands[0], operands[1], isinstance(ops[0], ast.NotIn))
        operators = [_COMPARISON.get(type(op)) for op in ops]
        if None in operators:
            self.refuse(
                node,
                self.source.text(node),
                f"supported comparisons are {' '.join(_COMPARISON.values())}; write a in b as a == b[0] or a == b[1]",
            )
        values = self.expressions(*operands)
        parts = [
            ir.Comparison(operator, left, right, line=node.lineno)
            for operator, left, right in zip(operators, values, values[1:], strict=False)
            if operator is not None
        ]
        return parts[0] if len(parts) == 1 else ir.Boolean("and", tuple(parts), line=node.lineno)

    def _membership(self, node: ast.expr, value: ast.expr, display: ast.expr, is_negated: bool) -> ir.Expression:
        """``x in (1, 2)``, which is a bool of Python's whatever x is."""
        assert isinstance(display, ast.Tuple | ast.List | ast.Set)
        line = node.lineno
        member, *others = self.expressions(value, *display.elts)
        parts = tuple(ir.Comparison("==", member, other, line=line) for other in others)
        found = parts[0] if len(parts) == 1 else ir.Boolean("or", parts, line=line)
        return ir.Unary("not", found, line=line) if is_negated else ir.Call("bool", (found,), line=line)

    def _call(self, node: ast.Call) -> ir.Expression:
        if self._shape_symbol(node) is not None:
            return self._symbol_parameter(node)
        if (constant := self._constant(node)) is not None:
            return ir.Constant(constant, line=node.lineno)
        if (reduces := getattr(node, "reduces", None)) is not None:
            return self._reduced(node, reduces)
        match node.func:
            case ast.Attribute(value=value, attr=method) if method in _CONJUGATES and not self._is_of_module(node.func):
                if node.args or node.keywords:
                    self.refuse(node, self.source.text(node), f"{method} takes no arguments")
                return ir.Call(method, (self.expression(value),), line=node.lineno)
        function = self.resolve(node.func)
        name = canonical_name(function) if function is not None else None
        if function is sum and (terms := _terms(node)) is not None:
            return ir.Call("sum", tuple(self.expressions(*terms)), line=node.lineno)
        if name is None:
            self._refuse_call(node, function)
        if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
            self.refuse(node, self.source.text(node), "calls take plain positional arguments")
        least, most = argument_counts(name)
        if len(node.args) < least or (most is not None and len(node.args) > most):
            self.refuse(node, self.source.text(node), f"{name} takes {least} argument{'s' if least > 1 else ''} here")
        return ir.Call(name, tuple(self.expressions(*node.args)), line=node.lineno)

    def _reduced(self, node: ast.Call, name: str) -> ir.Expression:
        """A reduction of the elements of a window (``windows``), as NumPy computes it."""
        first, *others = self.expressions(*node.args)
        if name == "sum":
            return ir.Call("integer sum", (first, *others), line=node.lineno)
        function = f"numpy.{_REDUCING[name]}"
        result = first if others else ir.Call(function, (first, first), line=node.lineno)
        for other in others:
            result = ir.Call(function, (result, other), line=node.lineno)
        return result

    def _refuse_call(self, node: ast.Call, function: Any) -> NoReturn:
        found = f"call of {self.source.text(node.func)}"
        if why := getattr(node, "why_called", None):
            found += f": {why}"
        if function is not None:
            self.refuse(node, found, way_out(function, self.source.text(node)))
        if self.rests_on_refused(node.func):
            raise Stopped
        if isinstance(node.func, ast.Name) and self._is_own(node.func.id):
            self.refuse(
                node,
                found,
                f"the nest gives {node.func.id} a meaning of its own; call that something else, or write out what it computes",
            )
        self.refuse(node, found, SUPPORTED_TEXT)

    def access(self, node: ast.expr) -> ir.Access:
        assert isinstance(node, ast.Subscript)
        name, elements = subscripts(node)
        if name is None:
            self.refuse(node, self.source.text(node), "index an array by its name: u[i, j]")
        if name in self.scope.refused:
            raise Stopped
        if not self.is_array(name):
            self.refuse(
                node,
                f"{name} is indexed",
                f"only array arguments and global NumPy arrays can be indexed; pass {name} as an argument, a NumPy array",
            )
        if any(isinstance(e, ast.Slice | ast.Starred) or _is_ellipsis(e) for e in elements):
            self.refuse(node, f"{self.source.text(node)} takes a slice", "index single elements: one index per axis")
        if len(elements) > MAX_AXES:
            self.refuse(
                node,
                f"{self.source.text(node)} has {len(elements)} indices",
                f"at most {MAX_AXES} are supported; call the nest for each part of {name}, {name}[k], which is a view",
            )
        self.arrays.setdefault(name)
        return ir.Access(
            name,
            tuple(self.expressions(*elements)),
            tuple(self.affine(e) for e in elements),
            self.source.text(node),
            tuple(axis for axis, e in enumerate(elements) if getattr(e, "counted_from_end", False)),
            taken_of(node),
            line=node.lineno,
        )

    def is_array(self, name: str) -> bool:
        """Whether a name may stand for an array."""
        known = name in self.scope.parameters or _is_numpy_array(self.scope.surroundings.get(name))
        return known and name not in self.scope.temporaries

    def _listed(self, node: ast.expr, kind: str) -> ir.Expression:
        """An element of what was a list, which is a number of Python's."""
        access = self.access(node)
        name, _, bits = kind.partition(" ")
        if not bits:
            return ir.Call(name, (access,), line=node.lineno)
        return ir.Call("listed int", (access, ir.Constant(2 ** int(bits), line=node.lineno)), line=node.lineno)

    # -- affine expressions and symbols --------------------------------------------------------------------------------

    def affine(self, node: ast.expr) -> Affine | None:
        """The node as an affine expression of loop indices and symbols; None where it is not one."""
        match node:
            case ast.Constant(value=value) if type(value) is int:
                return Affine(value)
            case ast.Name(id=name) if name in self.scope.loop_names:
                return Affine.of(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                inner = self.affine(operand)
                return None if inner is None else -inner
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
                a, b = self.affine(left), self.affine(right)
                if a is not None and b is not None:
                    return a + b if isinstance(op, ast.Add) else a - b
                return None
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                a, b = self.affine(left), self.affine(right)
                if a is not None and b is not None and not (a.terms and b.terms):
                    return b * a.constant if not a.terms else a * b.constant
        if self._is_fixed(node):
            return Affine.of(self._symbol(node))
        return None

    def _is_fixed(self, node: ast.expr) -> bool:
        """Whether the value is the same for the whole call: no loop index, temporary or array element inside."""
        if self._shape_symbol(node) is not None:
            return True
        match node:
            case ast.Constant(value=value):
                return type(value) is int
            case ast.Name(id=name):
                if name in self.scope.loop_names or name in self.scope.assigned_in_body or name in self.scope.refused:
                    return False
                if self.source.generic and name in self.scope.parameters and name not in self.source.kept:
                    return False
                return (
                    name in self.scope.setup_names
                    or name in self.scope.parameters
                    or type(self.scope.surroundings.get(name)) is int
                )
            case ast.UnaryOp(operand=operand):
                return self._is_fixed(operand)
            case ast.BinOp(op=ast.LShift() | ast.RShift()):
                return False
            case ast.BinOp(left=left, right=right):
                return self._is_fixed(left) and self._is_fixed(right)
            case ast.Call(func=ast.Name(id="min" | "max" | "abs" | "int"), args=args, keywords=[]):
                return all(self._is_fixed(a) for a in args)
        return False

    def _symbol(self, node: ast.expr) -> str:
        """The name under which a fixed value takes part in affine expressions."""
        name = ast.unparse(node)
        self.note_shape_uses(node)
        self.symbols.setdefault(name, node)
        return name

    def _symbol_parameter(self, node: ast.expr) -> ir.Parameter:
        return ir.Parameter(self._symbol(node), line=node.lineno)

    def _shape_symbol(self, node: ast.expr) -> str | None:
        """The array's name if the node is ``u.shape[k]`` or ``len(u)``."""
        match node:
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id=name), attr="shape"), slice=ast.Constant() | ast.UnaryOp()
            ):
                return name
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)], keywords=[]):
                return name
        return None

    def note_shape_uses(self, node: ast.AST) -> None:
        for part in ast.walk(node):
            match part:
                case (
                    ast.Attribute(value=ast.Name(id=name), attr="shape" | "ndim" | "size")
                    | ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)])
                ) if name not in self.scope.setup_names:
                    self.arrays.setdefault(name)

    def resolve(self, node: ast.expr) -> Any:
        """The object a global name or dotted name refers to, or None."""
        match node:
            case ast.Name(id=name):
                if self._is_own(name):
                    return None
                return self.scope.surroundings.get(name, getattr(builtins, name, None))
            case ast.Attribute(value=value, attr=attribute):
                owner = self.resolve(value)
                return getattr(owner, attribute, None) if inspect.ismodule(owner) else None
        return None

    def rests_on_refused(self, node: ast.expr) -> bool:
        return any(isinstance(n, ast.Name) and n.id in self.scope.refused for n in ast.walk(node))

    def _is_own(self, name: str) -> bool:
        """Whether the function itself gives the name its value."""
        scope = self.scope
        return (
            name in scope.parameters
            or name in scope.setup_names
            or name in scope.assigned_in_body
            or name in scope.loop_names
            or name in scope.refused
        )

    def refuse(self, node: ast.AST, found: str, advice: str) -> NoReturn:
        if helper := getattr(node, "helper", None):
            found = f"in {helper}: {found}"
        self.refusals.refuse(getattr(node, "lineno", self.source.first), found, advice)


def subscripts(node: ast.Subscript) -> tuple[str | None, list[ast.expr]]:
    """The array's name, None where it has none, and its indices: ``u[i][j]`` is ``u[i, j]``."""
    elements = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    match node.value:
        case ast.Name(id=name):
            return name, elements
        case ast.Subscript() as outer:
            array, before = subscripts(outer)
            return array, before + elements
    return None, elements


def _terms(node: ast.Call) -> list[ast.expr] | None:
    """What a sum of a display adds up, from where it starts; None of any other call."""
    match node:
        case ast.Call(args=[ast.Tuple(elts=terms) | ast.List(elts=terms), *start], keywords=[]) if len(
            start
        ) <= 1 and not any(isinstance(term, ast.Starred) for term in terms):
            return [*(start or [ast.copy_location(ast.Constant(0), node)]), *terms]
    return None


def _folded(symbol: str, a: ir.Expression, b: ir.Expression, line: int) -> ir.Constant | None:
    """An operation of two integers in the text, which Python does when it compiles: ``2**62``."""
    match a, b:
        case ir.Constant(value=int() as x), ir.Constant(value=int() as y) if not isinstance(x, bool) and not isinstance(
            y, bool
        ):
            if symbol in ("**", "<<", ">>") and not 0 <= y < 64:
                return None
            with suppress(ArithmeticError, KeyError):
                value = _OF_INTEGERS[symbol](x, y)
                return ir.Constant(value, line=line) if -(2**63) <= value < 2**63 else None
    return None


def _is_display(node: ast.expr) -> bool:
    """Whether it is a tuple, list or set of numbers, which are equal to themselves: ``in`` then asks for nothing but equality."""
    match node:
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            return bool(elements) and all(map(_is_literal, elements))
    return False


def _is_literal(node: ast.expr) -> bool:
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _is_literal(operand)
    return isinstance(node, ast.Constant) and isinstance(node.value, _NUMBERS)


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and (node.value is ... or node.value is None)


def _is_numpy_scalar(value: Any) -> bool:
    return type(value).__module__ == "numpy" and hasattr(value, "dtype") and getattr(value, "shape", None) == ()


def _is_numpy_array(value: Any) -> bool:
    return type(value).__module__ == "numpy" and type(value).__name__ == "ndarray"
