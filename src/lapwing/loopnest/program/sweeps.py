"""Loops around regions that are the sweeps of one phased nest: the next region need not wait for all of the one before.

    before                                   after
    for t in range(steps):                   done, u, v = sweeps(u, v, n, range(steps))
        region 1(u, v, n)                    if not done:
        u, v = v, u                              for t in range(steps):
                                                     region 1(u, v, n)
                                                     u, v = v, u

Where arrays change places at the end of an iteration, as many iterations as it takes until they are as they were are one sweep: a
region is then a phase of each, on the arrays as they are named in it. What copies whole arrays, fills slices and sets elements is
a loop, too (``whole_arrays``).

Regions that stand one behind the other, in the body of a while loop, say, are one sweep; their reductions are what it gives:

    region 1(u, v, n)                        done, worst = sweeps(u, v, n, worst, range(1))
    worst = region 2(u, v, n, worst)         if not done:
                                                 region 1(u, v, n)
                                                 worst = region 2(u, v, n, worst)
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from lapwing.errors import RefusedError
from lapwing.loopnest import ir
from lapwing.loopnest.analysis import NestAnalysis
from lapwing.loopnest.frontend.parser import parse
from lapwing.loopnest.frontend.statements import does_nothing
from lapwing.loopnest.inlining.inliner import meaning
from lapwing.loopnest.normalisation.names import all_names, fresh_name, is_range
from lapwing.loopnest.program.outlining import Rewritten, outline
from lapwing.loopnest.program.surroundings import Around, Code, Control
from lapwing.loopnest.program.variables.liveness import exposed_reads
from lapwing.loopnest.program.variables.names import bound_names
from lapwing.loopnest.program.whole_arrays.element_loops import with_element_loops
from lapwing.loopnest.program.whole_arrays.exchanges import NotRewrittenError, exchanged_at_the_end
from lapwing.loopnest.program.whole_arrays.phase_loops import PhaseLoop, phase_loops
from lapwing.loopnest.source import FunctionSource
from lapwing.syntax_places import placed


@dataclass(frozen=True)
class Sweeps:
    """statements: of the driver, in whose place the sweeps are done. over: what they go over. phases: of one sweep, each as a
    function whose outermost loop is that of the sweeps. inputs: what the driver passes to all of them, by name.

    orders: the arrays that change places after every iteration, and what their names stand for in each until they are as they
    were; a sweep is then so many iterations, and ``iterations`` the argument that says how many sweeps. outputs: the reductions
    that phases leave, each with the input that it begins with. first: what stands between the statements and is done before
    them.

    is_rewritten: whether there is more than regions, so that it is only done where phases are fused. copies: inputs in whose
    place memory is made; they are given the array that is copied. alike: pairs of arrays that are to have one shape and dtype;
    edges: arrays that are to have elements."""

    statements: tuple[ast.stmt, ...] = field(repr=False)
    over: ast.expr = field(repr=False)
    name: str
    phases: tuple[FunctionSource, ...] = field(repr=False)
    inputs: Mapping[str, ast.expr] = field(repr=False)
    orders: tuple[tuple[str, ...], ...] = ()
    iterations: str = ""
    outputs: Mapping[str, str] = field(default_factory=dict)
    first: tuple[ast.stmt, ...] = field(default=(), repr=False)
    is_rewritten: bool = False
    copies: frozenset[str] = frozenset()
    alike: tuple[tuple[str, str], ...] = ()
    edges: frozenset[str] = frozenset()

    @property
    def exchanged(self) -> tuple[str, ...]:
        """The arrays that change places."""
        return self.orders[0] if self.orders else ()

    @property
    def is_loop(self) -> bool:
        """Whether they are those of a loop, and not regions that are done once."""
        return self.over is getattr(self.statements[0], "iter", None)

    @property
    def line(self) -> int:
        return self.statements[0].lineno

    def exchanged_after(self, iterations: int) -> dict[str, str]:
        """The arrays that change places, each with the one that its name stands for after so many iterations."""
        if not self.orders:
            return {}
        return dict(zip(self.exchanged, self.orders[iterations % len(self.orders)], strict=True))

    def phases_of(self, iterations: int) -> int:
        """How many phases so many iterations have, of those that are a sweep."""
        return len(self.phases) * iterations // max(1, len(self.orders))


def sweeps_of(
    around: Around, statement: ast.For, regions: Sequence[ast.stmt], control: Control, name: str
) -> Sweeps | None:
    """A loop of the driver as sweeps; None where it does more than call regions, copy and exchange arrays and set elements, or
    they do not fit each other.

    regions: the statements that are regions, cut into tiles.
    """
    taken, tiled = {*around.locals, *all_names(around.source.tree)}, {id(region) for region in regions}
    if any(isinstance(s, ast.For) and id(s) not in tiled for s in statement.body):
        return None
    try:
        elements = with_element_loops(statement, taken, partial(meaning, around.source.function), around.locals)
        elements.loop.body = [s for s in elements.loop.body if not does_nothing(s)]
        body, orders = exchanged_at_the_end(elements.loop)
        body = [s for s in body if not _sets_unused(s, body)]
        loops = [*phase_loops(body, lambda loop: id(elements.stands_for[id(loop)]) in tiled, taken)]
    except NotRewrittenError:
        return None
    places = [elements.stands_for[id(one.place)] for one in loops]
    if not loops or statement.orelse:
        return None
    if not isinstance(statement.target, ast.Name) or not is_range(statement.iter):
        return None
    exchanged = orders[0] if orders else ()
    if around.live_after(statement) & bound_names([statement]) - set(exchanged):
        return None
    if exposed_reads([statement]) & elements.copies.keys() or elements.copies.keys() & set(exchanged) or elements.new:
        return None
    index = statement.target.id
    used = {node.id for s in body for node in ast.walk(s) if isinstance(node, ast.Name)}
    if exchanged and index in used:
        return None
    iterations = fresh_name("iterations", {*around.locals, *used})
    over = None if not exchanged else ast.Name(iterations, ast.Load())
    sources = elements.copied
    inputs: dict[str, ast.expr] = {}
    phases: list[FunctionSource] = []
    for order in orders or ((),):
        names = dict(zip(exchanged, order, strict=True))
        for one, place in zip(loops, places, strict=True):
            # As it is written, but where it names arrays that only this loop has.
            loop = place if isinstance(place, ast.For) and not sources else one.loop
            of_phase = PhaseLoop(loop, place)
            phase = _phase(around, statement, of_phase, control, f"{name}_{len(phases) + 1}", names, over, sources)
            if phase is None:
                return None
            source, given = phase
            phases.append(source)
            inputs |= {n: value for n, value in given.items() if n != iterations}
    is_rewritten = any(id(place) not in tiled for place in places)
    alike = [*elements.alike, *sources.items()]
    return Sweeps(
        (statement,),
        statement.iter,
        name,
        tuple(phases),
        inputs,
        orders,
        iterations,
        is_rewritten=is_rewritten,
        copies=frozenset(sources),
        alike=tuple(alike if not is_rewritten else [*alike, *pairwise(exchanged)]),
        edges=frozenset(elements.edges),
    )


def runs_of(
    around: Around, statements: Sequence[ast.stmt], regions: Sequence[ast.stmt], control: Control, name: str
) -> list[Sweeps]:
    """Regions of a block that stand one behind the other as one sweep each. regions: those that are cut into tiles."""
    found: list[_Run] = []
    constants: frozenset[str] = frozenset()
    run = _Run(around, control, f"{name}_run")
    for statement in statements:
        if does_nothing(statement):
            continue
        is_region = any(statement is region for region in regions)
        if not (run.takes(statement, constants) if is_region else run.puts_first(statement)):
            found.append(run)
            run = _Run(around, control, f"{name}_run_{len(found) + 1}")
            if is_region:
                run.takes(statement, constants)
        constants = constants - bound_names([statement]) | constant_names(statement)
    return [one.sweeps() for one in (*found, run) if len(one.phases) > 1]


@dataclass
class _Run:
    """Regions so far that may be phases of one sweep."""

    around: Around
    control: Control
    name: str
    statements: list[ast.stmt] = field(default_factory=list)
    waiting: list[ast.stmt] = field(default_factory=list)  # what stands behind the last region
    first: list[ast.stmt] = field(default_factory=list)
    phases: list[FunctionSource] = field(default_factory=list)
    inputs: dict[str, ast.expr] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)

    @property
    def _used(self) -> set[str]:
        return {node.id for s in self.statements for node in ast.walk(s) if isinstance(node, ast.Name)}

    def takes(self, region: ast.stmt, constants: frozenset[str]) -> bool:
        """Add a region, if it can be a phase behind those there are. constants: names that are set to numbers here, so that calls
        are alike."""
        assert isinstance(region, ast.For)
        phase = swept(self.around, region, self.control, f"{self.name}_{len(self.phases) + 1}", once=True)
        if phase is None:
            return False
        read = {node.id for value in phase.inputs.values() for node in ast.walk(value) if isinstance(node, ast.Name)}
        changing = (read - phase.arrays) & self.control.changing
        if read & self.outputs.keys() or changing - constants or phase.outputs.keys() & self._used:
            return False
        self.statements += [*self.waiting, region]
        self.first += self.waiting
        self.waiting = []
        self.inputs |= phase.inputs
        self.outputs |= phase.outputs
        self.phases.append(phase.source)
        return True

    def puts_first(self, statement: ast.stmt) -> bool:
        """Whether a statement that is no region can be done before the run: it gives a number to a name not used in it."""
        names = constant_names(statement)
        if not self.statements:
            return True
        if not names or names & self._used:
            return False
        self.waiting.append(statement)
        return True

    def sweeps(self) -> Sweeps:
        over = ast.copy_location(ast.parse("range(1)", mode="eval").body, self.statements[0])
        return Sweeps(
            tuple(self.statements),
            over,
            self.name,
            tuple(self.phases),
            self.inputs,
            outputs=self.outputs,
            first=tuple(self.first),
        )


@dataclass(frozen=True)
class Swept:
    """A region as a function that does it in every iteration of a loop. inputs: what the driver passes, by parameter; outputs:
    reductions, each with the input that it begins with."""

    source: FunctionSource
    inputs: dict[str, ast.expr]
    outputs: dict[str, str]
    arrays: frozenset[str]


def swept(around: Around, region: ast.For, control: Control, name: str, once: bool = False) -> Swept | None:
    """A region with a loop around it: that of the sweeps, of which the number is another parameter, the last one. once: whether
    there is but one, so that there is no such parameter, and tiles need no skewing."""
    try:
        outlined = outline(around, region, name, control, lift=False)
    except RefusedError:
        return None
    tree = copy.deepcopy(outlined.source.tree)
    given = dict(zip([a.arg for a in tree.args.args], outlined.inputs, strict=True))
    if not all(isinstance(value, ast.Name) for value in given.values()):
        return None
    position = next(k for k, s in enumerate(tree.body) if isinstance(s, ast.For))
    taken = {*around.locals, *given, *(n.id for n in ast.walk(tree) if isinstance(n, ast.Name))}
    index, count = fresh_name("once" if once else "sweep", taken), fresh_name("sweeps", taken)
    number: ast.expr = ast.Constant(1) if once else ast.Name(count, ast.Load())
    over = ast.Call(ast.Name("range", ast.Load()), [number], [])
    tree.args.args += [] if once else [ast.arg(count)]
    tree.body[position] = ast.For(ast.Name(index, ast.Store()), over, [tree.body[position]], [])
    parsed = _parsed(around, placed(region, tree, with_end=True), skews=not once)
    if parsed is None:
        return None
    source, loops = parsed
    if loops.sweep_depth != 1 or loops.loop_names[0] != index or loops.returns != outlined.outputs:
        return None
    starts = {s.targets[0].id: s.value.id for s in tree.body[:position] if _is_copy(s)}  # type: ignore[attr-defined]
    if not starts.keys() >= set(outlined.outputs):
        return None
    inputs = {n: ast.copy_location(value, region) for n, value in given.items()}
    return Swept(source, inputs, {o: starts[o] for o in outlined.outputs}, frozenset(loops.arrays))


def _is_copy(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assign(targets=[ast.Name()], value=ast.Name()):
            return True
    return False


def constant_names(statement: ast.stmt) -> set[str]:
    """The name that a statement sets to a number."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant() | ast.UnaryOp(operand=ast.Constant())):
            return {name}
    return set()


