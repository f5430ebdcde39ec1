"""Loops over a row of numbers in the text are unrolled, so that in every copy the number is a constant.

    before                                   after
    for step in (1, -1):                     for i in range(0, n, 1):
        for i in range(0, n, step):              u[i] = u[i] + 1
            u[i] = u[i] + step               for i in range(0, n, -1):
                                                 u[i] = u[i] + -1
                                             step = -1

So are loops over rows that have a name (``STEPS = (1, -1)``), over ``enumerate`` and ``zip`` of such, and loops of a known number
of iterations whose index selects from one (``for k in range(4): di = DI[k]``).

Of a conditional expression whose test is then known (``range(n) if step > 0 else range(n - 1, -1, -1)``) what it chooses
stays.

A copy that ends early (``continue``) has what follows under the opposite condition. Loops that end early (``break``) are not
unrolled, since a copy cannot know whether the one before it did.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from lapwing.loopnest.normalisation.counted_loops import is_strict
from lapwing.loopnest.normalisation.names import own_names
from lapwing.syntax_places import placed

_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}

_BUILTINS: dict[str, object] = {"range": range, "len": len, "enumerate": enumerate, "zip": zip}

MOST_COPIES = 64  # of a statement, in loops that stand in each other


Rows = Mapping[str, ast.List | ast.Tuple]
Item = ast.expr | list["Item"]


def unrolled(tree: ast.FunctionDef, meaning: Callable[[str], object] = lambda name: None) -> ast.FunctionDef:
    """The function with such loops unrolled; the same where it has none. meaning: of names that are not its own."""
    rows = named_rows(tree, meaning)
    unrolling = _Unrolling(rows, tree, meaning)
    if not any(isinstance(node, ast.For) and unrolling.items(node) for node in ast.walk(tree)):
        return tree
    found = unrolling.visit(copy.deepcopy(tree))
    assert isinstance(found, ast.FunctionDef)
    read = {node.id for node in ast.walk(found) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    found.body = [s for s in found.body if (name := _row_set(s)) is None or name not in rows or name in read]
    return found


def rows_around(tree: ast.FunctionDef, meaning: Callable[[str], object]) -> frozenset[str]:
    """The names around a function that are taken for the rows that they stand for."""
    return frozenset(named_rows(tree, meaning)) - {_row_set(statement) or "" for statement in tree.body}


def named_rows(tree: ast.FunctionDef, meaning: Callable[[str], object]) -> Rows:
    """The rows of numbers that names stand for in all of a function: local ones, and those around it."""
    found: dict[str, ast.List | ast.Tuple] = {}
    for name in sorted(_looked_at(tree) - own_names(tree)):
        row = _row_of(meaning(name))
        if row is not None and _is_only_read(name, row, tree, 0) and not _may_be_changed_by_calls(name, tree, meaning):
            found[name] = row
    for statement in tree.body:
        own_name = _row_set(statement)
        if own_name is None or _is_read_before(own_name, tree):
            continue
        assert isinstance(statement, ast.Assign)
        assert isinstance(statement.value, ast.List | ast.Tuple)
        if _is_only_read(own_name, statement.value, tree, 1):
            found[own_name] = statement.value
    return found


def _looked_at(tree: ast.FunctionDef) -> set[str]:
    """Names that loops go over or that are indexed."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.For):
            found |= {part.id for part in ast.walk(node.iter) if isinstance(part, ast.Name)}
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            found.add(node.value.id)
    return found


def _row_set(statement: ast.stmt) -> str | None:
    """The name that a statement sets to a row of numbers, or of rows of them."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.List() | ast.Tuple() as value) if _is_row(value):
            return name
    return None


def _is_row(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.List | ast.Tuple)
        and bool(node.elts)
        and all(_is_number(e) or _is_row(e) for e in node.elts)
    )


def _is_read_before(name: str, tree: ast.FunctionDef) -> bool:
    """Whether a name is read in a statement before the one that sets it."""
    for statement in tree.body:
        if _row_set(statement) == name:
            return False
        if any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(statement)):
            return True
    return False


def _may_be_changed_by_calls(name: str, tree: ast.FunctionDef, meaning: Callable[[str], object]) -> bool:
    """Whether the function calls others of Python's that name it, too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            code = getattr(meaning(node.func.id), "__code__", None)
            if code is not None and name in (*code.co_names, *code.co_freevars):
                return True
    return False


