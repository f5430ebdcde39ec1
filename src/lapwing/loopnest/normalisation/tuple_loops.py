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

A copy that ends early (``continue``) has what follows under the opposite condition. Where a copy may end the loop (``break``), it
notes that in a variable, and those behind it are done where none has.
"""

from __future__ import annotations

import ast
import copy
import inspect
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from lapwing.loopnest.normalisation.aggregates import aggregates
from lapwing.loopnest.normalisation.known_sequences import (
    Item,
    KnownSequences,
    Rows,
    Substituting,
    builtins_by_name,
    copied,
    is_number,
    is_row,
    match,
)
from lapwing.loopnest.normalisation.names import all_names, fresh_name, own_names
from lapwing.syntax_places import placed

MOST_COPIES = 64  # of a statement, in loops that stand in each other
_MOST_CALLS = 8  # of functions in each other that are looked into


def unrolled(tree: ast.FunctionDef, meaning: Callable[[str], object] = lambda name: None) -> ast.FunctionDef:
    """The function with such loops unrolled; the same where it has none. meaning: of names that are not its own."""
    known = known_sequences(tree, meaning)
    unrolling = _Unrolling(known, tree)
    if not any(isinstance(node, ast.For) and unrolling.items(node) for node in ast.walk(tree)):
        return tree
    found = unrolling.visit(copy.deepcopy(tree))
    assert isinstance(found, ast.FunctionDef)
    read = {node.id for node in ast.walk(found) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    found.body = [s for s in found.body if (name := _row_set(s)) is None or name not in known.rows or name in read]
    return found


def known_sequences(tree: ast.FunctionDef, meaning: Callable[[str], object]) -> KnownSequences:
    """The sequences that are known in a function."""
    rows = named_rows(tree, meaning)
    builtins = builtins_by_name(tree, meaning)
    return KnownSequences(rows, aggregates(tree, builtins, frozenset(rows)), builtins)


def with_displays(tree: ast.FunctionDef, meaning: Callable[[str], object], caller: ast.FunctionDef) -> ast.FunctionDef:
    """A function with displays in the place of names around it that stand for rows of numbers, where those are indexed: where it
    is inlined the places may be known. caller: the function that it is inlined into, and that may change rows meanwhile."""
    rows = {
        name: row
        for name, row in named_rows(tree, meaning).items()
        if name in rows_around(tree, meaning)
        and _is_only_read(name, row, caller, 0)
        and not _may_be_changed_by_calls(name, row, caller, meaning)
    }
    if not rows:
        return tree
    new = _Displaying(rows).visit(copy.deepcopy(tree))
    assert isinstance(new, ast.FunctionDef)
    return new


class _Displaying(ast.NodeTransformer):
    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Load()) if name in self.rows:
                node.value = copied(self.rows[name], node.value)
        return node


def selected(tree: ast.FunctionDef) -> ast.FunctionDef:
    """A function with numbers in the place of their selection from displays."""
    new = Substituting({}, KnownSequences()).visit(copy.deepcopy(tree))
    assert isinstance(new, ast.FunctionDef)
    return new


def rows_around(tree: ast.FunctionDef, meaning: Callable[[str], object]) -> frozenset[str]:
    """The names around a function that are taken for the rows that they stand for."""
    return frozenset(named_rows(tree, meaning)) - {_row_set(statement) or "" for statement in tree.body}


def named_rows(tree: ast.FunctionDef, meaning: Callable[[str], object]) -> Rows:
    """The rows of numbers that names stand for in all of a function: local ones, and those around it."""
    found: dict[str, ast.List | ast.Tuple] = {}
    for name in sorted(_looked_at(tree) - own_names(tree)):
        row = _row_of(meaning(name))
        if (
            row is not None
            and _is_only_read(name, row, tree, 0)
            and not _may_be_changed_by_calls(name, row, tree, meaning)
        ):
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
        if isinstance(node, ast.For | ast.comprehension):
            found |= {part.id for part in ast.walk(node.iter) if isinstance(part, ast.Name)}
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            found.add(node.value.id)
    return found


def _row_set(statement: ast.stmt) -> str | None:
    """The name that a statement sets to a row of numbers, or of rows of them."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.List() | ast.Tuple() as value) if is_row(value):
            return name
    return None


def _is_read_before(name: str, tree: ast.FunctionDef) -> bool:
    """Whether a name is read in a statement before the one that sets it."""
    for statement in tree.body:
        if _row_set(statement) == name:
            return False
        if any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(statement)):
            return True
    return False


