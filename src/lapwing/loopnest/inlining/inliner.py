"""Calls of helper functions in loops become what the functions compute (inlining).

    before                                   after
    for i in range(1, n):                    for i in range(1, n):
        u[i] = u[i] + limited(v, i)              limited_d = v[i] - v[i - 1]
                                                 if limited_d > 1:
    def limited(v, i):                               limited_result = 1
        d = v[i] - v[i - 1]                      else:
        if d > 1:                                    limited_result = limited_d
            return 1                             u[i] = u[i] + limited_result
        return d

A function that is one ``return`` of an expression is put in as this expression. Else its arguments are evaluated once, in their
order, before its statements; those that are names, numbers and sums with a loop's index are passed as they are, so that
subscripts stay what they are. A call under a condition (``a if c else f(x)``, ``c and f(x)``) is only evaluated where the
condition holds: the expression becomes an ``if``. Numbers that a function finds around itself become constants.

A function that stores to elements of its arguments is inlined where its call is a statement, or all that one assigns.
"""

from __future__ import annotations

import ast
import builtins
import copy
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lapwing.loopnest.inlining.helpers import (
    Helper,
    NotInlined,
    helper_of,
    is_number,
    loaded_names,
    loop_depth,
    stored_names,
)
from lapwing.syntax_places import placed

Function = Callable[..., Any]
MOST_INLINED = 20_000  # nodes of a syntax tree, of all that is inlined into a function
_UNKNOWN = object()
_PURE_BUILTINS = (abs, bool, complex, divmod, float, int, len, max, min, pow, range, round, sum)


@dataclass(frozen=True)
class Inlined:
    """A function without calls of helpers in its loops. helpers: those whose calls are gone, or were looked at, with their syntax
    trees: what they mean has been taken in. names: that the tree has from them, of what is around the function."""

    tree: ast.FunctionDef
    helpers: tuple[tuple[Function, ast.FunctionDef], ...] = ()
    names: frozenset[str] = frozenset()


def inlined(tree: ast.FunctionDef, function: Function, read: Callable[[Function], ast.FunctionDef]) -> Inlined:
    """The function with helpers inlined in its loops. read: gives the syntax tree of a function, and raises ValueError where
    there is none, with the reason as a clause. The tree that is given stays as it is."""
    inliner = _Inliner(function, tree, read, (function.__code__,))
    if not any(inliner.function_called(node) for node in ast.walk(tree) if isinstance(node, ast.Call)):
        return Inlined(tree)
    new = inliner.whole(copy.deepcopy(tree))
    return Inlined(new, tuple(inliner.looked_at.values()), frozenset(inliner.names))