def _is_only_read(name: str, row: ast.List | ast.Tuple, tree: ast.FunctionDef, times: int) -> bool:
    """Whether a name is set so many times, and what it stands for is only gone over, measured and indexed."""
    uses = stores = 0
    holds_rows = any(map(_is_row, row.elts))
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=found, ctx=ctx) if found == name:
                stores += isinstance(ctx, ast.Store)
                uses += isinstance(ctx, ast.Load)
            case ast.arg(arg=found) if found == name:
                return False
            case ast.For(iter=ast.Name(id=found)) if found == name:
                uses -= 1
            case ast.Call(func=ast.Name(id="len" | "enumerate" | "zip"), args=arguments):
                uses -= sum(isinstance(argument, ast.Name) and argument.id == name for argument in arguments)
            case ast.Subscript(value=ast.Name(id=found), ctx=ast.Load()) if found == name:
                uses -= 1
            case ast.Subscript(value=ast.Subscript(value=ast.Name(id=found)), ctx=ast.Store()) if found == name:
                return False
            case ast.Assign(value=ast.Subscript(value=ast.Name(id=found))) if found == name and holds_rows:
                return False  # another name for a row of it
            case ast.Global(names=names) if name in names:
                return False
    return stores == times and uses == 0


def _row_of(value: object) -> ast.List | ast.Tuple | None:
    """A row of numbers as an expression."""
    if type(value) not in (list, tuple):
        return None
    assert isinstance(value, list | tuple)
    elements: list[ast.expr] = []
    for element in value[: MOST_COPIES + 1]:
        if type(element) in (bool, int, float) and element == element and abs(element) != float("inf"):
            elements.append(ast.parse(repr(element), mode="eval").body)
        elif (row := _row_of(element)) is not None:
            elements.append(row)
        else:
            return None
    return ast.Tuple(elements, ast.Load()) if 0 < len(elements) <= MOST_COPIES else None


class _Unrolling(ast.NodeTransformer):
    def __init__(self, rows: Rows, tree: ast.FunctionDef, meaning: Callable[[str], object]) -> None:
        self.rows = rows
        self.copies = 1
        own = own_names(tree)
        self.builtins = {name for name, its in _BUILTINS.items() if name not in own and meaning(name) is its}
        self.reads = _reads(tree.body)

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        items = self.items(node)
        if not items or self.copies * len(items) > MOST_COPIES or node.orelse:
            return self.generic_visit(node)
        body = _without_continue(node.body)
        if _is_left_early(body):
            return self.generic_visit(node)
        names = {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
        changed = {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        inside = _reads(node.body)
        kept = {name for name, value in items[-1].items() if not _is_number(value) and inside[name] < self.reads[name]}
        written = {base for s in body for base in _bases_written(s)}
        if changed & names or kept or written & names:  # a row that is read later, or that changes
            return self.generic_visit(node)
        self.copies *= len(items)
        found: list[ast.stmt] = []
        for values in items:
            for statement in body:
                one = _Substituting(values, self.rows).visit(copy.deepcopy(statement))
                visited = self.visit(one)
                found += visited if isinstance(visited, list) else [visited]
        self.copies //= len(items)
        for name, value in values.items():
            if _is_number(value):
                found.append(placed(node, ast.Assign([ast.Name(name, ast.Store())], copy.deepcopy(value))))
        return found

    def items(self, node: ast.For) -> list[dict[str, ast.expr]]:
        """What the targets of a loop are in each iteration, where that is known; else nothing."""
        elements = self._elements(node.iter)
        if elements is None:
            elements = self._places(node)
        found: list[dict[str, ast.expr]] = []
        for element in elements or ():
            values: dict[str, ast.expr] = {}
            if not _match(node.target, element, values):
                return []
            found.append(values)
        return found

    def _elements(self, node: ast.expr) -> list[Item] | None:
        match node:
            case ast.List(elts=elements) | ast.Tuple(elts=elements) if _is_row(node):
                return [*elements]
            case ast.Name(id=name) if name in self.rows:
                return [*self.rows[name].elts]
            case ast.Call(func=ast.Name(id=called)) if called not in self.builtins:
                return None
            case ast.Call(func=ast.Name(id="enumerate"), args=[inner], keywords=[]):
                found = self._elements(inner)
                return None if found is None else [[ast.Constant(k), element] for k, element in enumerate(found)]
            case ast.Call(func=ast.Name(id="zip"), args=[_, *_] as parts) if not is_strict(node):
                columns = [self._elements(part) for part in parts]
                known = [column for column in columns if column is not None]
                return [list(row) for row in zip(*known, strict=False)] if len(known) == len(columns) else None
        return None

    def _places(self, node: ast.For) -> list[Item] | None:
        """The indices of a loop that selects from a row."""
        match node:
            case ast.For(
                target=ast.Name(id=index), iter=ast.Call(func=ast.Name(id="range"), args=[count], keywords=[])
            ):
                number = _value(_Substituting({}, self.rows).visit(copy.deepcopy(count)))
                if (
                    {"range", "len"} <= self.builtins
                    and type(number) is int
                    and 0 < number <= MOST_COPIES
                    and any(self._selects(s, index) for s in node.body)
                ):
                    return [ast.Constant(k) for k in range(number)]
        return None

    def _selects(self, statement: ast.stmt, index: str) -> bool:
        return any(
            isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name) and n.value.id in self.rows
            and any(isinstance(part, ast.Name) and part.id == index for part in ast.walk(n.slice))
            for n in ast.walk(statement)
        )  # fmt: skip


def _bases_written(statement: ast.stmt) -> Iterator[str]:
    """The names of which elements are set, or that methods are called of."""
    for node in ast.walk(statement):
        match node:
            case (
                ast.Attribute(value=ast.Name(id=name))
                | ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del())
            ):
                yield name