def _phase(
    around: Around,
    sweep: ast.For,
    phase: PhaseLoop,
    control: Control,
    name: str,
    names: Mapping[str, str],
    iterations: ast.Name | None,
    copies: Mapping[str, str],
) -> tuple[FunctionSource, dict[str, ast.expr]] | None:
    """A region with the loop of the sweeps around it, with other names for some arrays; and its inputs.

    iterations: how often the loop goes round, where that is not as it is written. copies: arrays that only the loop has, each
    with the one that it is a copy of.
    """
    assert isinstance(sweep.target, ast.Name)
    rewritten = None if phase.loop is phase.place else Rewritten(phase.loop, {}, {n: n for n in copies})
    try:
        outlined = outline(around, phase.place, name, control, lift=False, rewritten=rewritten)
    except RefusedError:
        return None
    tree = copy.deepcopy(outlined.source.tree)
    if outlined.outputs or len(tree.body) != 1:
        return None
    given = dict(zip([a.arg for a in tree.args.args], outlined.inputs, strict=True))
    if any(not isinstance(value, ast.Name) or value.id != n for n, value in given.items()):
        return None
    given.pop(sweep.target.id, None)
    given = {names.get(n, n): ast.Name(copies.get(n, names.get(n, n)), ast.Load()) for n in given}
    over: ast.expr = copy.deepcopy(sweep.iter)
    if iterations is not None:
        over = ast.Call(ast.Name("range", ast.Load()), [iterations], [])
    read = {n.id for n in ast.walk(over) if isinstance(n, ast.Name)}
    read &= around.locals if iterations is None else {iterations.id}
    given |= {n: ast.Name(n, ast.Load()) for n in sorted(read)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
    loop = ast.For(ast.Name(sweep.target.id, ast.Store()), over, tree.body, [])
    tree.body = [ast.copy_location(loop, sweep)]
    tree.args.args = [ast.arg(n) for n in given]
    parsed = _parsed(around, placed(sweep, tree, with_end=True))
    if parsed is None:
        return None
    source, loops = parsed
    is_sweep = loops.sweep_depth >= 1 and loops.loop_names[0] == sweep.target.id and bool(loops.space_loops)
    if not is_sweep or loops.accumulators:
        return None
    return source, {n: ast.copy_location(value, sweep) for n, value in given.items()}


def _parsed(around: Around, tree: ast.FunctionDef, skews: bool = False) -> tuple[FunctionSource, ir.LoopNest] | None:
    """A function that was made for a phase, as a nest that can be tiled as it is; None where it is none. skews: whether it may be
    skewed for that."""
    function = Code.of(tree, around.source.function).function(defaults=False)
    # Nothing would do its loops as they are written where a call's sizes ask for that.
    source = FunctionSource(
        function, around.source.file, around.source.first, around.source.lines, tree, as_written=True
    )
    try:
        loops = parse(source)
        return (source, loops) if NestAnalysis(loops).skew is None or skews else None
    except RefusedError:
        return None


def _sets_unused(statement: ast.stmt, body: Sequence[ast.stmt]) -> bool:
    """Whether it sets a name to a number that no other statement of the loop reads."""
    reads = {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    names = constant_names(statement)
    return bool(names) and not names & reads
