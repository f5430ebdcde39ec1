"""Which functions can be inlined, and their bodies in the form in which that is done: without early returns.

before                                   after
def arrival(a, b):                       if a == 0:
    if a == 0:                               result = b
        return b                         else:
    return a + b                             result = a + b
"""

from __future__ import annotations

import ast
import copy
import inspect
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lapwing.syntax_places import placed

MOST_NODES = 2000  # of the syntax tree of a helper
_MOST_OF_A_SHORT_LOOP = 16  # iterations

_EXPRESSIONS = (
    ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.Tuple, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp,
    ast.Call, ast.keyword, ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop,
)  # fmt: skip
_STATEMENTS = (
    ast.Assign, ast.AugAssign, ast.AnnAssign, ast.If, ast.For, ast.While, ast.Break, ast.Continue, ast.Pass, ast.Return, ast.Expr,
)  # fmt: skip


class NotInlined(Exception):
    """A call stays a call; the text says why, as a clause."""


@dataclass(frozen=True)
class Helper:
    """A function whose calls can be replaced by its body.

    body: with ``return`` as assignments to the names of results: one, or of a tuple one for each element; none where it returns
    nothing. expression: what is returned, where nothing else is in the body.
    """

    function: Callable[..., Any]
    parameters: tuple[str, ...]
    defaults: dict[str, ast.expr]
    body: tuple[ast.stmt, ...]
    results: tuple[str, ...]
    returns_tuple: bool
    expression: ast.expr | None

    @property
    def assigned(self) -> frozenset[str]:
        """The names it assigns."""
        return frozenset(stored_names(self.body))

    @property
    def indexed(self) -> frozenset[str]:
        """The names whose elements it reads, or whose shape."""
        nodes = (node for statement in self.body for node in ast.walk(statement))
        return frozenset(
            node.value.id
            for node in nodes
            if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.value, ast.Name)
        )

    @property
    def written(self) -> frozenset[str]:
        """The names whose elements it stores to."""
        return frozenset(_written(self.body))

    @property
    def has_for_loops(self) -> bool:
        """Whether it holds what may be a nest of its own."""
        return any(isinstance(node, ast.For) for s in self.body for node in ast.walk(s))

    @property
    def depth(self) -> int:
        """How many ``for`` loops stand one in the other: it may hold nests of its own."""
        return max(map(loop_depth, self.body), default=0)


def helper_of(function: Callable[..., Any], tree: ast.FunctionDef) -> Helper:
    """tree: of the function, in which calls of other helpers have been inlined. Raises NotInlined."""
    if function.__code__.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise NotInlined("it is no plain function")
    arguments = tree.args
    if arguments.vararg or arguments.kwarg:
        raise NotInlined("it takes any number of arguments")
    parameters = tuple(a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))
    if parameters != _parameters(function.__code__):
        raise NotInlined("its source is not that of the function")
    statements = [s for s in tree.body if not _is_text(s)]
    _check(statements)
    written = _written(statements)
    if written - set(parameters) or written & stored_names(statements):
        raise NotInlined("it writes to arrays that are no arguments of it")
    returned = [node.value for s in statements for node in ast.walk(s) if isinstance(node, ast.Return)]
    values = [value for value in returned if not (value is None or _is_none(value))]
    if len(values) < len(returned) and values:
        raise NotInlined("it does not always return a value")
    if not values and not written:
        raise NotInlined("it does not return a value")
    lengths = {len(value.elts) if isinstance(value, ast.Tuple) else None for value in values}
    if len(lengths) > 1:
        raise NotInlined("it returns values of different kinds")
    length = lengths.pop() if lengths else 0
    if values and length == 0:
        raise NotInlined("it returns no value")
    if not values:
        statements = [*statements, ast.Return(None)]
    # Not names that Python allows, so nobody else's.
    results = ("the result",) if length is None else tuple(f"result {k}" for k in range(length))
    body = _Structuring(results).without_returns(statements)
    if sum(1 for s in body for _ in ast.walk(s)) > MOST_NODES:
        raise NotInlined("it is too long")
    alone = statements[0].value if values and len(statements) == 1 and isinstance(statements[0], ast.Return) else None
    _check_assigned(statements, frozenset(parameters), stored_names(statements))
    expression = alone if length is None else None
    return Helper(function, parameters, _defaults(function), tuple(body), results, length is not None, expression)


