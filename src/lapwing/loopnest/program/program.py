"""A function as a program: a driver, its own statements run by Python, with calls of regions in the place of their loops."""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from lapwing.errors import Refusal, RefusedError
from lapwing.loopnest.frontend.function import too_deep
from lapwing.loopnest.normalisation.names import BLOCKS
from lapwing.loopnest.program.deletions import dead_after, deleted_arguments, last_deletions
from lapwing.loopnest.program.lookahead import Lookahead
from lapwing.loopnest.program.looks import NAMES, looking
from lapwing.loopnest.program.outlining import Outlined, is_set_of, value_of
from lapwing.loopnest.program.procedures import procedures, with_procedures
from lapwing.loopnest.program.regions import Interpreted, Region, choose_regions
from lapwing.loopnest.program.short_loops import TRIPS, region_name, trips
from lapwing.loopnest.program.surroundings import Around, Code
from lapwing.loopnest.program.sweeps import Sweeps
from lapwing.loopnest.program.variables.names import own_nodes
from lapwing.loopnest.program.wholes import Whole
from lapwing.loopnest.source import FunctionSource
from lapwing.syntax_places import placed

Statement = TypeVar("Statement", bound=ast.stmt)


@dataclass(frozen=True, eq=False)
class Program:
    """regions: in the order of the text. interpreted: the loops that Python runs. procedures: functions with loops that the
    driver calls, by name. sweeps: loops of the driver whose regions may run through one pipeline. wholes: those that may be
    compiled with the regions in them. deleted: arguments whose elements nobody reads when it has ended. fusions: sweeps with more
    than regions in them, which are done in one process where phases are fused. lookaheads: loops whose sweeps may be done
    before the tests between them."""

    source: FunctionSource = field(repr=False)
    regions: tuple[Region, ...]
    interpreted: tuple[Interpreted, ...]
    procedures: Mapping[str, Callable[..., Any]]
    sweeps: tuple[Sweeps, ...] = ()
    wholes: tuple[Whole, ...] = ()
    deleted: frozenset[str] = frozenset()
    fusions: tuple[Sweeps, ...] = ()
    lookaheads: tuple[Lookahead, ...] = ()

    @property
    def name(self) -> str:
        return self.source.tree.name

    def __str__(self) -> str:
        if not self.regions:
            return "a program of " + ", ".join(self.procedures)
        nests = "one nest" if len(self.regions) == 1 else f"{len(self.regions)} nests"
        return f"a program of {nests}"

    def driver(
        self,
        calls: Sequence[Callable[..., Any]],
        procedures: Sequence[Callable[..., Any]],
        sweeps: Sequence[Callable[..., Any]] = (),
        follow: Callable[[Any], Any] | None = None,
        wholes: Sequence[Callable[..., Any]] | None = None,
        lookaheads: Sequence[Callable[..., Any]] = (),
    ) -> Callable[..., Any]:
        """The function with these in the place of its regions: each takes the region's inputs and returns its outputs, one as it
        is, several as a tuple, and None where there are none. procedures: what is called in the place of those. sweeps: tried
        before those loops; each takes their inputs and what the loop goes over, and returns whether it has done all of it, and
        the arrays that change places. follow: is given what the outermost loops around regions go over, and gives what they do.
        wholes: called in the place of those, where the regions in them are small; each gives its outputs, or None where it has
        done nothing. Where they are given Python does regions that it is the faster one for; calls are nests then
        (``Nest.knows``). lookaheads: with wholes, what is called for every loop whose sweeps may be done ahead (``lookahead``).
        Errors name the lines that the user wrote."""
        if wholes is not None:
            code = self._shortening_driver if not sweeps else self._shortening_sweeping_driver
            return code.function(*calls, *procedures, *sweeps, follow or _as_it_is, trips, *wholes, *lookaheads)
        code = self._sweeping_driver if sweeps else self._driver
        return code.function(*calls, *procedures, *sweeps, follow or _as_it_is)

    def looking_driver(
        self,
        calls: Sequence[Callable[..., Any]],
        procedures: Sequence[Callable[..., Any]],
        sweeps: Sequence[Callable[..., Any]],
        look: Callable[..., None],
        item: Callable[[Any, Any], Any],
        view: Callable[[Any, Any], Any],
        follow: Callable[[Any], Any],
    ) -> Callable[..., Any]:
        """The same, which tells before it looks at arrays or writes to them (``looks``).

        look: called with values; what is called is among them. item: ``item(u, k)`` stands for ``u[k]`` where that may be a view.
        view: the same where a call is passed it.
        """
        around = self.source.function.__globals__

        def look_at(own: Mapping[str, Any], *names: str) -> None:
            known = [own[name] if name in own else around[name] for name in names if name in own or name in around]
            look(*known)

        code = self._looking_driver if sweeps else self._looking_driver_alone
        return code.function(*calls, *procedures, *sweeps, follow, look_at, item, view, locals, slice)

    @cached_property
    def _driver(self) -> Code:
        return with_calls(self.source, self._outlined, tuple(self.procedures), follows=True)

    @cached_property
    def _sweeping_driver(self) -> Code:
        sweeps = (*self.sweeps, *self.fusions)
        return with_calls(self.source, self._outlined, tuple(self.procedures), sweeps, follows=True)

    @cached_property
    def _shortening_driver(self) -> Code:
        return with_calls(
            self.source,
            self._outlined,
            tuple(self.procedures),
            follows=True,
            short=self._short,
            wholes=self.wholes,
            lookaheads=self.lookaheads,
        )

    @cached_property
    def _shortening_sweeping_driver(self) -> Code:
        return with_calls(
            self.source,
            self._outlined,
            tuple(self.procedures),
            (*self.sweeps, *self.fusions),
            follows=True,
            short=self._short,
            wholes=self.wholes,
            lookaheads=self.lookaheads,
        )

    @cached_property
    def _looking_driver(self) -> Code:
        return with_calls(self.source, self._outlined, tuple(self.procedures), self.sweeps, looks=True, follows=True)

    @cached_property
    def _looking_driver_alone(self) -> Code:
        return with_calls(self.source, self._outlined, tuple(self.procedures), looks=True, follows=True)

    @property
    def _outlined(self) -> dict[str, tuple[ast.stmt, Outlined]]:
        return {region.name: (region.statement, region.outlined) for region in self.regions}

    @property
    def _short(self) -> dict[str, ast.expr]:
        return {region.name: region.short for region in self.regions if region.short is not None}