def meaning(function: Function, name: str) -> Any:
    """What a name that is not the function's own stands for; ``_UNKNOWN`` for nothing."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    if name in cells:
        try:
            return cells[name].cell_contents
        except ValueError:
            return _UNKNOWN
    return function.__globals__.get(name, getattr(builtins, name, _UNKNOWN))


class _Inliner:
    """Inlines into one function."""

    def __init__(
        self,
        function: Function,
        tree: ast.FunctionDef,
        read: Callable[[Function], ast.FunctionDef],
        inside: tuple[types.CodeType, ...],
    ) -> None:
        """inside: the functions that are being inlined, from the outside in."""
        self.function, self.read, self.inside = function, read, inside
        arguments = [node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)]
        self.own = {*arguments, *stored_names(tree.body), *_defined(tree)}
        self.taken = {*self.own, *(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))}
        self.looked_at: dict[Function, tuple[Function, ast.FunctionDef]] = {}
        self.names: set[str] = set()
        self.indices: list[str] = []
        self._helpers: dict[Function, Helper | str] = {}
        self._size = 0
        self._around: list[int] = []  # of the loops around the statement at hand, how many stand in each other inside

    # -- which calls ---------------------------------------------------------------------------------------------------

    def function_called(self, node: ast.Call) -> Function | None:
        """The plain Python function that a call goes to by a name from around the function, also where it is a nest's."""
        if not isinstance(node.func, ast.Name) or node.func.id in self.own:
            return None
        value = meaning(self.function, node.func.id)
        if type(value).__module__.startswith("lapwing."):
            value = getattr(value, "python", None)
        return value if inspect.isfunction(value) else None

    def _helper(self, function: Function) -> Helper:
        """Raises NotInlined."""
        if function.__code__ in self.inside:
            raise NotInlined("it calls itself")
        if function not in self._helpers:
            try:
                self._helpers[function] = self._read_helper(function)
            except NotInlined as why:
                self._helpers[function] = str(why)
        found = self._helpers[function]
        if isinstance(found, str):
            raise NotInlined(found)
        return found

    def _read_helper(self, function: Function) -> Helper:
        try:
            tree = self.read(function)
        except ValueError as why:
            raise NotInlined(str(why)) from None
        self.looked_at[function] = function, tree
        within = _Inliner(function, tree, self.read, (*self.inside, function.__code__))
        new = copy.deepcopy(tree)
        new.body = within.block(new.body)
        self.looked_at |= within.looked_at
        for node in (node for statement in new.body for node in ast.walk(statement)):
            if isinstance(node, ast.Call) and not within.is_pure(node):
                raise NotInlined(getattr(node, "why_called", f"it calls {ast.unparse(node.func)}"))
        return helper_of(function, new)

    # -- statements ----------------------------------------------------------------------------------------------------

    def whole(self, tree: ast.FunctionDef) -> ast.FunctionDef:
        """Only what is in its loops."""
        tree.body = [self.with_inlined_loops(statement) for statement in tree.body]
        return tree

    def with_inlined_loops(self, node: Any) -> Any:
        """Only in the bodies of loops."""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return node
        if isinstance(node, ast.For | ast.While):
            return self._loop(node)
        for block in ("body", "orelse", "finalbody"):
            if isinstance(statements := getattr(node, block, None), list):
                setattr(node, block, [self.with_inlined_loops(statement) for statement in statements])
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            self.with_inlined_loops(part)
        return node

    def _loop(self, node: ast.For | ast.While) -> ast.stmt:
        indices = [n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)] if isinstance(node, ast.For) else []
        self.indices += indices
        self._around.append(max(map(loop_depth, node.body)))
        node.body = self.block(node.body)
        self._around.pop()
        node.orelse = self.block(node.orelse)
        del self.indices[len(self.indices) - len(indices) :]
        return node

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        return [new for statement in statements for new in self._statement(statement)]

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        before: list[ast.stmt] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return [node]
        if not self._can_inline(_evaluated(node)):
            return [self._only_inside(node)]
        if self._writes(_evaluated(node)) and not self._is_call_alone(node):
            for call in (n for part in _evaluated(node) for n in ast.walk(part) if isinstance(n, ast.Call)):
                if function := self.function_called(call):
                    why = "it writes to arrays, and its call is not all of a statement, or all that one assigns"
                    _say_why(call, function, why)
            return [self._only_inside(node)]
        match node:
            case ast.Expr(value=ast.Call() as call) if self._writes([call]):
                self._expression(call, before)
                return before
            case ast.Assign() | ast.AugAssign() | ast.AnnAssign(value=ast.expr()):
                node.value = self._expression(node.value, before)
                if isinstance(node, ast.Assign):
                    node.targets = [self._expression(target, before) for target in node.targets]
                else:
                    node.target = self._expression(node.target, before)
            case ast.Return(value=ast.expr() as value):
                node.value = self._expression(value, before)
            case ast.If():
                node.test = self._expression(node.test, before)
                node.body, node.orelse = self.block(node.body), self.block(node.orelse)
            case ast.For():
                node.iter = self._expression(node.iter, before)
                self._loop(node)
            case ast.While():
                return [self._while(node)]
            case _:
                return [self._only_inside(node)]
        return [*before, node]

    def _only_inside(self, node: ast.stmt) -> ast.stmt:
        """A statement whose own expressions stay what they are."""
        if isinstance(node, ast.For | ast.While):
            return self._loop(node)
        if isinstance(node, ast.If):
            node.body, node.orelse = self.block(node.body), self.block(node.orelse)
            return node
        return self.with_inlined_loops(node)  # type: ignore[no-any-return]

    def _while(self, node: ast.While) -> ast.stmt:
        """What is done before the test of each iteration stands at the head of the body."""
        before: list[ast.stmt] = []
        test = self._expression(copy.deepcopy(node.test), before)
        if before and node.orelse:
            return self._loop(node)
        self._loop(node)
        if not before:
            node.test = test
            return node
        leave = ast.If(ast.UnaryOp(ast.Not(), test), [ast.Break()], [])
        node.body = [*before, placed(node.test, leave), *node.body]
        node.test = ast.copy_location(ast.Constant(True), node.test)
        return node

    # -- expressions ---------------------------------------------------------------------------------------------------

    def _expression(self, node: Any, before: list[ast.stmt]) -> Any:
        """The expression without calls of helpers; what is to be done first is added to the statements before it."""
        if not any(isinstance(part, ast.Call) and self.function_called(part) for part in ast.walk(node)):
            return node
        match node:
            case ast.IfExp(test=test):
                node.test = self._expression(test, before)
                return self._conditional(node, node.test, node.body, node.orelse, before)
            case ast.BoolOp(values=[first, *others]):
                first = self._expression(first, before)
                rest = others[0] if len(others) == 1 else ast.copy_location(ast.BoolOp(node.op, others), node)
                return self._short_circuit(node, first, rest, before)
            case ast.Compare(ops=[_, _, *_], comparators=[first, *others]) if any(map(self._calls, others)):
                return self._chained(node, before)
            case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                return node
            case ast.Call():
                return self._call(node, before)
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                setattr(node, name, self._expression(value, before))
            elif isinstance(value, list):
                value[:] = [self._expression(v, before) if isinstance(v, ast.expr) else v for v in value]
        return node

    def _calls(self, node: ast.expr) -> bool:
        return any(isinstance(part, ast.Call) and self.function_called(part) for part in ast.walk(node))

    def _conditional(
        self, node: ast.IfExp, test: ast.expr, body: ast.expr, orelse: ast.expr, before: list[ast.stmt]
    ) -> ast.expr:
        """``a if c else f(x)``"""
        first: list[ast.stmt] = []
        second: list[ast.stmt] = []
        body, orelse = self._expression(body, first), self._expression(orelse, second)
        if not first and not second:
            node.body, node.orelse = body, orelse
            return node
        name = self._fresh("value")
        arms = [[*first, _assign(name, body, node)], [*second, _assign(name, orelse, node)]]
        before.append(placed(node, ast.If(test, *arms)))
        return _name(name, node)

    def _short_circuit(self, node: ast.BoolOp, first: ast.expr, rest: ast.expr, before: list[ast.stmt]) -> ast.expr:
        """``c and f(x)``"""
        second: list[ast.stmt] = []
        rest = self._expression(rest, second)
        if not second:
            node.values = [first, rest] if not isinstance(rest, ast.BoolOp) else [first, *_values(rest, node.op)]
            return node
        name = self._fresh("value")
        test: ast.expr = _name(name, node)
        if isinstance(node.op, ast.Or):
            test = ast.UnaryOp(ast.Not(), test)
        before.append(_assign(name, first, node))
        before.append(placed(node, ast.If(test, [*second, _assign(name, rest, node)], [])))
        return _name(name, node)

    def _chained(self, node: ast.Compare, before: list[ast.stmt]) -> ast.expr:
        """``a < f(x) < g(y)`` as ``a < b and b < g(y)``"""
        left = self._expression(node.left, before)
        middle = self._held("value", self._expression(node.comparators[0], before), node, before)
        first = placed(node, ast.Compare(left, [node.ops[0]], [middle]))
        rest = placed(node, ast.Compare(copy.deepcopy(middle), node.ops[1:], node.comparators[1:]))
        return self._short_circuit(placed(node, ast.BoolOp(ast.And(), [first, rest])), first, rest, before)

    def _held(self, wanted: str, value: ast.expr, where: ast.expr, before: list[ast.stmt]) -> ast.expr:
        """A name for a value that is computed here."""
        if isinstance(value, ast.Constant):
            return value
        name = self._fresh(wanted)
        before.append(_assign(name, value, where))
        return _name(name, where)

    def _call(self, node: ast.Call, before: list[ast.stmt]) -> ast.expr:
        node.args = [self._expression(argument, before) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self._expression(keyword.value, before)
        if (function := self.function_called(node)) is None:
            return node
        helper = self._helper(function)
        return self._inline(node, helper, _arguments(node, helper), self._meanings(helper), before)

    def _check(self, node: ast.Call, function: Function) -> None:
        """Raises NotInlined where a call stays one."""
        helper = self._helper(function)
        if not self._is_of_rows(helper):
            if helper.written:
                raise NotInlined("it writes to arrays, and what it does is no row of what the loops around it do")
            if helper.has_for_loops and not self._names_an_index(node):
                raise NotInlined(
                    "it has loops, is no row of what the loops around it do, and is called without the index of one"
                )
        for name, value in _arguments(node, helper).items():
            if name in helper.written and not (isinstance(value, ast.Name) or self._is_row(value)):
                raise NotInlined(f"it writes to {name}, for which {ast.unparse(value)} is passed")
        if self._size > MOST_INLINED:
            raise NotInlined("too much is inlined already")
        self._meanings(helper)

    def _can_inline(self, parts: Sequence[ast.AST]) -> bool:
        """Whether everything that is called in parts of a statement is inlined or has no effect: then its parts may be computed
        in another order. Calls that are in the way are marked."""
        nodes = [node for part in parts for node in ast.walk(part)]
        if any(isinstance(node, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom) for node in nodes):
            return False
        called = [(node, self.function_called(node)) for node in nodes if isinstance(node, ast.Call)]
        if not any(function for _, function in called):
            return False
        can = True
        for node, function in called:
            try:
                if function is not None:
                    self._check(node, function)
                elif not self.is_pure(node):
                    can = False
            except NotInlined as why:
                assert function is not None
                _say_why(node, function, why)
                can = False
        return can

    def _writes(self, parts: Sequence[ast.AST]) -> bool:
        """Whether what is called in parts of a statement, all of which can be inlined, stores to arrays."""
        calls = (node for part in parts for node in ast.walk(part) if isinstance(node, ast.Call))
        called = (function for node in calls if (function := self.function_called(node)))
        return any(self._helper(function).written for function in called)

    def _is_call_alone(self, node: ast.stmt) -> bool:
        """Whether a statement is one call of a helper, or gives what it returns to names: nothing is evaluated after it."""
        match node:
            case ast.Expr(value=ast.Call() as call):
                pass
            case ast.Assign(targets=[ast.Name() | ast.Tuple() as target], value=ast.Call() as call):
                if any(not isinstance(n, ast.Name | ast.Tuple | ast.expr_context) for n in ast.walk(target)):
                    return False
                if (function := self.function_called(call)) is None or not self._helper(function).results:
                    return False
            case _:
                return False
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        return not self._writes(arguments)

    def is_pure(self, node: ast.Call) -> bool:
        """Whether a call is of a function that is known to do nothing but compute a value."""
        if node.keywords:
            return False
        match node.func:
            case ast.Name(id=name) if name not in self.own:
                value = meaning(self.function, name)
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name not in self.own:
                owner = meaning(self.function, name)
                value = getattr(owner, attribute, None) if isinstance(owner, types.ModuleType) else None
            case _:
                return False
        return is_pure(value)

    def _is_of_rows(self, helper: Helper) -> bool:
        """Whether the loops of a helper are like the innermost ones where it is called: nests are better called by themselves."""
        if len(self.inside) > 1 or len(self._around) > 1:
            return True
        return helper.depth < 2 and max(self._around, default=0) < 2

    def _names_an_index(self, node: ast.Call) -> bool:
        if len(self.inside) > 1:
            return True
        values = [*node.args, *(keyword.value for keyword in node.keywords)]
        return any(name.id in self.indices for name in loaded_names(values))

    def _meanings(self, helper: Helper) -> dict[str, ast.expr]:
        """What is to stand for the names that a helper finds around itself, where they do not stay what they are."""
        found: dict[str, ast.expr] = {}
        kept: set[str] = set()
        own = {*helper.parameters, *helper.assigned}
        for name in {node.id for node in loaded_names(helper.body)} - own:
            its = meaning(helper.function, name)
            if is_number(its):
                found[name] = ast.Constant(its)
                continue
            if its is _UNKNOWN:
                raise NotInlined(f"{name} is not known in it")
            if name in self.own or meaning(self.function, name) is not its:
                around = self.function.__name__
                raise NotInlined(f"{name} is something else in {around}, or not known there")
            if not (callable(its) or isinstance(its, types.ModuleType)):
                raise NotInlined(f"{name} is {type(its).__name__}, and no argument of it")
            kept.add(name)
        self.names |= kept
        self.taken |= kept
        return found

    def _inline(
        self,
        node: ast.Call,
        helper: Helper,
        arguments: Mapping[str, ast.expr],
        meanings: Mapping[str, ast.expr],
        before: list[ast.stmt],
    ) -> ast.expr:
        label = helper.function.__name__
        if helper.expression is not None and self._fits_in_place(helper.expression, arguments):
            made = self._made(node, helper.expression, label)
            return _Substituting({**meanings, **arguments}, {}).visit(made)  # type: ignore[no-any-return]
        values = dict(meanings)
        wanted = {name: name.removeprefix("the ").replace(" ", "_") for name in sorted(helper.assigned)}
        renamed = {name: self._fresh(f"{label}_{its}") for name, its in wanted.items()}
        for name, value in arguments.items():
            if name not in helper.assigned and (self._stays(value) or (name in helper.indexed and self._is_row(value))):
                values[name] = value
                continue
            if name not in renamed:
                renamed[name] = self._fresh(f"{label}_{name}")
            before.append(_assign(renamed[name], value, node))
        substituting = _Substituting(values, renamed)
        before += [substituting.visit(self._made(node, statement, label)) for statement in helper.body]
        names = [_name(renamed[name], node) for name in helper.results]
        if not names:
            return placed(node, ast.Constant(None))
        return placed(node, ast.Tuple(names, ast.Load())) if helper.returns_tuple else names[0]

    def _fits_in_place(self, expression: ast.expr, arguments: Mapping[str, ast.expr]) -> bool:
        """Whether the expression with arguments in it computes what the call does, and not much more than once."""
        always = [node.id for node in _always_evaluated(expression) if isinstance(node, ast.Name)]
        everywhere = [node.id for node in loaded_names([expression])]
        for name, value in arguments.items():
            if self._stays(value):
                continue
            if name not in always or (everywhere.count(name) > 1 and not self._is_row(value)):
                return False
            if any(isinstance(part, ast.Call) for part in ast.walk(value)) and len(arguments) > 1:
                return False  # several might be evaluated in another order
        return True

    def _stays(self, node: ast.expr) -> bool:
        """Whether an argument is passed as it is: it cannot raise, and costs nothing."""
        match node:
            case ast.Constant() | ast.Name():
                return True
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
                return True
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult(), right=right):
                names = {name.id for name in loaded_names([node])}
                return bool(names & {*self.indices}) and self._stays(left) and self._stays(right)
        return False

    def _is_row(self, node: ast.expr) -> bool:
        """An element, or a row of an array, at an index that is passed as it is."""
        match node:
            case ast.Subscript(value=ast.Name(), slice=ast.Tuple(elts=elements)):
                return all(map(self._is_index, elements))
            case ast.Subscript(value=ast.Name() | ast.Subscript() as value, slice=index):
                return self._is_index(index) and (isinstance(value, ast.Name) or self._is_row(value))
        return False

    def _is_index(self, node: ast.expr) -> bool:
        return all(
            isinstance(
                part, ast.Name | ast.Constant | ast.expr_context | ast.operator | ast.unaryop | ast.BinOp | ast.UnaryOp
            )
            for part in ast.walk(node)
        )

    def _made(self, call: ast.Call, of: ast.AST, label: str) -> Any:
        """A copy of what stands in a helper, where its call stands."""
        node = copy.deepcopy(of)
        for part in ast.walk(node):
            self._size += 1
            if "lineno" in part._attributes:
                part.lineno, part.col_offset = call.lineno, call.col_offset  # type: ignore[attr-defined]
                part.end_lineno = part.end_col_offset = None  # type: ignore[attr-defined]
                part.helper = getattr(part, "helper", label)  # type: ignore[attr-defined]
        return node

    def _fresh(self, wanted: str) -> str:
        name, number = wanted, 2
        while name in self.taken:
            name, number = f"{wanted}_{number}", number + 1
        self.taken.add(name)
        return name