def _reads(statements: Sequence[ast.stmt]) -> Counter[str]:
    """How often names are read."""
    nodes = (node for statement in statements for node in ast.walk(statement))
    return Counter(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))


def _match(target: ast.expr, item: Item, values: dict[str, ast.expr]) -> bool:
    """Note what the names of a target are; whether it takes the item."""
    if isinstance(target, ast.Name):
        if isinstance(item, list):
            return False
        values[target.id] = item
        return True
    parts = item if isinstance(item, list) else item.elts if isinstance(item, ast.List | ast.Tuple) else []
    if not isinstance(target, ast.Tuple | ast.List) or len(parts) != len(target.elts):
        return False
    return all(_match(t, part, values) for t, part in zip(target.elts, parts, strict=True))


def _value(node: ast.expr) -> int | float | None:
    """The value of an expression of numbers; None of any other."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = _value(operand)
            return None if inner is None else -inner
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            a, b = _value(left), _value(right)
            with contextlib.suppress(ArithmeticError):
                return None if a is None or b is None else _ARITHMETIC[type(op)](a, b)
    return None


class _Substituting(ast.NodeTransformer):
    """Puts numbers in the place of names, and what is then known to be selected from rows."""

    def __init__(self, values: Mapping[str, ast.expr], rows: Rows) -> None:
        self.values, self.rows = values, rows

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self.values.get(node.id)
        if value is None or not isinstance(node.ctx, ast.Load):
            return node
        return _copied(value, node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node:
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)], keywords=[]) if name in self.rows:
                return ast.copy_location(ast.Constant(len(self.rows[name].elts)), node)
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            return node
        row = self.rows.get(node.value.id) if isinstance(node.value, ast.Name) else node.value
        place = _value(node.slice)
        if isinstance(row, ast.List | ast.Tuple) and type(place) is int and -len(row.elts) <= place < len(row.elts):
            return _copied(row.elts[place], node)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        match node.test:
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
                if _is_number(left) and _is_number(right):
                    with contextlib.suppress(TypeError):  # complex numbers have no order
                        holds = _COMPARISONS[type(op)](ast.literal_eval(left), ast.literal_eval(right))
                        return node.body if holds else node.orelse
        return node


def _copied(value: ast.expr, node: ast.expr) -> ast.expr:
    new = copy.deepcopy(value)
    for part in ast.walk(new):
        ast.copy_location(part, node)
    return new


def _is_number(node: ast.expr) -> bool:
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _is_number(operand)
        case ast.Constant(value=value):
            return isinstance(value, bool | int | float | complex)
    return False


def _without_continue(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The same with what follows ``if …: continue`` in its else, and the other way round."""
    for k, statement in enumerate(statements):
        if isinstance(statement, ast.Continue):
            return [*statements[:k], ast.copy_location(ast.Pass(), statement)]
        if isinstance(statement, ast.If):
            arms = (statement.body, statement.orelse)
            if any(map(_ends_in_continue, arms)):
                rest = statements[k + 1 :]
                then, otherwise = (_without_continue(arm if _ends_in_continue(arm) else [*arm, *rest]) for arm in arms)
                return [*statements[:k], ast.copy_location(ast.If(statement.test, then, otherwise), statement)]
    return list(statements)


def _ends_in_continue(statements: Sequence[ast.stmt]) -> bool:
    return bool(statements) and isinstance(statements[-1], ast.Continue)


def _is_left_early(statements: Sequence[ast.stmt]) -> bool:
    """Whether a break or continue of the loop itself is among the statements, or what cannot be copied."""
    return any(isinstance(n, ast.Break | ast.Continue | ast.FunctionDef | ast.Lambda) for n in _own(statements))


def _own(statements: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes of statements, but for the breaks and continues of loops among them."""
    for statement in statements:
        is_loop = isinstance(statement, ast.For | ast.While)
        for node in ast.walk(statement):
            if not (is_loop and isinstance(node, ast.Break | ast.Continue)):
                yield node