def make_program(source: FunctionSource, alone: RefusedError) -> Program:
    """alone: why the function is no nest. Raises RefusedError, that one where nothing of the function can be compiled."""
    if too_deep(source.tree) or not _is_plain(source):
        raise alone
    if _is_nest_but_for_deletions(source.tree, alone):
        raise alone
    source = replace(source, single_exits=True)
    found = choose_regions(Around(source))
    if found.refused:
        raise RefusedError(*_reasons(source, found.refused, alone))
    called = procedures(source)
    if not found.regions and not called:
        why = [*_reasons(source, [(loop.statement, loop.why) for loop in found.interpreted], alone)]
        raise RefusedError(*why) if why else alone
    deleted = deleted_arguments(source.tree, [region.statement for region in found.regions])
    regions = tuple(_with_deleted(source.tree, region, deleted) for region in found.regions)
    sweeps = tuple(one for one in found.sweeps if not one.is_rewritten)
    fusions = tuple(one for one in found.sweeps if one.is_rewritten)
    return Program(
        source,
        regions,
        tuple(found.interpreted),
        called,
        sweeps,
        tuple(found.wholes),
        deleted,
        fusions,
        tuple(found.lookaheads),
    )


def _with_deleted(tree: ast.FunctionDef, region: Region, deleted: frozenset[str]) -> Region:
    """A region that knows of which arrays nobody reads elements after it."""
    outlined, loops = region.outlined, region.loops
    passed = [*zip(loops.parameters, outlined.inputs, strict=True)]
    dead = tuple(name for name in dead_after(tree, region.statement, passed, deleted) if name in loops.written)
    if not dead:
        return region
    with_dead = replace(outlined, source=replace(outlined.source, dead=dead))
    return replace(region, outlined=with_dead, loops=replace(loops, dead=dead))