class _Substituting(ast.NodeTransformer):
    def __init__(self, values: Mapping[str, ast.expr], renamed: Mapping[str, str]) -> None:
        self.values, self.renamed = values, renamed

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.renamed:
            node.id = self.renamed[node.id]
            return node
        value = self.values.get(node.id)
        return node if value is None else placed(node, copy.deepcopy(value))


def _arguments(node: ast.Call, helper: Helper) -> dict[str, ast.expr]:
    """By the names of parameters, in the order in which Python evaluates them. Raises NotInlined where they do not fit."""
    if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
        raise NotInlined("it is called with a star")
    code = helper.function.__code__
    if len(node.args) > code.co_argcount:
        raise NotInlined("it takes other arguments")
    found = dict(zip(helper.parameters, node.args, strict=False))
    by_name = helper.parameters[code.co_posonlyargcount :]
    for keyword in node.keywords:
        if keyword.arg in found or keyword.arg not in by_name:
            raise NotInlined("it takes other arguments")
        found[keyword.arg] = keyword.value
    for name in helper.parameters:
        if name not in found:
            if name not in helper.defaults:
                raise NotInlined(f"{name} is not passed, and has no default that is a number")
            found[name] = helper.defaults[name]
    return found


def _say_why(node: ast.Call, function: Function, why: object) -> None:
    """Note at a call why it stays one."""
    node.why_called = f"{function.__name__} cannot be inlined, since {why}"  # type: ignore[attr-defined]


