"""Which loops of a function are regions, nests that are compiled, and which are control of the driver, run by Python itself.

Of a loop statement, from the outside in:

1. It is a nest that can be tiled: a region.
2. Such regions are found inside of it, alike in every iteration: control. If it can be compiled as a whole, too, that is
   done where the regions are small (``short_loops``).
3. It can be compiled to run in its own order: a region, sequential, on one rank.
4. Regions are found inside of it: control.
5. It works on whole arrays: control. Or on single elements of vectors: control, and a note, since Python takes its time over it.
6. It works on the elements of matrices and larger arrays: it is refused, with what keeps it from being a nest.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from lapwing.errors import Refusal, RefusedError
from lapwing.loopnest import ir
from lapwing.loopnest.analysis import NestAnalysis
from lapwing.loopnest.frontend.expressions import subscripts
from lapwing.loopnest.frontend.parser import parse
from lapwing.loopnest.normalisation.names import all_names, blocks_in, count_names
from lapwing.loopnest.program.lookahead import Lookahead, lookahead_of
from lapwing.loopnest.program.outlining import Outlined, outline
from lapwing.loopnest.program.short_loops import budget, is_short, short_test
from lapwing.loopnest.program.surroundings import Around, Control
from lapwing.loopnest.program.sweeps import Sweeps, runs_of, sweeps_of
from lapwing.loopnest.program.variables.names import bound_names
from lapwing.loopnest.program.wholes import Whole, whole_of


@dataclass(frozen=True)
class Region:
    """A loop statement of a function that is a nest. why: what keeps a sequential one from being cut into tiles; is_small:
    whether Python may run it, where its arguments keep it from being compiled. short: true where Python is to run it, since that
    takes less time than a call (``short_loops``); None where that is not known, or where the bits may be others. looking_up:
    parameters that a sequential one has other integers for in every call, and that it does nothing with but look elements up."""

    statement: ast.For | ast.While = field(repr=False)
    outlined: Outlined = field(repr=False)
    loops: ir.LoopNest
    why: tuple[Refusal, ...] = ()
    is_small: bool = False
    short: ast.expr | None = field(default=None, repr=False)
    looking_up: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return self.loops.name


@dataclass(frozen=True)
class Interpreted:
    """A loop that Python runs, since it is no nest. why: what keeps it from being one."""

    statement: ast.For | ast.While = field(repr=False)
    text: str
    why: tuple[Refusal, ...]

    @property
    def line(self) -> int:
        return self.statement.lineno


@dataclass
class Found:
    """What became of the loops of some statements."""

    regions: list[Region] = field(default_factory=list)
    interpreted: list[Interpreted] = field(default_factory=list)
    refused: list[tuple[ast.stmt, tuple[Refusal, ...]]] = field(default_factory=list)
    sweeps: list[Sweeps] = field(default_factory=list)
    wholes: list[Whole] = field(default_factory=list)
    lookaheads: list[Lookahead] = field(default_factory=list)

    def add(self, other: Found) -> None:
        self.wholes += other.wholes
        self.regions += other.regions
        self.interpreted += other.interpreted
        self.refused += other.refused
        self.sweeps += other.sweeps
        self.lookaheads += other.lookaheads


def choose_regions(around: Around) -> Found:
    """The regions of a function, in the order of its text, and what of its loops is none."""
    return _Choice(around).block(around.source.tree.body, Control(), 1)


class _Choice:
    def __init__(self, around: Around) -> None:
        self.around = around

    def block(self, statements: Sequence[ast.stmt], control: Control, number: int) -> Found:
        """number: of the first region among them."""
        found = Found()
        for statement in statements:
            if isinstance(statement, ast.For | ast.While):
                inner = self._loop(statement, control, number)
            else:
                inner = self._blocks_of(statement, control, number)
            number += len(inner.regions)
            found.add(inner)
        tiled = [region for region in found.regions if not region.loops.is_sequential]
        own = [region for region in tiled if any(region.statement is s for s in statements)]
        if len(own) > 1:
            found.sweeps += runs_of(self.around, statements, [r.statement for r in own], control, own[0].name)
        return found

    def _blocks_of(self, statement: ast.stmt, control: Control, number: int) -> Found:
        """What is directly inside of a statement, block by block: of branches only one is done."""
        found = Found()
        for block in blocks_in(statement):
            found.add(self.block(block, control, number + len(found.regions)))
        return found

    def _loop(self, statement: ast.For | ast.While, control: Control, number: int) -> Found:
        source, why = self.around.source, tuple[Refusal, ...]()
        if isinstance(statement, ast.For):
            region, why = self._region(statement, control, number)
            if region is not None:
                return Found([region])
        within = _inside(statement, control)
        inner = self._blocks_of(statement, within, number)
        if any(not region.loops.is_sequential and self._is_alike(region, within) for region in inner.regions):
            if isinstance(statement, ast.For) and (sweeps := self._sweeps(statement, inner, within)) is not None:
                inner.sweeps = [*inner.sweeps, sweeps] if sweeps.is_rewritten else [sweeps]
            if len(inner.regions) == 1:
                (only,) = inner.regions
                ahead = lookahead_of(self.around, statement, only.statement, only.loops, within)
                inner.lookaheads += [ahead] if ahead is not None else []
            if (whole := self._whole(statement, inner, control, number)) is not None:
                inner.wholes.append(whole)
            return inner
        returns = bool(inner.regions) and self._returns(statement)
        if not returns:
            try:
                return Found([self._sequential(statement, control, number, why)])
            except RefusedError as error:
                why = error.refusals  # they keep it from running at all
        if inner.regions:
            # Arrays that change places, or are copied or made, and rows by name may be all that keeps it from that; a loop that
            # returns need not have what the types of its scalars are in every iteration.
            if (whole := self._whole(statement, inner, control, number)) is not None:
                inner.wholes.append(whole)
            return inner
        most = _most_indices(statement)
        if most == 0:
            return Found()
        if isinstance(statement, ast.While):
            return Found(
                [], [] if inner.refused else [Interpreted(statement, source.text(statement), ())], inner.refused
            )
        if most == 1:
            return Found([], [Interpreted(statement, source.text(statement), why)])
        return Found([], [], inner.refused or [(statement, why)])

    def _returns(self, loop: ast.For | ast.While) -> bool:
        """Whether a loop ends where the function as it was written returns."""
        source = self.around.source
        new = all_names(source.tree) - all_names(source.inlined.tree) if source.single_exits else set()
        return any(isinstance(node, ast.Name) and node.id in new for node in ast.walk(loop))

    def _region(self, statement: ast.For, control: Control, number: int) -> tuple[Region | None, tuple[Refusal, ...]]:
        """A loop as a region; or None, and what keeps it from being one."""
        name = f"{self.around.source.tree.name}_{number}"
        try:
            plain = outline(self.around, statement, name, control, lift=False)
        except RefusedError as error:
            return None, error.refusals
        why: tuple[Refusal, ...] = ()
        for outlined in (outline(self.around, statement, name, control), plain):
            try:
                loops = parse(outlined.source)
                _ = NestAnalysis(loops).skew  # refuses what cannot be tiled
            except RefusedError as error:
                why = error.refusals
                continue
            if _is_worth_calls(outlined, loops, control):
                # Reductions of tiles may have other bits: sums rounded once, the sign of a zero.
                short = None if loops.accumulators else _short_test(statement, outlined, loops)
                region = Region(statement, outlined, loops, short=short)
                return self._without_tiles(region, control, number), ()
            break
        return None, why

    def _sweeps(self, statement: ast.For, inner: Found, control: Control) -> Sweeps | None:
        tiled = [region.statement for region in inner.regions if not region.loops.is_sequential]
        first = inner.regions[0].name
        return sweeps_of(self.around, statement, tiled, control, f"{first}_sweep")

    def _is_alike(self, region: Region, control: Control) -> bool:
        """Whether a region is the same nest in every iteration of the loops around it: none of their counters is among what it is
        given, so that it need not be bound and planned anew in each."""
        passed = {node.id for value in region.outlined.inputs for node in ast.walk(value) if isinstance(node, ast.Name)}
        return not passed & control.counters

    def _without_tiles(self, region: Region, control: Control, number: int) -> Region:
        """A short nest as a sequential region, where it would be bound and planned anew in each iteration around it."""
        if is_short(region.statement) and not self._is_alike(region, control):
            with contextlib.suppress(RefusedError):
                return self._sequential(region.statement, control, number, ())
        return region

    def _whole(self, statement: ast.For | ast.While, inner: Found, control: Control, number: int) -> Whole | None:
        """A loop around regions as one that can be compiled with them; None where it cannot, or its bits might be others."""
        sums = dict[tuple[int, int], tuple[str, ...]]()
        for region in inner.regions:
            added = (
                s.name
                for s in ir.all_statements(region.loops.body)
                if isinstance(s, ir.Accumulate) and s.operator == "+"
            )
            place = region.statement.lineno, region.statement.col_offset
            if names := tuple(dict.fromkeys((*sums.get(place, ()), *added))):  # loops that were one have one place
                sums[place] = names
        found = [(region, loop) for region in inner.regions if (loop := _independent_loop(region)) is not None]
        independent = [loop for region, loop in found if not region.outlined.may_meet]
        in_order = sum(region.loops.is_sequential for region in inner.regions)
        name = f"{self.around.source.tree.name}_{number}_whole_{len(inner.wholes) + 1}"
        regions = [region.statement for region in inner.regions]
        are_tiled = in_order < len(regions)
        gain = len(found) + in_order < len(regions)
        limit = budget(gain, bool(inner.lookaheads))
        return whole_of(self.around, statement, regions, control, name, independent, sums, are_tiled, limit)

    def _sequential(
        self, statement: ast.For | ast.While, control: Control, number: int, why: tuple[Refusal, ...]
    ) -> Region:
        """A loop as a sequential region. Raises RefusedError where it cannot be compiled."""
        name = f"{self.around.source.tree.name}_{number}"
        outlined = outline(self.around, statement, name, control, lift=False, sequential=True)
        loops = parse(outlined.source)
        short = _short_test(statement, outlined, loops)
        looking_up = _looking_up(statement, outlined, loops, control.counters)
        return Region(statement, outlined, loops, why, _most_indices(statement) <= 1, short, looking_up)


def _looking_up(
    statement: ast.stmt, outlined: Outlined, loops: ir.LoopNest, counters: frozenset[str]
) -> frozenset[str]:
    """The parameters of a region that are counters of loops around it, and stand in nothing but indices."""
    indices = [node.slice for node in ast.walk(statement) if isinstance(node, ast.Subscript)]
    in_indices, everywhere = count_names(indices, ast.Load), count_names([statement], ast.Load)
    return frozenset(
        parameter
        for parameter, given in zip(loops.parameters, outlined.inputs, strict=True)
        if isinstance(given, ast.Name) and given.id in counters and in_indices[given.id] >= everywhere[given.id]
    )


def _independent_loop(region: Region) -> ast.For | None:
    """The innermost loop of a nest, where no dependence joins its iterations: parts of arrays that it is given differ."""
    if region.loops.is_sequential:
        return None
    if any(d.vector[-1] and not any(d.vector[:-1]) for d in NestAnalysis(region.loops).dependences):
        return None
    name = region.loops.loop_names[-1]
    loops = (node for node in ast.walk(region.statement) if isinstance(node, ast.For))
    found = [loop for loop in loops if isinstance(loop.target, ast.Name) and loop.target.id == name]
    return found[0] if len(found) == 1 else None


def _is_worth_calls(outlined: Outlined, loops: ir.LoopNest, control: Control) -> bool:
    """Whether a nest inside of other loops does enough in a call. A row of a matrix is not, nor a loop whose bounds change with
    every call; all of a vector is."""
    if len(loops.loops) > 1:
        return True
    passed = {node.id for node in outlined.inputs if isinstance(node, ast.Name)}
    return not (outlined.rows | (passed & control.indices))


def _short_test(statement: ast.stmt, outlined: Outlined, loops: ir.LoopNest) -> ast.expr | None:
    """The test of a region; None also where the driver makes views of the arrays that it passes."""
    inputs = dict(zip(loops.parameters, outlined.inputs, strict=True))
    arrays = [inputs[name] for name in loops.parameters if name in loops.arrays]
    names = [array.id for array in arrays if isinstance(array, ast.Name)]
    return short_test(statement, loops.name, names) if len(names) == len(arrays) else None


def _inside(statement: ast.For | ast.While, control: Control) -> Control:
    """Inside of a loop that is control."""
    changing, indices, counters = control.changing | bound_names([statement]), control.indices, control.counters
    if isinstance(statement, ast.For):
        indices |= bound_names([statement.target])
    match statement:
        case ast.For(target=ast.Name(id=index), iter=ast.Call(func=ast.Name(id="range"))):
            counters |= {index}
    return Control(frozenset(changing), frozenset(indices), frozenset(counters))


def _most_indices(statement: ast.For | ast.While) -> int:
    """By how many variables of the loops in it an element is selected, at the most: 2 of a matrix, 0 where only whole arrays are
    worked on."""
    indices = {
        name
        for loop in ast.walk(statement)
        for name in (
            bound_names([loop.target]) if isinstance(loop, ast.For)
            else bound_names(loop.body) if isinstance(loop, ast.While)
            else ()
        )
    }  # fmt: skip
    accesses = [node for node in ast.walk(statement) if isinstance(node, ast.Subscript)]
    return max((len(indices & _names_in(subscripts(access)[1])) for access in accesses), default=0)


def _names_in(elements: Sequence[ast.expr]) -> set[str]:
    return {node.id for element in elements for node in ast.walk(element) if isinstance(node, ast.Name)}