def _is_nest_but_for_deletions(tree: ast.FunctionDef, alone: RefusedError) -> bool:
    """Whether the function is no nest for nothing but what it deletes behind its loops."""
    lines = {statement.lineno for statement in last_deletions(tree)}
    return bool(alone.refusals) and all(refusal.line in lines for refusal in alone.refusals)


def _is_plain(source: FunctionSource) -> bool:
    """Whether the function runs when it is called, on arguments that all have names of their own."""
    parameters = inspect.signature(source.function).parameters.values()
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return False
    return not any(isinstance(node, ast.Yield | ast.YieldFrom | ast.Await) for node in own_nodes(source.tree))


def _reasons(
    source: FunctionSource, refused: Sequence[tuple[ast.stmt, tuple[Refusal, ...]]], alone: RefusedError
) -> Iterator[Refusal]:
    """What is said of loops that are no nests. Of the function's first loops it is what was said of them as its only ones."""
    first = next((s for s in source.tree.body if isinstance(s, ast.For)), None)
    for statement, why in refused:
        lines = {source.tree.lineno, *range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)}
        of_first = [refusal for refusal in alone.refusals if statement is first and refusal.line in lines]
        yield from of_first or why


def with_calls(
    source: FunctionSource,
    outlined: Mapping[str, tuple[ast.stmt, Outlined]],
    procedures: Sequence[str] = (),
    sweeps: Sequence[Sweeps] = (),
    looks: bool = False,
    follows: bool = False,
    short: Mapping[str, ast.expr] | None = None,
    wholes: Sequence[Whole] = (),
    lookaheads: Sequence[Lookahead] = (),
) -> Code:
    """The function with calls in the place of loops that were outlined, which are given by name. procedures: functions in whose
    place others are called. sweeps: loops that are not done where a call says that it has. looks: see ``looking``. follows:
    whether what the outermost loops around calls go over is given to a function first. short: by name, when Python does a loop
    itself; where it is given the driver needs ``trips``. wholes: loops that are done by calls, where these do something.
    lookaheads: loops whose sweeps may be done ahead."""
    copies: dict[int, Any] = {}
    tree = copy.deepcopy(source.tree, copies)
    # Not names that Python allows, so nobody else's.
    calls = {name: _call(region_name(name), loop, region) for name, (loop, region) in outlined.items()}
    tried = {loop.name: _try(f"sweeps {loop.name}", loop) for loop in sweeps}
    replaced = {
        id(copies[id(loop)]): [
            *(_value_before(v, loop) for v in region.perhaps),
            calls[name],
            *(_forget(v, loop) for v in region.unset),
        ]
        for name, (loop, region) in outlined.items()
    }
    of_loops = {id(copies[id(ahead.statement)]): ahead for ahead in lookaheads}
    for ahead in lookaheads:
        region, _ = outlined[ahead.region_name]
        replaced[id(copies[id(region)])] = [_ahead_call(calls[ahead.region_name], region, ahead)]
    for name, test in (short or {}).items():
        loop = copies[id(outlined[name][0])]
        settled = [_told(ahead, "settle") for ahead in lookaheads if ahead.region_name == name]
        replaced[id(loop)] = [_unless_short(test, [*settled, loop], replaced[id(loop)])]
    attempts = [
        _Attempt(tuple(copies[id(s)] for s in loop.statements), copy.deepcopy([*loop.first]), tried[loop.name])
        for loop in sweeps
    ]
    by_call = {id(copies[id(whole.statement)]): whole for whole in wholes}
    tree = _Replacing(replaced, attempts, by_call, of_loops).visit(tree)
    others = {name: f"procedure {name}" for name in procedures}
    with_procedures(tree, others)
    names = [*map(region_name, outlined), *others.values(), *(f"sweeps {loop.name}" for loop in sweeps)]
    if looks:
        looks_at = {id(calls[name]): region.looks_at for name, (_, region) in outlined.items()}
        tree = looking(tree, {**looks_at, **{id(statement): frozenset() for statement in tried.values()}})
    if follows:
        _follow_loops(tree.body, frozenset(names) | {_ahead_name(ahead) for ahead in lookaheads})
        names.append(_FOLLOW)
    names += NAMES if looks else ()
    names += [TRIPS] if short is not None else []
    names += [region_name(whole.name) for whole in wholes]
    names += [region_name(ahead.name) for ahead in lookaheads]
    return Code.of(tree, source.function, names)