def _always_evaluated(node: ast.AST) -> list[ast.AST]:
    """The parts of an expression that are evaluated whenever it is."""
    match node:
        case ast.IfExp(test=test):
            return [node, *_always_evaluated(test)]
        case ast.BoolOp(values=[first, *_]):
            return [node, *_always_evaluated(first)]
        case ast.Compare(left=left, comparators=[first, *_]):
            return [node, *_always_evaluated(left), *_always_evaluated(first)]
    return [node, *(part for child in ast.iter_child_nodes(node) for part in _always_evaluated(child))]


def _values(rest: ast.BoolOp, op: ast.boolop) -> list[ast.expr]:
    return rest.values if type(rest.op) is type(op) else [rest]


def _evaluated(node: ast.stmt) -> list[ast.AST]:
    """The expressions of a statement itself, but for those of statements inside of it."""
    return [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]


def is_pure(value: Any) -> bool:
    """Whether calling it does nothing but compute a value, of numbers."""
    module = getattr(value, "__module__", None)
    if module == "math" or any(value is known for known in _PURE_BUILTINS):
        return True
    if type(value).__name__ == "ufunc":
        return True
    return module == "numpy" and (isinstance(value, type) or getattr(value, "__name__", "") in ("where", "clip"))


def _defined(tree: ast.FunctionDef) -> set[str]:
    """Names of definitions and imports in a function."""
    found: set[str] = set()
    for node in (node for statement in tree.body for node in ast.walk(statement)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            found.update(node.names)
    return found


def _name(name: str, where: ast.expr) -> ast.expr:
    return placed(where, ast.Name(name, ast.Load()))


def _assign(name: str, value: ast.expr, where: ast.expr) -> ast.stmt:
    return placed(where, ast.Assign([ast.Name(name, ast.Store())], value))