def stored_names(statements: Sequence[ast.stmt]) -> set[str]:
    """The names that statements assign."""
    nodes = (node for statement in statements for node in ast.walk(statement))
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _parameters(code: types.CodeType) -> tuple[str, ...]:
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _defaults(function: Callable[..., Any]) -> dict[str, ast.expr]:
    """Those that are numbers. A call that needs another is not inlined."""
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    values = function.__defaults__ or ()
    found = dict(zip(positional[len(positional) - len(values) :], values, strict=True))
    found |= function.__kwdefaults__ or {}
    return {name: ast.Constant(value) for name, value in found.items() if is_number(value)}


def is_number(value: Any) -> bool:
    """Whether a value can stand in a program's text as it is."""
    return type(value) in (bool, int, float)


def _written(statements: Sequence[ast.stmt]) -> set[str]:
    """The names whose elements, or whose rows' elements, statements store to."""
    found = set()
    for node in (node for statement in statements for node in ast.walk(statement)):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            base: ast.expr = node
            while isinstance(base, ast.Subscript):
                base = base.value
            found.add(base.id if isinstance(base, ast.Name) else "")
    return found


def loop_depth(statement: ast.stmt) -> int:
    """How many ``for`` loops, but for short ones, stand one in the other in a statement."""
    inside = (loop_depth(child) for child in ast.iter_child_nodes(statement) if isinstance(child, ast.stmt))
    return max(inside, default=0) + (isinstance(statement, ast.For) and not _is_short(statement))


def _is_short(loop: ast.For) -> bool:
    """Whether a loop has few iterations in every call."""
    match loop.iter:
        case ast.Call(func=ast.Name(id="range"), args=[*_] as ends):
            numbers = [end.value for end in ends if isinstance(end, ast.Constant) and isinstance(end.value, int)]
            return len(numbers) == len(ends) and max(map(abs, numbers), default=0) <= _MOST_OF_A_SHORT_LOOP
    return False


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _check(statements: Sequence[ast.stmt]) -> None:
    """Refuse what is more than a computation on scalars."""
    for node in (node for statement in statements for node in ast.walk(statement)):
        match node:
            case ast.Subscript(ctx=ast.Del()):
                raise NotInlined("it deletes elements")
            case ast.Subscript(slice=ast.Slice()) | ast.Slice():
                raise NotInlined("it works on whole arrays")
            case ast.Attribute(ctx=ast.Store() | ast.Del()):
                raise NotInlined("it writes to objects")
            case ast.For(orelse=[_, *_]) | ast.While(orelse=[_, *_]):
                raise NotInlined("its loops have an else")
            case ast.Global() | ast.Nonlocal():
                raise NotInlined("it declares names global or nonlocal")
            case ast.Yield() | ast.YieldFrom() | ast.Await():
                raise NotInlined("it is no plain function")
            case ast.Expr(value=value) if not isinstance(value, ast.Constant):
                raise NotInlined("it does more than compute a value")
            case ast.stmt() if not isinstance(node, _STATEMENTS):
                raise NotInlined(f"it has {_kind(node)}")
            case ast.expr() if not isinstance(node, _EXPRESSIONS):
                raise NotInlined(f"it has {ast.unparse(node)}")


def _kind(node: ast.stmt) -> str:
    return f"a {type(node).__name__.lower()} statement"


def _check_assigned(statements: Sequence[ast.stmt], known: frozenset[str], local: set[str]) -> frozenset[str]:
    """Refuse to read what may have no value: among the caller's variables it would have that of the last call. known: the names
    that have one; returned are those that do after the statements."""
    for statement in statements:
        inside = {
            id(node) for block in ("body", "orelse") for s in getattr(statement, block, ()) for node in ast.walk(s)
        }
        own = [node for node in ast.walk(statement) if isinstance(node, ast.Name) and id(node) not in inside]
        read = {node.id for node in own if isinstance(node.ctx, ast.Load)}
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            read.add(statement.target.id)
        if unset := sorted(read & (local - known)):
            raise NotInlined(f"{unset[0]} may have no value in it where it is read")
        if isinstance(statement, ast.AnnAssign) and statement.value is None:
            continue
        stored = {node.id for node in own if isinstance(node.ctx, ast.Store)}
        if isinstance(statement, ast.If):
            known = _check_assigned(statement.body, known, local) & _check_assigned(statement.orelse, known, local)
        elif isinstance(statement, ast.For | ast.While):
            _check_assigned(statement.body, known | stored, local)
        else:
            known |= stored
        if isinstance(statement, ast.Return | ast.Break | ast.Continue):
            return known | local  # nothing comes after it
    return known