def _call(name: str, where: ast.stmt, outlined: Outlined) -> ast.stmt:
    """``a, b = region(u, v, n)``"""
    call = ast.Call(ast.Name(name, ast.Load()), copy.deepcopy([*outlined.inputs]), [])
    targets: list[ast.expr] = [ast.Name(output, ast.Store()) for output in outlined.outputs]
    if not targets:
        return _there(ast.Expr(call), where)
    return _there(ast.Assign([targets[0] if len(targets) == 1 else ast.Tuple(targets, ast.Store())], call), where)


def _unless_short(test: ast.expr, loop: list[ast.stmt], call: list[ast.stmt]) -> ast.stmt:
    """``if trips(n) * 90 <= 20000 and region.knows(u, v): …loop… else: …call…``"""
    found = _there(ast.If(copy.deepcopy(test), [], []), loop[-1])
    found.body, found.orelse = loop, call
    return found


def _ahead_name(ahead: Lookahead) -> str:
    return f"{ahead.name} now"  # not a name that Python allows, so nobody else's


def _ahead_call(call: ast.stmt, region: ast.stmt, ahead: Lookahead) -> ast.stmt:
    """``change = ahead((u, change), (u, change))`` in the place of ``change = region(u, change)``"""
    assert isinstance(call, ast.Assign | ast.Expr)
    assert isinstance(call.value, ast.Call)
    found = copy.deepcopy(call)
    given = ast.Tuple(copy.deepcopy(call.value.args), ast.Load())
    inputs = ast.Tuple(copy.deepcopy([*ahead.inputs]), ast.Load())
    found.value = ast.Call(ast.Name(_ahead_name(ahead), ast.Load()), [given, inputs], [])
    return _there(found, region)


def _told(ahead: Lookahead, what: str) -> ast.stmt:
    """``ahead.settle()`` or ``ahead.end()``"""
    method = ast.Attribute(ast.Name(_ahead_name(ahead), ast.Load()), what, ast.Load())
    return _there(ast.Expr(ast.Call(method, [], [])), ahead.statement)


def _with_lookahead(ahead: Lookahead, loop: ast.For | ast.While) -> list[ast.stmt]:
    """The loop with what does its sweeps ahead, and leaves the arrays as they are to be however it ends."""
    begun: list[ast.stmt] = []
    over: ast.expr = ast.Constant(None)
    if isinstance(loop, ast.For):
        name = f"{ahead.name} over"
        begun.append(_there(ast.Assign([ast.Name(name, ast.Store())], loop.iter), ahead.statement))
        over = ast.Name(name, ast.Load())
        loop.iter = _there(ast.Name(name, ast.Load()), ahead.statement)  # type: ignore[type-var]
    own = ast.Dict([ast.Constant(n) for n in ahead.passed], [ast.Name(n, ast.Load()) for n in ahead.passed])
    begin = ast.Call(ast.Name(region_name(ahead.name), ast.Load()), [over, own], [])
    begun.append(_there(ast.Assign([ast.Name(_ahead_name(ahead), ast.Store())], begin), ahead.statement))
    ending = _there(ast.Try([], [], [], [_told(ahead, "end")]), ahead.statement)
    ending.body = [loop]
    return [*begun, ending]


