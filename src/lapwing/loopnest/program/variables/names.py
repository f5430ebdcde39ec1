"""Which names statements and expressions read and assign, in the order in which Python does."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from enum import Enum, auto


class Use(Enum):
    """What is done with a name. MAY_ASSIGN: an assignment that may be left out, as in ``c or (n := 1)``."""

    READ = auto()
    ASSIGN = auto()
    MAY_ASSIGN = auto()
    DELETE = auto()


Event = tuple[Use, str]

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LOOK_AT_LOCALS = frozenset({"locals", "vars", "eval", "exec", "dir"})


def expression_events(node: ast.AST | None) -> Iterator[Event]:
    """What an expression, or the target of an assignment, does with the names of the function it stands in."""
    match node:
        case None:
            return
        case ast.Name(id=name, ctx=ast.Load()):
            yield Use.READ, name
        case ast.Name(id=name, ctx=ast.Store()):
            yield Use.ASSIGN, name
        case ast.Name(id=name, ctx=ast.Del()):
            yield Use.READ, name
            yield Use.DELETE, name
        case ast.NamedExpr(target=target, value=value):
            yield from expression_events(value)
            yield from expression_events(target)
        case ast.BoolOp(values=[first, *others]):
            yield from expression_events(first)
            for other in others:
                yield from _perhaps(expression_events(other))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield from expression_events(test)
            yield from _perhaps(expression_events(body))
            yield from _perhaps(expression_events(orelse))
        case ast.Compare(left=left, comparators=[first, *others]):
            yield from expression_events(left)
            yield from expression_events(first)
            for other in others:
                yield from _perhaps(expression_events(other))
        case ast.Lambda():
            yield from ((Use.READ, name) for name in sorted(free_names(node)))
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            yield from _comprehension_events(node)
        case _:
            for child in ast.iter_child_nodes(node):
                yield from expression_events(child)


def statement_events(node: ast.stmt) -> Iterator[Event]:
    """The same for a statement without statements inside; definitions of functions and classes are such."""
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from expression_events(value)
            for target in targets:
                yield from expression_events(target)
        case ast.AugAssign(target=ast.Name(id=name), value=value):
            yield Use.READ, name
            yield from expression_events(value)
            yield Use.ASSIGN, name
        case ast.AugAssign(target=target, value=value):
            yield from expression_events(target)
            yield from expression_events(value)
        case ast.AnnAssign(target=target, value=value):
            yield from expression_events(value)
            if value is not None or not isinstance(target, ast.Name):
                yield from expression_events(target)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield from ((Use.READ, name) for name in sorted(free_names(node)))
            yield Use.ASSIGN, node.name
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            yield from ((Use.ASSIGN, (alias.asname or alias.name).split(".")[0]) for alias in aliases)
        case ast.Global() | ast.Nonlocal():
            return
        case _:
            yield from expression_events(node)


def _perhaps(events: Iterable[Event]) -> Iterator[Event]:
    """The events of what may not be evaluated."""
    for use, name in events:
        yield (Use.MAY_ASSIGN if use is Use.ASSIGN else use), name


def _comprehension_events(node: ast.expr) -> Iterator[Event]:
    yield from ((Use.READ, name) for name in sorted(free_names(node)))
    for part in ast.walk(node):
        if isinstance(part, ast.NamedExpr):
            yield Use.MAY_ASSIGN, part.target.id


def free_names(node: ast.AST) -> set[str]:
    """The names that a definition, a lambda or a comprehension takes from around it.

    Names that it also gives a meaning to somewhere inside are told apart scope by scope; a class's own count as taken.
    """
    read: set[str] = set()
    own: set[str] = set()
    declared: set[str] = set()

    def visit(part: ast.AST) -> None:
        match part:
            case ast.Name(id=name, ctx=ast.Load()):
                read.add(name)
            case ast.Name(id=name):
                own.add(name)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                declared.update(names)
            case ast.arg(arg=name, annotation=annotation):
                own.add(name)
                if annotation is not None:
                    visit(annotation)
            case (
                ast.ExceptHandler(name=str() as name)
                | ast.MatchAs(name=str() as name)
                | ast.MatchStar(name=str() as name)
            ):
                own.add(name)
                for child in ast.iter_child_nodes(part):
                    visit(child)
            case ast.NamedExpr(target=target, value=value) if isinstance(node, _COMPREHENSIONS):
                read.add(target.id)  # the function's, not the comprehension's
                visit(value)
            case _ if part is not node and isinstance(part, (*_SCOPES, *_COMPREHENSIONS)):
                read.update(free_names(part))
                if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    own.add(part.name)
            case ast.alias(name=name, asname=asname):
                own.add((asname or name).split(".")[0])
            case _:
                for child in ast.iter_child_nodes(part):
                    visit(child)

    visit(node)
    outside = _evaluated_around(node)
    return (read if isinstance(node, ast.ClassDef) else read - own) | declared | outside


def _evaluated_around(node: ast.AST) -> set[str]:
    """The names read by what of a definition is evaluated outside of its scope, whatever it calls its own."""
    parts: list[ast.AST] = []
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        parts += [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        parts += node.decorator_list
    if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        parts.append(node.generators[0].iter)
    return {part.id for root in parts for part in ast.walk(root) if isinstance(part, ast.Name)}


def bound_names(statements: Iterable[ast.AST], without: ast.AST | None = None) -> set[str]:
    """The names that statements give a meaning to in the scope they stand in. without: one that does not count."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        match node:
            case _ if node is without:
                pass
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found.add(node.name)
            case ast.Lambda():
                pass
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                found.update(part.target.id for part in ast.walk(node) if isinstance(part, ast.NamedExpr))
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                found.add(name)
            case ast.alias(name=name, asname=asname):
                found.add((asname or name).split(".")[0])
            case _:
                if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
                    found.add(node.name)
                if isinstance(node, ast.MatchMapping) and node.rest:
                    found.add(node.rest)
                for child in ast.iter_child_nodes(node):
                    visit(child)

    for statement in statements:
        visit(statement)
    return found


def parameter_names(arguments: ast.arguments) -> tuple[str, ...]:
    """The names of a function's parameters, in the order of the signature."""
    plain = [*arguments.posonlyargs, *arguments.args]
    variable = [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    return tuple(a.arg for a in (*plain, *arguments.kwonlyargs, *variable))


def local_names(function: ast.FunctionDef) -> frozenset[str]:
    """A function's own variables: parameters, and what its statements assign and do not declare global or nonlocal."""
    declared = {n for node in own_nodes(function) if isinstance(node, ast.Global | ast.Nonlocal) for n in node.names}
    return frozenset(({*parameter_names(function.args)} | bound_names(function.body)) - declared)


def captured_names(function: ast.FunctionDef) -> frozenset[str]:
    """Variables that may be read at any time: by functions and generators defined inside, or as ``locals()``."""
    found: set[str] = set()
    for node in own_nodes(function):
        if isinstance(node, (*_SCOPES, ast.GeneratorExp)):
            found |= free_names(node)
        elif isinstance(node, ast.Name) and node.id in _LOOK_AT_LOCALS:
            found |= local_names(function)
    return frozenset(found)


def own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function's body, but for what is inside of other definitions."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _SCOPES):
            waiting += ast.iter_child_nodes(node)