class _Structuring:
    """What follows an ``if`` that may return goes into both of its arms, so that each ends where it returns."""

    def __init__(self, results: Sequence[str]) -> None:
        self.results = results
        self._left = MOST_NODES
        self._loops = 0

    def _left_early(self, loop: ast.For | ast.While, rest: Sequence[ast.stmt]) -> list[ast.stmt]:
        """A loop that a return may end, as one that notes which it was: what is returned is computed after it."""
        self._loops += 1
        way = f"way {self._loops} out"  # not a name that Python allows, so nobody else's
        returns: list[ast.Return] = []
        new = copy.copy(loop)
        new.body = self._with_breaks(loop.body, way, returns)
        ended = self.without_returns(rest)
        for number, statement in reversed([*enumerate(returns, 1)]):
            test = ast.Compare(ast.Name(way, ast.Load()), [ast.Eq()], [ast.Constant(number)])
            ended = [placed(statement, ast.If(test, [_assignment(statement, self.results)], ended))]
        return [placed(loop, ast.Assign([ast.Name(way, ast.Store())], ast.Constant(0))), new, *ended]

    def _with_breaks(self, statements: Sequence[ast.stmt], way: str, returns: list[ast.Return]) -> list[ast.stmt]:
        """Statements of such a loop. returns: those that have been met, changed."""
        found: list[ast.stmt] = []
        for statement in statements:
            self._left -= 1
            if isinstance(statement, ast.Return):
                returns.append(statement)
                noted = ast.Assign([ast.Name(way, ast.Store())], ast.Constant(len(returns)))
                return [*found, placed(statement, noted), placed(statement, ast.Break())]
            if not _returns(statement):
                found.append(statement)
                continue
            new = copy.copy(statement)
            assert isinstance(new, ast.If | ast.For | ast.While)
            new.body = self._with_breaks(new.body, way, returns)
            new.orelse = self._with_breaks(new.orelse, way, returns)
            found.append(new)
            if not isinstance(new, ast.If):
                test = ast.Compare(ast.Name(way, ast.Load()), [ast.NotEq()], [ast.Constant(0)])
                found.append(placed(statement, ast.If(test, [ast.Break()], [])))
        return found

    def without_returns(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for k, statement in enumerate(statements):
            self._left -= 1
            if self._left < 0:
                raise NotInlined("it is too long")
            if isinstance(statement, ast.Return):
                return [*found, _assignment(statement, self.results)]
            if isinstance(statement, ast.For | ast.While) and _returns(statement):
                return [*found, *self._left_early(statement, statements[k + 1 :])]
            if isinstance(statement, ast.If) and _returns(statement):
                rest = statements[k + 1 :]
                then, otherwise = (self.without_returns([*arm, *rest]) for arm in (statement.body, statement.orelse))
                return [*found, ast.copy_location(ast.If(statement.test, then, otherwise), statement)]
            found.append(statement)
        raise NotInlined("it does not always return a value")


def _returns(statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.Return) for node in ast.walk(statement))


def _assignment(statement: ast.Return, results: Sequence[str]) -> ast.stmt:
    if not results:
        return ast.copy_location(ast.Pass(), statement)
    value = copy.deepcopy(statement.value)
    assert value is not None
    targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in results]
    target = targets[0] if not isinstance(value, ast.Tuple) else ast.Tuple(targets, ast.Store())
    if isinstance(value, ast.Tuple) and len(targets) == 1:
        target, value = targets[0], value.elts[0]
    return ast.copy_location(ast.Assign([target], value), statement)


def loaded_names(nodes: Sequence[ast.AST]) -> Iterator[ast.Name]:
    """Where names are read."""
    for root in nodes:
        for node in ast.walk(root):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                yield node