def _unless_done(whole: Whole, loop: list[ast.stmt], sweeps: ast.Call | None) -> list[ast.stmt]:
    """``found = whole(u, n) if trips(n) * 90 <= 8000000 else None``, and the loop where that has not done it. sweeps: a call that
    may do it better, ``… and not sweeps.fuses(u, n, range(steps))``.

    What the test looks at the loop may never come to, so that what would raise is no reason to.
    """
    outlined = whole.outlined
    call = ast.Call(ast.Name(region_name(whole.name), ast.Load()), copy.deepcopy([*outlined.inputs]), [])
    test = copy.deepcopy(whole.test)
    if sweeps is not None:
        fuses = ast.Call(ast.Attribute(sweeps.func, "fuses", ast.Load()), copy.deepcopy(sweeps.args), [])
        test = ast.BoolOp(ast.And(), [test, ast.UnaryOp(ast.Not(), fuses)])
    is_small = ast.Assign([ast.Name(_FOUND, ast.Store())], test)
    is_not = ast.Assign([ast.Name(_FOUND, ast.Store())], ast.Constant(False))
    memory: list[ast.stmt] = [
        ast.Assign([ast.Name(name, ast.Store())], copy.deepcopy(value)) for name, value in whole.copies.items()
    ]
    making: list[ast.stmt] = [ast.If(ast.Name(_FOUND, ast.Load()), memory, [])] if memory else []
    trying = ast.Try([is_small, *making], [ast.ExceptHandler(None, None, [is_not])], [], [])
    found = ast.Assign(
        [ast.Name(_FOUND, ast.Store())], ast.IfExp(ast.Name(_FOUND, ast.Load()), call, ast.Constant(None))
    )
    is_none = ast.Compare(ast.Name(_FOUND, ast.Load()), [ast.Is()], [ast.Constant(None)])
    targets = ast.Tuple([ast.Name(output, ast.Store()) for output in outlined.outputs], ast.Store())
    take: list[ast.stmt] = [ast.Assign([targets], ast.Name(_FOUND, ast.Load()))] if outlined.outputs else []
    take += [*whole.exchanges_after(), *(_forget(variable, whole.statement) for variable in outlined.unset)]
    otherwise = ast.If(is_none, [], [_there(statement, whole.statement) for statement in take])
    made: list[ast.stmt] = [_there(statement, whole.statement) for statement in (trying, found, otherwise)]
    otherwise.body = loop
    return made


def _value_before(variable: str, where: ast.stmt) -> ast.stmt:
    """Looks whether a variable has a value, and which."""

    def assign(name: str, value: ast.expr) -> ast.stmt:
        return ast.Assign([ast.Name(name, ast.Store())], value)

    value, is_set = value_of(variable), is_set_of(variable)
    there = [assign(value, ast.Name(variable, ast.Load())), assign(is_set, ast.Constant(True))]
    not_there = [assign(value, ast.Constant(0)), assign(is_set, ast.Constant(False))]
    return _there(ast.Try(there, [ast.ExceptHandler(None, None, not_there)], [], []), where)


def _forget(variable: str, where: ast.stmt) -> ast.stmt:
    """``if k is ...: del k``"""
    test = ast.Compare(ast.Name(variable, ast.Load()), [ast.Is()], [ast.Constant(...)])
    return _there(ast.If(test, [ast.Delete([ast.Name(variable, ast.Del())])], []), where)