def _may_be_changed_by_calls(
    name: str, row: ast.List | ast.Tuple, tree: ast.FunctionDef, meaning: Callable[[str], object], depth: int = 0
) -> bool:
    """Whether the function calls others of Python's that name it, too, and may do more than read it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            called = meaning(node.func.id)
            code = getattr(called, "__code__", None)
            if code is not None and name in (*code.co_names, *code.co_freevars):
                inner = _text_of(called) if name in code.co_names and depth < _MOST_CALLS else None
                if inner is None or not _is_only_read(name, row, inner, 0):
                    return True
                around: Mapping[str, object] = called.__globals__  # type: ignore[attr-defined]
                if around.get(name) is not meaning(name) or _may_be_changed_by_calls(
                    name, row, inner, around.get, depth + 1
                ):
                    return True
    return False


def _text_of(function: object) -> ast.FunctionDef | None:
    """The syntax tree of a function, where it can be read."""
    try:
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body  # type: ignore[arg-type]
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    return node if isinstance(node, ast.FunctionDef) else None


def _is_only_read(name: str, row: ast.List | ast.Tuple, tree: ast.FunctionDef, times: int) -> bool:
    """Whether a name is set so many times, and what it stands for is only gone over, measured and indexed."""
    uses = stores = 0
    holds_rows = any(map(is_row, row.elts))
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=found, ctx=ctx) if found == name:
                stores += isinstance(ctx, ast.Store)
                uses += isinstance(ctx, ast.Load)
            case ast.arg(arg=found) if found == name:
                return False
            case ast.For(iter=ast.Name(id=found)) | ast.comprehension(iter=ast.Name(id=found)) if found == name:
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
    def __init__(self, known: KnownSequences, tree: ast.FunctionDef) -> None:
        self.known = known
        self.copies = 1
        self.reads = _reads(tree.body)
        self.taken = all_names(tree)

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        items = self.items(node)
        if not items or self.copies * len(items) > MOST_COPIES or node.orelse:
            return self.generic_visit(node)
        body, stopped = _without_continue(node.body), None
        if any(isinstance(n, ast.Break) for n in _own(body)):
            stopped = fresh_name("stopped", self.taken)
            body = _without_continue(_Stopping(stopped).block(copy.deepcopy(node.body)))
        if _is_left_early(body):
            return self.generic_visit(node)
        names = {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
        held = {name for name, value in items[-1].items() if not is_number(value) and not isinstance(value, ast.Tuple)}
        if held and may_go_over_arrays(node):
            return self.generic_visit(node)
        changed = {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        inside = _reads(node.body)
        last = items[-1]
        kept = {n for n in names - held if not is_number(last[n]) and inside[n] < self.reads[n]}
        written = {base for s in body for base in _bases_written(s)}
        over = {n.id for n in ast.walk(node.iter) if isinstance(n, ast.Name)} & self.known.aggregates.keys()
        if changed & (names - held | over) or kept or written & (names | over):
            return self.generic_visit(node)  # a row that is read later, or that changes
        # Those that are read behind the loop are what they are in the last iteration that it comes to.
        later = {n for n in names - held if stopped is not None and inside[n] < self.reads[n]}
        self.copies *= len(items)
        found: list[ast.stmt] = []
        for number, values in enumerate(items):
            one = [_set(name, values[name], node) for name in values if name in held | later]
            put = {name: value for name, value in values.items() if name not in held}
            for statement in body:
                visited = self.visit(Substituting(put, self.known).visit(copy.deepcopy(statement)))
                one += visited if isinstance(visited, list) else [visited]
            if stopped is not None and number:
                test = ast.UnaryOp(ast.Not(), ast.Name(stopped, ast.Load()))
                one = [placed(node, ast.If(test, one, []))]
            found += one
        self.copies //= len(items)
        if stopped is not None:
            return [_set(stopped, ast.Constant(False), node), *found]
        found += [_set(name, value, node) for name, value in values.items() if is_number(value)]
        return found

    def items(self, node: ast.For) -> list[dict[str, ast.expr]]:
        """What the targets of a loop are in each iteration, where that is known; else nothing."""
        elements = self.known.elements(node.iter)
        if elements is None:
            elements = self._places(node)
        found: list[dict[str, ast.expr]] = []
        for element in elements or ():
            values: dict[str, ast.expr] = {}
            if not match(node.target, element, values):
                return []
            found.append(values)
        return found

    def _places(self, node: ast.For) -> list[Item] | None:
        """The indices of a loop that selects from a row or an aggregate."""
        if not isinstance(node.target, ast.Name) or not any(self._selects(s, node.target.id) for s in node.body):
            return None
        return self.known.numbers(node.iter)

    def _selects(self, statement: ast.stmt, index: str) -> bool:
        return any(
            isinstance(n, ast.Subscript) and self._is_known(_base(n))
            and any(isinstance(part, ast.Name) and part.id == index for part in ast.walk(n.slice))
            for n in ast.walk(statement)
        )  # fmt: skip

    def _is_known(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self.known.rows or node.id in self.known.aggregates
        return is_row(node)


class _Stopping(ast.NodeTransformer):
    """Notes the breaks of a loop itself in a variable, and ends the iteration there."""

    def __init__(self, name: str) -> None:
        self.name = name

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for statement in statements:
            new = self.visit(statement)
            found += new if isinstance(new, list) else [new]
        return found

    def visit_For(self, node: ast.For) -> ast.AST:
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        return node

    def visit_Break(self, node: ast.Break) -> list[ast.stmt]:
        noted = ast.Assign([ast.Name(self.name, ast.Store())], ast.Constant(True))
        return [placed(node, noted), placed(node, ast.Continue())]


def _set(name: str, value: ast.expr, where: ast.For) -> ast.stmt:
    return placed(where, ast.Assign([ast.Name(name, ast.Store())], copy.deepcopy(value)))


def _base(node: ast.expr) -> ast.expr:
    """What is indexed."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _bases(statements: Sequence[ast.stmt]) -> set[str]:
    """The names of what is indexed, or has attributes, or is measured."""
    found: set[str] = set()
    for node in (node for statement in statements for node in ast.walk(statement)):
        match node:
            case ast.Subscript(value=ast.Name(id=name)) | ast.Attribute(value=ast.Name(id=name)):
                found.add(name)
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)]):
                found.add(name)
    return found


def may_go_over_arrays(node: ast.For) -> bool:
    """Whether the elements of what a loop goes over may be arrays: some are indexed, or there are loops in it."""
    if any(isinstance(part, ast.For | ast.While) for s in node.body for part in ast.walk(s)):
        return True
    return bool(_bases(node.body) & {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)})


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
        if isinstance(statement, ast.For | ast.While):  # in its else they are those of the loop around
            yield from (n for n in _own(statement.orelse) if isinstance(n, ast.Break | ast.Continue))