def _try(name: str, sweeps: Sweeps) -> ast.Assign:
    """``done, u, v = sweeps(u, v, n, range(steps))``"""
    arguments = [*copy.deepcopy([*sweeps.inputs.values()]), copy.deepcopy(sweeps.over)]
    call = ast.Call(ast.Name(name, ast.Load()), arguments, [])
    names = [_DONE, *sweeps.exchanged, *sweeps.outputs]
    targets = ast.Tuple([ast.Name(n, ast.Store()) for n in names], ast.Store())
    return _there(ast.Assign([targets], call), sweeps.statements[0])


def _follow_loops(statements: Sequence[ast.stmt], calls: frozenset[str]) -> None:
    """``for t in follow(range(steps))`` in the place of the outermost loops with calls of these in them."""
    for statement in statements:
        if not any(isinstance(node, ast.Name) and node.id in calls for node in ast.walk(statement)):
            continue
        if isinstance(statement, ast.For):
            follow = ast.Call(ast.Name(_FOLLOW, ast.Load()), [statement.iter], [])
            statement.iter = placed(statement.iter, follow, with_end=True)
        elif not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for block in BLOCKS:
                _follow_loops(getattr(statement, block, ()), calls)


def _as_it_is(over: Any) -> Any:
    return over


def _there(node: Statement, where: ast.stmt) -> Statement:
    """A statement that is made, where another stands: on the line of a loop's heading."""
    for part in ast.walk(node):
        if isinstance(part, ast.expr | ast.stmt | ast.excepthandler):
            part.lineno = part.end_lineno = where.lineno
            part.col_offset = part.end_col_offset = where.col_offset
    return node


@dataclass(frozen=True)
class _Attempt:
    """A call that may do what some statements do, and what is done before it."""

    statements: tuple[ast.stmt, ...]
    first: list[ast.stmt]
    call: ast.Assign


class _Replacing(ast.NodeTransformer):
    """Puts statements in the place of others, by their identity; what a call is tried for is done where that has not done it."""

    def __init__(
        self,
        by_identity: dict[int, list[ast.stmt]],
        attempts: Sequence[_Attempt],
        wholes: Mapping[int, Whole],
        lookaheads: Mapping[int, Lookahead],
    ) -> None:
        self._by_identity, self._wholes, self._lookaheads = by_identity, wholes, lookaheads
        self._attempts = {id(attempt.statements[0]): attempt for attempt in attempts}
        self._others = {id(s) for attempt in attempts for s in attempt.statements[1:]}

    def visit(self, node: ast.AST) -> Any:
        if id(node) in self._others:
            return []
        attempt, whole = self._attempts.get(id(node)), self._wholes.get(id(node))
        done = self._replaced(node) if attempt is None else self._attempted(attempt)
        if whole is None:
            return done
        call = None if attempt is None else attempt.call.value
        assert call is None or isinstance(call, ast.Call)
        return _unless_done(whole, done if isinstance(done, list) else [done], call)

    def _attempted(self, attempt: _Attempt) -> list[ast.stmt]:
        otherwise = _there(ast.If(ast.UnaryOp(ast.Not(), ast.Name(_DONE, ast.Load())), [], []), attempt.call)
        # What is in them stays where it is.
        done = [self._replaced(s) for s in attempt.statements]
        otherwise.body = [s for one in done for s in (one if isinstance(one, list) else [one])]
        return [*attempt.first, attempt.call, otherwise]

    def _replaced(self, node: Any) -> Any:
        done = self._by_identity.get(id(node)) or super().generic_visit(node)
        ahead = self._lookaheads.get(id(node))
        if ahead is None:
            return done
        assert isinstance(done, ast.For | ast.While)
        return _with_lookahead(ahead, done)


_DONE = "sweeps are done"  # not a name that Python allows, so nobody else's
_FOLLOW = "follow the loop over"  # nor this
_FOUND = "what the whole loop gives"  # nor this
